"""Every explorer against its definition, over whole runs and at chosen points."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats

from melee.bandit import Bandit
from melee.errors import InputError
from melee.explorers import EXPLORERS
from melee.explorers.cover import smallest_mass
from melee.explorers.eg_epsilon_greedy import CANDIDATES
from melee.explorers.thompson import N_EDGES, probability_of_largest
from melee.learners.interface import predict, spread
from melee.learners.registry import REGISTRY as LEARNERS
from melee.loop import simulate
from melee.rng import stream
from melee.testing import checks_for_explorer
from tests import naive, twins
from tests.tasks import copies_of, inputs, restore, trained

SPECS = [
    "epsilon-greedy:epsilon=0.2",
    "epsilon-greedy:epsilon=0.1:learner=ridge",
    "epsilon-greedy:epsilon=0.1:learner=ridge:exact=2",
    "epsilon-greedy:epsilon=0.1:learner=diagonal",
    "epsilon-greedy:epsilon=0.1:optimizer=ips",
    "epsilon-greedy:epsilon=0.1:optimizer=dr",
    "epsilon-greedy:epsilon=0.1:optimizer=mtr",
    "epsilon-greedy:epsilon=0.1:steps=adaptive",
    "epsilon-greedy:epsilon=0.1:loss=logistic",
    "epsilon-greedy:learning_rate=0.7",
    "epsilon-decreasing:epsilon=1",
    "softmax:temperature=1",
    "squarecb:gamma=0",
    "tau-first:tau=0.3",
    "tau-first:tau=0.3:stop=true",
    "tau-first:rounds=7",
    "eg-epsilon-greedy:tau=0.3:beta=0.2:kappa=0.4",
    "cover:policies=3:psi=2",
    "cover:policies=1",
    "cover-nu:policies=5:psi=1",
    "bagging:bags=3:greedify=true",
    "bagging:bags=3:learner=ridge",
    "linucb:alpha=1:ridge=3",
    "linucb:optimizer=mtr",
    "linucb:hidden=8",
    "linucb:rescale=true",
    "linucb:cold=true",
    "gated-ucb:scale=3:power=0.5",
    "regcb-opt:mellowness=0.1",
    "regcb-elim:mellowness=0.05",
    "thompson:scale=1",
    "banditron:mu=0.5",
    "banditron-melee:mu=0.5",
    "melee-paper:mu=0.3",
    "melee:hidden=4:cold=true",
]
"""Settings beside the defaults, which `test_every_explorer.py` compares."""


@pytest.mark.parametrize("spec", SPECS)
def test_a_whole_run_agrees_with_the_definition(spec):
    checks = {check.name: check for check in checks_for_explorer(spec, twins.twin)}
    checks["a_run_agrees_with_its_twin"]()


def test_every_explorer_and_learner_has_a_twin_that_was_written_from_its_definition():
    without = EXPLORERS.keys() - twins.TWINS.keys()
    assert not without, f"write the definition of {without} once more, in tests/naive.py"
    without = LEARNERS.own.keys() - twins.LEARNER_TWINS.keys()
    assert not without, f"write the definition of {without} once more, in tests/naive.py"


# --- Cover --------------------------------------------------------------------------------------


def test_covers_floor_falls_with_the_square_root_of_time():
    assert smallest_mass(4, 1) == 0.25
    assert smallest_mass(4, 4) == 0.25
    assert smallest_mass(4, 100) == 0.05


@pytest.mark.parametrize("spec", ["cover", "cover-nu"])
def test_covers_floor_holds_for_the_actions_that_may_be_played(spec):
    bandit, x = trained(spec, n_rounds=60)
    pmf, floor = bandit.pmf(x), 1 / math.sqrt(4 * 61)
    assert (pmf[pmf > 0] >= floor - 1e-12).all()
    if spec == "cover":
        assert (pmf > 0).all()


def test_cover_nu_leaves_actions_alone_that_no_policy_chose():
    nowhere = 0
    for seed in range(10):
        bandit, x = trained("cover-nu:psi=0", n_rounds=60, seed=seed)
        nowhere += int((bandit.pmf(x) == 0).sum())
    assert nowhere > 0


# --- EG ε-greedy --------------------------------------------------------------------------------


def test_the_candidates_are_the_papers():
    assert_allclose(CANDIDATES, [0.05 * i + 0.01 for i in range(1, 11)])


def test_candidate_and_action_are_drawn_as_if_the_candidate_came_first():
    bandit, x = trained("eg-epsilon-greedy:tau=0.2", n_rounds=30)
    state, start = bandit._state, copies_of(bandit._state)
    q, log_weights = state.q.copy(), state.log_weights.copy()
    assert q.max() > 1.1 * q.min()  # the candidates have come apart
    f = [predict(state.polopt.learner, inputs(bandit, x), a) for a in range(4)]
    greedy = naive.greedy(f)
    counts, n = np.zeros((10, 4)), 20_000
    for seed in range(n):
        bandit._rng = stream(seed, "exploration")
        action, p = bandit.act(x)
        bandit.learn(x, action, 1.0, p)
        bandit.n_learned_ -= 1
        gain = state.log_weights - log_weights - 0.2 * 0.01 / q
        counts[np.argmax(gain), action] += 1
        restore(state, start)
    play = [(1 - e) * greedy + e / 4 for e in CANDIDATES]
    joint = q[:, None] * np.array(play)
    assert stats.chisquare(counts.ravel(), n * joint.ravel()).pvalue > 1e-3


def test_a_long_run_does_not_overflow_the_candidates_weights():
    bandit, _ = trained("eg-epsilon-greedy:tau=100", n_rounds=300)
    assert np.isfinite(bandit._state.q).all()
    assert bandit._state.q.sum() == pytest.approx(1)
    assert (bandit._state.q >= 0.05 / 10 - 1e-12).all()


# --- τ-first ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stop", "goes_on"), [("false", True), ("true", False)])
def test_tau_first_learns_after_exploring_only_in_one_of_its_readings(stop, goes_on):
    bandit = Bandit(
        f"tau-first:rounds=5:stop={stop}", n_features=2, n_actions=3, reward_range=(0, 1)
    )
    for t in range(1, 8):
        before = bandit._state.polopt.learner.weights.copy()
        bandit.learn([0.5, -1.0], 1, 0.8, 1 / 3)
        changed = (bandit._state.polopt.learner.weights != before).any()
        assert changed == (t <= 5 or goes_on)


def test_tau_is_a_fraction_of_the_rounds_rounded_up(easy):
    run = simulate(easy, "tau-first:tau=0.02")
    assert easy.n_rounds == 370
    assert_allclose(run.probabilities[:8], 1 / 3)
    assert (run.probabilities[8:] > 0.4).all()


def test_tau_first_without_a_number_of_rounds_says_what_to_give():
    with pytest.raises(InputError, match=r"give n_rounds, or .* tau-first:rounds=N"):
        Bandit("tau-first", n_features=2, n_actions=2, reward_range=(0, 1))


# --- LinUCB and RegCB ---------------------------------------------------------------------------


def test_linucb_takes_the_diagonal_above_150_features():
    exact = Bandit("linucb", n_features=150, n_actions=2, reward_range=(0, 1))._state.polopt.learner
    diagonal = Bandit(
        "linucb", n_features=151, n_actions=2, reward_range=(0, 1)
    )._state.polopt.learner
    assert exact.inverse.shape == (2, 151, 151)
    assert diagonal.information.shape == (2, 152)


def test_regcb_bounds_are_the_extreme_predictions_of_models_that_fit_almost_as_well():
    rng, beta = np.random.default_rng(0), 0.05
    bandit = Bandit("regcb-opt", n_features=3, n_actions=4, reward_range=(0, 1))
    X, y = np.column_stack([rng.normal(size=(20, 3)), np.ones(20)]), rng.random(20)
    for x, reward in zip(X, y, strict=True):
        bandit.learn(x[:3], 2, reward, 1.0)

    def loss(w):
        return ((X @ w - y) ** 2).sum() + 0.1 * (w @ w)

    best = optimize.minimize(loss, np.zeros(4), method="BFGS")
    within: Any = {"type": "ineq", "fun": lambda w: best.fun + beta - loss(w)}
    learner, x = bandit._state.polopt.learner, np.array([0.5, -1.0, 2.0, 1.0])
    minimize: Any = optimize.minimize
    for sign in (1, -1):
        extreme = minimize(lambda w, d: -d @ w, best.x, (sign * x,), constraints=within)
        closed = predict(learner, x, 2) + sign * math.sqrt(beta) * spread(learner, x, 2)
        assert_allclose(extreme.x @ x, closed, atol=1e-4)


def test_regcb_elimination_keeps_all_actions_or_few_as_its_mellowness_says():
    for seed in range(5):
        wide, x = trained("regcb-elim:mellowness=10", seed=seed)
        assert (wide.pmf(x) == 0.25).all()
        narrow, x = trained("regcb-elim:mellowness=0", seed=seed)
        assert (narrow.pmf(x) > 0).sum() < 4


# --- Thompson -----------------------------------------------------------------------------------


def thompson(means, deviations):
    means, deviations = np.array(means, float), np.array(deviations, float)
    pmf, below = np.empty(len(means)), np.empty(len(means))
    edges = np.empty(len(means) * N_EDGES)
    probability_of_largest(means, deviations, below, edges, pmf)
    return pmf


@pytest.mark.parametrize(
    ("means", "deviations"),
    [
        ([0.0, 0.0], [1.0, 1.0]),
        ([0.5, 0.6, 0.2], [0.1, 0.1, 0.1]),
        ([0.5, 0.4, 0.45], [0.001, 1.0, 0.1]),
        ([0.5, 0.51, 0.5], [0.001, 0.001, 1.0]),
        ([0.5, 0.47, 0.53], [0.02, 0.02, 0.6]),
        ([0.3, 0.3, 0.3], [1e-6, 0.1, 0.1]),
        ([0.9, 0.1, 0.1, 0.1], [0.01, 0.2, 0.4, 0.8]),
        (np.linspace(0, 1, 12), np.full(12, 0.3)),
        (np.zeros(12), np.geomspace(0.001, 1, 12)),
    ],
)
def test_thompson_plays_as_often_as_its_draws_are_largest(means, deviations):
    rng, n = np.random.default_rng(3), 200_000
    draws = means + np.array(deviations) * rng.normal(size=(n, len(means)))
    seen = np.bincount(draws.argmax(axis=1), minlength=len(means)) / n
    assert_allclose(thompson(means, deviations), seen, atol=5 * math.sqrt(0.25 / n))


def test_thompson_is_greedy_where_no_draw_can_change_the_order():
    assert_allclose(thompson([1e100, 2e100, 2e100], [0.5, 0.5, 0.5]), [0.0, 0.5, 0.5])


@given(
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.floats(-4, 0).map(lambda e: 10**e),
    st.floats(-4, 0).map(lambda e: 10**e),
)
def test_thompson_with_two_actions_has_a_closed_form(mean, other, deviation, other_deviation):
    pmf = thompson([mean, other], [deviation, other_deviation])
    expected = stats.norm.cdf((mean - other) / math.hypot(deviation, other_deviation))
    assert_allclose(pmf, [expected, 1 - expected], atol=2e-3)


@given(
    st.lists(
        st.tuples(st.floats(-1, 2), st.floats(-12, 1).map(lambda e: 10**e)), min_size=2, max_size=6
    )
)
def test_thompson_gives_probabilities_for_any_means_and_spreads(posterior):
    pmf = thompson([p[0] for p in posterior], [p[1] for p in posterior])
    assert (pmf >= 0).all()
    assert abs(pmf.sum() - 1) < 1e-12
    assert pmf[np.argmax([p[0] + 1e-9 * p[1] for p in posterior])] > 0


# --- full information ---------------------------------------------------------------------------


def test_full_information_learns_from_every_actions_reward():
    bandit = Bandit("full-information", n_features=1, n_actions=3, reward_range=(0, 1))
    bandit.reveal([1.0], 0, [0.0, 0.2, 0.9], 1 / 3)
    assert_array_equal(bandit.pmf([1.0]), [0, 0, 1])


def test_where_one_reward_is_known_full_information_is_greedy():
    full = Bandit("full-information", n_features=2, n_actions=3, seed=1, reward_range=(0, 1))
    greedy = Bandit(
        "epsilon-greedy:learner=ridge", n_features=2, n_actions=3, seed=1, reward_range=(0, 1)
    )
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = rng.normal(size=2)
        assert full.act(x) == greedy.act(x)
        action, p = full.act(x)
        reward = rng.random()
        full.learn(x, action, reward, p)
        greedy.learn(x, action, reward, p)


def test_a_bandit_sees_only_the_reward_of_its_action():
    shown = Bandit("epsilon-greedy", n_features=2, n_actions=3, reward_range=(0, 1))
    told = Bandit("epsilon-greedy", n_features=2, n_actions=3, reward_range=(0, 1))
    shown.reveal([0.3, 0.4], 1, [1.0, 0.25, 0.75], 0.5)
    told.learn([0.3, 0.4], 1, 0.25, 0.5)
    weights = [b._state.polopt.learner.weights for b in (shown, told)]
    assert_array_equal(*weights)
    assert weights[0][1].any()
