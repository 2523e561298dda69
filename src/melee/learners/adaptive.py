"""A learner that knows its noise: models of unlike trust in the context, mixed by evidence.

Where rewards are clean labels, hidden units and a weak penalty learn most; where they are mostly
noise, as clicks are, the same model learns the noise. Nobody can say beforehand which it is, so
four models of every action learn side by side, three ridges and a forest:

- *wide*: all inputs, hidden units included, under a weak penalty;
- *plain*: the features alone, under a strong one;
- *average*: no context, the action's average reward; or what candidates earn by their own
  features, whoever asks.

Each predicts a round before it learns it; e are the averages of the squared errors so made. The
models are mixed in proportion to exp(bias - ½·trust·min(n, 1000)·log e).

What the rewards look like says beforehand which is likely. With labels one action of K pays 1 and
the others 0, so the first rewards, before much is known, average 1/K, and none is in between.
*Odd* is how far the odds of the first rewards are from that, and *graded* the share of rewards that
are neither the least nor the greatest seen. The bias of the plain member and the prior mean
depend on both.

All of them pull towards a prior mean m rather than 0, which is the average reward, or between the
lowest and that. For targets r - m one keeps s = A⁻¹Σx beside w = A⁻¹Σx·r: the prediction is
x·w + m·(1 - x·s), exactly the ridge under the m of the moment, though nothing is learned again.

The noise is the root of the mixture's e, and the spread is in units of reward: noise times the
average of √(x'A⁻¹x). So one width of a confidence bound serves rates of 1 % and clean labels.

The world may change. An action that is played because it was good is watched: where its rewards of
the last two hundred rounds or so are lower than was predicted before each, by a quarter of the
noise on average, something has changed, perhaps for others too. Then all models keep what they
say, and trust it as if a tenth of their rounds had been seen: spreads are wide again, and what
comes weighs more than what was.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Amounts, Floats, Ints, Positive, Scratch, Within
from melee.compiled import implements, interpreted_as, kernel
from melee.learners.base import Learner
from melee.learners.forest import (
    CLOSE,
    TREES,
    Forest,
    add_average,
    doubt_of,
    find,
    grow,
    is_grown,
    said_of,
    take,
    trust_less,
)
from melee.learners.interface import (
    correct,
    fade,
    gain,
    n_rows,
    noise,
    note_diagonal,
    observe,
    predict,
    predict_all,
    spread,
    spread_guess,
    spread_guess_all,
)
from melee.learners.linear import add_to_row, dot, dot_row, dot_rows
from melee.learners.offers import (
    N_OWN,
    choice,
    differ,
    left,
    raised,
    spread_with,
    weighed,
)
from melee.learners.ridge import MAX_EXACT_FEATURES, DiagonalRidge, Ridge
from melee.settings import count, number

MAX_EXACT, MAX_WIDENED = 2**22, 2**20
"""Numbers in the exact models of all actions together; and with hidden units, which teach little
where each of many actions is seen rarely."""
WINDOW = 1000.0
"""Rounds after which evidence weighs no more: what was learned first is not all that counts."""
NEGLIGIBLE = 0.01
"""A member that would weigh less is left out."""
DOUBT = 0.25
"""Variance and squared error, in squares of the rewards' range, assumed before the first round."""
LEAST_SPAN = 1e-100
"""Rewards that differ by less are equal: squares of that could not be told from 0."""
FADING = 0.2
"""How fast what was known of a ratio fades."""

WATCHED = 200.0
"""Rounds of an action over which errors are averaged to see a change."""
ALARM = 0.25
"""How far below predictions rewards are on average, in units of the noise, after a change."""
SOME = 20.0
"""Rounds as predicted, before the first."""
REMEMBERED = 0.1
"""The share of what was seen that counts after a change."""

FIRST_ROUNDS = 8.0
"""Rounds for each action that count as the first."""

WIDE, PLAIN, AVERAGE, FOREST, PRIOR, NOISE, DEVIATION, LOW, SPAN, RARE, GRADED = range(11)
"""Places in `now`, the weights of the members first."""
ROUNDS, SUM, SQUARES, LEAST, MOST, AT_LEAST, AT_MOST, FIRST, FIRST_SUM = range(9)
"""Places in `totals`."""
TRUST, BIAS_AVERAGE, BIAS_PLAIN, PULL, BIAS_FOREST = 0, 1, 2, 5, 10
"""Places in `how`; three numbers for the bias of the plain member, five for the pull."""

HOW: Floats = np.array([0.1, -1.7, 0.4, -0.7, -0.3, 0.2, 4.0, 6.0, -1.0, 0.4, -1.0])
"""How members are mixed where no policy says it, rounded from what a training of `melee` found:
trust; the bias of average; that of plain, b₀ + b₁·odd + b₂·graded; the prior mean, low + σ(p₀ +
p₁·odd + p₂·graded + p₃·log ρ + p₄·log K)·(r̄ - low), which is r̄ but where rewards look like those
of labels; and the bias of the forest."""


class Member(NamedTuple):
    """One of the three ridges of every action."""

    ridge: Any
    toward: Floats  # (rows, D), A⁻¹Σx: where targets of 1 would have led the weights
    diagonal: Positive  # (rows, D), of the inverse
    ratio: Amounts  # (rows,) of x'A⁻¹x to what the diagonal says of it, as seen lately
    most: float  # the variance of a weight of which nothing is known

    @classmethod
    def start(cls, n_rows: int, n_inputs: int, ridge: float, *, exact: bool) -> "Member":
        """A model that predicts the prior mean everywhere."""
        kind: type[Ridge] | type[DiagonalRidge] = Ridge if exact else DiagonalRidge
        shape = (n_rows, n_inputs)
        diagonal = np.full(shape, 1.0 / ridge)
        most = 1.0 / float(ridge)
        return cls(kind.start(*shape, ridge), np.zeros(shape), diagonal, np.ones(n_rows), most)

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """Move the intercept, and have it count as much as rounds that had shown the value."""
        self.ridge.encourage(row, value, rounds)
        self.toward[row, -1] = 1.0
        self.diagonal[row, -1] = 1.0 / (1.0 / self.diagonal[row, -1] + rounds)


class Adaptive(NamedTuple):
    """The members, how well they have predicted, and what follows from that."""

    wide: Member
    plain: Member
    average: Member
    forest: Forest
    how: Floats  # (11,)
    totals: Annotated[
        Floats, Within((0.0, -1e150, 0.0, -1e150, -1e150, 0.0, 0.0, 0.0, -1e150))
    ]  # (9,) rounds; sum, squares, least and most of the targets; how many were the least and the
    # most; how many were the first, and their sum
    errors: Amounts  # (4,) squared errors of the members
    lately: Floats  # (rows,) average errors of the mixture, in units of the noise
    watched: Amounts  # (rows,) rounds since the last change
    changes: Amounts  # (1,) that were noticed
    now: Annotated[
        Floats, Within((0.0, 0.0, 0.0, 0.0, -1e150, 1e-300, 1e-300, -1e150, 1e-300, -100.0, 0.0))
    ]  # (11,) weights of the members, prior mean, noise, deviation, low, span; how much rarer than
    # labels the first rewards were, in logarithms of odds; graded
    narrow: Scratch  # (features + 1,)
    means: Scratch  # (2, rows) average rewards, and the rounds that speak for them
    one: Annotated[Floats, Within(1.0, 1.0)]  # (1,) the intercept of a context
    places: Scratch  # (actions,), whose length says how many there are to choose from

    @classmethod
    def start(
        cls,
        n_rows: int,
        n_inputs: int,
        n_hidden: int,
        ridge: float,
        strong: float,
        *,
        exact: bool,
        n_actions: int | None = None,
        n_own: int = 0,
        n_trees: int = 0,
    ) -> "Adaptive":
        """Models that predict the average reward everywhere."""
        n_plain = n_inputs - n_hidden
        state = cls(
            wide=Member.start(n_rows, n_inputs, ridge, exact=exact),
            plain=Member.start(n_rows, n_plain, strong, exact=exact),
            average=Member.start(n_rows, min(n_own + 1, n_inputs), 1.0, exact=exact and n_own > 0),
            forest=Forest.start(n_rows, n_plain - 1, n_trees),
            how=HOW.copy(),
            totals=np.array([0.0, 0.0, 0.0, 1e100, -1e100, 0.0, 0.0, 0.0, 0.0]),
            errors=np.zeros(4),
            lately=np.zeros(n_rows),
            watched=np.zeros(n_rows),
            changes=np.zeros(1),
            now=np.zeros(11),
            narrow=np.zeros(n_plain),
            means=np.zeros((2, n_rows)),
            one=np.ones(1),
            places=np.zeros(n_rows if n_actions is None else n_actions),
        )
        mix(state)
        return state

    @property
    def exact(self) -> bool:
        """Whether it keeps whole matrices."""
        return isinstance(self.wide.ridge, Ridge)

    def encourage(self, row: int, value: float, rounds: float) -> None:
        """All of them are encouraged."""
        for member in (self.wide, self.plain, self.average, self.forest):
            member.encourage(row, value, rounds)

    def renumber(self, models: Ints) -> None:
        """Give the models that rounds are kept of new numbers; -1 leaves those rounds out."""
        self.forest.renumber(models)

    @property
    def is_sound(self) -> bool:
        """Whether whatever it names by number exists."""
        return self.forest.is_sound


@dataclass(frozen=True, kw_only=True)
class AdaptiveLearner(Learner):
    """Ridges and trees mixed by evidence, pulled to the average reward, that estimate their noise.

    Parameters
    ----------
    ridge, strong
        Strength of the L2 penalty of the wide and of the plain member.
    exact
        Features up to which it is exact; 32 MiB of models is the limit too.
    """

    name: ClassVar[str] = "adaptive"
    takes_candidates: ClassVar[bool] = True
    has_spread: ClassVar[bool] = True
    alone: ClassVar[bool] = False
    ridge: float = number(0.2, 0.0, above=True)
    strong: float = number(6.0, 0.0, above=True)
    exact: int = count(MAX_EXACT_FEATURES, 0)

    def start(self, n_rows: int, n_inputs: int) -> Adaptive:
        """Models that predict the average reward everywhere."""
        return self.start_widened(n_rows, n_inputs, 0)

    def start_widened(self, n_rows: int, n_inputs: int, n_hidden: int) -> Adaptive:
        """The same where the plain member does not see some of the inputs."""
        sizes, penalties = (n_rows, n_inputs, n_hidden), (float(self.ridge), float(self.strong))
        return Adaptive.start(*sizes, *penalties, exact=True, n_trees=TREES)

    def start_shared(self, n_rows: int, n_inputs: int, n_hidden: int, n_actions: int) -> Adaptive:
        """The same for so many candidates, which share models.

        The plain member sees all inputs: without units it would rank candidates alike everywhere.
        The average one sees what is a candidate's own.
        """
        penalties = float(self.ridge), float(self.strong)
        sizes = (n_rows, n_inputs, 0)
        return Adaptive.start(*sizes, *penalties, exact=True, n_actions=n_actions, n_own=N_OWN)

    def fits(self, n_rows: int, n_inputs: int) -> bool:
        """Whether exact models of this size are within the limits of time and memory."""
        return n_inputs - 1 <= self.exact and n_rows * n_inputs**2 <= MAX_EXACT

    def welcomes_hidden(self, n_rows: int, n_inputs: int) -> bool:
        """Whether hidden units are worth their time."""
        return n_inputs - 1 <= self.exact and n_rows * n_inputs**2 <= MAX_WIDENED

    def smaller(self) -> Learner:
        """The same by diagonals."""
        return AdaptiveDiagonalLearner(ridge=self.ridge, strong=self.strong)


@dataclass(frozen=True, kw_only=True)
class AdaptiveDiagonalLearner(Learner):
    """The same by the diagonals of the information matrices and without trees, for many features.

    Parameters
    ----------
    ridge, strong
        Strength of the L2 penalty of the wide and of the plain member.
    """

    name: ClassVar[str] = "adaptive-diagonal"
    takes_candidates: ClassVar[bool] = True
    has_spread: ClassVar[bool] = True
    alone: ClassVar[bool] = False
    ridge: float = number(0.2, 0.0, above=True)
    strong: float = number(6.0, 0.0, above=True)

    def start(self, n_rows: int, n_inputs: int) -> Adaptive:
        """Models that predict the average reward everywhere."""
        return self.start_widened(n_rows, n_inputs, 0)

    def start_widened(self, n_rows: int, n_inputs: int, n_hidden: int) -> Adaptive:
        """The same where the plain member does not see some of the inputs."""
        penalties = float(self.ridge), float(self.strong)
        return Adaptive.start(n_rows, n_inputs, n_hidden, *penalties, exact=False)

    def start_shared(self, n_rows: int, n_inputs: int, n_hidden: int, n_actions: int) -> Adaptive:
        """The same for so many candidates, which share models.

        The plain member sees all inputs: without units it would rank candidates alike everywhere.
        The average one sees what is a candidate's own.
        """
        penalties = float(self.ridge), float(self.strong)
        sizes = (n_rows, n_inputs, 0)
        return Adaptive.start(*sizes, *penalties, exact=False, n_actions=n_actions, n_own=N_OWN)


@kernel
def logistic(z: float) -> float:
    """1 / (1 + exp(-z))."""
    return 1.0 / (1.0 + math.exp(-min(max(z, -40.0), 40.0)))


@kernel
def rarer_than_labels(totals: Floats, low: float, span: float, actions: float) -> float:
    """The logarithm of how much lower the odds of the first rewards were than 1 to K - 1.

    As if two rounds of each action had been seen before, of which one of K paid.
    """
    paid = (totals[FIRST_SUM] - totals[FIRST] * low) / span
    average = (paid + 2.0) / (totals[FIRST] + 2.0 * actions)
    average = min(max(average, 0.001), 0.999)
    return -math.log(average / (1.0 - average)) - math.log(max(actions - 1.0, 1.0))


@kernel
def take_in(totals: Floats, target: float, actions: float) -> None:
    """Count a target in."""
    if target < totals[LEAST]:
        if totals[LEAST] == totals[MOST]:  # those seen so far, all equal, are the greatest now
            totals[AT_MOST] = totals[AT_LEAST]
        totals[LEAST], totals[AT_LEAST] = target, 0.0
    if target > totals[MOST]:
        totals[MOST], totals[AT_MOST] = target, 0.0
    if target == totals[LEAST]:
        totals[AT_LEAST] += 1.0
    elif target == totals[MOST]:
        totals[AT_MOST] += 1.0
    totals[ROUNDS] += 1.0
    totals[SUM] += target
    totals[SQUARES] += target * target
    if totals[FIRST] < FIRST_ROUNDS * actions:
        totals[FIRST] += 1.0
        totals[FIRST_SUM] += target


@kernel
def mix(learner: Adaptive) -> None:
    """Overwrite `now`: weigh the members by their errors, and find the prior mean and the noise."""
    how, totals, errors, now = learner.how, learner.totals, learner.errors, learner.now
    n = totals[ROUNDS]
    low, span = totals[LEAST], totals[MOST] - totals[LEAST]
    if n == 0.0 and span < 0.0:
        low = 0.0
    if span <= LEAST_SPAN:
        span = 1.0
    square = span * span
    average = totals[SUM] / n if n > 0.0 else low
    variance = max(totals[SQUARES] / n - average * average, 0.0) if n > 0.0 else 0.0
    variance += DOUBT * square / (n + 1.0)
    actions = float(learner.places.shape[0])
    now[RARE] = rarer_than_labels(totals, low, span, actions)
    now[GRADED] = (n - totals[AT_LEAST] - totals[AT_MOST]) / (n + 2.0)
    odd = abs(now[RARE])
    bias = how[BIAS_PLAIN] + how[BIAS_PLAIN + 1] * odd + how[BIAS_PLAIN + 2] * now[GRADED]
    now[WIDE], now[PLAIN], now[AVERAGE] = 0.0, bias, how[BIAS_AVERAGE]
    now[FOREST] = how[BIAS_FOREST] if is_grown(learner.forest) else -math.inf
    best = -math.inf
    for m in range(PRIOR):
        error = (errors[m] / square + 0.2 * DOUBT) / (n + 0.2)
        now[m] -= 0.5 * how[TRUST] * min(n, WINDOW) * math.log(error)
        best = max(best, now[m])
    total = 0.0
    for m in range(PRIOR):
        now[m] = math.exp(now[m] - best)
        total += now[m]
    left = 0.0
    for m in range(PRIOR):
        now[m] = now[m] / total if now[m] >= NEGLIGIBLE * total else 0.0
        left += now[m]
    error = 0.0
    for m in range(PRIOR):
        now[m] /= left
        error += now[m] * errors[m]
    error = (error + DOUBT * square) / (n + 1.0)
    unexplained = math.log(min(error / variance, 2.0))
    pull = how[PULL] + how[PULL + 1] * odd + how[PULL + 2] * now[GRADED]
    pull += how[PULL + 3] * unexplained + how[PULL + 4] * math.log(actions)
    now[PRIOR] = low + logistic(pull) * (average - low)
    now[NOISE] = math.sqrt(error)
    now[DEVIATION] = math.sqrt(variance)
    now[LOW] = low
    now[SPAN] = span


@kernel
def narrow(learner: Adaptive, x: Floats) -> None:
    """Overwrite `narrow` with the features of x, without hidden units, and the intercept."""
    n = learner.narrow.shape[0] - 1
    for i in range(n):
        learner.narrow[i] = x[i]
    learner.narrow[n] = x[x.shape[0] - 1]


@kernel
def own_from(learner: Adaptive, x: Floats) -> int:
    """Where in x that begins which the average member sees: what is a choice's own, and the 1."""
    return int(x.shape[0] - learner.average.toward.shape[1])


@kernel
def own_variance(learner: Adaptive, x: Floats, a: int) -> float:
    """The variance of what the average member says of a choice, in squares of the noise.

    Of a candidate that is by its features alone: what its record does not know of it is left out,
    for there may always be new ones.
    """
    wide, model = choice(x, a)
    if differ(x):
        known = spread(learner.average.ridge, wide[own_from(learner, wide) :], model)
        return float(known * known)
    return float(learner.average.diagonal[model, 0])


@kernel
def member_predict(member: Member, x: Floats, row: int, prior: float) -> float:
    """x·w + prior·(1 - x·s), where the 1 is the intercept of x."""
    toward = x[x.shape[0] - 1] - dot_row(member.toward, row, x)
    return float(dot_row(member.ridge.weights, row, x) + prior * toward)


def _add_predictions_at_once(
    member: Member, x: Floats, first: int, prior: float, share: float, out: Floats
) -> None:
    by_weights, by_toward = np.empty(len(out)), np.empty(len(out))
    dot_rows(member.ridge.weights, first, x, by_weights)
    dot_rows(member.toward, first, x, by_toward)
    out += share * (by_weights + prior * (x[-1] - by_toward))


@interpreted_as(_add_predictions_at_once)
def add_predictions(
    member: Member, x: Floats, first: int, prior: float, share: float, out: Floats
) -> None:
    """Add a share of the predictions of the rows from `first` on."""
    for a in range(out.shape[0]):
        out[a] += share * member_predict(member, x, first + a, prior)


@kernel
def diagonal_form(member: Member, x: Floats, row: int) -> float:
    """The number x'Mx for M the diagonal of the inverse."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i] * member.diagonal[row, i]
    return total


@kernel
def member_guess(member: Member, x: Floats, row: int) -> float:
    """What √(x'A⁻¹x) will be, by the diagonal alone; exactly that for a model without rounds."""
    return math.sqrt(member.ratio[row] * diagonal_form(member, x, row))


@kernel
def member_observe(
    member: Member, x: Floats, row: int, target: float, weight: float, prior: float
) -> float:
    """Learn a target; the error of the prediction that was made before."""
    ridge, toward = member.ridge, member.toward
    by_weights, by_toward = dot_row(ridge.weights, row, x), dot_row(toward, row, x)
    said = diagonal_form(member, x, row)
    gain(ridge, x, row, weight)
    step = ridge.scratch
    add_to_row(ridge.weights, row, step, target - by_weights)
    intercept = x[x.shape[0] - 1]
    add_to_row(toward, row, step, intercept - by_toward)
    note_diagonal(ridge, member.diagonal, row)
    reached = dot(x, step)
    if said > 0.0 and reached < 1.0:
        ratio = min(reached / ((1.0 - reached) * weight) / said, 10.0)
        member.ratio[row] += FADING * (ratio - member.ratio[row])
    return float(target - (by_weights + prior * (intercept - by_toward)))


@implements(n_rows, Adaptive)
def adaptive_rows(learner: Adaptive) -> int:
    """As many as any member has."""
    return int(learner.average.ratio.shape[0])


@implements(noise, Adaptive)
def adaptive_noise(learner: Adaptive) -> float:
    """The root of the mixture's average squared error."""
    return float(learner.now[NOISE])


@implements(predict, Adaptive)
def adaptive_predict(learner: Adaptive, x: Floats, row: int) -> float:
    """The members' predictions by their weights."""
    now, total = learner.now, 0.0
    wide, model = choice(x, row)
    narrow(learner, wide)
    if now[WIDE] > 0.0:
        total += now[WIDE] * member_predict(learner.wide, wide, model, now[PRIOR])
    if now[PLAIN] > 0.0:
        total += now[PLAIN] * member_predict(learner.plain, learner.narrow, model, now[PRIOR])
    if now[AVERAGE] > 0.0:
        own = wide[own_from(learner, wide) :]
        total += now[AVERAGE] * member_predict(learner.average, own, model, now[PRIOR])
    if now[FOREST] > 0.0:
        find(learner.forest, wide)
        total += now[FOREST] * said_of(learner.forest, model)
    return raised(x, row, total)


@implements(predict_all, Adaptive)
def adaptive_predict_all(learner: Adaptive, x: Floats, first: int, out: Floats) -> None:
    """The same for every row."""
    now = learner.now
    if differ(x):
        for a in range(out.shape[0]):
            out[a] = predict(learner, x, first + a)
        return
    wide, _ = choice(x, first)
    narrow(learner, wide)
    prior = now[PRIOR]
    for a in range(out.shape[0]):
        out[a] = 0.0
    if now[WIDE] > 0.0:
        add_predictions(learner.wide, wide, first, prior, now[WIDE], out)
    if now[PLAIN] > 0.0:
        add_predictions(learner.plain, learner.narrow, first, prior, now[PLAIN], out)
    if now[AVERAGE] > 0.0:
        add_predictions(learner.average, learner.one, first, prior, now[AVERAGE], out)
    if now[FOREST] > 0.0:
        find(learner.forest, wide)
        add_average(learner.forest, learner.forest.values, first, now[FOREST], out)


@implements(spread, Adaptive)
def adaptive_spread(learner: Adaptive, x: Floats, row: int) -> float:
    """The noise times the members' √(x'A⁻¹x) by their weights."""
    now, total = learner.now, 0.0
    wide, model = choice(x, row)
    narrow(learner, wide)
    if now[WIDE] > 0.0:
        total += now[WIDE] * spread(learner.wide.ridge, wide, model)
    if now[PLAIN] > 0.0:
        total += now[PLAIN] * spread(learner.plain.ridge, learner.narrow, model)
    if now[AVERAGE] > 0.0:
        own = wide[own_from(learner, wide) :]
        total += now[AVERAGE] * spread(learner.average.ridge, own, model)
    if now[FOREST] > 0.0:
        find(learner.forest, wide)
        total += now[FOREST] * doubt_of(learner.forest, model)
    return float(now[NOISE] * spread_with(x, row, total))


@kernel
def guess_of_ridges(learner: Adaptive, x: Floats, model: int) -> float:
    """About as large as the spread of the ridges, without the noise; `narrow` is that of x."""
    now, total = learner.now, 0.0
    if now[WIDE] > 0.0:
        total += now[WIDE] * member_guess(learner.wide, x, model)
    if now[PLAIN] > 0.0:
        total += now[PLAIN] * member_guess(learner.plain, learner.narrow, model)
    if now[AVERAGE] > 0.0:
        total += now[AVERAGE] * member_guess(learner.average, x[own_from(learner, x) :], model)
    return total


@implements(spread_guess, Adaptive)
def adaptive_spread_guess(learner: Adaptive, x: Floats, row: int) -> float:
    """The same by diagonals, in O(D)."""
    now = learner.now
    wide, model = choice(x, row)
    narrow(learner, wide)
    total = guess_of_ridges(learner, wide, model)
    if now[FOREST] > 0.0:
        find(learner.forest, wide)
        total += now[FOREST] * doubt_of(learner.forest, model)
    return float(now[NOISE] * spread_with(x, row, total))


@implements(spread_guess_all, Adaptive)
def adaptive_spread_guess_all(learner: Adaptive, x: Floats, first: int, out: Floats) -> None:
    """The same for every row."""
    now = learner.now
    if differ(x):
        for a in range(out.shape[0]):
            out[a] = spread_guess(learner, x, first + a)
        return
    wide, _ = choice(x, first)
    narrow(learner, wide)
    for a in range(out.shape[0]):
        out[a] = guess_of_ridges(learner, wide, first + a)
    if now[FOREST] > 0.0:
        find(learner.forest, wide)
        add_average(learner.forest, learner.forest.doubts, first, now[FOREST], out)
    for a in range(out.shape[0]):
        out[a] *= now[NOISE]


@kernel
def has_changed(learner: Adaptive, row: int, error: float) -> bool:
    """Note an error of the mixture; whether rewards have been too low for long enough.

    As if some rounds had been seen before that were as predicted: the first errors are large.
    """
    lately, watched = learner.lately, learner.watched
    watched[row] += 1.0
    n = min(watched[row] + SOME, WATCHED)
    lately[row] += (error / learner.now[NOISE] - lately[row]) / n
    return bool(watched[row] >= WATCHED and lately[row] < -ALARM)


@kernel
def member_fade(member: Member) -> None:
    """Trust every model as if it had seen less."""
    for row in range(member.ratio.shape[0]):
        fade(member.ridge, row, REMEMBERED, member.most)
        note_diagonal(member.ridge, member.diagonal, row)


@kernel
def doubt(learner: Adaptive) -> None:
    """After a change: trust all models less, and watch them anew."""
    member_fade(learner.wide)
    member_fade(learner.plain)
    member_fade(learner.average)
    trust_less(learner.forest, REMEMBERED)
    learner.lately[:] = 0.0
    learner.watched[:] = 0.0
    learner.changes[0] += 1.0


@kernel
def grow_tree(learner: Adaptive, tree: int) -> None:
    """Grow a tree of the forest anew, above the averages of the moment.

    Where all rewards were equal it is a single leaf.
    """
    average, now, span = learner.average, learner.now, learner.totals[MOST] - learner.totals[LEAST]
    for row in range(learner.means.shape[1]):
        learner.means[0, row] = member_predict(average, learner.one, row, now[PRIOR])
        learner.means[1, row] = 1.0 / average.diagonal[row, 0]
    least = CLOSE * span * span if span > LEAST_SPAN else math.inf
    grow(learner.forest, tree, learner.means[0], learner.means[1], least)


@implements(observe, Adaptive)
def adaptive_observe(learner: Adaptive, x: Floats, row: int, target: float, weight: float) -> None:
    """Every member learns the target; then they are weighed again.

    The first target of all is a surprise to everyone, and counts as no error.
    """
    totals, errors, now = learner.totals, learner.errors, learner.now
    prior = now[PRIOR] if totals[ROUNDS] > 0.0 else target
    wide, model = choice(x, row)
    own, weight = left(x, row, target), weighed(x, row, weight)
    narrow(learner, wide)
    error = member_observe(learner.wide, wide, model, own, weight, prior)
    errors[WIDE] += error * error
    missed = now[WIDE] * error
    error = member_observe(learner.plain, learner.narrow, model, own, weight, prior)
    errors[PLAIN] += error * error
    missed += now[PLAIN] * error
    alone = wide[own_from(learner, wide) :]
    error = member_observe(learner.average, alone, model, own, weight, prior)
    errors[AVERAGE] += error * error
    missed += now[AVERAGE] * error
    tree = -1
    if learner.forest.at.shape[0] > 0:
        find(learner.forest, wide)
        if is_grown(learner.forest):
            error = own - said_of(learner.forest, model)
        errors[FOREST] += error * error  # until it is grown, that of the average
        missed += now[FOREST] * error
        tree = take(learner.forest, wide, model, own, weight)
    if has_changed(learner, model, missed):
        doubt(learner)
    take_in(totals, target, float(learner.places.shape[0]))
    mix(learner)
    if tree >= 0:
        grow_tree(learner, tree)
        mix(learner)


@implements(correct, Adaptive)
def adaptive_correct(learner: Adaptive, x: Floats, row: int, error: float, weight: float) -> None:
    """The target is what was predicted and the error."""
    observe(learner, x, row, predict(learner, x, row) + error, weight)
