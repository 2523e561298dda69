"""Kernels and generic functions, as they are declared. Called from Python they are interpreted."""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: dict[Any, Callable[..., Any]] = {}
"""Every kernel: what Python calls, and the function that Numba compiles in its place."""
IMPLEMENTATIONS: dict[Any, dict[type, Callable[..., Any]]] = {}
"""Every generic function, with its implementations by state type."""
SOURCES: dict[str, tuple[int, int]] = {}
"""Of every module that holds kernels: time and size of its file when it was imported."""


def _note(function: Callable[..., Any]) -> None:
    """Note what a kernel's file is now: after an edit it says nothing of what was imported."""
    if function.__module__ not in SOURCES:
        with contextlib.suppress(OSError):
            about = Path(function.__code__.co_filename).stat()
            SOURCES[function.__module__] = about.st_mtime_ns, about.st_size


def kernel(function: F) -> F:
    """Declare a function over arrays that other kernels may call.

    No `fastmath`: the order of every sum is the order that is written, so a row played alone
    and the same row inside a whole pass give the same bits, compiled or interpreted.
    """
    _note(function)
    KERNELS[function] = function
    return function


def interpreted_as(quick: Callable[..., Any]) -> Callable[[F], F]:
    """Declare a kernel that Python runs in another form, with whole arrays: same bits, sooner."""

    def declare(function: F) -> F:
        _note(function)
        called = functools.wraps(function)(FunctionType(quick.__code__, quick.__globals__))
        KERNELS[called] = function
        return cast(F, called)

    return declare


def generic(function: F) -> F:
    """Declare a function whose implementation depends on the type of its first argument.

    Or on that of its second, which goes before: what is offered may answer for any state that it
    is offered to. Its own body serves the types for which nothing is registered.
    """
    _note(function)
    implementations: dict[type, Callable[..., Any]] = {}

    @functools.wraps(function)
    def declared(*args: Any) -> Any:
        chosen = implementations.get(type(args[0]), function)
        if len(args) > 1:
            chosen = implementations.get(type(args[1]), chosen)
        return chosen(*args)

    KERNELS[declared] = function
    IMPLEMENTATIONS[declared] = implementations
    return cast(F, declared)


def implements(declared: Callable[..., Any], *state_types: type) -> Callable[[F], F]:
    """Register a function as what `declared` does for these state types."""

    def register(function: F) -> F:
        _note(KERNELS.get(function, function))
        for state_type in state_types:
            IMPLEMENTATIONS[declared][state_type] = function
        return function

    return register


def is_implemented(declared: Callable[..., Any], state_type: type) -> bool:
    """Whether a generic function has an implementation of its own for a state type."""
    return state_type in IMPLEMENTATIONS[declared]


def compiled_form(called: Callable[..., Any], *types: Any) -> Callable[..., Any]:
    """The function that is compiled where `called` is called with arguments of these types."""
    known, chosen = IMPLEMENTATIONS.get(called, {}), called
    for kind in types[:2]:
        chosen = known.get(kind, chosen)
    return KERNELS.get(chosen, chosen)


def prefetch_row(matrix: Any, row: int) -> None:
    """Ask the processor to fetch matrix[row] into its caches; no value is read or changed."""
