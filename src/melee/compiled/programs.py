"""Programs: kernels to be called again and again, interpreted until their machine code is there."""

import atexit
import contextlib
import functools
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

from melee.collecting import without_collecting
from melee.compiled import files
from melee.compiled.kernels import KERNELS
from melee.compiled.keys import key_of, kinds_of, modules_of, name_of
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

    __slots__ = ("asked", "compiled", "error", "function", "kinds", "path", "ready", "run")

    def __init__(self, function: Callable[..., Any], kinds: tuple[Any, ...]) -> None:
        self.function, self.kinds = function, kinds
        self.ready = self.compiled = False
        self.asked = False  # whether somebody would have waited for what is kept
        self.path: Path | None = None
        self.error: Exception | None = None  # why it cannot be compiled
        self.run: Callable[..., Any] = self._interpret

    def _interpret(self, *args: Any) -> Any:
        # As machine code: words overflow, 1/0 is infinite.
        with compiling_makes_way(), np.errstate(all="ignore"):
            return self.function(*args)

    def wait(self) -> None:
        """Compile it now, or wait for whoever does, unless it is to be interpreted for ever."""
        if not self.ready and mode() != "never":
            began = time.perf_counter()
            _WAITING.append(self)
            try:
                with _COMPILING, without_collecting():
                    _make_ready(self)
            finally:
                _WAITING.remove(self)
                _MINE.waited = seconds_waited() + time.perf_counter() - began

    def load(self) -> None:
        """Wait for machine code that is kept, for who would interpret for longer than that takes.

        What is not kept is compiled in the background, as ever.
        """
        if not (self.ready or self.asked) and mode() == "background":
            self.asked = True
            path = _kept(self).path
            if path is not None and path.exists():
                self.wait()

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
        elif mode() == "background" and found.error is None:
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


def seconds_waited() -> float:
    """Seconds that this thread has waited for machine code, all together."""
    return float(getattr(_MINE, "waited", 0.0))


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


_MINE = threading.local()  # of each thread: how long it has waited
_PROGRAMS: dict[tuple[Any, tuple[Any, ...]], Program] = {}
_QUEUE: deque[Program] = deque()
_QUEUED = threading.Lock()  # of the queue, and of who works on it
_COMPILING = threading.RLock()  # held while a program is made ready
_INTERPRETING: set[int] = set()  # threads for which compiling makes way
_WAITING: list[Program] = []  # what someone waits for, who would rather not have it pause
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
        if _is_being_imported(wanted):  # whose import would wait for us, and we for it
            time.sleep(0.02)
            continue
        try:
            with _COMPILING, without_collecting():
                _make_ready(wanted)
        except StoppedError:
            pass
        except Exception as error:
            _log.error("%s stays interpreted, and slow: %s", wanted.name, error)
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


def _is_being_imported(wanted: Program) -> bool:
    """Whether a module that it is made of is still being imported."""
    for name in modules_of(wanted.function, wanted.kinds):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            return True
    return False


class _LookUp:
    """Finds no module, but has the worker look up before each one that it imports.

    Numba is hundreds of modules, and importing them takes the better part of a second.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """None, always."""
        if threading.current_thread() is _worker:
            check_stop(0.02)


class StoppedError(Exception):
    """The process ends while something is being compiled."""


def check_stop(patience: float = 0.1) -> None:
    """Called between the steps of compiling: the worker makes way for those who interpret."""
    if threading.current_thread() is _worker:
        end = time.monotonic() + patience
        while _INTERPRETING and not (_WAITING or _stopping) and time.monotonic() < end:
            time.sleep(0.001)
    if _stopping:
        raise StoppedError


def _make_ready(wanted: Program) -> None:
    """Load a program's machine code, or compile it and keep it."""
    if wanted.ready:
        return
    if wanted.error is not None:
        raise wanted.error
    kept = _kept(wanted)
    run = _loaded(wanted, kept)
    if run is None:
        with kept.alone(check_stop):
            # Whoever held the lock before may have compiled it.
            run = _loaded(wanted, kept)
            if run is None:
                from melee.compiled import codegen

                try:
                    run, content = codegen.compile_kernel(wanted.function, wanted.kinds, check_stop)
                except InputError as error:
                    wanted.error = error
                    raise
                wanted.compiled = True
                if not kept.write(content):
                    kept.path = None
    wanted.path = kept.path
    wanted.run = run
    wanted.ready = True


def _kept(wanted: Program) -> files.Kept:
    from melee.compiled import codegen

    return files.Kept(wanted.name, key_of(wanted.function, wanted.kinds, codegen.target()))


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
sys.meta_path.insert(0, cast(Any, _LookUp()))
if hasattr(os, "register_at_fork"):
    # A fork waits for the program that is being compiled: half a compiler is of no use to a child.
    os.register_at_fork(
        before=_COMPILING.acquire,
        after_in_parent=_COMPILING.release,
        after_in_child=_after_fork_in_child,
    )
