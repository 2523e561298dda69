"""What the commands share: the application, its consoles, its bar."""

import contextlib
import re
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
from melee.errors import InputError, MeleeError, unknown

_UsageError: Any = typer.BadParameter.__mro__[1]  # which Typer has from Click, or of its own


_COMMANDS = {
    "Agents": ("serve", "journal", "load-test", "compile"),
    "Their logs": ("doctor", "evaluate"),
    "Simulations and benchmarks": (
        *("demo", "simulate", "explorers", "datasets", "bench", "results", "compare", "report"),
    ),
    "Training": ("train",),
}
"""What commands are for, in the order in which the help shows them."""
_PURPOSES = {name: purpose for purpose, names in _COMMANDS.items() for name in names}


class _Group(TyperGroup):
    """Commands whose end from outside reaches the guard, and so do arguments that they refuse."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=list(_PURPOSES).index)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found: Any = super().get_command(ctx, cmd_name)
        if found is not None:
            found.rich_help_panel = _PURPOSES[cmd_name]
        return found

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
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # no error: it shows the help
            raise
        raise _misused(error) from None


_WORDS = {
    r"^Missing (?:option|argument) '([^']+)'$": r"\1 is missing",
    r"^Option '([^']+)' requires an argument$": r"\1 needs a value",
    r"^Got unexpected extra arguments?(?:\(s\))? \((.*)\)$": r"\1 was not expected",
    r"^Invalid value for '([^']+)': ": r"\1: ",
    r"Input should be a valid integer.*": "expected a whole number",
    r"Input should be a valid number.*": "expected a number",
    r"Input should be greater than or equal to": "expected at least",
    r"Input should be less than or equal to": "expected at most",
}
"""What Typer says, and how melee says it."""


def _misused(error: Any) -> MeleeError:
    """What Typer has against the arguments, in melee's own words as far as they go."""
    context, said = error.ctx, str(error.format_message()).rstrip(".")
    command = context.command_path if context is not None else "melee"
    name = re.search(r"No such (?:command|option:?) '?([^'\s]+)", said)
    if name and "command" in said:
        return unknown("command", name[1], context.command.list_commands(context))
    if name:
        options = [option for each in context.command.params for option in each.opts]
        listed = sorted({option for option in options if option.startswith("--")} | {"--help"})
        return unknown(f"option of {command}", name[1], listed)
    for theirs, ours in _WORDS.items():
        said = re.sub(theirs, ours, said)
    return InputError(f"{said}; {command} --help says what it takes")


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


def read_specs(given: str) -> list[str]:
    """The SPECs of `--explorers`; at least one."""
    from melee.benchmark.specs import separate

    specs = separate(given)
    if not specs:
        raise InputError("--explorers names none; expected SPECs, separated by commas")
    return specs


def check_format(given: str, *known: str) -> None:
    """Refuse an output format that does not exist."""
    if given not in known:
        raise InputError(f"--format is {given}; expected {', '.join(known[:-1])} or {known[-1]}")
