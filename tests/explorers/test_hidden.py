"""Hidden units beside a context's own features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.bandit import Bandit
from melee.explorers import Problem, parse
from melee.explorers.base import widened
from melee.explorers.hidden import LUCK, Units, Widened, choose, weigh, widen
from melee.loop import simulate
from melee.preparation import prepare
from melee.scaling import Scaling
from melee.task import Task
from tests import naive


def used(units):
    return units.columns[units.used], units.weights[units.used]


def wide_by_kernel(units, x):
    wide = np.full(len(x) + len(units.used), np.nan)
    widen(units, x, wide)
    return wide


@pytest.mark.parametrize(("d", "n_units"), [(1, 1), (1, 8), (2, 5), (7, 48), (60, 3)])
def test_a_wider_context_agrees_with_the_definition(d, n_units):
    units, rng = Units.draw(d, n_units), np.random.default_rng(0)
    for _ in range(20):
        x = np.append(rng.normal(size=d) / np.sqrt(d), 1.0)
        wide = wide_by_kernel(units, x)
        assert_allclose(wide, naive.widened(x, *used(units)), atol=1e-12)
        assert_array_equal(wide[:d], x[:d])


def test_units_look_at_two_different_features_where_there_are_two():
    columns = Units.draw(5, 200).columns
    assert (columns[:, 0] != columns[:, 1]).all()
    assert set(columns.ravel()) == set(range(5))
    assert (Units.draw(1, 20).columns == 0).all()


def test_units_look_at_all_features_alike():
    counts = np.bincount(used(Units.draw(6, 30))[0].ravel())
    assert_array_equal(counts, 10)
    counts = np.bincount(used(Units.draw(7, 30))[0].ravel(), minlength=7)
    assert set(counts) <= set(range(5, 13))  # one of every deck of seven is left over


@pytest.mark.parametrize("d", [1, 4])
def test_a_ramp_rises_or_falls_within_a_standard_deviation(d):
    slopes = Units.draw(d, 200).weights[:, 0::2] / np.sqrt(d)
    places = (0.5 - Units.draw(d, 200).weights[:, 1::2]) * np.sign(slopes)
    assert_allclose(np.abs(slopes), 1.0)
    assert 0.4 < (slopes > 0).mean() < 0.6
    assert abs(places.mean()) < 0.1
    assert 0.7 < places.std() < 0.9


def test_the_units_of_a_number_of_features_are_always_the_same_ones():
    first, again, more = Units.draw(4, 9), Units.draw(4, 9), Units.draw(4, 30)
    assert_array_equal(first.columns, again.columns)
    assert_array_equal(first.weights, again.weights)
    assert_array_equal(first.weights, more.weights[:36])
    assert not np.array_equal(first.weights, Units.draw(5, 9).weights)


def test_units_together_weigh_about_as_much_as_the_features():
    rng = np.random.default_rng(1)
    units = Units.draw(20, 400)
    rows = rng.normal(size=(300, 20)) / np.sqrt(20)
    wide = np.array([wide_by_kernel(units, np.append(x, 1.0)) for x in rows])
    squares = (wide**2).sum(axis=0)
    assert 0.3 < squares[20:-1].sum() / squares[:20].sum() < 3


@pytest.mark.parametrize("d", [1, 3])
def test_an_explorer_behind_units_decides_as_one_that_is_given_the_wider_contexts(d):
    units, rng = Units.draw(d, 8), np.random.default_rng(2)
    behind = Bandit(
        "linucb:hidden=8:alpha=0.5", n_features=d, n_actions=3, seed=1, reward_range=(0, 1)
    )
    given = Bandit("linucb:alpha=0.5", n_features=d + 8, n_actions=3, seed=1, reward_range=(0, 1))
    seen = set()
    for _ in range(150):
        x = rng.normal(size=d) / np.sqrt(d)
        wide = wide_by_kernel(units, np.append(x, 1.0))[:-1]
        assert_array_equal(behind.pmf(x), given.pmf(wide))
        action, p = behind.act(x)
        assert (action, p) == given.act(wide)
        reward = float(rng.random() < [0.5, (x[0] > 0), abs(x[-1])][action])
        behind.learn(x, action, reward, p)
        given.learn(wide, action, reward, p)
        seen.add(action)
    assert_array_equal(
        behind._state.inner.polopt.learner.weights, given._state.polopt.learner.weights
    )
    assert len(seen) > 1


def test_labelled_rows_are_widened_like_the_contexts():
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.normal(size=(6, 4)), np.ones(6)])
    rewards, units = rng.random((6, 2)), Units.draw(4, 5)
    problem = widened(Problem(4, 2, labelled=(rows, rewards)), 5)
    assert problem.n_features == 9
    assert problem.labelled is not None
    expected = [naive.widened(x, *used(units)) for x in rows]
    assert_allclose(problem.labelled[0], expected, atol=1e-12)
    assert_array_equal(problem.labelled[1], rewards)


def test_the_papers_policy_calibrates_on_wider_labelled_rows():
    rng = np.random.default_rng(6)
    labelled = np.column_stack([rng.normal(size=(30, 4)), np.ones(30)]), rng.random((30, 3))
    problem = Problem(4, 3, labelled=labelled)
    state = parse("melee-paper:hidden=5").begin(problem)
    expected = widened(problem, 5).labelled
    assert expected is not None
    assert_array_equal(state.inner.labelled, expected[0])
    assert state.inner.polopt.learner.weights.shape == (3, 10)


def test_full_information_sees_every_reward_behind_units():
    rng = np.random.default_rng(4)
    bandit = Bandit("full-information:hidden=6", n_features=2, n_actions=3, reward_range=(0, 1))
    units, twin = Units.draw(2, 6), naive.FullInformation(3, 9)
    for t in range(1, 41):
        x, rewards = rng.normal(size=2), rng.random(3)
        bandit.reveal(x, 0, rewards, 1.0)
        twin.learn(naive.widened(np.append(x, 1.0), *used(units)), t, 0, rewards, 1)
    learned = bandit._state.inner.polopt.learner.weights
    assert_allclose(learned, [model.w() for model in twin.f.models], atol=1e-9)
    assert (np.abs(learned) > 1e-3).any(axis=1).all()


def test_units_bend_what_a_linear_model_cannot():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1500, 2))
    inside = (x[:, 0] * x[:, 1] > 0).astype(int)
    prepared = prepare(Task("corners", x, np.eye(2)[inside]), seed=0)
    straight = simulate(prepared, "full-information").rewards[-500:].mean()
    bent = simulate(prepared, "full-information:hidden=48").rewards[-500:].mean()
    assert straight < 0.65
    assert bent > 0.85


def test_no_units_means_no_wrapper():
    problem = Problem(3, 2)
    assert not isinstance(parse("linucb").begin(problem), Widened)
    assert isinstance(parse("linucb:hidden=1").begin(problem), Widened)


# --- which of them are used -----------------------------------------------------------------------


def past(n, seed=0):
    """Rounds of three actions, of which the first pays in a corner of columns 2 and 5 of 8."""
    rng = np.random.default_rng(seed)
    rows, actions = rng.normal(size=(n, 8)), rng.integers(3, size=n)
    inside = (rows[:, 2] > 0.2) & (rows[:, 5] < 0.1)
    return rows, actions, np.where(actions == 0, inside, rng.random(n) < 0.5).astype(float)


def chosen_by_kernel(units, rows, actions, rewards):
    scaling = Scaling.fit(rows, "standardize")
    worth = np.zeros(len(units.columns))
    if weigh(units, scaling, rows, actions, rewards, np.zeros((3, 6)), worth) > LUCK:
        choose(units, worth)
    return units.used


@pytest.mark.parametrize("n", [64, 128, 256])
def test_units_are_chosen_by_their_worth_as_the_definition_says(n):
    rows, actions, rewards = past(n)
    units = Units.draw(8, 16)
    twin = naive.Widened(None, units.columns, units.weights, 16)
    assert_array_equal(units.used, np.arange(16))
    twin.choose(naive.scaled(rows, rows, "standardize"), actions, rewards)
    chosen = chosen_by_kernel(units, rows, actions, rewards)
    assert_array_equal(units.weights[chosen], twin.units[1])
    assert len(set(chosen)) == 16


def test_units_that_are_chosen_look_where_rewards_turn():
    units = Units.draw(8, 16)
    assert 0.3 < np.isin(units.columns, (2, 5)).any(axis=1).mean() < 0.6
    chosen_by_kernel(units, *past(256))
    assert np.isin(used(units)[0][:8], (2, 5)).any(axis=1).all()


@pytest.mark.parametrize("rewards", [np.zeros(64), np.full(64, 0.1), np.arange(64) % 3 / 10])
def test_rewards_that_say_nothing_leave_units_as_they_were_drawn(rewards):
    rows, actions = np.random.default_rng(1).normal(size=(64, 8)), np.arange(64) % 3
    chosen = chosen_by_kernel(Units.draw(8, 16), rows, actions, rewards)
    assert_array_equal(chosen, np.arange(16))


def test_units_are_chosen_where_the_past_is_learned_again_and_nowhere_else():
    rows, _, _ = past(300)
    specs = ("linucb:cold=true:hidden=8", "linucb:hidden=8")
    chosen, drawn = (Bandit(s, n_features=8, n_actions=3, reward_range=(0, 1)) for s in specs)
    seen = []
    for x in rows:
        for bandit in (chosen, drawn):
            action, p = bandit.act(x)
            bandit.learn(x, action, float(x[2] > 0.2 and x[5] < 0.1), p)
        seen.append(tuple(chosen._state.inner.units.used))
    assert_array_equal(drawn._state.units.used, np.arange(8))
    turns = [n + 1 for n in range(1, len(seen)) if seen[n] != seen[n - 1]]
    assert seen[62] == tuple(range(8))
    assert turns
    assert set(turns) <= {64, 128, 256}


def test_units_are_not_chosen_by_luck():
    rng = np.random.default_rng(7)
    stayed = 0
    for _ in range(40):
        rows, actions = rng.normal(size=(256, 8)), rng.integers(3, size=256)
        rewards = (rng.random(256) < 0.1).astype(float)
        used = chosen_by_kernel(Units.draw(8, 16), rows, actions, rewards)
        stayed += np.array_equal(used, np.arange(16))
    assert stayed >= 25
