"""Ids of decisions: those that callers bring, and those that are made here."""

import hashlib
import os
import time
import zlib
from array import array
from collections.abc import Iterable
from typing import Any

from melee.agent.arguments import read_list
from melee.agent.pending import Pending
from melee.arrays import Ints
from melee.checks import is_unicode, read_id, read_whole
from melee.contexts import Context
from melee.errors import DataError, InputError, shown

_FLOATS = {float}


class Ids:
    """Names decisions, one after the other.

    An id that is made here is a prefix, a count, and a checksum of the context and of the actions
    that are open. An agent that is loaded after a crash counts on from its file; a reward that
    still comes for a decision of the lost time is then not taken for another decision's.
    """

    def __init__(self, seed: int) -> None:
        self.prefix = hashlib.blake2b(f"lineage {seed}".encode(), digest_size=3).hexdigest()
        self.count = 0
        self.are_others = False  # whether there are ids that were not made here

    def to_json(self) -> dict[str, Any]:
        """What the next id is made of."""
        return {"prefix": self.prefix, "count": self.count}

    @classmethod
    def from_json(cls, given: Any, seed: int) -> "Ids":
        """Ids that go on from there."""
        ids = cls(seed)
        ids.prefix = read_id(given["prefix"])
        ids.count = read_whole(given["count"], 0, 2**62)
        ids.are_others = True
        if not 0 < len(ids.prefix) <= 100:
            raise DataError(f"ids that begin with {shown(ids.prefix)}")
        return ids

    def name(self, id: str | None, context: Context, chosen: Ints | None, pending: Pending) -> str:
        """The id of the next decision: the one that was brought, or a new one."""
        self.count += 1
        if id is not None:
            self.are_others = True
            return id
        content = checksum(context, chosen)
        made = f"{self.prefix}-{self.count}-{content:08x}"
        while self.are_others and pending.knows(made):
            self.count += 1
            made = f"{self.prefix}-{self.count}-{content:08x}"
        return made


def checksum(context: Context, chosen: Ints | None) -> int:
    """A number that tells contexts apart, and the actions that are open."""
    so_far = 0 if chosen is None else zlib.crc32(chosen.data)
    if type(context) is not dict:
        return zlib.crc32(context, so_far)  # type: ignore[arg-type]
    values = [*context.values()]
    numbers: Iterable[float] = values  # type: ignore[assignment]
    words: Iterable[str] = context
    if {*map(type, values)} != _FLOATS:
        numbers = [value for value in values if type(value) is float]
        words = [
            name if type(value) is float else f"{name}={value}" for name, value in context.items()
        ]
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return zlib.crc32(text, zlib.crc32(array("d", numbers), so_far))


def check_new(id: Any, pending: Pending) -> None:
    """Refuse an id that is none, or that is taken."""
    if not is_id(id) or not 0 < len(id) <= 200:
        raise InputError(f"id is {shown(id)}; expected a text of 1 to 200 characters")
    if pending.knows(id):
        raise InputError(f"id {id!r} is taken by an earlier decision; expected a new one")


def read_new(ids: Any, n: int, pending: Pending) -> list[str]:
    """Ids for so many decisions, each new."""
    names = read_list(ids, "ids")
    if len(names) != n:
        raise InputError(f"{len(names)} ids for {n} contexts; expected one for each")
    for id in names:
        check_new(id, pending)
    if len(set(names)) != n:
        raise InputError("an id occurs twice; expected ids that differ")
    return names


def is_id(id: Any) -> bool:
    """Whether this could be the id of a decision, made here or elsewhere."""
    return isinstance(id, str) and is_unicode(id)


def check_text(id: Any) -> None:
    """Refuse what could not be the id of any decision."""
    if not isinstance(id, str):
        raise InputError(f"id is {shown(id)}; expected the text of a decision's id")


def unique_prefix() -> str:
    """What ids begin with: no other process, and no other life of this one, has the same.

    Seconds first, so that ids of about the same time are close to each other in an index.
    """
    return f"{int(time.time()):08x}{os.urandom(6).hex()}"
