import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.explorers.banditron import Banditron, BanditronMelee
from melee.explorers.interface import learn
from melee.explorers.melee_paper import SCHEMA
from melee.loop import problem_of, simulate
from melee.meta.banditron import gamma, hinge_losses, mistake_bound, separable_task, trace
from melee.preparation import prepare
from melee.rng import stream
from melee.task import Task

MU = 0.3


@pytest.fixture(scope="module")
def separable():
    contexts, labels, competitor = separable_task(630, seed=1)
    return Task.from_labels("separable", contexts, labels), competitor


def test_updates_agree_with_the_definition(separable):
    task, _ = separable
    prepared = prepare(task, seed=0)
    state = Banditron(mu=MU).start(problem_of(prepared, 60))
    weights = np.zeros((3, task.n_features + 1))
    rng = np.random.default_rng(0)
    for i, x in enumerate(prepared.inputs(prepared.order[:60])):
        action = int(rng.integers(3))
        reward = float(task.rewards[prepared.order[i], action])
        scores = weights @ x
        predicted = (scores == scores.max()) / np.sum(scores == scores.max())
        p = (1 - MU) * predicted[action] + MU / 3
        for a in range(3):
            weights[a] += x * (reward * (a == action) / p - predicted[a])
        learn(state, x, i + 1, stream(0), action, reward, float(p))
        assert_allclose(state.polopt.learner.weights, weights, atol=1e-9)


def test_the_competitor_separates_with_margin_one(separable):
    task, competitor = separable
    labels = task.rewards.argmax(axis=1)
    assert hinge_losses(competitor, np.array(task.contexts), labels).max() == 0
    assert np.sqrt((task.contexts**2).sum(axis=1)).max() <= 1


def test_hinge_loss_is_the_largest_violation():
    weights, x = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), np.array([[0.6, 0.2]])
    # scores 0.6, 0.2, 0.4: the right action 1 is behind by 0.4, so the loss is 1.4
    assert_allclose(hinge_losses(weights, x, np.array([1])), [1.4])


def played_inputs(prepared):
    inputs = prepared.inputs(prepared.order)
    return inputs, prepared.task.rewards[prepared.order].argmax(axis=1)


def with_intercept(competitor):
    return np.column_stack([competitor, np.zeros(len(competitor))])


def test_mistakes_stay_under_the_bound(separable):
    task, competitor = separable
    prepared = prepare(task, seed=0, n_labelled=0)
    inputs, labels = played_inputs(prepared)
    mistakes = np.mean(
        [np.cumsum(trace(prepared, Banditron(mu=MU), seed=s).mistakes) for s in range(5)], axis=0
    )
    bound = mistake_bound(with_intercept(competitor), inputs, labels, mu=MU)
    assert (mistakes <= bound).all()
    assert mistakes[-1] < 0.6 * len(labels)  # and it learns: chance makes two mistakes in three


def test_the_bound_is_the_theorems():
    weights, inputs = np.array([[3.0], [0.0]]), np.array([[1.0], [-0.5]])
    labels = np.array([0, 1])
    d, k, per_action = 2 * 9.0, 2, 0.05
    loss = np.cumsum(hinge_losses(weights, inputs, labels))
    for g in [1.0, 0.5]:
        expected = [
            loss[i]
            + k * per_action * t
            + 3 * max(d * g / per_action, np.sqrt(d * t * k * g * per_action))
            + np.sqrt(d * loss[i] * g / per_action)
            for i, t in enumerate([1, 2])
        ]
        assert_allclose(mistake_bound(weights, inputs, labels, mu=0.1, gamma=g), expected)


def test_inputs_longer_than_one_are_paid_for_by_the_competitor():
    weights, inputs = np.array([[3.0], [0.0]]), np.array([[1.0], [-0.5]])
    labels = np.array([0, 1])
    same = mistake_bound(weights / 4, 4 * inputs, labels, mu=0.1)
    assert_allclose(same, mistake_bound(weights, inputs, labels, mu=0.1))


def test_gamma_is_one_when_the_policy_returns_fs_prediction(separable):
    task, _ = separable
    prepared = prepare(task, seed=0)
    returns_f = np.array([float(name == "predicted") for name in SCHEMA])

    class Same(BanditronMelee):
        def start(self, problem):
            return self.start_with(returns_f, problem)

    run = trace(prepared, Same(mu=MU), seed=0)
    assert_allclose(run.edges, 0, atol=1e-12)
    assert gamma(run.edges, 3) == pytest.approx(1.0, abs=1e-12)


def test_gamma_falls_with_the_edge_and_never_exceeds_one():
    assert gamma(np.full((1, 4), 0.5), 2) == 0.5
    assert gamma(np.array([[1.0, -1.0], [0.0, 0.0]]), 2) == pytest.approx((1 / 2 + 1) / 2)


@pytest.mark.parametrize("explorer", [Banditron(mu=MU), BanditronMelee(mu=MU)])
def test_a_trace_is_the_run_itself(separable, explorer):
    prepared = prepare(separable[0], seed=0, max_rounds=150)
    run = simulate(prepared, explorer, seed=4)
    assert_array_equal(trace(prepared, explorer, seed=4).mistakes, 1 - run.rewards)


def test_other_explorers_have_no_such_bound(separable):
    from melee.explorers import parse

    with pytest.raises(ValueError, match="for banditron and banditron-melee"):
        trace(prepare(separable[0]), parse("linucb"))
