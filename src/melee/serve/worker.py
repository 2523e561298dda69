"""A worker: takes requests, and has the learner answer them.

What a request is allowed to be (its size, its time, its key, its path) is checked here; what it
asks for is up to the one process that keeps the journal, so that it does not matter which worker
was asked.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from melee.serve.app import App
from melee.serve.frames import NOTE, Framed, question, read_reply
from melee.serve.keys import Keys
from melee.serve.metrics import Requests
from melee.serve.refusals import Refusal
from melee.serve.routes import ALONE, Answer, Call, Route

EVERY = 1.0
"""Seconds from one report of what was answered to the next."""
PATIENCE = 5.0
"""Seconds that a request waits for a learner that is being started."""
LOST = (
    "the learner has ended, and is started again; whether this was done is not known: send it "
    "again, under the same id"
)


class Line(Framed):
    """A connection to the learner.

    Parameters
    ----------
    lost
        Is called at its end, before anybody can ask again.
    """

    def __init__(self, lost: Callable[[], None]) -> None:
        super().__init__()
        self._lost = lost
        self.is_heard = self._loop.create_future()
        self.is_over = self._loop.create_future()
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._number = NOTE

    def ask(self, target: bytes, body: bytes) -> "asyncio.Future[Answer]":
        """Send a request; its answer is still to come."""
        self._number = number = self._number % 0xFFFFFFFF + 1
        future = self._asked[number] = self._loop.create_future()
        self.write(question(number, target, body))
        return future

    def note(self, body: bytes) -> None:
        """Tell something that needs no answer."""
        self.write(question(NOTE, b"", body))

    def frame_received(self, frame: bytes) -> None:
        """Hand an answer to who waits for it."""
        number, status, kind, content = read_reply(frame)
        if number == NOTE:
            if not self.is_heard.done():
                self.is_heard.set_result(None)
            return
        future = self._asked.pop(number, None)
        if future is not None and not future.done():  # its caller may have gone
            future.set_result(Answer(content, status, kind.decode()))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all who wait."""
        self._lost()
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_exception(Refusal(503, LOST))
        if not self.is_over.done():
            self.is_over.set_result(None)


class DistantLearner:
    """The learner as a worker sees it: somebody at a socket, who may be gone for a while.

    Parameters
    ----------
    place
        The path of the socket.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.requests = Requests()
        self._line: Line | None = None
        self._came = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to look for it."""
        self._tasks = [asyncio.create_task(self._keep()), asyncio.create_task(self._report())]

    async def stop(self) -> None:
        """Let go of it."""
        self._tell()
        await asyncio.sleep(0)  # what is written in this turn of the loop
        for task in self._tasks:
            task.cancel()
        if self._line is not None:
            self._line.transport.close()

    @property
    def is_there(self) -> bool:
        """Whether it answers."""
        return self._line is not None

    async def ask(self, target: bytes, body: bytes) -> Answer:
        """Have it answer; a refusal where it is not there for long, or ends meanwhile."""
        if self._line is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), PATIENCE)
        if self._line is None:
            raise Refusal(503, "the learner is not there; nothing was done, send it again")
        return await self._line.ask(target, body)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                _, line = await loop.create_unix_connection(lambda: Line(self._lose), self.place)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            await asyncio.wait([line.is_heard, line.is_over], return_when="FIRST_COMPLETED")
            if not line.is_over.done():
                self._line = line
                self._came.set()
                await line.is_over

    def _lose(self) -> None:
        self._line = None
        self._came.clear()

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            self._tell()

    def _tell(self) -> None:
        if self._line is not None:
            self._line.note(json.dumps(self.requests.to_json()).encode())


class Front(App):
    """The application of a worker."""

    service: DistantLearner

    async def _ask(self, route: Route, raw: str, path: dict[str, str], body: bytes) -> Answer:
        if route.handler in ALONE:
            return await route.handler(Call(None, path, body=body))  # type: ignore[arg-type]
        if route.path == "/ready" and not self.service.is_there:
            raise Refusal(503, "the learner is being started; try again")
        return await self.service.ask(f"{route.method} {raw}".encode(), body)


def main(given: dict[str, Any]) -> None:
    """Take requests until SIGTERM, or until who has started this is gone."""
    from melee.serve.server import serve
    from melee.serve.starting import watch_parent

    def end() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    listening = socket.socket(fileno=given["listening"])
    app = Front(DistantLearner(given["place"]), Keys(given["keys"]))
    serve(app, listening, debug=given["debug"], begin=lambda loop: watch_parent(loop, end))


if __name__ == "__main__":
    from melee.serve.starting import begin

    sys.exit(begin(main))
