"""VowpalWabbit as an explorer of benchmarks, as far as that can be tested without it."""

import json
import sys
from importlib import metadata
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from melee import Task, prepare
from melee.benchmark import cells, run
from melee.benchmark.specs import expand, listed, read, separate
from melee.benchmark.store import CellStore
from melee.benchmark.vw import GRID, Vw, grid
from melee.cli import app
from melee.errors import InputError, MissingPackageError, UnknownNameError
from melee.explorers import Problem
from melee.explorers.ranged import Ranged, met, placed
from melee.loop import problem_of
from tests.benchmark.made import InlineEngine, NoEngine, bench
from tests.benchmark.test_cells import a_plan, keys

REGCB = "vw:--cb_explore_adf --regcb"


class Workspace:
    """Plays the first action with probability 0.75, and notes what it is told."""

    made: ClassVar[list["Workspace"]] = []
    refuses = ""

    def __init__(self, options):
        if self.refuses and self.refuses in options:
            raise RuntimeError(f"unrecognised option '{self.refuses}'")
        self.options, self.lines, self.labels, self.finished = options, [], [], False
        self.n_actions = int(options.split()[1])
        Workspace.made.append(self)

    def parse(self, line):
        self.lines.append(line)
        return Example()

    def predict(self, example):
        rest = 0.25 / (self.n_actions - 1)
        return [0.75, *[rest] * (self.n_actions - 1)]

    def learn(self, example):
        assert not example.is_test, "VW would skip it in silence"
        self.labels.append(example.label)

    def finish_example(self, example):
        pass

    def finish(self):
        self.finished = True


class Example:
    label, is_test = None, True

    def set_label_string(self, label):
        self.label = label

    def set_test_only(self, is_test):
        self.is_test = is_test


@pytest.fixture
def fake(monkeypatch):
    """A package in VowpalWabbit's place, of version 1.2.3; what was made of it."""
    module = ModuleType("vowpalwabbit")
    vars(module)["Workspace"] = Workspace
    monkeypatch.setitem(sys.modules, "vowpalwabbit", module)
    version = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "1.2.3" if name == "vowpalwabbit" else version(name)
    )
    monkeypatch.setattr(Workspace, "made", [])
    return Workspace.made


def vw(spec):
    """VowpalWabbit as a SPEC describes it."""
    explorer = read(spec)
    assert isinstance(explorer, Vw)
    return explorer


def a_task(n_rows=90, reward_range=(0.0, 1.0), scale=1.0, **rest):
    rng = np.random.default_rng(0)
    rewards = scale * rng.random((n_rows, 3))
    return Task("t", rng.normal(size=(n_rows, 2)), rewards, reward_range=reward_range, **rest)


# ---------------------------------------------------------------- SPECs


@pytest.mark.parametrize(
    ("line", "specs"),
    [
        ("", []),
        (" , melee ,,", ["melee"]),
        ("melee,vw:--cb_explore_adf --regcb,linucb", ["melee", REGCB, "linucb"]),
        ('melee,vw:"--interactions ab,cd",linucb', ["melee", "vw:--interactions ab,cd", "linucb"]),
        ("vw:'-q :: --ignore a,b'", ["vw:-q :: --ignore a,b"]),
        ('"vw:--a b,c",linucb', ["vw:--a b,c", "linucb"]),
        ('vw:--a "b,c",linucb', ["vw:--a b,c", "linucb"]),
        ("vw:\"--a 'b,c'\"", ["vw:--a 'b,c'"]),
        ("melee:policy=it's,linucb", ["melee:policy=it's", "linucb"]),
        ("melee:policy='a,b'", ["melee:policy=a,b"]),
    ],
)
def test_commas_separate_specs_unless_they_are_quoted(line, specs):
    assert separate(line) == specs


def test_a_quote_that_is_not_closed_is_refused():
    with pytest.raises(InputError, match=r"a quote \(\"\) is not closed; close it, and put quotes"):
        separate('melee,vw:"--a b,c')


@pytest.mark.parametrize(
    ("spec", "written"),
    [
        ("vw", "vw:--cb_explore_adf"),
        ("vw:", "vw:--cb_explore_adf"),
        (" vw : --regcb", REGCB),
        ("vw:--regcb --cb_explore_adf", REGCB),
        ("vw:--cb_explore_adf   --regcb", REGCB),
        ("vw:-q :: -l 0.5", "vw:--cb_explore_adf -q :: -l 0.5"),
        ("vw:-l0.5 --cover=4", "vw:--cb_explore_adf -l0.5 --cover=4"),
    ],
)
def test_options_are_what_follows_the_first_colon(spec, written):
    explorer = read(spec)
    assert isinstance(explorer, Vw)
    assert explorer.spec == explorer.short_spec == written
    assert read(written) == read(listed(explorer)) == explorer
    assert "--cb_explore_adf" not in listed(explorer)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("vw:regcb", "'regcb' is neither an option of VowpalWabbit nor the value of one"),
        ("vw:--epsilon 0.1 0.2", "'0.2' is neither an option of VowpalWabbit nor"),
        ("vw:--cb_explore 3", "--cb_explore is for the benchmark to set, or has"),
        ("vw:-d rows.vw", "-d is for the benchmark to set, or has VowpalWabbit read or write"),
        ("vw:-drows.vw", "-d is for the benchmark to set"),
        ("vw:--final_regressor=x", "--final_regressor is for the benchmark to set"),
        ("vw:--random_seed 3", "leave it out and give the options that go with --cb_explore_adf"),
        ("vw:--cb_min_cost 2", "expected two numbers, the first one lower"),
        ("vw:--cb_max_cost=nan", "expected two numbers, the first one lower"),
        ("vw:--cb_min_cost --regcb", "expected two numbers, the first one lower"),
        ("--b 2", "options of VowpalWabbit that hold one need quotes that the shell leaves"),
    ],
)
def test_options_that_cannot_be_are_refused_with_the_reason(spec, sentence):
    with pytest.raises(InputError, match=f"explorer '{spec}'.*{sentence}"):
        read(spec)


def test_other_names_are_explorers_of_ours():
    assert read("linucb:alpha=0.2").short_spec == "linucb:alpha=0.2"
    with pytest.raises(UnknownNameError, match="unknown explorer 'vww'"):
        read("vww:--regcb")


def test_the_grid_is_a_word_for_many():
    assert len(grid()) == len(set(grid())) == 6 * sum(map(len, GRID.values()))
    assert expand(["uniform", " vw: grid"]) == ["uniform", *grid()]
    assert [read(spec).spec for spec in grid()] == grid()


# ---------------------------------------------------------------- playing


def test_it_plays_the_rows_of_all_others_and_is_told_costs(fake):
    task = a_task()
    prepared = prepare(task, seed=1)
    run = vw("vw:--regcb -l 2").play(prepared, seed=5)
    [made] = fake
    assert made.options.startswith("--cb_explore 3 --regcb -l 2 --random_seed ")
    assert made.options.endswith(" --quiet")
    assert made.finished
    inputs = prepared.inputs(prepared.order)[:, :-1]
    assert made.lines == [f"| f0:{a:.9g} f1:{b:.9g}" for a, b in inputs.tolist()]
    rewards = task.rewards[prepared.order, run.actions]
    assert run.rewards.tolist() == rewards.tolist()
    told = [label.split(":") for label in made.labels]
    assert [int(action) - 1 for action, _, _ in told] == run.actions.tolist()
    assert np.allclose([float(cost) for _, cost, _ in told], 1 - rewards, atol=1e-8)
    assert run.probabilities.tolist() == np.where(run.actions == 0, 0.75, 0.125).tolist()
    assert run.seconds > 0.0
    assert run.share is None


def test_actions_are_drawn_as_often_as_it_says(fake):
    run = vw("vw").play(prepare(a_task(4030), seed=0))
    assert np.bincount(run.actions) / 4000 == pytest.approx([0.75, 0.125, 0.125], abs=0.025)


def test_a_seed_is_one_sequence_of_draws(fake):
    prepared = prepare(a_task(), seed=0)
    first, again, other = (vw("vw").play(prepared, seed=seed).actions for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()
    assert fake[0].options == fake[1].options != fake[2].options


def test_shares_are_counted_where_expected_rewards_are_known(fake):
    rng = np.random.default_rng(0)
    task = a_task(expected=rng.random((90, 3)))
    run = vw("vw").play(prepare(task, seed=0))
    assert run.share is not None
    assert run.expected_reward == task.expected[run.prepared.order, run.actions].mean()


@pytest.mark.parametrize("known", [(0.0, 40.0), None])
def test_rewards_in_other_units_are_mapped_as_for_explorers_that_need_that(fake, known):
    task = a_task(reward_range=known, scale=40.0)
    prepared = prepare(task, seed=0)
    explorer = vw("vw:--cb_min_cost -1 --cb_max_cost 0")
    run = explorer.play(prepared, seed=0)
    if known:
        units = run.rewards / 40
    else:  # as a state behind the layer of our own explorers sees them
        found = explorer.range_of(problem_of(prepared, prepared.n_rounds))
        labelled = task.rewards[prepared.labelled]
        layer = Ranged.around(None, found, 3, labelled, sees_all=False)
        units = [placed(layer.range, met(layer.range, reward)) for reward in run.rewards]
    costs = [float(label.split(":")[1]) for label in fake[0].labels]
    assert np.allclose(costs, -np.array(units), atol=1e-8)
    assert min(costs) >= -1.0
    assert max(costs) <= 0.0


# ---------------------------------------------------------------- in a benchmark


def test_it_stands_in_the_table_and_is_not_played_again(fake, suite, tmp_path):
    specs = ["uniform", "vw:--regcb"]
    results = bench(suite, tmp_path / "out", specs=specs, engine=InlineEngine())
    assert results.explorers == ["uniform", "vw:--regcb"]
    assert sorted(results.complete_datasets()) == ["graded", "plain", "three"]
    one = results.cell("three", "vw:--regcb", 1)
    assert one.seconds > 0.0
    assert len(one.rewards) == one.n_rounds == 90
    assert results.about["VowpalWabbit"] == "1.2.3"
    assert results.about["settings"]["vw:--regcb"] == REGCB
    bench(suite, tmp_path / "out", specs=specs, engine=NoEngine())
    with CellStore.open(tmp_path / "out") as store:
        assert run.load_results(store).fingerprint() == results.fingerprint()


def test_its_keys_are_of_its_version_its_options_and_the_code_that_it_is_played_by(
    fake, suite, monkeypatch
):
    mine = keys(a_plan(suite, ["vw:--regcb"]))
    assert keys(a_plan(suite, ["vw: --regcb --cb_explore_adf"])) == mine
    assert set(keys(a_plan(suite, ["vw:--squarecb"]))).isdisjoint(mine)
    ours = keys(a_plan(suite, ["linucb"]))
    monkeypatch.setattr(run, "code_version", lambda: "another")
    assert keys(a_plan(suite, ["vw:--regcb"])) == mine  # a change of ours leaves its runs
    assert set(keys(a_plan(suite, ["linucb"]))).isdisjoint(ours)
    with monkeypatch.context() as patched:
        patched.setattr(cells, "vw_version", lambda: "another")
        assert set(keys(a_plan(suite, ["vw:--regcb"]))).isdisjoint(mine)
    monkeypatch.setattr(metadata, "version", lambda name: "1.2.4")
    assert set(keys(a_plan(suite, ["vw:--regcb"]))).isdisjoint(mine)


def test_the_second_runs_of_an_a_a_check_draw_otherwise(fake, suite, tmp_path):
    out = tmp_path / "out"
    first = bench(suite, out, specs=["vw"], n_seeds=1, a_a=True, engine=InlineEngine())
    with CellStore.open(out) as store:
        second = run.load_results(store, replicate=1)
    rewards = [one.cell("three", "vw", 0).rewards.tolist() for one in (first, second)]
    assert rewards[0] != rewards[1]


def test_options_are_tried_before_the_first_cell(fake, suite, monkeypatch):
    monkeypatch.setattr(Workspace, "refuses", "--nosuch")
    with pytest.raises(InputError, match=r"refuses these options \(unrecognised option '--nosuch'"):
        a_plan(suite, ["vw:--nosuch"])
    with pytest.raises(InputError, match="explorer vw:--regcb is given twice"):
        a_plan(suite, ["vw:--regcb", REGCB])


def test_as_an_agent_it_is_left_out_and_live_datasets_say_why(fake, suite, tmp_path):
    plan = a_plan(suite, ["vw", "uniform"], way="both")
    assert list(plan.left_out) == ["vw as agent"]
    [reason] = plan.left_out.values()
    assert "is no explorer of an agent or a simulation" in reason
    live = a_task(delays=np.zeros(90, int))
    with pytest.raises(InputError, match="its actions come and go, or its rewards come late, and"):
        vw("vw").play(prepare(live))
    with pytest.raises(InputError, match="no explorer of an agent or a simulation"):
        vw("vw").start(Problem(1, 2))


def test_without_the_package_its_extra_is_asked_for(suite, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    asks = (
        r"explorer vw needs vowpalwabbit, which is not installed: pip install 'melee-bandits\[vw\]'"
    )
    with pytest.raises(MissingPackageError, match=asks):
        a_plan(suite, ["vw:--regcb"])
    with pytest.raises(MissingPackageError, match=asks):
        vw("vw").play(prepare(a_task()))
    said = CliRunner().invoke(
        app,
        ["bench", "--suite", str(suite), "--out", str(tmp_path / "o"), "--explorers", "vw:grid"],
    )
    assert isinstance(said.exception, MissingPackageError)


def test_a_process_without_it_stops_and_leaves_no_failures(fake, suite, tmp_path, monkeypatch):
    class Elsewhere(InlineEngine):
        def run(self, groups):
            monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
            yield from super().run(groups)

    with pytest.raises(MissingPackageError, match="explorer vw needs vowpalwabbit"):
        bench(suite, tmp_path / "out", specs=["vw"], engine=Elsewhere())
    store = CellStore.read(tmp_path / "out")
    assert not [one for one in store.records() if "vowpalwabbit" in one.problem]


def test_the_command_line_takes_quotes_that_the_shell_left(fake, suite, tmp_path):
    line = 'uniform,vw:"--interactions ab,cd",vw:--cb_explore_adf --regcb'
    rest = ["--out", str(tmp_path / "out"), "--explorers", line, "--seeds", "1", "--dry-run"]
    said = CliRunner().invoke(app, ["bench", "--suite", str(suite), *rest], catch_exceptions=False)
    assert said.exit_code == 0
    assert "3 explorers" in said.stdout
    rest[3] = "uniform,vw:--interactions ab,cd"
    with pytest.raises(UnknownNameError, match="unknown explorer 'cd'"):
        CliRunner().invoke(app, ["bench", "--suite", str(suite), *rest], catch_exceptions=False)


def test_results_and_reports_need_no_vowpal_wabbit(fake, suite, tmp_path, monkeypatch):
    bench(suite, tmp_path, specs=["uniform", "vw:--regcb"], engine=InlineEngine())
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    said = CliRunner().invoke(
        app, ["results", str(tmp_path), "--format", "json"], catch_exceptions=False
    )
    assert {row["explorer"] for row in json.loads(said.stdout)} == {"uniform", "vw:--regcb"}
