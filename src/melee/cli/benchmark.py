"""Commands for benchmarks: bench, results, compare, report, and the demo."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from melee.cli.base import app, check_format, out, progress_bar, say
from melee.sheets import csv_text

if TYPE_CHECKING:
    from melee.benchmark.run import Summary
    from melee.benchmark.store import CellStore

Directory = Annotated[
    Path, typer.Argument(metavar="DIRECTORY", help="The directory of a benchmark.")
]
Format = Annotated[str, typer.Option(help="table, csv or json.")]


@app.command()
def demo(
    directory: Annotated[Path, typer.Option("--out", help="Where results go.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Runs per dataset, each in another order.")] = 3,
) -> None:
    """Compare all explorers on the datasets that come with scikit-learn, and write a report."""
    from importlib import import_module

    from melee.explorers import EXPLORERS
    from melee.extras import needed

    with needed("melee demo", "bench"):  # all that it will need, before the work begins
        for package in ("sklearn", "pandas", "scipy", "matplotlib"):
            import_module(package)

    _bench("bundled", list(EXPLORERS), seeds, directory)
    _show_means(directory)
    report(directory)


@app.command()
def bench(
    suite: Annotated[
        str, typer.Option(help="bundled, paper300, production, catalogue, values or a directory.")
    ],
    directory: Annotated[Path, typer.Option("--out", help="Where results go and are kept.")],
    explorers: Annotated[
        str,
        typer.Option(
            help="SPECs, separated by commas; all by default. vw:OPTIONS is VowpalWabbit, vw:grid "
            "many settings of it; options with commas need quotes that the shell leaves."
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 to N-1: order and exploration.")] = 3,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores.")] = None,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Of a running Dask cluster, tcp://HOST:PORT.")
    ] = None,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="Most rounds of a run.")] = None,
    way: Annotated[
        str,
        typer.Option(
            "--as", help="prepared (numbers), agent (rows, from nothing), or both side by side."
        ),
    ] = "prepared",
    a_a: Annotated[
        bool, typer.Option("--a-a/--no-a-a", help="Run all twice, for the A/A check.")
    ] = True,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds a single cell may take (local engine).")
    ] = None,
    retry_failed: Annotated[bool, typer.Option(help="Run failed cells again.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Show the plan and an estimate.")] = False,
) -> None:
    """Run explorers on every dataset of a suite; run it again to continue or to do nothing."""
    from melee.benchmark.specs import separate
    from melee.explorers import EXPLORERS

    specs = separate(explorers) or list(EXPLORERS)
    _bench(
        suite,
        specs,
        seeds,
        directory,
        workers=workers,
        engine=engine,
        scheduler=scheduler,
        max_rounds=max_rounds,
        way=way,
        a_a=a_a,
        timeout=timeout,
        retry_failed=retry_failed,
        dry_run=dry_run,
    )


def _bench(
    suite: str,
    specs: list[str],
    seeds: int,
    directory: Path,
    *,
    workers: int | None = None,
    engine: str = "local",
    scheduler: str | None = None,
    max_rounds: int | None = None,
    way: str = "prepared",
    a_a: bool = True,
    timeout: float | None = None,
    retry_failed: bool = False,
    dry_run: bool = False,
) -> None:
    """What `bench` and `demo` do."""
    import os

    from melee.benchmark.engines import engine as make_engine
    from melee.benchmark.facts import Facts
    from melee.benchmark.run import make_plan, pending, run
    from melee.benchmark.store import CellStore, check_free

    check_free(directory)
    processes = workers or os.cpu_count() or 1
    with _Progress() as progress:
        facts = Facts.read(directory)
        plan = make_plan(
            suite, specs, n_seeds=seeds, max_rounds=max_rounds, a_a=a_a, facts=facts, way=way
        )
        for label, reason in plan.left_out.items():
            say(f"melee: {label} is left out: {reason}")
        if not dry_run:
            chosen = make_engine(
                engine, workers=processes, plan=plan, timeout=timeout, scheduler=scheduler
            )
            with CellStore.open(directory) as store:
                facts.save(directory)
                if store.remark:
                    say(f"melee: {store.remark}; it is made again")
                for damage in store.damage:
                    say(f"melee: {damage}; the cells that are lost by it run again")
                left = pending(plan, store, retry_failed=retry_failed)
                progress.begin(sum(len(group.cells) for group in left))
                try:
                    summary = run(
                        plan,
                        store,
                        chosen,
                        workers=processes,
                        retry_failed=retry_failed,
                        on_record=progress.advance,
                    )
                except KeyboardInterrupt:
                    progress.close()
                    kept = len(
                        CellStore.read(directory)
                    )  # one may have come while it was interrupted
                    say(
                        f"melee: interrupted with {kept:,} cells kept in {directory}; "
                        "run the same command to go on"
                    )
                    raise typer.Exit(130) from None
    if dry_run:
        _show_plan(plan, directory, processes)
    else:
        _show_summary(summary, directory)


class _Progress:
    """How far a run is, how fast, and how long it will take.

    A bar in a terminal; elsewhere, as in a log file, a line now and then.
    """

    every = 10.0
    """Seconds between lines."""

    def __enter__(self) -> "_Progress":
        self.bar = progress_bar() if sys.stderr.isatty() else None
        self.n_done, self.n_cells, self.began, self.said = 0, 0, 0.0, time.monotonic()
        if self.bar is not None:
            self.step = self.bar.add_task("reading the suite", total=None)
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()

    def begin(self, n_cells: int) -> None:
        """So many cells are to be run."""
        self.n_cells = n_cells
        if self.bar is not None:
            self.bar.reset(self.step, total=n_cells, description="starting")

    def advance(self, cell: Any, record: Any) -> None:
        """A cell is finished."""
        now = time.monotonic()
        self.began = self.began or now  # of the first record, so without the start-up
        self.n_done += 1
        rate = (self.n_done - 1) / (now - self.began) if now > self.began else 0.0
        if self.bar is not None:
            text = f"{cell.dataset[:24]} · {rate:.1f} cells/s"
            self.bar.update(self.step, completed=self.n_done, description=text)
        elif now - self.said >= self.every and rate > 0.0:
            self.said = now
            say(
                f"melee: {self.n_done:,} of {self.n_cells:,} cells, {rate:.1f} a second, "
                f"about {(self.n_cells - self.n_done) / rate:,.0f} seconds left"
            )


def _show_plan(plan: Any, directory: Path, workers: int) -> None:
    """The plan, what of it is done, and how long the rest may take."""
    from melee.benchmark.run import estimate
    from melee.benchmark.store import CellStore

    begun = any((directory / name).exists() for name in ("store.json", "cells.log"))
    store = CellStore.read(directory) if begun else None
    cells = [cell for group in plan.cells.values() for cell in group]
    done = sum(store is not None and cell.key in store for cell in cells)
    unusable = [dataset for dataset in plan.datasets if dataset.problem]
    rounds = sum(
        plan.n_rounds(dataset) * len(plan.cells[dataset.name]) for dataset in plan.datasets
    )
    seconds = estimate(plan, store) / workers
    print(
        f"{len(plan.datasets)} datasets, {len(unusable)} of them unusable; "
        f"{len(plan.explorers)} explorers; {len(plan.seeds)} seeds; "
        f"{'every cell twice, for the A/A check' if plan.a_a else 'no A/A check'}"
    )
    for dataset in unusable:
        print(f"  {dataset.name}: {dataset.problem}")
    print(f"{len(cells):,} cells and {rounds:,} rounds in all; {done:,} cells are done")
    print(f"the rest: about {max(seconds, 1):,.0f} seconds on {workers} processes")


def _show_summary(summary: "Summary", directory: Path) -> None:
    """What was run, and where the time went, on the error stream."""
    if summary.n_run == 0:
        say(f"all {summary.n_cells:,} cells were done before; results are in {directory}")
    else:
        times = summary.times
        say(
            f"{summary.n_run:,} of {summary.n_cells:,} cells run; {summary.wall:.1f} s "
            f"with {summary.workers} processes (start-up {summary.starting:.1f} s). "
            f"The workers' time: {times.playing:.1f} s playing, {times.loading:.1f} s loading, "
            f"{times.preparing:.1f} s preparing, "
            f"{times.total - times.playing - times.loading - times.preparing:.1f} s other; "
            f"overhead outside the compiled loop {summary.overhead:.0%}"
        )
    say(f"hash of the results: {summary.fingerprint}")
    if summary.n_failed:
        say(f"{summary.n_failed:,} cells failed; melee report {directory} says which and why")


def _open(directory: Path) -> "CellStore":
    from melee.benchmark.store import CellStore

    store = CellStore.read(directory)
    if store.remark:
        say(f"melee: {store.remark}; run melee bench again to mend it")
    for damage in store.damage:
        say(f"melee: {damage}; run melee bench again to mend it")
    return store


def _print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> None:
    """Rows as a table for people, or as CSV or JSON for programs."""
    if form == "json":
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
    elif form == "csv":
        print(csv_text(columns, rows), end="")
    else:
        table = Table()
        for i, name in enumerate(columns):
            table.add_column(name, justify="left" if i == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*map(_shown, row))
        out.print(table)


def _shown(value: Any) -> str:
    """A value in a cell of a table: nothing where it is not known."""
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


@app.command()
def results(directory: Directory, format: Format = "table") -> None:  # noqa: A002
    """One row per dataset, explorer and seed; shares where expected rewards are known."""
    check_format(format, "table", "csv", "json")
    from melee.benchmark.run import load_results

    columns = ["dataset", "n_rounds", "n_features", "n_actions", "explorer", "seed"]
    columns += ["mean_reward", "seconds"]
    found = load_results(_open(directory))
    if format != "table" or any(cell.share is not None for cell in found):  # else two empty columns
        columns += ["expected_reward", "share"]
    rows = [[getattr(cell, name) for name in columns] for cell in found if not cell.problem]
    _print_rows(columns, rows, format)
    failures = found.failures()
    if failures:
        say(f"{len(failures)} cells failed and are left out, {failures[0].dataset} among them")


@app.command()
def compare(directory: Directory, format: Format = "table") -> None:  # noqa: A002
    """One row per pair of explorers: datasets won and lost (paired t-test over rounds, at 0.01).

    Beside it the same by the test over seeds, which holds its level where the other tells too many
    apart.
    """
    check_format(format, "table", "csv", "json")
    from melee.benchmark.run import load_results
    from melee.statistics import compare_pairs

    found = load_results(_open(directory))
    by_rounds = compare_pairs(found, test="rounds")
    has_seeds = len(found.seeds) > 1
    by_seeds = compare_pairs(found, test="seeds") if has_seeds else [None] * len(by_rounds)
    rows = [
        [pair.row, pair.column, pair.wins, pair.losses]
        + ([None, None] if other is None else [other.wins, other.losses])
        for pair, other in zip(by_rounds, by_seeds, strict=True)
    ]
    columns = ["row", "column", "wins", "losses", "wins_over_seeds", "losses_over_seeds"]
    _print_rows(columns, rows, format)
    if not has_seeds:
        say("melee: the test that holds its level goes by seeds and needs two or more: --seeds 3")


@app.command()
def report(
    directory: Directory,
    title: Annotated[str, typer.Option(help="Of the page; after the suite by default.")] = "",
) -> None:
    """Write report.html, its figures and its tables into the directory of a benchmark."""
    from melee.benchmark.run import load_results
    from melee.report import write_report

    store = _open(directory)
    plan, _ = store.load_plan()
    again = load_results(store, replicate=1) if plan.a_a else None
    path = write_report(load_results(store), directory, again, title=title)
    out.print(f"report: {path}", highlight=False, soft_wrap=True)


def _show_means(directory: Path) -> None:
    """Mean rewards of explorers (rows, best first) on datasets (columns)."""
    from melee.benchmark.run import load_results

    found = load_results(_open(directory))
    means = found.mean_rewards()
    n_rounds = sum(cell.n_rounds for cell in found)
    table = Table(
        title=f"Mean reward over {len(found.seeds)} runs · {n_rounds:,} rounds",
        title_justify="left",
        caption="full-information is shown every reward: a reference for what exploring costs.",
        caption_justify="left",
    )
    table.add_column("explorer")
    for name in [*found.complete_datasets(), "mean"]:
        table.add_column(name, justify="right")
    for i in (-means.mean(axis=0)).argsort(kind="stable"):
        name = found.explorers[i]
        cells = [f"{value:.3f}" for value in [*means[:, i], means[:, i].mean()]]
        table.add_row(name, *cells, style="dim" if name == "full-information" else None)
    out.print(table)
