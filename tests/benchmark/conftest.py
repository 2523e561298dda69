import pytest

from tests.benchmark.made import InlineEngine, bench, write_suite


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    return write_suite(tmp_path_factory.mktemp("data") / "suite")


@pytest.fixture(scope="session")
def expected(suite, tmp_path_factory):
    """What every way to run the suite must give."""
    return bench(suite, tmp_path_factory.mktemp("inline") / "out", engine=InlineEngine())
