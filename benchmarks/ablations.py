"""What each ingredient of `melee` buys: small trainings that differ in one thing.

    python -m benchmarks.ablations --suite DIR --out RUNS [--workers 2] [--only GROUP,GROUP]

Each training is cut to a fraction of the default preset, the same for all, so the numbers compare
with each other and not with the shipped policy; the last policy of each is measured, even where an
earlier one was better on its held-out tasks. Features, learner and rules are varied under the
shipped policy as it is, without training it again. Every policy is then played on the same fresh
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
from melee.explorers.melee import SCHEMA, Melee, Policy, load_policy
from melee.learners.adaptive import BIAS_AVERAGE, BIAS_PLAIN
from melee.meta.episodes import run, shares, start
from melee.meta.train_melee import HELD_OUT, MeleeTraining, train_melee, unpack
from melee.preparation import Prepared, prepare
from melee.task import Task

FRESH = 2 * HELD_OUT
N_FRESH = 300
SMALL: dict[str, Any] = {"n_generations": 20, "n_candidates": 12, "n_validation": 100}


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
    "task family": {
        "both": SMALL,
        "lifelike": {**SMALL, "family": "lifelike"},
        "production": {**SMALL, "family": "production"},
        "isotropic clouds": {**SMALL, "family": "benchmarks.ablations:clouds"},
        "the paper's squares": {**SMALL, "family": "benchmarks.ablations:squares"},
    },
    "tasks a generation": {
        "20": {**SMALL, "n_tasks": 20},
        "80": SMALL,
    },
}
FEATURES = {
    "all": (),
    "without the action's history": ("plays",),
    "without the rewards' noise": ("noise", "unexplained"),
    "without sizes (rounds, actions, inputs)": ("rounds", "actions", "inputs"),
    "without spreads": ("spread",),
}
LEARNERS = {
    "32 hidden units": (32, 0.2),
    "16 hidden units": (16, 0.2),
    "64 hidden units": (64, 0.2),
    "no hidden units": (0, 0.2),
    "32 hidden units, ridge 0.05": (32, 0.05),
    "32 hidden units, ridge 0.8": (32, 0.8),
    "32 hidden units, scaling of 30 rows": (32, 0.2),
}


def rules_of(policy: Policy) -> dict[str, Policy]:
    """The policy with one of its rules in place of the other, and with one member of the learner.

    A bias of ±1000 is beyond all evidence.
    """
    wide, plain, average = (policy.how.copy() for _ in range(3))
    wide[[BIAS_AVERAGE, BIAS_PLAIN]] = -1e3
    plain[BIAS_PLAIN], average[BIAS_AVERAGE] = 1e3, 1e3
    return {
        "both rules": policy,
        "the bold rule alone": policy._replace(careful=policy.bold),
        "the careful rule alone": policy._replace(bold=policy.careful),
        "nothing due": policy._replace(due=np.where(np.arange(len(policy.due)) == 0, -1e3, 0.0)),
        "the wide member alone": policy._replace(how=wide),
        "the plain member alone": policy._replace(how=plain),
        "the average alone": policy._replace(how=average),
    }


@functools.lru_cache(maxsize=4)
def _prepared(suite: str, name: str, seed: int) -> Prepared:
    return prepare(load_suite(suite).entry(name).load(), seed=seed, max_rounds=4000)


def on_real(job: tuple[str, str, int, Melee, Policy]) -> float:
    """Share of a policy on a dataset."""
    suite, name, seed, explorer, policy = job
    prepared = _prepared(suite, name, seed)
    return run(start(explorer, policy, prepared)[0], explorer, prepared, seed)


def measure(policy: Policy, explorer: Melee, suite: str, apply: Mapper) -> list[Floats]:
    """Shares on the fresh synthetic tasks, and on the suite's datasets and two seeds."""
    jobs = [("both", FRESH + i, explorer, [policy]) for i in range(N_FRESH)]
    synthetic = np.concatenate(apply(shares, jobs))
    real = [(suite, name, s, explorer, policy) for name in load_suite(suite).names for s in (0, 1)]
    return [synthetic, np.array(apply(on_real, real))]


def forget(policy: Policy, names: tuple[str, ...]) -> Policy:
    """The policy that is blind to some of its inputs: they are held at the middle of a range."""
    low, high = policy.low.copy(), policy.high.copy()
    for name in names:
        j = SCHEMA.index(name)
        low[j] = high[j] = (low[j] + high[j]) / 2.0
    return policy._replace(low=low, high=high)


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
    groups = [name for name in given.only.split(",") if name] or [
        *TRAININGS,
        "features",
        "learner",
        "rules",
    ]
    trained = load_policy("melee")
    shipped = trained.policy
    as_shipped = Melee(guard=False)
    with mapper("local", workers=given.workers) as apply:

        def measured(key: str, policy: Policy, explorer: Melee) -> list[Floats]:
            file = given.out / f"{key}-{trained.sha256[:8]}-{Path(given.suite).name}.json"
            if not file.exists():
                found = measure(policy, explorer, given.suite, apply)
                file.write_text(
                    json.dumps([weights.tolist() for weights in found]), encoding="utf-8"
                )
            return [np.array(weights) for weights in json.loads(file.read_text(encoding="utf-8"))]

        lines: list[str] = []
        rule = measured("rule", Policy.rule(), as_shipped)
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
            elif group == "rules":
                for name, policy in rules_of(shipped).items():
                    key = "rules-" + name.replace(" ", "_")
                    lines.append(row(name, measured(key, policy, as_shipped), rule))
            else:
                for name, setting in TRAININGS[group].items():
                    changes = sorted((k, v) for k, v in setting.items() if SMALL.get(k) != v)
                    key = "-".join(f"{k}={v}" for k, v in changes).replace(":", "_") or "small"
                    done = train_melee(
                        MeleeTraining(**setting), given.out / "policies" / key, apply=apply
                    )
                    last = unpack(done.judged[-1].weights)
                    lines.append(row(name, measured(key, last, as_shipped), rule))
            print("\n".join(lines[begins:]), flush=True)
        (given.out / "ablations.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
