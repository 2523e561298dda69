"""What each ingredient of `melee` buys: small trainings that differ in one thing.

    python -m benchmarks.ablations --suite DIR --out RUNS [--workers 2] [--only GROUP,GROUP]

Each training is cut to a fraction of the default preset, the same for all, so the numbers compare
with each other and not with the shipped policy; the last policy of each is measured, even where an
earlier one was better on its held-out tasks. Features and learner are varied under the shipped
policy as it is, without training it again. Every policy is then played on the same fresh
synthetic tasks, which no training or choice has seen, and on the datasets of the suite. Resumable:
finished trainings are kept, and results are written as they come.
"""

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from melee.arrays import Floats
from melee.benchmark.mapping import Mapper, mapper
from melee.datasets.suites import load_suite
from melee.datasets.synthetic import rectangles
from melee.explorers.melee import SCHEMA, Melee, Network, load_policy
from melee.meta.episodes import returns, run, start
from melee.meta.train_melee import HELD_OUT, MeleeTraining, train_melee
from melee.preparation import Prepared, prepare
from melee.task import Task

FRESH = 2 * HELD_OUT
N_FRESH = 300
SMALL: dict[str, Any] = {
    "n_iterations": 1, "n_imitation_tasks": 200, "n_generations": 6, "n_tasks": 100,
    "n_candidates": 10, "n_validation": 100,
}  # fmt: skip
ONLY_IMITATION = {**SMALL, "n_generations": 0, "n_imitation_tasks": 500}


def squares(seed: int) -> Task:
    """The paper's family: two overlapping squares in the plane."""
    rng = np.random.default_rng(seed)
    return rectangles(int(rng.integers(200, 1500)), seed=seed)


def clouds(seed: int) -> Task:
    """Isotropic Gaussian contexts, linear scores: unlike real tables."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(200, 1500)), int(rng.integers(3, 30)), int(rng.integers(2, 12))
    contexts = rng.normal(size=(n, d))
    labels = np.argmax(contexts @ rng.normal(size=(d, k)), axis=1)
    return Task(f"clouds-{seed}", contexts, np.eye(k)[labels])


TRAININGS: dict[str, dict[str, dict[str, Any]]] = {
    "roll-out": {
        "expert (H = 0)": {**ONLY_IMITATION, "horizon": 0},
        "policy, H = 10": {**ONLY_IMITATION, "horizon": 10},
        "policy, H = 40": {**ONLY_IMITATION, "horizon": 40},
        "policy, H = 100": {**ONLY_IMITATION, "horizon": 100},
    },
    "stages": {
        "imitation and evolution": SMALL,
        "evolution alone": {**SMALL, "n_iterations": 0},
        "imitation alone": {**SMALL, "n_generations": 0},
    },
    "task family": {
        "lifelike": SMALL,
        "isotropic clouds": {**SMALL, "family": "benchmarks.ablations:clouds"},
        "the paper's squares": {**SMALL, "family": "benchmarks.ablations:squares"},
    },
    "tasks a generation": {
        "25": {**SMALL, "n_tasks": 25},
        "100": SMALL,
    },
    "policy class": {
        "linear exponent": {**SMALL, "n_units": 0},
        "network of 8 units": SMALL,
    },
}
FEATURES = {
    "all": (),
    "without the action's history": ("plays", "average"),
    "without the model's record": ("error", "bias", "reward", "recent"),
    "without sizes (rounds, actions, inputs)": ("rounds", "actions", "inputs"),
    "without spreads": ("spread", "relative spread"),
}
LEARNERS = {
    "ridge 0.2, 48 hidden units": (48, 0.2),
    "ridge 0.2, 24 hidden units": (24, 0.2),
    "ridge 0.2, 96 hidden units": (96, 0.2),
    "ridge 0.2, no hidden units": (0, 0.2),
    "ridge 0.1, no hidden units": (0, 0.1),
    "ridge 0.05, 48 hidden units": (48, 0.05),
    "ridge 0.8, 48 hidden units": (48, 0.8),
    "ridge 0.2, 48 hidden units, scaling of 30 rows": (48, 0.2),
}


@functools.lru_cache(maxsize=4)
def _prepared(suite: str, name: str, seed: int) -> Prepared:
    return prepare(load_suite(suite).entry(name).load(), seed=seed, max_rounds=4000)


def on_real(job: tuple[str, str, int, Melee, Network]) -> float:
    """Mean reward of a network on a dataset."""
    suite, name, seed, explorer, network = job
    prepared = _prepared(suite, name, seed)
    return float(run(start(explorer, network, prepared)[0], prepared, seed).mean())


def measure(network: Network, explorer: Melee, suite: str, apply: Mapper) -> list[Floats]:
    """Mean rewards on the fresh synthetic tasks, and on the suite's datasets and two seeds."""
    jobs = [("lifelike", FRESH + i, explorer, [network]) for i in range(N_FRESH)]
    synthetic = np.concatenate(apply(returns, jobs))
    real = [(suite, name, s, explorer, network) for name in load_suite(suite).names for s in (0, 1)]
    return [synthetic, np.array(apply(on_real, real))]


def forget(network: Network, names: tuple[str, ...]) -> Network:
    """The network that is blind to some of its inputs: they are held at the middle of a range."""
    low, high = network.low.copy(), network.high.copy()
    for name in names:
        j = SCHEMA.index(name)
        low[j] = high[j] = (low[j] + high[j]) / 2.0
    return network._replace(low=low, high=high)


def row(name: str, found: list[Floats], base: list[Floats]) -> str:
    cells = [name]
    for mine, theirs in zip(found, base, strict=True):
        gap = mine - theirs
        error = gap.std() / np.sqrt(len(gap))
        cells.append(f"{mine.mean():.4f}")
        cells.append("–" if mine is theirs else f"{gap.mean():+.4f} ± {error:.4f}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="groups, by commas")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    groups = [one for one in given.only.split(",") if one] or [*TRAININGS, "features", "learner"]
    policy = load_policy("melee")
    shipped = policy.network
    as_shipped = Melee(guard=False)
    with mapper("local", workers=given.workers) as apply:

        def measured(key: str, network: Network, explorer: Melee) -> list[Floats]:
            file = given.out / f"{key}-{policy.sha256[:8]}-{Path(given.suite).name}.json"
            if not file.exists():
                found = measure(network, explorer, given.suite, apply)
                file.write_text(json.dumps([one.tolist() for one in found]), encoding="utf-8")
            return [np.array(one) for one in json.loads(file.read_text(encoding="utf-8"))]

        lines: list[str] = []
        rule = measured("rule", Network.rule(), as_shipped)
        for group in groups:
            begins = len(lines)
            lines += [
                "",
                f"**{group}**",
                "",
                "| | synthetic | beside the rule | real | beside the rule |",
                "| --- | ---: | ---: | ---: | ---: |",
                row("the rule that training starts from", rule, rule),
            ]
            if group == "features":
                for name, names in FEATURES.items():
                    key = "features-" + "-".join(names).replace(" ", "_")
                    lines.append(row(name, measured(key, forget(shipped, names), as_shipped), rule))
            elif group == "learner":
                for name, (hidden, ridge) in LEARNERS.items():
                    rescale = "30 rows" not in name
                    explorer = Melee(hidden=hidden, ridge=ridge, rescale=rescale, guard=False)
                    key = f"learner-{hidden}-{ridge}-{rescale}"
                    lines.append(row(name, measured(key, shipped, explorer), rule))
            else:
                for name, setting in TRAININGS[group].items():
                    changes = sorted((k, v) for k, v in setting.items() if SMALL.get(k) != v)
                    key = "-".join(f"{k}={v}" for k, v in changes).replace(":", "_") or "small"
                    done = train_melee(
                        MeleeTraining(**setting), given.out / "policies" / key, apply=apply
                    )
                    lines.append(
                        row(name, measured(key, done.judged[-1].network, as_shipped), rule)
                    )
            print("\n".join(lines[begins:]), flush=True)
        (given.out / "ablations.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
