"""Training as a job: checkpointed after every round, resumable, ending in a policy on disk."""

import dataclasses
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
from melee.meta.aggrevate import Training, TrainingRound, aggrevate, start, validation_task
from melee.meta.learn import Setting
from melee.meta.rollouts import roll_in
from melee.meta.selection import Stage, select

N_REFERENCE = 16


@dataclass(frozen=True, eq=False)
class PaperPolicies:
    """A finished training: the policies π_1 … π_N, how one of them was chosen, and where it is."""

    rounds: list[TrainingRound]
    stages: list[Stage]
    path: Path

    @property
    def returned(self) -> int:
        """The round of the returned policy, from 0."""
        return self.stages[-1].best

    @property
    def weights(self) -> Floats:
        """Of the returned policy."""
        return self.rounds[self.returned].weights


def train(
    training: Training,
    out: str | Path,
    *,
    on_round: Callable[[int, TrainingRound], None] | None = None,
    on_stage: Callable[[Stage], None] | None = None,
    apply: Mapper = here,
) -> PaperPolicies:
    """Train a policy into a directory, or go on where an earlier call was interrupted.

    Parameters
    ----------
    training
        The setting; `Training()` is the paper's.
    out
        Directory of the policy. It holds a checkpoint of every round's policy and of the choice
        among them, and at the end the policy itself, which `melee-paper:policy=DIR` plays.
    on_round
        Called with the number of rounds done and the latest one, also for rounds that were
        done before.
    on_stage
        Called with every stage of the choice, also for those that were done before.
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
    progress = checkpoint.read(path, training.as_dict())
    rounds, stages = _rounds(progress), _stages(progress)
    on_round, on_stage = on_round or _ignore, on_stage or _ignore
    for n, round_ in enumerate(rounds):
        on_round(n + 1, round_)
    for round_ in aggrevate(training, rounds, apply):
        rounds.append(round_)
        checkpoint.write(path, training.as_dict(), _progress(rounds, stages))
        on_round(len(rounds), round_)
    for stage in stages:
        on_stage(stage)
    for stage in select(training, rounds, list(stages), apply):
        stages.append(stage)
        checkpoint.write(path, training.as_dict(), _progress(rounds, stages))
        on_stage(stage)
    trained = PaperPolicies(rounds, stages, path)
    features = _reference_features(training, trained.weights)
    artefact.save(
        path,
        kind="melee-paper",
        schema=SCHEMA,
        arrays={"weights": trained.weights},
        training=training.as_dict()
        | {
            "returned_round": trained.returned + 1,
            "validation_return": max(stages[-1].returns),
            "validation_tasks": stages[-1].n_tasks,
        },
        reference={"features": features, "scores": features @ trained.weights},
    )
    return trained


def _reference_features(training: Training, weights: Floats) -> Floats:
    """Features that the policy meets on a held-out task; shared ones are at their first value."""
    prepared = validation_task(training, 0)
    every = max(prepared.n_rounds // N_REFERENCE, 1)
    state = start(weights, prepared, 0.0)
    examples = roll_in(state, prepared, kind="expert", every=every, seed=training.seed)
    met = examples.features[:N_REFERENCE]
    shared = np.broadcast_to(np.array([0.5, 10.0]), (*met.shape[:2], len(SCHEMA) - len(PER_ACTION)))
    return np.concatenate([met, shared], axis=2)


def _ignore(*_: Any) -> None:
    pass


def _progress(rounds: list[TrainingRound], stages: list[Stage]) -> dict[str, Any]:
    """Rounds and stages as a checkpoint keeps them."""
    return {
        "rounds": [
            {
                "weights": round_.weights.tolist(),
                "scaling": round_.setting.scaling,
                "learning_rate": round_.setting.learning_rate,
                "validation": round_.validation,
            }
            for round_ in rounds
        ],
        "stages": [dataclasses.asdict(stage) for stage in stages],
    }


def _rounds(progress: dict[str, Any] | None) -> list[TrainingRound]:
    """The rounds of a checkpoint, none if there is none."""
    return [
        TrainingRound(
            np.array(round_["weights"]),
            Setting(round_["scaling"], round_["learning_rate"]),
            round_["validation"],
        )
        for round_ in (progress or {"rounds": []})["rounds"]
    ]


def _stages(progress: dict[str, Any] | None) -> list[Stage]:
    """The stages of a checkpoint, none if there is none."""
    return [
        Stage(stage["n_tasks"], tuple(stage["policies"]), tuple(stage["returns"]))
        for stage in (progress or {"stages": []})["stages"]
    ]
