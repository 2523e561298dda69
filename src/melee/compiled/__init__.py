"""How kernels become machine code: what is compiled, when, and where it is kept.

A kernel is a plain function over arrays. Called from Python it is interpreted. `program` gives it
as something to call again and again: interpreted until its machine code is there, which is
compiled or loaded in the background. Both give the same bits, so nobody has to wait for a compiler.
`machine_code` waits.

A `generic` function is a name with one implementation per state type; `implements` registers
one. The interpreter picks it by the type of the first argument, Numba when a caller is compiled.
So there is one loop for all algorithms, with no chain of `if algorithm == ...`.

State types are `NamedTuple`s of arrays and numbers: the arrays are changed in place, the numbers
are settings. Kernels allocate nothing: what they need for a while is in the state, or is passed.

    kernels.py    what is declared
    programs.py   when it is compiled
    keys.py       what machine code depends on
    files.py      where it is kept
    codegen.py    how Numba makes it; imported only then
"""

from melee.compiled.kernels import (
    generic,
    implements,
    interpreted_as,
    is_implemented,
    kernel,
    prefetch_row,
)
from melee.compiled.programs import Program, compiling_makes_way, entry, machine_code, program

__all__ = [
    "Program",
    "compiling_makes_way",
    "entry",
    "generic",
    "implements",
    "interpreted_as",
    "is_implemented",
    "kernel",
    "machine_code",
    "prefetch_row",
    "program",
]
