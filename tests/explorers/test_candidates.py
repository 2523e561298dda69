"""Explorers over candidates: the mixed model is exact, and distributions are of the candidates."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.agent import Agent
from melee.errors import InputError, MeleeWarning
from melee.explorers import Problem, parse
from melee.explorers.candidates import (
    ALONE,
    CENTRES,
    N_CONTEXT,
    N_UNITS,
    RESERVED,
    STRENGTH,
    WIDTH,
    Paired,
    Pairs,
    PairUnits,
    centre,
    join,
    join_late,
)
from melee.explorers.interface import distribution, learn
from melee.explorers.melee import IN_FULL_SHARED, own_state
from melee.learners.adaptive import own_variance
from melee.learners.interface import predict, spread, spread_guess
from melee.learners.offers import N_OWN, Candidates
from melee.rng import stream
from melee.scaling import Scaling, scale_row

TAKES = [
    "uniform",
    "epsilon-greedy",
    "epsilon-greedy:learner=ridge:epsilon=0.1",
    "epsilon-decreasing:learner=diagonal",
    "tau-first:rounds=5",
    "softmax",
    "bagging:bags=3",
    "bagging:bags=3:learner=ridge",
    "squarecb",
    "linucb",
    "linucb:learner=adaptive",
    "gated-ucb",
    "thompson",
    "regcb-opt",
    "regcb-elim",
    "melee",
]
REFUSES = [
    "cover",
    "cover-nu",
    "eg-epsilon-greedy",
    "banditron",
    "epsilon-greedy:optimizer=dr",
    "epsilon-greedy:optimizer=ips",
    "softmax:loss=logistic",
]
D, M, N = 3, 2, 7


@pytest.fixture(autouse=True)
def _as_machine_code():
    with np.errstate(all="ignore"):  # words overflow
        yield


def pairs(state, rng, n=N):
    """A context and n candidates, of which some have records."""
    width = state.inner.inputs.shape[1]
    return Pairs(
        rng.normal(size=D),
        rng.normal(size=(n, M)),
        np.arange(n) - 2,
        np.array([0, 1, 2, -1, -2]),
        Scaling.identity(D + M),
        np.zeros(D + M),
        np.zeros(D + M + 1),
        np.zeros((n, width)),
        np.zeros((n, 4)),
    )


def begun(spec, room=N):
    problem = Problem(D + M, room, reward_range=(0.0, 1.0))
    return parse(spec).begin_paired(problem, [0, 1, 2, -1, -2], [True] * (D + M))


def naive_mixed(X, rewards, items, n_items, penalty):
    """The weights and offsets that minimise squared error, penalized, by one linear system."""
    both = np.hstack([X, np.eye(n_items)[items]])
    penalties = np.diag([penalty] * X.shape[1] + [STRENGTH] * n_items)
    information = both.T @ both + penalties
    return np.linalg.solve(information, both.T @ rewards), np.linalg.inv(information)


def test_predictions_and_spreads_are_those_of_the_mixed_model():
    rng = np.random.default_rng(0)
    explorer = parse("linucb:ridge=0.3")
    problem = Problem(4 + N_UNITS, 3, shared=True, n_hidden=N_UNITS)
    units = PairUnits.draw([0, 1, -1, -2], [True] * 4, N_UNITS)
    state = Paired.around(explorer.start(problem), units, 4)
    X, items = np.c_[rng.normal(size=(40, 4)) / 2, np.ones(40)], rng.integers(0, 3, 40)
    rewards, wide = rng.random(40) + items, np.empty((41, 4 + N_UNITS + 1))
    for i in range(40):
        join(units, X[i], wide[i])
        learn(state, X[i], i + 1, stream(0, "x"), int(items[i]), float(rewards[i]), 1.0)
    solved, inverse = naive_mixed(wide[:40], rewards, items, 3, 0.3)
    new = np.append(rng.normal(size=4) / 2, 1.0)
    for item in (0, 2, -1):
        join(units, new, wide[40])
        extended = np.append(wide[40], np.eye(3)[item] if item >= 0 else np.zeros(3))
        inputs, own = wide[40:].copy(), np.zeros((1, 4))
        centre(state, item, inputs[0], own[0])
        offered, learner = Candidates(inputs, own), state.inner.polopt.learner
        assert_allclose(predict(learner, offered, 0), extended @ solved, atol=1e-8)
        variance = extended @ inverse @ extended + (1.0 / STRENGTH if item < 0 else 0.0)
        assert_allclose(spread(learner, offered, 0), np.sqrt(variance), atol=1e-8)


@pytest.mark.parametrize("spec", TAKES)
def test_a_distribution_over_candidates(spec):
    rng, words = np.random.default_rng(1), stream(0, "x")
    state = begun(spec, room=9)
    for t in range(1, 40):
        offered, pmf = pairs(state, rng, n=1 + t % 9), np.full(1 + t % 9, np.nan)
        distribution(state, offered, t, words, pmf)
        assert_allclose(pmf.sum(), 1.0)
        assert (pmf >= 0.0).all()
        a = int(np.argmax(pmf))
        row = np.append(np.append(offered.context, offered.table[a]), 1.0)
        learn(state, row, t, words, int(offered.records[a]), float(rng.random()), pmf[a])


@pytest.mark.parametrize("spec", ["linucb", "melee", "bagging:bags=3:learner=ridge"])
def test_the_order_of_candidates_does_not_matter(spec):
    rng, words = np.random.default_rng(2), stream(0, "x")
    state = begun(spec)
    for t in range(1, 30):
        row = np.append(rng.normal(size=D + M), 1.0)
        learn(state, row, t, words, t % 5, float(row[0] * row[3] > 0.0), 0.5)
    offered, pmf, turned = pairs(state, rng), np.empty(N), np.empty(N)
    distribution(state, offered, 30, words, pmf)
    back = offered._replace(table=offered.table[::-1].copy(), records=offered.records[::-1].copy())
    distribution(state, back, 30, words, turned)
    assert_allclose(turned[::-1], pmf)


def test_a_candidate_is_judged_by_its_features_at_once_and_by_its_record_later():
    rng, words = np.random.default_rng(3), stream(0, "x")
    state = begun("epsilon-greedy:learner=ridge")
    for t in range(1, 300):
        row = np.append(rng.normal(size=D + M), 1.0)
        good = float(row[3] > 0.0)
        bad_item = t % 10 == 0
        learn(state, row, t, words, 4 if bad_item else t % 4, 0.0 if bad_item else good, 1.0)
    offered = pairs(state, rng, n=2)
    offered.table[:, 0], offered.table[:, 1] = [2.0, -2.0], 0.0
    offered.records[:] = -1
    pmf = np.empty(2)
    distribution(state, offered, 300, words, pmf)
    assert pmf.tolist() == [1.0, 0.0]  # two new ones: by their features
    offered.table[:, 0], offered.records[:] = 1.0, [4, -1]
    distribution(state, offered, 300, words, pmf)
    assert pmf.tolist() == [0.0, 1.0]  # alike, but one has never paid


@pytest.mark.parametrize("spec", REFUSES)
def test_explorers_that_cannot_say_so(spec):
    with pytest.raises(InputError, match="candidates"):
        begun(spec)


def test_late_columns_take_what_is_reserved():
    units = PairUnits.draw([0, -1], [True, False], N_OWN + 12, reserved=8)
    used = units.columns[:, 1] >= 0
    assert used.sum() == 5
    before = units.columns[used].copy()
    join_late(units, [0, -1, -2, 1], 2)  # a level of candidates, and a number of contexts
    assert (units.columns[used] == before).all()
    late = units.columns[(units.columns[:, 1] >= 0) & ~used]
    assert late.tolist() == [[0, 2, -1], [3, 1, -1], [3, 2, -1], [-1, 2, -1]]
    join_late(units, [0, -1, -2, 1, *range(-3, -30, -1)], 4)  # more than there is room for
    assert (units.columns[:, 1] >= 0).all()
    assert (units.columns[:-N_OWN, 0] >= 0).all()
    assert (units.columns[-N_OWN:, 0] < 0).all()  # what is a candidate's own stays at the end


def test_units_join_all_that_there_is_room_for():
    few = PairUnits.draw([0, 1, -1], [True, False, True], N_OWN + N_CONTEXT + 27)
    used = few.columns[few.columns[:, 1] >= 0]
    plain, hidden = used[used[:, 2] < 0], used[used[:, 2] >= 0]
    assert {tuple(one) for one in plain[:, :2].tolist()} == {(-1, 2), (0, 2), (1, 2)}
    assert len(plain) == 15  # five bumps alone, and times each of two columns
    assert len(hidden) == 15  # the same times three hidden units of the context: 27 is the most
    assert (hidden[:, [0, 2]] < 2).all()
    many = PairUnits.draw([*range(30), *range(-1, -31, -1)], [False] * 60, N_OWN + 32)
    assert (many.columns[:, 1] >= 30).all()
    assert (many.columns[:-N_OWN, 0] >= 0).all()
    assert (many.columns[:-N_OWN, 0] < 30).all()
    assert (many.columns[-N_OWN:, 0] == -1).all()
    assert (many.columns[:, 2] == -1).all()


def naive_join(units, x):
    """The inputs of a pair, unit by unit, from the definition."""
    numbers, inputs = x * units.size, [*x[:-1]]
    for (here, there, second), (middle, is_bump, u, v, b) in zip(
        units.columns.tolist(), units.shapes.tolist(), strict=True
    ):
        if here < 0 and there < 0:
            inputs.append(0.0)
            continue
        of_candidate = ALONE
        if there >= 0:
            held = np.clip(numbers[there], min(CENTRES), max(CENTRES))
            bump = max(1.0 - abs(held - middle) / WIDTH, 0.0)
            of_candidate = bump if is_bump else numbers[there]
        of_context = 1.0
        if here >= 0:
            of_context = numbers[here]
            if second >= 0:
                of_context = max(u * numbers[here] + v * numbers[second] + b, 0.0) - 0.5
            of_context *= units.share
        inputs.append(of_candidate * of_context)
    return np.array([*inputs, 1.0])


@pytest.mark.parametrize("n_columns", [2, 5, 16])
def test_inputs_are_those_of_the_definition(n_columns):
    rng = np.random.default_rng(n_columns)
    sides = [i // 2 if i % 2 else -1 - i // 2 for i in range(n_columns)]
    numbers = [i % 3 != 2 for i in range(n_columns)]
    units = PairUnits.draw(sides, numbers, N_UNITS, RESERVED)
    wide = np.empty(n_columns + N_UNITS + 1)
    for _ in range(5):
        x = np.append(rng.normal(size=n_columns), 1.0)
        join(units, x, wide)
        assert_allclose(wide, naive_join(units, x), atol=1e-12)


def test_units_of_the_context_alone():
    sides, numbers = [0, -1, 1, -2], [True, True, False, False]
    units = PairUnits.draw(sides, numbers, N_UNITS, RESERVED)
    found = np.flatnonzero((units.columns[:, 0] >= 0) & (units.columns[:, 1] < 0))
    assert len(found) == N_CONTEXT
    alone = units.columns[found]
    assert np.isin(alone[:, [0, 2]], [0, 2]).all()
    x, other = np.array([0.3, 0.2, -0.4, 0.5, 1.0]), np.array([0.3, -0.9, -0.4, 0.1, 1.0])
    wide, wider = np.zeros(4 + N_UNITS + 1), np.zeros(4 + N_UNITS + 1)
    join(units, x, wide)
    join(units, other, wider)
    assert (wide[4 + found] == wider[4 + found]).all()
    assert len(np.unique(wide[4 + found])) > N_CONTEXT // 4
    join_late(units, [*sides, *range(-3, -40, -1)], 4)
    assert (units.columns[found] == alone).all()  # they wait for nothing
    nothing = PairUnits.draw([-1, -2], [True, True], N_UNITS, RESERVED)
    assert (nothing.columns[:-N_OWN] == -1).all()


def test_what_joins_goes_before_units_of_the_context_alone():
    sides, numbers = [*range(9), -1, -2, -3, -4, -5, -6], [True] * 9 + [False] * 6
    units = PairUnits.draw(sides, numbers, N_UNITS, RESERVED)
    joined = units.columns[(units.columns[:, :2] >= 0).all(axis=1)]
    assert (joined[:, 2] < 0).sum() == 9 * 6  # 10 places are left: too few
    assert (joined[:, 2] >= 0).sum() == 6  # a hidden unit of the context, for every column
    assert not ((units.columns[:, 0] >= 0) & (units.columns[:, 1] < 0)).any()


def test_the_two_highest_of_many_candidates_are_known_in_full():
    rng, words = np.random.default_rng(3), stream(0, "x")
    state = begun("melee", room=40)
    for t in range(1, 80):
        offered, pmf = pairs(state, rng, n=40), np.empty(40)
        distribution(state, offered, t, words, pmf)
        own = own_state(state)
        learner, made = own.polopt.learner, Candidates(offered.inputs, offered.own)
        exact = np.array([spread(learner, made, a) for a in range(40)])
        guessed = np.array([spread_guess(learner, made, a) for a in range(40)])
        used = own.spreads[:40]
        in_full = used != guessed
        assert_allclose(used[in_full], exact[in_full])
        assert in_full.sum() <= IN_FULL_SHARED
        row = rng.normal(size=D + M)
        learn(state, row, t, words, t % 5, float(rng.random()), 1.0 / 40)


def test_the_last_inputs_depend_on_the_candidate_alone():
    sides, numbers = [0, -1, 1, -2], [True, True, False, False]
    units = PairUnits.draw(sides, numbers, N_UNITS, RESERVED)
    x, other = np.array([0.3, 0.2, -0.4, 0.5, 1.0]), np.array([-0.7, 0.2, 0.1, 0.5, 1.0])
    wide, wider = np.zeros(4 + N_UNITS + 1), np.zeros(4 + N_UNITS + 1)
    join(units, x, wide)
    join(units, other, wider)
    assert (wide[-N_OWN - 1 :] == wider[-N_OWN - 1 :]).all()
    assert (wide[4 : 4 + N_UNITS - N_OWN] != wider[4 : 4 + N_UNITS - N_OWN]).any()
    # a number of 0.4 (the pair was divided by two) is half way between two bumps; and the level
    assert_allclose(wide[-7:-1], [0.0, 0.0, 0.5, 0.5, 0.0, 1.0])


def test_the_average_member_is_a_ridge_of_what_is_a_candidates_own():
    rng, words = np.random.default_rng(4), stream(0, "x")
    state, rows, rewards = begun("melee"), [], []
    for t in range(1, 41):
        row = np.append(rng.normal(size=D + M) / 2, 1.0)
        learn(state, row, t, words, -1, float(rng.random()), 1.0)
        rows.append(row)
        rewards.append(state.rewards[t - 1])
    inner, learner = state.inner, state.inner.inner.polopt.learner
    wide = np.zeros((40, inner.plain.shape[0]))
    for i in range(40):
        scaled = np.zeros(D + M + 1)
        scale_row(state.scaling, rows[i][:-1], scaled)
        join(inner.units, scaled, wide[i])
    # the scale is that of the first 32 rounds; each weighs m/(m + 1) for want of a record
    own, weight = wide[:, -N_OWN - 1 :], STRENGTH / (STRENGTH + 1.0)
    inverse = np.linalg.inv(np.eye(N_OWN + 1) + weight * own.T @ own)
    assert_allclose(learner.average.ridge.inverse[0], inverse, atol=1e-9)
    solved = inverse @ (weight * own.T @ np.array(rewards))
    assert_allclose(learner.average.ridge.weights[0], solved, atol=1e-9)
    offered: Any = Candidates(wide[:3].copy(), np.zeros((3, 4)))
    for a in range(3):
        assert_allclose(own_variance(learner, offered, a), own[a] @ inverse @ own[a], atol=1e-9)


def test_the_middle_is_tried_where_a_line_has_its_best_at_the_ends():
    rng = np.random.default_rng(3)
    with pytest.warns(MeleeWarning, match="floor is 0"):
        agent = Agent(seed=3, floor=0.0)
    values = {value: {"value": float(value)} for value in range(40)}
    earned = []
    for _ in range(300):
        context = {f"x{j}": float(z) for j, z in enumerate(rng.normal(size=20))}
        decision = agent.act(context, actions=values)
        best = 20.0 + sum(context[f"x{j}"] for j in range(10))
        earned.append(1.0 - abs(decision.action - best) / 40.0)
        agent.learn(decision.id, earned[-1])
    assert np.mean(earned[150:]) > 0.92  # 0.86 where all units are of one size
