"""The training of `melee`: imitation, then evolution on whole runs, as a resumable job.

1. Imitation (`melee.meta.imitation`), some iterations, from the rule of gated-ucb or, to fine-tune,
   from a trained policy. It trains the whole network.
2. Evolution (`melee.meta.evolution`) of the linear weights and the output weights on the mean
   reward of whole runs, fresh tasks in every generation. A task counts by how far candidates are
   apart on it beside their spread, so that tasks of many actions, where luck is large, do not
   drown others.

Each policy on the way may be judged on the same held-out synthetic tasks, and the best of those is
returned. The range of its inputs and the guard's budget are measured there too.
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
from melee.explorers.melee import N_INPUTS, SCHEMA, Melee, Network, exponents, load_policy
from melee.meta import checkpoint
from melee.meta.episodes import (
    Family,
    episode,
    find_family,
    play_rows,
    returns,
    run,
    start,
)
from melee.meta.evolution import Evolution
from melee.meta.imitation import Tried, collect, fit, pack, unpack
from melee.rng import check_seed, generator, stream

HELD_OUT = 2**40
"""Seeds from here on are for held-out tasks; training uses smaller ones."""
FIRST_STEP = 0.15
"""Of evolution, in weights whose inputs are of order one."""
CHECK_EVERY = 5
"""Generations between two looks at the held-out tasks; policies are averaged over twice as many."""
SPREAD_FLOOR = 0.01
"""Differences between candidates below this do not gain from being rare."""
MARGIN = 1.5
"""The guard's budget beside the most that any held-out run has spent."""
MIN_WIDTH, MIN_BUDGET = 0.5, 0.1
"""Of the range of an input, which are all of order one, and of the guard's budget."""
N_REFERENCE = 32


@dataclass(frozen=True, kw_only=True)
class MeleeTraining:
    """The setting of a training; the defaults gave the shipped policy.

    Parameters
    ----------
    family
        Where tasks come from: `lifelike`, or a function from a seed to a Task, as itself or as
        `package.module:function`.
    policy
        The policy to fine-tune; None starts from the rule of gated-ucb.
    n_units, hidden, ridge
        Width of the policy's network; hidden units and penalty of the learner below it.
    n_iterations, n_imitation_tasks, n_states, horizon
        Of imitation: iterations, tasks in each, states of each, rounds that values look ahead.
    n_generations, n_tasks, n_candidates
        Of evolution: generations, tasks in each, candidates.
    n_validation
        Held-out tasks.
    seed
        Of everything but the held-out tasks, which are the same for all.
    """

    family: str | Family = "lifelike"
    policy: str | None = None
    n_units: int = 8
    hidden: int = 24
    ridge: float = 0.2
    n_iterations: int = 2
    n_imitation_tasks: int = 1500
    n_states: int = 16
    horizon: int = 40
    n_generations: int = 40
    n_tasks: int = 300
    n_candidates: int = 14
    n_validation: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        if callable(self.family):
            name = f"{self.family.__module__}:{getattr(self.family, '__qualname__', '')}"
            object.__setattr__(self, "family", name)
        find_family(str(self.family))
        object.__setattr__(self, "seed", check_seed(self.seed))
        least = {
            **dict.fromkeys(("n_units", "hidden", "n_iterations", "horizon", "n_generations"), 0),
            **dict.fromkeys(("n_imitation_tasks", "n_states", "n_tasks", "n_validation"), 1),
            "n_candidates": 4,
        }
        for name, low in least.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), low))
        if self.n_candidates % 2:
            raise InputError(f"n_candidates is {self.n_candidates}; expected an even number: pairs")
        object.__setattr__(self, "ridge", float(self.explorer.ridge))

    @property
    def explorer(self) -> Melee:
        """The explorer that plays the episodes."""
        return Melee(hidden=self.hidden, ridge=self.ridge, rescale=False, guard=False)

    @property
    def n_steps(self) -> int:
        """Iterations and generations."""
        return self.n_iterations + self.n_generations

    def task_seeds(self, stage: str, n: int, size: int) -> range:
        """The seeds of the n-th batch of a stage."""
        first = int(generator(self.seed, "tasks", stage).integers(2**39)) + n * size
        return range(first, first + size)

    def as_dict(self) -> dict[str, Any]:
        """The setting."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, Any]:
        """The setting for a manifest or a checkpoint, with what it starts from."""
        if self.policy is None:
            return self.as_dict()
        return self.as_dict() | {"policy_sha256": load_policy(self.policy).sha256}


@dataclass(frozen=True, eq=False)
class Judged:
    """A policy on the way and its mean reward on the held-out tasks."""

    stage: str
    step: int
    network: Network
    validation: float


@dataclass(eq=False)
class Progress:
    """How far a training has come: what a checkpoint holds."""

    iterations: list[Network] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    evolution: Evolution | None = None
    means: list[Floats] = field(default_factory=list)

    @property
    def n_steps(self) -> int:
        """Iterations and generations done."""
        return len(self.iterations) + (self.evolution.generation if self.evolution else 0)

    @property
    def best(self) -> Judged:
        """The policy with the highest validation return, the latest of equals."""
        return max(self.judged, key=lambda one: (one.validation, one.step))

    def as_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "iterations": [pack(one).tolist() for one in self.iterations],
            "judged": [
                [one.stage, one.step, pack(one.network).tolist(), one.validation]
                for one in self.judged
            ],
            "evolution": self.evolution.as_dict() if self.evolution else None,
            "means": [mean.tolist() for mean in self.means],
        }

    @classmethod
    def from_dict(cls, kept: dict[str, Any], like: Network) -> "Progress":
        """From a checkpoint."""
        return cls(
            [unpack(np.array(one), like) for one in kept["iterations"]],
            [Judged(a, b, unpack(np.array(w), like), v) for a, b, w, v in kept["judged"]],
            Evolution.from_dict(kept["evolution"]) if kept["evolution"] else None,
            [np.array(mean) for mean in kept["means"]],
        )


def first_network(training: MeleeTraining) -> Network:
    """Where training starts."""
    rule = Network.rule(training.n_units)
    if training.policy is not None:
        known = load_policy(training.policy).network
        return known._replace(low=rule.low, high=rule.high)
    inner = 0.5 * generator(training.seed, "network").normal(size=rule.inner.shape)
    return rule._replace(inner=inner)


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
        Called after every iteration, generation and judgement.
    apply
        Where episodes run: `melee.benchmark.mapping.mapper` gives engines. The policy is the same
        on all of them.

    Examples
    --------
    >>> import tempfile
    >>> tiny = MeleeTraining(n_iterations=1, n_imitation_tasks=2, n_generations=1, n_tasks=2,
    ...                      n_candidates=4, n_validation=2, hidden=0)
    >>> len(train_melee(tiny, tempfile.mkdtemp()).judged)
    3
    """
    path = Path(out)
    origin = first_network(training)
    kept = checkpoint.read(path, training.identity())
    progress = Progress.from_dict(kept, origin) if kept else Progress()
    blocks: list[Tried] = []
    if kept and on_step is not None:
        on_step(progress)

    def done() -> None:
        checkpoint.write(path, training.identity(), progress.as_dict())
        if on_step is not None:
            on_step(progress)

    def judge(stage: str, network: Network) -> None:
        value = validation_return(training, network, apply)
        progress.judged.append(Judged(stage, progress.n_steps, network, value))
        done()

    if not progress.judged:
        judge("start", origin)
    for n in range(training.n_iterations):
        # After an interruption the examples of earlier iterations are collected again.
        network = progress.iterations[n - 1] if n else origin
        if len(progress.iterations) < training.n_iterations:
            blocks += apply(collect, _roll_ins(training, n, network))
        if n == len(progress.iterations):
            progress.iterations.append(fit(blocks, network))
        if _judged_steps(progress, "imitation") == n:
            judge("imitation", progress.iterations[n])
    if progress.evolution is None:
        mean = pack(progress.best.network)[: N_INPUTS + len(origin.outer)]
        progress.evolution = Evolution.start(mean, FIRST_STEP)
    base = pack(_before_evolution(progress))
    while progress.evolution.generation < training.n_generations:
        generation = progress.evolution.generation
        candidates = progress.evolution.ask(training.n_candidates, training.seed)
        networks = [_with(base, one, origin) for one in candidates]
        seeds = training.task_seeds("evolution", generation, training.n_tasks)
        jobs = [(training.family, seed, training.explorer, networks) for seed in seeds]
        progress.evolution = progress.evolution.tell(
            candidates, fitness(np.array(apply(returns, jobs)))
        )
        progress.means.append(progress.evolution.mean)
        if (generation + 1) % CHECK_EVERY == 0 or generation + 1 == training.n_generations:
            recent = np.mean(progress.means[-2 * CHECK_EVERY :], axis=0)
            judge("evolution", _with(base, recent, origin))
        else:
            done()
    _save(path, training, progress, apply)
    return progress


def _roll_ins(training: MeleeTraining, n: int, network: Network) -> list[Any]:
    """The jobs of the n-th iteration of imitation."""
    seeds = training.task_seeds("imitation", n, training.n_imitation_tasks)
    setting = (training.explorer, network, training.n_states, training.horizon)
    return [(training.family, seed, *setting) for seed in seeds]


def _judged_steps(progress: Progress, stage: str) -> int:
    return sum(one.stage == stage for one in progress.judged)


def _before_evolution(progress: Progress) -> Network:
    """The policy that evolution started from."""
    earlier = [one for one in progress.judged if one.stage != "evolution"]
    return max(earlier, key=lambda one: (one.validation, one.step)).network


def _with(base: Floats, evolved: Floats, like: Network) -> Network:
    return unpack(np.concatenate([evolved, base[len(evolved) :]]), like)


def fitness(rewards: Floats) -> Floats:
    """How fit candidates are, from their mean rewards (tasks, candidates).

    >>> fitness(np.array([[0.5, 0.7], [0.2, 0.2]])) > 0
    array([False,  True])
    """
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    return np.asarray((centred / (rewards.std(axis=1, keepdims=True) + SPREAD_FLOOR)).mean(axis=0))


def validation_return(training: MeleeTraining, network: Network, apply: Mapper = here) -> float:
    """Mean reward of a policy over the held-out tasks."""
    jobs = [
        (training.family, HELD_OUT + i, training.explorer, [network])
        for i in range(training.n_validation)
    ]
    return float(np.mean(apply(returns, jobs)))


def observe(job: tuple[str, int, Melee, Network]) -> tuple[Floats, float]:
    """Features met in the episode of that seed, (states, inputs), and the cost of exploring.

    Both at up to 60 moments; the cost is the most that the guard had counted, over √(K·t).
    """
    family, seed, explorer, network = job
    prepared = episode(family, seed, explorer)
    state, own = start(explorer, network, prepared)
    rng, met, worst = stream(seed, "episode"), [], 0.0
    stops = np.unique(np.geomspace(1, prepared.n_rounds, 60).astype(int)).tolist()
    for first, stop in zip([0, *stops], stops, strict=False):
        play_rows(state, prepared, first, stop, rng)
        met.append(own.features.copy())
        worst = max(worst, float(own.guard.seen[0] / np.sqrt(prepared.task.n_actions * stop)))
    return np.concatenate(met), worst


def played(job: tuple[str, int, Melee, Network, float]) -> float:
    """Mean reward of the policy as it is saved, guard included, in the episode of that seed."""
    family, seed, explorer, network, budget = job
    prepared = episode(family, seed, explorer)
    return float(run(start(explorer, network, prepared, budget)[0], prepared, seed).mean())


def _save(path: Path, training: MeleeTraining, progress: Progress, apply: Mapper) -> None:
    """Write the best policy, with its range and budget as measured on held-out tasks.

    That is done over the learner of `melee` as it is played, not as it was trained.
    """
    best, explorer = progress.best, Melee(ridge=training.ridge)
    seeds = [HELD_OUT + i for i in range(training.n_validation)]
    free = dataclasses.replace(explorer, guard=False, rescale=False)  # whose features stay put
    watched = apply(observe, [(training.family, seed, free, best.network) for seed in seeds])
    features = np.concatenate([met for met, _ in watched])
    low, high = features.min(axis=0), features.max(axis=0)
    # A family whose tasks are all of one size must not make every other size unfamiliar.
    spare = np.maximum(MIN_WIDTH - (high - low), 0.0) / 2.0
    network = best.network._replace(low=low - spare, high=high + spare)
    budget = max(MARGIN * max(worst for _, worst in watched), MIN_BUDGET)
    jobs = [(training.family, seed, explorer, network, budget) for seed in seeds]
    every = max(len(features) // N_REFERENCE, 1)
    reference = features[::every][:N_REFERENCE]
    artefact.save(
        path,
        kind="melee",
        schema=SCHEMA,
        arrays={**network._asdict(), "budget": np.array([budget])},
        training=training.identity()
        | {
            "returned": f"{best.stage}, step {best.step}",
            "validation_return": best.validation,
            "validation_return_as_played": float(np.mean(apply(played, jobs))),
            "validation_curve": [[one.stage, one.step, one.validation] for one in progress.judged],
        },
        reference={"features": reference, "scores": exponents(network, reference)},
    )
