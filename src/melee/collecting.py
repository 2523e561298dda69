"""Looking for garbage, which is left for later while much is made that stays."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """A block that makes much which stays, and hardly any garbage in cycles.

    Python looks through all that there is again and again while it grows: a third of the time
    that a large file takes to read, and other threads stand still meanwhile.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def settle() -> None:
    """Have all that there is now stay, and never be looked through again."""
    gc.freeze()
