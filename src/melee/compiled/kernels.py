"""Kernels and generic functions, as they are declared. Called from Python they are interpreted."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: dict[Any, Callable[..., Any]] = {}
"""Every kernel: what Python calls, and the function that Numba compiles in its place."""
IMPLEMENTATIONS: dict[Any, dict[type, Callable[..., Any]]] = {}
"""Every generic function, with its implementations by state type."""


def kernel(function: F) -> F:
    """Declare a function over arrays that other kernels may call.

    No `fastmath`: the order of every sum is the order that is written, so a row played alone
    and the same row inside a whole pass give the same bits, compiled or interpreted.
    """
    KERNELS[function] = function
    return function


def interpreted_as(quick: Callable[..., Any]) -> Callable[[F], F]:
    """Declare a kernel that Python runs in another form, with whole arrays: same bits, sooner."""

    def declare(function: F) -> F:
        called = functools.wraps(function)(FunctionType(quick.__code__, quick.__globals__))
        KERNELS[called] = function
        return cast(F, called)

    return declare


def generic(function: F) -> F:
    """Declare a function whose implementation depends on the type of its first argument.

    Its own body serves the types for which nothing is registered.
    """
    implementations: dict[type, Callable[..., Any]] = {}

    @functools.wraps(function)
    def declared(*args: Any) -> Any:
        return implementations.get(type(args[0]), function)(*args)

    KERNELS[declared] = function
    IMPLEMENTATIONS[declared] = implementations
    return cast(F, declared)


def implements(declared: Callable[..., Any], *state_types: type) -> Callable[[F], F]:
    """Register a function as what `declared` does for these state types."""

    def register(function: F) -> F:
        for state_type in state_types:
            IMPLEMENTATIONS[declared][state_type] = function
        return function

    return register


def compiled_form(called: Callable[..., Any], first_type: Any) -> Callable[..., Any]:
    """The function that is compiled where `called` is called with a state of this type first."""
    known = IMPLEMENTATIONS.get(called, {})
    chosen = known.get(first_type, called)
    return KERNELS.get(chosen, chosen)


def prefetch_row(matrix: Any, row: int) -> None:
    """Ask the processor to fetch matrix[row] into its caches; no value is read or changed."""
