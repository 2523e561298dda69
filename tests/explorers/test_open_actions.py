"""Some actions are open: the distribution over them is that of an explorer that knows no others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.agent.model import Model
from melee.explorers import EXPLORERS, Problem, distribution, learn, parse
from melee.learners.offers import OpenActions
from melee.rng import ACT, LEARN, start_round, stream
from melee.testing.growing import of_only
from tests import naive
from tests.twins import TWINS

REFUSED = {"full-information", "melee-paper", "banditron-melee"}
SPECS = [
    *(name for name in EXPLORERS if name not in REFUSED | {"tau-first", "melee"}),
    "tau-first:rounds=20",
    "melee:hidden=0:rescale=false",
    "cover:psi=1:learner=ridge:policies=4",
    "bagging:bags=4:learner=ridge",
    "epsilon-greedy:epsilon=0.3:optimizer=dr",
    "epsilon-greedy:learner=sgd:steps=adaptive",
    "softmax:learner=sgd:loss=logistic",
    "thompson:scale=2",
]
K, D = 6, 3


@pytest.mark.parametrize("spec", SPECS)
def test_among_some_it_decides_as_the_definition_that_knows_no_others(spec):
    explorer, rng = parse(spec), np.random.default_rng(4)
    problem = Problem(D, K, n_rounds=60)
    state = explorer.among_some(explorer.start(problem))
    words = stream(5, "exploration")
    twin = TWINS[explorer.name](explorer, problem, int(words[0]))
    asked = 0
    for t in range(1, 61):
        x = np.append(rng.normal(size=D) / 2.0, 1.0)
        if t % 3 == 0:
            some = rng.permutation(K)[: 1 + t // 3 % K].tolist()
            other = twin.only(some) if explorer.name == "melee" else naive.only(twin, some)
            pmf = np.empty(len(some))
            with np.errstate(all="ignore"):
                start_round(words, t, ACT)
                distribution(state, OpenActions(x, np.array(some), K), t, words, pmf)
            assert_allclose(pmf, other.pmf(x, t), atol=getattr(other, "atol", 1e-9))
            asked += len(some) > 1
        action, p = int(rng.integers(K)), 1.0 / K
        rewards = np.round(np.clip(0.5 + x[:D].sum() * (action - 2) / 4 + rng.normal(size=K), 0, 1))
        with np.errstate(all="ignore"):
            start_round(words, t, LEARN)
            learn(state, x, t, words, action, float(rewards[action]), p)
        twin.learn(x, t, action, rewards, p)
    assert asked > 15


@pytest.mark.parametrize(
    "spec", ["melee", "linucb:hidden=8", "cover", "eg-epsilon-greedy", "banditron"]
)
def test_behind_units_and_scaling_it_is_the_same_to_the_bit(spec, monkeypatch):
    """Interpreted, compiled, and by a state from which the other actions were taken away."""
    found = []
    for mode in ("never", "now"):
        monkeypatch.setenv("MELEE_COMPILE", mode)
        model = Model(parse(spec), 0, 0, D, K)
        rows, actions = np.random.default_rng(0).normal(size=(40, D)), np.arange(40) % K
        model.learn(
            rows, actions, np.where(rows[:, 0] * (actions - 2) > 0.0, 1.0, 0.0), np.full(40, 0.5)
        )
        for some in (np.array([4]), np.array([0, 3, 5]), np.arange(1, K)):
            pmfs, alone, drawn = (np.empty((5, len(some))) for _ in range(3))
            model.act(rows[:5], np.arange(5), 0.1, pmfs, drawn[:, 0].astype(np.int64), some)
            state, model.state = model.state, of_only(model.state, model.axes, some, K)
            model.act(rows[:5], np.arange(5), 0.1, alone, drawn[:, 0].astype(np.int64))
            model.state = state
            assert_array_equal(pmfs, alone)
            found.append(pmfs.tolist())
    assert found[:3] == found[3:]


def test_machine_code_for_some_actions_is_made_when_they_are_first_asked_about():
    model = Model(parse("uniform"), 0, 0, 2, 3)
    assert len(model.programs) == 2
    model.act(
        np.zeros((1, 2)),
        np.zeros(1, np.int64),
        0.0,
        np.empty((1, 2)),
        np.zeros(1, np.int64),
        np.array([0, 2]),
    )
    assert len(model.programs) == 3
    assert len(Model(parse("uniform"), 0, 0, 2, 3).all_programs()) == 3
