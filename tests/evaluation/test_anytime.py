"""Evidence that may be looked at any time: its definition, its level, its power."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from melee.evaluation.anytime import BETS, anytime_interval, evidence


def naive_evidence(values, bound, mean=0.0):
    """The stakes of all bets, round by round, from the definition."""
    stakes = [1.0] * len(BETS)
    total, found = 0.0, []
    for i, value in enumerate(values):
        guess = min(max(total / i, -1.0), 1.0) if i else 0.0
        surprise = (value - guess) / (bound + 1.0)
        for k, bet in enumerate(BETS):
            cost = (-math.log(1.0 - bet) - bet) * surprise**2
            stakes[k] *= math.exp(bet * (value - mean) / (bound + 1.0) - cost)
        total += value
        found.append(math.log(sum(stakes) / len(stakes)))
    return np.array(found)


@pytest.mark.parametrize(("n", "bound"), [(1, 1.0), (50, 3.0), (300, 20.0)])
def test_evidence_agrees_with_its_definition(n, bound):
    values = bound * np.random.default_rng(n).uniform(-1.0, 1.0, size=n)
    found = evidence(values[None], np.array([bound]))
    assert_allclose(found[:, 0], naive_evidence(values, bound), atol=1e-9)
    assert_allclose(found[:, 1], naive_evidence(-values, bound), atol=1e-9)


def test_several_ways_to_measure_share_the_stake():
    ways = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2, 100)) * np.array([[1.0], [4.0]])
    found = evidence(ways, np.array([1.0, 4.0]))[:, 0]
    alone = [naive_evidence(row, bound) for row, bound in zip(ways, (1.0, 4.0), strict=True)]
    assert_allclose(found, np.log(0.5 * np.exp(alone[0]) + 0.5 * np.exp(alone[1])), atol=1e-9)


def test_ends_are_the_means_against_which_bets_have_won_enough():
    values = np.random.default_rng(0).choice([-1.0, 0.0, 2.0], size=200)
    low, high, p_value = anytime_interval(values[None], np.array([2.0]), confidence=0.9)
    enough = math.log(2.0 / 0.1)
    assert_allclose(naive_evidence(values, 2.0, low)[-1], enough, atol=1e-6)
    assert_allclose(naive_evidence(-values, 2.0, -high)[-1], enough, atol=1e-6)
    strongest = max(naive_evidence(values, 2.0)[-1], naive_evidence(-values, 2.0)[-1])
    assert_allclose(p_value, 2.0 * math.exp(-strongest), rtol=1e-6)


@settings(max_examples=40)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0.5, 0.99))
def test_the_interval_excludes_0_exactly_where_the_p_value_is_small(values, confidence):
    low, high, p_value = anytime_interval(np.array([values]), np.ones(1), confidence)
    assert -1.0 <= low <= np.mean(values) <= high <= 1.0
    if abs(p_value - (1.0 - confidence)) > 1e-6:
        assert (p_value < 1.0 - confidence) == (low > 0.0 or high < 0.0)


def skewed(rng, n):
    """Mean 0: nearly always a little below it, rarely far above."""
    return np.where(rng.random(n) < 0.02, 4.9, -0.1)


def changing(rng, n):
    """Means that come and go by what happened before, and average 0 given the past."""
    values = rng.choice([-1.0, 1.0], size=n)
    return values * np.where(np.concatenate([[0.0], values[:-1]]) > 0.0, 5.0, 0.2)


@pytest.mark.parametrize("drawn", [skewed, changing])
def test_looking_after_every_round_errs_as_rarely_as_promised(drawn):
    rng = np.random.default_rng(0)
    n_logs, n = 300, 1000
    wrong = wrong_by_t = 0
    for _ in range(n_logs):
        values = drawn(rng, n)
        p_values = 2.0 * np.exp(-evidence(values[None], np.array([5.0])).max(axis=1))
        wrong += bool((p_values < 0.1).any())
        count = np.arange(1, n + 1)
        mean = values.cumsum() / count
        variance = np.maximum((values**2).cumsum() / count - mean**2, 0.0)
        error = np.sqrt(variance / count)
        wrong_by_t += bool((np.abs(mean) > 1.645 * error)[50:].any())
    assert wrong <= 0.1 * n_logs
    assert wrong_by_t > 0.3 * n_logs  # what looking costs with an interval made for one look


def test_the_average_of_means_that_change_is_held_at_all_times():
    rng = np.random.default_rng(1)
    n, held = 800, 0
    means = np.where(np.arange(n) < 400, 0.6, -0.2)  # the better policy becomes the worse one
    for _ in range(60):
        values = np.where(rng.random(n) < 0.5 * (1.0 + means), 1.0, -1.0)
        looks = range(50, n + 1, 50)
        ends = [anytime_interval(values[None, :k], np.ones(1), 0.9)[:2] for k in looks]
        truths = [means[:k].mean() for k in looks]
        held += all(low <= m <= high for (low, high), m in zip(ends, truths, strict=True))
    assert held >= 54


def test_a_difference_is_found_and_sooner_the_larger_it_is():
    rng = np.random.default_rng(2)
    rounds = []
    for mean in (0.1, 0.3):
        values = np.where(rng.random(5000) < 0.5 * (1.0 + mean), 1.0, -1.0)
        rounds.append(int(np.argmax(evidence(values[None], np.ones(1))[:, 0] > math.log(40.0))))
    assert 0 < rounds[1] < rounds[0] < 4000
