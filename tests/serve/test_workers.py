"""Several processes at one address: what holds of one holds of all of them."""

import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from melee.auditing import audit
from melee.client import Client
from melee.errors import DataError, InputError
from melee.journal import Journal
from melee.serve.app import ENDS
from melee.serve.frames import Framed, question, read_question
from melee.serve.keys import Keys
from melee.serve.learner import Desk, Office
from melee.serve.metrics import Requests
from melee.serve.service import Service
from melee.serve.supervisor import Supervisor, check_workers, listen_together
from melee.serve.worker import LOST, DistantLearner, Front
from tests.journals import reading, straight
from tests.serve.crowds import Crowd, children, everybody
from tests.serve.servers import QUICK, Local, Process, running, said_instead_of_serving

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_REUSEPORT") or not Path("/proc/self/task").is_dir(),
    reason="needs Linux: sockets that share an address, and /proc",
)
OPTIONS = ("--actions", "a,b,c", "--explorer", "epsilon-greedy", "--workers", "2")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("workers") / "data", *OPTIONS) as server:
        wait_for(lambda: workers_ready(server) == 2)
        yield server


def ask(server, method, path, body=None):
    """A request over a connection of its own, so that any worker may get it."""
    connection = http.client.HTTPConnection("localhost", server.port, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        raw = answer.read()
        is_json = "json" in answer.getheader("content-type", "")
        return answer.status, json.loads(raw) if is_json else raw.decode()
    finally:
        connection.close()


def workers_ready(server):
    status, text = ask(server, "GET", "/metrics")
    (line,) = [line for line in text.splitlines() if line.startswith("melee_workers ")]
    return int(line.split()[1]) if status == 200 else 0


def wait_for(what, seconds=30.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not come to that"
        time.sleep(0.02)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_there_is_one_learner_and_as_many_workers_as_were_asked_for(server):
    found = children(server.process.pid)
    assert (len(found["learner"]), len(found["worker"])) == (1, 2)


def test_the_same_request_gets_the_same_answer_from_any_worker(server):
    body = {"context": {"device": "phone"}, "id": "mine"}
    first = ask(server, "POST", "/v1/decisions", body)
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda _: ask(server, "POST", "/v1/decisions", body), range(24)))
    assert first[0] == 200
    assert again == [first] * 24
    other = {"context": {"device": "desk"}, "id": "mine"}
    refused = [ask(server, "POST", "/v1/decisions", other) for _ in range(8)]
    assert {status for status, _ in refused} == {409}
    assert "is taken by a decision about another context" in refused[0][1]["error"]


def test_a_reward_is_learned_once_whichever_workers_are_told(server):
    made = [ask(server, "POST", "/v1/decisions", {"context": {"x": i}})[1] for i in range(8)]
    assert len({one["id"] for one in made}) == 8
    for one in made:
        path = f"/v1/decisions/{one['id']}/reward"
        told = [ask(server, "POST", path, {"reward": 1})[1] for _ in range(4)]
        assert [one["learned"] for one in told] == [1, 0, 0, 0]
        assert {ask(server, "POST", path, {"reward": 0})[0] for _ in range(4)} == {409}
    assert ask(server, "POST", "/v1/decisions/unknown/reward", {"reward": 1})[0] == 404


def test_what_a_worker_refuses_by_itself_is_refused_as_in_one_process(server):
    assert ask(server, "GET", "/nothing")[0] == 404
    assert ask(server, "GET", "/v1/decisions")[0] == 405
    assert ask(server, "POST", "/v1/decisions", {"contxt": {}})[0] == 400
    with closing(http.client.HTTPConnection("localhost", server.port, timeout=10)) as connection:
        connection.putrequest("POST", "/v1/decisions")
        connection.putheader("Content-Length", str(2**20 + 1))
        connection.endheaders()  # the body would not be read to its end
        assert connection.getresponse().status == 413
    assert ask(server, "GET", "/health")[1]["healthy"] is True
    assert ask(server, "GET", "/")[1].startswith("<!")
    assert "paths" in ask(server, "GET", "/openapi.json")[1]


def test_metrics_are_those_of_all_workers(server):
    def counted():
        text = ask(server, "GET", "/metrics")[1]
        wanted = 'melee_http_requests_total{route="/v1/actions",status="200"} '
        found = [line for line in text.splitlines() if line.startswith(wanted)]
        return int(found[0].split()[-1]) if found else 0

    before = counted()
    for _ in range(10):
        assert ask(server, "GET", "/v1/actions")[1] == {"actions": ["a", "b", "c"]}
    wait_for(lambda: counted() == before + 10)


def test_agents_made_by_one_worker_are_there_for_all(server):
    made = ask(server, "PUT", "/v1/agents/another", {"actions": [1, 2], "explorer": "uniform"})
    assert made[0] == 201
    for _ in range(6):
        path = "/v1/agents/another/decisions"
        assert ask(server, "POST", path, {"context": [1.0]})[1]["action"] in (1, 2)


def test_killed_workers_and_a_killed_learner_are_started_again_and_nothing_is_lost(tmp_path):
    crowd = Crowd()
    with running(tmp_path / "data", *OPTIONS) as server:

        async def kill():
            for kind in ("worker", "learner", "worker"):
                await asyncio.sleep(0.3)
                one = children(server.process.pid)[kind][0]
                os.kill(one, signal.SIGKILL)
                while len(children(server.process.pid)[kind]) < (1 if kind == "learner" else 2):
                    await asyncio.sleep(0.02)
                while one in children(server.process.pid)[kind]:
                    await asyncio.sleep(0.02)

        asyncio.run(crowd.run([server.url], 10**6, 8, beside=kill()))
        assert server.stop() == 0
    assert crowd.refused == []
    assert len(crowd.rewards) > 50
    crowd.check(tmp_path / "data")


def test_a_learner_that_is_started_again_leaves_trials_as_they_are(tmp_path):
    with running(tmp_path / "data", *OPTIONS, "--try", "uniform=0.5") as server:
        assert ask(server, "PUT", "/v1/trials/uniform", {"share": 0.2})[0] == 200
        (one,) = children(server.process.pid)["learner"]
        os.kill(one, signal.SIGKILL)
        wait_for(lambda: children(server.process.pid)["learner"] not in ([one], []))
        wait_for(lambda: ask(server, "GET", "/ready")[0] == 200)
        status, found = ask(server, "GET", "/v1/trials")
        assert (status, [each["share"] for each in found["trials"]]) == (200, [0.2])
        assert server.stop() == 0


def test_a_clean_stop_and_an_audit_of_what_came_through_several_workers(tmp_path):
    crowd = Crowd()
    with running(tmp_path / "data", *OPTIONS) as server:
        asyncio.run(crowd.run([server.url], 300, 16))
        for one in [server.process.pid, *everybody(server.process.pid)]:
            os.kill(one, signal.SIGINT)  # Ctrl-C reaches them all
        assert server.process.wait(30) == 0
    crowd.check(tmp_path / "data")
    found = audit(reading(tmp_path / "data"))
    assert (found.n_decisions, found.difference) == (300, None)
    assert found.fingerprint == straight(reading(tmp_path / "data")).fingerprint


def test_nobody_is_left_when_the_supervisor_is_killed(tmp_path):
    server = Process(tmp_path / "data", *OPTIONS)
    pids = everybody(server.process.pid)
    assert len(pids) == 3
    server.process.kill()
    server.process.wait(10)
    wait_for(lambda: not any(map(alive, pids)))
    server._finish()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--actions", "a,a", "--workers", "2"], "action 'a' is given twice"),
        (["--actions", "a", "--workers", "0"], "--workers is 0; expected 1 to 64"),
        (
            ["--actions", "a", "--workers", "2", "--journal", "full"],
            "full: a file; give a directory",
        ),
    ],
)
def test_workers_that_cannot_start_say_why_in_a_sentence(tmp_path, options, sentence):
    (tmp_path / "full").write_text("a file")
    assert sentence in said_instead_of_serving(tmp_path, *options)


def test_a_key_is_in_no_list_of_processes_and_is_asked_for_by_all_workers(tmp_path):
    key = "k" * 20
    with running(tmp_path / "data", *OPTIONS, env={"MELEE_KEY": key}) as server:
        with Client(str(server.url), key=key) as client:
            client.act({"x": 1})
        for _ in range(6):
            assert ask(server, "POST", "/v1/decisions", {"context": {"x": 1}})[0] == 401
        for one in everybody(server.process.pid):
            assert key.encode() not in Path(f"/proc/{one}/cmdline").read_bytes()


# -- parts ---------------------------------------------------------------------------------------


def test_frames_are_read_however_they_are_cut():
    class Read(Framed):
        def frame_received(self, frame):
            found.append(read_question(frame))

    chance = random.Random(0)
    sent = [(i + 1, b"POST /" + b"x" * chance.randrange(50), b"b" * i) for i in range(60)]
    stream = b"".join(question(*one) for one in sent)

    async def main():
        reader = Read()
        at = 0
        while at < len(stream):
            size = chance.choice((1, 3, 50, 1000))
            reader.data_received(stream[at : at + size])
            at += size

    found: list[tuple[int, bytes, bytes]] = []
    asyncio.run(main())
    assert found == sent


def test_counts_of_requests_add_up_over_processes():
    one, other = Requests(), Requests()
    for i in range(20):
        (one if i % 3 else other).note("/a", 200 + i % 2, 0.0004 * i)
    alone = Requests()
    for i in range(20):
        alone.note("/a", 200 + i % 2, 0.0004 * i)
    both = one.joined(Requests.from_json(json.loads(json.dumps(other.to_json()))))
    assert both.counts == alone.counts
    assert both.buckets == alone.buckets
    assert both.seconds["/a"] == pytest.approx(alone.seconds["/a"])
    assert Requests().joined().counts == {}


def test_numbers_of_workers_that_cannot_be():
    for wrong in (0, -1, 65):
        with pytest.raises(InputError, match="expected 1 to 64"):
            check_workers(wrong)
    sockets = listen_together("127.0.0.1", 0, 3)
    assert len({one.getsockname() for one in sockets}) == 1
    for one in sockets:
        one.close()


async def until(what):
    async with asyncio.timeout(30.0):
        while not what():
            await asyncio.sleep(0.01)


class Worker(Local):
    """The application of a worker, without a socket of its own."""

    def __init__(self, place):
        self.runner = asyncio.Runner()
        self.learner = DistantLearner(str(place))
        self.app = Front(self.learner, Keys())
        self.runner.run(self.learner.start())

    def close(self):
        self.runner.run(self.learner.stop())
        self.runner.close()


def test_a_worker_without_a_learner_says_503_and_answers_what_it_can_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("melee.serve.worker.PATIENCE", 0.05)
    worker = Worker(tmp_path / "nobody")
    status, answer = worker.ask("POST", "/v1/decisions", {"context": {"x": 1}})
    assert (status, answer["error"]) == (
        503,
        "the learner is not there; nothing was done, send it again",
    )
    assert worker.ask("GET", "/ready")[0] == 503
    assert worker.ask("GET", "/health")[0] == 200
    assert worker.ask("GET", "/nothing")[0] == 404
    worker.close()


def test_what_is_under_way_when_the_time_to_stop_is_over_gets_a_503(tmp_path):
    worker = Worker(tmp_path / "nobody")

    async def main():
        asked = asyncio.create_task(worker._ask("POST", "/v1/decisions", b"{}", (), 1))
        await asyncio.sleep(0.02)
        asked.cancel()
        return await asked

    assert worker.runner.run(main()) == (503, {"error": ENDS})
    worker.close()


def test_requests_of_a_learner_that_ends_get_a_503_and_those_that_come_later_wait(tmp_path):
    class Dying(Desk):
        def frame_received(self, frame):
            self.transport.close()

    place = tmp_path / "data"
    service = Service(Journal(place))
    service.open({"agent": dict(QUICK)})
    worker = Worker(tmp_path / "socket")
    office = Office(service)
    listening = socket.socket(socket.AF_UNIX)  # it stays, as that of a supervisor does
    listening.bind(str(tmp_path / "socket"))
    listening.listen()

    async def serve(kind):
        loop = asyncio.get_running_loop()
        return await loop.create_unix_server(lambda: kind(office), sock=listening.dup())

    dying = worker.runner.run(serve(Dying))
    status, answer = worker.ask("POST", "/v1/decisions", {"context": {"x": 1}})
    assert (status, answer["error"]) == (503, LOST)
    worker.runner.run(until(lambda: worker.learner.is_there))  # it has connected again
    dying.close()
    for one in list(office.desks):
        one.transport.abort()
    worker.runner.run(until(lambda: not worker.learner.is_there))

    async def late():
        asked = asyncio.create_task(
            worker._ask("POST", "/v1/decisions", b'{"context": {"x": 1}}', (), 1)
        )
        await asyncio.sleep(0.1)
        await service.start()
        server = await serve(Desk)
        found = await asked
        again = await worker._ask("GET", "/v1/decisions/nobody", b"", (), 1)
        await worker.learner.stop()
        server.close()
        await service.stop()
        return found, again

    found, again = worker.runner.run(late())
    assert found[0] == 200, found
    assert (again[0], "is not known" in again[1]["error"]) == (404, True)
    worker.runner.close()
    listening.close()


def test_nobody_asks_a_learner_whose_connection_has_just_ended(tmp_path):
    service = Service(Journal(tmp_path / "data"))
    service.open({"agent": dict(QUICK)})
    worker = Worker(tmp_path / "socket")

    async def main():
        loop = asyncio.get_running_loop()
        await service.start()
        office = Office(service)
        server = await loop.create_unix_server(lambda: Desk(office), tmp_path / "socket")
        await until(lambda: worker.learner.is_there)
        line = worker.learner._line
        assert line is not None
        line.transport.abort()
        line.connection_lost(None)  # as the loop calls it, before any task goes on
        assert not worker.learner.is_there
        async with asyncio.timeout(30.0):
            found = await worker._ask("GET", "/v1/actions", b"", (), 1)
        await worker.learner.stop()
        server.close()
        await service.stop()
        return found

    assert worker.runner.run(main()) == (200, {"actions": ["a", "b", "c"]})
    worker.runner.close()


def test_what_cannot_be_started_again_and_again_ends_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr("melee.serve.supervisor.TRIES", 2)
    about = {"agents": {"agent": QUICK}, "journal": str(tmp_path / "data"), "keep": {}}
    supervisor = Supervisor(1, "127.0.0.1", 0, about, log_level="error")
    supervisor.workers[0].module = "melee.serve.nothing"
    said: list[list[str]] = []
    with pytest.raises(DataError, match="worker 1 has ended 2 times as soon as it was started"):
        asyncio.run(supervisor.run(said.append))
    assert said == [["agent"]]
    assert reading(tmp_path / "data").head.seq == 1


# -- long ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_hundred_thousand_pairs_over_four_workers(tmp_path):
    crowd = Crowd()
    with running(tmp_path / "data", *OPTIONS[:4], "--workers", "4") as server:
        asyncio.run(crowd.run([server.url], 100_000, 64))
        assert server.stop() == 0
    assert crowd.refused == []
    assert len(crowd.decisions) == len(crowd.rewards) == 100_000
    crowd.check(tmp_path / "data")


@pytest.mark.long
def test_kills_of_workers_and_of_the_learner_under_load(tmp_path):
    crowd, chance = Crowd(), random.Random(0)
    with running(tmp_path / "data", *OPTIONS[:4], "--workers", "4") as server:

        async def kill():
            for i in range(60):
                await asyncio.sleep(chance.random())
                found = children(server.process.pid)["learner" if i % 2 else "worker"]
                if found:
                    os.kill(chance.choice(found), signal.SIGKILL)
                await asyncio.sleep(2.1)  # that many deaths, one soon after the other, are a defect

        asyncio.run(crowd.run([server.url], 10**9, 32, beside=kill()))
        assert server.stop() == 0
    assert crowd.refused == []
    assert len(crowd.rewards) > 1_000
    crowd.check(tmp_path / "data")


def test_a_supervisor_and_workers_import_no_agents():
    """Each of them would take as long to start as the learner, and at the same time."""
    heavy = ("melee.agent", "melee.explorers", "numba", "melee.trials")
    for module, more in (("melee.serve.supervisor", ("uvicorn",)), ("melee.serve.worker", ())):
        script = (
            f"import sys, {module}\n"
            f"print([name for name in sys.modules if name in {(*heavy, *more)}])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]", module
