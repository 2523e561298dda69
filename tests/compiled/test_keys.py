"""What machine code depends on: every edit of a kernel in reach, and nothing else."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from melee.compiled import kernel, machine_code
from melee.compiled.kernels import IMPLEMENTATIONS, KERNELS
from melee.compiled.keys import key_of, kinds_of

ROOT = Path(__file__).parents[2]

KEYS = """
import numpy as np
from melee.agent.model import Model
from melee.compiled.keys import key_of
from melee.explorers import parse
for spec in ("melee", "softmax"):
    model = Model(parse(spec), 0, 0, 1, 2)
    print(*(key_of(one.function, one.kinds, "a processor") for one in model.programs))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, to be edited."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src" / "melee"


def run(package, script, **environment):
    return subprocess.run(
        [sys.executable, "-B", "-c", script],
        env={**os.environ, "PYTHONPATH": str(package.parent), **environment},
        cwd=package.parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def keys(package):
    """The keys of melee's two programs and of softmax's."""
    melee, softmax = run(package, KEYS, MELEE_COMPILE="never").splitlines()
    return melee.split(), softmax.split()


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_keys_change_with_what_can_be_reached_and_with_nothing_else(package):
    melee, softmax = keys(package)
    assert len({*melee, *softmax}) == 4

    edit(package / "explorers" / "softmax.py", "pmf[a] /= total", "pmf[a] = pmf[a] / total")
    changed = keys(package)
    assert changed[0] == melee
    assert changed[1][0] != softmax[0]

    edit(package / "distributions.py", "u -= pmf[a]", "u = u - pmf[a]")  # a callee's callee
    changed = keys(package)
    assert changed[0][0] != melee[0]

    edit(package / "task.py", "LARGEST = 1e100", "LARGEST = 1e99")  # a constant
    again = keys(package)
    assert again[0][0] != changed[0][0]

    edit(package / "errors.py", "class MeleeError", "REMARK = 1\n\n\nclass MeleeError")
    edit(package / "distributions.py", "    best = pmf[0]", "    # A remark.\n    best = pmf[0]")
    assert keys(package) == again


def test_an_edit_of_a_callee_is_noticed_by_whoever_runs_it(package, tmp_path):
    script = (
        "import melee; bandit = melee.Bandit('uniform', n_features=1, n_actions=2)\n"
        "print(bandit.ready, bandit.act([1.0]).probability)"
    )
    place = {"MELEE_CACHE_DIR": str(tmp_path / "kept"), "MELEE_COMPILE": "now"}
    assert run(package, script, **place).strip() == "True 0.5"
    edit(package / "explorers" / "uniform.py", "pmf[:] = state.mass", "pmf[:] = 0.5 * state.mass")
    assert run(package, script, **place).strip() == "True 0.25"


OLD = """
import pathlib, sys
import numpy as np
from melee.compiled import programs
import held
path = pathlib.Path(held.__file__)
if len(sys.argv) > 1:  # edited after it was imported
    path.write_text(path.read_text().replace("1.0", "2.0"))
total = np.zeros(1)
programs.machine_code(held.add, total)(total)
print(total[0], [one.path for one in programs._PROGRAMS.values()] == [None])
"""
HELD = """
from melee.compiled import kernel

@kernel
def add(total):
    total[0] += 1.0
"""


def test_what_was_imported_before_an_edit_is_not_kept_under_the_new_source(tmp_path):
    (tmp_path / "held.py").write_text(HELD)
    (tmp_path / "old.py").write_text(OLD)
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": path, "MELEE_CACHE_DIR": str(tmp_path / "kept")}
    said = [
        subprocess.run(
            [sys.executable, "-B", "old.py", *arguments],
            env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stdout.split()
        for arguments in (["edit"], [])
    ]  # fmt: skip
    assert said == [["1.0", "True"], ["2.0", "False"]]


def made(step):
    @kernel
    def add(total):
        total[0] += step

    return add


def test_kernels_that_were_made_inside_of_functions_have_no_key():
    total = np.zeros(1)
    for step in (1.0, 2.0):
        add = made(step)
        assert key_of(add, kinds_of(total), "a processor") is None
        machine_code(add, total)(total)
    assert total[0] == 3.0


def test_no_kernel_squares_by_a_power():
    """Python's `x ** 2` is not the product that Numba makes of it, in the last bit."""
    powers = [
        one.__qualname__
        for one in [
            *KERNELS.values(),
            *(f for known in IMPLEMENTATIONS.values() for f in known.values()),
        ]
        if one.__module__.startswith("melee.")
        and re.search(r"\*\* \d", inspect.getsource(inspect.unwrap(one)))
    ]
    assert powers == []
