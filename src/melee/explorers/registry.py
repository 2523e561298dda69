"""The explorers by name, and SPEC strings: `name[:key=value[:key=value...]]`."""

import functools
from typing import TypeVar

from melee.errors import InputError
from melee.explorers.bagging import Bagging
from melee.explorers.banditron import Banditron, BanditronMelee
from melee.explorers.base import Explorer
from melee.explorers.cover import Cover, CoverNu
from melee.explorers.eg_epsilon_greedy import EgEpsilonGreedy
from melee.explorers.epsilon_greedy import EpsilonDecreasing, EpsilonGreedy
from melee.explorers.full_information import FullInformation
from melee.explorers.melee import Melee
from melee.explorers.melee_paper import MeleePaper
from melee.explorers.regcb import RegCbElim, RegCbOpt
from melee.explorers.softmax import Softmax
from melee.explorers.squarecb import SquareCb
from melee.explorers.tau_first import TauFirst
from melee.explorers.thompson import Thompson
from melee.explorers.ucb import GatedUcb, LinUcb
from melee.explorers.uniform import Uniform
from melee.learners import registry as learners
from melee.learners.base import Learner
from melee.registry import Registry
from melee.settings import read_settings

_KINDS: list[type[Explorer]] = [
    EpsilonGreedy,
    EpsilonDecreasing,
    EgEpsilonGreedy,
    LinUcb,
    GatedUcb,
    TauFirst,
    Cover,
    CoverNu,
    Uniform,
    RegCbOpt,
    RegCbElim,
    SquareCb,
    Bagging,
    Thompson,
    Softmax,
    FullInformation,
    Banditron,
    BanditronMelee,
    MeleePaper,
    Melee,
]

REGISTRY = Registry("explorer", Explorer, _KINDS)

EXPLORERS = REGISTRY.own
"""Every explorer of the library. A new one is a file beside this one, and a line above."""

K = TypeVar("K", bound=type[Explorer] | type[Learner])


def register(kind: K) -> K:
    """Make an explorer or a learner of yours known by its name, in this process; a decorator.

    A package has entry points instead, `melee.explorers` and `melee.learners`, by which it is found
    in every process.
    """
    if isinstance(kind, type) and issubclass(kind, Learner):
        learners.REGISTRY.add(kind)
    else:
        REGISTRY.add(kind)
    _parse.cache_clear()
    return kind


def parse(spec: str | Explorer) -> Explorer:
    """The explorer that a SPEC string describes; explorers themselves pass through.

    >>> parse("linucb:alpha=0.2").short_spec
    'linucb:alpha=0.2'
    >>> parse("linucp")
    Traceback (most recent call last):
    melee.errors.UnknownNameError: unknown explorer 'linucp'; did you mean 'linucb'? Known: ...
    """
    if isinstance(spec, Explorer):
        return spec
    if not isinstance(spec, str):
        raise InputError(f"explorer is {spec!r}; expected a SPEC string such as 'linucb:alpha=0.1'")
    return _parse(spec)


@functools.lru_cache(maxsize=1024)
def _parse(spec: str) -> Explorer:
    name, *settings = (part.strip() for part in spec.split(":"))
    kind = REGISTRY.find(name)
    return kind(**read_settings(kind, settings, f"explorer '{spec}'"))
