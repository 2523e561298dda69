"""Packages that not every installation has, and the sentence that asks for them.

Deciding, learning, logging and evaluating need none of them. What does is listed in the extras of
the distribution, by purpose: `tables`, `bench`, `dask` and `vw`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from melee.errors import MissingPackageError

DISTRIBUTION = "melee-bandits"

_PACKAGES = {"sklearn": "scikit-learn", "PIL": "pillow"}
"""Packages whose modules are called otherwise."""


@contextmanager
def needed(purpose: str, extra: str) -> Iterator[None]:
    """A place for imports that `purpose` needs: one that is missing is asked for by its extra.

    >>> with needed("reading minds", "tables"):
    ...     import telepathy
    Traceback (most recent call last):
        ...
    melee.errors.MissingPackageError: reading minds needs telepathy, which is not installed:
    pip install 'melee-bandits[tables]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "a package").partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs {_PACKAGES.get(module, module)}, which is not installed: "
            f"pip install '{DISTRIBUTION}[{extra}]'"
        ) from None
