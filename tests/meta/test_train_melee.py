import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from melee import artefact
from melee.benchmark.mapping import mapper
from melee.cli import app
from melee.errors import DataError, InputError
from melee.explorers.melee import N_INPUTS, load_policy
from melee.loop import simulate
from melee.meta.checkpoint import CHECKPOINT
from melee.meta.train_melee import HELD_OUT, MeleeTraining, first_network, fitness, train_melee
from melee.preparation import prepare
from tests.tasks import graded, small_task

TINY = MeleeTraining(
    n_iterations=2, n_imitation_tasks=4, n_states=4, horizon=3, n_generations=6, n_tasks=3,
    n_candidates=4, n_validation=3, hidden=2, n_units=2, family="tests.tasks:small_task",
)  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "policy"
    return path, train_melee(TINY, path)


def arrays(path):
    return dict(np.load(path / artefact.WEIGHTS))


def assert_same_policy(one, other):
    mine, theirs = arrays(one), arrays(other)
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert_array_equal(mine[name], theirs[name])


def test_the_stages_are_judged_and_the_best_of_them_is_returned(trained):
    path, progress = trained
    stages = [one.stage for one in progress.judged]
    assert stages == ["start", "imitation", "imitation", "evolution", "evolution"]
    assert progress.best.validation == max(one.validation for one in progress.judged)
    assert_array_equal(load_policy(str(path)).network.linear, progress.best.network.linear)


def test_the_policy_plays(trained):
    path, _ = trained
    run = simulate(prepare(graded(100, n_actions=3, n_features=3, seed=0)), f"melee:policy={path}")
    assert run.diagnostics.keys() == {"guard: unfamiliar", "guard: over budget"}
    assert 0.0 <= run.mean_reward <= 1.0


def test_the_manifest_says_how_it_was_trained(trained):
    path, progress = trained
    manifest = json.loads((path / artefact.MANIFEST).read_text())
    assert manifest["kind"] == "melee"
    assert manifest["training"]["family"] == TINY.family
    assert len(manifest["training"]["validation_curve"]) == len(progress.judged)


def test_training_again_gives_the_same_policy(trained, tmp_path):
    train_melee(TINY, tmp_path / "again")
    assert_same_policy(trained[0], tmp_path / "again")


def test_two_workers_give_the_same_policy(trained, tmp_path):
    with mapper("local", workers=2) as apply:
        train_melee(TINY, tmp_path / "two", apply=apply)
    assert_same_policy(trained[0], tmp_path / "two")


@pytest.mark.parametrize("stop_after", [1, 2, 4, 6, 8])
def test_an_interrupted_training_ends_in_the_same_policy(trained, tmp_path, stop_after):
    calls = []

    def stop(progress):
        calls.append(progress.n_steps)
        if len(calls) == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_melee(TINY, tmp_path / "p", on_step=stop)
    train_melee(TINY, tmp_path / "p")
    assert_same_policy(trained[0], tmp_path / "p")


def test_a_killed_training_ends_in_the_same_policy(trained, tmp_path):
    code = (
        "from melee.meta.train_melee import *; import time;"
        f"train_melee(MeleeTraining(**{TINY.as_dict()!r}), {str(tmp_path / 'p')!r},"
        " on_step=lambda p: time.sleep(0.2))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ))
    deadline = time.monotonic() + 120
    while not (tmp_path / "p" / CHECKPOINT).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "p" / artefact.MANIFEST).exists()
    train_melee(TINY, tmp_path / "p")
    assert_same_policy(trained[0], tmp_path / "p")


def test_another_setting_does_not_go_on_from_this_checkpoint(trained):
    with pytest.raises(DataError, match="another setting"):
        train_melee(MeleeTraining(**{**TINY.as_dict(), "seed": 1}), trained[0])


def test_fine_tuning_starts_from_the_given_policy(trained, tmp_path):
    path, _ = trained
    tuned = MeleeTraining(**{**TINY.as_dict(), "policy": str(path), "n_iterations": 0})
    assert_array_equal(first_network(tuned).linear, load_policy(str(path)).network.linear)
    progress = train_melee(tuned, tmp_path / "tuned")
    assert progress.judged[0].stage == "start"
    assert load_policy(str(tmp_path / "tuned")).network.linear.shape == (N_INPUTS,)


def test_training_and_held_out_tasks_never_meet():
    for seed in range(50):
        training = MeleeTraining(seed=seed)
        last = training.task_seeds("evolution", training.n_generations, training.n_tasks)[-1]
        assert last < HELD_OUT


def test_fitness_weighs_a_task_by_how_far_candidates_are_apart_beside_their_spread():
    rewards = np.array([[0.1, 0.5, 0.9], [0.52, 0.5, 0.48]])
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    expected = (centred / (rewards.std(axis=1, keepdims=True) + 0.01)).mean(axis=0)
    assert_array_equal(fitness(rewards), expected)


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        ("nowhere.at:all", "cannot be imported"),
        ("tests.tasks:absent", "cannot be imported"),
        ("math:pi", "is not a function"),
        ("unknown", "cannot be imported"),
    ],
)
def test_a_family_that_cannot_be_found_is_refused(family, sentence):
    with pytest.raises(InputError, match=sentence):
        MeleeTraining(family=family)


def test_a_family_that_makes_no_tasks_is_refused(tmp_path):
    broken = {**TINY.as_dict(), "family": "tests.tasks:not_a_task"}
    with pytest.raises(InputError, match="expected a Task"):
        train_melee(MeleeTraining(**broken), tmp_path / "p")


def test_the_command_trains_and_says_what_it_returned(tmp_path):
    arguments = ["train", "--preset", "melee", "--out", str(tmp_path / "p"), "--iterations", "0"]
    arguments += ["--generations", "1", "--tasks", "1", "--family", str(TINY.family)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "validation return by step" in result.output
    assert "melee:policy=" in result.output
    assert (tmp_path / "p" / artefact.MANIFEST).exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "melee", "--rows", "50"], "--rows is for --preset paper"),
        (["--preset", "paper", "--generations", "5"], "--generations is for --preset melee"),
        (["--preset", "best"], "unknown preset 'best'"),
    ],
)
def test_options_of_the_other_preset_are_refused(tmp_path, arguments, sentence):
    result = CliRunner().invoke(app, ["train", "--out", str(tmp_path / "p"), *arguments])
    assert result.exit_code != 0
    assert sentence in f"{result.output}{result.exception}"


def test_a_family_may_be_given_as_the_function_itself():
    assert MeleeTraining(family=small_task).family == "tests.tasks:small_task"


def test_a_policy_trained_on_tasks_of_one_size_is_familiar_with_others_like_them(trained):
    path, _ = trained
    for hidden in (2, 48):
        task = graded(200, n_actions=4, n_features=3, seed=1)
        run = simulate(prepare(task), f"melee:policy={path}:hidden={hidden}")
        assert run.diagnostics["guard: unfamiliar"] < 0.05


def test_a_checkpoint_of_fine_tuning_knows_what_it_started_from(trained, tmp_path):
    path, _ = trained
    tuned = MeleeTraining(**{**TINY.as_dict(), "policy": str(path)})
    assert tuned.identity()["policy_sha256"] == load_policy(str(path)).sha256


def test_the_shipped_policy_was_trained_by_the_default_setting():
    manifest = json.loads((artefact.locate("melee") / artefact.MANIFEST).read_text())
    setting = {name: manifest["training"][name] for name in MeleeTraining().as_dict()}
    assert setting == MeleeTraining().as_dict()
    assert (
        manifest["training"]["validation_return"] > manifest["training"]["validation_curve"][0][2]
    )
    assert load_policy("melee").budget < 10.0
    size = sum(file.stat().st_size for file in artefact.locate("melee").iterdir())
    assert size <= 2**20
