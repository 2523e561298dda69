"""From a method, a path and a body to an answer, whatever they are; in any process."""

import json
import logging
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote

from melee.errors import MeleeError
from melee.serve.refusals import Refusal, status_of
from melee.serve.routes import Answer, Call, Route

_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_log = logging.getLogger("melee.serve")


class Router:
    """Finds what stands behind a path.

    Parameters
    ----------
    routes
        What there is.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._open: dict[int, list[tuple[list[str], Route]]] = {}
        for route in routes:
            if "{" in route.path:
                parts = route.path[1:].split("/")
                self._open.setdefault(len(parts), []).append((parts, route))
            else:
                self._fixed.setdefault(route.path, {})[route.method] = route

    def find(self, method: str, raw: str) -> tuple[Route, dict[str, str]]:
        """The route of a path as it was sent, and what the path names."""
        fixed = self._fixed.get(raw)
        if fixed is not None:
            if method in fixed:
                return fixed[method], {}
            raise _other_method(fixed)
        given = raw[1:].split("/")
        matching: dict[str, Route] = {}
        for parts, route in self._open.get(len(given), ()):
            if all(a == b or (a[0] == "{" and b) for a, b in zip(parts, given, strict=True)):
                if route.method == method:
                    return route, _read_path(parts, given)
                matching[route.method] = route
        if matching:
            raise _other_method(matching)
        raise Refusal(404, "there is nothing at this path; /openapi.json lists what there is")


async def answered(route: Route, call: Call) -> Answer:
    """What a call is answered, with the library's sentences where it is refused."""
    try:
        return await route.handler(call)
    except Exception as error:
        return refused(error)


def refused(error: Exception) -> Answer:
    """What is answered where something went wrong."""
    if isinstance(error, MeleeError):
        return Answer({"error": str(error)}, status_of(error))
    _log.error("a defect of melee", exc_info=error)
    return Answer({"error": f"a defect of melee: {type(error).__name__}"}, 500)


def encoded(answer: Answer) -> bytes:
    """The content of an answer as it is sent."""
    content: Any = answer.content
    if isinstance(content, bytes):
        return content
    if answer.type == "application/json":
        return _JSON.encode(content).encode()
    text: str = content
    return text.encode()


def _read_path(parts: Iterable[str], given: Iterable[str]) -> dict[str, str]:
    try:
        return {
            name[1:-1]: unquote(part, errors="strict")
            for name, part in zip(parts, given, strict=True)
            if name[0] == "{"
        }
    except UnicodeDecodeError:
        raise Refusal(400, "the path is not UTF-8 text") from None


def _other_method(routes: dict[str, Route]) -> Refusal:
    return Refusal(405, f"this path takes {' and '.join(sorted(routes))} only")
