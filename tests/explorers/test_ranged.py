"""Rewards in any unit: the range they are in, declared or found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from melee import Agent
from melee.bandit import Bandit
from melee.explorers import Problem, parse
from melee.explorers.ranged import (
    Range,
    Ranged,
    admit,
    hoped,
    mapped,
    met,
    placed,
    set_map_by,
    taken,
)
from melee.explorers.rescaled import Rescaled, restart
from melee.growth import arrays
from melee.loop import simulate
from melee.preparation import prepare
from melee.states import arrays_of
from melee.task import Task
from tests import naive
from tests.forms import compiled
from tests.news import SPECS, News, live

D, K = 3, 3
UNITS = [(0.0, 0.1), (5.0, 0.001), (-3.0, 1000.0)]


def sales(n, seed=0, *, share=0.1):
    """Nothing most of the time, and now and then an amount with a heavy tail."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < share, rng.pareto(1.5, n) * 20.0, 0.0)


def streams():
    """Rewards of many kinds, one after the other."""
    rng = np.random.default_rng(0)
    outlier = rng.normal(size=300)
    outlier[[7, 200, 290]] = 1e6, -1e6, 1e9
    grown = rng.normal(size=400) * np.repeat([1.0, 1000.0], 200)
    return {
        "clicks": (rng.random(300) < 0.2).astype(float),
        "graded": rng.random(300),
        "negative": -rng.exponential(size=300),
        "sales": sales(600),
        "constant": np.full(300, 0.1),
        "one click": np.eye(1, 300, 99)[0],
        "late click": np.eye(1, 300, 280)[0],
        "late loss": 7.0 - np.eye(1, 300, 280)[0],
        "outlier": outlier,
        "grown": grown,
    }


STREAMS = pytest.mark.parametrize("name", streams())


def taught(found, rewards, n_kept=256):
    """Run the kernels as `Rescaled` does; u of every reward as it was learned last."""
    rewards = np.asarray(rewards, float)
    units = np.zeros(len(rewards))
    for i, reward in enumerate(rewards):
        n = i + 1
        if n <= n_kept:
            different = found.map[1] == 0.0 and reward != rewards[0]
            if n >= 2 and (n & (n - 1) == 0 or different):
                set_map_by(found, rewards, n)
                for j in range(n):
                    units[j] = taken(found, rewards[j], True)
                continue
        units[i] = taken(found, reward, False)
    return units


@STREAMS
def test_what_is_learned_again_is_mapped_as_defined(name):
    rewards = streams()[name]
    for n in [1, 2, 3, 5, 8, 100, 101, 256, 257, len(rewards)]:
        units = taught(Range.of(None, within=False), rewards[:n])
        assert_allclose(units, naive.units_learned(rewards[:n]), atol=1e-9, rtol=1e-9)


@STREAMS
def test_what_is_learned_once_is_mapped_as_defined(name):
    rewards = streams()[name]
    found = Range.of(None, within=False)
    units = [placed(found, met(found, reward)) for reward in rewards]
    assert_allclose(units, naive.units_at_once(rewards), atol=1e-9, rtol=1e-9)


@STREAMS
def test_machine_code_maps_as_python_does(name):
    rewards = streams()[name]
    one, other = (Range.of(None, within=False) for _ in range(2))
    quick_set, quick_taken = compiled(set_map_by), compiled(taken)
    set_map_by(one, rewards, 40)
    quick_set(other, rewards, 40)
    for reward in rewards[40:]:
        assert taken(one, reward, False) == quick_taken(other, reward, False)
    for mine, theirs in zip(arrays_of(one), arrays_of(other), strict=True):
        assert_array_equal(mine, theirs)


@STREAMS
def test_at_every_round_a_cold_explorer_has_learned_the_units_of_the_moment(name):
    rewards = streams()[name]
    contexts = np.random.default_rng(3).normal(size=(len(rewards), D))
    bandit = Bandit("linucb:cold=true", n_features=D, n_actions=K)
    for n, (x, reward) in enumerate(zip(contexts, rewards, strict=True), start=1):
        bandit.learn(x, n % K, reward, 1.0)
        if n in (1, 2, 3, 5, 50, 64, 100, 101, 256, 257, 281, len(rewards)):
            inputs, units = naive.cold_inputs(contexts[:n]), naive.units_learned(rewards[:n])
            for a in range(K):
                ridge = naive.Ridge(D + 1, 0.1)
                for i in range(n):
                    if (i + 1) % K == a:
                        ridge.learn(inputs[i], units[i])
                weights = bandit._state.inner.polopt.learner.weights[a]
                assert_allclose(weights, ridge.w(), atol=1e-7, rtol=1e-7, err_msg=f"round {n}")


@STREAMS
@pytest.mark.parametrize("n", [1, 2, 3, 5, 40, 99, 100, 130, 200])
@pytest.mark.parametrize("spec", ["linucb:cold=true", "linucb:cold=true:hidden=3"])
def test_a_state_that_starts_again_ends_as_if_it_had_learned_its_rounds_one_by_one(name, n, spec):
    rewards = streams()[name]
    contexts = np.random.default_rng(3).normal(size=(n + 1, D))
    one, other = (Bandit(spec, n_features=D, n_actions=K) for _ in range(2))
    for i in range(n):
        one.learn(contexts[i], i % K, rewards[i], 0.5)
    past = np.arange(1, n + 1), np.arange(n) % K, rewards[:n], np.full(n, 0.5)
    restart(other._state, contexts[:n], *past)
    other.n_learned_ = n
    for bandit in (one, other):
        bandit.learn(contexts[n], 0, rewards[n], 0.5)
    lasting = (arrays(bandit._state, lasting=True) for bandit in (one, other))
    for mine, theirs in zip(*lasting, strict=True):
        assert_array_equal(mine, theirs)


# --- what follows from it -------------------------------------------------------------------------


def test_an_outlier_is_cut_and_the_others_keep_their_distance():
    rewards = np.random.default_rng(1).random(300)
    plain = taught(Range.of(None, within=False), rewards)
    rewards[250] = 1e6
    units = np.delete(taught(Range.of(None, within=False), rewards), 250)
    assert np.ptp(units) > 0.09
    late = np.append(rewards[:250], rewards[251:])
    late[270] = 1e6  # after the map is settled
    units = taught(Range.of(None, within=False), late)
    assert units[270] < 10.0
    assert_allclose(np.delete(units, 270)[:256], np.delete(plain, 250)[:256], atol=0.05)


def test_a_scale_that_grows_is_followed_by_a_factor_of_ten_every_other_reward():
    found = Range.of(None, within=False)
    rng = np.random.default_rng(2)
    taught(found, rng.random(300))
    reached = [admit(found, 1e6 * (1.0 + 0.01 * rng.random())) for _ in range(14)]
    assert reached[0] < 10.0
    assert (np.diff(reached[:12:2]) > 0).all()
    assert reached[-1] > 1e6


def test_a_first_click_and_a_first_sale_are_not_cut():
    for amount in (1.0, 1e6, -1e6):
        found = Range.of(None, within=False)
        for _ in range(300):
            assert taken(found, 2.0, False) == 0.5
        assert taken(found, 2.0 + amount, False) == (1.0 if amount > 0 else 0.0)
        assert taken(found, 2.0, False) == 0.5


def test_the_farthest_rewards_there_are_stay_finite():
    for rewards in ([0.0, 1e-300, 1e100, -1e100, 1e100], [1e100, -1e100] * 200, [5e-324, 0.0] * 3):
        units = taught(Range.of(None, within=False), rewards)
        assert np.isfinite(units).all()
        assert (np.abs(units) <= 1e6 + 1).all()


@given(
    st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=40),
    st.booleans(),
)
def test_any_rewards_have_a_place(rewards, within):
    units = taught(Range.of(None, within=within), rewards, n_kept=16)
    assert np.isfinite(units).all()
    low, high = (0.0, 1.0) if within else (-1e6, 1e6 + 1)
    assert (units >= low).all()
    assert (units <= high).all()


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60), st.integers(-20, 20))
def test_the_unit_of_rewards_does_not_matter(rewards, power):
    plain = taught(Range.of(None, within=False), np.array(rewards, float), n_kept=16)
    other = taught(Range.of(None, within=False), np.array(rewards) * 2.0**power, n_kept=16)
    assert_array_equal(plain, other)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from(UNITS))
def test_clicks_are_0_and_1_in_any_unit_to_the_bit(clicks, unit):
    a, b = unit
    plain = taught(Range.of(None, within=False), np.array(clicks, float), n_kept=16)
    other = taught(Range.of(None, within=False), [a + b * one for one in clicks], n_kept=16)
    assert_array_equal(plain, other)
    assert set(plain) <= {0.0, 0.5, 1.0}


def test_a_declared_range_maps_and_does_nothing_else():
    found = Range.of((-2.0, 6.0), within=True)
    before = [array.copy() for array in arrays_of(found)]
    assert [taken(found, r, again) for r in (-2.0, 0.0, 6.0) for again in (False, True)] == [
        0.0, 0.0, 0.25, 0.25, 1.0, 1.0,
    ]  # fmt: skip
    for mine, theirs in zip(arrays_of(found), before, strict=True):
        assert_array_equal(mine, theirs)
    same = Range.of((0.0, 1.0), within=True)
    rewards = np.random.default_rng(0).random(1000)
    assert [taken(same, r, False) for r in rewards] == rewards.tolist()


def test_late_actions_are_hoped_to_earn_halfway_from_the_average_to_the_best():
    declared = Range.of((0.0, 10.0), within=True)
    assert hoped(declared, 4.0) == 0.7
    assert hoped(declared, 10.0) == 0.999  # a logistic model has no 1
    found = Range.of(None, within=False)
    assert hoped(found, 0.0) == 0.75
    taught(found, [0.0, 10.0, 10.0, 0.0])
    assert hoped(found, 5.0) == 0.75
    while found.seen[2] < 20.0:
        admit(found, 20.0)
    assert hoped(found, 10.0) == 1.5


def test_there_is_a_layer_only_where_the_range_is_not_0_to_1():
    assert not isinstance(parse("linucb").begin(Problem(D, K)), Ranged)
    for reward_range in (None, (0.0, 2.0)):
        problem = Problem(D, K, reward_range=reward_range)
        assert isinstance(parse("linucb").begin(problem), Ranged)
        state = parse("linucb:rescale=true").begin(problem)
        assert isinstance(state, Rescaled)
        assert state.range.declared is (reward_range is not None)


@pytest.mark.parametrize(
    ("spec", "within"),
    [
        ("linucb", False),
        ("regcb-opt", True),
        ("gated-ucb", True),
        ("banditron", True),
        ("epsilon-greedy", False),
        ("epsilon-greedy:loss=logistic", True),
    ],
)
def test_explorers_that_need_rewards_within_0_and_1_have_them(spec, within):
    state = parse(spec).begin_cold(Problem(D, K, reward_range=None))
    assert state.range.within is within
    taught(state.range, np.arange(300.0) % 7)
    assert bool(mapped(state.range, 1000.0) == 1.0) is within


# --- in explorers and agents ----------------------------------------------------------------------


def decisions(spec, change, n_rounds, seed=1, graded=False):
    """What an agent does in a small world whose rewards come in another unit."""
    agent, world = Agent(["sports", "politics", "science"], spec, seed=4), News(seed)
    rng, found = np.random.default_rng(9), []
    for _ in range(n_rounds):
        context = world.reader()
        decision = agent.act(context)
        chance = world.chance(context, decision.action)
        reward = chance + 0.1 * rng.normal() if graded else float(rng.random() < chance)
        agent.learn(decision.id, change(reward))
        found.append((decision.action, decision.pmf))
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_decisions_on_clicks_are_the_same_to_the_bit_in_any_unit(spec):
    expected = decisions(spec, float, 300)
    for a, b in UNITS:
        assert decisions(spec, lambda r, a=a, b=b: a + b * r, 300) == expected


@pytest.mark.parametrize("spec", SPECS)
def test_decisions_on_graded_rewards_are_the_same_to_the_bit_in_twice_or_half_the_unit(spec):
    expected = decisions(spec, float, 300, graded=True)
    for b in (0.25, 1024.0):
        assert decisions(spec, lambda r, b=b: b * r, 300, graded=True) == expected


def test_melee_plays_the_same_actions_in_any_unit():
    expected = [action for action, _ in decisions("melee", float, 2000, graded=True)]
    for a, b in UNITS:
        found = decisions("melee", lambda r, a=a, b=b: a + b * r, 2000, graded=True)
        assert [action for action, _ in found] == expected


@pytest.mark.parametrize("spec", ["linucb", "bagging", "melee", "melee-paper", "full-information"])
def test_row_by_row_makes_the_decisions_of_the_compiled_pass_on_a_task_in_any_unit(spec):
    rng = np.random.default_rng(5)
    contexts = rng.normal(size=(330, D))
    rewards = 50.0 * (contexts @ rng.normal(size=(D, K))) - 20.0
    for reward_range in (None, (-400.0, 400.0)):
        prepared = prepare(Task("euros", contexts, rewards, reward_range=reward_range), seed=2)
        run, bandit = simulate(prepared, spec), Bandit.for_prepared(prepared, spec)
        for i, row in enumerate(prepared.order):
            action, p = bandit.act(contexts[row])
            assert (action, p) == (run.actions[i], run.probabilities[i])
            bandit.reveal(contexts[row], action, rewards[row], p)
        assert_array_equal(run.rewards, rewards[prepared.order, run.actions])
        best = rewards[prepared.order].max(axis=1).mean()
        if spec != "bagging":  # whose bags agree too early where no reward is low
            assert run.mean_reward > rewards.mean() + 0.6 * (best - rewards.mean())


def test_a_bandit_learns_nothing_from_rewards_that_it_was_not_given():
    seen, unseen = (Bandit("linucb", n_features=1, n_actions=2) for _ in range(2))
    for bandit, others in ((seen, 0.0), (unseen, 1e6)):
        for i in range(20):
            bandit.reveal([1.0], 0, [float(i % 3), others], 1.0)
    states = (arrays_of(one._state._replace(rewards=np.zeros(0))) for one in (seen, unseen))
    for mine, theirs in zip(*states, strict=True):
        assert_array_equal(mine, theirs)


@pytest.mark.parametrize("spec", ["melee", "linucb", "epsilon-greedy", "regcb-elim"])
def test_an_agent_earns_where_rewards_are_money(spec):
    class Shop(News):
        def reward(self, context, action):
            bought = self.rng.random() < self.chance(context, action)
            return float(bought * self.rng.gamma(4.0, 10.0) - 5.0)

    agent = Agent(["sports", "politics", "science"], spec, seed=1)
    live(agent, Shop(seed=2), 300)
    assert live(agent, Shop(seed=3), 400) > 12.0  # a uniform choice earns 11.4
