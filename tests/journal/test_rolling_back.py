"""Going back to what was known after an event, with what came since learned again or not."""

import json

import pytest
from typer.testing import CliRunner

from melee import Agent, InputError
from melee.auditing import audit
from melee.cli import app
from melee.journal import Journal, verify
from tests.agent_lives import ACTIONS
from tests.journals import keeper_of, live, reading, straight

SPECS = ["melee", "linucb", "eg-epsilon-greedy"]


def end(agent):
    """The number of the last event."""
    return keeper_of(agent).journal.head.seq


def known(agent):
    """What the agent knows, apart from its version and from what decisions that wait have left."""
    about, arrays = agent._knowledge.to_parts()
    about.pop("version")
    arrays = {name: one for name, one in arrays.items() if not name.endswith(".latest")}
    return about, {name: array.tolist() for name, array in arrays.items()}


def waits(agent):
    return list(agent._pending.waiting), dict(agent._pending.done), agent._pending.n_given_up


def check_all_agree(place, agent):
    """Recovery, straight replay and an audit end where the agent is."""
    agent.close()
    assert list(verify(reading(place))) == []
    assert straight(reading(place)).fingerprint == agent.fingerprint
    found = audit(reading(place))
    assert (found.difference, found.fingerprint) == (None, agent.fingerprint)
    for one in reading(place).snapshots():
        reading(place).store.snapshots.drop(one)
    again = Agent(ACTIONS, agent.explorer, **options_of(agent), journal=place)
    assert again.fingerprint == agent.fingerprint
    again.close()


def options_of(agent):
    return {name: getattr(agent, name) for name in ("timeout", "default_reward", "half_life")}


@pytest.mark.parametrize("spec", SPECS)
def test_what_came_since_is_forgotten(place, clock, spec):
    agent = Agent(ACTIONS, spec, timeout=30.0, default_reward=0.25, journal=place)
    live(agent, 0, 50, clock=clock)
    then, to, version = known(agent), end(agent), agent._knowledge.version
    live(agent, 50, 100, clock=clock)
    before, later = waits(agent), agent._knowledge.version
    agent.roll_back(to)
    assert known(agent) == then
    assert waits(agent) == before
    assert agent._knowledge.version == later + 1 > version
    live(agent, 100, 130, clock=clock)
    check_all_agree(place, agent)


@pytest.mark.parametrize("spec", SPECS)
def test_what_came_since_is_learned_again(place, clock, spec):
    agent = Agent(ACTIONS, spec, half_life=40, journal=place)
    live(agent, 0, 70, clock=clock)  # no action comes or goes from here on
    to = end(agent)
    live(agent, 70, 130, clock=clock)
    now = known(agent)
    agent.roll_back(to, relearn_after=to)
    assert known(agent) == now
    check_all_agree(place, agent)


def test_a_stretch_of_rewards_is_taken_out(place, clock):
    """As an agent that never saw them."""
    agent, other = Agent(ACTIONS, "linucb", journal=place), Agent(ACTIONS, "linucb")
    rounds = []

    def learn(number, reward, *, well):
        decision = agent.act({"hour": number % 24})
        agent.learn(decision, reward)
        if well:
            rounds.append(({"hour": number % 24}, decision.action, reward, decision.probability))

    for number in range(30):
        learn(number, number % 2, well=True)
    to = end(agent)
    for number in range(30, 50):
        learn(number, 100.0, well=False)  # a mistake
    again = end(agent)
    for number in range(50, 80):
        learn(number, number % 3 / 2, well=True)
    agent.roll_back(to, relearn_after=again)
    for one in rounds:
        other.learn(*one)
    assert known(agent) == known(other)
    check_all_agree(place, agent)


def test_a_mistaken_removal_of_an_action_is_undone(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    for number in range(40):
        agent.learn(agent.act({"hour": number % 24}), number % 2)
    to = end(agent)
    agent.remove_actions(["sports"])
    for number in range(10):
        agent.learn(agent.act({"hour": number}), 1.0)
    agent.roll_back(to, relearn_after=to)
    assert agent.actions_ == ACTIONS
    assert agent.n_learned_ == 50
    check_all_agree(place, agent)


def test_a_decision_from_before_takes_its_reward_after(place):
    agent = Agent(ACTIONS, "linucb", journal=place)
    first = agent.act({"hour": 1})
    to = end(agent)
    second = agent.act({"hour": 2, "new": "name"})
    agent.learn(agent.act({"hour": 3, "new": "other"}), 1.0)
    agent.roll_back(to)
    assert agent.n_learned_ == 0
    assert agent.learn(second, 1.0)
    assert agent.learn(first.id, 0.5)
    assert not agent.learn(first.id, 0.5)
    with pytest.raises(InputError, match="is taken"):
        agent.act({"hour": 4}, id=second.id)
    assert agent.n_learned_ == 2
    check_all_agree(place, agent)


def test_going_back_is_undone_by_going_back_to_before_it(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    live(agent, 0, 80, clock=clock)
    now, last = known(agent), end(agent)
    agent.roll_back(20)
    agent.roll_back(last)
    assert known(agent) == now
    agent.roll_back(30, relearn_after=40)
    live(agent, 80, 100, clock=clock)
    agent.roll_back(end(agent) - 10, relearn_after=end(agent) - 10)
    check_all_agree(place, agent)


def test_agents_that_share_a_journal_go_back_alone(place, clock):
    journal = Journal(place)
    agent = Agent(ACTIONS, "linucb", journal=journal)
    other = Agent(ACTIONS, "linucb", journal=journal.another("other"))
    for number in range(30):
        agent.learn(agent.act({"hour": number}), 1.0)
        other.learn(other.act({"hour": number}), 0.5)
    theirs = other.fingerprint
    agent.roll_back(31, relearn_after=40)
    assert other.fingerprint == theirs
    keeper_of(other).finish()
    check_all_agree(place, agent)
    assert straight(reading(place, "other")).fingerprint == theirs


def test_what_a_rollback_needs_is_not_dropped(place, clock):
    agent = Agent(ACTIONS, "linucb", journal=place)
    live(agent, 0, 40, clock=clock)
    first = keeper_of(agent).snapshot()
    live(agent, 40, 50, clock=clock)
    to = end(agent)
    live(agent, 50, 60, clock=clock)
    second = keeper_of(agent).snapshot()
    agent.roll_back(to)
    live(agent, 60, 70, clock=clock)
    journal = keeper_of(agent).journal
    moment = next(one.time for one in journal.events() if one.seq == second + 1)
    journal.compact(keep_days=0, now=moment - 0.5)
    assert journal.start.seq == first
    agent.close()
    found = audit(reading(place))
    assert (found.difference, found.fingerprint) == (None, agent.fingerprint)
    with pytest.raises(InputError, match=f"from {first}, before which nothing is known"):
        Agent(ACTIONS, "linucb", journal=place).roll_back(first - 1)


@pytest.mark.parametrize(
    ("to", "again", "sentence"),
    [
        (0, None, r"to is 0; expected the number of an event from 1, .* to 21"),
        (22, None, r"to is 22; expected the number of an event from 1"),
        (-1, None, r"to is -1"),
        (True, None, r"to is True"),
        ("7", None, r"to is '7'"),
        (5, 4, r"relearn_after is 4; expected the number of an event from 5, .* to 21"),
        (5, 22, r"relearn_after is 22"),
        (5, 7.0, r"relearn_after is 7\.0"),
    ],
)
def test_places_that_do_not_exist_are_refused_and_nothing_changes(place, to, again, sentence):
    agent = Agent(ACTIONS, "linucb", journal=place)
    for number in range(10):
        agent.learn(agent.act({"hour": number}), 1.0)
    before = agent.fingerprint
    with pytest.raises(InputError, match=sentence):
        agent.roll_back(to, relearn_after=again)
    assert (agent.fingerprint, end(agent)) == (before, 21)
    agent.close()


def test_what_a_rollback_needs_is_not_dropped_by_who_did_not_know_of_it(place, monkeypatch):
    agent = Agent(ACTIONS, "linucb", journal=place)
    for number in range(20):
        agent.learn(agent.act({"hour": number}), number % 2)
        if number in (4, 14):
            keeper_of(agent).snapshot()
    journal = keeper_of(agent).journal
    drop = type(journal)._drop

    def later(self, *given):
        monkeypatch.undo()
        agent.roll_back(12)  # after it was found what nobody needs, and before that is dropped
        return drop(self, *given)

    monkeypatch.setattr(type(journal), "_drop", later)
    assert journal.compact(keep_days=0).n_events == 0
    assert agent.n_learned_ == 5
    assert journal.compact(keep_days=0).n_events == 42  # there is a snapshot of the rollback
    check = reading(place)
    assert Agent.from_bytes(check.read_snapshot(check.snapshots()[0])).n_learned_ == 5
    agent.close()


def test_an_agent_without_a_journal_has_no_past_to_go_back_to():
    with pytest.raises(InputError, match="keeps no journal"):
        Agent(ACTIONS, "linucb").roll_back(1)


# -- the command line --------------------------------------------------------------------------


def run(*arguments):
    done = CliRunner().invoke(app, ["journal", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def lived(place):
    """A journal of 41 events, with a snapshot of event 21 and of the last."""
    agent = Agent(ACTIONS, "linucb", journal=place)
    for number in range(20):
        agent.learn(agent.act({"hour": number}), number % 2)
        if number == 9:
            keeper_of(agent).snapshot()
    agent.close()
    return place


def test_snapshots_are_listed_and_gone_back_to_by_name(lived):
    lines = run("snapshots", lived).output.splitlines()
    assert [line.split()[:2] for line in lines] == [["event", "41"], ["event", "21"]]
    name = lines[1].split()[-1]
    found = json.loads(run("snapshots", lived, "--format", "json").output.splitlines()[1])
    assert (found["event"], found["name"]) == (21, name)
    done = run("roll-back", lived, "--to", lived / "snapshots" / name)
    assert (
        "back at event 21, and what came after it is forgotten; 10 rounds learned, 20 before"
        in (" ".join(done.output.split()))
    )
    assert "whole" in run("verify", lived).output
    assert "20 decisions derived again, from event 1: 0 differ" in run("audit", lived).output
    assert json.loads(run("show", lived, "--kind", "rollback", "--format", "json").output)[
        "body"
    ] == {"to": 21, "again": None}


@pytest.mark.parametrize(
    ("options", "n_learned"),
    [
        (["--forget"], 10),
        (["--relearn"], 20),
        (["--relearn-after", "31"], 15),
        (["--relearn", "--relearn-after", "41"], 10),
    ],
)
def test_what_came_after_is_learned_again_as_asked(lived, options, n_learned):
    assert f"; {n_learned} rounds learned" in " ".join(
        run("roll-back", lived, "--to", "21", *options).output.split()
    )
    agent = Agent(ACTIONS, "linucb", journal=lived)
    assert agent.n_learned_ == n_learned
    agent.close()


@pytest.mark.parametrize("to", ["yesterday", "-1", "1.5", "", "٣"])
def test_a_place_that_is_none_is_refused(lived, to):
    with pytest.raises(InputError, match="neither the number of an event nor the name"):
        run("roll-back", lived, "--to", to)
    Agent(ACTIONS, "linucb", journal=lived).close()  # nobody holds it
