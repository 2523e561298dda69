"""Evaluate a policy on a log of another one, or say why the log cannot answer.

An estimate is worth something only where the log tried what the policy would do. So the log is
questioned first, and where it has no answer the policy is refused, with the reasons and what to
log in future. A number that looks like an answer and is none would be worse than no number.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from melee.arrays import Floats
from melee.checks import RewardRange
from melee.errors import InputError, MeleeError, unknown, whole_number
from melee.evaluation import estimates
from melee.evaluation.answers import PolicyAnswer, ask
from melee.evaluation.choices import Policy, name_of
from melee.evaluation.differences import (
    LOGGED,
    Difference,
    Terms,
    difference,
    not_at_any_time,
    unequal,
    widest,
)
from melee.evaluation.embeddings import Embedding
from melee.evaluation.estimates import Estimate
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.support import mips_cautions, model_cautions

if TYPE_CHECKING:
    from melee.history import History

ESTIMATORS = ("dr", "switch", "dros", "snips", "ips", "mips", "dm")
"""All there are."""
USUAL = ("dr", "snips", "ips", "dm")
"""Those that are computed unless others are asked for; the one to look at first, first."""
BY_MODEL = {"dr", "switch", "dros", "dm"}
"""Those that need a model of rewards."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a log says about a policy.

    Attributes
    ----------
    policy
        Its SPEC or name.
    estimates
        By name (`dr`, `snips`, `ips`, `dm`; `switch`, `dros` and `mips` if asked for), each with
        `value`, `low` and `high`.
    logged
        The mean reward of the log itself.
    reward_range
        The least and the greatest reward that intervals allow for, declared or observed.
    effective_sample_size
        How many rounds of the policy itself would tell as much as this log does; 0 where its
        probabilities cannot be used. Of `mips`, where no estimate weighs actions.
    warnings
        Sentences that should be read before the numbers are used.
    difference
        To the logged policy, or to the baseline of `evaluate_many`, by the same rounds; None for
        the baseline itself, and where only the model was asked.
    settings
        Tau of `switch` and λ of `dros`, as they were chosen from the log.
    """

    policy: str
    n_rounds: int
    confidence: float
    estimates: dict[str, Estimate]
    logged: Estimate
    reward_range: tuple[float, float]
    effective_sample_size: float
    warnings: tuple[str, ...] = ()
    difference: Difference | None = None
    settings: dict[str, float] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        compared = self.difference
        lines = [
            f"{self.policy} on {self.n_rounds:,} logged rounds; "
            f"effective sample size {self.effective_sample_size:,.0f}",
            *(
                f"  {estimate.name:7}{estimate}"
                for estimate in [*self.estimates.values(), self.logged]
            ),
            *([f"  minus {compared.baseline}: {compared}"] if compared else []),
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
    estimators: Sequence[str] = USUAL,
    reward_range: RewardRange = None,
    embedding: Embedding = None,
) -> Evaluation:
    """Estimate the mean reward that a policy would have earned in the logged rounds.

    Look at `dr` first: it needs only that the logged probabilities are right, and a good model of
    rewards makes it precise. `ips` and `snips` do without a model. `dm` is the model alone; if it
    disagrees with the others, it is wrong. Where few rounds carry most of the weight, `switch` and
    `dros` lean on the model for these: less noise, for some bias; their interval is that of `dr`.

    Where actions are candidates with features, the model goes by these. `mips` (Saito and Joachims,
    2022) weighs a round by the probability of what its action looks like, instead of that of the
    action itself: far less noise where there are many. It assumes that in a given context
    candidates with equal features (`embedding`) earn equally; its interval holds if so, and a
    warning tells where the log itself says otherwise. It also answers for policies that want
    candidates the log could not choose, as long as there were others like them.

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
        - A function from a context to an action, or to a dict of actions' probabilities. Where
          actions have features, a function of two arguments is also given the candidates of the
          round, a dict of labels and features.
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
        Which ones to compute, of `ESTIMATORS`. `("dm",)` alone asks only the model, and is the one
        question that does not need a log that explored; it comes with a warning.
    reward_range
        The least and the greatest reward there can be, which intervals have to know. By default
        (0, 1) if all rewards are within, else the range that is observed, with a warning. Values
        and intervals are in the unit of the rewards.
    embedding
        What `mips` knows candidates by: names of their features, by default all, or a function
        from features to something to compare. Numbers of more than ten values are cut into ten
        bins.

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
    log, seed = _asked(history, reward_range, embedding, confidence, estimators, seed)
    name = name_of(policy)
    answer = ask(log, policy, name, seed, estimators)
    return _evaluation(log, name, answer, (LOGGED, _logged(log)), confidence, estimators)


def evaluate_many(
    history: "History",
    policies: Mapping[str, Policy] | Iterable[str],
    *,
    baseline: str = LOGGED,
    confidence: float = 0.95,
    seed: int = 0,
    estimators: Sequence[str] = USUAL,
    reward_range: RewardRange = None,
    embedding: Embedding = None,
) -> dict[str, Evaluation | MeleeError]:
    """Evaluate several policies on one log; a refused one has its error in place of numbers.

    Whether one is better than another, `difference` tells: it is estimated by the same rounds for
    both, so that luck they share cancels. Intervals of single policies often overlap where it is
    clear. It comes with an interval and a p-value that may be looked at any time.

    Parameters
    ----------
    policies
        By name, or the SPECs of explorers.
    baseline
        Which of them the others are compared with; by default the policy that wrote the log.
    confidence, seed, estimators, reward_range, embedding
        As of `evaluate`.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rounds = [Round([float(i % 5)], "ab"[i % 2], i % 2, 0.5) for i in range(100)]
    >>> policies = {"always b": lambda context: "b", "always c": lambda context: "c"}
    >>> for name, found in evaluate_many(History(rounds), policies, estimators=["snips"]).items():
    ...     print(found if isinstance(found, Exception) else found.estimates["snips"])
    1.0000 [0.9412, 1.0000]
    this log cannot evaluate always c: 100.0% of the policy's choices are actions that the log ...

    Two policies by the same rounds:

    >>> policies = {"always a": lambda context: "a", "always b": lambda context: "b"}
    >>> found = evaluate_many(History(rounds), policies, baseline="always a")
    >>> found["always b"].difference.low > 0.5
    True
    """
    log, seed = _asked(history, reward_range, embedding, confidence, estimators, seed)
    named = dict(policies if isinstance(policies, Mapping) else {spec: spec for spec in policies})
    check_baseline(baseline, named)
    answers: dict[str, PolicyAnswer] = {}
    to = LOGGED, _logged(log)
    if baseline != LOGGED:
        answers[baseline] = ask(log, named[baseline], baseline, seed, estimators)
        to = baseline, _terms(log, answers[baseline], estimators)
    found: dict[str, Evaluation | MeleeError] = {}
    for name, policy in named.items():
        try:
            answer = answers.get(name) or ask(log, policy, name, seed, estimators)
            found[name] = _evaluation(log, name, answer, to, confidence, estimators)
        except MeleeError as error:
            found[name] = error
    return found


def _asked(
    history: "History",
    reward_range: RewardRange,
    embedding: Embedding,
    confidence: float,
    estimators: Sequence[str],
    seed: int,
) -> tuple[EvaluatedLog, int]:
    """The log and the seed, after a check of all that is asked."""
    log = EvaluatedLog(history, reward_range, embedding)
    _check_estimators(estimators)
    check_confidence(confidence)
    if "mips" in estimators:
        _ = log.alike  # refused where it cannot be
    elif embedding is not None:
        raise InputError(
            "an embedding is given, and no estimate goes by it; add mips to the estimators"
        )
    return log, whole_number("seed", seed, 0)


def _evaluation(
    log: EvaluatedLog,
    name: str,
    answer: PolicyAnswer,
    to: tuple[str, Terms],
    confidence: float,
    estimators: Sequence[str],
) -> Evaluation:
    """The estimates of a policy by its choices, and its difference to a baseline."""
    units, settings = _estimates(log, answer, confidence, estimators)
    found = {estimator: log.unit.back(estimate) for estimator, estimate in units.items()}
    said = answer.said + model_cautions(log, answer.by_actions.chosen, answer.outside, found)
    if answer.by_features is not None:
        weights = answer.by_features.weights, answer.by_actions.weights
        said += mips_cautions(log, *weights, confidence)
    if log.unit.observed:
        said.append(log.unit.caution())
    compared = None
    baseline, terms = to
    if name != baseline and set(estimators) != {"dm"}:
        own = _terms(log, answer, estimators)
        bound = widest(own, terms, answer.best(estimators).chances, log.probabilities)
        in_units = difference(own, terms, baseline, log.units, bound, confidence, log.sizes)
        compared = log.unit.back_difference(in_units)
        if unequal(log.sizes):
            said.append(not_at_any_time(log.stands_for))
    logged = estimates.ips(log.sizes, log.units, confidence, log.sizes)._replace(name=LOGGED)
    return Evaluation(
        policy=name,
        n_rounds=log.n_rounds,
        confidence=confidence,
        estimates=found,
        logged=log.unit.back(logged),
        reward_range=(log.unit.low, log.unit.high),
        effective_sample_size=estimates.effective_sample_size(answer.best(estimators).weights),
        warnings=tuple(said),
        difference=compared,
        settings=settings,
    )


def _estimates(
    log: EvaluatedLog, answer: PolicyAnswer, confidence: float, estimators: Sequence[str]
) -> tuple[dict[str, Estimate], dict[str, float]]:
    """Each estimate asked for, of rewards between 0 and 1, and the settings chosen on the way."""
    weights, rewards, sizes = answer.by_actions.weights, log.units, log.sizes
    found: dict[str, Estimate] = {}
    settings: dict[str, float] = {}
    if not BY_MODEL.isdisjoint(estimators):
        predicted, of_chosen = _predicted(log, answer)
        errors = rewards - of_chosen
        by_model = weights, rewards, of_chosen, predicted
    for estimator in estimators:
        if estimator == "ips":
            found[estimator] = estimates.ips(weights, rewards, confidence, sizes)
        elif estimator == "snips":
            found[estimator] = estimates.snips(weights, rewards, confidence, sizes)
        elif estimator == "mips" and answer.by_features is not None:
            by_features = answer.by_features.weights
            found[estimator] = estimates.ips(by_features, rewards, confidence, sizes)._replace(
                name=estimator
            )
        elif estimator == "dm":
            implied = log.model.implied_weights(answer.by_actions.chosen, answer.outside)
            found[estimator] = estimates.direct(
                predicted, implied, rewards, of_chosen, confidence, sizes
            )
        elif estimator == "switch":
            settings[estimator] = estimates.choose_tau(weights, errors, predicted, sizes)
            found[estimator] = estimates.switch(*by_model, settings[estimator], confidence, sizes)
        elif estimator == "dros":
            settings[estimator] = estimates.choose_lam(weights, errors, predicted, sizes)
            found[estimator] = estimates.shrunk(*by_model, settings[estimator], confidence, sizes)
        else:
            found[estimator] = estimates.doubly_robust(*by_model, confidence, sizes)
    return found, settings


def _predicted(log: EvaluatedLog, answer: PolicyAnswer) -> tuple[Floats, Floats]:
    """What the model expects of the policy, in `ratio_terms`, and of logged actions, by round."""
    q = log.model.predicted
    # What the model knows nothing of, it takes to earn what all rounds earn on average.
    expected = (answer.by_actions.chosen * q).sum(axis=1)
    predicted = expected + answer.outside * log.mean(log.units)
    terms = estimates.ratio_terms(log.sizes * predicted, log.sizes)
    return terms, q[np.arange(log.n_rounds), log.actions]


def _terms(log: EvaluatedLog, answer: PolicyAnswer, estimators: Sequence[str]) -> Terms:
    """What each round says of a policy: by `dr` if there is a model, else by `ips` or `mips`."""
    chosen, _, weights = answer.best(estimators)
    values = estimates.ratio_terms(weights * log.units, log.sizes)
    if weights is answer.by_actions.weights and not BY_MODEL.isdisjoint(estimators):
        predicted, of_chosen = _predicted(log, answer)
        errors = weights * (log.units - of_chosen)
        values = predicted + estimates.ratio_terms(errors, log.sizes)
    return Terms(values, weights, chosen)


def _logged(log: EvaluatedLog) -> Terms:
    """What each round says of the policy that wrote the log: its reward."""
    values = estimates.ratio_terms(log.sizes * log.units, log.sizes)
    return Terms(values, log.sizes, log.chances)


def _check_estimators(given: Sequence[str]) -> None:
    if isinstance(given, str) or not given:
        raise InputError(f"estimators is {given!r}; expected several names, such as {ESTIMATORS!r}")
    for name in given:
        if name not in ESTIMATORS:
            raise unknown("estimator", name, list(ESTIMATORS))


def check_baseline(given: str, named: Mapping[str, object]) -> None:
    """Refuse a baseline that is none of the policies, and a policy that has the log's name."""
    if LOGGED in named:
        raise InputError(
            f"a policy is named {LOGGED!r}, which is the name of the one that wrote the log; "
            "give it another"
        )
    if given not in (LOGGED, *named):
        raise unknown("baseline", given, [LOGGED, *named])


def check_confidence(given: float) -> None:
    """Refuse what is no share between 0 and 1."""
    if not 0.0 < given < 1.0:
        raise InputError(
            f"confidence is {given!r}; expected a number between 0 and 1, such as 0.95"
        )
