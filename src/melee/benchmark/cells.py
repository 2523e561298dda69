"""Cells: what is to be run, and the key under which its result is kept.

A cell is dataset × explorer × seed. Its key is a hash of all that decides the result: the
dataset's content (an agent's: its rows too), the explorer's full configuration (a trained policy by
its checksum), the way it is played, the preparation, the seeds, and the code: this package's, and
that of other packages that bring the explorer or its learner; of VowpalWabbit, its version, and the
code of ours that it is played by. Change any of them and the key is
another one, so results of different code, data or parameters can never mix. The driver computes
keys for its plan, and the process that plays a cell computes its key again from what it has.
"""

import dataclasses
import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from melee.benchmark.packages import code_of_others
from melee.benchmark.specs import read
from melee.benchmark.vw import Vw
from melee.benchmark.ways import by_agent, split
from melee.compiled.keys import tree_hash
from melee.preparation import N_LABELLED
from melee.task import Task

A_A_SEED = 1_000_003
"""Added to a seed for the second run of an A/A check: same rows, other exploration."""

_HOME = Path(__file__).parents[1]
_MATTERS = (
    "rng", "compiled", "distributions", "task", "calibration", "policy_optimizers",
    "scaling", "standardizing", "states", "shares", "preparation", "loop", "learners", "explorers",
    "settings",
)  # fmt: skip
"""The modules and packages that decide what a run's rewards are."""

_MATTERS_TO_AGENTS = (
    "agent", "rehearsal", "rows", "contexts", "features", "growth", "labels", "checks",
)  # fmt: skip
"""Those that decide it for an agent, beyond these."""

_MATTERS_TO_VW = (
    "rng", "task", "shares", "scaling", "standardizing", "preparation", "learners/interface",
    "learners/sgd", "learners/linear", "explorers/ranged", "distributions", "benchmark/vw",
)  # fmt: skip
"""Those that decide it for VowpalWabbit, and no others: a new explorer of ours leaves its runs."""


@functools.cache
def code_version() -> str:
    """A hash of the code that matters to results; comments and docstrings do not."""
    return source_hash(*_MATTERS)


@functools.cache
def agent_version() -> str:
    """A hash of the code that matters to the results of agents alone."""
    return source_hash(*_MATTERS_TO_AGENTS)


@functools.cache
def vw_version() -> str:
    """A hash of the code of ours that matters to the results of VowpalWabbit."""
    return source_hash(*_MATTERS_TO_VW)


def source_hash(*names: str) -> str:
    """A hash of what these modules and packages of melee do."""
    digest = hashlib.sha256()
    for name in names:
        folder = _HOME / name
        files = sorted(folder.glob("*.py")) if folder.is_dir() else [_HOME / f"{name}.py"]
        for file in files:
            digest.update(tree_hash(file).encode())
    return digest.hexdigest()[:16]


def content_of(task: Task) -> str:
    """A text that differs whenever what is played does: content, and what is known of rewards."""
    known = task.reward_range
    return task.content_hash if known == (0.0, 1.0) else f"{task.content_hash} {known}"


@dataclass(frozen=True)
class Dataset:
    """A dataset of the plan, as far as the driver knows it; a problem if it cannot be used.

    The hash of its rows, as they were read, is known where agents are to play them; `live` says
    that nobody else can.
    """

    name: str
    family: str
    content_hash: str
    n_rows: int
    n_features: int
    n_actions: int
    problem: str = ""
    rows_hash: str = ""
    live: bool = False

    def label(self, asked: str) -> str:
        """The label by which an explorer is played on this dataset, whatever was asked for."""
        return by_agent(asked) if self.live else asked

    def content(self, as_agent: bool) -> str:
        """What is played, numbers or an agent's rows; the problem where it cannot be read."""
        if not self.content_hash:
            return self.problem
        return f"{self.content_hash} {self.rows_hash}" if as_agent else self.content_hash


@dataclass(frozen=True)
class Cell:
    """One run to make: explorers by their label; replicate 1 is the second run of an A/A check."""

    dataset: str
    explorer: str
    seed: int
    replicate: int
    key: str


def identity(label: str) -> str:
    """A text that differs whenever decisions may; an agent's depend on an agent's code too."""
    spec, as_agent = split(label)
    explorer = read(spec)
    if isinstance(explorer, Vw):
        return f"{explorer.identity} as played by {vw_version()}"
    known = "@".join([explorer.identity, *code_of_others(explorer)])
    return f"{known} as agent {agent_version()}" if as_agent else known


def cell_key(
    content: str, identity: str, seed: int, replicate: int, max_rounds: int | None, code: str
) -> str:
    """The key of a cell: what is played, an explorer's identity, and how it is played."""
    parts = {
        "dataset": content,
        "explorer": identity,
        "n_labelled": N_LABELLED,
        "max_rounds": max_rounds,
        "seed": seed,
        "exploration_seed": exploration_seed(seed, replicate),
        "code": code,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def code_of(label: str, code: str) -> str:
    """The part of a cell's key that is the code's; what VowpalWabbit needs is in its identity."""
    return "" if isinstance(read(split(label)[0]), Vw) else code


def exploration_seed(seed: int, replicate: int) -> int:
    """The seed of the explorer's randomness."""
    return seed + A_A_SEED * replicate


@dataclass(frozen=True)
class Plan:
    """What a benchmark is to run.

    Attributes
    ----------
    suite
        The suite's name or directory, as `load_suite` takes it.
    datasets
        In the suite's order, unusable ones included.
    explorers, identities
        Labels, and what tells their decisions apart: every setting, a trained policy's checksum.
    agents
        The identities of the same explorers as agents, which live datasets are played by.
    seeds, max_rounds, a_a
        The seeds, the most rounds of a run, and whether every cell is run a second time under
        another seed of its exploration.
    code
        The code's version when the plan was made.
    left_out
        Labels that were asked for and cannot be played, with the reason.
    """

    suite: str
    datasets: tuple[Dataset, ...]
    explorers: tuple[str, ...]
    identities: tuple[str, ...]
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    max_rounds: int | None
    a_a: bool
    code: str
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """The cells of every dataset: seed by seed, so that a preparation serves all explorers."""
        return {
            dataset.name: [
                Cell(
                    dataset.name,
                    label,
                    seed,
                    replicate,
                    cell_key(
                        dataset.content(split(dataset.label(label))[1]),
                        agent if dataset.live else identity,
                        seed,
                        replicate,
                        self.max_rounds,
                        code_of(label, self.code),
                    ),
                )
                for seed in self.seeds
                for label, identity, agent in zip(
                    self.explorers, self.identities, self.agents, strict=True
                )
                for replicate in range(2 if self.a_a else 1)
            ]
            for dataset in self.datasets
        }

    def n_rounds(self, dataset: Dataset) -> int:
        """How many rounds a run on this dataset has."""
        left = max(dataset.n_rows - N_LABELLED, 0)
        return left if self.max_rounds is None else min(left, self.max_rounds)

    def as_dict(self) -> dict[str, Any]:
        """The plan for a file."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> "Plan":
        """The plan from a file."""
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in given.items()
        }
        return cls(**values | {"datasets": tuple(Dataset(**known) for known in given["datasets"])})
