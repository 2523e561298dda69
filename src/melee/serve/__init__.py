"""The service: agents over HTTP, on top of a journal.

    service.py    Service: the agents of a journal, and what can be asked of them
    served.py     Served: one of them, and what is known of it
    joining.py    how agents come to a service
    changing.py   how their actions change, and what they know
    deciding.py   requests for decisions
    repeating.py  those that come again, and are answered as before
    rewarding.py  rewards, learned once
    past.py       past decisions, and why they were made
    ids.py        what ids stand for
    trying.py     trials of its agents: who is drawn, whose decision is whose
    forms.py      decisions as they are answered
    noting.py     what windows are told
    watching.py   windows: what happened of late, and what is wrong with it
    status.py     what can be told of all this; metrics.py (for Prometheus)
    syncing.py    one thread waits for the disk, for all callers
    turns.py      the same where other services write to the journal, too
    refusals.py   errors that have a status
    bodies.py     what a request holds: JSON, checked
    keys.py       who may do what
    routes.py     paths, and what stands behind them
    openapi.py    the document that says so
    answering.py  from a path and a body to an answer
    app.py        ASGI: from a request to an answer
    server.py     limits on connections, a clean stop
    sockets.py    where a service listens, and who may reach it
    supervisor.py several processes: starts them, and starts them again
    worker.py     one that takes requests, and hands them on
    learner.py    the one that keeps the journal, and answers
    frames.py     what they say to each other
    starting.py   what they are told at their start
    logs.py       log lines for programs
    page.html     what is at /

One thread decides, learns and answers; a decision takes microseconds. What has been done is queued
for the disk, and answered when it is there: while one sync runs, the next one's callers gather.

Workers, if there are any, do HTTP only; the learner is this one thread, for all of them.
"""
