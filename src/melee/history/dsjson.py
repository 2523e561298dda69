"""Histories as VowpalWabbit reads them: decision service JSON, `vw --cb_explore_adf --dsjson`.

One decision a line, here in several:

    {"_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1,
     "Timestamp": "2026-01-01T00:00:00.0000000Z", "Version": "1", "EventId": "e1", "a": [2, 1],
     "c": {"context": {"age": 31.0, "device": "phone"},
           "_multi": [{"action": {"label": "news"}}, {"action": {"label": "sports"}}]},
     "p": [0.8, 0.2], "VWState": {"m": "3"}}

`a` numbers the actions from 1, the chosen one first, and `p` has their probabilities. The cost is
the reward's negative, `EventId` the round's id, and `VWState` the version that decided. `pdrop`, if
there, is the probability with which lines like this one were dropped: one that was kept stands
for 1 / (1 - pdrop) lines, as it does for VowpalWabbit.

**Written** so that VowpalWabbit sees what is known, and nothing else. Where a round has no pmf, all
actions of the history count as eligible, and `a` and `p` name only the chosen one, for the
probabilities of the others are not known. A group of texts becomes features such as `tags=red`,
since a list of texts would make VowpalWabbit drop the line; names that start with `_`, which it
ignores or takes for its own, are preceded by `~`; numbers that its float32 cannot hold are cut;
missing values are null, which it skips. A label that is no text is written as JSON (`label_json`).
Features of actions, where they have any, are a namespace `features` beside `action`.
Whatever the line then does not say exactly is added in `_melee`, which VowpalWabbit ignores, so
reading gives exactly the rounds that were written.

**Read** from others, features are flattened to `Namespace.feature` and `list[0]`; names that start
with `_` are left out, and the namespace `context` is not named. An action's label is ours if it has
one, else its number from 1; what else it has are its features, in the same way, and the namespace
`features` is not named. Where `a` counts from 0, as some do, the label alone tells the action, as
it does for VowpalWabbit, and the probabilities of the others are not known.

Lines that hold no round are left out with their reason, strict or not (`no_round`): decisions that
are not to be learned from (`_skipLearn`, or `_deferred` and never shown), without a label, of
slots, of a number instead of an action, or with labels of single actions or feedback in
place of a cost; rewards that found no decision; checkpoints.
"""

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from melee.errors import InputError
from melee.history.features import Sets
from melee.history.history import History, NoRoundError, gather
from melee.history.jsonl import bounded, compressed, dumps, from_json, lines, load, parse, to_json
from melee.history.rounds import Round, check_round
from melee.labels import Label, label_from_json, label_to_json

FLOAT32 = 3.4028234663852886e38
"""The largest number that VowpalWabbit can hold."""

_LAST_SECOND = 253402300799  # of the year 9999
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,12})?(Z|[+-]\d\d:\d\d)?")


def read(path: Path, *, strict: bool = False, usable: bool = True) -> History:
    """The rounds of a dsjson file."""

    def fields(raw: bytes) -> dict[str, Any]:
        return from_json(decode(load(raw)))

    return gather(path, "line", lines(path), fields, strict=strict, usable=usable)


def content(history: History, *, compress: bool = False) -> bytes:
    """A history as a dsjson file."""
    actions = history.actions
    return compressed(b"".join(line_of(round_, actions) for round_ in history), compress)


def line_of(round_: Round, actions: list[Label]) -> bytes:
    """A round as a line; `actions` are those that were eligible if the round does not say."""
    check_round(round_)
    line = to_json(round_)
    decision = encode(line, [label_to_json(label) for label in actions])
    plain = decode(decision)
    unsaid = {
        name: line.get(name)
        for name in {**line, **plain}
        if dumps(line.get(name)) != dumps(plain.get(name))
    }
    if unsaid:
        decision["_melee"] = unsaid
    try:
        return bounded(dumps(decision, ascii=False).encode() + b"\n")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the round holds {error.object[error.start]!r}, half of a character, at which "
            "VowpalWabbit would drop the line; mend the text, or write the history as .jsonl"
        ) from None


def encode(line: dict[str, Any], actions: list[Any]) -> dict[str, Any]:
    """The decision that VowpalWabbit reads, from a line of `melee.history.jsonl`."""
    pmf = dict(enumerate(line.get("pmf", ())))
    features = {
        dumps(label): features for label, features in line.get("features", {}).get("all", ())
    }
    eligible = [label for label, _ in pmf.values()] if pmf else actions
    chosen = eligible.index(line["action"])
    order = [chosen, *(i for i in pmf if i != chosen)]
    decision = {
        "_label_cost": 0.0 - line["reward"],
        "_label_probability": line["probability"],
        "_label_Action": chosen + 1,
        "_labelIndex": chosen,
        "Timestamp": _timestamp(line.get("time")),
        "Version": "1",
        "EventId": line.get("id"),
        "a": [i + 1 for i in order],
        "c": {
            "context": _features(line["context"]),
            "_multi": [{"action": _named(label), **_own(label, features)} for label in eligible],
        },
        "p": [pmf[i][1] for i in order] if pmf else [line["probability"]],
        "VWState": {"m": line["version"]} if "version" in line else None,
        "pdrop": 1.0 - 1.0 / line["stands_for"] if "stands_for" in line else None,
    }
    return {key: value for key, value in decision.items() if value is not None}


def _features(context: Any) -> Any:
    """A context as VowpalWabbit takes it."""
    if isinstance(context, list):
        return [_cut(value) for value in context]
    features: dict[str, Any] = {}
    for name, value in context.items():
        key = f"~{name}" if name.startswith("_") else name
        if isinstance(value, list | tuple) and value:
            features.update({f"{key}={text}": 1.0 for text in value})
        else:
            features[key] = _cut(value) if isinstance(value, float) else value
    return features


def _own(label: Any, features: dict[str, Any]) -> dict[str, Any]:
    """The namespace of an action's features, if it has any."""
    own = features.get(dumps(label))
    return {"features": _features(own)} if own else {}


def _cut(value: float) -> float:
    return min(max(value, -FLOAT32), FLOAT32)


def _named(label: Any) -> dict[str, str]:
    """An action's features: its label, as a text of one of two kinds."""
    return {"label": label} if isinstance(label, str) else {"label_json": dumps(label)}


def _timestamp(time: float | None) -> str | None:
    """Seven digits, as other writers use: they hold any float of our century exactly."""
    if time is None or not 0.0 <= time < _LAST_SECOND:
        return None
    whole, _, fraction = f"{time:.7f}".partition(".")
    return f"{datetime.fromtimestamp(int(whole), UTC):%Y-%m-%dT%H:%M:%S}.{fraction}Z"


def decode(decision: Any) -> dict[str, Any]:
    """A line of `melee.history.jsonl`, from a decision of ours or of others.

    >>> decode({"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2,
    ...         "c": {"User": {"age": 31, "tags": ["new"]}, "_multi": [{"Item": {"x": 1}}, {}]}})
    {'context': {'User.age': 31, 'User.tags': ['new']}, 'action': 2, 'probability': 0.8,
     'reward': 1.0, 'features': {'in': '...', 'all': [[1, {'Item.x': 1}], [2, {}]]}}
    """
    if not isinstance(decision, dict):
        raise InputError(f"it holds {decision!r:.60}; expected an object, one decision")
    reason = no_round(decision)
    if reason:
        raise NoRoundError(reason)
    shared = decision["c"] if isinstance(decision.get("c"), dict) else {}
    actions = shared.get("_multi")
    if "_multi" in decision:
        raise InputError(
            "its actions are not under c, as --json of VowpalWabbit has them; expected a decision "
            "as --dsjson has it, with its probability: log that"
        )
    if not isinstance(actions, list) or not actions:
        raise InputError(
            "it has no actions in c._multi; expected a decision of a contextual bandit: leave out "
            "what is none"
        )
    labels = [_label(action, number) for number, action in enumerate(actions, start=1)]
    cost, state = decision.get("_label_cost"), decision.get("VWState")
    line = {
        "id": decision.get("EventId"),
        "time": _seconds(decision.get("Timestamp")),
        "context": _context({name: value for name, value in shared.items() if name != "_multi"}),
        "action": labels[_chosen(decision, len(labels))],
        "probability": decision.get("_label_probability"),
        "reward": _reward(cost),
        "pmf": _pmf(decision, labels),
        "version": state.get("m") if isinstance(state, dict) else None,
        "stands_for": _stands_for(decision.get("pdrop")),
        "features": _features_of(actions, labels),
    }
    line = {key: value for key, value in line.items() if value is not None or key == "action"}
    unsaid = decision.get("_melee", {})
    if not isinstance(unsaid, dict):
        raise InputError(f"_melee is {unsaid!r:.60}; expected an object: remove it")
    return {**line, **unsaid}


def no_round(decision: dict[str, Any]) -> str | None:
    """Why a line holds no round, though nothing is wrong with it; None if it should hold one.

    >>> no_round({"RewardValue": 1.0, "EnqueuedTimeUtc": "2026-01-01T00:00:00Z", "EventId": "e1"})
    'a reward that found no decision (RewardValue)'
    """
    shared = decision.get("c")
    if not isinstance(shared, dict):
        if "RewardValue" in decision:
            return "a reward that found no decision (RewardValue)"
        if any(name.lower().startswith("checkpoint") for name in decision):
            return "a checkpoint"
        return None
    for name in ("_skipLearn", "_deferred"):
        if decision.get(name) is True:
            return f"a decision that is not to be learned from ({name})"
    listed = shared.get("_multi")
    names = {name for offered in _objects(listed) for name in offered}
    if {"_outcomes", "_slots", "_slot_id"} & (decision.keys() | shared.keys() | names):
        return "a decision for slots, mostly several at once (--ccb_explore_adf, --slates)"
    if "_label_ca" in decision or "pdf" in decision:
        return "a decision of a number instead of an action (--cats)"
    if any(name.lower().startswith("_label") for name in names):
        return "a decision whose actions have labels of their own (_label in c._multi)"
    if any("_definitely_bad" in outcome for outcome in _objects(decision.get("o"))):
        return "a decision with feedback in place of a cost (--experimental_igl)"
    if listed and decision.get("_label_cost") is None:
        return "a decision without a label (_label_cost), whose reward is not known"
    return None


def _objects(listed: Any) -> list[dict[str, Any]]:
    return (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )


def _stands_for(pdrop: Any) -> float | None:
    """How many lines a line stands for, or None where none was dropped."""
    if pdrop is None or pdrop == 0:
        return None
    if type(pdrop) not in (int, float) or not 0.0 <= pdrop < 1.0:
        raise InputError(
            f"pdrop is {pdrop!r:.40}; expected the probability with which lines like this one were "
            "dropped, at least 0 and below 1"
        )
    # pdrop is a decimal, and 1 / (1 - 0.9) is not quite 10.
    return float(f"{1.0 / (1.0 - pdrop):.12g}")


def _reward(cost: Any) -> Any:
    """The cost's negative, 0 without a sign, or what was given where that is no number."""
    if not isinstance(cost, int | float):
        return cost
    try:
        return 0.0 - cost
    except OverflowError:  # a whole number of hundreds of digits
        return -math.inf if cost > 0 else math.inf


def _label(action: Any, number: Any) -> Any:
    features = action.get("action") if isinstance(action, dict) else None
    if isinstance(features, dict) and len(features) == 1:
        (kind, text), *_ = features.items()
        if isinstance(text, str) and kind == "label":
            return text
        if isinstance(text, str) and kind == "label_json":
            return parse(text)
    return number


def _chosen(decision: dict[str, Any], n_actions: int) -> int:
    """The chosen action, counted from 0, which up to three fields tell."""
    told = {}
    if "_labelIndex" in decision:
        told["_labelIndex"] = decision["_labelIndex"]
    listed = _listed(decision)
    numbers = {
        "_label_Action": decision.get("_label_Action"),
        "a": listed[0] if isinstance(listed, list) and listed else None,
    }
    for name, number in numbers.items():
        if number is not None:
            told[name] = number - 1 if isinstance(number, int) else number
    if not told:
        raise InputError("the action is missing; expected one of _labelIndex, _label_Action and a")
    first, *others = told.values()
    if type(first) is not int or not 0 <= first < n_actions or any(o != first for o in others):
        shown = ", ".join(f"{name}: {decision[name]!r:.40}" for name in told)
        raise InputError(
            f"the action is told by {shown}; expected one and the same of {n_actions} actions: "
            "_labelIndex counts from 0, the others from 1, and a begins with it"
        )
    return first


def _listed(decision: dict[str, Any]) -> Any:
    """The actions' numbers from 1, `a`; None where they count from 0 and the label tells more."""
    listed = decision.get("a")
    is_labelled = "_labelIndex" in decision or "_label_Action" in decision
    return None if is_labelled and isinstance(listed, list) and 0 in listed else listed


def _pmf(decision: dict[str, Any], labels: list[Any]) -> list[list[Any]] | None:
    """The probabilities of all actions in the order of `_multi`, if all are told."""
    a, p = _listed(decision), decision.get("p")
    if not isinstance(a, list) or not isinstance(p, list) or len(a) != len(labels):
        return None
    if len(p) != len(a) or sorted(map(str, a)) != sorted(map(str, range(1, len(a) + 1))):
        raise InputError(
            f"a is {a!r:.60} and p is {p!r:.60}; expected the numbers of all actions from 1, and a "
            "probability for each"
        )
    probability = dict(zip(a, p, strict=True))
    return [[label, probability[number]] for number, label in enumerate(labels, start=1)]


def _features_of(actions: list[Any], labels: list[Any]) -> dict[str, Any] | None:
    """The features of actions beside their labels, as a line has them; None if there are none."""
    found, none = [], object()
    for action in actions:
        own = action if isinstance(action, dict) else {}
        if _label(action, none) is not none:  # it is ours, and no feature
            own = {name: value for name, value in own.items() if name != "action"}
        found.append(_context(own, "features"))
    if not any(found):
        return None
    if len({dumps(label) for label in labels}) < len(labels):
        return None  # nobody knows whose they are
    return Sets().to_json(dict(zip(map(label_from_json, labels), found, strict=True)))


def _context(shared: dict[str, Any], unnamed: str = "context") -> Any:
    ours = shared.get(unnamed)
    if list(shared) == [unnamed] and _are_numbers(ours):
        return ours
    flat: dict[str, Any] = {}
    for name, value in shared.items():
        if name == unnamed and isinstance(value, dict):
            _flatten("", value, flat)
        else:
            _flatten("", {name: value}, flat)
    return flat


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(type(v) in (int, float) for v in value)


def _flatten(name: str, value: Any, flat: dict[str, Any]) -> None:
    """Add the features under `value` to `flat`."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not key.startswith("_"):
                _flatten(f"{name}.{key}" if name else key, part, flat)
    elif isinstance(value, list) and not all(isinstance(part, str) for part in value):
        for i, part in enumerate(value):
            _flatten(f"{name}[{i}]", part, flat)
    elif name in flat:
        raise InputError(f"there are two features of the name '{name:.60}'; rename one")
    else:
        flat[name] = value


def _seconds(timestamp: Any) -> Any:
    """Seconds since the epoch, or what was given where that is no time."""
    match = _TIMESTAMP.fullmatch(timestamp) if isinstance(timestamp, str) else None
    if match is None:
        return timestamp
    day, fraction, zone = match.groups(default="")
    try:
        whole = int(datetime.fromisoformat(day + (zone or "Z")).timestamp())
    except ValueError:
        return timestamp
    return float(f"{whole}{fraction}") if whole >= 0 else whole + float(fraction or 0)
