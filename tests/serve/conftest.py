"""A service for each test, without a socket; and some that share a journal."""

import asyncio

import pytest

from tests.databases import a_database, a_server
from tests.serve.nodes import Node
from tests.serve.servers import Local


@pytest.fixture
def local(tmp_path):
    service = Local(tmp_path / "data")
    yield service
    service.close()


@pytest.fixture(scope="module")
def postgres():
    with a_server() as server:
        yield server


@pytest.fixture
def address(postgres, request):
    return a_database(postgres, request.node.name)


@pytest.fixture
def nodes(address):
    with asyncio.Runner() as runner:
        made = [Node(runner, address), Node(runner, address)]
        yield made
        for one in made:
            one.close()
