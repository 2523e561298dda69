"""Writing an agent to a file and reading it again, to the last bit."""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from melee.agent.arguments import read_labels
from melee.agent.file import pack, unpack
from melee.agent.ids import Ids
from melee.agent.knowledge import Knowledge, Labels
from melee.agent.model import Model
from melee.agent.pending import Pending, Waiting
from melee.atomic import write_atomically
from melee.checks import (
    check_probability,
    check_reward,
    read_number,
    read_text,
    read_whole,
)
from melee.contexts import read_context
from melee.errors import DataError, InputError, MeleeError, MeleeWarning
from melee.explorers import parse
from melee.features import FeatureMap
from melee.labels import check_label, label_from_json, label_to_json
from melee.limits import AGENT_BYTES

if TYPE_CHECKING:
    from melee.agent.agent import Agent

A = TypeVar("A", bound="Agent")

_PLAIN = ("seed", "floor", "half_life", "timeout", "default_reward", "max_pending", "max_features")


def save(agent: "Agent", path: str | os.PathLike[str]) -> None:
    """Write an agent to a file, whole or not at all."""
    write_atomically(Path(path), agent.to_bytes())


def load(kind: type[A], path: str | os.PathLike[str], log: Any) -> A:
    """Read an agent from a file."""
    try:
        size = Path(path).stat().st_size
        if size > AGENT_BYTES.most:
            raise DataError(AGENT_BYTES.sentence(f"{path}: the file has {size:,} bytes"))
        if not Path(path).is_file():
            raise DataError(f"{path}: not a file; check the path")
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path!s:.200}: cannot be read ({reason}); check the path") from None
    return from_bytes(kind, content, str(path), log)


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
            "actions": [label_to_json(label) for label in agent._first_labels],
            "explorer": agent._chosen.spec,
        },
        "logged": agent.log is not None,
        "identity": agent._chosen.identity,
        "lineage": agent._ids.prefix,
        "counters": {"_n_acted": agent._ids.count, "_n_given_up": agent._n_given_up},
        "warned_full": agent._warned_full,
        "labels": [label_to_json(label) for label in known.labels],
        "plays": known.plays,
        "rewards": known.rewards,
        "n_learned": known.n_learned,
        "version": known.version,
        "total_reward": known.total_reward,
        "features": known.features.to_json(),
        "models": models,
        "waiting": [[id, *_waiting_to_json(one, known.labels)] for id, one in waiting.items()],
        "done": list(agent._pending.done.items()),
    }
    return pack(about, arrays)


def _plain(value: Any) -> Any:
    """A number of any type as JSON has it."""
    if value is None or type(value) in (int, float):
        return value
    return int(value) if hasattr(value, "__index__") else float(value)


def _waiting_to_json(one: Waiting, labels: Labels) -> list[Any]:
    context = one.context if isinstance(one.context, dict) else None
    plain = [context, label_to_json(one.action), one.probability, one.time, one.version]
    if one.actions is None or one.probabilities is None:
        return [*plain, None, None]
    some = one.actions is not labels and one.actions != labels
    actions = [label_to_json(label) for label in one.actions] if some else None
    return [*plain, actions, one.probabilities.tolist()]


def from_bytes(kind: type[A], content: bytes, where: str, log: Any) -> A:
    """The agent that was written, or a clear refusal."""
    about, arrays = unpack(content, where)
    try:
        agent = _built(kind, about, arrays, log)
    except InputError as error:
        raise DataError(f"{where}: {error}") from None
    except (MeleeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise _unfit(where, error) from None
    except (ArithmeticError, MemoryError, RecursionError, StopIteration) as error:
        raise _unfit(where, error) from None
    if agent._chosen.identity != about["identity"]:
        warnings.warn(
            f"{where}: its explorer was of another version when it was saved. What it has learned "
            "goes on as it was; models that start later are of this version",
            MeleeWarning,
            stacklevel=4,
        )
    if about["logged"] is True and log is None:
        warnings.warn(
            f"{where}: the agent kept a log when it was saved. A file does not say where to write: "
            "pass log=... to go on with it",
            MeleeWarning,
            stacklevel=4,
        )
    return agent


def _unfit(where: str, error: BaseException) -> DataError:
    return DataError(
        f"{where}: its content does not fit together ({error or type(error).__name__}); it was "
        "not written by an agent: copy the file again"
    )


def _built(kind: type[A], about: Any, arrays: list[npt.NDArray[Any]], log: Any) -> A:
    given = about["parameters"]
    agent = kind.__new__(kind)
    for name in _PLAIN:
        setattr(agent, name, given[name])
    agent.actions = [label_from_json(label) for label in given["actions"]]
    agent.explorer = parse(read_text(given["explorer"])).short_spec
    agent.log = log
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)  # those of the parameters were given before
        agent._read_parameters()
    agent._first_labels = tuple(agent._read_labels(agent.actions, 1))
    agent._ids = Ids(agent.seed)
    agent._ids.prefix = read_text(about["lineage"])
    agent._ids.are_others = True
    read_text(about["identity"])
    if type(about["logged"]) is not bool:
        raise DataError("it does not say whether it was logged")
    counters = about["counters"]
    agent._ids.count = read_whole(counters["_n_acted"], 0, 2**62)
    agent._n_given_up = read_whole(counters["_n_given_up"], 0, 2**62)
    agent._warned_full = about["warned_full"] is True
    agent._knowledge = _knowledge(agent, about, arrays)
    agent._pending = _pending(about, agent.max_pending, agent._knowledge, arrays)
    if arrays:
        raise DataError("more arrays than an agent has")
    return agent


def _knowledge(agent: "Agent", about: Any, arrays: list[npt.NDArray[Any]]) -> Knowledge:
    known = Knowledge.__new__(Knowledge)
    known.explorer, known.floor = agent._inside, agent._floor
    known.seed, known.half_life = agent.seed, agent.half_life
    labels = tuple(read_labels([label_from_json(label) for label in about["labels"]], 1))
    plays = [read_whole(n, 0, 2**62) for n in about["plays"]]
    rewards = [read_number(r, 0.0) for r in about["rewards"]]
    if {len(plays), len(rewards)} != {len(labels)}:
        raise DataError("actions whose counts are missing")
    known.set_labels(labels, plays, rewards)
    known.features = FeatureMap.from_json(about["features"])
    known.n_learned = read_whole(about["n_learned"], 0, 2**62)
    known.version = read_whole(about["version"], 0, 2**62)
    known.total_reward = read_number(about["total_reward"], 0.0)
    sizes = (known.features.n_features, len(labels))
    models = about["models"]
    if not 1 <= len(models) <= 2:
        raise DataError(f"{len(models)} models where one or two belong")
    if any((one["n_features"], one["n_actions"]) != sizes for one in models):
        raise DataError("a model of another size")
    known.model, *rest = [
        Model.from_parts(agent._inside, agent.seed, one, arrays) for one in models
    ]
    known.young = rest[0] if rest else None
    known.make_room()
    return known


def _pending(about: Any, limit: int, known: Knowledge, arrays: list[npt.NDArray[Any]]) -> Pending:
    pending = Pending(limit)
    width = known.features.width
    waiting, rows = about["waiting"], iter(())
    if width and waiting:
        contexts = arrays.pop(0)
        if contexts.shape != (len(waiting), width):
            raise DataError(f"contexts of shape {contexts.shape}")
        rows = iter(contexts)
    for id, context, action, probability, time, version, labels, pmf in waiting:
        read = read_context(next(rows) if width else _with_tuples(context))
        actions, probabilities = None, None
        if pmf is not None:
            probabilities = np.array([read_number(p, 0.0, 1.0) for p in pmf])
            actions = known.labels
            if labels is not None:
                actions = tuple(check_label(label_from_json(label)) for label in labels)
            if len(actions) != len(probabilities):
                raise DataError("probabilities of other actions than were open")
        pending.waiting[read_text(id)] = Waiting(
            read,
            check_label(label_from_json(action)),
            check_probability(probability),
            read_number(time),
            read_whole(version, 0),
            actions,
            probabilities,
            None,
        )
    for id, reward in about["done"]:
        pending.done[read_text(id)] = None if reward is None else check_reward(reward)
    return pending


def _with_tuples(context: Any) -> Any:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in context.items()}
