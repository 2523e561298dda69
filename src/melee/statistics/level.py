"""The A/A check: how often a test tells an explorer from itself, which is always an error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from melee.arrays import Floats
from melee.benchmark.results import Results
from melee.errors import InputError
from melee.extras import needed
from melee.statistics.inputs import check_level
from melee.statistics.matrix import TESTS, check_test, differences_on, p_values, stack

with needed("comparing explorers", "bench"):
    from scipy import special


@dataclass(frozen=True)
class Share:
    """How many of how many."""

    count: int
    total: int

    @property
    def share(self) -> float:
        """The count as a part of 1."""
        return self.count / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 95 % interval, which takes the cases as independent.

        >>> low, high = Share(3, 100).interval
        >>> print(f"{low:.4f} to {high:.4f}")
        0.0062 to 0.0852
        """
        k, n = self.count, self.total
        low = float(special.betaincinv(k, n - k + 1, 0.025)) if k > 0 else 0.0
        high = float(special.betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
        return low, high


@dataclass(frozen=True)
class LevelCheck:
    """How often each test tells an explorer from itself; both should be near `level` or below.

    `n_identical` datasets had the same rewards in every round, so that no test could err there.
    """

    level: float
    n_identical: int
    rounds: Share
    seeds: Share


def a_a(
    rewards_a: Mapping[str, Sequence[Floats]],
    rewards_b: Mapping[str, Sequence[Floats]],
    level: float = 0.01,
) -> LevelCheck:
    """The A/A check: one explorer twice on the same rows, under two seeds of its own randomness.

    Whatever a test calls significant here is an error. Datasets that share an exploration seed
    share random numbers, so the intervals are a little too narrow.

    Parameters
    ----------
    rewards_a, rewards_b
        For every dataset the rewards of each seed of the order, at least two.
    level
        Of each dataset's test.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def run():  # an early stroke of luck decides how good a run will be
    ...     return (rng.random(500) < rng.uniform(0.4, 0.6)) * 1.0
    >>> first, second = (
    ...     {f"d{i}": [run() for _ in range(3)] for i in range(200)} for _ in range(2)
    ... )
    >>> check = a_a(first, second)
    >>> print(f"paper's test {check.rounds.share:.1%}, over seeds {check.seeds.share:.1%}")
    paper's test 38.5%, over seeds 1.0%
    """
    check_level(level)
    if not rewards_a or rewards_a.keys() != rewards_b.keys():
        raise InputError(
            f"the A/A check was given {len(rewards_a)} and {len(rewards_b)} datasets, "
            f"{len(rewards_a.keys() & rewards_b.keys())} of them the same; "
            "give both runs of every dataset"
        )
    counts = {len(seeds) for rewards in (rewards_a, rewards_b) for seeds in rewards.values()}
    if len(counts) > 1:
        raise InputError(
            f"the A/A check was given from {min(counts)} to {max(counts)} seeds a dataset; "
            "give the same number for all"
        )
    check_test("seeds", counts.pop())
    differences = stack(
        [differences_on(name, [a, rewards_b[name]]) for name, a in rewards_a.items()]
    )
    significant = {test: int((p_values(differences, test) < level).sum()) for test in TESTS}
    n = len(rewards_a)
    identical = int(np.sum((differences.mean == 0.0) & (differences.variance == 0.0)))
    return LevelCheck(
        level, identical, Share(significant["rounds"], n), Share(significant["seeds"], n)
    )


def check_levels(results: Results, again: Results, level: float = 0.01) -> dict[str, LevelCheck]:
    """The A/A check of every explorer in two results of the same plan.

    `again` has the same rows in the same order, under other seeds of the explorers' randomness.
    Counts the datasets that are complete in both.
    """
    if (results.explorers, results.seeds) != (again.explorers, again.seeds):
        raise InputError(
            f"the A/A check was given results of {len(results.explorers)} explorers under "
            f"{len(results.seeds)} seeds and of {len(again.explorers)} under {len(again.seeds)}; "
            "repeat the same plan with other exploration seeds"
        )
    finished = set(again.complete_datasets())
    datasets = [dataset for dataset in results.complete_datasets() if dataset in finished]
    if not datasets:
        raise InputError(
            "no dataset is complete in both results of the A/A check; finish both benchmarks"
        )

    def rewards(of: Results, explorer: str) -> dict[str, list[Floats]]:
        return {name: [of.cell(name, explorer, s).rewards for s in of.seeds] for name in datasets}

    return {
        explorer: a_a(rewards(results, explorer), rewards(again, explorer), level)
        for explorer in results.explorers
    }


def together(checks: Iterable[LevelCheck]) -> LevelCheck:
    """One A/A check from those of several explorers, all at the same level."""
    checks = list(checks)
    levels = {check.level for check in checks}
    if len(levels) != 1:
        raise InputError(
            f"the A/A checks are at {len(levels)} levels {sorted(levels)}; give some at one level"
        )
    return LevelCheck(
        levels.pop(),
        sum(check.n_identical for check in checks),
        _sum(check.rounds for check in checks),
        _sum(check.seeds for check in checks),
    )


def _sum(shares: Iterable[Share]) -> Share:
    counts, totals = zip(*((share.count, share.total) for share in shares), strict=True)
    return Share(sum(counts), sum(totals))
