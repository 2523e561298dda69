"""Growing states: new features enter a ridge exactly, actions come and go, some are closed."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee import growth
from melee.agent.model import Model
from melee.arrays import Floats, Scratch
from melee.explorers import EXPLORERS, parse
from melee.learners.ridge import Ridge
from tests.news import SPECS


def model(spec, n_features=4, n_actions=3, n_rounds=0, seed=0):
    made = Model(parse(spec), 0, 0, n_features, n_actions)
    teach(made, n_rounds, seed)
    return made


def teach(made, n_rounds, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rounds, made.n_features))
    actions = rng.integers(made.n_actions, size=n_rounds)
    rewards = (rows[:, 0] * (actions - 1) + rng.normal(size=n_rounds) > 0).astype(float)
    made.learn(rows, actions, rewards, np.full(n_rounds, 0.5))


def pmfs(made, rows, chosen=None):
    n = made.n_actions if chosen is None else len(chosen)
    out, drawn = np.empty((len(rows), n)), np.empty(len(rows), np.int64)
    draws = np.arange(len(rows))
    if chosen is None:
        made.act(rows, draws, 0.0, out, drawn)
    else:
        made.act_among(rows, draws, 0.0, out, drawn, chosen)
    return out


def ridges(state):
    if isinstance(state, Ridge):
        return [state]
    parts = state if isinstance(state, tuple) else ()
    return [ridge for part in parts for ridge in ridges(part)]


def rounds(n, n_features, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(1.0, 2.0, size=(n, n_features)), rng.integers(3, size=n), rng.random(n)


def test_new_features_enter_a_ridge_exactly():
    early, late = rounds(300, 4, seed=1), rounds(60, 6, seed=2)
    made = model("linucb")
    made.learn(*early, np.full(300, 0.5))
    made.resize(6, [0.0] * 6, np.arange(3), 3, 0.5)
    made.learn(*late, np.full(60, 0.5))
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


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("n_rounds", [20, 300])
def test_a_feature_that_was_always_zero_changes_no_decision_when_it_joins(spec, n_rounds):
    made, rows = model(spec, n_rounds=n_rounds), np.random.default_rng(3).normal(size=(20, 4))
    if parse(spec).spec.startswith("melee:") and n_rounds < 256:
        pytest.skip("hidden units are drawn anew for another number of features")
    before = pmfs(made, rows)
    made.resize(6, [0.0] * 6, np.arange(3), 3, 0.5)
    after = pmfs(made, np.hstack([rows, np.zeros((20, 2))]))
    if n_rounds > 256:  # the scale is settled: the past was seen as it was
        assert_allclose(after, before, atol=1e-9)
    teach(made, 30, seed=4)
    assert_allclose(pmfs(made, np.ones((5, 6))).sum(axis=1), 1.0)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("n_rounds", [20, 300])
def test_removing_an_action_leaves_the_others_as_they_were(spec, n_rounds):
    made, rows = model(spec, n_rounds=n_rounds), np.random.default_rng(3).normal(size=(20, 4))
    among = pmfs(made, rows, np.array([0, 2]))
    made.resize(4, [0.0] * 4, np.array([0, -1, 1]), 2, 0.5)
    if n_rounds > 256:
        assert_allclose(pmfs(made, rows), among, atol=1e-9)
    teach(made, 30, seed=4)
    assert_allclose(pmfs(made, rows).sum(axis=1), 1.0)
    assert made.n_actions == 2


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("n_rounds", [0, 20, 300])
def test_all_actions_in_order_are_no_subset(spec, n_rounds):
    made, rows = model(spec, n_rounds=n_rounds), np.random.default_rng(5).normal(size=(10, 4))
    assert_allclose(pmfs(made, rows, np.arange(3)), pmfs(made, rows), atol=0)
    renamed = pmfs(made, rows, np.array([2, 0, 1]))
    assert_allclose(renamed, pmfs(made, rows)[:, [2, 0, 1]], atol=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_asking_about_some_actions_changes_nothing(spec):
    made, rows = model(spec, n_rounds=40), np.random.default_rng(5).normal(size=(10, 4))
    pmfs(made, rows)  # scratch is what it will be
    before = [array.copy() for array in growth.arrays(made.state)]
    pmfs(made, rows, np.array([1]))
    pmfs(made, rows)
    for one, other in zip(before, growth.arrays(made.state), strict=True):
        assert_allclose(one, other, atol=0)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("n_rounds", [40, 300])
def test_scratch_has_no_meaning_from_one_call_to_the_next(spec, n_rounds):
    one, other = model(spec, n_rounds=n_rounds), model(spec, n_rounds=n_rounds)
    lasting = {id(array) for array in growth.arrays(other.state, lasting=True)}
    for array in growth.arrays(other.state):
        if id(array) not in lasting:
            array[...] = 0.123
    rows = np.random.default_rng(6).normal(size=(10, 4))
    for made in (one, other):
        teach(made, 5, seed=8)
    assert_allclose(pmfs(one, rows), pmfs(other, rows), atol=0)


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


@pytest.mark.parametrize("spec", SPECS)
def test_peeking_leaves_no_trace(spec):
    made, rows = model(spec, n_rounds=40), np.random.default_rng(5).normal(size=(10, 4))
    before = [array.copy() for array in growth.arrays(made.state, lasting=True)]
    seen = np.empty((10, 3))
    made.peek(rows, 0.0, seen, None)
    for array, old in zip(growth.arrays(made.state, lasting=True), before, strict=True):
        assert_allclose(array, old, atol=0)
    assert_allclose(seen, pmfs(made, rows), atol=0)


def test_every_explorer_is_tested_or_refused():
    refused = {"full-information", "melee-paper", "banditron-melee"}
    assert {spec.partition(":")[0] for spec in SPECS} == set(EXPLORERS) - refused
