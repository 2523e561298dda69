import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.datasets.payments import Clicks, Graded, Numbers, Revenue, intercept, sigmoid
from melee.datasets.production import CLEAR, LABELLED, Use, clarity, draw, production, task_of
from melee.datasets.situations import EFFECTS, effect, situations
from melee.errors import DataError, InputError
from melee.shares import uniform_and_best

SEEDS = range(40)
PAYMENTS: dict[str, Any] = {
    "rare clicks": Clicks(0.01),
    "clicks": Clicks(0.3),
    "successes": Clicks(0.99),
    "a beta": Graded(0.0, 1.0),
    "a narrow band": Graded(0.9, 0.98, middle=0.3, precision=2.0),
    "stars": Graded(0.0, 1.0, middle=0.7, precision=5.0, levels=5),
    "revenue": Revenue(0.05, 1200.0),
    "heavy tails": Revenue(0.2, 0.01, spread=1.5, by_rate=0.0),
    "numbers": Numbers(-50.0, 1e4, noise=2.0),
    "skewed": Numbers(0.0, 1e-3, shape="skewed"),
    "laplace": Numbers(3.0, 1.0, shape="laplace"),
}


def made(use, seed):
    return task_of(use, "t", np.random.default_rng(seed))


@pytest.fixture(scope="module")
def family():
    return [production(seed=seed, max_rows=4000) for seed in SEEDS]


# --- what is paid -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAYMENTS)
def test_rewards_are_on_average_what_is_expected_and_vary_as_much(name):
    pays, rng = PAYMENTS[name], np.random.default_rng(0)
    scores = np.tile(rng.normal(size=5), (80_000, 1))
    law = pays.law(scores, pays.level(scores))
    rewards = pays.draw(rng, law)
    error = np.sqrt(law.variance[0] / len(scores))
    assert np.abs((rewards.mean(axis=0) - law.expected[0]) / error).max() < 4.0
    rounded = isinstance(pays, Graded) and pays.levels
    bound = 1.25 if rounded else 1.1  # of levels only the most that rounding may add is known
    if name != "heavy tails":  # whose variance no sample shows
        assert (rewards.var(axis=0) < bound * law.variance[0]).all()
        assert (rewards.var(axis=0) > law.variance[0] / bound).all()
    if pays.reward_range is not None:
        low, high = pays.reward_range
        assert low <= rewards.min()
        assert rewards.max() <= high


@pytest.mark.parametrize("name", ["rare clicks", "clicks", "successes"])
def test_uniform_choice_has_the_rate_that_was_asked_for(name):
    pays = PAYMENTS[name]
    scores = np.random.default_rng(0).normal(size=(1000, 4))
    assert_allclose(pays.law(scores, pays.level(scores)).expected.mean(), pays.rate, rtol=1e-6)


@pytest.mark.parametrize("name", ["a narrow band", "stars"])
def test_graded_rewards_stay_in_their_band_and_on_their_levels(name):
    pays, rng = PAYMENTS[name], np.random.default_rng(0)
    scores = 3.0 * rng.normal(size=(2000, 4))
    rewards = pays.draw(rng, pays.law(scores, pays.level(scores)))
    assert pays.low <= rewards.min()
    assert rewards.max() <= pays.high
    different = len(np.unique(rewards))
    assert different == pays.levels if pays.levels else different > 0.5 * rewards.size


def test_the_unit_of_money_changes_nothing_else():
    scores = np.random.default_rng(0).normal(size=(500, 3))
    drawn = []
    for amount in (1.0, 250.0):
        pays = Revenue(0.1, amount)
        law = pays.law(scores, pays.level(scores))
        drawn.append((law.expected, pays.draw(np.random.default_rng(1), law)))
    for small, large in zip(*drawn, strict=True):
        assert_allclose(250.0 * small, large)


@pytest.mark.parametrize("mean", [0.003, 0.5, 0.995])
def test_the_intercept_gives_the_mean(mean):
    scores = 5.0 * np.random.default_rng(0).normal(size=1000)
    assert_allclose(sigmoid(scores + intercept(scores, mean)).mean(), mean, rtol=1e-6)


# --- situations and effects ---------------------------------------------------------------------


def test_contexts_are_standardized_for_effects_and_named_for_agents():
    seen = situations(np.random.default_rng(5), 3000, 40)
    assert seen.contexts.shape == seen.standard.shape == (3000, 40)
    assert np.abs(seen.standard).max() <= 4.0
    assert np.abs(seen.standard.mean(axis=0)).max() < 0.2
    row, levels = seen.rows[7], 0
    for name, value in row.items():
        j = int(name[1:])
        if name[0] == "c":
            levels += 1
            assert seen.contexts[7, j + int(str(value).split()[1])] == 1.0
        else:
            assert value == seen.contexts[7, j]
    assert levels > 0


def test_without_features_rows_are_empty_and_contexts_say_nothing():
    seen = situations(np.random.default_rng(0), 50, 0)
    assert len(seen.rows) == 50
    assert seen.rows[49] == {}
    assert_array_equal(seen.contexts, np.zeros((50, 1)))


@pytest.mark.parametrize("kind", EFFECTS[1:])
def test_effects_have_mean_0_and_size_1(kind):
    rng = np.random.default_rng(0)
    values = effect(rng, rng.normal(size=(2000, 6)), 5, kind)
    assert values.shape == (2000, 5)
    assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(values.std(), 1.0)


# --- tasks --------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_task_and_another_one_another():
    first = production(seed=3)
    assert first.content_hash == production(seed=3).content_hash
    assert first.content_hash != production(seed=4).content_hash
    assert first.name == "production-3"


def test_the_family_holds_every_kind_of_use(family):
    kinds = Counter(task.provenance.split(",")[0] for task in family)
    assert set(kinds) == {"clicks", "graded", "revenue", "numbers"}
    assert any((task.contexts == 0).all() for task in family)
    assert max(task.n_features for task in family) > 20
    assert max(task.n_actions for task in family) > 40
    assert min(task.n_actions for task in family) == 2
    assert any(task.ordered for task in family)
    assert any(task.expected.min() < 0.0 for task in family)
    assert any(task.expected.max() > 100.0 for task in family)
    assert all(500 + LABELLED <= task.n_rows <= 4000 for task in family)
    assert all(task.open is None and task.delays is None for task in family)


def test_choosing_well_is_worth_more_than_luck_in_every_task(family):
    for task in family:
        variance = (task.rewards - task.expected) ** 2
        assert clarity(task.expected, variance, task.n_rows - LABELLED) > 0.75 * CLEAR


def test_rewards_of_tasks_are_on_average_what_is_expected(family):
    off = []
    for task in family:
        error = task.rewards - task.expected
        off.append(error.mean() / (error.std() / np.sqrt(error.size)))
    assert np.abs(off).max() < 4.0
    assert abs(np.mean(off)) < 4.0 / np.sqrt(len(off))


def test_a_task_is_made_fast():
    production(seed=0)
    times = []
    for seed in range(9):
        began = time.perf_counter()
        production(seed=seed, max_rows=6000)
        times.append(time.perf_counter() - began)
    assert np.median(times) < 0.25  # on an idle machine 0.02


def test_more_strength_makes_choosing_worth_more():
    def worth(strength):
        use = Use(
            pays=Clicks(0.1), n_rounds=5000, n_actions=5, n_features=4, effect="linear",
            strength=strength,
        )  # fmt: skip
        task = made(use, 0)
        uniform, best = uniform_and_best(task.expected)
        return (best - uniform).mean()

    assert worth(2.0) > worth(1.0) > worth(0.5)


def test_without_drift_an_ab_test_has_one_rate_for_each_action():
    task = made(Use(pays=Clicks(0.1), n_rounds=4000, n_actions=3), 0)
    assert (task.expected == task.expected[0]).all()
    assert not task.ordered
    assert task.rows is not None
    assert task.rows[0] == {}


@pytest.mark.parametrize("drift", ["slow", "sudden"])
def test_drift_changes_which_action_is_best(drift):
    use = Use(pays=Clicks(0.3), n_rounds=5000, n_actions=2, drift=drift)
    tasks = [made(use, seed) for seed in range(6)]
    assert all(task.expected[0].argmax() != task.expected[-1].argmax() for task in tasks)
    task = tasks[0]
    assert task.ordered
    steps = np.abs(np.diff(task.expected, axis=0)).max(axis=1)
    assert (steps > 0).sum() == (1 if drift == "sudden" else task.n_rows - 1)


def test_actions_come_and_go_and_rewards_come_late():
    use = Use(pays=Clicks(0.3), n_rounds=5000, n_actions=20, comes_and_goes=True, delay=50.0)
    task = made(use, 0)
    assert task.ordered
    assert task.open is not None
    assert task.open.all(axis=0).sum() >= 2
    assert not task.open[:, task.expected[0].argmax()].all()
    changes = np.diff(task.open.astype(int), axis=0)
    assert (changes == 1).sum() >= 3
    assert (changes == -1).sum() >= 3
    assert (np.abs(changes).sum(axis=0) <= 2).all()
    assert task.delays is not None
    assert task.delays.min() == 0
    assert 45.0 < task.delays.mean() < 55.0


def test_what_luck_would_hide_is_refused():
    use = Use(pays=Numbers(noise=1000.0), n_rounds=500, n_actions=100)
    with pytest.raises(DataError, match=r"use t: no advantage can be told from luck in 500 rounds"):
        made(use, 0)


@pytest.mark.parametrize("max_rows", [529, 0, "many", 1e4])
def test_too_few_rows_are_refused(max_rows):
    with pytest.raises(InputError, match="max_rows"):
        production(seed=0, max_rows=max_rows)


def test_uses_are_drawn_within_their_bounds():
    rng = np.random.default_rng(0)
    uses = [draw(rng, 20_000) for _ in range(2000)]
    assert {use.n_features for use in uses} >= {0, 2, 60}
    assert {use.n_actions for use in uses} >= {2, 10, 90}
    assert min(use.n_rounds for use in uses) < 550
    assert max(use.n_rounds for use in uses) > 19_000
    rates = [use.pays.rate for use in uses if isinstance(use.pays, Clicks)]
    assert min(rates) < 0.004
    assert 0.99 < max(rates) <= 0.995
    assert all(use.effect == "none" for use in uses if use.n_features == 0)
