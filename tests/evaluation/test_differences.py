"""Paired differences of policies: what they hold and find, and when they may be looked at."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.errors import InputError, UnknownNameError
from melee.evaluation import evaluate, evaluate_many
from melee.evaluation.anytime import evidence
from melee.evaluation.differences import Difference, Terms, anytime_terms, difference, widest
from melee.evaluation.estimates import ratio_terms
from melee.history import History, Round
from tests.evaluation.worlds import ACTIONS, clean_log, greedy, without_most_failures, worlds

N_KINDS, N_ACTIONS = 5, 4
RATES = np.random.default_rng(3).uniform(0.02, 0.08, (N_KINDS, N_ACTIONS))
LOGGING = np.full((N_KINDS, N_ACTIONS), 0.25)


def drawn(n_rounds, seed, means=RATES):
    rng = np.random.default_rng(seed)
    kinds, actions = rng.integers(N_KINDS, size=n_rounds), rng.integers(N_ACTIONS, size=n_rounds)
    return kinds, actions, (rng.random(n_rounds) < means[kinds, actions]).astype(float)


def terms_of(policy, kinds, actions, rewards):
    """Those of IPS: no model."""
    weights = (policy / LOGGING)[kinds, actions]
    return Terms(weights * rewards, weights, policy[kinds])


def in_worlds(name, n_rounds, seed):
    """The terms of a world's target and of its logging policy as they differ, and the truth."""
    world = worlds()[name]
    x, a, rewards = world.draw(n_rounds, seed)
    q = 0.8 * world.means  # a model that is wrong
    weights = world.weights(x, a)
    values = (world.target * q).sum(axis=1)[x] + weights * (rewards - q[x, a])
    target = Terms(values, weights, world.target[x])
    logged = Terms(rewards, np.ones(n_rounds), world.logging[x])
    bound = widest(target, logged, world.logging[x], world.logging[x, a])
    truth = float(((world.target - world.logging) * world.means).sum(axis=1).mean())
    return difference(target, logged, "logged", rewards, bound), truth


@pytest.mark.parametrize(
    "name", ["mild", "mild, many actions", "rare rewards", "nearly the same policy"]
)
@pytest.mark.parametrize("n_rounds", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_differences_to_the_logged_policy_hold_the_truth(name, n_rounds):
    held = held_always = 0
    for seed in range(200):
        found, truth = in_worlds(name, n_rounds, seed)
        held += found.low <= truth <= found.high
        held_always += found.anytime_low <= truth <= found.anytime_high
    assert held >= 184  # of 190 promised
    assert held_always >= 190


def test_looking_at_two_equal_policies_after_every_round_errs_as_rarely_as_promised():
    means = np.full((N_KINDS, N_ACTIONS), 0.05)
    one, other = greedy(np.arange(5), 4, 0.02), greedy(np.arange(5) + 1, 4, 0.02)
    wrong = 0
    for seed in range(200):
        kinds, actions, rewards = drawn(1500, seed, means)
        apart = ((one - other) / LOGGING)[kinds, actions]
        p_values = 2.0 * np.exp(-evidence(*anytime_terms(apart, rewards, 4.0)).max(axis=1))
        wrong += bool((p_values < 0.05).any())
        last = difference(
            terms_of(one, kinds, actions, rewards),
            terms_of(other, kinds, actions, rewards),
            "other",
            rewards,
            bound=4.0,
        )
        assert_allclose(last.p_value, min(1.0, p_values[-1]), rtol=1e-9)
    assert wrong <= 10


def history_of(n_rounds, seed):
    """Ten times the rates, so that a few rounds tell something."""
    labels = [f"a{i}" for i in range(N_ACTIONS)]
    pmf = dict.fromkeys(labels, 0.25)
    return History(
        Round({"kind": f"k{i}"}, labels[j], r, 0.25, pmf=pmf)
        for i, j, r in zip(*drawn(n_rounds, seed, 10.0 * RATES), strict=True)
    )


def policy_of(matrix):
    rows = [{f"a{i}": p for i, p in enumerate(row)} for row in matrix.tolist()]
    return lambda context: rows[int(context["kind"][1:])]


def test_paired_differences_find_what_single_intervals_do_not():
    best = RATES.argmax(axis=1)
    worse = best.copy()
    worse[0] = RATES[0].argmin()  # the same in four of five kinds
    policies = {
        "better": policy_of(greedy(best, 4, 0.0)),
        "worse": policy_of(greedy(worse, 4, 0.0)),
    }
    found_paired = found_single = 0
    for seed in range(8):
        found = evaluate_many(history_of(800, seed), policies, baseline="worse", estimators=("dr",))
        better, other = found["better"], found["worse"]
        assert not isinstance(better, Exception)
        assert not isinstance(other, Exception)
        assert better.difference is not None
        found_paired += better.difference.low > 0.0
        found_single += better.estimates["dr"].low > other.estimates["dr"].high
    assert found_paired == 8
    assert found_single <= 1


def test_a_policy_is_compared_with_the_log_or_with_the_baseline():
    history = clean_log()
    policies = {"news": lambda context: "news", "tech": lambda context: "tech"}
    alone = evaluate(history, policies["news"])
    assert alone.difference is not None
    assert alone.difference.baseline == "logged"
    expected = alone.estimates["dr"].value - alone.logged.value
    assert_allclose(alone.difference.value, expected)
    found = evaluate_many(history, policies, baseline="tech")
    news, tech = found["news"], found["tech"]
    assert not isinstance(news, Exception)
    assert not isinstance(tech, Exception)
    assert tech.difference is None
    assert news.difference is not None
    assert news.difference.baseline == "tech"
    gap = news.estimates["dr"].value - tech.estimates["dr"].value
    assert_allclose(news.difference.value, gap)
    swapped = evaluate_many(history, policies, baseline="news")["tech"]
    assert not isinstance(swapped, Exception)
    assert swapped.difference is not None
    mirrored = [-swapped.difference.value, -swapped.difference.high, -swapped.difference.low]
    assert_allclose(news.difference[1:4], mirrored, atol=1e-12)
    assert_allclose(news.difference.p_value, swapped.difference.p_value, rtol=1e-9)


def test_the_same_policy_twice_differs_by_nothing():
    policies = {"one": lambda context: "news", "two": lambda context: "news"}
    found = evaluate_many(clean_log(), policies, baseline="one")["two"]
    assert not isinstance(found, Exception)
    assert found.difference is not None
    assert found.difference[1:4] == (0.0, 0.0, 0.0)
    assert found.difference.anytime_low < 0.0 < found.difference.anytime_high
    assert found.difference.p_value == 1.0


def test_differences_are_in_the_unit_of_the_rewards():
    plain = evaluate(clean_log(), lambda context: "news").difference
    history = History(
        dataclasses.replace(one, reward=100.0 * one.reward - 50.0) for one in clean_log()
    )
    found = evaluate(history, lambda context: "news", reward_range=(-50, 50)).difference
    assert plain is not None
    assert found is not None
    assert_allclose(found[1:6], 100.0 * np.array(plain[1:6]), atol=1e-9)
    assert_allclose(found.p_value, plain.p_value)


def test_without_a_model_differences_are_those_of_ips():
    found = evaluate(clean_log(), lambda context: "news", estimators=("ips",))
    assert found.difference is not None
    expected = found.estimates["ips"].value - found.logged.value
    assert_allclose(found.difference.value, expected)
    by_model = evaluate(clean_log(), lambda context: "news", estimators=("dm",))
    assert by_model.difference is None


def test_terms_for_any_time_know_only_earlier_rewards_and_stay_within_their_bounds():
    kinds, actions, rewards = drawn(500, 0, 10.0 * RATES)
    apart = (greedy(np.arange(5), 4, 0.02) / LOGGING)[kinds, actions] - 1.0
    terms, bounds = anytime_terms(apart, rewards, 4.0)
    assert (np.abs(terms) <= bounds[:, None]).all()
    later = rewards.copy()
    later[300:] = 1.0 - later[300:]
    assert_allclose(anytime_terms(apart, later, 4.0)[0][:, :300], terms[:, :300])
    for i in (1, 77, 499):
        assert_allclose(terms[0, i], apart[i] * (rewards[i] - rewards[:i].mean()))
        assert_allclose(terms[1, i], apart[i] * (rewards[i] - 0.5))


def test_weights_can_differ_by_what_the_probabilities_allow():
    chances = np.array([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]])
    one = Terms(np.zeros(2), np.zeros(2), np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
    other = Terms(np.zeros(2), np.zeros(2), np.array([[0.0, 1.0, 0.0], [0.4, 0.6, 0.0]]))
    assert_allclose(widest(one, other, chances, chances[:, 0]), 1.0 / 0.3)
    unknown = np.full((2, 3), np.nan)
    assert_allclose(widest(one, other, unknown, np.array([0.5, 0.05])), 20.0)


def test_a_baseline_that_is_none_or_is_refused_is_an_error():
    policies = {"news": lambda context: "news", "radio": lambda context: "radio"}
    with pytest.raises(UnknownNameError, match="unknown baseline 'mews'; did you mean 'news'"):
        evaluate_many(clean_log(), policies, baseline="mews")
    with pytest.raises(InputError, match=r"cannot evaluate radio: 100\.0% of the policy's"):
        evaluate_many(clean_log(), policies, baseline="radio")
    with pytest.raises(InputError, match="a policy is named 'logged'"):
        evaluate_many(clean_log(), {"logged": lambda context: ACTIONS[0]})


def test_differences_hold_the_truth_of_logs_whose_failures_were_mostly_dropped():
    target = greedy(RATES.argmax(axis=1), 4, 0.02)
    means = 5.0 * RATES
    truth = float(((target - LOGGING) * means).sum(axis=1).mean())
    held = 0
    for seed in range(200):
        kinds, actions, rewards = drawn(2000, seed, means)
        kept = (rewards > 0.0) | (np.random.default_rng(seed + 1000).random(2000) < 0.1)
        x, a, r = kinds[kept], actions[kept], rewards[kept]
        times = np.where(r > 0.0, 1.0, 10.0)
        sizes = times / times.mean()
        weights = sizes * (target / LOGGING)[x, a]
        own = Terms(ratio_terms(weights * r, sizes), weights, target[x])
        logged = Terms(ratio_terms(sizes * r, sizes), sizes, LOGGING[x])
        found = difference(own, logged, "logged", r, 4.0, sizes=sizes)
        held += found.low <= truth <= found.high
        assert np.isnan([found.anytime_low, found.anytime_high, found.p_value]).all()
    assert held >= 184


def test_a_log_with_dropped_rounds_has_differences_but_none_for_any_time():
    history = without_most_failures(clean_log(2000))
    policies = {"news": lambda context: "news", "tech": lambda context: "tech"}
    found = evaluate_many(history, policies, baseline="tech")
    news, tech = found["news"], found["tech"]
    assert not isinstance(news, Exception)
    assert not isinstance(tech, Exception)
    assert news.difference is not None
    gap = news.estimates["dr"].value - tech.estimates["dr"].value
    assert_allclose(news.difference.value, gap)
    assert news.difference.low < gap < news.difference.high
    assert np.isnan(news.difference.p_value)
    assert "any time" not in str(news.difference)
    assert "stand for 1 to 10 rounds, as others were dropped" in news.warnings[-1]
    assert "look at the difference once, as planned, or log every round" in news.warnings[-1]
    assert not any("dropped" in one for one in tech.warnings)


def test_a_log_of_which_every_round_stands_for_as_many_is_as_good_as_any():
    expected = evaluate(clean_log(), lambda context: "news")
    history = History(dataclasses.replace(one, stands_for=1.0 / 0.3) for one in clean_log())
    found = evaluate(history, lambda context: "news")
    assert expected.difference is not None
    assert found.difference is not None
    assert_allclose(found.difference[1:], expected.difference[1:], rtol=1e-6)
    assert found.warnings == expected.warnings


def test_a_difference_is_printed_with_both_intervals():
    shown = str(Difference("logged", 0.0123, 0.0021, 0.0225, -0.0051, 0.0302, 0.31))
    assert shown == "0.0123 [0.0021, 0.0225]; at any time [-0.0051, 0.0302], p = 0.31"
    text = str(evaluate(clean_log(), lambda context: "news"))
    assert "minus logged: " in text
