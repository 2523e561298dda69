"""How the learner and workers are started, and how they notice that nobody watches them any more.

What they are told comes through their standard input, a line of JSON: keys must not be seen in the
list of processes. It stays open as long as the supervisor lives; at its end they end as well.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from melee.errors import DataError, InputError, MeleeError
from melee.labels import label_from_json, label_to_json
from melee.serve.logs import log_to_stderr

FAILED = 2
Agents = dict[str, dict[str, Any]]


def begin(main: Callable[[dict[str, Any]], None]) -> int:
    """Run what a process is for; its exit code. What it cannot do is told to the supervisor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's
    line = sys.stdin.buffer.readline()
    if not line:
        return FAILED
    given = json.loads(line)
    log_to_stderr(given["log_level"], given["log_format"])
    try:
        main(given)
    except MeleeError as error:
        tell({"error": str(error), "mine": isinstance(error, InputError)})
        return FAILED
    return 0


def tell(message: dict[str, Any]) -> None:
    """Tell the supervisor, if it is still there; where it is not, this process ends soon."""
    with suppress(BrokenPipeError):
        print(json.dumps(message), flush=True)


def heard(line: bytes) -> dict[str, Any]:
    """What the supervisor was told; raises the error that it was told of."""
    if not line:
        raise DataError("the learner has ended before it was ready; see what it said")
    message: dict[str, Any] = json.loads(line)
    if "error" in message:
        raise (InputError if message["mine"] else DataError)(message["error"])
    return message


def agents_to_json(parameters: Agents) -> Agents:
    """Parameters of agents, by name, as another process can be told them."""
    return {name: _with_labels(given, label_to_json) for name, given in parameters.items()}


def read_agents(given: Agents) -> Agents:
    """What another process was told."""
    return {name: _with_labels(made, label_from_json) for name, made in given.items()}


def _with_labels(parameters: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    actions = parameters.get("actions")
    if actions is None:
        return parameters
    return {**parameters, "actions": [change(label) for label in actions]}


def watch_parent(loop: Any, gone: Callable[[], None]) -> None:
    """Call when the supervisor has ended, however it did."""

    def look() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            gone()

    loop.add_reader(0, look)
