"""The command line: thin, quick to answer, and it never shows a traceback for bad input."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from rich.table import Table

from melee.errors import InputError, MeleeError

if TYPE_CHECKING:
    from melee.task import Task

app = typer.Typer(
    help="Contextual bandits that learned how to explore.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()


def main() -> None:
    """Run the command line; errors of the MELEE family become one sentence and exit code 2."""
    try:
        app()
    except MeleeError as error:
        print(f"melee: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("melee: interrupted", file=sys.stderr)
        sys.exit(130)


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


def _progress() -> Progress:
    """A bar on the error stream, so that results can be piped."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@app.command()
def demo(
    seeds: Annotated[int, typer.Option(min=1, help="Runs per dataset, each in another order.")] = 3,
) -> None:
    """Compare all explorers on the datasets that come with scikit-learn."""
    with _progress() as progress:
        step = progress.add_task("loading", total=None)
        from melee.demo import compare
        from melee.explorers import EXPLORERS

        progress.update(step, total=len(EXPLORERS), description="playing")
        result = compare(n_seeds=seeds, on_step=lambda name: progress.advance(step))
    table = Table(
        title=f"Mean reward over {seeds} runs · {result.n_rounds:,} rounds played",
        title_justify="left",
        caption="The first run compiles; the machine code is kept for the next one.",
        caption_justify="left",
    )
    table.add_column("explorer")
    for name in [*result.datasets, "mean"]:
        table.add_column(name, justify="right")
    for name, row in zip(result.explorers, result.rewards, strict=True):
        cells = [f"{value:.3f}" for value in [*row, row.mean()]]
        table.add_row(name, *cells, style="dim" if name == "full-information" else None)
    out.print(table)
    out.print("full-information is shown every reward: a reference for what exploring costs.")


@app.command()
def simulate(
    data: Annotated[str, typer.Option(help="A data file, or a dataset of the bundled suite.")],
    explorer: Annotated[
        list[str], typer.Option(help="SPEC such as linucb:alpha=0.1; repeat it to compare several.")
    ],
    target: Annotated[
        str | None, typer.Option(help="The column of labels; the last one by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the order and the exploration.")] = 0,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    curve: Annotated[
        Path | None, typer.Option(help="Draw the learning curves here (.png or .svg).")
    ] = None,
    format: Annotated[str, typer.Option(help="table or json.")] = "table",  # noqa: A002
) -> None:
    """Play one dataset and print the progressive validation return."""
    if format not in ("table", "json"):
        raise InputError(f"--format is {format}; expected table or json")
    from melee import figures
    from melee.explorers import parse
    from melee.loop import simulate as play
    from melee.preparation import prepare

    chosen = [parse(spec) for spec in explorer]
    if curve is not None:
        figures.check_path(curve)
    prepared = prepare(_load(data, target), seed=seed, max_rounds=max_rounds)
    task = prepared.task
    runs = {one.short_spec: play(prepared, one, seed=seed) for one in chosen}
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
                        "seed": seed,
                        "mean_reward": run.mean_reward,
                        "seconds": run.seconds,
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
    table.add_column("mean reward so far, from 0 to 1", no_wrap=True)
    for name, run in runs.items():
        table.add_row(name, f"{run.mean_reward:.4f}", figures.sparkline(run.curve, width=40))
    out.print(table)
    if curve is not None:
        out.print(f"learning curves: {curve}", highlight=False)


def _load(data: str, target: str | None) -> "Task":
    """A task from a file, or from the bundled suite by name."""
    from melee.datasets import load_suite, read_table
    from melee.datasets.suites import BUNDLED

    if data in BUNDLED and not Path(data).exists():
        return load_suite("bundled").entry(data).load()
    return read_table(data, target=target)


@app.command()
def train(
    out_dir: Annotated[Path, typer.Option("--out", help="Directory for the policy.")],
    preset: Annotated[str, typer.Option(help="paper.")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Of everything.")] = 0,
    tasks: Annotated[int | None, typer.Option(min=1, help="Synthetic tasks, one a round.")] = None,
    rows: Annotated[int | None, typer.Option(min=31, help="Rows of each task.")] = None,
    features: Annotated[str, typer.Option(help="all, or probabilities (the ablation).")] = "all",
    rollout: Annotated[str, typer.Option(help="expert, lookahead or policy.")] = "expert",
    horizon: Annotated[int, typer.Option(min=0, help="Rounds of a policy roll-out.")] = 40,
    every: Annotated[int, typer.Option(min=1, help="Record a state every so many rounds.")] = 1,
    beta: Annotated[float, typer.Option(help="Share of the expert in the roll-in.")] = 0.0,
) -> None:
    """Train an exploration policy by imitation; run it again to continue after an interruption."""
    from melee.errors import unknown

    if preset != "paper":
        raise unknown("preset", preset, ["paper"])
    with _progress() as progress:
        step = progress.add_task("compiling", total=None)
        from melee.explorers.melee_paper import PER_ACTION, SCHEMA
        from melee.meta.aggrevate import Training
        from melee.meta.train import train as run

        sizes = {"n_tasks": tasks, "n_rows": rows}
        training = Training(
            **{key: value for key, value in sizes.items() if value is not None},
            features=features,
            rollout=rollout,
            horizon=horizon,
            every=every,
            beta=beta,
            seed=seed,
        )
        progress.update(step, total=training.n_tasks)

        def show(n: int, one: object) -> None:
            validation = getattr(one, "validation", 0.0)
            progress.update(step, completed=n, description=f"validation return {validation:.4f}")

        try:
            trained = run(training, out_dir, on_round=show)
        except KeyboardInterrupt:
            progress.stop()
            done = int(progress.tasks[0].completed)
            print(
                f"melee: interrupted after {done} of {training.n_tasks} rounds, which are kept in "
                f"{out_dir}; run the same command to go on",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
    import numpy as np

    from melee import figures

    returns = np.array([one.validation for one in trained.rounds])
    table = Table(title="The returned policy", title_justify="left")
    table.add_column("feature")
    table.add_column("weight", justify="right")
    for name, weight in zip(SCHEMA, trained.weights, strict=True):
        table.add_row(name, f"{weight:+.4f}" if name in PER_ACTION else "same for all actions")
    out.print(table)
    span = float(np.ptp(returns)) or 1.0
    line = figures.sparkline((returns - returns.min()) / span)
    out.print(
        f"validation return by round, {returns.min():.4f} to {returns.max():.4f}: {line}",
        highlight=False,
    )
    out.print(
        f"returned: round {trained.returned + 1} of {len(returns)}. "
        f"Play it: melee simulate --explorer melee-paper:policy={out_dir} --data ...",
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def datasets(
    suite: Annotated[str, typer.Option(help="bundled, paper300 or a directory.")] = "bundled",
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
    """List the explorers and their settings."""
    import inspect

    from melee.explorers import EXPLORERS

    table = Table(show_lines=True)
    table.add_column("explorer", no_wrap=True)
    table.add_column("what it does, and its settings with their defaults")
    for name, kind in EXPLORERS.items():
        summary = (inspect.getdoc(kind) or "").splitlines()[0]
        settings = kind().spec.removeprefix(name).lstrip(":").replace(":", "  ")
        table.add_row(name, f"{summary}\n[dim]{settings}[/dim]" if settings else summary)
    out.print(table)


if __name__ == "__main__":
    main()
