"""A real server: its life, its kills, its clients."""

import asyncio
import http.client
import json
import random
import re
import threading
import time
from typing import Any, cast

import pytest

from melee.cli.serving import _read_agents
from melee.client import AsyncClient, Client, ServiceError
from melee.client.load import load, percentile
from melee.errors import InputError
from melee.journal import Journal, verify
from melee.serve.service import Service
from tests.journals import reading, straight
from tests.serve.crowds import kept_in
from tests.serve.servers import Process, running, said_instead_of_serving

pytest.importorskip("uvicorn")
OPTIONS = ("--actions", "a,b,c", "--explorer", "epsilon-greedy")
KEY = "k" * 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("served") / "data", *OPTIONS) as server:
        yield server


def test_curl_as_in_the_documentation(server):
    connection = http.client.HTTPConnection("localhost", server.port, timeout=10)
    head = {"Content-Type": "application/x-www-form-urlencoded"}  # as curl -d sends
    connection.request("POST", "/v1/decisions", '{"context": {"device": "phone"}}', head)
    made = json.load(connection.getresponse())
    connection.request("POST", f"/v1/decisions/{made['id']}/reward", '{"reward": 1}', head)
    assert json.load(connection.getresponse()) == {"learned": 1, "repeated": 0}
    connection.close()


def test_a_client_decides_rewards_and_looks_back(server):
    with Client(str(server.url)) as client:
        decision = client.act({"device": "phone"}, actions=["a", "b"])
        assert decision.action in ("a", "b")
        assert decision.actions == ("a", "b")
        assert client.learn(decision, 1.0) is True
        assert client.learn(decision, 1.0) is False
        made = client.act_many([{"device": "phone"}, {"device": "desk"}])
        assert client.learn_many([made[0], made[1].id], [0.0, 1.0]) == 2
        assert client.look_up(decision)["reward"] == 1.0
        past = client.explain(decision)
        assert (past["reward"], past["explanation"]["policy"]) == (1.0, decision.policy)
        assert client.status()["learned"] >= 3
        with pytest.raises(ServiceError, match="has the reward 1 already") as caught:
            client.learn(decision, 0.0)
        assert caught.value.status == 409
        odd = client.act({"device": "x"}, id="a/b c?#é")
        assert client.learn(odd, 0.5)


def test_a_client_makes_agents_and_changes_their_actions(server):
    with (
        Client(str(server.url), agent="by client") as client,
        pytest.raises(ServiceError, match="there is no agent 'by client'"),
    ):
        client.act({"x": 1})
    with Client(str(server.url), agent="by-client") as client:
        for _ in range(2):
            about = client.create([1, ("banner", 3)], explorer="uniform", seed=4)
            assert about["actions"] == [1, {"tuple": ["banner", 3]}]
        assert client.add_actions(["new"]) == [1, ("banner", 3), "new"]
        assert client.remove_actions([1]) == [("banner", 3), "new"]
        assert client.act([1.0, 2.0]).action in (("banner", 3), "new")


def test_an_asynchronous_client_asks_many_things_at_once(server):
    async def main():
        async with AsyncClient(str(server.url), connections=8) as client:
            made = await asyncio.gather(*(client.act({"x": i}) for i in range(100)))
            assert len({one.id for one in made}) == 100
            learned = await asyncio.gather(*(client.learn(one, 1.0) for one in made))
            assert all(learned)
            assert len(client._idle) <= 8

    asyncio.run(main())


def test_load_counts_pairs_and_tells_percentiles(server):
    async def main():
        async with AsyncClient(str(server.url), connections=16) as client:
            return await load(client, n_callers=16, n_pairs=200)

    found = asyncio.run(main())
    assert (found.n_pairs, found.n_failed, len(found.decisions)) == (200, 0, 200)
    assert found.lines()[0].startswith("200 decisions and rewards in ")
    assert "p99 " in found.lines()[1]
    assert percentile([float(i) for i in range(100)], 0.9) == 90.0


def test_callers_in_many_threads_get_ids_of_their_own(server):
    ids: list[str] = []

    def work():
        with Client(str(server.url)) as client:
            for i in range(30):
                decision = client.act({"x": i}, id=None)
                assert client.learn(decision, float(i % 2))
                ids.append(decision.id)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(ids)) == 240


class Lossy(Client):
    """A client whose network loses answers that the service has given."""

    def __init__(self, url, rng):
        super().__init__(url, attempts=50)
        self.rng = rng
        self.lost = 0

    def _send(self, call):
        status, content = super()._send(call)
        if self.rng.random() < 0.4:
            self.lost += 1
            raise ConnectionResetError("the answer got lost")
        return status, content


def test_answers_that_got_lost_are_asked_for_again_and_nothing_is_done_twice(tmp_path, monkeypatch):
    monkeypatch.setattr("melee.client.blocking.pause", lambda attempt: 0.0)
    with running(tmp_path / "data", *OPTIONS) as server:
        with Lossy(str(server.url), random.Random(0)) as client:
            for i in range(60):
                client.learn(client.act({"x": i}), float(i % 2))
            assert client.lost > 30
        assert server.stop() == 0
    journal = reading(tmp_path / "data")
    kinds = [event.kind for event in journal.events()]
    assert (kinds.count("decision"), kinds.count("reward")) == (60, 60)


def test_a_client_says_when_nobody_is_there():
    with (
        Client("http://127.0.0.1:1", attempts=1) as client,
        pytest.raises(
            ServiceError, match=r"cannot be reached .*; check the address, and that it runs"
        ),
    ):
        client.act({"x": 1})
    wrong: list[Any] = ["localhost:8642", "ftp://localhost", "http://", 3]
    for url in wrong:
        with pytest.raises(InputError, match="expected one such as http://localhost:8642"):
            Client(url)
    with pytest.raises(InputError, match="cannot be written as JSON"):
        Client().act({"x": float("nan")})
    with pytest.raises(InputError, match="there are 2 decisions and 1 rewards; expected one for"):
        Client().learn_many(["a", "b"], [1.0])
    with pytest.raises(InputError, match="id is 3; expected the text of a decision's id"):
        Client().learn_many([cast(str, 3)], [1.0])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_keeps_as_much_as_it_is_told(tmp_path, workers):
    options = ("--actions", "a,b", "--explorer", "uniform", "--keep-mb", "0", "--workers", workers)
    with running(tmp_path / "data", *options) as server:
        with Client(str(server.url)) as client:
            client.act_many([{"x": 1}] * 10_000)  # after so many events it writes a snapshot
        end = time.monotonic() + 30.0
        while reading(tmp_path / "data").start.seq < 10_001:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert server.stop() == 0


def test_a_clean_stop_answers_syncs_and_writes_a_snapshot(tmp_path):
    with running(tmp_path / "data", *OPTIONS) as server:
        with Client(str(server.url)) as client:
            for i in range(20):
                client.learn(client.act({"x": i}), 1.0)
        assert server.stop() == 0
        assert "everything is on disk" in server.said[-1]
    journal = reading(tmp_path / "data")
    assert journal.snapshots()[0].head == journal.head
    assert list(verify(journal)) == []


def test_keys_of_the_environment_and_of_a_file(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(f"decide {'d' * 20}\n")
    env = {"MELEE_KEY": KEY}
    with running(tmp_path / "data", *OPTIONS, "--keys", str(keys), env=env) as server:
        with Client(str(server.url), key="d" * 20) as client:
            client.act({"x": 1})
            with pytest.raises(ServiceError, match="this needs one for admin"):
                client.add_actions(["d"])
        with Client(str(server.url), key=KEY) as client:
            assert client.add_actions(["d"]) == ["a", "b", "c", "d"]
        with Client(str(server.url)) as client, pytest.raises(ServiceError, match="needs a key"):
            client.act({"x": 1})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--actions", "a,b", "--host", "0.0.0.0"], "which others can reach"),
        (["--actions", "a,a"], "action 'a' is given twice"),
        (["--actions", "a", "--explorer", "nothing"], "unknown explorer 'nothing'"),
        (["--agents", "missing.json"], "missing.json: cannot be read"),
        (["--log-level", "loud"], "expected debug, info, warning or error"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_a_sentence(tmp_path, options, sentence):
    assert sentence in said_instead_of_serving(tmp_path, *options)


LABELS = '{"actions": ["a", "b"], '


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        (b"\xff{}", "byte 0 is not UTF-8 text"),
        ("[1, 2]", "it holds [1, 2]; expected an object of agents by name"),
        ("NaN", "it holds NaN, which is not JSON"),
        ('{"a": {"seed": 1}, "a": {"seed": 2}}', "the name 'a' appears twice"),
        ("[" * 5000, "nested"),
        ('{"a b": {}}', "agent 'a b': the agent's name is 'a b'; expected up to 64 letters"),
        ('{"": {}}', "agent '': the agent's name is ''"),
        (
            '{"mail": ["x", "y"]}',
            "agent 'mail': ['x', 'y'] is no object; expected one with actions",
        ),
        ('{"mail": null}', "agent 'mail': None is no object"),
        ('{"mail": {"action": ["x"]}}', "the name 'action' is not known here; known: actions"),
        ('{"mail": {"log": "/etc/passwd"}}', "the name 'log' is not known here"),
        (
            '{"mail": {"actions": null}}',
            "actions is null; expected a list of labels, or no actions",
        ),
        ('{"mail": {"actions": "x,y"}}', "actions is 'x,y'; expected a list"),
        ('{"mail": {"actions": {"x": 1}}}', "actions is {'x': 1}; expected a list"),
        ('{"mail": {"actions": [["x"], "y"]}}', "['x'] is not the label of an action"),
        (f'{{"mail": {LABELS} "explorer": null}}}}', "explorer is None; expected its SPEC"),
        (f'{{"mail": {LABELS} "explorer": 5}}}}', "explorer is 5; expected its SPEC"),
    ],
)
def test_what_is_wrong_with_a_file_of_agents_is_said_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "agents.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match="^" + re.escape(str(path))) as found:
        _read_agents(path)
    assert sentence in str(found.value)


def test_labels_that_are_no_texts_and_agents_without_actions_come_from_a_file_too(tmp_path):
    path = tmp_path / "agents.json"
    path.write_text('{"a": {"actions": [1, {"tuple": ["x", 2]}]}, "b": {"seed": 3}}')
    assert _read_agents(path) == {
        "a": {"actions": [1, ("x", 2)]},
        "b": {"seed": 3, "actions": None},
    }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seed": "x"}, "seed is 'x'; expected a whole number"),
        ({"timeout": [1]}, "timeout is [1]; expected a number of seconds"),
        ({"max_pending": None}, "max_pending is None; expected a whole number"),
        ({"reward_range": 5}, "reward_range is 5; expected the least and the greatest"),
        ({"explorer": "nothing"}, "unknown explorer 'nothing'"),
        ({"actions": []}, "there are no actions; expected at least one"),
    ],
)
def test_parameters_that_an_agent_refuses_are_said_with_its_name(tmp_path, given, sentence):
    service = Service(Journal(tmp_path / "data"))
    with pytest.raises(InputError, match=re.escape(f"agent 'mail': {sentence}")):
        service.open({"mail": {"actions": ["a", "b"], **given}})
    service.journal.close()


def test_agents_come_from_a_file_too_and_one_line_of_json_tells_of_each_event(tmp_path):
    agents = tmp_path / "agents.json"
    agents.write_text('{"mail": {"actions": ["short", "long"], "explorer": "uniform"}}')
    options = ("--agents", str(agents), "--log-level", "debug", "--log-format", "json")
    with running(tmp_path / "data", *options) as server:
        with Client(str(server.url), agent="mail") as client:
            made = client.act({"x": 1})
            client.learn(made, 1.0)
            client.add_actions(["none"])
            client.roll_back(1)
        server.stop()
        lines = [json.loads(line) for line in server.said if line.startswith("{")]
    told = {line["event"]: line for line in lines if "event" in line}
    events = {event.seq: event for event in reading(tmp_path / "data", "mail").events()}
    assert {seq: line["message"] for seq, line in told.items()} == {
        seq: event.kind for seq, event in events.items()
    }
    assert {line["agent"] for line in told.values()} == {"mail"}
    assert (told[2]["id"], told[2]["action"]) == (made.id, made.action)
    assert (told[3]["id"], told[3]["reward"]) == (made.id, 1.0)
    assert (told[4]["change"], told[5]["change"]["to"]) == (events[4].content, 1)


def test_lines_for_people_say_what_happened_too(tmp_path):
    options = ("--actions", "short,long", "--explorer", "uniform", "--log-level", "debug")
    with running(tmp_path / "data", *options) as server:
        with Client(str(server.url)) as client:
            made = client.act({"x": 1}, id="an id\nof two lines")
        server.stop()
        (told,) = [line for line in server.said if "melee.journal: decision" in line]
    assert told.rstrip().endswith(
        f'event=2 agent="agent" id="an id\\nof two lines" action="{made.action}"'
    )


def killed_once(place, rng):
    """Serve callers, kill the server at some moment; what was acknowledged."""
    server = Process(place, *OPTIONS)
    acknowledged: list[tuple[str, str, object]] = []

    def work(number):
        client = Client(str(server.url), attempts=1)
        try:
            for i in range(100_000):
                decision = client.act({"x": i, "who": f"caller {number}"})
                acknowledged.append(("decision", decision.id, decision.action))
                client.learn(decision, i % 8 / 8)
                acknowledged.append(("reward", decision.id, i % 8 / 8))
        except ServiceError:
            client.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    while not acknowledged:
        time.sleep(0.01)
    time.sleep(rng.random() * 0.2)
    server.kill()
    for one in threads:
        one.join()
    return acknowledged


def lives(place, n_kills, seed):
    rng = random.Random(seed)
    acknowledged = []
    for _ in range(n_kills):
        acknowledged += killed_once(place, rng)
    journal = reading(place)
    decisions, rewards = kept_in(journal)
    for kind, id, value in acknowledged:
        known = decisions if kind == "decision" else rewards
        assert known.get(id) == value, f"{kind} {id} was acknowledged, and is lost"
    assert len(acknowledged) > 10 * n_kills
    with running(place, *OPTIONS) as server:
        with Client(str(server.url)) as client:
            assert client.status()["learned"] == len(rewards)
        server.stop()
    journal = reading(place)
    snapshot = journal.snapshots()[0]
    from melee import Agent

    recovered = Agent.from_bytes(journal.read_snapshot(snapshot))
    assert recovered.fingerprint == straight(journal).fingerprint


def test_nothing_acknowledged_over_http_is_lost_in_3_kills(tmp_path):
    lives(tmp_path / "data", 3, seed=1)


@pytest.mark.long
def test_nothing_acknowledged_over_http_is_lost_in_60_kills(tmp_path):
    lives(tmp_path / "data", 60, seed=2)
