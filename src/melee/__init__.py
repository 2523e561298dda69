"""MELEE: contextual bandits that learned how to explore.

>>> import melee
>>> task = melee.rectangles(n_rows=500, bayes_error=0.1, seed=0)
>>> run = melee.simulate(task, "linucb:alpha=0.1", seed=0)
>>> run.mean_reward > 0.8
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from melee.version import __version__

if TYPE_CHECKING:
    from melee.agent import Agent, Decision, Explanation, Ranking, compile_now
    from melee.bandit import Bandit, Choice
    from melee.datasets import load_suite, read_table, rectangles
    from melee.errors import DataError, InputError, LeftOutWarning, MeleeError, MeleeWarning
    from melee.evaluation import evaluate, evaluate_live, evaluate_live_many, evaluate_many, examine
    from melee.explorers import EXPLORERS, parse, register
    from melee.history import History, Round
    from melee.loop import Run, simulate
    from melee.preparation import Prepared, prepare
    from melee.rehearsal import rehearse
    from melee.task import Task

__all__ = [
    "EXPLORERS",
    "Agent",
    "Bandit",
    "Choice",
    "DataError",
    "Decision",
    "Explanation",
    "History",
    "InputError",
    "LeftOutWarning",
    "MeleeError",
    "MeleeWarning",
    "Prepared",
    "Ranking",
    "Round",
    "Run",
    "Task",
    "__version__",
    "compile_now",
    "evaluate",
    "evaluate_live",
    "evaluate_live_many",
    "evaluate_many",
    "examine",
    "load_suite",
    "parse",
    "prepare",
    "read_table",
    "rectangles",
    "register",
    "rehearse",
    "simulate",
]

_HOMES = {
    "melee.agent": ["Agent", "Decision", "Explanation", "Ranking", "compile_now"],
    "melee.datasets": ["load_suite", "read_table", "rectangles"],
    "melee.errors": ["DataError", "InputError", "LeftOutWarning", "MeleeError", "MeleeWarning"],
    "melee.evaluation": [
        "evaluate",
        "evaluate_live",
        "evaluate_live_many",
        "evaluate_many",
        "examine",
    ],
    "melee.explorers": ["EXPLORERS", "parse", "register"],
    "melee.history": ["History", "Round"],
    "melee.bandit": ["Bandit", "Choice"],
    "melee.loop": ["Run", "simulate"],
    "melee.preparation": ["Prepared", "prepare"],
    "melee.rehearsal": ["rehearse"],
    "melee.task": ["Task"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import melee` itself costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'melee' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
