"""Roll-backs and trials of services that share a journal in PostgreSQL, a real one."""

import asyncio
import random
import threading
import time

import pytest

from melee import Agent, DataError, InputError, MeleeError
from melee.agent import opening, recovering
from melee.auditing import audit
from melee.client import Client, ServiceError
from melee.journal import Journal, verify
from melee.serve import joining, sharing
from tests.journals import reading, straight
from tests.serve.nodes import Node, check_nodes, decide, reward
from tests.serve.servers import Process, dumps, said_instead_of_serving

pytest.importorskip("psycopg", reason="needs psycopg: melee-bandits[postgres]")
pytest.importorskip("uvicorn")
OPTIONS = ("--actions", "a,b,c", "--explorer", "epsilon-greedy")
HALF = {"uniform": ("uniform", 0.5)}


def live(nodes, n, first=0):
    """Rounds whose decisions and rewards come to any of the nodes."""
    chance = random.Random(first)
    for i in range(first, first + n):
        made = decide(chance.choice(nodes), {"x": i % 5, "device": "phone"})
        told = reward(chance.choice(nodes), made["id"], float(made["action"] == "b"))
        assert told == (200, {"learned": 1, "repeated": 0})


def kinds(address, kind):
    return [event for event in reading(address).events() if event.kind == kind]


def fail_next_commit(node, monkeypatch):
    """Have the connection of a node be lost before it commits what it does next."""
    store = node.service.journal.store
    execute = store.execute

    def cut(statement, values=()):
        if statement.startswith("UPDATE journal"):
            monkeypatch.undo()
            store._writer.close()
        return execute(statement, values)

    monkeypatch.setattr(store, "execute", cut)


# -- roll-backs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("again", "learned"), [(None, 10), (21, 30), (41, 20)])
def test_a_rollback_at_one_node_is_everybodys(nodes, address, again, learned):
    first, second = nodes
    live(nodes, 10)
    live(nodes, 20, first=10)
    waits = decide(second, {"x": 1})["id"]
    told = first.ask("POST", "/v1/rollback", {"to": 21, "relearn_after": again})
    assert told == (200, {"event": 63, "learned": learned})
    decide(second, {"x": 2})  # the next decision is by what is known now, whoever makes it
    assert second.agent.n_learned_ == learned
    assert reward(second, waits, 1.0) == (200, {"learned": 1, "repeated": 0})
    live(nodes, 10, first=30)
    third = Node(first.runner, address)
    check_nodes([*nodes, third], address)
    assert reading(address).snapshots()[0].head.seq == 63  # the next start need not go back again
    told = second.ask("POST", "/v1/rollback", {"to": 62, "relearn_after": 62})  # which undoes it
    assert (told[0], told[1]["learned"]) == (200, 41)
    check_nodes([*nodes, third], address)
    third.close()


def test_what_a_rollback_leaves_comes_with_it_or_is_derived(nodes, address, monkeypatch):
    first, second = nodes
    live(nodes, 10)
    assert first.ask("POST", "/v1/rollback", {"to": 5, "relearn_after": 9})[0] == 200
    (snapshot,) = reading(address).snapshots()
    kept = Agent.from_bytes(reading(address).read_snapshot(snapshot))
    assert kept.fingerprint == straight(reading(address)).fingerprint

    def damaged(_):
        raise DataError("damaged")

    monkeypatch.setattr(sharing, "read_file", damaged)
    decide(second, {"x": 1})
    check_nodes(nodes, address)


def test_a_node_that_was_down_meanwhile_goes_back_too(nodes, address):
    first, _ = nodes
    down = Node(first.runner, address)
    live([*nodes, down], 20)
    assert first.ask("POST", "/v1/actions", {"add": ["d"]})[0] == 200
    down.close()
    to = reading(address).head.seq - 10
    assert first.ask("POST", "/v1/rollback", {"to": to, "relearn_after": to + 4})[0] == 200
    for one in reading(address).snapshots():
        if one.head.seq > to:  # it has to go back by itself
            reading(address).store.snapshots.drop(one)
    live(nodes, 5, first=20)
    again = Node(first.runner, address)
    assert again.agent.actions_ == ["a", "b", "c"]
    check_nodes([*nodes, again], address)
    again.close()


def test_a_rollback_whose_commit_fails_has_not_happened(nodes, address, monkeypatch):
    first, second = nodes
    live(nodes, 10)
    first.look()
    before = first.agent.fingerprint
    fail_next_commit(first, monkeypatch)
    status, answer = first.ask("POST", "/v1/rollback", {"to": 5})
    assert (status, "can be repeated" in answer["error"]) == (503, True)
    first.look()  # also where nobody calls, it is what the journal says
    assert (kinds(address, "rollback"), first.agent.fingerprint) == ([], before)
    live(nodes, 5, first=10)
    assert first.ask("POST", "/v1/rollback", {"to": 5})[0] == 200
    live(nodes, 5, first=15)
    check_nodes(nodes, address)
    assert len(kinds(address, "rollback")) == 1
    assert second.ask("POST", "/v1/rollback", {"to": 10**9})[0] == 400


def test_rollbacks_among_callers_of_both_nodes(nodes, address):
    live(nodes, 10)

    async def main():
        asked = []
        for i in range(60):
            body = dumps({"context": {"x": i % 3}})
            asked.append(nodes[i % 2]._ask("POST", "/v1/decisions", body, (), 1))
            if i % 20 == 9:
                back = dumps({"to": 8, "relearn_after": 12})
                asked.append(nodes[i // 20 % 2]._ask("POST", "/v1/rollback", back, (), 1))
        return await asyncio.gather(*asked)

    answers = nodes[0].runner.run(main())
    assert {status for status, _ in answers} == {200}
    assert len(kinds(address, "rollback")) == 3
    check_nodes(nodes, address)


def test_nobody_waits_in_a_turn_for_what_takes_long(nodes, address, monkeypatch):
    """What is known after a rollback, and agents that others have made, are derived before it."""
    first, second = nodes
    live(nodes, 10)
    held = []

    def note(function):
        def noted(*arguments, **options):
            held.append(second.service.journal.store._in_turn)
            return function(*arguments, **options)

        return noted

    monkeypatch.setattr(sharing, "read_file", note(recovering.read_file))
    monkeypatch.setattr(joining, "reopen", note(opening.reopen))
    assert first.ask("POST", "/v1/rollback", {"to": 5})[0] == 200
    decide(second, {"x": 1})
    assert first.ask("PUT", "/v1/trials/random", {"explorer": "uniform", "share": 0.5})[0] == 200
    decide(second, {"x": 1})
    assert held == [False, False]
    check_nodes(nodes, address)


def test_an_agent_is_adopted_from_its_first_event_on(nodes, address, monkeypatch):
    first, second = nodes
    live(nodes, 30)
    read = []
    rows = type(second.service.journal.store).rows

    def noted(self, after, until=None):
        if self is second.service.journal.store:
            read.append(after)
        return rows(self, after, until)

    body = {"actions": [1, 2], "explorer": "uniform"}
    assert first.ask("PUT", "/v1/agents/other", body)[0] == 201
    monkeypatch.setattr(type(second.service.journal.store), "rows", noted)
    second.look()
    assert "other" in second.service.agents
    assert min(read) >= 60


# -- trials that begin with a node ---------------------------------------------------------------


def test_a_trial_that_begins_with_a_node_is_everybodys_and_goes_on(nodes, address):
    first, second = nodes
    live(nodes, 10)
    third = Node(first.runner, address, trials=HALF)
    everybody = [first, second, third]
    waiting = [decide(everybody[i % 3], {"x": i % 3}, unit=f"visitor {i}") for i in range(60)]
    assert {one["policy"].partition("@")[0] for one in waiting} == {"epsilon-greedy", "uniform"}
    for i, made in enumerate(waiting):
        told = reward(everybody[i // 2 % 3], made["id"], float(made["action"] == "b"))
        assert told == (200, {"learned": 1, "repeated": 0})
    answers = [one.ask("GET", "/v1/trials")[1] for one in everybody]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["trials"][0]["rounds"] == 60
    assert first.service.agents["agent.uniform"].agent.n_learned_ > 10  # it knew what was known
    check_nodes(everybody, address)
    third.close()
    third = Node(first.runner, address, trials=HALF)  # goes on
    assert len(kinds(address, "trial")) == 1
    assert third.ask("GET", "/v1/trials")[1] == answers[0]
    check_nodes([first, second, third], address)
    third.close()


def test_a_shadow_begins_with_a_node(nodes, address):
    third = Node(nodes[0].runner, address, trials={"linucb": ("linucb", 0.0)})
    live([*nodes, third], 10)
    answers = [one.ask("GET", "/v1/trials")[1]["trials"] for one in (*nodes, third)]
    assert [[one["kind"] for one in each] for each in answers] == [["shadow"]] * 3
    assert answers[0] == answers[1] == answers[2]
    third.close()


def test_nodes_that_start_at_once_with_the_same_try_begin_it_once(address):
    with asyncio.Runner() as runner:
        Node(runner, address).close()
        made, errors = [], []

        def start():
            from melee.serve.service import Service, open_journal
            from tests.serve.servers import QUICK

            service = Service(open_journal(address))
            made.append(service)
            try:
                service.open({"agent": dict(QUICK)}, HALF)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=start) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert errors == []
        for service in made:
            assert sorted(service.agents) == ["agent", "agent.uniform"]
            service.close()
        assert len(kinds(address, "trial")) == 1
        assert list(verify(reading(address))) == []


@pytest.mark.parametrize("trials", [None, HALF])
def test_a_node_that_starts_while_a_trial_begins_has_its_agent(nodes, address, monkeypatch, trials):
    first, _ = nodes
    opening = joining.opening

    def late(service, **options):
        """Another node is quicker to take the lock, and begins the trial."""
        monkeypatch.undo()
        told = first.ask("PUT", "/v1/trials/uniform", {"explorer": "uniform", "share": 0.5})
        assert told[0] == 200
        return opening(service, **options)

    monkeypatch.setattr(joining, "opening", late)
    third = Node(first.runner, address, trials=trials)
    assert sorted(third.service.agents) == ["agent", "agent.uniform"]
    live([third], 20)
    assert third.service.agents["agent.uniform"].agent.n_learned_ > 0
    check_nodes([*nodes, third], address)
    third.close()


def test_a_try_that_is_otherwise_than_the_trial_there_is_refused(nodes, address):
    first, _ = nodes
    live(nodes, 5)
    third = Node(first.runner, address, trials={"linucb": ("linucb:alpha=0.5", 0.5)})
    before = reading(address).head
    with pytest.raises(InputError, match=r"gives linucb a share of 0.1, and .* give it 0.5; give "):
        Node(first.runner, address, trials={"linucb": ("linucb:alpha=0.5", 0.1)})
    has = "has the explorer linucb:alpha=0.5, and linucb:alpha=2.0 is given; expected the same one"
    with pytest.raises(InputError, match=has):
        Node(first.runner, address, trials={"linucb": ("linucb:alpha=2", 0.5)})
    with pytest.raises(InputError, match="would be 1 together; expected less than 1"):
        Node(first.runner, address, trials={"uniform": ("uniform", 0.5)})
    assert reading(address).head == before
    assert first.ask("DELETE", "/v1/trials/linucb")[0] == 200
    other = {"explorer": "uniform", "share": 0.1}
    status, answer = third.ask("PUT", "/v1/trials/linucb", other)  # its agent is another one
    assert (status, "since it was tried before" in answer["error"]) == (400, True)
    third.close()


def test_a_trial_that_cannot_begin_leaves_no_trace(nodes, address, monkeypatch):
    first, second = nodes
    live(nodes, 5)
    body = {"explorer": "uniform", "share": 0.5}
    fail_next_commit(first, monkeypatch)
    assert first.ask("PUT", "/v1/trials/random", body)[0] == 503
    assert list(first.service.agents) == ["agent"]
    decide(first, {"x": 1})
    assert kinds(address, "trial") == []
    for one in (first, second):  # both at once get what they ask for
        assert one.ask("PUT", "/v1/trials/random", body)[0] == 200
    live(nodes, 10, first=5)
    check_nodes(nodes, address)
    assert reading(address, "agent.random").first.seq == kinds(address, "trial")[0].seq - 1


# -- processes -----------------------------------------------------------------------------------


def test_the_command_tries_at_several_nodes_and_goes_back(address, tmp_path):
    options = (*OPTIONS, "--try", "uniform=0.5")
    one, two = Process(address, *options), Process(address, *options)
    try:
        with Client(str(one.url)) as first, Client(str(two.url)) as second:
            for i in range(20):
                made = first.act({"x": i})
                second.learn(made, 1.0)
            assert second.roll_back(3)["learned"] == 0
            first.act({"x": 1})
            assert first.trials() == second.trials()
        options = ("--journal", address, "--actions", "a,b,c", "--explorer", "epsilon-greedy")
        said = said_instead_of_serving(tmp_path, *options, "--try", "uniform=0.2")
        assert "PUT /v1/trials/uniform" in said
    finally:
        codes = [one.stop(), two.stop()]
    assert codes == [0, 0]
    assert len(kinds(address, "trial")) == 1
    for name in ("agent", "agent.uniform"):
        assert audit(reading(address, name)).difference is None
    assert list(verify(reading(address))) == []


@pytest.mark.long
def test_nodes_that_are_killed_while_they_go_back(address):
    """Whenever a node is killed, roll-backs have happened for all, or for nobody."""
    chance = random.Random(0)
    nodes = [Process(address, *OPTIONS) for _ in range(3)]
    ended = threading.Event()

    def go_on(number):
        rng = random.Random(number)
        while not ended.is_set():
            url = str(nodes[rng.randrange(3)].url)
            try:
                with Client(url, timeout=20.0) as client:
                    made = client.act({"x": rng.randrange(5)})
                    client.learn(made, float(made.action == "b"))
                    if rng.random() < 0.1:
                        to = rng.randrange(1, 40)
                        client.roll_back(to, relearn_after=rng.choice([None, to]))
            except (MeleeError, ServiceError, OSError):
                pass

    threads = [threading.Thread(target=go_on, args=(i,)) for i in range(6)]
    for one in threads:
        one.start()
    try:
        for _ in range(20):
            time.sleep(chance.random())
            which = chance.randrange(3)
            port = str(nodes[which].port)
            nodes[which].kill()
            nodes[which] = Process(address, *OPTIONS, "--port", port)
    finally:
        ended.set()
        for one in threads:
            one.join(60)
        codes = [one.stop() for one in nodes]
    assert codes == [0, 0, 0]
    assert not any("Traceback" in line for one in nodes for line in one.said)
    assert len(kinds(address, "rollback")) > 10
    journal = Journal(address, writing=False)
    found = audit(journal)
    assert (found.difference, list(verify(journal))) == (None, [])
    snapshot = journal.snapshots()[0]
    assert snapshot.head == journal.head
    kept = Agent.from_bytes(journal.read_snapshot(snapshot))
    assert kept.fingerprint == straight(journal).fingerprint == found.fingerprint
