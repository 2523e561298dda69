"""How long a save keeps other threads waiting: `python -m benchmarks.saving`.

An agent with many decisions that wait is saved while another thread asks for probabilities. Prints
how long the save held the agent's lock, by the clock and in the processor's time (on a busy machine
the two differ), and how long the other thread's calls took.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from melee import Agent


class WatchedLock:
    """A lock that notes how long one thread holds it."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.thread: threading.Thread | None = None
        self.clock = self.processor = 0.0

    def __enter__(self) -> None:
        self.lock.acquire()
        self.since = time.perf_counter(), time.thread_time()

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is self.thread:
            self.clock = max(self.clock, time.perf_counter() - self.since[0])
            self.processor = max(self.processor, time.thread_time() - self.since[1])
        self.lock.release()


def waiting(n: int, n_actions: int, explorer: str, log: Path | None) -> Agent:
    """An agent that has decided n times and knows nothing of its rewards."""
    rng = np.random.default_rng(0)
    agent = Agent(list(range(n_actions)), explorer, max_pending=n, log=log)
    contexts = [
        {"age": float(age), "device": f"device {age % 3:.0f}", "hour": float(age % 24)}
        for age in rng.integers(18, 80, size=1000)
    ]
    while agent.n_pending_ < n:
        agent.act_many(contexts[: n - agent.n_pending_])
    return agent


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log.jsonl"
        for n_actions, explorer, kept in [
            (3, "epsilon-greedy", None),
            (3, "epsilon-greedy", log),
            (3, "melee", None),
            (1000, "linucb", None),
        ]:
            agent = waiting(given.decisions, n_actions, explorer, kept)
            agent.pmf({"age": 30})  # compiles
            file = Path(directory) / "agent"
            saving = threading.Thread(target=agent.save, args=(file,))
            calls: list[float] = []
            agent._lock = watch = WatchedLock(agent._lock)
            watch.thread = saving
            start = time.perf_counter()
            saving.start()
            while saving.is_alive():
                before = time.perf_counter()
                agent.pmf({"age": 30})
                calls.append(time.perf_counter() - before)
            took = time.perf_counter() - start
            print(
                f"{given.decisions:,} decisions wait, K = {n_actions}, {explorer}"
                f"{', logged' if kept else ''}: lock held {1e3 * watch.clock:.1f} ms "
                f"({1e3 * watch.processor:.1f} of the processor), "
                f"pmf {1e3 * max(calls):.1f} ms at most ({len(calls)} calls), "
                f"save {took:.2f} s, {file.stat().st_size / 1e6:.0f} MB"
            )


if __name__ == "__main__":
    main()
