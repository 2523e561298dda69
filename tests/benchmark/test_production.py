"""Uses whose expected rewards are known, in a benchmark: shares, and tasks that agents play."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from melee import prepare, rehearse, simulate
from melee.benchmark import work
from melee.benchmark.facts import Facts
from melee.benchmark.run import make_plan, pending
from melee.benchmark.store import CellStore
from melee.cli import app
from melee.datasets import load_suite, suites, uses
from melee.datasets.payments import Clicks
from melee.datasets.production import Use
from tests.benchmark.made import InlineEngine, NoEngine, bench

SMALL = {
    "plain": Use(pays=Clicks(0.3), n_rounds=300, n_actions=3, n_features=2, effect="linear"),
    "changing": Use(pays=Clicks(0.3), n_rounds=300, n_actions=6, comes_and_goes=True),
    "late": Use(pays=Clicks(0.3), n_rounds=300, n_actions=2, n_features=2, delay=20.0),
}
SPECS = ["uniform", "linucb"]


@pytest.fixture(scope="module")
def small():
    """A suite `production` of three uses that are played in no time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (suites, uses):
            patch.setattr(module, "USES", SMALL)
        work._suite.cache_clear()
        yield
    work._suite.cache_clear()


@pytest.fixture(scope="module")
def run(small, tmp_path_factory):
    out = tmp_path_factory.mktemp("production") / "out"
    return out, bench("production", out, specs=SPECS, engine=InlineEngine())


def rows_of(out, form):
    said = CliRunner().invoke(app, ["results", str(out), "--format", form], catch_exceptions=False)
    return said.stdout


def test_results_have_the_shares_of_the_runs(run):
    _, results = run
    assert results.complete_datasets() == list(SMALL)
    for name, play in [("plain", simulate), ("changing", rehearse), ("late", rehearse)]:
        task = load_suite("production").entry(name).load(keep_rows=True)
        expected = play(prepare(task, seed=1), "linucb", seed=1)
        found = results.cell(name, "linucb", 1)
        assert found.rewards.tolist() == expected.rewards.tolist()
        assert found.share == expected.share
        assert found.expected_reward == expected.expected_reward
        assert found.share is not None


def test_the_command_shows_shares_in_every_format(run):
    out, results = run
    rows = json.loads(rows_of(out, "json"))
    assert [row["share"] for row in rows] == [one.share for one in results]
    assert [row["expected_reward"] for row in rows] == [one.expected_reward for one in results]
    table = list(csv.DictReader(io.StringIO(rows_of(out, "csv"))))
    assert [float(row["share"]) for row in table] == [one.share for one in results]
    assert "share" in rows_of(out, "table")


def test_where_expected_rewards_are_not_known_nothing_is_shown(suite, tmp_path):
    bench(suite, tmp_path / "out", specs=["uniform"], n_seeds=1, engine=InlineEngine())
    rows = json.loads(rows_of(tmp_path / "out", "json"))
    assert {(row["share"], row["expected_reward"]) for row in rows} == {(None, None)}
    table = list(csv.DictReader(io.StringIO(rows_of(tmp_path / "out", "csv"))))
    assert {(row["share"], row["expected_reward"]) for row in table} == {("", "")}
    assert "share" not in rows_of(tmp_path / "out", "table")


def test_live_tasks_are_played_by_agents_whatever_was_asked_for(run, small):
    out, _ = run
    plan = make_plan("production", SPECS, n_seeds=2, a_a=False, way="both")
    with CellStore.open(out) as store:
        left = pending(plan, store)
    assert [group.dataset.name for group in left] == ["plain"]
    assert {cell.explorer for cell in left[0].cells} == {"uniform as agent", "linucb as agent"}
    for name in ("changing", "late"):  # both labels stand for the same runs
        keys = {cell.explorer: cell.key for cell in plan.cells[name] if cell.seed == 0}
        assert keys["linucb"] == keys["linucb as agent"] != keys["uniform"]


def test_two_labels_of_one_run_are_played_once(small, tmp_path):
    plan = make_plan("production", ["uniform"], n_seeds=1, a_a=False, way="both")
    with CellStore.open(tmp_path / "out") as store:
        groups = {group.dataset.name: len(group.cells) for group in pending(plan, store)}
    assert groups == {"plain": 2, "changing": 1, "late": 1}


def test_the_notes_say_which_tasks_were_played_by_agents(run):
    assert "rewards come late: changing, late" in run[1].about["live datasets"]


def test_an_explorer_that_agents_refuse_fails_on_live_tasks_with_the_reason(small, tmp_path):
    results = bench(
        "production", tmp_path / "out", specs=["full-information"], n_seeds=1, engine=InlineEngine()
    )
    assert results.cell("plain", "full-information", 0).problem == ""
    assert "only a simulation knows" in results.cell("late", "full-information", 0).problem


def test_what_is_done_is_not_made_again(run, small, monkeypatch):
    out, results = run
    again = bench("production", out, specs=SPECS, engine=NoEngine())
    assert again.fingerprint() == results.fingerprint()
    facts = Facts()
    make_plan("production", ["uniform"], n_seeds=1, facts=facts)
    monkeypatch.setattr(uses, "task_of", None)
    plan = make_plan("production", ["uniform"], n_seeds=1, facts=Facts(facts.used))
    assert [(one.name, one.live, one.problem) for one in plan.datasets] == [
        ("plain", False, ""),
        ("changing", True, ""),
        ("late", True, ""),
    ]
    assert all(one.rows_hash for one in plan.datasets if one.live)
