"""An agent as one file: what JSON can hold, then arrays, then a checksum. No code, no pickle.

    8 bytes   the mark of the format
    4         its version, a little-endian number as the next two
    8, 8      the lengths of the two parts that follow
              JSON (UTF-8): everything that is not an array, and each array's type and shape
              the arrays' bytes, one after the other
    32        SHA-256 of all of the above

The mark, the place of the version and the checksum stay as they are in all versions, so that a
reader can tell a damaged file from a newer one.
"""

import hashlib
import json
import math
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from melee.errors import DataError
from melee.version import __version__

MARK = b"\x89MELEE\r\n"
FORMAT_VERSION = 1
_HEAD = struct.Struct("<8sIQQ")
_DIGEST = 32
_TYPES = {"float64": np.float64, "int64": np.int64, "uint8": np.uint8}


def pack(about: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> bytes:
    """The bytes of a file."""
    kinds = [[array.dtype.name, list(array.shape)] for array in arrays]
    written = {"melee_version": __version__, **about, "arrays": kinds}
    text = json.dumps(written, allow_nan=False, ensure_ascii=True).encode("ascii")
    blocks = [np.ascontiguousarray(array).tobytes() for array in arrays]
    head = _HEAD.pack(MARK, FORMAT_VERSION, len(text), sum(len(block) for block in blocks))
    content = b"".join([head, text, *blocks])
    return content + hashlib.sha256(content).digest()


def unpack(content: bytes, where: str) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """What was packed; a DataError for anything that was not.

    Takes no more memory than a few times the length of the content.
    """
    if content[: len(MARK)] != MARK:
        raise DataError(f"{where}: not the file of an agent; check the path")
    if len(content) < _HEAD.size + _DIGEST:
        raise DataError(f"{where}: {len(content)} bytes are left of it; copy the file again")
    _, version, n_text, n_arrays = _HEAD.unpack_from(content)
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
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
        about = json.loads(body[_HEAD.size : _HEAD.size + n_text])
        if not isinstance(about, dict):
            raise ValueError("no object")
        arrays = _arrays(about.pop("arrays"), memoryview(body)[_HEAD.size + n_text :])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{where}: its content cannot be read ({error}); copy it again") from None
    return about, arrays


def _arrays(kinds: Any, block: memoryview) -> list[npt.NDArray[Any]]:
    arrays = []
    start = 0
    for name, shape in kinds:
        if name not in _TYPES or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("an array of no known type")
        dtype = np.dtype(_TYPES[name])
        size = math.prod(shape) * dtype.itemsize
        if size > len(block) - start:
            raise ValueError("an array that is longer than the file")
        arrays.append(np.frombuffer(block[start : start + size], dtype).reshape(shape))
        start += size
    if start != len(block):
        raise ValueError("bytes that belong to no array")
    return arrays
