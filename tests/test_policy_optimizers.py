import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from melee import policy_optimizers
from melee.learners import interface
from melee.learners.ridge import Ridge
from melee.learners.sgd import Sgd
from melee.policy_optimizers import Direct, DoublyRobust, Ips, Multitask
from tests import naive
from tests.forms import compiled
from tests.tasks import copies_of, restore

fit = compiled(policy_optimizers.fit)
correct, predict = compiled(interface.correct), compiled(interface.predict)

K, D = 4, 3
KINDS = {"direct": Direct, "ips": Ips, "dr": DoublyRobust, "mtr": Multitask}
NAMES = pytest.mark.parametrize("name", KINDS)


def sgd(rate=0.05):
    return Sgd.start(2 * K, D, rate, False)


def new(name, learner=sgd):
    return KINDS[name](learner(), learner()) if name == "dr" else KINDS[name](learner())


def history(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = np.append(rng.normal(size=D - 1), 1.0)
        pmf = rng.dirichlet(np.full(K, 0.5)) * 0.9 + 0.1 / K
        action = int(rng.choice(K, p=pmf))
        yield x, action, float(rng.random()), float(pmf[action]), float(rng.integers(1, 4))


@NAMES
def test_a_run_of_rounds_agrees_with_the_definition(name):
    optimizer, twin = new(name), naive.Optimizer(K, lambda: naive.Sgd(D, 0.05), name)
    for x, action, reward, p, times in history(60):
        fit(optimizer, x, K, K, action, reward, p, times)  # the second block of rows
        twin.learn(x, action, reward, p, times)
        f = [predict(optimizer.learner, x, K + a) for a in range(K)]
        assert_allclose(f, twin.predict(x), atol=1e-9)
    assert (optimizer.learner.weights[:K] == 0).all()
    if name == "dr":
        model = [predict(optimizer.model, x, K + a) for a in range(K)]
        assert_allclose(model, [m.predict(x) for m in twin.estimators], atol=1e-9)
        assert (optimizer.model.weights[:K] == 0).all()


@pytest.mark.parametrize("name", ["ips", "dr"])
@given(
    rewards=st.lists(st.floats(0, 1), min_size=K, max_size=K),
    weights=st.lists(st.floats(0.05, 1), min_size=K, max_size=K),
)
def test_targets_average_to_the_true_reward_of_every_action(name, rewards, weights):
    optimizer = new(name)
    for x, action, reward, p, _ in history(10, seed=1):
        fit(optimizer, x, 0, K, action, reward, p, 1.0)
    start = copies_of(optimizer)
    x, pmf = np.array([0.5, -1.0, 1.0]), np.array(weights) / np.sum(weights)
    before = np.array([predict(optimizer.learner, x, a) for a in range(K)])
    for a in range(K):  # how far a step for an error of 1 moves each prediction
        correct(optimizer.learner, x, a, 1.0, 1.0)
    moved = np.array([predict(optimizer.learner, x, a) for a in range(K)]) - before
    mean_target = np.zeros(K)
    for action in range(K):  # the expectation over the draw of the action, exactly
        restore(optimizer, start)
        fit(optimizer, x, 0, K, action, float(rewards[action]), float(pmf[action]), 1.0)
        after = np.array([predict(optimizer.learner, x, a) for a in range(K)])
        mean_target += pmf[action] * (before + (after - before) / moved)
    assert_allclose(mean_target, rewards, atol=1e-9)


@NAMES
def test_only_unbiased_optimizers_touch_actions_that_were_not_played(name):
    optimizer = new(name)
    for x, action, reward, p, _ in history(10):
        fit(optimizer, x, 0, K, action, reward, p, 1.0)
    before = optimizer.learner.weights.copy()
    fit(optimizer, np.array([1.0, 2.0, 1.0]), 0, K, 2, 0.5, 0.25, 1.0)
    touched = np.flatnonzero((before != optimizer.learner.weights).any(axis=1)).tolist()
    assert touched == ([2] if name in ("direct", "mtr") else [0, 1, 2, 3])


def test_multitask_weighs_an_observation_by_the_inverse_of_its_probability():
    optimizer = new("mtr", lambda: Ridge.start(K, D, 0.1))
    twins = [naive.Ridge(D, 0.1) for _ in range(K)]
    for x, action, reward, p, times in history(50):
        fit(optimizer, x, 0, K, action, reward, p, times)
        twins[action].learn(x, reward, times / p)
    for a in range(K):
        assert_allclose(optimizer.learner.weights[a], twins[a].w(), atol=1e-8)


def test_with_ridge_doubly_robust_is_the_fit_to_all_estimates():
    optimizer = new("dr", lambda: Ridge.start(K, D, 0.1))
    twin = naive.Optimizer(K, lambda: naive.Ridge(D, 0.1), "dr")
    for x, action, reward, p, _ in history(40):
        fit(optimizer, x, 0, K, action, reward, p, 1.0)
        twin.learn(x, action, reward, p)
    f = [predict(optimizer.learner, x, a) for a in range(K)]
    assert_allclose(f, twin.predict(x), atol=1e-8)
