import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from melee import artefact
from melee.benchmark import cells, facts
from melee.benchmark.cells import Plan, code_version, source_hash
from melee.benchmark.facts import Facts
from melee.benchmark.run import make_plan
from melee.errors import DataError, InputError, UnknownNameError
from melee.explorers import EXPLORERS, parse
from melee.explorers.melee_paper import SCHEMA
from melee.task import Task
from tests.benchmark.made import UNUSABLE, USABLE, write_suite, write_table


def a_plan(suite, specs=("uniform",), **rest):
    return make_plan(str(suite), list(specs), **{"n_seeds": 1, "a_a": False} | rest)


def keys(plan):
    return [cell.key for group in plan.cells.values() for cell in group]


def one_table(directory, name="t.csv", **rest):
    directory.mkdir()
    write_table(directory / name, 80, **rest)
    return directory


def test_what_is_known_of_rewards_is_part_of_what_is_played():
    contents = {
        cells.content_of(Task("t", [[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]], reward_range=known))
        for known in (None, (0.0, 1.0), (0.0, 2.0))
    }
    assert len(contents) == 3


def test_every_cell_has_a_key_of_its_own_and_plans_agree(suite):
    rest = {"specs": ["uniform", "linucb", "linucb:alpha=0.2"], "n_seeds": 3, "a_a": True}
    plan = a_plan(suite, **rest)
    assert len(keys(plan)) == len(set(keys(plan))) == 6 * 3 * 3 * 2
    assert keys(plan) == keys(a_plan(suite, **rest))
    again = Plan.from_dict(json.loads(json.dumps(plan.as_dict())))
    assert again == plan
    assert keys(again) == keys(plan)


def test_the_key_is_of_the_content_not_of_the_name(tmp_path):
    first = keys(a_plan(one_table(tmp_path / "a", "t.csv", seed=1)))
    assert keys(a_plan(one_table(tmp_path / "b", "renamed.csv", seed=1))) == first
    assert keys(a_plan(one_table(tmp_path / "c", "t.csv", seed=2))) != first
    path = tmp_path / "a" / "t.csv"
    text = path.read_text()
    path.write_text(text.replace("c0", "z9"))  # classes change places: actions are renamed
    assert keys(a_plan(tmp_path / "a")) != first
    path.write_text(text.replace("x0", "other"))
    assert keys(a_plan(tmp_path / "a")) == first


def changed_settings():
    """Every explorer with one setting changed, whichever it is."""
    candidates = [0.37, 3, "ridge", "diagonal", "mtr", "logistic", "adaptive"]
    candidates += ["adaptive-diagonal", True, False]
    for name, kind in EXPLORERS.items():
        for field in dataclasses.fields(kind):
            if field.name == "policy":
                continue  # a directory; see below
            for value in candidates:
                if value == field.default and type(value) is type(field.default):
                    continue
                try:
                    yield pytest.param(kind(**{field.name: value}), id=f"{name}-{field.name}")
                    break
                except (InputError, TypeError):
                    continue
            else:
                # One runs over the ridge by the direct method alone; one cannot start cold.
                cannot = name == "full-information" or (name, field.name) == ("melee-paper", "cold")
                assert cannot, f"no other value for {field.name} of {name}"


@pytest.mark.parametrize("changed", list(changed_settings()))
def test_any_setting_of_any_explorer_changes_the_key(changed, tmp_path):
    default = parse(changed.name)
    suite = one_table(tmp_path / "suite")
    plan = a_plan(suite, [default.name, changed.short_spec])
    first, second = keys(plan)
    assert first != second


def test_seeds_rounds_and_replicates_change_the_key(tmp_path):
    suite = one_table(tmp_path / "suite")
    plain = keys(a_plan(suite, n_seeds=2))
    assert len(set(plain)) == 2
    assert not set(keys(a_plan(suite, n_seeds=2, max_rounds=10))) & set(plain)
    twice = keys(a_plan(suite, n_seeds=2, a_a=True))
    assert set(plain) < set(twice)  # an A/A check added later finds the first runs
    assert len(set(twice)) == 4


def retrain(source, directory, shift):
    """Another policy: the paper's with its weights moved."""
    weights = np.load(Path(source) / "weights.npz")["weights"] + shift
    features = np.random.default_rng(0).random((2, 3, len(SCHEMA)))
    artefact.save(
        directory,
        kind="melee-paper",
        schema=SCHEMA,
        arrays={"weights": weights},
        training={},
        reference={"features": features, "scores": features @ weights},
    )


def test_the_weights_of_a_policy_change_the_key_and_its_directory_alone_decides(tmp_path):
    suite, policy = one_table(tmp_path / "suite"), tmp_path / "policy"
    shutil.copytree(artefact.locate("paper"), policy)
    spec = f"melee-paper:policy={policy}"
    before = keys(a_plan(suite, [spec]))
    assert keys(a_plan(suite, [spec])) == before
    retrain(artefact.locate("paper"), policy, 0.25)
    assert keys(a_plan(suite, [spec])) != before


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the package's sources that a test may edit."""
    home = tmp_path / "melee"
    shutil.copytree(
        Path(cells.__file__).parent.parent, home, ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.setattr("melee.benchmark.cells._HOME", home)
    return home


def version():
    return code_version.__wrapped__()


def test_the_copied_sources_have_the_version_of_the_package(sources):
    assert version() == code_version()


@pytest.mark.parametrize(
    "name", ["learners/sgd.py", "loop.py", "explorers/ucb.py", "preparation.py", "rng.py"]
)
def test_an_edit_of_code_that_matters_changes_its_version(sources, name):
    before, file = version(), sources / name
    text = file.read_text()
    file.write_text(text + "\n# a comment\n")
    assert version() == before
    file.write_text(text + "\nEXTRA = 1\n")
    assert version() != before


def test_docstrings_do_not_matter(sources):
    before, file = version(), sources / "rng.py"
    file.write_text(file.read_text().replace('"""The next number in [0, 1)."""', '"""Next."""'))
    assert version() == before


@pytest.mark.parametrize("name", ["report/html.py", "cli/base.py", "figures.py", "version.py"])
def test_an_edit_of_other_code_does_not(sources, name):
    before = version()
    (sources / name).write_text((sources / name).read_text() + "\nEXTRA = 1\n")
    assert version() == before


def test_another_version_of_the_code_has_other_keys(tmp_path, monkeypatch):
    suite = one_table(tmp_path / "suite")
    before = a_plan(suite)
    monkeypatch.setattr("melee.benchmark.run.code_version", lambda: "another")
    assert not set(keys(a_plan(suite))) & set(keys(before))
    assert keys(before) == keys(Plan.from_dict(before.as_dict()))  # a stored plan keeps its own


def test_the_plan_says_what_is_wrong_with_datasets(suite):
    plan = a_plan(suite)
    assert [one.name for one in plan.datasets] == sorted(USABLE + UNUSABLE)
    problems = {one.name: one.problem for one in plan.datasets if one.problem}
    assert sorted(problems) == UNUSABLE
    assert "30 rows are reserved for calibration but it has only 20" in problems["short"]
    assert "only the class 'same'; a task needs at least 2 classes" in problems["one"]
    assert "line 3 has 2 fields and the header has 3" in problems["torn"]
    assert [plan.n_rounds(one) for one in plan.datasets if not one.problem] == [30, 60, 90]


@pytest.mark.parametrize(
    ("specs", "rest", "sentence"),
    [
        ([], {}, "no explorers are given"),
        (["linucp"], {}, "did you mean 'linucb'"),
        ([parse("linucb").spec, "linucb", "uniform"], {}, "linucb is given twice"),
        (["melee-paper:policy=/nowhere"], {}, "unknown policy"),
        (["uniform"], {"n_seeds": 0}, "seeds is 0"),
        (["uniform"], {"max_rounds": 0}, "max_rounds is 0"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_runs(suite, specs, rest, sentence):
    with pytest.raises(InputError, match=sentence):
        a_plan(suite, specs, **rest)


def test_a_wrong_suite_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match="Known: bundled, paper300, production, catalogue"):
        a_plan("bundle")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty holds no datasets; put files there that end in"):
        a_plan(tmp_path / "empty")


@pytest.fixture
def counted(monkeypatch):
    """The names of the files that are read."""
    import melee.datasets.suites as suites

    read, real = [], vars(suites)["read_table"]

    def counting(path, **rest):
        read.append(Path(path).name)
        return real(path, **rest)

    monkeypatch.setattr(suites, "read_table", counting)
    return read


def plan_again(suite, out):
    known = Facts.read(out)
    plan = a_plan(suite, facts=known)
    known.save(out)
    return plan


def test_datasets_are_read_again_only_when_their_files_change(tmp_path, counted):
    suite, out = write_suite(tmp_path / "suite"), tmp_path
    first = plan_again(suite, out)
    assert len(counted) == 6
    counted.clear()
    assert plan_again(suite, out) == first
    assert counted == ["one.csv", "torn.csv"]  # what could not be read is tried again
    counted.clear()
    text = (suite / "plain.csv").read_text()
    times = (suite / "plain.csv").stat()
    (suite / "plain.csv").write_text(text.replace("c0", "c5"))  # the same size …
    os.utime(suite / "plain.csv", ns=(times.st_atime_ns, times.st_mtime_ns))  # … and the same date
    assert plan_again(suite, out) != first
    assert counted == ["one.csv", "plain.csv", "torn.csv"]
    counted.clear()
    (suite / "MANIFEST.csv").write_text("file,name\nplain.csv,plain\n")
    assert len(plan_again(suite, out).datasets) == 1
    assert counted == ["plain.csv"]


def test_another_reader_reads_all_again(tmp_path, counted, monkeypatch):
    suite = write_suite(tmp_path / "suite")
    plan_again(suite, tmp_path)
    counted.clear()
    monkeypatch.setattr(facts, "_reader", lambda: ["another"])
    plan_again(suite, tmp_path)
    assert len(counted) == 6
    assert source_hash("datasets", "task") != source_hash("task")


def test_damaged_facts_are_not_believed(tmp_path, counted):
    suite = write_suite(tmp_path / "suite")
    first = plan_again(suite, tmp_path)
    file = tmp_path / "datasets.json"
    content = file.read_text()
    digest = first.datasets[-2].content_hash
    file.write_text(content.replace(digest, digest[::-1]))
    counted.clear()
    assert plan_again(suite, tmp_path) == first
    assert len(counted) == 6


def test_the_bundled_suite_is_remembered_too(tmp_path, monkeypatch):
    first = plan_again("bundled", tmp_path)
    monkeypatch.setattr("melee.datasets.suites._load_bundled", lambda name: 1 / 0)
    assert plan_again("bundled", tmp_path) == first
