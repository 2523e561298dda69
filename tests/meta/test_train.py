"""Training as a job: it learns, resumes to the bit, and refuses what is not its own."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from typer.testing import CliRunner

from melee import artefact
from melee.benchmark.mapping import mapper
from melee.cli import app
from melee.errors import DataError, InputError
from melee.explorers.melee_paper import SCHEMA, load_policy
from melee.loop import simulate
from melee.meta.aggrevate import (
    PI_0,
    Training,
    aggrevate,
    collect,
    task_of,
    training_task,
    validate,
    validation_return,
    validation_task,
)
from melee.meta.checkpoint import CHECKPOINT
from melee.meta.selection import first_stage
from melee.meta.train import train
from melee.preparation import prepare
from melee.task import Task
from tests.tasks import graded

TINY = Training(n_tasks=5, n_rows=150, n_validation=2, n_final=8, n_validation_rows=100)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(TINY, tmp_path_factory.mktemp("policies") / "tiny")


def files(path):
    return {name: (path / name).read_bytes() for name in ["weights.npz", "manifest.json"]}


def test_the_same_seed_gives_the_same_policy_to_the_bit(trained, tmp_path):
    train(TINY, tmp_path / "again")
    assert files(tmp_path / "again") == files(trained.path)


def test_another_seed_gives_another_policy(trained, tmp_path):
    other = train(Training(**TINY.as_dict() | {"seed": 1}), tmp_path / "other")
    assert not np.array_equal(other.weights, trained.weights)


def test_the_trained_policy_is_played_as_it_was_trained(trained):
    assert_array_equal(load_policy(str(trained.path)), trained.weights)
    prepared = prepare(graded(100, n_actions=2, n_features=3, seed=1))
    run = simulate(prepared, f"melee-paper:policy={trained.path}")
    assert len(run.rewards) == 70


def test_the_returned_policy_is_the_best_of_the_last_stage(trained):
    assert len(trained.rounds) == TINY.n_tasks
    assert [stage.n_tasks for stage in trained.stages] == [2, 4, 8]
    last = trained.stages[-1]
    assert dict(zip(last.policies, last.returns, strict=True))[trained.returned] == max(
        last.returns
    )
    manifest = json.loads((trained.path / "manifest.json").read_text())["training"]
    assert manifest["returned_round"] == trained.returned + 1
    assert manifest["validation_return"] == max(last.returns)
    assert manifest["validation_tasks"] == 8


def test_the_meta_dataset_grows_by_one_task_a_round(monkeypatch):
    from melee.meta import learn

    sizes = []
    of = learn.Comparisons.of

    def counted(blocks, *others):
        sizes.append(len(blocks))
        return of(blocks, *others)

    monkeypatch.setattr(learn.Comparisons, "of", counted)
    list(aggrevate(TINY))
    assert sizes == [1, 2, 3, 4, 5]


def test_every_round_rolls_in_with_the_policy_before_it(trained):
    again = collect((TINY, 3, trained.rounds[2].weights, 0.0))
    other = collect((TINY, 3, PI_0, 0.0))
    assert again.features.shape == other.features.shape == (120, 2, 6)
    assert not np.array_equal(again.features, other.features)


def test_tasks_differ_and_validation_is_held_out():
    setting = Training(**TINY.as_dict() | {"order": "in-turn"})
    tasks = {training_task(setting, n).task.content_hash for n in range(5)}
    held_out = {validation_task(setting, i).task.content_hash for i in range(8)}
    assert len(tasks) == 5
    assert len(held_out) == 8
    assert not tasks & held_out


def test_tasks_are_drawn_at_random_from_all_of_them_and_partitioned_anew():
    setting = Training(n_tasks=50, n_rows=60)
    drawn = [task_of(setting, i) for i in range(2000)]
    assert set(drawn) == set(range(50))
    assert stats.chisquare(np.bincount(drawn)).pvalue > 0.001
    twice = [i for i, task in enumerate(drawn) if task == drawn[0]][:2]
    first, second = (training_task(setting, i) for i in twice)
    assert first.task.content_hash == second.task.content_hash
    assert not np.array_equal(first.order, second.order)
    assert [task_of(Training(order="in-turn"), i) for i in range(5)] == [0, 1, 2, 3, 4]


def test_the_expert_rolls_in_first_unless_the_learner_is_to():
    shares = []
    for first in ["expert", "learner"]:
        setting = Training(**TINY.as_dict() | {"first": first})
        seen: list[Any] = []

        def watched(function, jobs, seen=seen):
            found = [function(job) for job in jobs]
            if function is collect:
                seen += [(job[3], block) for job, block in zip(jobs, found, strict=True)]
            return found

        list(aggrevate(setting, apply=watched))
        assert [beta for beta, _ in seen] == [1.0 if first == "expert" else 0.0, 0, 0, 0, 0]
        # Shares of rewards so far: the expert's are 1 but for uniform exploration.
        block = seen[0][1]
        shares.append(float((block.features[-1, :, 3] * block.features[-1, :, 4]).sum()))
    assert shares[0] > 0.9 > shares[1]


def test_the_counts_that_a_policy_uses_are_those_it_was_trained_for(trained, tmp_path):
    names = dict(zip(SCHEMA, trained.weights, strict=True))
    assert names["predicted count"] != 0.0
    assert names["played count"] == 0.0
    setting = Training(**TINY.as_dict() | {"counts": "played"})
    other = dict(zip(SCHEMA, train(setting, tmp_path / "p").weights, strict=True))
    assert other["predicted count"] == 0.0
    assert other["played count"] != 0.0


def test_any_positive_weight_on_the_probability_alone_is_one_and_the_same_policy():
    # So the ablation plays the same whatever the training seed.
    policies = [np.eye(len(SCHEMA))[0] * weight for weight in (0.25, 1.0, 64.0)]
    returns = np.array([validate((TINY, i, policies)) for i in range(5)])
    assert (returns == returns[:, :1]).all()


@pytest.mark.parametrize("stop_after", [1, 3])
def test_an_interrupted_training_goes_on_to_the_same_policy(trained, tmp_path, stop_after):
    def interrupt(n, _):
        if n == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "p", on_round=interrupt)
    assert not (tmp_path / "p" / "manifest.json").exists()
    seen = []
    train(TINY, tmp_path / "p", on_round=lambda n, _: seen.append(n))
    assert seen == [1, 2, 3, 4, 5]
    assert files(tmp_path / "p") == files(trained.path)


@pytest.mark.parametrize("stop_after", [2, 4, 8])
def test_an_interrupted_choice_goes_on_to_the_same_policy(trained, tmp_path, stop_after):
    def interrupt(stage):
        if stage.n_tasks == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "p", on_stage=interrupt)
    assert not (tmp_path / "p" / "manifest.json").exists()
    seen = []
    again = train(TINY, tmp_path / "p", on_stage=lambda stage: seen.append(stage.n_tasks))
    assert seen == [2, 4, 8]
    assert again.stages == trained.stages
    assert files(tmp_path / "p") == files(trained.path)


def test_a_killed_training_goes_on_to_the_same_policy(trained, tmp_path):
    code = (
        "from melee.meta.train import *; from melee.meta.aggrevate import Training;"
        f"train(Training(**{TINY.as_dict()!r}), {str(tmp_path / 'p')!r},"
        " on_round=lambda n, _: __import__('time').sleep(0.4))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 120
    while not (tmp_path / "p" / CHECKPOINT).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = json.loads((tmp_path / "p" / CHECKPOINT).read_text())["rounds"]
    assert 1 <= len(done) < 5
    train(TINY, tmp_path / "p")
    assert files(tmp_path / "p") == files(trained.path)


@pytest.mark.parametrize("engine", ["local", pytest.param("dask", marks=pytest.mark.long)])
def test_the_policy_does_not_depend_on_where_it_was_trained(tmp_path, engine):
    setting = Training(**TINY.as_dict() | {"tasks_per_round": 2})
    alone = train(setting, tmp_path / "alone")
    assert len(alone.rounds) == 3
    with mapper(engine, workers=2) as apply:
        train(setting, tmp_path / "shared", apply=apply)
    assert files(tmp_path / "shared") == files(tmp_path / "alone")


def test_a_damaged_checkpoint_is_named(trained, tmp_path):
    text = (trained.path / CHECKPOINT).read_text()
    for broken in [text.replace("0.", "1.", 1), text[: len(text) // 2], "[]"]:
        (tmp_path / CHECKPOINT).write_text(broken)
        with pytest.raises(DataError, match=r"checkpoint\.json: damaged; remove it"):
            train(TINY, tmp_path)


def test_a_checkpoint_of_another_setting_is_not_continued(trained):
    with pytest.raises(DataError, match="another setting or version"):
        train(Training(**TINY.as_dict() | {"mu": 0.3}), trained.path)


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match="holds other files"):
        train(TINY, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mu": 1.5}, "mu is 1.5"),
        ({"beta": -0.1}, "beta is -0.1"),
        ({"n_rows": 30}, "n_rows is 30; expected 31"),
        ({"rollout": "oracle"}, "unknown rollout 'oracle'"),
        ({"features": "most"}, "unknown features 'most'"),
        ({"order": "shuffled"}, "unknown order 'shuffled'"),
        ({"first": "random"}, "unknown first 'random'"),
        ({"counts": "rewarded"}, "unknown counts 'rewarded'"),
        ({"n_validation": 30, "n_final": 20}, "n_final is 20; expected 30 or larger"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_out_of_range_are_refused(change, sentence):
    with pytest.raises(InputError, match=sentence):
        Training(**change)


@pytest.mark.parametrize("rollout", ["lookahead", "policy"])
def test_other_roll_outs_train_too(rollout, tmp_path):
    setting = Training(
        n_tasks=3, n_rows=130, rollout=rollout, every=10, horizon=10, n_validation=1,
        n_final=1, n_validation_rows=80,
    )  # fmt: skip
    assert np.isfinite(train(setting, tmp_path / "p").weights).all()


def trap(seed):
    """Greedy is trapped: action 0 pays 0.4 at once and always, action 1 pays 1 on most contexts."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(400, 1))
    return Task("trap", x, np.column_stack([np.full(400, 0.4), (x[:, 0] > -0.6).astype(float)]))


def test_training_learns_to_leave_a_trap_in_which_greedy_stays(monkeypatch):
    from melee.meta import aggrevate as module

    monkeypatch.setattr(module, "rectangles", lambda n_rows, seed: trap(seed))
    setting = Training(n_tasks=4, n_rows=400, n_validation=12, n_final=12, n_validation_rows=400)
    rounds = list(module.aggrevate(setting))
    learned = validation_return(setting, rounds[first_stage(setting, rounds).best].weights)
    greedy = validation_return(setting, PI_0)
    assert greedy < 0.75  # half of the first draws fall into the trap for good
    assert learned > 0.83  # and 0.88 is the most that can be had


def test_the_command_trains_with_the_options_and_says_what_it_used(tmp_path):
    arguments = ["train", "--preset", "paper", "--out", str(tmp_path / "p"), "--tasks", "2"]
    arguments += ["--rows", "100", "--order", "in-turn", "--first", "learner", "--counts", "played"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "not used" in next(
        line for line in result.output.splitlines() if "predicted count" in line
    )
    setting = json.loads((tmp_path / "p" / "manifest.json").read_text())["training"]
    assert (setting["order"], setting["first"], setting["counts"]) == (
        *("in-turn", "learner", "played"),
    )


@pytest.mark.long
def test_the_shipped_policy_is_what_the_command_trains(tmp_path):
    train(Training(), tmp_path / "paper")
    shipped = artefact.locate("paper")
    assert (tmp_path / "paper" / "weights.npz").read_bytes() == (
        shipped / "weights.npz"
    ).read_bytes()
