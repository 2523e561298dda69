"""One suite of checks that every explorer of the registry passes, new ones included."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from melee.bandit import Bandit
from melee.errors import InputError
from melee.explorers import EXPLORERS
from melee.loop import simulate
from melee.preparation import prepare
from melee.rng import stream
from melee.task import Task
from tests.tasks import absorb, arrays_of, blobs, copies_of, graded, trained

# The defaults of every explorer, and settings under which more of them draw at random. They
# share compiled code with the defaults; other learners do not, so only two explorers vary them.
SPECS = [
    *EXPLORERS,
    "epsilon-greedy:epsilon=0.3",
    "cover:psi=1",
    "bagging:bags=4:greedify=true",
    "regcb-elim:mellowness=0.1",
    "thompson:scale=2",
    "tau-first:tau=0.6:stop=true",
]
LEARNERS = [
    "epsilon-greedy:epsilon=0.1:learner=ridge",
    "epsilon-greedy:epsilon=0.1:learner=diagonal",
    "epsilon-greedy:epsilon=0.1:optimizer=ips",
    "epsilon-greedy:epsilon=0.1:optimizer=dr",
    "epsilon-greedy:epsilon=0.1:optimizer=mtr",
    "epsilon-greedy:epsilon=0.1:steps=adaptive",
    "epsilon-greedy:epsilon=0.1:loss=logistic",
    "bagging:bags=3:learner=ridge",
    "linucb:optimizer=mtr",
]

every_name = pytest.mark.parametrize("name", EXPLORERS)
every_spec = pytest.mark.parametrize("spec", SPECS)


def is_distribution(pmf):
    return pmf.min() >= 0 and pmf.max() <= 1 and abs(pmf.sum() - 1) < 1e-12


def play(bandit, task, rows):
    """Row by row: the decisions, each checked to come from the distribution that is shown."""
    decisions = []
    for row in rows:
        x, rewards = task.contexts[row], task.rewards[row]
        action, p = bandit.act(x)
        pmf = bandit.pmf(x)
        assert is_distribution(pmf)
        assert p == pmf[action]
        assert 0 < p <= 1
        absorb(bandit, x, action, rewards, p)
        decisions.append((action, p))
    return decisions


# --- probabilities ------------------------------------------------------------------------------


@every_spec
@pytest.mark.parametrize("n_actions", [2, 3, 11, 12, 100])
def test_probabilities_are_a_distribution_at_every_round(spec, n_actions):
    prepared = prepare(graded(70, n_actions=n_actions, n_features=3, seed=n_actions))
    play(Bandit.for_prepared(prepared, spec, seed=2), prepared.task, prepared.order)


@every_spec
def test_actions_are_drawn_as_often_as_the_logged_probability_says(spec):
    bandit, x = trained(spec)
    pmf, counts, n = bandit.pmf(x), np.zeros(4), 4000
    for seed in range(n):
        bandit._rng = stream(seed, "exploration")
        action, p = bandit.act(x)
        assert p == pmf[action]
        counts[action] += 1
    assert counts[pmf == 0].sum() == 0
    if (pmf > 0).sum() > 1:
        assert stats.chisquare(counts[pmf > 0], n * pmf[pmf > 0]).pvalue > 1e-3


@every_spec
def test_renaming_actions_renames_the_result(spec):
    task, new_name = graded(100, n_actions=5, n_features=3, seed=8), np.array([3, 0, 4, 1, 2])
    prepared = prepare(task)
    renamed_rewards = task.rewards[:, np.argsort(new_name)]
    other = replace(prepared, task=Task("renamed", task.contexts, renamed_rewards))
    bandit, renamed = (Bandit.for_prepared(p, spec, seed=2) for p in (prepared, other))
    renamed._rng = bandit._rng.copy()
    for row in prepared.order:
        x, rewards = task.contexts[row], task.rewards[row]
        assert_allclose(renamed.pmf(x)[new_name], bandit.pmf(x), atol=1e-9)
        action, p = bandit.act(x)
        absorb(bandit, x, action, rewards, p)
        absorb(renamed, x, int(new_name[action]), other.task.rewards[row], p)


# --- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [*SPECS, *LEARNERS])
def test_row_by_row_makes_the_same_decisions_as_the_compiled_pass(spec, hard):
    run = simulate(hard, spec, seed=7)
    bandit = Bandit.for_prepared(hard, spec, seed=7)
    decisions = play(bandit, hard.task, hard.order)
    assert len(decisions) == 330
    assert run.actions.tolist() == [action for action, _ in decisions]
    assert run.probabilities.tolist() == [p for _, p in decisions]
    assert_array_equal(run.rewards, hard.task.rewards[hard.order, run.actions])


@every_spec
def test_the_same_seed_gives_the_same_run_and_another_seed_another(spec, hard):
    first, again = simulate(hard, spec, seed=1), simulate(hard, spec, seed=1)
    assert_array_equal(first.actions, again.actions)
    assert_array_equal(first.probabilities, again.probabilities)
    others = [simulate(hard, spec, seed=seed).actions for seed in range(2, 8)]
    by_chance = bool((first.probabilities < 1).any())
    assert any((first.actions != other).any() for other in others) == by_chance


@every_name
def test_an_easy_task_is_played_better_than_by_chance(name, easy):
    by_chance = np.mean([simulate(easy, "uniform", seed=s).mean_reward for s in range(3)])
    reached = np.mean([simulate(easy, name, seed=s).mean_reward for s in range(3)])
    assert by_chance == pytest.approx(1 / 3, abs=0.06)
    if name != "uniform":
        assert reached > by_chance + 0.25


@every_name
def test_a_single_round_is_played(name, easy):
    run = simulate(easy, name, max_rounds=1)
    assert run.actions.shape == (1,)
    assert 0 < run.probabilities[0] <= 1


@every_name
def test_odd_columns_do_no_harm(name):
    task = blobs(230, n_actions=2, n_features=1, seed=5)
    x = task.contexts
    constant = np.full_like(x, 1e6)
    odd = Task("odd", np.hstack([x, constant, x, np.zeros_like(x), x * 1e-9]), task.rewards)
    for one in (task, odd):
        run = simulate(one, name, seed=1)
        assert np.isfinite(run.probabilities).all()
        assert ((run.probabilities > 0) & (run.probabilities <= 1)).all()
        if name != "uniform":
            assert run.mean_reward > 0.7


@every_name
@pytest.mark.parametrize("size", [1e-300, 1e30, 1e99])
def test_contexts_of_any_size_leave_a_distribution(name, size):
    rng = np.random.default_rng(6)
    try:
        bandit = Bandit(name, n_features=2, n_actions=3, n_rounds=30)
    except InputError as error:
        pytest.skip(f"needs a preparation, which limits the contexts: {error}")
    for i in range(15):
        x = rng.normal(size=2) * (size if i % 2 else 1.0)
        action, p = bandit.act(x)
        assert is_distribution(bandit.pmf(x))
        absorb(bandit, x, action, np.round(rng.random(3)), p)
    for array in arrays_of(bandit._state.polopt if hasattr(bandit._state, "polopt") else ()):
        assert np.isfinite(array).all()


@every_name
def test_rewards_that_never_vary_leave_a_distribution(name):
    task = graded(120, n_actions=3, n_features=2, seed=9)
    for value in (0.0, 1.0):
        run = simulate(Task("flat", task.contexts, np.full((120, 3), value)), name)
        assert ((run.probabilities > 0) & (run.probabilities <= 1)).all()
        assert run.mean_reward == value


@every_name
def test_memory_does_not_grow_with_rounds(name):
    bandit, x = trained(name, n_rounds=20)
    arrays = [(id(a), a.shape) for a in arrays_of(bandit._state)]
    for _ in range(200):
        action, p = bandit.act(x)
        absorb(bandit, x, action, np.full(4, 0.5), p)
    assert [(id(a), a.shape) for a in arrays_of(bandit._state)] == arrays


@every_name
def test_asking_changes_nothing(name, hard):
    asked, quiet = (Bandit.for_prepared(hard, name, seed=3) for _ in range(2))
    for row in hard.order[:30]:
        x, rewards = hard.task.contexts[row], hard.task.rewards[row]
        for another in hard.task.contexts[:3]:
            asked.pmf(another)
            asked.act(another)
        decision = quiet.act(x)
        assert asked.act(x) == decision
        for bandit in (asked, quiet):
            absorb(bandit, x, decision.action, rewards, decision.probability)


@every_name
def test_two_bandits_share_nothing(name):
    one, _ = trained(name)
    kept = copies_of(one._state)
    trained(name, seed=1)
    for array, copy in zip(arrays_of(one._state), kept, strict=True):
        assert_array_equal(array, copy)


@every_name
def test_all_explorers_play_the_same_rows_in_the_same_order(name, easy_task):
    run = simulate(easy_task, name, seed=9)
    order = prepare(easy_task, seed=9).order
    assert_array_equal(run.prepared.order, order)
    assert_array_equal(run.rewards, easy_task.rewards[order, run.actions])
