"""Vowpal Wabbit's side: its own C++ driver over a file, and its Python calls row by row.

Three things that are easy to get wrong, found by experiment with 9.11.9:

- Features need names that are not numbers. With `0:`, `1:`, … `--cbify` earned 0.56 on a linear
  task of two actions, with `f0:`, `f1:`, … 0.81; we suppose that the small hashes collide where
  it gives every action weights of its own.
- `sum_loss` of `--cbify` is the number of rows whose chosen action (the one that was drawn, not
  the greedy one) differs from the label; it agrees with a count over `-p`'s file.
- An example that was parsed without a label is marked as a test and `learn` skips it silently,
  even after `set_label_string`; hence `set_test_only(False)` below.
"""

import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from vowpalwabbit import Workspace

from benchmarks.peers.ours import Timing
from melee.preparation import Prepared


def lines(prepared: Prepared) -> list[str]:
    """The rounds in VW's text format, unlabelled: scaled as ours are, in the same order.

    VW adds an intercept itself and computes in float32, for which nine digits are exact.
    """
    inputs = prepared.inputs(prepared.order)[:, :-1]
    return ["| " + " ".join(f"f{i}:{v:.9g}" for i, v in enumerate(x)) for x in inputs.tolist()]


def labels(prepared: Prepared) -> list[int]:
    """The rewarded action of every round, from 0."""
    best: list[int] = prepared.task.rewards[prepared.order].argmax(axis=1).tolist()
    return best


def write(prepared: Prepared, path: Path) -> None:
    """The rounds as VW's multiclass file, which `--cbify` turns into a bandit."""
    rows = zip(labels(prepared), lines(prepared), strict=True)
    path.write_text("".join(f"{label + 1} {line}\n" for label, line in rows))


def drive(options: str, path: Path, n_rounds: int) -> Timing:
    """A pass of the driver, which runs while the workspace is constructed."""
    began = time.perf_counter()
    workspace = Workspace(f"{options} --quiet -d {path}")
    seconds = time.perf_counter() - began
    played, loss = workspace.get_weighted_examples(), workspace.get_sum_loss()
    workspace.finish()
    if played != n_rounds:
        raise RuntimeError(f"VW played {played:g} of {n_rounds} rows of {path}")
    return Timing(seconds, 1.0 - loss / n_rounds)


def reductions(options: str, path: Path) -> str:
    """What VW says it has put together for these options."""
    workspace = Workspace(f"{options} -d {path}", enable_logging=True)
    workspace.finish()
    log = "\n".join(workspace.get_log()).splitlines()
    return next(line for line in log if line.startswith("Enabled")).partition(": ")[2]


def parser_alone(path: Path) -> float:
    """Seconds of a pass that reads the file and learns nothing."""
    began = time.perf_counter()
    workspace = Workspace(f"--noop --quiet -d {path}")
    seconds = time.perf_counter() - began
    workspace.finish()
    return seconds


def learner_alone(options: str, rows: Sequence[str]) -> float:
    """Seconds of learning from labelled rows that were parsed beforehand, called from Python."""
    workspace = Workspace(f"{options} --quiet")
    examples = [workspace.parse(row) for row in rows]
    began = time.perf_counter()
    for example in examples:
        workspace.learn(example)
    seconds = time.perf_counter() - began
    for example in examples:
        workspace.finish_example(example)
    workspace.finish()
    return seconds


def drawn(pmf: Sequence[float], u: float) -> int:
    """The action at which the cumulative sum passes u."""
    for action, probability in enumerate(pmf):
        u -= probability
        if u < 0.0:
            return action
    return len(pmf) - 1


def one_at_a_time(options: str, rows: Iterable[str], best: Sequence[int]) -> Timing:
    """`predict` and `learn` on text lines without label: ready ones, or made on the way."""
    workspace = Workspace(f"{options} --quiet")
    uniform = random.Random(0).random
    loss = 0
    began = time.perf_counter()
    for row, label in zip(rows, best, strict=True):
        pmf = workspace.predict(row)
        action = drawn(pmf, uniform())
        cost = 0 if action == label else 1
        workspace.learn(f"{action + 1}:{cost}:{pmf[action]} {row}")
        loss += cost
    seconds = time.perf_counter() - began
    workspace.finish()
    return Timing(seconds, 1.0 - loss / len(best))


def one_at_a_time_parsed_once(options: str, rows: Sequence[str], best: Sequence[int]) -> Timing:
    """The same decisions, each row parsed once and its example labelled afterwards."""
    workspace = Workspace(f"{options} --quiet")
    uniform = random.Random(0).random
    loss = 0
    began = time.perf_counter()
    for row, label in zip(rows, best, strict=True):
        example = workspace.parse(row)
        pmf = workspace.predict(example)
        action = drawn(pmf, uniform())
        cost = 0 if action == label else 1
        example.set_label_string(f"{action + 1}:{cost}:{pmf[action]}")
        example.set_test_only(False)
        workspace.learn(example)
        workspace.finish_example(example)
        loss += cost
    seconds = time.perf_counter() - began
    workspace.finish()
    return Timing(seconds, 1.0 - loss / len(rows))


def line_of(context: dict[str, float]) -> str:
    """The text line of a context that a caller has as a dict."""
    return "| " + " ".join([f"{name}:{value}" for name, value in context.items()])
