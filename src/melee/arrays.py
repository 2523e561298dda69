"""Names for the three kinds of array that kernels work on, and for what a state says of its own."""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class Within(NamedTuple):
    """In a state: the numbers that an array can hold, whatever is learned."""

    least: float | tuple[float, ...] = -1e150
    most: float | tuple[float, ...] = (
        1e150  # contexts are within 1e100, and squares have to stay finite
    )


SCRATCH = "scratch"
Scratch = Annotated[Floats, SCRATCH]
"""In a state: room for one call, whose content means nothing to the next."""
Amounts = Annotated[Floats, Within(0.0)]
"""Counts and sums of squares: never negative."""
Positive = Annotated[Floats, Within(1e-300)]
"""What is divided by."""
Shares = Annotated[Floats, Within(0.0, 1.0)]
"""Probabilities."""
