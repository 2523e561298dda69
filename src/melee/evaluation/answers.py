"""What a log answers for a policy: weights of its rounds, or the reasons why it cannot."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.errors import InputError
from melee.evaluation.choices import Policy, choices
from melee.evaluation.embeddings import gathered
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.support import cautions, lacking

BY_ACTION = {"dr", "switch", "dros", "snips", "ips"}
"""Estimators that weigh a round by the probability of its action."""


class Weighed(NamedTuple):
    """What a policy would have done, and what the log did, by what choices are told apart by.

    Probabilities of the policy and of the log, (n, K), and the policy's weights, by which a round
    counts as often as it stands for; all 0 where the log's probabilities cannot be used.
    """

    chosen: Floats
    chances: Floats
    weights: Floats


class PolicyAnswer(NamedTuple):
    """What a policy would have done in the rounds of a log, and what to be careful about.

    By actions, by their features if `mips` is asked for, and its probabilities of actions that the
    log does not know, (n,).
    """

    by_actions: Weighed
    by_features: Weighed | None
    outside: Floats
    said: list[str]

    def best(self, estimators: Sequence[str]) -> Weighed:
        """By what differences are told: by actions, unless `mips` alone weighs rounds."""
        if self.by_features is None or not BY_ACTION.isdisjoint(estimators):
            return self.by_actions
        return self.by_features


def ask(
    log: EvaluatedLog, policy: Policy, name: str, seed: int, estimators: Sequence[str]
) -> PolicyAnswer:
    """A policy's choices in all rounds; refused if estimates by weights need more of the log."""
    weighted = any(estimator != "dm" for estimator in estimators)
    reason = log.without_support()
    if weighted and reason:
        raise InputError(f"this log cannot evaluate {name}: {reason}")
    chosen, outside = choices(log, policy, seed)
    if reason:
        return PolicyAnswer(Weighed(chosen, log.chances, np.zeros(log.n_rounds)), None, outside, [])
    by_actions, by_features = _weighed(log, chosen, log.chances), None
    if not BY_ACTION.isdisjoint(estimators):
        _refuse(name, lacking(log, chosen, outside, by_actions.weights))
    if "mips" in estimators:
        by_features = _weighed_alike(log, chosen)
        own = (by_features.chosen, outside, by_features.weights, by_features.chances)
        _refuse(name, lacking(log, *own))
    answer = PolicyAnswer(by_actions, by_features, outside, [])
    if weighted:
        weights = answer.best(estimators).weights
        answer.said.extend(cautions(weights, log.sizes * outside))
    return answer


def _refuse(name: str, reasons: list[str]) -> None:
    if reasons:
        raise InputError(f"this log cannot evaluate {name}: {'; also, '.join(reasons)}")


def _weighed(log: EvaluatedLog, chosen: Floats, chances: Floats) -> Weighed:
    """A policy's weights by actions; those that had no chance were not chosen."""
    weights = log.sizes * chosen[np.arange(log.n_rounds), log.actions] / log.probabilities
    return Weighed(chosen, chances, weights)


def _weighed_alike(log: EvaluatedLog, chosen: Floats) -> Weighed:
    """The same by features: candidates that are alike count as one, at the first one's place."""
    rows = np.arange(log.n_rounds)
    first = log.alike[rows, log.actions]
    chosen, chances = gathered(chosen, log.alike), gathered(log.chances, log.alike)
    return Weighed(chosen, chances, log.sizes * chosen[rows, first] / chances[rows, first])
