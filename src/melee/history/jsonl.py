r"""Histories as JSON lines: one object a line, in plain ASCII.

    {"id": "e1", "time": 1767225600.0, "context": {"age": 31.0, "device": "phone"},
     "action": "sports", "probability": 0.8, "reward": 1.0,
     "pmf": [["sports", 0.8], ["news", 0.2]], "policy": "linucb", "version": "3"}

(on one line). The context is an object, or an array of numbers; labels are written as in
`melee.labels`. What is not known is left out, and so is `stands_for` where it is 1. Other fields
are ignored. In logs of others the pmf may be an object of labels and probabilities; of many actions
it is shorter (see `pmf`). Features of actions, where they have any, are written once (see
`features`).

A line is appended in one write, so several processes may share a log on a local disk; network
file systems do not promise that.
"""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from melee.errors import InputError, file_error, shown
from melee.history.features import Sets, read_features
from melee.history.history import TOO_DEEP, History, gather
from melee.history.pmf import Lists, Places, read_pmf
from melee.history.rounds import Round, check_round
from melee.labels import Label, label_from_json, label_to_json
from melee.limits import DIGITS, LINE, check_depth, check_unpacked

_HALF_A_WORD = re.compile(r"[\w.+-]*")
OPTIONAL = ("id", "time", "policy", "version")


def to_json(round_: Round, lists: Lists | None = None) -> dict[str, Any]:
    """A round as `json.dumps` can write it, and with `lists` as a line has it.

    >>> to_json(Round({"age": 31.0}, ("banner", 3), reward=1.0, probability=0.5, id="e1"))
    {'id': 'e1', 'context': {'age': 31.0}, 'action': {'tuple': ['banner', 3]},
     'probability': 0.5, 'reward': 1.0}
    """
    context = round_.context
    line: dict[str, Any] = {
        "id": round_.id,
        "time": round_.time,
        "context": context.tolist() if isinstance(context, np.ndarray) else context,
        "action": label_to_json(round_.action),
        "probability": round_.probability,
        "reward": round_.reward,
        "pmf": round_.pmf,
        "policy": round_.policy,
        "version": round_.version,
        "stands_for": None if round_.stands_for == 1.0 else round_.stands_for,
    }
    if round_.pmf is not None and lists is not None:
        line["pmf"] = lists.to_json(round_.pmf)
    elif round_.pmf is not None:
        line["pmf"] = [[label_to_json(label), p] for label, p in round_.pmf.items()]
    if round_.features is not None:
        line["features"] = (Sets() if lists is None else lists.features).to_json(round_.features)
    return {key: value for key, value in line.items() if value is not None or key == "action"}


def from_json(
    line: Any,
    lists: dict[str, Places] | None = None,
    sets: dict[str, dict[Label, Any]] | None = None,
) -> dict[str, Any]:
    """The arguments of `read_round`, from a line's object.

    `lists` are those that earlier lines have given, and `sets` those of features; this one's join
    them.
    """
    if not isinstance(line, dict):
        raise InputError(f"it holds {line!r:.60}; expected an object, one round")
    pmf = line.get("pmf")
    pmf = None if pmf is None else read_pmf(pmf, {} if lists is None else lists)
    features = line.get("features")
    features = None if features is None else read_features(features, {} if sets is None else sets)
    for name in ("context", "action"):
        if name not in line:
            raise InputError(f"the {name} is missing; expected a round to have one")
    return {
        "context": line["context"],
        "action": label_from_json(line["action"]),
        "reward": line.get("reward"),
        "probability": line.get("probability"),
        "pmf": pmf,
        "features": features,
        "stands_for": 1.0 if line.get("stands_for") is None else line["stands_for"],
        **{name: line.get(name) for name in OPTIONAL},
    }


def line_of(round_: Round, lists: Lists | None = None) -> bytes:
    """A round as a line; reading it gives exactly the round again.

    `lists` are those that earlier lines of the file have given. Without them a line can be read
    alone.
    """
    check_round(round_)
    return bounded(dumps(to_json(round_, Lists() if lists is None else lists)).encode() + b"\n")


def dumps(value: Any, *, ascii: bool = True) -> str:  # noqa: A002
    """A value as JSON, from which `parse` gives exactly the value again."""
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=ascii)
    except ValueError as error:  # a label of thousands of digits
        raise InputError(f"the round cannot be written ({error}); use shorter labels") from None


def bounded(line: bytes) -> bytes:
    """The line, if it is one that readers take."""
    if len(line) > LINE.most:
        found = f"the round takes {len(line):,} bytes as a line"
        raise InputError(LINE.sentence(found) + ", or give features instead of long texts")
    return line


def read(path: Path, *, strict: bool = False, usable: bool = True) -> History:
    """The rounds of a file of JSON lines."""
    lists: dict[str, Places] = {}
    sets: dict[str, dict[Label, Any]] = {}

    def fields(raw: bytes) -> dict[str, Any]:
        return from_json(load(raw), lists, sets)

    return gather(path, "line", lines(path), fields, strict=strict, usable=usable)


def content(history: History, *, compress: bool = False) -> bytes:
    """A history as a file of JSON lines."""
    lists = Lists()
    return compressed(b"".join(line_of(round_, lists) for round_ in history), compress)


def compressed(content: bytes, compress: bool) -> bytes:
    """The content as gzip if asked for, and always the same for the same content."""
    return gzip.compress(content, mtime=0) if compress else content


def lines(path: Path) -> Iterator[tuple[int, bytes | InputError]]:
    """The lines that are not blank, numbered from 1; an error where one cannot be had."""
    number, most = 0, LINE.most
    check_unpacked(path)
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            while raw := file.readline(most + 1):
                number += 1
                if len(raw) > most:
                    rest = raw
                    while rest and not rest.endswith(b"\n"):
                        rest = file.readline(most)
                    yield number, InputError(LINE.sentence(f"it has more than {most:,} bytes"))
                    continue
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                if raw.strip():
                    yield number, raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        yield (
            number + 1,
            InputError(
                f"the gzip data is cut off or damaged ({error}); copy the file again; the "
                "lines before can be read"
            ),
        )
    except OSError as error:
        raise file_error(path, "read", error) from None


def load(raw: bytes) -> Any:
    """What a line holds."""
    try:
        return parse(raw.decode())
    except UnicodeDecodeError as error:
        sentence = f"byte {error.start} is not UTF-8 text; write the log in UTF-8"
    except InputError as error:
        sentence = str(error)
    is_last = not raw.endswith(b"\n")
    if is_last or _begins_json(raw):
        which = "last line is torn: it has no end, and" if is_last else "line is torn: it"
        sentence = f"the {which} is not JSON; its writer was stopped: delete the line"
    raise InputError(sentence)


def _begins_json(raw: bytes) -> bool:
    """Whether a line is JSON as far as it goes: another writer ended it, and went on below."""
    text = raw.decode(errors="replace").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :]
        return (
            error.msg.startswith("Unterminated string") or _HALF_A_WORD.fullmatch(rest) is not None
        )
    except (ValueError, RecursionError):
        pass
    return False


def parse(text: str, expected: str = "one JSON object a line") -> Any:
    """JSON as the standard has it: no NaN, no name twice; and within the limits."""
    check_depth(text)
    try:
        return _DECODER.decode(text)
    except InputError:
        raise
    except RecursionError:
        raise InputError(TOO_DEEP) from None
    except ValueError as error:
        raise InputError(f"not JSON ({error}); expected {expected}") from None


def read_object(path: Path, expected: str) -> dict[str, Any]:
    """The one object that a file holds."""
    try:
        found = parse(path.read_text("utf-8"), expected)
    except OSError as error:
        raise file_error(path, "read", error) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8 text") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path}: it holds {shown(found)}; expected {expected}")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, n in counts.items() if n > 1)
        raise InputError(f"the name {twice!r:.60} appears twice in an object; keep one of them")
    return read


def _constant(token: str) -> Any:
    raise InputError(f"it holds {token}, which is not JSON; leave out or mend what is no number")


def _whole(digits: str) -> int:
    n_digits = len(digits) - digits.startswith("-")
    if n_digits > 20 and n_digits > DIGITS.most:  # most numbers are not worth the question
        raise InputError(DIGITS.sentence(f"it holds a number of {n_digits:,} digits"))
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_constant=_constant)
