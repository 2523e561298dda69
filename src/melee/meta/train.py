"""Training as a job: checkpointed after every round, resumable, ending in a policy on disk."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from melee import artefact
from melee.arrays import Floats
from melee.benchmark.mapping import Mapper, here
from melee.explorers.melee_paper import PER_ACTION, SCHEMA
from melee.meta import checkpoint
from melee.meta.aggrevate import Training, TrainingRound, aggrevate, best, start, validation_tasks
from melee.meta.learn import Setting
from melee.meta.rollouts import roll_in

N_REFERENCE = 16


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished training: the policies π_1 … π_N, which of them was returned, and where."""

    rounds: list[TrainingRound]
    returned: int
    path: Path

    @property
    def weights(self) -> Floats:
        """Of the returned policy."""
        return self.rounds[self.returned].weights


def train(
    training: Training,
    out: str | Path,
    *,
    on_round: Callable[[int, TrainingRound], None] | None = None,
    apply: Mapper = here,
) -> Trained:
    """Train a policy into a directory, or go on where an earlier call was interrupted.

    Parameters
    ----------
    training
        The setting; `Training()` is the paper's.
    out
        Directory of the policy. It holds a checkpoint of every round's policy, and at the end
        the policy itself, which `melee-paper:policy=DIR` plays.
    on_round
        Called with the number of rounds done and the latest one, also for rounds that were
        done before.
    apply
        Where roll-ins and validations run: `melee.benchmark.mapping.mapper` gives engines. The
        policy is the same on all of them.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Training(n_tasks=2, n_rows=80, n_validation=1, n_validation_rows=80)
    >>> trained = train(tiny, tempfile.mkdtemp())
    >>> len(trained.rounds)
    2
    """
    path = Path(out)
    rounds = _rounds(checkpoint.read(path, training.as_dict()))
    if on_round is not None:
        for n, one in enumerate(rounds):
            on_round(n + 1, one)
    for one in aggrevate(training, rounds, apply):
        rounds.append(one)
        checkpoint.write(path, training.as_dict(), _progress(rounds))
        if on_round is not None:
            on_round(len(rounds), one)
    returned = best(rounds)
    trained = Trained(rounds, returned, path)
    features = _reference_features(training, trained.weights)
    artefact.save(
        path,
        kind="melee-paper",
        schema=SCHEMA,
        arrays={"weights": trained.weights},
        training=training.as_dict()
        | {"returned_round": returned + 1, "validation_return": rounds[returned].validation},
        reference={"features": features, "scores": features @ trained.weights},
    )
    return trained


def _reference_features(training: Training, weights: Floats) -> Floats:
    """Features that the policy meets on a held-out task; shared ones are at their first value."""
    prepared = validation_tasks(training)[0]
    every = max(prepared.n_rounds // N_REFERENCE, 1)
    state = start(weights, prepared, 0.0)
    examples = roll_in(state, prepared, kind="expert", every=every, seed=training.seed)
    met = examples.features[:N_REFERENCE]
    shared = np.broadcast_to(np.array([0.5, 10.0]), (*met.shape[:2], len(SCHEMA) - len(PER_ACTION)))
    return np.concatenate([met, shared], axis=2)


def _progress(rounds: list[TrainingRound]) -> dict[str, Any]:
    """Rounds as a checkpoint keeps them."""
    return {
        "rounds": [
            {
                "weights": one.weights.tolist(),
                "scaling": one.setting.scaling,
                "learning_rate": one.setting.learning_rate,
                "validation": one.validation,
            }
            for one in rounds
        ]
    }


def _rounds(progress: dict[str, Any] | None) -> list[TrainingRound]:
    """The rounds of a checkpoint, none if there is none."""
    return [
        TrainingRound(
            np.array(one["weights"]),
            Setting(one["scaling"], one["learning_rate"]),
            one["validation"],
        )
        for one in (progress or {"rounds": []})["rounds"]
    ]
