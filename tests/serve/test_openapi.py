"""The OpenAPI document says what the server does."""

from typing import Any

import pytest

from melee.agent import parameters
from melee.serve.openapi import SCHEMAS, describe
from melee.serve.routes import PARAMETERS, ROUTES

KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def complaints(value, schema, where="answer"):
    """What in a value is not as its schema says."""
    if "$ref" in schema:
        return complaints(value, SCHEMAS[schema["$ref"].rpartition("/")[2]], where)
    if "oneOf" in schema:
        found = [complaints(value, one, where) for one in schema["oneOf"]]
        return [] if sum(not one for one in found) == 1 else [f"{where}: not one of {found}"]
    kinds = schema.get("type", list(KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_bool = isinstance(value, bool)
    if not any(isinstance(value, KINDS[k]) and (k == "boolean" or not is_bool) for k in kinds):
        return [f"{where}: {value!r} is not {kinds}"]
    said = []
    if isinstance(value, dict) and "properties" in schema:
        said += [f"{where}: no {name}" for name in schema["required"] if name not in value]
        for name, one in value.items():
            if name in schema["properties"]:
                said += complaints(one, schema["properties"][name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                said.append(f"{where}: {name} is not in the document")
    elif isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
        for name, one in value.items():
            said += complaints(one, schema["additionalProperties"], f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            said += complaints(one, schema["items"], f"{where}[{i}]")
    return said


BODIES: dict[str, list[dict[str, Any]]] = {
    "Decide": [
        {"context": {"x": 1, "tags": ["a"]}, "id": "made", "explain": True},
        {"contexts": [{"x": 1}, {"x": 2}], "actions": ["a", "b"]},
        {"context": {"x": 1}, "chosen": "a", "probability": 0.5, "unit": "me"},
        {"context": {"x": 1}, "top": 2, "actions": ["a", "b"]},
    ],
    "Reward": [{"reward": 1}, {"reward": 0}],
    "Rewards": [{"rewards": []}, {"rewards": [{"id": "nobody", "reward": 1}]}],
    "Changes": [{"add": ["z"], "remove": ["c"]}],
    "Rollback": [{"to": 1}, {"to": "2", "relearn_after": 2}, {"to": 10**9}],
    "Try": [{"explorer": "uniform", "share": 0.5}, {"share": 2}],
    "Parameters": [{"actions": ["a"], "explorer": "uniform"}, {"actions": []}, {}],
}


@pytest.mark.parametrize("route", ROUTES, ids=lambda one: f"{one.method} {one.path}")
def test_every_answer_is_as_the_document_says(local, route):
    document = describe(ROUTES)
    operation = document["paths"][route.path][route.method.lower()]
    local.ask("POST", "/v1/decisions", {"context": {"x": 1}, "id": "there"})
    local.ask("POST", "/v1/decisions/there/reward", {"reward": 1})
    local.ask("PUT", "/v1/trials/there", {"explorer": "uniform", "share": 0})
    is_new = route.method == "PUT" and route.path.endswith("{agent}")
    path = route.path.replace("{agent}", "new" if is_new else "agent").replace("{trial}", "there")
    seen = set()
    for id in ("there", "nobody"):
        for body in BODIES[route.body] if route.body else [None]:
            if body is not None:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                assert complaints(body, schema, "body") == []
            status, answer = local.ask(route.method, path.replace("{id}", id), body)
            seen.add(status)
            assert str(status) in operation["responses"], (status, answer)
            ((_, content),) = operation["responses"][str(status)]["content"].items()
            assert complaints(answer, content["schema"]) == []
    assert seen & {200, 201}
    if "{id}" in route.path:
        assert 404 in seen


def test_refusals_are_as_the_document_says(local):
    status, answer = local.ask("POST", "/v1/decisions", b"{")
    assert (status, complaints(answer, SCHEMAS["Error"])) == (400, [])
    served = local.ask("GET", "/openapi.json")[1]
    assert served == describe(ROUTES)
    assert served["openapi"] == "3.1.0"


def test_every_schema_that_is_named_exists_and_none_is_left_over():
    text = str(describe(ROUTES))
    for name in SCHEMAS:
        assert f"#/components/schemas/{name}'" in text, name
    named = {one.split("'")[0] for one in text.split("#/components/schemas/")[1:]}
    assert named == set(SCHEMAS)


def test_the_parameters_of_agents_are_those_of_python():
    assert set(SCHEMAS["Parameters"]["properties"]) == set(PARAMETERS)
    assert set(parameters.PARAMETERS) - set(PARAMETERS) == {"log", "journal"}


def test_the_checker_sees_what_is_wrong():
    assert complaints({"learned": True, "repeated": 0}, SCHEMAS["Learned"])
    assert complaints({"learned": 1}, SCHEMAS["Learned"])
    assert complaints({"learned": 1, "repeated": 0, "more": 1}, SCHEMAS["Learned"])
    assert not complaints({"learned": 1, "repeated": 0}, SCHEMAS["Learned"])
