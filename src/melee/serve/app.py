"""ASGI: from a request to an answer, whatever the request is."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import unquote

from melee.errors import MeleeError
from melee.limits import Limit
from melee.serve.keys import Keys
from melee.serve.refusals import Refusal, status_of
from melee.serve.routes import ROUTES, Answer, Call, Route
from melee.serve.service import Service

BODY = Limit("MELEE_MAX_BODY", 2**20)
"""Bytes of a request's body."""
PATIENCE = 10.0
"""Seconds in which a body has to come."""
LOCAL = ("localhost", "127.0.0.1", "[::1]")
_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_PAGE = (
    b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    b"connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; "
    b"form-action 'none'"
)
_log = logging.getLogger("melee.serve")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class App:
    """The application.

    Parameters
    ----------
    service
        What it asks.
    keys
        Who may ask for what. Without any, only pages and programs of this machine may.
    """

    def __init__(self, service: Service, keys: Keys | None = None) -> None:
        self.service = service
        self.keys = keys or Keys()
        self.most = BODY.most
        self._fixed: dict[str, dict[str, Route]] = {}
        self._open: dict[int, list[tuple[list[str], Route]]] = {}
        for one in ROUTES:
            if "{" in one.path:
                parts = one.path[1:].split("/")
                self._open.setdefault(len(parts), []).append((parts, one))
            else:
                self._fixed.setdefault(one.path, {})[one.method] = one

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; or begin and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.service.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        route, close = "none", False
        try:
            headers = dict(scope["headers"])
            self._check_place(headers)
            found, path = self._find(scope)
            route = found.path
            self.keys.check(headers.get(b"authorization"), found.level)
            body = b"" if found.method == "GET" else await self._body(headers, receive)
            answer = await found.handler(Call(self.service, path, body=body))
        except MeleeError as error:
            answer = Answer({"error": str(error)}, status_of(error))
            close = isinstance(error, Refusal) and error.close
        except ConnectionError:  # nobody is there to be answered
            return
        except Exception as error:
            _log.exception("a defect of melee")
            answer = Answer({"error": f"a defect of melee: {type(error).__name__}"}, 500)
        await _send(answer, send, close=close)
        self.service.requests.note(route, answer.status, time.perf_counter() - began)

    def _check_place(self, headers: dict[bytes, bytes]) -> None:
        """Refuse what a page of somewhere else asks for through a browser of this machine."""
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != host:
            raise Refusal(403, "this request is from a page of another place; use the service's")
        if not self.keys and host and _name(host) not in LOCAL:
            raise Refusal(
                403, "the service has no keys, and answers to localhost and 127.0.0.1 only"
            )

    def _find(self, scope: dict[str, Any]) -> tuple[Route, dict[str, str]]:
        raw: str = scope.get("raw_path", scope["path"].encode()).decode("ascii", "replace")
        method = scope["method"]
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

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self.most:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionAbortedError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.most:
                        raise self._too_large()
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise Refusal(
                408, f"the body has not come within {PATIENCE:g} seconds; send it again", close=True
            ) from None

    def _too_large(self) -> Refusal:
        return Refusal(413, BODY.sentence("the body is too large"), close=True)


def _name(host: str) -> str:
    """The host without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


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


async def _send(answer: Answer, send: Send, *, close: bool) -> None:
    if answer.type == "application/json":
        content = _JSON.encode(answer.content).encode()
    else:
        content = answer.content.encode()
    headers = [
        (b"content-type", answer.type.encode()),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if answer.type.startswith("text/html"):
        headers.append((b"content-security-policy", _PAGE))
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
