"""Candidates over HTTP: actions that come with each question, and rankings."""

import asyncio
import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from melee.agent.recalling import offered_in
from melee.auditing import audit
from melee.cli import app
from melee.client import AsyncClient, Client
from melee.client.load import catalogue, load, read_catalogue
from melee.errors import InputError, MeleeError
from melee.journal import Journal
from melee.serve import bodies, routes
from melee.serve.openapi import SCHEMAS
from tests.serve.servers import Local, running
from tests.serve.test_openapi import complaints

SHELF = {"a17": {"topic": "sport", "hours": 3}, "a18": {"topic": "film", "hours": 40}}
READER = {"age": 31, "device": "phone"}


@pytest.fixture
def shop(tmp_path):
    service = Local(tmp_path / "data", {"agent": {"explorer": "linucb:alpha=0.2"}})
    yield service
    service.close()


def fingerprint(shop):
    return shop.service.agents["agent"].agent.fingerprint


def ask(shop, **body):
    return shop.ask("POST", "/v1/decisions", {"context": READER, **body})


def test_candidates_are_decided_about_rewarded_and_looked_at(shop):
    status, made = ask(shop, actions=SHELF, id="one", explain=True)
    assert status == 200
    assert made["actions"] == ["a17", "a18"]
    assert complaints(made, SCHEMAS["Decided"]) == []
    assert {one["action"] for one in made["explanation"]["actions"]} == set(SHELF)
    assert shop.ask("POST", "/v1/decisions/one/reward", {"reward": 1})[1]["learned"] == 1
    status, past = shop.ask("GET", "/v1/decisions/one/explanation")
    assert status == 200
    assert complaints(past, SCHEMAS["Past"]) == []
    assert past["features"] == list(SHELF.values())
    assert past["reward"] == 1
    about = shop.ask("GET", "/v1/agents/agent")[1]
    assert complaints(about, SCHEMAS["Status"]) == []
    assert about["parameters"]["actions"] is None
    assert [one["action"] for one in about["actions"]] == [made["action"]]


def test_a_list_has_labels_that_are_no_texts(shop):
    listed = [
        {"action": 10, "features": {"price": 10}},
        {"action": {"tuple": ["b", 1]}, "features": {"price": 12}},
        {"action": "free"},
    ]
    status, made = ask(shop, actions=listed)
    assert status == 200
    assert made["actions"] == [10, {"tuple": ["b", 1]}, "free"]
    status, plain = ask(shop, actions=["x", "y"])
    assert (status, plain["actions"]) == (200, ["x", "y"])


def test_the_same_request_gets_the_same_decision_and_another_one_is_refused(shop):
    first = ask(shop, actions=SHELF, id="one")
    assert first == ask(shop, actions=SHELF, id="one")
    changed = {**SHELF, "a18": {"topic": "news", "hours": 40}}
    assert ask(shop, actions=changed, id="one")[0] == 409
    assert ask(shop, actions={"a17": SHELF["a17"]}, id="one")[0] == 409
    other = {"context": {"age": 1}, "actions": SHELF, "id": "one"}
    assert shop.ask("POST", "/v1/decisions", other)[0] == 409


def test_rankings_have_places_with_rewards_of_their_own_and_are_repeated(shop):
    shelf = {f"a{i}": {"hours": i} for i in range(5)}
    status, ranking = ask(shop, actions=shelf, top=3, id="r")
    assert status == 200
    assert complaints(ranking, SCHEMAS["Decided"]) == []
    assert [one["id"] for one in ranking["places"]] == ["r/1", "r/2", "r/3"]
    assert len({one["action"] for one in ranking["places"]}) == 3
    assert [len(one["actions"]) for one in ranking["places"]] == [5, 4, 3]
    assert ask(shop, actions=shelf, top=3, id="r") == (200, ranking)
    assert ask(shop, actions=shelf, top=2, id="r")[0] == 409
    assert ask(shop, actions={**shelf, "a0": {"hours": 9}}, top=3, id="r")[0] == 409
    assert ask(shop, actions=shelf, id="d")[0] == 200
    assert ask(shop, actions=shelf, top=3, id="d")[0] == 409
    status, answer = ask(shop, actions=shelf, id="r")
    assert (status, "'r' is taken by a ranking" in answer["error"]) == (409, True)
    many = {"contexts": [{"age": 1}] * 2, "actions": shelf, "ids": ["new", "r"]}
    assert shop.ask("POST", "/v1/decisions", many)[0] == 409
    assert shop.ask("GET", "/v1/decisions/new")[0] == 404
    status, answer = shop.ask("POST", "/v1/decisions/r/reward", {"reward": 1})
    assert (status, "'r' is a ranking, whose places have" in answer["error"]) == (404, True)
    rewards = [{"id": f"r/{place}", "reward": float(place == 2)} for place in (1, 2, 3)]
    assert shop.ask("POST", "/v1/rewards", {"rewards": rewards})[1]["learned"] == 3
    assert shop.ask("GET", "/v1/decisions/r%2F2")[1]["reward"] == 1.0


def test_decisions_may_have_ids_like_those_of_places(shop):
    assert ask(shop, actions=SHELF, id="visit/1")[0] == 200
    status, made = ask(shop, actions=SHELF, id="visit")
    assert status == 200
    assert ask(shop, actions=SHELF, id="visit") == (200, made)


def test_rankings_of_actions_that_stay(local):
    asked = {"context": {"x": 1}, "top": 2, "id": "r"}
    status, ranking = local.ask("POST", "/v1/decisions", asked)
    assert status == 200
    assert local.ask("POST", "/v1/decisions", asked) == (200, ranking)
    plain = {"context": {"x": 1}, "id": "r"}
    for more in ({}, {"chosen": ranking["places"][0]["action"]}):
        assert local.ask("POST", "/v1/decisions", plain | more)[0] == 409
    at_once = [{"context": {"x": 1}, "id": "s", **more} for more in ({"top": 2}, {})]
    found = local.ask_at_once(*(("POST", "/v1/decisions", body) for body in at_once))
    assert sorted(status for status, _ in found) == [200, 409]
    assert local.ask("POST", "/v1/decisions", {"context": {"x": 1}, "top": 4})[0] == 400


def test_batches_have_candidates_for_all_or_for_each(shop):
    contexts = [{"age": 1}, {"age": 2}]
    status, made = shop.ask("POST", "/v1/decisions", {"contexts": contexts, "actions": SHELF})
    assert status == 200
    assert [one["actions"] for one in made["decisions"]] == [["a17", "a18"]] * 2
    each = [SHELF, [{"action": 7, "features": {"hours": 1}}]]
    body = {"contexts": contexts, "actions": each, "ids": ["x", "y"]}
    status, made = shop.ask("POST", "/v1/decisions", body)
    assert status == 200
    assert [one["actions"] for one in made["decisions"]] == [["a17", "a18"], [7]]
    more = {"contexts": [*contexts, {"age": 3}], "actions": [*each, SHELF], "ids": ["x", "y", "z"]}
    again = shop.ask("POST", "/v1/decisions", more)[1]["decisions"]
    assert again[:2] == made["decisions"]
    assert again[2]["id"] == "z"
    other = {"contexts": contexts, "actions": [each[1], SHELF], "ids": ["x", "y"]}
    assert shop.ask("POST", "/v1/decisions", other)[0] == 409


BAD: list[dict[str, Any]] = [
    {"actions": None},
    {"actions": {}},
    {"actions": []},
    {"actions": {"a": {"x": {"y": 1}}}},
    {"actions": {"a": {"x": 1}, "b": [1, 2]}},
    {"actions": {"a": 7}},
    {"actions": [{"action": "a"}, {"action": "a", "features": {"x": 1}}]},
    {"actions": [{"action": "a"}, "b"]},
    {"actions": [{"action": "a", "price": 1}]},
    {"actions": [{"features": {}}]},
    {"actions": "a"},
    {"actions": 3},
    {"actions": {"a": {"x": 1e300}}},
    {"actions": {"a": {"x": 1}}, "top": 0},
    {"actions": {"a": {"x": 1}}, "top": 2},
    {"actions": {"a": {"x": 1}}, "top": "many"},
    {"actions": {"a": {"x": 1}}, "top": 1, "explain": True},
    {"actions": {"a": {"x": 1}}, "top": 1, "unit": "visitor 7"},
    {"actions": {f"a{i}": {} for i in range(routes.MANY + 1)}},
    {"actions": [{"action": i} for i in range(routes.MANY + 1)]},
]


def test_bad_candidates_are_refused_in_words_and_change_nothing(shop):
    before = fingerprint(shop)
    for body in BAD:
        status, answer = ask(shop, **body)
        assert status == 400, json.dumps(body)[:80]
        assert len(answer["error"]) > 20
    assert fingerprint(shop) == before


def test_other_kinds_than_before_and_raw_nan_are_refused(shop):
    assert ask(shop, actions=SHELF)[0] == 200
    before = fingerprint(shop)
    status, answer = ask(shop, actions={"a": [1.0, 2.0]})
    assert status == 400
    assert "expected a dict, as the first ones were" in answer["error"]
    raw = b'{"context": {"x": 1}, "actions": {"a": {"x": NaN}}}'
    assert shop.ask("POST", "/v1/decisions", raw)[0] == 400
    twice = b'{"context": {"x": 1}, "actions": {"a": {"x": 1}, "a": {"x": 2}}}'
    status, answer = shop.ask("POST", "/v1/decisions", twice)
    assert status == 400
    assert "twice" in answer["error"]
    each = {"contexts": [READER, READER], "actions": [SHELF, {"a": [1.0]}]}
    assert shop.ask("POST", "/v1/decisions", each)[0] == 400
    lengths = {"contexts": [READER, READER], "actions": [SHELF]}
    assert shop.ask("POST", "/v1/decisions", lengths)[0] == 400
    assert fingerprint(shop) == before
    assert shop.ask("POST", "/v1/actions", {"add": ["a"]})[0] == 400


def test_a_request_has_so_many_candidates_and_no_more():
    few: Any = {f"a{i}": {} for i in range(10)}
    assert len(bodies.offers([few] * 100, 1000) or []) == 100
    many: Any = {f"a{i}": {} for i in range(1000)}
    with pytest.raises(ValueError, match="expected at most 100,000 in one request"):
        bodies.offers([many] * 101, 1000)


def test_agents_without_actions_are_made_by_put(local):
    status, made = local.ask("PUT", "/v1/agents/shop", {"explorer": "linucb"})
    assert (status, made["actions"]) == (201, [])
    assert local.ask("PUT", "/v1/agents/shop", {"explorer": "linucb"})[0] == 200
    assert local.ask("PUT", "/v1/agents/shop", {"actions": ["a"]})[0] == 409
    asked = {"context": READER, "actions": SHELF}
    assert local.ask("POST", "/v1/agents/shop/decisions", asked)[0] == 200
    assert local.ask("POST", "/v1/decisions", asked)[0] == 400  # of an agent whose actions stay
    assert local.ask("PUT", "/v1/agents/none", {"explorer": "cover"})[0] == 400


@pytest.mark.long
def test_a_server_of_candidates_survives_a_kill(tmp_path):
    prices = {10: {"price": 10.0}, 12: {"price": 12.0}}
    with running(tmp_path, "--candidates", "--explorer", "linucb") as server:
        with Client(str(server.url)) as client:
            ranking = client.act(READER, actions=SHELF, top=2, id="r")
            assert set(ranking.actions) == set(SHELF)
            decision = client.act(READER, actions=prices)
            assert decision.action in prices
            many = client.act_many([READER] * 2, actions=[SHELF, prices])
            assert [len(one.actions) for one in many] == [2, 2]
            assert client.learn(ranking.places[0], 1.0)
        server.kill()
    with running(tmp_path) as server, Client(str(server.url)) as client:
        assert client.act(READER, actions=SHELF, top=2, id="r") == ranking
        assert client.learn(decision.id, 0.5)
        assert client.explain("r/1")["features"] == list(SHELF.values())
    assert audit(Journal(tmp_path, writing=False)).difference is None


# -- under load ----------------------------------------------------------------------------------


def test_load_is_put_on_an_agent_that_takes_candidates(tmp_path):
    path = tmp_path / "shelf.json"
    path.write_text(json.dumps(SHELF))
    with running(tmp_path / "data", "--candidates", "--explorer", "linucb") as server:

        async def main(**options):
            async with AsyncClient(str(server.url), connections=4) as client:
                return await load(client, n_callers=4, n_pairs=20, **options)

        found = asyncio.run(main(n_candidates=7))
        assert (found.n_pairs, found.n_failed) == (20, 0)
        refused = asyncio.run(main())
        assert (refused.n_pairs, refused.n_failed) == (0, 20)
        url = ["load-test", str(server.url), "--callers", "2", "--pairs"]
        for options in (["--candidates", "2"], []):
            done = CliRunner().invoke(app, [*url, "10", *options, "--catalogue", str(path)])
            assert done.exit_code == 0, done.output
            assert done.stdout.startswith("10 decisions and rewards in ")
        server.stop()
        with pytest.raises(MeleeError, match="cannot be reached"):
            CliRunner().invoke(app, [*url, "10"], catch_exceptions=False)
    journal = Journal(tmp_path / "data", writing=False)
    made = [event for event in journal.events() if event.kind == "decision"]
    offers = [offered_in(event, journal) for event in made]
    items = catalogue()
    assert [len(offer.labels) for offer in offers] == [7] * 20 + [2] * 20
    for offer in offers[:20]:
        assert offer.features == tuple(items[label] for label in offer.labels)
    assert len({offer.labels for offer in offers[:20]}) == 20
    assert {label for offer in offers[20:] for label in offer.labels} == set(SHELF)
    journal.close()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", "it holds []; expected an object of labels and features"),
        ("{}", "it holds {}; expected an object of labels and features"),
        ('{"a": {}, "a": {}}', "appears twice"),
        (b"\xff", "byte 0 is not UTF-8 text"),
        (None, "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_catalogue_is_said_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "shelf.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(MeleeError, match=re.escape(str(path))) as found:
        read_catalogue(path)
    assert sentence in str(found.value)


@pytest.mark.parametrize("n", [3, -1])
def test_no_more_candidates_are_asked_for_than_there_are(n):
    nobody: Any = None
    with pytest.raises(InputError, match=f"{n} candidates are to come .* and there are 2 to draw"):
        asyncio.run(load(nobody, n_callers=1, n_pairs=1, n_candidates=n, items=SHELF))
