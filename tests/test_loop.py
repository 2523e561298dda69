from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from melee.bandit import Bandit
from melee.compiled import programs
from melee.errors import InputError, UnknownNameError
from melee.loop import simulate
from melee.preparation import prepare
from melee.task import Task
from tests.tasks import arrays_of, copies_of

SPECS = ["epsilon-greedy:epsilon=0.3", "linucb", "cover"]
X = [0.5, -1.0]


@pytest.fixture(params=SPECS)
def bandit(request):
    """A bandit of two features and three actions, some rounds old."""
    bandit = Bandit(request.param, n_features=2, n_actions=3, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = rng.normal(size=2)
        action, probability = bandit.act(x)
        bandit.learn(x, action, rng.random(), probability)
    return bandit


# --- runs -----------------------------------------------------------------------------------------


def test_a_run_logs_one_entry_per_round(hard):
    run = simulate(hard, "softmax", seed=3)
    assert run.actions.shape == run.rewards.shape == run.probabilities.shape == (330,)
    assert run.actions.min() >= 0
    assert run.actions.max() <= 4
    assert_array_equal(run.rewards, hard.task.rewards[hard.order, run.actions])
    assert run.mean_reward == pytest.approx(run.rewards.mean())
    assert run.seconds > 0
    assert run.seed == 3


def test_the_learning_curve_is_the_mean_reward_so_far(hard):
    run = simulate(hard, "softmax")
    assert run.curve[0] == run.rewards[0]
    assert run.curve[9] == pytest.approx(run.rewards[:10].mean())
    assert run.curve[-1] == pytest.approx(run.mean_reward)


def test_a_task_is_prepared_with_the_runs_seed(hard_task):
    run = simulate(hard_task, "softmax", seed=5)
    other = simulate(prepare(hard_task, seed=5), "softmax", seed=5)
    assert_array_equal(run.actions, other.actions)
    assert_array_equal(run.prepared.order, other.prepared.order)


def test_a_run_leaves_the_task_and_its_preparation_as_they_were(hard):
    kept = [
        a.copy() for a in (hard.task.contexts, hard.task.rewards, hard.order, *hard.scaling[:1])
    ]
    simulate(hard, "cover")
    for now, before in zip(
        (hard.task.contexts, hard.task.rewards, hard.order, *hard.scaling[:1]), kept, strict=True
    ):
        assert_array_equal(now, before)


def test_what_is_asked_between_acting_and_learning_does_not_matter():
    prompt, late = (Bandit("bagging:bags=4", n_features=2, n_actions=3, seed=2) for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=2)
        decision = prompt.act(x)
        reward = rng.random()
        prompt.learn(x, decision.action, reward, decision.probability)
        assert late.act(x) == decision
        for _ in range(rng.integers(3)):
            late.act(rng.normal(size=2))
        late.learn(x, decision.action, reward, decision.probability)
    assert_array_equal(prompt.pmf(X), late.pmf(X))


def test_learning_counts_rounds(bandit):
    assert bandit.n_learned_ == 10
    bandit.learn(X, 0, 0.5, 0.5)
    assert bandit.n_learned_ == 11


@pytest.mark.parametrize("x", [X, tuple(X), np.array(X), np.array(X, np.float32), [0, 1]])
def test_contexts_may_be_any_row_of_numbers(x):
    bandit = Bandit("epsilon-greedy", n_features=2, n_actions=3)
    bandit.learn(x, 1, 1.0, 1 / 3)
    assert bandit.act(x) == (1, 1.0)


def test_numbers_of_numpy_are_taken_without_compiling_again():
    bandit = Bandit("epsilon-greedy:epsilon=0.3", n_features=2, n_actions=3)
    bandit.learn(X, 1, 0.5, 0.5)
    known = len(programs._PROGRAMS)
    given: list[Any] = [np.int64(1), np.int32(1), np.uint8(1), np.float32(0.5)]
    for action in given[:3]:
        bandit.learn(X, action, given[3], np.float64(0.5))
    bandit.learn(X, 1, 1, 1)
    assert len(programs._PROGRAMS) == known


# --- bad input ------------------------------------------------------------------------------------


CONTEXTS = [
    ([np.nan, 0.0], r"the context holds nan at position 0; expected finite numbers"),
    ([0.0, np.inf], r"the context holds inf at position 1; expected finite numbers: fill missing"),
    ([0.0, -np.inf], r"the context holds -inf at position 1"),
    ([0.0, 1e200], r"the context holds 1e\+200 at position 1; .*1e100"),
    ([0.0], r"the context is of shape \(1,\); expected 2 numbers in one dimension"),
    ([0.0, 1.0, 2.0], r"the context is of shape \(3,\); expected 2 numbers"),
    ([[0.0, 1.0]], r"the context is of shape \(1, 2\); expected 2 numbers"),
    ([], r"the context is of shape \(0,\); expected 2 numbers"),
    (0.5, r"the context is of shape \(\); expected 2 numbers"),
    (["a", "b"], r"the context is not numbers; expected 2 numbers"),
    ([None, 1.0], r"the context (is not numbers|holds nan)"),
    ({"a": 1}, r"the context is not numbers; expected 2 numbers"),
]
ROUNDS = [
    ({"action": 3}, r"action 3 does not exist: there are 3 actions, 0 to 2"),
    ({"action": -1}, r"action -1 does not exist"),
    ({"action": 1.0}, r"action 1\.0 does not exist"),
    ({"action": "1"}, r"action '1' does not exist"),
    ({"action": None}, r"action None does not exist"),
    ({"action": True}, r"action True does not exist"),
    ({"reward": 1e300}, r"reward is 1e\+300; expected a finite number, within ±1e100, in any unit"),
    ({"reward": -np.inf}, r"reward is -inf; expected a finite number"),
    ({"reward": np.nan}, r"reward is nan; expected a finite number"),
    ({"reward": "1"}, r"reward is '1'; expected a finite number"),
    ({"reward": None}, r"reward is None; expected a finite number"),
    ({"probability": 0.0}, r"probability is 0\.0; expected a number in \(0, 1\], the one that was"),
    ({"probability": 2.0}, r"probability is 2\.0; expected a number in \(0, 1\]"),
    ({"probability": -0.5}, r"probability is -0\.5; expected a number in \(0, 1\]"),
    ({"probability": np.nan}, r"probability is nan; expected a number in \(0, 1\]"),
    ({"probability": "0.5"}, r"probability is '0\.5'; expected a number in \(0, 1\]"),
    ({"probability": None}, r"probability is None; expected a number in \(0, 1\]"),
]
REWARDS = [
    ([0.0, 1.0], r"rewards are \[0\.0, 1\.0\]; expected 3 numbers"),
    ([0.0, np.nan, 1.0], r"the reward is nan; expected a finite number"),
    ([0.0, -1e200, 1.0], r"the reward is -1e\+200; expected a finite number, within ±1e100"),
    ([[0.0, 1.0, 0.5]], r"expected 3 numbers"),
    (["a", "b", "c"], r"expected 3 numbers"),
    (None, r"rewards are None; expected 3 numbers"),
]


def refuses(bandit, sentence, call):
    """The call is refused with this sentence, and nothing is different afterwards."""
    decision = bandit.act(X)
    kept, n_learned = copies_of(bandit._state), bandit.n_learned_
    with pytest.raises(InputError, match=sentence):
        call()
    for now, before in zip(arrays_of(bandit._state), kept, strict=True):
        assert_array_equal(now, before)
    assert bandit.n_learned_ == n_learned
    assert bandit.act(X) == decision


@pytest.mark.parametrize(("x", "sentence"), CONTEXTS)
def test_a_context_that_cannot_be_used_is_refused(bandit, x, sentence):
    refuses(bandit, sentence, lambda: bandit.act(x))
    refuses(bandit, sentence, lambda: bandit.pmf(x))
    refuses(bandit, sentence, lambda: bandit.learn(x, 0, 0.5, 0.5))


@pytest.mark.parametrize(("change", "sentence"), ROUNDS)
def test_a_round_that_cannot_be_is_refused(bandit, change, sentence):
    a_round = {"action": 1, "reward": 0.5, "probability": 0.5} | change
    refuses(bandit, sentence, lambda: bandit.learn(X, **a_round))


@pytest.mark.parametrize(("rewards", "sentence"), REWARDS)
def test_rewards_that_cannot_be_revealed_are_refused(rewards, sentence):
    bandit = Bandit("full-information", n_features=2, n_actions=3)
    bandit.reveal(X, 0, [0.1, 0.2, 0.3], 1 / 3)
    refuses(bandit, sentence, lambda: bandit.reveal(X, 0, rewards, 0.5))


@pytest.mark.parametrize("reward", [-2.01, 5.01, 1e99])
@pytest.mark.parametrize("spec", ["linucb", "melee:cold=true", "full-information"])
def test_a_reward_outside_of_its_declared_range_is_refused(spec, reward):
    bandit = Bandit(spec, n_features=2, n_actions=3, reward_range=(-2, 5))
    bandit.learn(X, 1, -2, 0.5)
    bandit.learn(X, 1, 5.0, 0.5)
    sentence = (
        rf"the reward is {reward:g} and rewards were declared to be from -2 to 5; give a "
        "reward_range that holds all of them, or leave it out"
    ).replace("+", r"\+")
    refuses(bandit, sentence, lambda: bandit.learn(X, 1, reward, 0.5))
    refuses(bandit, sentence, lambda: bandit.reveal(X, 1, [0.0, reward, 1.0], 0.5))


def test_revealing_checks_the_rest_of_the_round_too():
    bandit = Bandit("full-information", n_features=2, n_actions=3)
    rewards = [0.1, 0.2, 0.3]
    refuses(bandit, "action 3 does not exist", lambda: bandit.reveal(X, 3, rewards, 0.5))
    refuses(bandit, "probability is 0", lambda: bandit.reveal(X, 0, rewards, 0.0))
    refuses(bandit, "context holds nan", lambda: bandit.reveal([np.nan, 0.0], 0, rewards, 0.5))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"reward_range": (1, 0)},
            r"reward_range is \(1, 0\); expected the least and the greatest",
        ),
        ({"reward_range": (0, 0)}, r"reward_range is \(0, 0\); expected the least"),
        ({"reward_range": (0, np.inf)}, r"reward_range is \(0, inf\); expected the least"),
        ({"reward_range": (np.nan, 1)}, r"reward_range is \(nan, 1\); expected the least"),
        ({"reward_range": (0, 1, 2)}, r"reward_range is \(0, 1, 2\); expected the least"),
        ({"reward_range": 1}, r"reward_range is 1; expected the least"),
        ({"reward_range": "01"}, r"reward_range is '01'; expected the least"),
        (
            {"n_actions": 1},
            r"a bandit of 2 features and 1 actions; expected at least 1 feature and 2",
        ),
        ({"n_features": 0}, r"a bandit of 0 features and 3 actions; expected at least 1 feature"),
        ({"n_features": -2}, r"expected at least 1 feature and 2 actions"),
        ({"n_features": 2.5}, r"2\.5 features"),
        ({"n_actions": "3"}, r"'?3'? actions"),
        ({"seed": -1}, r"seed is -1; expected a whole number, 0 or larger"),
        ({"seed": 0.5}, r"seed is 0\.5; expected a whole number"),
        ({"n_rounds": 0}, r"n_rounds is 0; expected .*at least 1"),
        ({"n_rounds": -3}, r"n_rounds is -3; expected .*at least 1"),
        ({"n_rounds": 1.5}, r"n_rounds is 1\.5; expected"),
    ],
)
def test_a_bandit_that_cannot_be_is_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Bandit("tau-first", **({"n_features": 2, "n_actions": 3, "n_rounds": 9} | settings))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"seed": -1}, r"seed is -1; expected a whole number, 0 or larger"),
        ({"seed": True}, r"seed is True; expected a whole number"),
        ({"max_rounds": 0}, r"max_rounds is 0; expected .*at least 1"),
        ({"max_rounds": -1}, r"max_rounds is -1; expected .*at least 1"),
        ({"max_rounds": 1.5}, r"max_rounds is 1\.5; expected"),
        ({"explorer": "linucb:alpha=-1"}, r"alpha is -1\.0; expected a number, at least 0"),
        ({"explorer": None}, r"explorer is None; expected a SPEC string"),
    ],
)
def test_a_simulation_that_cannot_be_is_refused(settings, sentence, easy, easy_task):
    for task in (easy, easy_task):
        with pytest.raises(InputError, match=sentence):
            simulate(task, **({"explorer": "uniform"} | settings))


def test_an_unknown_explorer_is_refused_everywhere(easy):
    with pytest.raises(UnknownNameError, match="unknown explorer 'best'"):
        simulate(easy, "best")
    with pytest.raises(UnknownNameError, match="unknown explorer 'best'"):
        Bandit("best", n_features=2, n_actions=2)


@pytest.mark.parametrize("task", ["iris", None, [[0.0, 1.0]]])
def test_what_is_no_task_is_refused(task):
    for use in (prepare, lambda t: simulate(t, "uniform")):
        with pytest.raises(InputError, match=r"task is .*; expected a Task"):
            use(task)


def test_runs_on_tasks_that_know_expected_rewards_have_a_share():
    rng = np.random.default_rng(0)
    rates = rng.random((400, 3))
    rewards = (rng.random((400, 3)) < rates).astype(float)
    task = Task("t", rng.normal(size=(400, 2)), rewards, expected=rates)
    run = simulate(task, "uniform", seed=1, max_rounds=300)
    rows = run.prepared.order[:300]
    played = rates[rows, run.actions].mean()
    uniform, best = rates[rows].mean(), rates[rows].max(axis=1).mean()
    assert run.expected_reward == pytest.approx(played)
    assert run.share == pytest.approx((played - uniform) / (best - uniform))
    plain = simulate(Task("t", task.contexts, rewards), "uniform")
    assert plain.expected_reward is None
    assert plain.share is None
    equal = simulate(Task("t", task.contexts, rewards, expected=0.0 * rates), "uniform")
    assert equal.expected_reward == 0.0
    assert equal.share is None
