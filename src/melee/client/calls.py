"""What is sent to the service, and how its answers are read; nothing here is sent."""

import json
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from melee.decision import Decision, Ranking
from melee.errors import InputError, MeleeError, shown
from melee.labels import Label, label_from_json, label_to_json

Answered = TypeVar("Answered")
Offer: TypeAlias = Iterable[Label] | Mapping[Label, Any] | None
"""Labels of the open actions, or candidates as a dict of labels and features."""
AGAIN = (408, 429, 502, 503, 504)
"""Statuses after which it is worth trying again."""


class ServiceError(MeleeError):
    """The service refused, or could not be reached; `status` is None where it did not answer."""

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status


class Request(NamedTuple, Generic[Answered]):
    """One request, which may be sent any number of times, and what to make of its answer."""

    method: str
    path: str
    body: bytes
    read: Callable[[Any], Answered]


class Address(NamedTuple):
    """Where a service is."""

    host: str
    port: int
    secure: bool
    prefix: str


def address(url: str) -> Address:
    """Where a service is, from its URL.

    >>> address("http://localhost:8642")
    Address(host='localhost', port=8642, secure=False, prefix='')
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise InputError(f"the address is {shown(url)}; expected one such as http://localhost:8642")
    secure = parts.scheme == "https"
    return Address(host, port or (443 if secure else 80), secure, parts.path.rstrip("/"))


def headers(key: str | None) -> dict[str, str]:
    """What every request has."""
    found = {"Content-Type": "application/json"}
    if key is not None:
        if not key.isascii() or not key.isprintable():
            raise InputError("the key has characters that no key has")
        found["Authorization"] = f"Bearer {key}"
    return found


def pause(attempt: int) -> float:
    """Seconds before the next attempt: longer each time, and of another length for everybody."""
    return min(0.05 * 2.0**attempt, 2.0) * (0.5 + random.random())


def read_answer(call: Request[Answered], status: int, content: bytes) -> Answered:
    """What a call asked for; a `ServiceError` with the service's sentence where it was refused."""
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if status >= 400:
        said = answer.get("error") if isinstance(answer, dict) else None
        raise ServiceError(str(said or f"the service answered {status}"), status)
    try:
        return call.read(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise ServiceError(
            f"{call.path}: the answer cannot be read ({type(error).__name__}: {error}); is this "
            "the address of melee?",
            status,
        ) from None


def unreachable(url: str, error: BaseException) -> ServiceError:
    """What is said of a service that does not answer."""
    said = str(error) or type(error).__name__
    return ServiceError(f"{url} cannot be reached ({said}); check the address, and that it runs")


# -- the calls -----------------------------------------------------------------------------------


class Calls:
    """What can be asked of one agent.

    Parameters
    ----------
    prefix
        What paths begin with.
    agent
        The name of the agent; by default the one called `agent`.
    """

    def __init__(self, prefix: str, agent: str | None) -> None:
        own = "" if agent is None else f"/agents/{quote(agent, safe='')}"
        self._all = f"{prefix}/v1"
        self._base = f"{prefix}/v1{own}"
        self._agent = agent or "agent"

    def act(
        self, context: Any, actions: Offer, id: str | None, unit: str | None, top: int | None
    ) -> Request[Decision | Ranking]:
        """A decision; with `top` several actions, best first."""
        body = {"context": _context(context), "id": new_id() if id is None else id}
        _add_actions(body, actions)
        if unit is not None:
            body["unit"] = unit
        if top is not None:
            body["top"] = top
        read: Callable[[Any], Decision | Ranking] = _decision if top is None else _ranking
        return self._call("POST", "/decisions", body, read)

    def follow(
        self,
        context: Any,
        action: Label,
        probability: float | None,
        actions: Iterable[Label] | None,
        id: str | None,
    ) -> Request[Decision]:
        """Somebody else's choice, repeated."""
        body = {"context": _context(context), "id": new_id() if id is None else id}
        body["chosen"] = label_to_json(action)
        if probability is not None:
            body["probability"] = probability
        _add_actions(body, actions)
        return self._call("POST", "/decisions", body, _decision)

    def trials(self) -> Request[list[dict[str, Any]]]:
        """What is known of trials."""
        return self._call("GET", "/trials", None, lambda found: list(found["trials"]))

    def begin_trial(self, name: str, explorer: str | None, share: float) -> Request[dict[str, Any]]:
        """A trial begins, or gets another share."""
        body: dict[str, Any] = {"share": share}
        if explorer is not None:
            body["explorer"] = explorer
        return self._call("PUT", f"/trials/{quote(name, safe='')}", body, dict)

    def end_trial(self, name: str) -> Request[dict[str, Any]]:
        """A trial ends."""
        return self._call("DELETE", f"/trials/{quote(name, safe='')}", None, dict)

    def roll_back(self, to: int | str, relearn_after: int | None) -> Request[dict[str, Any]]:
        """Back to what was known after an event."""
        body: dict[str, Any] = {"to": to}
        if relearn_after is not None:
            body["relearn_after"] = relearn_after
        return self._call("POST", "/rollback", body, dict)

    def act_many(
        self,
        contexts: Iterable[Any],
        actions: Offer | Sequence[Offer],
        ids: Sequence[str] | None,
    ) -> Request[list[Decision]]:
        """Many decisions, all or none."""
        rows = [_context(context) for context in contexts]
        body: dict[str, Any] = {"contexts": rows}
        body["ids"] = [new_id() for _ in rows] if ids is None else list(ids)
        _add_actions(body, actions)
        return self._call(
            "POST",
            "/decisions",
            body,
            lambda found: [_decision(decision) for decision in found["decisions"]],
        )

    def learn(self, decision: str | Decision, reward: float) -> Request[bool]:
        """A decision's reward; whether it was learned just now."""
        path = f"{_path(decision)}/reward"
        return self._call("POST", path, {"reward": reward}, lambda found: found["learned"] > 0)

    def learn_many(
        self, decisions: Iterable[str | Decision], rewards: Iterable[float]
    ) -> Request[int]:
        """Rewards of many decisions, all or none; how many were learned just now."""
        ids, numbers = [_id(decision) for decision in decisions], list(rewards)
        if len(ids) != len(numbers):
            raise InputError(
                f"there are {len(ids)} decisions and {len(numbers)} rewards; expected one for each"
            )
        pairs = zip(ids, numbers, strict=True)
        body = {"rewards": [{"id": id, "reward": reward} for id, reward in pairs]}
        return self._call("POST", "/rewards", body, lambda found: int(found["learned"]))

    def look_up(self, decision: str | Decision) -> Request[dict[str, Any]]:
        """A past decision."""
        return self._call("GET", _path(decision), None, dict)

    def explain(self, decision: str | Decision) -> Request[dict[str, Any]]:
        """A past decision, and why it was made."""
        return self._call("GET", f"{_path(decision)}/explanation", None, dict)

    def create(self, parameters: dict[str, Any]) -> Request[dict[str, Any]]:
        """A new agent, unless it is there."""
        body = dict(parameters)
        if body.get("actions") is not None:
            body["actions"] = [label_to_json(label) for label in body["actions"]]
        path = f"/agents/{quote(self._agent, safe='')}"
        return Request("PUT", f"{self._all}{path}", _dumps(body), dict)

    def status(self) -> Request[dict[str, Any]]:
        """All that one may want to watch."""
        return Request("GET", f"{self._all}/agents/{quote(self._agent, safe='')}", b"", dict)

    def change_actions(self, add: Iterable[Label], remove: Iterable[Label]) -> Request[list[Label]]:
        """Actions that come and go; those there are then."""
        body = {
            "add": [label_to_json(label) for label in add],
            "remove": [label_to_json(label) for label in remove],
        }
        return self._call(
            "POST", "/actions", body, lambda found: [label_from_json(x) for x in found["actions"]]
        )

    def _call(
        self, method: str, path: str, body: Any, read: Callable[[Any], Answered]
    ) -> Request[Answered]:
        return Request(method, self._base + path, b"" if body is None else _dumps(body), read)


def new_id() -> str:
    """An id that nobody else makes."""
    return os.urandom(12).hex()


def _id(decision: str | Decision) -> str:
    id = decision.id if isinstance(decision, Decision) else decision
    if not isinstance(id, str) or not id:
        raise InputError(f"id is {shown(id)}; expected the text of a decision's id")
    return id


def _path(decision: str | Decision) -> str:
    id = _id(decision)
    try:
        return f"/decisions/{quote(id, safe='')}"
    except UnicodeError:
        raise InputError(f"id is {shown(id)}; expected a text of Unicode") from None


def _context(given: Any) -> Any:
    """A context as JSON has it: arrays and rows of tables as lists and objects."""
    for method in ("tolist", "to_dict"):
        if hasattr(given, method):
            return getattr(given, method)()
    return given


def _add_actions(body: dict[str, Any], actions: Any) -> None:
    if isinstance(actions, Mapping):
        body["actions"] = _candidates(actions)
    elif actions is not None:
        body["actions"] = [_offered(entry) for entry in actions]


def _offered(given: Any) -> Any:
    """A label; or, in a list for many contexts, the candidates or labels of one of them."""
    if isinstance(given, Mapping):
        return _candidates(given)
    if isinstance(given, list | set):
        return [label_to_json(label) for label in given]
    return label_to_json(given)


def _candidates(given: Mapping[Label, Any]) -> Any:
    """Candidates as JSON has them; labels that are no texts are values of their own."""
    if all(isinstance(label, str) for label in given):
        return {label: _context(features) for label, features in given.items()}
    return [
        {"action": label_to_json(label), "features": _context(features)}
        for label, features in given.items()
    ]


def _dumps(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the request cannot be written as JSON ({error}); expected numbers, texts, true, "
            "false, lists of texts and None"
        ) from None


def _decision(found: Any) -> Decision:
    return Decision(
        found["id"],
        label_from_json(found["action"]),
        found["probability"],
        found["policy"],
        found["version"],
        tuple(label_from_json(label) for label in found["actions"]),
        tuple(found["probabilities"]),
    )


def _ranking(found: Any) -> Ranking:
    return Ranking(found["id"], tuple(_decision(place) for place in found["places"]))
