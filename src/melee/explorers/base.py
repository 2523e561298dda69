"""What explorers have in common: their configuration, its checks, and their learner."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.errors import InputError, UnknownNameError, unknown
from melee.explorers.candidates import N_UNITS, RESERVED, Paired, PairUnits
from melee.explorers.hidden import Units, Widened, widen
from melee.explorers.ranged import Range, Ranged
from melee.explorers.rescaled import Rescaled
from melee.learners import registry as learners
from melee.learners.base import Learner
from melee.learners.ridge import MAX_EXACT_FEATURES
from melee.learners.sgd import DEFAULT_LEARNING_RATE
from melee.policy_optimizers import Direct, DoublyRobust, Ips, Multitask
from melee.settings import Configured, choice, count, flag, number


class Kind(NamedTuple):
    """What was decided about a model by its size at the start, and stays when it grows."""

    exact: bool  # whether its learner keeps whole matrices
    hidden: bool  # whether it has hidden units


@dataclass(frozen=True)
class Problem:
    """What an explorer may know of a problem before its first round."""

    n_features: int
    n_actions: int
    n_rounds: int | None = None
    learning_rate: float = DEFAULT_LEARNING_RATE
    labelled: tuple[Floats, Floats] | None = None
    """Inputs and rewards of labelled rows, for explorers that calibrate on them."""
    kind: Kind | None = None
    """The kind of model, whatever the size; by default the size decides."""
    n_hidden: int = 0
    """How many of the features are hidden units, the last ones."""
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    """The least and the greatest reward there can be; None where that is to be found out."""
    shared: bool = False
    """Whether choices are candidates with inputs of their own, which share a model; then
    `n_actions` is how many there can be."""

    @property
    def n_inputs(self) -> int:
        """Features and the intercept."""
        return self.n_features + 1


def widened(problem: Problem, n_hidden: int) -> Problem:
    """The problem as it looks from behind hidden units."""
    labelled = problem.labelled
    if labelled is not None:
        units = Units.draw(problem.n_features, n_hidden)
        wide = np.empty((len(labelled[0]), problem.n_inputs + n_hidden))
        for i, x in enumerate(labelled[0]):
            widen(units, x, wide[i])
        labelled = (wide, labelled[1])
    n_features = problem.n_features + n_hidden
    return dataclasses.replace(problem, n_features=n_features, labelled=labelled, n_hidden=n_hidden)


def unlabelled(problem: Problem) -> Problem:
    """The problem without anything that comes from labelled rows."""
    return dataclasses.replace(problem, labelled=None, learning_rate=DEFAULT_LEARNING_RATE)


@dataclass(frozen=True, kw_only=True)
class Explorer(Configured):
    """A way to explore and its settings; `start` gives the state that the loop works on.

    Subclasses are frozen dataclasses. Each field is a key of the SPEC string.
    """

    learns: ClassVar[bool] = True
    """Whether what it has seen changes what it does."""
    sees_all_rewards: ClassVar[bool] = False
    """Whether a simulation shows it the rewards of all actions, and not its own alone."""
    predicts: ClassVar[bool] = True
    """Whether its learner, if it has one, predicts rewards."""
    takes_candidates: ClassVar[bool] = False
    """Whether it can choose among candidates with features of their own: it learns from the one
    that was chosen alone, and asks how many there are (`pmf.shape[0]`, `n_choices`)."""
    needs_unit_rewards: ClassVar[bool] = True
    """Whether what it learns has to be in [0, 1] always; else a reward that comes after the first
    256 may be mapped to a little less or more (see `melee.explorers.ranged`)."""

    def start(self, problem: Problem) -> Any:
        """A fresh state (a NamedTuple of arrays) for one run."""
        raise TypeError(f"{type(self).__name__} does not say how it starts")

    def begin(self, problem: Problem) -> Any:
        """The state that the loop works on: `start`'s, behind what readies contexts and rewards."""
        return self.in_range(problem, self.start(problem))

    def begin_cold(self, problem: Problem) -> Rescaled:
        """The same for contexts as they come, which it learns to scale."""
        found = self.range_of(problem)
        return Rescaled.around(
            self.start(unlabelled(problem)), problem.n_features, found, cold=True
        )

    def begin_paired(
        self, problem: Problem, sides: Sequence[int], numbers: Sequence[bool]
    ) -> Rescaled:
        """The state for candidates, by pairs of a context and a candidate as they come.

        Parameters
        ----------
        problem
            Its features are the columns of pairs, its actions how many candidates there can be.
        sides, numbers
            What the columns are: see `melee.explorers.candidates.PairUnits.draw`.
        """
        self.check_candidates()
        n = problem.n_features
        n_features = n + N_UNITS
        inside = dataclasses.replace(
            unlabelled(problem), n_features=n_features, n_hidden=N_UNITS, shared=True
        )
        inner = self.among_some(self.start(inside))
        paired = Paired.around(inner, PairUnits.draw(sides, numbers, N_UNITS, RESERVED), n)
        return Rescaled.around(paired, n, self.range_of(problem), cold=True)

    def check_candidates(self) -> None:
        """Refuse to choose among candidates where that is not possible."""
        if not self.takes_candidates:
            raise InputError(
                f"{self.name}: it learns from all actions of a round or keeps an account of each, "
                "and candidates come and go; use another explorer, such as melee, or give the "
                "agent actions"
            )

    def range_of(self, problem: Problem) -> Range:
        """The range of rewards, declared or yet to be found."""
        return Range.of(problem.reward_range, within=self.needs_unit_rewards)

    def in_range(self, problem: Problem, state: Any) -> Any:
        """A state behind the range of rewards, unless that is [0, 1]."""
        if problem.reward_range == (0.0, 1.0):
            return state
        known = None if problem.labelled is None else problem.labelled[1]
        found, k = self.range_of(problem), problem.n_actions
        return Ranged.around(state, found, k, known, sees_all=self.sees_all_rewards)

    def with_floor(self, floor: float) -> tuple["Explorer", float]:
        """The explorer that knows of uniform exploration around it, and what is left to mix in."""
        return self, floor

    def among_some(self, state: Any) -> Any:
        """The state for a world in which not all actions are open in every round."""
        return state

    def diagnostics(self, state: Any) -> dict[str, float]:
        """What a user may want to know of a run from its last state: a number for each name."""
        return {}

    def bonuses(self, state: Any, x: Floats, t: int) -> Floats | None:
        """What it adds to the prediction of every action before it plays the highest sum.

        None where it explores in another way. `state` is a copy of the one that `start` made, and
        x a context as that sees it, in round t.
        """
        return None

    @property
    def n_models(self) -> int:
        """How many models of each action it keeps, at most."""
        return 1

    @property
    def scales_itself(self) -> bool:
        """Whether it wants contexts as they come, because it finds their scale itself."""
        return False

    @property
    def identity(self) -> str:
        """A text that differs whenever decisions may: the SPEC, and a trained policy's checksum."""
        return self.spec


def learner_choice(default: str, *, spread: bool = False) -> Any:
    """A dataclass field for a learner and its settings; with `spread`, one that has one."""

    def check(owner: str, key: str, value: object) -> None:
        try:
            known = learners.kind_of(str(value))
        except UnknownNameError:
            known = None
        if known is None or (spread and not known.has_spread):
            raise unknown(f"{key} for {owner}", str(value), learners.names(spread=spread))

    return dataclasses.field(default=default, metadata={"check": check, "parse": str})


@dataclass(frozen=True, kw_only=True)
class RidgeExplorer(Explorer):
    """An explorer that needs its learner's predictive spread.

    Parameters
    ----------
    learner
        `ridge` (exact where that is feasible, else its diagonal), `diagonal`, `adaptive` (which
        estimates its noise), `adaptive-diagonal`, or another package's that has a spread.
    optimizer
        How rounds become regression targets: `direct` or `mtr`.
    ridge
        Strength of the L2 penalty.
    exact
        Features, hidden units included, up to which a ridge is exact; 128 MiB of models is the
        limit too.
    hidden
        Random hidden units beside the features (see `melee.explorers.hidden`).
    rescale
        Standardize contexts by the first 256 of them (see `melee.explorers.rescaled`).
    cold
        Start from nothing: no labelled rows, and a scaling found on the way.
    """

    of_learner: ClassVar[tuple[str, ...]] = ("ridge", "exact")
    """The keys that are settings of its learner."""

    learner: str = learner_choice("ridge", spread=True)
    optimizer: str = choice("direct", "direct", "mtr")
    ridge: float = number(0.1, 0.0, above=True)
    exact: int = count(MAX_EXACT_FEATURES, 0)
    hidden: int = count(0, 0, 1024)
    rescale: bool = flag(False)
    cold: bool = flag(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.model()  # whose settings are checked too

    def begin(self, problem: Problem) -> Any:
        """The state of `start`, behind hidden units, rescaling and a range where there are any."""
        return self.behind(problem, self.start)

    def begin_cold(self, problem: Problem) -> Rescaled:
        """The same for contexts as they come, which it learns to scale."""
        state: Rescaled = dataclasses.replace(self, cold=True).begin(problem)
        return state

    def behind(self, problem: Problem, start: Callable[[Problem], Any]) -> Any:
        """The same for another way to start."""
        given, n_features, n_hidden = problem, problem.n_features, self.n_hidden(problem)
        if self.cold:
            problem = unlabelled(problem)
        state = start(problem if n_hidden == 0 else widened(problem, n_hidden))
        if n_hidden > 0:
            state = Widened.around(state, n_features, problem.n_actions, n_hidden)
        if self.cold or self.rescale:
            return Rescaled.around(state, n_features, self.range_of(given), cold=self.cold)
        return self.in_range(given, state)

    def n_hidden(self, problem: Problem) -> int:
        """As many hidden units as asked for; none where the learner would not fit with them."""
        if problem.kind is not None:
            return self.hidden if problem.kind.hidden else 0
        wide = problem.n_inputs + self.hidden
        return self.hidden if self.model().welcomes_hidden(problem.n_actions, wide) else 0

    @property
    def scales_itself(self) -> bool:
        """In a cold start there is no one else to do it."""
        return self.cold

    def check_candidates(self) -> None:
        """Refuse what learns from all actions of a round, or from targets in [0, 1] alone."""
        super().check_candidates()
        if not self.model().takes_candidates:
            raise InputError(
                f"{self.name}: its learner, {self.learner}, has a model for each action and knows "
                "of no candidates; use another one, such as ridge, or give the agent actions"
            )
        if self.optimizer in ("ips", "dr") or getattr(self, "loss", "squared") == "logistic":
            raise InputError(
                f"{self.name}: of candidates only the chosen one is learned from, by squared loss; "
                "use optimizer=direct or mtr, and loss=squared"
            )

    def model(self, learning_rate: float = DEFAULT_LEARNING_RATE) -> Learner:
        """The learner that the settings describe."""
        own = {key: getattr(self, key) for key in self.of_learner}
        given = {key: value for key, value in own.items() if value is not None}
        return learners.parse(self.learner, given, {"learning_rate": learning_rate})

    def new_learner(self, problem: Problem, n_models: int = 1) -> Any:
        """A fresh learner of n_models × n_actions rows."""
        per_model = 1 if problem.shared else problem.n_actions
        n_rows, learner = n_models * per_model, self.model(problem.learning_rate)
        fits = learner.fits(n_rows, problem.n_inputs)
        if problem.kind is not None:
            fits = problem.kind.exact
        chosen = learner if fits else learner.smaller()
        if problem.shared:
            sizes = (problem.n_inputs, problem.n_hidden, problem.n_actions)
            return chosen.start_shared(n_rows, *sizes)
        return chosen.start_widened(n_rows, problem.n_inputs, problem.n_hidden)

    def new_optimizer(self, problem: Problem, n_models: int = 1) -> Any:
        """A fresh policy optimizer over such a learner."""
        learner = self.new_learner(problem, n_models)
        if self.optimizer == "dr":
            return DoublyRobust(learner, self.new_learner(problem, n_models))
        return {"direct": Direct, "ips": Ips, "mtr": Multitask}[self.optimizer](learner)


@dataclass(frozen=True, kw_only=True)
class LearningExplorer(RidgeExplorer):
    """An explorer that works over any learner, fitted by any policy optimizer.

    Parameters
    ----------
    learner
        `sgd`; `ridge` (exact where that is feasible, else its diagonal); `diagonal`; `adaptive`
        (which estimates its noise); `adaptive-diagonal`; or another package's.
    optimizer
        How rounds become regression targets: `direct`, `ips`, `dr` or `mtr`.
    loss, steps, learning_rate
        For `sgd`: `squared` or `logistic` loss; `plain` or `adaptive` steps; the rate, which
        the preparation chooses when left out.
    ridge
        For all but `sgd`: strength of the L2 penalty.
    """

    of_learner: ClassVar[tuple[str, ...]] = ("ridge", "exact", "loss", "steps", "learning_rate")

    learner: str = learner_choice("sgd")
    optimizer: str = choice("direct", "direct", "ips", "dr", "mtr")
    loss: str = choice("squared", "squared", "logistic")
    steps: str = choice("plain", "plain", "adaptive")
    learning_rate: float | None = number(None, 0.0, above=True)

    def range_of(self, problem: Problem) -> Range:
        """The range of rewards; logistic loss has no targets outside of [0, 1]."""
        within = self.needs_unit_rewards or self.loss == "logistic"
        return Range.of(problem.reward_range, within=within)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss == "logistic" and self.optimizer in ("ips", "dr"):
            raise InputError(
                f"{self.name}: logistic loss needs targets in [0, 1] and optimizer="
                f"{self.optimizer} makes others; use loss=squared, or optimizer=direct or mtr"
            )
        keys = {field.name for field in dataclasses.fields(self.model())}
        of_sgd = {"loss": "squared", "steps": "plain", "learning_rate": None}
        if any(getattr(self, key) != usual for key, usual in of_sgd.items() if key not in keys):
            raise InputError(
                f"{self.name}: loss, steps and learning_rate are settings of learner=sgd and the "
                f"learner is {self.learner}; leave them out, or use learner=sgd"
            )
