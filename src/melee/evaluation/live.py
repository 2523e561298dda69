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

**Intervals** allow for the luck of learning (`melee.evaluation.luck`): they are at least as wide as
halves of the log tell that other runs would differ.

Over 20 logs for each of 12 worlds and 6 explorers, the 95 % interval of `dr` held the mean of live
runs in 95.5 %, and that of `replay` in 96.7 %; they are wider than the ideal by 14 and 31 %. Those
of differences to one of the explorers held in 97.2 %, and are wider by 39 %. The interval of the
rounds alone would be far too narrow where live runs differ: with three sections of a site and
LinUCB of a small bonus, runs of 660 rounds have a deviation of 0.04, of which the rewards of one
run show 0.02. `tests/evaluation` repeats the simulation.

**Differences** between two policies are by `dr` and by the same rounds, halves and draws, so that
what luck they share cancels.

**At any time** there is evidence of the difference between these very lives. A round's term is (w -
v) · (reward - b), for the weights w and v that both policies' probabilities as they stood give to
what was logged, each on average over the replays, and a b that was known before. Given all that
came before, its mean is by how much what the one would earn now, as it stands, is above what the
other would; what they are taught by it comes later. So, less that mean, terms are differences of a
martingale, whatever the policies learn, and `melee.evaluation.anytime` bounds their average. The
null hypothesis is: on average over the rounds so far, the policies, each as it stood then, would
earn the same. It is about the lives that they had through this log, not about those that they would
have through another: of the luck of learning it says nothing, where the interval for one look
does. Other terms would be right, too, and were left out: whether the round was accepted by both, by
either or by none has the same mean and more noise; predictions of a model of earlier rounds made
intervals 7 % narrower at best with 2,000 rounds, and 4 % wider with 400.

A log in which some rounds stand for more than others, as those were dropped, cannot tell: a policy
that met a round many times over would learn more from it than from the rounds it stands for.

**What is assumed.** Contexts and rewards do not depend on earlier decisions, and the logged
probabilities are right. The estimate speaks of a run as long as the accepted rounds, not of what
the policy would earn later.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from melee.checks import RewardRange
from melee.errors import MeleeError, whole_number
from melee.evaluation import estimates
from melee.evaluation.anytime import anytime_interval
from melee.evaluation.differences import LOGGED, Difference, anytime_terms, unequal
from melee.evaluation.estimates import Estimate
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.luck import (
    N_REPLAYS,
    OF_DIFFERENCES,
    Lives,
    lives,
    logged_life,
    luck,
    parts,
)
from melee.evaluation.off_policy import check_baseline, check_confidence
from melee.evaluation.replay import LivePolicy, Replay, accepted_share, averaged, replay, starts
from melee.evaluation.support import cautions, lacking
from melee.evaluation.tails import t_quantile

if TYPE_CHECKING:
    from melee.history import History

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
    difference
        To the logged policy, or to the baseline of `evaluate_live_many`, by the same rounds. What
        holds at any time is about the lives that both had through this log, on average over the
        rounds so far. None for the baseline itself, and where the log cannot tell of one of the
        two.
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
    difference: Difference | None = None

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
        compared = self.difference
        lines = [
            f"{self.policy}, live for {self.n_accepted:,} rounds; {self.n_rounds:,} were logged",
            *(
                f"  {estimate.name:7}{estimate}"
                for estimate in [*self.estimates.values(), self.logged]
            ),
            *([f"  minus {compared.baseline}: {compared}"] if compared else []),
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
    log, seed = EvaluatedLog(history, reward_range), whole_number("seed", seed, 0)
    found = _evaluate(log, policy, name, confidence, seed)
    return _compared(log, found, (LOGGED, logged_life(log, seed)), confidence, seed)


def evaluate_live_many(
    history: "History",
    policies: Mapping[str, LivePolicy] | Iterable[str],
    *,
    baseline: str = LOGGED,
    confidence: float = 0.95,
    seed: int = 0,
    reward_range: RewardRange = None,
) -> dict[str, LiveEvaluation | MeleeError]:
    """Estimate what several learning policies would have earned live; errors stand for numbers.

    As many calls of `evaluate_live`, except that the model of rewards is learned once, and that
    they can be compared with each other: `difference` is by the same rounds, halves and draws for
    both, so that luck they share cancels. It has an interval for one look, of what runs earn on
    average; and an interval and a p-value that hold however often one looks while the log grows, of
    the lives that both have had through it: by how much what the one earned, as it stood in each
    round, was above what the other did, on average over the rounds so far.

    Parameters
    ----------
    policies
        By name, or the SPECs of explorers.
    baseline
        Which of them the others are compared with; by default the policy that wrote the log.
    confidence, seed, reward_range
        As of `evaluate_live`. For looks at any time, the same at every look.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rounds = [Round([float(i % 5)], "ab"[i % 2], i % 2, 0.5) for i in range(200)]
    >>> found = evaluate_live_many(History(rounds), ["uniform", "linucb"], baseline="uniform")
    >>> found["linucb"].value > found["uniform"].value
    True
    >>> found["linucb"].difference.low > 0.2
    True
    >>> found["linucb"].difference.p_value < 0.05
    True
    """
    check_confidence(confidence)
    seed = whole_number("seed", seed, 0)
    log = EvaluatedLog(history, reward_range)
    named = dict(policies if isinstance(policies, Mapping) else {spec: spec for spec in policies})
    check_baseline(baseline, named)
    evaluated: dict[str, tuple[LiveEvaluation, Lives | None]] = {}
    to: tuple[str, Lives | None] = LOGGED, logged_life(log, seed)
    if baseline != LOGGED:
        evaluated[baseline] = _evaluate(log, named[baseline], baseline, confidence, seed)
        to = baseline, evaluated[baseline][1]
    found: dict[str, LiveEvaluation | MeleeError] = {}
    for name, policy in named.items():
        try:
            own = evaluated.get(name) or _evaluate(log, policy, name, confidence, seed)
            found[name] = _compared(log, own, to, confidence, seed)
        except MeleeError as error:
            found[name] = error
    return found


def _evaluate(
    log: EvaluatedLog, policy: LivePolicy, name: str, confidence: float, seed: int
) -> tuple[LiveEvaluation, Lives | None]:
    """The estimates of a policy, and what its lives say: None where the log cannot tell."""
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
        return dataclasses.replace(found, reason=sentence), None
    lived = lives(log, start, runs, seed)
    dr = estimates.doubly_robust(*parts(log, mean), confidence)
    both = (dr, _replayed(log, mean, confidence))
    wide = (
        _widened(estimate, *by, confidence)
        for estimate, by in zip(both, luck(lived, seed), strict=True)
    )
    found = dataclasses.replace(
        found,
        n_accepted=round(mean.accepted.sum()),
        estimates={estimate.name: log.unit.back(estimate) for estimate in wide},
        warnings=(*cautions(weights, mean.outside), *found.warnings),
    )
    return found, lived


def _compared(
    log: EvaluatedLog,
    own: tuple[LiveEvaluation, Lives | None],
    to: tuple[str, Lives | None],
    confidence: float,
    seed: int,
) -> LiveEvaluation:
    """The evaluation of a policy, with its difference to a baseline where both are known."""
    (found, lived), (baseline, other) = own, to
    if lived is None or other is None or found.policy == baseline:
        return found
    apart = lived.minus(other)
    by_dr = apart.rounds[0]
    extra = max(estimates.extra_weights(np.abs(apart.weights), log.units, log.sizes))
    ends = estimates.mean_interval(by_dr, -extra, extra, confidence)
    estimate = Estimate("difference", float(by_dr.mean()), *ends)
    by_halves, _ = luck(apart, seed, OF_DIFFERENCES)
    _, value, low, high = _widened(estimate, *by_halves, confidence, least=-1.0)
    # The bound depends on nothing but the least probability: it is the same at every look.
    terms, bounds = anytime_terms(apart.weights, log.units, 1.0 / accepted_share(log))
    at_any_time = anytime_interval(terms, bounds, confidence)
    difference = Difference(baseline, value, low, high, *at_any_time)
    return dataclasses.replace(found, difference=log.unit.back_difference(difference))


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


def _replayed(log: EvaluatedLog, run: Replay, confidence: float) -> Estimate:
    """The mean reward of accepted rounds; of several replays, weighted by how often each was."""
    found = estimates.snips(run.accepted, log.units[run.rows], confidence)
    return found._replace(name="replay")


def _widened(
    estimate: Estimate, deviation: float, freedom: int, confidence: float, least: float = 0.0
) -> Estimate:
    """An estimate whose interval allows for the luck of learning; within [least, 1], as all are."""
    reach = t_quantile(freedom, confidence) * deviation
    low, high = (
        min(estimate.low, estimate.value - reach),
        max(estimate.high, estimate.value + reach),
    )
    return estimate._replace(low=max(low, least), high=min(high, 1.0))
