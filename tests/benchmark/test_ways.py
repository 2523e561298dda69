"""Explorers over prepared numbers and as agents, side by side in one benchmark."""

import json

import pytest
from typer.testing import CliRunner

from melee import prepare, rehearse, simulate
from melee.benchmark import cells
from melee.benchmark.cells import agent_version, code_version
from melee.benchmark.facts import Facts
from melee.benchmark.run import AS_AGENT, estimate, load_results
from melee.benchmark.store import CellStore
from melee.cli import app
from melee.datasets import load_suite
from melee.errors import InputError, UnknownNameError
from melee.report.data import collect
from tests.benchmark.made import InlineEngine, NoEngine, bench, write_suite
from tests.benchmark.test_cells import a_plan, keys, sources

__all__ = ["sources"]

SPECS = ["uniform", "linucb"]
BOTH = ["uniform", "uniform as agent", "linucb", "linucb as agent"]


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def both(suite, tmp_path_factory):
    """The directory of a run in both ways, and its results."""
    out = tmp_path_factory.mktemp("ways") / "out"
    return out, bench(suite, out, specs=SPECS, way="both", engine=InlineEngine())


def test_both_ways_stand_side_by_side_and_are_what_they_say(both, suite):
    _, results = both
    assert results.explorers == BOTH
    assert sorted(results.complete_datasets()) == ["graded", "plain", "three"]
    task = load_suite(suite).entry("three").load(keep_rows=True)
    prepared = prepare(task, seed=1)
    for label, play in [("linucb", simulate), ("linucb as agent", rehearse)]:
        run = play(prepared, "linucb", seed=1)
        assert results.cell("three", label, 1).rewards.tolist() == run.rewards.tolist()


def test_processes_give_the_same(both, suite, tmp_path):
    again = bench(suite, tmp_path / "out", specs=SPECS, way="both", workers=2)
    assert again.fingerprint() == both[1].fingerprint()


@pytest.mark.parametrize("way", ["prepared", "agent"])
def test_one_way_after_the_other_finds_what_is_done(both, suite, way):
    results = bench(suite, both[0], specs=SPECS, way=way, engine=NoEngine())
    assert len(results.explorers) == 2
    bench(suite, both[0], specs=SPECS, way="both", engine=NoEngine())


def test_the_report_has_both_and_says_what_an_agent_is(both):
    said = call("results", both[0], "--format", "json")
    assert sorted({row["explorer"] for row in json.loads(said.stdout)}) == sorted(BOTH)
    data = collect(both[1])
    assert data.explorers == BOTH
    assert ("as agent", AS_AGENT) in dict(data.about)["Benchmark"]


def test_what_agents_refuse_is_left_out_with_the_reason(suite, tmp_path):
    plan = a_plan(suite, ["full-information", "uniform", "melee-paper"], way="both")
    assert plan.explorers == ("full-information", "uniform", "uniform as agent", "melee-paper")
    assert sorted(plan.left_out) == ["full-information as agent", "melee-paper as agent"]
    assert "which only a simulation knows" in plan.left_out["full-information as agent"]
    with pytest.raises(InputError, match="no explorer is left: full-information: it learns from"):
        a_plan(suite, ["full-information"], way="agent")
    rest = ["--explorers", "uniform,full-information", "--seeds", 1, "--as", "agent", "--dry-run"]
    said = call("bench", "--suite", suite, "--out", tmp_path / "out", *rest)
    assert said.exit_code == 0
    assert "melee: full-information as agent is left out: full-information: it" in said.stderr


def test_an_unknown_way_is_refused(suite):
    with pytest.raises(UnknownNameError, match=r"unknown way to play 'agents'; did you mean"):
        a_plan(suite, way="agents")


def test_a_key_is_of_the_way(suite):
    plans = {way: a_plan(suite, SPECS, way=way) for way in ("prepared", "agent", "both")}
    readable = {
        way: {c.key for d in plan.datasets if d.content_hash for c in plan.cells[d.name]}
        for way, plan in plans.items()
    }
    assert not readable["prepared"] & readable["agent"]
    assert readable["both"] == readable["prepared"] | readable["agent"]


def write_levels(directory, rare):
    """A table one of whose levels is so rare that it is folded into `other`."""
    directory.mkdir()
    rows = [f"{i % 7},{'ab'[i % 2]},{'xy'[i % 2]}" for i in range(300)]
    rows[10], rows[20] = (f"3,{level},x" for level in rare)
    (directory / "t.csv").write_text("\n".join(["n,level,target", *rows]))
    return directory


def test_an_agents_key_is_of_the_rows_as_they_were_read(tmp_path):
    first = write_levels(tmp_path / "a", rare=["q", "r"])
    second = write_levels(tmp_path / "b", rare=["s", "t"])
    assert keys(a_plan(first)) == keys(a_plan(second))  # the numbers are the same
    assert keys(a_plan(first, way="agent")) != keys(a_plan(second, way="agent"))


@pytest.mark.parametrize("name", ["agent/knowledge.py", "features.py", "rows.py", "rehearsal.py"])
def test_an_edit_of_an_agents_code_concerns_agents_only(sources, name):
    before = (code_version.__wrapped__(), agent_version.__wrapped__())
    (sources / name).write_text((sources / name).read_text() + "\nEXTRA = 1\n")
    assert code_version.__wrapped__() == before[0]
    assert agent_version.__wrapped__() != before[1]


def test_another_version_of_agents_has_other_keys(tmp_path, monkeypatch):
    suite = write_suite(tmp_path / "suite")
    before = a_plan(suite, way="both")
    monkeypatch.setattr(cells, "agent_version", lambda: "another")
    after = a_plan(suite, way="both")
    for one, other in zip(before.cells["plain"], after.cells["plain"], strict=True):
        assert (one.key == other.key) == (one.explorer == "uniform")


def test_rows_are_read_when_an_agent_needs_them_first(tmp_path):
    suite, facts = write_suite(tmp_path / "suite"), Facts()
    plain = a_plan(suite, facts=facts)
    assert {one.rows_hash for one in plain.datasets} == {""}
    facts = Facts(facts.used)
    hashes = {one.name: one.rows_hash for one in a_plan(suite, facts=facts, way="agent").datasets}
    assert all(hashes[name] for name in ("graded", "plain", "three"))
    facts = Facts(facts.used)
    again = a_plan(suite, facts=facts)  # what is known stays known
    assert {one.name: one.rows_hash for one in again.datasets} == hashes


def test_code_of_agents_that_changed_since_the_plan_is_not_played(tmp_path, monkeypatch):
    suite = write_suite(tmp_path / "suite")

    class Changing(InlineEngine):
        def run(self, groups):
            monkeypatch.setattr(cells, "agent_version", lambda: "another")
            yield from super().run(groups)

    results = bench(suite, tmp_path / "out", specs=["uniform"], way="both", engine=Changing())
    assert results.cell("plain", "uniform", 0).problem == ""
    said = results.cell("plain", "uniform as agent", 0).problem
    assert "its policy or the agent's code changed while the benchmark was running" in said


def test_a_table_that_changed_since_the_plan_is_not_played(tmp_path):
    suite = write_levels(tmp_path / "a", rare=["q", "r"])
    plan = a_plan(suite, way="both")

    class Changing(InlineEngine):
        def run(self, groups):
            text = (suite / "t.csv").read_text()
            (suite / "t.csv").write_text(text.replace(",q,", ",z,"))  # the numbers stay
            yield from super().run(groups)

    results = bench(suite, tmp_path / "out", specs=["uniform"], way="both", engine=Changing())
    assert {one.problem for one in results} == {
        "dataset t: it changed while the benchmark was running"
    }
    assert estimate(plan, None) > 0.0
    assert load_results(CellStore.read(tmp_path / "out")).failures()


def test_the_command_plays_one_dataset_in_both_ways():
    rest = ["--data", "iris", "--explorers", "linucb", "--as", "both", "--format", "json"]
    rows = json.loads(call("simulate", *rest).stdout)
    assert [(row["explorer"], row["as"]) for row in rows] == [
        ("linucb", "prepared"),
        ("linucb as agent", "agent"),
    ]
    task = load_suite("bundled").entry("iris").load(keep_rows=True)
    assert rows[1]["mean_reward"] == rehearse(task, "linucb").mean_reward
    assert rows[0]["mean_reward"] == simulate(task, "linucb").mean_reward
