"""Candidates: choices with features of their own, for any explorer over one model that they share.

The row of a candidate is a *pair*: what is known of the situation and of the candidate, side by
side. A linear model of pairs alone would rank candidates alike in every situation, so units join
them to the context: products of one number of each, and *bumps*, which are 1 near one value of a
candidate's number and fall to 0 at the next, times a number of the context. Where
there is room, hidden units of the context, max(0, u·z_i + v·z_j + b), take the place of its
numbers: what suits a situation need not move with it in a straight line.

Where there is still room, some hidden units are the *context's* alone. Who chooses by the context
does not see every candidate in it, so what a context earns whatever is chosen, where that is no
straight line, would be taken for the merit of what was.

Other units are the candidate's *own*: bumps and levels by themselves. They are large beside those
that join, so that what suits everyone is found first. A straight line through what was tried has
its best at one end; with large bumps it is seen that nothing is known of the middle.

A candidate that was chosen before has a *record*, so that a new article is judged by its topic at
once and by what it earned later. The model is that of a mixed regression: reward = w·φ + b + noise,
with an offset b for each candidate, drawn around 0, whose variance is 1/STRENGTH of the noise's.
With n, Σφ and Σr of its rounds, m = n + STRENGTH, the offset that fits best is (Σr - w·Σφ)/m, and
so the prediction is

    w·(φ - Σφ/m) + Σr/m,    with variance φ̃'A⁻¹φ̃ + 1/m,    φ̃ = φ - Σφ/m.

A new round adds m/(m+1)·φ̃φ̃' to the information A. So any learner of w fits the mixed model exactly,
as a ridge does, if it is given φ̃ in place of φ, r - Σr/m in place of r, and that weight: which is
what `melee.learners.offers` hands to it.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from melee.arrays import Amounts, Floats, Ints, Scratch, Words
from melee.compiled import implements, interpreted_as, kernel
from melee.explorers.interface import distribution, learn
from melee.explorers.rescaled import Rescaled, distribute
from melee.learners.offers import N_OWN, OFFSET, PLAYS, VARIANCE, WEIGHT, Candidates
from melee.rng import generator
from melee.scaling import Scaling, scale_row

N_UNITS = 120
"""Units of a pair, those of the candidate alone included."""
N_CONTEXT = 16
"""Of these, units of the context alone, where there is room for so many."""
RESERVED = 32
"""Units that are kept for columns that appear when the others are settled."""
N_RECORDS = 512
"""Candidates of which a model has a record."""
STRENGTH = 10.0
"""Rounds of a candidate that weigh as much as its features."""
CENTRES = (-1.6, -0.8, 0.0, 0.8, 1.6)
"""Where bumps are, in standard deviations; beyond the last a number counts as that."""
WIDTH = 0.8
ALONE = 0.5
"""How large units of the context alone are, beside those that join both."""


class PairUnits(NamedTuple):
    """What joins a candidate's numbers to the context's; pairs were divided by √P before."""

    columns: Ints  # (units, 3) of the context, or -1; of the candidate, or -1, or both: unused; a
    # second one of the context for hidden units, else -1
    shapes: Floats  # (units, 5): a bump's centre, and 1, or 0 for the number itself; and of hidden
    # units the weights of the two columns and the offset
    size: float  # √P undoes the division
    share: float  # of a unit that joins both in the length of an input

    @classmethod
    def draw(
        cls, sides: Sequence[int], numbers: Sequence[bool], n_units: int, reserved: int = 0
    ) -> "PairUnits":
        """The units for pairs.

        Parameters
        ----------
        sides
            Of every column: where it is in the context, or -1 - i for where in the candidate.
        numbers
            Of every column: whether it is a number, and not a 0 or 1.
        n_units, reserved
            How many, at least N_OWN, and how many of these are left unused. Where combinations are
            fewer, more are. The last N_OWN are of the candidate alone.

        Examples
        --------
        >>> units = PairUnits.draw([0, -1], [True, True], 48)
        >>> units.columns[[0, 8, -1]].tolist()  # both sides, the context alone, the candidate alone
        [[0, 1, -1], [0, -1, 0], [-1, 1, -1]]
        """
        here = [i for i, side in enumerate(sides) if side >= 0]
        there = [i for i, side in enumerate(sides) if side < 0]
        bumps = [(i, c) for i in there if numbers[i] for c in CENTRES]
        plain = [(i, None) for i in there if not numbers[i]]
        own = [(-1, i, c) for i, c in (*bumps, *plain)][:N_OWN]
        left = n_units - reserved - N_OWN
        if len(here) * (len(bumps) + len(plain)) > left:
            bumps = []
            plain = [(i, None) for i in there]
        shapes_of = [*bumps, *plain]
        joint = [(j, i, c) for j in here for i, c in shapes_of]
        rng = generator(0, "pairs", len(sides))
        if len(joint) > left:
            joint = [joint[i] for i in sorted(rng.choice(len(joint), left, replace=False))]
        columns = np.full((n_units, 3), -1, np.int64)
        shapes = np.zeros((n_units, 5))
        n_joint = len(joint)
        places = [*range(n_joint), *range(n_units - len(own), n_units)]
        for unit, (j, i, centre) in zip(places, [*joint, *own], strict=True):
            columns[unit, :2] = j, i
            if centre is not None:
                shapes[unit, :2] = centre, 1.0
        n_context = N_CONTEXT if here and left - n_joint >= N_CONTEXT else 0
        for unit in range(left - n_context, left):
            j, k = rng.choice(here, size=2, replace=len(here) == 1)
            columns[unit] = j, -1, k
            shapes[unit, 2:] = rng.normal(size=3)
        while here and shapes_of and left - n_context - n_joint >= len(shapes_of):
            j, k = rng.choice(here, size=2, replace=len(here) == 1)
            weights = rng.normal(size=3)
            for i, centre in shapes_of:
                columns[n_joint] = j, i, k
                shapes[n_joint, 2:] = weights
                if centre is not None:
                    shapes[n_joint, :2] = centre, 1.0
                n_joint += 1
        n_used = max(n_joint + len(own), 1)
        return cls(columns, shapes, math.sqrt(len(sides)), 3.0 / math.sqrt(n_used))


def join_late(units: PairUnits, sides: Sequence[int], first: int) -> None:
    """Use what is free for columns from `first` on: products with the other side's, and itself.

    Whatever was learned before saw zeros there, and so does a late level in all pairs of the past:
    the model is the one that had always had these units.
    """
    free = np.flatnonzero((units.columns < 0).all(axis=1))
    n_joint = len(units.columns) - N_OWN
    joint, own = free[free < n_joint].tolist(), free[free >= n_joint].tolist()
    for late in range(first, len(sides)):
        for other, side in enumerate(sides[:late]):
            if (side >= 0) != (sides[late] >= 0) and joint:
                units.columns[joint.pop(0), :2] = (other, late) if side >= 0 else (late, other)
        if sides[late] < 0 and own:
            units.columns[own.pop(), 1] = late


def _join_at_once(units: PairUnits, x: Floats, wide: Floats) -> None:
    n = x.shape[0] - 1
    wide[:n] = x[:n]
    here, there, second = units.columns[:, 0], units.columns[:, 1], units.columns[:, 2]
    value = x[there] * units.size
    held = np.minimum(np.maximum(value, CENTRES[0]), CENTRES[-1])
    bump = np.maximum(1.0 - np.abs(held - units.shapes[:, 0]) / WIDTH, 0.0)
    value = np.where(units.shapes[:, 1] > 0.0, bump, value)
    value = np.where(there >= 0, value, np.where(here >= 0, ALONE, 0.0))
    times = x[here] * units.size
    total = units.shapes[:, 2] * times + units.shapes[:, 3] * (x[second] * units.size)
    times = np.where(second >= 0, np.maximum(total + units.shapes[:, 4], 0.0) - 0.5, times)
    wide[n:-1] = np.where(here >= 0, value * times * units.share, value)
    wide[-1] = 1.0


@interpreted_as(_join_at_once)
def join(units: PairUnits, x: Floats, wide: Floats) -> None:
    """Overwrite `wide` with the columns of a pair, its units, and a 1 at the end."""
    n = x.shape[0] - 1
    for i in range(n):
        wide[i] = x[i]
    for unit in range(units.columns.shape[0]):
        here, there = units.columns[unit, 0], units.columns[unit, 1]
        second = units.columns[unit, 2]
        total = ALONE if here >= 0 else 0.0
        if there >= 0:
            total = x[there] * units.size
            if units.shapes[unit, 1] > 0.0:
                held = min(max(total, CENTRES[0]), CENTRES[-1])
                total = max(1.0 - abs(held - units.shapes[unit, 0]) / WIDTH, 0.0)
        if here >= 0:
            times = x[here] * units.size
            if second >= 0:
                more = units.shapes[unit, 3] * (x[second] * units.size)
                times = units.shapes[unit, 2] * times + more
                times = max(times + units.shapes[unit, 4], 0.0) - 0.5
            total = total * times * units.share
        wide[n + unit] = total
    wide[wide.shape[0] - 1] = 1.0


class Paired(NamedTuple):
    """An explorer's state behind pairs of a context and a candidate."""

    inner: Any
    units: PairUnits
    counts: Amounts  # (records,) rounds
    earned: Floats  # (records,) their rewards
    sums: Floats  # (records, D) their inputs
    plain: Scratch  # (D,)
    inputs: Scratch  # (1, D)
    own: Scratch  # (1, 4)

    @classmethod
    def around(cls, inner: Any, units: PairUnits, n_columns: int) -> "Paired":
        """The state before its first round."""
        n = n_columns + len(units.columns) + 1
        return cls(
            inner,
            units,
            np.zeros(N_RECORDS),
            np.zeros(N_RECORDS),
            np.zeros((N_RECORDS, n)),
            np.zeros(n),
            np.zeros((1, n)),
            np.zeros((1, 4)),
        )


class Pairs(NamedTuple):
    """What is offered before it is scaled and joined: a context, and candidates with their records.

    All that follows `sides` is room for a while.
    """

    context: Floats  # (d,)
    table: Floats  # (n, features of candidates)
    records: Ints  # (n,) where the record of each is, -1 for none
    sides: Ints  # (P,) see `PairUnits.draw`
    scaling: Scaling
    raw: Scratch  # (P,)
    scaled: Scratch  # (P + 1,)
    inputs: Scratch  # (n, D)
    own: Scratch  # (n, 4)


def _centre_at_once(state: Paired, record: int, inputs: Floats, own: Floats) -> None:
    if record < 0:
        own[:] = 0.0, 1.0 / STRENGTH, STRENGTH / (STRENGTH + 1.0), 0.0
        return
    n = state.counts[record]
    m = n + STRENGTH
    own[:] = state.earned[record] / m, 1.0 / m, m / (m + 1.0), n
    if n > 0.0:
        inputs -= state.sums[record] * (1.0 / m)


@interpreted_as(_centre_at_once)
def centre(state: Paired, record: int, inputs: Floats, own: Floats) -> None:
    """Take the record's part out of an input, and overwrite `own` with what it says."""
    n = state.counts[record] if record >= 0 else 0.0
    m = n + STRENGTH
    own[OFFSET] = state.earned[record] / m if record >= 0 else 0.0
    own[VARIANCE] = 1.0 / m
    own[WEIGHT] = m / (m + 1.0)
    own[PLAYS] = n
    if n > 0.0:
        for i in range(inputs.shape[0]):
            inputs[i] -= state.sums[record, i] * own[VARIANCE]


@kernel
def put_together(offered: Pairs, a: int) -> None:
    """Overwrite `raw` with the pair of the context and a candidate."""
    for i in range(offered.sides.shape[0]):
        side = offered.sides[i]
        offered.raw[i] = offered.context[side] if side >= 0 else offered.table[a, -1 - side]


@kernel
def lay_out(state: Paired, offered: Pairs, a: int) -> None:
    """Overwrite the input of a candidate, and what is known of itself."""
    put_together(offered, a)
    scale_row(offered.scaling, offered.raw, offered.scaled)
    join(state.units, offered.scaled, offered.inputs[a])
    centre(state, offered.records[a], offered.inputs[a], offered.own[a])


@implements(distribute, Pairs)
def distribute_pairs(offered: Pairs, state: Rescaled, t: int, rng: Words, pmf: Floats) -> None:
    """The same of candidates, which are scaled as they are laid out."""
    scaled = Pairs(
        offered.context,
        offered.table,
        offered.records,
        offered.sides,
        state.scaling,
        offered.raw,
        offered.scaled,
        offered.inputs,
        offered.own,
    )
    distribution(state.inner, scaled, t, rng, pmf)


@implements(distribution, Paired)
def paired_distribution(state: Paired, x: Pairs, t: int, rng: Words, pmf: Floats) -> None:
    """That of the inner explorer over all candidates."""
    for a in range(pmf.shape[0]):
        lay_out(state, x, a)
    distribution(state.inner, Candidates(x.inputs, x.own), t, rng, pmf)


def _note_at_once(state: Paired, record: int, reward: float) -> None:
    if record >= 0:
        state.counts[record] += 1.0
        state.earned[record] += reward
        state.sums[record] += state.plain


@interpreted_as(_note_at_once)
def note(state: Paired, record: int, reward: float) -> None:
    """Count a round into a record; its input is in `plain`."""
    if record >= 0:
        state.counts[record] += 1.0
        state.earned[record] += reward
        for i in range(state.plain.shape[0]):
            state.sums[record, i] += state.plain[i]


@implements(learn, Paired)
def paired_learn(
    state: Paired, x: Floats, t: int, rng: Words, action: int, reward: float, probability: float
) -> None:
    """The inner explorer learns of the chosen candidate; `action` is where its record is, or -1."""
    join(state.units, x, state.plain)
    for i in range(state.plain.shape[0]):
        state.inputs[0, i] = state.plain[i]
    centre(state, action, state.inputs[0], state.own[0])
    learn(state.inner, Candidates(state.inputs, state.own), t, rng, 0, reward, probability)
    note(state, action, reward)
