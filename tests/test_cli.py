import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from melee.cli import app
from melee.errors import MeleeError
from melee.explorers import EXPLORERS
from melee.version import __version__
from tests.benchmark.made import InlineEngine


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_help_answers_without_importing_the_compiler():
    code = (
        "import sys, melee.cli; melee.cli.app(['--help'], standalone_mode=False);"
        "assert not {'numba', 'sklearn', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "simulate" in done.stdout


def test_help_shows_commands_by_what_they_are_for():
    said = run("--help").output
    first = ["Agents", "serve", "journal", "Their logs", "doctor", "Simulations", "demo", "train"]
    places = [said.index(f" {word} ") for word in first]
    assert places == sorted(places)


def test_simulate_prints_the_return_and_draws_the_curves(tmp_path):
    for name in ["curve.png", "curve.svg"]:
        result = run(
            *[
                "simulate",
                "--data",
                "iris",
                "--explorer",
                "linucb:alpha=0.2",
                "--explorer",
                "uniform",
            ],
            *["--curve", tmp_path / name],
        )
        assert result.exit_code == 0
        assert "linucb:alpha=0.2" in result.output
        assert "uniform" in result.output
        assert "120 rounds" in result.output
        assert (tmp_path / name).stat().st_size > 5_000


def test_simulate_in_json_says_what_python_says():
    from melee import load_suite, simulate

    result = run(
        "simulate", "--data", "iris", "--explorers", "linucb", "--seed", 3, "--format", "json"
    )
    (row,) = json.loads(result.stdout)
    expected = simulate(load_suite("bundled").entry("iris").load(), "linucb", seed=3)
    assert row["mean_reward"] == expected.mean_reward
    assert row["n_rounds"] == 120
    assert row["seed"] == 3


def test_simulate_reads_a_file_and_tells_what_it_did_to_it(tmp_path):
    rows = "\n".join(f"{i % 7},k{i},{'yes' if i % 7 > 3 else 'no'}" for i in range(90))
    (tmp_path / "t.csv").write_text("a,key,target\n" + rows)
    result = run("simulate", "--data", tmp_path / "t.csv", "--explorers", "linucb")
    assert result.exit_code == 0
    assert "60 rounds" in result.output
    assert "key" in result.output  # left out, and said so


def test_simulate_takes_rewards_in_any_unit(tmp_path):
    rows = "\n".join(f"{i % 7},{-900 - i % 7},{-2000 + 300 * (i % 7)}" for i in range(90))
    (tmp_path / "euros.csv").write_text("x,reward:small,reward:large\n" + rows)
    result = run(
        *["simulate", "--data", tmp_path / "euros.csv", "--explorers", "linucb"],
        *["--as", "both", "--curve", tmp_path / "curve.svg"],
    )
    assert result.exit_code == 0, result.output
    assert "so far, from -" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "iris", "--explorers", "linucp"], "did you mean 'linucb'"),
        (["--data", "iris", "--explorers", ","], "--explorers names none; expected SPECs"),
        (["--data", "iris", "--explorers", "linucb:beta=1"], "unknown parameter of linucb 'beta'"),
        (["--data", "nope.csv", "--explorers", "linucb"], "nope.csv: there is no such file"),
        (["--data", "iris", "--explorers", "linucb", "--curve", "c.pdf"], r"\.png or \.svg"),
        (["--data", "iris", "--explorers", "linucb", "--curve", "no/c.svg"], "no directory no"),
        (["--data", "iris", "--explorers", "linucb", "--format", "xml"], "expected table or json"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MeleeError, match=sentence):
        run("simulate", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_command_exits_with_2_and_one_line():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "melee.cli",
            "simulate",
            "--data",
            "no.csv",
            "--explorers",
            "uniform",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("melee: no.csv")
    assert len(done.stderr.splitlines()) == 1


def test_datasets_lists_suites(tmp_path):
    assert "breast_cancer" in run("datasets").output
    assert "300" in run("datasets", "--suite", "paper300").output
    with pytest.raises(MeleeError, match="bundled, paper300"):
        run("datasets", "--suite", "nothing")


def test_explorers_lists_every_name():
    output = run("explorers").output
    for name in EXPLORERS:
        assert name in output


def test_demo_compares_every_explorer_and_writes_a_report(tmp_path, monkeypatch):
    # In this process, which has the machine code; the processes of bench are tested with it.
    monkeypatch.setattr("melee.benchmark.engines.engine", lambda *_, **__: InlineEngine())
    result = run("demo", "--seeds", 1, "--out", tmp_path / "demo")
    assert result.exit_code == 0
    for name in [*EXPLORERS, "iris", "digits"]:
        assert name in result.output
    assert "report.html" in result.output
    assert "gated-ucb" in (tmp_path / "demo" / "report.html").read_text()


def test_the_package_runs_as_the_command_line_does():
    answers = [
        subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True)
        for module in ("melee", "melee.cli")
    ]
    assert [done.stdout for done in answers] == [f"melee {__version__}\n"] * 2
