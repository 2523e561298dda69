"""Features of actions in lines of a log, which stay small where actions repeat.

The features of all eligible actions are a *set*, named by a hash of its content. A line gives the
name. The first line with a set also gives what is in it, either in full,

    "features": {"in": "6f1c", "all": [["a17", {"topic": "sport"}], ["a18", {"topic": "film"}]]}

or as what differs from a set that an earlier line has given: actions that are gone, and actions
that are new or have other features.

    "features": {"in": "09ab", "from": "6f1c", "without": ["a18"], "with": [["a19", {...}]]}

A set is given in full again after 1000 lines. Lines that are to be read alone have it in full.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from melee.contexts import Context
from melee.errors import InputError, shown
from melee.labels import Label, check_label, label_from_json, label_to_json

AGAIN = 1000
"""Lines after which a set is given in full again."""


class Sets:
    """The sets that the lines of one log have given so far, for who writes it."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Nothing has been given."""
        self._latest: dict[str, str] = {}  # the JSON of features by the JSON of their action
        self._name = ""
        self._lines = AGAIN

    def to_json(self, features: Mapping[Label, Context]) -> dict[str, Any]:
        """What a line holds of the features."""
        now = {json.dumps(label_to_json(k)): json.dumps(_plain(v)) for k, v in features.items()}
        self._lines += 1
        if now == self._latest and self._lines < AGAIN:
            return {"in": self._name}
        content = "\n".join(f"{label}\t{features}" for label, features in now.items())
        name = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
        changed = {k: v for k, v in now.items() if self._latest.get(k) != v}
        gone = [label for label in self._latest if label not in now]
        # Actions keep their order: those that stay come first.
        stays = [label for label in self._latest if label in now and label not in changed]
        written: dict[str, Any] = {"in": name}
        if self._lines >= AGAIN or [*stays, *changed] != list(now) or len(changed) > len(now) // 2:
            written["all"] = _pairs(now)
            self._lines = 0
        else:
            removed = [json.loads(label) for label in gone]
            removed += [json.loads(label) for label in changed if label in self._latest]
            written |= {"from": self._name, "without": removed, "with": _pairs(changed)}
        self._latest, self._name = now, name
        return written


def _pairs(features: Mapping[str, str]) -> list[list[Any]]:
    return [[json.loads(label), json.loads(text)] for label, text in features.items()]


def _plain(features: Context) -> Any:
    return features.tolist() if isinstance(features, np.ndarray) else features


def read_features(given: Any, sets: dict[str, dict[Label, Any]]) -> dict[Label, Any] | None:
    """The features in a line; its set joins those that the file has given so far.

    In lines of others they may be an object of labels and features; anything else is a field of
    theirs, and ignored.
    """
    name = given.get("in") if isinstance(given, dict) else None
    if not isinstance(name, str) or not given.keys() <= {"in", "all", "from", "without", "with"}:
        are = isinstance(given, dict) and all(
            isinstance(features, dict) for features in given.values()
        )
        return given if are else None
    if "all" in given:
        sets[name] = _read_pairs(given["all"])
    elif "from" in given:
        base = _known(given["from"], sets)
        gone = given.get("without", [])
        if not isinstance(gone, list):
            raise InputError(f"the features are without {shown(gone)}; expected an array")
        left_out = {check_label(label_from_json(label)) for label in gone}
        kept = {label: features for label, features in base.items() if label not in left_out}
        sets[name] = kept | _read_pairs(given.get("with", []))
    return _known(name, sets)


def _known(name: Any, sets: dict[str, dict[Label, Any]]) -> dict[Label, Any]:
    if not isinstance(name, str) or name not in sets:
        raise InputError(
            f"the features are in the set {shown(name)}, which no line before this one gives; read "
            "the log from its start, or from a line with a set in full on"
        )
    return sets[name]


def _read_pairs(given: Any) -> dict[Label, Any]:
    if not isinstance(given, list) or not all(isinstance(p, list) and len(p) == 2 for p in given):
        raise InputError(
            f"the features are {shown(given)}; expected pairs of an action and its features"
        )
    return {check_label(label_from_json(label)): features for label, features in given}
