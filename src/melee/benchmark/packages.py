"""The code of other packages that decides a result: of an explorer, and of its learner."""

import hashlib
import sys
from pathlib import Path

from melee.compiled.keys import tree_hash
from melee.errors import InputError
from melee.explorers import Explorer

_OURS = ("melee", "builtins")


def code_of_others(explorer: Explorer) -> list[str]:
    """Names and hashes of the packages that are not ours, by the classes that it is made of."""
    kinds = [type(explorer), *([type(explorer.model())] if hasattr(explorer, "model") else [])]
    modules = {base.__module__ for kind in kinds for base in kind.__mro__}
    foreign = {_package(name) for name in modules if name.partition(".")[0] not in _OURS}
    return [f"{package}={_hash(explorer.name, package)}" for package in sorted(foreign)]


def _package(module: str) -> str:
    """The outermost package that a module is of; a namespace is none."""
    parts = module.split(".")
    names = (".".join(parts[: i + 1]) for i in range(len(parts)))
    return next((n for n in names if getattr(sys.modules.get(n), "__file__", None)), module)


def _hash(explorer: str, package: str) -> str:
    """A hash of what a package does, by all of its files of Python."""
    source = getattr(sys.modules.get(package), "__file__", None)
    try:
        if source is None:
            raise OSError("it is in no file")
        file = Path(source)
        home = file.parent if file.name == "__init__.py" else file
        files = sorted(home.rglob("*.py")) if home.is_dir() else [home]
        lines = [f"{file.relative_to(home).as_posix()} {tree_hash(file)}" for file in files]
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"explorer {explorer}: the source of {package} cannot be read ({error}), so its "
            "results could not be told from those of other code; put it into a file"
        ) from None
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
