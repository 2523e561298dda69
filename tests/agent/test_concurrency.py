"""Threads and processes that share an agent."""

import multiprocessing
import os
import select
import signal
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

from melee import Agent, MeleeError
from melee.history import History
from tests.agent_lives import ACTIONS, named_context, small_agent

CONTEXTS = np.random.default_rng(0).normal(size=(64, 3))

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@pytest.fixture(autouse=True)
def _switch_often():
    """Let threads interrupt each other at almost every step."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(*works):
    """Run functions at the same time; the first error of any is raised here."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def rewarded(agent, n_rounds, first, ids, sent):
    """Decide and learn; note ids, and the sum of rewards in 64ths, which floats add exactly."""
    for number in range(n_rounds):
        decision = agent.act(CONTEXTS[(first + number) % 64])
        part = (first + number) * 7 % 65
        assert agent.learn(decision.id, part / 64)
        ids.append(decision.id)
        sent.append(part)


@pytest.mark.parametrize("spec", ["epsilon-greedy", "linucb"])
def test_two_threads_lose_no_update_in_a_hundred_thousand_calls(spec):
    agent = Agent(ACTIONS, spec, seed=1)
    ids: list[list[str]] = [[], []]
    sent: list[list[int]] = [[], []]
    n = 12_500 if spec == "linucb" else 25_000
    in_threads(*(lambda i=i: rewarded(agent, n, i * 31, ids[i], sent[i]) for i in (0, 1)))
    assert agent.n_learned_ == 2 * n
    assert agent.n_pending_ == 0
    assert len({*ids[0], *ids[1]}) == 2 * n
    assert sum(plays for _, plays, _ in agent.summary()) == 2 * n
    total = sum(plays * average for _, plays, average in agent.summary())
    assert total == pytest.approx(sum(sent[0] + sent[1]) / 64, rel=1e-12)


def test_one_thread_decides_and_another_learns():
    agent = Agent(ACTIONS, "epsilon-greedy")
    made: list[str] = []

    def decide():
        for number in range(150):
            made.extend(one.id for one in agent.act_many(CONTEXTS))
            made.append(agent.act(CONTEXTS[number % 64], actions=ACTIONS[:2]).id)

    def learn():
        done = 0
        while done < 150 * 65:
            some = made[done : done + 100]
            assert agent.learn_many(some, [0.5] * len(some)) == len(some)
            done += len(some)

    in_threads(decide, learn)
    assert (agent.n_learned_, agent.n_pending_) == (150 * 65, 0)
    assert len(set(made)) == len(made)


def test_two_threads_that_send_the_same_reward_teach_it_once():
    agent = Agent(ACTIONS, "epsilon-greedy")
    ids = [one.id for one in agent.act_many(np.tile(CONTEXTS, (40, 1)))]
    learned: list[bool] = []
    in_threads(*[lambda: learned.extend(agent.learn(id, 0.5) for id in ids)] * 2)
    assert sum(learned) == agent.n_learned_ == len(ids)


def test_actions_come_and_go_while_others_decide_and_learn():
    agent = Agent(ACTIONS, "linucb")
    stop = threading.Event()

    def change():
        try:
            for number in range(60):
                agent.add_actions([f"late {number}"])
                agent.pmf(named_context(number))
                agent.remove_actions([f"late {number}"])
        finally:
            stop.set()

    def use():
        number = 0
        while not stop.is_set():
            decision = agent.act(named_context(number % 300))
            assert sum(decision.pmf.values()) == pytest.approx(1.0)
            agent.learn(decision.id, 0.5)
            number += 1

    in_threads(change, use, use)
    assert agent.actions_ == ACTIONS
    assert agent.n_pending_ == 0


def test_every_file_that_is_saved_while_another_thread_learns_loads(tmp_path):
    agent = small_agent("linucb", named=False)
    stop = threading.Event()
    counts = []

    def learn():
        number = 0
        while not stop.is_set():
            agent.learn(agent.act(CONTEXTS[number % 64]).id, 0.5)
            number += 1

    def save():
        try:
            for number in range(15):
                agent.save(tmp_path / f"agent {number % 3}")
                counts.append(Agent.load(tmp_path / f"agent {number % 3}").n_learned_)
        finally:
            stop.set()

    in_threads(learn, save)
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
    assert len(list(tmp_path.iterdir())) == 3


def test_two_threads_may_save_to_one_path(tmp_path):
    agents = [small_agent("uniform", n_rounds=n) for n in (5, 300)]
    path = tmp_path / "agent"

    def save(agent):
        for _ in range(60):
            agent.save(path)
            assert Agent.load(path).n_learned_ in (5, 300)

    in_threads(*(lambda one=one: save(one) for one in agents))
    assert [one.name for one in tmp_path.iterdir()] == ["agent"]


def test_threads_write_whole_lines_to_the_log(tmp_path):
    agent = Agent(ACTIONS, "uniform", log=tmp_path / "log.jsonl")
    ids: list[list[str]] = [[], []]
    in_threads(*(lambda i=i: rewarded(agent, 300, i, ids[i], []) for i in (0, 1)))
    logged = History.read(tmp_path / "log.jsonl")
    assert sorted(one.id or "" for one in logged) == sorted(ids[0] + ids[1])


# --- forks --------------------------------------------------------------------------------------


def forked(work, timeout=60.0):
    """What a function says in a forked process; a process that hangs is ended."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12: threads are running
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        except BaseException:
            os.write(writing, traceback.format_exc()[-3000:].encode())
        finally:
            os._exit(0)
    os.close(writing)
    said, end = b"", time.monotonic() + timeout
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], max(end - time.monotonic(), 0))
            if not ready:
                os.kill(child, signal.SIGKILL)
                return f"hangs; it said {said!r}"
            part = os.read(reading, 65536)
            if not part:
                return said.decode()
            said += part
    finally:
        os.close(reading)
        os.waitpid(child, 0)


@needs_fork
def test_a_fork_amid_another_threads_work_leaves_both_sides_working():
    agents = [Agent(ACTIONS, "epsilon-greedy"), Agent(ACTIONS, "linucb")]
    stop = threading.Event()
    ids: list[str] = []

    def hammer():
        number = 0
        while not stop.is_set():
            for agent in agents:
                decision = agent.act(CONTEXTS[number % 64])
                agent.learn(decision.id, 0.5)
                ids.append(decision.id)
            number += 1

    def in_child():
        made = []
        for agent in agents:
            before, waiting = agent.n_learned_, agent.n_pending_
            for number in range(20):
                decision = agent.act(CONTEXTS[number])
                assert agent.learn(decision.id, 1.0)
                made.append(decision.id)
            assert agent.n_learned_ == before + 20
            assert agent.n_pending_ == waiting
            agent.to_bytes()
        return " ".join(made)

    def fork():
        try:
            said.extend(forked(in_child).split() for _ in range(8))
        finally:
            stop.set()

    said: list[list[str]] = []
    in_threads(hammer, fork)
    n = len(ids)
    for agent in agents:  # the parent goes on
        agent.learn(agent.act(CONTEXTS[0]).id, 1.0)
    assert agents[0].n_learned_ == n // 2 + 1
    per_agent = [set(ids), *(set(one) for one in said)]
    assert [len(one) for one in said] == [40] * 8, said
    assert len(set.union(*per_agent)) == sum(len(one) for one in per_agent)


@needs_fork
def test_children_of_one_parent_and_their_children_give_ids_of_their_own():
    agent = small_agent("uniform")

    def name():
        return agent.act(named_context(1)).id

    def name_and_that_of_a_child():
        return f"{name()} {forked(name)}"

    names = [name(), forked(name), forked(name), *forked(name_and_that_of_a_child).split(), name()]
    assert len(set(names)) == 6, names


@needs_fork
def test_decisions_of_before_a_fork_can_be_rewarded_on_both_sides():
    agent = small_agent("linucb")
    assert forked(lambda: str(agent.learn("waiting 0", 1.0))) == "True"
    assert agent.learn("waiting 0", 0.5)


def _learn_in_a_worker(agent, number):
    decision = agent.act(named_context(number))
    agent.learn(decision.id, 0.5)
    return decision.id, agent.n_learned_


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_that_fork_can_be_given_an_agent():
    agent = small_agent("linucb")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        waiting = pool.starmap_async(_learn_in_a_worker, [(agent, n) for n in range(6)])
        answers = waiting.get(timeout=60)
    assert [learned for _, learned in answers] == [13] * 6
    assert agent.n_learned_ == 12


@needs_fork
@pytest.mark.skipif(
    sys.gettrace() is not None, reason="what traces lines for coverage hangs in forks among threads"
)
def test_agents_that_appear_while_others_fork_do_no_harm():
    """The list of all agents changes while it is gone through."""
    stop = threading.Event()

    def make():
        while not stop.is_set():
            Agent(ACTIONS, "uniform")

    agent = small_agent("uniform")

    def fork():
        try:
            for _ in range(10):
                assert "-" in forked(lambda: agent.act(named_context(1)).id)
        finally:
            stop.set()

    in_threads(make, make, fork)


def test_an_error_in_one_thread_does_not_hold_up_another():
    agent = small_agent("uniform")

    def wrong():
        for _ in range(200):
            with pytest.raises(MeleeError):
                agent.learn("nobody", 1.0)
            with pytest.raises(MeleeError):
                agent.act(named_context(1), actions=["nobody"])

    in_threads(wrong, wrong, lambda: [agent.act(named_context(n)) for n in range(200)])
    assert agent.n_pending_ == 202
