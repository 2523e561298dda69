"""A service for each test, without a socket."""

import pytest

from tests.serve.servers import Local


@pytest.fixture
def local(tmp_path):
    service = Local(tmp_path / "data")
    yield service
    service.close()
