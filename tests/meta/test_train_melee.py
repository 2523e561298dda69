import functools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from melee import artefact
from melee.benchmark.mapping import mapper
from melee.cli import app
from melee.datasets.lifelike import lifelike
from melee.datasets.production import production
from melee.errors import DataError, InputError
from melee.explorers.melee import Policy, load_policy
from melee.loop import simulate
from melee.meta.checkpoint import CHECKPOINT
from melee.meta.episodes import LONGEST, episode, find_family, play_rows, shares, start
from melee.meta.evolution import Evolution
from melee.meta.train_melee import (
    CHECK_EVERY,
    CLEARLY,
    HELD_OUT,
    MIN_WIDTH,
    TRAINED,
    Judged,
    MeleeTraining,
    Progress,
    fitness,
    pack,
    train_melee,
    unpack,
    validation_shares,
)
from melee.preparation import prepare
from melee.rng import stream
from tests.tasks import graded, small_task

TINY = MeleeTraining(
    n_generations=10, n_tasks=3, n_candidates=4, n_validation=3, hidden=2,
    family="tests.tasks:small_task",
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


def test_policies_on_the_way_are_judged_and_the_chosen_one_is_returned(trained):
    path, progress = trained
    assert [one.generation for one in progress.judged] == [0, CHECK_EVERY, 2 * CHECK_EVERY, 10]
    best = progress.best
    for judged in progress.judged:
        assert_array_equal(judged.shares, validation_shares(TINY, unpack(judged.weights)))
    found = load_policy(str(path)).policy
    for name in TRAINED:
        assert_array_equal(getattr(found, name), getattr(unpack(best.weights), name))


@pytest.mark.parametrize(
    ("shares", "chosen"),
    [
        ([[0.5, 0.5, 0.5, 0.5], [0.4, 0.6, 0.5, 0.5], [0.3, 0.4, 0.5, 0.6]], 0),
        ([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.9], [0.4, 0.5, 0.5, 0.5]], 0),  # a single task
        ([[0.5, 0.5, 0.5, 0.5], [0.6, 0.6, 0.7, 0.7], [0.5, 0.5, 0.5, 0.9]], 1),
        ([[0.1, 0.9, 0.2, 0.8], [0.2, 1.0, 0.3, 0.9], [0.2, 1.0, 0.3, 0.9]], 2),  # task by task
    ],
)
def test_the_start_is_left_only_for_what_is_clearly_ahead_of_it(shares, chosen):
    judged = [Judged(n, np.zeros(3), np.array(found)) for n, found in enumerate(shares)]
    progress = Progress(Evolution.start(np.zeros(3), 0.1), judged)
    assert progress.best.generation == chosen


def test_judged_is_the_average_of_the_latest_generations(trained):
    _, progress = trained
    assert_array_equal(progress.judged[0].weights, pack(Policy.rule()))
    for at in (1, 2):
        latest = progress.means[(at - 1) * CHECK_EVERY : at * CHECK_EVERY]
        assert_array_equal(progress.judged[at].weights, np.mean(latest, axis=0))
    assert_array_equal(progress.judged[3].weights, np.mean(progress.means[-CHECK_EVERY:], axis=0))


def test_weights_are_packed_with_trust_by_its_logarithm():
    rule = Policy.rule()
    assert pack(rule)[0] == np.log(rule.how[0])
    for mine, theirs in zip(unpack(pack(rule)), rule, strict=True):
        assert_allclose(mine, theirs, rtol=1e-15)
    weights = np.random.default_rng(0).normal(size=len(pack(rule)))
    assert_allclose(pack(unpack(weights)), weights, rtol=1e-12)
    for far in (-1e9, 1e9):
        weights[0] = far
        assert 0.0 < unpack(weights).how[0] < 100.0


def test_the_range_and_the_budget_are_measured(trained):
    policy, budget, _ = load_policy(str(trained[0]))
    width = policy.high - policy.low
    assert (width >= MIN_WIDTH - 1e-12).all()
    assert (width < 20.0).all()
    assert 0.1 <= budget < 10.0


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


@pytest.mark.parametrize("stop_after", [1, 2, 5, 11, 12, 13])
def test_an_interrupted_training_ends_in_the_same_policy(trained, tmp_path, stop_after):
    calls = []

    def stop(progress):
        calls.append(progress.evolution.generation)
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
    tuned = MeleeTraining(**{**TINY.as_dict(), "policy": str(path), "n_generations": 1})
    progress = train_melee(tuned, tmp_path / "tuned")
    assert [one.generation for one in progress.judged] == [0, 1]
    assert_array_equal(progress.judged[0].weights, pack(load_policy(str(path)).policy))


def test_training_and_held_out_tasks_never_meet():
    for seed in range(50):
        training = MeleeTraining(seed=seed)
        assert training.task_seeds(training.n_generations)[-1] < HELD_OUT
    seeds = [seed for generation in range(5) for seed in TINY.task_seeds(generation)]
    assert len(set(seeds)) == len(seeds) == 5 * TINY.n_tasks


def test_fitness_is_how_far_shares_are_from_the_average_of_all_candidates():
    near, far = [0.52, 0.5, 0.48], [0.1, 0.5, 0.9]
    assert_allclose(fitness(np.array([near])), [0.02, 0.0, -0.02], atol=1e-12)
    assert_allclose(fitness(np.array([near, far])), [-0.19, 0.0, 0.19], atol=1e-12)
    easier = np.array([near, far]) + np.array([[0.3], [-0.05]])
    assert_allclose(fitness(easier), fitness(np.array([near, far])), atol=1e-12)


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


def test_both_kinds_of_task_take_turns():
    both = [find_family("both")(seed) for seed in (6, 7, HELD_OUT, HELD_OUT + 1)]
    noisy = functools.partial(production, max_rows=LONGEST)
    apart = [kind(seed=seed) for seed in (3, HELD_OUT // 2) for kind in (lifelike, noisy)]
    for mine, theirs in zip(both, apart, strict=True):
        assert mine.content_hash == theirs.content_hash


def test_an_episode_counts_by_its_share(tmp_path):
    job = (str(TINY.family), 3, TINY.explorer, [Policy.rule(), Policy.rule()])
    found = shares(job)
    assert found[0] == found[1]
    assert 0.2 < found[0] <= 1.0
    prepared = episode(str(TINY.family), 3, TINY.explorer)
    state, _ = start(TINY.explorer, Policy.rule(), prepared)
    actions = play_rows(state, TINY.explorer, prepared, 0, prepared.n_rounds, stream(3, "episode"))
    rewards = prepared.task.rewards[prepared.order]
    earned = rewards[np.arange(len(actions)), actions].mean()
    by_chance, at_best = rewards.mean(), rewards.max(axis=1).mean()
    assert_allclose(found[0], (earned - by_chance) / (at_best - by_chance))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"n_candidates": 5}, "n_candidates is 5; expected an even number"),
        ({"n_candidates": 2}, "n_candidates is 2"),
        ({"n_tasks": 0}, "n_tasks is 0"),
        ({"n_validation": 0}, "n_validation is 0"),
        ({"hidden": -1}, "hidden is -1"),
        ({"n_generations": 1.5}, "n_generations is 1.5"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_out_of_their_limits_are_refused(setting, sentence):
    with pytest.raises(InputError, match=sentence):
        MeleeTraining(**setting)


def test_a_family_of_tasks_too_short_is_refused():
    with pytest.raises(InputError, match="has 20 rows; expected more than the 30 that are set"):
        episode("tests.tasks:too_short", 0, TINY.explorer)


def test_a_family_that_makes_no_tasks_is_refused(tmp_path):
    broken = {**TINY.as_dict(), "family": "tests.tasks:not_a_task"}
    with pytest.raises(InputError, match="expected a Task"):
        train_melee(MeleeTraining(**broken), tmp_path / "p")


def test_the_command_trains_and_says_what_it_returned(tmp_path, monkeypatch):
    few = functools.partial(MeleeTraining, n_validation=TINY.n_validation)  # 400 take seconds
    monkeypatch.setattr("melee.meta.train_melee.MeleeTraining", few)
    arguments = ["train", "--preset", "melee", "--out", str(tmp_path / "p")]
    arguments += ["--generations", "1", "--tasks", "1", "--family", str(TINY.family)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "validation by generation" in result.output
    assert "(returned)" in result.output
    assert "melee:policy=" in result.output
    assert (tmp_path / "p" / artefact.MANIFEST).exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "melee", "--rows", "50"], "--rows is for --preset paper"),
        (["--preset", "melee", "--horizon", "5"], "--horizon is for --preset paper"),
        (["--preset", "paper", "--generations", "5"], "--generations is for --preset melee"),
        (["--preset", "melee", "--counts", "played"], "--counts is for --preset paper"),
        (["--preset", "paper", "--order", "any"], "unknown order 'any'"),
        (["--preset", "paper", "--first", "me"], "unknown first 'me'"),
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
    for hidden in (2, 32):
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
    training = manifest["training"]
    curve = {f"generation {n}": value for n, value in training["validation_curve"]}
    assert training["validation_share"] == curve[training["returned"]]
    lead, error = training["validation_lead"]
    assert training["returned"] == "generation 0" or lead > CLEARLY * error
    assert 0.0 < training["validation_share_as_played"] <= 1.0
    assert 0.0 < load_policy("melee").budget < 10.0
    size = sum(file.stat().st_size for file in artefact.locate("melee").iterdir())
    assert size <= 2**20
