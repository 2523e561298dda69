"""Hostile inputs: each is refused with a sentence, and leaves an agent exactly as it was."""

import contextlib
import datetime
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from melee import Agent, DataError, Decision, InputError, MeleeError
from melee.history import History, Round
from tests.agent_lives import ACTIONS, named_context, number_context, reward_of
from tests.news import REFUSED, SPECS

GOOD = {"age": 31.0, "device": "phone"}
ROW = [1.0, 2.0, 3.0]


class Unshowable:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__


class NotANumber(float):
    def __float__(self):
        raise RuntimeError("no float")


class PretendsToBeANumber:
    def __float__(self):
        raise RuntimeError("no float")


class NotHashable:
    def __hash__(self):
        raise RuntimeError("no hash")


class NotComparable:
    __hash__ = object.__hash__

    def __eq__(self, other):
        raise RuntimeError("no eq")


class ComparableToItselfOnly:
    """Meets the dictionary of actions at the place of 'sports', and fails there."""

    def __hash__(self):
        return hash("sports")

    def __eq__(self, other):
        if other is self:
            return True
        raise RuntimeError("no eq with others")


def context(value):
    return lambda agent: agent.act(value)


def under(value):
    return lambda agent: agent.act({**GOOD, "extra": value})


def reward(value):
    return lambda agent: agent.learn("pending 0", value)


def probability(value):
    return lambda agent: agent.learn(_fitting(agent), "sports", 1.0, value)


def action(value):
    return lambda agent: agent.learn(_fitting(agent), value, 1.0, 0.5)


def among(value):
    return lambda agent: agent.act(_fitting(agent), actions=value)


def name(value):
    return lambda agent: agent.act(_fitting(agent), id=value)


def many(values, **options):
    return lambda agent: agent.act_many(values, **options)


def ids_for_two(ids):
    return lambda agent: agent.act_many([_fitting(agent), _fitting(agent)], ids=ids)


def records(**wrong):
    """Three full records, of which something is wrong in the middle."""

    def learn(agent):
        given = {
            "contexts": [_fitting(agent)] * 3,
            "actions": ["sports", 3, "politics"],
            "rewards": [1.0, 0.0, 0.5],
            "probabilities": [0.5, 0.25, 0.25],
        }
        given.update(wrong)
        return agent.learn_many(*given.values())

    return learn


def _fitting(agent):
    """A good context of the kind that the agent knows."""
    return GOOD if agent._knowledge.features.width == 0 else ROW


def decision(id):
    return Decision(id, "sports", 0.5, "linucb", 0, ("sports", 3), (0.5, 0.5))


def call(method, *args, **options):
    return lambda agent: getattr(agent, method)(*args, **options)


# What is done to an agent, by a name, and a part of the sentence that it answers.
ALWAYS: dict[str, tuple[Any, str]] = {
    # contexts of no kind
    "no context": (context(None), "expected a dict of names and values"),
    "a text as context": (context("phone"), "the context is 'phone'"),
    "bytes as context": (context(b"phone"), "expected a dict of names and values"),
    "a number as context": (context(3.5), "the context is 3.5"),
    "an object as context": (context(object()), "expected a dict of names and values"),
    "an object that cannot be shown": (context(Unshowable()), "cannot be shown"),
    "a set as context": (context({"a", "b"}), "expected a dict of names and values"),
    "a generator as context": (context(x for x in ROW), "expected a dict of names and values"),
    "a table of two rows": (context(pd.DataFrame({"a": [1, 2]})), "a table of 2 rows"),
    "an empty table": (context(pl.DataFrame({"a": []})), "a table of 0 rows"),
    "a column of polars": (context(pl.Series([1.0, 2.0])), "expected a dict"),
    # arrays
    "no numbers": (context([]), "expected numbers in one dimension"),
    "an empty array": (context(np.array([])), "expected numbers in one dimension"),
    "a matrix": (context(np.ones((2, 3))), "shape (2, 3)"),
    "a number in an array": (context(np.array(1.0)), "shape ()"),
    "a torn list": (context([[1.0], [1.0, 2.0]]), "expected numbers in one dimension"),
    "NaN in an array": (context(np.array([1.0, np.nan, 2.0])), "nan) at position 1"),
    "infinity in a list": (context([1.0, 2.0, -np.inf]), "inf) at position 2"),
    "1e200 in an array": (context(np.array([1e200, 0.0, 0.0])), "expected a finite number"),
    "a long double beyond floats": (
        context(np.array([np.longdouble("1e4000"), 0, 0])),
        "expected a finite number",
    ),
    "complex numbers": (context(np.array([1j, 0, 0])), "expected numbers"),
    "a huge int in a list": (context([10**5000, 1, 2]), "expected numbers"),
    "texts in an array": (context(np.array(["a", "b", "c"])), "expected numbers"),
    "None in a list": (context([1.0, None, 2.0]), "expected numbers"),
    "dates in an array": (context(np.array(["2026-01-01"], "M8[D]")), "expected numbers"),
    "objects in an array": (context(np.array([Unshowable()] * 3)), "expected numbers"),
    "far too many numbers": (context(np.zeros(10_001)), "10001 numbers"),
    # rewards
    "a reward that is NaN": (reward(float("nan")), "reward is nan"),
    "a reward that is infinite": (reward(float("inf")), "reward is inf"),
    "a reward of minus infinity": (reward(float("-inf")), "reward is -inf"),
    "a reward of 1e300": (reward(1e300), "expected a finite number, within ±1e100"),
    "a reward as text": (reward("1"), "reward is '1'"),
    "no reward": (reward(None), "reward is None"),
    "a reward in an array": (reward(np.array(1.0)), "expected a finite number"),
    "a reward in a list": (reward([1.0]), "reward is [1.0]"),
    "a reward in a row": (reward(np.array([1.0])), "expected a finite number"),
    "a complex reward": (reward(1 + 0j), "expected a finite number"),
    "a complex reward of NumPy": (reward(np.complex128(0.5 + 3j)), "expected a finite number"),
    "a huge reward": (reward(10**5000), "expected a finite number"),
    "a reward that cannot be shown": (reward(Unshowable()), "expected a finite number"),
    "a reward that is no float": (reward(PretendsToBeANumber()), "expected a finite number"),
    # probabilities
    "probability 0": (probability(0), "expected a number in (0, 1]"),
    "probability -1": (probability(-1), "probability is -1"),
    "probability 2": (probability(2.0), "the one that was logged"),
    "probability NaN": (probability(float("nan")), "probability is nan"),
    "probability as text": (probability("0.5"), "probability is '0.5'"),
    "no probability": (probability(None), "probability is None"),
    "a probability that cannot be shown": (probability(Unshowable()), "expected a number"),
    "a probability that is no float": (probability(PretendsToBeANumber()), "expected a number"),
    # ids
    "an unknown id": (call("learn", "nobody", 1.0), "'nobody' is not known"),
    "another reward": (call("learn", "done 0", 0.25), "send the final reward only"),
    "the decision of another": (
        lambda agent: agent.learn(decision("x-1"), 1.0),
        "'x-1' is not known",
    ),
    "a decision without a text": (
        lambda agent: agent.learn(decision([]), 1.0),
        "id",
    ),
    "an id that is a number": (name(5), "expected a text of 1 to 200 characters"),
    "an empty id": (name(""), "expected a text of 1 to 200 characters"),
    "a long id": (name("x" * 201), "expected a text of 1 to 200 characters"),
    "bytes as id": (name(b"x"), "expected a text of 1 to 200 characters"),
    "an id that cannot be shown": (name(Unshowable()), "expected a text of 1 to 200 characters"),
    "a huge int as id": (name(10**5000), "expected a text of 1 to 200 characters"),
    "the id of one that waits": (name("pending 0"), "'pending 0' is taken"),
    "the id of one that is done": (name("done 0"), "'done 0' is taken"),
    "a number as id of a reward": (call("learn", 17, 1.0), "a full record needs"),
    "None as id of a reward": (call("learn", None, 1.0), "a full record needs"),
    "bytes as id of a reward": (call("learn", b"pending 0", 1.0), "a full record needs"),
    # records that lack a part
    "an id alone": (call("learn", "pending 0"), "learn(id, reward)"),
    "an id with everything": (call("learn", "pending 0", 3, 1.0, 0.5), "and nothing else"),
    "an id with an action": (call("learn", "pending 0", action=3), "and nothing else"),
    "ids with actions": (call("learn_many", ["pending 0"], actions=[3]), "there are no rewards"),
    "ids with rewards and more": (
        call("learn_many", ["a"], [1], [1], [0.5], [1]),
        "full records need contexts",
    ),
    "a record with an action twice": (
        call("learn", GOOD, "sports", 1.0, action="sports"),
        "a full record needs",
    ),
    "a record without probability": (call("learn", GOOD, "sports", 1.0), "a full record needs"),
    "a record without action": (
        call("learn", GOOD, reward=1.0, probability=0.5),
        "a full record needs",
    ),
    "a context alone": (call("learn", GOOD), "a full record needs"),
    # actions
    "an unknown action": (action("weather"), "'weather' does not exist"),
    "a list as action": (action(["sports"]), "expected a hashable value"),
    "an array as action": (action(np.array(["sports"])), "expected a hashable value"),
    "NaN as action": (action(float("nan")), "is no label"),
    "no hash": (action(NotHashable()), "expected a hashable value"),
    "no comparison": (action(NotComparable()), "expected a hashable value"),
    "no comparison with others": (action(ComparableToItselfOnly()), "action"),
    "an action that cannot be shown": (action(Unshowable()), "does not exist"),
    "a huge int as action": (action(10**5000), "does not exist"),
    "unknown among the open": (among(["sports", "weather"]), "add it with add_actions"),
    "twice among the open": (among(["sports", 3, "sports"]), "'sports' is given twice"),
    "nothing open": (among([]), "expected at least one"),
    "a text as the open": (among("sports"), "expected a list of labels"),
    "a number as the open": (among(3), "expected a list of labels"),
    "an array of no dimension as the open": (among(np.array("sports")), "expected a list"),
    "a list among the open": (among([["sports"]]), "expected a hashable value"),
    "an open action that cannot be shown": (among(Unshowable()), "expected a list of labels"),
    "an open action of no comparison": (among([ComparableToItselfOnly()]), "action"),
    "asking about nothing": (call("pmf", None), "expected a dict of names and values"),
    "asking about no action": (
        lambda agent: agent.pmf(_fitting(agent), actions=[]),
        "expected at least one",
    ),
    "adding what exists": (call("add_actions", ["weather", 3]), "3 exists already"),
    "adding twice": (call("add_actions", ["weather", "weather"]), "is given twice"),
    "adding a list": (call("add_actions", [["weather"]]), "expected a hashable value"),
    "adding a text": (call("add_actions", "weather"), "expected a list of labels"),
    "adding nothing at all": (call("add_actions", None), "expected a list of labels"),
    "adding what cannot be compared": (call("add_actions", [ComparableToItselfOnly()]), "action"),
    "removing all": (call("remove_actions", ACTIONS), "at least one to stay"),
    "removing what is not there": (call("remove_actions", [3, "weather"]), "does not exist"),
    "removing twice": (call("remove_actions", [3, 3]), "3 is given twice"),
    # many at once
    "many of nothing": (many(None), "expected several"),
    "many in a text": (many("abc"), "expected several"),
    "many in a dict": (many(GOOD), "expected several"),
    "many in a number": (many(5), "expected several"),
    "many in an array of no dimension": (many(np.array(5.0)), "expected several"),
    "many in three dimensions": (many(np.zeros((2, 2, 2))), "number 0 of the contexts"),
    "many in one dimension": (many(np.zeros(3)), "number 0 of the contexts"),
    "many of several kinds": (many([GOOD, ROW]), "of several kinds"),
    "many torn rows": (many([ROW, [1.0]]), "of several kinds"),
    "many with NaN": (many(np.array([ROW, [1.0, np.nan, 1.0]])), "nan) at position 1"),
    "many texts in an array": (many(np.array([["a", "b", "c"]])), "expected numbers"),
    "many complex numbers": (many(np.ones((2, 3)) * 1j), "expected numbers"),
    "many with a bad one": (many([GOOD, {"age": "x" * 20_000}]), "number 1 of the contexts"),
    "too few ids": (ids_for_two(["a"]), "1 ids for 2 contexts"),
    "too many ids": (ids_for_two(["a", "b", "c"]), "3 ids for 2 contexts"),
    "an id twice": (ids_for_two(["a", "a"]), "an id occurs twice"),
    "a taken id": (ids_for_two(["a", "pending 1"]), "'pending 1' is taken"),
    "ids that are numbers": (ids_for_two([1, 2]), "expected a text"),
    "ids that are lists": (ids_for_two([["a"], ["b"]]), "expected a text"),
    "ids that have no length": (ids_for_two(5), "id"),
    "ids in a text": (ids_for_two("ab"), "id"),
    "learn many of nothing": (call("learn_many", ["pending 0"]), "there are no rewards"),
    "learn many in a text": (call("learn_many", "pending 0", [1.0]), "expected a list"),
    "learn many rewards in a number": (call("learn_many", ["pending 0"], 1.0), "expected a list"),
    "learn many rewards of no dimension": (
        call("learn_many", ["pending 0"], np.array(1.0)),
        "expected a list",
    ),
    "learn many that cannot be shown": (
        call("learn_many", Unshowable(), Unshowable()),
        "expected a list",
    ),
    "learn many of other lengths": (
        call("learn_many", ["pending 0", "pending 1"], [1.0]),
        "1 rewards for 2 rounds",
    ),
    "an unknown id in the middle": (
        call("learn_many", ["pending 0", "nobody", "pending 1"], [1.0, 1.0, 1.0]),
        "'nobody' is not known",
    ),
    "a bad reward in the middle": (
        call("learn_many", ["pending 0", "pending 1", "pending 2"], [1.0, float("nan"), 1.0]),
        "reward is nan",
    ),
    "a conflicting reward in the middle": (
        call("learn_many", ["pending 0", "done 0", "pending 1"], [1.0, 0.25, 1.0]),
        "send the final reward only",
    ),
    "two rewards for one": (
        call("learn_many", ["pending 0", "pending 1", "pending 0"], [1.0, 1.0, 0.0]),
        "has two rewards here",
    ),
    "an id of a wrong type in the middle": (
        call("learn_many", ["pending 0", 5, "pending 1"], [1.0, 1.0, 1.0]),
        "id is 5",
    ),
    "a bad context in the middle": (
        records(contexts=[GOOD, {"age": float("nan")}, GOOD]),
        "number 1 of the contexts",
    ),
    "a bad probability in the middle": (records(probabilities=[1.0, 0.0, 1.0]), "is 0.0"),
    "an unknown action in the middle": (
        records(actions=["sports", "weather", "sports"]),
        "'weather' does not exist",
    ),
    "an unhashable action in the middle": (records(actions=["sports", [], 3]), "hashable"),
    "records of other lengths": (records(actions=["sports", 3]), "2 actions for 3 rounds"),
    "records without probabilities": (records(probabilities=None), "full records need"),
    "records without actions": (records(actions=None), "full records need"),
    "records of several kinds": (records(contexts=[GOOD, ROW, GOOD]), "of several kinds"),
    "rounds that are none": (call("learn_rounds", [5]), "round"),
    "no rounds": (call("learn_rounds", None), "rounds"),
    "a round with a bad reward": (
        call("learn_rounds", [Round(GOOD, 3, 1.0, 0.5), Round(GOOD, 3, float("nan"), 0.5)]),  # type: ignore[arg-type]
        "reward is nan",
    ),
    "a round with half a character as id": (
        lambda agent: agent.learn_rounds([Round(_fitting(agent), 3, 1.0, 0.5, id="\ud800")]),
        "a round's id is '\\ud800'; expected a text",
    ),
    "a round with an id of no type": (
        lambda agent: agent.learn_rounds([Round(_fitting(agent), 3, 1.0, 0.5, id=5)]),  # type: ignore[arg-type]
        "id is 5",
    ),
    "parameters of an agent that has begun": (call("set_params", seed=1), "make a new one"),
    "unknown parameters": (call("set_params", speed=1), "unknown parameter 'speed'"),
}

ON_NAMED: dict[str, tuple[Any, str]] = {
    "NaN under a name": (under(float("nan")), "holds nan at 'extra'"),
    "infinity under a name": (under(-np.inf), "expected a finite number"),
    "1e200 under a name": (under(1e200), "within ±1e100"),
    "a huge int under a name": (under(10**5000), "expected a finite number"),
    "a huge fraction under a name": (under(Fraction(10**400)), "expected a finite number"),
    "NaN of NumPy under a name": (under(np.float32("nan")), "at 'extra'"),
    "a complex number under a name": (under(1j), "expected a number, a text"),
    "a decimal NaN under a name": (under(Decimal("sNaN")), "the context"),
    "bytes under a name": (under(b"phone"), "expected a number, a text"),
    "a dict under a name": (under({"a": 1}), "expected a number, a text"),
    "numbers under a name": (under([1.0, 2.0]), "give numbers names of their own"),
    "an array under a name": (under(np.array([1.0])), "expected a number, a text"),
    "a list with None under a name": (under(["a", None]), "expected texts in a list"),
    "a date under a name": (under(datetime.datetime(2026, 1, 1)), "expected a number, a text"),
    "a time of NumPy under a name": (under(np.datetime64("2026-01-01")), "expected a number"),
    "an object under a name": (under(object()), "expected a number, a text"),
    "what cannot be shown under a name": (under(Unshowable()), "cannot be shown"),
    "a float that is none under a name": (under(NotANumber(1.0)), "'extra'"),
    "a set of what has no text": (under({Unshowable()}), "expected texts in a list"),
    "a function under a name": (under(len), "expected a number, a text"),
    "a long text": (under("x" * 10_001), "a text of 10001 characters"),
    "a long text in a list": (under(["x" * 10_001]), "a text of 10001 characters"),
    "far too many texts": (under(["x"] * 10_001), "10001 texts"),
    "a number as name": (context({5: 1.0}), "a name 5; expected a text"),
    "None as name": (context({None: 1.0}), "expected a text"),
    "a tuple as name": (context({("a", "b"): 1.0}), "expected a text"),
    "a name that cannot be shown": (context({Unshowable(): 1.0}), "cannot be shown"),
    "a long name": (context({"x" * 10_001: 1.0}), "a name of 10001 characters"),
    "far too many names": (context({str(i): 1.0 for i in range(10_001)}), "10001 names"),
    "numbers after dicts": (context(ROW), "expected a dict of names and values, as the first"),
    "many numbers after dicts": (many([ROW, ROW]), "expected a dict of names and values"),
    "a record of numbers after dicts": (
        call("learn", ROW, "sports", 1.0, 0.5),
        "make a new agent for other contexts",
    ),
    "a column name twice": (
        many(pd.DataFrame([[1, 2]], columns=["a", "a"])),
        "two columns of one name",
    ),
    "NaN in a table of polars": (many(pl.DataFrame({"a": [float("nan")]})), "holds nan"),
    "a table whose names are numbers": (many(pd.DataFrame([[1, 2]])), "expected a text"),
    "asking about NaN": (call("pmf", {"age": float("nan")}), "holds nan at 'age'"),
}

ON_NUMBERS: dict[str, tuple[Any, str]] = {
    "a dict after numbers": (
        context(GOOD),
        "the context is a dict of names and values; expected 3",
    ),
    "too few numbers": (context([1.0, 2.0]), "the context is 2 numbers; expected 3 numbers"),
    "too many numbers": (context(np.ones(4)), "the context is 4 numbers; expected 3 numbers"),
    "many of another width": (many(np.ones((2, 4))), "the context is 4 numbers"),
    "many dicts after numbers": (many([GOOD, GOOD]), "expected 3 numbers"),
    "a record of another width": (call("learn", [1.0], 3, 1.0, 0.5), "is 1 numbers; expected 3"),
    "records of another width": (
        call("learn_many", np.ones((2, 5)), [3, 3], [1.0, 1.0], [0.5, 0.5]),
        "the context is 5 numbers",
    ),
    "asking about another width": (call("pmf", [1.0]), "the context is 1 numbers"),
    "asking about NaN in a row": (call("pmf", [1.0, np.nan, 1.0]), "nan) at position 1"),
}

CASES = [
    *((True, title) for title in {**ALWAYS, **ON_NAMED}),
    *((False, title) for title in {**ALWAYS, **ON_NUMBERS}),
]


def cases(named):
    """What can be done to an agent of named contexts, or to one of numbers."""
    return {**ALWAYS, **(ON_NAMED if named else ON_NUMBERS)}


def fresh(spec, named):
    """An agent with a past, with decisions that wait and one that is done."""
    agent = Agent(ACTIONS, spec, seed=4)
    make = named_context if named else number_context
    for number in range(20):
        decision = agent.act(make(number))
        agent.learn(decision.id, reward_of(number, decision.action))
    agent.learn(agent.act(make(20), id="done 0").id, 1.0)
    for number in range(3):
        agent.act(make(21 + number), id=f"pending {number}")
    return agent


def sentence_of(attack, agent):
    """What the agent answers to an attack, which must leave it as it was."""
    before = agent.fingerprint
    with pytest.raises(MeleeError) as caught:
        attack(agent)
    assert agent.fingerprint == before
    assert isinstance(caught.value, InputError | DataError)
    return str(caught.value)


def attack_all(agent, named):
    """Everything at once, whatever comes of it."""
    for attack, _ in cases(named).values():
        with contextlib.suppress(Exception):
            attack(agent)


@pytest.fixture(scope="module")
def victims():
    """The files of two agents; each attack is made on an agent of its own."""
    return {named: fresh("epsilon-greedy", named).to_bytes() for named in (True, False)}


@pytest.mark.parametrize(("named", "title"), CASES)
def test_a_hostile_input_is_refused_with_a_sentence(named, title, victims):
    attack, part = cases(named)[title]
    sentence = sentence_of(attack, Agent.from_bytes(victims[named]))
    assert part in sentence
    assert len(sentence) < 500
    assert re.search(
        r"expected|learn\(|learn_many\(|add|make|send|give|known|stay|too many|shorten|rename",
        sentence,
    )


def test_there_are_hundreds_of_them():
    assert len(CASES) > 250


FEW = ("melee", "linucb", "epsilon-greedy")
every_explorer = pytest.mark.parametrize(
    "spec", [one if one in FEW else pytest.param(one, marks=pytest.mark.long) for one in SPECS]
)


@pytest.mark.parametrize("named", [True, False])
@every_explorer
def test_every_explorer_refuses_them_all_and_is_unchanged(spec, named):
    agent = fresh(spec, named)
    wrong = []
    for title, (attack, part) in cases(named).items():
        try:
            if part not in sentence_of(attack, agent):
                wrong.append(title)
        except Exception as error:
            wrong.append(f"{title}: {type(error).__name__}")
    assert wrong == []


@pytest.mark.parametrize("named", [True, False])
@every_explorer
def test_600_rounds_after_all_attacks_decisions_are_those_of_an_agent_in_peace(spec, named):
    attacked, peaceful = fresh(spec, named), fresh(spec, named)
    make = named_context if named else number_context
    attack_all(attacked, named)
    for number in range(30, 630):
        context = make(number)
        decision = peaceful.act(context)
        assert attacked.act(context) == decision
        for agent in (attacked, peaceful):
            agent.learn(decision.id, reward_of(number, decision.action))
        if number == 300:
            attack_all(attacked, named)
    assert attacked.n_learned_ == peaceful.n_learned_ == 621
    assert attacked.summary() == peaceful.summary()


@pytest.mark.parametrize("spec", REFUSED)
def test_explorers_that_an_agent_cannot_have_say_which_to_use(spec):
    with pytest.raises(InputError, match=r"use .*melee"):
        Agent(ACTIONS, spec)


def test_more_actions_than_memory_should_hold_are_refused(monkeypatch):
    agent = fresh("linucb", True)
    monkeypatch.setattr("melee.agent.knowledge.MAX_MODEL_BYTES", 10_000)
    assert "use fewer" in sentence_of(call("add_actions", range(100, 200)), agent)


# --- an agent that has not begun ----------------------------------------------------------------


FINE_AT_FIRST = {  # what only an agent with a past refuses
    "the id of one that waits",
    "the id of one that is done",
    "a taken id",
    "parameters of an agent that has begun",
    "numbers after dicts",
    "many numbers after dicts",
    "a record of numbers after dicts",
    "a dict after numbers",
    "too few numbers",
    "too many numbers",
    "many of another width",
    "many dicts after numbers",
    "a record of another width",
    "records of another width",
    "asking about another width",
}
EVERYTHING = {**ALWAYS, **ON_NAMED, **ON_NUMBERS}


@pytest.mark.parametrize("title", [one for one in EVERYTHING if one not in FINE_AT_FIRST])
def test_a_refused_first_call_leaves_all_kinds_of_context_open(title):
    attack, _ = EVERYTHING[title]
    for first in (GOOD, ROW):
        agent = Agent(ACTIONS, "epsilon-greedy")
        assert sentence_of(attack, agent)
        peaceful = Agent(ACTIONS, "epsilon-greedy")
        assert agent.act(first) == peaceful.act(first)


@pytest.mark.parametrize("title", sorted(FINE_AT_FIRST))
def test_what_only_a_past_forbids_is_done_by_an_agent_without_one(title):
    attack, _ = EVERYTHING[title]
    agent = Agent(ACTIONS, "epsilon-greedy")
    before = agent.fingerprint
    assert attack(agent)
    assert (agent.fingerprint == before) == title.startswith("asking")


def test_no_attack_hides_another():
    assert len(EVERYTHING) == len(ALWAYS) + len(ON_NAMED) + len(ON_NUMBERS)


@pytest.mark.parametrize(
    ("actions", "part"),
    [
        ([], "expected at least one"),
        ("abc", "expected a list of labels"),
        (b"abc", "expected a list of labels"),
        ({"a": 1}, "expected a list of labels"),
        (5, "expected a list of labels"),
        (np.array("a"), "expected a list of labels"),
        (["a", "a"], "'a' is given twice"),
        ([1, True], "is given twice"),
        ([["a"]], "expected a hashable value"),
        ([float("nan")], "is no label"),
        ([NotHashable()], "expected a hashable value"),
        ([NotComparable(), "a"], "expected a hashable value"),
        (Unshowable(), "expected a list of labels"),
    ],
)
def test_actions_that_are_none_are_refused(actions, part):
    with pytest.raises(InputError, match=re.escape(part)):
        Agent(actions)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        *(({"floor": value}, "floor is") for value in (-0.1, 1.1, float("nan"), "0.1", None, [0])),
        *(({"seed": value}, "seed is") for value in (-1, 1.5, "1", None, True)),
        *(({"half_life": value}, "half_life is") for value in (0, -5, 2.5, True, "9")),
        *(
            ({"timeout": value}, "timeout is")
            for value in (0, -1, float("nan"), float("inf"), "1", True, [1])
        ),
        *(({"default_reward": value}, "reward is") for value in (1e300, float("nan"), "1", [1])),
        ({"default_reward": 2.0, "timeout": 1, "reward_range": (0, 1)}, "the reward is 2 and"),
        *(
            ({"reward_range": value}, "reward_range is")
            for value in (1, (1, 1), (2, 1), (0, float("nan")), (0, 1, 2), "01", [1], (None, 1))
        ),
        *(({"max_pending": value}, "max_pending is") for value in (0, -1, 1.5, "9", True, None)),
        *(({"max_features": value}, "max_features is") for value in (0, -1, 1.5, "9", True, None)),
        ({"explorer": "epsilon-greedi"}, "did you mean 'epsilon-greedy'"),
        ({"explorer": "epsilon-greedy:epsilon=7"}, "epsilon"),
        ({"explorer": ""}, "explorer"),
        ({"explorer": None}, "explorer"),
        ({"explorer": 5}, "explorer"),
        ({"log": 5}, "log is"),
        ({"log": b"log.jsonl"}, "log is"),
        ({"log": "a\0b"}, "log is"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_when_they_are_given(options, part):
    with pytest.raises(InputError, match=re.escape(part)):
        Agent(ACTIONS, **{"explorer": "uniform", **options})


@pytest.mark.parametrize(
    "options",
    [{"seed": -1}, {"floor": 2.0}, {"explorer": "nope"}, {"actions": []}, {"half_life": 0}],
)
def test_parameters_that_cannot_be_set_leave_the_old_ones(options):
    agent = Agent(ACTIONS, "uniform", seed=3)
    before, params = agent.fingerprint, agent.get_params()
    with pytest.raises(InputError):
        agent.set_params(**options)
    assert agent.get_params() == params
    assert agent.fingerprint == before


# --- what callers do with what is theirs --------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_a_dict_that_is_changed_after_acting_does_not_matter(spec):
    changed, kept = Agent(ACTIONS, spec), Agent(ACTIONS, spec)
    for number in range(40):
        context = named_context(number)
        decision = kept.act(named_context(number))
        assert changed.act(context) == decision
        context["tags"].append("later")
        context["age"] = float("nan")
        context["extra"] = "new"
        for agent in (changed, kept):
            agent.learn(decision.id, reward_of(number, decision.action))
    assert changed.fingerprint == kept.fingerprint


@pytest.mark.parametrize("spec", SPECS)
def test_an_array_that_is_changed_after_acting_does_not_matter(spec):
    changed, kept = Agent(ACTIONS, spec), Agent(ACTIONS, spec)
    for number in range(40):
        rows = np.array([number_context(number), number_context(number + 1)])
        one = rows[0].copy()
        first, *others = kept.act_many(rows.copy())
        assert changed.act_many(rows) == [first, *others]
        alone = kept.act(one.copy())
        assert changed.act(one) == alone
        rows[:] = np.nan
        one[:] = np.nan
        for agent in (changed, kept):
            agent.learn(first.id, reward_of(number, first.action))
            agent.learn(alone.id, reward_of(number, alone.action))
            agent.learn_many([one.id for one in others], [0.5])
    assert changed.fingerprint == kept.fingerprint


def test_a_pmf_that_is_changed_does_not_change_what_is_logged(tmp_path):
    agent = Agent(ACTIONS, "uniform", log=tmp_path / "log.jsonl")
    decision = agent.act(GOOD)
    before = dict(decision.pmf)
    decision.pmf.clear()
    assert agent.learn(decision.id, 1.0)
    (logged,) = History.read(tmp_path / "log.jsonl")
    assert logged.pmf == before


def test_a_list_of_actions_that_is_changed_later_does_not_matter():
    actions: list[Any] = ["a", "b"]
    agent = Agent(actions, "uniform")
    before = agent.fingerprint
    actions.append(["not even a label"])
    assert agent.fingerprint == before
    assert agent.actions_ == ["a", "b"]


def test_lists_that_the_agent_hands_out_are_the_callers():
    agent = fresh("uniform", True)
    before = agent.fingerprint
    agent.actions_.clear()
    agent.feature_names_.clear()
    agent.summary().clear()
    agent.diagnostics().clear()
    assert agent.fingerprint == before


@pytest.mark.parametrize("spec", SPECS)
def test_asking_changes_nothing_not_even_the_fingerprint(spec):
    agent = fresh(spec, True)
    before = agent.fingerprint
    agent.pmf(GOOD).clear()
    agent.pmf(GOOD, actions=ACTIONS[:2])
    assert agent.fingerprint == before
