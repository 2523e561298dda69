"""Snapshots: files of agents beside their events, each named by its place in the chain."""

import re
from abc import ABC, abstractmethod
from pathlib import Path, PurePath
from typing import NamedTuple

from melee.atomic import make_directory, write_atomically
from melee.errors import DataError, InputError, file_error
from melee.journal.events import Head

ENDING = ".melee"
_NAME = re.compile(r"(?P<agent>[\w.-]+)@(?P<seq>\d+)-(?P<checksum>[0-9a-f]{32})\.melee")
_AGENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Snapshot(NamedTuple):
    """An agent's file: whose, and of which place in the chain."""

    agent: str
    head: Head

    @property
    def name(self) -> str:
        """What the file is called; the number of digits keeps them in order."""
        return f"{self.agent}@{self.head.seq:015d}-{self.head.checksum.hex()}{ENDING}"


def check_agent(name: str) -> str:
    """The name of an agent, which is a part of the names of files."""
    if not isinstance(name, str) or not _AGENT.fullmatch(name) or name.startswith("."):
        raise InputError(
            f"the agent's name is {name!r:.80}; expected up to 64 letters, digits, dots, dashes "
            "and underscores"
        )
    return name


def seq_of(place: str) -> int:
    """The number of the event that a snapshot, by its name or path, or a number stands for.

    >>> seq_of("41"), seq_of("data/agent@000000000000041-" + 32 * "0" + ".melee")
    (41, 41)
    """
    found = _NAME.fullmatch(PurePath(place).name)
    number = found["seq"] if found else place.strip()
    if not (number.isascii() and number.isdigit()):
        raise InputError(
            f"{place!r:.80} is neither the number of an event nor the name of a snapshot; melee "
            "journal snapshots lists both"
        )
    return int(number)


class Snapshots(ABC):
    """Where snapshots are kept."""

    @abstractmethod
    def of(self, agent: str) -> list[Snapshot]:
        """Those of an agent, newest first."""

    @abstractmethod
    def agents(self) -> set[str]:
        """The names of agents that have any."""

    @abstractmethod
    def read(self, snapshot: Snapshot) -> bytes:
        """The content of a snapshot."""

    @abstractmethod
    def write(self, snapshot: Snapshot, content: bytes) -> None:
        """Keep a snapshot; it is on disk when this returns."""

    @abstractmethod
    def drop(self, snapshot: Snapshot) -> None:
        """Let a snapshot go."""

    def where(self, snapshot: Snapshot) -> str:
        """What a snapshot is called in messages."""
        return snapshot.name


class Directory(Snapshots):
    """Snapshots as files, which `Agent.load` reads, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, agent: str) -> list[Snapshot]:
        """Those of an agent, newest first."""
        found = [snapshot for snapshot in self._all() if snapshot.agent == agent]
        return sorted(found, key=lambda snapshot: -snapshot.head.seq)

    def agents(self) -> set[str]:
        """The names of agents that have any."""
        return {snapshot.agent for snapshot in self._all()}

    def _all(self) -> list[Snapshot]:
        try:
            matches = [_NAME.fullmatch(file.name) for file in self.path.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise file_error(self.path, "read", error) from None
        return [
            Snapshot(match["agent"], Head(int(match["seq"]), bytes.fromhex(match["checksum"])))
            for match in matches
            if match is not None
        ]

    def read(self, snapshot: Snapshot) -> bytes:
        """The content of a snapshot."""
        try:
            return (self.path / snapshot.name).read_bytes()
        except OSError as error:
            raise file_error(self.path / snapshot.name, "read", error) from None

    def write(self, snapshot: Snapshot, content: bytes) -> None:
        """Write a file, whole or not at all."""
        make_directory(self.path)
        write_atomically(self.path / snapshot.name, content)

    def drop(self, snapshot: Snapshot) -> None:
        """Remove a file."""
        try:
            (self.path / snapshot.name).unlink(missing_ok=True)
        except OSError as error:
            raise DataError(
                f"{self.path / snapshot.name}: cannot be removed ({error.strerror})"
            ) from None

    def where(self, snapshot: Snapshot) -> str:
        """Its path."""
        return str(self.path / snapshot.name)
