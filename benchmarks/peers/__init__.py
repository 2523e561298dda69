"""MELEE beside Vowpal Wabbit, on the same rows: `python -m benchmarks.peers`.

One thread: what NumPy and Numba start is decided when they are imported, so it is set here,
before any of them.
"""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
