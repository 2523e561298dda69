"""What the service answers."""

import json
import time

import pytest

from melee import Agent
from melee.agent.recovering import recover
from melee.auditing import audit
from melee.errors import DataError
from melee.journal import verify
from tests.journals import reading, straight
from tests.serve.servers import ACTIONS, QUICK, Local

CONTEXT = {"age": 31, "device": "phone"}


def decide(local, **body):
    status, answer = local.ask("POST", "/v1/decisions", {"context": CONTEXT, **body})
    assert status == 200, answer
    return answer


def test_a_decision_and_its_reward_are_in_the_journal_when_they_are_answered(local, tmp_path):
    made = decide(local)
    assert made["action"] in ACTIONS
    assert made["probabilities"] == pytest.approx([1 / 3] * 3, abs=0.5)
    assert reading(tmp_path / "data").find(made["id"]) is not None
    status, answer = local.ask("POST", f"/v1/decisions/{made['id']}/reward", {"reward": 1})
    assert (status, answer) == (200, {"learned": 1, "repeated": 0})
    assert reading(tmp_path / "data").find(made["id"], "reward").content == {"reward": 1.0}


def test_the_same_request_under_the_same_id_gets_the_same_answer(local):
    first = decide(local, id="mine")
    for _ in range(5):  # what has been learned meanwhile does not matter
        other = decide(local)
        local.ask("POST", f"/v1/decisions/{other['id']}/reward", {"reward": 1})
    assert decide(local, id="mine") == first
    local.ask("POST", "/v1/decisions/mine/reward", {"reward": 0})
    assert decide(local, id="mine") == first
    assert local.service.agents["agent"].agent.n_pending_ == 0


@pytest.mark.parametrize("change", [{"context": {"age": 32}}, {"actions": ["a", "b"]}])
def test_another_request_under_the_same_id_is_refused(local, change):
    decide(local, id="mine")
    status, answer = local.ask(
        "POST", "/v1/decisions", {"context": CONTEXT, "id": "mine", **change}
    )
    assert status == 409
    assert "'mine' is taken by a decision about another context or other actions" in answer["error"]


def test_the_same_actions_in_another_order_are_the_same_request(local):
    first = decide(local, id="mine", actions=["a", "b"])
    assert decide(local, id="mine", actions=["b", "a"]) == first
    assert first["actions"] == ["a", "b"]


def test_requests_of_one_id_that_come_at_once_get_one_decision(local):
    request = ("POST", "/v1/decisions", {"context": CONTEXT, "id": "mine"})
    answers = local.ask_at_once(*[request] * 20)
    assert {status for status, _ in answers} == {200}
    assert len({json.dumps(answer) for _, answer in answers}) == 1
    assert local.service.agents["agent"].agent.n_pending_ == 1


def test_callers_at_once_share_syncs(local, monkeypatch):
    commits = local.service.journal._commits
    write, before = commits._write, local.service.journal.n_syncs

    def slow(drafts):  # as a disk is, however busy the machine: the others come meanwhile
        end = time.monotonic() + 20.0
        while commits.n_syncs == before and len(drafts) + len(commits._queue) < 200:
            assert time.monotonic() < end
            time.sleep(0.001)
        return write(drafts)

    monkeypatch.setattr(commits, "_write", slow)
    requests = [("POST", "/v1/decisions", {"context": {"age": i}}) for i in range(200)]
    answers = local.ask_at_once(*requests)
    assert len({answer["id"] for _, answer in answers}) == 200
    assert local.service.journal.n_syncs - before <= 2


def test_what_was_served_can_be_derived_again(local, tmp_path):
    local.ask("PUT", "/v1/agents/other", {"actions": ["x", "y"], "explorer": "epsilon-greedy"})
    for start in range(0, 60, 20):
        requests = [
            ("POST", f"/v1/agents/{name}/decisions", {"context": {"age": i}})
            for i in range(start, start + 20)
            for name in ("agent", "other")
        ]
        answers = local.ask_at_once(*requests)
        rewards = [
            ("POST", path.replace("decisions", f"decisions/{answer['id']}/reward"), {"reward": 1})
            for (_, path, _), (_, answer) in zip(requests, answers, strict=True)
        ]
        assert {status for status, _ in local.ask_at_once(*rewards)} == {200}
    for name in ("agent", "other"):
        found = audit(reading(tmp_path / "data", name))
        assert (found.n_decisions, found.difference) == (60, None)
        assert found.fingerprint == local.service.agents[name].agent.fingerprint


def test_an_agent_in_one_process_writes_the_same_events_as_the_service(local, tmp_path):
    alone = Agent(ACTIONS, "epsilon-greedy", journal=tmp_path / "alone")
    for i in range(40):
        context, id, value = {"x": i % 5, "who": "ab"[i % 2]}, f"id-{i}", float(i % 3 == 0)
        made = alone.act(context, id=id)
        answered = local.ask("POST", "/v1/decisions", {"context": context, "id": id})[1]
        assert (answered["action"], answered["probability"]) == (made.action, made.probability)
        if i == 20:
            alone.add_actions(["new"])
            local.ask("POST", "/v1/actions", {"add": ["new"]})
        if i % 4:
            alone.learn(made, value)
            local.ask("POST", f"/v1/decisions/{id}/reward", {"reward": value})
    late = {f"id-{i}": 0.5 for i in range(0, 40, 4)}  # with none that waits, no clock is compared
    alone.learn_many(list(late), list(late.values()))
    rewards = [{"id": id, "reward": value} for id, value in late.items()]
    assert local.ask("POST", "/v1/rewards", {"rewards": rewards})[0] == 200
    served = local.service.agents["agent"]
    assert served.agent.fingerprint == alone.fingerprint
    alone.close()
    mine, its = (
        [(event.kind, event.id, event.body) for event in journal.events()]
        for journal in (reading(tmp_path / "alone"), served.keeper.journal)
    )
    assert mine == its
    assert len(mine) == 1 + 40 + 40 + 1


def test_many_contexts_are_decided_in_one_request(local):
    body = {"contexts": [{"age": 1}, {"age": 2}], "ids": ["x", "y"]}
    status, first = local.ask("POST", "/v1/decisions", body)
    assert status == 200
    assert [one["id"] for one in first["decisions"]] == ["x", "y"]
    assert local.ask("POST", "/v1/decisions", body) == (200, first)
    more = {"contexts": [{"age": 2}, {"age": 3}], "ids": ["y", "z"]}
    status, second = local.ask("POST", "/v1/decisions", more)
    assert (status, second["decisions"][0]) == (200, first["decisions"][1])
    assert local.service.agents["agent"].agent.n_pending_ == 3
    changed = {"contexts": [{"age": 1}, {"age": 9}], "ids": ["x", "y"]}
    assert local.ask("POST", "/v1/decisions", changed)[0] == 409


def test_many_rewards_are_learned_as_a_whole_or_not_at_all(local):
    ids = [decide(local)["id"] for _ in range(3)]
    rewards = [{"id": id, "reward": 1} for id in ids]
    status, answer = local.ask("POST", "/v1/rewards", {"rewards": [*rewards, rewards[0]]})
    assert (status, answer) == (200, {"learned": 3, "repeated": 1})
    fresh = decide(local)["id"]
    for wrong, expected in [
        ({"id": "nobody", "reward": 1}, 404),
        ({"id": ids[0], "reward": 0}, 409),
        ({"id": fresh, "reward": 0}, 409),
        ({"id": fresh, "reward": "1"}, 400),
        ({"id": fresh}, 400),
    ]:
        body = {"rewards": [{"id": fresh, "reward": 1}, wrong]}
        assert local.ask("POST", "/v1/rewards", body)[0] == expected
    assert local.service.agents["agent"].agent.n_learned_ == 3


def test_rewards_of_all_kinds_of_decisions(local):
    id = decide(local)["id"]
    path = f"/v1/decisions/{id}/reward"
    assert local.ask("POST", path, {"reward": 1}) == (200, {"learned": 1, "repeated": 0})
    assert local.ask("POST", path, {"reward": 1.0}) == (200, {"learned": 0, "repeated": 1})
    status, answer = local.ask("POST", path, {"reward": 0})
    assert status == 409
    assert "has the reward 1 already" in answer["error"]
    status, answer = local.ask("POST", "/v1/decisions/nobody/reward", {"reward": 0})
    assert status == 404
    assert "'nobody' is not known" in answer["error"]


def test_a_reward_that_came_long_ago_is_found_in_the_journal(tmp_path):
    local = Local(tmp_path, {"agent": {**QUICK, "max_pending": 2}})
    ids = [decide(local)["id"]]
    for _ in range(4):
        local.ask("POST", f"/v1/decisions/{ids[-1]}/reward", {"reward": 1})
        ids.append(decide(local)["id"])
    path = f"/v1/decisions/{ids[0]}/reward"
    assert local.ask("POST", path, {"reward": 1}) == (200, {"learned": 0, "repeated": 1})
    assert local.ask("POST", path, {"reward": 0})[0] == 409
    local.close()


def test_decisions_whose_time_is_over_are_given_up_without_being_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("melee.serve.service.EVERY", 0.01)
    local = Local(tmp_path, {"agent": {**QUICK, "timeout": 0.02}})
    id = decide(local)["id"]
    time.sleep(0.05)
    for _ in range(50):
        local.ask("GET", "/health")
        local.runner.run(_sleep())
        if local.service.agents["agent"].agent.n_pending_ == 0:
            break
    assert local.service.agents["agent"].agent.n_pending_ == 0
    status, answer = local.ask("POST", f"/v1/decisions/{id}/reward", {"reward": 1})
    assert status == 410
    assert "was given up before its reward came" in answer["error"]
    local.close()


def test_a_decision_that_was_given_up_says_so_and_what_was_learned(tmp_path):
    late = {**QUICK, "timeout": 3600.0}
    assumed = {**late, "default_reward": 0.25, "max_pending": 2}
    local = Local(tmp_path, {"agent": assumed, "plain": late})
    ids = [decide(local)["id"], decide(local)["id"]]
    plain = local.ask("POST", "/v1/agents/plain/decisions", {"context": CONTEXT})[1]["id"]
    local.ask("POST", f"/v1/decisions/{ids[1]}/reward", {"reward": 1})

    def outcome(path):
        past = local.ask("GET", path)[1]
        return past["waits"], past["given_up"], past["reward"]

    assert outcome(f"/v1/decisions/{ids[0]}") == (True, False, None)
    assert outcome(f"/v1/decisions/{ids[1]}") == (False, False, 1.0)
    for served in local.service.agents.values():
        assert served.agent.give_up(now=time.time() + 4000.0) == 1
    assert outcome(f"/v1/decisions/{ids[0]}") == (False, True, 0.25)
    assert outcome(f"/v1/agents/plain/decisions/{plain}") == (False, True, None)
    for _ in range(5):  # more than it remembers: the journal does
        later = decide(local)["id"]
        local.ask("POST", f"/v1/decisions/{later}/reward", {"reward": 1})
    assert ids[0] not in local.service.agents["agent"].agent._pending.done
    assert outcome(f"/v1/decisions/{ids[0]}") == (False, True, 0.25)
    local.close()


async def _sleep():
    import asyncio

    await asyncio.sleep(0.02)


def test_a_past_decision_is_explained_as_it_was(local):
    first = decide(local, explain=True)
    for i in range(30):
        made = decide(local)
        local.ask("POST", f"/v1/decisions/{made['id']}/reward", {"reward": i % 2})
    last = decide(local, explain=True)
    assert last["explanation"]["actions"][0]["prediction"] is not None
    status, past = local.ask("GET", f"/v1/decisions/{last['id']}/explanation")
    assert status == 200
    assert past["context"] == {"age": 31.0, "device": "phone"}
    assert past["waits"] is True
    for then, now in zip(
        past["explanation"]["actions"], last["explanation"]["actions"], strict=True
    ):
        assert then == pytest.approx(now) if isinstance(then, float) else then == now
    status, early = local.ask("GET", f"/v1/decisions/{first['id']}")
    assert (status, early["reward"], early["probabilities"]) == (200, None, first["probabilities"])
    assert local.ask("GET", "/v1/decisions/nobody")[0] == 404


def test_agents_are_made_once_and_kept_apart(local, tmp_path):
    body = {"actions": ["x", "y"], "explorer": "epsilon-greedy", "seed": 3}
    assert local.ask("PUT", "/v1/agents/mail", body)[0] == 201
    assert local.ask("PUT", "/v1/agents/mail", body)[0] == 200
    assert local.ask("PUT", "/v1/agents/mail", {**body, "seed": 4})[0] == 409
    status, made = local.ask("POST", "/v1/agents/mail/decisions", {"context": CONTEXT})
    assert status == 200
    assert made["action"] in ("x", "y")
    assert local.ask("POST", f"/v1/decisions/{made['id']}/reward", {"reward": 1})[0] == 404
    path = f"/v1/agents/mail/decisions/{made['id']}/reward"
    assert local.ask("POST", path, {"reward": 1})[0] == 200
    status, listed = local.ask("GET", "/v1/agents")
    assert [one["agent"] for one in listed["agents"]] == ["agent", "mail"]
    assert local.ask("POST", "/v1/agents/nobody/decisions", {"context": CONTEXT})[0] == 404


def test_agents_go_on_after_a_restart_without_being_named(tmp_path):
    local = Local(tmp_path)
    local.ask("PUT", "/v1/agents/mail", {"actions": [1, 2], "explorer": "epsilon-greedy"})
    made = local.ask("POST", "/v1/agents/mail/decisions", {"context": CONTEXT})[1]
    decide(local, id="before")
    local.close()
    again = Local(tmp_path, {})
    assert list(again.service.agents) == ["agent", "mail"]
    path = f"/v1/agents/mail/decisions/{made['id']}/reward"
    assert again.ask("POST", path, {"reward": 1}) == (200, {"learned": 1, "repeated": 0})
    status = again.ask("GET", "/v1/agents/agent")[1]
    assert status["windows"][-1]["decisions"] == 1
    again.close()
    for name in ("agent", "mail"):
        journal = reading(tmp_path, name)
        assert list(verify(journal)) == []
        assert straight(journal).fingerprint == recover(journal)[0].fingerprint


def test_there_are_no_more_agents_than_allowed(tmp_path):
    local = Local(tmp_path, max_agents=2)
    body = {"actions": [1], "explorer": "uniform"}
    assert local.ask("PUT", "/v1/agents/one", body)[0] == 201
    status, answer = local.ask("PUT", "/v1/agents/two", body)
    assert (status, "2 agents already" in answer["error"]) == (409, True)
    local.close()


@pytest.mark.parametrize(
    "body",
    [
        {"explorer": "cover"},
        {"actions": []},
        {"actions": ["a", "a"]},
        {"actions": ["a"], "explorer": "nothing"},
        {"actions": ["a"], "explorer": 3},
        {"actions": ["a"], "seed": "x"},
        {"actions": ["a"], "journal": "elsewhere"},
        {"actions": ["a"], "log": "/etc/passwd"},
        {"actions": [["a"]]},
        {"actions": "abc"},
        {"actions": ["a"], "floor": 2},
        {"actions": ["a"], "timeout": -1},
        {"actions": ["a"], "max_pending": 0},
    ],
)
def test_agents_that_cannot_be_are_refused(local, body):
    status, answer = local.ask("PUT", "/v1/agents/new", body)
    assert status == 400, answer
    assert list(local.service.agents) == ["agent"]


def test_names_of_agents_that_cannot_be_files_are_refused(local):
    body = {"actions": ["a"], "explorer": "uniform"}
    for name in ("%2e%2e", "a%2fb", "%00", "x" * 300):
        assert local.ask("PUT", f"/v1/agents/{name}", body)[0] == 400


def test_actions_come_and_go_and_repeating_it_is_no_error(local):
    for _ in range(2):
        status, answer = local.ask("POST", "/v1/actions", {"add": ["new"], "remove": ["a"]})
        assert (status, answer) == (200, {"actions": ["b", "c", "new"]})
    assert local.ask("GET", "/v1/actions")[1] == {"actions": ["b", "c", "new"]}
    assert local.ask("POST", "/v1/actions", {"add": ["x"], "remove": ["x"]})[0] == 400


def test_a_snapshot_is_written_when_it_is_asked_for(local, tmp_path):
    decide(local)
    status, answer = local.ask("POST", "/v1/snapshot")
    assert status == 200
    assert [one.head.seq for one in reading(tmp_path / "data").snapshots()] == [answer["event"]]


def test_health_readiness_and_metrics(local):
    made = decide(local)
    local.ask("POST", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
    local.ask("POST", "/v1/decisions", b"{")
    assert local.ask("GET", "/health")[0] == 200
    assert local.ask("GET", "/ready")[1]["ready"] is True
    status, text = local.ask("GET", "/metrics")
    assert status == 200
    lines = text.splitlines()
    assert 'melee_decisions_total{agent="agent"} 1' in lines
    assert 'melee_rewards_sum{agent="agent"} 0.5' in lines
    assert 'melee_http_requests_total{route="/v1/decisions",status="400"} 1' in lines
    assert 'melee_http_request_duration_seconds_count{route="/v1/decisions"} 2' in lines
    named = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    about = {line.split(" ")[2] for line in lines if line.startswith("# HELP")}
    bases = {name.removesuffix("_bucket").removesuffix("_count") for name in named} - {
        "melee_http_request_duration_seconds_sum"
    }
    assert bases == about


class Full:
    """A disk that takes nothing for a while."""

    def __init__(self, store):
        self._append, self._store, self.is_full = store.append, store, True

    def __call__(self, drafts):
        if self.is_full:
            raise DataError("the disk is full; make room on the disk")
        return self._append(drafts)


def test_what_cannot_be_kept_is_not_answered_and_every_agent_goes_on_from_the_disk(local):
    local.ask("PUT", "/v1/agents/other", {"actions": ["x", "y"], "explorer": "epsilon-greedy"})
    known = decide(local, id="known")
    commits = local.service.journal._commits
    disk = Full(local.service.journal.store)
    commits._write = disk
    answers = local.ask_at_once(
        ("POST", "/v1/decisions", {"context": CONTEXT, "id": "lost"}),
        ("POST", "/v1/agents/other/decisions", {"context": CONTEXT, "id": "lost too"}),
        ("POST", "/v1/decisions/known/reward", {"reward": 1}),
    )
    assert [status for status, _ in answers] == [503] * 3
    assert "the disk is full" in answers[0][1]["error"]
    assert local.ask("GET", "/ready")[0] == 503
    assert "could not be written" in local.ask("GET", "/v1/agents/agent")[1]["alarms"][0]
    disk.is_full = False
    assert decide(local, id="known") == known
    assert local.ask("POST", "/v1/decisions/known/reward", {"reward": 1})[1]["learned"] == 1
    for name, id in (("agent", "lost"), ("other", "lost too")):
        assert local.ask("GET", f"/v1/agents/{name}/decisions/{id}")[0] == 404
        body = {"context": CONTEXT, "id": id}
        assert local.ask("POST", f"/v1/agents/{name}/decisions", body)[0] == 200
        served = local.service.agents[name]
        assert straight(served.keeper.journal).fingerprint == served.agent.fingerprint
    assert local.ask("GET", "/ready")[0] == 200
