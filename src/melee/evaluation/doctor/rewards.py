"""Checks of a log's rewards."""

from collections.abc import Iterator

import numpy as np

from melee.arrays import Floats
from melee.evaluation.digits import in_digits
from melee.evaluation.doctor.changes import ScaleChange, change_of_scale
from melee.evaluation.doctor.examined import Check, Examined, first
from melee.evaluation.doctor.findings import LEVEL, Symptom
from melee.evaluation.estimates import ratio_terms
from melee.evaluation.log import MIN_ROUNDS
from melee.evaluation.tails import normal_tail
from melee.evaluation.units import unit_of

FEW_OTHERS = 100
"""Rewards other than the usual one below which little is known."""


def wrong_rewards(log: Examined) -> Iterator[Symptom]:
    """Rewards that are missing, or cannot be, or never vary."""
    missing = np.isnan(log.rewards)
    outside = ~missing & ~log.right_reward
    if missing.any():
        yield Symptom(
            "error",
            f"{missing.sum():,} rewards are missing, that of round {first(missing)} the first",
            "join rewards before you log rounds; where none is to come, log 0",
        )
    if outside.any():
        least, most = log.rewards[outside].min(), log.rewards[outside].max()
        low, high = log.range
        yield Symptom(
            "error",
            f"{outside.sum():,} rewards are not from {low:g} to {high:g}: they go from {least:g} "
            f"to {most:g}, that of round {first(outside)} is the first",
            "mend what writes the log, or give a reward_range that holds all rewards; any unit "
            "will do, as long as numbers are finite",
        )
    constant = log.right_reward.all() and log.n > 1 and (log.rewards == log.rewards[0]).all()
    if constant and log.rewards[0] <= 0.0:  # for others see `missing_zeros`
        yield Symptom(
            "warning",
            f"every reward is {log.rewards[0]:g}",
            "check how rewards are joined to rounds; nothing can be learned from one value",
        )


def rare(log: Examined) -> Iterator[Symptom]:
    """Rewards that are hardly ever other than usual, as clicks that hardly ever come."""
    rewards, stands_for = log.rewards[log.right_reward], log.stands_for[log.right_reward]
    if len(rewards) < MIN_ROUNDS:
        return
    values, group = np.unique(rewards, return_inverse=True)
    often = np.bincount(group, weights=stands_for)
    usual = int(often.argmax())
    n_others = int((group != usual).sum())
    if 0 < n_others < FEW_OTHERS and often[usual] > 0.9 * often.sum():
        yield Symptom(
            "warning",
            f"only {n_others:,} of {len(rewards):,} rewards are other than {values[usual]:g}",
            "log until there are some hundreds: what estimates know comes from these, not from the "
            f"number of rounds; how often they come is known to ±{200.0 / np.sqrt(n_others):.0f}% "
            "at best",
        )


def missing_zeros(log: Examined) -> Iterator[Symptom]:
    """Rounds without reward that seem not to be logged, as where only clicks are reported."""
    rewards = log.rewards[log.right_reward]
    if len(rewards) < 2 or rewards.min() < 0.0:
        return
    zero = rewards == 0.0
    advice = (
        "log every decision, and 0 where no reward came: a log of successes alone tells nothing of "
        "what earns them"
    )
    if not zero.any():
        if rewards.min() == rewards.max():
            text = f"every reward is {rewards[0]:g}, none is 0"
            yield Symptom("error" if len(rewards) >= FEW_OTHERS else "warning", text, advice)
        return
    zeros = np.flatnonzero(zero)
    for n_without, order, where, beside in (
        (int(zeros[0]), zero, "first", "the next"),
        (len(zero) - 1 - int(zeros[-1]), zero[::-1], "last", "as many before"),
    ):
        # Twenty to none in stretches of one length: a policy that learns does not do that.
        n_beside = int(order[n_without : 2 * n_without].sum())
        if n_beside >= 20:
            yield Symptom(
                "error",
                f"none of the {where} {n_without:,} rewards is 0, but {n_beside:,} of {beside} are",
                advice,
            )


def change_of_unit(log: Examined) -> Iterator[Symptom]:
    """Rewards that go on in another unit."""
    change = _change(log)
    if change is not None:
        yield Symptom(
            "error",
            f"rewards other than 0 are typically {change.before:.3g} before round {change.at:,} "
            f"and {change.after:.3g} from there on, as if in another unit",
            "bring all to one unit, or evaluate on one of the parts",
        )


def _change(log: Examined) -> ScaleChange | None:
    return change_of_scale(np.where(log.right_reward, log.rewards, np.nan))


def drift(log: Examined) -> Iterator[Symptom]:
    """Whether rewards change with time, apart from what the logging policy learned.

    reward / probability averages the rewards of all actions alike, however they were chosen.
    """
    usable = log.right_reward & log.right_probability
    if log.n < 40 or usable.sum() < 0.5 * log.n or _change(log) is not None:
        return
    rewards, stands_for = log.rewards[usable], log.stands_for[usable]
    plain, p_plain = _halves(rewards, stands_for)
    if rewards.min() < rewards.max():
        rewards = unit_of(rewards, log.declared).of(rewards)
    _, p_uniform = _halves(rewards / log.probabilities[usable], stands_for)
    fell = plain[1] < plain[0]
    if p_uniform < 0.5 * LEVEL or (fell and p_plain < 0.5 * LEVEL):
        before, after = in_digits(*plain, places=3)
        yield Symptom(
            "warning",
            f"the mean reward went from {before} in the first half to {after} in the "
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
    "rare rewards": (rare, "those that differ from the usual one are not too few"),
    "missing zeros": (missing_zeros, "rounds without reward are there"),
    "unit of rewards": (change_of_unit, "rewards keep their scale"),
    "drift of rewards": (drift, "both halves of the log have rewards alike"),
}
"""The checks by name, each with what it says when all is well."""
