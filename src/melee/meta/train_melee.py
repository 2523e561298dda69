"""The training of `melee`: evolution on whole runs, as a resumable job.

CMA-ES (`melee.meta.evolution`) moves all weights of the policy at once, from the rule that it
starts as. Every generation plays fresh tasks, the same ones with all candidates. Every task
counts by its share as it is. Limits, or units of how far candidates are apart on a task, would
damp the noise, and also what counts most: getting stuck loses much on a few tasks.

Policies on the way, averaged over the latest generations, are judged on the same held-out synthetic
tasks over the learner as it is played, which may have more hidden units than in training. The best
of those is returned if it is ahead of the start by two standard errors, task by task, and the start
if none is: of policies that are equally good one is always ahead, and one that is so by luck may be
poor on a few kinds of tasks. The range of its inputs and the guard's budget are measured there too.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from melee import artefact
from melee.arrays import Floats
from melee.benchmark.mapping import Mapper, here
from melee.errors import InputError, whole_number
from melee.explorers.melee import (
    N_SHARED,
    SCHEMA,
    Melee,
    MeleeState,
    Policy,
    load_policy,
    sizes,
)
from melee.learners.adaptive import DEVIATION, TRUST
from melee.meta import checkpoint
from melee.meta.episodes import Family, episode, find_family, play_rows, run, shares, start
from melee.meta.evolution import Evolution
from melee.rng import check_seed, generator, stream

HELD_OUT = 2**40
"""Seeds from here on are for held-out tasks; training uses smaller ones."""
FIRST_STEP = 0.1
"""Of evolution, in weights whose inputs are of order one."""
CHECK_EVERY = 4
"""Generations between two looks at the held-out tasks; policies are averaged over as many."""
CLEARLY = 2.0
"""Standard errors by which a policy has to be ahead of the start to be returned."""
MARGIN = 1.5
"""The guard's budget beside the most that held-out runs have spent, but for the worst 1 %."""
MIN_WIDTH, MIN_BUDGET = 0.5, 0.1
"""Of the range of an input, which are all of order one, and of the guard's budget."""
N_REFERENCE = 32
TRAINED = ("how", "gate", "bold", "careful", "due")
"""The arrays of a policy that training moves."""


@dataclass(frozen=True, kw_only=True)
class MeleeTraining:
    """The setting of a training; the defaults gave the shipped policy.

    Parameters
    ----------
    family
        Where tasks come from: `both`, `lifelike`, `production`, or a function from a seed to a
        Task, as itself or as `package.module:function`.
    policy
        The policy to fine-tune; None starts from the rule.
    hidden
        Hidden units of the learner below the policies that evolution compares.
    n_generations, n_tasks, n_candidates
        Generations, tasks in each, candidates.
    n_validation
        Held-out tasks.
    seed
        Of everything but the held-out tasks, which are the same for all.
    """

    family: str | Family = "both"
    policy: str | None = None
    hidden: int = 24
    n_generations: int = 12
    n_tasks: int = 100
    n_candidates: int = 16
    n_validation: int = 1200
    seed: int = 0

    def __post_init__(self) -> None:
        if callable(self.family):
            name = f"{self.family.__module__}:{getattr(self.family, '__qualname__', '')}"
            object.__setattr__(self, "family", name)
        find_family(str(self.family))
        object.__setattr__(self, "seed", check_seed(self.seed))
        least = {
            "hidden": 0,
            "n_generations": 0,
            "n_tasks": 1,
            "n_validation": 1,
            "n_candidates": 4,
        }
        for name, low in least.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), low))
        if self.n_candidates % 2:
            raise InputError(f"n_candidates is {self.n_candidates}; expected an even number: pairs")

    @property
    def explorer(self) -> Melee:
        """The explorer that plays the episodes."""
        return Melee(hidden=self.hidden, guard=False)

    def task_seeds(self, generation: int) -> range:
        """The seeds of a generation's tasks."""
        first = int(generator(self.seed, "tasks").integers(2**38)) * 2 + generation * self.n_tasks
        return range(first, first + self.n_tasks)

    def as_dict(self) -> dict[str, Any]:
        """The setting."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, Any]:
        """The setting for a manifest or a checkpoint, with what it starts from."""
        if self.policy is None:
            return self.as_dict()
        return self.as_dict() | {"policy_sha256": load_policy(self.policy).sha256}


def pack(policy: Policy) -> Floats:
    """The weights that training moves, in one vector; trust by its logarithm."""
    weights = np.concatenate([getattr(policy, name) for name in TRAINED])
    weights[TRUST] = np.log(weights[TRUST])
    return np.asarray(weights)


def unpack(weights: Floats) -> Policy:
    """The policy of a vector, for inputs of any size."""
    rule, values = Policy.rule(), weights.copy()
    values[TRUST] = np.exp(np.clip(values[TRUST], -8.0, 4.0))
    ends = np.cumsum([len(getattr(rule, name)) for name in TRAINED])[:-1]
    return rule._replace(**dict(zip(TRAINED, np.split(values, ends), strict=True)))


@dataclass(frozen=True, eq=False)
class Judged:
    """A policy on the way and its shares on the held-out tasks."""

    generation: int
    weights: Floats
    shares: Floats

    @property
    def validation(self) -> float:
        """The mean of the shares."""
        return float(np.mean(self.shares))

    def lead(self, start: "Judged") -> tuple[float, float]:
        """How far it is ahead of another one on the same tasks, and the standard error of that."""
        apart = self.shares - start.shares
        return float(np.mean(apart)), float(np.std(apart) / np.sqrt(len(apart)))


@dataclass(eq=False)
class Progress:
    """How far a training has come: what a checkpoint holds."""

    evolution: Evolution
    judged: list[Judged] = field(default_factory=list)
    means: list[Floats] = field(default_factory=list)

    @property
    def best(self) -> Judged:
        """The policy with the highest validation share if it is clearly ahead, else the start."""
        start = self.judged[0]
        best = max(self.judged, key=lambda judged: (judged.validation, judged.generation))
        lead, error = best.lead(start)
        return best if lead > CLEARLY * error else start

    def as_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "evolution": self.evolution.as_dict(),
            "judged": [
                [judged.generation, judged.weights.tolist(), judged.shares.tolist()]
                for judged in self.judged
            ],
            "means": [mean.tolist() for mean in self.means],
        }

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> "Progress":
        """From a checkpoint."""
        return cls(
            Evolution.from_dict(kept["evolution"]),
            [Judged(n, np.array(weights), np.array(found)) for n, weights, found in kept["judged"]],
            [np.array(mean) for mean in kept["means"]],
        )


def train_melee(
    training: MeleeTraining,
    out: str | Path,
    *,
    on_step: Callable[[Progress], None] | None = None,
    apply: Mapper = here,
) -> Progress:
    """Train a policy into a directory, or go on where an earlier call was interrupted.

    Parameters
    ----------
    training
        The setting.
    out
        Directory of the policy. It holds a checkpoint, and at the end the policy itself, which
        `melee:policy=DIR` plays.
    on_step
        Called after every generation and judgement.
    apply
        Where episodes run: `melee.benchmark.mapping.mapper` gives engines. The policy is the same
        on all of them.

    Examples
    --------
    >>> import tempfile
    >>> tiny = MeleeTraining(n_generations=1, n_tasks=2, n_candidates=4, n_validation=2, hidden=0)
    >>> len(train_melee(tiny, tempfile.mkdtemp()).judged)
    2
    """
    path = Path(out)
    kept = checkpoint.read(path, training.identity())
    if kept:
        progress = Progress.from_dict(kept)
    else:
        first = load_policy(training.policy).policy if training.policy else Policy.rule()
        progress = Progress(Evolution.start(pack(first), FIRST_STEP))
    if kept and on_step is not None:
        on_step(progress)

    def done() -> None:
        checkpoint.write(path, training.identity(), progress.as_dict())
        if on_step is not None:
            on_step(progress)

    def judge(weights: Floats) -> None:
        found = validation_shares(training, unpack(weights), apply)
        progress.judged.append(Judged(progress.evolution.generation, weights, found))
        done()

    def judge_now() -> None:
        """Where it is time to, and it was not done before an interruption."""
        n = progress.evolution.generation
        if progress.judged and progress.judged[-1].generation == n:
            return
        if n == 0:
            judge(progress.evolution.mean)
        elif n % CHECK_EVERY == 0 or n == training.n_generations:
            judge(np.mean(progress.means[-CHECK_EVERY:], axis=0))

    judge_now()
    while progress.evolution.generation < training.n_generations:
        evolution = progress.evolution
        candidates = evolution.ask(training.n_candidates, training.seed)
        policies = [unpack(candidate) for candidate in candidates]
        seeds = training.task_seeds(evolution.generation)
        jobs = [(training.family, seed, training.explorer, policies) for seed in seeds]
        fit = fitness(np.array(apply(shares, jobs)))
        progress.evolution = evolution.tell(candidates, fit)
        progress.means.append(progress.evolution.mean)
        done()
        judge_now()
    _save(path, training, progress, apply)
    return progress


def fitness(found: Floats) -> Floats:
    """How fit candidates are, from their shares (tasks, candidates).

    >>> fitness(np.array([[0.5, 0.7], [0.2, 0.2]])) > 0
    array([False,  True])
    """
    return np.asarray((found - found.mean(axis=1, keepdims=True)).mean(axis=0))


def validation_shares(training: MeleeTraining, policy: Policy, apply: Mapper = here) -> Floats:
    """Shares of a policy on the held-out tasks, but for the guard as it is played."""
    explorer = Melee(guard=False)
    jobs = [
        (training.family, HELD_OUT + i, explorer, [policy]) for i in range(training.n_validation)
    ]
    return np.concatenate(apply(shares, jobs))


def watch(job: tuple[str, int, Melee, Policy]) -> tuple[Floats, float]:
    """Features met in the episode of that seed, (states, inputs), and the cost of exploring.

    Both at up to 60 moments; the cost is the most that the guard had counted, beside what a budget
    of 1 allows.
    """
    family, seed, explorer, policy = job
    prepared = episode(family, seed, explorer)
    state, own = start(explorer, policy, prepared)
    rng, met, worst = stream(seed, "episode"), [], 0.0
    stops = np.unique(np.geomspace(1, prepared.n_rounds, 60).astype(int)).tolist()
    for first, stop in zip([0, *stops], stops, strict=False):
        play_rows(state, explorer, prepared, first, stop, rng)
        met.append(met_features(own))
        allowed = own.polopt.learner.now[DEVIATION] * np.sqrt(prepared.task.n_actions * stop)
        worst = max(worst, float(own.guard.seen[0] / allowed))
    return np.concatenate(met), worst


def met_features(own: MeleeState) -> Floats:
    """The features of the latest decision, what all actions share in every row."""
    features = own.features.copy()
    features[:, :N_SHARED] = features[0, :N_SHARED]
    return features


def played(job: tuple[str, int, Melee, Policy, float]) -> float:
    """The share of the policy as it is saved, guard included, in the episode of that seed."""
    family, seed, explorer, policy, budget = job
    prepared = episode(family, seed, explorer)
    return run(start(explorer, policy, prepared, budget)[0], explorer, prepared, seed)


def _save(path: Path, training: MeleeTraining, progress: Progress, apply: Mapper) -> None:
    """Write the policy that is returned, with its range and budget as measured on held-out tasks.

    That is done over the learner of `melee` as it is played, not as it was trained.
    """
    best, explorer = progress.best, Melee()
    seeds = [HELD_OUT + i for i in range(training.n_validation)]
    free, found = dataclasses.replace(explorer, guard=False), unpack(best.weights)
    watched = apply(watch, [(training.family, seed, free, found) for seed in seeds])
    features = np.concatenate([met for met, _ in watched])
    low, high = features.min(axis=0), features.max(axis=0)
    # A family whose tasks are all of one size must not make every other size unfamiliar.
    spare = np.maximum(MIN_WIDTH - (high - low), 0.0) / 2.0
    policy = found._replace(low=low - spare, high=high + spare)
    spent = float(np.quantile([worst for _, worst in watched], 0.99))
    budget = max(MARGIN * spent, MIN_BUDGET)
    jobs = [(training.family, seed, explorer, policy, budget) for seed in seeds]
    every = max(len(features) // N_REFERENCE, 1)
    reference = features[::every][:N_REFERENCE]
    artefact.save(
        path,
        kind="melee",
        schema=SCHEMA,
        arrays={**policy._asdict(), "budget": np.array([budget])},
        training=training.identity()
        | {
            "returned": f"generation {best.generation}",
            "validation_share": best.validation,
            "validation_share_as_played": float(np.mean(apply(played, jobs))),
            "validation_lead": list(best.lead(progress.judged[0])),
            "validation_curve": [
                [judged.generation, judged.validation] for judged in progress.judged
            ],
        },
        reference={"features": reference, "scores": sizes(policy, reference)},
    )
