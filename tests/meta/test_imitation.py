import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from melee.bandit import Bandit
from melee.explorers.melee import N_INPUTS, Melee, Network, exponents, own_state
from melee.meta import imitation
from melee.meta.episodes import episode, run, start
from melee.meta.imitation import Tried, collect, expected_value, fit, pack, unpack
from melee.rng import generator, stream

EXPLORER = Melee(hidden=4, guard=False)


def network(seed=0, n_units=3, size=0.3):
    rng = np.random.default_rng(seed)
    rule = Network.rule(n_units)
    return rule._replace(
        inner=rng.normal(size=rule.inner.shape), outer=size * rng.normal(size=n_units)
    )


def tried(seed=0, n=40):
    rng = np.random.default_rng(seed)
    there = np.ones((n, 4))
    there[::3, 2:] = 0.0
    return Tried(
        rng.normal(size=(n, 4, N_INPUTS)) * 0.2,
        rng.random((n, 4)),
        rng.random((n, 4)) * 0.5,
        rng.normal(size=(n, 4)),
        there,
    )


def test_the_gradient_of_the_expected_value_is_its_slope():
    block, net = tried(), network()
    values = imitation._relative(block)

    def worth(weights):
        return expected_value(unpack(weights, net), block, values)[0]

    slope = expected_value(net, block, values)[1]
    assert_allclose(slope, approx_fprime(pack(net), worth, 1e-7), atol=2e-5)


def test_packing_loses_nothing():
    net = network(5)
    for one, other in zip(net, unpack(pack(net), net), strict=True):
        assert_array_equal(one, other)


def test_learning_prefers_the_valuable_action_where_values_follow_a_feature():
    block = tried(n=600)
    block.values[:] = 3.0 * block.features[:, :, 11] + 0.1 * block.values
    blocks = [Tried(*(part[i::12] for part in vars(block).values())) for i in range(12)]
    net = network(size=0.0)
    before = expected_value(net, block, imitation._relative(block))[0]
    after = expected_value(fit(blocks, net), block, imitation._relative(block))[0]
    assert after > before + 0.2


def test_learning_from_noise_alone_stays_close_to_where_it_was():
    blocks = [tried(seed=i, n=30) for i in range(40)]
    for block in blocks:
        block.values[:] = np.random.default_rng(int(1e6 * block.means[0, 0])).normal(size=(30, 4))
    net = network()
    assert np.abs(pack(fit(blocks, net)) - pack(net)).max() < 1.0


@pytest.mark.parametrize("horizon", [0, 1, 7])
def test_values_are_what_playing_on_row_by_row_earns(horizon):
    net, seed = network(), 2
    found = collect(("lifelike", seed, EXPLORER, net, 6, horizon))
    prepared = episode("lifelike", seed, EXPLORER)
    u = generator(seed, "states").random(6)
    rounds = np.unique(np.exp(u * np.log(prepared.n_rounds)).astype(int) - 1)
    assert len(found.values) == len(rounds)
    for i, first in enumerate(rounds.tolist()):
        for j in range(int(found.there[i].sum())):
            value = value_by_hand(prepared, net, first, j, horizon, found, i)
            assert found.values[i, j] == pytest.approx(value, abs=1e-12)


def value_by_hand(prepared, net, first, j, horizon, found, i):
    """Play the episode with a Bandit up to the state, take the action, and go on."""
    bandit = Bandit.for_prepared(prepared, explorer_of(net))
    bandit._rng = stream(2, "roll-in")
    task = prepared.task
    for row in prepared.order[:first]:
        action, p = bandit.act(task.contexts[row])
        bandit.learn(task.contexts[row], action, task.rewards[row, action], p)
    row = prepared.order[first]
    bandit.act(task.contexts[row])
    own = own_state(bandit._state)
    scores = own.means + np.exp(exponents(net, own.features)) * own.spreads
    scores[np.argmax(own.means)] = np.inf
    action = int(np.argsort(-scores, kind="stable")[j])
    total = task.rewards[row, action]
    bandit.learn(task.contexts[row], action, total, 1.0)
    for row in prepared.order[first + 1 : first + 1 + horizon]:
        action, p = bandit.act(task.contexts[row])
        total += task.rewards[row, action]
        bandit.learn(task.contexts[row], action, task.rewards[row, action], p)
    return total


def explorer_of(net):
    """The explorer of these tests, under a network of its own."""

    class Fixed(Melee):
        def start(self, problem):
            return self.start_with(net, problem)

    return Fixed(hidden=EXPLORER.hidden, guard=False)


def test_an_episode_is_the_same_run_for_the_same_seed():
    prepared = episode("lifelike", 4, EXPLORER)
    first = run(start(EXPLORER, network(), prepared)[0], prepared, 4)
    again = run(start(EXPLORER, network(), prepared)[0], prepared, 4)
    assert_array_equal(first, again)
