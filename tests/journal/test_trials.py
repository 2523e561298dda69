"""Trials: shares of the traffic, shadows and apprentices, judged by reading the journal."""

import json
import random

import numpy as np
import pytest

from melee import Agent, InputError
from melee.agent.trials import Trial, draw
from melee.auditing import audit
from melee.evaluation.anytime import anytime_interval
from melee.journal import Journal, verify
from melee.trials import Shadow, Trials, compare
from melee.trials.tally import Tally
from tests.journals import keeper_of, reading, straight

ACTIONS = ["a", "b", "c"]
QUICK = "epsilon-greedy"


def reward_of(number, action):
    """Action b is worth most."""
    return float(random.Random(number).random() < {"a": 0.2, "b": 0.7, "c": 0.3}[action])


def live(trials, first, last, unit=None):
    for number in range(first, last):
        who = None if unit is None else f"visitor {number % unit}"
        decision = trials.act({"hour": number % 24}, unit=who)
        trials.learn(decision, reward_of(number, decision.action))


def ends(found):
    """The ends of what is said of a difference, which is there."""
    return found.low, found.high, found.p_value


# -- drawing -----------------------------------------------------------------------------------


def test_shares_are_those_that_were_asked_for():
    some = [Trial("x", QUICK, 0.1, "1"), Trial("y", QUICK, 0.0, "2"), Trial("z", QUICK, 0.6, "3")]
    drawn = [draw(some, f"visitor {i}") for i in range(20_000)]
    shares = [sum(one is trial for one in drawn) / 20_000 for trial in (*some, None)]
    assert shares == pytest.approx([0.1, 0.0, 0.6, 0.3], abs=0.015)


def test_who_is_drawn_into_a_trial_stays_there_when_others_begin_and_end():
    first, second = Trial("x", QUICK, 0.3, "1"), Trial("y", QUICK, 0.3, "2")
    for i in range(500):
        alone, both = draw([first], f"v{i}"), draw([first, second], f"v{i}")
        assert both is first if alone is first else both in (second, None)


def test_draws_of_different_trials_have_nothing_to_do_with_each_other():
    one = [draw([Trial("x", QUICK, 0.5, "1")], f"v{i}") is None for i in range(4000)]
    two = [draw([Trial("x", QUICK, 0.5, "2")], f"v{i}") is None for i in range(4000)]
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.06


# -- side by side ------------------------------------------------------------------------------


def test_the_better_of_two_is_found_and_all_can_be_derived_again(place):
    agent = Agent(ACTIONS, QUICK, journal=place)
    trials = Trials(agent)
    for i in range(50):  # it knows what is best
        agent.learn({"hour": i % 24}, ACTIONS[i % 3], float(i % 3 == 1), 0.5)
    trials.begin("random", "uniform", share=0.5)
    other = trials._others["random"]
    assert other.n_learned_ == 50  # it begins with what is known
    live(trials, 50, 650)
    (found,) = trials.compare()
    assert (found.trial, found.kind, found.share) == ("random", "share", 0.5)
    assert found.rounds == 600
    assert found.own == other.n_learned_ - 50  # and learns from its own rewards
    assert agent.n_learned_ == 650 - found.own
    low, high, p_value = ends(found)
    assert low < high < 0.0
    assert p_value < 0.05
    assert "random earns less than the agent" in found.sentence
    fingerprints = agent.fingerprint, other.fingerprint
    trials.close()
    assert list(verify(reading(place))) == []
    for name, fingerprint in zip(("agent", "agent.random"), fingerprints, strict=True):
        assert straight(reading(place, name)).fingerprint == fingerprint
        derived = audit(reading(place, name))
        assert (derived.difference, derived.fingerprint) == (None, fingerprint)
    again = Trials(Agent(ACTIONS, QUICK, journal=place))
    assert (again.agent.fingerprint, again._others["random"].fingerprint) == fingerprints
    assert again.compare() == compare(reading(place)) == trials.compare()
    again.close()


def test_a_visitor_stays_in_a_trial_and_counts_once(place):
    trials = Trials(Agent(ACTIONS, QUICK, journal=place))
    trials.begin("other", "uniform", share=0.5)
    live(trials, 0, 300, unit=40)
    (found,) = trials.compare()
    assert found.rounds == 40
    arms: dict[str, set[str]] = {}
    for event in reading(place).store.rows(0):
        if event.kind == "decision":
            arms.setdefault(event.content["unit"], set()).add(event.agent)
    assert len(arms) == 40
    assert all(len(one) == 1 for one in arms.values())
    trials.close()


def test_an_id_is_taken_whoever_has_decided(place):
    trials = Trials(Agent(ACTIONS, QUICK, journal=place))
    trials.begin("random", "uniform", share=0.5)
    for i in range(12):
        trials.act({"x": i}, id=f"i{i}", unit="ann")
        for unit in ("ann", "bob", "cem", "dora", "eve", "fay"):
            with pytest.raises(InputError, match=f"id 'i{i}' is taken by an earlier decision"):
                trials.act({"x": i}, id=f"i{i}", unit=unit)
    with pytest.raises(InputError, match="id is 7; expected a text"):
        trials.act({"x": 1}, id=7)  # type: ignore[arg-type]
    trials.close()


def test_a_tally_of_shares_is_the_difference_of_averages_at_any_time():
    rng = np.random.default_rng(0)
    tally = Tally()
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(4000):
        ours = rng.random() < 0.2
        reward = float(rng.random() < (0.5 if ours else 0.3))
        (mine if ours else theirs).append(reward)
        tally.add(reward, ours / 0.2, (not ours) / 0.8, 1 / 0.2)
    found = tally.difference((0.0, 1.0))
    assert found is not None
    assert found.value == pytest.approx(np.mean(mine) - np.mean(theirs), abs=0.01)
    assert found.anytime_low < found.low < 0.2 < found.high < found.anytime_high
    assert tally.means == pytest.approx((np.mean(mine), np.mean(theirs)))
    # By the definition: weights apart, times the reward minus what is expected of it.
    rewards, apart = np.array(tally.rewards), np.array(tally.ours) - np.array(tally.theirs)
    means = [0.0, *(np.cumsum(rewards)[:-1] / np.arange(1, len(rewards)))]
    terms = np.stack([apart * (rewards - means), apart * (rewards - 0.5)])
    low, high, p = anytime_interval(terms, np.array([5.0, 2.5]))
    assert (found.anytime_low, found.anytime_high, found.p_value) == (low, high, p)


def test_one_explorer_against_itself_is_hardly_ever_called_better():
    """Looked at after every 50 rounds, of 60 trials."""
    wrong = 0
    for seed in range(60):
        rng, tally = np.random.default_rng(seed), Tally()
        for number in range(600):
            ours = rng.random() < 0.3
            tally.add(float(rng.random() < 0.4), ours / 0.3, (not ours) / 0.7, 1 / 0.3)
            if number % 50 == 49 and number > 50:
                found = tally.difference((0.0, 1.0))
                assert found is not None
                if found.p_value < 0.05:
                    wrong += 1
                    break
    assert wrong <= 3


def test_shares_change_and_trials_end(place):
    trials = Trials(Agent(ACTIONS, QUICK, journal=place))
    trials.begin("other", "uniform", share=0.5)
    live(trials, 0, 100)
    trials.begin("other", "uniform", share=0.25)
    live(trials, 100, 200)
    late = trials.act({"hour": 1}, unit="v")
    (found,) = trials.compare()
    assert (found.share, found.rounds) == (0.25, 200)
    trials.end("other")
    n = trials._others["other"].n_learned_
    live(trials, 200, 250)
    trials.learn(late, 1.0)
    assert n <= trials._others["other"].n_learned_ <= n + 1
    assert trials.compare() == []
    trials.close()
    again = Trials(Agent(ACTIONS, QUICK, journal=place))
    assert list(again._others) == ["other"]  # its late rewards still come
    again._others.clear()
    with pytest.raises(InputError, match=r"has an agent agent\.other already; give"):
        again.begin("other", "uniform", share=0.5)
    again.close()


def test_actions_come_and_go_for_all(place):
    trials = Trials(Agent(ACTIONS, QUICK, journal=place))
    trials.begin("other", "uniform", share=0.5)
    trials.add_actions(["d"])
    trials.remove_actions(["a"])
    assert trials._others["other"].actions_ == trials.agent.actions_ == ["b", "c", "d"]
    trials.close()


def test_trials_survive_what_retention_drops(place):
    trials = Trials(Agent(ACTIONS, QUICK, journal=place))
    trials.begin("other", "uniform", share=0.5)
    trials.begin("shade", "uniform")
    live(trials, 0, 60)
    for one in (trials.agent, trials._others["other"]):
        keeper_of(one).snapshot()
    keeper_of(trials.agent).journal.compact(keep_bytes=0)
    assert reading(place).start.seq > 100
    live(trials, 60, 120)
    trials.close()
    for name in ("agent", "agent.other"):
        derived = audit(reading(place, name))
        assert derived.difference is None
        assert derived.n_decisions > 15
    again = Trials(Agent(ACTIONS, QUICK, journal=place))
    assert {one.trial: one.rounds > 15 for one in again.compare()} == {
        "other": True,
        "shade": True,
    }
    again.close()


@pytest.mark.parametrize(
    ("name", "explorer", "share", "sentence"),
    [
        ("x", QUICK, 1.0, "share is 1.0; expected a number from 0, for a shadow, to less than 1"),
        ("x", QUICK, -0.1, "share is -0.1"),
        ("x", QUICK, float("nan"), "share is nan"),
        ("x", QUICK, "0.5", "share is '0.5'"),
        ("x", QUICK, 0.7, "the shares of all trials would be 1.2 together"),
        ("x", "nothing", 0.1, "nothing"),
        ("x", 7, 0.1, "explorer is 7; expected its SPEC as a text"),
        ("a b", QUICK, 0.1, "expected up to 64 letters"),
        ("there", "uniform", 0.1, "the trial there has the explorer"),
    ],
)
def test_trials_that_make_no_sense_are_refused_and_nothing_changes(
    place, name, explorer, share, sentence
):
    trials = Trials(Agent(ACTIONS, QUICK, journal=place))
    trials.begin("there", QUICK, share=0.5)
    before = trials.agent.fingerprint
    with pytest.raises(InputError, match=sentence):
        trials.begin(name, explorer, share=share)
    with pytest.raises(InputError, match="there is no trial 'nobody'; there are: there"):
        trials.end("nobody")
    with pytest.raises(InputError, match="unit is 7; expected a text"):
        trials.act({"hour": 1}, unit=7)  # type: ignore[arg-type]
    assert trials.agent.fingerprint == before
    trials.close()


def test_trials_need_a_journal_and_actions():
    with pytest.raises(InputError, match="keeps no journal, from which trials are judged"):
        Trials(Agent(ACTIONS, QUICK))


# -- shadows -----------------------------------------------------------------------------------


def test_a_shadow_is_judged_by_what_an_agent_did(place):
    """The agent chooses at random, so that averages by action are the truth."""
    trials = Trials(Agent(ACTIONS, "uniform", journal=place))
    trials.begin("greedy", QUICK)
    live(trials, 0, 1500)
    (found,) = trials.compare()
    assert (found.kind, found.own, found.rounds) == ("shadow", 0, 1500)
    assert found.average == pytest.approx(0.7, abs=0.15)
    assert found.baseline == pytest.approx(0.4, abs=0.05)
    assert ends(found)[0] > 0.1
    assert found.agreement == pytest.approx(1 / 3, abs=0.06)
    assert "greedy would earn more than the agent" in found.sentence
    trials.close()
    assert compare(reading(place)) == [found]
    (other,) = compare(reading(place), ["uniform"])[1:]
    assert (other.low, other.high) == pytest.approx((0.0, 0.0), abs=0.05)


def test_a_shadow_of_the_same_explorer_is_the_agent(place):
    agent = Agent(ACTIONS, "linucb", seed=3, journal=place)
    for number in range(80):
        decision = agent.act({"hour": number % 24})
        if number == 30:
            agent.add_actions(["d"])
        if number % 3:
            agent.learn(decision, 0.5 + 0.1 * (number % 4))
    shadow = Shadow(keeper_of(agent).journal, "linucb")
    assert shadow.read()
    assert shadow.agent.pmf({"hour": 7}) == agent.pmf({"hour": 7})
    found = shadow.compared()
    assert found.average == pytest.approx(found.baseline, abs=1e-12)
    low, high, _ = ends(found)
    assert low == -high
    agent.close()


def test_a_shadow_reads_on_from_where_it_was(place):
    agent = Agent(ACTIONS, "uniform", journal=place)
    bit_by_bit = Shadow(keeper_of(agent).journal, QUICK)
    for number in range(60):
        agent.learn(agent.act({"hour": number}), reward_of(number, "b"))
        bit_by_bit.read(most=1)
    while not bit_by_bit.read(most=7):
        pass
    at_once = Shadow(keeper_of(agent).journal, QUICK)
    at_once.read()
    assert bit_by_bit.compared() == at_once.compared()
    assert [one.id for one in at_once.latest] == [
        one.id for one in reading(place).events() if one.kind == "decision"
    ][-10:]
    agent.close()


def test_a_shadow_does_not_learn_what_was_rolled_back(place):
    agent = Agent(ACTIONS, "linucb", seed=3, journal=place)
    shadow = Shadow(keeper_of(agent).journal, "linucb")

    def learn(first, last, reward):
        for number in range(first, last):
            agent.learn(agent.act({"hour": number % 24}), reward)

    learn(0, 20, 0.5)
    to = keeper_of(agent).journal.head.seq
    learn(20, 40, 9.0)
    agent.remove_actions(["c"])
    shadow.read()
    again = keeper_of(agent).journal.head.seq
    learn(40, 60, 0.25)
    agent.roll_back(to, relearn_after=again)
    learn(60, 70, 0.5)
    while not shadow.read():
        pass
    assert shadow.agent.pmf({"hour": 7}) == agent.pmf({"hour": 7})
    assert len(shadow.tally) == 50
    agent.close()


# -- apprentices -------------------------------------------------------------------------------


def follow(agent, first, last, probability=None, *, at_random):
    for number in range(first, last):
        action = random.Random(-number).choice(ACTIONS) if at_random else "a"
        decision = agent.follow({"hour": number % 24}, action, probability=probability)
        assert (decision.action, decision.policy) == (action, "given")
        assert agent.learn(decision, reward_of(number, action))


def test_an_apprentice_says_when_it_would_have_done_better(place):
    agent = Agent(ACTIONS, QUICK, journal=place)
    follow(agent, 0, 900, probability=1 / 3, at_random=True)
    assert agent.n_learned_ == 900
    (found,) = compare(reading(place))
    assert (found.kind, found.trial) == ("apprentice", "apprentice")
    assert ends(found)[0] > 0.0
    assert "the apprentice would earn more than what the caller chose" in found.sentence
    assert max(agent.pmf({"hour": 1}), key=lambda x: agent.pmf({"hour": 1})[x]) == "b"
    for number in range(20):  # it has taken over
        agent.learn(agent.act({"hour": number}), 1.0)
    agent.close()
    assert straight(reading(place)).fingerprint == agent.fingerprint
    derived = audit(reading(place))
    assert (derived.difference, derived.n_decisions) == (None, 920)
    assert derived.fingerprint == agent.fingerprint


@pytest.mark.parametrize(
    ("probability", "sentence"),
    [(None, "the probabilities of choices are not known"), (1.0, "were hardly ever chosen")],
)
def test_nothing_is_claimed_where_choices_never_varied(place, probability, sentence):
    agent = Agent(ACTIONS, QUICK, journal=place)
    follow(agent, 0, 100, probability, at_random=False)
    for number in range(100, 140):  # it knows of something better
        agent.learn({"hour": number}, "b", 1.0, 0.5)
    follow(agent, 140, 240, probability, at_random=False)
    (found,) = compare(reading(place))
    assert sentence in found.sentence
    assert (found.average, found.low, found.p_value) == (None, None, None)
    agent.close()


def test_nothing_is_said_of_what_has_no_reward_yet(place):
    agent = Agent(ACTIONS, QUICK, journal=place)
    trials = Trials(agent)
    trials.begin("other", "uniform", share=0.5)
    trials.begin("shade", "uniform")
    assert [one.average for one in trials.compare()] == [None, None]
    agent.follow({"hour": 1}, "b", probability=0.5)
    trials.act({"hour": 1})
    said = [one.sentence for one in compare(keeper_of(agent).journal)]
    assert len(said) == 3
    assert all(one.startswith("nothing can be said yet: 0 rounds count") for one in said)
    trials.close()


def test_a_followed_choice_is_exported_with_the_probability_that_it_had(place):
    from melee.agent.exporting import rounds

    agent = Agent(ACTIONS, QUICK, journal=place)
    decision = agent.follow({"hour": 1}, "b", probability=0.25, actions=["b", "c"], id="mine")
    assert decision.probabilities == (0.25, 0.75)
    agent.learn("mine", 1.0)
    agent.close()
    (one,) = rounds(reading(place))
    assert (one.action, one.probability, one.pmf, one.policy) == ("b", 0.25, None, "given")


@pytest.mark.parametrize(
    ("action", "options", "sentence"),
    [
        ("z", {}, "z"),
        ("a", {"actions": ["b", "c"]}, "'a' was chosen, and is not among the actions"),
        ("a", {"actions": ["a"], "probability": 0.5}, "'a' was the only action; expected 1"),
        ("a", {"probability": 0.0}, "probability"),
        ("a", {"probability": 1.5}, "probability"),
        ("a", {"id": "taken"}, "is taken"),
    ],
)
def test_choices_that_make_no_sense_are_refused_and_nothing_changes(
    place, action, options, sentence
):
    agent = Agent(ACTIONS, QUICK, journal=place)
    agent.act({"hour": 1}, id="taken")
    before = agent.fingerprint
    with pytest.raises(InputError, match=sentence):
        agent.follow({"hour": 1}, action, **options)
    assert agent.fingerprint == before
    agent.close()


def test_an_agent_without_a_journal_follows_too():
    agent = Agent(ACTIONS, QUICK)
    agent.learn(agent.follow({"hour": 1}, "b"), 1.0)
    assert agent.n_learned_ == 1
    assert agent.n_pending_ == 0


# -- candidates --------------------------------------------------------------------------------


SHOWS = {"sport": 0.2, "film": 0.8, "news": 0.3}


def shelf(number):
    """Candidates that come and go, of three topics, and their features."""
    rng = random.Random(-number)
    return {
        f"{number - i} {topic}": {"topic": topic, "age": rng.randrange(9)}
        for i, topic in enumerate(SHOWS)
    }


def worth(number, label):
    return float(random.Random(number).random() < SHOWS[label.split()[1]])


def live_among(trials, first, last):
    for number in range(first, last):
        decision = trials.act({"hour": number % 24}, actions=shelf(number))
        trials.learn(decision, worth(number, decision.action))


def check_derived(place, agents):
    """Every agent is what its events make of it, and every decision comes out again."""
    assert list(verify(reading(place))) == []
    for name, agent in agents.items():
        assert straight(reading(place, name)).fingerprint == agent.fingerprint
        assert audit(reading(place, name)).difference is None


def test_the_better_of_two_that_choose_among_candidates_is_found(place):
    agent = Agent(explorer="uniform", journal=place)
    trials = Trials(agent)
    live_among(trials, 0, 80)
    trials.begin("clever", "linucb", share=0.5)
    other = trials._others["clever"]
    assert other.n_learned_ == 80
    live_among(trials, 80, 580)
    (found,) = trials.compare()
    assert (found.kind, found.rounds) == ("share", 500)
    assert ends(found)[0] > 0.0
    assert "clever earns more than the agent" in found.sentence
    assert other.n_learned_ == 80 + found.own
    trials.close()
    check_derived(place, {"agent": agent, "agent.clever": other})
    again = Trials(Agent(explorer="uniform", journal=place))
    assert again.compare() == [found]
    live_among(again, 580, 600)
    again.close()


def test_a_shadow_of_one_that_chooses_among_candidates(place):
    agent = Agent(explorer="uniform", seed=2, journal=place)
    trials = Trials(agent)
    trials.begin("greedy", QUICK)
    live_among(trials, 0, 600)
    (found,) = trials.compare()
    assert (found.kind, found.own, found.rounds) == ("shadow", 0, 600)
    assert found.average == pytest.approx(0.8, abs=0.2)
    assert found.baseline == pytest.approx(0.43, abs=0.08)
    assert ends(found)[0] > 0.0
    same = Shadow(keeper_of(agent).journal, "uniform")
    assert same.read()
    assert same.compared().agreement == pytest.approx(1 / 3)
    asked = ({"hour": 7}, shelf(1000))
    assert same.agent.pmf(asked[0], actions=asked[1]) == agent.pmf(asked[0], actions=asked[1])
    trials.close()
    assert compare(reading(place)) == [found]


def test_a_shadow_of_the_same_explorer_is_the_agent_among_candidates_too(place):
    agent = Agent(explorer="linucb", seed=3, journal=place)
    for number in range(60):
        decision = agent.act({"hour": number % 24}, actions=shelf(number))
        if number % 3:
            agent.learn(decision, worth(number, decision.action))
    shadow = Shadow(keeper_of(agent).journal, "linucb")
    assert shadow.read()
    assert shadow.agent.pmf({"hour": 7}, actions=shelf(77)) == agent.pmf(
        {"hour": 7}, actions=shelf(77)
    )
    found = shadow.compared()
    assert found.average == pytest.approx(found.baseline, abs=1e-12)
    agent.close()


def test_an_explorer_that_knows_no_candidates_is_not_tried_among_them(place):
    agent = Agent(explorer="uniform", journal=place)
    trials = Trials(agent)
    before = agent.fingerprint
    for share in (0.0, 0.5):
        with pytest.raises(InputError, match="candidates"):
            trials.begin("other", "cover", share=share)
    assert (agent._trials, agent.fingerprint) == ({}, before)
    trials.close()


def test_an_apprentice_among_candidates(place):
    agent = Agent(explorer=QUICK, journal=place)
    for number in range(400):
        label = random.Random(-number).choice(list(shelf(number)))
        decision = agent.follow(
            {"hour": number % 24}, label, probability=1 / 3, actions=shelf(number)
        )
        assert (decision.action, decision.policy) == (label, "given")
        assert decision.probabilities == pytest.approx((1 / 3,) * 3)
        assert agent.learn(decision, worth(number, label))
    (found,) = compare(reading(place))
    assert (found.kind, found.rounds) == ("apprentice", 400)
    assert ends(found)[0] > 0.0
    best = agent.pmf({"hour": 1}, actions=shelf(900))
    assert max(best, key=lambda label: best[label]) == "899 film"
    decision = agent.act({"hour": 1}, actions=shelf(901))  # it has taken over
    agent.learn(decision, 1.0)
    agent.close()
    check_derived(place, {"agent": agent})


@pytest.mark.parametrize(
    ("label", "actions", "options", "sentence"),
    [
        ("a", None, {}, "there are no candidates"),
        ("z", {"a": {"x": 1}}, {}, "'z' was chosen, and is not among the actions"),
        ("a", {"a": {"x": 1}}, {"probability": 0.5}, "'a' was the only action; expected 1"),
        ("a", {"a": {"x": 1}, "b": [1.0]}, {}, "of several kinds"),
        ("a", {"a": [1.0, 2.0]}, {}, "as the first ones were"),
        ("a", {"a": {"x": 1}}, {"id": "taken"}, "is taken"),
    ],
)
def test_choices_among_candidates_that_make_no_sense_are_refused(
    place, label, actions, options, sentence
):
    agent = Agent(explorer=QUICK, journal=place)
    agent.act({"hour": 1}, actions={"a": {"x": 1}}, id="taken")
    before = agent.fingerprint
    with pytest.raises(InputError, match=sentence):
        agent.follow({"hour": 1}, label, actions=actions, **options)
    assert agent.fingerprint == before
    agent.close()


# -- a saved agent into a journal --------------------------------------------------------------


def test_a_saved_agent_goes_on_in_a_journal(place, tmp_path):
    agent = Agent(ACTIONS, "linucb", timeout=1e9)
    for number in range(40):
        agent.learn(agent.act({"hour": number % 24}), reward_of(number, "a"))
    waiting = agent.act({"hour": 3})
    agent.save(tmp_path / "agent.melee")
    kept = Agent.load(tmp_path / "agent.melee", journal=place)
    assert kept.fingerprint == agent.fingerprint
    kept.learn(waiting.id, 1.0)
    kept.learn(kept.act({"hour": 9}), 0.0)
    kept.close()
    assert straight(reading(place)).fingerprint == kept.fingerprint
    assert list(verify(reading(place))) == []
    found = audit(reading(place))
    assert (found.difference, found.n_decisions) == (None, 1)
    again = Agent(ACTIONS, "linucb", timeout=1e9, journal=place)
    assert (again.fingerprint, again.n_learned_) == (kept.fingerprint, 42)
    again.close()
    with pytest.raises(InputError, match="has an agent 'agent' already, which goes on by"):
        Agent.load(tmp_path / "agent.melee", journal=place)
    other = Agent.load(tmp_path / "agent.melee", journal=Journal(place, "other"))
    assert other.n_learned_ == 40
    other.close()
    assert json.loads(json.dumps(next(reading(place).events()).content))["file"]
