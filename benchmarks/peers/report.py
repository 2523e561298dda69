"""What was measured, as JSON, as Markdown and as a figure."""

import dataclasses
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.pages import DOCS, put
from benchmarks.peers.compare import Parts, Result
from benchmarks.peers.growth import SPECS, Growth

MARKS = {True: "✓", False: "✗", None: ""}
COLORS = ("#0072b2", "#d55e00", "#009e73")
AXES = {
    "rows": ("rows n", "n_rounds"),
    "actions": ("actions K", "n_actions"),
    "features": ("features d", "n_features"),
}


def machine() -> dict[str, str]:
    """What the numbers were measured on and with."""
    info = Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    cpu = next((n.partition(": ")[2] for n in names if n.startswith("model name")), "")
    packages = ("numpy", "numba", "vowpalwabbit")
    return {
        "cpu": cpu or platform.processor() or platform.machine(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }


def as_json(
    results: list[Result], parts: list[Parts], growth: Growth | None, repeats: int
) -> dict[str, Any]:
    """Every number, ready for json.dumps."""
    report: dict[str, Any] = {
        "machine": machine(),
        "repetitions": repeats,
        "comparisons": [_comparison(r) for r in results],
        "vw_parts": [dataclasses.asdict(p) for p in parts],
    }
    if growth is not None:
        report["growth"] = {
            "source": growth.source,
            "slopes": {spec: growth.slope(spec) for spec in SPECS},
            "speeds": [
                {**dataclasses.asdict(s), "rows_per_second": s.rows_per_second}
                for s in growth.speeds
            ],
            "memory": [
                {**dataclasses.asdict(m), "extra_bytes": m.extra_bytes} for m in growth.memory
            ],
        }
    return report


def _comparison(result: Result) -> dict[str, Any]:
    fields = dataclasses.asdict(result)
    for side in ("ours", "vw"):
        fields[side] = getattr(result, side)._asdict()
    return {**fields, "ratio": result.ratio, "met": result.met}


def as_markdown(
    results: list[Result], parts: list[Parts], growth: Growth | None, repeats: int
) -> str:
    """The tables, widest first."""
    about = machine()
    lines = [
        f"{about['cpu']}; Python {about['python']}, NumPy {about['numpy']}, Numba "
        f"{about['numba']}, VW {about['vowpalwabbit']}. {results[0].n_rounds:,} rows of 20 "
        f"features, best of {repeats}.",
        "",
        "| | K | MELEE µs/row | VW µs/row | times faster | target | reward: MELEE | VW |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {r.title} | {r.n_actions} | {_micro(r.ours.seconds, r)} | "
        f"{_micro(r.vw.seconds, r)} | **{r.ratio:.1f}** | {_target(r)} | "
        f"{r.ours.mean_reward:.3f} | {r.vw.mean_reward:.3f} |"
        for r in results
        if r.first_call_seconds is not None
    ]
    lines += [
        "",
        "VW's other ways to the same thing, for the record:",
        "",
        "| VW options | VW µs/row | times faster | reward: VW |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| `{r.options}` | {_micro(r.vw.seconds, r)} | {r.ratio:.1f} | {r.vw.mean_reward:.3f} |"
        for r in results
        if r.first_call_seconds is None
    ]
    lines += [
        "",
        "VW's driver in parts: the parser alone (`--noop`), and learning alone from examples "
        "parsed beforehand:",
        "",
        "| VW options | parser µs/row | learner µs/row |",
        "| --- | ---: | ---: |",
    ]
    lines += [
        f"| `{p.options}` | {1e6 * p.parser_alone / p.n_rounds:.2f} | "
        f"{1e6 * p.learner_alone / p.n_rounds:.2f} |"
        for p in parts
    ]
    firsts = [r.first_call_seconds for r in results if r.first_call_seconds is not None]
    lines += [
        "",
        f"The first call of each compiles, or loads what an earlier run compiled: "
        f"{min(firsts):.2f} to {max(firsts):.2f} s, not part of the times above.",
    ]
    if growth is not None:
        lines += _growth(growth)
    return "\n".join(lines) + "\n"


def _target(result: Result) -> str:
    return "" if result.target is None else f"{result.target:g} {MARKS[result.met]}"


def _micro(seconds: float, result: Result) -> str:
    return f"{1e6 * seconds / result.n_rounds:.2f}"


def _growth(growth: Growth) -> list[str]:
    slopes = ", ".join(f"{_short(s)} n^{growth.slope(s):.2f}" for s in SPECS)
    lines = [
        "",
        f"Time against rows ({growth.source}): {slopes}.",
        "",
        "| explorer | rows | data MiB | grown in the run MiB | arrays returned MiB | rest MiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for m in growth.memory:
        sizes = (m.data_bytes, m.grown_bytes, m.output_bytes, m.extra_bytes)
        cells = " | ".join(f"{size / 2**20:.2f}" for size in sizes)
        lines.append(f"| {_short(m.spec)} | {m.n_rounds:,} | {cells} |")
    return lines


def _short(spec: str) -> str:
    return spec.partition(":")[0]


def draw(growth: Growth, directory: Path) -> list[Path]:
    """Rows per second against rows, actions and features; as SVG and as PNG."""
    options: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "melee",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(options):
        figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.6), sharey=True)
        for panel, (varied, (label, size)) in zip(panels, AXES.items(), strict=True):
            for spec, color in zip(SPECS, COLORS, strict=True):
                line = growth.of(varied, spec)
                x = [getattr(speed, size) for speed in line]
                y = [speed.rows_per_second for speed in line]
                panel.loglog(x, y, "o-", color=color, markersize=3.5, linewidth=1.4)
                panel.annotate(
                    f" {_short(spec)}", (x[-1], y[-1]), color=color, va="center", fontsize=8.5
                )
            panel.set_xlabel(label)
            panel.set_xlim(right=x[-1] * (x[-1] / x[0]) ** 0.42)
            panel.minorticks_off()
            panel.grid(alpha=0.25, linewidth=0.5)
        first = growth.speeds[0]
        fixed = next(s for s in growth.speeds if s.varied != "rows").n_rounds
        panels[0].set_title(
            f"{growth.source}: d = {first.n_features}, K = {first.n_actions}", fontsize=9
        )
        panels[1].set_title(f"synthetic: n = {fixed:,}, d = 20", fontsize=9)
        panels[2].set_title(f"synthetic: n = {fixed:,}, K = 2", fontsize=9)
        panels[2].axvline(150, color="0.6", linewidth=0.8, linestyle=":")
        panels[2].annotate(
            "linucb: exact | diagonal",
            (150, 0.98),
            xycoords=("data", "axes fraction"),
            fontsize=7.5,
            color="0.35",
            ha="center",
            va="top",
        )
        panels[0].set_ylabel("rows per second, one thread")
        figure.tight_layout()
        paths = [directory / "growth.svg", directory / "growth.png"]
        figure.savefig(paths[0], metadata={"Date": None})
        figure.savefig(paths[1], dpi=160)
        plt.close(figure)
    return paths


def save(
    directory: Path,
    results: list[Result],
    parts: list[Parts],
    growth: Growth | None,
    repeats: int,
) -> str:
    """Write peers.json, peers.md and the figure; the Markdown is returned."""
    directory.mkdir(parents=True, exist_ok=True)
    numbers = as_json(results, parts, growth, repeats)
    text = as_markdown(results, parts, growth, repeats)
    (directory / "peers.json").write_text(json.dumps(numbers, indent=1) + "\n")
    (directory / "peers.md").write_text(text)
    if growth is not None:
        draw(growth, directory)
    return text


def publish(text: str, directory: Path) -> None:
    """Put the tables between the marks in docs/benchmarks.md, and the figure beside it."""
    put("peers", text, "benchmarks.md")
    (DOCS / "figures" / "growth.svg").write_text((directory / "growth.svg").read_text())
