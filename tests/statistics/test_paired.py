import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from melee.statistics.paired import (
    FEW_DATASETS,
    fit_scaled_f,
    moderated_t,
    paired_t,
    seed_t,
    two_sided,
)


@pytest.mark.parametrize("n", [2, 3, 50, 1000])
def test_paired_t_agrees_with_scipy_on_every_row(n):
    rng = np.random.default_rng(n)
    a, b = rng.random((4, 5, n)), rng.random((4, 5, n))
    tested, expected = paired_t(a, b), stats.ttest_rel(a, b, axis=-1)
    assert_allclose(tested.p_value, expected.pvalue, rtol=1e-9)
    assert_allclose(tested.difference, (a - b).mean(axis=-1), atol=1e-15)


def test_no_difference_is_no_evidence_and_a_constant_one_is_certain():
    a = np.array([[0.5, 0.25, 1.0], [0.5, 0.25, 1.0]])
    b = np.array([[0.5, 0.25, 1.0], [0.0, -0.25, 0.5]])
    assert paired_t(a, b).p_value.tolist() == [1.0, 0.0]


def test_one_round_is_no_evidence():
    assert paired_t(np.array([1.0]), np.array([0.0])).p_value == 1.0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20))
def test_swapping_roles_turns_the_difference_and_keeps_the_p_value(rewards):
    a, b = np.array(rewards).T
    there, back = paired_t(a, b), paired_t(b, a)
    assert there.difference == -back.difference
    assert there.p_value == back.p_value
    assert 0.0 <= there.p_value <= 1.0


def test_two_sided_agrees_with_scipy():
    t, freedom = np.array([0.0, 0.3, -2.0, 40.0]), np.array([1.0, 2.5, 7.0, np.inf])
    expected = 2 * stats.t.sf(np.abs(t), freedom)
    assert_allclose(two_sided(t, np.ones(4), freedom), expected, rtol=1e-9, atol=1e-300)


# --- the moderated test -----------------------------------------------------------------------


@pytest.mark.parametrize(("freedom", "second", "scale"), [(1, 3.0, 2.0), (2, 4.0, 0.3), (4, 9, 7)])
def test_the_prior_has_the_largest_likelihood_of_all_nearby(freedom, second, scale):
    rng = np.random.default_rng(3)
    values = scale * stats.f.rvs(freedom, second, size=400, random_state=rng)
    found_scale, found_second = fit_scaled_f(values, freedom)

    def likelihood(scale, second):
        return stats.f.logpdf(values, freedom, second, scale=scale).sum()

    best = likelihood(found_scale, found_second)
    for a, b in [(1.01, 1), (0.99, 1), (1, 1.01), (1, 0.99), (1.01, 1.01), (0.99, 0.99)]:
        assert likelihood(found_scale * a, found_second * b) < best
    assert best >= likelihood(scale, second)


def test_the_prior_is_recovered_from_many_datasets():
    rng = np.random.default_rng(5)
    values = 2.0 * stats.f.rvs(2, 4.0, size=50_000, random_state=rng)
    assert_allclose(fit_scaled_f(values, 2.0), (2.0, 4.0), rtol=0.06)


def slow_moderated(per_seed, by_rounds, scale, second):
    """Smyth's formula, dataset by dataset, for a given prior."""
    p = []
    for differences, variance in zip(per_seed, by_rounds, strict=True):
        n = len(differences)
        own = np.var(differences, ddof=1)
        shrunk = (second * scale * variance + (n - 1) * own) / (second + n - 1)
        t = np.mean(differences) / np.sqrt(shrunk / n)
        p.append(2 * stats.t(second + n - 1).sf(abs(t)))
    return p


def test_the_moderated_test_agrees_with_smyths_formula():
    rng = np.random.default_rng(0)
    by_rounds = rng.uniform(0.1, 10, size=120)
    spread = np.sqrt(by_rounds * 4 / rng.chisquare(4, size=120))
    per_seed = rng.normal(size=(120, 3)) * spread[:, None]
    prior = fit_scaled_f(per_seed.var(axis=1, ddof=1) / by_rounds, 2.0)
    expected = slow_moderated(per_seed, by_rounds, *prior)
    assert_allclose(moderated_t(per_seed, by_rounds).p_value, expected, rtol=1e-9)


def test_units_of_rewards_do_not_matter():
    rng = np.random.default_rng(1)
    per_seed, by_rounds = rng.normal(size=(50, 3)), rng.random(50)
    scaled = moderated_t(1e-3 * per_seed, 1e-6 * by_rounds).p_value
    assert_allclose(moderated_t(per_seed, by_rounds).p_value, scaled, rtol=1e-6)


@given(st.permutations(range(40)))
def test_order_of_datasets_does_not_matter(order):
    rng = np.random.default_rng(2)
    per_seed, by_rounds = rng.normal(size=(40, 3)), rng.random(40)
    there = moderated_t(per_seed, by_rounds).p_value
    assert (moderated_t(per_seed[order], by_rounds[order]).p_value == there[order]).all()


def test_datasets_without_any_spread_are_decided_without_the_others():
    per_seed = np.random.default_rng(0).normal(size=(42, 3))
    per_seed[-2], per_seed[-1] = 0.0, 1.0
    by_rounds = np.append(np.ones(40), [0.0, 0.0])
    tested = moderated_t(per_seed, by_rounds).p_value
    assert tested[-2:].tolist() == [1.0, 0.0]
    assert (tested[:-2] == moderated_t(per_seed[:-2], by_rounds[:-2]).p_value).all()
    assert moderated_t(np.zeros((5, 3)), np.zeros(5)).p_value.tolist() == [1.0] * 5


def test_seeds_that_agree_by_chance_prove_nothing():
    coarse = np.random.default_rng(8).normal(size=(200, 3))
    coarse[:120] = 0.01
    assert moderated_t(coarse, np.ones(200)).p_value[:120].min() > 0.5


def test_seeds_that_agree_by_chance_on_few_datasets_prove_nothing():
    agreeing = np.full((2, 3), 0.01)
    assert seed_t(agreeing).p_value.max() == 0.0
    assert moderated_t(agreeing, np.full(2, 0.01)).p_value.min() > 0.5


# --- levels: how often chance is called a difference -------------------------------------------


def normal(rng, shape):
    return 2.0 * rng.normal(size=shape)


def uneven(rng, shape):
    return rng.normal(size=shape) * np.sqrt(4 / rng.chisquare(4, size=(shape[0], 1)))


def trapped(rng, shape):
    """Each of the two runs fails for good in 3 of 10 cases."""
    fails = (rng.random(shape) < 0.3) * 1.0 - (rng.random(shape) < 0.3)
    return 3.0 * fails + 0.5 * rng.normal(size=shape)


def trapped_here_and_there(rng, shape):
    chance = np.where(rng.random((shape[0], 1)) < 0.3, rng.uniform(0.02, 0.5, (shape[0], 1)), 0)
    fails = (rng.random(shape) < chance) * 1.0 - (rng.random(shape) < chance)
    return rng.uniform(1, 20, (shape[0], 1)) * fails + rng.normal(size=shape)


@pytest.mark.parametrize("chance", [normal, uneven, trapped, trapped_here_and_there])
@pytest.mark.parametrize(
    ("n_datasets", "n_seeds", "level"),
    # What the docstring says: the prior's shape is a model, which real variances only resemble.
    [(20, 3, 0.01), (250, 2, 0.017), (FEW_DATASETS, 3, 0.012), (250, 3, 0.012), (250, 5, 0.012)],
)
def test_the_moderated_test_holds_its_level(chance, n_datasets, n_seeds, level):
    rng = np.random.default_rng(11)
    n = called = 0
    while n < min(100 * n_datasets, 7500):
        per_seed = chance(rng, (n_datasets, n_seeds))
        called += int((moderated_t(per_seed, np.ones(n_datasets)).p_value < 0.01).sum())
        n += n_datasets
    assert stats.binomtest(called, n, level, alternative="greater").pvalue > 0.001


def test_the_moderated_test_finds_what_seeds_alone_cannot():
    rng = np.random.default_rng(4)
    per_seed = normal(rng, (250, 3)) + 6.0
    alone = (seed_t(per_seed).p_value < 0.01).mean()
    moderated = (moderated_t(per_seed, np.ones(250)).p_value < 0.01).mean()
    assert alone < 0.35
    assert moderated > 0.95


def test_datasets_that_disagree_leave_little_to_borrow():
    rng = np.random.default_rng(6)
    per_seed = rng.normal(size=(200, 4)) * np.exp(rng.normal(0, 4, size=(200, 1)))
    alone, moderated = seed_t(per_seed).p_value, moderated_t(per_seed, np.ones(200)).p_value
    assert np.median(np.abs(alone - moderated)) < 0.1
