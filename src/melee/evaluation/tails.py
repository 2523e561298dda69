"""Chances of extremes: tails of the normal, Poisson, chi-square, Kolmogorov and Student's t.

What checks and intervals compare with, for single numbers, to about twelve digits. Series and
continued fractions are those of Press et al., "Numerical Recipes", 6.2 and 6.4; what stands before
them is computed by Loader's saddle points (2000), which stay exact where counts are large.
"""

import functools
import math
import sys
from statistics import NormalDist

_EPSILON = sys.float_info.epsilon
_TINY = sys.float_info.min / _EPSILON


def normal_tail(z: float) -> float:
    """The chance that a standard normal number is above z.

    >>> round(normal_tail(1.96), 4)
    0.025
    """
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def poisson_at_most(count: float, mean: float) -> float:
    """The chance of at most so many events where `mean` are expected.

    >>> round(poisson_at_most(0, 1.0), 4)
    0.3679
    """
    return _gamma_tails(math.floor(count) + 1.0, mean)[1]


def poisson_at_least(count: float, mean: float) -> float:
    """The chance of at least so many events where `mean` are expected.

    >>> round(poisson_at_least(1, 1.0), 4)
    0.6321
    """
    return _gamma_tails(math.ceil(count), mean)[0] if count > 0 else 1.0


def chi_square_tail(x: float, freedom: int) -> float:
    """The chance that a chi-square number with so many degrees of freedom is above x.

    >>> round(chi_square_tail(3.84, 1), 4)
    0.05
    """
    return _gamma_tails(0.5 * freedom, 0.5 * x)[1]


def kolmogorov_tail(y: float) -> float:
    """The chance that √n times the Kolmogorov-Smirnov distance is above y, for large n.

    >>> round(kolmogorov_tail(1.358), 4)
    0.05
    """
    if y <= 0.0:
        return 1.0
    if y < 1.0:  # the same function, by the series that converges here
        terms = (math.exp(-(((2 * k - 1) * math.pi / y) ** 2) / 8.0) for k in range(1, 5))
        return 1.0 - math.sqrt(2.0 * math.pi) / y * sum(terms)
    return sum((2.0 if k % 2 else -2.0) * math.exp(-2.0 * (k * y) ** 2) for k in range(1, 6))


@functools.lru_cache(maxsize=1024)
def t_quantile(freedom: int, confidence: float) -> float:
    """How far from 0 the middle `confidence` of Student's t reaches.

    Newton's steps for the logarithm of the tail, as a function of that of t. It is concave, and
    nearly straight where the tail is heavy, so they arrive from anywhere.

    >>> round(t_quantile(10, 0.95), 3)
    2.228
    """
    wanted = 1.0 - confidence
    t = -NormalDist().inv_cdf(0.5 * wanted)
    if freedom > 20_000:  # nearly normal; Abramowitz and Stegun, 26.7.5
        s = t * t
        first = (s + 1.0) / 4.0
        second = ((5.0 * s + 16.0) * s + 3.0) / 96.0
        third = (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0
        return t * (1.0 + (first + (second + third / freedom) / freedom) / freedom)
    if t <= 0.0:
        return 0.0
    for _ in range(60):
        tail, slope = _two_sided_t(freedom, t)
        step = math.log(tail / wanted) / slope
        t *= math.exp(step)
        if abs(step) <= 1e-9:  # the next would be of the order of its square
            break
    return t


def _two_sided_t(freedom: int, t: float) -> tuple[float, float]:
    """The chance of |T| > t for t > 0, and how fast its logarithm falls with that of t."""
    half = 0.5 * freedom
    constant = (  # of log Γ(half + ½) / Γ(half) / √π
        _stirling(half + 0.5)
        - _stirling(half)
        + half * math.log1p(0.5 / half)
        + 0.5 * (math.log(half / math.pi) - 1.0)
    )
    x = freedom / (freedom + t * t)
    near = t * t / (freedom + t * t)  # 1 - x
    # t times the density of t
    front = math.exp(constant - half * math.log1p(t * t / freedom)) * math.sqrt(near)
    if x < (half + 1.0) / (half + 2.5):
        tail = front / half * _beta_fraction(half, 0.5, x)
    else:
        tail = 1.0 - 2.0 * front * _beta_fraction(0.5, half, near)
    return tail, 2.0 * front / tail


def _gamma_tails(a: float, x: float) -> tuple[float, float]:
    """The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x)."""
    if x <= 0.0:
        return 0.0, 1.0
    # x^a e^-x / Γ(a + 1)
    front = math.exp(-_stirling(a) - _deviance(a, x)) / math.sqrt(2.0 * math.pi * a)
    if x < a + 1.0:
        total = term = 1.0
        n = a
        while term > total * _EPSILON:
            n += 1.0
            term *= x / n
            total += term
        return front * total, 1.0 - front * total
    # Lentz's way to evaluate a continued fraction
    b = x + 1.0 - a
    c, d = 1.0 / _TINY, 1.0 / b
    fraction, change, i = d, 0.0, 0
    while abs(change - 1.0) > _EPSILON:
        i += 1
        b += 2.0
        d = 1.0 / _not_zero(i * (a - i) * d + b)
        c = _not_zero(b + i * (a - i) / c)
        change = c * d
        fraction *= change
    return 1.0 - front * a * fraction, front * a * fraction


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2)."""
    c, d = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction, change, m = d, 0.0, 0
    while abs(change - 1.0) > _EPSILON:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for step in (even, odd):
            d = 1.0 / _not_zero(1.0 + step * d)
            c = _not_zero(1.0 + step / c)
            change = c * d
            fraction *= change
    return fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _stirling(n: float) -> float:
    """What Stirling's formula lacks: log Γ(n + 1) - log(√(2πn) (n/e)^n)."""
    if n < 16.0:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    square = 1.0 / (n * n)
    series = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * 691 / 360360))
    return (1 / 12 - square * (1 / 360 - square * series)) / n


def _deviance(a: float, x: float) -> float:
    """The value of a log(a / x) + x - a, without its cancellation where x is close to a."""
    away = (x - a) / a
    if abs(away) > 0.1:
        return a * math.log(a / x) + (x - a)
    total, power, k = 0.0, away * away, 2
    while abs(power) / k > total * _EPSILON:
        total += power / k if k % 2 == 0 else -power / k
        power, k = power * away, k + 1
    return a * total
