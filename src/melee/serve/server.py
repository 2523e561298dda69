"""Limits on connections, and a clean stop; by uvicorn."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from melee.extras import needed
from melee.serve.app import App
from melee.serve.sockets import DRAIN

with needed("melee serve", "serve"):
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS = 2**16
"""Bytes of a request's first line and headers."""
PATIENCE = 10.0
"""Seconds in which they have to come."""
CONNECTIONS = 2_000
"""Connections at once; more are closed."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class Protocol(HttpToolsProtocol):
    """HTTP with limits on headers: how large they are, and how long they take."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        self._head = 0  # bytes since the last request was read; -1 while its body comes
        self._timer: Any = None
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self._timer = self.loop.call_later(PATIENCE, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Count what comes before the end of the headers."""
        if self._head >= 0:
            self._head += len(data)
            if self._timer is None:
                self._timer = self.loop.call_later(PATIENCE, self._give_up)
        super().data_received(data)
        if self._head > HEADERS and not self.transport.is_closing():
            self._refuse()

    def on_headers_complete(self) -> None:
        """Go on with the body, which the application limits."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEADERS:
            raise ValueError("all of them came at once")  # which ends in `send_400_response`
        self._head = -1
        self._cancel()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or too large a one."""
        if self._head > HEADERS:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        self.transport.write(_TOO_LARGE)
        self.transport.close()

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        self._head = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._cancel()
        super().connection_lost(exc)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.abort()


class Server(uvicorn.Server):
    """A server that ends with 0 when it was asked to end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on Ctrl-C and SIGTERM, once everything is on disk."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def serve(
    app: App,
    listening: socket.socket,
    *,
    debug: bool = False,
    begin: Callable[[Any], None] | None = None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C; then finish, sync and write snapshots.

    Parameters
    ----------
    app, listening
        What answers, and where.
    debug
        Whether to tell of every connection.
    begin
        Is called with the event loop, before anything is answered.
    """
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level="debug" if debug else "error",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN,
    )

    async def run() -> None:
        if begin is not None:
            begin(asyncio.get_running_loop())
        await Server(config).serve(sockets=[listening])

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


def loop_factory() -> Any:
    """What makes an event loop: uvloop, where there is one."""
    if sys.platform == "win32":
        return None
    with needed("melee serve", "serve"):
        import uvloop
    return uvloop.new_event_loop
