"""Checks of a log's rounds as such: what could be read, how many, once each, in order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from melee.evaluation.doctor.examined import Check, Examined, first
from melee.evaluation.doctor.findings import LEVEL, Symptom, listed
from melee.evaluation.log import MIN_ROUNDS
from melee.evaluation.tails import poisson_at_least

if TYPE_CHECKING:
    from melee.history import Round

FEW_ROUNDS = 100


def unread(log: Examined) -> Iterator[Symptom]:
    """Rows that hold no round, or could not be read."""
    total = log.n + len(log.problems)
    n_bad = sum(not problem.is_sound for problem in log.problems)
    for n_rows, (row, sentence, is_sound) in log.left_out:
        if is_sound:
            yield Symptom(
                "warning",
                f"{n_rows:,} of {total:,} rows hold no round, row {row} the first: {sentence}",
                "no fault if you know why; if it depends on what came of a decision whether it is "
                "among them, every estimate is biased",
            )
        else:
            yield Symptom(
                "error" if n_bad > 0.01 * total else "warning",
                f"{n_rows:,} of {total:,} rows could not be read, row {row} the first: {sentence}",
                "mend what writes the log; rows that are lost by their content bias every estimate",
            )


def size(log: Examined) -> Iterator[Symptom]:
    """Too few rounds."""
    if log.n < MIN_ROUNDS:
        yield Symptom(
            "error",
            f"{log.n} rounds",
            f"log more: {MIN_ROUNDS} are the least that can be evaluated on, thousands are usual",
        )
    elif log.n < FEW_ROUNDS:
        yield Symptom("warning", f"only {log.n} rounds", "log more before you draw conclusions")


def dropped(log: Examined) -> Iterator[Symptom]:
    """Rounds that stand for a number of rounds that cannot be."""
    wrong = ~log.right_stands_for
    if wrong.any():
        yield Symptom(
            "error",
            f"{wrong.sum():,} rounds stand for a number of rounds that cannot be, round "
            f"{first(wrong)} the first",
            "log 1 / (1 - the probability that a round like it was dropped), or nothing where none "
            "was",
        )


def duplicates(log: Examined) -> Iterator[Symptom]:
    """Rounds that are there twice, by their ids or to the last digit."""
    first: dict[str, int] = {}
    identical: list[str] = []
    conflicting: list[str] = []
    for i, round_ in enumerate(log.rounds):
        if round_.id is not None:
            before = first.setdefault(round_.id, i)
            if before != i:
                (identical if round_ == log.rounds[before] else conflicting).append(round_.id)
    if conflicting:
        yield Symptom(
            "error",
            f"{len(conflicting):,} rounds have the id of another but differ from it: "
            f"{listed(conflicting)}",
            "give every decision its own id, and log it once, when its reward is known",
        )
    if identical:
        yield Symptom(
            "warning",
            f"{len(identical):,} rounds are there twice: {listed(identical)}",
            "keep the first of each id; a retry probably wrote them again",
        )
    # Rounds without ids: equal neighbours count if rounds further apart are equal less often.
    equal = [_n_equal(log.rounds, lag) for lag in (1, *range(11, 21))]
    expected = (sum(equal[1:]) + 0.1) / 10
    if equal[0] and poisson_at_least(equal[0], expected) < LEVEL:
        yield Symptom(
            "warning",
            f"{equal[0]:,} rounds repeat the one before to the last digit",
            "log ids, and each round once; repeated rounds pretend to be evidence",
        )


def _n_equal(rounds: "list[Round]", lag: int) -> int:
    pairs = zip(rounds, rounds[lag:], strict=False)
    return sum(a.id is None and a.action == b.action and a == b for a, b in pairs)


def times(log: Examined) -> Iterator[Symptom]:
    """Rounds without a time, or out of order."""
    given = np.array([np.nan if round_.time is None else round_.time for round_ in log.rounds])
    times = given[np.isfinite(given)]
    back = int((np.diff(times) < 0.0).sum())
    if 0 < len(times) < log.n:
        yield Symptom(
            "warning",
            f"{log.n - len(times):,} of {log.n:,} rounds have no time",
            "log it with every round, in seconds since the epoch, or with none",
        )
    if back:
        yield Symptom(
            "warning",
            f"{back:,} rounds are earlier than the one before them",
            "rewards that come late do this, and it is no harm to estimates; but explorers that "
            "learn along the log, and checks for drift, take its order for the order of events: "
            "History(sorted(history, key=lambda one: one.time))",
        )


CHECKS: dict[str, Check] = {
    "dropped rounds": (dropped, "none, or those that were kept say for how many they stand"),
    "duplicates": (duplicates, "no round is there twice"),
    "times": (times, "rounds are in the order of time, or have none"),
}
"""The checks by name, each with what it says when all is well; `unread` and `size` come first."""
