"""What a policy would have earned, estimated from a log of another one.

A log holds rounds: a context, the action that was chosen, the chance it had, and its reward. The
*weight* of a round is the chance that the policy in question gives to the logged action, divided
by the chance that it had. Six estimates of the policy's mean reward:

- `ips`, the mean of weight · reward: unbiased whatever rewards look like, and the noisiest.
- `snips`, which divides by the sum of weights instead of the number of rounds: hardly biased,
  never outside the rewards, and much less noisy where weights vary.
- `direct`, the mean prediction of a model of the rewards: the least noisy, and wrong by as much as
  the model is.
- `doubly_robust`, the model corrected by the weighted errors it makes on the log: unbiased as
  `ips` is, and the better the model, the less noisy.
- `switch` (Wang, Agarwal and Dudík, 2017), `doubly_robust` where the weight is at most tau, and the
  model alone where it is larger: a little bias for much less noise where few rounds weigh a lot.
- `shrunk` (Su, Dimakopoulou, Krishnamurthy and Dudík, 2020: DRos), `doubly_robust` with the weight
  w replaced by λw / (w² + λ), which is at most √λ / 2.

And where actions have features a seventh, `mips` (Saito and Joachims, 2022): `ips` with weights of
what an action looks like, its chance by the policy over that in the log, each the sum over all
actions that look alike. Unbiased if actions that look alike earn alike in a context, and then no
noisier than `ips`; otherwise wrong by as much as they differ. In eight worlds of 40 actions that
look like 4, with 1000 logs of 200 and of 1000 rounds each, its 95 % intervals held the truth in 96
to 98 %, and with 1000 rounds they were 0.22 to 0.42 times as wide as those of `ips`.

Tau and λ are chosen from the data: the one of `CANDIDATES` values whose estimated square error,
variance of the mean + bias², is least. The bias is the mean of what the weights lose, (w - w') ·
(reward - prediction), itself noisy, so that doubt speaks for `doubly_robust`, which has none. In
simulated worlds the error was, beside that of `doubly_robust`, 0.85 (`switch`) and 0.71 (`shrunk`)
times as large by a right model, and 1.01 and 0.95 times by one that says 20 % too little; at worst
1.16 times. The interval is that of `doubly_robust`: what the smaller weights leave out is known no
better than so. One of the smaller weights alone held the truth in as few as 80 % of logs.

**Intervals.** Weights have heavy tails and rewards are often rare, so what the log has not seen
decides how sure one may be: 200 rounds without a success do not prove that there are none, but a
t interval, whose width is then 0, claims so. Each end is therefore a t interval's end after one
more round that speaks for going further, a success of typical weight at the high end and a
failure at the low one. Typical is the average weight of a unit of weight, n · mean / effective
sample size, so the extra round matters as one effective observation would, and less and less as
the log grows. Rewards are taken to lie in [0, 1], and so are means of them: the ends are cut there.
`melee.evaluation.units` moves rewards of any unit there, and estimates back.

Heavy rounds that did not come leave nothing but weights that average less than 1, which `ips` does
not look at and `snips` makes up for. So the high end of `ips` is at least that of `snips`. On 326
cells of 80 random worlds with 50 to 1000 rounds, 150 logs each, its intervals held in 92.7 % at
least, where they had held in 84.5 %, and became 2.4 % wider, 9 % at most; in the worlds of the
tests 1 to 8 % wider, and by 16 % where 40 candidates had 200 rounds. Tried as well: the extra
round by the greatest weights (0.845 as before, 6 % wider), and the variance that the probabilities
of all actions promise (as safe, 1.6 % wider, but these are not always known).

**Dropped rounds.** Where a round stands for several, of which the others were dropped from the log
at random, its weight counts it so often: it is multiplied by the round's *size*, how many rounds it
stands for over how many one stands for on average. Estimates are means over all rounds, then, but
the evidence is that of the rounds that were kept: a mean is a ratio of two sums over these, whose
error `ratio_terms` tells. The extra round of an interval is of the size that successes of the log
have, or failures: where only failures were dropped, one success more stands for itself alone.
Sizes are 1 where none was dropped.

Of 400 simulated logs for each of 13 worlds (mild and heavy weights, rare and nearly certain
rewards) with 200 and 2000 rounds, those with an effective sample size of at least 10 had the truth
within their 95 % intervals in 93 to 100 % of cases, by each of `ips`, `snips` and `doubly_robust`;
in two of them a weight of 30 comes once in 160 rounds, and a third of the logs of 200 lack it. In
the random worlds above `snips` held in 91 % where it is at its worst, with failures in 2 % of the
rounds and weights of up to 13, and `doubly_robust` in 94 %. A plain t interval
held the truth in as few as 43 %. One corrected for skewness (Hall, 1992) did as badly, and with the
extra round it was as safe as this one but up to three times as wide. `tests/evaluation` repeats the
simulation.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.evaluation.digits import in_digits
from melee.evaluation.tails import t_quantile


class Estimate(NamedTuple):
    """A policy's mean reward, with the ends of its confidence interval.

    The value may lie outside the range of rewards by chance, except for `snips`; the interval does
    not.
    """

    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = in_digits(self.value, self.low, self.high)
        return f"{value} [{low}, {high}]"


def effective_sample_size(weights: Floats) -> float:
    """How many rounds of equal weight would be as good: (Σw)² / Σw²; 0 without any weight.

    >>> effective_sample_size(np.array([1.0, 1.0, 1.0, 0.0]))
    3.0
    """
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def ips(
    weights: Floats, rewards: Floats, confidence: float = 0.95, sizes: Floats | float = 1.0
) -> Estimate:
    """Inverse propensity scoring: the mean of weight · reward.

    Its interval reaches as high as that of `snips`, which knows where heavy rounds did not come.

    >>> print(ips(np.array([2.0, 0.0, 2.0, 0.0] * 25), np.tile([1.0, 1.0, 0.0, 0.0], 25)))
    0.5000 [0.3238, 0.6883]
    """
    values = ratio_terms(weights * rewards, sizes)
    _, success = extra_weights(weights, rewards, sizes)
    low, high = mean_interval(values, 0.0, success, confidence)
    if weights.any():
        high = max(high, snips(weights, rewards, confidence, sizes).high)
    return _estimate("ips", values.mean(), low, high)


def snips(
    weights: Floats, rewards: Floats, confidence: float = 0.95, sizes: Floats | float = 1.0
) -> Estimate:
    """Self-normalized IPS: Σ weight · reward / Σ weight; its error by the delta method.

    Student's t has as many degrees of freedom as the log has effective rounds: few heavy ones
    know the spread of their rewards no better than so few rounds would.

    >>> print(snips(np.array([2.0, 0.0, 2.0, 0.0] * 25), np.tile([1.0, 1.0, 0.0, 0.0], 25)))
    0.5000 [0.3489, 0.6511]
    """
    value = float(weights @ rewards / weights.sum())
    ends = []
    for end, extra in enumerate(extra_weights(weights, rewards, sizes)):
        w, r = np.append(weights, extra), np.append(rewards, float(end))
        ratio = w @ r / w.sum()
        # The ratio's influence: what each round contributes to its error.
        influence = ratio + w * (r - ratio) / w.mean()
        freedom = max(1, round(effective_sample_size(w)) - 1)
        ends.append(t_interval(influence, confidence, freedom)[end])
    return _estimate("snips", value, *ends)


def direct(
    predicted: Floats,
    implied: Floats,
    rewards: Floats,
    predicted_chosen: Floats,
    confidence: float = 0.95,
    sizes: Floats | float = 1.0,
) -> Estimate:
    """The direct method: the mean of what a model predicts for the policy's choices.

    Its interval tells of the luck of contexts, of the luck of the rewards that the model learned
    from, and of what the model's penalty holds back: errors count by the weights that the model
    implies, as in a doubly robust estimate, and their mean, 0 without a penalty, counts as bias.
    It holds if rewards are as the model can say. How wrong it is otherwise, no interval knows.

    Parameters
    ----------
    predicted
        For each round, the policy's expected reward by the model: Σ_a π(a|x) q(x, a).
    implied
        What each reward weighs in the mean of `predicted`; see `reward_model.implied_weights`.
    predicted_chosen
        The model's prediction q(x, a) for the logged action, not learned from that round.
    """
    errors = implied * (rewards - predicted_chosen)
    bias = float(errors.mean())
    centre = float(predicted.mean())
    against = _against(centre, *extra_weights(np.abs(implied), rewards, sizes))
    ends = mean_interval(predicted + errors - bias, *against, confidence)
    return _estimate("dm", centre, *widened(ends, centre, bias, confidence))


def doubly_robust(
    weights: Floats,
    rewards: Floats,
    predicted_chosen: Floats,
    predicted: Floats,
    confidence: float = 0.95,
    sizes: Floats | float = 1.0,
) -> Estimate:
    """The direct method plus the mean of weight · (reward - prediction).

    Unbiased if the predictions of a round were not learned from that round and weights are right.

    Parameters
    ----------
    predicted_chosen
        The model's prediction q(x, a) for the logged action.
    predicted
        For each round, the policy's expected reward by the model: Σ_a π(a|x) q(x, a).
    """
    values = predicted + ratio_terms(weights * (rewards - predicted_chosen), sizes)
    against = _against(float(predicted.mean()), *extra_weights(weights, rewards, sizes))
    return _estimate("dr", values.mean(), *mean_interval(values, *against, confidence))


def switch(
    weights: Floats,
    rewards: Floats,
    predicted_chosen: Floats,
    predicted: Floats,
    tau: float,
    confidence: float = 0.95,
    sizes: Floats | float = 1.0,
) -> Estimate:
    """Doubly robust where the weight is at most tau, and the model alone elsewhere.

    How many rounds a round stands for is no part of the weight that tau is about. The interval is
    that of `doubly_robust`. With tau = inf the value is, too; with 0, it is the mean of what the
    model predicts.
    """
    whole = doubly_robust(weights, rewards, predicted_chosen, predicted, confidence, sizes)
    kept = sizes * switched(weights / sizes, tau)
    values = predicted + kept * (rewards - predicted_chosen)
    return whole._replace(name="switch", value=float(values.mean()))


def shrunk(
    weights: Floats,
    rewards: Floats,
    predicted_chosen: Floats,
    predicted: Floats,
    lam: float,
    confidence: float = 0.95,
    sizes: Floats | float = 1.0,
) -> Estimate:
    """Doubly robust with weights λw / (w² + λ), by λ = `lam`.

    How many rounds a round stands for is no part of the w that shrinks. The interval is that of
    `doubly_robust`. With λ = inf the value is, too; with 0, it is the mean of what the model
    predicts.
    """
    whole = doubly_robust(weights, rewards, predicted_chosen, predicted, confidence, sizes)
    kept = sizes * shrunken(weights / sizes, lam)
    values = predicted + kept * (rewards - predicted_chosen)
    return whole._replace(name="dros", value=float(values.mean()))


def switched(weights: Floats, tau: float) -> Floats:
    """Weights of at most tau, or as good as tau after rounding; 0 for others.

    >>> switched(np.array([0.5, 2.0, 30.0]), tau=2.0)
    array([0.5, 2. , 0. ])
    """
    return np.where(weights <= tau * (1.0 + 1e-9), weights, 0.0)


def shrunken(weights: Floats, lam: float) -> Floats:
    """Weights λw / (w² + λ).

    >>> shrunken(np.array([0.0, 1.0, 10.0]), lam=100.0).round(2)
    array([0.  , 0.99, 5.  ])
    """
    if lam == 0.0:
        return np.zeros_like(weights)
    return weights / (1.0 + weights * weights / lam)


CANDIDATES = 20
"""Values of tau, and of λ, that are tried, besides inf."""


def choose_tau(
    weights: Floats, errors: Floats, predicted: Floats, sizes: Floats | float = 1.0
) -> float:
    """The tau of `switch` with the least estimated square error; `errors` are r - q(x, a).

    Candidates are quantiles of the positive weights, which a policy of few actions may lack.
    """
    positive = (weights / sizes)[weights > 0.0]
    tried = np.unique(np.quantile(positive, np.linspace(0.0, 1.0, CANDIDATES)))[:-1]
    return _least_error(switched, np.append(tried, np.inf), weights, errors, predicted, sizes)


def choose_lam(
    weights: Floats, errors: Floats, predicted: Floats, sizes: Floats | float = 1.0
) -> float:
    """The λ of `shrunk` with the least estimated square error; `errors` are r - q(x, a).

    Candidates go from the least positive weight to ten times the greatest, squared.
    """
    positive = (weights / sizes)[weights > 0.0]
    tried = np.geomspace(positive.min(), 10.0 * positive.max(), CANDIDATES) ** 2
    return _least_error(shrunken, np.append(tried, np.inf), weights, errors, predicted, sizes)


def _least_error(
    reduced: Callable[[Floats, float], Floats],
    tried: Floats,
    weights: Floats,
    errors: Floats,
    predicted: Floats,
    sizes: Floats | float,
) -> float:
    """The largest value with the least variance of the mean + bias²."""
    squares = []
    for strength in tried:
        kept = sizes * reduced(weights / sizes, strength)
        bias = ((weights - kept) * errors).mean()
        values = predicted + ratio_terms(kept * errors, sizes)
        squares.append(values.var(ddof=1) / len(weights) + bias * bias)
    return float(tried[np.flatnonzero(np.array(squares) <= min(squares))[-1]])


def ratio_terms(sized: Floats, sizes: Floats | float) -> Floats:
    """Values whose mean is Σ sized / Σ sizes, and whose spread is that of this ratio's error.

    Sizes have the mean 1; `sized` are sizes · values. Where all values are alike so is their mean,
    whatever the sizes:

    >>> sizes = np.array([0.5, 0.5, 2.0])
    >>> ratio_terms(sizes * 3.0, sizes)
    array([3., 3., 3.])
    """
    terms: Floats = sized - (sizes - 1.0) * sized.mean()
    return terms


def typical_weight(weights: Floats) -> float:
    """The average weight of a unit of weight, Σw² / Σw; 0 without any weight."""
    total = float(weights.sum())
    return float(weights @ weights) / total if total > 0.0 else 0.0


def extra_weights(weights: Floats, rewards: Floats, sizes: Floats | float) -> tuple[float, float]:
    """The weights of one more failure and of one more success: typical ones, of their usual sizes.

    >>> clicks, sizes = np.array([1.0, 0.0, 0.0]), np.array([0.25, 1.375, 1.375])
    >>> extra_weights(sizes, clicks, sizes)
    (1.375, 0.25)
    """
    sizes = np.ones(len(weights)) * sizes
    usual = typical_weight(sizes)
    failure, success = (
        float(sizes**2 @ share / (sizes @ share)) if share.any() else usual
        for share in (1.0 - rewards, rewards)
    )
    extra = typical_weight(weights)
    return extra * failure / usual, extra * success / usual


def mean_interval(
    values: Floats, below: float, above: float, confidence: float
) -> tuple[float, float]:
    """A confidence interval of a mean: each end is that of a t interval after one more value.

    `below` is the value added for the low end, `above` the one for the high end; see the module.
    """
    low, _ = t_interval(np.append(values, below), confidence)
    _, high = t_interval(np.append(values, above), confidence)
    return low, high


def widened(
    ends: tuple[float, float], centre: float, bias: float, confidence: float
) -> tuple[float, float]:
    """An interval that counts a bias, as large as estimated, like one more source of noise."""
    reach = NormalDist().inv_cdf(0.5 + 0.5 * confidence) * bias
    low, high = (np.hypot(end - centre, reach) for end in ends)
    return centre - float(low), centre + float(high)


def _against(centre: float, failure: float, success: float) -> tuple[float, float]:
    """What one more failure and one more success of such weights say, by a model's mean."""
    believed = min(max(centre, 0.0), 1.0)
    return centre - failure * believed, centre + success * (1.0 - believed)


def t_interval(
    values: Floats, confidence: float, freedom: int | None = None
) -> tuple[float, float]:
    """Student's confidence interval of a mean; of a single value, everything."""
    n = len(values)
    mean = float(values.mean())
    if n < 2:
        return -np.inf, np.inf
    quantile = t_quantile(freedom or n - 1, confidence)
    reach = float(quantile * values.std(ddof=1) / np.sqrt(n))
    return mean - reach, mean + reach


def _estimate(name: str, value: float, low: float, high: float) -> Estimate:
    low, high = np.clip([low, high], 0.0, 1.0)
    return Estimate(name, float(value), float(low), float(high))
