"""`AsyncClient`: asks many things at once, over connections that stay open."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

from melee.client.calls import (
    AGAIN,
    Answered,
    Calls,
    Offer,
    Request,
    ServiceError,
    address,
    headers,
    pause,
    read_answer,
    unreachable,
)
from melee.decision import Decision, Ranking
from melee.errors import DataError
from melee.labels import Label

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncClient:
    """Asks a service, in an event loop.

    Parameters
    ----------
    url
        Where the service is.
    key
        One of its keys, if it has any.
    agent
        The name of the agent; by default the one called `agent`.
    timeout
        Seconds that an attempt may take.
    attempts
        How many times a request is sent at most, where the service cannot be reached or is busy.
    connections
        How many requests may be under way at once.

    Examples
    --------
    >>> async def serve_page(client: AsyncClient) -> str:
    ...     decision = await client.act({"device": "phone"})
    ...     return decision.action
    """

    def __init__(
        self,
        url: str = "http://localhost:8642",
        *,
        key: str | None = None,
        agent: str | None = None,
        timeout: float = 10.0,
        attempts: int = 6,
        connections: int = 32,
    ) -> None:
        self.url, self.timeout, self.attempts = url, timeout, attempts
        self._address = address(url)
        self._calls = Calls(self._address.prefix, agent)
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        lines = {"Host": f"{host}:{self._address.port}", **headers(key)}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()
        self._idle: list[Connection] = []
        self._room = asyncio.Semaphore(connections)

    @overload
    async def act(
        self,
        context: Any,
        *,
        actions: Offer = None,
        id: str | None = None,
        unit: str | None = None,
        top: None = None,
    ) -> Decision: ...

    @overload
    async def act(
        self, context: Any, *, actions: Offer = None, id: str | None = None, top: int
    ) -> Ranking: ...

    async def act(
        self,
        context: Any,
        *,
        actions: Offer = None,
        id: str | None = None,
        unit: str | None = None,
        top: int | None = None,
    ) -> Decision | Ranking:
        """Choose an action for a context: numbers, or names and values.

        Parameters
        ----------
        context
            As for `melee.Agent.act`, of what JSON can hold.
        actions
            The actions that are open this time; by default all are. Where they come with the
            question, candidates: a dict of labels and features.
        id
            A name for the decision; by default one is made. The same request under the same id
            gets the same decision.
        unit
            Who it is about, such as a visitor, who stays in the same trial.
        top
            Choose so many, best first: a `Ranking`, whose places are decisions with rewards of
            their own.
        """
        return await self._do(self._calls.act(context, actions, id, unit, top))

    async def follow(
        self,
        context: Any,
        action: Label,
        *,
        probability: float | None = None,
        actions: Iterable[Label] | None = None,
        id: str | None = None,
    ) -> Decision:
        """Have the agent repeat, and learn from, what another system chose: an apprentice.

        Parameters
        ----------
        context, actions, id
            As of `act`.
        action, probability
            What was chosen, and with which probability, if that is known.
        """
        return await self._do(self._calls.follow(context, action, probability, actions, id))

    async def act_many(
        self,
        contexts: Iterable[Any],
        *,
        actions: Offer | Sequence[Offer] = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Choose an action for each of many contexts, in one request.

        Open actions, or candidates, are the same for all, or a list with those of each.
        """
        return await self._do(self._calls.act_many(contexts, actions, ids))

    async def learn(self, decision: str | Decision, reward: float) -> bool:
        """Report a decision's reward; False if it was known already."""
        return await self._do(self._calls.learn(decision, reward))

    async def learn_many(
        self, decisions: Iterable[str | Decision], rewards: Iterable[float]
    ) -> int:
        """Report the rewards of many decisions, or ids, all or none; how many are new."""
        return await self._do(self._calls.learn_many(decisions, rewards))

    async def look_up(self, decision: str | Decision) -> dict[str, Any]:
        """A past decision: context, probabilities, reward."""
        return await self._do(self._calls.look_up(decision))

    async def explain(self, decision: str | Decision) -> dict[str, Any]:
        """A past decision, and why it was made, by the agent as it was then."""
        return await self._do(self._calls.explain(decision))

    async def create(
        self, actions: Sequence[Label] | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """Make the agent, with the parameters of `melee.Agent`, unless it is there.

        Without actions, they come with each question.
        """
        return await self._do(self._calls.create({**parameters, "actions": actions}))

    async def add_actions(self, actions: Iterable[Label]) -> list[Label]:
        """Take in new actions; all that there are then."""
        return await self._do(self._calls.change_actions(actions, ()))

    async def remove_actions(self, actions: Iterable[Label]) -> list[Label]:
        """Let actions go, and what was learned about them; all that there are then."""
        return await self._do(self._calls.change_actions((), actions))

    async def trials(self) -> list[dict[str, Any]]:
        """What is known of trials, and of the apprentice; it may be looked at any time."""
        return await self._do(self._calls.trials())

    async def begin_trial(
        self, name: str, explorer: str | None = None, *, share: float
    ) -> dict[str, Any]:
        """Try another explorer on a share of the decisions, or change its share; 0 for a shadow."""
        return await self._do(self._calls.begin_trial(name, explorer, share))

    async def end_trial(self, name: str) -> dict[str, Any]:
        """End a trial."""
        return await self._do(self._calls.end_trial(name))

    async def roll_back(self, to: int | str, *, relearn_after: int | None = None) -> dict[str, Any]:
        """Have the agent know what it knew after an event, or a snapshot.

        What came after the event `relearn_after` is learned again; by default nothing is.
        """
        return await self._do(self._calls.roll_back(to, relearn_after))

    async def status(self) -> dict[str, Any]:
        """All that one may want to watch: windows, actions, alarms."""
        return await self._do(self._calls.status())

    async def close(self) -> None:
        """Close all connections; another call opens one again."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # -- sending ----------------------------------------------------------------------------------

    async def _do(self, call: Request[Answered]) -> Answered:
        for attempt in range(self.attempts):
            last = attempt == self.attempts - 1
            try:
                async with self._room, asyncio.timeout(self.timeout):
                    status, content = await self._send(call)
            except (OSError, EOFError, DataError, asyncio.LimitOverrunError) as error:
                if last:
                    raise unreachable(self.url, error) from error
            else:
                if last or status not in AGAIN:
                    return read_answer(call, status, content)
            await asyncio.sleep(pause(attempt))
        raise ServiceError(f"attempts is {self.attempts}; expected at least 1")

    async def _send(self, call: Request[Any]) -> tuple[int, bytes]:
        reader, writer = self._idle.pop() if self._idle else await self._connect()
        try:
            line = f"{call.method} {call.path} HTTP/1.1\r\nContent-Length: {len(call.body)}\r\n"
            writer.write(line.encode() + self._head + b"\r\n" + call.body)
            status, content, stays = await _read(reader)
        except BaseException:  # what is left in it belongs to no other request
            writer.close()
            raise
        if stays:
            self._idle.append((reader, writer))
        else:
            writer.close()
        return status, content

    async def _connect(self) -> Connection:
        where = self._address
        return await asyncio.open_connection(where.host, where.port, ssl=where.secure or None)


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """The status and the content of an answer, and whether the connection can be used again."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise DataError(f"the answer begins with {head[0]!r:.60}, which is not HTTP")
    found = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    stays = found.get("connection", "").lower() != "close"
    if found.get("transfer-encoding", "").lower() == "chunked":
        return int(words[1]), await _read_chunks(reader), stays
    length = found.get("content-length", "")
    if not length.isdigit():
        return int(words[1]), await reader.read(), False
    return int(words[1]), await reader.readexactly(int(length)), stays


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            raise DataError(f"a chunk begins with {line!r:.60}") from None
        part = await reader.readexactly(size + 2)
        if size == 0:
            return b"".join(parts)
        parts.append(part[:-2])
