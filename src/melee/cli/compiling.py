"""The command that compiles beforehand."""

from typing import Annotated

import typer
from rich.table import Table

from melee.cli.base import app, out, say


@app.command("compile")
def compile_explorers(
    explorers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPLORERS", help="SPECs such as linucb:alpha=0.1; melee by default."
        ),
    ] = None,
    candidates: Annotated[
        bool,
        typer.Option(
            "--candidates", help="For agents to which candidates come with each question."
        ),
    ] = False,
) -> None:
    """Compile what agents need, and keep it: for a container image, or a machine without waiting.

    The directory is MELEE_CACHE_DIR, or melee/machine-code in the user's cache.
    """
    from melee.agent import Agent, compile_now
    from melee.compiled import files, programs
    from melee.errors import DataError, InputError
    from melee.explorers import parse

    if programs.mode() == "never":
        raise InputError("MELEE_COMPILE or NUMBA_DISABLE_JIT forbids compiling; leave them out")
    wanted = explorers or ["melee"]
    for spec in wanted:
        parse(spec)
    say("compiling; the first time takes some seconds for each explorer")
    done = compile_now(*(Agent(explorer=spec) for spec in wanted) if candidates else wanted)
    missing = [compiled for compiled in done if compiled.path is None]
    if missing:
        raise DataError(
            f"machine code cannot be kept in {files.directory() or 'any place'}; set "
            f"{files.VARIABLE} to a directory that can be written"
        )
    table = Table("explorer", "program", "seconds", box=None)
    for compiled in done:
        table.add_row(compiled.explorer, compiled.program, f"{compiled.seconds:.1f}")
    out.print(table)
    out.print(f"kept in {files.directory()}", soft_wrap=True)
