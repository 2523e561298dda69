"""`Client`: waits for each answer."""

import http.client
import threading
import time
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
from melee.labels import Label


class Client:
    """Asks a service, and waits. Safe to share between threads: each has a connection of its own.

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

    Examples
    --------
    >>> client = Client("http://localhost:8642")
    >>> decision = client.act({"device": "phone"})  # doctest: +SKIP
    >>> client.learn(decision, 1.0)  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        url: str = "http://localhost:8642",
        *,
        key: str | None = None,
        agent: str | None = None,
        timeout: float = 10.0,
        attempts: int = 6,
    ) -> None:
        self.url, self.timeout, self.attempts = url, timeout, attempts
        self._address = address(url)
        self._headers = headers(key)
        self._calls = Calls(self._address.prefix, agent)
        self._local = threading.local()

    @overload
    def act(
        self,
        context: Any,
        *,
        actions: Offer = None,
        id: str | None = None,
        unit: str | None = None,
        top: None = None,
    ) -> Decision: ...

    @overload
    def act(
        self, context: Any, *, actions: Offer = None, id: str | None = None, top: int
    ) -> Ranking: ...

    def act(
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
        return self._do(self._calls.act(context, actions, id, unit, top))

    def follow(
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
        return self._do(self._calls.follow(context, action, probability, actions, id))

    def act_many(
        self,
        contexts: Iterable[Any],
        *,
        actions: Offer | Sequence[Offer] = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Choose an action for each of many contexts, in one request.

        Open actions, or candidates, are the same for all, or a list with those of each.
        """
        return self._do(self._calls.act_many(contexts, actions, ids))

    def learn(self, decision: str | Decision, reward: float) -> bool:
        """Report a decision's reward; False if it was known already."""
        return self._do(self._calls.learn(decision, reward))

    def learn_many(self, decisions: Iterable[str | Decision], rewards: Iterable[float]) -> int:
        """Report the rewards of many decisions, or ids, all or none; how many are new."""
        return self._do(self._calls.learn_many(decisions, rewards))

    def look_up(self, decision: str | Decision) -> dict[str, Any]:
        """A past decision: context, probabilities, reward."""
        return self._do(self._calls.look_up(decision))

    def explain(self, decision: str | Decision) -> dict[str, Any]:
        """A past decision, and why it was made, by the agent as it was then."""
        return self._do(self._calls.explain(decision))

    def create(self, actions: Sequence[Label] | None = None, **parameters: Any) -> dict[str, Any]:
        """Make the agent, with the parameters of `melee.Agent`, unless it is there.

        Without actions, they come with each question.
        """
        return self._do(self._calls.create({**parameters, "actions": actions}))

    def add_actions(self, actions: Iterable[Label]) -> list[Label]:
        """Take in new actions; all that there are then."""
        return self._do(self._calls.change_actions(actions, ()))

    def remove_actions(self, actions: Iterable[Label]) -> list[Label]:
        """Let actions go, and what was learned about them; all that there are then."""
        return self._do(self._calls.change_actions((), actions))

    def trials(self) -> list[dict[str, Any]]:
        """What is known of trials, and of the apprentice; it may be looked at any time."""
        return self._do(self._calls.trials())

    def begin_trial(
        self, name: str, explorer: str | None = None, *, share: float
    ) -> dict[str, Any]:
        """Try another explorer on a share of the decisions, or change its share; 0 for a shadow."""
        return self._do(self._calls.begin_trial(name, explorer, share))

    def end_trial(self, name: str) -> dict[str, Any]:
        """End a trial."""
        return self._do(self._calls.end_trial(name))

    def roll_back(self, to: int | str, *, relearn_after: int | None = None) -> dict[str, Any]:
        """Have the agent know what it knew after an event, or a snapshot.

        What came after the event `relearn_after` is learned again; by default nothing is.
        """
        return self._do(self._calls.roll_back(to, relearn_after))

    def status(self) -> dict[str, Any]:
        """All that one may want to watch: windows, actions, alarms."""
        return self._do(self._calls.status())

    def close(self) -> None:
        """Close this thread's connection; another call opens one again."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- sending ----------------------------------------------------------------------------------

    def _do(self, call: Request[Answered]) -> Answered:
        for attempt in range(self.attempts):
            last = attempt == self.attempts - 1
            try:
                status, content = self._send(call)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if last:
                    raise unreachable(self.url, error) from error
            else:
                if last or status not in AGAIN:
                    return read_answer(call, status, content)
            time.sleep(pause(attempt))
        raise ServiceError(f"attempts is {self.attempts}; expected at least 1")

    def _send(self, call: Request[Any]) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            host, port, secure, _ = self._address
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            connection = kind(host, port, timeout=self.timeout)
            self._local.connection = connection
        connection.request(call.method, call.path, call.body or None, self._headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
