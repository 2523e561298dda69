"""From scores to the distribution that is sampled *and* logged.

Every explorer ends here, so the probability in the log is the probability of the draw. The
functions work in place on one array of length K.
"""

from melee.arrays import Floats
from melee.compiled import interpreted_as, kernel


def _largest_at_once(values: Floats) -> float:
    return float(values.max())


@interpreted_as(_largest_at_once)
def largest(values: Floats) -> float:
    """The largest of some numbers."""
    most = values[0]
    for value in values:
        most = max(most, value)
    return float(most)


@kernel
def greedy(pmf: Floats) -> None:
    """Turn scores into the greedy distribution; tied best actions share the mass evenly."""
    best = pmf[0]
    n_best = 0
    for score in pmf:
        if score > best:
            best, n_best = score, 1
        elif score == best:
            n_best += 1
    share = 1.0 / n_best
    for a in range(pmf.shape[0]):
        pmf[a] = share if pmf[a] == best else 0.0


@kernel
def vote(scores: Floats, mass: float, pmf: Floats) -> None:
    """Add the greedy distribution of `scores`, times `mass`, to `pmf`. Leaves scores alone."""
    best = scores[0]
    n_best = 0
    for score in scores:
        if score > best:
            best, n_best = score, 1
        elif score == best:
            n_best += 1
    share = mass / n_best
    for a in range(pmf.shape[0]):
        if scores[a] == best:
            pmf[a] += share


@kernel
def mix_uniform(pmf: Floats, mass: float) -> None:
    """Move `mass` in total to uniform exploration: each action keeps 1-mass and gains mass/K.

    The greedy action of a greedy `pmf` ends with 1 - mass + mass/K, as in the paper's
    description of test time.
    """
    if mass > 0.0:
        each = mass / pmf.shape[0]
        for a in range(pmf.shape[0]):
            pmf[a] = (1.0 - mass) * pmf[a] + each


@kernel
def raise_to_floor(pmf: Floats, floor: float, everywhere: bool) -> None:
    """Give actions at least `floor` and scale the others down so that the sum stays 1.

    Where scaling down pushes another action under the floor, that one is raised too, until
    none is left. With `everywhere` false, actions without any mass keep none. `floor` times
    the number of actions must not exceed 1.
    """
    n_low = 0
    while True:
        low = 0
        high_mass = 0.0
        for p in pmf:
            if p > floor:
                high_mass += p
            elif p > 0.0 or everywhere:
                low += 1
        scale = (1.0 - low * floor) / high_mass if high_mass > 0.0 else 1.0
        for a in range(pmf.shape[0]):
            if pmf[a] > floor:
                pmf[a] *= scale
            elif pmf[a] > 0.0 or everywhere:
                pmf[a] = floor
        if low == n_low or high_mass == 0.0:
            break
        n_low = low
    total = 0.0
    for p in pmf:
        total += p
    for a in range(pmf.shape[0]):
        pmf[a] /= total


@kernel
def sample(pmf: Floats, u: float) -> int:
    """The action at which the cumulative sum passes `u`; never one of probability zero."""
    action = 0
    for a in range(pmf.shape[0]):
        if pmf[a] > 0.0:
            action = a
            u -= pmf[a]
            if u < 0.0:
                break
    return action
