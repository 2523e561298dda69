"""The learners by name, and their texts in SPEC strings: `name[/key=value[/key=value...]]`."""

import dataclasses
from collections.abc import Mapping

from melee.errors import InputError
from melee.learners.adaptive import AdaptiveDiagonalLearner, AdaptiveLearner
from melee.learners.base import Learner
from melee.learners.ridge import DiagonalLearner, RidgeLearner
from melee.learners.sgd import SgdLearner
from melee.registry import Registry
from melee.settings import read_settings

REGISTRY = Registry(
    "learner",
    Learner,
    [SgdLearner, RidgeLearner, DiagonalLearner, AdaptiveLearner, AdaptiveDiagonalLearner],
)


def names(*, spread: bool = False) -> list[str]:
    """The learners that there are; with `spread`, those that have one."""
    known = {name: entry.kind for name, entry in REGISTRY.listed().items()}
    return [name for name, kind in known.items() if kind.has_spread or not spread]


def kind_of(text: str) -> type[Learner]:
    """The class of the learner that a text describes."""
    return REGISTRY.find(text.partition("/")[0].strip())


def parse(
    text: str,
    shared: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> Learner:
    """The learner that a text describes.

    Parameters
    ----------
    text
        Its name and settings.
    shared
        Settings that an explorer has keys for; the learner takes those that it knows.
    defaults
        What else is known of its settings, where neither of the two says anything.

    Examples
    --------
    >>> parse("ridge/ridge=2").short_spec
    'ridge/ridge=2.0'
    >>> parse("sgd", shared={"loss": "logistic", "ridge": 0.1}).short_spec
    'sgd/loss=logistic'
    """
    kind = kind_of(text)
    own = read_settings(kind, text.split("/")[1:], f"learner '{text}'")
    keys = {field.name for field in dataclasses.fields(kind)}
    taken = {key: value for key, value in (shared or {}).items() if key in keys}
    for key in own.keys() & taken.keys():
        raise InputError(
            f"learner '{text}': {key} is a key of the explorer; give it there, as :{key}={own[key]}"
        )
    rest = {key: value for key, value in (defaults or {}).items() if key in keys}
    return kind(**rest | taken | own)
