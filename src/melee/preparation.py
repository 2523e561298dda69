"""Preparation: what all algorithms share before the first round of a simulation.

Thirty labelled rows are set aside (paper, "Implementation Details"). By three-fold
cross-validation on them alone, features are either standardized or scaled to [0, 1], and the
learning rate of SGD is chosen. These rows are played by no algorithm, and the others are
played by all in the same shuffled order.
"""

from dataclasses import dataclass

import numpy as np

from melee.arrays import Floats, Ints
from melee.compiled import entry
from melee.errors import DataError, InputError, whole_number
from melee.learners.interface import correct, predict
from melee.learners.sgd import Sgd
from melee.rng import generator
from melee.scaling import Scaling, scale_rows
from melee.task import Task

N_LABELLED = 30
N_FOLDS = 3
N_PASSES = 5
"""Passes over the training folds: some twenty rows stand for a run of a hundred rounds."""
LEARNING_RATES = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A task with its labelled rows set aside, its order of play, and its scaling.

    Attributes
    ----------
    task
        The task itself; its rows are neither copied nor changed.
    labelled, order
        Row numbers of the labelled rows, and of the rounds in the order of play.
    scaling, method, learning_rate
        What cross-validation on the labelled rows chose.
    """

    task: Task
    labelled: Ints
    order: Ints
    scaling: Scaling
    method: str
    learning_rate: float

    @property
    def n_rounds(self) -> int:
        """How many rounds there are to play."""
        return int(self.order.shape[0])

    def inputs(self, rows: Ints) -> Floats:
        """The scaled contexts of these rows, intercept last."""
        x = np.empty((len(rows), self.task.n_features + 1))
        scale_rows(self.scaling, self.task.contexts, rows, x)
        return x


def prepare(
    task: Task, *, seed: int = 0, n_labelled: int = N_LABELLED, max_rounds: int | None = None
) -> Prepared:
    """Set rows aside, choose scaling and learning rate by them, and shuffle the rest.

    The rows of a task that is `ordered` keep their order, and its first ones are labelled.

    Parameters
    ----------
    task
        What will be played.
    seed
        Decides which rows are labelled and the order of the others, unless the task is ordered.
    n_labelled
        How many labelled rows; with 0 nothing is chosen and features stay as they are.
    max_rounds
        Play no more than this many of the remaining rows.

    Examples
    --------
    >>> from melee.datasets import rectangles
    >>> prepared = prepare(rectangles(n_rows=200, seed=1), seed=0)
    >>> prepared.n_rounds, len(prepared.labelled)
    (170, 30)
    """
    if not isinstance(task, Task):
        raise InputError(f"task is {task!r}; expected a Task, as read_table makes one")
    is_whole = isinstance(n_labelled, int | np.integer)
    if not is_whole or (n_labelled != 0 and n_labelled < N_FOLDS):
        raise InputError(
            f"n_labelled is {n_labelled}; expected 0, or at least {N_FOLDS} for cross-validation"
        )
    if max_rounds is not None:
        max_rounds = whole_number("max_rounds", max_rounds, 1)
    if task.n_rows <= n_labelled:
        raise DataError(
            f"dataset {task.name}: {n_labelled} rows are reserved for calibration but it has only "
            f"{task.n_rows}; use a larger dataset or lower n_labelled"
        )
    if task.ordered:
        order = np.arange(task.n_rows)
    else:
        order = generator(seed, "order", task.number).permutation(task.n_rows)
    labelled, rounds = order[:n_labelled], order[n_labelled:][:max_rounds]
    if n_labelled == 0:
        identity = Scaling.identity(task.n_features)
        return Prepared(task, labelled, rounds, identity, "none", 0.1)
    method, learning_rate = choose(task.contexts[labelled], task.rewards[labelled])
    scaling = Scaling.fit(task.contexts[labelled], method)
    return Prepared(task, labelled, rounds, scaling, method, learning_rate)


def choose(contexts: Floats, rewards: Floats) -> tuple[str, float]:
    """The scaling and the learning rate whose greedy choices earn most over the folds.

    Thirty rows leave many ties; among those the least squared error decides.
    """
    every = np.arange(len(contexts))
    folds = every % N_FOLDS
    scores = {}
    for method in ("standardize", "minmax"):
        x = np.empty((N_FOLDS, len(contexts), contexts.shape[1] + 1))
        for fold in range(N_FOLDS):
            scaling = Scaling.fit(contexts[folds != fold], method)
            scale_rows(scaling, contexts, every, x[fold])
        for rate in LEARNING_RATES:
            earned = squared = 0.0
            for fold in range(N_FOLDS):
                learner = Sgd.start(rewards.shape[1], x.shape[2], rate, False)
                result = held_out(learner, x[fold], rewards, folds != fold)
                earned, squared = earned + result[0], squared + result[1]
            scores[method, rate] = (-earned, squared)
    return min(scores, key=lambda key: scores[key])


@entry
def held_out(learner: Sgd, x: Floats, rewards: Floats, training: Ints) -> tuple[float, float]:
    """Fit every action to the training rows; what greedy earns on the others, and its error."""
    n_actions = rewards.shape[1]
    for _ in range(N_PASSES):
        for i in range(x.shape[0]):
            if training[i]:
                for a in range(n_actions):
                    error = rewards[i, a] - predict(learner, x[i], a)
                    correct(learner, x[i], a, error, 1.0)
    earned, squared = 0.0, 0.0
    for i in range(x.shape[0]):
        if not training[i]:
            best, best_value = 0, -np.inf
            for a in range(n_actions):
                value = predict(learner, x[i], a)
                squared += (rewards[i, a] - value) * (rewards[i, a] - value)
                if value > best_value:
                    best, best_value = a, value
            earned += rewards[i, best]
    return earned, squared
