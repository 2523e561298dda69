"""Whether a log can answer for a policy: reasons why not, and what to be careful about."""

from collections.abc import Mapping

import numpy as np

from melee.arrays import Floats
from melee.evaluation import estimates
from melee.evaluation.digits import in_digits
from melee.evaluation.estimates import Estimate
from melee.evaluation.log import EvaluatedLog

MIN_EFFECTIVE = 10.0
"""Effective sample size below which intervals no longer hold what they promise."""
FEW_EFFECTIVE = 50.0
"""Effective sample size below which a warning reminds of how little that is."""
UNSUPPORTED = 0.01
"""Share of a policy's choices that the log may lack."""
_CERTAINTY = 0.9999
"""Of the interval around the mean weight that has to reach 1."""


def lacking(
    log: EvaluatedLog,
    chosen: Floats,
    outside: Floats,
    weights: Floats,
    chances: Floats | None = None,
) -> list[str]:
    """Why the log cannot answer for a policy: a sentence per reason, none if it can.

    Parameters
    ----------
    chosen, outside, weights
        Of the policy, see `melee.evaluation.answers`.
    chances
        The logged probabilities that the weights divide by; by default those of all actions.
    """
    chances = log.chances if chances is None else chances
    reasons = []
    never = np.where(log.untried, chosen, 0.0).sum(axis=1) + outside
    if log.mean(never) > UNSUPPORTED and log.shelf is not None:
        reasons.append(
            f"{log.mean(never):.1%} of the policy's choices were not among the candidates of their "
            f"round; expected at most {UNSUPPORTED:.0%}: let the policy choose from what it is "
            "given, policy(context, candidates)"
        )
    elif log.mean(never) > UNSUPPORTED:
        labels = [repr(label) for label in log.labels[log.n_played :]]
        named = f" ({', '.join(labels[:3])}{', ...' if len(labels) > 3 else ''})" if labels else ""
        reasons.append(
            f"{log.mean(never):.1%} of the policy's choices are actions that the log never "
            f"played{named}; expected at most {UNSUPPORTED:.0%}: log rounds with these actions, or "
            "leave them out of the policy"
        )
    impossible = np.where((chances <= 0.0) & ~log.untried, chosen, 0.0)
    share_impossible = log.mean(impossible.sum(axis=1))
    if share_impossible > UNSUPPORTED:
        reasons.append(
            f"{share_impossible:.1%} of the policy's choices had probability 0 "
            f"in the log, or could not be chosen; expected at most {UNSUPPORTED:.0%}: log with a "
            "floor under every action's probability, as Agent(floor=0.02) does"
        )
    if reasons:
        return reasons
    expected = _expected_effective(log, chosen, chances)
    effective = min(estimates.effective_sample_size(weights), expected)
    if effective < MIN_EFFECTIVE:
        reasons.append(
            f"the effective sample size is {effective:.1f} of {log.n_rounds:,} rounds; expected "
            f"at least {MIN_EFFECTIVE:.0f}: the policy wants what was rarely tried, so log more "
            "rounds, or with a higher floor: Agent(floor=...)"
        )
    terms = estimates.ratio_terms(weights, log.sizes)
    low, high = estimates.mean_interval(terms, 0.0, estimates.typical_weight(weights), _CERTAINTY)
    missing = log.mean(never) + share_impossible
    # Where all probabilities are known, so is how far chance may move the mean of weights.
    kept = estimates.effective_sample_size(log.sizes)
    # Rounding moves it, too: weights of a policy that does what the log did are 1 but for that.
    reach = 1e-9 + 4.0 * np.sqrt(max(1.0 / expected - 1.0 / kept, 0.0))
    mean = float(weights.mean())
    if min(low, mean - reach) > 1.0 or max(high, mean + reach) < 1.0 - missing:
        reasons.append(
            f"the weights, the policy's probability over the logged one, average "
            f"{mean:.3g}; expected 1, within chance: actions were not chosen by the "
            "logged probabilities, or the policy wants what could not be chosen; see what "
            "`melee doctor` says of this log"
        )
    return reasons


def _expected_effective(log: EvaluatedLog, chosen: Floats, chances: Floats) -> float:
    """The effective sample size to be expected, if the probabilities of all actions are known.

    It does not depend on luck: without a single round of great weight the others look fine.
    """
    if np.isnan(chances).any():
        return np.inf
    squares = np.divide(chosen**2, chances, out=np.zeros_like(chosen), where=chances > 0.0)
    return log.n_rounds / max(float((log.sizes**2 * squares.sum(axis=1)).mean()), 1e-300)


def mips_cautions(
    log: EvaluatedLog, by_features: Floats, by_actions: Floats, confidence: float
) -> list[str]:
    """What to be careful about in `mips`, by its weights and those of actions, in sentences."""
    if np.allclose(by_features, by_actions, rtol=1e-6, atol=0.0):
        return [
            "mips is ips here: the features tell all candidates of a round apart; name those that "
            'rewards go by, as embedding=["topic"] does'
        ]
    apart = (by_features - by_actions) * log.units
    terms = estimates.ratio_terms(apart, log.sizes)
    extra = estimates.typical_weight(np.abs(by_features - by_actions))
    low, high = estimates.mean_interval(terms, -extra, extra, confidence)
    if low <= 0.0 <= high:
        return []
    return [
        "mips is not what ips says, by more than luck: candidates that are alike in these features "
        "do not earn alike, so trust dr, or name more features"
    ]


def cautions(weights: Floats, outside: Floats) -> list[str]:
    """What to be careful about in estimates by weights, in sentences."""
    said = []
    effective = estimates.effective_sample_size(weights)
    if effective < FEW_EFFECTIVE:
        said.append(
            f"the log is worth only {effective:.0f} rounds of this policy; expect the estimates "
            "to move as it grows"
        )
    share = weights.max() / weights.sum()
    if share > 0.1:
        said.append(
            f"a single round carries {share:.0%} of the weight; a higher floor under the logged "
            "probabilities would spread it"
        )
    if outside.mean() > 1e-4:
        said.append(
            f"{outside.mean():.2%} of the policy's choices are actions unknown to the log; "
            "estimates leave them out, or take them to earn the average"
        )
    return said


def model_cautions(
    log: EvaluatedLog, chosen: Floats, outside: Floats, found: Mapping[str, Estimate]
) -> list[str]:
    """What to be careful about in what the model says, in sentences."""
    said = []
    if "dm" in found and "dr" not in found:
        said.append(
            "dm is what a model of rewards believes; its interval holds if rewards are linear in "
            "the features, and does not tell how wrong the model is otherwise"
        )
        never = log.mean(np.where(log.untried, chosen, 0.0).sum(axis=1) + outside)
        if never > UNSUPPORTED:
            said.append(
                f"{never:.1%} of the policy's choices are actions that the log never played; the "
                "model takes them to earn what all rounds earn on average"
            )
    elif "dm" in found and not found["dr"].low <= found["dm"].value <= found["dr"].high:
        value, *_ = in_digits(*found["dm"][1:])
        said.append(
            f"the model alone (dm) says {value}, outside the interval of dr; the model is wrong "
            "about this policy, so trust dr"
        )
    return said
