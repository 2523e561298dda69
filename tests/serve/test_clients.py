"""The two clients: what one can do the other can, in the same words."""

import inspect
import json
import re
import select
from pathlib import Path
from typing import Any

import pytest

from benchmarks.calling import call
from melee.client import AsyncClient, Client
from tests.journals import reading
from tests.serve.servers import Local, running

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "service.md").read_text()
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


def test_what_the_page_does_with_a_client_can_be_done(tmp_path):
    among, alone = re.findall(r"^```python no-run\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with running(tmp_path, "--actions", "sports,politics,science") as server:
        names: dict[str, Any] = {}
        exec(alone.replace("http://localhost:8642", str(server.url)), names)
        assert names["decision"].action in ("sports", "politics", "science")
        names["client"].close()
        with Client(str(server.url), agent="articles") as client:
            client.create()
            articles = {f"a{i}": {"topic": "sport" if i % 2 else "film"} for i in range(5)}
            exec(among, {"client": client, "articles": articles})


def test_what_the_page_posts_is_answered(tmp_path):
    posted = re.findall(r"localhost:8642(/v1/decisions) -d '(.*?)'", PAGE, re.DOTALL)
    assert len(posted) > 1
    for i, (path, body) in enumerate(posted):
        content = json.loads(body)
        parameters = {} if "actions" in content else {"actions": ["sports", "politics"]}
        local = Local(tmp_path / str(i), {"agent": parameters})
        status, answer = local.ask("POST", path, content)
        local.close()
        assert status == 200, answer


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="the callers wait by epoll")
def test_callers_of_the_benchmark_decide_and_reward(tmp_path):
    with running(tmp_path / "data", "--actions", "a,b", "--explorer", "epsilon-greedy") as server:
        found = call(str(server.url), n_pairs=50, n_callers=4)
        again = call(str(server.url), n_pairs=7, n_callers=7)
        assert server.stop() == 0
    assert found["failed"] == again["failed"] == 0
    kinds = [event.kind for event in reading(tmp_path / "data").events()]
    assert (kinds.count("decision"), kinds.count("reward")) == (57, 57)


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="the callers wait by epoll")
def test_requests_that_fail_are_counted(tmp_path):
    with running(tmp_path / "data", "--candidates", "--explorer", "epsilon-greedy") as server:
        assert call(str(server.url), n_pairs=5, n_callers=2)["failed"] == 10
