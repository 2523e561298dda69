"""What explorers have in common: their configuration, its checks, and their learner."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from melee.arrays import Floats
from melee.errors import InputError, unknown, whole_number
from melee.explorers.hidden import Units, Widened, widen
from melee.explorers.rescaled import Rescaled
from melee.learners.ridge import (
    MAX_EXACT_FEATURES,
    MAX_EXACT_NUMBERS,
    DiagonalRidge,
    Ridge,
)
from melee.learners.sgd import AdaptiveSgd, Sgd
from melee.policy_optimizers import Direct, DoublyRobust, Ips, Multitask

DEFAULT_LEARNING_RATE = 0.1
"""For callers that bring no labelled rows to choose a learning rate by."""


class Kind(NamedTuple):
    """What was decided about a model by its size at the start, and stays when it grows."""

    exact: bool  # whether its ridges keep the whole matrix
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
    return dataclasses.replace(problem, n_features=problem.n_features + n_hidden, labelled=labelled)


def unlabelled(problem: Problem) -> Problem:
    """The problem without anything that comes from labelled rows."""
    return dataclasses.replace(problem, labelled=None, learning_rate=DEFAULT_LEARNING_RATE)


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """A way to explore and its settings; `start` gives the state that the loop works on.

    Subclasses are frozen dataclasses. Each field is a key of the SPEC string.
    """

    name: ClassVar[str]

    def start(self, problem: Problem) -> Any:
        """A fresh state (a NamedTuple of arrays) for one run."""
        raise TypeError(f"{type(self).__name__} does not say how it starts")

    def begin(self, problem: Problem) -> Any:
        """The state that the loop works on: `start`'s, behind what readies its contexts."""
        return self.start(problem)

    def begin_cold(self, problem: Problem) -> Rescaled:
        """The same for contexts as they come, which it learns to scale."""
        return Rescaled.around(self.start(unlabelled(problem)), problem.n_features, cold=True)

    def with_floor(self, floor: float) -> tuple["Explorer", float]:
        """The explorer that knows of uniform exploration around it, and what is left to mix in."""
        return self, floor

    def among_some(self, state: Any) -> Any:
        """The state for a world in which not all actions are open in every round."""
        return state

    def diagnostics(self, state: Any) -> dict[str, float]:
        """What a user may want to know of a run from its last state: a number for each name."""
        return {}

    @property
    def n_models(self) -> int:
        """How many models of each action it keeps, at most."""
        return 1

    @property
    def scales_itself(self) -> bool:
        """Whether it wants contexts as they come, because it finds their scale itself."""
        return False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check = field.metadata.get("check")
            if check is not None:
                check(self.name, field.name, getattr(self, field.name))

    @property
    def spec(self) -> str:
        """The full SPEC string, every setting included, that makes this explorer again.

        >>> from melee.explorers import parse
        >>> parse("uniform").spec
        'uniform'
        """
        settings = [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]
        return ":".join([self.name, *(f"{key}={_written(value)}" for key, value in settings)])

    @property
    def identity(self) -> str:
        """A text that differs whenever decisions may: the SPEC, and a trained policy's checksum."""
        return self.spec

    @property
    def short_spec(self) -> str:
        """The SPEC string with only those settings that differ from the defaults."""
        changed = [f for f in dataclasses.fields(self) if getattr(self, f.name) != f.default]
        keys = (f"{f.name}={_written(getattr(self, f.name))}" for f in changed)
        return ":".join([self.name, *keys])


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def number(
    default: float | None, low: float, high: float = float("inf"), *, above: bool = False
) -> Any:
    """A dataclass field for a number from `low` to `high` (`above`: low itself excluded)."""
    expected = f"{'more than' if above else 'at least'} {low:g}"
    expected += "" if high == float("inf") else f" and at most {high:g}"

    def check(owner: str, key: str, value: object) -> None:
        if value is None and default is None:
            return
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not low <= value <= high
            or (above and value == low)
            or value == float("inf")
        ):
            raise InputError(f"{owner}: {key} is {value!r}; expected a number, {expected}")

    return dataclasses.field(default=default, metadata={"check": check, "parse": float})


def count(default: int | None, low: int, high: int = 2**62) -> Any:
    """A dataclass field for a whole number from `low` to `high`."""

    def check(owner: str, key: str, value: object) -> None:
        if value is None and default is None:
            return
        if whole_number(f"{owner}: {key}", value, low) > high:
            raise InputError(f"{owner}: {key} is {value!r}; expected at most {high}")

    return dataclasses.field(default=default, metadata={"check": check, "parse": int})


def flag(default: bool) -> Any:
    """A dataclass field for yes or no."""

    def check(owner: str, key: str, value: object) -> None:
        if not isinstance(value, bool):
            raise InputError(f"{owner}: {key} is {value!r}; expected true or false")

    return dataclasses.field(default=default, metadata={"check": check, "parse": _parse_flag})


def _parse_flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def text(default: str) -> Any:
    """A dataclass field for a text without a colon, which would end it in a SPEC string."""

    def check(owner: str, key: str, value: object) -> None:
        if not isinstance(value, str) or not value or ":" in value:
            raise InputError(f"{owner}: {key} is {value!r}; expected a text without a colon")

    return dataclasses.field(default=default, metadata={"check": check, "parse": str})


def choice(default: str, *options: str) -> Any:
    """A dataclass field for one of a few words."""

    def check(owner: str, key: str, value: object) -> None:
        if value not in options:
            raise unknown(f"{key} for {owner}", str(value), list(options))

    return dataclasses.field(default=default, metadata={"check": check, "parse": str})


@dataclass(frozen=True, kw_only=True)
class RidgeExplorer(Explorer):
    """An explorer that needs its learner's predictive spread, which ridge alone has.

    Parameters
    ----------
    learner
        `ridge` (exact where that is feasible, else its diagonal) or `diagonal`.
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

    learner: str = choice("ridge", "ridge", "diagonal")
    optimizer: str = choice("direct", "direct", "mtr")
    ridge: float = number(0.1, 0.0, above=True)
    exact: int = count(MAX_EXACT_FEATURES, 0)
    hidden: int = count(0, 0, 1024)
    rescale: bool = flag(False)
    cold: bool = flag(False)

    def begin(self, problem: Problem) -> Any:
        """The state of `start`, behind hidden units and rescaling where they are asked for."""
        return self.behind(problem, self.start)

    def begin_cold(self, problem: Problem) -> Rescaled:
        """The same for contexts as they come, which it learns to scale."""
        state: Rescaled = dataclasses.replace(self, cold=True).begin(problem)
        return state

    def behind(self, problem: Problem, start: Callable[[Problem], Any]) -> Any:
        """The same for another way to start."""
        n_features, n_hidden = problem.n_features, self.n_hidden(problem)
        if self.cold:
            problem = unlabelled(problem)
        state = start(problem if n_hidden == 0 else widened(problem, n_hidden))
        if n_hidden > 0:
            state = Widened.around(state, n_features, n_hidden)
        if self.cold or self.rescale:
            state = Rescaled.around(state, n_features, cold=self.cold)
        return state

    def n_hidden(self, problem: Problem) -> int:
        """As many hidden units as asked for; none where one ridge per action could not be exact."""
        if problem.kind is not None:
            return self.hidden if problem.kind.hidden else 0
        wide = problem.n_inputs + self.hidden
        fits = self.learner != "ridge" or self.is_exact(wide, problem.n_actions)
        return self.hidden if fits else 0

    def is_exact(self, n_inputs: int, n_rows: int) -> bool:
        """Whether exact ridge models of this size are within the limits of time and memory."""
        return n_inputs - 1 <= self.exact and n_rows * n_inputs**2 <= MAX_EXACT_NUMBERS

    @property
    def scales_itself(self) -> bool:
        """In a cold start there is no one else to do it."""
        return self.cold

    def new_learner(self, problem: Problem, n_models: int = 1) -> Any:
        """A fresh learner of n_models × n_actions rows."""
        rows = n_models * problem.n_actions
        exact = self.learner == "ridge" and self.is_exact(problem.n_inputs, rows)
        if problem.kind is not None:
            exact = problem.kind.exact
        kind = Ridge if exact else DiagonalRidge
        return kind.start(rows, problem.n_inputs, float(self.ridge))

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
        `sgd`; `ridge` (exact where that is feasible, else its diagonal); or `diagonal`.
    optimizer
        How rounds become regression targets: `direct`, `ips`, `dr` or `mtr`.
    loss, steps, learning_rate
        For `sgd`: `squared` or `logistic` loss; `plain` or `adaptive` steps; the rate, which
        the preparation chooses when left out.
    ridge
        For `ridge` and `diagonal`: strength of the L2 penalty.
    """

    learner: str = choice("sgd", "sgd", "ridge", "diagonal")
    optimizer: str = choice("direct", "direct", "ips", "dr", "mtr")
    loss: str = choice("squared", "squared", "logistic")
    steps: str = choice("plain", "plain", "adaptive")
    learning_rate: float | None = number(None, 0.0, above=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss == "logistic" and self.optimizer in ("ips", "dr"):
            raise InputError(
                f"{self.name}: logistic loss needs targets in [0, 1] and optimizer="
                f"{self.optimizer} makes others; use loss=squared, or optimizer=direct or mtr"
            )
        of_sgd = (self.loss, self.steps, self.learning_rate)
        if self.learner != "sgd" and of_sgd != ("squared", "plain", None):
            raise InputError(
                f"{self.name}: loss, steps and learning_rate are settings of learner=sgd and the "
                f"learner is {self.learner}; leave them out, or use learner=sgd"
            )

    def new_learner(self, problem: Problem, n_models: int = 1) -> Any:
        """A fresh learner of n_models × n_actions rows."""
        if self.learner != "sgd":
            return super().new_learner(problem, n_models)
        rate = problem.learning_rate if self.learning_rate is None else self.learning_rate
        kind = Sgd if self.steps == "plain" else AdaptiveSgd
        rows = n_models * problem.n_actions
        return kind.start(rows, problem.n_inputs, float(rate), self.loss == "logistic")
