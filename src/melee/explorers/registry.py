"""The explorers by name, and SPEC strings: `name[:key=value[:key=value...]]`."""

import dataclasses
import functools

from melee.errors import InputError, unknown
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

EXPLORERS = {kind.name: kind for kind in _KINDS}
"""Every explorer of the library. A new one is a file beside this one, and a line above."""


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
    if name not in EXPLORERS:
        raise unknown("explorer", name, list(EXPLORERS))
    kind = EXPLORERS[name]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, object] = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not text:
            raise InputError(f"explorer '{spec}': '{setting}' is not of the form key=value")
        if key not in fields:
            raise unknown(f"parameter of {name}", key, list(fields) or ["(none)"])
        if key in values:
            raise InputError(f"explorer '{spec}': {key} is given twice; give it once")
        field = fields[key]
        try:
            absent = field.default is None and text == "none"
            values[key] = None if absent else field.metadata["parse"](text)
        except (ValueError, KeyError):
            wanted = {"float": "a number", "int": "a whole number"}.get(
                field.metadata["parse"].__name__, "true or false"
            )
            raise InputError(f"{name}: {key} is '{text}'; expected {wanted}") from None
    return kind(**values)
