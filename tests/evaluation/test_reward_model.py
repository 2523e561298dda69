"""The model of rewards that estimates lean on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.contexts import Context
from melee.errors import InputError
from melee.evaluation.reward_model import (
    MAX_FEATURES,
    cross_fitted,
    encoded,
    implied_weights,
    model_rewards,
    standardized,
)


def naive_cross_fitted(X, actions, rewards, n_actions, fold):
    """Each prediction from its own two ridge regressions, as augmented least-squares problems."""
    n, d = X.shape
    q = np.empty((n, n_actions))
    prior = np.sqrt(np.diag([2.0 * d] * d + [2.0]))  # rounds of deviation 0
    for i in range(n):
        others = [j for j in range(n) if fold[j] != fold[i]]
        mean = np.mean([rewards[j] for j in others])
        for action in range(n_actions):
            rows = [j for j in others if actions[j] == action]
            A = np.array([[*X[j], 1.0] for j in rows]).reshape(len(rows), d + 1)
            y = np.array([rewards[j] - mean for j in rows])
            weights = np.zeros(d + 1)
            for _ in range(2):  # the second time, of the errors of the first
                errors = np.concatenate([y - A @ weights, np.zeros(d + 1)])
                weights = weights + np.linalg.lstsq(np.vstack([A, prior]), errors, rcond=None)[0]
            q[i, action] = mean + np.append(X[i], 1.0) @ weights
    return q


def drawn(n_rounds, n_features, n_actions, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rounds, n_features))
    return X, rng.integers(n_actions, size=n_rounds), rng.random(n_rounds)


@pytest.mark.parametrize(("n", "d", "k"), [(6, 1, 2), (40, 3, 3), (30, 12, 6)])
def test_cross_fitting_agrees_with_a_regression_per_prediction(n, d, k):
    X, actions, rewards = drawn(n, d, k, seed=n)
    fold = np.arange(n) % 5
    expected = naive_cross_fitted(X, actions, rewards, k, fold)
    assert_allclose(cross_fitted(X, actions, rewards, k, fold), expected, atol=1e-10)


def test_a_round_that_counts_several_times_is_as_good_as_so_many_rounds():
    X, actions, rewards = drawn(40, 3, 2, seed=0)
    fold = np.arange(40) % 5
    times = np.random.default_rng(1).integers(1, 5, size=40)
    found = cross_fitted(X, actions, rewards, 2, fold, times.astype(float))
    X, actions, rewards, fold = (
        np.repeat(one, times, axis=0) for one in (X, actions, rewards, fold)
    )
    expected = naive_cross_fitted(X, actions, rewards, 2, fold)
    assert_allclose(np.repeat(found, times, axis=0), expected, atol=1e-10)


def test_no_round_helps_to_predict_itself():
    X, actions, rewards = drawn(50, 3, 2, seed=0)
    fold = np.arange(50) % 5
    before = cross_fitted(X, actions, rewards, 2, fold)
    rewards[7] = 1.0 - rewards[7]
    actions[7] = 1 - actions[7]
    after = cross_fitted(X, actions, rewards, 2, fold)
    assert_array_equal(before[fold == 2], after[fold == 2])
    assert (before[fold != 2] != after[fold != 2]).any()


@pytest.mark.parametrize(("n", "d", "k"), [(6, 1, 2), (40, 3, 3), (30, 12, 6)])
def test_the_mean_prediction_of_a_policy_is_the_mean_of_rewards_by_implied_weights(n, d, k):
    X, actions, rewards = drawn(n, d, k, seed=n)
    fold = np.arange(n) % 5
    chances = np.random.default_rng(1).dirichlet(np.ones(k + 1), size=n)
    chosen, outside = chances[:, :k], chances[:, k]
    q = cross_fitted(X, actions, rewards, k, fold)
    expected = ((chosen * q).sum(axis=1) + outside * rewards.mean()).mean()
    found = implied_weights(X, actions, chosen, outside, fold)
    assert_allclose((found * rewards).mean(), expected, rtol=1e-10)
    assert_allclose(found.mean(), 1.0)  # were all rewards the same, so would be all predictions


def test_implied_weights_count_rounds_by_their_sizes():
    X, actions, rewards = drawn(40, 3, 3, seed=0)
    fold = np.arange(40) % 5
    rng = np.random.default_rng(1)
    chances, times = rng.dirichlet(np.ones(4), size=40), rng.integers(1, 9, size=40)
    chosen, outside, sizes = chances[:, :3], chances[:, 3], times / times.mean()
    q = cross_fitted(X, actions, rewards, 3, fold, sizes)
    predicted = (chosen * q).sum(axis=1) + outside * (sizes * rewards).mean()
    found = implied_weights(X, actions, chosen, outside, fold, sizes)
    assert_allclose((found * rewards).mean(), (sizes * predicted).mean(), rtol=1e-10)
    assert_allclose(found.mean(), 1.0)


def test_rare_rewards_are_predicted_on_both_sides_of_0():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 8))
    rewards = (rng.random(2000) < 0.005).astype(float)
    q = cross_fitted(X, rng.integers(3, size=2000), rewards, 3, np.arange(2000) % 5)
    assert (q < 0.0).mean() > 0.1
    assert abs(q.mean() - rewards.mean()) < 2e-4  # cut at 0 it would be 20 % more
    assert np.clip(q, 0.0, 1.0).mean() > 1.2 * rewards.mean()


def test_an_action_with_few_rounds_is_predicted_near_the_mean_of_all():
    rng = np.random.default_rng(0)
    actions = np.zeros(200, dtype=int)
    actions[7] = 1
    rewards = (rng.random(200) < 0.3).astype(float)
    rewards[7] = 1.0
    contexts = [{"age": age} for age in rng.normal(size=200).tolist()]
    q = model_rewards(contexts, actions, rewards, n_actions=3).predicted
    folds = np.arange(200) % 5
    means = np.array([rewards[folds != fold].mean() for fold in folds])
    assert_allclose(q[:, 2], means, rtol=1e-12)  # never played
    seen = folds != 2
    assert q[seen, 1].mean() > means[seen].mean() + 0.05
    assert np.median(q[seen, 1]) < 0.75


def test_predictions_find_what_depends_on_texts_and_numbers():
    rng = np.random.default_rng(1)
    contexts: list[Context] = []
    actions, rewards, truth = [], [], []
    for _ in range(1500):
        device, age = str(rng.choice(["phone", "desk"])), float(rng.uniform(20, 70))
        means = [0.8 if device == "phone" else 0.2, (age - 20) / 50]
        action = int(rng.integers(2))
        contexts.append({"device": device, "age": age})
        actions.append(action)
        truth.append(means)
        rewards.append(float(rng.random() < means[action]))
    q = model_rewards(contexts, np.array(actions), np.array(rewards), n_actions=2).predicted
    assert np.abs(q - np.array(truth)).mean() < 0.03


def test_huge_constant_and_many_columns_do_no_harm():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, MAX_FEATURES + 20))
    rows[:, 0] *= 1e100
    rows[:, 1] = 7.0
    X = standardized(rows)
    assert X.shape == (60, MAX_FEATURES)
    assert np.isfinite(X).all()
    narrow = standardized(rows[:, :3])
    assert narrow.shape == (60, 2)  # the constant column is left out
    assert_allclose(narrow.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(narrow.std(axis=0), 1.0, rtol=1e-6)


def test_more_levels_than_features_are_predicted_from_without_a_warning():
    contexts: list[Context] = [{"user": f"u{i % 400}"} for i in range(1200)]
    model = model_rewards(contexts, np.zeros(1200, dtype=int), np.tile([0.0, 1.0, 1.0], 400), 1)
    assert model.predicted.shape == (1200, 1)


def test_contexts_without_any_value_are_predicted_by_means():
    model = model_rewards([{}] * 30, np.zeros(30, dtype=int), np.tile([0.0, 1.0], 15), 1)
    assert_allclose(model.predicted, 0.5, atol=0.05)


def test_numbers_that_are_none_are_refused():
    rows = [np.array([1.0, np.nan]), np.array([1.0, 2.0])]
    with pytest.raises(InputError, match=r"of 1 rounds hold NaN .* round 0 the first"):
        encoded(rows)
