"""Growing states: what a ridge makes of new features, and what lasts. More in `melee.testing`."""

from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose

from melee import growth
from melee.agent.model import Model
from melee.arrays import Floats, Scratch
from melee.explorers import parse
from melee.learners.ridge import Ridge


def ridges(state):
    if isinstance(state, Ridge):
        return [state]
    parts = state if isinstance(state, tuple) else ()
    return [ridge for part in parts for ridge in ridges(part)]


def rounds(n, n_features, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(1.0, 2.0, size=(n, n_features))
    return rows, rng.integers(3, size=n), rng.random(n), np.full(n, 0.5)


def test_new_features_enter_a_ridge_exactly():
    early, late = rounds(300, 4, seed=1), rounds(60, 6, seed=2)
    made = Model(parse("linucb"), 0, 0, 4, 3, (0.0, 1.0))
    made.learn(*early)
    made.resize(6, [0.0] * 6, np.arange(3), 3, 0.5)
    made.learn(*late)
    (ridge,) = ridges(made.state)
    # The definition: the ridge that had always had the two new features, at zero.
    raw = np.vstack([np.hstack([early[0], np.zeros((300, 2))]), late[0]])
    table = made.state.scaling.shift_scale
    assert_allclose(table[0, :4], early[0][:256].mean(axis=0))
    assert_allclose(table[:, 4:], [[0.0, 0.0], [1.0, 1.0]])
    inputs = np.clip((raw - table[0]) * table[1], -5.0, 5.0) / np.sqrt(4)
    inputs = np.hstack([inputs, np.ones((360, 1))])
    actions, rewards = np.r_[early[1], late[1]], np.r_[early[2], late[2]]
    for action in range(3):
        of_action = actions == action
        x, r = inputs[of_action], rewards[of_action]
        information = 0.1 * np.eye(7) + x.T @ x
        assert_allclose(ridge.inverse[action], np.linalg.inv(information), atol=1e-9)
        assert_allclose(ridge.weights[action], np.linalg.solve(information, x.T @ r), atol=1e-9)


class Anyone(NamedTuple):
    learner: Ridge
    totals: Floats
    room: Scratch
    mu: float


def test_scratch_is_what_a_state_declares_as_such():
    state = Anyone(Ridge.start(2, 3, 1.0), np.zeros(4), np.zeros(5), 0.1)
    everything = ["learner.weights", "learner.inverse", "learner.scratch", "totals", "room"]
    assert [path for path, _ in growth.named(state)] == everything
    lasting = [path for path, _ in growth.named(state, lasting=True)]
    assert lasting == ["learner.weights", "learner.inverse", "totals"]
