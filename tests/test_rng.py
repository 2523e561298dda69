from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from melee import rng
from melee.errors import InputError
from melee.rng import ACT, LEARN, check_seed, generator, stream
from tests import naive
from tests.forms import compiled

poisson_1, start_round, uniform = (
    compiled(rng.poisson_1),
    compiled(rng.start_round),
    compiled(rng.uniform),
)

words = st.integers(0, 2**64 - 1)
rounds = st.integers(1, 2**40)


def numbers(rng, n):
    return np.array([uniform(rng) for _ in range(n)])


def test_a_stream_is_reproducible():
    assert_array_equal(stream(7, "exploration"), stream(7, "exploration"))
    assert_array_equal(generator(7, "order").random(9), generator(7, "order").random(9))


def test_streams_differ_by_seed_and_by_name():
    names = [("order",), ("exploration",), ("tasks", 0), ("tasks", 1), ("tasks",), ()]
    keys = {int(stream(seed, *name)[0]) for seed in (0, 1, 2**70) for name in names}
    assert len(keys) == 3 * len(names)
    first = {generator(seed, *name).random() for seed in (0, 1, 2**70) for name in names}
    assert len(first) == 3 * len(names)


def test_the_words_are_those_of_splitmix64():
    rng = np.array([0, 1234567], np.uint64)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert numbers(rng, 3).tolist() == [(word >> 11) / 2**53 for word in published]


@given(words, rounds, st.sampled_from([ACT, LEARN]))
def test_uniforms_agree_with_the_definition(key, t, phase):
    rng = np.array([key, 0], np.uint64)
    start_round(rng, t, phase)
    twin = naive.SplitMix(key, t, phase)
    assert numbers(rng, 5).tolist() == [twin.uniform() for _ in range(5)]


@given(words, rounds, st.integers(0, 40))
def test_a_round_does_not_depend_on_how_much_earlier_rounds_drew(key, t, n_earlier):
    fresh, used = np.array([key, 0], np.uint64), np.array([key, 0], np.uint64)
    start_round(used, t - 1, LEARN)
    numbers(used, n_earlier)
    for one in (fresh, used):
        start_round(one, t, ACT)
    assert_array_equal(numbers(fresh, 5), numbers(used, 5))


def test_rounds_and_phases_have_numbers_of_their_own():
    rng = stream(0, "exploration")
    first = set()
    for t in range(1, 2001):
        for phase in (ACT, LEARN):
            start_round(rng, t, phase)
            first.add(uniform(rng))
    assert len(first) == 4000


@pytest.mark.parametrize("how", ["within a round", "first of each round", "last of each round"])
def test_uniforms_are_uniform(how):
    rng, n = stream(5, "exploration"), 50_000
    if how == "within a round":
        start_round(rng, 1, ACT)
        u = numbers(rng, n)
    else:
        u = np.empty(n)
        for t in range(n):
            start_round(rng, t, ACT)
            u[t] = numbers(rng, 1 if how.startswith("first") else 4)[-1]
    assert u.min() >= 0
    assert u.max() < 1
    assert u.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / n))
    assert u.var() == pytest.approx(1 / 12, abs=4 * np.sqrt(1 / 180 / n))
    assert stats.chisquare(np.bincount((u * 100).astype(int), minlength=100)).pvalue > 1e-3
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 4 / np.sqrt(n)
    pairs = np.histogram2d(u[::2], u[1::2], bins=10, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-3


def test_poisson_draws_have_the_distribution_of_a_poisson_of_mean_one():
    rng, n = stream(6, "exploration"), 50_000
    draws = np.array([poisson_1(rng) for _ in range(n)])
    seen = np.bincount(np.minimum(draws, 6), minlength=7)
    expected = n * np.append(stats.poisson(1).pmf(np.arange(6)), stats.poisson(1).sf(5))
    assert stats.chisquare(seen, expected).pvalue > 1e-3


@given(words)
def test_a_poisson_draw_inverts_the_cumulative_distribution(key):
    rng = np.array([key, 0], np.uint64)
    start_round(rng, 1, LEARN)
    assert poisson_1(rng) == naive.SplitMix(key, 1, LEARN).poisson_1()


@pytest.mark.parametrize("seed", [-1, 1.0, 0.5, True, None, "1", np.float64(2)])
def test_what_is_not_a_seed_is_refused(seed):
    for use in (check_seed, stream, generator):
        with pytest.raises(InputError, match=r"seed is .*; expected a whole number, 0 or larger"):
            use(seed)


def test_seeds_may_be_integers_of_numpy():
    seed: Any = np.int64(4)
    assert_array_equal(stream(seed, "a"), stream(4, "a"))
