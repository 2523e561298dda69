"""Φ against its definition, on a recorded history; and what it must not depend on."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.explorers.interface import learn
from melee.explorers.melee_paper import (
    PER_ACTION,
    SCHEMA,
    MeleePaper,
    describe,
    load_policy,
)
from melee.loop import problem_of, simulate
from melee.preparation import prepare
from melee.rng import stream
from tests.naive_paper import paper_features
from tests.tasks import blobs, graded

GREEDY = np.array([float(name == "predicted") for name in SCHEMA])


def play_recorded(prepared, n_rounds, seed=0):
    """A state that has seen some rounds of random actions, and those rounds."""
    state = MeleePaper().start_with(GREEDY, problem_of(prepared, n_rounds))
    rng = np.random.default_rng(seed)
    inputs, history = prepared.inputs(prepared.order), []
    for i in range(n_rounds):
        action = int(rng.integers(prepared.task.n_actions))
        reward = float(prepared.task.rewards[prepared.order[i], action])
        learn(state, inputs[i], i + 1, stream(0), action, reward, 0.5)
        history.append((inputs[i], action, reward))
    return state, history, inputs


@pytest.mark.parametrize("n_actions", [2, 3, 5])
@pytest.mark.parametrize("n_rounds", [0, 1, 2, 60])
def test_features_agree_with_their_definition(n_actions, n_rounds):
    prepared = prepare(graded(120, n_actions=n_actions, n_features=3, seed=n_actions), seed=1)
    state, history, inputs = play_recorded(prepared, n_rounds)
    x = inputs[n_rounds]
    describe(state, x, n_rounds + 1)
    expected = paper_features(
        history,
        x,
        prepared.inputs(prepared.labelled),
        prepared.task.rewards[prepared.labelled],
        prepared.learning_rate,
    )
    for j, name in enumerate(PER_ACTION):
        assert_allclose(state.features[:, j], expected[name], atol=1e-6, err_msg=name)
    assert_allclose(state.shared, [expected["entropy"], n_rounds + 1], atol=1e-6)


def test_features_are_the_same_for_problems_that_look_the_same_through_f():
    # Turning the plane turns SGD's weights with it: f, and so every feature, stays as it was,
    # though each x is another.
    task = blobs(150, n_actions=2, n_features=2, seed=0, distance=1.0)
    prepared = prepare(task, seed=0)
    angle = 0.7
    turn = np.array(
        [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
    )
    problem = problem_of(prepared, 100)
    assert problem.labelled is not None
    states = []
    for rotation in [np.eye(3), turn]:
        labelled = (problem.labelled[0] @ rotation.T, problem.labelled[1])
        turned = type(problem)(2, 2, 100, problem.learning_rate, labelled)
        state = MeleePaper().start_with(GREEDY, turned)
        inputs = prepared.inputs(prepared.order) @ rotation.T
        for i in range(100):
            reward = float(task.rewards[prepared.order[i], i % 2])
            learn(state, inputs[i], i + 1, stream(0), i % 2, reward, 0.5)
        describe(state, inputs[100], 101)
        states.append(state)
    assert_allclose(states[0].features, states[1].features, atol=1e-9)
    assert not np.allclose(states[0].labelled, states[1].labelled)


def test_there_are_as_many_features_whatever_the_dimension():
    shapes = set()
    for n_features in [1, 3, 40]:
        prepared = prepare(graded(60, n_actions=4, n_features=n_features, seed=0))
        state, _, inputs = play_recorded(prepared, 5)
        describe(state, inputs[5], 6)
        shapes.add((state.features.shape, state.shared.shape, state.weights.shape))
    assert shapes == {((4, 6), (2,), (8,))}


def test_calibration_is_refitted_every_round():
    prepared = prepare(graded(100, n_actions=2, n_features=3, seed=5))
    fits = [play_recorded(prepared, n)[0].fits.copy() for n in range(1, 6)]
    assert all(not np.array_equal(a, b) for a, b in itertools.pairwise(fits))


def test_the_shipped_policy_trusts_probability_and_tries_what_was_predicted_less():
    weights = dict(zip(SCHEMA, load_policy("paper"), strict=True))
    assert weights["probability"] > 0
    assert weights["predicted count"] < 0
    assert weights["entropy"] == weights["time step"] == weights["played count"] == 0


def test_mu_is_the_total_mass_of_uniform_exploration():
    prepared = prepare(graded(80, n_actions=4, n_features=3, seed=2))
    run = simulate(prepared, "melee-paper:mu=0.2", seed=0)
    assert set(np.round(run.probabilities, 12)) <= {
        0.05,
        0.85,
        0.45,
        0.25,
        round(0.8 / 3 + 0.05, 12),
    }
    assert 0.05 in np.round(run.probabilities, 12)


def test_without_labelled_rows_it_says_what_to_do():
    with pytest.raises(ValueError, match="prepared with n_labelled=30"):
        simulate(
            prepare(graded(80, n_actions=2, n_features=3, seed=2), n_labelled=0), "melee-paper"
        )
