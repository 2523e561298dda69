"""The choice among the policies of a training: whom it plays, on what, and how sure it is."""

import numpy as np
import pytest

from melee.meta.aggrevate import PI_0, Training, TrainingRound, validate
from melee.meta.learn import Setting
from melee.meta.selection import Stage, first_stage, select


def rounds_of(validations):
    setting = Setting("minmax", 0.1)
    return [TrainingRound(PI_0 * (n + 1), setting, v) for n, v in enumerate(validations)]


def noisy(worth, noise, seed=0):
    """A mapper by which policy n of `rounds_of` earns worth[n] on every task, but for noise."""
    rng = np.random.default_rng(seed)
    asked = []

    def apply(function, jobs):
        assert function is validate
        found = []
        for _, i, policies in jobs:
            numbers = [round(float(p.max())) - 1 for p in policies]
            asked.append((i, numbers))
            found.append([worth[n] + noise * rng.normal() for n in numbers])
        return found

    return apply, asked


def test_candidates_halve_as_their_tasks_double():
    worth = np.linspace(0.5, 0.6, 82)
    apply, asked = noisy(worth, 0.0)
    stages = list(select(Training(), rounds_of(worth), [], apply))
    assert [(len(s.policies), s.n_tasks) for s in stages] == [
        *((82, 20), (41, 40), (21, 80), (11, 160), (6, 320), (3, 640))
    ]
    assert stages[-1].policies == (79, 80, 81)
    assert stages[-1].best == 81
    # Nobody plays a task twice: those of earlier stages are remembered.
    assert [i for i, _ in asked] == list(range(20, 640))


def test_returns_are_means_over_all_tasks_so_far():
    training = Training(n_validation=2, n_final=8)
    rewards = np.random.default_rng(0).random((8, 4))

    def apply(_, jobs):
        return [[rewards[i, round(float(p.max())) - 1] for p in ps] for _, i, ps in jobs]

    stages = list(select(training, rounds_of(rewards[:2].mean(axis=0)), [], apply))
    assert [stage.n_tasks for stage in stages] == [2, 4]
    for stage in stages:
        means = rewards[: stage.n_tasks, list(stage.policies)].mean(axis=0)
        np.testing.assert_allclose(stage.returns, means, atol=1e-12)


def test_many_tasks_find_a_good_one_where_few_do_not():
    # Much as measured: most policies within 0.004, a difference on one task deviates by 0.015.
    few, many = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        worth = 0.76 - rng.exponential(0.002, size=82)
        apply, _ = noisy(worth, 0.011, seed=seed)
        first = np.mean(apply(validate, [(None, i, [p.weights for p in rounds_of(worth)])
                                         for i in range(20)]), axis=0)  # fmt: skip
        *_, last = select(Training(), rounds_of(first), [], apply)
        few.append(worth.max() - worth[np.argmax(first)])
        many.append(worth.max() - worth[last.best])
    assert np.mean(many) < 0.5 * np.mean(few)
    assert np.mean(many) < 0.0006


def test_of_equals_the_latest_is_the_best():
    assert Stage(1, (0, 3, 5), (0.5, 0.7, 0.7)).best == 5
    assert first_stage(Training(), rounds_of([0.7, 0.7, 0.6])).best == 1


@pytest.mark.parametrize("n_done", [1, 3, 6])
def test_a_choice_goes_on_from_any_stage(n_done):
    worth = np.linspace(0.5, 0.6, 82)

    def whole(_, jobs):
        return [[worth[round(float(p.max())) - 1] + 0.1 * np.sin(i) for p in ps]
                for _, i, ps in jobs]  # fmt: skip

    rounds = rounds_of(worth)
    stages = list(select(Training(), rounds, [], whole))
    assert list(select(Training(), rounds, stages[:n_done], whole)) == stages[n_done:]


@pytest.mark.parametrize("n_policies", [1, 2])
def test_there_is_nothing_to_halve_of_one_or_two(n_policies):
    apply, asked = noisy([0.5, 0.6], 0.0)
    (only,) = select(Training(), rounds_of([0.5, 0.6][:n_policies]), [], apply)
    assert only.best == n_policies - 1
    assert not asked


def test_one_policy_is_no_better_beside_another_than_alone():
    setting = Training(n_validation_rows=100)
    other = np.eye(len(PI_0))[0]
    assert validate((setting, 3, [other, PI_0]))[1] == validate((setting, 3, [PI_0]))[0]
