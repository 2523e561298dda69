"""Commands for journals: whether they are whole, what is in them, and what follows from it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from melee.cli.base import app, check_format, out, progress_bar, read_specs, say

if TYPE_CHECKING:
    from melee.journal import Event, Journal

commands = typer.Typer(
    help="Journals of agents: check them, look into them, go back, and see how trials do.",
    no_args_is_help=True,
)
app.add_typer(commands, name="journal")

Place = Annotated[
    str, typer.Argument(metavar="PLACE", help="A directory, or postgresql://user@host/database.")
]
AgentName = Annotated[str, typer.Option("--agent", help="Which agent's, where there are several.")]
Format = Annotated[str, typer.Option(help="text or json.")]


@commands.command()
def verify(place: Place) -> None:
    """Check every event, what events name, and the snapshots; exits with 1 if anything is wrong."""
    from melee.journal import verify as check

    journal = _open(place)
    faults = 0
    for fault in check(journal):
        faults += 1
        print(f"event {fault.seq}: {fault.sentence}")
    start, end = journal.start.seq, journal.head.seq
    n_snapshots = sum(len(journal.another(name).snapshots()) for name in journal.store.agents())
    state = f"{faults} faults" if faults else "whole"
    about = f"{end - start:,} events, to number {end:,}; {n_snapshots} snapshots"
    print(f"{journal.where}: {about}: {state}")
    if faults:
        raise typer.Exit(1)


@commands.command()
def show(
    place: Place,
    agent: AgentName = "agent",
    id: Annotated[str | None, typer.Option(help="Only what is about this decision.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only events of this kind.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, the latest.")] = 20,
    format: Format = "text",  # noqa: A002
) -> None:
    """Show events, the latest last."""
    check_format(format, "text", "json")
    from collections import deque

    journal = _open(place, agent)
    found: deque[Event] = deque(maxlen=last)
    for event in journal.events():
        if (kind is None or event.kind == kind) and (id is None or _is_about(event, id)):
            found.append(event)
    if format == "json":
        for event in found:
            print(json.dumps(_as_json(event)))
        return
    for event in found:
        about = f"{event.seq}  {_moment(event.time)}  {event.kind}  {event.id or ''}".rstrip()
        out.print(Text(about), soft_wrap=True)
        out.print(Text(f"    {event.body}"), overflow="ellipsis", no_wrap=True)


@commands.command()
def export(
    place: Place,
    to: Annotated[
        Path,
        typer.Option("--out", help="A new file: .jsonl, .parquet or .dsjson, or .gz of these."),
    ],
    agent: AgentName = "agent",
) -> None:
    """Write all rounds whose rewards are known to a file, as a log would have them."""
    from melee.agent.exporting import rounds
    from melee.history import History

    history = History(rounds(_open(place, agent)))
    history.write(to)
    say(f"{len(history):,} rounds written to {to}")


@commands.command()
def audit(
    place: Place,
    agent: AgentName = "agent",
    after: Annotated[
        int | None, typer.Option(min=0, help="Begin at the newest snapshot up to this event.")
    ] = None,
    format: Format = "text",  # noqa: A002
) -> None:
    """Derive every decision again, and name the first that differs; exits with 1 if one does."""
    check_format(format, "text", "json")
    from melee.auditing import audit as derive

    journal = _open(place, agent)
    with progress_bar() as bar:
        task = bar.add_task("events", total=journal.head.seq)
        found = derive(journal, after=after, progress=lambda n: bar.update(task, completed=n))
    if format == "json":
        difference = None if found.difference is None else found.difference._asdict()
        print(json.dumps({**found._asdict(), "difference": difference}, indent=2))
    elif found.difference is None:
        print(
            f"{found.n_decisions:,} decisions derived again, from event {found.after + 1}: 0 differ"
        )
    else:
        _, id, sentence = found.difference
        print(f"decision {id}, event {found.difference.seq}: {sentence}")
        print(f"{found.n_decisions:,} decisions derived again; the others after it were not")
    if found.difference is not None:
        raise typer.Exit(1)


@commands.command()
def explain(
    place: Place,
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a past decision.")],
    agent: AgentName = "agent",
) -> None:
    """Say why a past decision was made, by the agent as it was then."""
    from melee.agent.recalling import explain_past
    from melee.errors import InputError

    why = explain_past(_open(place, agent), id)
    if why is None:
        raise InputError(f"decision {id} is not in the journal; melee journal show lists decisions")
    print(why)


@commands.command()
def compact(
    place: Place,
    keep_days: Annotated[
        float | None, typer.Option(min=0, help="Drop events that are older.")
    ] = None,
    keep_mb: Annotated[
        float | None,
        typer.Option("--keep-mb", min=0, max=1e9, help="Drop the oldest beyond so many MB."),
    ] = None,
) -> None:
    """Write a snapshot of every agent, and drop events that are too old or too many.

    Not while another process writes: a running agent does so by itself, if its Journal says how
    much to keep.
    """
    from melee.agent.recovering import recover
    from melee.errors import InputError
    from melee.journal import Journal

    if keep_days is None and keep_mb is None:
        raise InputError("nothing says what to keep; give --keep-days, --keep-mb or both")
    _open(place).close()
    journal = Journal(place)
    for name in journal.store.agents():
        own = journal.another(name)
        agent, _ = recover(own)
        own.write_snapshot(journal.head.seq, agent.to_bytes())
    n_bytes = None if keep_mb is None else int(keep_mb * 1e6)
    dropped = journal.compact(keep_days=keep_days, keep_bytes=n_bytes)
    print(
        f"{journal.where}: {dropped.n_events:,} events and {dropped.n_snapshots} snapshots "
        f"dropped; {journal.head.seq - journal.start.seq:,} events are left"
    )
    journal.close()


@commands.command()
def snapshots(place: Place, agent: AgentName = "agent", format: Format = "text") -> None:  # noqa: A002
    """List the snapshots, newest first: an agent goes back to them quickest."""
    check_format(format, "text", "json")
    journal = _open(place, agent)
    times = {
        snapshot.head.seq: journal.store.time_at(snapshot.head.seq)
        for snapshot in journal.snapshots()
    }
    for snapshot in journal.snapshots():
        moment = times[snapshot.head.seq]
        if format == "json":
            print(json.dumps({"event": snapshot.head.seq, "time": moment, "name": snapshot.name}))
        else:
            when = "of an event that was dropped" if moment is None else _moment(moment)
            print(f"event {snapshot.head.seq}  {when}  {snapshot.name}")


@commands.command("roll-back")
def roll_back(
    place: Place,
    to: Annotated[
        str, typer.Option(help="The number of an event, or the name of a snapshot, to go back to.")
    ],
    relearn: Annotated[
        bool,
        typer.Option("--relearn/--forget", help="Whether to learn again what came after it."),
    ] = False,
    relearn_after: Annotated[
        int | None,
        typer.Option(min=1, help="Learn again only what came after this event."),
    ] = None,
    agent: AgentName = "agent",
) -> None:
    """Have an agent know what it knew after an event; itself an event of the journal.

    Models, features and actions are as they were then; decisions go on to wait, and ids stay
    taken. Not while another process writes: ask that one, POST /v1/rollback.
    """
    from melee.agent.opening import reopen
    from melee.journal import Journal
    from melee.journal.snapshots import seq_of

    _open(place, agent).close()
    journal = Journal(place, agent)
    try:
        number = seq_of(to)
        again = number if relearn and relearn_after is None else relearn_after
        reopened = reopen(journal)
        before = reopened.n_learned_
        reopened.roll_back(number, relearn_after=again)
        reopened.close()
    except BaseException:
        journal.close()
        raise
    done = "forgotten" if again is None else "learned again"
    since = "it" if again in (None, number) else f"event {again}"
    print(
        f"{journal.where}: back at event {number}, and what came after {since} is {done}; "
        f"{reopened.n_learned_:,} rounds learned, {before:,} before"
    )


@commands.command()
def trials(
    place: Place,
    agent: AgentName = "agent",
    explorers: Annotated[
        str | None,
        typer.Option(
            help="SPECs to judge as shadows of all that the journal has, separated by commas."
        ),
    ] = None,
    format: Format = "text",  # noqa: A002
) -> None:
    """Say how an agent's trials do, what an apprentice would have earned, and others as shadows.

    All of it may be looked at any time: intervals and p-values hold however often one looks.
    """
    check_format(format, "text", "json")
    from melee.trials import compare

    found = compare(_open(place, agent), [] if explorers is None else read_specs(explorers))
    if format == "json":
        print(json.dumps([comparison.to_json() for comparison in found], indent=2))
        return
    for comparison in found:
        print(comparison)
    if not found:
        print("no trial runs, and no choice of a caller was followed; see --explorers")


def _open(place: str, agent: str = "agent") -> "Journal":
    """A journal to be read."""
    from melee.journal import Journal

    return Journal(place, agent, writing=False)


def _is_about(event: "Event", id: str) -> bool:
    if event.id is not None:
        return event.id == id
    return event.kind == "time-out" and id in event.content["ids"]


def _as_json(event: "Event") -> dict[str, Any]:
    about = event._asdict()
    return {**about, "body": event.content, "checksum": event.checksum.hex()}


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"
