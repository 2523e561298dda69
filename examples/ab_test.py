"""An A/B/n test without contexts: a fixed split beside explorers that move traffic while it runs.

    python examples/ab_test.py --out docs/figures/ab-test.svg

Five variants of a page, of which one is better: 6.5 % of its visitors sign up, 5 % of the others'.
A test is stopped after some number of visitors, and the variant with the highest rate is named. How
often is that the wrong one, and how many sign-ups did the test itself earn? Three ways to share the
visitors out:

- *fixed split*: every variant gets as many;
- *thompson*: by how likely each variant is the best one, so that the test goes on among those that
  may be;
- *melee*, the default of agents: to earn most, which is not the same. It leaves variants alone that
  look worse, also where that was bad luck.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import melee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = np.array([0.05, 0.05, 0.05, 0.05, 0.065])
BEST = int(RATES.argmax())
SPECS = {"thompson": "thompson:scale=0.3", "melee": "melee"}
IN_A_NOTEBOOK = {"rounds": 10_000, "tests": 20}
COLORS = {"fixed split": "#d55e00", "thompson": "#009e73", "melee": "#0072b2"}


def play(seed: int, n_rounds: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Which variant every visitor of one test was shown, and who signed up, for every way."""
    rng = np.random.default_rng([seed, 5])
    # An explorer's scale and learning rate are settled on thirty rows beforehand.
    signed = (rng.random((n_rounds + 30, len(RATES))) < RATES).astype(float)
    task = melee.Task("A/B/n test", np.zeros((len(signed), 1)), signed, ordered=True)
    split = np.arange(n_rounds) % len(RATES)
    shown = {"fixed split": (split, signed[np.arange(n_rounds), split])}
    for name, spec in SPECS.items():
        run = melee.simulate(task, spec, seed=seed)
        shown[name] = (np.asarray(run.actions), np.asarray(run.rewards))
    return shown


def wrong(actions: np.ndarray, rewards: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Whether another variant than the best has the highest rate, at every stop."""
    found = []
    for n in stops:
        shown = np.bincount(actions[:n], minlength=len(RATES))
        signed = np.bincount(actions[:n], weights=rewards[:n], minlength=len(RATES))
        found.append(int((signed / np.maximum(shown, 1)).argmax()) != BEST)
    return np.array(found)


def gained(actions: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """Sign-ups to be expected from what was shown, beyond those of a fixed split, at every stop."""
    return np.asarray(np.cumsum(RATES[actions] - RATES.mean())[stops - 1])


def rounds_to(error: float, errors: np.ndarray, stops: np.ndarray) -> int | None:
    """The first stop from which on the error stays at or below a level."""
    above = np.flatnonzero(errors > error)
    first = above[-1] + 1 if len(above) else 0
    return int(stops[first]) if first < len(stops) else None


def draw(
    errors: dict[str, np.ndarray], gains: dict[str, np.ndarray], stops: np.ndarray
) -> "Figure":
    """The chance to name the wrong variant, and what the test earned, by visitors so far."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name, color in COLORS.items():
        left.plot(stops, errors[name], color=color, linewidth=2.0, label=name)
        right.plot(stops, gains[name], color=color, linewidth=2.0)
    left.legend(frameon=False)
    left.set_ylim(bottom=0.0)
    left.set_ylabel("chance to name the wrong variant")
    right.set_ylabel("sign-ups gained over a fixed split")
    for axes in (left, right):
        axes.set_xlim(0, stops[-1])
        axes.set_xlabel("visitors")
        axes.locator_params(axis="x", nbins=4)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    return figure


def example(rounds: int = 20_000, tests: int = 200) -> "Figure":
    """Run many tests, print how they end, and draw it."""
    stops = np.linspace(0, rounds, 41)[1:].astype(int)
    runs = [play(seed, rounds) for seed in range(tests)]
    errors = {k: np.mean([wrong(*run[k], stops) for run in runs], axis=0) for k in COLORS}
    gains = {k: np.mean([gained(run[k][0], stops) for run in runs], axis=0) for k in COLORS}
    print(f"{tests} tests of {rounds:,} visitors")
    print(f"{'':12}{'wrong at the end':>18}{'visitors to 5 %':>18}{'sign-ups gained':>18}")
    for name in COLORS:
        needed = rounds_to(0.05, errors[name], stops)
        told = "never" if needed is None else f"{needed:,}"
        print(f"{name:12}{errors[name][-1]:>18.3f}{told:>18}{gains[name][-1]:>18.1f}")
    return draw(errors, gains, stops)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "ab-test"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """The example, as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to draw the figure (.svg or .png)")
    parser.add_argument("--rounds", type=int, default=20_000, help="visitors of a test")
    parser.add_argument("--tests", type=int, default=200, help="how many tests are run")
    given = parser.parse_args()
    if given.rounds < 100 or given.tests < 1:
        parser.error("expected at least 100 rounds and 1 test")
    figure = example(given.rounds, given.tests)
    if given.out is not None:
        save(figure, given.out)


if __name__ == "__main__":
    main()
