"""Rescaling: an explorer that scales its contexts by what it has seen.

In a benchmark thirty labelled rows give everyone a scaling. In production the first context is
all there is: a *cold* start. So the first rounds are kept; each time their number doubles, up to
256, columns are standardized anew by all of them and the explorer learns its whole past again in
the new scale. At every round its model is thus exactly the one that the scaling of the moment
would have given, for any learner, hidden units included, at about two extra learning steps per
round for the first 256 and none later.

Contexts that were scaled before can be rescaled too: 256 rows know more than thirty. That begins
with the 32nd round, as the given scaling is the better one until then.

Hidden units are chosen by the kept rounds, too, from the 64th on (see `melee.explorers.hidden`):
the past is learned again with those that went most closely with its rewards.

Where the range of rewards is not declared, its map (see `melee.explorers.ranged`) is set anew by
the same rounds, from the second on, and the past is learned again by it.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Scratch, Shares, Within, Words
from melee.compiled import generic, implements, interpreted_as, kernel
from melee.explorers.hidden import CHOSEN_FROM, LUCK, Widened, choose, weigh, widen
from melee.explorers.interface import distribution, learn
from melee.explorers.ranged import N_SETTLED, Range, set_map_by, taken
from melee.learners.offers import OpenActions
from melee.rng import LEARN, start_round
from melee.scaling import Scaling, scale_row, standardize
from melee.standardizing import LIMIT
from melee.states import Bytes, in_one_block
from melee.task import LARGEST

N_KEPT = N_SETTLED
"""Rounds after which the scaling is settled, and the map of rewards."""
FROM_COLD, FROM_SCALED = 2, 32
"""The number of rounds by which a scaling is first found."""


class Rescaled(NamedTuple):
    """An explorer's state behind a scaling and a range of rewards of its own."""

    inner: Any
    block: Bytes  # the memory of `inner`
    initial: Bytes  # the same before the first round
    scaling: Scaling
    range: Range
    plain: float  # the scale of a column that has been constant so far
    first: int  # rounds by which the scaling is first found
    raw: Scratch  # (d,)
    scaled: Scratch  # (d + 1,)
    kept: Ints  # (1,) how many rounds
    learned: Ints  # (1,) how many of these `inner` has learned
    contexts: Floats  # (N_KEPT, d), as they came
    rounds: Ints  # (N_KEPT, 2): number and action
    rewards: Annotated[Floats, Within(-LARGEST, LARGEST)]  # (N_KEPT,), as they came
    probabilities: Shares  # (N_KEPT,)
    taken: Scratch  # (N_KEPT,), the rewards as `inner` learns them

    @classmethod
    def around(cls, inner: Any, n_features: int, found: Range, *, cold: bool) -> "Rescaled":
        """The state before its first context: one as it came (cold), or one scaled already."""
        moved, block = in_one_block(inner)
        size = math.sqrt(n_features)
        plain = 1.0 if cold else size  # scaled contexts were divided by √d before
        table = Scaling.identity(n_features).shift_scale
        table[1] = plain
        return cls(
            inner=moved,
            block=block,
            initial=block.copy(),
            scaling=Scaling(table, LIMIT, 1.0 / size),
            range=found,
            plain=plain,
            first=FROM_COLD if cold else FROM_SCALED,
            raw=np.zeros(n_features),
            scaled=np.zeros(n_features + 1),
            kept=np.zeros(1, np.int64),
            learned=np.zeros(1, np.int64),
            contexts=np.zeros((N_KEPT, n_features)),
            rounds=np.zeros((N_KEPT, 2), np.int64),
            rewards=np.zeros(N_KEPT),
            probabilities=np.zeros(N_KEPT),
            taken=np.zeros(N_KEPT),
        )


@kernel
def scale_context(state: Rescaled, x: Floats) -> None:
    """Overwrite `scaled` with x, intercept last, in the scale of the moment."""
    for i in range(state.raw.shape[0]):
        state.raw[i] = x[i]
    scale_row(state.scaling, state.raw, state.scaled)


@generic
def distribute(offered: Any, state: Rescaled, t: int, rng: Words, pmf: Floats) -> None:
    """Have the inner explorer overwrite `pmf` for what is offered, in the scale of the moment."""
    scale_context(state, offered)
    distribution(state.inner, state.scaled, t, rng, pmf)


@implements(distribute, OpenActions)
def distribute_open(offered: OpenActions, state: Rescaled, t: int, rng: Words, pmf: Floats) -> None:
    """The same where only some actions are open."""
    scale_context(state, offered.context)
    scaled = OpenActions(state.scaled, offered.numbers, offered.n_actions)
    distribute_inside(state.inner, scaled, t, rng, pmf)


@generic
def distribute_inside(state: Any, offered: OpenActions, t: int, rng: Words, pmf: Floats) -> None:
    """Have an explorer, perhaps behind hidden units, overwrite `pmf` for a scaled context."""
    distribution(state, offered, t, rng, pmf)


@implements(distribute_inside, Widened)
def distribute_widened(
    state: Widened, offered: OpenActions, t: int, rng: Words, pmf: Floats
) -> None:
    """Its hidden units join the context."""
    widen(state.units, offered.context, state.wide)
    wide = OpenActions(state.wide, offered.numbers, offered.n_actions)
    distribution(state.inner, wide, t, rng, pmf)


def _copy_at_once(source: Bytes, target: Bytes) -> None:
    target[:] = source


@interpreted_as(_copy_at_once)
def copy_bytes(source: Bytes, target: Bytes) -> None:
    """Overwrite `target`."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@kernel
def settle(state: Rescaled, n: int) -> bool:
    """Find the scale of contexts and the map of rewards by the first n rounds, if it is time.

    That is whenever n is a power of two, and for rewards when the first different one is there. A
    column that is constant so far is only shifted. Returns whether anything may have changed: then
    the explorer has to learn the past again.
    """
    doubled = n >= 2 and n & (n - 1) == 0
    scales = doubled and n >= state.first
    if scales:
        standardize(state.contexts, n, state.plain, state.scaling.shift_scale)
    found = state.range
    differs = found.map[1] == 0.0 and state.rewards[n - 1] != state.rewards[0]
    maps = not found.declared and (doubled or differs)
    if maps:
        set_map_by(found, state.rewards, n)
    return scales or maps


@generic
def choose_units(inner: Any, state: Rescaled, n: int) -> None:
    """Have an explorer use the hidden units, if it has any, that the first n rounds speak for."""


@implements(choose_units, Widened)
def choose_widened(inner: Widened, state: Rescaled, n: int) -> None:
    """Those of the greatest worth, if it is time."""
    if n < CHOSEN_FROM or n & (n - 1) != 0:
        return
    for i in range(n):
        state.taken[i] = taken(state.range, state.rewards[i], True)
    contexts, actions, rewards = state.contexts[:n], state.rounds[:n, 1], state.taken[:n]
    units, sums, worth = inner.units, inner.sums, inner.worth
    if weigh(units, state.scaling, contexts, actions, rewards, sums, worth) > LUCK:
        choose(units, worth)


@kernel
def begin_again(state: Rescaled, n: int) -> None:
    """Set the explorer back to before its first round, with units that n rounds speak for.

    Where n is not a power of two, all rewards before were equal, and speak for none. Overwrites
    `inner`.
    """
    copy_bytes(state.initial, state.block)
    state.learned[0] = 0
    choose_units(state.inner, state, n)


@kernel
def keep(
    state: Rescaled, x: Floats, t: int, action: int, reward: float, probability: float
) -> None:
    """Keep a round."""
    n = state.kept[0]
    for i in range(state.raw.shape[0]):
        state.contexts[n, i] = x[i]
    state.rounds[n, 0] = t
    state.rounds[n, 1] = action
    state.rewards[n] = reward
    state.probabilities[n] = probability
    state.kept[0] = n + 1


@implements(distribution, Rescaled)
def rescaled_distribution(state: Rescaled, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """That of the inner explorer in the scaled context."""
    distribute(x, state, t, rng, pmf)


@implements(learn, Rescaled)
def rescaled_learn(
    state: Rescaled, x: Floats, t: int, rng: Words, action: int, reward: float, probability: float
) -> None:
    """The inner explorer learns the round, or everything again in a new scale."""
    settled = state.kept[0] >= N_KEPT
    if not settled:
        keep(state, x, t, action, reward, probability)
        if settle(state, state.kept[0]):
            begin_again(state, state.kept[0])
    first = state.learned[0]
    last = first + 1 if settled else state.kept[0]
    for i in range(first, last):
        if settled:
            scale_context(state, x)
        else:
            scale_row(state.scaling, state.contexts[i], state.scaled)
            t, action = state.rounds[i, 0], state.rounds[i, 1]
            reward, probability = state.rewards[i], state.probabilities[i]
            start_round(rng, t, LEARN)
        u = taken(state.range, reward, not settled and i < state.range.set_by[0])
        learn(state.inner, state.scaled, t, rng, action, u, probability)
    state.learned[0] = state.kept[0]


def restart(
    state: Rescaled,
    contexts: Floats,
    times: Ints,
    actions: Ints,
    rewards: Floats,
    probabilities: Floats,
) -> None:
    """Give a fresh state a past: the next round that it learns has it learn all of these first.

    It ends as if it had learned them one by one, for at every moment a state is the one that the
    scaling and the map of the moment give.
    """
    n = len(contexts)
    doubled = 1 << n.bit_length() - 1 if n else 0  # the last power of two
    state.contexts[:n] = contexts
    state.rounds[:n, 0], state.rounds[:n, 1] = times, actions
    state.rewards[:n], state.probabilities[:n] = rewards, probabilities
    if n:
        settle(state, doubled)
        different = np.flatnonzero(state.rewards[:n] != state.rewards[0])
        if len(different) and not state.range.declared and state.range.map[1] == 0.0:
            settle(state, int(different[0]) + 1)
    state.kept[0] = n
    begin_again(state, doubled)
