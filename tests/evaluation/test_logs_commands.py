"""The commands for logs: melee doctor and melee evaluate."""

import csv
import io
import json
import re
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from melee.cli import app
from melee.cli.base import out as console
from melee.errors import DataError, InputError
from melee.evaluation import evaluate_live
from melee.history import History, Round
from tests.evaluation.worlds import clean_log, without_most_failures

runner = CliRunner()
EXPLORER = "epsilon-greedy:epsilon=0.05"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "clean.jsonl"
    clean_log(500).write(path)
    return str(path)


@pytest.fixture(scope="module")
def articles(tmp_path_factory):
    """A log of candidates with features."""
    path = tmp_path_factory.mktemp("logs") / "articles.jsonl"
    rng = np.random.default_rng(0)
    rounds = []
    for i in range(300):
        shelf: Any = {f"a{i} {j}": {"topic": "ab"[j % 2], "words": float(j)} for j in range(6)}
        label = str(rng.choice(list(shelf)))
        reward = float(rng.random() < (0.7 if shelf[label]["topic"] == "a" else 0.2))
        pmf = dict.fromkeys(shelf, 1 / 6)
        rounds.append(Round({"hour": float(i % 5)}, label, reward, 1 / 6, pmf=pmf, features=shelf))
    History(rounds).write(path)
    return str(path)


@pytest.fixture
def bad_log(tmp_path):
    lines = [
        {"context": {"age": i % 9 + 20}, "action": "ab"[i % 2], "reward": 3.0, "probability": 0.5}
        for i in range(50)
    ]
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\nno round\n")
    return str(path)


def run(*arguments, width=200):
    console.width = width  # whatever the terminal of the tests is
    return runner.invoke(app, list(arguments))


def test_doctor_passes_a_clean_log(log):
    result = run("doctor", log)
    assert result.exit_code == 0
    assert "calibration" in result.stdout
    assert "500 rounds, 0 errors, 0 warnings" in result.stdout.replace("\n", "")


def test_doctor_exits_with_1_on_errors_and_says_what_to_do(bad_log):
    result = run("doctor", bad_log, "--reward-range", "-2,1")
    assert result.exit_code == 1
    assert "50 rewards are not from -2 to 1: they go from 3 to 3" in result.stdout
    assert "→ mend what writes the log, or give a reward_range" in result.stdout
    assert re.search(r"50 rounds, [1-9]\d* errors?, \d+ warnings?\n", result.stdout)
    assert not re.search(r"\b1 (errors|warnings)", result.stdout)


def test_doctor_speaks_json(bad_log):
    result = run("doctor", bad_log, "--format", "json")
    assert result.exit_code == 1
    found = {one["check"]: one for one in json.loads(result.stdout)}
    assert set(found["rows"]) == {"level", "check", "found", "advice"}
    assert found["rows"]["level"] == "error"
    assert "row 51 the first" in found["rows"]["found"]
    assert found["types"]["level"] == "ok"


def test_evaluate_shows_the_log_each_explorer_and_the_reason_of_a_refusal(log):
    result = run("evaluate", log, "--explorers", f"{EXPLORER},full-information")
    assert result.exit_code == 0, result.stderr
    assert "logged" in result.stdout
    assert EXPLORER in result.stdout
    assert "refused" in result.stdout
    assert "full-information is refused: " in result.stderr


def test_evaluate_leads_with_what_explorers_would_earn_live_and_what_that_assumes(log):
    said = " ".join(run("evaluate", log, "--explorers", EXPLORER).stdout.split())
    live, trained = said.index("Live: what each would"), said.index("Trained on this log")
    assert live < trained
    for words in ("live estimate", "at any time", "beyond logged by the same rounds"):
        assert live < said.index(words) < trained
    assert "contexts and rewards not to depend on earlier decisions" in said
    assert "Each explorer learns from what the log tried, not from its own choices" in said


def test_evaluate_says_why_a_log_cannot_tell_of_live_runs(tmp_path):
    path = tmp_path / "short.jsonl"
    clean_log(150).write(path)
    result = run("evaluate", str(path), "--explorers", "uniform")
    assert result.exit_code == 0
    assert "uniform: this log cannot tell what uniform would earn live: of 150" in result.stderr
    row = json.loads(run("evaluate", str(path), "--explorers=uniform", "--format=json").stdout)[1]
    assert row["live"] is None
    assert "about 15 would be accepted" in row["live_refused"]
    assert row["refused"] is None


def test_evaluate_writes_the_same_numbers_as_csv_and_json(log):
    arguments = ("evaluate", log, "--explorers", EXPLORER, "--confidence", "0.9")
    rows = json.loads(run(*arguments, "--format", "json").stdout)
    table = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").stdout)))
    assert [row["policy"] for row in rows] == ["logged", EXPLORER]
    for row, written in zip(rows, table, strict=True):
        for name in ("dr", "dr_low", "snips_high", "ips", "effective_sample_size"):
            assert float(written[name]) == row[name]
    for name in ("live", "live_low", "live_high", "live_rounds", "live_difference_low"):
        assert float(table[1][name]) == rows[1][name]
        assert rows[0][name] is None
    found = evaluate_live(clean_log(500), EXPLORER, confidence=0.9)
    assert (rows[1]["live"], rows[1]["live_rounds"]) == (found.value, found.n_accepted)
    assert found.difference is not None
    ends = [rows[1][f"live_difference{end}"] for end in ("", "_low", "_high")]
    assert ends == list(found.difference.estimate[1:])
    ends = [rows[1][f"live_difference_anytime{end}"] for end in ("_low", "_high")]
    assert ends == [found.difference.anytime_low, found.difference.anytime_high]
    assert rows[1]["live_p_value"] == found.difference.p_value == float(table[1]["live_p_value"])
    assert np.isclose(rows[0]["ips"], clean_log(500).rewards.mean())
    assert rows[1]["dr_low"] < rows[1]["dr"] < rows[1]["dr_high"]
    assert rows[1]["refused"] is None


def test_evaluate_shows_differences_to_the_log_or_to_an_explorer(log):
    explorers = ("--explorers", f"{EXPLORER},uniform")
    arguments = ("evaluate", log, *explorers, "--estimators", "dr,switch,dros")
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    for words in ("What is earned beyond logged", "at any time", "switch", "dros"):
        assert words in result.stdout
    assert "snips" not in result.stdout
    rows = json.loads(run(*arguments, "--baseline", "uniform", "--format", "json").stdout)
    logged, one, baseline = rows
    assert baseline["difference"] is None
    assert logged["difference"] is None
    assert one["baseline"] == "uniform"
    assert np.isclose(one["difference"], one["dr"] - baseline["dr"])
    assert one["difference_anytime_low"] < one["difference_low"] < one["difference"]
    assert 0.0 < one["p_value"] <= 1.0


def test_evaluate_shows_three_digits_of_small_rates(tmp_path):
    path = tmp_path / "clicks.jsonl"
    rounds = [
        Round({"age": float(i % 7)}, "ab"[i % 2], float(i % 232 == 0), 0.5) for i in range(1160)
    ]
    History(rounds).write(path)
    result = run("evaluate", str(path), "--explorers", "uniform")
    assert "0.00431" in result.stdout  # 5 of 1160
    narrow = run("evaluate", str(path), "--explorers", "uniform", width=80)
    assert "…" not in narrow.stdout


def test_no_terminal_is_too_narrow_for_the_ends_of_intervals(log):
    def numbers(width):
        shown = run("evaluate", log, "--explorers", f"{EXPLORER},uniform", width=width).stdout
        assert "…" not in shown
        return sorted(re.findall(r"-?\b\d\.\d{3,}", shown))

    assert numbers(60) == numbers(80) == numbers(200)


def test_logs_and_options_that_cannot_be_used_are_refused(log, bad_log, tmp_path):
    def error(*arguments):
        result = run(*arguments)
        assert isinstance(result.exception, InputError | DataError)
        return str(result.exception)

    assert "--format is xml; expected table or json" in error("doctor", log, "--format", "xml")
    assert "--format is xml" in error("evaluate", log, "--format", "xml")
    assert "no such file" in error("doctor", str(tmp_path / "none.jsonl"))
    assert "line 51: not JSON" in error("evaluate", bad_log, "--strict")
    for given in ("1", "2,1", "0,1,2", "a,b", "0,inf"):
        for command in ("doctor", "evaluate"):
            said = error(command, log, "--reward-range", given)
            assert f"--reward-range is {given}; expected the least and the greatest" in said
    assert "rewards cannot be used" in error("evaluate", log, "--reward-range", "0,0.5")
    assert "did you mean 'linucb'" in error("evaluate", log, "--explorers", "linucp")
    assert "did you mean 'dros'" in error("evaluate", log, "--estimators", "dro")
    assert "unknown baseline 'best'" in error(
        "evaluate", log, "--explorers", EXPLORER, "--baseline", "best"
    )
    assert "--explorers names none" in error("evaluate", log, "--explorers", " , ")
    assert "confidence is 95.0" in error("evaluate", log, "--confidence", "95")


@pytest.fixture
def decisions(tmp_path):
    """A dsjson log with lines that hold no round, and with two bad ones."""
    path = tmp_path / "log.dsjson"
    without_most_failures(clean_log(500)).write(path)
    lines = path.read_text().splitlines()
    lines[3:3] = [json.dumps({**json.loads(lines[3]), "_skipLearn": True})] * 3
    lines.append(json.dumps({"RewardValue": 1.0, "EventId": "e9"}))
    lines += [json.dumps({**json.loads(lines[0]), "pdrop": wrong}) for wrong in (1, 2)]
    path.write_text("\n".join(lines) + "\n")
    return str(path), len(lines)


def test_the_commands_say_how_many_lines_are_left_out_and_why(decisions):
    path, n_lines = decisions
    result = run("evaluate", path, "--explorers", EXPLORER, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert f"3 of {n_lines:,} rows are left out, row 4 the first: a decision that" in result.stderr
    assert f"2 of {n_lines:,} rows are left out, row {n_lines - 1} the fir" in result.stderr
    assert f"1 of {n_lines:,} rows are left out, row {n_lines - 2} the fir" in result.stderr
    logged = json.loads(result.stdout)[0]
    assert abs(logged["ips"] - clean_log(500).rewards.mean()) < 0.1
    row = json.loads(result.stdout)[1]
    assert row["difference_low"] < row["difference"] < row["difference_high"]
    assert [row[f"difference_anytime_{end}"] for end in ("low", "high")] == [None, None]
    assert row["p_value"] is None
    shown = run("evaluate", path, "--explorers", EXPLORER)
    assert "The interval is for one look." in " ".join(shown.stdout.split())
    assert "look at the difference once, as planned, or log every round" in shown.stderr
    found = json.loads(run("doctor", path, "--format", "json").stdout)
    rows = [one["found"] for one in found if one["check"] == "rows"]
    assert len(rows) == 3
    assert f"3 of {n_lines:,} rows hold no round, row 4 the first" in rows[0]
    strict = run("evaluate", path, "--explorers", EXPLORER, "--strict")
    assert f"line {n_lines - 1}: pdrop is 1" in str(strict.exception)


def test_the_format_of_a_log_may_be_told(decisions, tmp_path):
    path, _ = decisions
    other = tmp_path / "decisions.json"
    other.write_bytes((tmp_path / "log.dsjson").read_bytes())
    with pytest.raises(InputError, match=r"or give the format \(--log-format\): dsjson, jsonl"):
        runner.invoke(app, ["doctor", str(other)], catch_exceptions=False)
    told = ("--log-format", "dsjson", "--format", "json")
    for command in ("doctor", "evaluate"):
        options = () if command == "doctor" else ("--explorers", EXPLORER)
        expected = run(command, path, *options, "--format", "json").stdout
        assert run(command, str(other), *options, *told).stdout == expected


def test_a_log_that_cannot_evaluate_anything_is_refused_with_its_reason(tmp_path):
    path = tmp_path / "short.jsonl"
    clean_log(15).write(path)
    result = run("evaluate", str(path))
    assert "the log has 15 rounds; expected at least 20" in str(result.exception)
    certain = clean_log(60)
    lines = [
        {"context": one.context, "action": one.action, "reward": one.reward, "probability": 1.0}
        for one in certain
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    result = run("evaluate", str(path), "--explorers", EXPLORER)
    assert "every round was logged with probability 1" in str(result.exception)


def test_candidates_are_evaluated_by_their_features(articles):
    options = ("--explorers", "linucb:alpha=0.2,cover", "--estimators", "dr,mips")
    by_topic = run("evaluate", articles, *options, "--embedding", "topic", "--format", "json")
    _, linucb, cover = json.loads(by_topic.stdout)
    assert linucb["live"] > 0.4
    assert linucb["mips_high"] - linucb["mips_low"] < linucb["dr_high"] - linucb["dr_low"]
    assert "candidates" in cover["refused"]
    with pytest.raises(InputError, match="unknown feature of candidates 'size'"):
        runner.invoke(
            app, ["evaluate", articles, *options, "--embedding", "size"], catch_exceptions=False
        )
    shown = run("evaluate", articles, *options, "--embedding", "topic").stdout.replace("\n", " ")
    assert "mips assumes that candidates" in " ".join(shown.split())
    assert "every candidate comes with its features" in run("doctor", articles).stdout
