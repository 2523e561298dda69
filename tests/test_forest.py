"""The trees of the learner that knows its noise: how they grow, and what becomes of them.

`tests/test_adaptive.py` compares them with their definition.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from melee import Agent, DataError, growth
from melee.agent.file import pack, unpack
from melee.agent.model import Model
from melee.explorers import parse as parse_explorer
from melee.learners import forest as module
from melee.learners import interface
from melee.learners.adaptive import FOREST, Adaptive
from melee.learners.forest import (
    CLOSE,
    FEWEST,
    KEPT,
    LEAST,
    LEAVES,
    NODES,
    TREES,
    Forest,
    doubt_of,
    due,
    find,
    grow,
    is_grown,
    said_of,
    take,
)
from melee.states import copy_state
from tests.agent_lives import ACTIONS, named_context, reward_of, small_agent
from tests.forms import compiled

observe, predict = compiled(interface.observe), compiled(interface.predict)
K, D = 3, 4
"""Actions and features."""


def forest_of(contexts, models, targets, n_models=K):
    """One that has kept these rounds."""
    forest = Forest.start(n_models, contexts.shape[1], TREES)
    n = len(models)
    forest.kept[0] = n
    forest.contexts[:, :n] = contexts.T
    forest.models[:n], forest.targets[:n], forest.weights[:n] = models, targets, 1.0
    return forest


def grown(forest, average=None, least=CLOSE):
    """The same with every tree grown from what it has kept."""
    n_models = forest.values.shape[1]
    average = np.zeros(n_models) if average is None else np.asarray(average)
    for tree in range(TREES):
        compiled(grow)(forest, tree, average, np.ones(n_models), least)
    return forest


def rounds(n, seed=0, d=D):
    """Contexts, actions, and rewards that turn at a value of one column."""
    rng = np.random.default_rng([seed, n])
    contexts, models = rng.normal(size=(n, d)), rng.integers(K, size=n)
    targets = 0.3 * (-1.0) ** (models + (contexts[:, 1] > 0.2)) + 0.1 * rng.normal(size=n)
    return contexts, models, targets


def learner_with(n_trees, n_rows=K):
    return Adaptive.start(n_rows, D + 1, 0, 0.2, 6.0, exact=True, n_trees=n_trees)


def taught(learner, contexts, models, targets):
    for x, model, target in zip(contexts, models.tolist(), targets.tolist(), strict=True):
        observe(learner, np.append(x, 1.0), model, target, 1.0)
    return learner


def leaves_of(forest, contexts):
    """Where contexts are, by tree."""
    found = []
    for x in contexts:
        find(forest, x)
        found.append(forest.at.copy())
    return np.array(found).T


# --- growing ------------------------------------------------------------------------------------


def test_rewards_that_turn_at_a_value_are_learned_better_with_trees():
    wrong = []
    for n_trees in (0, TREES):
        learner = taught(learner_with(n_trees), *rounds(12 * FEWEST))
        contexts, models, _ = rounds(200, seed=1)
        turned = 0.3 * (-1.0) ** (models + (contexts[:, 1] > 0.2))
        ones = np.append(contexts, np.ones((200, 1)), axis=1)
        said = [predict(learner, x, a) for x, a in zip(ones, models.tolist(), strict=True)]
        wrong.append(np.mean((np.array(said) - turned) ** 2))
        assert (learner.now[FOREST] > 0.5) == (n_trees > 0)
    assert wrong[1] < 0.5 * wrong[0]


@pytest.mark.parametrize("n", [1, 2 * LEAST - 1, 2 * LEAST, FEWEST, 161, 500, KEPT - 1, KEPT])
@pytest.mark.parametrize("d", [1, D])
def test_no_tree_has_more_leaves_than_there_is_room_for_nor_leaves_of_few_rounds(n, d):
    contexts, models, targets = rounds(n, d=max(d, 2))
    contexts = contexts[:, :d] if d > 1 else contexts[:, 1:]
    forest = grown(forest_of(contexts, models, targets))
    fewest = max(LEAST, -(-n // LEAVES))
    assert forest.is_sound
    assert is_grown(forest) == (n >= 2 * fewest)
    for tree, leaves in enumerate(leaves_of(forest, contexts)):
        found, n_rounds = np.unique(leaves - tree * LEAVES, return_counts=True)
        assert_array_equal(found, np.arange(len(found)))
        assert len(found) <= LEAVES
        assert (n_rounds >= min(fewest, n)).all()
        assert 2 * len(found) - 1 <= NODES
        assert (forest.columns[tree] >= 0).sum() == len(found) - 1


def test_steps_that_pile_up_make_as_many_leaves_as_there_are():
    n = LEAVES * 64
    contexts = np.linspace(0.0, 1.0, n)[:, None]
    forest = grown(forest_of(contexts, np.zeros(n, int), contexts[:, 0] ** 2), np.array([0.3] * K))
    n_leaves = [len(np.unique(leaves)) for leaves in leaves_of(forest, contexts)]
    assert LEAVES // 2 < max(n_leaves) <= LEAVES


def test_constant_rewards_or_contexts_give_no_cut_and_a_forest_that_weighs_nothing():
    contexts, models, targets = rounds(2 * FEWEST)
    everywhere, always = np.full_like(contexts, 0.5), np.full_like(targets, 0.7)
    for x, r in ((contexts, always), (everywhere, targets), (everywhere, always)):
        learner = taught(learner_with(TREES), x, models, r)
        assert learner.forest.grown[0] == TREES
        assert (learner.forest.columns == -1).all()
        assert not is_grown(learner.forest)
        assert learner.now[FOREST] == 0.0


@pytest.mark.parametrize(("a", "b"), [(0.0, 1e-3), (5.0, 1.0), (-300.0, 40.0), (1.0, -2.0)])
def test_the_unit_of_rewards_changes_no_tree(a, b):
    contexts, models, targets = rounds(500)
    average = np.array([0.1, -0.2, 0.0])
    ours = grown(forest_of(contexts, models, targets), average)
    theirs = forest_of(contexts, models, a + b * targets)
    theirs = grown(theirs, a + b * average, CLOSE * b * b)
    for name in ("columns", "children", "places", "seen"):
        assert_array_equal(getattr(theirs, name), getattr(ours, name))
    leaves = np.unique(leaves_of(ours, contexts))
    assert_allclose(theirs.values[leaves], a + b * ours.values[leaves], rtol=1e-7)


def test_renamed_actions_have_the_same_trees():
    contexts, models, targets = rounds(300)
    new = np.array([2, 0, 1])
    ours = grown(forest_of(contexts, models, targets))
    theirs = grown(forest_of(contexts, new[models], targets))
    assert_array_equal(theirs.columns, ours.columns)
    assert_allclose(theirs.values[:, new], ours.values)


# --- when they grow -----------------------------------------------------------------------------


def test_every_tree_is_due_once_while_the_rounds_double():
    assert FEWEST % TREES == 0  # or some would have no turn
    assert [due(n, TREES) for n in range(FEWEST)] == [-1] * FEWEST
    for first in (FEWEST, 2 * FEWEST, 4 * FEWEST):
        found = [due(n, TREES) for n in range(first, 2 * first)]
        step = first // TREES
        assert found[::step] == list(range(TREES))
        assert sum(tree >= 0 for tree in found) == TREES


def test_at_most_one_tree_grows_in_a_round_and_none_when_nothing_is_kept(monkeypatch):
    kept = 2 * FEWEST + FEWEST // 2
    monkeypatch.setattr(module, "KEPT", kept)
    learner, contexts = learner_with(TREES), rounds(4 * FEWEST)
    for n, (x, model, target) in enumerate(zip(*contexts, strict=True), 1):
        before = copy_state(learner.forest)
        observe(learner, np.append(x, 1.0), int(model), float(target), 1.0)
        after = learner.forest
        changed = (after.columns != before.columns) | (after.places != before.places)
        expected = due(n, TREES) if n <= kept else -1
        assert set(np.flatnonzero(changed.any(axis=1))) <= {expected}
        assert after.kept[0] == min(n, kept)
        if n > kept:  # averages go on
            find(after, x)
            assert (after.seen[after.at, model] > before.seen[after.at, model]).all()
            assert (after.seen != before.seen).sum() == TREES


def test_leaves_average_what_growing_said_and_what_came():
    forest = grown(forest_of(*rounds(FEWEST)), [0.1, 0.2, 0.3])
    x = np.zeros(D)
    find(forest, x)
    said, seen = forest.values[forest.at, 1], forest.seen[forest.at, 1]
    take(forest, x, 1, 2.0, 0.5)
    take(forest, x, 1, -1.0, 3.0)
    assert_allclose(forest.seen[forest.at, 1], seen + 3.5)
    expected = (said * seen + 2.0 * 0.5 - 1.0 * 3.0) / (seen + 3.5)
    assert_allclose(forest.values[forest.at, 1], expected)
    assert said_of(forest, 1) == pytest.approx(expected.mean())
    assert doubt_of(forest, 1) == pytest.approx((1 / np.sqrt(seen + 3.5)).mean())


# --- actions and features come and go -----------------------------------------------------------


def test_an_encouraged_action_is_so_in_every_leaf():
    forest = grown(forest_of(*rounds(FEWEST)))
    before = copy_state(forest)
    forest.encourage(1, 0.8, 5.0)
    for x in rounds(9, seed=2)[0]:
        find(forest, x)
        assert said_of(forest, 1) == pytest.approx(0.8)
        assert doubt_of(forest, 1) == pytest.approx(1 / np.sqrt(6.0))
    assert_array_equal(forest.values[:, ::2], before.values[:, ::2])
    assert_array_equal(forest.doubts[:, ::2], before.doubts[:, ::2])


def test_rounds_of_actions_that_go_are_no_longer_kept():
    contexts, models, targets = rounds(200)
    forest = forest_of(contexts, models, targets)
    forest.renumber(np.array([1, -1, 0]))
    stay = models != 1
    n = stay.sum()
    assert forest.kept[0] == n
    assert_array_equal(forest.models[:n], np.array([1, -1, 0])[models[stay]])
    assert_array_equal(forest.targets[:n], targets[stay])
    assert_array_equal(forest.contexts[:, :n], contexts[stay].T)
    forest.renumber(np.array([-1, -1, -1]))
    assert forest.kept[0] == 0


def test_rounds_of_a_forest_that_is_done_stay_as_they_are():
    forest = forest_of(*rounds(KEPT))
    before = copy_state(forest)
    forest.renumber(np.array([-1, 0, 1]))
    assert_array_equal(forest.models, before.models)
    assert forest.kept[0] == KEPT
    assert forest.is_sound


def test_a_tree_that_grows_again_before_the_others_counts_once():
    """As where actions go early and take their rounds along."""
    learner = taught(learner_with(TREES), *rounds(FEWEST))
    for _ in range(TREES):
        assert learner.forest.grown[0] == 1
        learner.renumber(np.array([0, -1, -1]))
        n = int(learner.forest.kept[0])
        assert 0 < n < FEWEST
        taught(learner, *rounds(FEWEST - n))
    assert learner.forest.kept[0] == FEWEST
    assert learner.now[FOREST] == 0.0


SPECS_THAT_GROW = ["epsilon-greedy:learner=adaptive", "bagging:bags=3:learner=adaptive", "melee"]
EARLY, LATE = 300, KEPT + 30


@pytest.fixture(scope="module")
def lived():
    """Models of agents that have learned for a while."""
    made: dict[tuple[str, int], bytes] = {}

    def model(spec, n):
        fresh = Model(parse_explorer(spec), 5, 0, D, K, (-1.0, 1.0))
        if (spec, n) not in made:
            contexts, models, targets = rounds(n)
            fresh.learn(contexts, models, np.clip(targets, -1.0, 1.0), np.full(n, 0.5))
            about, arrays = fresh.to_parts()
            made[spec, n] = pack(about, arrays)
        return Model.from_parts(fresh.explorer, 5, (-1.0, 1.0), *unpack(made[spec, n], "here"))

    return model


def learner_of(model):
    (learner,) = growth.learners(model.state)
    return learner


def said(model, contexts, actions, n_actions):
    """What the learner and its forest say of some actions, in every block of models."""
    learner = learner_of(model)
    rows = [first + a for first in range(0, len(learner.average.ratio), n_actions) for a in actions]
    n_hidden = learner.wide.toward.shape[1] - learner.plain.toward.shape[1]
    found = []
    for x in contexts:
        wide = np.concatenate([x, np.zeros(n_hidden), [1.0]])
        find(learner.forest, wide)
        found.append([(predict(learner, wide, row), said_of(learner.forest, row)) for row in rows])
    return np.array(found)


def go_on(model, n, d, n_actions):
    rng = np.random.default_rng(9)
    rewards, actions = rng.random(n), rng.integers(n_actions, size=n)
    model.learn(rng.normal(size=(n, d)), actions, rewards, np.full(n, 0.5))
    assert learner_of(model).forest.is_sound


@pytest.mark.parametrize("n", [EARLY, LATE])
@pytest.mark.parametrize("spec", SPECS_THAT_GROW)
def test_what_stays_is_predicted_as_before(lived, spec, n):
    contexts = rounds(9, seed=3)[0]
    changes = [
        # features, where each action is now, how many there are
        (D, [0, -1, 1], 2),
        (D, [1, -1, 0], 4),
        (D, [0, 1, 2], 5),
        (D + 3, [0, 1, 2], 3),
        (D + 2, [2, 0, -1], 4),
    ]
    for d, kept, k in changes:
        model = lived(spec, n)
        assert is_grown(learner_of(model).forest)
        stay = [a for a in range(K) if kept[a] >= 0]
        before = said(model, contexts, stay, K)
        model.resize(d, [0.0] * d, np.array(kept), k, 0.5)
        wider = np.hstack([contexts, np.zeros((9, d - D))])
        assert_allclose(said(model, wider, [kept[a] for a in stay], k), before, atol=1e-12)
        go_on(model, 40, d, k)
        assert learner_of(model).forest.grown[0] == TREES


@pytest.mark.parametrize("spec", SPECS_THAT_GROW)
def test_rounds_that_are_kept_are_renumbered_in_every_block(lived, spec):
    model = lived(spec, EARLY)
    forest = copy_state(learner_of(model).forest)
    model.resize(D, [0.0] * D, np.array([2, -1, 0]), 4, 0.5)
    now, n = learner_of(model).forest, int(forest.kept[0])
    block, action = np.divmod(forest.models[:n], K)
    stay = action != 1
    assert now.kept[0] == stay.sum() < n
    expected = 4 * block[stay] + np.array([2, -1, 0])[action[stay]]
    assert_array_equal(now.models[: stay.sum()], expected)
    assert len(np.unique(block)) == now.values.shape[1] // 4


def test_without_a_feature_nothing_is_kept():
    learner = Adaptive.start(2, 1, 0, 0.2, 6.0, exact=True, n_trees=TREES)
    for i in range(2 * FEWEST):
        observe(learner, np.ones(1), i % 2, float(i % 3), 1.0)
    assert learner.forest.kept[0] == learner.now[FOREST] == 0.0


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [FEWEST + 20, EARLY])
def test_an_agent_that_is_saved_while_it_keeps_rounds_goes_on_bit_by_bit(n):
    agent = small_agent("melee", n_rounds=n)
    loaded = Agent.from_bytes(agent.to_bytes())
    for number in range(n, n + 2 * FEWEST):
        context = named_context(number)
        ours, theirs = agent.act(context, id=str(number)), loaded.act(context, id=str(number))
        assert ours == theirs
        agent.learn(ours.id, reward_of(number, ours.action))
        loaded.learn(theirs.id, reward_of(number, theirs.action))
    assert loaded.fingerprint == agent.fingerprint


@pytest.fixture(scope="module")
def content():
    return small_agent("melee", n_rounds=EARLY).to_bytes()


def changed(content, changes):
    """The file with some numbers of its forest replaced: name, place from the front, value."""
    about, arrays = unpack(content, "here")
    for name, place, value in changes:
        (path,) = [path for path in arrays if path.endswith(f".forest.{name}")]
        arrays[path] = arrays[path].copy()
        arrays[path].flat[place] = value
    return pack(about, arrays)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("columns", 0, 10**6),
        ("columns", 0, -2),
        ("columns", NODES - 1, 0),  # it has no room for children
        ("children", 0, 0),  # back to itself
        ("children", 0, -1),
        ("children", 0, NODES - 1),  # the second of the two is beyond
        ("children", NODES - 1, LEAVES),
        ("children", NODES - 1, -1),
        ("models", 0, len(ACTIONS)),
        ("models", EARLY - 1, -1),
        ("kept", 0, KEPT + 1),
        ("kept", 0, -1),
        ("grown", 0, -1),
        ("grown", 0, TREES + 1),
        ("seen", 3, 0.0),
        ("doubts", 3, -1.0),
        ("weights", 3, -1.0),
        ("places", 3, 1e200),
        ("contexts", 3, 1e200),
        ("values", 3, np.inf),
        ("targets", 3, np.nan),
    ],
)
def test_files_whose_forest_names_what_does_not_exist_are_refused(content, name, place, value):
    Agent.from_bytes(content)
    with pytest.raises(DataError):
        Agent.from_bytes(changed(content, [(name, place, value)]))


def test_models_of_rounds_that_nobody_looks_at_may_be_anything(content):
    Agent.from_bytes(changed(content, [("models", EARLY, 10**6)]))


whole = st.one_of(st.integers(-2, NODES + 1), st.integers(-(2**63), 2**63 - 1))
numbers_of_nodes = st.tuples(
    st.sampled_from(["columns", "children"]), st.integers(0, TREES * NODES - 1), whole
)
others = st.tuples(st.sampled_from(["kept", "grown"]), st.just(0), whole)
of_rounds = st.tuples(st.just("models"), st.integers(0, KEPT - 1), whole)


@settings(suppress_health_check=list(HealthCheck), max_examples=60, deadline=None)
@given(changes=st.lists(st.one_of(numbers_of_nodes, others, of_rounds), min_size=1, max_size=4))
def test_a_file_with_any_numbers_in_its_forest_is_refused_or_works(content, changes):
    try:
        agent = Agent.from_bytes(changed(content, changes))
    except DataError:
        return
    for number in range(4):
        decision = agent.act(named_context(number))
        assert sum(decision.probabilities) == pytest.approx(1.0)
        agent.learn(decision.id, 0.5)
    agent.remove_actions(["politics"])
    agent.learn(agent.act(named_context(5)).id, 0.5)
