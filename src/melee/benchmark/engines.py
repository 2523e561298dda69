"""Engines: where groups of cells are run. All give the same records; only the time differs."""

import contextlib
import dataclasses
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Any, Protocol

from melee.benchmark.cells import Plan, code_version
from melee.benchmark.store import Record
from melee.benchmark.work import ATTEMPTS, Group, Outcome, Times, play_group, run_group, warm_up
from melee.errors import DataError, InputError, MeleeError, unknown
from melee.extras import needed
from melee.learners.ridge import MAX_EXACT_FEATURES

PAUSE = 0.01
"""Seconds for which the driver lets finished cells gather: it wants no core for itself."""

PATIENCE = 20.0
"""Seconds to wait for a Dask scheduler, and for its first worker."""


class Engine(Protocol):
    """Runs groups; yields records as they are finished, in any order."""

    times: Times
    starting: float

    def run(self, groups: list[Group]) -> Generator[Record, None, None]:
        """Run all groups; every cell of every group gets a record."""


def engine(
    name: str,
    *,
    workers: int,
    plan: Plan,
    timeout: float | None = None,
    scheduler: str | None = None,
) -> Engine:
    """The engine of that name, for the explorers of a plan."""
    if name == "local":
        if scheduler is not None:
            raise InputError("--scheduler is for --engine dask; leave it out, or use that engine")
        return LocalEngine(workers, plan, timeout)
    if name == "dask":
        if timeout is not None:
            raise InputError("--timeout is for --engine local; leave it out, or use that engine")
        return DaskEngine(workers, scheduler)
    raise unknown("engine", name, ["local", "dask"])


@dataclass(eq=False)
class _Worker:
    process: Any
    pipe: Any
    began: float  # to start; then its latest cell
    ready: bool = False
    group: Group | None = None
    left: set[str] = field(default_factory=set)


class LocalEngine:
    """Processes on this machine, each with one thread for linear algebra."""

    def __init__(self, workers: int, plan: Plan, timeout: float | None = None) -> None:
        self.workers, self.explorers, self.timeout = workers, plan.explorers, timeout
        self.wide = any(dataset.n_features > MAX_EXACT_FEATURES for dataset in plan.datasets)
        self.times, self.starting = Times(), 0.0
        self._numbers = itertools.count()
        self._died_starting = 0

    def run(self, groups: list[Group]) -> Generator[Record, None, None]:
        """Hand groups out one at a time; a process that dies takes only its cell with it."""
        waiting, workers = deque(groups), list[_Worker]()
        attempts: dict[str, int] = {}
        try:
            while n_left := len(waiting) + sum(worker.group is not None for worker in workers):
                while len(workers) < min(self.workers, n_left):
                    workers.append(self._start())
                for worker in workers:
                    if worker.ready and worker.group is None and waiting:
                        _hand_out(worker, waiting)
                yield from self._listen(workers, waiting, attempts)
        finally:
            for worker in workers:
                _end(worker)

    def _listen(
        self, workers: list[_Worker], waiting: deque[Group], attempts: dict[str, int]
    ) -> Iterator[Record]:
        """Take what has arrived within a second; look after processes that died or hang."""
        deadlines = [worker.began + (self.timeout or 0.0) for worker in workers if worker.group]
        patience = 1.0
        if self.timeout is not None and deadlines:
            patience = min(max(min(deadlines) - time.monotonic(), 0.0), patience)
        pipes = [worker.pipe for worker in workers]
        ready = multiprocessing.connection.wait(pipes, timeout=patience)
        if ready:
            time.sleep(PAUSE)
        for worker in list(workers):
            if worker.pipe in ready:
                try:
                    yield from self._take(worker)
                except (EOFError, OSError):
                    workers.remove(worker)
                    _end(worker)
                    reason = f"its process died ({_exit_reason(worker.process.exitcode)})"
                    self._note_death(worker, reason)
                    yield from _give_back(worker, reason, waiting, attempts)
            elif (
                self.timeout is not None
                and worker.group is not None
                and time.monotonic() - worker.began > self.timeout
            ):
                workers.remove(worker)
                _end(worker)
                reason = f"it took longer than {self.timeout:g} seconds"
                yield from _give_back(worker, reason, waiting, attempts)

    def _take(self, worker: _Worker) -> Iterator[Record]:
        """All that a worker has sent."""
        while worker.pipe.poll():
            message = worker.pipe.recv()
            if isinstance(message, Record):
                worker.left.discard(message.key)
                worker.began = time.monotonic()
                yield message
            elif isinstance(message, Times):
                self.times.add(message)
                worker.group = None
            elif isinstance(message, MeleeError):
                raise message
            else:
                worker.ready, self._died_starting = True, 0
                self.starting = max(self.starting, time.monotonic() - worker.began)

    def _note_death(self, worker: _Worker, reason: str) -> None:
        if not worker.ready:
            self._died_starting += 1
            if self._died_starting > ATTEMPTS * self.workers:
                raise DataError(
                    f"no worker can start: {reason}; free memory, or use fewer with --workers"
                )

    def _start(self) -> _Worker:
        # Each begins to compile somewhere else and finds in the cache what others have done.
        first = next(self._numbers) % self.workers * len(self.explorers) // self.workers
        explorers = self.explorers[first:] + self.explorers[:first]
        context = multiprocessing.get_context("spawn")
        pipe, other_end = context.Pipe()
        process = context.Process(
            target=_serve, args=(other_end, explorers, self.wide), daemon=True
        )
        with environment_of_workers(), without_interrupts():
            process.start()
        other_end.close()
        return _Worker(process, pipe, time.monotonic())


def _hand_out(worker: _Worker, waiting: deque[Group]) -> None:
    group = waiting.popleft()
    try:
        worker.pipe.send(group)
    except OSError:  # it has just died, which is noticed when it is listened to
        waiting.appendleft(group)
        return
    worker.group, worker.left = group, {cell.key for cell in group.cells}
    worker.began = time.monotonic()


def _give_back(
    worker: _Worker, reason: str, waiting: deque[Group], attempts: dict[str, int]
) -> Iterator[Record]:
    """What a lost worker was at: the cell in its hands is tried again, then given up."""
    group = worker.group
    left = [cell for cell in group.cells if cell.key in worker.left] if group else []
    if group is None or not left:
        return
    suspect = left[0]  # cells are played in order
    attempts[suspect.key] = attempts.get(suspect.key, 0) + 1
    if attempts[suspect.key] >= ATTEMPTS:
        yield Record.failure(suspect.key, f"{reason}, {ATTEMPTS} times")
        left = left[1:]
    if left:
        waiting.appendleft(dataclasses.replace(group, cells=tuple(left)))


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _exit_reason(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"{name}, perhaps out of memory" if name == "SIGKILL" else name
    return f"exit code {code}"


@contextlib.contextmanager
def environment_of_workers() -> Iterator[None]:
    """Children that start in here use one thread each: they share the cores already."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    wanted = dict.fromkeys(threads, "1")
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Children that start in here never see Ctrl-C, which is the driver's to handle."""
    resource_tracker.ensure_running()  # else it starts in here, and lets interrupts in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Any, explorers: tuple[str, ...], wide: bool) -> None:
    """A worker process: warm up, then play groups until the pipe closes or the driver dies."""
    follow_driver()
    try:
        code_version()  # of the files that were imported a moment ago
        warm_up(explorers, wide)
        pipe.send("ready")
        while True:
            group, times = pipe.recv(), Times()
            try:
                for record in play_group(group, times):
                    pipe.send(record)
                pipe.send(times)
            except MeleeError as error:
                pipe.send(error)
    except (EOFError, OSError):
        sys.exit(0)


def follow_driver() -> None:
    """Of a worker process: end as soon as the driver has ended, even in the middle of a cell."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        threading.Thread(target=_end_after, args=(driver,), daemon=True).start()


def _end_after(driver: Any) -> None:
    driver.join()
    os._exit(0)


class DaskEngine:
    """Workers of a Dask cluster: one that is running, or one started here on loopback.

    A remote worker needs this version of melee and the suite at the same path.
    """

    def __init__(self, workers: int, scheduler: str | None = None) -> None:
        with needed("--engine dask", "dask"):
            import distributed
        self.workers, self.scheduler = workers, scheduler
        self.times, self.starting = Times(), 0.0
        self._dask: Any = distributed

    def run(self, groups: list[Group]) -> Generator[Record, None, None]:
        """Submit all groups; Dask runs a group again if its worker is lost.

        Who is lost with a worker may only have waited there. So the cells of groups on which Dask
        gives up are tried once more at the end, one by one, and only those fail that are to blame.
        """
        began = time.monotonic()
        with self.client() as client:
            self.starting = time.monotonic() - began
            suspects: list[Group] = []
            for group, future in self._finished(client, groups):
                if future.status == "finished":
                    yield from self._records(future)
                else:
                    suspects += [dataclasses.replace(group, cells=(cell,)) for cell in group.cells]
            for suspect in suspects:
                for _, future in self._finished(client, [suspect]):
                    if future.status == "finished":
                        yield from self._records(future)
                    else:
                        reason = self._reason(future.exception())
                        yield Record.failure(suspect.cells[0].key, reason)

    def _finished(self, client: Any, groups: list[Group]) -> Iterator[tuple[Group, Any]]:
        """Groups and their futures, finished or given up, as they come."""
        futures = {
            client.submit(run_group, group, key=f"melee-{uuid.uuid4().hex}"): group
            for group in groups
        }
        for future in self._dask.as_completed(list(futures), loop=client.loop):
            if future.status not in ("finished", "error"):
                raise DataError(
                    "the Dask scheduler is gone; what was finished is kept: start it and run the "
                    "same command again"
                )
            if future.status == "error" and isinstance(future.exception(), MeleeError):
                raise future.exception()
            yield futures.pop(future), future

    def _records(self, future: Any) -> list[Record]:
        outcome: Outcome = future.result()
        self.times.add(outcome.times)
        return outcome.records

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, self._dask.KilledWorker):
            return f"its Dask worker died, {error.allowed_failures + 1} times"
        return f"{type(error).__name__}: {error}"

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """A client, of a cluster that is taken down again if it was started here."""
        with contextlib.ExitStack() as stack:
            address: Any = self.scheduler
            if address is None:
                stack.enter_context(environment_of_workers())
                with without_interrupts():
                    cluster = self._dask.LocalCluster(
                        n_workers=self.workers,
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",
                        scheduler_kwargs={"dashboard": False},
                    )
                address = stack.enter_context(cluster)
            try:
                client = self._dask.Client(address, timeout=PATIENCE, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answers at {self.scheduler} ({error}); check the address"
                ) from None
            stack.enter_context(client)
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise InputError(
                    f"the Dask scheduler at {self.scheduler} has no workers; start some with "
                    f"dask worker {self.scheduler}"
                ) from None
            yield client
