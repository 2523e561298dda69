"""The service: agents over HTTP, on top of a journal.

    refusals.py   errors that have a status
    bodies.py     what a request holds: JSON, checked
    keys.py       who may do what
    watching.py   what happened of late, and what is wrong with it
    trying.py     trials of its agents: who is drawn, whose decision is whose
    metrics.py    the same for Prometheus
    syncing.py    one thread waits for the disk, for all callers
    service.py    Service: the agents of a journal, and what can be asked of them
    turns.py      the same where other services write to the journal, too
    routes.py     paths, and what stands behind them
    openapi.py    the document that says so
    answering.py  from a path and a body to an answer
    app.py        ASGI: from a request to an answer
    server.py     sockets, limits on connections, a clean stop
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
