"""Whole passes, which always wait for machine code: interpreted they give the same bits.

Here, in `tests/agent/test_cold_start.py` and in `test_forms.py` the lines of kernels are run one by
one, so that `make coverage` sees them.
"""

import pytest
from numpy.testing import assert_array_equal

from melee.compiled import programs
from melee.explorers import EXPLORERS, parse
from melee.loop import simulate
from melee.meta.aggrevate import start
from melee.meta.banditron import trace
from melee.meta.rollouts import roll_in
from melee.preparation import prepare
from tests.meta.test_rollouts import GREEDY
from tests.tasks import arrays_of, graded

pytestmark = pytest.mark.skipif(
    programs.mode() == "never", reason="compares with machine code, which is not to be compiled"
)


@pytest.fixture
def both(monkeypatch):
    """What a function gives, compiled and interpreted."""

    def call(function):
        compiled = function()
        with monkeypatch.context() as patch:
            patch.setattr(programs, "_PROGRAMS", {})
            patch.setenv("MELEE_COMPILE", "never")
            interpreted = function()
            assert not any(one.ready for one in programs._PROGRAMS.values())
            assert programs._PROGRAMS
        return compiled, interpreted

    return call


@pytest.fixture(scope="module")
def prepared():
    return prepare(graded(70, n_actions=3, n_features=2, seed=8), seed=1)


@pytest.mark.parametrize("spec", EXPLORERS)
def test_a_simulation(spec, both):
    # Forty rounds, after 30 rows by which contexts are scaled and a learning rate is chosen.
    task = graded(70, n_actions=3, n_features=3, seed=2)
    compiled, interpreted = both(lambda: simulate(task, spec, seed=4))
    assert len(compiled.actions) == 40
    assert interpreted.prepared.learning_rate == compiled.prepared.learning_rate
    assert_array_equal(interpreted.actions, compiled.actions)
    assert_array_equal(interpreted.probabilities, compiled.probabilities)
    assert interpreted.diagnostics == compiled.diagnostics


@pytest.mark.parametrize("kind", ["expert", "lookahead", "policy"])
def test_a_roll_in(kind, both, prepared):
    def roll():
        state = start(GREEDY, prepared, 0.1)
        rolled = roll_in(state, prepared, kind=kind, beta=0.2, horizon=3, every=10, seed=2)
        return rolled.features, rolled.values, *arrays_of(state)

    for one, other in zip(*both(roll), strict=True):
        assert_array_equal(one, other)


def test_a_traced_run_of_banditron(both, prepared):
    compiled, interpreted = both(lambda: trace(prepared, parse("banditron"), seed=3))
    assert_array_equal(interpreted.mistakes, compiled.mistakes)
    assert_array_equal(interpreted.edges, compiled.edges)
