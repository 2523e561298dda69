"""Explanations: what they say of every action, in what units, and that nothing changes by them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from melee import Agent, InputError
from melee.agent import explaining
from melee.agent.explanation import Explained, Explanation, Influence
from melee.contexts import Named
from melee.learners.sgd import Sgd
from tests.news import SPECS, News, live

ACTIONS = ["sports", "politics", "science"]
PHONE = {"age": 25, "device": "phone", "subscriber": True}
SILENT = ("uniform", "banditron")
"""Explorers that predict no rewards."""
SUMS = ["linucb", "gated-ucb", "regcb-opt", "melee"]
"""Explorers that play the highest sum of prediction and bonus."""


def lived(spec="melee", n_rounds=60, actions=ACTIONS, seed=0, **settings):
    agent = Agent(actions, spec, seed=seed, **settings)
    live(agent, News(seed=seed), n_rounds)
    return agent


def by_action(explanation):
    return {one.action: one for one in explanation.actions}


# -- every explorer ----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_every_explorer_is_explained_and_nothing_changes(spec):
    agent = lived(spec)
    agent.act(PHONE, id="waits")
    agent.learn({"device": "tablet"}, "science", 1.0, 0.5)
    before = agent.to_bytes()
    twin = Agent.from_bytes(before)
    chances = agent.pmf(PHONE)
    for subject, actions in [(PHONE, None), (PHONE, ACTIONS[:2]), ("waits", None)]:
        explanation = agent.explain(subject, actions=actions)
        open_actions = ACTIONS if actions is None else actions
        assert {one.action for one in explanation.actions} == set(open_actions)
        assert_allclose(sum(one.probability for one in explanation.actions), 1.0)
        assert any(one.features for one in explanation.actions) == (spec not in SILENT)
        for one in explanation.actions:
            assert (one.prediction is None) == (spec in SILENT)
            if actions is None:
                assert one.probability == chances[one.action]
    assert agent.to_bytes() == before
    world = News(seed=9)
    for i in range(20):
        context = world.reader()
        decision = agent.act(context, id=f"next {i}")
        assert decision == twin.act(context, id=f"next {i}")
        reward = world.reward(context, decision.action)
        agent.learn(decision, reward)
        twin.learn(decision.id, reward)
    assert agent.to_bytes() == twin.to_bytes()


@pytest.mark.parametrize("spec", SUMS)
@pytest.mark.parametrize("n_rounds", [3, 280])
def test_the_highest_sum_of_prediction_and_bonus_is_played(spec, n_rounds):
    agent, world = lived(spec, n_rounds, reward_range=(0.0, 1.0)), News(seed=5)
    for _ in range(20):
        first, *others = agent.explain(world.reader()).actions
        if spec != "regcb-opt":  # which cuts bounds at the highest reward
            assert min(one.bonus for one in (first, *others)) >= 0.0
        highest = max(one.prediction + one.bonus for one in (first, *others))
        assert_allclose(first.prediction + first.bonus, highest, atol=1e-9)


@pytest.mark.parametrize("spec", sorted({*SPECS} - {*SUMS}))
def test_other_explorers_have_no_bonus(spec):
    assert all(one.bonus is None for one in lived(spec, 10).explain(PHONE).actions)


def test_a_guard_over_its_budget_leaves_no_bonus():
    agent = lived("melee", 30)
    inside = agent._knowledge.model.state.inner.inner
    inside.guard.seen[0] = 1e9
    explained = agent.explain(PHONE).actions
    assert [one.bonus for one in explained] == [0.0] * 3
    assert explained[0].prediction == max(one.prediction for one in explained)


def test_a_guard_among_unfamiliar_inputs_adds_one_standard_deviation():
    agent = lived("melee", 30)
    policy = agent._knowledge.model.state.inner.inner.policy
    policy.low[:] = policy.high[:] = -1e6
    for one in agent.explain(PHONE).actions:
        assert_allclose(one.bonus, one.uncertainty)


def test_uncertainty_is_the_spread_of_the_learner_or_of_the_vote():
    assert all(one.uncertainty is None for one in lived("epsilon-greedy").explain(PHONE).actions)
    young, old = (lived("linucb", n).explain(PHONE).actions for n in (10, 200))
    assert min(one.uncertainty for one in young) > max(one.uncertainty for one in old) > 0.0
    bags = lived("bagging:bags=4", reward_range=(0.0, 1.0))
    state = bags._knowledge.model.state
    row = np.empty(bags._knowledge.features.n_features)
    bags._knowledge.features.encode({**PHONE, "age": 25.0, "subscriber": 1.0}, row)
    x = np.append((row - state.scaling.shift_scale[0]) * state.scaling.shift_scale[1], 1.0)
    x[:-1] = np.clip(x[:-1], -5.0, 5.0) / np.sqrt(len(row))
    learner = state.inner.polopt.learner
    assert isinstance(learner, Sgd)
    votes = (learner.weights @ x).reshape(4, 3)
    for i, action in enumerate(ACTIONS):
        said = by_action(bags.explain(PHONE))[action]
        assert_allclose(said.prediction, votes[:, i].mean())
        assert_allclose(said.uncertainty, votes[:, i].std())


# -- predictions and what they depend on -------------------------------------------------------


def test_a_linear_model_is_explained_by_its_weights():
    agent = Agent(ACTIONS, "linucb:alpha=0.3", reward_range=(0.0, 1.0))
    rng = np.random.default_rng(3)
    for _ in range(300):
        x = rng.normal(2.0, 3.0, size=4)
        agent.learn(x, ACTIONS[rng.integers(3)], float(x[1] > 2.0), 0.5)
    context = np.array([1.0, 4.0, 0.0, 2.5])
    state = agent._knowledge.model.state
    shift, scale = state.scaling.shift_scale
    x = np.append((context - shift) * scale / 2.0, 1.0)
    ridge = state.inner.polopt.learner
    for i, action in enumerate(ACTIONS):
        said = by_action(agent.explain(context))[action]
        spread = np.sqrt(x @ ridge.inverse[i] @ x)
        assert_allclose(said.prediction, ridge.weights[i] @ x)
        assert_allclose([said.uncertainty, said.bonus], [spread, 0.3 * spread])
        effects = {part.name: part.effect for part in said.features}
        for j in range(4):
            assert_allclose(effects[f"x{j}"], ridge.weights[i, j] * x[j])
        assert said.features[0].name == "x1"
        assert said.features[0].value == 4.0


@pytest.mark.parametrize("spec", ["melee", "softmax:loss=logistic", "cover", "thompson:hidden=8"])
def test_an_effect_is_the_change_from_the_prediction_for_the_usual_value(spec):
    agent = lived(spec, 80)
    usual = agent._knowledge.model.state.scaling.shift_scale[0]
    context = {"age": 70, "device": "desktop", "subscriber": False, "likes": ["art"]}
    age = usual[agent.feature_names_.index("age")]
    assert 18 < age < 80
    usual[agent.feature_names_.index("age is present")] = 1.0  # as in both contexts
    there, usually = (by_action(agent.explain(one)) for one in (context, {**context, "age": age}))
    for action in ACTIONS:
        effects = {part.name: part.effect for part in there[action].features}
        difference = there[action].prediction - usually[action].prediction
        assert_allclose(effects["age"], difference, atol=1e-12)
        assert "age" not in {part.name for part in usually[action].features}


def test_what_matters_comes_first():
    said = by_action(lived(n_rounds=600).explain({"age": 70, "device": "phone"}))
    assert said["sports"].features[0][:2] == ("device", "phone")
    assert said["politics"].features[0][:2] == ("age", 70.0)
    assert min(said[one].features[0].effect for one in ("sports", "politics")) > 0.1
    assert max(abs(part.effect) for part in said["science"].features) < 0.1
    for one in said.values():
        sizes = [abs(part.effect) for part in one.features]
        assert sizes == sorted(sizes, reverse=True)


def test_what_is_missing_matters_too():
    agent = Agent([0, 1], "linucb")
    for i in range(60):
        agent.learn({"age": 30 + i % 7} if i % 2 else {"other": "a"}, 0, float(i % 2), 0.5)
    (part,) = (p for p in by_action(agent.explain({}))[0].features if p.name == "age")
    assert part.value is None
    assert part.effect < -0.05
    assert by_action(agent.explain({}))[1].features == ()  # nothing was learned of it


def test_names_that_share_buckets_are_told_apart():
    agent = Agent([0, 1], "linucb", max_features=8)
    rng = np.random.default_rng(1)
    contexts: list[Named] = []
    for _ in range(200):
        context: Named = {f"n{i}": float(rng.integers(2)) for i in range(9)}
        contexts.append({**context, "late": str(rng.choice(["yes", "no", "perhaps"]))})
    rewards = [float(context["late"] == "yes") for context in contexts]
    with pytest.warns(UserWarning, match="share"):
        agent.learn_many(contexts, [0] * 200, rewards, [0.5] * 200)
    features = agent._knowledge.features
    assert features.columns["late"].levels == {}
    row, expected = np.empty(features.n_features), np.empty(features.n_features)
    usual = np.full(features.n_features, 0.25)
    asked: list[Named] = [{"late": "yes", "n1": 1.0}, {"n3": 0.0, "n8": 1.0}, {"new": ("a", "b")}]
    for context in asked:
        for name, value in context.items():
            features.encode(context, row)
            features.leave_out(name, value, usual, row)
            features.encode({k: v for k, v in context.items() if k != name}, expected)
            if name in features.columns:
                column = features.columns[name]
                own = [column.number, column.missing, column.present]
                expected[[one for one in own if one >= 0]] = 0.25
            assert_allclose(row, expected, atol=1e-12)
    names = {part.name for part in by_action(agent.explain({"late": "yes"}))[0].features}
    assert "late" in names


def test_of_many_names_those_furthest_from_the_usual_are_tried(monkeypatch):
    agent = Agent([0, 1], "linucb")
    rng = np.random.default_rng(2)
    for _ in range(40):
        x = rng.normal(size=6)
        agent.learn(x, 0, float(x[0] > 0.0), 0.5)
    x = np.array([0.5, 0.5, 0.5, -40.0, 0.5, 0.5])
    assert len(by_action(agent.explain(x))[0].features) == explaining.N_FEATURES
    monkeypatch.setattr(explaining, "MOST_TRIED", 1)
    assert [part.name for part in by_action(agent.explain(x))[0].features] == ["x3"]
    named = lived("linucb")
    far = by_action(named.explain({"age": 1000, "device": "phone"}))["sports"].features
    assert [part.name for part in far] == ["age"]


def test_contexts_of_all_forms_are_explained_alike():
    agent = lived("linucb", 300)
    table = pd.DataFrame([{"age": 25, "device": "phone", "subscriber": True}])
    assert agent.explain(table) == agent.explain(table.iloc[0]) == agent.explain(PHONE)
    numbers = Agent([0, 1], "linucb")
    numbers.learn([1.0, 2.0], 0, 1.0, 0.5)
    numbers.learn([2.0, 1.0], 1, 0.0, 0.5)
    assert numbers.explain([1.0, 3.0]) == numbers.explain(np.array([1.0, 3.0]))


# -- units of reward ---------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["melee", "linucb", "epsilon-greedy"])
def test_everything_is_in_units_of_reward(spec):
    agents, world = [Agent(ACTIONS, spec), Agent(ACTIONS, spec)], News(seed=4)
    for _ in range(300):
        context = world.reader()
        one, other = (agent.act(context) for agent in agents)
        assert one.action == other.action
        reward = world.reward(context, one.action)
        agents[0].learn(one, reward)
        agents[1].learn(other, 1000.0 * reward - 50.0)
    plain, scaled = (by_action(agent.explain(PHONE)) for agent in agents)
    for action, said in plain.items():
        there = scaled[action]
        assert -0.5 < said.prediction < 1.5
        assert_allclose(there.prediction, 1000.0 * said.prediction - 50.0, rtol=1e-6)
        for name in ("uncertainty", "bonus"):
            if getattr(said, name) is not None:
                assert_allclose(getattr(there, name), 1000.0 * getattr(said, name), rtol=1e-6)
        for part, same in zip(said.features, there.features, strict=True):
            assert part.name == same.name
            assert_allclose(same.effect, 1000.0 * part.effect, rtol=1e-6)


def test_a_prediction_needs_a_unit():
    agent = Agent(ACTIONS)
    assert [one.prediction for one in agent.explain(PHONE).actions] == [None] * 3
    agent.learn(PHONE, "sports", 7.0, 0.5)
    assert [one.prediction for one in agent.explain(PHONE).actions] == [None] * 3
    agent.learn(PHONE, "politics", 9.0, 0.5)
    said = by_action(agent.explain(PHONE))
    assert 7.0 < said["sports"].prediction < said["politics"].prediction < 9.0
    declared = Agent(ACTIONS, reward_range=(0.0, 10.0))
    assert None not in [one.prediction for one in declared.explain(PHONE).actions]


# -- decisions ---------------------------------------------------------------------------------


def test_a_decision_has_the_probabilities_it_was_made_by():
    agent = lived("softmax")
    decision = agent.act(PHONE, actions=["science", "sports"])
    fresh = agent.explain(decision)
    assert (fresh.id, fresh.chosen, fresh.since) == (decision.id, decision.action, 0)
    live(agent, News(seed=8), 30)
    later = agent.explain(decision)
    for said in (fresh, later):
        assert {one.action: one.probability for one in said.actions} == decision.pmf
        assert said.recalled
    assert later.since == 30
    now = agent.explain(PHONE, actions=["science", "sports"])
    assert [one.prediction for one in now.actions] == [one.prediction for one in later.actions]
    assert not now.recalled


def test_an_id_is_enough_with_a_log(tmp_path):
    agent = lived("softmax", log=tmp_path / "log.jsonl")
    decision = agent.act(PHONE, actions=["science", "sports"])
    live(agent, News(seed=8), 30)
    assert agent.explain(decision.id) == agent.explain(decision)


def test_without_a_log_an_id_recalls_what_nothing_has_changed():
    agent = lived("softmax")
    decision, among = agent.act(PHONE), agent.act(PHONE, actions=["science", "sports"])
    assert agent.explain(decision.id) == agent.explain(decision)
    with pytest.raises(InputError, match=r"among other actions than all, .* pass the Decision"):
        agent.explain(among.id)
    assert agent.explain(among.id, actions=["sports", "science"]) == agent.explain(among)
    live(agent, News(seed=8), 5)
    later = agent.explain(decision.id)
    assert (later.since, later.recalled) == (5, False)
    assert {one.action: one.probability for one in later.actions} == agent.pmf(PHONE)


def test_actions_that_are_gone_keep_their_probability_only():
    agent = lived("softmax")
    decision = agent.act(PHONE)
    agent.remove_actions(["politics"])
    said = by_action(agent.explain(decision))
    assert said["politics"] == Explained("politics", decision.pmf["politics"], None, None, None, ())
    assert said["sports"].prediction == by_action(agent.explain(PHONE))["sports"].prediction
    only = agent.act(PHONE, actions=["sports"])
    agent.remove_actions(["sports"])
    assert by_action(agent.explain(only))["sports"].prediction is None


def test_new_features_and_actions_are_explained():
    agent = lived("melee", 300)
    agent.add_actions(["weather"])
    for i in range(40):
        agent.learn({**PHONE, "rain": float(i % 2)}, "weather", float(i % 2), 0.5)
    said = by_action(agent.explain({**PHONE, "rain": 1.0}))["weather"]
    assert "rain" in {part.name for part in said.features}


# -- errors ------------------------------------------------------------------------------------


def test_what_cannot_be_explained_is_refused_with_advice():
    agent = lived("linucb", 10)
    decision = agent.act(PHONE)
    other = Agent(ACTIONS, "linucb").act(PHONE, id="elsewhere")
    refused = {
        "decision 'never' is not known, .* pass the context": ("never", None),
        "decision 'elsewhere' is not known": (other, None),
        "knows the actions that were open; leave actions out": (decision, ACTIONS),
        "is not among the actions": (decision.id, [a for a in ACTIONS if a != decision.action]),
        "action 'weather' does not exist": (PHONE, ["weather"]),
        "there are no actions": (PHONE, []),
        "the context is 2 numbers; expected a dict": ([1.0, 2.0], None),
        "expected a dict of names and values, a row": (7, None),
        "expected a number, a text": ({"age": object()}, None),
    }
    for sentence, (subject, actions) in refused.items():
        with pytest.raises(InputError, match=sentence):
            agent.explain(subject, actions=actions)
    agent.learn(decision, 1.0)
    for subject in (decision, decision.id):
        with pytest.raises(InputError, match=r"does not wait for its reward any more, .* context"):
            agent.explain(subject)


def test_the_decision_of_another_agent_is_refused():
    agent, other = lived("softmax", 30), lived("softmax", 30, seed=1)
    agent.act(PHONE, id="same")
    with pytest.raises(InputError, match="not the one that was made here"):
        agent.explain(other.act(PHONE, id="same"))


def test_a_first_context_does_not_decide_what_contexts_are():
    agent = Agent(ACTIONS)
    agent.explain([1.0, 2.0])
    agent.act(PHONE)


# -- looking at it -----------------------------------------------------------------------------


def made(n_actions=2, **about):
    parts = (Influence("age", 25.0, 0.25), Influence("<b>", "a\n&", -0.0004))
    rows = [Explained(f"a{i}", 1.0 / n_actions, 0.5, None, 0.1, parts) for i in range(n_actions)]
    return Explanation(tuple(rows), "melee@1", **about)


def test_an_explanation_is_a_small_table():
    lines = str(made()).splitlines()
    assert lines[0] == "what melee@1 would do"
    assert lines[1].split()[:4] == ["action", "probability", "prediction", "±"]
    assert (
        lines[2] == "a0            0.500       0.500  –  0.100  age=25 +0.250, <b>='a\\n&' -0.0004"
    )
    assert str(made(20)).splitlines()[-1] == "… and 8 more"
    text = str(made(id="r\x1b1", chosen=("a", 1), since=1, recalled=True))
    assert "decision 'r\\x1b1': ('a', 1), by melee@1; the agent is 1 version further, " in text
    assert "further, predictions are of now" in text
    assert "2 versions further, probabilities and" in str(made(id="r", chosen="a", since=2))


def test_a_notebook_shows_it_escaped():
    html = made(id="<i>", chosen="<script>")._repr_html_()
    assert "&lt;b&gt;=" in html
    assert "&lt;script&gt;" in html
    assert not any(tag in html for tag in ("<b>", "<i>", "<script>"))
    assert html.count("<tr>") == 3


def test_a_table_of_it_is_pandas_own():
    agent = lived("linucb")
    table = pd.DataFrame(agent.explain(PHONE).as_table())
    assert list(table.columns) == [
        "action",
        "probability",
        "prediction",
        "uncertainty",
        "bonus",
        "features",
    ]
    assert sorted(table.action) == sorted(ACTIONS)
    first = agent.explain(PHONE).actions[0]
    assert table.features[0] == {part.name: part.effect for part in first.features}
