"""Histories: the rounds of an agent, and the files that they are kept in."""

from melee.history.history import History, SkippedRow
from melee.history.jsonl import line_of
from melee.history.log import Log, append_lines
from melee.history.rounds import Round, check_round, read_round

__all__ = [
    "History",
    "Log",
    "Round",
    "SkippedRow",
    "append_lines",
    "check_round",
    "line_of",
    "read_round",
]
