"""ASGI: from a request to an answer, whatever the request is."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from melee.limits import Limit
from melee.serve.answering import Router, encoded, refused
from melee.serve.keys import Keys
from melee.serve.metrics import Requests
from melee.serve.refusals import Refusal
from melee.serve.routes import ROUTES, Answer, Call, Route

BODY = Limit("MELEE_MAX_BODY", 2**20)
"""Bytes of a request's body."""
PATIENCE = 10.0
"""Seconds in which a body has to come."""
ENDS = "the service stops; whether this was done is not known: send it again, under the same id"
LOCAL = ("localhost", "127.0.0.1", "[::1]")
_PAGE = (
    b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    b"connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; "
    b"form-action 'none'"
)
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Living(Protocol):
    """What an application is about: it begins, counts requests, and ends."""

    requests: Requests

    async def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""


class App:
    """The application.

    Parameters
    ----------
    service
        What it asks: a `Service`, unless a subclass asks somebody else.
    keys
        Who may ask for what. Without any, only pages and programs of this machine may.
    """

    def __init__(self, service: Living, keys: Keys | None = None) -> None:
        self.service = service
        self.keys = keys or Keys()
        self.most = BODY.most
        self._router = Router(ROUTES)

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
            raw: str = scope.get("raw_path", scope["path"].encode()).decode("ascii", "replace")
            found, path = self._router.find(scope["method"], raw)
            route = found.path
            self.keys.check(headers.get(b"authorization"), found.level)
            body = b"" if found.method == "GET" else await self._body(headers, receive)
            answer = await self._ask(found, raw, path, body)
        except ConnectionError:  # nobody is there to be answered
            return
        except asyncio.CancelledError:  # the process ends, and has waited long enough
            answer, close = refused(Refusal(503, ENDS)), True
        except Exception as error:
            answer = refused(error)
            close = isinstance(error, Refusal) and error.close
        await _send(answer, send, close=close)
        self.service.requests.note(route, answer.status, time.perf_counter() - began)

    async def _ask(self, route: Route, raw: str, path: dict[str, str], body: bytes) -> Answer:
        """Have a request answered."""
        return await route.handler(Call(self.service, path, body=body))  # type: ignore[arg-type]

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


async def _send(answer: Answer, send: Send, *, close: bool) -> None:
    content = encoded(answer)
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
