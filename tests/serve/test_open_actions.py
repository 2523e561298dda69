"""Some actions are open, over HTTP: in one decision, in each of many, in a ranking."""

import pytest

from melee.auditing import audit
from melee.client.calls import Calls
from melee.decision import Decision
from melee.journal import Journal
from tests.serve.servers import Local

LABELS = ["a", "b", 3, {"tuple": ["d", 4]}]


@pytest.fixture
def shop(tmp_path):
    given = {"agent": {"actions": ["a", "b", 3, ("d", 4)], "explorer": "linucb"}}
    service = Local(tmp_path / "data", given)
    yield service
    service.close()


def ask(shop, **body):
    return shop.ask("POST", "/v1/decisions", body)


def test_one_decision_among_some_is_repeated_and_explained(shop):
    some = [{"tuple": ["d", 4]}, "a"]
    status, made = ask(shop, context={"x": 1}, actions=some, id="one", explain=True)
    assert (status, made["actions"]) == (200, ["a", {"tuple": ["d", 4]}])
    assert len(made["explanation"]["actions"]) == 2
    status, again = ask(shop, context={"x": 1}, actions=some[::-1], id="one")
    assert (status, again["action"]) == (200, made["action"])
    assert ask(shop, context={"x": 1}, actions=["a", "b"], id="one")[0] == 409
    assert ask(shop, context={"x": 1}, id="one")[0] == 409


def test_each_of_many_contexts_has_its_own(shop):
    contexts, ids = [{"x": 1}, {"x": 2}, {"x": 3}], ["i", "j", "k"]
    each = [["a", "b"], None, [{"tuple": ["d", 4]}]]
    status, made = ask(shop, contexts=contexts, actions=each, ids=ids)
    assert status == 200
    assert [one["actions"] for one in made["decisions"]] == [["a", "b"], LABELS, LABELS[3:]]
    assert ask(shop, contexts=contexts, actions=each, ids=ids) == (200, made)
    more = ask(shop, contexts=[*contexts, {"x": 4}], actions=[*each, ["b", 3]], ids=[*ids, "l"])[1][
        "decisions"
    ]
    assert more[:3] == made["decisions"]
    assert more[3]["actions"] == ["b", 3]
    rest = {"contexts": [{"x": 1}, {"x": 5}, {"x": 6}], "ids": ["i", "m", "n"]}
    last = ask(shop, actions=[["a", "b"], None, None], **rest)[1]["decisions"]
    assert [one["actions"] for one in last] == [["a", "b"], LABELS, LABELS]
    other = [["a", 3], None, [{"tuple": ["d", 4]}]]
    assert ask(shop, contexts=contexts, actions=other, ids=ids)[0] == 409
    for_all = ask(shop, contexts=contexts, actions=["a", "b", 3])[1]["decisions"]
    assert [one["actions"] for one in for_all] == [["a", "b", 3]] * 3


def test_a_ranking_among_some(shop):
    status, made = ask(shop, context={"x": 1}, actions=["a", "b", 3], top=2, id="r")
    assert status == 200
    assert [len(place["actions"]) for place in made["places"]] == [3, 2]
    assert ask(shop, context={"x": 1}, actions=["a", "b", 3], top=2, id="r") == (200, made)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"context": {"x": 1}, "actions": ["z"]}, "action 'z' does not exist"),
        ({"context": {"x": 1}, "actions": ["a", "a"]}, "action 'a' is given twice"),
        ({"context": {"x": 1}, "actions": []}, "there are no actions"),
        ({"context": {"x": 1}, "actions": [["a"]]}, "is not the label of an action"),
        ({"contexts": [{"x": 1}], "actions": [["z"]]}, "number 0 of the contexts: action 'z'"),
        ({"contexts": [{"x": 1}], "actions": [[]]}, "there are no actions"),
        ({"contexts": [{"x": 1}], "actions": [["a"], ["b"]]}, "2 lists of actions for 1 contexts"),
        ({"contexts": [{"x": 1}] * 2, "actions": [["a"], "b"]}, "actions is 'b'; expected a list"),
    ],
)
def test_bad_ones_are_refused_with_a_sentence(shop, body, sentence):
    before = shop.service.agents["agent"].agent.fingerprint
    status, said = ask(shop, **body)
    assert status == 400
    assert sentence in str(said)
    assert shop.service.agents["agent"].agent.fingerprint == before


def test_a_client_names_them_too(shop, tmp_path):
    each = [["a", ("d", 4)], None, {"b"}]
    asked = Calls("", None).act_many([{"x": 1}] * 3, each, None)
    status, made = shop.ask(asked.method, asked.path, asked.body)
    assert status == 200
    known = ("a", "b", 3, ("d", 4))
    assert [one.actions for one in asked.read(made)] == [("a", ("d", 4)), known, ("b",)]
    single = Calls("", None).act({"x": 1}, [("d", 4)], None, None, None)
    decision = single.read(shop.ask(single.method, single.path, single.body)[1])
    assert isinstance(decision, Decision)
    assert (decision.action, decision.probability) == (("d", 4), 1.0)
    assert audit(Journal(tmp_path / "data", writing=False)).difference is None
