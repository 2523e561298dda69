"""Checks of a log's probabilities: whether they can be right, and what they leave to be known."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from melee.evaluation.doctor.examined import Check, Examined, first
from melee.evaluation.doctor.findings import LEVEL, Symptom, count_p_value, listed
from melee.evaluation.estimates import mean_interval, ratio_terms, typical_weight
from melee.evaluation.log import MIN_ROUNDS, SMALLEST
from melee.evaluation.support import MIN_EFFECTIVE

RARELY = 10
"""Rounds of an action below which little is known of it."""


def wrong_probabilities(log: Examined) -> Iterator[Symptom]:
    """Probabilities that cannot be."""
    given = log.probabilities
    for wrong, what in [
        (np.isnan(given), "missing"),
        (given < SMALLEST, "0 or less"),
        (given > 1.0, "above 1"),
    ]:
        if wrong.any():
            yield Symptom(
                "error",
                f"{wrong.sum():,} probabilities are {what}, that of round {first(wrong)} the first",
                "log the chance that the chosen action had at the time, as Agent.act gives it; it "
                "cannot be made up later",
            )


def exploration(log: Examined) -> Iterator[Symptom]:
    """Rounds in which nothing but the chosen action had a chance."""
    given = log.probabilities[log.right_probability]
    advice = "let the logging policy explore, as Agent(floor=0.02) does"
    if len(given) == 0:
        return
    if (given == 1.0).all():
        yield Symptom("error", "every round was logged with probability 1", advice)
    elif (given == 1.0).mean() > 0.9:
        share = (given == 1.0).mean()
        yield Symptom("warning", f"{share:.1%} of rounds were logged with probability 1", advice)


def wrong_pmfs(log: Examined) -> Iterator[Symptom]:
    """Probabilities of all actions that contradict themselves, or the chosen one."""
    if log.wrong_pmfs:
        first, sentence = next(iter(log.wrong_pmfs.items()))
        yield Symptom(
            "error",
            f"{len(log.wrong_pmfs):,} rounds have a pmf that cannot be right, round {first} the "
            f"first: {sentence}",
            "log the very distribution that the action was drawn from",
        )


def calibration(log: Examined) -> Iterator[Symptom]:
    """Whether actions were chosen as often as logged probabilities say.

    With pmfs, choices of each action, and choices of like probability, are counted: the logged
    probabilities sum to what is expected, whatever the contexts and however the policy learned.
    Without, 1 / probability averages the number of actions that had a chance.
    """
    given = log.probabilities[log.right_probability]
    if len(given) < MIN_ROUNDS or (given == 1.0).all():
        return
    advice = (
        "log the probability with which the action was drawn, after every rule that may change the "
        "choice, and every round, whatever came of it; estimates that use these are wrong"
    )
    if log.pmfs:
        yield from _calibration_by_pmf(log, advice)
        return
    sizes = log.stands_for[log.right_probability]
    sizes = sizes / sizes.mean()
    inverse = sizes / given
    terms = ratio_terms(inverse, sizes)
    low, high = mean_interval(terms, 1.0, typical_weight(inverse), 1.0 - LEVEL)
    n_labels = len(log.labels)
    if low > n_labels:
        yield Symptom(
            "error",
            f"1 / probability averages {inverse.mean():.3g}, but cannot be more than the number of "
            f"actions, {n_labels}: logged probabilities are too small",
            advice,
        )
    elif high < n_labels:
        yield Symptom(
            "warning",
            f"1 / probability averages {inverse.mean():.3g}; it would be {n_labels}, the number of "
            "actions, if each had a chance in every round",
            "if only some were eligible, log the pmf of every round; otherwise some had no "
            "chance, or logged probabilities are too large",
        )


def _calibration_by_pmf(log: Examined, advice: str) -> Iterator[Symptom]:
    """Count choices by action, and by probability; compare the worst count with chance.

    A round that stands for several is counted so often, and the luck of which ones were dropped
    adds to that of the choices (Horvitz and Thompson, 1952).
    """
    index = {label: i for i, label in enumerate(log.labels)}
    label = np.array([index[label] for _, pmf in log.pmfs for label in pmf])
    p = np.array([chance for _, pmf in log.pmfs for chance in pmf.values()])
    chosen = np.array([label == done.action for done, pmf in log.pmfs for label in pmf])
    lengths = [len(pmf) for _, pmf in log.pmfs]
    times = np.repeat(log.stands_for[log.with_pmf], lengths)
    of_choice, of_dropping = times * p * (1.0 - p), times * (times - 1.0) * (chosen - p) ** 2
    edges = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0])
    part = np.maximum(np.searchsorted(edges, p), 1)
    names = [f"action {label!r:.40}" for label in log.labels]
    names += [f"actions of probability {a:g} to {b:g}" for a, b in pairwise(edges.tolist())]
    of_each = (times * chosen, times * p, of_choice, of_dropping)
    by_label = [np.bincount(label, weights, len(log.labels)) for weights in of_each]
    by_part = [np.bincount(part - 1, weights, len(edges) - 1) for weights in of_each]
    sums = np.concatenate([by_label, by_part], axis=1).T.tolist()
    worst, n_tests = (1.0, ""), 0
    for name, (count, expected, luck, of_drops) in zip(names, sums, strict=True):
        if luck > 0.0:
            n_tests += 1
            variance = luck + of_drops
            told = (
                f"{name}: chosen {count:,.0f} times, but logged probabilities say {expected:,.0f}"
            )
            # Few large counts are as skewed as few events: count in units of what one stands for.
            unit = variance / luck
            p_value = count_p_value(count / unit, expected / unit, variance / unit**2)
            worst = min(worst, (p_value, told))
    if worst[0] * n_tests < LEVEL:
        yield Symptom("error", worst[1], advice)


def support(log: Examined) -> Iterator[Symptom]:
    """Actions that were hardly tried, or not at all.

    Candidates with features come and go, and are known by those that are like them.
    """
    counts = Counter(round_.action for round_ in log.rounds if not log.with_features)
    never = [repr(label) for label in log.labels if counts[label] == 0 and not log.with_features]
    rarely = [f"{label!r} ({n})" for label, n in counts.items() if n < min(RARELY, 0.1 * log.n)]
    if never:
        yield Symptom(
            "warning",
            f"eligible, but never played: {listed(never)}",
            "give every action a chance, as Agent(floor=0.02) does, or take it out",
        )
    if rarely:
        yield Symptom(
            "warning",
            f"played less than {RARELY} times: {listed(rarely)}",
            "log more rounds or a higher floor before you judge policies that want these actions",
        )
    if log.pmfs:
        smallest = np.array([min(pmf.values()) for _, pmf in log.pmfs])
        zero = float((smallest <= 0.0).mean())
        if zero > 0.01:
            yield Symptom(
                "warning",
                f"in {zero:.1%} of rounds some eligible action had probability 0",
                "keep a floor under every action's probability, as Agent(floor=0.02) does; "
                "policies that want such actions cannot be evaluated",
            )
        smallest = smallest[smallest > 0.0]
    else:
        smallest = log.probabilities[log.right_probability]
    if len(smallest) == 0:
        return
    # With pmfs, what is usual: a policy is rarely at odds with the log in its rarest rounds.
    least = float(np.quantile(smallest, 0.05) if log.pmfs else smallest.min())
    if least * log.n < 2.0 * MIN_EFFECTIVE:
        yield Symptom(
            "warning",
            f"probabilities go down to {least:.2g}, so that one round can weigh {1 / least:,.0f} "
            f"of {log.n:,}",
            "log more rounds, or keep a higher floor under every action's probability",
        )


CHECKS: dict[str, Check] = {
    "probabilities": (wrong_probabilities, "all are above 0 and at most 1"),
    "exploration": (exploration, "other actions had a chance"),
    "pmfs": (wrong_pmfs, "those that are there sum to 1 and agree with the probabilities"),
    "calibration": (calibration, "actions were chosen as often as their probabilities say"),
    "support": (support, "every action was played, none too rarely"),
}
"""The checks by name, each with what it says when all is well."""
