"""Probabilities of many actions, of which a round changes few.

A log of a thousand actions would consist of their labels, and of one probability, again and again.
So a line gives a list of actions once, with a name; lines after it have the name only, and the
probabilities that are not like the others:

    "pmf": {"in": "5f1c66c1ab0e", "actions": ["a", "b", ...], "each": 2e-05, "but": [["b", 0.98]]}
    "pmf": {"in": "5f1c66c1ab0e", "each": 2e-05, "but": [["a", 0.98]]}

Where most differ, `each` is an array of all of them, in the order of the list. A list is given
again from time to time, so that a part of a log is of use, too.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from melee.errors import InputError, shown
from melee.history.features import Sets
from melee.labels import Label, check_label, label_from_json, label_to_json

FEW = 10
"""Up to so many actions, a line has a pair for each of them."""
AGAIN = 1000
"""Lines after which a list of actions is given again."""
_MOST_LISTS = 1000

Places: TypeAlias = dict[Label, int]
"""Where in a list each action is."""


class Pmf(Mapping[Label, float]):
    """Probabilities by action, in memory as they are in a line: a list that many rounds share.

    >>> pmf = Pmf({"a": 0, "b": 1, "c": 2}, 0.1, {"b": 0.8})
    >>> pmf
    {'a': 0.1, 'b': 0.8, 'c': 0.1}
    >>> pmf == {"a": 0.1, "b": 0.8, "c": 0.1}
    True
    """

    __slots__ = ("but", "each", "places")

    def __init__(self, places: Places, each: Any, but: dict[Label, Any]) -> None:
        self.places, self.each, self.but = places, each, but

    def __getitem__(self, label: Label) -> float:
        place = self.places[label]
        if label in self.but:
            return self.but[label]  # type: ignore[no-any-return]
        return self.each[place] if isinstance(self.each, list) else self.each  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Label]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return repr(dict(self))

    def read(self, number: Callable[[str, Any], float]) -> "Pmf":
        """The same with every probability as `number` reads it; `number` is told what it is of."""
        but = {label: number(_of(label), p) for label, p in self.but.items()}
        if isinstance(self.each, list):
            pairs = zip(self.places, self.each, strict=True)
            return Pmf(self.places, [number(_of(label), p) for label, p in pairs], but)
        return Pmf(self.places, number("the pmf of all other actions", self.each), but)


def _of(label: Label) -> str:
    return f"the pmf of action {shown(label)}"


def weighed(pmf: Mapping[Label, float]) -> Iterator[tuple[Label, float, int]]:
    """Probabilities, an action that has each, and how many have it; what all share comes once."""
    if isinstance(pmf, Pmf) and not isinstance(pmf.each, list):
        for label, p in pmf.but.items():
            yield label, p, 1
        n = len(pmf.places) - len(pmf.but)
        if n:
            yield next(label for label in pmf.places if label not in pmf.but), pmf.each, n
    else:
        for label, p in pmf.items():
            yield label, p, 1


class Lists:
    """The lists of actions that the lines of one log have given so far, for who writes it."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Label, ...], int] = {}  # since a list was given
        self._names: dict[tuple[Label, ...], str] = {}
        self.features = Sets()

    def clear(self) -> None:
        """Nothing has been given: it is another file, or nobody knows what is in it."""
        self.features.clear()
        self._lines.clear()
        self._names.clear()

    def to_json(self, pmf: Mapping[Label, float]) -> Any:
        """What a line holds of the probabilities."""
        actions = tuple(pmf)
        if len(actions) <= FEW:
            return [[label_to_json(label), p] for label, p in pmf.items()]
        if len(self._names) >= _MOST_LISTS and actions not in self._names:
            self._lines.clear()
            self._names.clear()
        written: dict[str, Any] = {}
        n_lines = self._lines.get(actions, AGAIN)
        if n_lines >= AGAIN:
            labels = [label_to_json(label) for label in actions]
            digest = hashlib.blake2b(json.dumps(labels).encode(), digest_size=6)
            self._names[actions], n_lines = digest.hexdigest(), 0
            written["actions"] = labels
        self._lines[actions] = n_lines + 1
        values = list(pmf.values())
        each, n_alike = Counter(values).most_common(1)[0]
        if 2 * n_alike < len(values):
            rest: dict[str, Any] = {"each": values}
        else:
            but = [[label_to_json(label), p] for label, p in pmf.items() if p != each]
            rest = {"each": each, "but": but}
        return {"in": self._names[actions], **written, **rest}


def read_pmf(given: Any, lists: dict[str, Places]) -> Mapping[Label, Any]:
    """The probabilities in a line; its list of actions joins those that the file has given so far.

    In lines of others it may be an object of labels and probabilities.
    """
    if isinstance(given, dict):
        return _shared(given, lists) if isinstance(given.get("in"), str) else given
    return _pairs(given)


def _pairs(given: Any) -> dict[Label, Any]:
    if not isinstance(given, list) or not all(isinstance(p, list) and len(p) == 2 for p in given):
        raise InputError(
            f"the pmf is {shown(given)}; expected pairs of an action and a probability"
        )
    pmf = {check_label(label_from_json(label)): p for label, p in given}
    if len(pmf) < len(given):
        raise InputError("the pmf names an action twice; expected every eligible action once")
    return pmf


def _shared(given: dict[str, Any], lists: dict[str, Places]) -> Pmf:
    name, each = given["in"], given.get("each")
    if "actions" in given:
        lists[name] = _places(given["actions"])
    if name not in lists:
        raise InputError(
            f"the pmf is in the list of actions {shown(name)}, which no line before this one "
            "gives; read the log from its start, or from a line with its actions on"
        )
    places = lists[name]
    but = _pairs(given.get("but", []))
    for label in but:
        if label not in places:
            raise InputError(
                f"the pmf names {shown(label)}, which is not in its list of actions; expected "
                "those alone"
            )
    if isinstance(each, list) and len(each) != len(places):
        raise InputError(
            f"the pmf has {len(each)} probabilities for {len(places)} actions; expected one for "
            "each"
        )
    return Pmf(places, each, but)


def _places(given: Any) -> Places:
    if not isinstance(given, list):
        raise InputError(f"the pmf's actions are {shown(given)}; expected an array of labels")
    places = {check_label(label_from_json(label)): i for i, label in enumerate(given)}
    if len(places) < len(given):
        raise InputError("the pmf names an action twice; expected every eligible action once")
    return places
