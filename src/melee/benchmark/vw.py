"""VowpalWabbit as an explorer of benchmarks: `vw:OPTIONS`, with its options as it takes them.

It plays what ours play: the same rows in the same order, scaled by the same labelled rows; the
intercept is VW's own. `--cb_explore_adf OPTIONS` is run as `--cb_explore K OPTIONS`, which VW turns
into the same by itself: every action has weights of its own. It says how probable each action is,
the benchmark draws one and tells it the cost. Draws, and VW's own randomness, are keyed by the seed
and the dataset as those of other explorers.

VW takes costs. Rewards are mapped to [0, 1] as for every explorer that needs them there (see
`melee.explorers.ranged`), and u costs 1 - u. Where the options name another range of costs by
`--cb_min_cost` and `--cb_max_cost`, the costs fill that: `--cb_min_cost -1 --cb_max_cost 0` is the
other encoding of the bake-off.

What is easy to get wrong, found by experiment with 9.11.9: features need names that are not
numbers, for else weights of different actions collide; and an example that was parsed without a
label is marked as a test, which `learn` skips in silence, so it has to be unmarked.
"""

import itertools
import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar

import numpy as np

from melee.distributions import sample
from melee.errors import InputError
from melee.explorers import Explorer, Problem
from melee.explorers.ranged import met, placed, set_map_by
from melee.extras import needed
from melee.loop import Run, problem_of
from melee.preparation import Prepared
from melee.rng import generator

NAME = "vw"
ADF = "--cb_explore_adf"
CHUNK = 1024
"""Rows whose text is in memory at a time."""

_TAKEN = {
    "--cb_explore", "--cb", "--cb_adf", "--cbify", "--cbify_ldf", "--cbify_reg", "--cats",
    "--warm_cb", "--explore_eval", "--ccb_explore_adf", "--slates", "--automl",
    "--random_seed", "--quiet", "--passes", "--testonly", "-t", "--data", "-d", "--daemon",
    "--port", "--pid_file", "--cache", "-c", "--cache_file", "-k", "--kill_cache", "--json",
    "--dsjson", "--final_regressor", "-f", "--initial_regressor", "-i", "--predictions", "-p",
    "--raw_predictions", "-r", "--readable_model", "--invert_hash", "--save_resume",
    "--args", "--help", "-h", "--version",
}  # fmt: skip
"""What the benchmark decides itself, and what would read or write files."""

RATES = (0.1, 0.5, 2.0)
"""Learning rates of the grid: VW's default, and less and more."""
ENCODINGS = ("", " --cb_min_cost -1 --cb_max_cost 0")
"""Costs of the grid: 0 and 1 for the best and the worst reward, or -1 and 0."""
GRID = {
    "ε-greedy": [f"--epsilon {e} --cb_type mtr" for e in (0, 0.02, 0.05, 0.1)],
    "Bag": [f"--bag {n} --cb_type mtr" for n in (4, 8, 16)],
    "Bag, greedy": [f"--bag {n} --greedify --cb_type mtr" for n in (4, 8, 16)],
    "Cover": [
        f"--cover {n} --psi {p} --cb_type dr"
        for n, p in itertools.product((4, 8, 16), (0.01, 0.1, 1))
    ],
    "Cover-NU": [
        f"--cover {n} --nounif --psi {p} --cb_type dr"
        for n, p in itertools.product((4, 8, 16), (0.01, 0.1, 1))
    ],
    "RegCB": [f"--regcb --mellowness {m} --cb_type mtr" for m in (0.1, 0.01, 0.001)],
    "RegCB-opt": [f"--regcbopt --mellowness {m} --cb_type mtr" for m in (0.1, 0.01, 0.001)],
    "SquareCB": [f"--squarecb --gamma_scale {g} --cb_type mtr" for g in (10, 100, 1000)],
}
"""The algorithms of the contextual bandit bake-off (Bietti, Agarwal and Langford, 2021) with the
settings that it tried, and SquareCB, which came later."""


@dataclass(frozen=True, kw_only=True)
class Vw(Explorer):
    """VowpalWabbit with these options; for benchmarks alone, as it is no explorer of ours.

    >>> read_options("vw", "--regcb  --mellowness 0.01").spec
    'vw:--cb_explore_adf --regcb --mellowness 0.01'
    """

    name: ClassVar[str] = NAME
    options: str = field(default="")

    @property
    def spec(self) -> str:
        """`vw:` and the options."""
        return f"{NAME}:{self.options}"

    @property
    def short_spec(self) -> str:
        """The same."""
        return self.spec

    @property
    def identity(self) -> str:
        """The options, and the version of VW, whose code is not ours to hash."""
        return f"{self.spec} by VowpalWabbit {version()}"

    def start(self, problem: Problem) -> Any:
        """Nothing that a loop of ours could work on."""
        raise InputError(
            f"{NAME}: VowpalWabbit plays prepared rows in melee bench, and is no explorer of an "
            "agent or a simulation; name one of melee's there"
        )

    def try_out(self) -> None:
        """Refuse options that VW does not take, with its reason."""
        try:
            self._begin(2, 0).finish()
        except RuntimeError as error:
            raise InputError(
                f"explorer '{self.spec}': VowpalWabbit refuses these options ({error}); "
                "vw --help lists what it takes"
            ) from None

    def play(self, prepared: Prepared, *, seed: int = 0) -> Run:
        """Play a prepared task from start to end; the time is VW's and the drawing's."""
        task, n = prepared.task, prepared.n_rounds
        if task.live:
            raise InputError(
                f"task {task.name}: its actions come and go, or its rewards come late, and {NAME} "
                "plays every row with all actions and at once; leave one of the two out"
            )
        rng = generator(seed, NAME, task.number)
        found = self.range_of(problem_of(prepared, n))
        if not found.declared and len(prepared.labelled):
            known = np.ravel(task.rewards[prepared.labelled])
            set_map_by(found, known, len(known))
        low, high = self.costs
        uniforms = rng.random(n).tolist()
        actions, probabilities = np.empty(n, np.int64), np.empty(n)
        form = "| " + " ".join(f"f{i}:%.9g" for i in range(task.n_features))
        rewards = np.empty(n)
        pmf = np.empty(task.n_actions)
        seconds = 0.0
        workspace = self._begin(task.n_actions, int(rng.integers(1, 2**31)))
        try:
            for first in range(0, n, CHUNK):
                rows = prepared.order[first : first + CHUNK]
                # nine digits are exact in float32, in which VW computes
                lines = [form % tuple(x) for x in prepared.inputs(rows)[:, :-1].tolist()]
                earned = task.rewards[rows].tolist()
                began = time.perf_counter()
                for i, (line, row) in enumerate(zip(lines, earned, strict=True), first):
                    example = workspace.parse(line)
                    pmf[:] = workspace.predict(example)
                    action = sample(pmf, uniforms[i])
                    u = placed(found, met(found, row[action]))
                    cost, p = high - u * (high - low), pmf[action]
                    example.set_label_string(f"{action + 1}:{cost:.9g}:{p:.9g}")
                    example.set_test_only(False)
                    workspace.learn(example)
                    workspace.finish_example(example)
                    actions[i], rewards[i], probabilities[i] = action, row[action], p
                seconds += time.perf_counter() - began
        finally:
            workspace.finish()
        return Run(self, prepared, seed, actions, rewards, probabilities, seconds, {})

    @property
    def costs(self) -> tuple[float, float]:
        """The costs of the greatest and of the least reward, by default 0 and 1."""
        words = self.options.replace("=", " ").split()
        given = dict(itertools.pairwise(words))
        return float(given.get("--cb_min_cost", 0.0)), float(given.get("--cb_max_cost", 1.0))

    def _begin(self, n_actions: int, seed: int) -> Any:
        own = self.options.removeprefix(ADF)
        return _workspace()(f"--cb_explore {n_actions}{own} --random_seed {seed} --quiet")


def _workspace() -> Any:
    """VW's class, where it is installed."""
    with needed(f"explorer {NAME}", "vw"):
        from vowpalwabbit import Workspace
    return Workspace


def version() -> str:
    """The version of VW that is installed."""
    _workspace()
    return metadata.version("vowpalwabbit")


def families() -> dict[str, list[str]]:
    """The SPECs of the grid, by the name of their algorithm."""
    return {
        name: [
            f"{NAME}:{ADF} {options} -l {rate:g}{costs}"
            for options, rate, costs in itertools.product(settings, RATES, ENCODINGS)
        ]
        for name, settings in GRID.items()
    }


def grid() -> list[str]:
    """The SPECs that `vw:grid` stands for.

    >>> len(grid())
    222
    """
    return list(itertools.chain(*families().values()))


def read_options(spec: str, options: str) -> Vw:
    """VowpalWabbit with options as they were written, or a refusal; `spec` is what that quotes."""
    words = [word for word in options.split() if word != ADF]
    for before, word in itertools.pairwise(["", *words]):
        if not word.startswith("-") and not before.startswith("-"):
            raise InputError(
                f"explorer '{spec}': '{word}' is neither an option of VowpalWabbit nor the value "
                f"of one; expected options such as vw:{ADF} --regcb, or vw:grid for a list of them"
            )
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name in _TAKEN:
            raise InputError(
                f"explorer '{spec}': {name} is for the benchmark to set, or has VowpalWabbit read "
                f"or write files; leave it out and give the options that go with {ADF}"
            )
    found = Vw(options=" ".join([ADF, *words]))
    try:
        low, high = found.costs
    except ValueError:
        low = high = 0.0
    if not -float("inf") < low < high < float("inf"):
        raise InputError(
            f"explorer '{spec}': --cb_min_cost and --cb_max_cost (0 and 1 where left out) are the "
            "costs of the best and the worst reward; expected two numbers, the first one lower"
        )
    return found
