"""Every explorer of the registry passes the checks that those of other packages are given."""

import pytest
from numpy.testing import assert_array_equal

from melee.errors import InputError
from melee.explorers import EXPLORERS, Problem
from melee.loop import simulate
from melee.preparation import prepare
from melee.testing import checks_for_explorer
from tests.seldom import seldom
from tests.twins import twin

# The defaults of every explorer, and settings under which more of them draw at random. They
# share compiled code with the defaults.
SPECS = [
    *EXPLORERS,
    "epsilon-greedy:epsilon=0.3",
    "cover:psi=1",
    "bagging:bags=4:greedify=true",
    "regcb-elim:mellowness=0.1",
    "thompson:scale=2",
    "tau-first:tau=0.6:stop=true",
    "tau-first:rounds=50",
]
FEW = ("uniform", "linucb", "melee")
CHECKS = [
    pytest.param(check, id=f"{spec}-{check}", marks=seldom(check, spec, FEW))
    for spec in SPECS
    for check in checks_for_explorer(spec, twin)
]
every_name = pytest.mark.parametrize("name", EXPLORERS)


@pytest.mark.parametrize("check", CHECKS)
def test_every_explorer_passes(check):
    check()


@every_name
def test_all_explorers_play_the_same_rows_in_the_same_order(name, easy_task):
    run = simulate(easy_task, name, seed=9)
    order = prepare(easy_task, seed=9).order
    assert_array_equal(run.prepared.order, order)
    assert_array_equal(run.rewards, easy_task.rewards[order, run.actions])


def test_every_explorer_can_be_an_agents_or_says_why_not():
    refused = {"full-information", "melee-paper", "banditron-melee"}
    grows = {
        check.subject.partition(":")[0]
        for spec in SPECS
        for check in checks_for_explorer(spec)
        if check.name == "features_join"
    }
    assert grows == set(EXPLORERS) - refused
    for name in refused:
        with pytest.raises(InputError, match=r"use melee|such as melee"):
            EXPLORERS[name]().begin_cold(Problem(2, 3))
