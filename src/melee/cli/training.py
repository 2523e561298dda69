"""The command that trains exploration policies."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from melee.cli.app import app, out, progress_bar, say


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
    tasks_per_round: Annotated[
        int, typer.Option(min=1, help="Tasks that a round rolls in on, in parallel.")
    ] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Of a running Dask cluster, tcp://HOST:PORT.")
    ] = None,
) -> None:
    """Train an exploration policy by imitation; run it again to continue after an interruption."""
    from melee.errors import unknown

    if preset != "paper":
        raise unknown("preset", preset, ["paper"])
    with progress_bar() as progress:
        step = progress.add_task("compiling", total=None)
        from melee.benchmark.mapping import mapper
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
            tasks_per_round=tasks_per_round,
            seed=seed,
        )
        progress.update(step, total=training.n_rounds)

        def show(n: int, one: object) -> None:
            validation = getattr(one, "validation", 0.0)
            progress.update(step, completed=n, description=f"validation return {validation:.4f}")

        try:
            with mapper(engine, workers=workers, scheduler=scheduler) as apply:
                trained = run(training, out_dir, on_round=show, apply=apply)
        except KeyboardInterrupt:
            progress.stop()
            done = int(progress.tasks[0].completed)
            say(
                f"melee: interrupted after {done} of {training.n_rounds} rounds, which are kept in "
                f"{out_dir}; run the same command to go on"
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
