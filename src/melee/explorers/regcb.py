"""RegCB: confidence bounds from all models that fit almost as well as the best.

Foster, Agarwal, Dudík, Luo and Schapire (2018). For ridge regression the models whose sum of
squared errors is within β of the smallest form an ellipsoid, so the bounds have a closed form:
mean ± √β·spread, cut to the range of rewards, with β_t = mellowness·log(K·t).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats, Words
from melee.compiled import implements, kernel
from melee.distributions import greedy
from melee.explorers.base import Problem, RidgeExplorer
from melee.explorers.interface import distribution
from melee.learners.interface import n_rows, predict, spread
from melee.learners.offers import n_choices
from melee.settings import number


class RegCbOptState(NamedTuple):
    """A ridge learner and the mellowness."""

    polopt: Any
    mellowness: float


class RegCbElimState(NamedTuple):
    """A ridge learner and the mellowness."""

    polopt: Any
    mellowness: float


@dataclass(frozen=True, kw_only=True)
class RegCbOpt(RidgeExplorer):
    """Play the highest upper bound; tied bounds (as at the cut) share the mass.

    Parameters
    ----------
    mellowness
        How much worse than the best fit a model may be and still count; 0.001 did best in
        the comparison of Bietti, Agarwal and Langford (2018).
    """

    name: ClassVar[str] = "regcb-opt"
    takes_candidates: ClassVar[bool] = True
    mellowness: float = number(0.001, 0.0)

    def start(self, problem: Problem) -> RegCbOptState:
        """A fresh ridge per action."""
        return RegCbOptState(self.new_optimizer(problem), float(self.mellowness))

    def bonuses(self, state: RegCbOptState, x: Floats, t: int) -> Floats:
        """From the predictions to their upper bounds."""
        learner = state.polopt.learner
        actions = range(n_choices(x, n_rows(learner)))
        width = math.sqrt(state.mellowness * math.log(len(actions) * t))
        return np.array([bound(learner, x, a, width) - predict(learner, x, a) for a in actions])


@dataclass(frozen=True, kw_only=True)
class RegCbElim(RidgeExplorer):
    """Play uniformly among the actions that may still be best.

    An action is out when its upper bound is under some other action's lower bound.

    Parameters
    ----------
    mellowness
        As for `regcb-opt`.
    """

    name: ClassVar[str] = "regcb-elim"
    takes_candidates: ClassVar[bool] = True
    mellowness: float = number(0.001, 0.0)

    def start(self, problem: Problem) -> RegCbElimState:
        """A fresh ridge per action."""
        return RegCbElimState(self.new_optimizer(problem), float(self.mellowness))


@kernel
def bound(learner: Any, x: Floats, row: int, width: float) -> float:
    """The prediction plus width times its spread, cut to [0, 1]."""
    return min(max(predict(learner, x, row) + width * spread(learner, x, row), 0.0), 1.0)


@implements(distribution, RegCbOptState)
def regcb_opt_distribution(
    state: RegCbOptState, x: Floats, t: int, rng: Words, pmf: Floats
) -> None:
    """All mass on the highest upper bound."""
    width = math.sqrt(state.mellowness * math.log(pmf.shape[0] * t))
    for a in range(pmf.shape[0]):
        pmf[a] = bound(state.polopt.learner, x, a, width)
    greedy(pmf)


@implements(distribution, RegCbElimState)
def regcb_elim_distribution(
    state: RegCbElimState, x: Floats, t: int, rng: Words, pmf: Floats
) -> None:
    """Even mass on the actions whose upper bound reaches the highest lower bound."""
    width = math.sqrt(state.mellowness * math.log(pmf.shape[0] * t))
    highest = 0.0
    for a in range(pmf.shape[0]):
        highest = max(highest, bound(state.polopt.learner, x, a, -width))
        pmf[a] = bound(state.polopt.learner, x, a, width)
    n_left = 0
    for a in range(pmf.shape[0]):
        pmf[a] = 1.0 if pmf[a] >= highest else 0.0
        n_left += pmf[a] > 0.0
    for a in range(pmf.shape[0]):
        pmf[a] /= n_left
