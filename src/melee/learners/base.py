"""What learners have in common: how one describes itself, and its settings."""

from dataclasses import dataclass
from typing import Any, ClassVar

from melee.settings import Configured


@dataclass(frozen=True, kw_only=True)
class Learner(Configured):
    """A kind of model and its settings; `start` gives the state that kernels work on.

    Subclasses are frozen dataclasses. Each field is a setting. The state is a NamedTuple of arrays
    and numbers with an implementation of `predict` and `correct` (see `melee.learners.interface`),
    and one of `spread` where there is one.
    """

    separator: ClassVar[str] = "/"
    has_spread: ClassVar[bool] = False
    """Whether its state says how uncertain a prediction is."""
    takes_candidates: ClassVar[bool] = False
    """Whether its state knows of candidates with inputs of their own: it asks `choice`."""
    alone: ClassVar[bool] = True
    """Whether its models learn nothing from one another."""

    def start(self, n_rows: int, n_inputs: int) -> Any:
        """A fresh state of n_rows models of n_inputs inputs each, the intercept included."""
        raise TypeError(f"{type(self).__name__} does not say how it starts")

    def start_widened(self, n_rows: int, n_inputs: int, n_hidden: int) -> Any:
        """The same where so many of the inputs, before the intercept, are hidden units."""
        return self.start(n_rows, n_inputs)

    def start_shared(self, n_rows: int, n_inputs: int, n_hidden: int, n_actions: int) -> Any:
        """The same where so many candidates share its models (see `melee.learners.offers`)."""
        return self.start_widened(n_rows, n_inputs, n_hidden)

    def fits(self, n_rows: int, n_inputs: int) -> bool:
        """Whether models of this size are within its limits of time and memory."""
        return True

    def welcomes_hidden(self, n_rows: int, n_inputs: int) -> bool:
        """Whether hidden units, which are among these inputs, are worth their time."""
        return self.fits(n_rows, n_inputs)

    def smaller(self) -> "Learner":
        """The learner that takes its place where it does not fit."""
        return self
