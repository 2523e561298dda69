"""How kernels are compiled, and how one name serves many kinds of state.

A kernel is a plain function over arrays. `kernel` compiles it, once, and keeps the machine
code on disk. A `generic` function is a name with one implementation per state type;
`implements` registers one, and Numba picks it by the type of the first argument when a caller
is compiled. So there is one loop for all algorithms, with no chain of `if algorithm == ...`
and no call through a pointer.

State types are `NamedTuple`s of arrays and numbers: the arrays are changed in place, the
numbers are settings.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Any = {
    "error_model": "numpy",  # 1/0 is infinite, as in NumPy
    "forceinline": True,  # a call would copy the state and count references to its arrays
}

_IMPLEMENTATIONS: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


def kernel(function: F) -> F:
    """Compile a function over arrays; the machine code is kept on disk.

    No `fastmath`: the order of every sum is the order that is written, so a row played alone
    and the same row inside a whole pass give the same bits.
    """
    return cast(F, numba.njit(cache=True, nogil=True, **_OPTIONS)(function))


def generic(function: F) -> F:
    """Declare a function whose implementation depends on the type of its first argument.

    Its own body serves the types for which nothing is registered. Called from Python it
    compiles what it finds, and runs that.
    """
    implementations: dict[type, Callable[..., Any]] = {}
    compiled: dict[type, Callable[..., Any]] = {}

    @functools.wraps(function)
    def declared(*args: Any) -> Any:
        kind = type(args[0])
        if kind not in compiled:
            compiled[kind] = kernel(implementations.get(kind, function))
        return compiled[kind](*args)

    def resolve(state: Any, *_: Any) -> Callable[..., Any]:
        return implementations.get(getattr(state, "instance_class", object), function)

    overload(declared, strict=False, jit_options=_OPTIONS)(resolve)
    _IMPLEMENTATIONS[declared] = implementations
    return cast(F, declared)


def resolved(function: F, *examples: Any) -> F:
    """A kernel's machine code for arguments of these types, for callers that never change them.

    Calling a kernel finds out the types of its arguments each time, which takes 3 microseconds
    for nested states. This does it once; arguments of other types must never be passed to it.
    """
    typeof: Callable[[Any], Any] = numba.typeof
    return cast(F, cast(Any, function).compile(tuple(typeof(one) for one in examples)))


def implements(declared: Callable[..., Any], *state_types: type) -> Callable[[F], F]:
    """Register a function as what `declared` does for these state types."""

    def register(function: F) -> F:
        for state_type in state_types:
            _IMPLEMENTATIONS[declared][state_type] = function
        return function

    return register


def _prefetch_row(_: Any, matrix: Any, row: Any) -> Any:
    """Ask the processor to fetch matrix[row] into its caches; no value is read or changed.

    It is one instruction per line of 64 bytes, and does not wait for the memory to answer.
    """
    tools: Any = cgutils

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = tools.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, word, word, word]),
            "llvm.prefetch.p0",
        )
        strides = tools.unpack_tuple(builder, array.strides)
        shape = tools.unpack_tuple(builder, array.shape)
        first = builder.gep(builder.bitcast(array.data, byte), [builder.mul(args[1], strides[0])])
        length = builder.mul(shape[1], strides[1])
        size = length.type
        with tools.for_range_slice(builder, size(0), length, size(64), size) as (at, _count):
            # For reading, to be kept in all caches, of data: arguments 0, 3 and 1.
            builder.call(prefetch, [builder.gep(first, [at]), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(matrix, types.intp), build


prefetch_row: Callable[[Any, int], None] = cast(Any, intrinsic)(_prefetch_row)
