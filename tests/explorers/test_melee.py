"""The learned explorer: its inputs, its two rules and their gate, its guard."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee import artefact
from melee.bandit import Bandit
from melee.errors import DataError, InputError
from melee.explorers.base import Problem
from melee.explorers.hidden import Units
from melee.explorers.melee import (
    HIGHEST,
    IN_FULL,
    LOWEST,
    N_INPUTS,
    N_SHARED,
    SCHEMA,
    Melee,
    Policy,
    among_highest,
    bonus,
    load_policy,
    melee_distribution,
    melee_learn,
    own_state,
    sizes,
    strange,
    weigh_shared,
)
from melee.learners.adaptive import (
    BIAS_FOREST,
    DEVIATION,
    FOREST,
    NOISE,
    ROUNDS,
    SPAN,
    TRUST,
    Adaptive,
)
from melee.learners.forest import FEWEST, KEPT
from melee.learners.offers import N_OWN, Candidates
from melee.learners.ridge import DiagonalRidge, Ridge
from melee.loop import problem_of, simulate
from melee.preparation import prepare
from melee.states import arrays_of
from tests import naive
from tests.naive_melee import Melee as Twin
from tests.tasks import graded
from tests.twins import adaptive_twin

K, D = 4, 3


def random_policy(seed, low=-1e6, high=1e6):
    """Bonuses of very different sizes for different actions, both rules at work."""
    rng = np.random.default_rng(seed)
    bold, careful = (0.8 * rng.normal(size=N_INPUTS) for _ in range(2))
    bold[SCHEMA.index("best")] += 4.0  # or it would explore forever
    careful[SCHEMA.index("noise")] += 2.0
    how = np.array([0.4, -0.5, 0.3, 0.2, -0.4, 1.0, 0.3, 0.6, 0.5, -0.3, 0.2])
    full = np.ones(N_INPUTS)
    gate, due = rng.normal(size=N_SHARED), 0.5 * rng.normal(size=N_SHARED)
    return Policy(how, gate, bold, careful, due, low * full, high * full)


def bonus_of(exponent):
    """A policy of the same size everywhere, by either rule, that owes nobody anything."""
    weights, due = np.zeros(N_INPUTS), np.zeros(N_SHARED)
    weights[0], due[0] = exponent, -100.0
    return Policy.rule()._replace(bold=weights, careful=weights.copy(), due=due)


def unfamiliar(exponent=3.0):
    """The same, trained where almost nothing ever happened."""
    point = np.full(N_INPUTS, 1.0)
    return bonus_of(exponent)._replace(low=point - 0.001, high=point + 0.001)


def bandit_with(policy, *, budget=math.inf, n_features=D, n_actions=K, **settings):
    class Given(Melee):
        def start(self, problem):
            return self.start_with(policy, problem, budget)

    explorer = Given(**{"rescale": False, **settings})
    sizes = {"n_features": n_features, "n_actions": n_actions}
    return Bandit(explorer, **sizes, seed=1, reward_range=(0.0, 1.0))


def inner_state(bandit):
    return own_state(bandit._state)


def learner_of(bandit):
    return inner_state(bandit).polopt.learner


def rewards_for(rates, x, rng, *, real=False):
    chance = 1 / (1 + np.exp(-3 * rates @ x))
    return chance if real else (rng.random(len(rates)) < chance).astype(float)


# --- against the definition ---------------------------------------------------------------------


def ranges(low, high):
    """A range for each feature by its name, wide for the others."""
    arrays = np.full(N_INPUTS, -1e6), np.full(N_INPUTS, 1e6)
    for array, some in zip(arrays, (low, high), strict=True):
        for name, value in some.items():
            array[SCHEMA.index(name)] = value
    return arrays


CASES = [
    # seed, actions, settings, budget, ranges in training, who decides
    (0, K, {"hidden": 32}, math.inf, {}, {}, {"policy"}),
    (1, 9, {"hidden": 6}, math.inf, {}, {}, {"policy"}),
    (2, 9, {"hidden": 0, "learner": "adaptive-diagonal"}, math.inf, {}, {}, {"policy"}),
    (3, K, {"hidden": 8}, 0.05, {}, {}, {"policy", "greedy"}),
    (4, 7, {"hidden": 8, "mu": 0.2}, 0.05, {}, {}, {"policy", "greedy"}),
    (5, K, {"hidden": 8}, math.inf, {"rounds": 0.1}, {"rounds": 0.3}, {"policy", "bound"}),
    (6, K, {"hidden": 0}, 0.02, {"rounds": 0.2, "gap": 0}, {"rounds": 0.3, "gap": 0.2},
     {"policy", "bound", "greedy"}),
    (7, K, {"hidden": 0, "guard": False}, 0.02, {"rounds": 0.2}, {"rounds": 0.3}, {"policy"}),
    (8, 9, {"hidden": 4, "ridge": 1.0}, 0.3, {"plays": -0.1}, {"plays": 0.1}, {"policy"}),
]  # fmt: skip


REAL_TOO = (0, 2, 6)  # with units and without, each kind of learner, every decider


@pytest.mark.parametrize(
    ("seed", "k", "settings", "budget", "low", "high", "deciders", "real"),
    [
        pytest.param(
            *case, real,
            id=f"{case[0]}-{'real rewards' if real else 'clicks'}",
            marks=[pytest.mark.long] if real and case[0] not in REAL_TOO else [],
        )
        for case in CASES
        for real in (False, True)
    ],
)  # fmt: skip
def test_a_whole_run_agrees_with_the_definition(
    seed, k, settings, budget, low, high, deciders, real
):
    rng, hidden = np.random.default_rng(seed), settings["hidden"]
    lowest, highest = ranges(low, high)
    policy = random_policy(seed)._replace(low=lowest, high=highest)
    grows = seed == 0 and real  # until trees have a say
    if grows:
        policy.how[[TRUST, BIAS_FOREST]] = 0.05, 4.0
    bandit = bandit_with(policy, budget=budget, n_actions=k, **settings)
    state, explorer = inner_state(bandit), bandit.explorer
    learner = adaptive_twin(explorer.model(), D + 1 + hidden, k, n_hidden=hidden, how=policy.how)
    twin = Twin(k, learner, policy, budget, guard=explorer.guard, mu=explorer.mu)
    units, rates = Units.draw(D, max(hidden, 1)), rng.normal(size=(k, D))
    used = units.columns[:hidden], units.weights[:hidden]
    n_guessed = n_alone = 0
    n_rounds = 2 * FEWEST + 12 if grows else 70
    for t in range(1, n_rounds + 1):
        raw = rng.normal(size=D) / math.sqrt(D)
        x = np.append(raw, 1.0)
        wide = naive.widened(x, *used) if hidden else x
        expected, spreads = twin.pmf(wide, t), twin.spreads(wide)
        action, p = bandit.act(raw)
        assert_allclose(bandit._pmf, expected, atol=1e-12, err_msg=f"round {t}")
        assert_allclose(state.means, twin.means(wide), atol=1e-8)
        assert_allclose(state.features[0, :N_SHARED], twin.shared(wide), atol=1e-7)
        if not twin.over_budget():
            assert_allclose(state.spreads, spreads, rtol=1e-7)
            own = twin.own(wide, spreads)
            assert_allclose(state.features[:, N_SHARED:], own, atol=1e-6, err_msg=f"round {t}")
            n_contenders = len(twin.contenders(wide))
            n_guessed += k - n_contenders
            n_alone += n_contenders == 1
        if t % 3 == 0:  # someone else decided, as a guard must expect
            action = int(rng.integers(k))
        rewards = rewards_for(rates, raw, rng, real=real)
        bandit.learn(raw, action, rewards[action], p)
        twin.learn(wide, t, action, rewards, p)
        assert_allclose(state.guard.seen[0], twin.cost, atol=1e-7)
    by = twin.decided_by
    assert (state.polopt.learner.now[FOREST] > 0.1) == grows
    assert_array_equal(state.guard.fallbacks, [n_rounds, by["bound"], by["greedy"]])
    assert deciders <= {decider for decider, n in by.items() if n}
    assert twin.n_held > 0 or not (low and by["policy"])
    assert (n_guessed > 0) == (k > IN_FULL or n_alone > 0) or by["greedy"]


def test_mu_is_the_mass_of_uniform_exploration():
    bandit = bandit_with(random_policy(0), mu=0.2, hidden=0)
    for i in range(8):
        bandit.learn([0.1, 0.2, 0.3], i % K, [0.2, 0.4, 0.1, 0.3][i % K], 1.0)
    assert_allclose(sorted(bandit.pmf([0.1, 0.2, 0.3])), [0.05, 0.05, 0.05, 0.85])


# --- the policy ---------------------------------------------------------------------------------


def state_with(policy, features):
    """A state that has these features, whose bonus is its size."""
    problem = Problem(D, len(features))
    state = Melee(hidden=0, rescale=False).start_with(policy, problem)
    state.features[:] = features
    state.spreads[:] = state.polopt.learner.now[NOISE] / state.polopt.learner.now[SPAN]
    state.dues[:] = 0.0
    return state


def test_the_policy_outside_of_the_loop_is_the_one_inside():
    rng = np.random.default_rng(0)
    policy, beyond = random_policy(3, low=-1.5, high=1.2), set()
    for size in (0.1, 1.0, 2.0, 20.0):
        features = size * rng.normal(size=(30, N_INPUTS))
        features[:, :N_SHARED] = features[0, :N_SHARED]
        state = state_with(policy, features)
        weigh_shared(state)
        by_spread = [bonus(state, a) for a in range(30)]
        state.spreads[:], state.dues[:] = 0.0, 1.0
        inside = np.stack([by_spread, [bonus(state, a) for a in range(30)]], axis=1)
        assert_allclose(np.log(inside), sizes(policy, features), atol=1e-9)
        beyond |= set(np.clip(np.sign(np.abs(features) - 1.5), 0, 1).ravel())
    assert beyond == {0.0, 1.0}  # some were held at the edge


@pytest.mark.parametrize(("everywhere", "kept"), [(-100.0, LOWEST), (100.0, HIGHEST)])
def test_the_exponent_is_limited(everywhere, kept):
    policy, features = bonus_of(everywhere), np.ones((2, N_INPUTS))
    assert_allclose(sizes(policy, features)[:, 0], [kept, kept])
    state = state_with(policy, features)
    weigh_shared(state)
    assert_allclose(np.log([bonus(state, 0), bonus(state, 1)]), [kept, kept])


def inputs_with(**values):
    """Inputs by their names, the others at random."""
    features = np.random.default_rng(0).normal(size=(50, N_INPUTS))
    features[:, 0] = 1.0
    for name, value in values.items():
        features[:, SCHEMA.index(name)] = value
    return features


def only(rule, which):
    """The policy with one of its rules in both places."""
    weights = getattr(rule, which)
    return rule._replace(bold=weights, careful=weights)


USUAL = {
    "one": 1.0, "best": np.log(0.6) / 2, "noise": np.log(0.4) / 2, "rounds": np.log(3000) / 8,
    "actions": np.log(10) / 3, "average": 0.0, "gap": 0.0, "spread": 0.0, "plays": 0.0,
}  # fmt: skip
"""Inputs of a task like many, with ten actions, after 3,000 rounds."""


def size_of(which, **values):
    """The size by one of the starting rules."""
    return np.exp(sizes(only(Policy.rule(), which), inputs_with(**USUAL | values))[:, 0])


def test_the_bold_rule_starts_by_fading_as_that_of_gated_ucb():
    best = np.linspace(0, 0.95, 50)
    found = size_of("bold", best=np.log(1.02 - best) / 2)
    assert_allclose(found / found[0], ((1.02 - best) / 1.02) ** 4)


def test_the_careful_rule_starts_at_a_part_of_a_standard_deviation_for_rewards_of_any_noise():
    noise = np.geomspace(0.01, 1.0, 50)  # in units of the range, as sizes are
    found = size_of("careful", noise=np.log(noise) / 2) / noise
    assert_allclose(found, found[0])
    assert 0.2 < found[0] < 1.0


def test_an_action_is_due_more_the_farther_it_is_behind_its_share_of_the_rounds():
    """By the bound of an average: as wide as the noise over √n, times a logarithm's root."""
    state = Melee(hidden=0, rescale=False).start_with(Policy.rule(), Problem(D, 3))
    x, rng = np.array([0.1, 0.2, 0.3, 1.0]), np.zeros(0, np.uint64)
    for t, action in enumerate([0] * 40 + [1] * 10 + [2], 1):
        melee_learn(state, x, t, rng, action, 0.5 + 0.1 * (action % 2), 1.0)
    melee_distribution(state, x, 52, rng, np.empty(3))
    noise, seen = state.polopt.learner.now[NOISE], np.array([41.0, 11.0, 2.0])
    expected = noise * np.sqrt(np.log(1 + (51 + 3) / 3 / seen) / seen)
    assert_allclose(state.dues, expected)
    assert (np.diff(expected) > 0).all()


def test_with_more_actions_than_can_be_tried_nothing_is_due_and_the_careful_rule_is_smaller():
    shut = Policy.rule()._replace(gate=np.where(np.arange(N_SHARED) == 0, -100.0, 0.0))
    inputs = [inputs_with(**USUAL | {"actions": np.log(n) / 3}) for n in (128, 1024)]
    few, many = (np.exp(sizes(shut, features)[:, 0]) for features in inputs)
    assert_allclose(many, few / 2)
    state = Melee(hidden=0, rescale=False).start_with(Policy.rule(), Problem(D, 129))
    x, rng = np.array([0.1, 0.2, 0.3, 1.0]), np.zeros(0, np.uint64)
    melee_distribution(state, x, 1, rng, np.empty(129))
    assert not state.dues.any()


def test_what_candidates_are_due_is_by_what_is_their_own():
    rng, rounds = np.random.default_rng(0), 5
    problem = Problem(D + N_OWN, 200, shared=True)  # more than could be tried if they stayed
    state = Melee(hidden=0, rescale=False).start_with(Policy.rule(), problem)
    inputs = np.c_[rng.normal(size=(200, D + N_OWN)), np.ones(200)]
    inputs[1, D:] = inputs[0, D:]  # as the first, in another context
    offered: Any = Candidates(inputs, np.tile([0.0, 0.1, 1.0, 0.0], (200, 1)))
    for t in range(1, rounds + 1):
        melee_learn(state, offered, t, np.zeros(0, np.uint64), 0, rng.random(), 1.0)
    melee_distribution(state, offered, rounds + 1, np.zeros(0, np.uint64), np.empty(200))
    own = inputs[:, D:]
    inverse = np.linalg.inv(np.eye(N_OWN + 1) + rounds * np.outer(own[0], own[0]))
    v = np.einsum("ai,ij,aj->a", own, inverse, own)
    noise = state.polopt.learner.now[NOISE]
    assert_allclose(state.dues, noise * np.sqrt(v * np.log(1 + v * (rounds + 200) / 200)))
    assert state.dues[0] == state.dues[1] < state.dues[2:].min()


def test_the_gate_opens_to_boldness_where_rewards_can_be_predicted():
    rule = Policy.rule()
    share = np.geomspace(0.1, 1.0, 50)  # of the variance, unexplained
    graded = {"rare": 0.0, "plenty": 0.0, "graded": 1.0}
    usual = {"best": -0.3, "noise": -0.2, "rounds": 0.8, "actions": 0.5}
    features = inputs_with(unexplained=np.log(share), **graded, **usual)
    gate = 1 / (1 + np.exp(-features[:, :N_SHARED] @ rule.gate))
    bold, careful, mixed = (
        np.exp(sizes(policy, features)[:, 0])
        for policy in (only(rule, "bold"), only(rule, "careful"), rule)
    )
    found = (mixed - careful) / (bold - careful)
    assert_allclose(found, gate, rtol=1e-6)
    assert (np.diff(gate) < 0).all()  # nothing else counts
    assert found[0] > 0.99
    assert found[-1] < 0.01


def test_the_gate_shuts_in_time_where_nothing_is_explained():
    labels = {"unexplained": 0.0, "rare": 0.0, "plenty": 0.0, "graded": 0.0}
    rounds = np.geomspace(1.0, 1e5, 50)
    features = inputs_with(**labels | {"rounds": np.log(rounds + 1) / 8})
    gate = 1 / (1 + np.exp(-features[:, :N_SHARED] @ Policy.rule().gate))
    assert (np.diff(gate) < 0).all()
    assert gate[0] > 0.9
    assert gate[-1] < 0.01


@pytest.mark.parametrize("unlike_labels", ["rare", "plenty", "graded"])
def test_the_gate_shuts_where_rewards_are_unlike_those_of_labels(unlike_labels):
    labels = {"unexplained": 0.0, "rounds": 0.0, "rare": 0.0, "plenty": 0.0, "graded": 0.0}
    features = inputs_with(**labels | {unlike_labels: np.linspace(0.0, 1.0, 50)})
    gate = 1 / (1 + np.exp(-features[:, :N_SHARED] @ Policy.rule().gate))
    assert (np.diff(gate) < 0).all()
    assert gate[0] > 0.9
    assert gate[-1] < 0.2


@pytest.mark.parametrize(
    ("scores", "n", "edge"),
    [
        ([3.0, 1.0, 2.0], 2, 2.0),
        ([3.0, 1.0, 2.0], 4, 1.0),
        ([3.0, 3.0, 3.0, 2.0, 2.0, 1.0], 2, 2.0),  # different ones are counted
        ([5.0], 4, 5.0),
        ([2.0, 2.0], 1, 2.0),
    ],
)
def test_the_highest_scores_are_found(scores, n, edge):
    assert among_highest(np.array(scores), n) == edge


def test_the_policy_says_how_the_learner_mixes_its_members():
    one, other = bandit_with(random_policy(0)), bandit_with(Policy.rule())
    assert_array_equal(learner_of(one).how, random_policy(0).how)
    assert_array_equal(learner_of(other).how, Policy.rule().how)
    assert not np.allclose(learner_of(one).now[:3], learner_of(other).now[:3])


@pytest.mark.parametrize("learner", ["ridge", "diagonal"])
def test_a_learner_that_does_not_know_its_noise_is_refused(learner):
    with pytest.raises(InputError, match=f"noise, and {learner} does not; use adaptive or adapt"):
        Melee(learner=learner)


def assert_renamed(first, renamed, new_name, x):
    assert_array_equal(renamed.pmf(x)[new_name], first.pmf(x))
    ours, theirs = inner_state(first).features, inner_state(renamed).features
    assert_allclose(theirs[new_name, N_SHARED:], ours[:, N_SHARED:], atol=1e-9)
    assert_allclose(theirs[0, :N_SHARED], ours[0, :N_SHARED], atol=1e-9)


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_renaming_actions_renames_the_choice(seed, rescale):
    rng, new_name = np.random.default_rng(seed), np.array([2, 0, 3, 1, 6, 5, 4])
    policy, rates = random_policy(seed), rng.normal(size=(7, D))
    first, renamed = (
        bandit_with(policy, budget=0.3, n_actions=7, rescale=rescale) for _ in range(2)
    )
    for t in range(80):
        x = rng.normal(size=D) / math.sqrt(D)
        assert_renamed(first, renamed, new_name, x)
        action, p = first.act(x)
        if t % 3 == 0:
            action = int(rng.integers(7))
        reward = rewards_for(rates, x, rng, real=True)[action]
        first.learn(x, action, reward, p)
        renamed.learn(x, int(new_name[action]), reward, p)
    assert (inner_state(first).plays > 0).sum() > 1


@pytest.mark.parametrize("seed", range(3))
def test_renaming_actions_renames_the_choice_while_unpaid_actions_are_tied(seed):
    rng, new_name = np.random.default_rng(seed), np.array([1, 2, 3, 0])
    policy = random_policy(seed)
    first, renamed = (bandit_with(policy, hidden=0) for _ in range(2))
    for action in (3, 3, 1, 3, 0):
        x = rng.normal(size=D)
        assert_renamed(first, renamed, new_name, x)
        first.learn(x, action, 0.0, 1.0)
        renamed.learn(x, int(new_name[action]), 0.0, 1.0)


@pytest.mark.parametrize("unit", [2.0**-3, 2.0**-30, 2.0**-200])
@pytest.mark.parametrize("seed", range(2))
def test_the_unit_of_rewards_does_not_matter(seed, unit):
    rng, policy = np.random.default_rng(seed), random_policy(seed)
    rates = rng.normal(size=(K, D))
    ours, theirs = (bandit_with(policy, budget=0.1, hidden=4) for _ in range(2))
    for _ in range(80):
        x = rng.normal(size=D) / math.sqrt(D)
        action, p = ours.act(x)
        assert theirs.act(x) == (action, p)
        reward = rewards_for(rates, x, rng, real=True)[action]
        ours.learn(x, action, reward, p)
        theirs.learn(x, action, reward * unit, p)
    assert (inner_state(ours).plays > 0).all()
    assert_array_equal(inner_state(ours).guard.fallbacks, inner_state(theirs).guard.fallbacks)


# --- the guard ----------------------------------------------------------------------------------


def played(bandit, n_rounds, seed=0, pay=None):
    """Play, and tell for every round the decision and what it was made by.

    That is the means, the spreads, and how many times the noise goes into the range.
    """
    rng = np.random.default_rng(seed)
    rates, told = rng.normal(size=(bandit.n_actions, bandit.n_features)), []
    state = inner_state(bandit)
    for t in range(n_rounds):
        x = rng.normal(size=bandit.n_features) / math.sqrt(bandit.n_features)
        action, p = bandit.act(x)
        now = learner_of(bandit).now
        unit = float(now[SPAN] / now[NOISE])
        told.append((bandit._pmf.copy(), state.means.copy(), state.spreads.copy(), unit))
        reward = rewards_for(rates, x, rng)[action] if pay is None else pay(t, action)
        bandit.learn(x, action, float(reward), p)
    return told


def test_far_from_what_training_knew_one_standard_deviation_takes_over_and_is_counted():
    bandit = bandit_with(unfamiliar(), hidden=0)
    told = played(bandit, 60)
    for pmf, means, spreads, _ in told:
        assert_array_equal(pmf, naive.greedy((means + spreads).round(12)))
    assert_array_equal(inner_state(bandit).guard.fallbacks, [60, 60, 0])
    familiar = bandit_with(bonus_of(3.0), hidden=0)
    for pmf, means, spreads, unit in played(familiar, 60):
        scores = means + math.exp(3.0) * spreads * unit
        assert_array_equal(pmf, naive.greedy(scores.round(9)))
    assert_array_equal(inner_state(familiar).guard.fallbacks, [60, 0, 0])


@pytest.mark.parametrize(
    ("value", "is_strange"), [(1.0, 0), (2.9, 0), (3.1, 1), (-2.9, 0), (-3.1, 1)]
)
@pytest.mark.parametrize("column", [0, N_SHARED - 1, N_SHARED, N_INPUTS - 1])
def test_inputs_a_little_outside_of_training_are_held_at_its_edge(value, is_strange, column):
    policy = random_policy(0, low=-1.0, high=1.0)
    assert strange(policy, value, column) == bool(is_strange)
    features, edge = np.zeros((3, N_INPUTS)), np.zeros((3, N_INPUTS))
    rows = slice(None) if column < N_SHARED else 2
    features[rows, column], edge[rows, column] = value, np.sign(value)
    found = []
    for given in (features, edge):
        state = state_with(policy, given)
        familiar = weigh_shared(state)
        assert familiar == (not is_strange or column >= N_SHARED or given is edge)
        found.append([bonus(state, a) for a in range(3)])
    assert found[0] == found[1]


def costly(t, action):
    """Pays for ten rounds whatever is played, then only for action 0."""
    return t < 10 or action == 0


def test_exploring_beyond_the_budget_makes_it_greedy_until_the_budget_has_grown():
    bandit = bandit_with(bonus_of(4.0), budget=0.1, hidden=0)
    told = played(bandit, 200, pay=costly)
    state = inner_state(bandit)
    greedy = [bool((pmf == naive.greedy(means)).all()) for pmf, means, _, _ in told]
    n_decided, n_unfamiliar, n_over = state.guard.fallbacks
    assert (n_decided, n_unfamiliar) == (200, 0)
    assert 20 < n_over < 200
    assert n_over <= sum(greedy)
    # No single round costs more than 1, so the budget is never passed by more.
    allowed = 0.1 * learner_of(bandit).now[DEVIATION] * math.sqrt(K * 200)
    assert 0 < state.guard.seen[0] <= allowed + 1


def test_without_the_guard_there_is_no_budget():
    bandit = bandit_with(bonus_of(4.0), budget=0.1, guard=False, hidden=0)
    told = played(bandit, 200, pay=costly)
    state = inner_state(bandit)
    assert state.guard.fallbacks[2] == 0
    assert state.guard.seen[0] > 0.1 * learner_of(bandit).now[DEVIATION] * math.sqrt(K * 200) + 1
    for pmf, means, spreads, unit in told:
        scores = means + math.exp(4.0) * spreads * unit
        assert_array_equal(pmf, naive.greedy(scores.round(9)))


def test_without_the_guard_unfamiliar_inputs_are_held_and_the_policy_goes_on():
    bandit = bandit_with(unfamiliar(), guard=False, hidden=0)
    by_bound = 0
    for pmf, means, spreads, unit in played(bandit, 60):
        scores = means + math.exp(3.0) * spreads * unit
        assert_array_equal(pmf, naive.greedy(scores.round(9)))
        by_bound += bool((pmf == naive.greedy((means + spreads).round(12))).all())
    assert by_bound < 60  # the fallback would have played otherwise
    assert_array_equal(inner_state(bandit).guard.fallbacks, [60, 0, 0])
    assert set(bandit.diagnostics().values()) == {0.0}


def test_diagnostics_are_shares_of_the_rounds_that_were_decided_and_learned():
    bandit = bandit_with(unfamiliar(), hidden=0)
    x = [0.1, 0.2, 0.3]
    assert bandit.diagnostics() == {"guard: unfamiliar": 0.0, "guard: over budget": 0.0}
    for _ in range(5):
        bandit.learn(x, 0, 1.0, 1.0)  # what others decided
    for _ in range(3):
        bandit.act(x)  # never learned
    assert_array_equal(inner_state(bandit).guard.fallbacks, [0, 0, 0])
    assert bandit.diagnostics() == {"guard: unfamiliar": 0.0, "guard: over budget": 0.0}
    for n in range(1, 4):
        action, p = bandit.act(x)
        assert inner_state(bandit).guard.latest[0] == 1
        for _ in range(2):  # the second was not decided
            bandit.learn(x, action, 1.0, p)
            assert inner_state(bandit).guard.latest[0] == -1
        assert_array_equal(inner_state(bandit).guard.fallbacks, [n, n, 0])
    assert bandit.diagnostics() == {"guard: unfamiliar": 1.0, "guard: over budget": 0.0}


def test_diagnostics_of_a_bandit_are_those_of_a_run(monkeypatch):
    prepared = prepare(graded(120, n_actions=3, n_features=3, seed=5))
    monkeypatch.setenv("MELEE_COMPILE", "never")  # no other test needs this pass
    for spec in ("melee:rescale=false", "melee", "uniform"):
        bandit = Bandit.for_prepared(prepared, spec, seed=2)
        for row in prepared.order:
            x, rewards = prepared.task.contexts[row], prepared.task.rewards[row]
            action, p = bandit.act(x)
            bandit.learn(x, action, rewards[action], p)
        assert bandit.diagnostics() == simulate(prepared, spec, seed=2).diagnostics
    assert bandit.diagnostics() == {}


def test_the_share_of_rounds_over_budget_is_that_of_the_greedy_ones():
    bandit = bandit_with(bonus_of(4.0), budget=0.1, hidden=0)
    played(bandit, 200, pay=costly)
    n_over = inner_state(bandit).guard.fallbacks[2]
    assert bandit.diagnostics() == {"guard: unfamiliar": 0.0, "guard: over budget": n_over / 200}
    assert 0.1 < n_over / 200 < 1.0


def test_counting_begins_anew_when_contexts_are_rescaled():
    bandit = bandit_with(unfamiliar(), hidden=0, rescale=True)
    for n_more, counted in [(31, 31), (1, 0), (31, 31), (1, 0), (192, 0), (50, 50)]:
        played(bandit, n_more)
        assert_array_equal(inner_state(bandit).guard.fallbacks, [counted, counted, 0])
        assert learner_of(bandit).totals[ROUNDS] == bandit.n_learned_


def test_exploring_that_pays_costs_no_budget():
    bandit = bandit_with(bonus_of(4.0), budget=1e-9, hidden=0)
    played(bandit, 60, pay=lambda t, action: 1.0)
    assert inner_state(bandit).guard.seen[0] <= 0.0
    assert inner_state(bandit).guard.fallbacks[2] == 0


# --- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "d", "n_hidden", "kind"),
    [
        (2, 20, 32, Ridge),
        (373, 20, 32, Ridge),
        (374, 20, 0, Ridge),
        (9510, 20, 0, Ridge),
        (9511, 20, 0, DiagonalRidge),
        (2, 468, 32, Ridge),
        (2, 469, 0, Ridge),
        (2, 500, 0, Ridge),
        (2, 501, 0, DiagonalRidge),
    ],
)
def test_hidden_units_and_then_exactness_are_given_up_for_memory(k, d, n_hidden, kind):
    explorer, problem = Melee(), Problem(d, k)
    assert explorer.n_hidden(problem) == n_hidden
    state = explorer.behind(problem, lambda p: explorer.start_with(Policy.rule(), p))
    learner = own_state(state).polopt.learner
    assert type(learner) is Adaptive
    assert type(learner.wide.ridge) is type(learner.plain.ridge) is kind
    assert learner.wide.toward.shape == (k, d + 1 + n_hidden)
    assert learner.plain.toward.shape == (k, d + 1)
    trees = sum(array.size for array in arrays_of(learner.forest))
    size = sum(array.size for array in arrays_of(learner)) - trees
    assert size <= 2**23 + 10 * k * (d + 1 + n_hidden)
    assert trees <= 2**16 + 1000 * k + KEPT * d


@pytest.mark.parametrize(("k", "d"), [(2, 3), (2, 600), (5000, 20)])
def test_the_diagonal_learner_keeps_its_hidden_units(k, d):
    explorer, problem = Melee(learner="adaptive-diagonal"), Problem(d, k)
    assert explorer.n_hidden(problem) == 32
    state = explorer.behind(problem, lambda p: explorer.start_with(Policy.rule(), p))
    learner = own_state(state).polopt.learner
    assert type(learner.wide.ridge) is DiagonalRidge
    assert learner.wide.toward.shape == (k, d + 1 + 32)


@pytest.mark.parametrize(
    ("d", "n_hidden", "kind"),
    [(10, 10, Ridge), (11, 0, Ridge), (20, 0, Ridge), (21, 0, DiagonalRidge)],
)
def test_exactness_may_be_given_up_earlier(d, n_hidden, kind):
    explorer, problem = Melee(exact=20, hidden=10), Problem(d, 3)
    assert explorer.n_hidden(problem) == n_hidden
    assert type(explorer.new_learner(problem).wide.ridge) is kind


@pytest.mark.parametrize("n_actions", [2, 2000])
def test_any_number_of_actions_can_be_played(n_actions):
    bandit = bandit_with(random_policy(0), n_actions=n_actions)
    told = played(bandit, 40, pay=lambda t, action: float(action % 2))
    assert all(abs(pmf.sum() - 1) < 1e-9 for pmf, *_ in told)
    state = inner_state(bandit)
    assert np.isfinite(state.features).all()
    assert state.plays.sum() == 40
    assert state.features.shape == (n_actions, N_INPUTS)


def test_real_valued_rewards_are_learned_as_they_are():
    bandit = bandit_with(random_policy(0))
    for i in range(60):
        bandit.learn([0.0, 0.0, 0.0], i % K, 0.2 * (i % K), 1.0)
    bandit.act([0.0, 0.0, 0.0])
    assert_allclose(inner_state(bandit).means, [0.0, 0.2, 0.4, 0.6], atol=0.03)
    assert_allclose(inner_state(bandit).plays, 15.0)


def test_only_the_policys_own_exploring_is_charged_to_the_budget():
    x = [0.1, 0.2, 0.3]
    for p, charged in [(0.075, False), (0.112, False), (0.113, True), (0.775, True), (1.0, True)]:
        bandit = bandit_with(bonus_of(0.0), mu=0.3, hidden=0)
        bandit.learn(x, 3, 0.0, 0.775)
        for _ in range(10):
            bandit.learn(x, 1, 1.0, 0.775)
        guard = inner_state(bandit).guard
        before = guard.seen.copy()
        assert before[1] > 0
        bandit.learn(x, 2, 0.0, p)  # 1.5·mu/K is 0.1125
        assert (guard.seen[0] > before[0]) == charged
        assert_array_equal(guard.seen[1:], before[1:])


def test_what_mu_draws_is_not_charged_to_the_guards_budget():
    prepared = prepare(graded(1500, n_actions=3, n_features=3, seed=4))
    for mu in (0.0, 0.3):
        explorer = Melee(mu=mu, hidden=0, rescale=False)
        state = explorer.start_with(Policy.rule(), problem_of(prepared, prepared.n_rounds), 0.5)
        bandit = Bandit.for_prepared(prepared, explorer)
        bandit._state = state
        for row in prepared.order:
            x, rewards = prepared.task.contexts[row], prepared.task.rewards[row]
            action, p = bandit.act(x)
            bandit.learn(x, action, rewards[action], p)
        assert bandit.diagnostics()["guard: over budget"] < 0.05


# --- policies on disk ---------------------------------------------------------------------------


def saved(path, *, reference=None, **changes):
    """A policy on disk that is in order but for these changes."""
    arrays = {**random_policy(0)._asdict(), "budget": np.array([0.5]), **changes}
    policy = Policy(*(arrays[name] for name in Policy._fields))
    features = np.random.default_rng(0).normal(size=(4, N_INPUTS))
    decisions = {"features": features, "scores": sizes(policy, features)}
    if reference is not None:
        decisions = {name: decisions[name] for name in reference}
    artefact.save(
        path, kind="melee", schema=SCHEMA, arrays=arrays, training={}, reference=decisions
    )
    return str(path)


def test_a_saved_policy_is_read_as_it_was_saved(tmp_path):
    trained = load_policy(saved(tmp_path / "p"))
    assert trained.budget == 0.5
    for mine, theirs in zip(trained.policy, random_policy(0), strict=True):
        assert_array_equal(mine, theirs)
    point = np.zeros(N_INPUTS)  # a range may be a single point
    assert load_policy(saved(tmp_path / "q", low=point, high=point)).budget == 0.5


@pytest.mark.parametrize("reference", [(), ("features",), ("scores",)])
def test_a_policy_without_reference_decisions_is_refused(tmp_path, reference):
    with pytest.raises(DataError, match="reference decisions are missing; copy the policy again"):
        load_policy(saved(tmp_path / "p", reference=reference))


@pytest.mark.parametrize("column", [0, N_INPUTS - 1])
def test_a_policy_with_an_empty_range_is_refused(tmp_path, column):
    high = np.ones(N_INPUTS)
    low = -high
    low[column] = 1.001
    with pytest.raises(DataError, match="its range is empty"):
        load_policy(saved(tmp_path / "p", low=low, high=high))


@pytest.mark.parametrize("budget", [0.0, -1.0])
def test_a_policy_without_a_budget_is_refused(tmp_path, budget):
    with pytest.raises(DataError, match="its budget not positive"):
        load_policy(saved(tmp_path / "p", budget=np.array([budget])))
