"""What all tests share: when kernels are compiled, how Hypothesis runs, small tasks."""

import gc
import os

import pytest
from hypothesis import settings

os.environ.setdefault("MELEE_COMPILE", "now")  # tests of the life before machine code say so

settings.register_profile("normal", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "normal"))


@pytest.hookimpl(optionalhook=True)  # where xdist is not installed, there is no such hook
def pytest_xdist_auto_num_workers():
    """One more than there are processors: many tests wait for a process, a disk or a clock."""
    return min(4, (os.cpu_count() or 1) + 1)


def pytest_collection_finish():
    """What was imported stays, and is not to be looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def easy_task():
    """Three well separated blobs in the plane."""
    from tests.tasks import blobs

    return blobs(400, n_actions=3, n_features=2, seed=0)


@pytest.fixture(scope="session")
def hard_task():
    """Five overlapping classes, graded rewards, four features of unlike scales."""
    from tests.tasks import graded

    return graded(360, n_actions=5, n_features=4, seed=1)


@pytest.fixture(scope="session")
def easy(easy_task):
    from melee.preparation import prepare

    return prepare(easy_task, seed=3)


@pytest.fixture(scope="session")
def hard(hard_task):
    from melee.preparation import prepare

    return prepare(hard_task, seed=4)
