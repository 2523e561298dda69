"""The command line: `python -m benchmarks.peers --out benchmarks/results`."""

import argparse
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COVTYPE = ROOT.parent / "shared/data/multiclass/covtype.csv.gz"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description="Measure MELEE beside Vowpal Wabbit, and how its cost grows.",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results", metavar="DIR")
    parser.add_argument(
        "--covtype",
        type=Path,
        metavar="FILE",
        help="covtype as CSV, target last; when left out, ../shared/data/multiclass/"
        "covtype.csv.gz if it is there, else synthetic rows of its shape",
    )
    parser.add_argument("--repeats", type=int, default=3, help="take the best of so many (3)")
    parser.add_argument("--quick", action="store_true", help="few rows: does it run at all?")
    parser.add_argument("--no-growth", action="store_true", help="the comparisons alone")
    parser.add_argument("--docs", action="store_true", help="also put tables and figure into docs/")
    given = parser.parse_args()
    if given.repeats < 1:
        parser.error(f"--repeats is {given.repeats}; expected at least 1")
    if given.covtype is not None and not given.covtype.exists():
        parser.error(f"--covtype: there is no file {given.covtype}")
    if given.docs and (given.quick or given.no_growth):
        parser.error("--docs publishes a full run; leave out --quick and --no-growth")
    return given


def main() -> int:
    given = arguments()
    for package in ("vowpalwabbit", "psutil"):
        if importlib.util.find_spec(package) is None:
            print(
                f"{package} is not installed, and this compares with it or measures by it; "
                "run `make bench-peers`, which installs it in an environment of its own",
                file=sys.stderr,
            )
            return 2
    # Only now: these import what was just looked for.
    from benchmarks.peers import compare, growth, report

    found = COVTYPE if COVTYPE.exists() and not given.quick else None
    covtype_file = given.covtype or found
    n_rounds = 1_000 if given.quick else 10_000
    results, parts = compare.compare_all(n_rounds, given.repeats)
    grown = None
    if not given.no_growth:
        sizes = growth.QUICK if given.quick else growth.Sizes()
        grown = growth.measure(sizes, given.repeats, covtype_file)
    text = report.save(given.out, results, parts, grown, given.repeats)
    print(text)
    missed = [r for r in results if r.met is False]
    for r in missed:
        print(f"✗ missed: {r.title}, K={r.n_actions}: {r.ratio:.1f} x, target {r.target:g} x")
    if not missed:
        print("✓ every target is met")
    if given.docs:
        report.publish(text, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
