import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from melee import distributions, rng
from melee.rng import stream
from tests import naive
from tests.forms import compiled

uniform = compiled(rng.uniform)

greedy, mix_uniform, raise_to_floor, sample, vote = (
    compiled(distributions.greedy),
    compiled(distributions.mix_uniform),
    compiled(distributions.raise_to_floor),
    compiled(distributions.sample),
    compiled(distributions.vote),
)

# Few distinct values, so that ties are common.
scores = st.lists(
    st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-1e6, 1e6)), min_size=2, max_size=12
).map(np.array)
shares = st.floats(0, 1)


@st.composite
def pmfs(draw):
    weights = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 100]), min_size=2, max_size=12))
    assume(any(weights))
    return np.array(weights) / sum(weights)


def sums_to_one(pmf):
    return abs(pmf.sum() - 1) < 1e-12 and (pmf >= 0).all()


@given(scores)
def test_greedy_splits_the_mass_among_the_best(values):
    pmf = values.copy()
    greedy(pmf)
    assert_allclose(pmf, naive.greedy(values), rtol=1e-14)
    assert sums_to_one(pmf)
    assert set(np.flatnonzero(pmf)) == {i for i, v in enumerate(values) if v == max(values)}


@given(scores, shares)
def test_vote_adds_the_greedy_distribution_times_its_mass(values, mass):
    before = np.linspace(0.1, 0.2, len(values))
    pmf, kept = before.copy(), values.copy()
    vote(kept, mass, pmf)
    assert_allclose(pmf, before + mass * naive.greedy(values), rtol=1e-12)
    assert (kept == values).all()


@given(pmfs(), shares)
def test_mix_uniform_moves_mass_to_every_action(pmf, mass):
    mixed = pmf.copy()
    mix_uniform(mixed, mass)
    assert_allclose(mixed, naive.mix_uniform(pmf, mass), atol=1e-15)
    assert sums_to_one(mixed)


def test_the_greedy_action_counts_its_share_of_uniform_exploration():
    pmf = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    mix_uniform(pmf, 0.1)
    assert_allclose(pmf, [0.02, 0.92, 0.02, 0.02, 0.02])


@given(pmfs(), shares, st.booleans())
def test_raise_to_floor_is_the_projection_by_scaling(pmf, share, everywhere):
    floor = share / len(pmf)
    raised = pmf.copy()
    raise_to_floor(raised, floor, everywhere)
    assert_allclose(raised, naive.raise_to_floor(pmf, floor, everywhere), atol=1e-9)
    assert sums_to_one(raised)
    may = pmf > 0 if not everywhere else np.full(len(pmf), True)
    assert (raised[may] >= floor - 1e-12).all()
    assert (raised[~may] == 0).all()


def test_an_action_that_scaling_pushes_under_the_floor_is_raised_too():
    pmf = np.array([0.75, 0.25, 0.0, 0.0])
    raise_to_floor(pmf, 0.24, True)  # one pass would leave the second action at 0.13
    assert_allclose(pmf, [0.28, 0.24, 0.24, 0.24])


def test_what_has_its_floor_already_is_left_alone():
    pmf = np.array([0.7, 0.2, 0.1])
    raise_to_floor(pmf, 0.1, True)
    assert_allclose(pmf, [0.7, 0.2, 0.1])


@given(pmfs(), st.floats(0, 1, exclude_max=True))
def test_sample_inverts_the_cumulative_sum_and_never_takes_what_has_no_mass(pmf, u):
    action = sample(pmf, u)
    assert pmf[action] > 0
    cumulative = np.cumsum(pmf)
    assume(np.abs(cumulative - u).min() > 1e-12)  # on an edge rounding decides
    assert action == naive.sample(pmf, u)


def test_rounding_never_reaches_an_action_without_mass():
    short = np.array([0.1] * 10 + [0.0])  # ten times 0.1 sum to less than the largest u
    assert sample(short, 1 - 2**-53) == 9
    assert sample(np.array([0.0, 0.0, 1.0]), 0.0) == 2
    assert sample(np.array([0.0, 0.25, 0.75]), 0.25) == 2


@pytest.mark.parametrize(
    "pmf", [[0.5, 0.5], [0.9, 0.0, 0.1], [0.01, 0.01, 0.98], [0.0, 0.2, 0.3, 0.5]]
)
def test_actions_are_drawn_as_often_as_their_probability_says(pmf):
    pmf = np.array(pmf)
    rng, n = stream(1, "exploration"), 40_000
    counts = np.bincount([sample(pmf, uniform(rng)) for _ in range(n)], minlength=len(pmf))
    assert counts[pmf == 0].sum() == 0
    assert stats.chisquare(counts[pmf > 0], n * pmf[pmf > 0]).pvalue > 1e-3
