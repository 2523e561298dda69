"""What a request holds: one JSON object with known names, of the types that they have.

What a context, a label or a reward may be is the library's to say, in its own sentences.
"""

from collections.abc import Sequence
from typing import Any

from melee.errors import InputError, shown
from melee.history.jsonl import parse
from melee.labels import Label, label_from_json

Body = dict[str, Any]
TOTAL = 100_000
"""Candidates in one request."""


def read(raw: bytes, known: Sequence[str], required: Sequence[str] = ()) -> Body:
    """The object in a body.

    >>> read(b'{"reward": 1}', ["reward"])
    {'reward': 1}
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} of the body is not UTF-8 text") from None
    try:
        body = parse(text, "one JSON object")
    except InputError as error:
        raise InputError(f"the body: {error}") from None
    if not isinstance(body, dict):
        raise InputError(f"the body is {shown(body)}; expected an object with {_list(known)}")
    return check_names(body, known, required)


def check_names(body: Any, known: Sequence[str], required: Sequence[str] = ()) -> Body:
    """An object, if it has all that it must have, and nothing else than it may."""
    if not isinstance(body, dict):
        raise InputError(f"{shown(body)} is no object; expected one with {_list(known)}")
    for name in body:
        if name not in known:
            raise InputError(f"the name {shown(name)} is not known here; known: {_list(known)}")
    for name in required:
        if name not in body:
            raise InputError(f"the {name} is missing; expected an object with {_list(required)}")
    return body


def text(body: Body, name: str) -> str | None:
    """A text, or None where there is none."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} is {shown(value)}; expected a text")
    return value


def flag(body: Body, name: str) -> bool:
    """True or false; false where it is left out."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise InputError(f"{name} is {shown(value)}; expected true or false")
    return value


def entries(body: Body, name: str, most: int) -> list[Any]:
    """A list that is not too long."""
    value = body.get(name)
    if not isinstance(value, list):
        raise InputError(f"{name} is {shown(value)}; expected a list")
    if len(value) > most:
        raise InputError(f"{name} has {len(value):,} entries; expected at most {most:,}")
    return value


def number(
    value: Any, what: str = "the reward", expected: str = "a finite number, in any unit"
) -> float:
    """A JSON number, which `true` is not; whether it is too large is the library's to say."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what} is {shown(value)}; expected {expected}")
    return value


def labels(body: Body, name: str, most: int) -> list[Label] | None:
    """Labels of actions, or None where none are given."""
    if body.get(name) is None:
        return None
    return [label_from_json(label) for label in entries(body, name, most)]


def parameters(given: Any, known: Sequence[str], most: int) -> Body:
    """Those of an agent, as `Agent` takes them; what each may be is the agent's to say.

    >>> parameters({"actions": ["a", {"tuple": ["b", 2]}], "seed": 3}, ["actions", "seed"], 10)
    {'actions': ['a', ('b', 2)], 'seed': 3}
    """
    body = check_names(given, known)
    if not isinstance(body.get("explorer", ""), str):
        raise InputError(f"explorer is {shown(body['explorer'])}; expected its SPEC as a text")
    return {**body, "actions": labels(body, "actions", most)}


def offer(given: Any, most: int) -> Any:
    """What can be chosen from: labels, or candidates as a dict of labels and features.

    Candidates are an object of labels and features; or a list of objects with an `action`, for
    labels that are no texts, and its `features`.

    >>> offer([{"action": 12, "features": {"price": 12}}, {"action": "a"}], 10)
    {12: {'price': 12}, 'a': None}
    """
    if isinstance(given, dict):
        if len(given) > most:
            raise InputError(f"there are {len(given):,} candidates; expected at most {most:,}")
        return given
    listed = entries({"actions": given}, "actions", most)
    if not any(isinstance(entry, dict) and "action" in entry for entry in listed):
        return [label_from_json(label) for label in listed]
    from melee.agent.arguments import read_labels  # a worker, which has no agents, never gets here

    pairs = [check_names(entry, ("action", "features"), ("action",)) for entry in listed]
    labels = read_labels([label_from_json(pair["action"]) for pair in pairs], 1)
    return {label: pair.get("features") for label, pair in zip(labels, pairs, strict=True)}


def offers(given: Any, most: int) -> list[Any] | None:
    """The candidates of each of many contexts, or None where these are the same for all."""
    if not isinstance(given, list) or not all(isinstance(entry, dict | list) for entry in given):
        return None
    if not given or any(isinstance(entry, dict) and "action" in entry for entry in given):
        return None
    entries({"actions": given}, "actions", most)
    found = [offer(offered, most) for offered in given]
    if sum(map(len, found)) > TOTAL:
        raise InputError(
            f"there are {sum(map(len, found)):,} candidates for {len(found):,} contexts; expected "
            f"at most {TOTAL:,} in one request"
        )
    return found


def open_in_each(given: Any, most: int) -> list[list[Label] | None] | None:
    """The open actions of each of many contexts, or None where these are the same for all.

    >>> open_in_each([["a", "b"], None], 10)
    [['a', 'b'], None]
    """
    if not isinstance(given, list) or not any(isinstance(entry, list) for entry in given):
        return None
    found = [labels({"actions": entry}, "actions", most) for entry in given]
    if sum(len(some or ()) for some in found) > TOTAL:
        raise InputError(
            f"there are more than {TOTAL:,} actions for {len(found):,} contexts; expected fewer in "
            "one request, or one list for all"
        )
    return found


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
