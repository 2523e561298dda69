"""What a learning policy would have earned live, from a log of another one.

A policy that learns chooses what it learns from. Taught by a log it never pays for exploring, so
how it fares there says little about how it would fare alone. Here it lives through the log
(`melee.evaluation.replay`): it is shown, and learns, only rounds in which it would have done what
was done, and these are distributed as a live run of their number. Two estimates of such a run's
mean reward:

- `replay`, the mean reward of accepted rounds;
- `dr`, doubly robust for policies that change (Dudík, Erhan, Langford and Li, 2012): every logged
  round, accepted or not, tells about the policy as it stood then, by the model's rewards for the
  policy's choices, corrected by the weighted error for the logged one. Every state of the policy
  lasts equally many logged rounds on average, 1 / share, so the mean over logged rounds is that
  over a live run. It is unbiased as `replay` is, since predictions of a round are never learned
  from that round, and more precise, since it uses all rounds.

**Luck of learning.** Another live run would see other rounds, learn other things and go another
way; the rounds of one run cannot tell how far. So the log is halved at random, several times, and
both halves are replayed on their own. How far their estimates differ tells how much the luck of
rounds, draws and learning moves an estimate, and an interval is at least as wide as that says. Half
a log stands for a run of half the length, which is scaled as if luck averaged out: that is cautious
for policies that come to agree as they learn, and bold for those that stay with what they believed
first. Two things keep that from being noisier and larger than it has to be. What halves differ by
because they hold other rounds is known without them, by the spread of the rounds, so halves tell
only what learning adds. And the luck of a single replay, which each half has in full, counts only
as far as the average of several replays has it: the replays of the whole log tell how much that is.

Of 16 logs for each of 12 worlds and 6 explorers, the 95 % interval of `dr` held the mean of live
runs in 95.5 %, and that of `replay` in 97.0 %; they are wider than the ideal by 16 and 29 %.
Without the two corrections, and with four replays, it was 97.9 and 99.4 %, and 35 and 51 %. The
interval of the rounds alone would be far too narrow where live runs differ: with three sections of
a site and LinUCB of a small bonus, runs of 660 rounds have a deviation of 0.04, of which the
rewards of one run show 0.02. `tests/evaluation` repeats the simulation.

A log in which some rounds stand for more than others, as those were dropped, cannot tell: a policy
that met a round many times over would learn more from it than from the rounds it stands for.

**What is assumed.** Contexts and rewards do not depend on earlier decisions, and the logged
probabilities are right. The estimate speaks of a run as long as the accepted rounds, not of what
the policy would earn later.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from melee.arrays import Floats
from melee.checks import RewardRange
from melee.errors import MeleeError, whole_number
from melee.evaluation import estimates
from melee.evaluation.differences import LOGGED, unequal
from melee.evaluation.estimates import Estimate
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.off_policy import check_confidence
from melee.evaluation.replay import LivePolicy, Replay, accepted_share, averaged, replay, starts
from melee.evaluation.support import cautions, lacking
from melee.evaluation.tails import t_quantile
from melee.rng import generator

if TYPE_CHECKING:
    from melee.agent import Agent
    from melee.history import History

N_REPLAYS = 8
"""Of the whole log; estimates are their averages."""
N_SPLITS = 10
"""How many times the log is halved."""
MIN_ACCEPTED = 20
"""Rounds below which a run has hardly begun, and its halves even less."""
ASSUMES = (
    "This takes contexts and rewards not to depend on earlier decisions, and logged probabilities "
    "to be right; it speaks of a run as long as the accepted rounds, not of a longer one."
)


@dataclasses.dataclass(frozen=True)
class LiveEvaluation:
    """What a log says about a live run of a policy that learns.

    Attributes
    ----------
    policy
        Its SPEC or name.
    n_rounds
        How many rounds were logged.
    n_accepted
        How many of them happened to the policy, on average over replays: the length of the live run
        that the estimates speak of. 0 where the log cannot tell.
    estimates
        By name (`dr`, `replay`), each with `value`, `low` and `high`; none where the log cannot
        tell.
    logged
        The mean reward of the log itself.
    reward_range
        The least and the greatest reward that intervals allow for, declared or observed.
    reason
        Why the log cannot tell, if it cannot.
    warnings
        Sentences that should be read before the numbers are used.
    """

    policy: str
    n_rounds: int
    n_accepted: int
    confidence: float
    estimates: dict[str, Estimate]
    logged: Estimate
    reward_range: tuple[float, float]
    reason: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The mean reward of a live run, by `dr`; NaN where the log cannot tell."""
        return self.estimates["dr"].value if self.estimates else math.nan

    @property
    def low(self) -> float:
        """The low end of its interval."""
        return self.estimates["dr"].low if self.estimates else math.nan

    @property
    def high(self) -> float:
        """The high end of its interval."""
        return self.estimates["dr"].high if self.estimates else math.nan

    def __str__(self) -> str:
        if self.reason is not None:
            return self.reason
        lines = [
            f"{self.policy}, live for {self.n_accepted:,} rounds; {self.n_rounds:,} were logged",
            *(
                f"  {estimate.name:7}{estimate}"
                for estimate in [*self.estimates.values(), self.logged]
            ),
            f"mean rewards with {self.confidence:.4g} confidence intervals",
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def evaluate_live(
    history: "History",
    policy: LivePolicy,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    reward_range: RewardRange = None,
) -> LiveEvaluation:
    """Estimate the mean reward that a learning policy would have earned, had it run live.

    The policy lives through the log: it learns only the rounds in which it would have done what was
    done, and pays for its exploration. The interval is of the mean reward that runs of
    `n_accepted` rounds have on average; a single run has luck of its own on top.

    Assumes that contexts and rewards do not depend on earlier decisions, and that the logged
    probabilities are right. Where the log cannot tell (nothing was explored, too few rounds would
    be accepted, some were dropped, the policy wants what was never tried) there are no numbers, and
    `reason` says why. Not for policies that do not learn: `evaluate` uses all rounds for them.

    Parameters
    ----------
    history
        The log, of a policy whose probabilities are known. The rounds that are accepted are about
        n · p, where p is the smallest probability that any action had: uniform logs are best.
    policy
        - An explorer's SPEC, such as "linucb:alpha=0.2": what `Agent(actions, SPEC)` would earn
          from its first round on, with the agent's default floor.
        - An `Agent`, for all other settings: what it would earn from now on. It is copied, and does
          not learn itself. It must not have learned from this log.
    confidence
        Of the intervals.
    seed
        Of the agents of a SPEC, and of the draws by which rounds are accepted.
    reward_range
        The least and the greatest reward there can be, as in `evaluate`.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rng = np.random.default_rng(0)
    >>> rounds = []
    >>> for _ in range(1000):
    ...     device, action = str(rng.choice(["phone", "desk"])), str(rng.choice(["a", "b"]))
    ...     reward = float(rng.random() < (0.8 if (device == "phone") == (action == "a") else 0.2))
    ...     rounds.append(Round({"device": device}, action, reward, probability=0.5))
    >>> found = evaluate_live(History(rounds), "linucb:alpha=0.2")
    >>> 0.6 < found.low < found.value < found.high < 0.9
    True
    >>> 450 < found.n_accepted < 550
    True
    >>> certain = [Round({"device": "desk"}, "a", i % 2, probability=1.0) for i in range(50)]
    >>> print(evaluate_live(History(certain), "linucb").reason)
    this log cannot tell what linucb would earn live: every round was logged with probability 1, ...
    """
    check_confidence(confidence)
    name = policy if isinstance(policy, str) else "the agent"
    log = EvaluatedLog(history, reward_range)
    return _evaluate(log, policy, name, confidence, whole_number("seed", seed, 0))


def evaluate_live_many(
    history: "History",
    policies: Mapping[str, LivePolicy] | Iterable[str],
    *,
    confidence: float = 0.95,
    seed: int = 0,
    reward_range: RewardRange = None,
) -> dict[str, LiveEvaluation | MeleeError]:
    """Estimate what several learning policies would have earned live; errors stand for numbers.

    As many calls of `evaluate_live`, except that the model of rewards is learned once.

    Parameters
    ----------
    policies
        By name, or the SPECs of explorers.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rounds = [Round([float(i % 5)], "ab"[i % 2], i % 2, 0.5) for i in range(200)]
    >>> found = evaluate_live_many(History(rounds), ["uniform", "linucb"])
    >>> found["linucb"].value > found["uniform"].value
    True
    """
    check_confidence(confidence)
    seed = whole_number("seed", seed, 0)
    log = EvaluatedLog(history, reward_range)
    named = policies if isinstance(policies, Mapping) else {spec: spec for spec in policies}
    found: dict[str, LiveEvaluation | MeleeError] = {}
    for name, policy in named.items():
        try:
            found[name] = _evaluate(log, policy, name, confidence, seed)
        except MeleeError as error:
            found[name] = error
    return found


def _evaluate(
    log: EvaluatedLog, policy: LivePolicy, name: str, confidence: float, seed: int
) -> LiveEvaluation:
    logged = estimates.ips(log.sizes, log.units, confidence, log.sizes)._replace(name=LOGGED)
    found = LiveEvaluation(
        policy=name,
        n_rounds=log.n_rounds,
        n_accepted=0,
        confidence=confidence,
        estimates={},
        logged=log.unit.back(logged),
        reward_range=(log.unit.low, log.unit.high),
        warnings=(log.unit.caution(),) if log.unit.observed else (),
    )
    start = starts(log, policy, seed)
    reason = _without_support(log)
    if reason is None:
        everything = np.arange(log.n_rounds)
        runs = [replay(log, start(i), everything, seed, f"whole {i}") for i in range(N_REPLAYS)]
        mean = averaged(runs)
        weights = mean.chosen[everything, log.actions] / log.probabilities
        reason = "; also, ".join(lacking(log, mean.chosen, mean.outside, weights))
        reason = reason or _too_few(log, mean.accepted.sum())
    if reason:
        sentence = f"this log cannot tell what {name} would earn live: {reason}"
        return dataclasses.replace(found, reason=sentence)
    lucks = luck(log, start, runs, seed)
    dr = estimates.doubly_robust(*_parts(log, mean), confidence)
    both = (dr, _replayed(log, mean, confidence))
    wide = (_widened(estimate, *by, confidence) for estimate, by in zip(both, lucks, strict=True))
    return dataclasses.replace(
        found,
        n_accepted=round(mean.accepted.sum()),
        estimates={estimate.name: log.unit.back(estimate) for estimate in wide},
        warnings=(*cautions(weights, mean.outside), *found.warnings),
    )


def _without_support(log: EvaluatedLog) -> str | None:
    """Why no policy at all could be replayed, if none can."""
    if (log.probabilities == 1.0).all():
        return (
            "every round was logged with probability 1, so nothing but the chosen action was ever "
            "tried, and nobody knows what a policy would have learned of the others; let the "
            "logging policy explore, as Agent(floor=0.2) does"
        )
    if unequal(log.sizes):
        return (
            f"its rounds stand for {log.stands_for.min():g} to {log.stands_for.max():g} rounds, as "
            "others were dropped, and a live run would have met those as well; expected all "
            "rounds to stand for equally many: log every round, or ask what an explorer earns "
            "that is trained on this log, with melee.evaluate"
        )
    return log.without_support() or _too_few(log, log.n_rounds * accepted_share(log))


def _too_few(log: EvaluatedLog, n_accepted: float) -> str | None:
    """Why so many accepted rounds are no answer, if they are none."""
    if n_accepted >= MIN_ACCEPTED:
        return None
    return (
        f"of {log.n_rounds:,} rounds about {n_accepted:.0f} would be accepted, as some actions "
        f"had a probability of only {accepted_share(log):.3g}; expected at least {MIN_ACCEPTED}: "
        "log more rounds, or with a higher floor: Agent(floor=...)"
    )


def _parts(log: EvaluatedLog, run: Replay) -> tuple[Floats, Floats, Floats, Floats]:
    """The weights, rewards and predictions that the doubly robust estimate of a replay needs.

    What the model knows nothing of, it takes to earn what all rounds earn on average.
    """
    rows, actions = run.rows, log.actions[run.rows]
    weights = run.chosen[np.arange(len(rows)), actions] / log.probabilities[rows]
    q = log.model.predicted[rows]
    predicted = (run.chosen * q).sum(axis=1) + run.outside * log.units.mean()
    return weights, log.units[rows], q[np.arange(len(rows)), actions], predicted


def _replayed(log: EvaluatedLog, run: Replay, confidence: float) -> Estimate:
    """The mean reward of accepted rounds; of several replays, weighted by how often each was."""
    found = estimates.snips(run.accepted, log.units[run.rows], confidence)
    return found._replace(name="replay")


def _terms(log: EvaluatedLog, run: Replay) -> Floats:
    """What each round of a replay says, by `dr` and `replay`, (2, m): estimates are the means."""
    weights, rewards, of_chosen, predicted = _parts(log, run)
    n_accepted = max(float(run.accepted.sum()), 1.0)
    mean = run.accepted @ rewards / n_accepted
    of_replay = mean + run.accepted * (rewards - mean) * (len(rewards) / n_accepted)
    return np.stack([predicted + weights * (rewards - of_chosen), of_replay])


def luck(
    log: EvaluatedLog, start: "Callable[[int], Agent]", runs: Sequence[Replay], seed: int
) -> list[tuple[float, int]]:
    """The standard deviations of both estimates, and the degrees of freedom these are known by.

    Two halves differ by twice as much as the whole is uncertain: each has twice its variance. Of
    that, what rounds vary by is exchanged for what is known of it, and the luck of single replays
    for that of their average.

    Parameters
    ----------
    runs
        The replays of the whole log, which the estimates average.
    """
    whole = _terms(log, averaged(runs))
    learning = np.empty((N_SPLITS, 2))
    for i in range(N_SPLITS):
        side = generator(seed, "halves", i).permutation(log.n_rounds) % 2
        found, expected = [], []
        for half in range(2):
            number, rows = N_REPLAYS + 2 * i + half, np.flatnonzero(side == half)
            run = replay(log, start(number), rows, seed, f"half {number}")
            found.append(_terms(log, run).mean(axis=1))
            expected.append(whole[:, rows].mean(axis=1))
        apart, of_rounds = (0.5 * (mine - other) for mine, other in (found, expected))
        learning[i] = apart**2 - of_rounds**2
    of_rounds = whole.var(axis=1, ddof=1) / log.n_rounds
    of_replays = np.var([_terms(log, run).mean(axis=1) for run in runs], axis=0, ddof=1)
    too_much = (1.0 - 1.0 / len(runs)) * of_replays
    variance = np.maximum(of_rounds + learning.mean(axis=0) - too_much, of_rounds)
    # Satterthwaite (1946): as many as a chi-square number has that is known as badly.
    error = learning.var(axis=0, ddof=1) / N_SPLITS + 2.0 * too_much**2 / (len(runs) - 1)
    freedom = np.clip(2.0 * variance**2 / np.maximum(error, 1e-300), N_SPLITS, 1e6)
    return list(zip(np.sqrt(variance).tolist(), freedom.astype(int).tolist(), strict=True))


def _widened(estimate: Estimate, deviation: float, freedom: int, confidence: float) -> Estimate:
    """An estimate whose interval allows for the luck of learning; within [0, 1], as all are."""
    reach = t_quantile(freedom, confidence) * deviation
    low, high = (
        min(estimate.low, estimate.value - reach),
        max(estimate.high, estimate.value + reach),
    )
    return estimate._replace(low=max(low, 0.0), high=min(high, 1.0))
