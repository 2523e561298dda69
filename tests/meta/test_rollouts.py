import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from melee.explorers.interface import learn
from melee.explorers.melee_paper import SCHEMA
from melee.loop import play_rows
from melee.meta.aggrevate import start
from melee.meta.rollouts import roll_in
from melee.policy_optimizers import fit
from melee.preparation import prepare
from melee.rng import stream
from melee.states import copy_state
from tests import naive
from tests.tasks import arrays_of, copies_of, graded

GREEDY = np.array([float(name == "predicted") for name in SCHEMA])


@pytest.fixture(scope="module")
def prepared():
    return prepare(graded(130, n_actions=3, n_features=2, seed=8), seed=1)


def state_of(prepared, mu=0.1):
    return start(GREEDY, prepared, mu)


def test_expert_values_are_the_rewards(prepared):
    examples = roll_in(state_of(prepared), prepared, kind="expert")
    assert_array_equal(examples.values, prepared.task.rewards[prepared.order])
    assert examples.features.shape == (100, 3, 6)


def test_lookahead_values_are_those_of_a_learner_that_saw_the_action(prepared):
    state = state_of(prepared)
    examples = roll_in(state, prepared, kind="lookahead")
    # Round 1: f is blank, so seeing (x, a, r) moves only a's model.
    x = prepared.inputs(prepared.order[:1])[0]
    labelled = prepared.inputs(prepared.labelled)
    rewards = prepared.task.rewards[prepared.labelled]
    for a in range(3):
        fresh = state_of(prepared)
        fit(fresh.polopt, x, 0, 3, a, float(prepared.task.rewards[prepared.order[0], a]), 1.0, 1.0)
        scores = labelled @ fresh.polopt.learner.weights.T
        expected = np.mean([naive.greedy(s) @ r for s, r in zip(scores, rewards, strict=True)])
        assert_allclose(examples.values[0, a], expected, atol=1e-12)


def test_looking_ahead_leaves_the_learner_as_it_was(prepared):
    plain, looking = state_of(prepared), state_of(prepared)
    roll_in(plain, prepared, kind="expert", seed=3)
    roll_in(looking, prepared, kind="lookahead", seed=3)
    for a, b in zip(arrays_of(plain), arrays_of(looking), strict=True):
        assert_array_equal(a, b)


def test_policy_values_are_the_rewards_of_playing_on(prepared):
    state = state_of(prepared, mu=0.0)
    examples = roll_in(state, prepared, kind="policy", horizon=7, every=20, seed=5)
    assert examples.values.shape == (5, 3)
    # The first recorded state is the blank one: play it on by hand.
    rng = stream(5, "roll-in")
    rows = prepared.order[:8]
    for a in range(3):
        own = state_of(prepared, mu=0.0)
        x = prepared.inputs(rows[:1])[0]
        reward = float(prepared.task.rewards[rows[0], a])
        learn(own, x, 1, rng.copy(), a, reward, 1.0)
        rewards = play_rows(own, prepared.scaling, prepared.task, rows[1:], 1, rng.copy()).rewards
        assert_allclose(examples.values[0, a], reward + rewards.sum(), atol=1e-12)


def test_rolling_out_does_not_disturb_the_roll_in(prepared):
    plain, rolled = state_of(prepared), state_of(prepared)
    a = roll_in(plain, prepared, kind="expert", every=20, seed=2)
    b = roll_in(rolled, prepared, kind="policy", horizon=5, every=20, seed=2)
    assert_array_equal(a.features, b.features)
    for x, y in zip(arrays_of(plain), arrays_of(rolled), strict=True):
        assert_array_equal(x, y)


def test_a_copied_state_shares_nothing(prepared):
    state = state_of(prepared)
    before = copies_of(state)
    roll_in(copy_state(state), prepared, kind="expert")
    for a, b in zip(arrays_of(state), before, strict=True):
        assert_array_equal(a, b)


def test_roll_in_explores_uniformly_with_mass_mu():
    # On a task of equal rewards the greedy action is a tie at first, then the one played; count
    # how often the roll-in leaves it.
    prepared = prepare(graded(4030, n_actions=4, n_features=2, seed=3), seed=0)
    state = start(np.zeros(8), prepared, 0.4)  # π ties: uniform either way
    roll_in(state, prepared, kind="expert", seed=1)
    assert stats.chisquare(state.counts).pvalue > 0.001
    probability_only = np.eye(8)[0]
    state = start(probability_only, prepared, 0.4)
    examples = roll_in(state, prepared, kind="expert", seed=1)
    chosen = examples.features[:, :, 0].argmax(axis=1)
    # Shares move by 1/t where an action is played: recover the actions from the counts.
    counts = examples.features[:, :, 3] * np.arange(len(chosen))[:, None]
    played = np.diff(counts, axis=0).argmax(axis=1)
    away = played != chosen[:-1]
    expected = 0.4 * 3 / 4
    assert stats.binomtest(int(away.sum()), len(away), expected).pvalue > 0.001


def test_beta_mixes_the_expert_in(prepared):
    state = state_of(prepared, mu=0.0)
    roll_in(state, prepared, kind="expert", beta=1.0)
    best = prepared.task.rewards[prepared.order].max(axis=1)
    assert_allclose(state.sums.sum(), best.sum(), atol=1e-9)


def test_the_expert_leaves_its_action_with_mass_mu():
    prepared = prepare(graded(4030, n_actions=4, n_features=2, seed=3), seed=0)
    state = state_of(prepared, mu=0.4)
    examples = roll_in(state, prepared, kind="expert", beta=1.0, seed=1)
    best = examples.values.argmax(axis=1)
    counts = examples.features[:, :, 3] * np.arange(len(best))[:, None]
    away = np.diff(counts, axis=0).argmax(axis=1) != best[:-1]
    assert stats.binomtest(int(away.sum()), len(away), 0.4 * 3 / 4).pvalue > 0.001
