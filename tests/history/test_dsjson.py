"""dsjson: VowpalWabbit reads what we write, and we read what others write."""

import json
import re
from typing import Any

import numpy as np
import pytest

from melee.contexts import Named
from melee.errors import DataError, InputError, LeftOutWarning
from melee.history import History, Round
from melee.history.dsjson import line_of


def many_rounds(n_rounds):
    """Rounds of every kind of context, with and without a pmf, in reproducible disorder."""
    rng = np.random.default_rng(0)
    labels = ["sports", "news", 3, ("banner", 1)]
    history = History()
    for i in range(n_rounds):
        context = {
            "age": float(rng.integers(1, 90)),
            "device": str(rng.choice(["phone", "tablet"])),
            "referrer": None,
            "tags": tuple(rng.choice(["new", "vip", "_x"], size=i % 3).tolist()),
            "_label_cost": 7.0,
            "größe |:": 1e60,
        }
        p = rng.dirichlet(np.ones(4))
        eligible = {label: float(q) for label, q in zip(labels, p, strict=True)}
        action = labels[int(rng.integers(4))]
        history.append(
            context=rng.normal(size=3) if i % 4 == 3 else context,
            action=action,
            reward=float(rng.random()),
            probability=eligible[action],
            pmf=eligible if i % 2 else None,
            id=f"e{i}",
            time=1.7e9 + float(rng.random()),
            policy="linucb",
            version="3",
            stands_for=10.0 if i % 5 == 4 else 1.0,
        )
    return history


DECISION: dict[str, Any] = {
    "_label_cost": -1,
    "_label_probability": 0.8166667,
    "_label_Action": 2,
    "_labelIndex": 1,
    "Timestamp": "2021-02-04T16:31:29.2460000Z",
    "Version": "1",
    "EventId": "91f71c8",
    "a": [2, 1, 3],
    "c": {
        "GUser": {"id": "a", "major": "eng", "hobby": "hiking", "new": True},
        "OSession": [{"screens": [1, 2.5]}, "x"],
        "temperature": 5,
        "_ignored": {"secret": 1},
        "_multi": [
            {"TAction": {"topic": "SkiConditions-VT"}},
            {"TAction": {"topic": "HerbGarden"}},
            {"TAction": {"topic": "BeyBlades"}},
        ],
    },
    "p": [0.8166667, 0.1, 0.0833333],
    "VWState": {"m": "ff0744c1/baa5b5e1"},
    "pdrop": 0.0,
}


def file_of(tmp_path, *decisions):
    file = tmp_path / "log.dsjson"
    file.write_text("".join(json.dumps(decision) + "\n" for decision in decisions))
    return file


def test_a_round_is_written_as_its_documentation_shows():
    one = Round(
        {"age": 31.0, "device": "phone"},
        "sports",
        1.0,
        0.8,
        id="e1",
        time=1767225600.0,
        pmf={"news": 0.2, "sports": 0.8},
        version="3",
    )
    assert json.loads(line_of(one, [])) == {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "Timestamp": "2026-01-01T00:00:00.0000000Z",
        "Version": "1",
        "EventId": "e1",
        "a": [2, 1],
        "c": {
            "context": {"age": 31.0, "device": "phone"},
            "_multi": [{"action": {"label": "news"}}, {"action": {"label": "sports"}}],
        },
        "p": [0.8, 0.2],
        "VWState": {"m": "3"},
    }


def test_without_a_pmf_only_the_probability_that_is_known_is_written():
    decision = json.loads(line_of(Round(np.array([1.0]), "b", 0.5, 0.25), ["a", "b", 3]))
    assert decision["a"] == [2]
    assert decision["p"] == [0.25]
    assert len(decision["c"]["_multi"]) == 3
    assert decision["c"]["_multi"][2] == {"action": {"label_json": "3"}}
    assert "_melee" not in decision


def test_only_what_the_line_does_not_say_is_repeated():
    one = Round({"age": 1.0, "tags": ("x", "y")}, "a", 0.5, 1.0, policy="linucb", time=-1.0)
    decision = json.loads(line_of(one, ["a", "b"]))
    assert decision["c"]["context"] == {"age": 1.0, "tags=x": 1.0, "tags=y": 1.0}
    assert decision["_melee"] == {
        "context": {"age": 1.0, "tags": ["x", "y"]},
        "policy": "linucb",
        "time": -1.0,
    }


def test_half_a_character_is_refused():
    with pytest.raises(InputError, match="half of a character, at which VowpalWabbit would drop"):
        line_of(Round({"x": "\ud83d"}, "a", 1.0, 1.0), ["a"])


def test_vowpal_wabbit_counts_the_rounds_and_learns_from_them(tmp_path):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    history = many_rounds(200)
    history.write(tmp_path / "log.dsjson")
    assert History.read(tmp_path / "log.dsjson") == history
    options = f"--cb_explore_adf --dsjson -d {tmp_path / 'log.dsjson'} --quiet --strict_parse"
    vw = vowpalwabbit.Workspace(options)
    assert vw.get_weighted_examples() == pytest.approx(history.stands_for.sum(), rel=1e-5)
    # VowpalWabbit's loss is the mean of cost / probability over the rounds it would have played
    # alike, so it is not 0 unless labels were understood.
    assert vw.get_sum_loss() < 0
    vw.finish()


def test_vowpal_wabbit_sees_our_actions_labels_and_features():
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    history = many_rounds(200)
    vw = vowpalwabbit.Workspace("--cb_explore_adf --dsjson --quiet --noconstant")
    space = vw.hash_space("context")
    age = vw.hash_feature("age", space)
    texts = [vw.hash_feature(f"tags={tag}", space) for tag in ("new", "vip", "_x")]
    actions = history.actions
    for one in history:
        shared, *eligible = vw.parse(line_of(one, actions).decode())
        assert len(eligible) == 4
        labelled: list[tuple[float, ...]] = []
        for i, example in enumerate(eligible):
            costs = example.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT).costs
            labelled += [(i, cost.action, cost.cost, cost.probability) for cost in costs]
            assert len(list(example.iter_features())) == 1
        chosen = list(one.pmf or actions).index(one.action)
        assert len(labelled) == 1
        expected = (chosen, chosen + 1, -one.reward, one.probability)
        assert labelled[0] == pytest.approx(expected)
        features = dict(shared.iter_features())
        if isinstance(one.context, np.ndarray):
            assert list(features.values()) == pytest.approx(one.context.tolist())
        else:
            assert features[age] == one.context["age"]
            tags = set(one.context["tags"])
            seen = {t for t, h in zip(("new", "vip", "_x"), texts, strict=True) if h in features}
            assert seen == tags
            assert len(features) == 4 + len(tags)  # age, device, ~_label_cost, größe
            assert all(np.isfinite(value) for value in features.values())
        vw.finish_example([shared, *eligible])
    vw.finish()


FEATURES: dict[str, Named] = {
    "a": {"topic": "film", "price": 2.5},
    "b": {"topic": "sport", "price": -1.0},
}


def test_features_of_actions_are_written_beside_their_labels():
    one = Round({"age": 1.0}, "a", 1.0, 0.5, pmf={"a": 0.5, "b": 0.5}, features=FEATURES)
    decision = json.loads(line_of(one, ["a", "b"]))
    assert decision["c"]["_multi"] == [
        {"action": {"label": label}, "features": FEATURES[label]} for label in "ab"
    ]
    assert "_melee" not in decision  # the line says all


def test_vowpal_wabbit_sees_the_features_of_actions():
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    vw = vowpalwabbit.Workspace("--cb_explore_adf --dsjson --quiet --noconstant")
    price = vw.hash_feature("price", vw.hash_space("features"))
    one = Round({"age": 1.0}, "a", 1.0, 0.5, pmf={"a": 0.5, "b": 0.5}, features=FEATURES)
    examples = vw.parse(line_of(one, ["a", "b"]).decode())
    for example, label in zip(examples[1:], "ab", strict=True):
        seen = dict(example.iter_features())
        assert seen[price] == FEATURES[label]["price"]
        assert len(seen) == 3  # the label, the topic and the price
    vw.finish_example(examples)
    vw.finish()


@pytest.mark.parametrize("name", ["", "_text", "_tag", "_label", "_multi", "_slots", "_inc", "\0"])
def test_no_name_misleads_vowpal_wabbit(name):
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    vw = vowpalwabbit.Workspace("--cb_explore_adf --dsjson --quiet --noconstant")
    for value in (2.0, "x", None, (), ("_text", "y")):
        line = line_of(Round({name: value}, name, 1.0, 0.5), [name, "b", 1, None])
        examples = vw.parse(line.decode())
        assert len(examples) == 5
        n_features = 0 if value is None else len(value) if isinstance(value, tuple) else 1
        assert len(list(examples[0].iter_features())) == n_features
        vw.finish_example(examples)
    vw.finish()


def test_a_decision_of_others_is_read(tmp_path):
    (one,) = History.read(file_of(tmp_path, DECISION))
    context: Named = {
        "GUser.id": "a",
        "GUser.major": "eng",
        "GUser.hobby": "hiking",
        "GUser.new": 1.0,
        "OSession[0].screens[0]": 1.0,
        "OSession[0].screens[1]": 2.5,
        "OSession[1]": "x",
        "temperature": 5.0,
    }
    pmf = {1: 0.1, 2: 0.8166667, 3: 0.0833333}
    assert one == Round(
        context,
        2,
        1.0,
        0.8166667,
        id="91f71c8",
        time=1612456289.246,
        pmf=pmf,
        version="ff0744c1/baa5b5e1",
        features={
            1: {"TAction.topic": "SkiConditions-VT"},
            2: {"TAction.topic": "HerbGarden"},
            3: {"TAction.topic": "BeyBlades"},
        },
    )


@pytest.mark.parametrize("told", ["_labelIndex", "_label_Action", "a"])
def test_any_of_three_fields_tells_the_action(tmp_path, told):
    others = {"_labelIndex", "_label_Action", "a"} - {told}
    decision = {key: value for key, value in DECISION.items() if key not in others}
    assert History.read(file_of(tmp_path, decision))[0].action == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"_labelIndex": 0}, "the action is told by _labelIndex: 0, _label_Action: 2, a: .2, 1, 3"),
        ({"_labelIndex": 3, "_label_Action": 4, "a": [4]}, "the same of 3 actions"),
        ({"_labelIndex": "1"}, "the action is told by _labelIndex: '1'"),
        ({"a": [2, 2, 3]}, "expected the numbers of all actions from 1"),
        ({"p": [1.0]}, "expected the numbers of all actions from 1"),
        ({"p": [0.8166667, 0.1, 0.1]}, "the pmf sums to 1.0166667"),
        ({"c": {"x": 1}}, "it has no actions in c._multi"),
        ({"c": {**DECISION["c"], "GUser.id": 1}}, "two features of the name 'GUser.id'"),
        ({"_label_cost": "free"}, "the reward is 'free'"),
        ({"pdrop": 1}, "pdrop is 1; expected the probability with which lines like this one"),
        ({"pdrop": -0.5}, "pdrop is -0.5; expected"),
        ({"pdrop": "0.5"}, "pdrop is '0.5'; expected"),
        ({"pdrop": 0.9999999999}, "the round stands for .* rounds; expected from 1 to 1,000,000"),
        ({"Timestamp": "noon"}, "the time is 'noon'; expected a number"),
        ({"Timestamp": "2021-13-04T16:31:29Z"}, "the time is '2021-13-04T16:31:29Z'"),
        ({"_melee": 3}, "_melee is 3; expected an object"),
    ],
)
def test_a_bad_decision_is_refused_with_its_line(tmp_path, changes, sentence):
    file = file_of(tmp_path, DECISION, {**DECISION, **changes})
    with pytest.raises(DataError, match=rf"line 2: .*{sentence}"):
        History.read(file, strict=True)
    history = History.read(file, usable=False)
    assert len(history) + len(history.problems) == 2


def test_costs_of_any_size_are_read_as_they_are(tmp_path):
    costs = [-1, 3, -7, 0]
    file = file_of(tmp_path, *({**DECISION, "_label_cost": cost} for cost in costs))
    assert History.read(file).rewards.tolist() == [1.0, -3.0, 7.0, 0.0]
    endless = file_of(tmp_path, DECISION, {**DECISION, "_label_cost": 1e300})
    with pytest.raises(DataError, match=r"line 2: the reward is -1e.300; expected a finite number"):
        History.read(endless, strict=True)


def test_a_line_stands_for_those_that_were_dropped(tmp_path):
    file = file_of(
        tmp_path,
        *({**DECISION, "pdrop": pdrop} for pdrop in (0, 0.5, 0.9, 0.999, None)),
        {key: value for key, value in DECISION.items() if key != "pdrop"},
    )
    assert History.read(file).stands_for.tolist() == [1.0, 2.0, 10.0, 1000.0, 1.0, 1.0]


@pytest.mark.parametrize("stands_for", [1.0, 1.25, 3.0, 10.0, 1000.0])
def test_a_round_says_to_vowpal_wabbit_what_was_dropped(stands_for):
    decision = json.loads(line_of(Round({}, "a", 1.0, 0.5, stands_for=stands_for), ["a", "b"]))
    assert 1.0 / (1.0 - decision.get("pdrop", 0.0)) == pytest.approx(stands_for, rel=1e-9)
    assert ("pdrop" in decision) == (stands_for > 1.0)
    assert "_melee" not in decision


LABEL = ("_label_cost", "_label_probability", "_label_Action", "_labelIndex")
UNLABELLED = {key: value for key, value in DECISION.items() if key not in LABEL}
SHARED = DECISION["c"]
OUTCOME = {"_label_cost": -1.0, "_id": "top", "_a": [1, 0], "_p": [0.5, 0.5]}
IN_SLOTS = [{"_slot_id": 0, "x": 1.0}, {"_slot_id": 1, "x": 1.0}]
WITHOUT_A_ROUND: dict[str, tuple[dict[str, Any], str]] = {
    "a late reward": (
        {"RewardValue": 1.0, "EnqueuedTimeUtc": "2021-02-04T16:31:29.2Z", "EventId": "e7"},
        r"a reward that found no decision \(RewardValue\)",
    ),
    "a late reward with its observations": (
        {
            "Timestamp": "2021-02-04T16:31:29.2Z",
            "RewardValue": 1.0,
            "EventId": "e7",
            "Observations": [{"v": 1.0, "EventId": "e7", "ActionId": None}],
        },
        "a reward that found no decision",
    ),
    "a checkpoint": ({"checkpoint_time": "2021-02-04T16:31:29.2Z"}, "a checkpoint"),
    "not to be learned from": ({**DECISION, "_skipLearn": True}, r"not to be .* \(_skipLearn\)"),
    "not to be learned from, without a label": (
        {**UNLABELLED, "_skipLearn": True},
        r"not to be learned from \(_skipLearn\)",
    ),
    "never shown": ({**DECISION, "_deferred": True}, r"not to be learned from \(_deferred\)"),
    "without a label": (UNLABELLED, r"without a label \(_label_cost\)"),
    "with a null for a label": ({**DECISION, "_label_cost": None}, "without a label"),
    "of several slots": (
        {"c": {**SHARED, "_slots": [{"_id": "top"}]}, "_outcomes": [OUTCOME], "pdrop": 0.9},
        "for slots, mostly several at once",
    ),
    "of several slots, without a label": (
        {"c": {"x": 1.0, "_multi": IN_SLOTS, "_slots": [{}, {}]}},
        "for slots",
    ),
    "of a single slot": (
        {
            "Timestamp": "2021-02-04T16:31:29.2460000",
            "c": {**SHARED, "_slots": [{"_id": "top"}]},
            "_outcomes": [
                {**OUTCOME, "_o": [{"v": 1.0, "Index": "0"}], "_original_label_cost": -1}
            ],
            "_ba": [0],
        },
        "for slots",
    ),
    "of slots that take some of the actions": (
        {
            "c": {**SHARED, "_slots": [{"_inc": [0, 1], "Slot": {"x": 1}}, {"_inc": [2]}]},
            "_outcomes": [
                {"_label_cost": 0, "_a": [1, 0], "_p": [0.5, 0.5], "_o": [0]},
                {"_label_cost": 0, "_a": [2], "_p": [1], "_o": [0]},
            ],
        },
        "for slots",
    ),
    "of a slate, with one cost for all": (
        {
            "_label_cost": -0.5,
            "c": {"x": 1.0, "_multi": IN_SLOTS, "_slots": [{"x": 2.0}, {"x": 3.0}]},
            "_outcomes": [{"_id": 0, "_a": [0], "_p": [1.0]}, {"_id": 1, "_a": [0], "_p": [1.0]}],
        },
        "for slots",
    ),
    "of a number": (
        {"_label_ca": {"action": 4.1, "cost": 0.2, "pdf_value": 0.05}, "c": {"x": 1}},
        "of a number instead of an action",
    ),
    "of a number, by its density": (
        {"pdf": [{"left": 0.0, "right": 9.0, "pdf_value": 0.1}], "c": {"x": 1}},
        "of a number instead of an action",
    ),
    "with labels of its actions": (
        {**DECISION, "c": {**SHARED, "_multi": [{"_label": "0:1:0.5"}, {}, {}]}},
        "whose actions have labels of their own",
    ),
    "with feedback": (
        {**DECISION, "o": [{"v": {"v=click": 1}, "_definitely_bad": False}]},
        "with feedback in place of a cost",
    ),
    "with feedback, and the cost that it had": (
        {
            **DECISION,
            "a": [0, 1, 2],
            "_label_cost": -1.0,
            "_original_label_cost": -0.5,
            "o": [{"v": {"v=like": 1}, "_definitely_bad": True}],
        },
        "with feedback in place of a cost",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_A_ROUND)
@pytest.mark.parametrize("strict", [True, False])
def test_a_line_that_holds_no_round_is_left_out_with_its_reason(tmp_path, name, strict):
    line, reason = WITHOUT_A_ROUND[name]
    history = History.read(file_of(tmp_path, DECISION, line, DECISION), strict=strict)
    assert len(history) == 2
    (skipped,) = history.problems
    assert skipped.row == 2
    assert skipped.is_sound
    assert re.search(reason, skipped.sentence)


def test_what_vowpal_wabbit_ignores_does_not_cost_a_round(tmp_path):
    ignored = {
        "_skipLearn": False,
        "_original_label_cost": -1,
        "_ba": [1],
        "o": [{"v": 1.0, "EventId": "91f71c8", "ActionTaken": False}],
        "RewardValue": None,
    }
    assert History.read(file_of(tmp_path, {**DECISION, **ignored})) == History.read(
        file_of(tmp_path, DECISION)
    )


def test_a_file_of_lines_of_every_kind_is_read_by_its_rounds_and_counted_by_reason(tmp_path):
    others = [line for line, _ in WITHOUT_A_ROUND.values()]
    history = History.read(file_of(tmp_path, *others, DECISION, *others))
    assert len(history) == 1
    counts = {first.sentence: n_rows for n_rows, first in history.left_out}
    assert (
        counts["a decision for slots, mostly several at once (--ccb_explore_adf, --slates)"] == 10
    )
    assert counts["a decision of a number instead of an action (--cats)"] == 4
    assert counts["a decision with feedback in place of a cost (--experimental_igl)"] == 4
    assert sum(counts.values()) == 2 * len(others)


def test_lines_of_the_other_json_are_named(tmp_path):
    plain = {
        "User": {"x": 1},
        "_label_Action": 1,
        "_label_Cost": -1,
        "_multi": [{"b": 1}, {"b": 2}],
    }
    with pytest.raises(DataError, match="its actions are not under c, as --json of VowpalWabbit"):
        History.read(file_of(tmp_path, plain))


@pytest.mark.parametrize("n_actions", [3, 6, 7, 12, 700])
def test_probabilities_of_six_digits_are_taken(tmp_path, n_actions):
    for share in (float(f"{1.0 / n_actions:.6f}"), int(1e6 / n_actions) / 1e6):
        decision = {
            **UNLABELLED,
            "_label_cost": -1.0,
            "_label_probability": share,
            "_label_Action": 1,
            "a": list(range(1, n_actions + 1)),
            "p": [share] * n_actions,
            "c": {"_multi": [{}] * n_actions},
        }
        (one,) = History.read(file_of(tmp_path, decision))
        assert one.pmf is not None
        assert len(one.pmf) == n_actions


def test_where_actions_count_from_0_the_label_tells(tmp_path):
    (one,) = History.read(file_of(tmp_path, {**DECISION, "a": [0, 1, 2]}))
    assert one.action == 2
    assert one.pmf is None
    unlabelled = {key: value for key, value in DECISION.items() if key not in LABEL[2:]}
    with pytest.raises(DataError, match=r"the action is told by a: \[0, 1, 2\]"):
        History.read(file_of(tmp_path, {**unlabelled, "a": [0, 1, 2]}), strict=True)


def test_lines_are_left_out_by_reason_the_most_frequent_first(tmp_path):
    file = file_of(
        tmp_path,
        {**DECISION, "p": [0.8166667, 0.1, 0.2]},
        {**DECISION, "_skipLearn": True},
        {**DECISION, "p": [0.8166667, 0.1, 0.3]},
        DECISION,
        {"checkpoint_time": 1},
        {**DECISION, "p": [0.8166667, 0.1, 0.4]},
        {**DECISION, "_skipLearn": True},
    )
    with pytest.raises(DataError, match=r"line 1: the pmf sums to 1\.1166667"):
        History.read(file, strict=True)
    with pytest.warns(LeftOutWarning, match="3 of 7 lines are left out, line 1 the first: the pmf"):
        history = History.read(file)
    assert len(history) == 1
    assert [(n_rows, first.row, first.is_sound) for n_rows, first in history.left_out] == [
        (3, 1, False),
        (2, 2, True),
        (1, 5, True),
    ]
    kept = History.read(file, usable=False)  # for a doctor to see
    assert len(kept) == 4
    assert len(kept.problems) == 3


@pytest.mark.parametrize(
    ("timestamp", "seconds"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T01:00:01.5+01:00", 1.5),
        ("1969-12-31T23:59:59.25Z", -0.75),
        ("1970-01-01T00:00:01", 1.0),
    ],
)
def test_timestamps_become_seconds(tmp_path, timestamp, seconds):
    file = file_of(tmp_path, {**DECISION, "Timestamp": timestamp})
    assert History.read(file)[0].time == seconds
