"""What a check is, and what checks share: small tasks, rounds to learn, sentences."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from melee.arrays import Floats
from melee.errors import InputError
from melee.preparation import Prepared, prepare
from melee.task import Task


@dataclass(frozen=True)
class Check:
    """One thing that must hold; called, it raises an AssertionError that says what does not.

    Attributes
    ----------
    name
        The check as a sentence, in one word; also its text, for a test's id.
    subject
        What is checked: the SPEC string.
    """

    name: str
    subject: str
    run: Callable[[], None]

    def __call__(self) -> None:
        """Check it."""
        try:
            self.run()
        except AssertionError as error:
            raise AssertionError(f"{self.subject}: {self.name}: {error}") from error
        except Exception as error:
            error.add_note(f"{self.subject}: in the check {self.name}")
            raise

    def __str__(self) -> str:
        return self.name


def select(found: Iterable[Check], leave_out: Iterable[str]) -> list[Check]:
    """The checks but those of some names, which must exist."""
    found, without = list(found), set(leave_out)
    if strange := without - {check.name for check in found}:
        known = ", ".join(check.name for check in found)
        raise InputError(f"there is no check {sorted(strange)[0]!r} to leave out; known: {known}")
    return [check for check in found if check.name not in without]


def require(holds: Any, sentence: str) -> None:
    """Refuse with a sentence; unlike `assert` it holds in an optimised Python too."""
    if not holds:
        raise AssertionError(sentence)


def require_distribution(pmf: Floats, when: str) -> None:
    """Refuse probabilities that are none."""
    fine = np.isfinite(pmf).all() and pmf.min() >= 0.0 and pmf.max() <= 1.0
    require(fine and abs(pmf.sum() - 1.0) < 1e-12, f"{when} the probabilities are {pmf.tolist()}")


def require_close(found: Any, expected: Any, when: str, atol: float = 1e-9) -> None:
    """Refuse numbers that differ by more than `atol`; 0 demands the same bits."""
    actual, other = np.asarray(found, float), np.asarray(expected, float)
    same = actual.shape == other.shape and bool((np.abs(actual - other) <= atol).all())
    require(same, f"{when}: {actual.tolist()} where {other.tolist()} was expected")


def refuses(made: Callable[[], Any]) -> bool:
    """Whether something is refused with one of our sentences."""
    try:
        made()
    except InputError:
        return True
    return False


# --- tasks --------------------------------------------------------------------------------------


def blobs(
    n_rows: int, *, n_actions: int, n_features: int, seed: int, distance: float = 6.0
) -> Task:
    """One round blob per action, centres well apart; reward 1 for the blob's own action."""
    rng = np.random.default_rng(seed)
    if n_features == 1:
        centres = distance * np.arange(n_actions)[:, None]
    else:  # on a circle in the first two, so that one linear model per action is enough
        angles = np.arange(n_actions) * 2 * np.pi / n_actions
        centres = np.zeros((n_actions, n_features))
        centres[:, :2] = distance * np.column_stack([np.cos(angles), np.sin(angles)])
    labels = np.concatenate([np.arange(n_actions), rng.integers(n_actions, size=n_rows)])[:n_rows]
    rng.shuffle(labels)
    contexts = centres[labels] + rng.normal(size=(n_rows, n_features))
    return Task("blobs", contexts, np.eye(n_actions)[labels], reward_range=(0.0, 1.0))


def graded(n_rows: int, *, n_actions: int, n_features: int, seed: int) -> Task:
    """Rewards between 0 and 1 from a random linear model, features of very unlike scales."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_features))
    signal = x @ rng.normal(size=(n_features, n_actions)) + rng.normal(size=(n_rows, n_actions))
    rewards = 1 / (1 + np.exp(-signal))
    contexts = x * 10.0 ** rng.integers(-3, 4, n_features)
    return Task("graded", contexts, rewards, reward_range=(0.0, 1.0))


@cache
def easy() -> Prepared:
    """Three well separated blobs in the plane."""
    return prepare(blobs(400, n_actions=3, n_features=2, seed=0), seed=3)


@cache
def hard() -> Prepared:
    """Five overlapping classes, graded rewards, four features of unlike scales."""
    return prepare(graded(360, n_actions=5, n_features=4, seed=1), seed=4)
