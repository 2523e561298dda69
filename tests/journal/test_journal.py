"""Agents with a journal: the same after every end, to the bit; nothing is lost or done twice."""

import os
import signal
import threading
import warnings

import pytest

from melee import Agent, DataError, InputError
from melee.agent import recovering
from melee.errors import MeleeWarning
from melee.history import History
from melee.journal import Journal, verify
from melee.journal.store import translated
from tests.agent_lives import ACTIONS
from tests.journals import keeper_of, live, reading, straight

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


def crash(agent):
    """End an agent as a kill does, but for the process: nothing is written any more."""
    keeper_of(agent).journal.close()


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("linucb", {}),
        ("melee", {"timeout": 30.0, "default_reward": 0.25}),
        ("thompson", {"half_life": 40, "timeout": 20.0}),
        ("bagging", {"max_pending": 5}),
        ("epsilon-greedy", {"max_pending": 8, "timeout": 50.0, "default_reward": 0.0}),
    ],
)
def test_a_recovered_agent_is_the_one_that_crashed_to_the_bit(spec, options, place, clock):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        agent = Agent(ACTIONS, spec, journal=Journal(place, snapshot_every=150), **options)
        live(agent, 0, 220, clock=clock)
        running = keeper_of(agent)._snapshotting
        if running is not None:
            running.join()
        before = agent.fingerprint
        crash(agent)
        again = Agent(ACTIONS, spec, journal=place, **options)
    assert again.fingerprint == before
    assert straight(reading(place)).fingerprint == before
    assert list(verify(reading(place))) == []
    assert again.n_learned_ > 0
    again.close()


def test_it_goes_on_as_if_it_had_never_stopped(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    live(agent, 0, 30, clock=clock)
    crash(agent)
    again = Agent(ACTIONS, "linucb", journal=place)
    waiting = next(iter(again._pending.waiting))
    assert again.learn(waiting, 0.5)
    assert not again.learn(waiting, 0.5)
    with pytest.raises(InputError, match=r"has the reward 0\.5 already"):
        again.learn(waiting, 0.75)
    again.close()


def test_closing_writes_a_snapshot_and_ends_it(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    agent.act({"age": 1})
    agent.close()
    agent.close()
    with pytest.raises(InputError, match="the agent is closed"):
        agent.act({"age": 1})
    journal = reading(place)
    (snapshot,) = journal.snapshots()
    assert snapshot.head == journal.head
    path = place / "snapshots" / snapshot.name
    assert Agent.load(path).fingerprint == agent.fingerprint


def test_a_damaged_snapshot_is_left_out_for_an_older_one(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    live(agent, 0, 20, clock=clock)
    keeper_of(agent).snapshot()
    live(agent, 20, 40, clock=clock)
    keeper_of(agent).snapshot()
    before = agent.fingerprint
    crash(agent)
    newest, older = reading(place).snapshots()
    path = place / "snapshots" / newest.name
    for content in (path.read_bytes()[:-40], b"", bytes(500)):
        path.write_bytes(content)
        assert recovering.newest(reading(place), until=newest.head.seq)[1] == older.head
        again = Agent(ACTIONS, "linucb", journal=place)
        assert again.fingerprint == before
        crash(again)


def test_a_snapshot_of_another_journal_is_not_taken(place, clock):
    other = Agent(ACTIONS, "linucb", seed=5, journal=place / "other")
    live(other, 0, 10, clock=clock)
    other.close()
    agent = Agent(ACTIONS, "linucb", journal=place / "mine")
    live(agent, 0, 20, clock=clock)
    before = agent.fingerprint
    crash(agent)
    (theirs,) = (place / "other" / "snapshots").iterdir()
    (place / "mine" / "snapshots").mkdir(exist_ok=True)
    theirs.rename(place / "mine" / "snapshots" / theirs.name)
    (fault,) = verify(reading(place / "mine"))
    assert "of another journal" in fault.sentence
    again = Agent(ACTIONS, "linucb", journal=place / "mine")
    assert again.fingerprint == before
    again.close()


# -- what recovering from a log did wrong ------------------------------------------------------


def test_rewards_that_came_before_the_crash_are_not_replaced_by_the_default(place, clock):
    options = {"timeout": 60.0, "default_reward": 0.0, "journal": place}
    agent = Agent(ACTIONS, "linucb", **options)
    ids = [agent.act({"age": i}).id for i in range(30)]
    keeper_of(agent).snapshot()
    agent.learn_many(ids, [1.0] * 30)
    crash(agent)
    clock.now += 3600
    again = Agent(ACTIONS, "linucb", **options)
    again.give_up()
    assert again.n_learned_ == 30
    assert again.diagnostics()["average reward"] == 1.0
    assert again.diagnostics()["given up"] == 0
    again.close()
    assert [one.reward for one in _rounds(place)] == [1.0] * 30


def test_actions_that_are_gone_do_not_keep_a_journal_from_being_read(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    for i in range(20):
        agent.learn(agent.act({"age": i}), i % 2)
    agent.remove_actions([ACTIONS[0]])
    before = agent.fingerprint
    crash(agent)
    again = Agent(ACTIONS, "linucb", journal=place)
    assert again.fingerprint == before
    assert again.actions_ == ACTIONS[1:]
    again.close()


def test_a_journal_longer_than_what_is_remembered_is_learned_once(place, clock):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        agent = Agent(ACTIONS, "linucb", max_pending=10, journal=place)
        for i in range(60):
            agent.learn(agent.act({"age": i}), i % 2)
        agent.learn({"age": 3}, ACTIONS[0], 1.0, 0.5)  # and a round without an id
        crash(agent)
        again = Agent(ACTIONS, "linucb", max_pending=10, journal=place)
    assert again.n_learned_ == 61
    assert again.fingerprint == agent.fingerprint
    again.close()


def test_ids_are_never_given_twice_whatever_was_lost(place):
    seen: set[str] = set()
    for _ in range(5):
        agent = Agent(ACTIONS, "linucb", journal=place)
        ids = {agent.act({"age": 1}).id for _ in range(5)}
        assert not seen & ids
        seen |= ids
        crash(agent)
    agents = [Agent(ACTIONS, "linucb", journal=place / str(i)) for i in range(4)]
    same = [one.act({"age": 1}).id for one in agents]
    assert len(set(same)) == 4
    for one in agents:
        one.close()


def test_an_id_of_a_caller_is_taken_for_ever(place):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        agent = Agent(ACTIONS, "linucb", max_pending=2, journal=place)
        agent.learn(agent.act({"age": 1}, id="mine"), 0.5)
        for i in range(10):
            agent.learn(agent.act({"age": i}), 0.5)
    assert not agent._pending.knows("mine")
    with pytest.raises(InputError, match="is taken by an earlier decision"):
        agent.learn(agent.act({"age": 1}, id="mine"), 0.5)
    with pytest.raises(InputError, match="is taken by an earlier decision"):
        agent.act_many([{"age": 1}], ids=["mine"])
    agent.close()


def failing(agent, monkeypatch, *, after=0):
    """Have the disk be full after so many transactions."""
    store, real = keeper_of(agent).journal.store, keeper_of(agent).journal.store.execute
    count = [0]

    def execute(statement, values=()):
        if statement == "COMMIT":
            count[0] += 1
            if count[0] > after:
                real("ROLLBACK")
                raise OSError(28, "No space left on device")
        return real(statement, values)

    monkeypatch.setattr(store, "execute", execute)


def test_with_a_full_disk_nothing_is_done_and_nothing_done_twice(place, clock, monkeypatch):
    options = {"timeout": 60.0, "default_reward": 0.0, "journal": place}
    agent = Agent(ACTIONS, "linucb", **options)
    ids = [agent.act({"age": i}).id for i in range(20)]
    before = agent.fingerprint
    with monkeypatch.context() as patch:
        failing(agent, patch)
        for call in (
            lambda: agent.learn_many(ids, [1.0] * 20),
            lambda: agent.act({"age": 1}),
            lambda: agent.learn(ids[0], 1.0),
            lambda: agent.add_actions(["new"]),
            lambda: agent.give_up(clock.now + 100),
        ):
            with pytest.raises(DataError, match=r"No space left.*make room.*can be repeated"):
                call()
    assert agent.learn_many(ids, [1.0] * 20) == 20
    assert agent.n_learned_ == 20
    assert agent.actions_ == ACTIONS
    crash(agent)
    again = Agent(ACTIONS, "linucb", **options)
    assert again.fingerprint == agent.fingerprint != before
    again.close()


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("database or disk is full", "make room on the disk"),
        ("could not extend file: No space left on device", "make room on the disk"),
        ("Key (typname, typnamespace)=(events, 2200) already exists.", "check the place"),
    ],
)
def test_errors_of_a_database_say_what_to_do(said, advice):
    with pytest.raises(DataError, match=advice), translated("here", OSError):
        raise OSError(said)


def test_a_disk_that_is_full_for_good_spares_what_is_on_it(place, monkeypatch):
    agent = Agent(ACTIONS, "linucb", journal=place)
    done = agent.act({"age": 1}).id
    with monkeypatch.context() as patch:
        failing(agent, patch)
        for _ in range(3):
            with pytest.raises(DataError):
                agent.act({"age": 2})
        assert agent.pmf({"age": 2})  # reading goes on
    crash(agent)
    again = Agent(ACTIONS, "linucb", journal=place)
    assert list(again._pending.waiting) == [done]
    again.close()


@needs_fork
def test_a_file_that_may_not_grow_is_as_a_full_disk(place):
    """The real error of a real write: SQLite's own, at whatever step it happens."""
    import resource

    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            agent = Agent(ACTIONS, "epsilon-greedy", journal=place)
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
            done, failed = 0, 0
            for i in range(80):
                try:
                    agent.act({"age": i, "text": "x" * 200})
                    done += 1
                except DataError:
                    failed += 1
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            agent.act({"age": 1})
            kept = sum(one.kind == "decision" for one in reading(place).events())
            fine = failed > 0 and done > 5 and kept == done + 1 == agent.n_pending_
            fine = fine and straight(reading(place)).fingerprint == agent.fingerprint
            code = 0 if fine else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert list(verify(reading(place))) == []


def test_a_call_that_is_interrupted_leaves_nothing(place, monkeypatch):
    agent = Agent(ACTIONS, "linucb", journal=place)
    decision = agent.act({"age": 1})
    before = agent.fingerprint
    with monkeypatch.context() as patch:
        patch.setattr(
            type(agent._knowledge), "learn_one", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            agent.learn(decision.id, 1.0)
    agent.give_up()
    assert agent.fingerprint == before
    assert agent.learn(decision.id, 1.0)
    agent.close()
    assert straight(reading(place)).fingerprint == agent.fingerprint


# -- opening -----------------------------------------------------------------------------------


def test_settings_may_change_from_one_life_to_the_next(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    ids = [agent.act({"age": i}).id for i in range(4)]
    agent.close()
    agent = Agent(
        ACTIONS, "linucb", timeout=5.0, default_reward=0.5, max_pending=200_000, journal=place
    )
    clock.now += 10
    assert agent.give_up() == 4
    assert not agent.learn(ids[0], 0.5)
    agent.close()
    fresh = straight(reading(place))
    assert fresh.fingerprint == agent.fingerprint
    assert (fresh.timeout, fresh.default_reward, fresh.max_pending) == (5.0, 0.5, 200_000)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"explorer": "thompson"}, "explorer is 'thompson"),
        ({"seed": 4}, "seed is 4, and the agent in .* has 0, which cannot change"),
        ({"floor": 0.5}, "floor is 0.5"),
        ({"half_life": 9}, "half_life is 9"),
        ({"reward_range": (0, 1)}, r"reward_range is \[0.0, 1.0\]"),
        ({"max_pending": 5}, "has 100000, which cannot become less"),
        ({"actions": ["x", "y"]}, "give either of these, then use add_actions"),
    ],
)
def test_what_cannot_change_is_refused(place, options, sentence):
    Agent(ACTIONS, "linucb", journal=place).close()
    with pytest.raises(InputError, match=sentence):
        Agent(**{"actions": ACTIONS, "explorer": "linucb", "journal": place, **options})
    Agent(ACTIONS, "linucb", journal=place).close()


def test_the_actions_of_now_open_a_journal_as_well_as_the_first(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    agent.add_actions(["late"])
    agent.close()
    for actions in (ACTIONS, [*ACTIONS, "late"]):
        agent = Agent(actions, "linucb", journal=place)
        assert agent.actions_ == [*ACTIONS, "late"]
        agent.close()


@pytest.mark.parametrize("given", [3, "", "mysql://host/db", "a\0b", b"x"])
def test_what_is_no_place_is_refused(given):
    with pytest.raises(InputError, match="expected a directory, or the address of a PostgreSQL"):
        Agent(ACTIONS, "linucb", journal=given)


@pytest.mark.parametrize(
    "options",
    [{"snapshot_every": 0}, {"keep_days": -1}, {"keep_bytes": -1}, {"agent": "a/b"}, {"agent": ""}],
)
def test_options_that_make_no_sense_are_refused(place, options):
    with pytest.raises(InputError, match="expected"):
        Journal(place, **options)


def test_labels_that_cannot_be_written_are_refused_at_once(place):
    with pytest.raises(InputError, match="cannot be written to a file"):
        Agent([object(), "b"], "linucb", journal=place)
    agent = Agent(ACTIONS, "linucb", journal=place)
    with pytest.raises(InputError, match="cannot be written to a file"):
        agent.add_actions([frozenset("a")])
    agent.close()


def test_one_process_writes_and_others_read(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    agent.act({"age": 1})
    with pytest.raises(DataError, match=f"process {os.getpid()} writes to this journal"):
        Agent(ACTIONS, "linucb", journal=place)
    assert len(list(reading(place).events())) == 2
    agent.close()
    with pytest.raises(DataError, match="no journal is there"):
        reading(place / "nowhere")


def test_a_journal_is_left_to_others_by_an_agent_that_is_forgotten(place):
    import gc

    agent = Agent(ACTIONS, "linucb", journal=place)
    agent.act({"age": 1})
    del agent
    gc.collect()
    Agent(ACTIONS, "linucb", journal=place).close()


def test_several_agents_share_a_journal(place, clock):
    journal = Journal(place, "news")
    news = Agent(ACTIONS, "linucb", journal=journal)
    mail = Agent(ACTIONS, "thompson", seed=3, journal=journal.another("mail"))
    for i in range(20):
        news.learn(news.act({"age": i}), 0.5)
        mail.learn(mail.act({"hour": i}), 0.25)
    assert [one.id for one in reading(place, "news").events() if one.kind == "decision"] != []
    assert straight(reading(place, "news")).fingerprint == news.fingerprint
    assert straight(reading(place, "mail")).fingerprint == mail.fingerprint
    assert list(verify(reading(place, "news"))) == []
    journal.close()


def test_copies_have_no_journal_and_parameters_stay(place):
    import copy

    agent = Agent(ACTIONS, "linucb", journal=place)
    agent.act({"age": 1})
    twin = copy.deepcopy(agent)
    assert twin.fingerprint == agent.fingerprint
    twin.act({"age": 2})
    assert len(list(reading(place).events())) == 2
    with pytest.raises(InputError, match="an agent has its journal from the start"):
        agent.set_params(seed=3)
    agent.close()


# -- processes and threads ---------------------------------------------------------------------


@needs_fork
def test_a_forked_process_may_look_and_not_write(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    decision = agent.act({"age": 1})
    child = os.fork()
    if child == 0:
        code = 1
        try:
            agent.pmf({"age": 1})
            try:
                agent.learn(decision.id, 1.0)
            except InputError as error:
                code = 0 if "was forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert agent.learn(decision.id, 1.0)
    agent.close()
    Agent(ACTIONS, "linucb", journal=place).close()
    assert list(verify(reading(place))) == []


@needs_fork
def test_a_child_that_lives_on_does_not_hold_the_journal(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        agent.act({"age": 1})
        agent.close()
        Agent(ACTIONS, "linucb", journal=place).close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_threads_share_syncs_and_lose_nothing(place, monkeypatch):
    agent = Agent(ACTIONS, "epsilon-greedy", journal=Journal(place, snapshot_every=200))
    store = keeper_of(agent).journal.store
    real = store.append

    def slow(drafts):
        threading.Event().wait(0.002)  # a disk
        return real(drafts)

    monkeypatch.setattr(keeper_of(agent).journal._commits, "_write", slow)
    errors = []

    def work(number):
        try:
            for i in range(40):
                decision = agent.act({"age": number, "hour": i})
                assert agent.learn(decision.id, 0.5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(120)
    assert errors == []
    assert agent.n_learned_ == 320
    n_events = 641
    assert keeper_of(agent).journal.head.seq == n_events
    assert keeper_of(agent).journal.n_syncs < n_events / 2
    agent.close()
    assert straight(reading(place)).fingerprint == agent.fingerprint
    assert list(verify(reading(place))) == []


# -- retention ---------------------------------------------------------------------------------


def test_old_events_are_dropped_up_to_a_snapshot(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    live(agent, 0, 40, clock=clock)
    first = keeper_of(agent).snapshot()
    clock.now = 1e9 + 10 * 86_400
    live(agent, 40, 50)
    journal = keeper_of(agent).journal
    assert journal.compact(keep_days=20, now=clock.now).n_events == 0
    dropped = journal.compact(keep_days=5, now=clock.now)
    assert dropped.n_events == first
    assert journal.start.seq == first
    before = agent.fingerprint
    crash(agent)
    assert list(verify(reading(place))) == []
    again = Agent(ACTIONS, "linucb", journal=place)
    assert again.fingerprint == before
    again.close()


def test_a_journal_that_may_not_grow_stays_small(place):
    journal = Journal(place, snapshot_every=100, keep_bytes=200_000)
    agent = Agent(ACTIONS, "epsilon-greedy", journal=journal)
    for i in range(1200):
        keeper_of(agent)._not_before = 0.0
        agent.learn(agent.act({"age": i, "text": "x" * 300}), 0.5)
    running = keeper_of(agent)._snapshotting
    running.join()
    assert journal.start.seq > 0
    assert journal.store.size() < 500_000
    assert 2 <= len(journal.snapshots()) <= len(list((place / "snapshots").iterdir())) <= 17
    before = agent.fingerprint
    crash(agent)
    again = Agent(ACTIONS, "epsilon-greedy", journal=place)
    assert again.fingerprint == before
    again.close()


def test_without_a_snapshot_nothing_can_be_dropped(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    agent.act({"age": 1})
    assert keeper_of(agent).journal.compact(keep_days=0).n_events == 0
    agent.close()


# -- what is exported --------------------------------------------------------------------------


def _rounds(place):
    from melee.agent.exporting import rounds

    return list(rounds(reading(place)))


def test_rounds_of_a_journal_are_those_of_a_log(place, clock):
    log = place.with_name("rounds.jsonl")
    options = {"timeout": 30.0, "default_reward": 0.25, "log": log}
    agent = Agent(ACTIONS, "linucb", journal=place, **options)
    live(agent, 0, 100, clock=clock)
    agent.close()
    assert History(_rounds(place)) == History.read(log)
    assert len(_rounds(place)) > 40


def test_after_compacting_rewards_still_have_their_decisions(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    decision = agent.act({"age": 1})
    keeper_of(agent).snapshot()
    keeper_of(agent).journal.compact(keep_days=0)
    agent.learn(decision.id, 1.0)
    agent.close()
    (one,) = _rounds(place)
    assert (one.id, one.action, one.reward) == (decision.id, decision.action, 1.0)


def test_nobody_takes_turns_where_one_process_writes(tmp_path):
    journal = Journal(tmp_path / "data")
    for ask in (journal.store.begin_turn, journal.store.end_turn):
        with pytest.raises(DataError, match="one process alone writes here"):
            ask()
    journal.close()


def test_an_agent_that_joins_after_others_were_dropped_needs_no_snapshot(place, clock):
    first = Agent(ACTIONS, "linucb", journal=Journal(place))
    live(first, 0, 40, clock=clock)
    journal = keeper_of(first).journal
    late = Agent(["a", "b"], "uniform", journal=journal.another("late"))
    made = keeper_of(late).journal.first.seq
    for i in range(5):
        late.learn(late.act({"hour": i}), 1.0)
    first.learn(first.act({"hour": 1}), 1.0)
    keeper_of(first).snapshot()
    assert journal.compact(keep_days=0, now=clock.now + 1.0).n_events == made - 1
    assert recovering.recover(reading(place, "late"))[0].fingerprint == late.fingerprint
    assert recovering.earliest(reading(place, "late"))[1].seq == made - 1
    assert list(verify(reading(place))) == []
    first.close()
