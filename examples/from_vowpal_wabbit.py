"""From a log of VowpalWabbit to an agent, with the evaluation that justifies it.

    python examples/from_vowpal_wabbit.py --out docs/figures/from-vowpal-wabbit.svg
    python examples/from_vowpal_wabbit.py --log rounds.dsjson --save shop.melee

The log is decision service JSON (`vw --dsjson`). Is it sound? An agent learns its first half, and
the second half tells what it would earn beside what the log did: rounds that it has not learned
from. Only then it learns the rest, and is saved.

Without a log of yours a shop is simulated, whose VowpalWabbit shows one of four offers by a rule
that nobody has looked at for long, and any of them 20 % of the time. What the agent would earn is
known there, and is drawn beside the estimates.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import melee
from melee.evaluation import Evaluation
from melee.history import History

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_A_NOTEBOOK = {"rounds": 6_000}
OFFERS = ["delivery", "discount", "gift", "points"]
EPSILON = 0.2


def visitor(rng: np.random.Generator) -> dict[str, Any]:
    """Who comes: as VowpalWabbit is told, in a namespace."""
    return {
        "basket": round(float(rng.gamma(2.0, 30.0)), 2),
        "device": str(rng.choice(["phone", "desktop"], p=[0.7, 0.3])),
        "returning": int(rng.random() < 0.4),
    }


def chances(who: dict[str, Any]) -> np.ndarray:
    """The probability that the visitor buys, for every offer."""
    small = who["basket"] < 40.0
    return np.array(
        [
            0.10 + 0.25 * small,
            0.15 + 0.10 * (who["device"] == "phone"),
            0.12 + 0.08 * (not small),
            0.05 + 0.35 * who["returning"],
        ]
    )


def write_log(path: Path, n_rounds: int, seed: int = 0) -> None:
    """Lines as VowpalWabbit's decision service writes them; costs are negative rewards."""
    rng = np.random.default_rng([seed, 3])
    with path.open("w") as file:
        for t in range(n_rounds):
            who = visitor(rng)
            pmf = np.full(len(OFFERS), EPSILON / len(OFFERS))
            pmf[1 if who["device"] == "phone" else 2] += 1.0 - EPSILON
            shown = int(rng.choice(len(OFFERS), p=pmf))
            bought = rng.random() < chances(who)[shown]
            # The action that was taken comes first, in `a` and in `p`.
            order = [shown, *(i for i in range(len(OFFERS)) if i != shown)]
            line = {
                "_label_cost": -float(bought),
                "_label_probability": float(pmf[shown]),
                "_label_Action": shown + 1,
                "_labelIndex": shown,
                "EventId": f"e{t}",
                "a": [i + 1 for i in order],
                "c": {"User": who, "_multi": [{"Offer": {"name": offer}} for offer in OFFERS]},
                "p": [float(pmf[i]) for i in order],
            }
            print(json.dumps(line), file=file)


def taught(history: History) -> melee.Agent:
    """An agent that has learned a log."""
    agent = melee.Agent(history.actions)
    agent.learn_rounds(history)
    return agent


def known(agent: melee.Agent, n_visitors: int = 2_000) -> float:
    """What an agent as it stands earns in the simulated shop: its mean chance of a sale."""
    rng = np.random.default_rng([1, 4])
    earned = 0.0
    for _ in range(n_visitors):
        who = visitor(rng)
        pmf = agent.pmf({f"User.{name}": value for name, value in who.items()})
        sales = chances(who)
        earned += sum(p * sales[int(str(action)) - 1] for action, p in pmf.items())
    return earned / n_visitors


def draw(found: Evaluation, truth: float | None) -> "Figure":
    """What the log earned and what the agent would, by each estimator, with intervals."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    rows = {"the log": found.logged} | {f"agent, {k}": v for k, v in found.estimates.items()}
    for i, (name, estimate) in enumerate(rows.items()):
        color = "#d55e00" if name == "the log" else "#0072b2"
        axes.plot([estimate.low, estimate.high], [i, i], color=color, linewidth=5, alpha=0.35)
        axes.plot(estimate.value, i, "o", color=color, markersize=7)
    if truth is not None:
        axes.axvline(truth, color="#555555", linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
        axes.annotate(
            "what the agent earns in this shop",
            (truth, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-5, 0),
            textcoords="offset points",
            color="#555555",
            fontsize=9,
            ha="right",
        )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlabel("sales a visitor, with 95 % intervals")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def example(
    rounds: int = 10_000, log: Path | None = None, agent_file: Path | None = None
) -> "Figure":
    """Read a log, examine it, learn a half, evaluate on the other, save the agent, and draw.

    Parameters
    ----------
    rounds
        Of the simulated log.
    log
        One of yours instead.
    agent_file
        Where the agent goes.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = log or Path(directory) / "shop.dsjson"
        if log is None:
            write_log(path, rounds)
        history = History.read(path)
    print(history)

    faults = [finding for finding in melee.examine(history) if finding.level != "ok"]
    for level, check, text, advice in faults:
        print(f"{level}: {check}: {text} → {advice}")
    if any(finding.level == "error" for finding in faults):
        sys.exit("mend the log first: estimates from it would be wrong")

    half = len(history) // 2
    agent = taught(history[:half])

    def as_taught(context: Any) -> Any:
        return agent.pmf(context)

    try:
        found = melee.evaluate(history[half:], as_taught)
    except melee.MeleeError as error:  # such as too few rounds that agree with the agent
        sys.exit(f"{error}")
    print(found)
    truth = None
    if log is None:
        truth = known(agent)
        print(f"in this shop it earns {truth:.4f}")
    gain = found.difference
    if gain is None or gain.low <= 0.0:
        print("the log does not show that the agent earns more: keep what you have, or log more")
    else:
        print(f"the agent earns {gain.value:.4f} more than the log did, {gain.low:.4f} at least")
        agent.learn_rounds(history[half:])
        if agent_file is not None:
            agent.save(agent_file)
            print(f"{agent_file}: an agent that has learned {agent.n_learned_:,} rounds")
    return draw(found, truth)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure, the same bytes for the same figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "from-vowpal-wabbit"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """The example, as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=Path, help="a log of yours; by default one is simulated")
    parser.add_argument("--save", type=Path, help="where the agent goes")
    parser.add_argument("--out", type=Path, help="where to draw the figure (.svg or .png)")
    parser.add_argument("--rounds", type=int, default=10_000, help="of the simulated log")
    given = parser.parse_args()
    if given.rounds < 100:
        parser.error("expected at least 100 rounds")
    figure = example(given.rounds, given.log, given.save)
    if given.out is not None:
        save(figure, given.out)


if __name__ == "__main__":
    main()
