"""Which price to ask of whom: prices as candidates with a feature, beside one price for all.

    python examples/prices.py --out docs/figures/prices.svg

Visitors of a shop are simulated. Each would pay up to some amount, more with a higher income, and
buys if the price is not above it; the reward is the revenue of the visit, a price or nothing. So
what a visit earns at every price is known, and what the best price for each visitor would earn.

Two agents meet the same visitors. To one the prices are candidates whose feature is the price:
what was learned at 10.00 tells something about 10.25. To the other the hundred prices are labels,
and each has to be tried for itself. The references:

- *any price*: all with the same probability;
- *best single price*: the one that earns most over all visitors, known in hindsight;
- *best possible*: for every visitor the price that earns most, known to nobody.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import melee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRICES = [quarters / 4 for quarters in range(20, 120)]  # 5.00 to 29.75
FEATURES = {price: {"price": price} for price in PRICES}
SPREAD = 3.0
IN_A_NOTEBOOK = {"rounds": 1_500, "seeds": 1}
COLORS = {
    "best possible": "#555555",
    "prices with a feature": "#0072b2",
    "prices as labels": "#56b4e9",
    "best single price": "#d55e00",
    "any price": "#999999",
}

Visitor = dict[str, Any]


def draw_visitor(rng: np.random.Generator) -> Visitor:
    """A visitor as a shop knows one; the income is in units of how far incomes differ."""
    return {"income": float(rng.normal()), "device": str(rng.choice(["phone", "desktop"]))}


def worth(visitor: Visitor) -> float:
    """What the visitor would pay, on average."""
    return 15.0 + 5.0 * float(visitor["income"])


def revenues(visitor: Visitor) -> np.ndarray:
    """What a visit earns at every price, on average: the price times the chance of a sale."""
    above = [(price - worth(visitor)) / SPREAD for price in PRICES]
    chances = [0.5 * math.erfc(z / math.sqrt(2.0)) for z in above]
    return np.multiply(PRICES, chances)


def play(seed: int, n_rounds: int) -> dict[str, np.ndarray]:
    """The expected revenue of the price that each policy asked, visit by visit, in one run."""
    rng = np.random.default_rng([seed, 6])
    offered, labelled = melee.Agent(seed=seed), melee.Agent(PRICES, seed=seed)
    expected = np.empty((n_rounds, len(PRICES)))
    earned = {name: np.empty(n_rounds) for name in COLORS}
    for t in range(n_rounds):
        visitor = draw_visitor(rng)
        expected[t] = revenues(visitor)
        pays = worth(visitor) + SPREAD * rng.normal()
        decisions = {
            "prices with a feature": offered.act(visitor, actions=FEATURES),
            "prices as labels": labelled.act(visitor),
        }
        for (name, decision), agent in zip(decisions.items(), (offered, labelled), strict=True):
            price = decision.action
            agent.learn(decision.id, reward=price if price <= pays else 0.0)
            earned[name][t] = expected[t, PRICES.index(price)]
    earned["best possible"][:] = expected.max(axis=1)
    earned["best single price"][:] = expected[:, expected.mean(axis=0).argmax()]
    earned["any price"][:] = expected.mean(axis=1)
    return earned


def draw(curves: dict[str, np.ndarray]) -> "Figure":
    """Draw means over seeds (axis 0) and blocks of visits, with the name at each line's end."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_seeds, n_rounds = curves["any price"].shape
    size = max(n_rounds // 30, 1)
    n_blocks = n_rounds // size
    middle = (np.arange(n_blocks) + 0.5) * size
    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    ends = {}
    for name, color in COLORS.items():
        blocks = curves[name][:, : n_blocks * size].reshape(n_seeds, n_blocks, size)
        mean = blocks.mean(axis=(0, 2))
        axes.plot(middle, mean, color=color, linewidth=2.2 if name.startswith("prices") else 1.4)
        ends[name] = float(mean[-1])
    low, high = axes.get_ylim()
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
            weight="bold" if name == "prices with a feature" else "normal",
            annotation_clip=False,
        )
    axes.set_xlim(0, n_rounds)
    axes.set_xlabel("visit")
    axes.set_ylabel("expected revenue")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    return figure


def example(rounds: int = 3_000, seeds: int = 4) -> "Figure":
    """Play, print what was earned when, and draw it."""
    runs = [play(seed, rounds) for seed in range(seeds)]
    curves = {name: np.array([run[name] for run in runs]) for name in COLORS}
    n = rounds // 4
    parts = {"first quarter": slice(0, n), "last quarter": slice(-n, None), "all": slice(None)}
    print(f"expected revenue of a visit, mean of {seeds} runs of {rounds:,} visits")
    print(" " * 23 + "".join(f"{name:>15}" for name in parts))
    for name, curve in curves.items():
        cells = (f"{curve[:, part].mean():.2f}" for part in parts.values())
        print(f"{name:23}" + "".join(f"{cell:>15}" for cell in cells))
    return draw(curves)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "prices"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """The example, as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to draw the figure (.svg or .png)")
    parser.add_argument("--rounds", type=int, default=3_000)
    parser.add_argument("--seeds", type=int, default=4, help="runs, each with visitors of its own")
    given = parser.parse_args()
    if given.rounds < 4 or given.seeds < 1:
        parser.error("expected at least 4 rounds and 1 seed")
    figure = example(given.rounds, given.seeds)
    if given.out is not None:
        save(figure, given.out)


if __name__ == "__main__":
    main()
