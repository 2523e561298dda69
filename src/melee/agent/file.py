"""An agent as one file: what JSON can hold, then arrays, then a checksum. No code, no pickle.

    8 bytes   the mark of the format
    4         its version, a little-endian number as the next two
    8, 8      the lengths of the two parts that follow
              JSON (UTF-8): everything that is not an array, and each array's name, type and shape
              the arrays' bytes, one after the other
    32        SHA-256 of all of the above

The mark, the place of the version and the checksum stay as they are in all versions, so that a
reader can tell a damaged file from a newer one. Arrays have names, so that a version that knows of
one more can read the files of one that did not.
"""

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from melee.errors import DataError
from melee.version import __version__

MARK = b"\x89MELEE\r\n"
FORMAT_VERSION = 3
MAX_ARRAYS = 1000
"""More than any agent has: an empty array costs a file nothing, and a reader half a kilobyte."""
_HEAD = struct.Struct("<8sIQQ")
_DIGEST = 32
_TYPES = {"float64": np.float64, "int64": np.int64, "uint8": np.uint8}
_ROWS = 200
"""Rows that are encoded in one go: other threads stand still for so long."""
_JSON = json.JSONEncoder(allow_nan=False)

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
"""Arrays by name; a dot stands between the name of a whole and that of its part."""


def under(name: str, arrays: Arrays) -> Arrays:
    """The parts of a whole, taken out of all arrays."""
    parts = [path for path in arrays if path.startswith(f"{name}.")]
    return {path.removeprefix(f"{name}."): arrays.pop(path) for path in parts}


def pack(about: dict[str, Any], arrays: Arrays, **rows: Iterable[Any]) -> bytes:
    """The bytes of a file.

    Parameters
    ----------
    about, arrays
        What JSON can hold, and arrays by name.
    rows
        Long lists that belong to `about`; they may be generators.
    """
    kinds = {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}
    written = {"melee_version": __version__, **about, "arrays": kinds}
    text: list[Any] = list(_encoded(written, rows))
    blocks: list[Any] = [
        np.ascontiguousarray(array).data.cast("B") for array in arrays.values() if array.size
    ]
    lengths = sum(map(len, text)), sum(map(len, blocks))
    pieces = [_HEAD.pack(MARK, FORMAT_VERSION, *lengths), *text, *blocks]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return b"".join([*pieces, digest.digest()])


def _encoded(about: dict[str, Any], rows: dict[str, Iterable[Any]]) -> Iterator[bytes]:
    """A JSON object, piece by piece."""
    yield _JSON.encode(about)[:-1].encode("ascii")
    for name, content in rows.items():
        yield f', "{name}": ['.encode("ascii")
        source = iter(content)
        between = ""
        while some := list(islice(source, _ROWS)):
            yield (between + _JSON.encode(some)[1:-1]).encode("ascii")
            between = ", "
        yield b"]"
    yield b"}"


def unpack(content: bytes, where: str) -> tuple[dict[str, Any], Arrays]:
    """What was packed; a DataError for anything that was not.

    Takes no more memory than a few times the length of the content.
    """
    if content[: len(MARK)] != MARK:
        raise DataError(f"{where}: not the file of an agent; check the path")
    if len(content) < _HEAD.size + _DIGEST:
        raise DataError(f"{where}: {len(content)} bytes are left of it; copy the file again")
    _, version, n_text, n_arrays = _HEAD.unpack_from(content)
    body, digest = memoryview(content)[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise DataError(
            f"{where}: its checksum does not fit; it was cut off, changed or damaged: copy the "
            "file again, or load an older one"
        )
    if version != FORMAT_VERSION:
        raise DataError(
            f"{where}: format version {version}, and this is melee {__version__}, which reads "
            f"version {FORMAT_VERSION}; install the version of melee that wrote it, or a newer one"
        )
    if _HEAD.size + n_text + n_arrays != len(body):
        raise DataError(f"{where}: its parts do not add up; copy the file again")
    try:
        about = json.loads(bytes(body[_HEAD.size : _HEAD.size + n_text]))
        if not isinstance(about, dict):
            raise ValueError("no object")
        arrays = _arrays(about.pop("arrays"), body[_HEAD.size + n_text :])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{where}: its content cannot be read ({error}); copy it again") from None
    return about, arrays


def _arrays(kinds: Any, block: memoryview) -> Arrays:
    arrays: Arrays = {}
    start = 0
    if len(kinds) > MAX_ARRAYS:
        raise ValueError(f"{len(kinds)} arrays")
    for name, (type_name, shape) in kinds.items():
        if type_name not in _TYPES or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("an array of no known type")
        dtype = np.dtype(_TYPES[type_name])
        size = math.prod(shape) * dtype.itemsize
        if size > len(block) - start:
            raise ValueError("an array that is longer than the file")
        arrays[name] = np.frombuffer(block[start : start + size], dtype).reshape(shape)
        start += size
    if start != len(block):
        raise ValueError("bytes that belong to no array")
    return arrays
