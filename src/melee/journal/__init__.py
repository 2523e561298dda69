"""The journal: everything that an agent did, in order, on disk before it is answered.

An agent is a fold over events: what it is now is what all of its events make of a new one. So the
journal is the truth, and files of agents are snapshots of it, which save reading it from the start.

    offers.py     what decisions could choose from, named by its content, and what differs from it
    events.py     what an event is, its JSON, and the chain of checksums
    store.py      tables of events in any SQL database; appending, reading, dropping
    sqlite.py     the embedded one: a directory, SQLite in WAL mode, synced at every commit
    postgres.py   the shared one: the same tables in PostgreSQL
    snapshots.py  files of agents beside the events, each named by its place in the chain
    commits.py    many callers, one sync
    journal.py    Journal: one agent's part of a store; what everybody else uses
    checking.py   is the chain whole? where is it not?

*Order and place.* All events of a store have one order and one chain, whatever agent they belong
to: `seq` counts from 1, and an event's checksum covers the one before. A place in the chain is a
`Head`, the number and the checksum of an event; a snapshot has one, and so have the end of the
journal and the start of what retention has left.

*Writing.* `Journal.append(drafts)` queues what belongs together and answers with a ticket at once;
`Journal.wait(ticket)` returns when it is on disk. Whoever waits first commits all that is queued
in one transaction, while others queue the next. What was queued together is there as a whole or not
at all. If a commit fails, it fails for all that was queued, and `Journal.start_over` begins anew
from what is on disk.

*Reading.* `Journal.events(after)` gives checked events in order, from any process; a missing or
changed one raises a `DataError` that names its place.

Who folds events into agents stands above: `melee.agent.folding` (events, live and in recovery
alike), `melee.agent.recovering` (the agent that a journal tells of), `melee.agent.keeping` (one
that has a journal), `melee.agent.exporting` (rounds), and `melee.auditing` (deriving the past
again).
"""

from melee.journal.checking import Fault, verify
from melee.journal.events import Draft, Event, Head
from melee.journal.journal import Journal

__all__ = ["Draft", "Event", "Fault", "Head", "Journal", "verify"]
