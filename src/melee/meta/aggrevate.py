"""Algorithm 1 of the paper: MELEE's training, by AggreVaTe.

Each round n rolls the last policy π_{n-1} in on one more synthetic task (or several, which then run
in parallel), values every action in every state on the way, adds the states to the meta-dataset D,
and fits π_n to all of D. D is aggregated over rounds (the paper's text), not reset (its line 2). Of
π_1 … π_N the one with the highest mean reward on held-out synthetic tasks is returned.
"""

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from melee.arrays import Floats
from melee.benchmark.mapping import Mapper, here
from melee.datasets.synthetic import rectangles
from melee.errors import InputError, unknown
from melee.explorers.melee_paper import SCHEMA, MeleePaper, PaperState
from melee.loop import play_rows, problem_of
from melee.meta import learn
from melee.meta.rollouts import KINDS, Examples, roll_in
from melee.preparation import Prepared, prepare
from melee.rng import check_seed, generator, stream

PI_0: Floats = np.array([float(name == "predicted") for name in SCHEMA])
"""Where training starts: play what f predicts."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The setting of a training; the defaults are the paper's.

    Parameters
    ----------
    n_tasks, n_rows, tasks_per_round
        Synthetic tasks, the rows of each, and how many of them a round of AggreVaTe rolls in on.
    mu
        Uniform exploration while rolling in.
    beta
        Probability of the expert's action while rolling in.
    rollout, horizon, every
        Kind of roll-out value; H, and how many rounds lie between recorded states, for `policy`.
    features
        `all`, or `probabilities` for the paper's ablation.
    n_validation, n_validation_rows
        Held-out synthetic tasks by which the returned policy is chosen.
    seed
        Of everything.
    """

    n_tasks: int = 82
    n_rows: int = 3000
    tasks_per_round: int = 1
    mu: float = 0.1
    beta: float = 0.0
    rollout: str = "expert"
    horizon: int = 40
    every: int = 1
    features: str = "all"
    n_validation: int = 20
    n_validation_rows: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.rollout not in KINDS:
            raise unknown("rollout", self.rollout, list(KINDS))
        if self.features not in learn.FEATURE_SETS:
            raise unknown("features", self.features, list(learn.FEATURE_SETS))
        for name in ("mu", "beta"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(f"{name} is {getattr(self, name)}; expected a number in [0, 1]")
        least = {"n_tasks": 1, "n_rows": 31, "tasks_per_round": 1, "horizon": 0, "every": 1}
        least |= {"n_validation": 1, "n_validation_rows": 31}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise InputError(f"{name} is {getattr(self, name)}; expected {low} or larger")

    @property
    def n_rounds(self) -> int:
        """The rounds of AggreVaTe, N."""
        return -(-self.n_tasks // self.tasks_per_round)

    def tasks_of(self, n: int) -> range:
        """The numbers of the tasks of round n, from 0."""
        first = n * self.tasks_per_round
        return range(first, min(first + self.tasks_per_round, self.n_tasks))

    def as_dict(self) -> dict[str, Any]:
        """The setting for a manifest or a checkpoint."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, eq=False)
class TrainingRound:
    """What one round of AggreVaTe ends with: π_n, its setting, and its validation return."""

    weights: Floats
    setting: learn.Setting
    validation: float


def training_task(training: Training, n: int) -> Prepared:
    """The n-th of the tasks S_1 … S_M, in an order of its own, its labelled rows set aside."""
    source = int(generator(training.seed, "tasks").integers(2**31)) + n
    task = rectangles(training.n_rows, seed=source)
    return prepare(task, seed=int(generator(training.seed, "partition", n).integers(2**31)))


@functools.lru_cache(maxsize=2)
def validation_tasks(training: Training) -> list[Prepared]:
    """Held-out tasks of the same family."""
    source = int(generator(training.seed, "validation").integers(2**31))
    return [
        prepare(rectangles(training.n_validation_rows, seed=source + i), seed=source + i)
        for i in range(training.n_validation)
    ]


def start(weights: Floats, prepared: Prepared, mu: float) -> PaperState:
    """A fresh state of the policy with these weights."""
    return MeleePaper(mu=mu).start_with(weights, problem_of(prepared, prepared.n_rounds))


def collect(job: tuple[Training, int, Floats]) -> Examples:
    """Roll a policy in on the task of that number: its examples (lines 2 to 15)."""
    training, n, weights = job
    prepared = training_task(training, n)
    return roll_in(
        start(weights, prepared, training.mu),
        prepared,
        kind=training.rollout,
        beta=training.beta,
        horizon=training.horizon,
        every=training.every,
        seed=training.seed,
        names=(n,),
    )


def validate(job: tuple[Training, int, Floats]) -> float:
    """Mean reward of a policy, without extra exploration, on the held-out task of that number."""
    training, i, weights = job
    prepared = validation_tasks(training)[i]
    state, rng = start(weights, prepared, 0.0), stream(training.seed, "validation", i)
    played = play_rows(state, prepared.scaling, prepared.task, prepared.order, 0, rng)
    return float(played.rewards.mean())


def validation_return(training: Training, weights: Floats, apply: Mapper = here) -> float:
    """Mean reward of a policy over the held-out tasks."""
    jobs = [(training, i, weights) for i in range(training.n_validation)]
    return float(np.mean(apply(validate, jobs)))


def aggrevate(
    training: Training, done: list[TrainingRound] | None = None, apply: Mapper = here
) -> Iterator[TrainingRound]:
    """Train; yields every round's policy as it is found.

    Parameters
    ----------
    training
        The setting.
    done
        The rounds of an earlier, interrupted training with the same setting. Their examples are
        collected again, which is quick and gives the same ones, and training goes on from there.
    apply
        Where roll-ins and validations run; see `melee.benchmark.mapping`.
    """
    rounds = list(done or [])

    def jobs_of(n: int) -> list[tuple[Training, int, Floats]]:
        weights = rounds[n - 1].weights if n else PI_0
        return [(training, task, weights) for task in training.tasks_of(n)]

    blocks = apply(collect, [job for n in range(len(rounds)) for job in jobs_of(n)])
    while len(rounds) < training.n_rounds:
        n = len(rounds)
        blocks += apply(collect, jobs_of(n))
        data = learn.Pairs.of(blocks, training.features)
        # The setting is chosen again whenever D has doubled, and for the last policy.
        again = (n + 1) & n == 0 or n + 1 == training.n_rounds
        setting = learn.choose_setting(data, training.seed) if again else rounds[-1].setting
        weights = learn.fit(data, setting, training.seed)
        rounds.append(TrainingRound(weights, setting, validation_return(training, weights, apply)))
        yield rounds[-1]


def best(rounds: list[TrainingRound]) -> int:
    """The round whose policy is returned: highest validation return, the latest of equals."""
    return max(range(len(rounds)), key=lambda n: (rounds[n].validation, n))
