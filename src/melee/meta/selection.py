"""The choice among the policies π_1 … π_N of a training, by successive halving.

Most of them are about equally good, and a difference between two of them is noisy: on one
held-out task it has a standard deviation of 0.005 to 0.02 where the best are 0.001 apart. So all of
them play a few tasks, the better half plays as many again, and so on: where many are left few tasks
are enough to keep a good one among them, and the last few are told apart on very many. All policies
of a stage have played the same tasks, rows and random numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from melee.benchmark.mapping import Mapper, here
from melee.meta.aggrevate import Training, TrainingRound, validate


@dataclass(frozen=True)
class Stage:
    """The policies that were still candidates, and their mean rewards over so many tasks."""

    n_tasks: int
    policies: tuple[int, ...]  # numbers of rounds, from 0, ascending
    returns: tuple[float, ...]

    @property
    def best(self) -> int:
        """The policy with the highest return, the latest of equals."""
        return self.ranked()[0]

    def ranked(self) -> list[int]:
        """The policies from the best to the worst, later ones first where they are equal."""
        pairs = zip(self.returns, self.policies, strict=True)
        return [policy for _, policy in sorted(pairs, reverse=True)]


def first_stage(training: Training, rounds: list[TrainingRound]) -> Stage:
    """All policies, on the tasks that each played when it was found."""
    returns = tuple(round_.validation for round_ in rounds)
    return Stage(training.n_validation, tuple(range(len(rounds))), returns)


def select(
    training: Training, rounds: list[TrainingRound], done: list[Stage], apply: Mapper = here
) -> Iterator[Stage]:
    """Halve the candidates and double their tasks while two are left and tasks below `n_final`.

    Yields every stage; the best of the last one is the choice.

    Parameters
    ----------
    training, rounds
        The setting, and all of its rounds.
    done
        The stages of an earlier, interrupted selection, from the first; [] if there was none.
    apply
        Where policies are played; see `melee.benchmark.mapping`.
    """
    if not done:
        done = [first_stage(training, rounds)]
        yield done[0]
    stage = done[-1]
    while len(stage.policies) > 2 and stage.n_tasks < training.n_final:
        kept = tuple(sorted(stage.ranked()[: (len(stage.policies) + 1) // 2]))
        n_tasks = min(2 * stage.n_tasks, training.n_final)
        weights = [rounds[n].weights for n in kept]
        new = apply(validate, [(training, i, weights) for i in range(stage.n_tasks, n_tasks)])
        before = dict(zip(stage.policies, stage.returns, strict=True))
        total = np.array([before[n] for n in kept]) * stage.n_tasks + np.sum(new, axis=0)
        stage = Stage(n_tasks, kept, tuple((total / n_tasks).tolist()))
        yield stage
