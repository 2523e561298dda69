"""The supervisor: starts the learner and the workers, and starts them again when they die.

It owns the sockets. Each worker listens at one of its own at the same address, so that the kernel
shares connections out; the learner listens at one that only this user can reach. All of them stay
open while a process is started again: who connects meanwhile waits, and is answered.
"""

import asyncio
import json
import logging
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from melee.errors import DataError, InputError
from melee.serve.sockets import DRAIN, listen
from melee.serve.starting import heard

MOST = 64
"""Workers."""
QUICK = 2.0
"""Seconds; a process that lives no longer has failed to start."""
TRIES = 6
"""How often a process may fail to start, one time after the other."""
PATIENCE = 60.0
"""Seconds that the learner has to write its snapshots at the end."""
_log = logging.getLogger("melee.serve")


@dataclass
class Child:
    """A process to be kept alive."""

    name: str
    module: str
    given: dict[str, Any]
    descriptor: int
    process: asyncio.subprocess.Process | None = None
    failures: int = 0
    began: float = 0.0
    error: Exception | None = None

    async def start(self) -> asyncio.subprocess.Process:
        """Start it, and tell it what it has to know."""
        self.began = time.monotonic()
        made = self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(self.descriptor,),
        )
        assert made.stdin is not None
        made.stdin.write(json.dumps(self.given).encode() + b"\n")
        _log.info("%s is process %d", self.name, made.pid)
        return made

    def end(self, how: int = signal.SIGTERM) -> None:
        """Ask it to end."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(how)


class Supervisor:
    """Keeps a learner and its workers alive.

    Parameters
    ----------
    n_workers
        How many take requests.
    host, port
        Where; 0 takes a free port.
    learner
        What the learner is told: `agents`, `data`, `keep` and `trials`, which begin once.
    keys
        Those of the service, with their levels.
    log_level, log_format
        Of all processes.
    """

    def __init__(
        self,
        n_workers: int,
        host: str,
        port: int,
        learner: dict[str, Any],
        *,
        keys: dict[str, str] | None = None,
        log_level: str = "info",
        log_format: str = "text",
    ) -> None:
        check_workers(n_workers)
        self.sockets = listen_together(host, port, n_workers)
        self.port: int = self.sockets[0].getsockname()[1]
        self._directory = tempfile.TemporaryDirectory(prefix="melee-")
        place = str(Path(self._directory.name) / "learner")
        self._desk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._desk.bind(place)
        self._desk.listen(MOST * 2)
        common = {"log_level": log_level, "log_format": log_format}
        number = self._desk.fileno()
        about = {**learner, **common, "listening": number}
        self.learner = Child("the learner", "melee.serve.learner", about, number)
        self.workers = []
        for i, listening in enumerate(self.sockets):
            told = {"place": place, "keys": keys or {}, "debug": log_level == "debug"}
            told |= {**common, "listening": listening.fileno()}
            self.workers.append(
                Child(f"worker {i + 1}", "melee.serve.worker", told, listening.fileno())
            )
        self._ended = asyncio.Event()

    async def run(self, ready: Callable[[list[str]], None]) -> None:
        """Serve until SIGTERM or Ctrl-C; then have all requests answered, synced and a snapshot.

        Parameters
        ----------
        ready
            Is called once, with the names of the agents, when requests are answered.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ended.set)
        kept: list[asyncio.Task[None]] = []
        try:
            await asyncio.gather(*(child.start() for child in (self.learner, *self.workers)))
            ready((await self._hear())["agents"])
            self.learner.given.pop("trials", None)  # they have begun; what becomes of them is kept
            kept = [
                asyncio.create_task(self._keep(child)) for child in (self.learner, *self.workers)
            ]
            await self._ended.wait()
        finally:
            for task in kept:
                task.cancel()
            await self._stop()
        for child in (self.learner, *self.workers):
            if child.error is not None:
                raise child.error

    async def _hear(self) -> dict[str, Any]:
        """Wait for the learner to be ready; what it says."""
        process = self.learner.process
        assert process is not None
        assert process.stdout is not None
        line = asyncio.create_task(process.stdout.readline())
        ended = asyncio.create_task(self._ended.wait())
        await asyncio.wait([line, ended], return_when="FIRST_COMPLETED")
        ended.cancel()
        if not line.done():
            line.cancel()
            return {"agents": []}
        return heard(line.result())

    async def _keep(self, child: Child) -> None:
        """Start a process again whenever it ends."""
        while True:
            assert child.process is not None
            code = await child.process.wait()
            lived = time.monotonic() - child.began
            child.failures = child.failures + 1 if lived < QUICK else 0
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            _log.warning("%s has ended (%s); it is started again", child.name, how)
            if child.failures >= TRIES:
                child.error = DataError(
                    f"{child.name} has ended {TRIES} times as soon as it was started; see what it "
                    "said before"
                )
                self._ended.set()
                return
            if child.failures:
                await asyncio.sleep(min(0.1 * 2.0**child.failures, 2.0))
            await child.start()
            if child is self.learner:
                try:
                    await self._hear()
                except (DataError, InputError) as error:
                    _log.warning("the learner cannot start: %s", error)

    async def _stop(self) -> None:
        """End the workers, which answer what is under way; then the learner."""
        await self._finish(self.workers, DRAIN + 5.0)
        await self._finish([self.learner], PATIENCE)
        for held in (*self.sockets, self._desk):
            held.close()
        self._directory.cleanup()

    async def _finish(self, children: list[Child], patience: float) -> None:
        left = [child.process for child in children if child.process is not None]
        for child in children:
            child.end()
        if left:
            waits = [asyncio.create_task(process.wait()) for process in left]
            await asyncio.wait(waits, timeout=patience)
        for child in children:  # nothing is lost: what was acknowledged is on disk
            child.end(signal.SIGKILL)


def check_workers(n_workers: int) -> None:
    """Refuse numbers of workers that cannot be."""
    if not 1 <= n_workers <= MOST:
        raise InputError(f"--workers is {n_workers}; expected 1 to {MOST}")
    if n_workers > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise InputError(
            "--workers: several processes cannot listen at one address on this system; give 1"
        )


def listen_together(host: str, port: int, n: int) -> list[socket.socket]:
    """Sockets at one address, among which the kernel shares connections out."""
    first = listen(host, port, shared=True)
    made = [first]
    try:
        while len(made) < n:
            made.append(listen(host, first.getsockname()[1], shared=True))
    except BaseException:
        for opened in made:
            opened.close()
        raise
    return made
