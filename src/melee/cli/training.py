"""The command that trains exploration policies."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress
from rich.table import Table

from melee.cli.base import app, out, progress_bar, say

if TYPE_CHECKING:
    from melee.arrays import Floats
    from melee.benchmark.mapping import Mapper

PAPER_ONLY = (
    *("horizon", "rows", "features", "rollout", "every", "beta", "tasks_per_round"),
    *("order", "first", "counts"),
)
MELEE_ONLY = ("family", "policy", "generations")


@app.command()
def train(
    out_dir: Annotated[Path, typer.Option("--out", help="Directory for the policy.")],
    preset: Annotated[str, typer.Option(help="melee or paper.")] = "melee",
    seed: Annotated[int, typer.Option(min=0, help="Of everything.")] = 0,
    tasks: Annotated[
        int | None,
        typer.Option(min=1, help="Synthetic tasks: in all (paper), of a generation (melee)."),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=0, help="paper: rounds that a roll-out by the policy looks ahead."),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help="melee: both, lifelike, production, or package.module:function from a seed to a "
            "Task."
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="melee: fine-tune this policy, a name or a directory.")
    ] = None,
    generations: Annotated[
        int | None, typer.Option(min=0, help="melee: generations of evolution.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=31, help="paper: rows of each task.")] = None,
    features: Annotated[
        str | None, typer.Option(help="paper: all, or probabilities (the ablation).")
    ] = None,
    rollout: Annotated[str | None, typer.Option(help="paper: expert, lookahead or policy.")] = None,
    every: Annotated[
        int | None, typer.Option(min=1, help="paper: record a state every so many rounds.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="paper: share of the expert in the roll-in.")
    ] = None,
    tasks_per_round: Annotated[
        int | None, typer.Option(min=1, help="paper: tasks that a round rolls in on, in parallel.")
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="paper: sampled tasks, or each in-turn.")
    ] = None,
    first: Annotated[
        str | None, typer.Option(help="paper: who rolls in first, expert or learner.")
    ] = None,
    counts: Annotated[
        str | None, typer.Option(help="paper: actions to count, predicted or played.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Of a running Dask cluster, tcp://HOST:PORT.")
    ] = None,
) -> None:
    """Train an exploration policy; run it again to continue after an interruption."""
    given = {name: value for name, value in locals().items() if value is not None}
    from melee.errors import InputError, unknown

    if preset not in ("melee", "paper"):
        raise unknown("preset", preset, ["melee", "paper"])
    for name in PAPER_ONLY if preset == "melee" else MELEE_ONLY:
        if name in given:
            option = "--" + name.replace("_", "-")
            other = "paper" if preset == "melee" else "melee"
            raise InputError(f"{option} is for --preset {other}; leave it out, or use that preset")
    with progress_bar() as progress:
        step = progress.add_task("compiling", total=None)
        from melee.benchmark.mapping import mapper

        try:
            with mapper(engine, workers=workers, scheduler=scheduler) as apply:
                run = _train_melee if preset == "melee" else _train_paper
                finish = run(out_dir, given, progress, step, apply)
        except KeyboardInterrupt:
            progress.stop()
            done, total = progress.tasks[0].completed, progress.tasks[0].total
            say(
                f"melee: interrupted after {done:.0f} of {total or 0:.0f} steps, which are kept "
                f"in {out_dir}; run the same command to go on"
            )
            raise typer.Exit(130) from None
    finish()


def _renamed(given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The options that were given, under the names of a training's fields."""
    return {field: given[option] for option, field in names.items() if option in given}


def _train_paper(
    out_dir: Path, given: dict[str, Any], progress: Progress, step: Any, apply: "Mapper"
) -> Any:
    import numpy as np

    from melee.explorers.melee_paper import PER_ACTION, SCHEMA
    from melee.meta.aggrevate import Training
    from melee.meta.train import train as run

    names = {"tasks": "n_tasks", "rows": "n_rows", "horizon": "horizon", "seed": "seed"}
    same = tuple(name for name in PAPER_ONLY if name not in names)
    training = Training(**_renamed(given, {**names, **{name: name for name in same}}))
    progress.update(step, total=training.n_rounds)

    def show(n: int, latest: Any) -> None:
        progress.update(step, completed=n, description=f"validation return {latest.validation:.4f}")

    def narrow(stage: Any) -> None:
        left, tasks = len(stage.policies), stage.n_tasks
        progress.update(step, description=f"best of {left} policies on {tasks} tasks")

    trained = run(training, out_dir, on_round=show, on_stage=narrow, apply=apply)

    def finish() -> None:
        table = Table(title="The returned policy", title_justify="left")
        table.add_column("feature")
        table.add_column("weight", justify="right")
        for name, weight in zip(SCHEMA, trained.weights, strict=True):
            unused = "not used" if name in PER_ACTION else "same for all actions"
            table.add_row(name, f"{weight:+.4f}" if weight != 0.0 else unused)
        out.print(table)
        _curve("round", np.array([round_.validation for round_ in trained.rounds]))
        _play_it(f"round {trained.returned + 1} of {len(trained.rounds)}", "melee-paper", out_dir)

    return finish


def _train_melee(
    out_dir: Path, given: dict[str, Any], progress: Progress, step: Any, apply: "Mapper"
) -> Any:
    import numpy as np

    from melee.meta.train_melee import MeleeTraining, train_melee

    sys.path.insert(0, str(Path.cwd()))  # where a user's --family is likely to be
    names = {"tasks": "n_tasks", "generations": "n_generations"}
    same = ("family", "policy", "seed")
    training = MeleeTraining(**_renamed(given, {**names, **{name: name for name in same}}))
    progress.update(step, total=training.n_generations, description="start")

    def show(done: Any) -> None:
        last = done.judged[-1]
        progress.update(
            step,
            completed=done.evolution.generation,
            description=f"validation share {last.validation:.4f}",
        )

    trained = train_melee(training, out_dir, on_step=show, apply=apply)

    def finish() -> None:
        table = Table(title="Policies on the way", title_justify="left")
        for column in ("generation", "validation share", "ahead of the start"):
            table.add_column(column, justify="right")
        for judged in trained.judged:
            mark = " (returned)" if judged is trained.best else ""
            lead, error = judged.lead(trained.judged[0])
            ahead = f"{lead:+.4f} ± {error:.4f}" if judged is not trained.judged[0] else ""
            table.add_row(str(judged.generation), f"{judged.validation:.4f}{mark}", ahead)
        out.print(table)
        _curve("generation", np.array([judged.validation for judged in trained.judged]))
        best = trained.best.generation
        _play_it(f"generation {best} of {training.n_generations}", "melee", out_dir)

    return finish


def _curve(unit: str, returns: "Floats") -> None:
    """The validation results as a line of text."""
    from melee import figures

    span = float(returns.max() - returns.min()) or 1.0
    line = figures.sparkline((returns - returns.min()) / span)
    out.print(
        f"validation by {unit}, {returns.min():.4f} to {returns.max():.4f}: {line}",
        highlight=False,
    )


def _play_it(returned: str, explorer: str, out_dir: Path) -> None:
    out.print(
        f"returned: {returned}. "
        f"Play it: melee simulate --explorers {explorer}:policy={out_dir} --data ...",
        highlight=False,
        soft_wrap=True,
    )
