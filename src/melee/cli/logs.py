"""Commands for logs: doctor, which looks for faults, and evaluate, which judges explorers."""

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from melee.cli.base import app, check_format, out, read_specs, say
from melee.sheets import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from melee.checks import RewardRange
    from melee.errors import MeleeError
    from melee.evaluation import Difference, Estimate, Evaluation, Finding, LiveEvaluation
    from melee.history import History

DEFAULT_EXPLORERS = "melee,linucb,epsilon-greedy:epsilon=0.05,uniform"

LogFile = Annotated[Path, typer.Argument(metavar="LOG", help="A log: .jsonl, .parquet or .dsjson.")]
RewardRangeOption = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH", help="The least and the greatest reward there can be, such as -5,20."
    ),
]
LogFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT", help="jsonl, parquet or dsjson, where the name does not say it."
    ),
]
_COLORS = {"ok": "green", "warning": "yellow", "error": "red"}


@app.command()
def doctor(
    log: LogFile,
    reward_range: RewardRangeOption = None,
    log_format: LogFormat = None,
    format: Annotated[str, typer.Option(help="table or json.")] = "table",  # noqa: A002
) -> None:
    """Look for faults in a log; exits with 1 if there are errors."""
    check_format(format, "table", "json")
    from melee.evaluation import examine
    from melee.history import History

    declared = _range(reward_range)
    history = History.read(log, format=log_format, usable=False)
    findings = examine(history, reward_range=declared)
    if format == "json":
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        table = Table()
        table.add_column("check", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column("found, and what to do", overflow="fold")
        for i, (level, check, found, advice) in enumerate(findings):
            text = Text(found if not advice else f"{found}\n→ {advice}")
            # A line above and below each fault: what is in order needs no room.
            apart = any(finding.level != "ok" for finding in findings[i : i + 2])
            table.add_row(check, Text(level, style=_COLORS[level]), text, end_section=apart)
        out.print(table)
        counts = ", ".join(_counted(findings, level) for level in ("error", "warning"))
        out.print(
            f"{log}: {len(history):,} rounds, {counts}",
            highlight=False,
            markup=False,
        )
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


def _counted(findings: "Iterable[Finding]", level: str) -> str:
    n = sum(finding.level == level for finding in findings)
    return f"{n} {level}" if n == 1 else f"{n} {level}s"


@app.command()
def evaluate(
    log: LogFile,
    explorers: Annotated[str, typer.Option(help="SPECs, separated by commas.")] = DEFAULT_EXPLORERS,
    baseline: Annotated[
        str, typer.Option(help="What differences are to: one of the SPECs, or the logged policy.")
    ] = "logged",
    estimators: Annotated[
        str,
        typer.Option(help="Some of dr, switch, dros, snips, ips, mips, dm, separated by commas."),
    ] = "dr,snips,ips,dm",
    embedding: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Features of candidates that mips goes by, separated by commas; by default all.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the explorers.")] = 0,
    reward_range: RewardRangeOption = None,
    log_format: LogFormat = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a log with a bad line.")] = False,
    format: Annotated[str, typer.Option(help="table, csv or json.")] = "table",  # noqa: A002
) -> None:
    """Estimate what explorers would have earned live, from a log of any policy with probabilities.

    Also what they earn when the log trains them, which spares them the price of exploring.
    """
    check_format(format, "table", "csv", "json")
    from melee.errors import InputError, LeftOutWarning
    from melee.evaluation import evaluate_live_many, evaluate_many
    from melee.explorers import parse
    from melee.history import History

    specs, names = read_specs(explorers), _names(estimators)
    for spec in specs:
        parse(spec)
    declared = _range(reward_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        history = History.read(log, format=log_format, strict=strict)
    _say_left_out(history)
    found = evaluate_many(
        history,
        specs,
        baseline=baseline,
        confidence=confidence,
        seed=seed,
        estimators=names,
        reward_range=declared,
        embedding=_embedding(embedding, history),
    )
    evaluated = [estimate for estimate in found.values() if not isinstance(estimate, Exception)]
    if not evaluated:
        reason = next(iter(found.values()))
        raise InputError(f"{log}: {reason}")
    live = evaluate_live_many(
        history,
        specs,
        baseline=baseline,
        confidence=confidence,
        seed=seed,
        reward_range=declared,
    )
    rows = [_logged(evaluated[0])]
    rows += [_with_live(_row(spec, estimate), live[spec]) for spec, estimate in found.items()]
    if format == "json":
        print(json.dumps(rows, indent=2))
    elif format == "csv":
        lines = ({**row, "warnings": " | ".join(row["warnings"])} for row in rows)
        print(csv_text(list(_EMPTY), ([line[name] for name in _EMPTY] for line in lines)), end="")
    else:
        _show_live(rows, baseline, confidence)
        _show(rows, names, confidence)


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _embedding(given: str | None, history: "History") -> "list[str | int] | None":
    """Names of features; positions where candidates are rows of numbers."""
    if given is None:
        return None
    rows = (features for each in history if each.features for features in each.features.values())
    is_named = isinstance(next(rows, {}), dict)
    return [int(name) if not is_named and name.isdecimal() else name for name in _names(given)]


def _say_left_out(history: "History") -> None:
    """How many rows are left out, and why, by reason; whatever comes next rests on the others."""
    total = len(history) + len(history.problems)
    for n_rows, (row, sentence, _) in history.left_out:
        say(f"{n_rows:,} of {total:,} rows are left out, row {row} the first: {sentence}")


def _range(given: str | None) -> "RewardRange":
    """The range of rewards from LOW,HIGH."""
    from melee.checks import check_reward_range
    from melee.errors import InputError

    if given is None:
        return None
    try:
        return check_reward_range(tuple(float(end) for end in given.split(",")))
    except (InputError, ValueError):
        raise InputError(
            f"--reward-range is {given}; expected the least and the greatest reward there can be, "
            "such as 0,1 or -5,20"
        ) from None


_ESTIMATORS = ("dr", "switch", "dros", "snips", "ips", "mips", "dm")
_DIFFERENCE = {
    "baseline": "baseline",
    "difference": "value",
    "difference_low": "low",
    "difference_high": "high",
    "difference_anytime_low": "anytime_low",
    "difference_anytime_high": "anytime_high",
    "p_value": "p_value",
}
_EMPTY: dict[str, Any] = {
    "policy": "",
    **dict.fromkeys(("live", "live_low", "live_high", "live_rounds", "live_refused")),
    **{f"live_{column}": None for column in _DIFFERENCE if column != "baseline"},
    **{f"{name}{end}": None for name in _ESTIMATORS for end in ("", "_low", "_high")},
    **dict.fromkeys(_DIFFERENCE),
    "effective_sample_size": None,
    "n_rounds": None,
    "warnings": [],
    "refused": None,
}


def _row(spec: str, found: "Evaluation | MeleeError") -> dict[str, Any]:
    """One explorer's numbers by column, or the reason why there are none."""
    if isinstance(found, Exception):
        return {**_EMPTY, "policy": spec, "refused": str(found)}
    return {
        **_EMPTY,
        "policy": spec,
        **_columns(found.estimates),
        **_compared(found.difference),
        "effective_sample_size": found.effective_sample_size,
        "n_rounds": found.n_rounds,
        "warnings": list(found.warnings),
    }


def _with_live(row: dict[str, Any], found: "LiveEvaluation | MeleeError") -> dict[str, Any]:
    """The row with what its explorer would earn live, or the reason why the log cannot tell."""
    if isinstance(found, Exception) or found.reason is not None:
        return row | {"live_refused": getattr(found, "reason", str(found))}
    said = [f"live: {warning}" for warning in found.warnings if warning not in row["warnings"]]
    numbers = {"live": found.value, "live_low": found.low, "live_high": found.high}
    compared = _compared(found.difference)
    numbers |= {f"live_{column}": compared[column] for column in compared if column != "baseline"}
    said = row["warnings"] + said
    return row | numbers | {"live_rounds": found.n_accepted, "warnings": said}


def _logged(found: "Evaluation") -> dict[str, Any]:
    """The log's own mean reward: all its weights are 1, so the weighted estimates are the mean."""
    same = {name: found.logged for name in found.estimates if name != "dm"}
    n = found.n_rounds
    own = {"policy": "logged", "effective_sample_size": float(n), "n_rounds": n}
    return {**_EMPTY, **own, **_columns(same)}


def _compared(found: "Difference | None") -> dict[str, Any]:
    if found is None:
        return {}
    columns = {column: getattr(found, field) for column, field in _DIFFERENCE.items()}
    if math.isnan(found.p_value):  # a log with dropped rounds says nothing for any time
        columns |= dict.fromkeys(("difference_anytime_low", "difference_anytime_high", "p_value"))
    return columns


def _columns(estimates: "Mapping[str, Estimate]") -> dict[str, float]:
    columns: dict[str, float] = {}
    for name, (_, value, low, high) in estimates.items():
        columns |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return columns


def _digits(
    row: dict[str, Any], name: str, ends: str = "", *, narrow: bool = False
) -> tuple[str, str]:
    """An estimate and its interval, in as many digits as tell something; on two lines if narrow."""
    from melee.evaluation.digits import in_digits

    numbers = row[name], row[f"{name}{ends}_low"], row[f"{name}{ends}_high"]
    value, low, high = in_digits(*numbers, places=3)
    until = "–" if numbers[1] >= 0.0 else " to "
    return value, f"{low}{until.rstrip()}\n{high}" if narrow else f"{low}{until}{high}"


_LEAST = 15
"""The least width of the column of policies, whose names are folded where there is no room."""


def _fill(
    table: Table, rows: list[dict[str, Any]], cells: "Callable[[dict[str, Any], bool], list[str]]"
) -> None:
    """A row for each policy: its name, and the cells that it has beside, narrow ones or not.

    They are narrow where the terminal is. The end of an interval must not be cut off: small rates
    have many digits.
    """
    wide = [cells(row, False) for row in rows]
    headers = [str(column.header) for column in table.columns[1:]]
    lines = [
        [line for cell in column for line in cell.split("\n")] for column in zip(*wide, strict=True)
    ]
    needed = sum(
        max(map(len, [header, *column])) + 3 for header, column in zip(headers, lines, strict=True)
    )
    if _LEAST + needed > out.width:
        wide = [cells(row, True) for row in rows]
    for row, shown in zip(rows, wide, strict=True):
        table.add_row(*map(Text, [row["policy"], *shown]))


def _show_live(rows: list[dict[str, Any]], baseline: str, confidence: float) -> None:
    from melee.evaluation.live import ASSUMES

    table = Table(
        title="Live: what each would have earned on its own",
        title_justify="left",
        caption=f"Mean rewards with {confidence:.4g} confidence intervals, and what is earned "
        f"beyond {baseline} by the same rounds, for one look; the second interval, and p, hold "
        f"however often you look, and are about the lives that they had in this log. {ASSUMES}",
        caption_justify="left",
    )
    table.add_column("explorer", overflow="fold")
    for name in ("live estimate", "difference", "at any time", "p"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("rounds", justify="right")

    def cells(row: dict[str, Any], narrow: bool) -> list[str]:
        shown = [
            "–" if row[name] is None else "\n".join(_digits(row, name, narrow=narrow))
            for name in ("live", "live_difference")
        ]
        shown += ["–", "–"]
        if row["live_p_value"] is not None:
            _, always = _digits(row, "live_difference", "_anytime", narrow=narrow)
            shown[2:] = always, f"{row['live_p_value']:.2g}"
        return [*shown, "–" if row["live"] is None else f"{row['live_rounds']:,}"]

    _fill(table, rows[1:], cells)
    out.print(table)
    for row in rows[1:]:
        if row["live_refused"] and row["live_refused"] != row["refused"]:
            say(f"{row['policy']}: {row['live_refused']}")


def _show(rows: list[dict[str, Any]], names: list[str], confidence: float) -> None:
    table = Table(
        title="Trained on this log: exploring is free here",
        title_justify="left",
        caption="Each explorer learns from what the log tried, not from its own choices. Mean "
        f"rewards with {confidence:.4g} confidence intervals; logged is what the log "
        "earned. Look at dr first; dm is only as good as its model. "
        + ("mips assumes that candidates alike in features earn alike. " if "mips" in names else "")
        + "ESS, the effective sample size: how many rounds of the policy itself would tell as "
        "much.",
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("ESS", justify="right", no_wrap=True)

    def cells(row: dict[str, Any], narrow: bool) -> list[str]:
        estimates = [
            "–" if row[name] is None else "\n".join(_digits(row, name, narrow=narrow))
            for name in names
        ]
        effective = row["effective_sample_size"]
        return [*estimates, "refused" if row["refused"] else f"{effective:,.0f}"]

    _fill(table, rows, cells)
    out.print(table)
    _show_differences([row for row in rows if row["difference"] is not None])
    for row in rows:
        for sentence in row["warnings"]:
            say(f"{row['policy']}: {sentence}")
        if row["refused"]:
            say(f"{row['policy']} is refused: {row['refused']}")


def _show_differences(rows: list[dict[str, Any]]) -> None:
    """How much more each policy earns than the baseline, by the same rounds."""
    if not rows:
        return
    at_any_time = rows[0]["p_value"] is not None
    caption = f"What is earned beyond {rows[0]['baseline']}, by the same rounds. "
    if at_any_time:
        caption += (
            "The first interval is for one look; the second, and p, hold however often you look."
        )
    else:
        caption += "The interval is for one look."
    table = Table(
        title="Trained on this log: differences",
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for name in ("difference", "interval", *(("at any time", "p") if at_any_time else ())):
        table.add_column(name, justify="right", no_wrap=True)

    def cells(row: dict[str, Any], narrow: bool) -> list[str]:
        once = _digits(row, "difference", narrow=narrow)
        if not at_any_time:
            return [*once]
        _, always = _digits(row, "difference", "_anytime", narrow=narrow)
        return [*once, always, f"{row['p_value']:.2g}"]

    _fill(table, rows, cells)
    out.print(table)
