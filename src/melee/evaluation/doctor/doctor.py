"""Examine a log before anything is learned from it or judged by it.

Each check looks for one kind of fault, says what it found and what to do about it. An error
spoils every estimate made from the log; a warning may have a good reason that you know. Checks
that compare with chance raise a false alarm in about one of a thousand logs each.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from melee.checks import RewardRange, check_reward_range
from melee.evaluation.doctor import (
    candidates,
    clusters,
    contexts,
    power,
    probabilities,
    rewards,
    rows,
)
from melee.evaluation.doctor.examined import Check, Examined
from melee.evaluation.doctor.findings import Finding, Symptom

if TYPE_CHECKING:
    from melee.history import History

CHECKS: dict[str, Check] = {**rows.CHECKS, **rewards.CHECKS, **probabilities.CHECKS}


def examine(history: "History", *, reward_range: RewardRange = None) -> list[Finding]:
    """Every check's findings; a check that found no fault says so, at level "ok".

    Parameters
    ----------
    history
        The log, read with `History.read(path, usable=False)`, so that what is wrong is still there.
    reward_range
        The least and the greatest reward there can be; others are then an error.

    Examples
    --------
    >>> from melee.history import History, Round
    >>> rounds = [Round({"age": float(i % 70)}, "ab"[i % 2], i % 3 / 2, 1.0) for i in range(500)]
    >>> for one in examine(History(rounds)):
    ...     if one.level != "ok":
    ...         print(f"{one.level}, {one.check}: {one.found}")
    error, exploration: every round was logged with probability 1
    """
    log = Examined(history, check_reward_range(reward_range))
    findings: list[Finding] = []

    def note(name: str, faults: Iterator[Symptom], fine: str) -> None:
        found = [Finding(level, name, text, advice) for level, text, advice in faults]
        findings.extend(found or [Finding("ok", name, fine)])

    note("rows", rows.unread(log), "every row could be read")
    total = log.stands_for.sum()
    stand = f", which stand for {total:,.0f}" if total > log.n else ""
    note("size", rows.size(log), f"{log.n:,} rounds{stand}")
    if log.n == 0:
        return findings
    for name, (check, fine) in CHECKS.items():
        note(name, check(log), fine)
    could_show = power.finding(log)
    if could_show is not None:
        findings.append(could_show)
    if log.with_features:
        note("candidates", candidates.faults(log), "every candidate comes with its features")
    kinds = list(contexts.kinds(log.contexts))
    note("contexts", iter(kinds), "all contexts are of one kind")
    if not kinds:
        for name, (of_columns, fine) in contexts.CHECKS.items():
            note(name, of_columns(log.columns, log.n), fine)
        note("independence", clusters.dependent(log), "no rounds go together, as a visitor's do")
    return findings
