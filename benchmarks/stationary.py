"""Whether any change of `melee`'s weights earns more on the tasks that it is trained on.

    python -m benchmarks.stationary --tasks 1100

Draws variations of the policy in mirrored pairs, plays both of a pair on fresh tasks of the family,
and regresses half the difference of their shares on the variation: the slope along every weight,
with its standard error. If the policy is as good as its form allows, slopes are noise, and the sum
of their squares in units of their errors is about the number of weights.
"""

import argparse
import math

import numpy as np

from melee.arrays import Floats
from melee.benchmark.mapping import mapper
from melee.explorers.melee import SCHEMA, SHARED, load_policy
from melee.learners.adaptive import HOW
from melee.meta.episodes import shares
from melee.meta.train_melee import MeleeTraining, pack, unpack
from melee.rng import generator

FIRST = 2**41
"""Seeds from here on are neither of training nor of its held-out tasks."""
SIZE = 0.35
"""Of a variation, in weights whose inputs are of order one; more for weights beyond 4."""
PAIRS = 8
"""Pairs that play a task."""


def slopes(moves: Floats, gains: Floats) -> tuple[Floats, Floats]:
    """What a unit of every move is worth, and the standard errors."""
    n, d = moves.shape
    inverse = np.linalg.inv(moves.T @ moves)
    found = inverse @ (moves.T @ gains)
    left = gains - moves @ found
    errors = np.sqrt(np.diag(inverse) * float(left @ left) / (n - d))
    return np.asarray(found), errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1100)
    parser.add_argument("--policy", default="melee")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    mean, training = pack(load_policy(given.policy).policy), MeleeTraining()
    sizes = SIZE * np.maximum(1.0, np.abs(mean) / 4.0)
    rng = generator(0, "variations")
    moves = rng.normal(size=(given.tasks, PAIRS, len(mean)))
    jobs = []
    for i, drawn in enumerate(moves):
        both = [unpack(mean + sign * sizes * move) for move in drawn for sign in (1.0, -1.0)]
        jobs.append((str(training.family), FIRST + i, training.explorer, both))
    with mapper("local", workers=given.workers) as apply:
        found = np.array(apply(shares, jobs)).reshape(given.tasks, PAIRS, 2)
    gains = (found[..., 0] - found[..., 1]) / 2.0
    slope, error = slopes(moves.reshape(-1, len(mean)), gains.ravel())
    names = [f"learner {i}" for i in range(len(HOW))] + [f"gate {name}" for name in SHARED]
    names += [f"{rule} {name}" for rule in ("bold", "careful") for name in SCHEMA]
    names += [f"due {name}" for name in SHARED]
    for i in np.argsort(-np.abs(slope / error))[:10]:
        print(f"{names[i]:22s} {slope[i]:+.5f} ± {error[i]:.5f} of share for {sizes[i]:.2f}")
    total, d = float(((slope / error) ** 2).sum()), len(mean)
    print(f"{gains.size} pairs: χ² {total:.0f}, {d} ± {math.sqrt(2 * d):.0f} by chance alone")


if __name__ == "__main__":
    main()
