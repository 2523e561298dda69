"""Policy optimizers: how one logged round becomes regression targets for a learner.

Each turns (action, reward, probability) into a target and a weight per action:

==========  ===================================  ==========================
name        target                               weight
==========  ===================================  ==========================
direct      r for the chosen action              1 (others are left alone)
ips         r/p for the chosen action, else 0    1
dr          f̂_a + 1[a chosen]·(r - f̂_a)/p         1
mtr         r for the chosen action              1/p (others are left alone)
==========  ===================================  ==========================

where p is the logged probability and f̂ a second learner fitted by the direct method. IPS and
doubly robust targets average to the true reward of every action, over the action's draw.
"""

from typing import Any, NamedTuple

from melee.arrays import Floats
from melee.compiled import generic, implements
from melee.learners.interface import observe, predict


class Direct(NamedTuple):
    """Regress on what was seen."""

    learner: Any


class Ips(NamedTuple):
    """Inverse propensity scores: unbiased, noisy where probabilities are small."""

    learner: Any


class DoublyRobust(NamedTuple):
    """A reward model corrected by inverse propensity: unbiased, less noisy than IPS."""

    learner: Any
    model: Any


class Multitask(NamedTuple):
    """Regress on what was seen, weighted by 1/p (multitask regression)."""

    learner: Any


@generic
def fit(
    optimizer: Any, x: Any, first: int, n: int, action: int, reward: float, p: float, w: float
) -> None:
    """Absorb one round into rows first..first+n of the learner, counted w times."""
    raise TypeError("not a policy optimizer")


@implements(fit, Direct)
def fit_direct(
    optimizer: Direct, x: Floats, first: int, n: int, action: int, reward: float, p: float, w: float
) -> None:
    """Target r for the chosen action."""
    row = first + action
    observe(optimizer.learner, x, row, reward, w)


@implements(fit, Multitask)
def fit_multitask(
    optimizer: Multitask,
    x: Floats,
    first: int,
    n: int,
    action: int,
    reward: float,
    p: float,
    w: float,
) -> None:
    """Target r for the chosen action, weight 1/p."""
    row = first + action
    observe(optimizer.learner, x, row, reward, w / p)


@implements(fit, Ips)
def fit_ips(
    optimizer: Ips, x: Floats, first: int, n: int, action: int, reward: float, p: float, w: float
) -> None:
    """Target r/p for the chosen action and 0 for the others."""
    for a in range(n):
        target = reward / p if a == action else 0.0
        observe(optimizer.learner, x, first + a, target, w)


@implements(fit, DoublyRobust)
def fit_doubly_robust(
    optimizer: DoublyRobust,
    x: Floats,
    first: int,
    n: int,
    action: int,
    reward: float,
    p: float,
    w: float,
) -> None:
    """Target f̂_a for every action, plus (r - f̂)/p for the chosen one; then fit f̂ itself."""
    for a in range(n):
        estimate = predict(optimizer.model, x, first + a)
        target = estimate + (reward - estimate) / p if a == action else estimate
        observe(optimizer.learner, x, first + a, target, w)
    row = first + action
    observe(optimizer.model, x, row, reward, w)
