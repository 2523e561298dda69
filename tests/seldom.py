"""Checks that compile states of their own, for few explorers each time and for all by test-long."""

import pytest

OF_UNKNOWN_RANGE = {
    "odd_columns_do_no_harm",
    "rewards_that_never_vary_leave_a_distribution",
    "contexts_of_any_size_leave_a_distribution",
}
"""Checks on tasks whose range of rewards is not known: three programs more for every explorer."""


def seldom(check, spec, few, names=frozenset(OF_UNKNOWN_RANGE)):
    """The marks of a check: long where it compiles what is of no use to other tests."""
    return [pytest.mark.long] if check.name in names and spec not in few else []
