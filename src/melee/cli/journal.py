"""Commands for journals: whether they are whole, what is in them, and what follows from it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from melee.cli.base import app, check_format, out, progress_bar, read_specs, say

if TYPE_CHECKING:
    from melee.auditing import Audit
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
AnyAgent = Annotated[
    str | None, typer.Option("--agent", help="Only this agent's, where there are several.")
]
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
    agent: AnyAgent = None,
    id: Annotated[str | None, typer.Option(help="Only what is about this decision.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only events of this kind.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, the latest.")] = 20,
    format: Format = "text",  # noqa: A002
) -> None:
    """Show events, the latest last, also of a journal that verify finds faults in."""
    check_format(format, "text", "json")
    from melee.errors import InputError
    from melee.journal.events import KINDS

    if kind is not None and kind not in KINDS:
        raise InputError(f"--kind is {kind!r}; expected one of {', '.join(KINDS)}")
    journal = _open(place)
    names = _agents(journal, agent)
    found = journal.store.latest(last, agent=agent, kind=kind, id=id)
    if not found and id is not None:
        raise InputError(f"no event{_of(agent)} is about a decision {id!r}")
    for event in found:
        if format == "json":
            print(json.dumps(_as_json(event)))
            continue
        whose = f"{event.agent}  " if len(names) > 1 else ""
        about = f"{event.seq}  {_moment(event.time)}  {whose}{event.kind}  {event.id or ''}"
        out.print(Text(about.rstrip()), soft_wrap=True)
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
    agent: AnyAgent = None,
    after: Annotated[
        int | None, typer.Option(min=0, help="Begin at the newest snapshot up to this event.")
    ] = None,
    format: Format = "text",  # noqa: A002
) -> None:
    """Derive every decision of every agent again, and name the first of each that differs.

    Exits with 1 if one does.
    """
    check_format(format, "text", "json")
    journal = _open(place)
    names = _agents(journal, agent)
    differs = False
    for name in names:
        found = _derive(journal.another(name), after)
        differs = differs or found.difference is not None
        whose = f"{name}: " if len(names) > 1 else ""
        if format == "json":
            difference = None if found.difference is None else found.difference._asdict()
            print(json.dumps({"agent": name, **found._asdict(), "difference": difference}))
        elif found.difference is None:
            print(
                f"{whose}{found.n_decisions:,} decisions derived again, from event "
                f"{found.after + 1}: 0 differ"
            )
        else:
            _, id, sentence = found.difference
            print(f"{whose}decision {id}, event {found.difference.seq}: {sentence}")
            print(
                f"{whose}{found.n_decisions:,} decisions derived again; the others after it were "
                "not"
            )
    if differs:
        raise typer.Exit(1)


def _derive(journal: "Journal", after: int | None) -> "Audit":
    """The audit of one agent, and how far it is."""
    from melee.auditing import audit as derive

    with progress_bar() as bar:
        task = bar.add_task("events", total=journal.head.seq)
        return derive(journal, after=after, progress=lambda n: bar.update(task, completed=n))


@commands.command()
def explain(
    place: Place,
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a past decision.")],
    agent: AnyAgent = None,
) -> None:
    """Say why a past decision was made, by the agent as it was then."""
    from melee.agent.recalling import explain_past
    from melee.errors import InputError

    journal = _open(place)
    who = [name for name in _agents(journal, agent) if journal.another(name).find(id) is not None]
    if len(who) > 1:
        raise InputError(f"decisions of {', '.join(who)} have the id {id!r}; say whose by --agent")
    why = explain_past(journal.another(who[0]), id) if who else None
    if why is None:
        raise InputError(
            f"no decision {id!r}{_of(agent)} is in the journal; melee journal show lists decisions"
        )
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


def _agents(journal: "Journal", agent: str | None) -> list[str]:
    """All agents of a journal, or the one that was asked for, which has to be there."""
    from melee.journal.journal import no_agent

    names = journal.store.agents(thorough=True)
    if not names or agent not in (None, *names):
        raise no_agent(journal if agent is None else journal.another(agent))
    return names if agent is None else [agent]


def _of(agent: str | None) -> str:
    return "" if agent is None else f" of agent {agent!r}"


def _as_json(event: "Event") -> dict[str, Any]:
    about = event._asdict()
    return {**about, "body": event.content, "checksum": event.checksum.hex()}


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"
