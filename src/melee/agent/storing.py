"""Writing an agent to a file and reading it again, to the last bit."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from melee.agent.file import LARGEST_FILE, pack, unpack
from melee.agent.knowledge import Knowledge
from melee.agent.model import Model
from melee.agent.pending import Pending, Waiting
from melee.artefact import write_atomically
from melee.contexts import read_context
from melee.errors import DataError, MeleeError
from melee.explorers import parse
from melee.features import FeatureMap
from melee.labels import check_label, label_from_json, label_to_json

if TYPE_CHECKING:
    from melee.agent.agent import Agent

A = TypeVar("A", bound="Agent")

_COUNTERS = ("_n_acted", "_n_given_up")
_PLAIN = ("seed", "floor", "half_life", "timeout", "default_reward", "max_pending", "max_features")


def save(agent: "Agent", path: str | os.PathLike[str]) -> None:
    """Write an agent to a file, whole or not at all."""
    content = agent.to_bytes()
    try:
        write_atomically(Path(path), content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); check the path") from None


def load(kind: type[A], path: str | os.PathLike[str]) -> A:
    """Read an agent from a file."""
    try:
        size = Path(path).stat().st_size
        if size > LARGEST_FILE:
            raise DataError(f"{path}: {size} bytes are too many for the file of an agent")
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    return from_bytes(kind, content, str(path))


def to_bytes(agent: "Agent") -> bytes:
    """Everything that an agent is."""
    arrays: list[npt.NDArray[Any]] = []
    models = []
    known = agent._knowledge
    for model in known.models:
        about, parts = model.to_parts()
        models.append(about)
        arrays += parts
    waiting = agent._pending.waiting
    numbers = [one.context for one in waiting.values() if not isinstance(one.context, dict)]
    if numbers:
        arrays.append(np.array(numbers))
    about = {
        "parameters": {
            **{name: _plain(getattr(agent, name)) for name in _PLAIN},
            "actions": [label_to_json(label) for label in agent.actions],
            "explorer": agent._chosen.spec,
            "log": None if agent.log is None else os.fspath(agent.log),
        },
        "identity": agent._chosen.identity,
        "lineage": agent._lineage,
        "counters": {name: getattr(agent, name) for name in _COUNTERS},
        "warned_full": agent._warned_full,
        "labels": [label_to_json(label) for label in known.labels],
        "plays": known.plays,
        "rewards": known.rewards,
        "n_learned": known.n_learned,
        "version": known.version,
        "total_reward": known.total_reward,
        "features": known.features.to_json(),
        "models": models,
        "waiting": [[id, *_waiting_to_json(one)] for id, one in waiting.items()],
        "done": list(agent._pending.done.items()),
    }
    return pack(about, arrays)


def _plain(value: Any) -> Any:
    """A number of any type as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value


def _waiting_to_json(one: Waiting) -> list[Any]:
    context = one.context if isinstance(one.context, dict) else None
    pmf = None if one.pmf is None else [[label_to_json(k), p] for k, p in one.pmf.items()]
    return [context, label_to_json(one.action), one.probability, one.time, one.version, pmf]


def from_bytes(kind: type[A], content: bytes, where: str) -> A:
    """The agent that was written, or a clear refusal."""
    about, arrays = unpack(content, where)
    try:
        _check_size(about, len(content))
        return _built(kind, about, arrays)
    except MeleeError as error:
        raise DataError(f"{where}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DataError(
            f"{where}: its content does not fit together ({type(error).__name__}: {error}); it "
            "was not written by an agent: copy the file again"
        ) from None


def _check_size(about: Any, size: int) -> None:
    """Refuse a small file that describes a large agent, before anything is allocated."""
    for model in about["models"]:
        numbers = model["n_features"] * model["n_actions"]
        if model["n_actions"] != len(about["labels"]) or numbers > max(size, 2**20):
            raise DataError("its model is larger than the file; copy the file again")


def _built(kind: type[A], about: Any, arrays: list[npt.NDArray[Any]]) -> A:
    given = about["parameters"]
    agent = kind.__new__(kind)
    for name in _PLAIN:
        setattr(agent, name, given[name])
    agent.actions = [label_from_json(label) for label in given["actions"]]
    agent.explorer = parse(given["explorer"]).short_spec
    agent.log = given["log"]
    agent._read_parameters()
    agent._lineage = str(about["lineage"])
    for name in _COUNTERS:
        setattr(agent, name, int(about["counters"][name]))
    agent._warned_full = about["warned_full"] is True
    agent._knowledge = _knowledge(agent, about, arrays)
    agent._pending = _pending(about, agent.max_pending, arrays)
    if arrays:
        raise DataError("it holds more than an agent has")
    return agent


def _knowledge(agent: "Agent", about: Any, arrays: list[npt.NDArray[Any]]) -> Knowledge:
    known = Knowledge.__new__(Knowledge)
    known.explorer, known.floor = agent._inside, agent._floor
    known.seed, known.half_life = agent.seed, agent.half_life
    labels = tuple(check_label(label_from_json(label)) for label in about["labels"])
    plays, rewards = [int(n) for n in about["plays"]], [float(r) for r in about["rewards"]]
    known.set_labels(labels, plays, rewards)
    if not labels or {len(known.index), len(plays), len(rewards)} != {len(labels)}:
        raise DataError("its actions do not fit together")
    known.features = FeatureMap.from_json(about["features"])
    known.n_learned, known.version = int(about["n_learned"]), int(about["version"])
    known.total_reward = float(about["total_reward"])
    known.model, *rest = [
        Model.from_parts(agent._inside, agent.seed, one, arrays) for one in about["models"]
    ]
    known.young = rest[0] if rest else None
    if len(rest) > 1 or any(one.n_features != known.features.n_features for one in known.models):
        raise DataError("its models do not fit together")
    known.make_room()
    return known


def _pending(about: Any, limit: int, arrays: list[npt.NDArray[Any]]) -> Pending:
    pending = Pending(limit)
    rows = iter(arrays.pop(0)) if arrays else iter([])
    for id, context, action, probability, time, version, pmf in about["waiting"]:
        read = read_context(next(rows) if context is None else _with_tuples(context))
        pairs = None if pmf is None else {label_from_json(k): float(p) for k, p in pmf}
        pending.waiting[str(id)] = Waiting(
            read,
            label_from_json(action),
            float(probability),
            float(time),
            int(version),
            pairs,
            None,
        )
    for id, reward in about["done"]:
        pending.done[str(id)] = None if reward is None else float(reward)
    return pending


def _with_tuples(context: Any) -> Any:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in context.items()}
