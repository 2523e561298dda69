"""Some actions are open: wherever a caller can say so, and what is said where one cannot."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from melee import Agent, InputError
from melee.auditing import audit
from melee.journal import Journal

ACTIONS = ["a", "b", "c", ("d", 4), 5]
SPECS = ["melee", "linucb", "cover", "eg-epsilon-greedy", "banditron", "bagging:bags=4"]


def lived(spec="melee", n=40, **options):
    """An agent that has learned something, always among all actions."""
    agent, rng = Agent(ACTIONS, spec, seed=3, **options), np.random.default_rng(1)
    for _ in range(n):
        size = float(rng.normal())
        decision = agent.act({"size": size, "kind": f"k{rng.integers(3)}"})
        agent.learn(decision.id, float(size * ACTIONS.index(decision.action) > 0.5))
    return agent


def asked(n, seed=2):
    """Contexts, and the actions that are open in each; None for all."""
    rng = np.random.default_rng(seed)
    contexts = [{"size": float(rng.normal()), "kind": f"k{i % 3}"} for i in range(n)]
    opened = []
    for i in range(n):
        some = [ACTIONS[a] for a in rng.permutation(5)[: 1 + i % 4]]
        opened.append(None if i % 5 == 0 else some)
    return contexts, opened


def known(agent):
    """All that lasts of what it has learned."""
    return {path: array.tolist() for path, array in agent._knowledge.model.to_parts()[1].items()}


@pytest.mark.parametrize("spec", SPECS)
def test_many_at_once_have_open_actions_of_their_own(spec):
    one, many = lived(spec), lived(spec)
    contexts, opened = asked(12)
    separately = [
        one.act(context, actions=some) for context, some in zip(contexts, opened, strict=True)
    ]
    together = many.act_many(contexts, actions=opened)
    assert together == separately
    assert known(many) == known(one)
    for decision, some in zip(together, opened, strict=True):
        assert set(decision.actions) == set(ACTIONS if some is None else some)
        assert_allclose(sum(decision.probabilities), 1.0)
    assert many.learn_many(together, [1.0] * 12) == one.learn_many(separately, [1.0] * 12)
    assert known(many) == known(one)


def test_lists_of_open_actions_come_as_a_column_sets_or_arrays():
    agents = [lived("linucb", 5) for _ in range(4)]
    contexts = [{"size": 1.0}, {"size": 2.0}]
    ids = ["one", "two"]
    first = agents[0].act_many(contexts, actions=[["a", "b"], ["a", 5]], ids=ids)
    table = pd.DataFrame({"size": [1.0, 2.0], "open": [["a", "b"], ["a", 5]]})
    assert agents[1].act_many(table[["size"]], actions=table["open"], ids=ids) == first
    assert agents[2].act_many(contexts, actions=[{"b", "a"}, {5, "a"}], ids=ids) == first
    arrays = np.array([["a", "b"], ["a", 5]], dtype=object)
    assert agents[3].act_many(contexts, actions=arrays, ids=ids) == first


def test_a_tuple_is_a_label_and_no_list():
    agent = lived("linucb", 5)
    made = agent.act_many([{"size": 1.0}] * 2, actions=[("d", 4), "a"])
    assert [decision.actions for decision in made] == [("a", ("d", 4))] * 2


def test_no_contexts_need_no_actions():
    assert lived("linucb", 5).act_many([], actions=["a"]) == []


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_asked_about_is_what_is_decided_and_explained(spec):
    agent = lived(spec)
    context, some = {"size": 0.7, "kind": "k1"}, ["c", 5, "a"]
    before = agent.fingerprint
    pmf = agent.pmf(context, actions=some)
    why = agent.explain(context, actions=some)
    assert agent.fingerprint == before
    assert {each.action: each.probability for each in why.actions} == pmf
    agent.act(context, actions=some)  # from here on the guard of melee keeps no account
    decision = agent.act(context, actions=some)
    assert decision.pmf == agent.pmf(context, actions=reversed(some))
    explained = agent.explain(decision)
    assert {each.action: each.probability for each in explained.actions} == decision.pmf
    alone = {each.action: each.prediction for each in agent.explain(context).actions}
    assert all(each.prediction == alone[each.action] for each in explained.actions)
    assert agent.pmf(context, actions=["b"]) == {"b": 1.0}


@pytest.mark.parametrize("spec", SPECS)
def test_a_ranking_among_some_is_a_decision_after_the_other(spec):
    agent, other = lived(spec), lived(spec)
    context, some = {"size": 0.7, "kind": "k1"}, ["c", 5, "a", "b"]
    ranking = agent.act(context, actions=some, top=3, id="r")
    left = list(some)
    for place in ranking.places:
        assert place == other.act(context, actions=left, id=place.id)
        left.remove(place.action)
    assert set(ranking.actions) <= set(some)
    whole = agent.act(context, top=5)
    assert set(whole.actions) == set(ACTIONS)


def test_a_journal_has_them_and_an_audit_derives_them(tmp_path):
    agent = Agent(ACTIONS, "melee", journal=tmp_path)
    contexts, opened = asked(10)
    for _ in range(3):
        decisions = agent.act_many(contexts, actions=opened)
        agent.learn_many(decisions, [float(i % 2) for i in range(10)])
        ranking = agent.act(contexts[0], actions=["a", "c", 5], top=2)
        agent.learn(ranking.places[0], 1.0)
        agent.act(contexts[1], actions=["b", "c"])
    agent.close()
    found = audit(Journal(tmp_path, writing=False))
    assert (found.n_decisions, found.difference) == (39, None)
    again = Agent(ACTIONS, "melee", journal=tmp_path)
    assert again.fingerprint == found.fingerprint == agent.fingerprint
    why = again.explain(decisions[3])  # which waits no longer
    assert {each.action: each.probability for each in why.actions} == decisions[3].pmf
    again.close()


def test_a_saved_agent_is_ready_for_some_actions():
    agent = lived("linucb", 5)
    assert len(agent._knowledge.programs) == 2
    agent.act({"size": 1.0}, actions=["a", "b"])
    assert len(agent._knowledge.programs) == 3
    again = Agent.from_bytes(agent.to_bytes())
    assert len(again._knowledge.programs) == 3
    assert again.ready


BAD = {
    "unknown": (["a", "weather"], "action 'weather' does not exist: there are 5 actions, 'a', 'b'"),
    "twice": (["a", "b", "a"], "action 'a' is given twice; give each once"),
    "none": ([], "there are no actions; expected at least one"),
    "a text": ("a", "actions are 'a'; expected a list of labels"),
    "features": ({"a": {}}, "Candidates with features are for one that was made without"),
    "a table": (pd.DataFrame({"x": [1.0]}, index=["a"]), "Candidates with features are for one"),
    "a list inside": ([["a"]], r"is no label; expected a hashable value"),
}


@pytest.mark.parametrize(("some", "sentence"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("call", ["act", "pmf", "explain", "act_many", "each", "top"])
def test_bad_ones_get_a_sentence_and_change_nothing(call, some, sentence):
    agent, context = lived("linucb", 5), {"size": 1.0, "kind": "new"}
    calls = {
        "act": lambda: agent.act(context, actions=some),
        "pmf": lambda: agent.pmf(context, actions=some),
        "explain": lambda: agent.explain(context, actions=some),
        "act_many": lambda: agent.act_many([context] * 2, actions=some),
        "each": lambda: agent.act_many([context] * 2, actions=[["a"], some]),
        "top": lambda: agent.act(context, actions=some, top=1),
    }
    if call == "act_many" and isinstance(some, list) and some == [["a"]]:
        sentence = "1 lists of actions for 2 contexts; expected one for each, or one for all"
    if call == "each":
        sentence = f"the actions of number 1 of the contexts: .*{sentence}"
    before = agent.fingerprint
    with pytest.raises(InputError, match=sentence):
        calls[call]()
    assert agent.fingerprint == before


def test_a_ranking_of_more_than_are_open_is_refused():
    with pytest.raises(InputError, match="top is 3 and there are 2 actions to choose from"):
        lived("linucb", 5).act({"size": 1.0}, actions=["a", "b"], top=3)
