"""Anything that can be done to an agent with a journal, in any order; it is reopened on the way."""

import shutil
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from melee import Agent
from melee.auditing import audit
from melee.errors import MeleeWarning
from melee.journal import verify
from tests.agent.test_machine import LIVES
from tests.journals import SHARED_MEMORY, keeper_of, reading, straight


def journaled(life):
    """A life whose agent has a journal."""

    class Journaled(life):  # type: ignore[misc, valid-type]
        def made(self, **options):
            parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
            self.directory = Path(tempfile.mkdtemp(prefix="melee-life-", dir=parent))
            self.patch.setattr("melee.agent.keeping.time", self.clock)
            self.patch.setattr("melee.agent.opening.time", self.clock)
            self.options = options
            return Agent(**options, journal=self.directory)

        def loaded(self):
            keeper_of(self.agent).journal.close()
            return Agent(**self.options, journal=self.directory)

        def teardown(self):
            if hasattr(self, "agent"):
                before = self.agent.fingerprint
                keeper_of(self.agent).journal.close()
                journal = reading(self.directory)
                assert list(verify(journal)) == []
                assert straight(journal).fingerprint == before
                found = audit(journal)
                assert (found.difference, found.fingerprint) == (None, before)
                journal.close()
                shutil.rmtree(self.directory)
            super().teardown()

    Journaled.__name__ = f"Journaled{life.__name__}"
    return Journaled


def run(life, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        slow = [HealthCheck.too_slow, HealthCheck.filter_too_much]
        run_state_machine_as_test(
            journaled(life),
            settings=settings(deadline=None, suppress_health_check=slow, **options),
        )


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_whatever_is_done_the_journal_tells_all_of_it(life):
    run(life, max_examples=20, stateful_step_count=30, derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_whatever_is_done_for_long_the_journal_tells_all_of_it(life):
    run(life, max_examples=200, stateful_step_count=80)
