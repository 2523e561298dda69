"""A chain of checksums: what is missing, changed or added is noticed, and its place named."""

import shutil
import sqlite3
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from melee import Agent, DataError
from melee.journal import Head, Journal, events, offers, verify
from melee.journal.commits import Commits
from melee.journal.sqlite import FILE
from tests.agent_lives import ACTIONS
from tests.journals import keeper_of, reading


@pytest.fixture
def journal(place):
    """A journal of 41 events: one that creates, then decisions and rewards by turns."""
    agent = Agent(ACTIONS, "epsilon-greedy", journal=place)
    for i in range(20):
        agent.learn(agent.act({"age": i}), 0.5)
    keeper_of(agent).journal.close()
    return place


def changed(place, statement, *values):
    with sqlite3.connect(place / FILE) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


TAMPERED = [
    (
        "UPDATE events SET body = replace(body, '0.5', '0.6') WHERE seq = 7",
        7,
        "event 7 was changed",
    ),
    ("UPDATE events SET time = time + 1 WHERE seq = 12", 12, "event 12 was changed"),
    ("UPDATE events SET id = 'x' WHERE seq = 12", 12, "event 12 was changed"),
    ("UPDATE events SET kind = 'record' WHERE seq = 12", 12, "event 12 was changed"),
    ("UPDATE events SET agent = 'other' WHERE seq = 12", 12, "event 12 was changed"),
    ("UPDATE events SET checksum = zeroblob(16) WHERE seq = 9", 9, "event 9 was changed"),
    ("DELETE FROM events WHERE seq = 20", 20, "event 20 is missing"),
    ("DELETE FROM events WHERE seq BETWEEN 20 AND 25", 20, "events 20 to 25 are missing"),
    ("DELETE FROM events WHERE seq = 1", 1, "event 1 is missing"),
    ("DELETE FROM events WHERE seq > 38", 39, "event 39 is missing, and all after it"),
    ("UPDATE events SET seq = 100 WHERE seq = 41", 41, "event 41 is missing"),
]


@pytest.mark.parametrize(("statement", "seq", "sentence"), TAMPERED)
def test_what_was_changed_is_named_and_refused(journal, statement, seq, sentence):
    assert list(verify(reading(journal))) == []
    changed(journal, statement)
    first = next(iter(verify(reading(journal))))
    assert first.seq in (seq, seq + 1, 26)  # of a missing one, what follows it tells
    with pytest.raises(DataError, match=sentence):
        list(reading(journal).events())
    with pytest.raises(DataError, match=sentence):
        Agent(ACTIONS, "epsilon-greedy", journal=journal)


def test_one_changed_event_is_one_fault_or_two(journal):
    changed(journal, "UPDATE events SET body = '{}' WHERE seq = 10")
    assert [one.seq for one in verify(reading(journal))] == [10]


def test_an_added_event_is_noticed(journal):
    changed(
        journal,
        "INSERT INTO events SELECT 42, agent, kind, id, time, body, checksum FROM events "
        "WHERE seq = 41",
    )
    changed(journal, "UPDATE journal SET head = 42")
    assert [one.seq for one in verify(reading(journal))] != []


def test_an_offer_that_was_changed_is_named(journal):
    changed(journal, "UPDATE offers SET body = replace(body, 'sports', 'sport')")
    faults = list(verify(reading(journal)))
    assert len(faults) == 20
    assert "has been changed" in faults[0].sentence


def test_a_missing_offer_is_named(journal):
    changed(journal, "DELETE FROM offers")
    assert "is missing" in next(iter(verify(reading(journal)))).sentence


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, bytes(4096)])
def test_a_file_that_is_no_journal_is_refused(place, content):
    place.mkdir(parents=True)
    (place / FILE).write_bytes(content)
    with pytest.raises(DataError, match="journal"):
        list(reading(place).events())


def test_a_journal_of_a_later_format_is_refused(journal):
    changed(journal, "UPDATE journal SET format = 9")
    with pytest.raises(DataError, match="a journal of format 9, and this melee reads 1"):
        reading(journal)


def test_events_after_a_snapshot_are_checked_when_it_is_opened(journal):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=journal)
    keeper_of(agent).snapshot()
    agent.act({"age": 1})
    keeper_of(agent).journal.close()
    changed(journal, "UPDATE events SET time = 0 WHERE seq = 42")
    with pytest.raises(DataError, match="event 42 was changed"):
        Agent(ACTIONS, "epsilon-greedy", journal=journal)


def test_a_directory_can_be_copied(journal, tmp_path):
    shutil.copytree(journal, tmp_path / "copy")
    assert list(verify(reading(tmp_path / "copy"))) == []
    agent = Agent(ACTIONS, "epsilon-greedy", journal=tmp_path / "copy")
    assert agent.n_learned_ == 20
    agent.close()


texts = st.text(st.characters(codec="utf-8"), max_size=5)
drafts = st.builds(
    events.Draft,
    st.sampled_from(events.KINDS),
    st.none() | texts,
    st.floats(0, 2e9),
    texts.map(lambda text: '{"x":"' + text + '"}'),
    st.none(),
    st.none(),  # whose event it is comes with its place
    st.none(),  # a snapshot beside it has a checksum of its own
)


@given(drafts, drafts, texts)
def test_different_events_have_different_checksums(first, second, agent):
    one = events.link(Head(), agent, first)
    assert events.is_next(Head(), one)
    if first != second:
        assert events.link(Head(), agent, second).checksum != one.checksum
    assert events.link(one.head, agent, first).checksum != one.checksum


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=40), st.integers(0, 40))
def test_probabilities_come_back_to_the_bit(some, n_alike):
    pmf = some + [min(some)] * n_alike
    offer = offers.offer_of(tuple(range(len(pmf))))
    decided = events.Decided({"x": 0.1}, offer.name, pmf, 0, 3, "linucb@1", True, (2.0,))
    event = events.link(Head(), "agent", events.decision("id", 1.5, decided, offer))
    assert events.read_decision(event, len(pmf)) == decided
    with pytest.raises(DataError, match="cannot be read"):
        events.read_decision(event, len(pmf) + 1)


def test_offers_come_back_with_their_types():
    labels = (1, True, 1.0, "1", None, ("banner", 3))
    offer = offers.offer_of(labels)
    again = offers.read_offer(offer.name, offer.body)
    assert [(type(one), one) for one in again.labels] == [(type(one), one) for one in labels]
    with pytest.raises(DataError, match="has been changed"):
        offers.read_offer(offer.name, offer.body + " ")


def test_a_unit_is_there_as_a_whole_or_not_at_all(place):
    journal = Journal(place)
    good = events.change(events.SETTINGS, 1.0, {})
    bad: Any = good._replace(body=None)  # type: ignore[arg-type]
    ticket = journal.append([good, good])
    journal.wait(ticket)
    assert ticket.seq == 2
    for unit in ([good, bad], [good]):
        failed = journal.append(unit)
        with pytest.raises((DataError, AttributeError)):
            journal.wait(failed)
    assert journal.head.seq == 2
    journal.start_over()
    ticket = journal.append([good])
    journal.wait(ticket)
    assert (ticket.seq, journal.head.seq) == (3, 3)
    journal.close()


def test_many_may_wait_for_one_ticket_and_all_are_told():
    """Owners and a snapshot wait for the same ticket, while others lead."""
    writing, seq = threading.Lock(), [0]

    def write(drafts):
        assert writing.acquire(blocking=False), "two write at once"
        threading.Event().wait(0.001)
        seq[0] += len(drafts)
        writing.release()
        return Head(seq[0], b"")

    commits = Commits(write)
    draft = events.change(events.SETTINGS, 1.0, {})

    def work():
        for _ in range(60):
            ticket = commits.add([("agent", draft)])
            other = threading.Thread(target=commits.wait, args=(ticket,))
            other.start()
            commits.wait(ticket)
            other.join(30)
            assert not other.is_alive()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
        assert not one.is_alive(), "a thread hangs"
    assert seq[0] == 360
    assert commits.n_syncs < 300
