"""What is paid: from scores of actions to expected rewards, and rewards drawn around them.

Scores are of order one. Each kind turns them into a `Law`: the expected reward of every action in
every row, the variance around it, and what else a draw needs. Every reward is then drawn
independently of all others, and on average it is what was expected.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from melee.arrays import Floats


class Law(NamedTuple):
    """How rewards are distributed, all of shape (n, K); `parts` is for the one who draws."""

    expected: Floats
    variance: Floats
    parts: tuple[Floats, ...] = ()


class Payment(Protocol):
    """A kind of reward."""

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The least and the greatest reward there can be, where that is known."""

    def level(self, scores: Floats) -> float:
        """The level at which rewards of scores like these are on average where they should be."""

    def law(self, scores: Floats, level: float) -> Law:
        """The distribution of the rewards of these scores."""

    def draw(self, rng: np.random.Generator, law: Law) -> Floats:
        """A reward for every action in every row."""


@dataclass(frozen=True)
class Clicks:
    """1 or 0: clicks, purchases, calls that succeed; `rate` is that of a uniform choice."""

    rate: float

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Known."""
        return 0.0, 1.0

    def level(self, scores: Floats) -> float:
        """The intercept of a logistic model."""
        return intercept(scores, self.rate)

    def law(self, scores: Floats, level: float) -> Law:
        """Odds are multiplied by the exponential of a score."""
        rates = sigmoid(scores + level)
        return Law(rates, rates * (1.0 - rates))

    def draw(self, rng: np.random.Generator, law: Law) -> Floats:
        """Yes or no."""
        return (rng.random(law.expected.shape) < law.expected).astype(np.float64)


@dataclass(frozen=True)
class Graded:
    """Any number of a band: ratings, shares, qualities.

    Parameters
    ----------
    low, high
        The ends of the band.
    middle
        Where in the band rewards are on average, from 0 to 1.
    precision
        Of the beta distribution around an expected reward: with 1 most rewards are at the ends of
        the band, with 100 a tenth of the band from what was expected.
    levels
        How many different rewards there are, such as 5 for stars; 0 for any number.
    """

    low: float
    high: float
    middle: float = 0.5
    precision: float = 10.0
    levels: int = 0

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Users know that it is a share, not in which band shares will lie."""
        return min(self.low, 0.0), max(self.high, 1.0)

    def level(self, scores: Floats) -> float:
        """The intercept of a logistic model within the band."""
        return intercept(scores, self.middle)

    def law(self, scores: Floats, level: float) -> Law:
        """A beta distribution over the band; rounding to levels goes up or down by chance."""
        width = self.high - self.low
        place = np.clip(sigmoid(scores + level), 1e-4, 1.0 - 1e-4)
        spread = place * (1.0 - place)
        variance = spread / (1.0 + self.precision)
        if self.levels:
            variance = np.minimum(variance + 0.25 / (self.levels - 1) ** 2, spread)
        return Law(self.low + width * place, width**2 * variance, (place,))

    def draw(self, rng: np.random.Generator, law: Law) -> Floats:
        """A beta variate, within the band."""
        (place,) = law.parts
        drawn = rng.beta(self.precision * place, self.precision * (1.0 - place))
        if self.levels:
            steps = self.levels - 1
            drawn = np.floor(drawn * steps + rng.random(place.shape)) / steps
        return np.clip(self.low + (self.high - self.low) * drawn, self.low, self.high)


@dataclass(frozen=True)
class Revenue:
    """Mostly nothing, else an amount of money: a purchase, and a lognormal price.

    Parameters
    ----------
    rate
        Of purchases under uniform choice.
    amount
        Of a typical purchase, in any currency.
    spread
        Of the logarithm of amounts: 0.5 is ordinary, from 1.5 on single purchases dominate.
    by_rate
        Which share of a score changes the odds of a purchase; the rest changes its amount.
    """

    rate: float
    amount: float = 1.0
    spread: float = 0.5
    by_rate: float = 0.5

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Nobody knows the greatest."""
        return None

    def level(self, scores: Floats) -> float:
        """The intercept of the odds."""
        return intercept(self.by_rate * scores, self.rate)

    def law(self, scores: Floats, level: float) -> Law:
        """A rate and a mean amount for every action."""
        rates = sigmoid(self.by_rate * scores + level)
        amounts = self.amount * np.exp(np.clip((1.0 - self.by_rate) * scores, -4.0, 4.0))
        expected = rates * amounts
        variance = rates * amounts**2 * math.exp(self.spread**2) - expected**2
        return Law(expected, variance, (rates, amounts))

    def draw(self, rng: np.random.Generator, law: Law) -> Floats:
        """A purchase or none, and its amount, whose logarithm is normal."""
        rates, amounts = law.parts
        bought = rng.random(rates.shape) < rates
        rewards = np.zeros(rates.shape)
        z = rng.normal(size=int(bought.sum()))
        rewards[bought] = amounts[bought] * np.exp(self.spread * z - self.spread**2 / 2.0)
        return rewards


@dataclass(frozen=True)
class Numbers:
    """Any numbers, negative ones too: seconds saved, changes of a weight, profits and losses.

    Parameters
    ----------
    centre, scale
        What scores are multiplied by and then added to.
    noise
        Standard deviation around an expected reward, in units of a score.
    shape
        Of the noise: `normal`, `laplace` with heavier tails, or `skewed`.
    """

    centre: float = 0.0
    scale: float = 1.0
    noise: float = 1.0
    shape: str = "normal"

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """There is none."""
        return None

    def level(self, scores: Floats) -> float:
        """None: the centre says it."""
        return 0.0

    def law(self, scores: Floats, level: float) -> Law:
        """Rewards are scores, in other units."""
        expected = self.centre + self.scale * (scores + level)
        return Law(expected, np.full(scores.shape, (self.scale * self.noise) ** 2))

    def draw(self, rng: np.random.Generator, law: Law) -> Floats:
        """Noise of mean 0 around what is expected."""
        size = law.expected.shape
        if self.shape == "laplace":
            noise = rng.laplace(scale=math.sqrt(0.5), size=size)
        elif self.shape == "skewed":
            noise = rng.exponential(size=size) - 1.0
        else:
            noise = rng.normal(size=size)
        return law.expected + self.scale * self.noise * noise


def sigmoid(scores: Floats) -> Floats:
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-scores))


def intercept(scores: Floats, mean: float) -> float:
    """What to add to scores so that the mean of their sigmoids is this one: by bisection."""
    low, high = -40.0 - float(scores.max()), 40.0 - float(scores.min())
    for _ in range(40):
        middle = (low + high) / 2.0
        if float(sigmoid(scores + middle).mean()) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
