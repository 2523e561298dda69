"""How Numba makes machine code of a kernel. Imported only when something is compiled or loaded.

An entry, which Python calls, is compiled together with all kernels that it reaches. These are
inlined into it, and have neither wrappers nor machine code of their own; the long optimisations
run once, when all of it stands in one place. That, and kernels that allocate nothing, so that no
reference is counted, is why compiling takes seconds and not half a minute.
"""

import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import llvmlite
import numba
import numpy as np
from llvmlite import binding, ir
from numba import cloudpickle, types
from numba.core import cgutils, codegen, compiler, config, event, serialize
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

from melee.compiled.kernels import KERNELS, compiled_form, prefetch_row
from melee.compiled.keys import name_of
from melee.errors import InputError

_INLINED: Any = {
    "nopython": True,
    "error_model": "numpy",  # 1/0 is infinite, as in NumPy
    "forceinline": True,  # a call would copy the whole state
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,  # kernels allocate nothing
}
_ENTRY: Any = {**_INLINED, "no_cpython_wrapper": False, "nogil": True}

_DECLARED: set[Any] = set()


def target() -> str:
    """What machine code depends on besides the code: processor, Python, Numba, LLVM's binding."""
    python = f"{sys.implementation.cache_tag} {platform.machine()} {sys.platform}"
    versions = f"numba {numba.__version__} llvmlite {llvmlite.__version__} numpy {np.__version__}"
    processor = cpu_target.target_context.codegen().magic_tuple()
    settings: Any = config
    asked = [getattr(settings, name, None) for name in ("OPT", "BOUNDSCHECK", "USING_SVML")]
    return f"{python} {versions} {processor} {asked}"


def _declare() -> None:
    """Tell Numba of the kernels that were declared since the last time."""
    for called in [kernel for kernel in KERNELS if kernel not in _DECLARED]:
        overload(called, strict=False, jit_options=_INLINED)(_resolver(called))
        _DECLARED.add(called)


def _resolver(called: Any) -> Callable[..., Any]:
    return lambda *args: compiled_form(called, *map(_state_type, args))


def _state_type(kind: Any) -> type | None:
    return getattr(kind, "instance_class", None)


@global_compiler_lock
def compile_kernel(
    function: Callable[..., Any], kinds: tuple[Any, ...], check_stop: Callable[[], None]
) -> tuple[Callable[..., Any], bytes]:
    """What to call for arguments of these kinds, and the same as bytes to be kept."""
    _declare()
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, _ENTRY)
    typing, context = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    context.refresh()
    library = context.codegen().create_library(function.__qualname__)
    library.enable_object_caching()
    arguments = tuple(_type(kind) for kind in kinds)
    function = compiled_form(function, *map(_state_type, arguments))
    try:
        with (
            event.install_listener("numba:run_pass", _Breathing(check_stop)),
            _parts_unoptimised(context.codegen()),
        ):
            result = compiler.compile_extra(
                typing, context, function, arguments, None, flags, {}, library=library
            )
    except NumbaError as error:
        raise InputError(
            f"{name_of(function)} cannot be compiled; kernels take numbers, arrays and states, "
            f"allocate nothing, and name constants and other kernels only. Numba says: {error}"
        ) from error
    for environment in result._find_referenced_environments():
        context.codegen().set_env(environment.env_name, environment)
    kept = result._replace(type_annotation="")
    return result.entry_point, serialize.dumps((_needed(library), kept._reduce()))


def _needed(library: Any) -> list[str]:
    """The names of what machine code calls and does not hold itself."""
    module = library._final_module
    found = [
        part.name
        for part in (*module.functions, *module.global_variables)
        if part.is_declaration and not part.name.startswith("llvm.")
    ]
    return sorted(found)


@global_compiler_lock
def load_kernel(content: bytes) -> Callable[..., Any]:
    """What to call, from the bytes that were kept. They are code, and must be trusted as such."""
    context = cpu_target.target_context
    needed, parts = cloudpickle.loads(content)
    if not all(map(binding.address_of_symbol, needed)):
        context.refresh()  # all that Numba knows, where half a second is not for nothing
    result = compiler.CompileResult._rebuild(context, *parts)
    return cast(Callable[..., Any], result.entry_point)


def _type(kind: Any) -> Any:
    """Numba's type for a kind of argument."""
    if isinstance(kind, type):
        return {bool: types.boolean, int: types.intp, float: types.float64}[kind]
    if isinstance(kind[0], str):
        dtype, n_dimensions, layout, writeable = kind
        return types.Array(
            numba.from_dtype(np.dtype(dtype)), n_dimensions, layout, readonly=not writeable
        )
    return types.BaseTuple.from_types([_type(part) for part in kind[1:]], kind[0])


class _Breathing(event.Listener):
    """Looks up from the work before each of Numba's passes."""

    def __init__(self, look_up: Callable[[], None]) -> None:
        self.look_up = look_up

    def on_start(self, event: Any) -> None:
        self.look_up()

    def on_end(self, event: Any) -> None:
        pass


class _Part(codegen.JITCodeLibrary):
    """The code of a kernel that is inlined: tidied one function at a time, linked into an entry."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


@contextmanager
def _parts_unoptimised(generator: Any) -> Iterator[None]:
    """Have all libraries made meanwhile be parts, but for those of Numba's own runtime."""
    real_class, real_set_env = generator._library_class, generator.set_env

    def library(owner: Any, name: str) -> Any:
        return (real_class if name in ("nrt", "multi3") else _Part)(owner, name)

    def set_env(name: str, environment: Any) -> None:
        if generator._engine.get_global_value_address(name):  # a part's is set with the entry
            real_set_env(name, environment)

    generator._library_class, generator.set_env = library, set_env
    try:
        yield
    finally:
        del generator._library_class, generator.set_env


def _prefetch(_: Any, matrix: Any, row: Any) -> Any:
    """One instruction per line of 64 bytes, which does not wait for the memory to answer."""
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


_prefetch_intrinsic: Any = cast(Any, intrinsic)(_prefetch)


@cast(Any, overload)(prefetch_row, strict=False, jit_options=_INLINED)
def _prefetch_row(matrix: Any, row: Any) -> Callable[..., Any]:
    def build(matrix: Any, row: int) -> None:
        _prefetch_intrinsic(matrix, row)

    return build
