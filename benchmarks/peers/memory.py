"""The peak memory of one simulation, in a process of its own: `python -m benchmarks.peers.memory`.

Prints two numbers of bytes: by how much the resident memory grew while the simulation ran, and
how much of that are the arrays it returns.
"""

import argparse
import ctypes
import threading
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

from benchmarks.peers.tasks import Labelled
from melee.loop import simulate
from melee.preparation import prepare


class Peak:
    """The highest resident memory while the block runs, looked at every half millisecond.

    The compiled pass releases Python's lock, so that this thread can look.
    """

    def __enter__(self) -> "Peak":
        self._process = psutil.Process()
        self._done = threading.Event()
        self.bytes = self._resident()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.bytes = max(self.bytes, self._resident())

    def _resident(self) -> int:
        return int(self._process.memory_info().rss)

    def _watch(self) -> None:
        while not self._done.wait(0.0005):
            self.bytes = max(self.bytes, self._resident())


def give_back() -> None:
    """Return freed memory to the system, or a run would take it again without any growth."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc alone has it
        trim(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("arrays", type=Path, help="an .npz file with contexts and labels")
    parser.add_argument("n_rounds", type=int)
    parser.add_argument("spec")
    given = parser.parse_args()
    arrays = np.load(given.arrays)
    rows = Labelled("rows", arrays["contexts"], arrays["labels"])
    prepared = prepare(rows.task(given.n_rounds), seed=0)
    # Machine code, threads and their stacks are there before the first look.
    with Peak():
        simulate(prepared, given.spec, max_rounds=100)
    give_back()
    before = psutil.Process().memory_info().rss
    with Peak() as peak:
        run = simulate(prepared, given.spec)
    outputs = sum(a.nbytes for a in (run.actions, run.rewards, run.probabilities))
    print(peak.bytes - before, outputs)


if __name__ == "__main__":
    main()
