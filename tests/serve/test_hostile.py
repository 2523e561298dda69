"""Requests that nobody should send: each gets a 4xx, and nothing else happens."""

import json
import random
import socket
import time

import pytest

from melee.serve import app
from tests.serve.servers import Local, running

DEEP = b'{"context": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"
BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1e999",
    b'"text"',
    b"\xff\xfe",
    DEEP,
    b"[" * 100_000,
    b"{}",
    b'{"context": {"x": NaN}}',
    b'{"context": {"x": Infinity}}',
    b'{"context": {"x": 1e999}}',
    b'{"context": {"x": -1e999}}',
    b'{"context": {"x": 1}, "context": {"x": 2}}',
    b'{"context": {"x": 1, "x": 2}}',
    b'{"context": {"x": {"y": 1}}}',
    b'{"context": {"x": [1, 2]}}',
    b'{"context": [1, "a"]}',
    b'{"context": [[1]]}',
    b'{"context": []}',
    b'{"context": "text"}',
    b'{"context": null}',
    b'{"context": {"x": 1}, "unknown": 1}',
    b'{"context": {"x": 1}, "id": 7}',
    b'{"context": {"x": 1}, "id": ""}',
    b'{"context": {"x": 1}, "id": "' + b"i" * 300 + b'"}',
    b'{"context": {"x": 1}, "id": "\\ud800"}',
    b'{"context": {"x": 1}, "actions": "a"}',
    b'{"context": {"x": 1}, "actions": []}',
    b'{"context": {"x": 1}, "actions": ["nobody"]}',
    b'{"context": {"x": 1}, "actions": [["a"]]}',
    b'{"context": {"x": 1}, "actions": [{"tuple": [{"tuple": 1}]}]}',
    b'{"context": {"x": 1}, "explain": "yes"}',
    b'{"context": {"x": 1}, "contexts": []}',
    b'{"contexts": {"x": 1}}',
    b'{"contexts": [{"x": 1}, [1]]}',
    b'{"contexts": [{"x": 1}], "ids": ["a", "b"]}',
    b'{"contexts": [{"x": 1}, {"x": 2}], "ids": ["a", "a"]}',
    b'{"contexts": [{"x": 1}], "ids": [{}]}',
    b'{"contexts": [{"x": 1}], "id": "a"}',
    b'{"context": {"x": 1' + b"0" * 5000 + b"}}",
    b'{"context": {"x": "' + b"t" * 20_000 + b'"}}',
    b'{"context": {' + b",".join(b'"%d":1' % i for i in range(20_000)) + b"}}",
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:40]))
def test_bodies_that_make_no_sense_are_refused_with_a_sentence(local, body):
    status, answer = local.ask("POST", "/v1/decisions", body)
    assert status == 400, answer
    assert len(answer["error"]) > 10
    assert "\n" not in answer["error"][:20]
    agent = local.service.agents["agent"].agent
    assert (agent.n_pending_, agent.n_learned_) == (0, 0)


@pytest.mark.parametrize(
    "reward", [b"NaN", b"1e999", b'"1"', b"true", b"null", b"[1]", b"{}", b"-1e101", b"1e200"]
)
def test_rewards_that_are_no_numbers_are_refused(local, reward):
    local.ask("POST", "/v1/decisions", {"context": {"x": 1}, "id": "x"})
    body = b'{"reward": ' + reward + b"}"
    assert local.ask("POST", "/v1/decisions/x/reward", body)[0] == 400
    assert local.service.agents["agent"].agent.n_pending_ == 1


def test_a_body_is_limited_however_it_comes(local):
    large = b'{"context": {"x": "' + b"t" * local.app.most + b'"}}'
    status, answer = local.ask("POST", "/v1/decisions", large, pieces=50)
    assert status == 413
    assert "MELEE_MAX_BODY" in answer["error"]
    announced = [(b"content-length", b"9999999999")]
    assert local.ask("POST", "/v1/decisions", b"{}", announced)[0] == 413
    assert local.ask("POST", "/v1/decisions", b"{}", [(b"content-length", b"-1")])[0] == 413


def test_paths_and_methods_that_do_not_exist_are_refused(local):
    for method, path, expected in [
        ("GET", "/nothing", 404),
        ("GET", "//", 404),
        ("GET", "/v1/decisions", 405),
        ("DELETE", "/v1/agents/agent", 405),
        ("POST", "/health", 405),
        ("GET", "/v1/decisions/%ff", 400),
        ("GET", "/v1/decisions/%00", 404),
        ("GET", "/v1/decisions/%ed%a0%80", 400),
        ("GET", "/v1/agents/../agent", 404),
    ]:
        assert local.ask(method, path)[0] == expected, path


def mutated(rng):
    """A request that was sound before something happened to it."""
    sound = [
        ("POST", "/v1/decisions", {"context": {"x": 1, "who": "me"}, "id": "i", "actions": ["a"]}),
        ("POST", "/v1/decisions", {"contexts": [{"x": 1}, {"x": 2}], "ids": ["k", "l"]}),
        ("POST", "/v1/decisions/i/reward", {"reward": 0.5}),
        ("POST", "/v1/rewards", {"rewards": [{"id": "i", "reward": 1}]}),
        ("PUT", "/v1/agents/other", {"actions": ["a", "b"], "explorer": "uniform"}),
        ("POST", "/v1/actions", {"add": ["z"], "remove": ["q"]}),
        ("GET", "/v1/decisions/i", {}),
        ("POST", "/v1/snapshot", {}),
        ("POST", "/v1/decisions", {"context": {"x": 1}, "chosen": "b", "probability": 0.5}),
        ("POST", "/v1/decisions", {"context": {"x": 1}, "unit": "me"}),
        ("PUT", "/v1/trials/t", {"explorer": "uniform", "share": 0.25}),
        ("POST", "/v1/rollback", {"to": 1, "relearn_after": 2}),
        ("GET", "/v1/trials", {}),
        ("DELETE", "/v1/trials/t", {}),
    ]
    method, path, body = rng.choice(sound)
    raw = bytearray(json.dumps(body).encode())
    odd = [b"NaN", b"1e999", b"\\ud800", b"\x00", b"[[", b"}", b'"', b"\xff", b"-", b"null", b","]
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(raw) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            raw[place:place] = rng.choice(odd)
        elif kind == 1:
            del raw[place : place + rng.randrange(8)]
        else:
            raw[place : place + 1] = bytes([rng.randrange(256)])
    if rng.random() < 0.2:
        path = path[: rng.randrange(1, len(path))] + rng.choice(["", "%", "%zz", "/", "é", "?"])
    if rng.random() < 0.1:
        method = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"])
    return method, path, bytes(raw)


def storm(local, n, seed):
    rng = random.Random(seed)
    found: dict[int, int] = {}
    for _ in range(n):
        method, path, body = mutated(rng)
        status, _ = local.ask(method, path, body)
        found[status] = found.get(status, 0) + 1
        assert status < 500, (method, path, body)
    return found


def test_2000_hostile_requests_get_no_5xx(tmp_path):
    local = Local(tmp_path)
    found = storm(local, 2_000, seed=1)
    assert found[400] > 500
    assert found[200] > 100
    served = local.service.agents["agent"]
    local.close()
    assert served.agent.n_learned_ <= 1


@pytest.mark.long
def test_100000_hostile_requests_get_no_5xx(tmp_path):
    local = Local(tmp_path)
    storm(local, 100_000, seed=2)
    local.close()


def test_raw_bytes_slow_headers_and_endless_ones_do_not_disturb_others(tmp_path):
    pytest.importorskip("uvicorn")
    with running(tmp_path, "--actions", "a,b", "--explorer", "epsilon-greedy") as server:
        rng = random.Random(0)

        def send(raw):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as one:
                one.settimeout(10)
                try:
                    one.sendall(raw)
                    return one.recv(1 << 16)
                except ConnectionError:
                    return b""

        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for one in slow:
            one.sendall(b"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for _ in range(30):
            said = send(bytes(rng.randrange(256) for _ in range(200)) + b"\r\n\r\n")
            assert not said or said.startswith(b"HTTP/1.1 4")
        endless = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20_000))
        said = send(endless)
        assert not said or said.startswith(b"HTTP/1.1 431")
        for n, status in ((65_000, b"200"), (66_000, b"431"), (120_000, b"431")):
            said = send(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + n * b"y" + b"\r\n\r\n")
            assert said.startswith(b"HTTP/1.1 " + status), n
        body = b'{"context": {"x": 1}}'
        head = f"POST /v1/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        began = time.monotonic()
        assert send(head.encode() + b"\r\n" + body).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < 5
        large = b"POST /v1/rewards HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
        assert send(large).startswith(b"HTTP/1.1 413")
        for one in slow:
            one.close()
        assert server.stop() == 0


def test_a_body_that_does_not_come_is_waited_for_only_so_long(local, monkeypatch):
    monkeypatch.setattr(app, "PATIENCE", 0.01)

    async def never():
        import asyncio

        await asyncio.sleep(60)

    async def ask():
        sent = []

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/decisions",
            "headers": [(b"host", b"localhost")],
        }
        await local.app(scope, never, send)
        return sent[0]

    answer = local.runner.run(ask())
    assert answer["status"] == 408
    assert (b"connection", b"close") in answer["headers"]
