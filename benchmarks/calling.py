"""Callers that cost little, so that a machine which they share with a service shows the service.

    python -m benchmarks.calling URL [--pairs N] [--callers N]

A caller has a connection of its own, asks for a decision, waits for the answer, sends its reward,
waits, and goes on. `melee load-test` does the same with the client that users have, which costs
several times as much. Here requests are written beforehand, under ids of their own, and of answers
only status and length are read; all callers are in one thread. Prints JSON: pairs a second,
CPU microseconds of the callers for each, and how many requests failed.
"""

import argparse
import json
import random
import select
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

END = b"\r\n\r\n"
LENGTH = b"content-length: "


def requests(n_pairs: int, seed: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Decisions and their rewards, as `melee load-test` has them, ready to be sent."""
    chance, name = random.Random(seed), uuid.uuid4().hex
    for i in range(n_pairs):
        decision = post("/v1/decisions", {"context": context(chance), "id": f"{name}-{i}"})
        reward = {"reward": float(chance.random() < 0.3)}
        yield decision, post(f"/v1/decisions/{name}-{i}/reward", reward)


def context(chance: random.Random) -> dict[str, object]:
    """One of a visitor that does not exist."""
    return {
        "age": chance.randrange(18, 90),
        "hour": chance.randrange(24),
        "device": chance.choice(("phone", "desk", "tablet")),
    }


def post(path: str, body: Mapping[str, object]) -> bytes:
    """A request."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def is_whole(answer: bytes) -> bool:
    """Whether all of an answer is there."""
    head = answer.find(END)
    if head < 0:
        return False
    at = answer.find(LENGTH) + len(LENGTH)
    return len(answer) == head + len(END) + int(answer[at : answer.find(b"\r", at)])


def call(url: str, n_pairs: int, n_callers: int) -> dict[str, float]:
    """Pairs a second, CPU microseconds of a pair, and how many failed."""
    parts = urlsplit(url)
    left = iter(list(requests(n_pairs)))
    loop, callers = select.epoll(), {}
    for _ in range(min(n_callers, n_pairs)):
        caller = socket.create_connection((parts.hostname, parts.port), timeout=60)
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop.register(caller, select.EPOLLIN)
        callers[caller.fileno()] = caller
    then: dict[int, bytes | None] = {}
    read = dict.fromkeys(callers, b"")
    failed = done = 0
    began, used = time.perf_counter(), time.process_time()
    for number, caller in callers.items():
        decision, then[number] = next(left)
        caller.sendall(decision)
    while done < n_pairs:
        for number, _ in loop.poll(60.0):
            caller = callers[number]
            piece = caller.recv(65_536)
            if not piece:
                raise SystemExit("the service has closed a connection")
            answer = read[number] + piece
            if not is_whole(answer):
                read[number] = answer
                continue
            read[number] = b""
            failed += answer[9:12] != b"200"
            reward = then[number]
            if reward is not None:
                then[number] = None
                caller.sendall(reward)
                continue
            done += 1
            following = next(left, None)
            if following is not None:
                then[number] = following[1]
                caller.sendall(following[0])
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    loop.close()
    for caller in callers.values():
        caller.close()
    return {"rate": n_pairs / seconds, "cpu": 1e6 * cpu / n_pairs, "failed": failed}


def main() -> None:
    """Call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--callers", type=int, default=64)
    given = parser.parse_args()
    print(json.dumps(call(given.url, given.pairs, given.callers)))


if __name__ == "__main__":
    main()
