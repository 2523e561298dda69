"""The two forms of a kernel: interpreted, as Python calls it, and compiled."""

from melee.compiled import machine_code


def compiled(function):
    """The kernel as machine code, for arguments of any kind."""
    return lambda *args: machine_code(function, *args)(*args)
