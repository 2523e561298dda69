"""Importing this loads the compiled kernels: for a process that others are forked from."""

from melee.benchmark.work import warm_up
from tests.benchmark.made import SPECS

warm_up(SPECS, wide=False)
