"""Programs: kernels to be called again and again, interpreted until their machine code is there."""

import atexit
import contextlib
import functools
import gc
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from melee.compiled import files
from melee.compiled.kernels import KERNELS
from melee.compiled.keys import key_of, kinds_of, name_of
from melee.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("melee")


class Program:
    """A kernel for arguments of certain kinds: interpreted until its machine code is there.

    Attributes
    ----------
    run
        What to call, at any time; ask for it anew each time. Arguments of other kinds must never
        be passed to it.
    ready
        Whether that is machine code.
    compiled
        Whether it was compiled here; machine code may have been loaded instead.
    path
        The file in which it is kept, if it is.
    """

    __slots__ = ("compiled", "function", "kinds", "path", "ready", "run")

    def __init__(self, function: Callable[..., Any], kinds: tuple[Any, ...]) -> None:
        self.function, self.kinds = function, kinds
        self.ready = self.compiled = False
        self.path: Path | None = None
        self.run: Callable[..., Any] = self._interpret

    def _interpret(self, *args: Any) -> Any:
        # As machine code: words overflow, 1/0 is infinite.
        with compiling_makes_way(), np.errstate(all="ignore"):
            return self.function(*args)

    def wait(self) -> None:
        """Compile it now, or wait for whoever does, unless it is to be interpreted for ever."""
        global waited
        if not self.ready and mode() != "never":
            began = time.perf_counter()
            with _COMPILING:
                _make_ready(self)
            waited += time.perf_counter() - began

    @property
    def name(self) -> str:
        """What it is called in messages and files."""
        return name_of(self.function)


def program(function: Callable[..., Any], *examples: Any) -> Program:
    """The program of a kernel for arguments like these, which begins to be compiled if it must.

    `MELEE_COMPILE` says when: in the `background` (the default), `now`, or `never`.
    """
    found = _program(function, kinds_of(*examples))
    if not found.ready:
        if mode() == "now":
            found.wait()
        elif mode() == "background":
            _enqueue(found)
    return found


def machine_code(function: F, *examples: Any) -> F:
    """A kernel's machine code for arguments like these, compiled first if it must be."""
    found = _program(function, kinds_of(*examples))
    found.wait()
    return cast(F, found.run)


def entry(function: F) -> F:
    """Declare a kernel that Python calls and other kernels do not: it runs as machine code."""
    KERNELS[function] = function

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return machine_code(function, *args)(*args)

    return cast(F, called)


def mode() -> str:
    """When kernels are compiled: `background`, `now` or `never`."""
    given = os.environ.get("MELEE_COMPILE", "background")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "never"
    if given not in ("background", "now", "never"):
        raise InputError(
            f"MELEE_COMPILE is '{given}'; expected background, now or never, or leave it out"
        )
    return given


waited = 0.0
"""Seconds that callers have waited for machine code, all together."""
_PROGRAMS: dict[tuple[Any, tuple[Any, ...]], Program] = {}
_QUEUE: deque[Program] = deque()
_QUEUED = threading.Lock()  # of the queue, and of who works on it
_COMPILING = threading.RLock()  # held while a program is made ready
_INTERPRETING: set[int] = set()  # threads for which compiling makes way
_worker: threading.Thread | None = None
_stopping = False


def _program(function: Callable[..., Any], kinds: tuple[Any, ...]) -> Program:
    return _PROGRAMS.setdefault((function, kinds), Program(function, kinds))


def _enqueue(wanted: Program) -> None:
    global _worker
    with _QUEUED:
        if wanted not in _QUEUE:
            _QUEUE.append(wanted)
        if _worker is None and not _stopping:
            _worker = threading.Thread(target=_work, name="melee compiles", daemon=True)
            _worker.start()


def _work() -> None:
    """Make queued programs ready, one after the other, until none is left."""
    global _worker
    while True:
        with _QUEUED:
            if not _QUEUE or _stopping:
                _worker = None
                return
            wanted = _QUEUE[0]
        try:
            with _COMPILING, _without_collecting(), _looking_up_at_imports():
                _make_ready(wanted)
        except StoppedError:
            pass
        except Exception:
            _log.exception("%s cannot be compiled: it stays interpreted, and slow", wanted.name)
        with _QUEUED:
            if _QUEUE and _QUEUE[0] is wanted:
                _QUEUE.popleft()


@contextlib.contextmanager
def compiling_makes_way() -> Iterator[None]:
    """What is compiled in the background pauses, for a moment, while someone waits for this."""
    me = threading.get_ident()
    is_first = me not in _INTERPRETING
    _INTERPRETING.add(me)
    try:
        yield
    finally:
        if is_first:
            _INTERPRETING.discard(me)


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """A compiler leaves little garbage in cycles, and collecting it stops all threads for long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _LookUp:
    """Finds no module, but has the worker look up before each one that it imports."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if threading.current_thread() is _worker:
            check_stop()


@contextlib.contextmanager
def _looking_up_at_imports() -> Iterator[None]:
    """Numba is hundreds of modules, and importing them takes the better part of a second."""
    finder: Any = _LookUp()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class StoppedError(Exception):
    """The process ends while something is being compiled."""


def check_stop() -> None:
    """Called every few milliseconds while compiling: makes way for those who interpret."""
    patience = time.monotonic() + 0.1
    while _INTERPRETING and not _stopping and time.monotonic() < patience:
        time.sleep(0.001)
    if _stopping:
        raise StoppedError


def _make_ready(wanted: Program) -> None:
    """Load a program's machine code, or compile it and keep it."""
    if wanted.ready:
        return
    from melee.compiled import codegen

    kept = files.Kept(wanted.name, key_of(wanted.function, wanted.kinds, codegen.target()))
    run = _loaded(wanted, kept)
    if run is None:
        with kept.alone(check_stop):
            # Whoever held the lock before may have compiled it.
            run = _loaded(wanted, kept)
            if run is None:
                run, content = codegen.compile_kernel(wanted.function, wanted.kinds, check_stop)
                wanted.compiled = True
                if not kept.write(content):
                    kept.path = None
    wanted.path = kept.path
    wanted.run = run
    wanted.ready = True


def _loaded(wanted: Program, kept: files.Kept) -> Callable[..., Any] | None:
    from melee.compiled import codegen

    content = kept.read()
    if content is None:
        return None
    try:
        run: Callable[..., Any] = codegen.load_kernel(content)
        return run
    except Exception as error:  # it is whole, and yet not what this process can use
        _log.warning("%s: machine code is of no use (%s): compiling it again", wanted.name, error)
        return None


# -- forks and the end -------------------------------------------------------------------------


def _after_fork_in_child() -> None:
    global _worker, _QUEUED
    _QUEUED = threading.Lock()
    _worker = None
    _INTERPRETING.clear()  # those threads are the parent's
    _COMPILING.release()
    waiting = list(_QUEUE)
    if waiting:
        _enqueue(waiting[0])


def _stop() -> None:
    """Let what is being compiled come to a place where it can be left."""
    global _stopping
    _stopping = True
    worker = _worker
    if worker is not None:
        worker.join()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    # A fork waits for the program that is being compiled: half a compiler is of no use to a child.
    os.register_at_fork(
        before=_COMPILING.acquire,
        after_in_parent=_COMPILING.release,
        after_in_child=_after_fork_in_child,
    )
