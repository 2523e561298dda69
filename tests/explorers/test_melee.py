"""The learned explorer: its features, its network, its guard."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee import artefact
from melee.bandit import Bandit
from melee.errors import DataError
from melee.explorers.base import Problem
from melee.explorers.hidden import Units
from melee.explorers.melee import (
    HIGHEST,
    LOWEST,
    N_INPUTS,
    N_SHARED,
    SCHEMA,
    Melee,
    Network,
    exponent,
    exponents,
    hold,
    load_policy,
    own_state,
)
from melee.learners.ridge import DiagonalRidge, Ridge
from melee.loop import problem_of, simulate
from melee.preparation import prepare
from tests import naive
from tests.tasks import graded

K, D = 4, 3


def random_network(seed, n_units=5, low=-1e6, high=1e6):
    """Bonuses of very different sizes for different actions."""
    rng = np.random.default_rng(seed)
    linear = 0.8 * rng.normal(size=N_INPUTS)
    linear[SCHEMA.index("best")] += 6.0  # or it would explore forever
    inner, outer = rng.normal(size=(n_units, N_INPUTS)), rng.normal(size=n_units)
    full = np.ones(N_INPUTS)
    return Network(linear, inner, outer, low * full, high * full)


def bonus_of(exponent_everywhere):
    """A network with the same exponent for all."""
    linear = np.zeros(N_INPUTS)
    linear[0] = exponent_everywhere
    return Network.rule(5)._replace(linear=linear)


def bandit_with(network, *, budget=math.inf, n_features=D, n_actions=K, **settings):
    class Given(Melee):
        def start(self, problem):
            return self.start_with(network, problem, budget)

    explorer = Given(**{"rescale": False, **settings})
    return Bandit(explorer, n_features=n_features, n_actions=n_actions, seed=1)


def inner_state(bandit):
    return own_state(bandit._state)


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


@pytest.mark.parametrize("real", [False, True], ids=["clicks", "real rewards"])
@pytest.mark.parametrize(
    ("seed", "hidden", "budget", "low", "high", "deciders"),
    [
        (0, 48, math.inf, {}, {}, {"network"}),
        (1, 48, math.inf, {}, {}, {"network"}),
        (2, 0, math.inf, {}, {}, {"network"}),
        (3, 8, 0.05, {}, {}, {"network", "greedy"}),
        (4, 8, math.inf, {"rounds": 0.1}, {"rounds": 0.3}, {"network", "rule"}),
        (5, 8, 0.02, {"plays": 0.1, "gap": 0.0}, {"plays": 0.3, "gap": 0.3}, {"rule", "greedy"}),
    ],
)
def test_a_whole_run_agrees_with_the_definition(seed, hidden, budget, low, high, deciders, real):
    rng = np.random.default_rng(seed)
    lowest, highest = ranges(low, high)
    network = random_network(seed)._replace(low=lowest, high=highest)
    bandit = bandit_with(network, budget=budget, hidden=hidden)
    twin = naive.Melee(K, D + 1 + hidden, network, budget, ridge=0.2)
    units, rates = Units.draw(D, max(hidden, 1)), rng.normal(size=(K, D))
    state = inner_state(bandit)
    for t in range(1, 71):
        raw = rng.normal(size=D) / math.sqrt(D)
        x = np.append(raw, 1.0)
        wide = naive.widened(x, units.columns, units.weights) if hidden else x
        psi = np.clip(twin.inputs(wide), network.low, network.high)
        expected = twin.pmf(wide, t)
        action, p = bandit.act(raw)
        assert_allclose(state.features, psi, atol=1e-6, err_msg=f"round {t}")
        assert_allclose(state.means, twin.means(wide), atol=1e-8)
        assert_allclose(state.spreads, twin.spreads(wide), atol=1e-7)
        assert_array_equal(bandit._pmf, expected, err_msg=f"round {t}")
        if t % 3 == 0:  # someone else decided, as a guard must expect
            action = int(rng.integers(K))
        rewards = rewards_for(rates, raw, rng, real=real)
        bandit.learn(raw, action, rewards[action], p)
        twin.learn(wide, t, action, rewards, p)
        assert_allclose(state.guard.seen[0], twin.cost_of_exploring(), atol=1e-7)
    by = twin.decided_by
    assert_array_equal(state.guard.fallbacks, [70, by["rule"], by["greedy"]])
    assert deciders <= {decider for decider, n in by.items() if n}
    assert twin.n_held > 0 or not (low and by["network"])


def test_mu_is_the_mass_of_uniform_exploration():
    bandit = bandit_with(random_network(0), mu=0.2, hidden=0)
    for i in range(8):
        bandit.learn([0.1, 0.2, 0.3], i % K, [0.2, 0.4, 0.1, 0.3][i % K], 1.0)
    assert_allclose(sorted(bandit.pmf([0.1, 0.2, 0.3])), [0.05, 0.05, 0.05, 0.85])


# --- the network --------------------------------------------------------------------------------


def test_the_network_outside_of_the_loop_is_the_one_inside():
    rng = np.random.default_rng(0)
    network = random_network(3, low=-1.5, high=1.2)
    beyond = set()
    for size in (0.1, 1.0, 2.0, 20.0):
        features = size * rng.normal(size=(30, N_INPUTS))
        features[:, :N_SHARED] = features[0, :N_SHARED]
        held = features.copy()
        hold(network, held)
        assert_array_equal(held, np.clip(features, -1.5, 1.2))
        within = network.inner[:, :N_SHARED] @ held[0, :N_SHARED]
        inside = [exponent(network, within, held, a) for a in range(30)]
        assert_allclose(inside, exponents(network, features), atol=1e-9)
        assert np.min(inside) >= LOWEST
        assert np.max(inside) <= HIGHEST
        beyond |= {LOWEST, HIGHEST} & set(inside)
    assert beyond


@pytest.mark.parametrize(("everywhere", "kept"), [(-100.0, LOWEST), (100.0, HIGHEST)])
def test_the_exponent_is_limited(everywhere, kept):
    network, features = bonus_of(everywhere), np.ones((1, N_INPUTS))
    assert exponents(network, features) == [kept]
    assert exponent(network, np.zeros(5), features, 0) == kept


@pytest.mark.parametrize("n_units", [0, 5])
def test_training_starts_from_the_rule_of_gated_ucb(n_units):
    features = np.random.default_rng(0).normal(size=(50, N_INPUTS))
    features[:, 0] = 1.0
    best = np.linspace(0, 0.95, 50)
    features[:, SCHEMA.index("best")] = np.log(1.02 - best) / 4
    sizes = np.exp(exponents(Network.rule(n_units), features))
    assert_allclose(sizes, 1.2 * (1.02 - best) ** 4)
    assert_allclose(sizes, 1.2 * (1 - best) ** 4, atol=1.2 * (1.02**4 - 1))


def test_the_rule_plays_as_gated_ucb_but_for_its_constant():
    rng = np.random.default_rng(1)
    bandit = bandit_with(Network.rule(5), hidden=0)
    twin = naive.GatedUcb(K, D + 1, ridge=0.2, scale=1.2, power=4.0)
    state, agreed, rates = inner_state(bandit), 0, rng.normal(size=(K, D))
    for t in range(1, 101):
        x = rng.normal(size=D) / math.sqrt(D)
        action, p = bandit.act(x)
        best = np.clip(state.means.max(), 0, 1)
        scores = state.means + 1.2 * (1.02 - best) ** 4 * state.spreads
        assert_array_equal(bandit._pmf, naive.greedy(scores.round(12)))
        agreed += twin.pmf(np.append(x, 1.0), t)[action] > 0
        rewards = rewards_for(rates, x, rng)
        bandit.learn(x, action, rewards[action], p)
        twin.learn(np.append(x, 1.0), t, action, rewards, p)
    assert agreed > 90


def assert_renamed(first, renamed, new_name, x):
    assert_array_equal(renamed.pmf(x)[new_name], first.pmf(x))
    ours, theirs = inner_state(first).features, inner_state(renamed).features
    assert_allclose(theirs[new_name], ours, atol=1e-9)


@pytest.mark.parametrize("rescale", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_renaming_actions_renames_the_choice(seed, rescale):
    rng, new_name = np.random.default_rng(seed), np.array([2, 0, 3, 1])
    network, rates = random_network(seed), rng.normal(size=(K, D))
    first, renamed = (bandit_with(network, budget=0.3, rescale=rescale) for _ in range(2))
    for t in range(80):
        x = rng.normal(size=D) / math.sqrt(D)
        assert_renamed(first, renamed, new_name, x)
        action, p = first.act(x)
        if t % 3 == 0:
            action = int(rng.integers(K))
        reward = rewards_for(rates, x, rng, real=True)[action]
        first.learn(x, action, reward, p)
        renamed.learn(x, int(new_name[action]), reward, p)
    assert (inner_state(first).plays > 0).sum() > 1


@pytest.mark.parametrize("seed", range(3))
def test_renaming_actions_renames_the_choice_while_unpaid_actions_are_tied(seed):
    rng, new_name = np.random.default_rng(seed), np.array([1, 2, 3, 0])
    network = random_network(seed)
    first, renamed = (bandit_with(network, hidden=0) for _ in range(2))
    for action in (3, 3, 1, 3, 0):
        x = rng.normal(size=D)
        assert_renamed(first, renamed, new_name, x)
        first.learn(x, action, 0.0, 1.0)
        renamed.learn(x, int(new_name[action]), 0.0, 1.0)


# --- the guard ----------------------------------------------------------------------------------


def played(bandit, n_rounds, seed=0, pay=None):
    """Play, and tell for every round the decision and the means and spreads it was made by."""
    rng = np.random.default_rng(seed)
    rates, told = rng.normal(size=(bandit.n_actions, bandit.n_features)), []
    state = inner_state(bandit)
    for t in range(n_rounds):
        x = rng.normal(size=bandit.n_features) / math.sqrt(bandit.n_features)
        action, p = bandit.act(x)
        told.append((bandit._pmf.copy(), state.means.copy(), state.spreads.copy()))
        reward = rewards_for(rates, x, rng)[action] if pay is None else pay(t, action)
        bandit.learn(x, action, float(reward), p)
    return told


def test_far_from_what_training_knew_the_rule_takes_over_and_is_counted():
    strange = bonus_of(3.0)._replace(low=np.full(N_INPUTS, 0.999), high=np.full(N_INPUTS, 1.001))
    bandit = bandit_with(strange, hidden=0)
    told = played(bandit, 60)
    for pmf, means, spreads in told:
        size = 1.2 * (1.02 - np.clip(means.max(), 0, 1)) ** 4
        assert_array_equal(pmf, naive.greedy((means + size * spreads).round(12)))
    assert_array_equal(inner_state(bandit).guard.fallbacks, [60, 60, 0])
    familiar = bandit_with(bonus_of(3.0), hidden=0)
    for pmf, means, spreads in played(familiar, 60):
        assert_array_equal(pmf, naive.greedy((means + math.exp(3.0) * spreads).round(10)))
    assert_array_equal(inner_state(familiar).guard.fallbacks, [60, 0, 0])


def test_features_a_little_outside_of_training_are_held_at_its_edge():
    network = random_network(0, low=-1.0, high=1.0)
    for value, familiar in [(1.0, True), (2.9, True), (3.1, False), (-2.9, True), (-3.1, False)]:
        for column in (0, N_SHARED - 1, N_SHARED, N_INPUTS - 1):
            features = np.zeros((3, N_INPUTS))
            rows = slice(None) if column < N_SHARED else 2
            features[rows, column] = value
            assert hold(network, features) == familiar
            assert (np.abs(features) <= 1.0).all()
            assert (features[rows, column] == np.sign(value)).all()


def costly(t, action):
    """Pays for ten rounds whatever is played, then only for action 0."""
    return t < 10 or action == 0


def test_exploring_beyond_the_budget_makes_it_greedy_until_the_budget_has_grown():
    bandit = bandit_with(bonus_of(4.0), budget=0.1, hidden=0)
    told = played(bandit, 200, pay=costly)
    state = inner_state(bandit)
    greedy = [bool((pmf == naive.greedy(means)).all()) for pmf, means, _ in told]
    n_decided, n_unfamiliar, n_over = state.guard.fallbacks
    assert (n_decided, n_unfamiliar) == (200, 0)
    assert 20 < n_over < 200
    assert n_over <= sum(greedy)
    # No single round costs more than 1, so the budget is never passed by more.
    assert 0 < state.guard.seen[0] <= 0.1 * math.sqrt(K * 200) + 1


def test_without_the_guard_there_is_no_budget():
    bandit = bandit_with(bonus_of(4.0), budget=0.1, guard=False, hidden=0)
    told = played(bandit, 200, pay=costly)
    state = inner_state(bandit)
    assert state.guard.fallbacks[2] == 0
    assert state.guard.seen[0] > 0.1 * math.sqrt(K * 200) + 1
    for pmf, means, spreads in told:
        assert_array_equal(pmf, naive.greedy((means + math.exp(4.0) * spreads).round(10)))


def test_without_the_guard_unfamiliar_features_are_held_and_the_network_goes_on():
    strange = bonus_of(3.0)._replace(low=np.full(N_INPUTS, 0.999), high=np.full(N_INPUTS, 1.001))
    bandit = bandit_with(strange, guard=False, hidden=0)
    told = played(bandit, 60)
    by_rule = 0
    for pmf, means, spreads in told:
        assert_array_equal(pmf, naive.greedy((means + math.exp(3.0) * spreads).round(10)))
        size = 1.2 * (1.02 - np.clip(means.max(), 0, 1)) ** 4
        by_rule += bool((pmf == naive.greedy((means + size * spreads).round(12))).all())
    assert by_rule < 60  # the fallback would have played otherwise
    assert_array_equal(inner_state(bandit).guard.fallbacks, [60, 0, 0])
    assert set(bandit.diagnostics.values()) == {0.0}


def test_diagnostics_are_shares_of_the_rounds_that_were_decided_and_learned():
    strange = bonus_of(3.0)._replace(low=np.full(N_INPUTS, 0.999), high=np.full(N_INPUTS, 1.001))
    bandit = bandit_with(strange, hidden=0)
    x = [0.1, 0.2, 0.3]
    assert bandit.diagnostics == {"guard: unfamiliar": 0.0, "guard: over budget": 0.0}
    for _ in range(5):
        bandit.learn(x, 0, 1.0, 1.0)  # what others decided
    for _ in range(3):
        bandit.act(x)  # never learned
    assert_array_equal(inner_state(bandit).guard.fallbacks, [0, 0, 0])
    assert bandit.diagnostics == {"guard: unfamiliar": 0.0, "guard: over budget": 0.0}
    for n in range(1, 4):
        action, p = bandit.act(x)
        assert inner_state(bandit).guard.latest[0] == 1
        for _ in range(2):  # the second was not decided
            bandit.learn(x, action, 1.0, p)
            assert inner_state(bandit).guard.latest[0] == -1
        assert_array_equal(inner_state(bandit).guard.fallbacks, [n, n, 0])
    assert bandit.diagnostics == {"guard: unfamiliar": 1.0, "guard: over budget": 0.0}


def test_diagnostics_of_a_bandit_are_those_of_a_run():
    prepared = prepare(graded(200, n_actions=3, n_features=3, seed=5))
    for spec in ("melee:rescale=false", "melee", "uniform"):
        bandit = Bandit.for_prepared(prepared, spec, seed=2)
        for row in prepared.order:
            x, rewards = prepared.task.contexts[row], prepared.task.rewards[row]
            action, p = bandit.act(x)
            bandit.learn(x, action, rewards[action], p)
        assert bandit.diagnostics == simulate(prepared, spec, seed=2).diagnostics
    assert bandit.diagnostics == {}


def test_the_share_of_rounds_over_budget_is_that_of_the_greedy_ones():
    bandit = bandit_with(bonus_of(4.0), budget=0.1, hidden=0)
    played(bandit, 200, pay=costly)
    n_over = inner_state(bandit).guard.fallbacks[2]
    assert bandit.diagnostics == {"guard: unfamiliar": 0.0, "guard: over budget": n_over / 200}
    assert 0.1 < n_over / 200 < 1.0


def test_counting_begins_anew_when_contexts_are_rescaled():
    strange = bonus_of(3.0)._replace(low=np.full(N_INPUTS, 0.999), high=np.full(N_INPUTS, 1.001))
    bandit = bandit_with(strange, hidden=0, rescale=True)
    for n_more, counted in [(31, 31), (1, 0), (31, 31), (1, 0), (192, 0), (50, 50)]:
        played(bandit, n_more)
        assert_array_equal(inner_state(bandit).guard.fallbacks, [counted, counted, 0])
        assert inner_state(bandit).totals[0] == bandit.n_learned


def test_exploring_that_pays_costs_no_budget():
    bandit = bandit_with(bonus_of(4.0), budget=1e-9, hidden=0)
    played(bandit, 60, pay=lambda t, action: 1.0)
    assert inner_state(bandit).guard.seen[0] <= 0.0
    assert inner_state(bandit).guard.fallbacks[2] == 0


# --- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "d", "n_hidden", "kind"),
    [
        (2, 20, 48, Ridge),
        (5000, 20, 0, Ridge),
        (5000, 200, 0, DiagonalRidge),
        (2, 452, 48, Ridge),
        (2, 453, 0, Ridge),
        (2, 500, 0, Ridge),
        (2, 501, 0, DiagonalRidge),
        (2, 600, 0, DiagonalRidge),
    ],
)
def test_hidden_units_and_then_exactness_are_given_up_for_memory(k, d, n_hidden, kind):
    explorer, problem = Melee(), Problem(d, k)
    assert explorer.n_hidden(problem) == n_hidden
    state = explorer.behind(problem, lambda p: explorer.start_with(Network.rule(5), p))
    learner = own_state(state).polopt.learner
    assert type(learner) is kind
    assert learner.weights.shape == (k, d + 1 + n_hidden)
    assert sum(array.size for array in learner) <= 2**24 + 3 * k * (d + 1 + n_hidden)


@pytest.mark.parametrize(("k", "d"), [(2, 3), (2, 600), (5000, 20)])
def test_the_diagonal_learner_keeps_its_hidden_units(k, d):
    explorer, problem = Melee(learner="diagonal"), Problem(d, k)
    assert explorer.n_hidden(problem) == 48
    state = explorer.behind(problem, lambda p: explorer.start_with(Network.rule(5), p))
    learner = own_state(state).polopt.learner
    assert type(learner) is DiagonalRidge
    assert learner.weights.shape == (k, d + 1 + 48)


@pytest.mark.parametrize(
    ("d", "n_hidden", "kind"),
    [(10, 10, Ridge), (11, 0, Ridge), (20, 0, Ridge), (21, 0, DiagonalRidge)],
)
def test_exactness_may_be_given_up_earlier(d, n_hidden, kind):
    explorer, problem = Melee(exact=20, hidden=10), Problem(d, 3)
    assert explorer.n_hidden(problem) == n_hidden
    assert type(explorer.new_learner(problem)) is kind


@pytest.mark.parametrize("n_actions", [2, 2000])
def test_any_number_of_actions_can_be_played(n_actions):
    bandit = bandit_with(random_network(0), n_actions=n_actions)
    told = played(bandit, 40, pay=lambda t, action: float(action % 2))
    assert all(abs(pmf.sum() - 1) < 1e-9 for pmf, _, _ in told)
    state = inner_state(bandit)
    assert np.isfinite(state.features).all()
    assert state.plays.sum() == 40
    assert state.features.shape == (n_actions, N_INPUTS)


def test_real_valued_rewards_are_learned_as_they_are():
    bandit = bandit_with(random_network(0))
    for i in range(60):
        bandit.learn([0.0, 0.0, 0.0], i % K, 0.2 * (i % K), 1.0)
    bandit.act([0.0, 0.0, 0.0])
    assert_allclose(inner_state(bandit).means, [0.0, 0.2, 0.4, 0.6], atol=0.02)
    assert_allclose(inner_state(bandit).sums, [0.0, 3.0, 6.0, 9.0])


def test_only_the_policys_own_exploring_is_charged_to_the_budget():
    x = [0.1, 0.2, 0.3]
    for p, charged in [(0.075, False), (0.112, False), (0.113, True), (0.775, True), (1.0, True)]:
        bandit = bandit_with(bonus_of(0.0), mu=0.3, hidden=0)
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
        state = explorer.start_with(Network.rule(), problem_of(prepared, prepared.n_rounds), 0.5)
        bandit = Bandit.for_prepared(prepared, explorer)
        bandit._state = state
        for row in prepared.order:
            x, rewards = prepared.task.contexts[row], prepared.task.rewards[row]
            action, p = bandit.act(x)
            bandit.learn(x, action, rewards[action], p)
        assert bandit.diagnostics["guard: over budget"] < 0.05


# --- policies on disk ---------------------------------------------------------------------------


def saved(path, *, reference=None, **changes):
    """A policy on disk that is in order but for these changes."""
    arrays = {**random_network(0)._asdict(), "budget": np.array([0.5]), **changes}
    network = Network(*(arrays[name] for name in Network._fields))
    features = np.random.default_rng(0).normal(size=(4, N_INPUTS))
    decisions = {"features": features, "scores": exponents(network, features)}
    if reference is not None:
        decisions = {name: decisions[name] for name in reference}
    artefact.save(
        path, kind="melee", schema=SCHEMA, arrays=arrays, training={}, reference=decisions
    )
    return str(path)


def test_a_saved_policy_is_read_as_it_was_saved(tmp_path):
    policy = load_policy(saved(tmp_path / "p"))
    assert policy.budget == 0.5
    for mine, theirs in zip(policy.network, random_network(0), strict=True):
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
