"""The two clients: what one can do the other can, in the same words."""

import inspect

import pytest

from melee.client import AsyncClient, Client

METHODS = [name for name in vars(Client) if not name.startswith("_")]


def test_both_clients_have_the_same_methods():
    assert [name for name in vars(AsyncClient) if not name.startswith("_")] == METHODS
    assert len(METHODS) > 5


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_the_same_of_both_clients_but_for_await(name):
    blocking, awaited = getattr(Client, name), getattr(AsyncClient, name)
    assert inspect.signature(blocking) == inspect.signature(awaited)
    assert inspect.iscoroutinefunction(awaited)
    assert not inspect.iscoroutinefunction(blocking)
    if name != "close":
        assert blocking.__doc__ == awaited.__doc__


def test_both_clients_are_made_alike():
    awaited = dict(inspect.signature(AsyncClient).parameters)
    assert awaited.pop("connections").default > 1
    assert awaited == dict(inspect.signature(Client).parameters)
