"""Actions with features: what they earn and take, beside agents without them and VowpalWabbit.

    python -m benchmarks.candidates --values DIR --out DIR2

in the environment of `make bench-peers`. DIR holds tables whose last column is a number. Parts:

- *values*: 100 values of the number to choose from, 2,000 rounds (suite `values:DIR`);
- *catalogue*: articles that come and go (suite `catalogue`), by shares, and what articles earn in
  their first 50 shows, as a lead over uniform choice;
- *explorers*: the same two suites by every other explorer that takes candidates, a setting each;
- *speed*: act and learn from Python, with 10, 100 and 10,000 candidates of 5 features each.

VowpalWabbit plays `--cb_explore_adf` with several settings, all joined by `-q`, and with two kinds
of cost, -reward and 1 - reward, which differ in what it believes at first; the best of them on the
mean counts. Resumable: a line for each result is appended to DIR2/candidates.jsonl.
"""

import argparse
import dataclasses
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import melee
from melee.arrays import Floats, Ints
from melee.datasets.suites import load_suite
from melee.preparation import Prepared, prepare
from melee.rehearsal import rehearse
from melee.shares import share, uniform_and_best
from melee.task import Task

EXPLORERS = (
    "linucb:alpha=0.2",
    "linucb:alpha=1.0",
    "thompson:scale=0.1",
    "thompson:scale=0.3",
    "squarecb:learner=ridge",
    "squarecb:learner=adaptive",
    "epsilon-greedy:learner=ridge:epsilon=0.05",
    "epsilon-greedy:learner=adaptive:epsilon=0.05",
    "uniform",
)
FIRST_SHOWS = 50
ROUNDS = 2000
JOINED = ["-q ca", "-q ca -q aa --cubic caa"]
LOSS = "1 - reward"
VW = [
    f"{joined} {explores}{costs}"
    for costs in ("", f", cost {LOSS}")
    for joined in JOINED
    for explores in (
        "--epsilon 0.05",
        "--squarecb --gamma_scale 10",
        "--squarecb --gamma_scale 100",
        "--regcbopt --mellowness 0.001",
        "--bag 5 --greedify --epsilon 0.01",
    )
]


def main() -> None:
    """Run what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--values", type=Path, help="a directory of tables")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default="values,catalogue,explorers,speed")
    parser.add_argument("--without-vw", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "candidates.jsonl"
    done = {}
    if file.exists():
        for line in file.read_text().splitlines():
            result = json.loads(line)
            done[result["part"], result["task"], result["who"]] = result
    for part, task, who, run in jobs(given):
        if (part, task, who) not in done:
            result = {"part": part, "task": task, "who": who, **run()}
            print(json.dumps(result), flush=True)
            with file.open("a") as out:
                out.write(json.dumps(result) + "\n")
            done[part, task, who] = result
    report(list(done.values()))


def jobs(given: Any) -> Iterator[tuple[str, str, str, Callable[[], dict[str, float]]]]:
    """What there is to run."""
    parts = given.parts.split(",")
    suites: list[tuple[str, Any, int | None]] = []
    others = EXPLORERS if "explorers" in parts else ()
    if ("values" in parts or others) and given.values is not None:
        suites.append(("values", load_suite(f"values:{given.values}"), ROUNDS))
    if "catalogue" in parts or others:
        suites.append(("catalogue", load_suite("catalogue"), None))
    for part, suite, rounds in suites:
        for entry in suite:
            prepared = prepare(entry.load(), seed=0)
            if part == "values" and rounds is not None:
                prepared = _cut(prepared, rounds)
            for who, features in (("melee", True), ("melee without features", False)):
                yield part, entry.name, who, partial(ours, prepared, "melee", features)
            for spec in others:
                yield part, entry.name, spec, partial(ours, prepared, spec, True)
            for setting in VW if part in parts and not given.without_vw else []:
                yield part, entry.name, f"VW {setting}", partial(vw, prepared, setting)
    if "speed" in parts:
        for n in (10, 100, 10_000):
            yield "speed", str(n), "melee", partial(speed_ours, n)
            if n <= 100 and not given.without_vw:
                yield "speed", str(n), "VW", partial(speed_vw, n)


def _cut(prepared: Prepared, rounds: int) -> Prepared:
    return dataclasses.replace(prepared, order=prepared.order[:rounds])


def ours(prepared: Prepared, spec: str, features: bool) -> dict[str, float]:
    """An agent of ours."""
    run = rehearse(prepared, spec, features=features)
    return measured(prepared, run.actions, run.rewards, run.seconds)


def measured(
    prepared: Prepared, actions: Ints, rewards: Floats, seconds: float
) -> dict[str, float]:
    """Mean reward; and where expected rewards are known the share, and the lead of new actions."""
    task, rows = prepared.task, prepared.order[: len(actions)]
    said = {"reward": float(rewards.mean()), "microseconds": 1e6 * seconds / len(actions)}
    if task.expected is None or task.open is None:
        return said
    said["share"] = share(task.expected[rows], actions, task.open[rows])
    uniform, _ = uniform_and_best(task.expected[rows], task.open[rows])
    shows = np.zeros(task.n_actions, np.int64)
    there_at_once = task.open[rows[0]]
    leads = []
    for i, action in enumerate(actions.tolist()):
        shows[action] += 1
        if shows[action] <= FIRST_SHOWS and not there_at_once[action]:
            leads.append(task.expected[rows[i], action] - uniform[i])
    said["lead of new"] = float(np.mean(leads)) if leads else 0.0
    return said


def vw(prepared: Prepared, setting: str) -> dict[str, float]:
    """VowpalWabbit over the same rows, scaled as the preparation says, and the same candidates."""
    from vowpalwabbit import Workspace

    task, order = prepared.task, prepared.order
    inputs = prepared.inputs(order)[:, :-1]
    texts = [_vw_candidate(task, a) for a in range(task.n_actions)]
    options = "--cb_explore_adf --cb_type mtr --quiet --random_seed 1"
    asked, _, costs = setting.partition(", cost ")
    workspace = Workspace(f"{options} {asked}")
    rng = np.random.default_rng(0)
    actions, rewards = np.empty(len(order), np.int64), np.empty(len(order))
    began = time.perf_counter()
    for i, row in enumerate(order.tolist()):
        named = " ".join(f"x{j}:{v:.6g}" for j, v in enumerate(inputs[i].tolist()))
        context = f"shared |c {named}"
        there = list(range(task.n_actions))
        if task.open is not None:
            there = np.flatnonzero(task.open[row]).tolist()
        lines = [texts[a] for a in there]
        pmf = np.array(workspace.predict("\n".join([context, *lines])))
        pmf /= pmf.sum()
        chosen = int(rng.choice(len(there), p=pmf))
        actions[i] = there[chosen]
        rewards[i] = task.rewards[row, actions[i]]
        cost = 1.0 - rewards[i] if costs else -rewards[i]
        lines[chosen] = f"0:{cost:.6g}:{pmf[chosen]:.6g} {lines[chosen]}"
        workspace.learn("\n".join([context, *lines]))
    seconds = time.perf_counter() - began
    workspace.finish()
    return measured(prepared, actions, rewards, seconds)


def _vw_candidate(task: Task, action: int) -> str:
    """A candidate's features, numbers standardized, and who it is."""
    rows = task.action_rows
    if rows is None:
        return f"|i id={action}"
    parts = []
    for name, value in rows[action].items():
        if isinstance(value, str):
            parts.append(f"{name}={value}")
        elif value is not None:
            column: Any = rows.columns[name]
            parts.append(f"{name}:{(value - column.mean()) / column.std():.6g}")
    return f"|a {' '.join(parts)} |i id={action}"


def _offers(n: int) -> tuple[list[dict[str, float]], dict[str, dict[str, Any]]]:
    rng = np.random.default_rng(0)
    contexts = [
        {f"c{j}": float(v) for j, v in enumerate(row)} for row in rng.normal(size=(500, 10))
    ]
    topics = ("sport", "film", "news", "science", "music")
    items = {
        f"a{i}": {
            "topic": topics[i % 5],
            **{name: float(rng.normal()) for name in ("age", "length", "price", "score")},
        }
        for i in range(n)
    }
    return contexts, items


def speed_ours(n: int) -> dict[str, float]:
    """CPU time of act and learn, and of act alone, after 300 rounds."""
    contexts, items = _offers(n)
    agent = melee.Agent()
    rng = np.random.default_rng(1)

    def play(rounds: int) -> None:
        for i in range(rounds):
            decision = agent.act(contexts[i % 500], actions=items)
            agent.learn(decision.id, float(rng.random() < 0.3))

    play(3)
    melee.compile_now(agent)
    play(300)
    rounds = 50 if n > 1000 else 1000
    began = time.process_time()
    play(rounds)
    both = time.process_time() - began
    began = time.process_time()
    for i in range(rounds):
        agent.act(contexts[i % 500], actions=items)
    acting = time.process_time() - began
    return {"microseconds": 1e6 * both / rounds, "act alone": 1e6 * acting / rounds}


def speed_vw(n: int) -> dict[str, float]:
    """The same of VowpalWabbit, which is handed text; writing that text is counted."""
    from vowpalwabbit import Workspace

    contexts, items = _offers(n)
    workspace = Workspace("--cb_explore_adf --epsilon 0.05 -q ca --quiet")
    rng = np.random.default_rng(1)

    def play(rounds: int) -> None:
        for i in range(rounds):
            named = " ".join(f"{k}:{v}" for k, v in contexts[i % 500].items())
            lines = [
                "|a "
                + " ".join(f"{k}={v}" if k == "topic" else f"{k}:{v}" for k, v in item.items())
                for item in items.values()
            ]
            pmf = np.array(workspace.predict("\n".join([f"shared |c {named}", *lines])))
            chosen = int(rng.choice(n, p=pmf / pmf.sum()))
            reward = float(rng.random() < 0.3)
            lines[chosen] = f"0:{-reward}:{pmf[chosen]} {lines[chosen]}"
            workspace.learn("\n".join([f"shared |c {named}", *lines]))

    play(300)
    began = time.process_time()
    play(500)
    seconds = time.process_time() - began
    workspace.finish()
    return {"microseconds": 1e6 * seconds / 500}


def report(results: list[dict[str, Any]]) -> None:
    """A table for each part: the mean over tasks."""
    for part, numbers in (
        ("values", ("reward",)),
        ("catalogue", ("share", "lead of new", "reward")),
        ("speed", ("microseconds", "act alone")),
    ):
        own = [result for result in results if result["part"] == part]
        if not own:
            continue
        print(f"\n{part}\n")
        names = list(dict.fromkeys(result["who"] for result in own))
        by_task = list(dict.fromkeys(result["task"] for result in own))
        for number in numbers:
            print(f"| {number} | {' | '.join(by_task)} | mean |")
            print("| --- |" + " ---: |" * (len(by_task) + 1))
            for who in names:
                found = {
                    result["task"]: result.get(number) for result in own if result["who"] == who
                }
                cells = [found.get(task) for task in by_task]
                shown = ["" if share is None else f"{share:.3f}" for share in cells]
                known = [share for share in cells if share is not None]
                mean = f"{np.mean(known):.4f}" if len(known) == len(cells) else ""
                print(f"| {who} | {' | '.join(shown)} | {mean} |")
            print()


if __name__ == "__main__":
    warnings.simplefilter("ignore", melee.MeleeWarning)
    main()
