"""Which kind of article to show to which reader: an agent beside what could be earned.

    python examples/news.py --out docs/figures/news.svg

Readers are simulated, so the chance of a click is known for every kind of article, and so is what
the best possible choice earns. The agent is told none of that: it sees the reader, chooses, and
hears whether there was a click, some readers later where clicks come late (`--late`). Halfway a new
kind of article joins.

All policies meet the same readers, and every one is scored by the chance of a click of what it
chose, which is the mean of the clicks without their noise. The references:

- *uniform*: any kind, all with the same probability;
- *best single kind*: the one kind that earns most over all readers of the world, shown to every
  reader; known in hindsight, and chosen again when the new kind joins;
- *best possible*: for every reader the kind with the highest chance, known to nobody.
"""

import argparse
import math
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import melee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ["sports", "politics", "science", "culture", "local"]
JOINS = "video"
INTERESTS = ["football", "tennis", "space", "health", "film", "books"]
IN_A_NOTEBOOK = {"rounds": 8_000, "seeds": 1, "late": 200}
COLORS = {
    "best possible": "#555555",
    "agent": "#0072b2",
    "best single kind": "#d55e00",
    "uniform": "#999999",
}

Reader = dict[str, Any]


def draw_reader(rng: np.random.Generator) -> Reader:
    """A reader as a web site knows one: numbers, texts, a list of texts, and gaps."""
    reader: Reader = {
        "age": int(rng.integers(18, 81)),
        "device": str(rng.choice(["phone", "tablet", "desktop"], p=[0.6, 0.1, 0.3])),
        "hour": int(rng.integers(6, 24)),
        "subscriber": bool(rng.random() < 0.3),
        "interests": [interest for interest in INTERESTS if rng.random() < 0.25],
    }
    if rng.random() < 0.2:
        reader["age"] = None  # not told
    if rng.random() < 0.1:
        del reader["interests"]  # not asked
    return reader


def chance(reader: Reader, kind: str) -> float:
    """The probability that the reader clicks on an article of this kind: some 1 to 6 %."""
    age = 40.0 if reader["age"] is None else float(reader["age"])
    likes: list[str] = reader.get("interests", [])
    hour, phone = int(reader["hour"]), bool(reader["device"] == "phone")
    if kind == "sports":
        return 0.01 + 0.036 * ("football" in likes or "tennis" in likes) + 0.012 * (hour >= 18)
    if kind == "politics":
        return 0.006 + 0.042 / (1.0 + math.exp((50.0 - age) / 5.0)) + 0.012 * (hour < 10)
    if kind == "science":
        return 0.01 + 0.036 * ("space" in likes or "health" in likes) + 0.006 * (not phone)
    if kind == "culture":
        return 0.01 + 0.036 * ("film" in likes or "books" in likes)
    if kind == "local":
        return 0.022 + 0.01 * bool(reader["subscriber"])
    return 0.006 + 0.012 * phone + 0.048 * (phone and age < 35)  # video


def best_single_kinds(n_readers: int = 20_000) -> tuple[str, str]:
    """The kind that earns most over all readers, before the new one joins and after."""
    rng = np.random.default_rng(0)
    readers = [draw_reader(rng) for _ in range(n_readers)]
    means = {k: float(np.mean([chance(r, k) for r in readers])) for k in [*KINDS, JOINS]}
    return max(KINDS, key=means.__getitem__), max(means, key=means.__getitem__)


def play(
    seed: int, n_rounds: int, singles: tuple[str, str], late: int = 0
) -> dict[str, np.ndarray]:
    """The chance of a click of what each policy chose, round by round, in one run."""
    rng = np.random.default_rng([seed, 1])
    agent = melee.Agent(KINDS, seed=seed)
    kinds, single = list(KINDS), singles[0]
    earned = {name: np.empty(n_rounds) for name in COLORS}
    clicks: deque[tuple[str, bool]] = deque()  # of decisions whose reward is not known yet
    for t in range(n_rounds):
        if t == n_rounds // 2:
            agent.add_actions([JOINS])
            kinds.append(JOINS)
            single = singles[1]
        reader = draw_reader(rng)
        chances = {kind: chance(reader, kind) for kind in kinds}
        decision = agent.act(reader)
        clicks.append((decision.id, bool(rng.random() < chances[decision.action])))
        if len(clicks) > late:
            id, clicked = clicks.popleft()
            agent.learn(id, reward=float(clicked))
        earned["agent"][t] = chances[decision.action]
        earned["uniform"][t] = np.mean(list(chances.values()))
        earned["best single kind"][t] = chances[single]
        earned["best possible"][t] = max(chances.values())
    return earned


def draw(curves: dict[str, np.ndarray]) -> "Figure":
    """Draw means over seeds (axis 0) and over blocks of rounds, with the name at each line's end.

    The band around the agent is two standard errors over seeds, each way.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_seeds, n_rounds = curves["agent"].shape
    size = max(n_rounds // 40, 1)
    n_blocks = n_rounds // size
    middle = (np.arange(n_blocks) + 0.5) * size
    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    highest = 0.0
    for name, color in COLORS.items():
        blocks = curves[name][:, : n_blocks * size].reshape(n_seeds, n_blocks, size).mean(axis=2)
        mean = blocks.mean(axis=0)
        highest = max(highest, float(mean.max()))
        width = 2.2 if name == "agent" else 1.4
        axes.plot(middle, mean, color=color, linewidth=width, solid_capstyle="round")
        if name == "agent" and n_seeds > 1:
            error = 2.0 * blocks.std(axis=0, ddof=1) / np.sqrt(n_seeds)
            axes.fill_between(middle, mean - error, mean + error, color=color, alpha=0.15, lw=0)
        axes.annotate(
            name,
            (middle[-1], mean[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            color=color,
            va="center",
            weight="bold" if name == "agent" else "normal",
            annotation_clip=False,
        )
    axes.set_ylim(0.0, 1.05 * highest)
    axes.axvline(n_rounds // 2, color="#bbbbbb", linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.annotate(
        f"{JOINS} joins",
        (n_rounds // 2, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(5, 6),
        textcoords="offset points",
        color="#777777",
        fontsize=9,
    )
    axes.set_xlim(0, n_rounds)
    axes.set_xlabel("round")
    axes.set_ylabel("chance of a click")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    return figure


def example(rounds: int = 40_000, seeds: int = 10, late: int = 0) -> "Figure":
    """Play, print what was earned when, and draw it."""
    singles = best_single_kinds()
    runs = [play(seed, rounds, singles, late) for seed in range(seeds)]
    curves = {name: np.array([run[name] for run in runs]) for name in COLORS}
    n = rounds
    parts = {
        f"1–{n // 8:,}": slice(0, n // 8),
        f"{n // 8 + 1:,}–{n // 2:,}": slice(n // 8, n // 2),
        f"{n // 2 + 1:,}–{5 * n // 8:,}": slice(n // 2, 5 * n // 8),
        f"{5 * n // 8 + 1:,}–{n:,}": slice(5 * n // 8, n),
        "all": slice(0, n),
    }
    print(f"chance of a click by rounds, mean of {seeds} runs")
    print(" " * 18 + "".join(f"{part:>13}" for part in parts))
    for name, curve in curves.items():
        cells = (f"{curve[:, part].mean():.4f}" for part in parts.values())
        print(f"{name:18}" + "".join(f"{cell:>13}" for cell in cells))
    if seeds > 1:
        error = curves["agent"].mean(axis=1).std(ddof=1) / np.sqrt(seeds)
        print(f"standard error of the agent's mean over all rounds: {error:.5f}")
    return draw(curves)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "news"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """The example, as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to draw the figure (.svg or .png)")
    parser.add_argument("--rounds", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=10, help="runs, each with readers of its own")
    parser.add_argument("--late", type=int, default=0, help="readers between a click and its news")
    given = parser.parse_args()
    if given.rounds < 8 or given.seeds < 1 or given.late < 0:
        parser.error("expected at least 8 rounds and 1 seed, and no click before its reader")
    figure = example(given.rounds, given.seeds, given.late)
    if given.out is not None:
        save(figure, given.out)


if __name__ == "__main__":
    main()
