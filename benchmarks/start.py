"""How long the first decision takes, from the start of the process, and what compiling costs.

    python -m benchmarks.start [--docs]

Each number is from processes of their own, best of three, the sides taking turns: an `Agent` with
nothing kept, one whose machine code is kept, and VowpalWabbit where it is installed (`make
bench-start` sees to it). Then one agent lives its first 300 rounds, interpreted until its machine
code is there: how long single rounds take. CPU seconds are the process's own, all threads.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.pages import put

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 3

AGENT = """
import melee
agent = melee.Agent(actions=["sports", "politics", "science"])
decision = agent.act({"age": 31, "device": "phone", "hour": 20})
SAY("decided")
agent.learn(decision.id, reward=1.0)
while not agent.ready:
    time.sleep(0.005)
SAY("ready")
"""
VW = """
from vowpalwabbit import Workspace
workspace = Workspace("--cb_explore 3 --epsilon 0.05 --quiet")
pmf = workspace.predict("| age:31 device=phone hour:20")
SAY("decided")
"""
LIFE = """
import numpy as np
import melee
rng = np.random.default_rng(0)
agent = melee.Agent(actions=list(range(10)))
rounds = []
for i in range(300):
    began = time.perf_counter()
    device = f"device {rng.integers(2 + i // 40)}"
    context = {"age": float(rng.normal(40, 12)), "hour": i % 24, "device": device}
    if i >= 150:
        context["late"] = float(rng.normal())
    decision = agent.act(context)
    agent.learn(decision.id, float(rng.random() < 0.3))
    rounds.append(time.perf_counter() - began)
said["median"], said["worst"] = float(np.median(rounds)), float(np.max(rounds))
said["interpreted"] = not agent.ready
"""
FRAME = """
import json, resource, time
said = {{}}
def SAY(what):
    used = resource.getrusage(resource.RUSAGE_SELF)
    said[what], said["cpu"] = time.time() - {began}, used.ru_utime + used.ru_stime
{body}
print(json.dumps(said))
"""


def run(body: str, place: Path) -> dict[str, Any]:
    """What a process says of itself, times counted from its start."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MELEE_")}
    environment["MELEE_CACHE_DIR"] = str(place)
    script = FRAME.format(began=time.time(), body=body)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def measure() -> dict[str, dict[str, Any]]:
    """The best of some repetitions of every kind of start."""
    best: dict[str, dict[str, Any]] = {}

    def note(name: str, said: dict[str, Any]) -> None:
        if name not in best or said["decided"] < best[name]["decided"]:
            best[name] = said

    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "kept"
        for _ in range(REPEATS):
            shutil.rmtree(place, ignore_errors=True)
            note("agent, nothing kept", run(AGENT, place))
            note("agent, machine code kept", run(AGENT, place))
            if importlib.util.find_spec("vowpalwabbit"):
                note("VowpalWabbit", run(VW, place))
        lives = []
        for _ in range(REPEATS):
            shutil.rmtree(place, ignore_errors=True)
            lives.append(run(LIFE, place))
        best["life"] = min(lives, key=lambda said: float(said["worst"]))
    return best


def as_markdown(best: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| start of a process | first decision | machine code | CPU until then |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, said in best.items():
        if name != "life":
            ready = f"{said['ready']:.2f} s" if "ready" in said else "–"
            cpu = f"{said['cpu']:.1f} s"
            lines.append(f"| {name} | {said['decided']:.2f} s | {ready} | {cpu} |")
    life = best["life"]
    lines += [
        "",
        f"While it compiles, a round (act and learn, ten actions) of the default agent takes "
        f"{1e3 * life['median']:.1f} ms in the median of its first 300, and at most "
        f"{1e3 * life['worst']:.0f} ms.",
    ]
    return "\n".join(lines) + "\n"


def draw(best: dict[str, dict[str, Any]], path: Path) -> None:
    """Bars: seconds from the start of the process to the first decision."""
    from matplotlib.figure import Figure

    names = [name for name in best if name != "life"]
    figure = Figure(figsize=(6.4, 0.5 + 0.45 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    values = [best[name]["decided"] for name in names]
    colours = ["0.6" if name == "VowpalWabbit" else "#31688e" for name in names]
    axes.barh(names, values, color=colours, height=0.6)
    for i, value in enumerate(values):
        axes.annotate(f" {value:.2f} s", (value, i), va="center", fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("seconds from the start of the process to the first decision", fontsize=9)
    axes.tick_params(labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results", metavar="DIR")
    parser.add_argument("--docs", action="store_true", help="also put it into docs/benchmarks.md")
    given = parser.parse_args()
    best = measure()
    text = as_markdown(best)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "start.json").write_text(json.dumps(best, indent=1) + "\n")
    draw(best, given.out / "start.png")
    if given.docs:
        put("start", text, "benchmarks.md")
        draw(best, ROOT / "docs/figures/start.svg")


if __name__ == "__main__":
    main()
