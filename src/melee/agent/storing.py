"""Writing an agent to a file and reading it again, to the last bit.

An agent is noted under its lock, which takes milliseconds whatever waits there; all that takes
long, encoding, hashing and writing, is done afterwards, while the agent goes on.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from melee.agent import parameters, pending, trials
from melee.agent.catalogue import Catalogue
from melee.agent.file import Arrays, pack, under, unpack
from melee.agent.ids import Ids
from melee.agent.knowledge import Knowledge
from melee.atomic import write_atomically
from melee.checks import read_text
from melee.collecting import without_collecting
from melee.errors import DataError, InputError, MeleeError, MeleeWarning, shown, warn_caller
from melee.limits import AGENT_BYTES

if TYPE_CHECKING:
    from melee.agent.agent import Agent


class NotedAgent(NamedTuple):
    """Everything that an agent is at one moment; nothing in it changes any more."""

    parameters: dict[str, Any]
    logged: bool
    identity: str
    ids: dict[str, Any]
    knowledge: tuple[dict[str, Any], Arrays]
    pending: pending.NotedPending
    trials: list[list[Any]]


def noted(agent: "Agent") -> NotedAgent:
    """Everything that is to be saved, noted in a moment."""
    with agent._lock:
        return NotedAgent(
            parameters.to_json(agent),
            agent.log is not None,
            agent._chosen.identity,
            agent._ids.to_json(),
            agent._knowledge.to_parts(),
            agent._pending.noted(),
            trials.to_json(agent._trials.values()),
        )


def to_bytes(noted: NotedAgent) -> bytes:
    """The content of a file."""
    knowledge, arrays = noted.knowledge
    waits, more, waiting, done = noted.pending.to_parts()
    about = {
        "parameters": noted.parameters,
        "logged": noted.logged,
        "identity": noted.identity,
        "ids": noted.ids,
        "knowledge": knowledge,
        "pending": waits,
    }
    if noted.trials:
        about["trials"] = noted.trials
    arrays = arrays | {f"pending.{name}": array for name, array in more.items()}
    return pack(about, arrays, waiting=waiting, done=done)


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, whole or not at all."""
    write_atomically(Path(path), content)


def read(path: str | os.PathLike[str]) -> bytes:
    """The content of a file."""
    try:
        size = Path(path).stat().st_size
        if size > AGENT_BYTES.most:
            raise DataError(AGENT_BYTES.sentence(f"{path}: the file has {size:,} bytes"))
        if not Path(path).is_file():
            raise DataError(f"{path}: not a file; check the path")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path!s:.200}: cannot be read ({reason}); check the path") from None


def restore(agent: "Agent", content: bytes, where: str, log: Any) -> None:
    """Have a bare agent be the one that was written; `where` names the file in sentences."""
    with without_collecting():
        about, arrays = unpack(content, where)
        with _refusing(where):
            _restore(agent, about, arrays, log)
    _tell(where, about, agent._chosen.identity, log)


def _restore(agent: "Agent", about: Any, arrays: Arrays, log: Any) -> None:
    parameters.from_json(agent, about["parameters"])
    agent.log = log
    agent.journal = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)  # they were given before
        agent._read_parameters()
    agent.reward_range = agent._range
    agent._ids = Ids.from_json(about["ids"], agent.seed)
    own = (agent._inside, agent._floor, agent.seed, agent.half_life, agent._range)
    kind = Catalogue if agent.actions is None else Knowledge
    agent._knowledge = kind.from_parts(about["knowledge"], arrays, *own)
    agent._pending = pending.Pending.from_parts(
        about["pending"],
        under("pending", arrays),
        about["waiting"],
        about["done"],
        agent.max_pending,
        agent._knowledge.features.width,
    )
    agent._trials = trials.from_json(about.get("trials", []))
    read_text(about["identity"])
    if type(about["logged"]) is not bool:
        raise DataError("it does not say whether it was logged")
    if arrays:
        raise DataError(f"an array {shown(next(iter(arrays)))}, which no agent has")


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    """Whatever goes wrong while an agent is made of a file's content is the file's fault."""
    try:
        yield
    except InputError as error:
        raise DataError(f"{where}: {error}") from None
    except (MeleeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise _unfit(where, error) from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise _unfit(where, error) from None


def _tell(where: str, about: dict[str, Any], identity: str, log: Any) -> None:
    """Warn of what is not as it was when an agent was saved."""
    if identity != about["identity"]:
        warn_caller(
            f"{where}: its explorer was of another version when it was saved. What it has learned "
            "goes on as it was; models that start later are of this version",
        )
    if about["logged"] and log is None:
        warn_caller(
            f"{where}: the agent kept a log when it was saved. A file does not say where to write: "
            "pass log=... to go on with it",
        )


def _unfit(where: str, error: BaseException) -> DataError:
    return DataError(
        f"{where}: its content does not fit together ({error or type(error).__name__}); it was "
        "not written by an agent: copy the file again"
    )
