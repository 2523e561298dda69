"""A scaling found on the way: of a cold start, or in place of a task's own."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

from melee.bandit import Bandit
from melee.errors import InputError
from melee.explorers import Problem, parse
from melee.explorers.melee import own_state
from melee.explorers.rescaled import FROM_SCALED, N_KEPT, Rescaled
from melee.loop import scaling_for, simulate
from melee.rng import stream
from melee.scaling import Scaling, scale_row
from melee.states import copy_state, in_one_block
from melee.task import Task
from tests import naive
from tests.tasks import arrays_of

D, K = 3, 3


def rounds(n, seed=0):
    """Contexts of unlike scales and heavy tails, with graded rewards of three actions."""
    rng = np.random.default_rng(seed)
    z = rng.standard_t(3, size=(n, D))
    signal = z @ rng.normal(size=(D, K)) + 0.5 * rng.normal(size=(n, K))
    return z * [1000.0, 1.0, 0.01] + [0.0, -7.0, 1.0], 1 / (1 + np.exp(-signal))


def play(bandit, contexts, rewards):
    """The actions played."""
    actions = []
    for x, row in zip(contexts, rewards, strict=True):
        action, p = bandit.act(x)
        bandit.learn(x, action, row[action], p)
        actions.append(action)
    return np.array(actions)


@pytest.mark.parametrize("hidden", [0, 4])
def test_at_every_round_the_ridge_is_the_fit_to_the_whole_history_in_the_scale_of_the_moment(
    hidden,
):
    contexts, rewards = rounds(300)
    bandit = Bandit(
        f"linucb:cold=true:hidden={hidden}", n_features=D, n_actions=K, reward_range=(0, 1)
    )
    actions = np.zeros(len(contexts), int)
    for n, (x, row) in enumerate(zip(contexts, rewards, strict=True), start=1):
        action, p = bandit.act(x)
        bandit.learn(x, action, row[action], p)
        actions[n - 1] = action
        if n > 40 and n % 16 > 1:  # all of the first, and then around every doubling
            continue
        inner = bandit._state.inner
        inputs = naive.cold_inputs(contexts[:n])
        if hidden:
            units = inner.units
            used = units.columns[units.used], units.weights[units.used]
            inputs = np.array([naive.widened(x, *used) for x in inputs])
            inner = inner.inner
        for a in range(K):
            ridge = naive.Ridge(inputs.shape[1], 0.1)
            for i in np.flatnonzero(actions[:n] == a):
                ridge.learn(inputs[i], rewards[i, a])
            learner = inner.polopt.learner
            assert_allclose(learner.weights[a], ridge.w(), atol=1e-8, err_msg=f"round {n}")
            assert_allclose(
                learner.inverse[a] @ ridge.information(), np.eye(len(ridge.w())), atol=1e-8
            )
    assert len(set(actions.tolist())) == K


def test_the_scaling_is_that_of_the_first_rows_whose_number_is_a_power_of_two():
    contexts, rewards = rounds(600)
    bandit = Bandit("linucb:cold=true", n_features=D, n_actions=K, reward_range=(0, 1))
    table = bandit._state.scaling.shift_scale
    for n, (x, row) in enumerate(zip(contexts, rewards, strict=True), start=1):
        bandit.learn(x, n % K, row[n % K], 1.0)
        first = contexts[: min(2 ** (n.bit_length() - 1), N_KEPT)]
        if n == 1:
            assert_array_equal(table, [np.zeros(D), np.ones(D)])
        else:
            assert_allclose(table, [first.mean(axis=0), 1 / first.std(axis=0)], rtol=1e-9)
            assert_allclose(table, Scaling.fit(first, "standardize").shift_scale, rtol=1e-9)
    assert N_KEPT == 256
    assert bandit._state.kept[0] == N_KEPT


def test_the_first_context_is_taken_as_it_comes_but_cut():
    bandit = Bandit("linucb:cold=true", n_features=4, n_actions=2, reward_range=(0, 1))
    x = np.array([1e6, 2.0, -1e9, -3.0])
    bandit.act(x)
    assert_array_equal(bandit._state.scaled, [2.5, 1.0, -2.5, -1.5, 1.0])


def test_a_constant_column_is_only_shifted():
    contexts, rewards = rounds(64)
    contexts[:, 1] = 0.1  # its mean over many rows is not quite that in floating point
    contexts[:, 2] = 0.0
    bandit = Bandit("linucb:cold=true", n_features=D, n_actions=K, reward_range=(0, 1))
    play(bandit, contexts, rewards)
    table = bandit._state.scaling.shift_scale
    assert_array_equal(table[:, 1:], [[0.1, 0.0], [1.0, 1.0]])
    bandit.act([0.0, 2.1, -1.0])
    assert_allclose(bandit._state.scaled[1:] * np.sqrt([D, D, 1]), [2.0, -1.0, 1.0])


@pytest.mark.parametrize("spec", ["linucb:cold=true:alpha=0.5", "bagging:cold=true:bags=5"])
@pytest.mark.parametrize(("power", "shift"), [(10, 0.0), (-7, 64.0), (0, -1024.0), (30, 3.5)])
def test_units_of_measurement_do_not_matter_once_the_scale_is_found(spec, power, shift):
    contexts, rewards = rounds(330, seed=1)
    other = contexts.copy()
    other[:, 1] = other[:, 1] * 2.0**power + shift
    bandits = [
        Bandit(spec, n_features=D, n_actions=K, seed=3, reward_range=(0, 1)) for _ in range(2)
    ]
    for i in range(8):  # the same past for both, whatever they would have done
        for bandit, rows in zip(bandits, (contexts, other), strict=True):
            bandit.learn(rows[i], i % K, rewards[i, i % K], 1.0)
    actions = [
        play(bandit, rows[8:], rewards[8:])
        for bandit, rows in zip(bandits, (contexts, other), strict=True)
    ]
    assert_array_equal(*actions)
    assert len(set(actions[0].tolist())) > 1


@pytest.mark.parametrize("n", [1, 2, 63, 64, 300])
def test_replayed_rounds_draw_the_random_numbers_that_they_drew_before(n):
    contexts, rewards = rounds(n + 1, seed=2)
    bandit = Bandit(
        "bagging:cold=true:bags=6", n_features=D, n_actions=K, seed=5, reward_range=(0, 1)
    )
    actions = play(bandit, contexts[:n], rewards[:n])
    key = int(stream(5, "exploration")[0])
    twin = naive.Bagging(K, D + 1, key=key, bags=6, greedify=False)
    inputs = naive.cold_inputs(contexts[:n])
    for t, (x, action) in enumerate(zip(inputs, actions, strict=True), start=1):
        twin.learn(x, t, action, rewards[t - 1], 1.0)
    for i in range(n):
        assert_allclose(bandit.pmf(contexts[i]), twin.pmf(inputs[i], n + 1), atol=1e-9)


@pytest.mark.parametrize("spec", ["melee:cold=true", "bagging:cold=true"])
def test_row_by_row_makes_the_same_decisions_as_the_compiled_pass(spec, hard):
    run = simulate(hard, spec, seed=7)
    bandit = Bandit.for_prepared(hard, spec, seed=7)
    assert hard.n_rounds > N_KEPT
    for i, row in enumerate(hard.order):
        x = hard.task.contexts[row]
        action, p = bandit.act(x)
        assert (action, p) == (run.actions[i], run.probabilities[i])
        bandit.learn(x, action, hard.task.rewards[row, action], p)


@pytest.mark.parametrize("spec", ["linucb", "bagging:bags=5"])
def test_nothing_of_the_preparation_is_used(spec, hard):
    rewards = hard.task.rewards.copy()
    rewards[hard.labelled] = 1 - rewards[hard.labelled]
    contexts = hard.task.contexts.copy()
    contexts[hard.labelled] *= -3
    other = replace(
        hard,
        task=Task("other labels", contexts, rewards, reward_range=(0.0, 1.0)),
        scaling=Scaling.fit(contexts[hard.labelled], "minmax"),
        learning_rate=0.7 * hard.learning_rate,
    )

    def learned(prepared, explorer):
        bandit = Bandit.for_prepared(prepared, explorer, seed=1)
        bandit._rng = stream(1, "exploration")
        rows = prepared.order[:100]
        play(bandit, prepared.task.contexts[rows], prepared.task.rewards[rows])
        return np.concatenate([array.ravel() for array in arrays_of(bandit._state)])

    assert_array_equal(learned(hard, f"{spec}:cold=true"), learned(other, f"{spec}:cold=true"))
    assert not np.allclose(learned(hard, spec), learned(other, spec))


@pytest.mark.parametrize("copy", [copy_state, lambda state: in_one_block(state)[0]])
def test_a_copied_state_goes_on_like_the_original(copy):
    contexts, rewards = rounds(80, seed=3)
    bandits = [
        Bandit("linucb:cold=true", n_features=D, n_actions=K, reward_range=(0, 1)) for _ in range(2)
    ]
    bandits[1]._state = copy(bandits[0]._state)
    first, again = (play(bandit, contexts, rewards) for bandit in bandits)
    assert_array_equal(first, again)
    ours, theirs = (bandit._state.inner.polopt.learner.weights for bandit in bandits)
    assert_array_equal(ours, theirs)


def test_only_an_explorer_that_scales_itself_gets_contexts_as_they_come(hard):
    assert scaling_for(parse("linucb"), hard) is hard.scaling
    assert scaling_for(parse("uniform"), hard) is hard.scaling
    raw = scaling_for(parse("linucb:cold=true"), hard)
    assert_array_equal(raw.shift_scale, [np.zeros(4), np.ones(4)])
    assert (raw.limit, raw.factor) == (np.inf, 1.0)


def test_the_number_of_rounds_to_come_is_still_known_and_nothing_else():
    labelled = np.ones((5, D + 1)), np.ones((5, K))
    problem = Problem(D, K, n_rounds=80, learning_rate=0.7, labelled=labelled)
    state = parse("tau-first:tau=0.5:cold=true").begin(problem)
    assert state.inner.exploring == 40
    assert_equal(state.inner, parse("tau-first:tau=0.5").start(Problem(D, K, n_rounds=80)))


@pytest.mark.parametrize("setting", ["cold=true", "rescale=true"])
def test_full_information_has_no_cold_start_and_no_rescaling(setting):
    with pytest.raises(InputError, match=r"full-information: cold and rescale .* leave them out"):
        parse(f"full-information:{setting}")


def test_an_explorer_that_needs_labelled_rows_has_no_cold_start(easy):
    with pytest.raises(InputError, match=r"melee-paper: .*labelled rows"):
        simulate(easy, "melee-paper:cold=true")


# --- rescaling what was scaled ------------------------------------------------------------------


@pytest.fixture(scope="module")
def standardized(hard):
    """A task whose contexts were standardized by its labelled rows."""
    scaling = Scaling.fit(hard.task.contexts[hard.labelled], "standardize")
    return replace(hard, scaling=scaling, method="standardize")


@pytest.mark.parametrize(
    "spec", ["melee", "linucb:alpha=0.5", "linucb:alpha=0.5:hidden=4", "bagging:bags=5"]
)
def test_rescaling_a_standardized_task_changes_nothing_before_the_32nd_round(spec, standardized):
    bandits = [
        Bandit.for_prepared(standardized, f"{spec}:rescale={value}", seed=2)
        for value in ("false", "true")
    ]
    plain, rescaled = bandits
    table, contexts = rescaled._state.scaling.shift_scale, standardized.task.contexts
    d = standardized.task.n_features
    assert not isinstance(plain._state, Rescaled)
    for t, row in enumerate(standardized.order[:40], start=1):
        ours, theirs = (bandit.pmf(contexts[row]) for bandit in bandits)
        if t <= FROM_SCALED:  # learned are t - 1
            assert_allclose(ours, theirs, atol=1e-9, err_msg=f"round {t}")
            given = standardized.inputs(np.array([row]))[0]
            assert_allclose(rescaled._state.scaled, given, rtol=1e-12)
            assert_array_equal(table, [np.zeros(d), np.full(d, np.sqrt(d))])
        action, p = plain.act(contexts[row])
        for bandit in bandits:
            bandit.learn(contexts[row], action, standardized.task.rewards[row, action], p)
        if t < FROM_SCALED:
            ours, theirs = (
                np.concatenate([array.ravel() for array in arrays_of(state)])
                for state in (plain._state, rescaled._state.inner)
            )
            assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=f"round {t}")
    assert FROM_SCALED == 32
    assert not np.allclose(table[0], 0.0)
    ours, theirs = (arrays_of(_learner(bandit._state))[0] for bandit in bandits)
    assert not np.allclose(ours, theirs)


def _learner(state):
    while not hasattr(state, "polopt"):
        state = state.inner
    return state.polopt.learner


def test_settled_contexts_have_mean_0_and_deviation_1_in_units_of_root_d(hard):
    bandit = Bandit.for_prepared(hard, "linucb:rescale=true")
    state, d, contexts = bandit._state, hard.task.n_features, hard.task.contexts
    given = hard.inputs(hard.order)[:, :d]
    assert hard.n_rounds > N_KEPT
    for n, row in enumerate(hard.order, start=1):
        action, p = bandit.act(contexts[row])
        bandit.learn(contexts[row], action, hard.task.rewards[row, action], p)
        assert state.kept[0] == min(n, N_KEPT)
        if n < FROM_SCALED:
            continue
        by = min(2 ** (n.bit_length() - 1), N_KEPT)
        assert_array_equal(state.contexts[:by], given[:by])
        scaled = np.empty((by, d + 1))
        for i in range(by):
            scale_row(state.scaling, state.contexts[i], scaled[i])
        assert_allclose(np.sqrt(d) * scaled[:, :d].mean(axis=0), np.zeros(d), atol=1e-12)
        assert_allclose(np.sqrt(d) * scaled[:, :d].std(axis=0), np.ones(d), atol=1e-12)
        assert_array_equal(scaled[:, d], np.ones(by))


@pytest.mark.parametrize("hidden", [0, 4])
def test_the_ridge_behind_a_rescaling_is_the_fit_to_the_whole_history_in_the_new_scale(
    hidden, hard
):
    bandit = Bandit.for_prepared(hard, f"linucb:rescale=true:hidden={hidden}")
    assert isinstance(bandit._state, Rescaled)
    rows = hard.order
    given, rewards = hard.inputs(rows), hard.task.rewards[rows]
    actions = np.zeros(len(rows), int)
    for n, row in enumerate(rows, start=1):
        action, p = bandit.act(hard.task.contexts[row])
        bandit.learn(hard.task.contexts[row], action, rewards[n - 1, action], p)
        actions[n - 1] = action
        if n not in (2, 16, 31, 32, 33, 63, 64, 128, 255, 256, 257, 300):
            continue
        inputs = given[:n]
        if n >= FROM_SCALED:
            raw = inputs[:, :-1]
            first = raw[: min(2 ** (n.bit_length() - 1), N_KEPT)]
            inputs = naive.scaled(first, raw, "standardize")
        if hidden:
            units = bandit._state.inner.units
            inputs = np.array(
                [
                    naive.widened(x, units.columns[units.used], units.weights[units.used])
                    for x in inputs
                ]
            )
        for a in range(hard.task.n_actions):
            ridge = naive.Ridge(inputs.shape[1], 0.1)
            for i in np.flatnonzero(actions[:n] == a):
                ridge.learn(inputs[i], rewards[i, a])
            weights = _learner(bandit._state).weights[a]
            assert_allclose(weights, ridge.w(), atol=1e-8, err_msg=f"round {n}")
    assert len(set(actions.tolist())) > 1


def test_a_column_that_is_constant_so_far_is_only_shifted_by_a_rescaling_too():
    contexts, rewards = rounds(64)
    contexts = np.clip(contexts / [1000.0, 1.0, 0.01], -2.0, 2.0)
    contexts[:, 1:] = [0.1, 0.0]
    bandit = Bandit("linucb:rescale=true", n_features=D, n_actions=K, reward_range=(0, 1))
    play(bandit, contexts, rewards)
    table = bandit._state.scaling.shift_scale
    assert_array_equal(table[:, 1:], [[0.1, 0.0], [np.sqrt(D), np.sqrt(D)]])
    bandit.act([0.0, 1.1, -0.5])
    assert_allclose(bandit._state.scaled[1:], [1.0, -0.5, 1.0])


@pytest.mark.parametrize("spec", ["melee", "bagging:rescale=true", "linucb:rescale=true:hidden=4"])
def test_a_rescaled_explorer_decides_row_by_row_as_in_the_compiled_pass(spec, hard):
    run = simulate(hard, spec, seed=7)
    bandit = Bandit.for_prepared(hard, spec, seed=7)
    for i, row in enumerate(hard.order):
        x = hard.task.contexts[row]
        action, p = bandit.act(x)
        assert (action, p) == (run.actions[i], run.probabilities[i])
        bandit.learn(x, action, hard.task.rewards[row, action], p)
    assert bandit.diagnostics() == run.diagnostics


def test_rescaling_is_the_default_of_melee_alone():
    problem = Problem(D, K)
    state = parse("melee").begin(problem)
    assert isinstance(state, Rescaled)
    assert own_state(state).plays.shape == (K,)
    for spec in ("melee:rescale=false", "linucb", "bagging", "epsilon-greedy"):
        assert not isinstance(parse(spec).begin(problem), Rescaled)
    assert (state.first, parse("melee:cold=true").begin(problem).first) == (32, 2)
