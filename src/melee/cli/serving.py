"""Commands for the service: run it, and see how much it takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from melee.cli.base import app, check_format, say


@app.command()
def serve(
    actions: Annotated[
        str | None,
        typer.Option(help="Labels of the actions of the agent called 'agent', with commas."),
    ] = None,
    candidates: Annotated[
        bool,
        typer.Option("--candidates", help="Actions of 'agent' come with each question instead."),
    ] = False,
    journal: Annotated[
        str,
        typer.Option(
            "--data", "--journal", help="Where the journal is: a directory, or postgresql://..."
        ),
    ] = "melee-data",
    workers: Annotated[
        int, typer.Option(help="Processes that take requests; beyond one, one more that learns.")
    ] = 1,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8642,
    key: Annotated[
        str | None,
        typer.Option(envvar="MELEE_KEY", help="A key for everything; better set MELEE_KEY."),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="A file with lines of a level (read, decide, admin) and a key."),
    ] = None,
    agents: Annotated[
        Path | None,
        typer.Option(help="A JSON file of agents: their parameters, by name."),
    ] = None,
    explorer: Annotated[str, typer.Option(help="How to explore: a SPEC.")] = "melee",
    seed: Annotated[int, typer.Option(help="Of all randomness.")] = 0,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that a decision waits for its reward.")
    ] = None,
    default_reward: Annotated[
        float | None, typer.Option(help="The reward of a decision whose time is over.")
    ] = None,
    half_life: Annotated[
        int | None, typer.Option(help="Rounds after which a drifting world is half forgotten.")
    ] = None,
    keep_days: Annotated[
        float | None, typer.Option(help="How long events are kept; by default for ever.")
    ] = None,
    keep_mb: Annotated[
        float | None,
        typer.Option("--keep-mb", min=0, max=1e9, help="How many MB are kept; by default all."),
    ] = None,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="SPEC=SHARE",
            help="Another explorer on a share of the decisions; 0 for a shadow. Repeatable.",
        ),
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> None:
    """Serve agents over HTTP, with a journal: nothing acknowledged is lost."""
    check_format(log_format, "text", "json")
    check_format(log_level, "debug", "info", "warning", "error")
    from melee.collecting import without_collecting
    from melee.errors import InputError

    with without_collecting():
        from melee.serve.keys import Keys, read_keys
        from melee.serve.logs import log_to_stderr
        from melee.serve.sockets import check_host
        from melee.serve.supervisor import check_workers

    log_to_stderr(log_level, log_format)
    check_workers(workers)

    levels = {} if keys is None else read_keys(keys)
    if key:
        levels[key] = "admin"
    known = Keys(levels)
    check_host(host, known)
    parameters = {} if agents is None else _read_agents(agents)
    if actions is not None and candidates:
        raise InputError(
            "--actions and --candidates are given; expected either labels that stay, or "
            "candidates that come with each question"
        )
    if actions is not None or candidates:
        labels = None if actions is None else [label.strip() for label in actions.split(",")]
        parameters["agent"] = {
            "actions": labels,
            "explorer": explorer,
            "seed": seed,
            "timeout": timeout,
            "default_reward": default_reward,
            "half_life": half_life,
        }
    trials = read_trials(tries or [])
    where = f"[{host}]" if ":" in host else host

    def ready(names: Sequence[str], port: int) -> None:
        if not names:
            say(
                "melee: there is no agent yet; give --actions, or --candidates, or PUT one to "
                "/v1/agents/NAME"
            )
        from melee.journal.postgres import without_password

        listed = ", ".join(names) or "no agent yet"
        place = without_password(journal)
        say(f"melee serves {listed} at http://{where}:{port}, journal in {place}")

    keep = {"keep_days": keep_days, "keep_bytes": None if keep_mb is None else int(keep_mb * 1e6)}
    if workers == 1:
        about = (parameters, trials)
        _serve_alone(journal, keep, about, known, (host, port), log_level, ready)
    else:
        import asyncio

        from melee.serve.starting import agents_to_json
        from melee.serve.supervisor import Supervisor

        told: dict[str, Any] = {
            "agents": agents_to_json(parameters),
            "journal": journal,
            "keep": keep,
            "trials": trials,
        }
        supervisor = Supervisor(
            workers, host, port, told, keys=levels, log_level=log_level, log_format=log_format
        )
        asyncio.run(supervisor.run(lambda names: ready(names, supervisor.port)))
    say("melee: stopped; everything is on disk")


def _serve_alone(
    journal: str,
    keep: dict[str, Any],
    about: tuple[dict[str, dict[str, Any]], dict[str, tuple[str, float]]],
    known: Any,
    address: tuple[str, int],
    log_level: str,
    ready: Callable[[Sequence[str], int], None],
) -> None:
    """One process does everything."""
    from melee.collecting import settle, without_collecting

    with without_collecting():
        from melee.serve.app import App
        from melee.serve.server import serve
        from melee.serve.service import Service, open_journal
        from melee.serve.sockets import listen

        listening = listen(*address)
        service = Service(open_journal(journal, **keep))
        try:
            service.open(*about)
        except BaseException:
            service.journal.close()
            raise
    settle()
    ready(list(service.agents), listening.getsockname()[1])
    serve(App(service, known), listening, debug=log_level == "debug")


def read_trials(given: list[str]) -> dict[str, tuple[str, float]]:
    """Explorers and shares, by the names of explorers.

    >>> read_trials(["linucb:alpha=0.5=0.1", "uniform=0"])
    {'linucb': ('linucb:alpha=0.5', 0.1), 'uniform': ('uniform', 0.0)}
    """
    from melee.errors import InputError

    found = {}
    for text in given:
        spec, _, share = text.rpartition("=")
        name = spec.partition(":")[0]
        try:
            part = float(share)
        except ValueError:
            part = -1.0
        if not name or not 0.0 <= part < 1.0:
            raise InputError(
                f"--try is {text}; expected an explorer and its share, such as linucb=0.1, or "
                "linucb=0 for a shadow"
            )
        if name in found:
            raise InputError(f"--try names {name} twice; begin one of them by PUT /v1/trials/NAME")
        found[name] = spec, part
    return found


def _read_agents(path: Path) -> dict[str, dict[str, Any]]:
    """Parameters of agents, by name."""
    from melee.errors import InputError, shown
    from melee.history.jsonl import read_object
    from melee.journal.snapshots import check_agent
    from melee.serve import bodies
    from melee.serve.routes import MANY, PARAMETERS

    expected = "an object of agents by name, each an object of its parameters"
    agents = {}
    for name, given in read_object(path, expected).items():
        try:
            check_agent(name)
            if isinstance(given, dict) and "actions" in given and given["actions"] is None:
                raise InputError(
                    "actions is null; expected a list of labels, or no actions at all, for "
                    "candidates that come with each question"
                )
            agents[name] = bodies.parameters(given, PARAMETERS, MANY)
        except InputError as error:
            raise InputError(f"{path}: agent {shown(name)}: {error}") from None
    return agents


@app.command("load-test")
def load_test(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where the service is.")
    ] = "http://localhost:8642",
    pairs: Annotated[int, typer.Option(min=1, help="Decisions, each with its reward.")] = 10_000,
    callers: Annotated[int, typer.Option(min=1, help="How many there are at once.")] = 64,
    agent: Annotated[str | None, typer.Option(help="Which agent's.")] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Candidates with each question, for an agent that has no actions of its own.",
        ),
    ] = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(help="A JSON file of labels and features to draw them from; else made up."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="MELEE_KEY", help="A key; better set MELEE_KEY.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of contexts, candidates and rewards.")] = 0,
) -> None:
    """Decide and reward as fast as a service answers, and print how long answers take.

    The agent learns from what is sent: give one that is there for this.
    """
    import asyncio

    from melee.client import AsyncClient
    from melee.client.load import load as run
    from melee.client.load import read_catalogue

    items = None if catalogue is None else read_catalogue(catalogue)
    each = candidates or (0 if items is None else min(10, len(items)))

    async def main() -> Any:
        async with AsyncClient(url, key=key, agent=agent, attempts=1) as client:
            await client.status()  # or else every pair would wait until its attempts are over
        async with AsyncClient(url, key=key, agent=agent, connections=callers) as client:
            about = {"n_callers": callers, "n_pairs": pairs, "seed": seed}
            return await run(client, **about, n_candidates=each, items=items)

    with asyncio.Runner(loop_factory=_quick_loop()) as runner:
        found = runner.run(main())
    for line in found.lines():
        print(line)
    if found.n_failed:
        raise typer.Exit(1)


def _quick_loop() -> Any:
    """What makes an event loop that leaves more of the machine to the service, if there is one."""
    from melee.extras import needed

    try:
        with needed("a quick event loop", "serve"):
            import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
