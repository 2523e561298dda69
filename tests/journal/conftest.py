"""Places for journals, and a clock that tests set."""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.agent_lives import Clock
from tests.journals import SHARED_MEMORY


@pytest.fixture
def place():
    """A directory for a journal, in memory where there is one: nothing here waits for a disk."""
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    directory = Path(tempfile.mkdtemp(prefix="melee-journal-", dir=parent))
    yield directory / "journal"
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def clock(monkeypatch):
    """The time that agents and their journals see."""
    clock = Clock()
    monkeypatch.setattr("melee.agent.overdue.time", clock)
    monkeypatch.setattr("melee.agent.keeping.time", clock)
    monkeypatch.setattr("melee.agent.opening.time", clock)
    return clock
