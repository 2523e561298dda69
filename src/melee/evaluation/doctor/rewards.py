"""Checks of a log's rewards."""

from collections.abc import Iterator

import numpy as np

from melee.arrays import Floats
from melee.evaluation.doctor.examined import Check, Examined, first
from melee.evaluation.doctor.findings import LEVEL, Fault
from melee.evaluation.estimates import ratio_terms
from melee.evaluation.tails import normal_tail
from melee.evaluation.units import unit_of


def wrong_rewards(log: Examined) -> Iterator[Fault]:
    """Rewards that are missing, or cannot be, or never vary."""
    missing = np.isnan(log.rewards)
    outside = ~missing & ~log.right_reward
    if missing.any():
        yield Fault(
            "error",
            f"{missing.sum():,} rewards are missing, that of round {first(missing)} the first",
            "join rewards before you log rounds; where none is to come, log 0",
        )
    if outside.any():
        least, most = log.rewards[outside].min(), log.rewards[outside].max()
        low, high = log.range
        yield Fault(
            "error",
            f"{outside.sum():,} rewards are not from {low:g} to {high:g}: they go from {least:g} "
            f"to {most:g}, that of round {first(outside)} is the first",
            "mend what writes the log, or give a reward_range that holds all rewards; any unit "
            "will do, as long as numbers are finite",
        )
    if log.right_reward.all() and log.n > 1 and (log.rewards == log.rewards[0]).all():
        yield Fault(
            "warning",
            f"every reward is {log.rewards[0]:g}",
            "check how rewards are joined to rounds; nothing can be learned from one value",
        )


def drift(log: Examined) -> Iterator[Fault]:
    """Whether rewards change with time, apart from what the logging policy learned.

    reward / probability averages the rewards of all actions alike, however they were chosen.
    """
    usable = log.right_reward & log.right_probability
    if log.n < 40 or usable.sum() < 0.5 * log.n:
        return
    rewards, stands_for = log.rewards[usable], log.stands_for[usable]
    plain, p_plain = _halves(rewards, stands_for)
    if rewards.min() < rewards.max():
        rewards = unit_of(rewards, log.declared).of(rewards)
    _, p_uniform = _halves(rewards / log.probabilities[usable], stands_for)
    fell = plain[1] < plain[0]
    if p_uniform < 0.5 * LEVEL or (fell and p_plain < 0.5 * LEVEL):
        yield Fault(
            "warning",
            f"the mean reward went from {plain[0]:.3g} in the first half to {plain[1]:.3g} in the "
            "second, more than chance and a policy that learns explain",
            "find out what changed (actions, users, how rewards are counted); evaluate on the "
            "recent part",
        )


def _halves(values: Floats, stands_for: Floats) -> tuple[tuple[float, float], float]:
    """The means of the two halves, and the p-value of their being equal."""
    middle = len(values) // 2
    halves = []
    for some in (slice(middle), slice(middle, None)):
        sizes = stands_for[some] / stands_for[some].mean()
        halves.append(ratio_terms(sizes * values[some], sizes))
    first, second = halves
    means = float(first.mean()), float(second.mean())
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    rounding = 1e-12 * float(np.abs(values).max())
    if error <= rounding:
        return means, 1.0 if abs(means[0] - means[1]) <= rounding else 0.0
    return means, 2.0 * normal_tail(abs(means[0] - means[1]) / error)


CHECKS: dict[str, Check] = {
    "rewards": (wrong_rewards, "all are finite numbers, and vary"),
    "drift of rewards": (drift, "both halves of the log have rewards alike"),
}
"""The checks by name, each with what it says when all is well."""
