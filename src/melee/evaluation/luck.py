"""How far other lives through a log, and other logs, would have differed.

Another live run would see other rounds, learn other things and go another way; the rounds of one
run cannot tell how far. So the log is halved at random, several times, and both halves are replayed
on their own. How far their estimates differ tells how much the luck of rounds, draws and learning
moves an estimate. Half a log stands for a run of half the length, which is scaled as if luck
averaged out: that is cautious for policies that come to agree as they learn, and bold for those
that stay with what they believed first. Two things keep that from being noisier and larger than it
has to be. What halves differ by because they hold other rounds is known without them, by the spread
of the rounds, so halves tell only what learning adds. And the luck of a single replay, which each
half has in full, counts only as far as the average of several replays has it: the replays of the
whole log tell how much that is.

Two policies live through the same rounds, halved in the same way, and are accepted by the same
draws. So what they differ by has a luck of its own, of which much cancels, and it is found in the
same way, from the differences of all numbers. But the rounds of two policies that mostly agree vary
by little, and what is left is almost all luck of learning, which ten halves and eight replays know
badly: by chance the corrections may leave nothing of it. So at least half of what halves tell is
kept (`OF_DIFFERENCES`). That was chosen on 84 logs of six other worlds, among five shares: with
none, the 95 % intervals of differences between six explorers held what live runs earn in 84 %, with
a third in 93, with half in 95, with two thirds in 97, and with all of it in 98 %; the interval of
two estimates that are taken for independent held it in 99.6 %, and is half as wide again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.replay import Replay, averaged, replay
from melee.rng import generator

if TYPE_CHECKING:
    from melee.agent import Agent

N_REPLAYS = 8
"""Of the whole log; estimates are their averages."""
N_SPLITS = 10
"""How many times the log is halved."""
OF_DIFFERENCES = 0.5
"""Which share of the variance that halves tell of a difference is kept in any case."""


class Lives(NamedTuple):
    """What a policy's lives through a log say of its mean reward, by `dr` and by `replay`.

    Or what those of two policies say of the difference.

    Attributes
    ----------
    rounds
        What each logged round says, (2, n): estimates are the means.
    weights
        The policy's probability of what was logged over the logged one, (n,), on average over
        replays.
    replays
        What each replay of the whole log says, (N_REPLAYS, 2).
    halves
        What the two halves of each split say, (N_SPLITS, 2, 2).
    """

    rounds: Floats
    weights: Floats
    replays: Floats
    halves: Floats

    def minus(self, other: "Lives") -> "Lives":
        """What they say of the difference to another policy, which lived through the same."""
        return Lives(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def lives(
    log: EvaluatedLog, start: "Callable[[int], Agent]", runs: Sequence[Replay], seed: int
) -> Lives:
    """Let a policy live through the halves of a log, too.

    Parameters
    ----------
    start
        What makes the agent of each life, by number; see `replay.starts`.
    runs
        The replays of the whole log, which the estimates average.
    """
    halves = np.empty((N_SPLITS, 2, 2))
    for i, both in enumerate(_splits(log.n_rounds, seed)):
        for half, rows in enumerate(both):
            number = N_REPLAYS + 2 * i + half
            run = replay(log, start(number), rows, seed, f"half {number}")
            halves[i, half] = _terms(log, run).mean(axis=1)
    mean = averaged(runs)
    replays = np.array([_terms(log, run).mean(axis=1) for run in runs])
    return Lives(_terms(log, mean), parts(log, mean)[0], replays, halves)


def logged_life(log: EvaluatedLog, seed: int) -> Lives:
    """The one life that the policy had which wrote the log."""
    rewards = log.units
    halves = [[rewards[rows].mean() for rows in both] for both in _splits(log.n_rounds, seed)]
    return Lives(
        np.stack([rewards, rewards]),
        np.ones(log.n_rounds),
        np.full((N_REPLAYS, 2), rewards.mean()),
        np.repeat(np.array(halves)[:, :, None], 2, axis=2),
    )


def luck(lived: Lives, seed: int, least: float = 0.0) -> list[tuple[float, int]]:
    """The standard deviations of both estimates, and the degrees of freedom these are known by.

    Two halves differ by twice as much as the whole is uncertain: each has twice its variance. Of
    that, what rounds vary by is exchanged for what is known of it, and the luck of single replays
    for that of their average.

    Parameters
    ----------
    least
        Which share of the variance that halves tell is kept, whatever the exchanges leave of it.
    """
    n_rounds = lived.rounds.shape[1]
    uncorrected, learning = np.empty((2, N_SPLITS, 2))
    for i, both in enumerate(_splits(n_rounds, seed)):
        expected = [lived.rounds[:, rows].mean(axis=1) for rows in both]
        apart, of_rounds = (0.5 * (one - other) for one, other in (lived.halves[i], expected))
        uncorrected[i], learning[i] = apart**2, apart**2 - of_rounds**2
    of_rounds = lived.rounds.var(axis=1, ddof=1) / n_rounds
    too_much = (1.0 - 1.0 / N_REPLAYS) * lived.replays.var(axis=0, ddof=1)
    variance = np.maximum(of_rounds + learning.mean(axis=0) - too_much, of_rounds)
    variance = np.maximum(variance, least * uncorrected.mean(axis=0))
    # Satterthwaite (1946): as many as a chi-square number has that is known as badly.
    error = learning.var(axis=0, ddof=1) / N_SPLITS + 2.0 * too_much**2 / (N_REPLAYS - 1)
    freedom = np.clip(2.0 * variance**2 / np.maximum(error, 1e-300), N_SPLITS, 1e6)
    return list(zip(np.sqrt(variance).tolist(), freedom.astype(int).tolist(), strict=True))


def parts(log: EvaluatedLog, run: Replay) -> tuple[Floats, Floats, Floats, Floats]:
    """The weights, rewards and predictions that the doubly robust estimate of a replay needs.

    What the model knows nothing of, it takes to earn what all rounds earn on average.
    """
    rows, actions = run.rows, log.actions[run.rows]
    weights = run.chosen[np.arange(len(rows)), actions] / log.probabilities[rows]
    q = log.model.predicted[rows]
    predicted = (run.chosen * q).sum(axis=1) + run.outside * log.units.mean()
    return weights, log.units[rows], q[np.arange(len(rows)), actions], predicted


def _terms(log: EvaluatedLog, run: Replay) -> Floats:
    """What each round of a replay says, by `dr` and `replay`, (2, m): estimates are the means."""
    weights, rewards, of_chosen, predicted = parts(log, run)
    n_accepted = max(float(run.accepted.sum()), 1.0)
    mean = run.accepted @ rewards / n_accepted
    of_replay = mean + run.accepted * (rewards - mean) * (len(rewards) / n_accepted)
    return np.stack([predicted + weights * (rewards - of_chosen), of_replay])


def _splits(n_rounds: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """The rounds of both halves, of each split."""
    for i in range(N_SPLITS):
        side = generator(seed, "halves", i).permutation(n_rounds) % 2
        yield np.flatnonzero(side == 0), np.flatnonzero(side == 1)
