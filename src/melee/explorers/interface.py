"""What every explorer can do; the loop calls these names and Numba picks by the state's type.

`x` is what is offered: a context, or candidates with inputs of their own (see
`melee.learners.offers`). `pmf` has an entry for each choice, and `action` is the number of one.
`t` counts rounds from 1. `rng` stands at the start of the round's phase (see `melee.rng`).
"""

from typing import Any

from melee.arrays import Floats, Words
from melee.compiled import generic
from melee.learners.interface import n_rows
from melee.policy_optimizers import fit


@generic
def distribution(state: Any, x: Any, t: int, rng: Words, pmf: Floats) -> None:
    """Overwrite `pmf` with the probability of every choice."""
    raise TypeError("not an explorer")


@generic
def learn(
    state: Any, x: Any, t: int, rng: Words, action: int, reward: float, probability: float
) -> None:
    """Absorb what was seen: this action, chosen with this probability, earned this reward.

    For most explorers this is one step of their policy optimizer.
    """
    fit(state.polopt, x, 0, n_rows(state.polopt.learner), action, reward, probability, 1.0)


@generic
def reveal(
    state: Any, x: Any, t: int, rng: Words, action: int, rewards: Floats, probability: float
) -> None:
    """Show the outcome of a simulated round. A bandit sees one entry of `rewards`: its action's."""
    learn(state, x, t, rng, action, rewards[action], probability)
