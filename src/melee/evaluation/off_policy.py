"""Evaluate a policy on a log of another one, or say why the log cannot answer.

An estimate is worth something only where the log tried what the policy would do. So the log is
questioned first, and where it has no answer the policy is refused, with the reasons and what to
log in future. A number that looks like an answer and is none would be worse than no number.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from melee.arrays import Floats
from melee.checks import RewardRange
from melee.contexts import Context
from melee.errors import InputError, MeleeError, unknown, whole_number
from melee.evaluation import estimates
from melee.evaluation.estimates import Estimate
from melee.evaluation.log import Log
from melee.evaluation.support import cautions, lacking, model_cautions
from melee.labels import Label

if TYPE_CHECKING:
    from melee.agent import Agent
    from melee.history import History

Policy: TypeAlias = "Agent | str | Callable[[Context], Any]"

ESTIMATORS = ("dr", "snips", "ips", "dm")
"""Those that one should look at first, first."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a log says about a policy.

    Attributes
    ----------
    policy
        Its SPEC or name.
    estimates
        By name (`dr`, `snips`, `ips`, `dm`), each with `value`, `low` and `high`.
    logged
        The mean reward of the log itself.
    reward_range
        The least and the greatest reward that intervals allow for, declared or observed.
    effective_sample_size
        How many rounds of the policy itself would tell as much as this log does; 0 where its
        probabilities cannot be used.
    warnings
        Sentences that should be read before the numbers are used.
    """

    policy: str
    n_rounds: int
    confidence: float
    estimates: dict[str, Estimate]
    logged: Estimate
    reward_range: tuple[float, float]
    effective_sample_size: float
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.policy} on {self.n_rounds:,} logged rounds; "
            f"effective sample size {self.effective_sample_size:,.0f}",
            *(f"  {one.name:7}{one}" for one in [*self.estimates.values(), self.logged]),
            f"mean rewards with {self.confidence:.4g} confidence intervals",
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def evaluate(
    history: "History",
    policy: Policy,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    estimators: Sequence[str] = ESTIMATORS,
    reward_range: RewardRange = None,
) -> Evaluation:
    """Estimate the mean reward that a policy would have earned in the logged rounds.

    Look at `dr` first: it needs only that the logged probabilities are right, and a good model of
    rewards makes it precise. `ips` and `snips` do without a model. `dm` is the model alone; if it
    disagrees with the others, it is wrong.

    Refuses, with the reasons, where the log cannot answer: too few rounds, rewards or
    probabilities that cannot be, no exploration, actions that the policy wants and the log never
    tried, weights that do not average 1, or an effective sample size below 10.

    Parameters
    ----------
    history
        The log.
    policy
        - An `Agent`: as it is, without learning. It has to come from other rounds than these: of
          an agent that learned from this very log, the estimate is too good.
        - A function from a context to an action, or to a dict of actions' probabilities.
        - An explorer's SPEC, such as "linucb:alpha=0.2": a fresh agent is trained on this log. In
          each round its probabilities are noted, then it learns what was logged. The estimate is
          of the policies it went through, on average. That is not what it would earn live: it
          learns here from the actions that the log chose, so exploring is free; see
          `evaluate_live`.
    confidence
        Of the intervals.
    seed
        Of the fresh agent of a SPEC.
    estimators
        Which ones to compute. `("dm",)` alone asks only the model, and is the one question that
        does not need a log that explored; it comes with a warning.
    reward_range
        The least and the greatest reward there can be, which intervals have to know. By default
        (0, 1) if all rewards are within, else the range that is observed, with a warning. Values
        and intervals are in the unit of the rewards.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rng = np.random.default_rng(0)
    >>> rounds = []
    >>> for _ in range(500):
    ...     device, action = str(rng.choice(["phone", "desk"])), str(rng.choice(["a", "b"]))
    ...     reward = float(rng.random() < (0.8 if (device == "phone") == (action == "a") else 0.2))
    ...     rounds.append(Round({"device": device}, action, reward, probability=0.5))
    >>> found = evaluate(
    ...     History(rounds), lambda context: "a" if context["device"] == "phone" else "b"
    ... )
    >>> 0.7 < found.estimates["dr"].low < 0.8 < found.estimates["dr"].high < 0.9
    True
    """
    log = Log(history, reward_range)
    _check_estimators(estimators)
    check_confidence(confidence)
    return _evaluate(
        log, policy, _name(policy), confidence, whole_number("seed", seed, 0), estimators
    )


def compare(
    history: "History",
    policies: Mapping[str, Policy] | Iterable[str],
    *,
    confidence: float = 0.95,
    seed: int = 0,
    estimators: Sequence[str] = ESTIMATORS,
    reward_range: RewardRange = None,
) -> dict[str, Evaluation | MeleeError]:
    """Evaluate several policies on one log; a refused one has its error in place of numbers.

    As many calls of `evaluate`, except that the model of rewards is learned once.

    Parameters
    ----------
    policies
        By name, or the SPECs of explorers.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rounds = [Round([float(i % 5)], "ab"[i % 2], i % 2, 0.5) for i in range(100)]
    >>> policies = {"always b": lambda context: "b", "always c": lambda context: "c"}
    >>> for name, found in compare(History(rounds), policies, estimators=["snips"]).items():
    ...     print(found if isinstance(found, Exception) else found.estimates["snips"])
    1.0000 [0.9417, 1.0000]
    this log cannot evaluate always c: 100.0% of the policy's choices are actions that the log ...
    """
    log = Log(history, reward_range)
    _check_estimators(estimators)
    check_confidence(confidence)
    seed = whole_number("seed", seed, 0)
    named = policies if isinstance(policies, Mapping) else {spec: spec for spec in policies}
    found: dict[str, Evaluation | MeleeError] = {}
    for name, policy in named.items():
        try:
            found[name] = _evaluate(log, policy, name, confidence, seed, estimators)
        except MeleeError as error:
            found[name] = error
    return found


def _evaluate(
    log: Log,
    policy: Policy,
    name: str,
    confidence: float,
    seed: int,
    estimators: Sequence[str],
) -> Evaluation:
    weighted = [one for one in estimators if one != "dm"]
    reason = log.without_support()
    if weighted and reason:
        raise InputError(f"this log cannot evaluate {name}: {reason}")
    chosen, outside = choices(log, policy, seed)
    said: list[str] = []
    rows = np.arange(log.n_rounds)
    effective = 0.0
    if reason is None:
        weights = chosen[rows, log.actions] / log.probabilities
        effective = estimates.effective_sample_size(weights)
    if weighted:
        reasons = lacking(log, chosen, outside, weights)
        if reasons:
            raise InputError(f"this log cannot evaluate {name}: {'; also, '.join(reasons)}")
        said += cautions(weights, outside)
    # What the model knows nothing of, it takes to earn what all rounds earn on average.
    found: dict[str, Estimate] = {}
    if "dr" in estimators or "dm" in estimators:
        predicted = (chosen * log.predicted).sum(axis=1) + outside * log.units.mean()
    for one in estimators:
        if one == "ips":
            found[one] = estimates.ips(weights, log.units, confidence)
        elif one == "snips":
            found[one] = estimates.snips(weights, log.units, confidence)
        elif one == "dm":
            found[one] = estimates.direct(predicted, confidence)
        else:
            of_chosen = log.predicted[rows, log.actions]
            found[one] = estimates.doubly_robust(
                weights, log.units, of_chosen, predicted, confidence
            )
    logged = estimates.ips(np.ones(log.n_rounds), log.units, confidence)._replace(name="logged")
    found = {name: log.unit.back(one) for name, one in found.items()}
    said += model_cautions(log, chosen, outside, found)
    if log.unit.observed:
        said.append(log.unit.caution())
    return Evaluation(
        policy=name,
        n_rounds=log.n_rounds,
        confidence=confidence,
        estimates=found,
        logged=log.unit.back(logged),
        reward_range=(log.unit.low, log.unit.high),
        effective_sample_size=effective,
        warnings=tuple(said),
    )


def choices(log: Log, policy: Policy, seed: int) -> tuple[Floats, Floats]:
    """The policy's probabilities of the log's actions, (n, K), and those of others, (n,).

    A SPEC's agent answers for a round before it learns it, so that its weight does not depend on
    the round's own reward and the estimates stay unbiased.
    """
    learner: Agent | None = None
    if isinstance(policy, str):
        policy = learner = fresh_agent(log, policy, seed)
    chosen, outside = np.zeros((log.n_rounds, len(log.labels))), np.zeros(log.n_rounds)
    for i, (context, pmf) in enumerate(zip(log.contexts, log.pmfs, strict=True)):
        given: Mapping[Label, float]
        if callable(policy):
            own = dict(context) if isinstance(context, dict) else context.copy()
            given = _distribution(policy(own), i)
        else:
            # All are open unless the log says otherwise; saying so costs an agent time.
            all_open = pmf is None or (learner is not None and len(pmf) == len(log.labels))
            given = policy.pmf(context, actions=None if all_open else open_actions(policy, pmf, i))
        for label, chance in given.items():
            position = log.index.get(label)
            if position is None:
                outside[i] += chance
            else:
                chosen[i, position] = chance
        if learner is not None:
            action = log.labels[log.actions[i]]
            learner.learn(context, action, log.rewards[i], log.probabilities[i])
    return chosen, outside


def open_actions(agent: "Agent", pmf: Mapping[Label, float] | None, i: int) -> list[Label]:
    """Those of a round's actions that an agent has."""
    known = set(agent.actions_)
    some = [label for label in pmf or () if label in known]
    if not some:
        raise InputError(
            f"the agent has none of the actions that could be chosen in round {i}; expected at "
            "least one: evaluate it on a log of its own actions"
        )
    return some


def fresh_agent(log: Log, spec: str, seed: int) -> "Agent":
    """An agent with the actions of a log that has not learned anything."""
    from melee.agent import Agent  # compiles kernels: not for those who ask the doctor only

    return Agent(log.labels, explorer=spec, seed=seed, reward_range=log.reward_range)


def _distribution(given: Any, i: int) -> Mapping[Label, float]:
    """What a function answered for the context of a round, as probabilities."""
    if not isinstance(given, Mapping):
        try:
            hash(given)
        except TypeError:
            raise InputError(
                f"the policy answered {given!r:.60} in round {i}; expected an action, or a dict "
                "of actions' probabilities"
            ) from None
        return {given: 1.0}
    try:
        chances = np.array([float(chance) for chance in given.values()])
    except (TypeError, ValueError):
        chances = np.array([np.nan])
    if not ((chances >= 0.0).all() and abs(chances.sum() - 1.0) <= 1e-6):
        raise InputError(
            f"the policy answered {dict(given)!r:.80} in round {i}; expected probabilities of "
            "0 or larger that sum to 1"
        )
    return given


def _check_estimators(given: Sequence[str]) -> None:
    if isinstance(given, str) or not given:
        raise InputError(f"estimators is {given!r}; expected several names, such as {ESTIMATORS!r}")
    for name in given:
        if name not in ESTIMATORS:
            raise unknown("estimator", name, list(ESTIMATORS))


def check_confidence(given: float) -> None:
    """Refuse what is no share between 0 and 1."""
    if not 0.0 < given < 1.0:
        raise InputError(
            f"confidence is {given!r}; expected a number between 0 and 1, such as 0.95"
        )


def _name(policy: Policy) -> str:
    if isinstance(policy, str):
        return policy
    if hasattr(policy, "pmf"):
        return "the agent"
    if not callable(policy):
        raise InputError(
            f"the policy is {policy!r:.60}; expected an Agent, a function of a context, or an "
            "explorer's SPEC such as 'linucb:alpha=0.2'"
        )
    name = getattr(policy, "__name__", "")
    return "the policy" if name in ("", "<lambda>") else name
