"""Which of several servers, or models, gets a request: by success and latency, while they change.

    python examples/servers.py --out docs/figures/servers.svg

Four servers answer requests. Each has a time that it takes, longer for large requests, and a small
chance to fail. The reward is 1 for an answer at once, a little less for every 100 ms, and 0 for a
failure: so rewards lie close together near 1, and what is to be learned is small beside them.
After a third of the rounds the best server becomes slow; after two thirds it recovers, and another
one begins to fail.

Four policies meet the same requests, and each is scored by the expected reward of what it chose:
in turn (round robin), the server that is best over the whole time (known in hindsight only), an
agent that never forgets, and one that forgets (`half_life`).
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import melee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = ["amber", "birch", "cedar", "delta"]
IN_A_NOTEBOOK = {"rounds": 3_000, "seeds": 1}
COLORS = {
    "best possible": "#555555",
    "agent that forgets": "#0072b2",
    "agent": "#56b4e9",
    "best single server": "#d55e00",
    "in turn": "#999999",
}


def seconds(kilobytes: float, progress: float) -> np.ndarray:
    """The mean time of every server for a request; `progress` goes from 0 to 1."""
    amber = 0.15 + 0.0002 * kilobytes + (0.9 if 1 / 3 <= progress < 2 / 3 else 0.0)
    birch = 0.30 + 0.0001 * kilobytes
    cedar = 0.22 + 0.0009 * kilobytes  # quick for small requests only
    delta = 0.55
    return np.array([amber, birch, cedar, delta])


def failing(progress: float) -> np.ndarray:
    """The chance that a server does not answer."""
    return np.array([0.01, 0.01 + 0.2 * (progress >= 2 / 3), 0.02, 0.005])


def reward(took: float | np.ndarray) -> float | np.ndarray:
    """What an answer is worth: 1 at once, 0.9 after a second, never less than 0."""
    return np.maximum(0.0, 1.0 - 0.1 * took)


def play(seed: int, n_rounds: int, half_life: int) -> dict[str, np.ndarray]:
    """The expected reward of what each policy chose, round by round, in one run."""
    rng = np.random.default_rng([seed, 2])
    agents = {
        "agent": melee.Agent(SERVERS, seed=seed),
        "agent that forgets": melee.Agent(SERVERS, seed=seed, half_life=half_life),
    }
    expected = np.empty((n_rounds, len(SERVERS)))
    earned = {name: np.empty(n_rounds) for name in COLORS}
    for t in range(n_rounds):
        kilobytes = float(rng.gamma(2.0, 150.0))
        request = {"kilobytes": kilobytes, "kind": str(rng.choice(["read", "write"]))}
        means, fails = seconds(kilobytes, t / n_rounds), failing(t / n_rounds)
        # All servers' luck is drawn, so that all policies meet the same.
        took = means * rng.gamma(8.0, 1.0 / 8.0, size=len(SERVERS))
        answers = rng.random(len(SERVERS)) >= fails
        expected[t] = (1.0 - fails) * reward(means)
        for name, agent in agents.items():
            decision = agent.act(request)
            i = SERVERS.index(decision.action)
            agent.learn(decision.id, reward=float(answers[i] * reward(took[i])))
            earned[name][t] = expected[t, i]
    earned["best possible"][:] = expected.max(axis=1)
    earned["best single server"][:] = expected[:, expected.mean(axis=0).argmax()]
    earned["in turn"][:] = expected.mean(axis=1)
    return earned


def draw(curves: dict[str, np.ndarray]) -> "Figure":
    """Draw means over seeds (axis 0) and blocks of rounds, with the name at each line's end."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_seeds, n_rounds = curves["agent"].shape
    size = max(n_rounds // 48, 1)
    n_blocks = n_rounds // size
    middle = (np.arange(n_blocks) + 0.5) * size
    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ends = {}
    for name, color in COLORS.items():
        blocks = curves[name][:, : n_blocks * size].reshape(n_seeds, n_blocks, size).mean(axis=2)
        width = 2.2 if name.startswith("agent") else 1.4
        axes.plot(middle, blocks.mean(axis=0), color=color, linewidth=width)
        ends[name] = float(blocks.mean(axis=0)[-1])
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.12 * (high - low), high)  # room for what happened when
    place = -np.inf
    for name in sorted(ends, key=ends.__getitem__):  # names that would lie on one another move up
        place = max(ends[name], place + 0.055 * (high - low))
        axes.annotate(
            name,
            (middle[-1], place),
            xytext=(8, 0),
            textcoords="offset points",
            color=COLORS[name],
            va="center",
            weight="bold" if name == "agent that forgets" else "normal",
            annotation_clip=False,
        )
    for third, text in ((1, "amber is slow"), (2, "amber recovers,\nbirch fails")):
        axes.axvline(third * n_rounds / 3, color="#bbbbbb", linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(
            text,
            (third * n_rounds / 3, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
            color="#777777",
            fontsize=9,
        )
    axes.set_xlim(0, n_rounds)
    axes.set_xlabel("request")
    axes.set_ylabel("expected reward")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    return figure


def example(rounds: int = 6_000, seeds: int = 4, half_life: int = 400) -> "Figure":
    """Play, print what was earned when, and draw it."""
    runs = [play(seed, rounds, half_life) for seed in range(seeds)]
    curves = {name: np.array([run[name] for run in runs]) for name in COLORS}
    n = rounds // 3
    thirds = {"as it was": slice(0, n), "amber is slow": slice(n, 2 * n)}
    thirds |= {"birch fails": slice(2 * n, None), "all": slice(None)}
    print(f"expected reward of a request, mean of {seeds} runs")
    print(" " * 20 + "".join(f"{name:>15}" for name in thirds))
    for name, curve in curves.items():
        cells = (f"{curve[:, part].mean():.4f}" for part in thirds.values())
        print(f"{name:20}" + "".join(f"{cell:>15}" for cell in cells))
    return draw(curves)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "servers"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """The example, as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to draw the figure (.svg or .png)")
    parser.add_argument("--rounds", type=int, default=6_000)
    parser.add_argument("--seeds", type=int, default=4, help="runs, each with requests of its own")
    parser.add_argument("--half-life", type=int, default=400)
    given = parser.parse_args()
    if given.rounds < 12 or given.seeds < 1 or given.half_life < 1:
        parser.error("expected at least 12 rounds, 1 seed and a half-life of 1")
    figure = example(given.rounds, given.seeds, given.half_life)
    if given.out is not None:
        save(figure, given.out)


if __name__ == "__main__":
    main()
