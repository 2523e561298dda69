"""The OpenAPI document: every route, what it takes and what it answers."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from melee.version import __version__

if TYPE_CHECKING:
    from melee.serve.routes import Route

Schema = dict[str, Any]


def _object(properties: dict[str, Schema], required: Sequence[str] | None = None) -> Schema:
    """An object that has no other names; all are there unless said otherwise."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(kind: str) -> Schema:
    return {"type": [kind, "null"]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT, NUMBER, WHOLE, YES = ({"type": t} for t in ("string", "number", "integer", "boolean"))
LABEL: Schema = {
    "description": 'The label of an action: a text, a number, or {"tuple": [...]}.',
    "type": ["string", "number", "boolean", "null", "object"],
}
CONTEXT: Schema = {
    "description": "Names and values (numbers, texts, true, false, lists of texts, null where a "
    "value is missing), or a list of numbers.",
    "type": ["object", "array"],
}
OFFER: Schema = {
    "description": "What can be chosen from. A list of labels. Where actions are candidates: an "
    "object of labels and their features, or a list of objects with an action and its features; "
    "with contexts also a list with the candidates of each, or with the labels of each, null for "
    "all actions.",
    "type": ["array", "object"],
}
_AVERAGE: dict[str, Schema] = {
    "rewards": WHOLE,
    "average": _or_null("number"),
    "low": _or_null("number"),
    "high": _or_null("number"),
}
_DECISION: dict[str, Schema] = {
    "id": TEXT,
    "action": LABEL,
    "probability": NUMBER,
    "policy": TEXT,
    "version": WHOLE,
    "actions": _list(LABEL),
    "probabilities": _list(NUMBER),
}
_DECIDED = tuple(_DECISION)
_ABOUT: dict[str, Schema] = {
    "agent": TEXT,
    "policy": TEXT,
    "actions": _list(LABEL),
    "learned": WHOLE,
    "waiting": WHOLE,
    "version": WHOLE,
}
_PARAMETERS: dict[str, Schema] = {
    "actions": {"type": ["array", "null"], "items": LABEL},
    "explorer": TEXT,
    "seed": WHOLE,
    "floor": NUMBER,
    "half_life": _or_null("integer"),
    "timeout": _or_null("number"),
    "default_reward": _or_null("number"),
    "reward_range": {"type": ["array", "null"], "items": NUMBER},
    "max_pending": WHOLE,
    "max_features": WHOLE,
}

SCHEMAS: dict[str, Schema] = {
    "Decide": _object(
        {
            "context": CONTEXT,
            "contexts": _list(CONTEXT),
            "actions": OFFER,
            "id": TEXT,
            "ids": _list(TEXT),
            "top": WHOLE,
            "explain": YES,
            "unit": TEXT,
            "chosen": LABEL,
            "probability": NUMBER,
        },
        [],
    ),
    "Decision": _object({**_DECISION, "explanation": _ref("Explanation")}, _DECIDED),
    "Decided": {
        "oneOf": [
            _ref("Decision"),
            _object({"decisions": _list(_ref("Decision"))}),
            _ref("Ranking"),
        ],
    },
    "Ranking": _object({"id": TEXT, "places": _list(_ref("Decision"))}),
    "Past": _object(
        {
            **_DECISION,
            "time": NUMBER,
            "context": CONTEXT,
            "waits": YES,
            "given_up": YES,
            "reward": _or_null("number"),
            "features": _list(CONTEXT),
            "explanation": _ref("Explanation"),
        },
        [*_DECIDED, "time", "context", "waits", "given_up", "reward"],
    ),
    "Explanation": _object({"policy": TEXT, "actions": _list(_ref("Explained"))}),
    "Explained": _object(
        {
            "action": LABEL,
            "probability": NUMBER,
            "prediction": _or_null("number"),
            "uncertainty": _or_null("number"),
            "bonus": _or_null("number"),
            "features": _list(
                _object(
                    {
                        "name": TEXT,
                        "value": {"type": ["number", "string", "array", "null"]},
                        "effect": NUMBER,
                    }
                )
            ),
        }
    ),
    "Reward": _object({"reward": NUMBER}),
    "Rewards": _object({"rewards": _list(_object({"id": TEXT, "reward": NUMBER}))}),
    "Learned": _object({"learned": WHOLE, "repeated": WHOLE}),
    "Actions": _object({"actions": _list(LABEL)}),
    "Changes": _object({"add": _list(LABEL), "remove": _list(LABEL)}, []),
    "Snapshot": _object({"event": WHOLE}),
    "Rollback": _object({"to": {"type": ["integer", "string"]}, "relearn_after": WHOLE}, ["to"]),
    "RolledBack": _object({"event": WHOLE, "learned": WHOLE}),
    "Try": _object({"explorer": TEXT, "share": NUMBER}, ["share"]),
    "Trial": _object({"trial": TEXT, "explorer": _or_null("string"), "share": _or_null("number")}),
    "Compared": _object(
        {
            "trial": TEXT,
            "explorer": TEXT,
            "share": NUMBER,
            "kind": TEXT,
            "rounds": WHOLE,
            "own": WHOLE,
            "average": _or_null("number"),
            "baseline": _or_null("number"),
            "low": _or_null("number"),
            "high": _or_null("number"),
            "p_value": _or_null("number"),
            "agreement": _or_null("number"),
            "sentence": TEXT,
        }
    ),
    "Trials": _object({"trials": _list(_ref("Compared")), "behind": WHOLE}),
    "Parameters": _object(_PARAMETERS, []),
    "About": _object(_ABOUT),
    "Agents": _object({"agents": _list(_ref("About"))}),
    "Status": _object(
        {
            **_ABOUT,
            "parameters": _object(_PARAMETERS),
            "compiled": YES,
            "last_reward": _or_null("number"),
            "time": NUMBER,
            "event": WHOLE,
            "model": _object({"behind": WHOLE, "seconds": NUMBER, "lease": YES}),
            "diagnostics": {"type": "object", "additionalProperties": NUMBER},
            "alarms": _list(TEXT),
            "trials": _list(_ref("Compared")),
            "windows": _list(
                _object(
                    {
                        "window": TEXT,
                        "decisions": WHOLE,
                        "explored": _or_null("number"),
                        "exploring": _object(
                            {name: _or_null("number") for name in ("cost", "low", "high")}
                        ),
                        **_AVERAGE,
                    }
                )
            ),
            "actions": _list(
                _object(
                    {
                        "action": LABEL,
                        "decisions": WHOLE,
                        "share": _or_null("number"),
                        **_AVERAGE,
                    }
                )
            ),
            "course": _list(_object({"time": NUMBER, "decisions": WHOLE, **_AVERAGE})),
        }
    ),
    "Health": _object({"melee": TEXT, "healthy": YES}),
    "Ready": _object({"ready": YES, "compiled": YES}),
    "Document": {"type": "object"},
    "Error": _object({"error": TEXT}),
}
_TYPES = {"text": "text/plain", "html": "text/html"}


def describe(routes: Sequence["Route"]) -> Schema:
    """The document, in OpenAPI 3.1."""
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "melee", "version": __version__, "summary": "Contextual bandits."},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: "Route") -> Schema:
    kind = _TYPES.get(route.answer, "application/json")
    schema = TEXT if route.answer in _TYPES else _ref(route.answer)
    refused = [status for status in route.also if status >= 400]
    if route.body is not None:
        refused += [400, 408, 413]
    if route.level != "open":
        refused += [401, 403]
    responses: dict[str, Schema] = {}
    for status in (200, *(s for s in route.also if s < 400)):
        content = {kind: {"schema": schema}}
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    for status in sorted({*refused, 503}):
        content = {"application/json": {"schema": _ref("Error")}}
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    found: Schema = {"summary": route.summary, "responses": responses}
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    if names:
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": TEXT} for name in names
        ]
    if route.body is not None:
        content = {"application/json": {"schema": _ref(route.body)}}
        found["requestBody"] = {"required": True, "content": content}
    if route.level != "open":
        found["security"] = [{"key": []}]
        found["description"] = f"Needs a key for `{route.level}`, where there are keys."
    return found
