"""Paths, who may use them, and what stands behind them.

The paths without an agent are those of the agent called `agent`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from melee.errors import InputError, shown
from melee.labels import label_to_json
from melee.serve import bodies
from melee.serve.refusals import Refusal
from melee.version import __version__

if TYPE_CHECKING:  # a worker has routes, and no agents
    from melee.serve.served import Served
    from melee.serve.service import Service

MANY = 10_000
"""Contexts, rewards or actions in one request."""
PARAMETERS = (
    "actions",
    "explorer",
    "seed",
    "floor",
    "half_life",
    "timeout",
    "default_reward",
    "reward_range",
    "max_pending",
    "max_features",
)
"""Of an agent, as in Python; where it logs and keeps its journal is not a caller's to say."""
Schema = dict[str, Any]


@dataclass
class Call:
    """A request: what its path names, what follows the question mark, and its body."""

    service: "Service"
    path: dict[str, str]
    query: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def served(self) -> "Served":
        """The agent that it is for."""
        return self.service.find(self.path.get("agent", "agent"))


@dataclass(frozen=True)
class Answer:
    """A status, and what is written as JSON; or a text as it is, with its type."""

    content: Any
    status: int = 200
    type: str = "application/json"


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True)
class Route:
    """A path and a method, and what stands behind them."""

    method: str
    path: str
    level: str
    summary: str
    handler: Handler
    answer: str
    body: str | None = None
    also: tuple[int, ...] = ()  # statuses of refusals that are its own


async def decide(call: Call) -> Answer:
    """One decision, or many."""
    known = (
        *("context", "contexts", "actions", "id", "ids", "top", "explain"),
        *("unit", "chosen", "probability"),
    )
    body = bodies.read(call.body, known)
    given = body.get("actions")
    each = None
    if "contexts" in body:
        candidates = call.served.agent.actions is None
        each = (bodies.offers if candidates else bodies.open_in_each)(given, MANY)
    actions = None if given is None or each is not None else bodies.offer(given, MANY)
    if ("context" in body) == ("contexts" in body):
        raise InputError("expected either a context, for one decision, or contexts, for many")
    unit = bodies.text(body, "unit")
    if "chosen" in body:
        return await _follow(call, body, actions)
    _check_absent(body, "probability", "one only with what was chosen")
    if "context" in body:
        _check_absent(body, "ids", "an id, for one context")
        if body.get("top") is not None:
            _check_absent(body, "explain", "none for a ranking; ask for those of its places")
            _check_absent(body, "unit", "none for a ranking, which no trial decides")
            own = (body["context"], actions, bodies.text(body, "id"), body["top"])
            return Answer(await call.service.rank(call.served, *own))
        made = await call.service.decide(
            call.served,
            body["context"],
            actions,
            bodies.text(body, "id"),
            explain=bodies.flag(body, "explain"),
            unit=unit,
        )
        return Answer(made)
    _check_absent(body, "id", "ids, one for each context")
    _check_absent(body, "explain", "one context, where it is explained")
    _check_absent(body, "top", "one context, where there is a ranking")
    contexts = bodies.entries(body, "contexts", MANY)
    ids = None if body.get("ids") is None else bodies.entries(body, "ids", MANY)
    if ids is not None and not all(isinstance(id, str) for id in ids):
        raise InputError("ids are expected to be texts")
    many = await call.service.decide_many(call.served, contexts, each or actions, ids, unit=unit)
    return Answer({"decisions": many})


async def _follow(call: Call, body: bodies.Body, actions: Any) -> Answer:
    """A choice of the caller's."""
    for name in ("contexts", "ids", "explain", "top"):
        _check_absent(body, name, "one context, where the caller has chosen")
    chosen = bodies.labels({"chosen": [body["chosen"]]}, "chosen", 1) or []
    given = body.get("probability")
    if given is not None:
        given = bodies.number(given, "the probability", "a number in (0, 1]")
    made = await call.service.follow(
        call.served,
        body["context"],
        chosen[0],
        given,
        actions,
        bodies.text(body, "id"),
    )
    return Answer(made)


def _check_absent(body: bodies.Body, name: str, expected: str) -> None:
    if body.get(name) not in (None, False):
        raise InputError(f"{name} is {shown(body[name])}; expected {expected}")


async def look(call: Call) -> Answer:
    """A past decision."""
    return Answer(await call.service.look(call.served, call.path["id"]))


async def explain(call: Call) -> Answer:
    """Why it was made."""
    return Answer(await call.service.look(call.served, call.path["id"], explain=True))


async def reward(call: Call) -> Answer:
    """A decision's reward."""
    body = bodies.read(call.body, ("reward",), ("reward",))
    pair = (call.path["id"], bodies.number(body["reward"]))
    return Answer(await call.service.reward(call.served, [pair]))


async def reward_many(call: Call) -> Answer:
    """Rewards of many decisions."""
    body = bodies.read(call.body, ("rewards",), ("rewards",))
    pairs = []
    for pair in bodies.entries(body, "rewards", MANY):
        bodies.check_names(pair, ("id", "reward"), ("id", "reward"))
        if not isinstance(pair["id"], str):
            raise InputError(f"id is {shown(pair['id'])}; expected the text of a decision's id")
        pairs.append((pair["id"], bodies.number(pair["reward"])))
    return Answer(await call.service.reward(call.served, pairs))


async def list_agents(call: Call) -> Answer:
    """All agents."""
    service = call.service
    return Answer({"agents": [service.about(served) for served in service.agents.values()]})


async def create(call: Call) -> Answer:
    """A new agent."""
    body = bodies.read(call.body, PARAMETERS)
    parameters = bodies.parameters(body, PARAMETERS, MANY)
    is_new, served = await call.service.create(call.path["agent"], parameters)
    return Answer(call.service.about(served), 201 if is_new else 200)


async def status(call: Call) -> Answer:
    """All that one may want to watch."""
    return Answer(call.service.status(call.served))


async def list_actions(call: Call) -> Answer:
    """The actions there are now."""
    return Answer({"actions": [label_to_json(label) for label in call.served.agent.actions_]})


async def change_actions(call: Call) -> Answer:
    """Actions come and go."""
    body = bodies.read(call.body, ("add", "remove"))
    added, removed = (bodies.labels(body, name, MANY) or [] for name in ("add", "remove"))
    now = await call.service.change_actions(call.served, added, removed)
    return Answer({"actions": [label_to_json(label) for label in now]})


async def snapshot(call: Call) -> Answer:
    """A snapshot, now."""
    return Answer({"event": await call.service.snapshot(call.served)})


async def roll_back(call: Call) -> Answer:
    """What was known after an event, again."""
    body = bodies.read(call.body, ("to", "relearn_after"), ("to",))
    return Answer(await call.service.roll_back(call.served, body["to"], body.get("relearn_after")))


async def list_trials(call: Call) -> Answer:
    """What is known of trials."""
    return Answer(await call.service.compare(call.served))


async def change_trial(call: Call) -> Answer:
    """A trial begins, or gets another share."""
    body = bodies.read(call.body, ("explorer", "share"), ("share",))
    name, explorer = call.path["trial"], body.get("explorer")
    share = bodies.number(body["share"], "share", "a number from 0, for a shadow, to less than 1")
    return Answer(await call.service.change_trial(call.served, name, explorer, share))


async def end_trial(call: Call) -> Answer:
    """A trial ends."""
    await call.service.end_trial(call.served, call.path["trial"])
    return Answer({"trial": call.path["trial"], "explorer": None, "share": None})


async def health(call: Call) -> Answer:
    """Whether the process answers."""
    return Answer({"melee": __version__, "healthy": True})


async def ready(call: Call) -> Answer:
    """Whether it can decide, and keep what it decides."""
    if not call.service.can_decide:
        raise Refusal(
            503, "the journal cannot be written or reached, or the service stops; try again"
        )
    compiled = all(served.agent.ready for served in call.service.agents.values())
    return Answer({"ready": True, "compiled": compiled})


async def metrics(call: Call) -> Answer:
    """For Prometheus."""
    return Answer(call.service.metrics(), type="text/plain; version=0.0.4; charset=utf-8")


async def document(call: Call) -> Answer:
    """The OpenAPI document."""
    from melee.serve.openapi import describe

    return Answer(describe(ROUTES))


async def page(call: Call) -> Answer:
    """The page for people."""
    text = files("melee.serve").joinpath("page.html").read_text("utf-8")
    return Answer(text, type="text/html; charset=utf-8")


def _both(*routes: Route) -> list[Route]:
    """Routes of the agent called `agent`, and the same ones of any agent."""
    named = [
        Route(route.method, route.path.replace("/v1", "/v1/agents/{agent}", 1), *_rest(route))
        for route in routes
    ]
    return [*routes, *named]


def _rest(route: Route) -> tuple[Any, ...]:
    return (route.level, route.summary, route.handler, route.answer, route.body, (*route.also, 404))


_ID = "/v1/decisions/{id}"
ROUTES: tuple[Route, ...] = (
    *_both(
        Route(
            "POST",
            "/v1/decisions",
            "decide",
            "Decide: one context, or many, or a ranking.",
            decide,
            "Decided",
            "Decide",
            (409,),
        ),
        Route(
            "POST",
            f"{_ID}/reward",
            "decide",
            "Reward a decision.",
            reward,
            "Learned",
            "Reward",
            (404, 409, 410),
        ),
        Route(
            "POST",
            "/v1/rewards",
            "decide",
            "Reward many decisions, all or none.",
            reward_many,
            "Learned",
            "Rewards",
            (404, 409, 410),
        ),
        Route("GET", _ID, "read", "A past decision.", look, "Past", None, (404,)),
        Route(
            "GET",
            f"{_ID}/explanation",
            "read",
            "A past decision, and why it was made.",
            explain,
            "Past",
            None,
            (404,),
        ),
        Route("GET", "/v1/actions", "read", "The actions there are.", list_actions, "Actions"),
        Route(
            "POST",
            "/v1/actions",
            "admin",
            "Add and remove actions.",
            change_actions,
            "Actions",
            "Changes",
        ),
        Route("POST", "/v1/snapshot", "admin", "Write a snapshot now.", snapshot, "Snapshot"),
        Route(
            "POST",
            "/v1/rollback",
            "admin",
            "Know what was known after an event.",
            roll_back,
            "RolledBack",
            "Rollback",
        ),
        Route("GET", "/v1/trials", "read", "How trials do.", list_trials, "Trials"),
        Route(
            "PUT",
            "/v1/trials/{trial}",
            "admin",
            "Try another explorer, or change its share.",
            change_trial,
            "Trial",
            "Try",
            (409,),
        ),
        Route(
            "DELETE",
            "/v1/trials/{trial}",
            "admin",
            "End a trial.",
            end_trial,
            "Trial",
            None,
            (404,),
        ),
    ),
    Route("GET", "/v1/agents", "read", "All agents.", list_agents, "Agents"),
    Route("GET", "/v1/agents/{agent}", "read", "What to watch.", status, "Status", None, (404,)),
    Route(
        "PUT",
        "/v1/agents/{agent}",
        "admin",
        "Make an agent, unless it is there.",
        create,
        "About",
        "Parameters",
        (201, 409),
    ),
    Route("GET", "/health", "open", "Does the process answer?", health, "Health"),
    Route("GET", "/ready", "open", "Can it decide?", ready, "Ready", None, (503,)),
    Route("GET", "/metrics", "read", "Metrics for Prometheus.", metrics, "text"),
    Route("GET", "/openapi.json", "open", "This document.", document, "Document"),
    Route("GET", "/", "open", "The page for people.", page, "html"),
)
ALONE = (health, document, page)
"""Handlers that need no service: any process can answer."""
