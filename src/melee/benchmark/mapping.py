"""One function over many items, on the same engines as the benchmark's cells.

Training uses it for its roll-ins and validations. Results come in the order of the items and do
not depend on the engine or the number of workers, as long as the function's do not.
"""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from melee.benchmark.engines import (
    DaskEngine,
    environment_of_workers,
    follow_driver,
    without_interrupts,
)
from melee.errors import DataError, InputError, unknown


class Mapper(Protocol):
    """Applies a function to every item; a list in the order of the items."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> list[Any]:
        """What the function makes of every item."""


def here(function: Callable[[Any], Any], items: Iterable[Any], /) -> list[Any]:
    """The mapper of one worker: this process."""
    return [function(item) for item in items]


@contextlib.contextmanager
def mapper(
    name: str = "local", *, workers: int = 1, scheduler: str | None = None
) -> Iterator[Mapper]:
    """A mapper on the engine of that name, for as long as the context lasts.

    >>> with mapper(workers=1) as apply:
    ...     apply(abs, [-1, 2])
    [1, 2]
    """
    if name == "local":
        if scheduler is not None:
            raise InputError("--scheduler is for --engine dask; leave it out, or use that engine")
        if workers == 1:
            yield here
            return
        with _pool(workers) as pool:
            yield pool
    elif name == "dask":
        with DaskEngine(workers, scheduler).client() as client:

            def gather(function: Callable[[Any], Any], items: Iterable[Any], /) -> list[Any]:
                return list(client.gather(client.map(function, list(items), pure=False)))

            yield gather
    else:
        raise unknown("engine", name, ["local", "dask"])


@contextlib.contextmanager
def _pool(workers: int) -> Iterator[Mapper]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=follow_driver) as executor:

        def apply(function: Callable[[Any], Any], items: Iterable[Any], /) -> list[Any]:
            try:
                # Processes start when they are first needed, so here.
                with environment_of_workers(), without_interrupts():
                    futures = [executor.submit(function, item) for item in items]
                return [future.result() for future in futures]
            except BrokenProcessPool:
                raise DataError(
                    "a worker process died, perhaps out of memory; what was finished is kept: run "
                    "the same command again, with fewer --workers if it happens again"
                ) from None

        try:
            yield apply
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
