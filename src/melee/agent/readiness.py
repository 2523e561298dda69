"""Machine code for agents, compiled before they need it."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from melee.agent.model import Model
from melee.bandit import Bandit
from melee.compiled import Program
from melee.explorers import Explorer, parse

if TYPE_CHECKING:
    from melee.agent.agent import Agent


class Compiled(NamedTuple):
    """A program that is ready: whose it is, its file if it is kept, and what it took."""

    explorer: str
    program: str
    path: Path | None
    seconds: float


def compile_now(*explorers: "str | Explorer | Agent | Bandit") -> list[Compiled]:
    """Compile what agents need, and wait for it; what was compiled before is only loaded.

    An agent decides and learns at once: it interprets its kernels until there is machine code.
    This is for those who would rather wait, as before a server takes its first request, and for
    filling a cache (`melee compile`). Deciding among some of the actions is a program of its own.

    Parameters
    ----------
    explorers
        Explorers or their SPEC texts, as agents take them; or agents, or bandits. By default
        `melee`.

    Examples
    --------
    >>> [one.program for one in compile_now("uniform")]
    ['melee.loop.act_rows', 'melee.loop.act_rows', 'melee.loop.learn_rows']
    """
    done = []
    for given in explorers or ("melee",):
        name, programs = _programs(given)
        for program in programs:
            began = time.perf_counter()
            program.wait()
            done.append(Compiled(name, program.name, program.path, time.perf_counter() - began))
    return done


def _programs(given: Any) -> tuple[str, list[Program]]:
    if isinstance(given, Bandit):
        return given.explorer.short_spec, given._programs
    if hasattr(given, "policy_"):
        return str(given.policy_), list(given._programs)
    explorer = parse(given)
    return explorer.short_spec, Model(explorer, 0, 0, 1, 2).all_programs()
