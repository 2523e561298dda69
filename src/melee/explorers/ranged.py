"""Rewards in any unit: explorers see them on a scale of their own, from 0 to 1.

Where the range of rewards is declared, u = (r - low)/(high - low) and nothing else. Where it is
not, it is found on the way. One reward in a million that is a million times as large must not
squeeze all others together, so rewards are cut first: with m the mean of all but the highest and
the lowest, and h the second highest, a reward above m + 10·(h - m) counts as that; likewise below.
Two such rewards are believed, so a scale that really grows is followed by a factor of ten with
every second one. As long as all but two rewards were equal (before the second click, the second
sale) nothing is cut.

The *map* from rewards to u has the lowest and the highest reward at 0 and 1. It is set by the first
two different rewards and set anew whenever the number of rewards doubles, up to 256; then it stays,
and a later reward may be outside of [0, 1] unless the explorer needs it within. While all rewards
are equal they are in the middle, 0.5.

Everything here moves with the rewards: for r → a + b·r with b > 0 the cuts and the map are those of
before in the new unit, u is the same, and so is every decision.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from melee.arrays import Floats, Ints, Scratch, Within, Words
from melee.compiled import implements, kernel
from melee.explorers.interface import distribution, learn, reveal

N_SETTLED = 256
"""Rewards after which the map is settled."""
REACH = 10.0
"""How much further from the mean than the second most extreme reward another one may be."""
FARTHEST = 1e6
"""Further from its origin u is cut, so that sums of squares stay finite whatever comes."""
NO_LIMIT = 1e120
"""Further than any reward."""
COUNT, REST, HIGHEST, HIGH, LOWEST, LOW = range(6)
"""What `seen` holds: see `Range`."""


class Range(NamedTuple):
    """The rewards seen, and how they are mapped to u = offset + (r - origin)/size."""

    declared: bool
    within: bool  # whether u is to be in [0, 1]
    map: Annotated[Floats, Within((-1e101, 0.0, 0.0), (1e101, 1e102, 0.5))]
    # (3,) origin, size (0: not set), offset
    seen: Annotated[Floats, Within((0.0, -1e120, *(-1e101,) * 4), (1e19, 1e120, *(1e101,) * 4))]
    # (6,) count, sum of all but the highest and the lowest, highest, second, lowest, second
    limits: Annotated[Floats, Within(-NO_LIMIT, NO_LIMIT)]
    # (2,) by which the rewards were cut that set the map
    set_by: Ints  # (1,) how many kept rewards these were

    @classmethod
    def of(cls, declared: tuple[float, float] | None, *, within: bool) -> "Range":
        """A range that is declared, or one to be found; `within` for u in [0, 1] always.

        >>> found = Range.of((-1.0, 3.0), within=True)
        >>> mapped(found, 2.0)
        0.75
        """
        low, high = (0.0, 0.0) if declared is None else declared
        return cls(
            declared=declared is not None,
            within=within,
            map=np.array([low, high - low, 0.0]),
            seen=np.zeros(6),
            limits=np.array([-NO_LIMIT, NO_LIMIT]),
            set_by=np.zeros(1, np.int64),
        )


@kernel
def cut(seen: Floats, reward: float) -> float:
    """The reward, or the most extreme one that would be believed."""
    if seen[COUNT] <= 2.0 or seen[HIGH] <= seen[LOW]:
        return reward
    mean = min(max(seen[REST] / (seen[COUNT] - 2.0), seen[LOW]), seen[HIGH])
    most, least = mean + REACH * (seen[HIGH] - mean), mean - REACH * (mean - seen[LOW])
    return float(min(max(reward, least), most))


@kernel
def observe(seen: Floats, reward: float) -> None:
    """Count a reward in.

    The sum leaves the two extremes out and is never subtracted from, so that an extreme one
    leaves no trace in its last digits.
    """
    seen[COUNT] += 1.0
    if seen[COUNT] == 1.0:
        seen[REST] = 0.0
        seen[HIGHEST] = seen[HIGH] = seen[LOWEST] = seen[LOW] = reward
        return
    middle = reward
    if reward > seen[HIGHEST]:
        middle = seen[HIGHEST]
    elif reward < seen[LOWEST]:
        middle = seen[LOWEST]
    if seen[COUNT] > 2.0:
        seen[REST] += middle
    if reward > seen[HIGHEST]:
        seen[HIGH], seen[HIGHEST] = seen[HIGHEST], reward
    elif reward > seen[HIGH] or seen[COUNT] == 2.0:
        seen[HIGH] = reward
    if reward < seen[LOWEST]:
        seen[LOW], seen[LOWEST] = seen[LOWEST], reward
    elif reward < seen[LOW] or seen[COUNT] == 2.0:
        seen[LOW] = reward


@kernel
def set_map(found: Range) -> None:
    """Map the lowest reward seen to 0 and the highest to 1."""
    found.map[0] = found.seen[LOWEST]
    found.map[1] = found.seen[HIGHEST] - found.seen[LOWEST]
    found.map[2] = 0.0


@kernel
def set_map_by(found: Range, rewards: Floats, n: int) -> None:
    """Set the map by the first n rewards as they came, cut by what all of them say.

    Overwrites everything in the range.
    """
    seen = found.seen
    seen[COUNT] = 0.0
    for i in range(n):
        observe(seen, rewards[i])
    found.limits[0], found.limits[1] = cut(seen, -NO_LIMIT), cut(seen, NO_LIMIT)
    seen[LOWEST] = max(seen[LOWEST], found.limits[0])
    seen[HIGHEST] = min(seen[HIGHEST], found.limits[1])
    set_map(found)
    found.set_by[0] = n


@kernel
def admit(found: Range, reward: float) -> float:
    """The reward, cut and counted in. The first that is different sets the map.

    What was learned before stays true then: the constant is still at 0.5, and the new one at
    0 or 1.
    """
    reward = cut(found.seen, reward)
    observe(found.seen, reward)
    if found.seen[COUNT] == 1.0:
        found.map[0] = reward
    elif found.map[1] == 0.0 and reward != found.map[0]:
        found.map[1] = 2.0 * abs(reward - found.map[0])
        found.map[2] = 0.5
    return reward


@kernel
def mapped(found: Range, reward: float) -> float:
    """U of a reward."""
    if found.map[1] == 0.0:
        return 0.5
    most = FARTHEST * found.map[1]
    u = float(found.map[2] + min(max(reward - found.map[0], -most), most) / found.map[1])
    return min(max(u, 0.0), 1.0) if found.within else u


@kernel
def taken(found: Range, reward: float, again: bool) -> float:
    """U of a reward that is learned now, or again after it has helped to set the map."""
    if found.declared:
        return mapped(found, reward)
    if again:
        return mapped(found, min(max(reward, found.limits[0]), found.limits[1]))
    return mapped(found, admit(found, reward))


def hoped(found: Range, average: float) -> float:
    """U halfway between the average reward and the best that is known: a hope for the unknown."""
    best = 1.0 if found.declared else max(mapped(found, found.seen[HIGHEST]), 1.0)
    halfway = (best + mapped(found, average)) / 2.0
    return min(halfway, 0.999) if found.within else halfway


def unit(found: Range) -> tuple[float, float] | None:
    """The reward of u = 0, and what u = 1 is above it; None while no two rewards differ.

    >>> unit(Range.of((-1.0, 3.0), within=True))
    (-1.0, 4.0)
    """
    origin, size, offset = found.map.tolist()
    return None if size == 0.0 else (origin - offset * size, size)


class Ranged(NamedTuple):
    """An explorer's state behind a range that is not [0, 1], with nothing learned again.

    Until the map is settled u is within [0, 1]: what is learned by a map of the moment, and that
    map may be far off, never weighs more than it should.
    """

    inner: Any
    range: Range
    sees_all: bool  # whether all rewards of a simulated round are shown
    rewards: Scratch  # (K,)

    @classmethod
    def around(
        cls, inner: Any, found: Range, n_actions: int, known: Floats | None, *, sees_all: bool
    ) -> "Ranged":
        """The state before its first reward, but for those of labelled rows."""
        if known is not None and not found.declared:
            set_map_by(found, np.ravel(known), np.size(known))
        return cls(inner, found, sees_all, np.zeros(n_actions))


@kernel
def met(found: Range, reward: float) -> float:
    """A reward that is met for the first and only time, counted in; as far as it is believed."""
    if found.declared:
        return reward
    reward = admit(found, reward)
    n = int(found.seen[COUNT])
    if 2 <= n <= N_SETTLED and n & (n - 1) == 0:  # a power of two
        set_map(found)
    return reward


@kernel
def placed(found: Range, reward: float) -> float:
    """Its u, within [0, 1] until the map is settled."""
    u = mapped(found, reward)
    if not found.declared and found.seen[COUNT] <= N_SETTLED:
        return min(max(u, 0.0), 1.0)
    return u


@implements(distribution, Ranged)
def ranged_distribution(state: Ranged, x: Floats, t: int, rng: Words, pmf: Floats) -> None:
    """That of the inner explorer."""
    distribution(state.inner, x, t, rng, pmf)


@implements(learn, Ranged)
def ranged_learn(
    state: Ranged, x: Floats, t: int, rng: Words, action: int, reward: float, probability: float
) -> None:
    """The inner explorer learns u."""
    u = placed(state.range, met(state.range, reward))
    learn(state.inner, x, t, rng, action, u, probability)


@implements(reveal, Ranged)
def ranged_reveal(
    state: Ranged, x: Floats, t: int, rng: Words, action: int, rewards: Floats, probability: float
) -> None:
    """The inner explorer is shown u of all rewards; a bandit's range is by its own action's."""
    for a in range(rewards.shape[0]):
        state.rewards[a] = rewards[a]
        if state.sees_all or a == action:
            state.rewards[a] = met(state.range, rewards[a])
    for a in range(rewards.shape[0]):
        state.rewards[a] = placed(state.range, state.rewards[a])
    reveal(state.inner, x, t, rng, action, state.rewards, probability)
