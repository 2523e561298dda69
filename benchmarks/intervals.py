"""How often the intervals of estimates hold the truth, and a log shows what it is said to show.

    python -m benchmarks.intervals [--docs]

The simulations of `tests/evaluation`, at length. Live estimates have a command of their own,
`benchmarks.live_evaluation`.
"""

import argparse
import dataclasses
from collections.abc import Iterator

import numpy as np
from scipy import stats

from benchmarks.pages import put
from melee.arrays import Floats
from melee.evaluation import estimates
from melee.evaluation.anytime import evidence
from melee.evaluation.differences import Difference, anytime_terms
from melee.evaluation.log import EvaluatedLog
from tests.evaluation import live_runs
from tests.evaluation.test_candidates import N_ITEMS, TOPICS, Shop
from tests.evaluation.test_differences import LOGGING, drawn, in_worlds
from tests.evaluation.test_estimates import WORLDS, coverage, direct_by_model
from tests.evaluation.test_power import found, stated
from tests.evaluation.worlds import World, greedy

SIZES = (200, 2000)
RATES = ((0.005, 4000), (0.05, 800), (0.05, 4000))
COMPARED = ("mild", "mild, many actions", "rare rewards", "nearly the same policy")
N_SHOPS = 8
LIVE_LOGS = 100
LIVE_LOOKED_AT = (
    (("linucb:alpha=0.2", "epsilon-greedy:epsilon=0.1"), "clicks, 3 actions", 1000),
    (("softmax", "uniform"), "clicks, mixed log", 1000),
    (("thompson", "squarecb"), "rare clicks", 1000),
    (("linucb:alpha=0.2", "linucb:alpha=0.2"), "clicks, 3 actions", 1000),
    (("epsilon-greedy:epsilon=0.1", "epsilon-greedy:epsilon=0.1"), "labels", 1000),
    (("epsilon-greedy:epsilon=0.0", "epsilon-greedy:epsilon=0.0"), "labels", 1000),
)
"""Pairs of explorers, worlds and rounds."""
LOOKED_AT = ((0.05, 1500), (0.05, 10_000), (0.5, 1500), (0.5, 10_000))
POWERS = ((2, 0.2, 600, 0.4), (3, 0.3, 1000, 0.1), (4, 0.1, 2500, 0.05), (2, 1.0, 400, 0.3))
"""Actions, share of uniform choices, rounds and rate."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1000, help="of each world")
    parser.add_argument("--docs", action="store_true", help="write into the documentation")
    given = parser.parse_args()
    parts = (policies, direct, by_features, differences, looks, live_looks, power)
    text = "\n\n".join("\n".join(part(given.logs)) for part in parts)
    print(text)
    if given.docs:
        put("intervals", text, "how-to/evaluation.md")


def policies(n_logs: int) -> Iterator[str]:
    """The estimates of a policy's mean reward."""
    yield (
        "**Policies.** In how many logs 95 % intervals of ips, snips and dr (by a model that says "
        f"20 % too little) held the truth; {n_logs} logs of each world, of which those with fewer "
        "than ten effective rounds are refused."
    )
    yield ""
    names = [f"{name}, {n:,} rounds" for n in SIZES for name in ("ips", "snips", "dr")]
    yield f"| world | {' | '.join(names)} |"
    yield "| --- |" + " ---: |" * len(names)
    for world in WORLDS:
        cells = []
        for n_rounds in SIZES:
            shares, n_accepted = coverage(WORLDS[world], n_rounds, n_logs)
            of_kind = [shares.get(name) for name in ("ips", "snips", "dr")]
            cells += [_percent(share) if n_accepted else "refused" for share in of_kind]
        yield f"| {world} | {' | '.join(cells)} |"


def direct(n_logs: int) -> Iterator[str]:
    """The direct method, at small rates."""
    yield "**The direct method** where its model is right, of the best action in each context:"
    yield ""
    yield "| rate | rounds | truth | mean estimate | its standard error | 95 % intervals hold |"
    yield "|" + " ---: |" * 6
    for rate, n_rounds in RATES:
        rows = [direct_by_model(rate, n_rounds, seed) for seed in range(n_logs)]
        values = np.array([estimate.value for estimate, _ in rows])
        held = np.mean([estimate.low <= truth <= estimate.high for estimate, truth in rows])
        error = values.std(ddof=1) / np.sqrt(n_logs)
        yield (
            f"| {rate:.1%} | {n_rounds:,} | {rows[0][1]:.5f} | {values.mean():.5f} | {error:.5f} "
            f"| {_percent(held)} |"
        )


def by_features(n_logs: int) -> Iterator[str]:
    """Mips, where candidates that look alike earn alike."""
    yield (
        f"**Candidates.** mips in {N_SHOPS} worlds of {N_ITEMS} candidates of {len(TOPICS)} "
        "topics, by which they earn; the least and the most of all worlds:"
    )
    yield ""
    yield "| rounds | 95 % intervals hold | width beside that of ips |"
    yield "|" + " ---: |" * 3
    for n_rounds in (200, 1000):
        held, width = np.empty((2, N_SHOPS, n_logs))
        for i in range(N_SHOPS):
            shop = Shop(seed=i)
            world = World(shop.means, shop.logging, shop.target)
            for seed in range(n_logs):
                kinds, actions, rewards = world.draw(n_rounds, seed)
                mips = estimates.ips(shop.mips_weights[kinds, actions], rewards)
                ips = estimates.ips(world.weights(kinds, actions), rewards)
                held[i, seed] = mips.low <= world.truth <= mips.high
                width[i, seed] = (mips.high - mips.low) / (ips.high - ips.low)
        ends = [_percent(end(held.mean(axis=1))) for end in (np.min, np.max)]
        widths = [f"{end(width.mean(axis=1)):.2f}" for end in (np.min, np.max)]
        yield f"| {n_rounds:,} | {' to '.join(ends)} | {' to '.join(widths)} |"


def differences(n_logs: int) -> Iterator[str]:
    """Paired differences to the logged policy."""
    yield "**Differences** to the logged policy, 200 rounds:"
    yield ""
    yield "| world | 95 % intervals for one look hold | those for any time hold |"
    yield "| --- | ---: | ---: |"
    for world in COMPARED:
        held = [_held(*in_worlds(world, 200, seed)) for seed in range(n_logs)]
        once, always = np.mean(held, axis=0)
        yield f"| {world} | {_percent(once)} | {_percent(always)} |"


def looks(n_logs: int) -> Iterator[str]:
    """How often two policies that earn the same are told apart by who looks again and again."""
    yield (
        "**Looks.** Two policies that earn the same. Looking after every round, from the twentieth "
        "on, 95 % intervals excluded 0 at some time in:"
    )
    yield ""
    yield "| rate | rounds | interval for one look | for any time |"
    yield "|" + " ---: |" * 4
    one, other = greedy(np.arange(5), 4, 0.02), greedy(np.arange(5) + 1, 4, 0.02)
    for rate, n_rounds in LOOKED_AT:
        wrong = np.zeros(2)
        for seed in range(n_logs):
            kinds, actions, rewards = drawn(n_rounds, seed, np.full((5, 4), rate))
            apart = ((one - other) / LOGGING)[kinds, actions]
            p_values = 2.0 * np.exp(-evidence(*anytime_terms(apart, rewards, 4.0)).max(axis=1))
            wrong += _ever_excludes_0(apart * rewards, np.abs(apart)), (p_values < 0.05).any()
        once, always = map(_percent, wrong / n_logs)
        yield f"| {rate:.0%} | {n_rounds:,} | {once} | {always} |"


def live_looks(n_logs: int) -> Iterator[str]:
    """The same of live runs: where actions earn the same, and of one explorer's two lives."""
    n_logs = min(n_logs, LIVE_LOGS)
    yield (
        f"**Looks at live runs**, after every round, {n_logs} logs of each. Where all actions earn "
        "the same, so do all explorers in every round. One explorer that lives twice through a "
        "log, by other draws, earns the same on average over such lives, but not in these two:"
    )
    yield ""
    yield (
        "| explorers | world | rounds | interval for one look, of the rounds | for any time "
        "| how far lives are apart |"
    )
    yield "| --- | --- |" + " ---: |" * 4
    for explorers, world, n_rounds in LIVE_LOOKED_AT:
        is_twice = explorers[0] == explorers[1]
        here = live_runs.WORLDS[world]
        if not is_twice:
            here = dataclasses.replace(here, alike=True)
        wrong, apart = np.zeros(2), []
        for seed in range(n_logs):
            log = EvaluatedLog(here.log(n_rounds, seed), here.reward_range)
            seeds = (seed, seed + n_logs) if is_twice else (seed, seed)
            *_, terms, bounds = live_runs.looks(log, explorers, seeds)
            p_values = live_runs.p_values(terms, bounds)
            is_small = bool((p_values < 0.05).any())
            wrong += _ever_excludes_0(terms[0], np.abs(terms[0])), is_small
            apart.append(terms[0].mean())
        once, always = map(_percent, wrong / n_logs)
        name = f"`{explorers[0]}` {'twice' if is_twice else f'and `{explorers[1]}`'}"
        kind = world if is_twice else f"{world}, all alike"
        yield f"| {name} | {kind} | {n_rounds:,} | {once} | {always} | {np.std(apart):.3f} |"


def power(n_logs: int) -> Iterator[str]:
    """In how many logs the least difference is found that such logs are said to show."""
    yield "**Power.** The difference that logs are said to show in 80 % of cases was found in:"
    yield ""
    yield "| actions | uniform share | rounds | rate | difference | found | half of it |"
    yield "|" + " ---: |" * 7
    for world in POWERS:
        n_actions, floor, n_rounds, rate = world
        ahead = stated(world)
        shares = [_percent(found(world, part * ahead, n_logs)) for part in (1.0, 0.5)]
        yield (
            f"| {n_actions} | {floor:g} | {n_rounds:,} | {rate:g} | {ahead:.4f} "
            f"| {shares[0]} | {shares[1]} |"
        )


def _held(difference: Difference, truth: float) -> tuple[bool, bool]:
    return (
        difference.low <= truth <= difference.high,
        difference.anytime_low <= truth <= difference.anytime_high,
    )


def _ever_excludes_0(values: Floats, weights: Floats) -> bool:
    """Whether the interval for one look, of the first n rounds, does so for any n from 20 on.

    Each end is that of a t interval after one more round against it, as in `differences`.
    """
    n = np.arange(2, len(values) + 2)  # with that round
    extra = (weights**2).cumsum() / np.maximum(weights.cumsum(), 1e-300)
    for side in (values, -values):
        total, squares = side.cumsum() - extra, (side**2).cumsum() + extra**2
        mean = total / n
        variance = np.maximum(squares - n * mean**2, 0.0) / (n - 1)
        low = mean - stats.t(n - 1).ppf(0.975) * np.sqrt(variance / n)
        if (low[19:] > 0.0).any():
            return True
    return False


def _percent(share: float) -> str:
    digits = 1 if share < 0.1 else 0
    return f"{100.0 * share:.{digits}f} %"


if __name__ == "__main__":
    main()
