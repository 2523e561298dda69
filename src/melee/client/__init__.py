"""A client of the service: typed, small, and nothing is done twice.

    calls.py         what is sent, and how an answer is read; for both clients
    blocking.py      Client
    asynchronous.py  AsyncClient, over connections that stay open
    load.py          how much a service takes

Every decision has an id before it is sent, made here unless the caller brings one. So a request
whose answer got lost is sent again, and gets the answer that it had; a reward is learned once
whatever is sent.

The methods of both clients are written out twice, since no type says `an answer, or one to await`;
what they do is in calls.py, and a test compares their signatures and words.
"""

from melee.client.asynchronous import AsyncClient
from melee.client.blocking import Client
from melee.client.calls import ServiceError
from melee.decision import Decision, Ranking

__all__ = ["AsyncClient", "Client", "Decision", "Ranking", "ServiceError"]
