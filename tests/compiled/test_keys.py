"""What machine code depends on: every edit of a kernel in reach, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert keys(package)[0] == melee
    assert keys(package)[1][0] != softmax[0]

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
        "import melee; task = melee.rectangles(200, bayes_error=0.0, seed=0)\n"
        "print(set(melee.simulate(task, 'softmax').probabilities.tolist()) == {0.5})"
    )
    place = {"MELEE_CACHE_DIR": str(tmp_path / "kept"), "MELEE_COMPILE": "now"}
    assert run(package, script, **place).strip() == "False"
    edit(package / "explorers" / "softmax.py", "pmf[a] /= total", "pmf[a] = 1.0 / pmf.shape[0]")
    assert run(package, script, **place).strip() == "True"
