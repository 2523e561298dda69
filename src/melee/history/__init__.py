"""Histories: the rounds of an agent, and the files that they are kept in."""

from melee.history.history import History, LeftOut, SkippedRow
from melee.history.jsonl import line_of
from melee.history.log import Log, append_lines
from melee.history.rounds import (
    MOST_STOOD_FOR,
    Round,
    check_round,
    check_stands_for,
    read_round,
    repetitions,
)

__all__ = [
    "MOST_STOOD_FOR",
    "History",
    "LeftOut",
    "Log",
    "Round",
    "SkippedRow",
    "append_lines",
    "check_round",
    "check_stands_for",
    "line_of",
    "read_round",
    "repetitions",
]
