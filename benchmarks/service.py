"""How much the service takes: synced pairs, what durability costs, several workers, a start.

    python -m benchmarks.service [--pairs N] [--repeats N] [--events N] [--place DIR] [--docs]

Pairs are decisions with their rewards, of the default agent with ten actions, by 64 callers at once
that cost little (`benchmarks.calling`), on the machine of the service: both share its cores. The
sides take turns, and each has a service of its own. Durability is what a disk costs beside a file
system in memory, where a sync is free. CPU seconds tell more than the clock does on a machine that
others use; its load average stands beside them.

Then a service with so many events behind it is killed under load, and started again: how long until
it is ready, and until it has decided. Its byte code is kept, as that of an installed package is.
"""

import argparse
import atexit
import functools
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import melee
from benchmarks.calling import context
from benchmarks.pages import put
from melee.journal import Journal

ACTIONS = [f"a{i}" for i in range(10)]
CALLERS = 64
WORKERS = 2
MEMORY = Path("/dev/shm")


class Figure(NamedTuple):
    """What one load came to: pairs a second, and CPU microseconds a pair by kind of process."""

    rate: float
    cpu: dict[str, float]
    load: float


class ServiceProcess:
    """A service in processes of its own."""

    def __init__(self, place: Path, *options: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "melee.cli", "serve", "--actions", ",".join(ACTIONS)]
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--journal", str(place), "--port", str(port), *options],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.url = ""

    def wait(self) -> float:
        """Seconds from its start until it is ready."""
        assert self.process.stderr is not None
        while not self.url:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the service has not started")
            found = re.search(r" at (http://\S+), journal in", line)
            self.url = found[1] if found else ""
        while True:
            try:
                self.ask("/ready")
                return time.perf_counter() - self.began
            except (OSError, urllib.error.URLError):
                time.sleep(0.002)

    def ask(self, path: str, body: Any = None) -> Any:
        """What it answers."""
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=60) as answer:
            return json.load(answer)

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far, of the process that was started, of its learner and its workers."""
        found = {"service": _cpu(self.process.pid)}
        for pid in self.children():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            for kind in ("learner", "worker"):
                if f"melee.serve.{kind}" in words:
                    found[f"{kind}s"] = found.get(f"{kind}s", 0.0) + _cpu(pid)
        return found

    def children(self) -> list[int]:
        """The ids of the processes that it has started."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End it; a kill is one of all its processes, none of which may finish anything."""
        for pid in self.children() if how == signal.SIGKILL else ():
            os.kill(pid, how)
        self.process.send_signal(how)
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()


@functools.cache
def environment() -> dict[str, str]:
    """That of the services: byte code is kept in a place of its own, whatever this process does."""
    place = tempfile.mkdtemp(prefix="melee-byte-code-")
    atexit.register(shutil.rmtree, place)
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": place}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(url: str, n_pairs: int) -> dict[str, float]:
    """Pairs a second, and the CPU microseconds of callers for each."""
    command = [sys.executable, "-m", "benchmarks.calling", url, "--pairs", str(n_pairs)]
    done = subprocess.run(
        [*command, "--callers", str(CALLERS)], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    if found["failed"]:
        raise SystemExit(f"{found['failed']:.0f} of {2 * n_pairs} requests have failed")
    return found


def measure(place: Path, n_pairs: int, *options: str) -> Figure:
    """A service at a place, warmed, under load."""
    service = ServiceProcess(place, *options)
    try:
        service.wait()
        while not service.ask("/ready")["compiled"]:
            time.sleep(0.05)
        load(service.url, 1_000)
        before = service.cpu()
        found = load(service.url, n_pairs)
        after = service.cpu()
    finally:
        service.stop()
    used = {name: 1e6 * (after[name] - before[name]) / n_pairs for name in after}
    return Figure(found["rate"], {**used, "callers": found["cpu"]}, os.getloadavg()[0])


def agent_alone(n_pairs: int) -> tuple[float, float]:
    """CPU microseconds to decide and to learn, of an agent alone, without a journal or HTTP."""
    agent, chance = melee.Agent(ACTIONS), random.Random(0)
    melee.compile_now(agent)
    for _ in range(2):  # the first time is not counted
        contexts = [context(chance) for _ in range(n_pairs)]
        rewards = [float(chance.random() < 0.3) for _ in contexts]
        began = time.process_time()
        made = [agent.act(one) for one in contexts]
        middle = time.process_time()
        for decision, reward in zip(made, rewards, strict=True):
            agent.learn(decision, reward)
        end = time.process_time()
    return 1e6 * (middle - began) / n_pairs, 1e6 * (end - middle) / n_pairs


def past(place: Path, n_events: int) -> None:
    """A journal with so many events, as of a service that was killed."""
    journal = Journal(place)
    agent = melee.Agent(ACTIONS, journal=journal)
    melee.compile_now(agent)
    chance = random.Random(0)
    for _ in range(n_events // 2_000):
        contexts = [
            {"age": chance.randrange(18, 90), "hour": chance.randrange(24)} for _ in range(1_000)
        ]
        made = agent.act_many(contexts)
        agent.learn_many(
            [decision.id for decision in made], [float(chance.random() < 0.3) for _ in made]
        )
    agent.close()


def start(place: Path, *options: str) -> tuple[float, float, float]:
    """Kill a service under load, and start it again: seconds to ready, to a decision; the load."""
    service = ServiceProcess(place, *options)
    service.wait()
    caller = subprocess.Popen(
        [sys.executable, "-m", "melee.cli", "load-test", service.url, "--pairs", "1000000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(3.0)
    service.stop(signal.SIGKILL)
    caller.kill()
    caller.wait()
    time.sleep(1.0)
    service = ServiceProcess(place, *options)
    ready = service.wait()
    service.ask("/v1/decisions", {"context": {"age": 31}})
    decided = time.perf_counter() - service.began
    service.stop(signal.SIGKILL)
    time.sleep(1.0)
    return ready, decided, os.getloadavg()[0]


def table(
    sides: dict[str, list[Figure]],
    starts: dict[str, list[tuple[float, float, float]]],
    alone: tuple[float, float],
) -> str:
    """For the documentation."""
    lines = [
        "| | pairs a second: best, median | CPU µs a pair |",
        "| --- | ---: | --- |",
    ]
    for name, figures in sides.items():
        rates = [figure.rate for figure in figures]
        cpu = {
            kind: statistics.median(figure.cpu[kind] for figure in figures)
            for kind in figures[0].cpu
        }
        parts = " + ".join(f"{kind} {value:.0f}" for kind, value in cpu.items() if value >= 1.0)
        lines.append(f"| {name} | {max(rates):,.0f}, {statistics.median(rates):,.0f} | {parts} |")
    one, memory, two = ([figure.rate for figure in figures] for figures in sides.values())
    loads = [figure.load for figures in sides.values() for figure in figures]
    median = statistics.median
    lines += [
        "",
        f"Durability costs {1 - max(one) / max(memory):.0%} of the pairs (by the medians "
        f"{1 - median(one) / median(memory):.0%}); two workers take "
        f"{max(two) / max(one):.2f} × as many as one process (by the medians "
        f"{median(two) / median(one):.2f}). {os.cpu_count()} cores, which the callers share; "
        f"load average {min(loads):.1f} to {max(loads):.1f}. An agent without "
        f"journal and HTTP decides in {alone[0]:.0f} µs and learns in {alone[1]:.0f}.",
    ]
    for name, times in starts.items():
        ready, decided, average = min(times)
        lines.append(
            f"\nKilled under load with {name} and started again: ready after {ready:.2f} s, the "
            f"first decision after {decided:.2f} s, best of {len(times)}; load average "
            f"{average:.1f}."
        )
    return "\n".join(lines)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--events", type=int, default=1_000_000, help="0 leaves the start out")
    parser.add_argument("--place", type=Path, help="a directory on the disk to measure")
    parser.add_argument("--docs", action="store_true", help="write into docs/how-to/scaling.md")
    given = parser.parse_args()
    disk = Path(tempfile.mkdtemp(prefix="melee-service-", dir=given.place))
    memory = Path(tempfile.mkdtemp(prefix="melee-service-", dir=MEMORY))
    sides: dict[str, list[Figure]] = {
        "one process": [],
        "one process, in memory": [],
        "two workers": [],
    }
    starts: dict[str, list[tuple[float, float, float]]] = {}
    try:
        for i in range(given.repeats):
            for name, figures in sides.items():
                place = memory if "memory" in name else disk
                options = ("--workers", str(WORKERS)) if "workers" in name else ()
                figures.append(measure(place / f"{i} {name}", given.pairs, *options))
                print(name, figures[-1], file=sys.stderr, flush=True)
                shutil.rmtree(place / f"{i} {name}")
        if given.events:
            past(disk / "past", given.events)
            for about, options in (
                ("one process", ()),
                ("two workers", ("--workers", str(WORKERS))),
            ):
                times = [start(disk / "past", *options) for _ in range(given.repeats)]
                starts[f"{given.events:,} events behind it, {about},"] = times
    finally:
        shutil.rmtree(disk)
        shutil.rmtree(memory)
    text = table(sides, starts, agent_alone(5_000))
    print(text)
    if given.docs:
        put("service", text, "how-to/scaling.md")


if __name__ == "__main__":
    main()
