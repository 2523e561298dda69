"""The same journal in PostgreSQL, a real one."""

import threading
import time
from typing import Any

import pytest

from melee import Agent, DataError, InputError
from melee.auditing import audit
from melee.errors import MissingPackageError
from melee.journal import Journal, events, offers, verify
from melee.journal.postgres import Postgres
from melee.trials import Trials, compare
from tests.agent_lives import ACTIONS
from tests.databases import a_database, a_server
from tests.journals import keeper_of, live, reading, straight

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: melee-bandits[postgres]")


@pytest.fixture(scope="module")
def server():
    with a_server() as server:
        yield server


@pytest.fixture
def address(server, request):
    """A database for one test."""
    return a_database(server, request.node.name)


@pytest.mark.parametrize("spec", ["melee", "epsilon-greedy"])
def test_a_recovered_agent_is_the_one_that_crashed_to_the_bit(address, clock, spec):
    options: dict[str, Any] = {"timeout": 30.0, "default_reward": 0.25}
    journal = Journal(address, snapshot_every=100)
    agent = Agent(ACTIONS, spec, journal=journal, **options)
    live(agent, 0, 160, clock=clock)
    before = agent.fingerprint
    journal.close()
    again = Agent(ACTIONS, spec, journal=address, **options)
    assert again.fingerprint == before
    again.close()
    assert straight(reading(address)).fingerprint == before
    assert list(verify(reading(address))) == []
    found = audit(reading(address))
    assert (found.difference, found.fingerprint) == (None, before)
    assert found.n_decisions > 150


def test_the_same_events_are_in_both_kinds_of_journal(address, place, clock):
    chains = []
    for where in (address, place):
        journal = Journal(where)
        for i in range(5):
            offer = offers.offer_of(("a", ("b", i)))
            decided = events.Decided({"x": 1 / 3}, offer.name, [0.1, 0.9], 1, i, "p@1")
            unit = [events.decision(f"id {i}", 1e9 + i / 7, decided, offer)]
            journal.wait(journal.append([*unit, events.reward(f"id {i}", 2e9, 0.1 * i)]))
        assert journal.offer(offer.name) == offer
        chains.append(list(journal.events()))
        journal.close()
    assert chains[0] == chains[1]


def test_trials_and_roll_backs_are_kept_and_derived_again(address):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=address)
    trials = Trials(agent)
    trials.begin("other", "uniform", share=0.5)
    for i in range(60):
        trials.learn(trials.act({"age": i}, unit=f"visitor {i}"), i % 2)
    agent.roll_back(20, relearn_after=40)
    (found,) = trials.compare()
    assert found.rounds == 60
    before = agent.fingerprint
    trials.close()
    assert compare(reading(address)) == [found]
    assert straight(reading(address)).fingerprint == before
    for name in ("agent", "agent.other"):
        assert audit(reading(address, name)).difference is None
    assert list(verify(reading(address))) == []


def test_one_process_writes_and_others_read(address):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=address)
    agent.act({"age": 1})
    with pytest.raises(DataError, match="another process writes to this journal"):
        Agent(ACTIONS, "epsilon-greedy", journal=address)
    assert len(list(reading(address).events())) == 2
    agent.close()
    Agent(ACTIONS, "epsilon-greedy", journal=address).close()


def test_several_writers_make_one_chain(address):
    Postgres(address, writing=True).close()
    stores = [Postgres(address, writing=True, shared=True) for _ in range(3)]

    def write(store, name):
        journal = Journal.of(store, name)
        for _ in range(20):
            journal.wait(journal.append([events.change(events.SETTINGS, 1.0, {})]))

    threads = [
        threading.Thread(target=write, args=(store, f"agent-{i}")) for i, store in enumerate(stores)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    for store in stores:
        store.close()
    journal = reading(address, "agent-1")
    assert journal.head.seq == 60
    assert len(list(journal.events())) == 20


def test_several_may_begin_in_an_empty_database_at_once(address, monkeypatch):
    together = threading.Barrier(6)
    is_there = Postgres._is_there

    def looks(self):
        found = is_there(self)
        together.wait(30)
        return found

    monkeypatch.setattr(Postgres, "_is_there", looks)
    made, failed = [], []

    def begin():
        try:
            made.append(Postgres(address, writing=True, shared=True))
        except DataError as error:
            failed.append(error)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert failed == []
    for store in made:
        assert store.snapshots.agents() == set()
        store.close()
    assert len(made) == 6


def test_who_starts_waits_for_others_who_have_much_to_read(address, monkeypatch):
    monkeypatch.setattr("melee.journal.postgres.PATIENCE", 1)
    first, second = (Postgres(address, writing=True, shared=True) for _ in range(2))
    with first.opening():
        began = time.monotonic()
        with pytest.raises(DataError, match="lock timeout"), second.opening():
            pass
        assert time.monotonic() - began > 0.9
    got = threading.Event()

    def start():
        with second.opening(patient=True):
            got.set()

    with first.opening():
        thread = threading.Thread(target=start)
        thread.start()
        assert not got.wait(1.5)
    assert got.wait(10)
    thread.join(10)
    assert second.execute("SHOW lock_timeout") == [("1s",)]
    for store in (first, second):
        store.close()


def test_events_are_shown_from_the_end(address):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=address)
    for i in range(10):
        agent.learn(agent.act({"age": i}, id=f"id {i}"), 0.5)
    agent.close()
    store = reading(address).store
    assert [one.seq for one in store.latest(3)] == [19, 20, 21]
    assert [one.kind for one in store.latest(9, id="id 4")] == ["decision", "reward"]
    assert [one.seq for one in store.latest(2, agent="agent", kind="reward")] == [19, 21]
    assert store.latest(5, agent="nobody") == []
    assert store.agents(thorough=True) == ["agent"]


def test_a_lost_connection_is_told_and_nothing_is_lost(address, server):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=address)
    done = agent.act({"age": 1}).id
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
            f"'{keeper_of(agent).journal.store._writer.info.dbname}'"
        )
    for _ in range(2):
        with pytest.raises(DataError, match=r"journal cannot be used|connection is lost"):
            agent.act({"age": 2})
    again = Agent(ACTIONS, "epsilon-greedy", journal=address)
    assert list(again._pending.waiting) == [done]
    again.close()


def test_old_events_are_dropped(address, clock):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=address)
    live(agent, 0, 30, clock=clock)
    kept = keeper_of(agent).snapshot()
    dropped = keeper_of(agent).journal.compact(keep_days=0, now=clock.now + 1)
    assert dropped.n_events == kept
    live(agent, 30, 40, clock=clock)
    before = agent.fingerprint
    keeper_of(agent).journal.close()
    again = Agent(ACTIONS, "epsilon-greedy", journal=address)
    assert again.fingerprint == before
    again.close()


def test_what_was_changed_is_named(address):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=address)
    for i in range(5):
        agent.learn(agent.act({"age": i}), 0.5)
    keeper_of(agent).journal.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE events SET time = 0 WHERE seq = 4")
    assert [one.seq for one in verify(reading(address))] == [4]
    with pytest.raises(DataError, match="event 4 was changed"):
        Agent(ACTIONS, "epsilon-greedy", journal=address)


def test_a_server_that_is_not_there_is_told_without_the_password():
    with pytest.raises(DataError, match=r"postgresql://ann@127\.0\.0\.1:1/db: the journal") as told:
        Agent(ACTIONS, "epsilon-greedy", journal="postgresql://ann:secret@127.0.0.1:1/db")
    assert "secret" not in str(told.value)


def test_without_psycopg_its_extra_is_asked_for(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingPackageError, match=r"melee-bandits\[postgres\]"):
        Agent(ACTIONS, "epsilon-greedy", journal="postgresql://host/db")


def test_whoever_reads_while_the_journal_is_closed_is_told_so(address):
    journal = Journal(address)
    journal.wait(journal.append([events.change(events.CREATED, 1e9, {})]))
    told, ready = [], threading.Event()

    def read():
        try:
            while True:
                assert journal.head.seq == 1
                ready.set()
        except InputError as error:
            told.append(str(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for one in threads:
        one.start()
    assert ready.wait(10)
    journal.close()
    for one in threads:
        one.join(10)
    assert len(told) == 3
    assert "the journal is closed" in told[0]
