"""What the commands share: the application, its consoles, its bar."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from typer.core import TyperGroup

from melee.cli import Ended
from melee.errors import InputError


class _Group(TyperGroup):
    """Commands whose end from outside reaches the guard."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        with _passing_on():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with _passing_on():
            return super().invoke(ctx)


@contextlib.contextmanager
def _passing_on() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, BrokenPipeError) as error:
        raise Ended from error


app = typer.Typer(
    cls=_Group,
    help="Contextual bandits that learned how to explore.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()


def _version(wanted: bool) -> None:
    if wanted:
        from melee import __version__

        print(f"melee {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def progress_bar() -> Progress:
    """A bar on the error stream, so that results can be piped."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def say(message: str) -> None:
    """A line on the error stream, for people."""
    print(message, file=sys.stderr, flush=True)


def check_format(given: str, *known: str) -> None:
    """Refuse an output format that does not exist."""
    if given not in known:
        raise InputError(f"--format is {given}; expected {', '.join(known[:-1])} or {known[-1]}")
