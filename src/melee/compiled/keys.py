"""What a program's machine code depends on, as one key: change any of it and the key is another.

These are the syntax trees of the modules that hold the kernels it can reach (comments and
docstrings do not count), the constants that these name, the kinds of its arguments, and the
target: processor, Python, Numba and LLVM.
"""

import ast
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from melee.compiled.kernels import KERNELS, SOURCES, compiled_form

Kinds = tuple[Any, ...]
_OWN = [Path(__file__).with_name(name) for name in ("kernels.py", "codegen.py")]


def kinds_of(*examples: Any) -> Kinds:
    """What machine code depends on in arguments: types, and of arrays dimensions and layout.

    >>> kinds_of(1, np.zeros((2, 3)))
    (<class 'int'>, ('<f8', 2, 'C', True))
    """
    return tuple(_kind(example) for example in examples)


def _kind(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return value.dtype.str, value.ndim, layout, flags.writeable
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    if isinstance(value, bool | np.bool_):
        return bool
    return float if isinstance(value, float | np.floating) else int


def name_of(function: Callable[..., Any]) -> str:
    """What a kernel is called in messages and files."""
    return f"{function.__module__}.{function.__qualname__}"


def modules_of(function: Callable[..., Any], kinds: Kinds) -> set[str]:
    """The modules of a kernel and of the states in its arguments."""
    types = {state_type for kind in kinds for state_type in _state_types(kind)}
    return {part.__module__ for part in (function, *types)}


def key_of(function: Callable[..., Any], kinds: Kinds, target: str) -> str | None:
    """A hash of all that decides a program's machine code.

    None where that cannot be told: a source that cannot be read or was edited since it was
    imported, a kernel that was made inside of another function.
    """
    state_types = {state_type for kind in kinds for state_type in _state_types(kind)}
    functions, constants = _reached(function, state_types)
    if any(function.__closure__ for function in functions):
        return None
    modules = {part.__module__ for part in (*functions, *state_types)}
    digest = hashlib.sha256("\0".join([name_of(function), _text(kinds), target]).encode())
    try:
        sources = [_source(name) for name in sorted(modules)]
        for path in (*sources, *_OWN):
            digest.update(tree_hash(path).encode())
    except (OSError, KeyError, AttributeError, SyntaxError, ValueError):
        return None
    digest.update("\n".join(constants).encode())
    return digest.hexdigest()[:32]


def _source(name: str) -> Path:
    """A module's file, if it is still the one that was imported."""
    path = Path(str(sys.modules[name].__file__))
    about = path.stat()
    if SOURCES.get(name, (about.st_mtime_ns, about.st_size)) != (about.st_mtime_ns, about.st_size):
        raise OSError(f"{path} was edited since it was imported")
    return path


def _state_types(kind: Any) -> Iterator[type]:
    if isinstance(kind, tuple):
        if isinstance(kind[0], type) and issubclass(kind[0], tuple):
            yield kind[0]
        for part in kind:
            yield from _state_types(part)


def _text(kind: Any) -> str:
    """Kinds as a text that is the same in every process."""
    if isinstance(kind, tuple):
        return f"({','.join(map(_text, kind))})"
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else str(kind)


def _reached(function: Callable[..., Any], state_types: set[type]) -> tuple[set[Any], list[str]]:
    """The functions that a kernel may call, itself included, and the constants they name."""
    found: set[Any] = set()
    constants: set[str] = set()
    left: list[Any] = [compiled_form(function, kind) for kind in (None, *state_types)]
    while left:
        caller = left.pop()
        if caller in found:
            continue
        found.add(caller)
        constants.add(f"{name_of(caller)}{caller.__defaults__!r}")
        for name in caller.__code__.co_names:
            value = caller.__globals__.get(name)
            if isinstance(value, FunctionType) and value in KERNELS:
                left.extend(compiled_form(value, kind) for kind in (None, *state_types))
            elif isinstance(value, int | float | np.generic | tuple | str):
                constants.add(f"{caller.__module__}.{name}={value!r}")
            elif isinstance(value, np.ndarray):
                constants.add(f"{caller.__module__}.{name}={value.dtype}{value.tolist()!r}")
    return found, sorted(constants)


def tree_hash(path: Path) -> str:
    """A hash of what a file of Python does: of its syntax tree without docstrings."""
    return _tree_hash(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _tree_hash(path: Path, modified: int) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part
                for part in body
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
