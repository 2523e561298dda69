"""Past decisions: derived again, explained, and what the command line says of them."""

import json

import pytest
from typer.testing import CliRunner

from melee import Agent, InputError
from melee.auditing import audit
from melee.cli import app
from melee.history import History
from melee.journal import Journal, events
from melee.journal.sqlite import SQLite
from tests.agent_lives import ACTIONS
from tests.journals import keeper_of, live, reading


def lived(place, clock, spec="linucb", last=120, **options):
    agent = Agent(ACTIONS, spec, journal=place, **options)
    live(agent, 0, last, clock=clock)
    return agent


def run(*arguments):
    done = CliRunner().invoke(app, ["journal", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.mark.parametrize("spec", ["melee", "linucb", "thompson", "cover", "squarecb", "softmax"])
def test_every_decision_can_be_derived_again(place, clock, spec):
    agent = lived(place, clock, spec, timeout=30.0, default_reward=0.0)
    agent.close()
    found = audit(reading(place))
    assert found.difference is None
    assert found.n_decisions == sum(one.kind == "decision" for one in reading(place).events())
    assert found.fingerprint == agent.fingerprint


@pytest.mark.filterwarnings("ignore:more than 100000 decisions wait")
@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_many_decisions_are_derived_again(place, n):
    agent = Agent(["a", "b", "c"], "epsilon-greedy", journal=place)
    rows = [{"hour": float(i % 24), "day": float(i % 7)} for i in range(100)]
    for number in range(0, n, 100):
        decisions = agent.act_many(rows)
        agent.learn_many(decisions[::2], [(number + i) % 3 / 2 for i in range(50)])
    agent.close()
    found = audit(reading(place))
    assert (found.n_decisions, found.difference) == (n, None)
    assert found.fingerprint == agent.fingerprint


def test_an_audit_begins_at_a_snapshot(place, clock):
    agent = lived(place, clock, last=50)
    first = keeper_of(agent).snapshot()
    live(agent, 50, 80, clock=clock)
    agent.close()
    found = audit(reading(place), after=first + 10)
    assert found.after == first
    assert found.n_decisions == sum(
        one.kind == "decision" and one.seq > first for one in reading(place).events()
    )
    assert (found.difference, found.fingerprint) == (None, agent.fingerprint)


def rewritten(place, seq, **changes):
    """The same journal, one decision of which says something else; its chain is whole."""
    store, other = SQLite(place, writing=False), SQLite(place.with_name("other"), writing=True)
    for event in store.rows(0):
        body = event.content
        offer = None
        if event.kind == "decision":
            offer = store.offer(body["offer"])
        if event.seq == seq:
            body |= changes
        draft = events.Draft(event.kind, event.id, event.time, json.dumps(body), offer)
        other.append([("agent", draft)])
    other.close()
    return place.with_name("other")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": 1}, "its version was 1, and comes out as"),
        ({"pmf": [0.25, 0.25, 0.25, 0.25]}, "its probabilities was (0.25, 0.25, 0.25, 0.25)"),
        ({"policy": "other@1"}, "its policy was 'other@1'"),
    ],
)
def test_the_first_decision_that_differs_is_named(place, clock, changes, sentence):
    lived(place, clock, last=55).close()
    seqs = [
        one.seq
        for one in reading(place).events()
        if one.kind == "decision" and "some" not in one.content
    ]
    seq = seqs[30]
    found = audit(reading(rewritten(place, seq, **changes)))
    assert found.difference is not None
    assert found.difference.seq == seq
    assert sentence in found.difference.sentence
    done = run("audit", place.with_name("other"))
    assert done.exit_code == 1
    assert f"event {seq}: its" in done.output


def test_a_past_decision_is_explained_as_it_was_then(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    live(agent, 0, 30, clock=clock)
    decision = agent.act({"age": 30, "device": "phone"})
    then = agent.explain(decision)
    agent.learn(decision, 1.0)
    live(agent, 31, 60, clock=clock)
    assert agent.explain(decision) == agent.explain(decision.id) == then
    assert then.since == 0
    agent.close()
    assert str(then) in run("explain", place, decision.id).output
    with pytest.raises(InputError, match="no decision 'nobody' is in the journal"):
        run("explain", place, "nobody")
    unkept = Agent(ACTIONS, "linucb")
    with pytest.raises(InputError, match="is not known"):
        unkept.explain("nobody")


# -- the command line --------------------------------------------------------------------------


def test_a_whole_journal_is_verified(place, clock):
    lived(place, clock, last=20).close()
    done = run("verify", place)
    assert done.exit_code == 0
    assert "1 snapshots: whole" in done.output


def test_a_damaged_one_exits_with_1(place, clock):
    import sqlite3

    lived(place, clock, last=20).close()
    with sqlite3.connect(place / "journal.sqlite") as connection:
        connection.execute("DELETE FROM events WHERE seq = 5")
    connection.close()
    done = run("verify", place)
    assert done.exit_code == 1
    assert "event 5 is missing" in done.output


def test_events_are_shown(place, clock):
    agent = lived(place, clock, last=20)
    decision = agent.act({"age": 1}, id="mine")
    agent.learn(decision, 1.0)
    agent.close()
    lines = run("show", place, "--id", "mine", "--format", "json").output.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["decision", "reward"]
    assert json.loads(lines[0])["body"]["context"] == {"age": 1.0}
    assert "decision  mine" in run("show", place, "--last", 2).output
    assert run("show", place, "--kind", "created").output.count("created") == 1


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "dsjson", "parquet"])
def test_rounds_are_exported(place, clock, tmp_path, ending):
    agent = Agent(["a", "b"], "linucb", journal=place)
    for i in range(10):
        agent.learn(agent.act({"age": i}), i % 2)
    agent.close()
    path = tmp_path / f"rounds.{ending}"
    assert run("export", place, "--out", path).exit_code == 0
    history = History.read(path)
    assert list(history.rewards) == [i % 2 for i in range(10)]


def test_a_journal_is_compacted(place, clock):
    agent = lived(place, clock, last=40)
    agent.close()
    with pytest.raises(InputError, match="nothing says what to keep"):
        run("compact", place)
    done = run("compact", place, "--keep-mb", 0)
    assert "0 events are left" in done.output
    assert "whole" in run("verify", place).output
    again = Agent(ACTIONS, "linucb", journal=place)
    assert again.fingerprint == agent.fingerprint
    again.close()


def two_agents(place, clock):
    """A journal of agents called mail and news, whose decision `both` is either's."""
    news = Agent(ACTIONS, "linucb", journal=Journal(place, "news"))
    mail = Agent(
        ACTIONS,
        "epsilon-greedy",
        timeout=30.0,
        journal=keeper_of(news).journal.another("mail"),
    )
    clock.now += 1.0
    for agent, name in ((news, "news"), (mail, "mail")):
        for i in range(5):
            agent.learn(agent.act({"age": i}, id=f"{name}-{i}"), i % 2)
        agent.act({"age": 7}, id="both")
    clock.now += 60.0
    mail.act({"age": 7}, id="late")
    news.close()


def test_agents_are_named(place, clock):
    two_agents(place, clock)
    assert "6 decisions" in run("audit", place, "--agent", "news").output
    for command in (["audit", place], ["show", place], ["explain", place, "news-1"]):
        sentence = "no agent 'agent' is in this journal; there are mail, news"
        with pytest.raises(ValueError, match=sentence):
            run(*command, "--agent", "agent")
    with pytest.raises(ValueError, match="no agent 'agent' is in this journal; there are none"):
        run("audit", empty(place.with_name("empty")))


def empty(place):
    Journal(place).close()
    return place


def test_decisions_of_all_agents_are_derived_again(place, clock):
    two_agents(place, clock)
    lines = run("audit", place).stdout.splitlines()
    assert [line.partition(" decisions")[0] for line in lines] == ["mail: 7", "news: 6"]
    lines = run("audit", place, "--format", "json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(one["agent"], one["n_decisions"], one["difference"]) for one in found] == [
        ("mail", 7, None),
        ("news", 6, None),
    ]


def test_an_agent_whose_beginning_was_taken_away_is_not_left_out(place, clock):
    import sqlite3

    two_agents(place, clock)
    with sqlite3.connect(place / "journal.sqlite") as connection:
        connection.execute("DELETE FROM events WHERE agent = 'mail' AND kind = 'created'")
    connection.close()
    for file in (place / "snapshots").glob("mail*"):
        file.unlink()
    assert "is missing" in run("verify", place).output
    with pytest.raises(ValueError, match="event 2 is missing"):
        run("audit", place)
    assert "mail  decision  both" in run("show", place, "--id", "both").output


def test_events_of_all_agents_are_shown(place, clock):
    two_agents(place, clock)
    shown = run("show", place, "--last", 1_000, "--format", "json").output.splitlines()
    assert [json.loads(line)["seq"] for line in shown] == list(range(1, len(shown) + 1))
    assert "  news  decision  news-3" in run("show", place, "--id", "news-3").output
    kinds = [
        (line.split()[3], line.split()[4])
        for line in run("show", place, "--id", "both").output.splitlines()
        if not line.startswith("    ")
    ]
    assert kinds == [("news", "decision"), ("mail", "decision"), ("mail", "time-out")]
    assert run("show", place, "--id", "both", "--kind", "time-out").output.count("time-out") == 1
    own = run("show", place, "--agent", "news", "--kind", "decision", "--last", 3).output
    assert own.count("  decision  ") == 3
    assert "mail" not in own
    with pytest.raises(InputError, match="no event of agent 'news' is about a decision 'mail-1'"):
        run("show", place, "--agent", "news", "--id", "mail-1")
    with pytest.raises(InputError, match="--kind is 'decisions'; expected one of created, "):
        run("show", place, "--kind", "decisions")


def test_a_decision_of_any_agent_is_explained(place, clock):
    two_agents(place, clock)
    assert "decision news-3: " in run("explain", place, "news-3").output
    assert "decision mail-3: " in run("explain", place, "mail-3").output
    with pytest.raises(InputError, match="decisions of mail, news have the id 'both'; say whose"):
        run("explain", place, "both")
    assert "by linucb" in run("explain", place, "both", "--agent", "news").output
    with pytest.raises(InputError, match="no decision 'news-3' of agent 'mail' is in the journal"):
        run("explain", place, "news-3", "--agent", "mail")
