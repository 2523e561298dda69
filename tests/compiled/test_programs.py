"""When kernels are compiled: at once, in the background, or never."""

import logging
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from melee.compiled import entry, kernel, machine_code, program, programs
from melee.datasets import rectangles
from melee.errors import InputError
from melee.loop import simulate
from melee.preparation import prepare

STEP = 3


@kernel
def step(x, total):
    """Add three times x to the total."""
    total[0] += STEP * x


@kernel
def steps(x, n, total):
    """Add it n times."""
    for _ in range(n):
        step(x, total)


@entry
def steps_from_python(x, n, total):
    """The same, as machine code whenever it is called."""
    steps(x, n, total)


@kernel
def allocates(x):
    """Against the rules."""
    return np.zeros(3)[0] + x


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(programs, "_PROGRAMS", {})


def wait_until(condition):
    began = time.monotonic()
    while not condition() and time.monotonic() - began < 60:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("mode", ["now", "background", "never"])
def test_a_program_runs_at_once_and_is_the_same_later(fresh, monkeypatch, mode):
    monkeypatch.setenv("MELEE_COMPILE", mode)
    total = np.zeros(1)
    found = program(steps, 1.5, 2, total)
    assert found.ready == (mode == "now")
    found.run(1.5, 2, total)
    assert total[0] == 9.0
    if mode == "background":
        assert wait_until(lambda: found.ready)
    found.run(1.5, 1, total)
    assert total[0] == 13.5
    assert program(steps, -7.0, 5, np.ones(4)) is found  # values do not matter, kinds do
    assert program(steps, 1, 2, total) is not found


def test_who_would_interpret_for_long_waits_for_what_is_kept_and_for_nothing_else(
    fresh, monkeypatch, tmp_path
):
    monkeypatch.setenv("MELEE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("MELEE_COMPILE", "background")
    monkeypatch.setattr(programs, "_enqueue", lambda wanted: None)  # nothing goes on there
    given = (1.5, 2, np.zeros(1))
    found = program(steps, *given)
    found.load()
    assert not found.ready
    found.wait()
    assert found.compiled
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    found = program(steps, *given)
    found.load()
    assert (found.ready, found.compiled) == (True, False)


def test_interpreted_kernels_wrap_around_and_divide_as_machine_code_does(fresh, monkeypatch):
    from melee import rng

    monkeypatch.setenv("MELEE_COMPILE", "never")
    word = np.uint64(2**63 + 12345)
    interpreted = program(rng.mix, word).run(word)  # no warning of an overflow
    monkeypatch.setenv("MELEE_COMPILE", "now")
    monkeypatch.setattr(programs, "_PROGRAMS", {})
    assert program(rng.start_round, np.array([word, word]), 7, 1).ready
    assert isinstance(interpreted, np.uint64)


def test_an_entry_runs_as_machine_code(fresh):
    total = np.zeros(1)
    steps_from_python(2.0, 2, total)
    assert total[0] == 12.0
    assert [one.ready for one in programs._PROGRAMS.values()] == [True]


def test_machine_code_that_needs_more_of_numba_has_all_of_it_loaded(fresh, monkeypatch):
    from numba import cloudpickle
    from numba.core import serialize
    from numba.core.registry import cpu_target

    from melee.compiled import codegen

    kinds = (float, int, ("<f8", 1, "C", True))
    needed, parts = cloudpickle.loads(codegen.compile_kernel(steps, kinds, lambda: None)[1])
    asked = []
    monkeypatch.setattr(cpu_target.target_context, "refresh", lambda: asked.append(1))
    for names, times in ((needed, 0), ([*needed, "numba_of_tomorrow"], 1)):
        run = codegen.load_kernel(serialize.dumps((names, parts)))
        total = np.zeros(1)
        run(2.0, 5, total)
        assert total[0] == 30.0
        assert len(asked) == times
    assert "PyErr_SetString" in needed


def test_a_kernel_that_allocates_cannot_be_compiled(fresh):
    with pytest.raises(InputError, match=r"allocates cannot be compiled; .* allocate nothing"):
        machine_code(allocates, 1.0)


def test_what_cannot_be_compiled_stays_interpreted_and_one_line_says_so(fresh, monkeypatch, caplog):
    monkeypatch.setenv("MELEE_COMPILE", "background")
    with caplog.at_level(logging.ERROR):
        found = program(allocates, 1.0)
        assert wait_until(lambda: "stays interpreted, and slow" in caplog.text)
    assert not found.ready
    assert "Traceback" not in caplog.text
    assert program(allocates, 1.0) is found
    with pytest.raises(InputError, match="cannot be compiled"):
        found.wait()
    assert found.run(1.0) == 1.0


def test_when_to_compile_is_one_of_three_words(monkeypatch):
    monkeypatch.setenv("MELEE_COMPILE", "sometimes")
    with pytest.raises(InputError, match="MELEE_COMPILE is 'sometimes'; expected background, now"):
        program(steps, 1.5, 2, np.zeros(1))


def test_the_seconds_of_a_run_do_not_count_compiling(fresh, monkeypatch):
    real = programs._make_ready

    def slowly(wanted):
        time.sleep(1.0)
        real(wanted)

    prepared = prepare(rectangles(60, seed=0))
    monkeypatch.setattr(programs, "_make_ready", slowly)
    before = programs.seconds_waited()
    assert simulate(prepared, "uniform").seconds < 0.5
    assert programs.seconds_waited() - before > 1.0


SERVE = """
import time
from typing import Any, NamedTuple
import numpy as np
from melee.compiled import implements, kernel, program

class Own(NamedTuple):
    total: Any

@kernel
def add(state, x):
    state.total[0] += x

own = Own(np.zeros(1))
begun = program(add, own, 1.0)
time.sleep(0.1)
begun.wait()
begun.run(own, 1.0)
"""


def test_a_module_may_wait_for_its_own_kernels_while_it_is_imported(tmp_path):
    (tmp_path / "serve.py").write_text(SERVE)
    done = subprocess.run(
        [sys.executable, "-c", "import serve; print(serve.own.total[0], serve.begun.ready)"],
        env={**os.environ, "MELEE_COMPILE": "background", "MELEE_CACHE_DIR": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["1.0", "True"]


def test_nobody_makes_way_for_someone_who_waits(fresh, monkeypatch):
    monkeypatch.setattr(programs, "_INTERPRETING", {1})
    began = time.monotonic()
    for _ in range(100):
        programs.check_stop()
    assert time.monotonic() - began < 5.0  # in the thread that waits no step takes a pause
