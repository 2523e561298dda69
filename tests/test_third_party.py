"""Explorers and learners of other packages: found, refused, kept apart in a benchmark."""

import os
import shutil
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import melee
from melee.arrays import Floats, Scratch
from melee.benchmark.cells import identity
from melee.benchmark.run import make_plan, pending
from melee.benchmark.store import CellStore
from melee.benchmark.work import Times, play_group
from melee.compiled import implements
from melee.errors import InputError, MeleeWarning, UnknownNameError
from melee.explorers import Explorer, LearningExplorer, distribution, learn, parse
from melee.explorers import registry as explorers
from melee.explorers.softmax import Softmax
from melee.learners import Learner, correct, n_rows, predict
from melee.learners import registry as learners
from melee.learners.linear import dot, dot_row
from melee.learners.offers import choice
from melee.settings import count, number
from melee.testing import check_explorer, check_learner, checks_for_explorer
from tests import naive
from tests.benchmark.made import write_suite
from tests.seldom import OF_UNKNOWN_RANGE
from tests.test_cli import run
from tests.twins import of_class

EXAMPLE = Path(__file__).parent.parent / "examples" / "boltzmann_decay"


@pytest.fixture(autouse=True)
def registries(monkeypatch):
    """Registries of which a test may do what it likes; what it adds is forgotten."""
    for registry in (explorers.REGISTRY, learners.REGISTRY):
        monkeypatch.setattr(registry, "_added", {})
        monkeypatch.setattr(registry, "_found", {})
    explorers._parse.cache_clear()
    modules = set(sys.modules)
    yield
    explorers._parse.cache_clear()
    for name in set(sys.modules) - modules:
        if name.startswith(("melee_boltzmann", "made_up")):
            del sys.modules[name]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes packages that look installed, without an installer."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def make(package, entry_points, version="1.0.0"):
        about = site / f"{package.replace('-', '_')}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        lines = []
        for group, points in entry_points.items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        return site

    return make


@pytest.fixture
def example(install):
    """The example, as its own pyproject.toml describes it; its file may be edited."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    site = install(project["name"], project["entry-points"], project["version"])
    shutil.copy(EXAMPLE / "melee_boltzmann_decay.py", site)
    return site / "melee_boltzmann_decay.py"


def made_up(site, name, kind="Explorer", text=""):
    """A module with an explorer of that name."""
    (site / f"made_up_{name.replace('-', '_')}.py").write_text(
        "from dataclasses import dataclass\n"
        "from melee.explorers.softmax import Softmax as Explorer\n"
        f"{text}\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        f"class Made({kind}):\n"
        f'    """Made up."""\n    name = {name!r}\n'
    )


# --- found --------------------------------------------------------------------------------------


def test_an_explorer_of_another_package_is_played_by_its_spec(example, easy):
    assert "melee_boltzmann_decay" not in sys.modules
    parse("linucb")
    assert "melee_boltzmann_decay" not in sys.modules  # nobody asked for it
    spec = "boltzmann-decay:temperature=0.5"
    reached = melee.simulate(easy, spec, seed=1)
    assert reached.explorer.short_spec == spec
    assert reached.mean_reward > 0.7
    agent = melee.Agent(["a", "b"], spec, seed=1)
    decision = agent.act({"size": 1.0})
    agent.learn(decision.id, 1.0)
    again = melee.Agent.from_bytes(agent.to_bytes())
    assert again.explorer == spec
    assert again.pmf({"size": 1.0}) == agent.pmf({"size": 1.0})


def test_the_page_on_it_shows_the_example_as_it_is():
    page = (EXAMPLE.parent.parent / "docs" / "how-to" / "own-explorer.md").read_text()
    assert (EXAMPLE / "melee_boltzmann_decay.py").read_text() in page
    entry_points = (EXAMPLE / "pyproject.toml").read_text().split("\n\n")[2]
    assert entry_points.partition("\n")[2] in page
    test = (EXAMPLE / "tests" / "test_boltzmann_decay.py").read_text()
    assert test[test.index("class Definition") : test.index("def test_settings")].strip() in page


def test_the_examples_own_tests_pass(example):
    path = os.pathsep.join([str(example.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", EXAMPLE / "pyproject.toml", EXAMPLE / "tests"],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=example.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "a_run_agrees_with_its_twin" not in done.stdout


@pytest.mark.long
def test_the_example_can_be_installed(tmp_path):
    source = shutil.copytree(EXAMPLE, tmp_path / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", tmp_path / "site"]
    subprocess.run([*pip, *options, source], check=True)
    path = os.pathsep.join([str(tmp_path / "site"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "melee.cli", "explorers"],
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "melee-boltzmann-decay 1.0.0" in done.stdout


def test_the_command_line_lists_what_other_packages_bring(example, install):
    install("broken", {"melee.explorers": {"broken": "made_up_nowhere:Made"}})
    listed = run("explorers")
    row = next(line for line in listed.stdout.splitlines() if "boltzmann-decay" in line)
    assert "melee-boltzmann-decay" in row
    assert "linucb" in listed.stdout
    assert "learner" in listed.stdout
    assert "melee: explorer 'broken' of package broken 1.0.0: made_up_nowhere" in listed.stderr


def test_an_unknown_name_is_answered_with_those_of_other_packages_too(example):
    with pytest.raises(UnknownNameError, match=r"did you mean 'boltzmann-decay'\? Known: eps.*bol"):
        parse("boltzman-decay")
    assert "melee_boltzmann_decay" not in sys.modules


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "text", "sentence"),
    [
        ("gone", "Explorer", "import no_such_module", r"\(ModuleNotFoundError: No module named"),
        ("torn", "Explorer", "1 +", r"cannot be imported \(SyntaxError: .*\); repair the package"),
        ("fails", "Explorer", "1 / 0", r"\(ZeroDivisionError: division by zero\); repair"),
        ("plain", "object", "", r"is not a class derived from melee.explorers.base.Explorer"),
    ],
)
def test_a_broken_one_is_named_and_the_others_work(install, example, name, kind, text, sentence):
    site = install("broken", {"melee.explorers": {name: f"made_up_{name}:Made"}})
    made_up(site, name, kind, text)
    whole = rf"explorer '{name}' of package broken 1\.0\.0: .*{sentence}"
    with pytest.raises(InputError, match=whole):
        parse(name)
    with pytest.warns(MeleeWarning, match=whole):
        listed = explorers.REGISTRY.listed()
    assert name not in listed
    assert listed["boltzmann-decay"].package == "melee-boltzmann-decay 1.0.0"
    assert parse("boltzmann-decay").name == "boltzmann-decay"
    assert parse("linucb").name == "linucb"


def test_a_name_of_ours_is_refused(install):
    site = install("greedy", {"melee.explorers": {"linucb": "made_up_linucb:Made"}})
    made_up(site, "linucb")
    assert parse("linucb") == melee.EXPLORERS["linucb"]()
    with pytest.warns(MeleeWarning, match="package greedy 1.0.0: 'linucb' is one of melee's own"):
        assert explorers.REGISTRY.listed()["linucb"].package == "melee"


def test_a_name_that_two_packages_have_is_refused(install):
    for package in ("one", "two"):
        site = install(package, {"melee.explorers": {"twice": f"made_up_{package}:Made"}})
        made_up(site, package)
    with pytest.raises(InputError, match=r"of package one 1\.0\.0: two 1\.0\.0 has one of that"):
        parse("twice")


def test_an_entry_point_must_have_the_name_of_its_explorer(install):
    site = install("other", {"melee.explorers": {"alias": "made_up_real:Made"}})
    made_up(site, "real")
    with pytest.raises(InputError, match="it calls itself 'real'; its entry point must have"):
        parse("alias")


def test_nothing_is_said_where_nothing_is_wrong(example):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {*explorers.REGISTRY.listed()} == {*melee.EXPLORERS, "boltzmann-decay"}


# --- registered ---------------------------------------------------------------------------------


def test_a_class_is_registered_by_a_decorator_and_again_when_it_is_defined_again(easy):
    for usual in (0.1, 0.2):

        @melee.register
        @dataclass(frozen=True, kw_only=True)
        class Warm(Softmax):
            """Softmax of another name."""

            name: ClassVar[str] = "warm"
            temperature: float = number(usual, 0.0)

        assert parse("warm") == Warm()
        assert parse("warm").spec.endswith(f"temperature={usual}")
    assert melee.simulate(easy, "warm", seed=1).mean_reward > 0.7
    assert explorers.REGISTRY.listed()["warm"].package == "tests"


@dataclass(frozen=True, kw_only=True)
class Fine(Softmax):
    """Softmax of another name."""

    name: ClassVar[str] = "fine"


def changed(**attributes):
    return dataclass(frozen=True, kw_only=True)(type("Changed", (Fine,), attributes))


class Undecorated(Fine):
    name: ClassVar[str] = "undecorated"


@dataclass(frozen=True, kw_only=True)
class Unchecked(Fine):
    name: ClassVar[str] = "unchecked"
    steepness: float = 1.0


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (changed(name="linucb"), r"'linucb' is one of melee's own; give it another name"),
        (changed(name="a:b"), r"its name is 'a:b'; expected letters, digits, '-', '_' or '\.'"),
        (changed(name=3), r"its name is 3; expected letters"),
        (Undecorated, r"decorate it with @dataclass\(frozen=True, kw_only=True\)"),
        (
            Unchecked,
            r"its setting steepness is not declared by number, count, flag, text",
        ),
        (Fine(), r"is not a class derived from melee\.explorers\.base\.Explorer"),
        (dict, r"<class 'dict'> is not a class derived from"),
    ],
)
def test_what_could_not_be_used_is_not_registered(kind, sentence):
    with pytest.raises(InputError, match=sentence):
        melee.register(kind)
    assert explorers.REGISTRY.names() == list(melee.EXPLORERS)


def test_a_name_is_registered_once():
    melee.register(Fine)
    with pytest.raises(InputError, match=r"'fine' is registered already, by tests\.test_third"):
        melee.register(changed(name="fine"))
    assert parse("fine") == Fine()


# --- a learner ----------------------------------------------------------------------------------


class NlmsState(NamedTuple):
    coefficients: Floats  # (rows, D)
    rate: float

    def encourage(self, row: int, value: float, rounds: float) -> None:
        self.coefficients[row, -1] = value


@dataclass(frozen=True, kw_only=True)
class Nlms(Learner):
    """Normalised least mean squares: a part of the way to each target."""

    name: ClassVar[str] = "nlms"
    part: float = number(0.2, 0.0, 1.0, above=True)

    def start(self, n_rows, n_inputs):
        return NlmsState(np.zeros((n_rows, n_inputs)), float(self.part))


@implements(n_rows, NlmsState)
def nlms_rows(learner):
    return learner.coefficients.shape[0]


@implements(predict, NlmsState)
def nlms_predict(learner, x, row):
    return dot_row(learner.coefficients, row, x)


@implements(correct, NlmsState)
def nlms_correct(learner, x, row, error, weight):
    step = min(learner.rate * weight, 1.0) * error / dot(x, x)
    for i in range(x.shape[0]):
        learner.coefficients[row, i] += step * x[i]


class NlmsTwin:
    def __init__(self, learner, n_inputs):
        self.w, self.part = np.zeros(n_inputs), learner.part

    def predict(self, x):
        return self.w @ x

    def learn(self, x, target, weight):
        self.w = self.w + min(self.part * weight, 1) * (target - self.predict(x)) * x / (x @ x)


def test_a_learner_of_another_package_serves_every_explorer_that_can_use_it(easy):
    melee.register(Nlms)
    spec = "softmax:learner=nlms/part=0.5"
    assert parse(spec).short_spec == spec
    assert parse(parse(spec).spec) == parse(spec)
    state = parse(spec).start(melee.explorers.Problem(2, 3))
    assert isinstance(state.polopt.learner, NlmsState)
    assert state.polopt.learner.rate == 0.5
    assert melee.simulate(easy, spec, seed=1).mean_reward > 0.7


def test_a_learner_of_another_package_can_be_checked():
    melee.register(Nlms)
    check_learner("nlms", NlmsTwin, leave_out=OF_UNKNOWN_RANGE)


def test_a_learner_that_knows_contexts_alone_is_asked_about_some_actions(monkeypatch):
    monkeypatch.setenv("MELEE_COMPILE", "never")  # under ε-greedy it is compiled, above
    melee.register(Nlms)
    for spec in ("softmax:learner=nlms", "bagging:bags=3:learner=nlms"):
        checks = {str(check): check for check in checks_for_explorer(spec)}
        checks["some_actions_are_open"]()


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("softmax:learner=nlms/part=2", r"nlms: part is 2\.0; expected a number, more than 0 and"),
        ("softmax:learner=nlms/parts=2", r"unknown parameter of nlms 'parts'; did you mean 'part'"),
        ("softmax:learner=nlms:loss=logistic", r"settings of learner=sgd and the learner is nlms"),
        ("linucb:learner=nlms", r"unknown learner for linucb 'nlms'; known: ridge, diagonal"),
        ("softmax:learner=nmls", r"did you mean 'nlms'\? Known: sgd, .*, nlms"),
    ],
)
def test_settings_of_another_packages_learner_are_checked(spec, sentence):
    melee.register(Nlms)
    with pytest.raises(InputError, match=sentence):
        parse(spec)


@pytest.fixture
def halved(install):
    """The file of a learner of another package."""
    site = install("more", {"melee.learners": {"halved": "made_up_learner:Halved"}})
    (site / "made_up_learner.py").write_text(
        "from dataclasses import dataclass\n"
        "from melee.learners.sgd import SgdLearner\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        'class Halved(SgdLearner):\n    """SGD."""\n    name = "halved"\n'
    )
    return site / "made_up_learner.py"


def test_a_learner_is_found_by_its_entry_point(halved):
    found = parse("epsilon-greedy:learner=halved:loss=logistic")
    assert isinstance(found, LearningExplorer)
    assert found.model().name == "halved"
    assert learners.REGISTRY.listed()["halved"].package == "more 1.0.0"


# --- in a benchmark -----------------------------------------------------------------------------


def keys(suite, *specs):
    plan = make_plan(str(suite), list(specs), n_seeds=1, a_a=False)
    return [cell.key for cells in plan.cells.values() for cell in cells]


def test_ours_are_what_they_say_they_are(example):
    assert identity("linucb") == parse("linucb").spec
    assert identity("boltzmann-decay").startswith(parse("boltzmann-decay").spec + "@melee_boltz")


@pytest.mark.parametrize(
    ("spec", "n_files"),
    [("boltzmann-decay", 1), ("boltzmann-decay:learner=halved", 2), ("softmax:learner=halved", 1)],
)
def test_other_code_of_another_package_has_other_keys(example, halved, tmp_path, spec, n_files):
    suite = write_suite(tmp_path / "suite")
    before, ours, n_matter = keys(suite, spec), keys(suite, "softmax"), 0
    for file in (example, halved):
        text = file.read_text()
        file.write_text(text.replace('"""', '"""Namely, ', 1) + "\n# a comment\n")
        assert keys(suite, spec) == before
        file.write_text(text + "\nEXTRA = 1\n")
        n_matter += not set(keys(suite, spec)) & set(before)
        file.write_text(text)
    assert n_matter == n_files
    assert keys(suite, "softmax") == ours


def test_a_cell_of_code_that_changed_meanwhile_is_not_played(example, tmp_path):
    suite = write_suite(tmp_path / "suite")
    plan = make_plan(str(suite), ["boltzmann-decay"], n_seeds=1, a_a=False)
    with CellStore.open(tmp_path / "out") as store:
        groups = pending(plan, store)
    played = next(group for group in groups if group.dataset.name == "plain")
    assert [one.problem for one in play_group(played, Times())] == [""]
    example.write_text(example.read_text() + "\nEXTRA = 1\n")
    (record,) = play_group(played, Times())
    assert "package's code changed while the benchmark was running" in record.problem


def test_what_is_in_no_file_is_not_benchmarked(tmp_path):
    melee.register(changed(name="typed", __module__="made_up_session", __doc__="Typed."))
    with pytest.raises(InputError, match=r"typed: the source of made_up_session cannot be read"):
        make_plan(str(write_suite(tmp_path / "suite")), ["typed"], n_seeds=1)


def test_a_worker_that_does_not_know_an_explorer_says_so(tmp_path):
    melee.register(Fine)
    plan = make_plan(str(write_suite(tmp_path / "suite")), ["fine"], n_seeds=1, a_a=False)
    with CellStore.open(tmp_path / "out") as store:
        groups = pending(plan, store)
    explorers.REGISTRY._added.clear()
    explorers._parse.cache_clear()
    played = next(group for group in groups if group.dataset.name == "plain")
    (record,) = play_group(played, Times())
    assert record.problem.startswith("unknown explorer 'fine'")


# --- the checks ---------------------------------------------------------------------------------


class BadState(NamedTuple):
    counts: Floats  # (K,)
    room: Scratch  # (1,)
    how: int


@dataclass(frozen=True, kw_only=True)
class Bad(Explorer):
    """Uniform, and wrong in one way or another."""

    name: ClassVar[str] = "bad"
    how: int = count(0, 0)

    def start(self, problem):
        return BadState(np.zeros(problem.n_actions), np.zeros(1), self.how)


@implements(distribution, BadState)
def bad_distribution(state, x, t, rng, pmf):
    n_actions = pmf.shape[0]
    for a in range(n_actions):
        pmf[a] = 1.0 / n_actions
    favourite = -1
    if state.how == 1:
        pmf[0] *= 0.9  # they do not sum to one
    elif state.how == 2:
        favourite = 0  # by its number
    elif state.how == 3:
        state.counts[0] += 1.0  # deciding is learning
        favourite = int(state.counts[0]) % n_actions
    elif state.how == 4 and state.room[0] > 0.5:  # what a learner left there
        favourite = n_actions - 1
    if favourite >= 0:
        for a in range(n_actions):
            pmf[a] = 1.0 if a == favourite else 0.0
    if state.how >= 5:
        total = 0.0
        for a in range(n_actions):
            action = a if state.how == 5 else choice(x, a).model  # a is a number among the open
            pmf[a] = 1.0 + state.counts[action]
            total += pmf[a]
        for a in range(n_actions):
            pmf[a] /= total


@implements(learn, BadState)
def bad_learn(state, x, t, rng, action, reward, probability):
    state.room[0] = reward
    if state.how >= 5:
        state.counts[action] += 1.0


@pytest.mark.parametrize(
    ("how", "name", "sentence"),
    [
        (0, "an_easy_task_is_played_better_than_by_chance", r"it earned 0\.3.. a round where"),
        (
            1,
            "probabilities_are_a_distribution",
            r"round 1 of 2 .* \[0\.45, 0\.5\]",
        ),
        (2, "renaming_actions_renames_the_result", r"renamed: \[.*\] where \[.*\] was expected"),
        (3, "asking_changes_nothing", r"a bandit that was asked more often decides otherwise"),
        (3, "peeking_leaves_no_trace", r"its state changed; what lasts only within a call belongs"),
        (4, "scratch_means_nothing_between_calls", r"scratch was overwritten: it matters"),
        (5, "some_actions_are_open", r"in another order: \[.*\] where \[.*\] was expected"),
    ],
)
def test_what_is_wrong_is_found_and_named(how, name, sentence):
    melee.register(Bad)
    checks = {str(check): check for check in checks_for_explorer(f"bad:how={how}")}
    with pytest.raises(AssertionError, match=rf"^bad.*: {name}: .*{sentence}"):
        checks[name]()
    fine = {str(check): check for check in checks_for_explorer("bad")}
    if how:
        fine[name]()


def test_what_is_kept_of_every_action_is_found_by_its_model():
    melee.register(Bad)
    checks = {str(check): check for check in checks_for_explorer("bad:how=6")}
    checks["some_actions_are_open"]()


def test_a_run_that_is_not_the_definitions_is_found():
    class Greedy(naive.Twin):
        def pmf(self, x, t):
            return np.eye(self.n_actions)[0]

    with pytest.raises(AssertionError, match=r"twin: round 1: \[0\.25.*\] where \[1\.0, 0\.0"):
        check_explorer("uniform", of_class(Greedy))


def test_checks_can_be_left_out_by_name():
    with pytest.raises(InputError, match="there is no check 'no_such' to leave out; known: setti"):
        check_explorer("uniform", leave_out=["no_such"])


def test_an_explorer_that_is_not_registered_is_told_so():
    with pytest.raises(AssertionError, match=r"^fine: settings_are_.*: Fine is not registered as"):
        check_explorer(Fine())
