"""The win/loss matrix: on how many datasets each explorer significantly beats each other."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.benchmark.results import Results
from melee.errors import InputError, unknown
from melee.statistics.inputs import check_level, comparable
from melee.statistics.paired import moderated_t, two_sided

Test = Literal["rounds", "seeds"]
"""`rounds` is the paper's test, `paired_t` over the rounds of all seeds; `seeds` holds its level,
`moderated_t` over seeds."""

TESTS: tuple[Test, Test] = ("rounds", "seeds")


@dataclass(frozen=True)
class Pair:
    """On how many datasets `row` is significantly better (wins) or worse than `column`."""

    row: str
    column: str
    wins: int
    losses: int
    ties: int

    @property
    def net(self) -> int:
        """Wins minus losses."""
        return self.wins - self.losses


class WinLoss(NamedTuple):
    """On `wins[i, j]` datasets explorer i beats j; `net` is `wins - wins.T`."""

    wins: Ints
    net: Ints


class Differences(NamedTuple):
    """Rewards of one explorer minus those of another, for any number of pairs and datasets.

    `per_seed` (datasets, pairs, seeds) are mean differences, `mean` (datasets, pairs) the same
    over all rounds, `variance` that of one round, and `n_rounds` (datasets,) counts all seeds'.
    """

    per_seed: Floats
    mean: Floats
    variance: Floats
    n_rounds: Ints


def compare_pairs(results: Results, level: float = 0.01, test: Test = "rounds") -> list[Pair]:
    """Significant wins and losses of every pair of explorers, over the complete datasets.

    Parameters
    ----------
    results
        At least two explorers, and for the test over `seeds` at least two seeds.
    level
        Of each dataset's test; the paper's is 0.01.
    test
        `rounds`: the paper's paired t-test on rounds, seeds pooled. It exceeds its level, so
        read its wins beside an A/A check. `seeds`: a moderated t-test over seeds, which holds
        its level (see `a_a`) and finds fewer of the true differences: with 3 seeds 17 % of those
        that 45 other seeds confirmed on the paper's datasets, where a t-test over seeds alone
        finds 8 % and the paper's 58 % (but those 45 contradict every tenth of its calls).

    Examples
    --------
    >>> from melee.benchmark.results import CellResult
    >>> rng = np.random.default_rng(0)
    >>> runs = {"good": 0.8, "bad": 0.2}
    >>> cells = [
    ...     CellResult("d", "d", 50, 2, 2, name, seed, (rng.random(50) < p) * 1.0, 0.0)
    ...     for name, p in runs.items()
    ...     for seed in range(2)
    ... ]
    >>> compare_pairs(Results.of(cells))
    [Pair(row='good', column='bad', wins=1, losses=0, ties=0)]
    """
    pairs = itertools.combinations(results.explorers, 2)
    signs = outcomes(results, level, test)[:, *np.triu_indices(len(results.explorers), k=1)]
    return [
        Pair(*pair, *(int((column == sign).sum()) for sign in (1, -1, 0)))
        for pair, column in zip(pairs, signs.T, strict=True)
    ]


def win_loss_matrix(results: Results, level: float = 0.01, test: Test = "rounds") -> WinLoss:
    """The same as `compare_pairs`, as a matrix in the order of the explorers."""
    wins = (outcomes(results, level, test) > 0).sum(axis=0)
    return WinLoss(wins, wins - wins.T)


def outcomes(results: Results, level: float = 0.01, test: Test = "rounds") -> Ints:
    """1 where explorer i is significantly better than j, -1 where worse, else 0.

    Shape (complete datasets, explorers, explorers).
    """
    check_level(level)
    comparable(results)
    check_test(test, len(results.seeds))
    differences = _of_results(results)
    signs = np.sign(differences.mean) * (p_values(differences, test) < level)
    n = len(results.explorers)
    i, j = np.triu_indices(n, k=1)
    found = np.zeros((len(signs), n, n), dtype=np.int64)
    found[:, i, j], found[:, j, i] = signs, -signs
    return found


def p_values(differences: Differences, test: Test) -> Floats:
    """The p-value of every dataset and pair, shape (datasets, pairs)."""
    per_seed, mean, variance, n_rounds = differences
    if test == "rounds":
        return two_sided(mean, np.sqrt(variance / n_rounds[:, None]), n_rounds[:, None] - 1)
    by_rounds = variance * per_seed.shape[2] / n_rounds[:, None]
    columns = [
        moderated_t(per_seed[:, pair], by_rounds[:, pair]).p_value
        for pair in range(per_seed.shape[1])
    ]
    return np.stack(columns, axis=1)


def _of_results(results: Results) -> Differences:
    return stack(
        [
            differences_on(
                dataset,
                [
                    [results.cell(dataset, explorer, seed).rewards for seed in results.seeds]
                    for explorer in results.explorers
                ],
            )
            for dataset in results.complete_datasets()
        ]
    )


def stack(parts: list[tuple[Floats, Floats, Floats, int]]) -> Differences:
    """All datasets' differences from those of each."""
    per_seed, mean, variance, n_rounds = zip(*parts, strict=True)
    return Differences(np.stack(per_seed), np.stack(mean), np.stack(variance), np.array(n_rounds))


def differences_on(
    dataset: str, runs: Sequence[Sequence[Floats]]
) -> tuple[Floats, Floats, Floats, int]:
    """One dataset's part of `Differences`: all pairs of its runs, each a list over seeds."""
    lengths = [[len(rewards) for rewards in run] for run in runs]
    if min(lengths[0]) == 0 or any(length != lengths[0] for length in lengths):
        raise InputError(
            f"dataset {dataset}: its runs have {min(map(min, lengths))} to "
            f"{max(map(max, lengths))} rounds; a paired test needs the same rounds of all, "
            "at least 1: run them on the same rows"
        )
    rewards = np.array([np.concatenate(run) for run in runs], dtype=np.float64)
    pairs = list(itertools.combinations(rewards, 2))
    n, starts = rewards.shape[1], np.cumsum([0, *lengths[0][:-1]])
    sums, squares = np.empty((len(pairs), len(starts))), np.empty(len(pairs))
    for i, (a, b) in enumerate(pairs):
        apart = a - b
        sums[i] = np.add.reduceat(apart, starts)
        apart -= sums[i].sum() / n
        squares[i] = apart @ apart
    return sums / lengths[0], sums.sum(axis=1) / n, squares / max(n - 1, 1), n


def check_test(test: str, n_seeds: int) -> None:
    """Refuse a test that does not exist, or needs more seeds."""
    if test not in TESTS:
        raise unknown("test", test, list(TESTS))
    if test == "seeds" and n_seeds < 2:
        raise InputError(
            f"the test over seeds was given {n_seeds} seed; it needs at least 2, better 5: "
            "run more seeds, or use the test over rounds, which exceeds its level"
        )
