"""States as wholes: copying one, and keeping one in a single block of memory.

A state is a `NamedTuple` of arrays, numbers and further states (see `melee.compiled`).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_ALIGNMENT = 64


def arrays_of(state: Any) -> list[npt.NDArray[Any]]:
    """All arrays of a state, depth first."""
    if isinstance(state, np.ndarray):
        return [state]
    if isinstance(state, tuple):
        return [array for part in state for array in arrays_of(part)]
    return []


def in_one_block(state: Any) -> tuple[Any, Bytes]:
    """An equal state whose arrays lie one after the other in a block, and that block.

    Copying the block's bytes saves the state and copying them back restores it, whatever it is
    made of. An array that was part of another one's memory is so in the block too.

    >>> from melee.learners.ridge import Ridge
    >>> ridge, block = in_one_block(Ridge.start(n_rows=2, n_inputs=3, ridge=1.0))
    >>> before = block.copy()
    >>> ridge.weights[0, 0] = 7.0
    >>> block[:] = before
    >>> float(ridge.weights[0, 0])
    0.0
    """
    arrays = arrays_of(state)
    if not all(array.flags.c_contiguous for array in arrays):
        raise ValueError("a state's arrays must be contiguous to lie in one block")
    # By address, the larger first where two begin together: what holds others comes before them.
    holders: dict[int, tuple[int, int]] = {}
    held_from = held_to = -1
    for begin, minus in sorted({(array.ctypes.data, -array.nbytes) for array in arrays}):
        if begin - minus > held_to:
            held_from, held_to = begin, begin - minus
        holders.setdefault(begin, (held_from, held_to - held_from))
    starts: dict[int, int] = {}
    size = 0
    for array in arrays:
        begin, length = holders[array.ctypes.data]
        if begin not in starts:
            starts[begin] = size
            size += -(-length // _ALIGNMENT) * _ALIGNMENT
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % _ALIGNMENT
    block = raw[first : first + size]

    def moved(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            holder, _ = holders[part.ctypes.data]
            start = starts[holder] + part.ctypes.data - holder
            place = block[start : start + part.nbytes].view(part.dtype).reshape(part.shape)
            place[...] = part
            return place
        if isinstance(part, tuple):
            return type(part)(*(moved(inner) for inner in part))
        return part

    return moved(state), block


def copy_state(state: Any) -> Any:
    """A state whose arrays are its own, however deep its NamedTuples go."""
    return in_one_block(state)[0]
