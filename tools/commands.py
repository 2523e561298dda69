"""The command line as it is declared: every command with its arguments and options."""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """An argument (its name) or an option (its flags) of a command."""

    names: tuple[str, ...]
    is_option: bool
    metavar: str
    default: str | None
    required: bool
    help: str


class Command(NamedTuple):
    """A command and its parameters, in the order of its help."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]


def commands() -> list[Command]:
    """Every command of `melee`, by name, groups before their own; the first is `melee` itself."""
    from typer.main import get_command

    from melee.cli import app

    return list(_within("melee", get_command(app)))


def _within(name: str, declared: Any) -> Iterator[Command]:
    """A command, and those that it is a group of."""
    yield _command(name, declared)
    for own, command in sorted(getattr(declared, "commands", {}).items()):
        yield from _within(f"{name} {own}", command)


def _command(name: str, declared: Any) -> Command:
    parameters = tuple(_parameter(parameter) for parameter in declared.params)
    return Command(name, " ".join((declared.help or "").split()), parameters)


def _parameter(declared: Any) -> Parameter:
    is_option = declared.param_type_name == "option"
    names = (*declared.opts, *declared.secondary_opts)
    metavar = declared.metavar or ("" if is_option else declared.name.upper())
    default = declared.default
    if callable(default) or default is None or default is False or default in ((), ""):
        default = None
    return Parameter(
        names=names if is_option else (metavar,),
        is_option=is_option,
        metavar=metavar,
        default=None if default is None else str(default),
        required=bool(declared.required),
        help=" ".join((getattr(declared, "help", None) or "").split()),
    )
