"""Algorithm 1 of the paper: MELEE's training, by AggreVaTe.

Each round n draws a synthetic task (or several, which then run in parallel), rolls the last policy
π_{n-1} in on it, values every action in every state on the way, adds the states to the meta-dataset
D, and fits π_n to all of D. π_0 is the expert. D is aggregated over rounds (the paper's text), not
reset (its line 2). Which of π_1 … π_N is returned is for `melee.meta.selection`.
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
"""The policy that plays what f predicts."""
ORDERS = ("sampled", "in-turn")
FIRST = ("expert", "learner")


@dataclass(frozen=True, kw_only=True)
class Training:
    """The setting of a training; the defaults are the paper's.

    Parameters
    ----------
    n_tasks, n_rows, tasks_per_round
        Synthetic tasks, the rows of each, and how many of them a round of AggreVaTe rolls in on:
        there are as many roll-ins as tasks.
    order
        `sampled`: a roll-in's task is drawn from all of them, again and again (line 2); `in-turn`:
        each is used once.
    first
        π_0, which rolls in first: the `expert`, or the `learner` f.
    mu
        Uniform exploration while rolling in.
    beta
        Probability of the expert's action while rolling in.
    rollout, horizon, every
        Kind of roll-out value; H, and how many rounds lie between recorded states, for `policy`.
    features
        `all`, or `probabilities` for the paper's ablation.
    counts
        The actions that the policy counts: those `predicted` by f, or those `played`.
    n_validation, n_final, n_validation_rows
        Held-out synthetic tasks: how many every policy plays, how many those do that are left at
        the end of the selection, and the rows of each.
    seed
        Of everything.
    """

    n_tasks: int = 82
    n_rows: int = 3000
    tasks_per_round: int = 1
    order: str = "sampled"
    first: str = "expert"
    mu: float = 0.1
    beta: float = 0.0
    rollout: str = "expert"
    horizon: int = 40
    every: int = 1
    features: str = "all"
    counts: str = "predicted"
    n_validation: int = 20
    n_final: int = 640
    n_validation_rows: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        choices = {"rollout": KINDS, "order": ORDERS, "first": FIRST}
        choices |= {"features": learn.FEATURE_SETS, "counts": learn.COUNTS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), list(known))
        for name in ("mu", "beta"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(f"{name} is {getattr(self, name)}; expected a number in [0, 1]")
        least = {"n_tasks": 1, "n_rows": 31, "tasks_per_round": 1, "horizon": 0, "every": 1}
        least |= {"n_validation": 1, "n_final": self.n_validation, "n_validation_rows": 31}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise InputError(f"{name} is {getattr(self, name)}; expected {low} or larger")

    @property
    def n_rounds(self) -> int:
        """The rounds of AggreVaTe, N."""
        return -(-self.n_tasks // self.tasks_per_round)

    def roll_ins_of(self, n: int) -> range:
        """The numbers of the roll-ins of round n, from 0."""
        first = n * self.tasks_per_round
        return range(first, min(first + self.tasks_per_round, self.n_tasks))

    def as_dict(self) -> dict[str, Any]:
        """The setting for a manifest or a checkpoint."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, eq=False)
class TrainingRound:
    """What one round of AggreVaTe ends with: π_n, its setting, its return on the first tasks."""

    weights: Floats
    setting: learn.Setting
    validation: float


def task_of(training: Training, i: int) -> int:
    """Which of the tasks S_1 … S_M the i-th roll-in is on, from 0."""
    if training.order == "in-turn":
        return i
    return int(generator(training.seed, "order", i).integers(training.n_tasks))


def training_task(training: Training, i: int) -> Prepared:
    """The task of the i-th roll-in, in an order of its own, its labelled rows set aside."""
    source = int(generator(training.seed, "tasks").integers(2**31)) + task_of(training, i)
    task = rectangles(training.n_rows, seed=source)
    return prepare(task, seed=int(generator(training.seed, "partition", i).integers(2**31)))


@functools.lru_cache(maxsize=256)
def validation_task(training: Training, i: int) -> Prepared:
    """The i-th held-out task: of the same family, and in no training."""
    source = int(generator(training.seed, "validation").integers(2**31)) + i
    return prepare(rectangles(training.n_validation_rows, seed=source), seed=source)


def start(weights: Floats, prepared: Prepared, mu: float) -> PaperState:
    """A fresh state of the policy with these weights."""
    return MeleePaper(mu=mu).start_with(weights, problem_of(prepared, prepared.n_rounds))


def collect(job: tuple[Training, int, Floats, float]) -> Examples:
    """The examples of the i-th roll-in, with a policy and a share of the expert (lines 2 to 15)."""
    training, i, weights, beta = job
    prepared = training_task(training, i)
    return roll_in(
        start(weights, prepared, training.mu),
        prepared,
        kind=training.rollout,
        beta=beta,
        horizon=training.horizon,
        every=training.every,
        seed=training.seed,
        names=(i,),
    )


def validate(job: tuple[Training, int, list[Floats]]) -> list[float]:
    """Mean rewards of policies, without extra exploration, on the held-out task of that number.

    All meet the same rows with the same random numbers, so that their differences are less noisy
    than their rewards.
    """
    training, i, policies = job
    prepared = validation_task(training, i)
    returns = []
    for weights in policies:
        state, rng = start(weights, prepared, 0.0), stream(training.seed, "validation", i)
        played = play_rows(state, prepared.scaling, prepared.task, prepared.order, 0, rng)
        returns.append(float(played.rewards.mean()))
    return returns


def validation_return(training: Training, weights: Floats, apply: Mapper = here) -> float:
    """Mean reward of a policy over the held-out tasks that every policy plays."""
    jobs = [(training, i, [weights]) for i in range(training.n_validation)]
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
    if len(rounds) == training.n_rounds:
        return
    used = learn.features_used(training.features, training.counts)

    def jobs_of(n: int) -> list[tuple[Training, int, Floats, float]]:
        weights = rounds[n - 1].weights if n else PI_0
        beta = 1.0 if n == 0 and training.first == "expert" else training.beta
        return [(training, i, weights, beta) for i in training.roll_ins_of(n)]

    blocks = apply(collect, [job for n in range(len(rounds)) for job in jobs_of(n)])
    while len(rounds) < training.n_rounds:
        n = len(rounds)
        blocks += apply(collect, jobs_of(n))
        tasks = [task_of(training, i) for i in range(len(blocks))]
        data = learn.Comparisons.of(blocks, used, tasks)
        # The setting is chosen again whenever D has doubled, and for the last policy.
        again = (n + 1) & n == 0 or n + 1 == training.n_rounds
        setting = learn.choose_setting(data, training.seed) if again else rounds[-1].setting
        weights = learn.fit(data, setting, training.seed)
        rounds.append(TrainingRound(weights, setting, validation_return(training, weights, apply)))
        yield rounds[-1]
