"""Agents whose candidates come with the question, and their journals."""

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import melee
from melee import InputError
from melee.agent.exporting import rounds
from melee.agent.recovering import recover
from melee.auditing import audit
from melee.history import History
from melee.journal import Journal, events, offers, verify
from tests.journals import keeper_of, reading, straight

TOPICS = ("sport", "film", "news")


def article(rng, number) -> dict[str, Any]:
    one: dict[str, Any] = {"topic": rng.choice(TOPICS), "words": float(rng.randrange(100, 900))}
    if number % 3 == 0:
        one["tags"] = ["long", "new"] if number % 2 else ["old"]
    if number % 5 == 0:
        one["words"] = None
    return one


def live(agent, n_rounds, *, seed=0, on=None):
    """Rounds with everything in them; the decisions that still wait."""
    rng = random.Random(seed)
    shelf = {f"a{i}": article(rng, i) for i in range(8)}
    waiting: list[Any] = []
    for number in range(n_rounds):
        if number % 7 == 6:
            shelf.pop(next(iter(shelf)))
            shelf[f"b{number}"] = article(rng, number)
        if number % 11 == 10:
            shelf = {label: {**one, "hours": float(number)} for label, one in shelf.items()}
        reader = {"likes": rng.choice(TOPICS), "age": float(rng.randrange(18, 80))}
        kind = number % 6
        if kind == 1:
            made = list(agent.act(reader, actions=shelf, top=3).places)
        elif kind == 2:
            few = dict(list(shelf.items())[:3])
            made = agent.act_many([reader, reader, {"likes": "film"}], actions=[shelf, few, shelf])
        elif kind == 3:
            made = agent.act_many([reader, reader], actions=shelf)
        elif kind == 4:
            made = [agent.act(reader, actions=shelf, id=f"mine {seed} {number}")]
        else:
            made = [agent.act(reader, actions=shelf)]
        waiting += made
        rng.shuffle(waiting)
        while len(waiting) > 5:
            agent.learn(waiting.pop(), float(rng.random() < 0.4))
        if number % 13 == 12:
            agent.learn(reader, "x1", 1.0, 0.5, features={"topic": "film"})
            agent.learn_many([waiting.pop().id for _ in range(2)], [0.0, 1.0])
        if number == 40:
            agent.remove_actions([agent.actions_[0]])
        if on is not None:
            on(number)
    return waiting


@pytest.mark.parametrize("explorer", ["melee", "linucb:alpha=0.2"])
def test_events_make_the_same_agent_to_the_bit_and_the_same_decisions(tmp_path, explorer):
    agent = melee.Agent(explorer=explorer, journal=tmp_path, seed=3, half_life=60)
    live(agent, 70)
    assert straight(reading(tmp_path)).fingerprint == agent.fingerprint
    found = audit(reading(tmp_path))
    assert found.difference is None
    assert found.n_decisions > 80
    assert found.fingerprint == agent.fingerprint
    assert not list(verify(reading(tmp_path)))
    agent.close()


def test_an_agent_goes_on_from_its_journal_and_from_snapshots(tmp_path):
    journal = Journal(tmp_path, snapshot_every=50)
    agent = melee.Agent(journal=journal, seed=1)
    waiting = live(agent, 40)
    keeper_of(agent).snapshot()
    agent.act({"likes": "film"}, actions={"z": {"topic": "news"}}, id="after")
    before = agent.fingerprint
    recovered, _ = recover(reading(tmp_path))
    assert recovered.fingerprint == before == straight(reading(tmp_path)).fingerprint
    journal.close()  # as if it had been killed: no snapshot of the end

    again = melee.Agent(journal=tmp_path, seed=1)
    assert again.fingerprint == before
    twin = melee.Agent.from_bytes(recovered.to_bytes())
    for one in waiting:
        assert again.learn(one.id, 1.0) == twin.learn(one.id, 1.0)
    assert again.fingerprint == twin.fingerprint
    again.close()


LIFE = """
import sys
from melee import Agent
from tests.journal.test_candidates import live
agent = Agent(journal=sys.argv[1], seed=5)
def tell(number):
    print(agent._keeper.journal.head.seq, agent.fingerprint, flush=True)
live(agent, 1000, on=tell)
"""


def test_what_was_acknowledged_survives_a_kill_to_the_bit(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", LIFE, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline().split() for _ in range(25)]
    process.kill()
    process.communicate()
    journal = reading(tmp_path)
    agent, position = recover(journal)
    assert position.seq >= int(told[-1][0])
    assert agent.fingerprint == straight(journal).fingerprint
    for seq, fingerprint in told[::8]:
        assert recover(journal, until=int(seq))[0].fingerprint == fingerprint
    found = audit(journal)
    assert found.difference is None
    assert found.fingerprint == agent.fingerprint


def test_past_decisions_are_explained_and_waiting_ones_know_their_candidates(tmp_path):
    agent = melee.Agent(journal=tmp_path)
    live(agent, 30)
    shelf = {"a": {"topic": "film"}, "b": {"topic": "news"}}
    decision = agent.act({"likes": "film"}, actions=shelf)
    now = agent.explain(decision)
    by_id = agent.explain(decision.id)
    assert {one.action: one.probability for one in now.actions} == decision.pmf
    assert [one.prediction for one in by_id.actions] == [one.prediction for one in now.actions]
    agent.learn(decision, 1.0)
    live(agent, 5, seed=4)
    then = agent.explain(decision.id)
    assert [one.prediction for one in then.actions] == [one.prediction for one in now.actions]
    assert {one.action: one.probability for one in then.actions} == decision.pmf
    agent.close()


def test_exported_rounds_are_those_that_a_log_has(tmp_path):
    log = tmp_path / "log.jsonl"
    agent = melee.Agent(journal=tmp_path / "journal", log=log, seed=2)
    live(agent, 40)
    agent.close()
    exported = History(rounds(reading(tmp_path / "journal")))
    logged = History.read(log)
    assert len(exported) == len(logged) > 50
    for ours, theirs in zip(exported, logged, strict=True):
        assert ours.features == theirs.features
        assert ours.pmf == theirs.pmf
        assert (ours.action, ours.reward, ours.context) == (
            theirs.action,
            theirs.reward,
            theirs.context,
        )
    for ending in ("jsonl", "parquet", "dsjson"):
        exported.write(tmp_path / f"rounds.{ending}")
        again = History.read(tmp_path / f"rounds.{ending}")
        full = [i for i, one in enumerate(exported) if one.pmf is not None]
        assert [again[i].features for i in full] == [exported[i].features for i in full], ending
    warm = melee.Agent()
    assert warm.learn_rounds(exported) == len(exported)


def test_candidates_that_repeat_take_little_room(tmp_path):
    agent = melee.Agent(journal=tmp_path, seed=0, explorer="uniform")
    rng = random.Random(0)
    shelf = {f"article {i}": article(rng, i) for i in range(100)}
    for number in range(60):
        if number % 10 == 9:
            shelf.pop(next(iter(shelf)))
            shelf[f"new {number}"] = article(rng, number)
        agent.act({"hour": float(number)}, actions=shelf)
    agent.act({"hour": 0.0}, actions=shelf, top=3)
    agent.close()
    journal = reading(tmp_path)
    bodies = [event.body for event in journal.events() if event.kind == events.DECISION]
    named = {event.content["offer"] for event in journal.events() if event.kind == "decision"}
    assert len(named) == 2  # none, for the first time, and then these
    assert max(map(len, bodies[1:])) < 1300
    assert np.mean([len(one) for one in bodies[1:]]) < 800
    whole = len(offers.offer_among(tuple(shelf), tuple(shelf.values())).body)
    assert whole > 5000
    assert audit(journal).difference is None


def test_candidates_that_come_once_are_in_their_event_alone(tmp_path):
    agent = melee.Agent(journal=tmp_path, explorer="uniform")
    for number in range(20):
        shelf = {f"a{i}": {"hours": float(number + i)} for i in range(5)}
        agent.act({"x": 1.0}, actions=shelf)
    agent.close()
    journal = reading(tmp_path)
    named = {event.content["offer"] for event in journal.events() if event.kind == "decision"}
    assert named == {offers.nothing().name}
    assert audit(journal).difference is None


@pytest.mark.parametrize(
    ("now", "without", "places"),
    [
        (["a", "b", "c", "d"], (), []),
        (["a", "c", "d"], (1,), []),
        (["a", "e", "b", "c", "d"], (), [1]),
        (["e", "c", "d", "f"], (0, 1), [0, 3]),
    ],
)
def test_what_differs_gives_the_candidates_again(now, without, places):
    features: Any = {label: {"x": float(i)} for i, label in enumerate("abcdef")}
    offer = offers.offer_among(tuple("abcd"), tuple(features[k] for k in "abcd"))
    before = {k: features[k] for k in "abcd"}
    change = offers.changed_from(before, tuple(now), tuple(features[k] for k in now))
    assert change is not None
    assert change.without == without
    assert [place for place, _, _ in change.added] == places
    decided = events.Decided({}, offer.name, [1.0], 0, 0, "p", change=change)
    draft = events.decision("id", 0.0, decided, offer)
    event = events.link(events.Head(), "agent", draft)
    found = events.chosen_from(event, offers.read_offer(offer.name, offer.body))
    assert found.labels == tuple(now)
    assert found.features == tuple(features[k] for k in now)


def test_candidates_in_another_order_or_mostly_new_are_given_in_full():
    features: Any = {label: {"x": float(i)} for i, label in enumerate("abcdefgh")}
    before = {k: features[k] for k in "abcd"}
    for now in ("badc", "efgh", "aefg", "a"):
        assert offers.changed_from(before, tuple(now), tuple(features[k] for k in now)) is None


def test_bad_candidates_are_refused_and_leave_no_event(tmp_path):
    agent = melee.Agent(journal=tmp_path)
    before = agent.fingerprint
    bad: list[Any] = [
        {},
        None,
        {"a": {"x": float("nan")}},
        {"a": {"x": 1.0}, "b": [1.0, 2.0]},
        {b"a": {"x": 1.0}},
        7,
    ]
    for given in bad:
        with pytest.raises(InputError):
            agent.act({"age": 3.0}, actions=given)
        with pytest.raises(InputError):
            agent.act({"age": 3.0}, actions=given, top=1)
    with pytest.raises(InputError, match="several kinds"):
        agent.act_many([{"age": 1.0}] * 2, actions=[{"a": {"x": 1.0}}, {"a": [1.0]}])
    with pytest.raises(InputError, match="several kinds"):
        agent.learn_many(
            [{"age": 1.0}] * 2, ["a", "b"], [1.0, 1.0], [0.5, 0.5], features=[{"x": 1.0}, [2.0]]
        )
    assert agent.fingerprint == before
    agent.act({"age": 3.0}, actions={"a": {"x": 1.0}}, id="one")
    with pytest.raises(InputError, match="taken"):
        agent.act({"age": 3.0}, actions={"a": {"x": 1.0}}, id="one")
    agent.act({"age": 3.0}, actions={"a": {"x": 1.0}, "b": {}}, id="r", top=2)
    with pytest.raises(InputError, match="taken"):
        agent.act({"age": 3.0}, actions={"a": {"x": 1.0}, "b": {}}, id="r", top=2)
    with pytest.raises(InputError, match="the candidates' features are 1 numbers; expected a dict"):
        agent.act({"age": 3.0}, actions={"a": [1.0]})
    assert straight(reading(tmp_path)).fingerprint == agent.fingerprint
    agent.close()


def test_an_agent_with_actions_is_not_one_without(tmp_path):
    melee.Agent(journal=tmp_path / "none").close()
    with pytest.raises(InputError, match="come with each question; leave actions out"):
        melee.Agent(["a", "b"], journal=tmp_path / "none")
    melee.Agent(["a", "b"], journal=tmp_path / "some").close()
    with pytest.raises(InputError, match="the actions are None"):
        melee.Agent(journal=tmp_path / "some")


def test_late_rewards_after_saving_are_learned_to_the_bit_and_logged_in_full(tmp_path):
    log = tmp_path / "log.jsonl"
    agent = melee.Agent(log=log, seed=3)
    waiting = live(agent, 30)
    agent.save(tmp_path / "agent.melee")
    again = melee.Agent.load(tmp_path / "agent.melee", log=tmp_path / "other.jsonl")
    already = len(History.read(log))
    for one in waiting:
        agent.learn(one, 1.0)
        again.learn(one.id, 1.0)
    assert again.fingerprint == agent.fingerprint
    late, other = History.read(log)[already:], History.read(tmp_path / "other.jsonl")
    assert late == other
    assert all(one.features is not None and len(one.features) > 1 for one in other)
