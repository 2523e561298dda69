"""An agent's life before its machine code is there: the same decisions and states, to the bit."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import melee
from melee.agent import overdue
from melee.bandit import Bandit
from melee.compiled import programs
from melee.explorers import EXPLORERS
from tests import agent_lives
from tests.agent_lives import ACTIONS, Clock, number_context, reward_of

REFUSED = {"full-information", "melee-paper", "banditron-melee"}
SPECS = [name for name in EXPLORERS if name not in REFUSED | {"tau-first"}]
SPECS += ["tau-first:rounds=30", "epsilon-greedy:learner=ridge:optimizer=dr:hidden=6"]
SPECS += ["bagging:bags=3:steps=adaptive", "softmax:learner=diagonal:optimizer=mtr"]


pytestmark = pytest.mark.skipif(
    programs.mode() == "never", reason="compares with machine code, which is not to be compiled"
)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(overdue, "time", clock)
    return clock


@pytest.fixture
def nothing_compiled(monkeypatch):
    """A process in which nothing is ready yet, and nothing becomes ready unless asked for."""
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    monkeypatch.setenv("MELEE_COMPILE", "never")


def life(spec, clock, rounds=(70, 260, 310)):
    """An agent's fingerprint at some moments, and all its decisions."""
    agent, first = melee.Agent(ACTIONS, spec, seed=5), 0
    ids: list[Any] = []
    decisions, fingerprints = [], []
    for last in rounds:
        decisions += agent_lives.play(agent, clock, first, last, ids)
        fingerprints.append(agent.fingerprint)
        first = last
    return decisions, fingerprints, agent


@pytest.mark.parametrize("spec", SPECS)
def test_the_whole_life_is_the_same_interpreted_and_compiled(spec, clock, monkeypatch):
    compiled = life(spec, clock)
    assert compiled[2].ready
    with monkeypatch.context() as patch:
        patch.setattr(programs, "_PROGRAMS", {})
        patch.setenv("MELEE_COMPILE", "never")
        interpreted = life(spec, clock)
        assert not interpreted[2].ready
    assert interpreted[0] == compiled[0]
    assert interpreted[1] == compiled[1]


@pytest.mark.parametrize(
    "spec", ["melee:cold=true", "linucb:alpha=0.3", "cover:learner=ridge", "cover:policies=1"]
)
def test_a_bandit_is_the_same_interpreted_and_compiled(spec, monkeypatch):
    def choices():
        bandit = Bandit(spec, n_features=3, n_actions=4, seed=2)
        made = []
        for number in range(70):
            x = number_context(number)
            made.append(bandit.act(x))
            bandit.learn(
                x, made[-1].action, reward_of(number, ACTIONS[made[-1].action]), made[-1][1]
            )
        return made, bandit.ready

    compiled, ready = choices()
    assert ready
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    monkeypatch.setenv("MELEE_COMPILE", "never")
    assert choices() == (compiled, False)


@pytest.mark.parametrize("at", [0, 1, 100, 255, 300])
def test_machine_code_may_come_at_any_moment(at, clock, monkeypatch):
    decisions, fingerprints, _ = life("melee", clock, (310,))
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    monkeypatch.setenv("MELEE_COMPILE", "never")
    agent = melee.Agent(ACTIONS, "melee", seed=5)
    ids: list[Any] = []
    early = agent_lives.play(agent, clock, 0, at, ids)
    monkeypatch.setenv("MELEE_COMPILE", "now")
    melee.compile_now(agent)
    assert agent.ready
    late = agent_lives.play(agent, clock, at, 310, ids)
    assert early + late == decisions
    assert [agent.fingerprint] == fingerprints
    assert agent.ready  # growth did not begin the wait again


def test_what_is_compiled_in_the_background_is_used_once_it_is_there(nothing_compiled, monkeypatch):
    monkeypatch.setenv("MELEE_COMPILE", "background")
    release, compile_real = threading.Event(), programs._make_ready

    def compile_later(wanted):
        release.wait(30)
        compile_real(wanted)

    monkeypatch.setattr(programs, "_make_ready", compile_later)
    agent = melee.Agent(["a", "b"], "uniform", seed=1)
    assert agent.act({"x": 1}).action in ("a", "b")
    assert not agent.ready
    release.set()
    began = time.monotonic()
    while not agent.ready and time.monotonic() - began < 60:
        time.sleep(0.01)
    assert agent.ready
    assert agent.act({"x": 1}).action in ("a", "b")


def test_two_agents_of_a_kind_share_their_machine_code(nothing_compiled):
    one, other = (melee.Agent(["a", "b"], "uniform", seed=seed) for seed in (1, 2))
    wider = melee.Agent(list(range(40)), "uniform")
    assert one._programs == other._programs == wider._programs


SHORT = """
import melee, sys
agent = melee.Agent(["a", "b", "c"])
print(agent.act({"x": 1.0}).action in "abc", agent.ready, "numba" in sys.modules)
"""


def test_a_process_may_end_while_it_compiles(tmp_path):
    environment = {**os.environ, "MELEE_CACHE_DIR": str(tmp_path), "MELEE_COMPILE": "background"}
    for wait in ("", "import time; time.sleep(2)\n"):
        done = subprocess.run(
            [sys.executable, "-c", SHORT + wait],
            env=environment, capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("True False")


def test_a_child_goes_on_compiling_what_its_parent_has_begun(tmp_path):
    script = """
import os, time, melee
agent = melee.Agent(["a", "b", "c"], "uniform")
agent.act({"x": 1.0})
child = os.fork()
for _ in range(3000):
    agent.act({"x": 1.0})
    if agent.ready:
        break
    time.sleep(0.01)
if child == 0:
    os._exit(0 if agent.ready else 3)
print(agent.ready, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "MELEE_CACHE_DIR": str(tmp_path), "MELEE_COMPILE": "background"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "0"], done.stderr


@pytest.mark.parametrize("variable", [{"NUMBA_DISABLE_JIT": "1"}, {"MELEE_COMPILE": "never"}])
def test_all_of_it_can_be_interpreted_for_ever(variable):
    script = (
        "import melee; run = melee.simulate(melee.rectangles(60, seed=0), 'melee')\n"
        "print(run.mean_reward > 0.2); agent = melee.Agent(['a', 'b'])\n"
        "melee.compile_now(agent); print(agent.act({'x': 1}).action in 'ab', agent.ready)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variable}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True", "False"], done.stderr
