"""Services that share a journal in PostgreSQL, a real one."""

import asyncio
import os
import random
import signal
import time

import pytest

from melee.auditing import audit
from melee.errors import InputError
from melee.journal import Journal, verify
from tests.journals import reading, straight
from tests.serve.crowds import Crowd, children
from tests.serve.nodes import Node, check_nodes, decide, reward
from tests.serve.servers import QUICK, Process, dumps

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: melee-bandits[postgres]")
pytest.importorskip("uvicorn")
OPTIONS = ("--actions", "a,b,c", "--explorer", "epsilon-greedy")


def test_whichever_node_is_asked_the_model_is_the_journals(nodes, address):
    chance = random.Random(0)
    waiting = []
    for i in range(120):
        waiting.append(decide(chance.choice(nodes), {"x": i % 5, "device": "phone"})["id"])
        chance.shuffle(waiting)
        if i % 3:
            told = reward(chance.choice(nodes), waiting.pop(), float(i % 2))
            assert told == (200, {"learned": 1, "repeated": 0})
    for one in nodes:
        one.look()
    alone = straight(reading(address))
    assert {one.agent.fingerprint for one in nodes} == {alone.fingerprint}
    assert alone.n_learned_ == 80
    found = audit(reading(address))
    assert (found.n_decisions, found.difference) == (120, None)
    assert list(verify(reading(address))) == []


def test_ids_and_rewards_hold_across_nodes(nodes):
    first, second = nodes
    body = {"context": {"x": 1}, "id": "mine"}
    made = first.ask("POST", "/v1/decisions", body)
    assert made[0] == 200
    assert second.ask("POST", "/v1/decisions", body) == made
    assert second.ask("POST", "/v1/decisions", {**body, "context": {"x": 2}})[0] == 409
    many = {"contexts": [{"x": 1}, {"x": 5}], "ids": ["mine", "new"]}
    status, both = second.ask("POST", "/v1/decisions", many)
    assert (status, both["decisions"][0]) == (200, made[1])
    assert first.ask("POST", "/v1/decisions", many) == (200, both)
    assert reward(second, "mine", 1) == (200, {"learned": 1, "repeated": 0})
    assert reward(first, "mine", 1) == (200, {"learned": 0, "repeated": 1})
    assert reward(first, "mine", 0)[0] == 409
    assert reward(first, "nobody's", 0)[0] == 404
    past = second.ask("GET", "/v1/decisions/mine")[1]
    assert (past["reward"], past["waits"]) == (1.0, False)
    why = first.ask("GET", "/v1/decisions/new/explanation")[1]
    assert why["explanation"]["actions"]


def test_a_trial_begins_at_one_node_and_is_everybodys(nodes, address):
    first, second = nodes
    for i in range(20):
        made = decide(first, {"x": i % 3})
        reward(second, made["id"], float(made["action"] == "b"))
    body = {"explorer": "uniform", "share": 0.5}
    assert first.ask("PUT", "/v1/trials/random", body)[0] == 200
    waiting, policies = [], set()
    for i in range(80):
        made = decide(nodes[i % 2], {"x": i % 3}, unit=f"visitor {i}")
        policies.add(made["policy"].partition("@")[0])
        waiting.append(made)
        if i == 30:  # actions come and go for all, whoever is asked
            second.ask("POST", "/v1/actions", {"add": ["d"]})
    assert policies == {"epsilon-greedy", "uniform"}
    for i, made in enumerate(waiting):
        told = reward(nodes[i % 3 % 2], made["id"], float(made["action"] == "b"))
        assert told == (200, {"learned": 1, "repeated": 0})
        assert reward(nodes[i % 2], made["id"], float(made["action"] == "b"))[0] == 200
    both = {"rewards": [{"id": made["id"], "reward": made["action"] == "b"} for made in waiting]}
    both["rewards"] = [{**one, "reward": float(one["reward"])} for one in both["rewards"]]
    assert second.ask("POST", "/v1/rewards", both) == (200, {"learned": 0, "repeated": 80})
    assert second.service.agents["agent.random"].agent.actions_ == ["a", "b", "c", "d"]
    answers = [one.ask("GET", "/v1/trials")[1] for one in nodes]
    assert answers[0] == answers[1]
    (found,) = answers[0]["trials"]
    assert (found["kind"], found["rounds"]) == ("share", 80)
    assert second.ask("GET", f"/v1/decisions/{waiting[0]['id']}")[1]["reward"] is not None
    check_nodes(nodes, address)


def test_shares_change_and_trials_end_at_any_node(nodes, address):
    first, second = nodes
    assert first.ask("PUT", "/v1/trials/shade", {"explorer": "uniform", "share": 0})[0] == 200
    second.look()
    assert [one.agent._trials["shade"].share for one in nodes] == [0.0, 0.0]
    assert second.ask("PUT", "/v1/trials/shade", {"share": 0.9})[0] == 200  # it begins to act
    made = [decide(nodes[i % 2], {"x": i}) for i in range(30)]
    acted = [one for one in made if one["policy"].startswith("uniform")]
    assert len(acted) > 15
    too_much = first.ask("PUT", "/v1/trials/more", {"explorer": "linucb", "share": 0.2})
    assert (too_much[0], "together" in too_much[1]["error"]) == (400, True)
    assert first.ask("PUT", "/v1/trials/shade", {"explorer": "linucb", "share": 0.5})[0] == 400
    assert first.ask("DELETE", "/v1/trials/shade")[0] == 200
    assert second.ask("DELETE", "/v1/trials/shade")[0] == 404
    for one in nodes:
        assert decide(one, {"x": 1})["policy"].startswith("epsilon-greedy")
    assert reward(second, acted[0]["id"], 1) == (200, {"learned": 1, "repeated": 0})  # late
    again = {"explorer": "uniform", "share": 0.5}
    assert first.ask("PUT", "/v1/trials/shade", again)[0] == 200  # it goes on where it was
    assert first.service.agents["agent.shade"].agent.n_learned_ == 1
    check_nodes(nodes, address)


def test_two_nodes_that_begin_the_same_trial_at_once_begin_it_once(nodes, address):
    body = {"explorer": "uniform", "share": 0.5}

    async def main():
        return await asyncio.gather(
            *(
                one._ask("PUT", "/v1/trials/random", dumps(body), (), 1)
                for one in nodes
            )
        )  # fmt: skip

    statuses = sorted(status for status, _ in nodes[0].runner.run(main()))
    assert statuses[0] == 200
    assert statuses[1] in (200, 400, 409)

    async def same(i):
        asked = {"context": {"x": i}, "id": f"mine {i}"}
        return await asyncio.gather(
            *(one._ask("POST", "/v1/decisions", dumps(asked), (), 1) for one in nodes)
        )

    for i in range(20):
        (status, made), again = nodes[0].runner.run(same(i))
        assert (status, again) == (200, (200, made))
    check_nodes(nodes, address)
    kinds = [event.kind for event in reading(address).events()]
    assert kinds.count("trial") == 1


def test_a_node_that_joins_later_goes_on_with_trials(nodes, address):
    first, _ = nodes
    first.ask("PUT", "/v1/trials/random", {"explorer": "uniform", "share": 0.5})
    made = [decide(first, {"x": i}) for i in range(20)]
    third = Node(first.runner, address)
    for one in made:
        assert reward(third, one["id"], 1.0)[1] == {"learned": 1, "repeated": 0}
    policies = {decide(third, {"x": i})["policy"].partition("@")[0] for i in range(20)}
    assert policies == {"epsilon-greedy", "uniform"}
    check_nodes([first, third], address)
    third.close()


def test_many_callers_of_both_nodes_at_once_share_turns(nodes, address):
    async def main():
        asked = []
        for i in range(100):
            node = nodes[i % 2]
            body = b'{"context": {"x": %d}, "id": "one %d"}' % (i % 3, i // 4)
            asked.append(node._ask("POST", "/v1/decisions", body, (), 1))
        return await asyncio.gather(*asked)

    answers = nodes[0].runner.run(main())
    assert {status for status, _ in answers} <= {200, 409}
    ids = [event.id for event in reading(address).events() if event.kind == "decision"]
    assert sorted(ids) == sorted({f"one {i}" for i in range(25)})
    assert sum(one.service.journal.n_syncs for one in nodes) < 20


def test_odd_ids_harm_nobody_else(nodes):
    async def main():
        bodies = [b'{"context": {"x": 1}, "id": "a\\u0000b"}', b'{"context": {"x": 1}}']
        bodies += [b'{"context": {"x": 1}, "id": "\\ud800"}']
        asked = [nodes[0]._ask("POST", "/v1/decisions", body, (), 1) for body in bodies]
        return await asyncio.gather(*asked)

    nul, fine, half = nodes[0].runner.run(main())
    assert (nul[0], fine[0], half[0]) == (400, 200, 400)
    assert "NUL" in nul[1]["error"]
    assert reward(nodes[1], "a%00b", 1)[0] == 404


def test_changes_of_actions_and_new_agents_reach_the_others(nodes):
    first, second = nodes
    assert first.ask("POST", "/v1/actions", {"add": ["d"]})[0] == 200
    assert decide(second, {"x": 1}, actions=["d", "a"])["actions"] == ["a", "d"]
    body = {"actions": [1, 2], "explorer": "uniform"}
    assert first.ask("PUT", "/v1/agents/other", body)[0] == 201
    second.look()
    status, made = second.ask("POST", "/v1/agents/other/decisions", {"context": {"x": 1}})
    assert (status, made["action"] in (1, 2)) == (200, True)
    assert second.ask("PUT", "/v1/agents/other", body)[0] == 200
    path = f"/v1/agents/other/decisions/{made['id']}/reward"
    assert first.ask("POST", path, {"reward": 1})[0] == 200


def test_rankings_and_candidates_hold_across_nodes(nodes, address):
    first, second = nodes
    body = {"context": {"x": 1}, "top": 2, "id": "r"}
    made = first.ask("POST", "/v1/decisions", body)
    assert made[0] == 200
    assert second.ask("POST", "/v1/decisions", body) == made
    assert reward(second, "r%2F2", 1) == (200, {"learned": 1, "repeated": 0})
    assert first.ask("PUT", "/v1/agents/shop", {"explorer": "linucb"})[0] == 201
    second.look()
    shelf = {"a17": {"topic": "sport"}, "a18": {"topic": "film"}}
    path = "/v1/agents/shop/decisions"
    asked = {"context": {"x": 1}, "actions": shelf, "id": "s"}
    chosen = second.ask("POST", path, asked)
    assert chosen[0] == 200
    assert first.ask("POST", path, asked) == chosen
    assert first.ask("POST", f"{path}/s/reward", {"reward": 1})[0] == 200
    second.look()
    found = audit(reading(address, "shop"))
    assert (found.n_decisions, found.difference) == (1, None)
    assert found.fingerprint == second.service.agents["shop"].agent.fingerprint


def test_a_node_without_its_database_says_503_and_changes_nothing(nodes, postgres, address):
    first, second = nodes
    made = decide(first, {"x": 1})
    before = first.agent.fingerprint
    database = first.service.journal.store.query("SELECT current_database()")[0][0]
    with psycopg.connect(postgres.get_uri(), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        admin.execute(cut, [database])
        for _ in range(2):
            status, answer = first.ask("POST", "/v1/decisions", {"context": {"x": 2}, "id": "b"})
            assert status == 503
            assert "the journal cannot be used" in answer["error"]
            assert reward(first, made["id"], 1)[0] == 503
        assert first.agent.fingerprint == before
        first.sharing._fresh -= 60.0
        assert first.ask("GET", "/ready")[0] == 503
        status, shown = first.ask("GET", "/v1/agents/agent")
        assert (status, shown["event"], shown["model"]["seconds"] > 60.0) == (200, 2, True)
        assert "The journal could not be reached for 6" in shown["alarms"][0]
        assert "melee_journal_events 2\n" in first.ask("GET", "/metrics")[1]
        admin.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
    assert decide(first, {"x": 2}, id="b")["id"] == "b"
    assert reward(second, made["id"], 1) == (200, {"learned": 1, "repeated": 0})
    for one in nodes:
        one.look()
    assert first.agent.fingerprint == second.agent.fingerprint
    assert first.agent.fingerprint == straight(reading(address)).fingerprint


def test_a_commit_that_fails_is_undone_and_the_node_goes_on(nodes, address, monkeypatch):
    first, second = nodes
    made = decide(first, {"x": 1})
    store = first.service.journal.store
    execute = store.execute

    def cut(statement, values=()):
        if statement.startswith("UPDATE journal"):
            store._writer.close()
        return execute(statement, values)

    monkeypatch.setattr(store, "execute", cut)
    assert reward(first, made["id"], 1)[0] == 503
    monkeypatch.undo()
    assert reward(second, made["id"], 0.5) == (200, {"learned": 1, "repeated": 0})
    assert reward(first, made["id"], 1)[0] == 409
    decide(first, {"x": 3})
    second.look()
    assert first.agent.fingerprint == second.agent.fingerprint
    assert first.agent.fingerprint == straight(reading(address)).fingerprint


def test_one_node_has_the_lease_and_another_gets_it_when_that_one_is_gone(address):
    with asyncio.Runner() as runner:
        first, second = Node(runner, address), Node(runner, address)
        first.look()
        second.look()
        turns = [one.sharing for one in (first, second)]
        assert [one.leads for one in turns] == [True, False]
        second.service.agents["agent"].keeper.finish()
        assert reading(address).snapshots() == []  # it is not the one to write any
        decide(second, {"x": 1})
        first.look()
        assert first.ask("POST", "/v1/snapshot")[0] == 200
        assert reading(address).snapshots()[0].head == reading(address).head
        decide(first, {"x": 1})
        first.close()  # and with it its connection
        for _ in range(100):  # until PostgreSQL has noticed
            second.look()
            if turns[1].leads:
                break
            time.sleep(0.02)
        assert turns[1].leads
        second.close()
        third = reading(address)
        assert third.snapshots()[0].head == third.head


def test_the_lease_is_taken_under_load_too_and_snapshots_are_written(address):
    with asyncio.Runner() as runner:
        node = Node(runner, address)
        keeper = node.service.agents["agent"].keeper
        keeper.journal.snapshot_every = node.service.journal.snapshot_every = 20
        for i in range(30):
            decide(node, {"x": i})
        node.settle()
        assert node.sharing.leads
        assert keeper._snapshotting is not None
        keeper._snapshotting.join(30)
        assert 20 <= reading(address).snapshots()[0].head.seq <= 31
        node.close()


def test_what_goes_wrong_in_a_turn_ends_that_turn_only(nodes, monkeypatch):
    first, second = nodes

    def broken(*_):
        raise ValueError("a defect")

    monkeypatch.setattr(first.agent._knowledge, "decide", broken)
    status, answer = first.ask("POST", "/v1/decisions", {"context": {"x": 1}})
    assert (status, answer["error"]) == (500, "a defect of melee: ValueError")
    monkeypatch.undo()
    decide(second, {"x": 1})
    decide(first, {"x": 2})
    second.look()
    assert first.agent.fingerprint == second.agent.fingerprint


def test_a_time_out_of_one_node_is_one_for_all(address):
    agents = {"agent": {**QUICK, "timeout": 0.2, "default_reward": 0.0}}
    with asyncio.Runner() as runner:
        first, second = Node(runner, address, agents), Node(runner, address, agents)
        id = decide(first, {"x": 1})["id"]
        time.sleep(0.3)
        assert reward(second, id, 1)[0] == 409  # it has got the default one
        second.settle()
        first.look()
        assert first.agent.n_learned_ == second.agent.n_learned_ == 1
        found = [node.ask("GET", f"/v1/decisions/{id}")[1] for node in (first, second)]
        assert [(one["given_up"], one["reward"]) for one in found] == [(True, 0.0)] * 2
        first.close()
        second.close()


def test_how_far_a_model_is_behind_is_measured(nodes):
    first, second = nodes
    for i in range(7):
        decide(first, {"x": i})
    first.look()
    second.look()
    assert second.sharing.n_behind == 7
    shown = second.ask("GET", "/v1/agents/agent")[1]["model"]
    assert shown["behind"] == 7
    assert 0.0 <= shown["seconds"] < 5.0
    text = second.ask("GET", "/metrics")[1]
    assert "melee_model_behind_events 7\n" in text
    assert "melee_model_age_seconds " in text
    assert "melee_lease_held 0\n" in text


def test_an_agent_of_its_own_and_services_keep_out_of_each_others_way(nodes, address, tmp_path):
    from melee import Agent, DataError

    with pytest.raises(DataError, match="another process writes to this journal"):
        Agent(["a", "b", "c"], "epsilon-greedy", journal=address)
    with pytest.raises(InputError, match="give the address of a PostgreSQL database"):
        Journal(tmp_path / "here", shared=True)
    agent = nodes[0].agent
    with pytest.raises(RuntimeError, match="changes in a turn only"):
        agent.act({"x": 1})


# -- processes -----------------------------------------------------------------------------------


def test_nodes_that_are_killed_lose_nothing(address):
    crowd = Crowd()
    nodes = [Process(address, *OPTIONS), Process(address, *OPTIONS)]

    async def kill():
        await asyncio.sleep(0.5)
        nodes[0].kill()
        port = str(nodes[0].port)
        nodes[0] = await asyncio.to_thread(Process, address, *OPTIONS, "--port", port)

    urls = [str(one.url) for one in nodes]
    asyncio.run(crowd.run(urls, 10**6, 8, beside=kill()))
    for one in nodes:
        assert one.stop() == 0
    assert crowd.refused == []
    assert len(crowd.rewards) > 5
    crowd.check(address)


@pytest.mark.long
def test_kills_of_nodes_of_their_learners_and_of_who_has_the_lease(address):
    crowd, chance = Crowd(), random.Random(0)
    options = (*OPTIONS, "--workers", "2")
    nodes = [Process(address, *options) for _ in range(3)]

    async def kill():
        for i in range(30):
            await asyncio.sleep(chance.random())
            which = chance.randrange(3)
            if i % 3:
                for one in children(nodes[which].process.pid)["learner"]:
                    os.kill(one, signal.SIGKILL)
                await asyncio.sleep(2.1)
            else:
                nodes[which].kill()
                port = str(nodes[which].port)
                await asyncio.sleep(1.0)  # its workers let go of the port
                nodes[which] = await asyncio.to_thread(Process, address, *options, "--port", port)

    urls = [str(one.url) for one in nodes]
    try:
        asyncio.run(crowd.run(urls, 10**9, 24, beside=kill(), attempts=200))
        for one in nodes:
            assert one.stop() == 0
    finally:
        for one in nodes:
            if one.process.poll() is None:
                one.stop()
    said = [line for one in nodes for line in one.said if "Traceback" in line]
    assert (crowd.refused, said) == ([], [])
    assert len(crowd.rewards) > 1_000
    crowd.check(address)
