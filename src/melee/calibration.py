"""Platt scaling: from a classifier's scores to probabilities, by a few labelled rows.

Fits p = 1/(1 + exp(-(slope·score + offset))) by maximum likelihood with the regularised
targets of Platt (1999), (N₊+1)/(N₊+2) and 1/(N₋+2), by Newton's method with backtracking in
the numerically safe form of Lin, Lin and Weng (2007). The targets stay off 0 and 1, so the
optimum is finite on separable and one-class data; on constant scores the slope is 0.

Scores are standardized while fitting, so their scale does not matter, and the fit starts from
the one before: a learner moves little in a round, and one or two steps are enough.
"""

import math

import numpy as np

from melee.arrays import Floats
from melee.compiled import kernel

MAX_STEPS = 50
TOLERANCE = 1e-9
"""Largest gradient of the mean log loss at the end of a fit."""


@kernel
def platt(scores: Floats, targets: Floats, slope: float, offset: float) -> tuple[float, float]:
    """The slope and offset that fit the targets best, starting from those given.

    `targets` are regularised already (see `platt_targets`). Shapes: scores (n,), targets (n,).
    """
    n = scores.shape[0]
    mean = 0.0
    for score in scores:
        mean += score
    mean /= n
    deviation = 0.0
    for score in scores:
        deviation += (score - mean) * (score - mean)
    deviation = math.sqrt(deviation / n)
    if not deviation > 1e-12 * (1.0 + abs(mean)):
        share = 0.0
        for target in targets:
            share += target
        share /= n
        return 0.0, math.log(share / (1.0 - share))
    # In standardized scores z: slope·score + offset = a·z + b.
    a, b = slope * deviation, offset + slope * mean
    if not (abs(a) < 30.0 and abs(b) < 30.0):
        a, b = 0.0, 0.0
    value = log_loss(scores, targets, mean, deviation, a, b)
    for _ in range(MAX_STEPS):
        gradient_a, gradient_b = 0.0, 0.0
        h_aa, h_ab, h_bb = 1e-12, 0.0, 1e-12
        for i in range(n):
            z = (scores[i] - mean) / deviation
            p = logistic(a * z + b)
            error = p - targets[i]
            curvature = p * (1.0 - p)
            gradient_a += error * z
            gradient_b += error
            h_aa += curvature * z * z
            h_ab += curvature * z
            h_bb += curvature
        if max(abs(gradient_a), abs(gradient_b)) < TOLERANCE * n:
            break
        determinant = h_aa * h_bb - h_ab * h_ab
        step_a = (h_ab * gradient_b - h_bb * gradient_a) / determinant
        step_b = (h_ab * gradient_a - h_aa * gradient_b) / determinant
        descent = gradient_a * step_a + gradient_b * step_b
        size = 1.0
        while size > 1e-10:
            trial = log_loss(scores, targets, mean, deviation, a + size * step_a, b + size * step_b)
            if trial <= value + 1e-4 * size * descent:
                break
            size *= 0.5
        if size <= 1e-10:
            if max(abs(gradient_a), abs(gradient_b)) < 1e-4 * n or (a == 0.0 and b == 0.0):
                break
            # So flat that no step helps: lost far from the optimum. From the middle it is found.
            a, b = 0.0, 0.0
            value = log_loss(scores, targets, mean, deviation, a, b)
            continue
        a, b, value = a + size * step_a, b + size * step_b, trial
    return a / deviation, b - a * mean / deviation


@kernel
def logistic(z: float) -> float:
    """The logistic function 1/(1 + exp(-z)), without overflow."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@kernel
def log_loss(
    scores: Floats, targets: Floats, mean: float, deviation: float, a: float, b: float
) -> float:
    """The negative log likelihood of the targets at a·z + b, summed, without overflow."""
    total = 0.0
    for i in range(scores.shape[0]):
        z = a * (scores[i] - mean) / deviation + b
        total += max(z, 0.0) - targets[i] * z + math.log1p(math.exp(-abs(z)))
    return total


def platt_targets(labels: Floats) -> Floats:
    """Platt's targets for labels of 0 and 1: a little inside, by how many there are of each.

    >>> platt_targets(np.array([1.0, 0.0, 0.0]))
    array([0.66666667, 0.25      , 0.25      ])
    """
    positive = float(labels.sum())
    negative = len(labels) - positive
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    return np.where(labels == 1.0, high, low)
