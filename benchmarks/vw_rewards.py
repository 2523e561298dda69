"""What Vowpal Wabbit's explorers earn on the rows that MELEE plays.

    python -m benchmarks.vw_rewards --suite DIR --seeds 3 --max-rounds 4000 --out DIR2

Every dataset of the suite is prepared as `melee bench` prepares it: the same rows, order and
scaled features, the intercept being VW's own. `--cbify` plays them with settings of the kind that
the contextual bandit bake-off chose among (Bietti, Agarwal and Langford 2021). The reward is that
of the actions drawn, from the first row on: what a user would have earned. Tasks that know their
expected rewards, as those of the suite `production`, are given to VW with the cost of every action,
and its shares are counted instead of its rewards; those that only an agent can play are left out.

VW's `--random_seed` changes nothing in `--cbify`, whose draws are keyed by the number of the row,
so a seed is an order of the rows and nothing else.

Resumable: a line is appended to DIR2/rewards.jsonl for every dataset, setting and seed that is
finished, and what is there is not played again. Lines know neither the code that prepared the rows
nor the content of a dataset; after a change of either, take another directory.
"""

import argparse
import fcntl
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import vw
from benchmarks.peers.compare import say
from melee.atomic import write_atomically
from melee.datasets.suites import Entry, Suite, load_suite
from melee.errors import DataError, MeleeError
from melee.preparation import N_LABELLED, prepare
from melee.shares import share
from melee.task import Task

ALGORITHMS = {
    "ε-greedy": ["--epsilon 0.05 --cb_type mtr", "--epsilon 0 --cb_type mtr"],
    "RegCB-opt": [f"--regcbopt --mellowness {m} --cb_type mtr" for m in (0.1, 0.01, 0.001)],
    "SquareCB": [f"--squarecb --gamma_scale {g} --cb_type mtr" for g in (10, 100)],
    "Cover-NU": [f"--cover 16 --nounif --psi {p} --cb_type dr" for p in (0.1, 1)],
}
OVERHEAD = 20
"""A row costs VW as much as so many more features; measured, for the estimate of time alone."""

stop: Event
"""In a worker: set when it is to end after the setting it is playing."""


class Key(NamedTuple):
    """What a line of the file is about."""

    dataset: str
    seed: int
    max_rounds: int
    options: str


class Unit(NamedTuple):
    """What a worker is given: rows of a dataset of a suite, and what to play on them."""

    suite: str
    keys: tuple[Key, ...]
    log: Path


def settings(given: argparse.Namespace) -> dict[str, str]:
    """VW's options, each with its algorithm."""
    found = {
        f"--cb_explore_adf {options} -l {rate:g}": algorithm
        for algorithm, variants in ALGORITHMS.items()
        for options in variants
        for rate in given.rates
    }
    if given.both_costs:
        # RegCB and SquareCB suppose costs in [0, 1] unless they are told otherwise.
        ranges = dict.fromkeys(("RegCB-opt", "SquareCB"), " --cb_min_cost -1 --cb_max_cost 0")
        found |= {f"{o} --loss0 -1 --loss1 0{ranges.get(a, '')}": a for o, a in found.items()}
    return found


def initialize(event: Event) -> None:
    """Leave Ctrl-C to the driver, which sets the event."""
    global stop
    stop = event
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=1)
def load(suite: str, dataset: str) -> Task:
    """The task; its next seed is most often played by the same worker."""
    return load_suite(suite).entry(dataset).load()


def play(unit: Unit) -> float:
    """Play every setting, appending a line for each; the seconds that VW took."""
    dataset, seed, max_rounds, _ = unit.keys[0]
    task = load(unit.suite, dataset)
    if task.live:
        raise DataError(f"dataset {task.name}: only an agent can play it")
    is_labels = (task.rewards == task.rewards.astype(bool)).all() and (
        task.rewards.sum(1) == 1
    ).all()
    if not is_labels and task.expected is None:
        raise DataError(f"dataset {task.name}: not one action rewarded in every row")
    prepared = prepare(task, seed=seed, max_rounds=max_rounds)
    total = 0.0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.vw"
        (vw.write if task.expected is None else vw.write_costs)(prepared, path)
        for key in unit.keys:
            if stop.is_set():
                break
            began = time.perf_counter()
            if task.expected is None:
                drawn = f"--cbify {task.n_actions} {key.options}"
                score = vw.drive(drawn, path, prepared.n_rounds).mean_reward
            else:
                drawn = f"--cbify {task.n_actions} --cbify_cs {key.options}"
                actions = np.array(vw.actions_of(drawn, path))
                score = share(task.expected[prepared.order], actions)
            took = time.perf_counter() - began
            total += took
            record = {"n_rounds": prepared.n_rounds, "score": score}
            record["seconds"] = round(took, 4)
            line = json.dumps(key._asdict() | record) + "\n"
            # One write to the end of the file, so that lines of several workers do not mix.
            with unit.log.open("ab", buffering=0) as file:
                file.write(line.encode())
    return total


def finished(path: Path) -> dict[Key, float]:
    """The mean rewards in the file; a torn last line is cut off it."""
    path.touch()
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    records = [json.loads(line) for line in whole.splitlines()]
    return {Key(*(record[k] for k in Key._fields)): record["score"] for record in records}


def size(entry: Entry, max_rounds: int) -> int:
    """What a pass over this dataset costs, in no unit; guessed where the suite says nothing."""
    n_rounds = min((entry.n_rows or max_rounds) - N_LABELLED, max_rounds)
    return max(n_rounds, 0) * (entry.n_actions or 2) * ((entry.n_columns or 20) + OVERHEAD)


def pending(suite: Suite, given: argparse.Namespace, log: Path) -> Iterator[tuple[int, Unit]]:
    """What is left to play, the largest dataset first, each with its size."""
    done = finished(log)
    for entry in sorted(suite, key=lambda e: -size(e, given.max_rounds)):
        if entry.n_rows is not None and entry.n_rows <= N_LABELLED:
            continue
        for seed in range(given.seeds):
            keys = (Key(entry.name, seed, given.max_rounds, o) for o in settings(given))
            if left := tuple(key for key in keys if key not in done):
                cost = size(entry, given.max_rounds) * len(left)
                yield cost, Unit(given.suite, left, log)


def play_all(units: list[tuple[int, Unit]], workers: int) -> int:
    """Play the units, the first alone to foretell the others' time; how many had a problem."""
    event = multiprocessing.Event()
    todo, done, seconds = sum(cost for cost, _ in units), 0, 0.0
    n_done = n_problems = 0
    with ProcessPoolExecutor(workers, initializer=initialize, initargs=(event,)) as pool:
        try:
            for batch in (units[:1], units[1:]):
                running = {pool.submit(play, unit): (cost, unit) for cost, unit in batch}
                for future in as_completed(running):
                    cost, unit = running[future]
                    n_done, todo = n_done + 1, todo - cost
                    dataset, seed, *_ = unit.keys[0]
                    name = f"[{n_done}/{len(units)}] {dataset}, seed {seed}"
                    try:
                        took = future.result()
                    except (MeleeError, RuntimeError) as error:
                        n_problems += 1
                        say(f"✗ {name}: left out: {error}")
                        continue
                    done, seconds = done + cost, seconds + took
                    left = todo * seconds / max(done, 1) / workers / 60
                    say(f"{name}: {len(unit.keys)} settings, {took:.1f} s; {left:.1f} min left")
        except BaseException:
            event.set()
            pool.shutdown(cancel_futures=True)
            raise
    return n_problems


def tabulate(suite: Suite, given: argparse.Namespace, done: dict[Key, float]) -> dict[str, Any]:
    """Mean rewards of every setting, over the datasets on which all settings and seeds are done."""
    rewards = {}
    for name in suite.names:
        part = [Key(name, seed, given.max_rounds, "") for seed in range(given.seeds)]
        cells = {
            o: [done.get(k._replace(options=o), np.nan) for k in part] for o in settings(given)
        }
        if not np.isnan(list(cells.values())).any():
            rewards[name] = {o: float(np.mean(of_seeds)) for o, of_seeds in cells.items()}
    table = []
    for o, algorithm in settings(given).items():
        datasets = {name: means[o] for name, means in rewards.items()}
        mean = float(np.mean(list(datasets.values()))) if datasets else None
        row = {"algorithm": algorithm, "options": o, "score": mean, "datasets": datasets}
        table.append(row)
    about = {"suite": given.suite, "seeds": given.seeds, "max_rounds": given.max_rounds}
    return {**about, "n_datasets": len(rewards), "of": len(suite), "settings": table}


def as_markdown(numbers: dict[str, Any]) -> str:
    """Every algorithm at its best setting, then every setting, best first."""
    ranked = sorted(numbers["settings"], key=lambda s: -s["score"])
    best: dict[str, dict[str, Any]] = {}
    for setting in ranked:
        best.setdefault(setting["algorithm"], setting)
    head = ["| algorithm | options | mean reward or share |", "| --- | --- | ---: |"]
    rows = [
        [f"| {s['algorithm']} | `{s['options']}` | {s['score']:.4f} |" for s in part]
        for part in (best.values(), ranked)
    ]
    about = "{n_datasets} of {of} datasets, {seeds} seeds, at most {max_rounds} rounds."
    lines = [about.format(**numbers), "Each algorithm at its best setting in hindsight:", ""]
    return "\n".join([*lines, *head, *rows[0], "", "All settings:", "", *head, *rows[1]])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vw_rewards")
    parser.add_argument("--suite", required=True, help="a suite's name, or a directory")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-rounds", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1, 0.5, 2.0])
    parser.add_argument("--both-costs", action="store_true", help="costs -1/0 beside 0/1")
    given = parser.parse_args()
    if (least := min(given.seeds, given.max_rounds, given.workers)) < 1:
        parser.error(f"{least} is given where at least 1 is expected")
    return given


def main() -> int:
    given = arguments()
    suite = load_suite(given.suite)
    given.out.mkdir(parents=True, exist_ok=True)
    log = given.out / "rewards.jsonl"
    with (given.out / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f"{given.out}: another run writes there; wait for it", file=sys.stderr)
            return 2
        units = list(pending(suite, given, log))
        say(f"{len(units)} datasets and seeds to play, {len(settings(given))} settings")
        try:
            n_problems = play_all(units, given.workers)
        except KeyboardInterrupt:
            say("interrupted; the same command goes on from here")
            return 130
        numbers = tabulate(suite, given, finished(log))
        write_atomically(given.out / "vw_rewards.json", json.dumps(numbers, indent=1).encode())
    if not numbers["n_datasets"]:
        print("no dataset is complete", file=sys.stderr)
        return 1
    print(as_markdown(numbers))
    return 1 if n_problems else 0


if __name__ == "__main__":
    sys.exit(main())
