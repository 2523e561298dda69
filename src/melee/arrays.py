"""Names for the three kinds of array that kernels work on."""

from typing import Annotated

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

Scratch = Annotated[Floats, "scratch"]
"""In a state: room for one call, whose content means nothing to the next."""
