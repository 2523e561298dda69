"""The command line: thin, quick to answer, and nobody ever sees a traceback.

`main` is the guard. It imports nothing before it stands, so that an interruption while Python
loads melee finds it, too. Its exit codes: 0 done, 1 `melee doctor` or `melee journal` found errors,
2 something that the user can mend, 70 a defect of melee, 130 interrupted, 141 nobody read the
output any more. MELEE_TRACEBACK=1 in the environment shows tracebacks all the same.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from melee.cli.base import app

__all__ = ["app", "main"]


class Ended(BaseException):
    """A command was ended from outside, by its cause; which Typer must not see."""


def __getattr__(name: str) -> Any:
    """The application, with all its commands, once it is asked for."""
    if name != "app":
        raise AttributeError(f"module 'melee.cli' has no attribute {name!r}")
    from melee.cli import (  # noqa: F401 - they register commands
        benchmark,
        compiling,
        journal,
        logs,
        playing,
        serving,
        training,
    )
    from melee.cli.base import app

    return app


def main() -> None:
    """Run the command line; whatever goes wrong becomes one line and an exit code."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            __getattr__("app")(prog_name="melee")
        finally:
            sys.stdout.flush()
    except SystemExit:
        raise
    except Ended as ended:
        sys.exit(_explain(ended.__cause__ or ended))
    except BaseException as error:
        sys.exit(_explain(error))


def _explain(error: BaseException) -> int:
    """Say in one line what happened and what to do; the exit code."""
    import os

    if os.environ.get("MELEE_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    if _was_interrupted(error):
        return _say("interrupted", 130)
    from melee.errors import MeleeError, advice

    if isinstance(error, MeleeError):
        return _say(str(error), 2)
    if not _can_flush():  # as in `melee results DIR | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        if isinstance(error, BrokenPipeError):
            return 141
    if isinstance(error, OSError) and error.errno:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return _say(f"{where}{error.strerror}; {advice(error)}", 2)
    if isinstance(error, MemoryError):
        return _say("there is not enough memory; use fewer rows, columns or processes", 2)
    return _say(
        f"a defect of melee: {type(error).__name__}: {error!s:.200}; please report it with "
        f"{_write_details(error)}",
        70,
    )


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: modules turn it into another while they are imported."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _can_flush() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _say(sentence: str, code: int) -> int:
    """Print a sentence, of which names from files must not make a second line or a colour."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence)
    print(f"melee: {shown}", file=sys.stderr)
    return code


def _write_details(error: BaseException) -> str:
    """What a report of the defect should hold, in a file; its name."""
    import platform
    import tempfile
    import traceback

    from melee.version import __version__

    details = (
        f"melee {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {sys.argv[1:]}\n\n{''.join(traceback.format_exception(error))}"
    )
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="melee-", suffix=".txt", encoding="utf-8", errors="replace", delete=False
        ) as file:
            file.write(details)
        return file.name
    except OSError:
        return "what MELEE_TRACEBACK=1 in the environment shows"
