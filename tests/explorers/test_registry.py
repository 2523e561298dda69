import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from melee.errors import InputError, UnknownNameError
from melee.explorers import EXPLORERS, Explorer, Problem, parse
from melee.explorers.bagging import Bagging
from melee.explorers.epsilon_greedy import EpsilonGreedy
from melee.explorers.tau_first import TauFirst

CHANGED = [
    "epsilon-greedy:epsilon=0.05:learner=ridge:ridge=2.5",
    "epsilon-greedy:learner=diagonal:optimizer=dr",
    "epsilon-decreasing:epsilon=1e-05:learning_rate=0.25",
    "eg-epsilon-greedy:tau=0.5:beta=0:kappa=1:optimizer=mtr",
    "linucb:alpha=0.3:learner=diagonal",
    "gated-ucb:scale=2:power=0",
    "tau-first:rounds=12:stop=true",
    "cover:policies=4:psi=0.01:steps=adaptive",
    "cover-nu:loss=logistic",
    "regcb-opt:mellowness=0.1:optimizer=mtr",
    "squarecb:gamma=1000",
    "bagging:bags=2:greedify=true",
    "thompson:scale=0.001",
    "softmax:temperature=1e-10",
    "full-information:learner=sgd",
]


@pytest.mark.parametrize("spec", [*EXPLORERS, *CHANGED])
def test_a_spec_makes_the_explorer_that_it_was_written_by(spec):
    explorer = parse(spec)
    assert parse(explorer.spec) == explorer
    assert parse(explorer.short_spec) == explorer
    assert explorer.name == spec.partition(":")[0]


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_name_alone_means_the_defaults(name):
    explorer = parse(name)
    assert type(explorer) is EXPLORERS[name]
    assert explorer == EXPLORERS[name]()
    assert explorer.short_spec == name


@pytest.mark.parametrize("spec", CHANGED)
def test_settings_that_were_changed_are_in_the_spec_and_others_are_not_in_the_short_one(spec):
    given_settings = dict(part.split("=") for part in spec.split(":")[1:])
    short = dict(part.split("=") for part in parse(spec).short_spec.split(":")[1:])
    assert short.keys() == given_settings.keys()
    fields = {field.name for field in dataclasses.fields(parse(spec))}
    assert {part.split("=")[0] for part in parse(spec).spec.split(":")[1:]} == fields


@given(st.floats(0, 1), st.floats(1e-300, 1e300))
def test_numbers_come_back_from_a_spec_to_the_last_bit(epsilon, rate):
    explorer = EpsilonGreedy(epsilon=epsilon, learning_rate=rate)
    assert parse(explorer.spec) == explorer


def test_the_paper_settings_are_the_defaults():
    assert parse("epsilon-greedy") == EpsilonGreedy(epsilon=0.0, learner="sgd", optimizer="direct")
    assert parse("epsilon-decreasing").spec.startswith("epsilon-decreasing:learner=sgd")
    assert parse("tau-first") == TauFirst(tau=0.02)
    assert "policies=16:psi=0.1" in parse("cover").spec
    for name in ("linucb", "gated-ucb", "thompson", "full-information"):
        assert "learner=ridge:optimizer=direct" in parse(name).spec


def test_an_explorer_passes_through():
    explorer = Bagging(bags=3)
    assert parse(explorer) is explorer


def test_spaces_do_not_matter():
    assert parse(" linucb : alpha = 0.5 ") == parse("linucb:alpha=0.5")


def test_explorers_can_be_told_apart_and_kept_in_sets():
    assert len({parse(spec) for spec in [*EXPLORERS, *EXPLORERS, *CHANGED]}) == len(EXPLORERS) + 15
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse("linucb").alpha = 2.0  # type: ignore[attr-defined]


def test_an_unknown_name_is_answered_with_the_names_that_exist():
    with pytest.raises(
        UnknownNameError, match=r"unknown explorer 'linucp'; did you mean 'linucb'\?"
    ) as e:
        parse("linucp")
    assert all(name in str(e.value) for name in EXPLORERS)
    assert str(e.value).startswith("unknown")  # no quotes around the sentence
    assert isinstance(e.value, InputError)
    assert isinstance(e.value, KeyError)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            "linucb:alfa=1",
            r"unknown parameter of linucb 'alfa'; did you mean 'alpha'\? Known: .*ridge",
        ),
        ("uniform:epsilon=1", r"unknown parameter of uniform 'epsilon'; known: \(none\)"),
        ("linucb:epsilon=1", r"unknown parameter of linucb 'epsilon'; known: learner, .*alpha"),
        ("linucb:learner=sgd", r"unknown learner for linucb 'sgd'; known: ridge, diagonal"),
        ("thompson:optimizer=ips", r"unknown optimizer for thompson 'ips'; known: direct, mtr"),
        ("cover:optimizer=dm", r"unknown optimizer for cover 'dm'.* known: direct, ips, dr, mtr"),
        ("full-information:optimizer=ips", r"unknown optimizer for full-information 'ips'"),
        ("cover:loss=hinge", r"unknown loss for cover 'hinge'; known: squared, logistic"),
        ("", r"unknown explorer ''; known: epsilon-greedy"),
        ("LinUCB", r"unknown explorer 'LinUCB'"),
    ],
)
def test_unknown_words_are_answered_with_the_known_ones(spec, sentence):
    with pytest.raises(UnknownNameError, match=sentence):
        parse(spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("linucb:alpha", r"explorer 'linucb:alpha': 'alpha' is not of the form key=value"),
        ("linucb:alpha=", r"'alpha=' is not of the form key=value"),
        ("linucb:", r"'' is not of the form key=value"),
        ("linucb:alpha=1:alpha=2", r"alpha is given twice; give it once"),
        ("linucb:alpha=lots", r"linucb: alpha is 'lots'; expected a number"),
        ("linucb:alpha=-1", r"linucb: alpha is -1\.0; expected a number, at least 0"),
        ("linucb:alpha=nan", r"linucb: alpha is nan; expected a number, at least 0"),
        ("linucb:alpha=inf", r"linucb: alpha is inf; expected a number, at least 0"),
        ("linucb:alpha=none", r"linucb: alpha is 'none'; expected a number"),
        ("linucb:ridge=0", r"linucb: ridge is 0\.0; expected a number, more than 0"),
        (
            "epsilon-greedy:epsilon=1.5",
            r"epsilon is 1\.5; expected a number, at least 0 and at most 1",
        ),
        ("epsilon-decreasing:epsilon=0", r"expected a number, more than 0 and at most 1"),
        (
            "eg-epsilon-greedy:kappa=0",
            r"kappa is 0\.0; expected a number, more than 0 and at most 1",
        ),
        ("tau-first:tau=2", r"tau is 2\.0; expected a number, at least 0 and at most 1"),
        ("tau-first:rounds=-1", r"rounds is -1; expected a whole number, 0 or larger"),
        ("tau-first:stop=maybe", r"tau-first: stop is 'maybe'; expected true or false"),
        ("bagging:bags=2.5", r"bagging: bags is '2\.5'; expected a whole number"),
        ("bagging:bags=0", r"bags is 0; expected a whole number, at least 1"),
        ("cover:policies=0", r"policies is 0; expected a whole number, at least 1"),
        ("softmax:temperature=0", r"temperature is 0\.0; expected a number, more than 0"),
        ("thompson:scale=0", r"scale is 0\.0; expected a number, more than 0"),
        ("cover:learning_rate=0", r"learning_rate is 0\.0; expected a number, more than 0"),
        (
            "cover:learner=ridge:loss=logistic",
            r"loss, steps and learning_rate are settings of learner=sgd",
        ),
        ("cover:learner=diagonal:steps=adaptive", r"the learner is diagonal; leave them out"),
        ("cover:loss=logistic:optimizer=ips", r"logistic loss needs targets in \[0, 1\]"),
        ("cover:loss=logistic:optimizer=dr", r"use loss=squared, or optimizer=direct or mtr"),
    ],
)
def test_a_spec_that_cannot_be_used_says_what_is_wrong(spec, sentence):
    with pytest.raises(InputError, match=sentence):
        parse(spec)


@pytest.mark.parametrize("given_instead", [None, 3, ["linucb"], EpsilonGreedy])
def test_what_is_no_spec_is_refused(given_instead):
    with pytest.raises(InputError, match=r"explorer is .*; expected a SPEC string such as 'linucb"):
        parse(given_instead)


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        (EpsilonGreedy, {"epsilon": "0.1"}, r"epsilon is '0\.1'; expected a number"),
        (EpsilonGreedy, {"epsilon": True}, r"epsilon is True; expected a number"),
        (EpsilonGreedy, {"epsilon": None}, r"epsilon is None; expected a number"),
        (EpsilonGreedy, {"learner": 1}, r"unknown learner for epsilon-greedy '1'"),
        (Bagging, {"bags": 2.0}, r"bags is 2\.0; expected a whole number"),
        (Bagging, {"bags": True}, r"bags is True; expected a whole number"),
        (Bagging, {"greedify": 1}, r"greedify is 1; expected true or false"),
        (TauFirst, {"rounds": 1.5}, r"rounds is 1\.5; expected a whole number"),
    ],
)
def test_settings_of_a_wrong_type_are_refused(kind, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        kind(**settings)


def test_a_learning_rate_of_the_explorer_overrides_the_preparations():
    problem = Problem(n_features=2, n_actions=2, learning_rate=0.3)
    assert parse("softmax").start(problem).polopt.learner.learning_rate == 0.3
    own = parse("softmax:learning_rate=0.7").start(problem)
    assert own.polopt.learner.learning_rate == 0.7


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_explorer_says_what_it_is(name):
    assert issubclass(EXPLORERS[name], Explorer)
    assert (EXPLORERS[name].__doc__ or "").strip()
    for field in dataclasses.fields(EXPLORERS[name]):
        assert field.metadata.keys() == {"check", "parse"}, field.name
