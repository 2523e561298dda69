"""Commands to play: simulate, and the lists of datasets and explorers."""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from melee.cli.base import app, check_format, out, read_specs, say

if TYPE_CHECKING:
    from melee.registry import Listed
    from melee.task import Task


@app.command()
def simulate(
    data: Annotated[str, typer.Option(help="A data file, or a dataset of the bundled suite.")],
    explorers: Annotated[
        list[str],
        typer.Option(
            "--explorer",
            "--explorers",
            help="A SPEC such as linucb:alpha=0.1; several separated by commas, or one by one.",
        ),
    ] = ["melee"],  # noqa: B006
    target: Annotated[
        str | None, typer.Option(help="The column of labels; the last one by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the order and the exploration.")] = 0,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    way: Annotated[
        str,
        typer.Option(
            "--as", help="prepared (numbers), agent (rows, from nothing), or both side by side."
        ),
    ] = "prepared",
    curve: Annotated[
        Path | None, typer.Option(help="Draw the learning curves here (.png or .svg).")
    ] = None,
    format: Annotated[str, typer.Option(help="table or json.")] = "table",  # noqa: A002
) -> None:
    """Play one dataset and print the mean reward of its rounds."""
    check_format(format, "table", "json")
    from melee import figures
    from melee.benchmark.ways import labels, split
    from melee.explorers import parse
    from melee.loop import simulate as play
    from melee.preparation import prepare

    chosen = [parse(spec).short_spec for spec in read_specs(",".join(explorers))]
    players = {label: split(label) for spec in chosen for label in labels(spec, way)}
    if curve is not None:
        figures.check_path(curve)
    task = _load(data, target, keep_rows=way != "prepared")
    prepared = prepare(task, seed=seed, max_rounds=max_rounds)
    runs = {}
    for label, (spec, as_agent) in players.items():
        if as_agent:
            from melee.rehearsal import rehearse

            runs[label] = rehearse(prepared, spec, seed=seed)
        else:
            runs[label] = play(prepared, spec, seed=seed)
    if curve is not None:
        figures.learning_curves(
            {name: run.curve for name, run in runs.items()},
            curve,
            title=f"{task.name}, seed {seed}",
        )
    if format == "json":
        print(
            json.dumps(
                [
                    {
                        "dataset": task.name,
                        "n_rounds": prepared.n_rounds,
                        "n_features": task.n_features,
                        "n_actions": task.n_actions,
                        "explorer": name,
                        "as": "agent" if players[name][1] else "prepared",
                        "seed": seed,
                        "mean_reward": run.mean_reward,
                        "seconds": run.seconds,
                        "diagnostics": run.diagnostics,
                    }
                    for name, run in runs.items()
                ],
                indent=2,
            )
        )
        return
    out.print(
        f"{task.name}: {prepared.n_rounds} rounds after {len(prepared.labelled)} labelled rows, "
        f"{task.n_features} features, {task.n_actions} actions; "
        f"scaling {prepared.method}, learning rate {prepared.learning_rate:g}",
        highlight=False,
    )
    for note in task.notes:
        out.print(f"  {note}", highlight=False, markup=False)
    table = Table()
    table.add_column("explorer")
    table.add_column("mean reward", justify="right")
    between = figures.limits([run.curve for run in runs.values()])
    table.add_column("mean reward so far, from {:g} to {:g}".format(*between), no_wrap=True)
    for name, run in runs.items():
        line = figures.sparkline(run.curve, width=40, between=between)
        mean = run.mean_reward
        table.add_row(name, f"{mean:.4f}" if between == (0.0, 1.0) else f"{mean:.6g}", line)
    out.print(table)
    for name, run in runs.items():
        said = ", ".join(f"{what} {share:.1%}" for what, share in run.diagnostics.items())
        if said:
            out.print(f"{name}: {said} of the rounds", highlight=False)
    if curve is not None:
        out.print(f"learning curves: {curve}", highlight=False)


def _load(data: str, target: str | None, *, keep_rows: bool) -> "Task":
    """A task from a file, or from the bundled suite by name."""
    from melee.datasets import load_suite, read_table
    from melee.datasets.suites import BUNDLED

    if data in BUNDLED and not Path(data).exists():
        return load_suite("bundled").entry(data).load(keep_rows=keep_rows)
    return read_table(data, target=target, keep_rows=keep_rows)


@app.command()
def datasets(
    suite: Annotated[
        str, typer.Option(help="bundled, paper300, production, catalogue, values or a directory.")
    ] = "bundled",
) -> None:
    """List the datasets of a suite, and what is cached of it."""
    from melee.datasets import cache_directory, describe, load_suite

    rows = describe(load_suite(suite))
    table = Table()
    for name in ["dataset", "rows", "features", "actions", "from", "here"]:
        number = name in ("rows", "features", "actions")
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        numbers = [row.n_rows, row.n_features, row.n_actions]
        here = row.problem or ("yes" if row.cached else "no")
        table.add_row(
            row.name, *("?" if n is None else f"{n:,}" for n in numbers), row.source, here
        )
    out.print(table)
    n_here = sum(row.cached and not row.problem for row in rows)
    out.print(f"{n_here} of {len(rows)} can be played without a network.", highlight=False)
    if n_here < len(rows):
        out.print(f"OpenML's are fetched when played and kept in {cache_directory()}.")


@app.command()
def explorers() -> None:
    """List the explorers and their settings, and the learners; those of other packages too."""
    from melee.explorers.registry import REGISTRY
    from melee.learners.registry import REGISTRY as LEARNERS

    for registry in (REGISTRY, LEARNERS):
        with warnings.catch_warnings(record=True) as unusable:
            warnings.simplefilter("always")
            listed = registry.listed()
        out.print(_listing(registry.word, listed))
        for warning in unusable:
            say(f"melee: {warning.message}")


def _listing(word: str, listed: "dict[str, Listed]") -> Table:
    """What each does, its settings with their defaults, and the package where it is not ours."""
    import inspect

    from melee.registry import OURS

    foreign = any(entry.package != OURS for entry in listed.values())
    table = Table(show_lines=True)
    table.add_column(word, no_wrap=True)
    table.add_column("what it does, and its settings with their defaults")
    if foreign:
        table.add_column("package")
    for name, (kind, package) in listed.items():
        summary = escape((inspect.getdoc(kind) or "").partition("\n")[0])
        settings = kind().spec.removeprefix(name)[1:].replace(kind.separator, "  ")
        about = f"{summary}\n[dim]{escape(settings)}[/dim]" if settings else summary
        table.add_row(name, about, *([escape(package)] if foreign else []))
    return table
