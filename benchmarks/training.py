"""Roll-in of the paper's training, beside a straightforward scikit-learn version of the loop.

The plain version does what the paper describes with scikit-learn's estimators: one `partial_fit`
of the chosen action's SGDRegressor per round, `predict` for every action and for the thirty
labelled rows, a logistic regression as Platt scaling, the features, a linear policy. It is timed
on enough rounds to extrapolate; ours on whole tasks. One thread, one run.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDRegressor

from melee.calibration import platt_targets
from melee.explorers.melee_paper import load_policy
from melee.meta.aggrevate import Training, start, training_task
from melee.meta.learn import features_used
from melee.meta.rollouts import roll_in
from melee.preparation import Prepared

TARGET = 200.0


def plain_roll_in(prepared: Prepared, weights: np.ndarray, n_rounds: int, seed: int = 0) -> float:
    """Seconds per round of the scikit-learn version."""
    task, rng = prepared.task, np.random.default_rng(seed)
    x_labelled = prepared.inputs(prepared.labelled)[:, :-1]
    best = task.rewards[prepared.labelled].argmax(axis=1)
    targets = platt_targets((best == 1).astype(float))
    both = np.concatenate([targets, 1 - targets])
    labels = np.repeat([1, 0], len(targets))
    models = [SGDRegressor(eta0=prepared.learning_rate) for _ in range(2)]
    inputs = prepared.inputs(prepared.order[:n_rounds])[:, :-1]
    for model in models:
        model.partial_fit(inputs[:1], [0.0])
    predicted, counts, sums, squares = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    examples = []
    began = time.perf_counter()
    for t in range(n_rounds):
        x, rewards = inputs[t : t + 1], task.rewards[prepared.order[t]]
        labelled = models[1].predict(x_labelled) - models[0].predict(x_labelled)
        calibration = LogisticRegression(C=1e6).fit(
            np.concatenate([labelled, labelled])[:, None], labels, sample_weight=both
        )
        scores = np.array([model.predict(x)[0] for model in models])
        p = calibration.predict_proba([[scores[1] - scores[0]]])[0]
        seen = np.maximum(counts, 1.0)
        features = np.column_stack(
            [
                p,
                scores == scores.max(),
                predicted / max(t, 1),
                sums / seen,
                squares / seen - (sums / seen) ** 2,
            ]
        )
        examples.append((features, rewards.copy()))
        predicted += scores == scores.max()
        action = int(np.argmax(features @ weights[features_used("all")]))
        if rng.random() < 0.1:
            action = int(rng.integers(2))
        models[action].partial_fit(x, [rewards[action]])
        counts[action] += 1
        sums[action] += rewards[action]
        squares[action] += rewards[action] ** 2
    return (time.perf_counter() - began) / n_rounds


def our_roll_in(prepared: Prepared, weights: np.ndarray) -> float:
    """Seconds per round of ours, over the whole task."""
    state = start(weights, prepared, 0.1)
    began = time.perf_counter()
    roll_in(state, prepared, kind="expert")
    return (time.perf_counter() - began) / prepared.n_rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--rounds", type=int, default=500, help="of the scikit-learn version")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    weights, training = load_policy("paper"), Training()
    tasks = [training_task(training, n) for n in range(3)]
    our_roll_in(tasks[0], weights)  # compiles
    pairs = [(our_roll_in(t, weights), plain_roll_in(t, weights, given.rounds)) for t in tasks]
    ours, plain = (min(column) for column in zip(*pairs, strict=True))
    n_rounds = training.n_tasks * tasks[0].n_rounds
    result = {
        "melee_us_per_round": ours * 1e6,
        "sklearn_us_per_round": plain * 1e6,
        "ratio": plain / ours,
        "target": TARGET,
        "paper_scale_seconds": {"melee": ours * n_rounds, "sklearn": plain * n_rounds},
    }
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "training.json").write_text(json.dumps(result, indent=2) + "\n")
    print(
        f"one round of the paper's roll-in: {ours * 1e6:.1f} µs here, {plain * 1e6:.0f} µs with "
        f"scikit-learn: {plain / ours:.0f} x (target {TARGET:g} x). All {n_rounds:,} rounds: "
        f"{ours * n_rounds:.1f} s here, {plain * n_rounds / 60:.1f} min there."
    )


if __name__ == "__main__":
    main()
