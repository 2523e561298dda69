"""Processes that are killed at any moment while threads decide and learn."""

import os
import random
import signal
import threading
import time

import pytest

from melee import Agent
from melee.journal import Journal, verify
from tests.journals import keeper_of, reading, straight

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")

ACTIONS = ["a", "b", "c"]


def serve(place, report, seed):
    """Decide and learn in three threads until killed; report whatever was acknowledged."""
    journal = Journal(place, snapshot_every=40)
    agent = Agent(ACTIONS, "epsilon-greedy", timeout=0.05, default_reward=0.0, journal=journal)
    os.write(report, b"ready\0")

    def work(number):
        rng = random.Random(1000 * seed + number)
        ids = []
        for i in range(100_000):
            keeper_of(agent)._not_before = 0.0
            decision = agent.act({"hour": i % 24, "who": f"thread {number}"})
            os.write(report, f"decision {decision.id} {decision.action}\0".encode())
            ids.append(decision.id)
            if rng.random() < 0.8:
                id = ids.pop(rng.randrange(len(ids)))
                reward = rng.randrange(8) / 8
                try:
                    agent.learn(id, reward)
                except ValueError:  # its time is over
                    continue
                os.write(report, f"reward {id} {reward}\0".encode())

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def killed(place, seed, rng):
    """Run it, kill it, and return what it had acknowledged."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            serve(place, writer, seed)
        finally:
            os._exit(1)
    os.close(writer)
    said = [b""]

    def listen():
        while some := os.read(reader, 1 << 16):
            said[0] += some

    listener = threading.Thread(target=listen)
    listener.start()
    deadline = time.monotonic() + 60
    while b"ready\0" not in said[0] and time.monotonic() < deadline:
        time.sleep(0.002)
    assert b"ready\0" in said[0], "the process did not start"
    time.sleep(rng.random() * 0.06)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    listener.join()
    os.close(reader)
    return [one.decode().split() for one in said[0].split(b"\0")[1:-1]]


def lives(place, n_kills, seed):
    rng = random.Random(seed)
    acknowledged = []
    Agent(ACTIONS, "epsilon-greedy", timeout=0.05, default_reward=0.0).act({"hour": 1})  # compiled
    for number in range(n_kills):
        acknowledged += killed(place, number, rng)
        journal = reading(place)
        if number % 10 == 9:
            assert list(verify(journal)) == []
        journal.close()
    journal = reading(place)
    decisions, rewards = {}, {}
    for event in journal.events():
        if event.kind == "decision":
            assert event.id not in decisions, "an id was given twice"
            decisions[event.id] = event
        elif event.kind == "reward":
            assert event.id not in rewards, "a reward was learned twice"
            rewards[event.id] = event.content["reward"]
    lost = 0
    for kind, id, value in acknowledged:
        if kind == "decision":
            event = decisions.get(id)
            lost += event is None
            if event is not None:
                labels = journal.offer(event.content["offer"]).labels
                assert labels[event.content["action"]] == value
        else:
            given_up = id not in rewards  # repeated after its time was over: the same as assumed
            if given_up:
                assert float(value) == 0.0
            else:
                lost += rewards[id] != float(value)
    assert lost == 0
    assert len(acknowledged) >= n_kills
    again = Agent(ACTIONS, "epsilon-greedy", timeout=0.05, default_reward=0.0, journal=place)
    again.close()
    assert straight(reading(place)).fingerprint == again.fingerprint
    print(f"{n_kills} kills, {len(acknowledged)} acknowledged, 0 lost, 0 twice")


def test_nothing_acknowledged_is_lost_in_60_kills(place):
    lives(place, 60, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(15))
def test_nothing_acknowledged_is_lost_in_900_kills(place, seed):
    lives(place, 60, seed=100 + seed)
