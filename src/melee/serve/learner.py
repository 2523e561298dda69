"""The learner: the one process that keeps the journal, and answers what workers are asked.

It decides, learns and syncs for all of them, in the order in which requests come; so the model is
the journal's whoever served, no model is ever behind, and what holds of one process holds of many.
"""

import asyncio
import json
import signal
import socket
import sys
from typing import Any

from melee.collecting import settle, without_collecting
from melee.serve.answering import Router, answered, encoded, refused
from melee.serve.frames import NOTE, Framed, read_question, reply
from melee.serve.metrics import Requests
from melee.serve.routes import ROUTES, Call
from melee.serve.service import Service, open_journal

HELLO = reply(NOTE, 0, b"", b"")


class Office:
    """What all connections to workers have in common."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.router = Router(ROUTES)
        self.tasks: set[asyncio.Task[None]] = set()
        self.desks: set[Desk] = set()
        self._past = Requests()  # of workers that are gone

    def count(self) -> None:
        """Have the service know of what all workers have answered."""
        self.service.requests = self._past.joined(*(desk.requests for desk in self.desks))
        self.service.n_workers = len(self.desks)

    def forget(self, desk: "Desk") -> None:
        """Keep what a worker that is gone has answered."""
        self.desks.discard(desk)
        self._past = self._past.joined(desk.requests)
        self.count()


class Desk(Framed):
    """A connection to a worker."""

    def __init__(self, office: Office) -> None:
        super().__init__()
        self.office = office
        self.requests = Requests()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say that requests can come."""
        super().connection_made(transport)
        self.office.desks.add(self)
        self.office.count()
        self.write(HELLO)

    def connection_lost(self, exc: Exception | None) -> None:
        """Go on without it; what it has asked is done all the same."""
        self.office.forget(self)

    def frame_received(self, frame: bytes) -> None:
        """Begin with a request."""
        number, target, body = read_question(frame)
        if number == NOTE:
            self.requests = Requests.from_json(json.loads(body))
            self.office.count()
            return
        task = self._loop.create_task(self._answer(number, target, body))
        self.office.tasks.add(task)
        task.add_done_callback(self.office.tasks.discard)

    async def _answer(self, number: int, target: bytes, body: bytes) -> None:
        method, _, raw = target.decode().partition(" ")
        try:
            route, path = self.office.router.find(method, raw)
            answer = await answered(route, Call(self.office.service, path, body=body))
            content = encoded(answer)
        except Exception as error:
            answer = refused(error)
            content = encoded(answer)
        self.write(reply(number, answer.status, answer.type.encode(), content))


def main(given: dict[str, Any]) -> None:
    """Answer workers until SIGTERM, or until who has started this is gone."""
    from melee.serve.server import loop_factory
    from melee.serve.starting import read_agents, tell

    parameters = read_agents(given["agents"])
    with without_collecting():
        service = Service(open_journal(given["journal"], **given["keep"]))
        try:
            service.open(parameters, given.get("trials"))
        except BaseException:
            service.journal.close()
            raise
    settle()
    listening = socket.socket(fileno=given["listening"])
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(service, listening, lambda: tell({"agents": list(service.agents)})))


async def _run(service: Service, listening: socket.socket, ready: Any) -> None:
    from melee.serve.starting import watch_parent

    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    watch_parent(loop, ended.set)
    office = Office(service)
    await service.start()
    server = await loop.create_unix_server(lambda: Desk(office), sock=listening)
    ready()
    await ended.wait()
    server.close()
    if office.tasks:
        await asyncio.wait(office.tasks, timeout=5.0)
    await service.stop()


if __name__ == "__main__":
    from melee.serve.starting import begin

    sys.exit(begin(main))
