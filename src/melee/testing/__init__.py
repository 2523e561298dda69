"""The checks that every explorer and learner of this package passes, for those of other packages.

    from melee.testing import check_explorer

    def test_it_is_an_explorer():
        check_explorer("boltzmann-decay")

Nothing here needs a test runner. With pytest, `checks_for_explorer` gives a test per check:

    @pytest.mark.parametrize("check", checks_for_explorer("boltzmann-decay"), ids=str)
    def test_it_passes(check):
        check()
"""

from melee.testing.checks import Check
from melee.testing.explorers import check_explorer, checks_for_explorer
from melee.testing.learners import check_learner, checks_for_learner

__all__ = ["Check", "check_explorer", "check_learner", "checks_for_explorer", "checks_for_learner"]
