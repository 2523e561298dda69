"""What every statistic asks of the results, checked once at the edge."""

import numpy as np

from melee.arrays import Floats, Ints
from melee.benchmark.results import Results
from melee.errors import InputError


def comparable(results: Results) -> list[str]:
    """The complete datasets of results in which there is something to compare."""
    if len(results.explorers) < 2:
        raise InputError(
            f"the results hold {len(results.explorers)} explorer; "
            "a comparison needs at least 2: run more explorers"
        )
    datasets = results.complete_datasets()
    if not datasets:
        raise InputError(
            f"none of the {len(results.datasets)} datasets has a run of all "
            f"{len(results.explorers)} explorers under all {len(results.seeds)} seeds; finish the "
            "benchmark, or leave out the explorers that fail (Results.failures says why they do)"
        )
    return datasets


def check_level(level: float) -> None:
    """Refuse a level that is not a probability."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}; expected a number between 0 and 1, such as 0.01")


def families(results: Results) -> tuple[list[str], Ints]:
    """The families of the complete datasets in order of appearance, and each dataset's number."""
    first, seed = results.explorers[0], results.seeds[0]
    of_each = [results.cell(dataset, first, seed).family for dataset in comparable(results)]
    names = list(dict.fromkeys(of_each))
    return names, np.array([names.index(family) for family in of_each], dtype=np.int64)


def family_means(results: Results, values: Floats | None = None) -> Floats:
    """Mean reward over the datasets of a family, shape (families, explorers).

    Rounded to 12 digits, so that equal means tie however they were summed. `values`, of complete
    datasets (rows) and explorers, are averaged in place of mean rewards where they are given.
    """
    names, member = families(results)
    totals = np.zeros((len(names), len(results.explorers)))
    np.add.at(totals, member, results.mean_rewards() if values is None else values)
    return np.round(totals / np.bincount(member)[:, None], 12)
