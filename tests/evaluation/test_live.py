"""What learning policies would have earned live: replays of logs against live runs."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee import Agent, evaluate_live
from melee.errors import InputError, UnknownNameError
from melee.evaluation import Difference, LiveEvaluation, evaluate_live_many
from melee.evaluation.anytime import anytime_interval
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.luck import lives, luck
from melee.evaluation.replay import accepted_share, replay, starts
from melee.history import History, Round
from tests.evaluation.live_runs import EXPLORERS, WORLDS, cells, looks, p_values
from tests.evaluation.test_evaluate import (
    StubAgent,
    adaptive_log,
    changed,
    history_of,
    policy_of,
)
from tests.evaluation.worlds import (
    ACTIONS,
    World,
    clean_log,
    softmax,
    without_most_failures,
    worlds,
)

EXPLORER = "epsilon-greedy:epsilon=0.1"
EVERY_ACTION = ["news", "sports", "tech", "music"]


def uniform_log(n_rounds=400, seed=0):
    """A log of three actions, all equally likely, of which each context likes one."""
    return WORLDS["clicks, 3 actions"].log(n_rounds, seed)


class FixedAgent:
    """Does not learn, but notes what it was taught."""

    def __init__(self, policy, actions):
        self.policy, self.actions_, self.taught = policy, list(actions), []

    def pmf(self, context, *, actions=None):
        return self.policy(context)

    def learn(self, *lesson):
        self.taught.append(lesson)


class NotingAgent(StubAgent):
    """Wants the action that was last rewarded, and notes what it was taught."""

    def __init__(self, actions):
        super().__init__(actions)
        self.taught = []

    def learn(self, *lesson):
        self.taught.append(lesson)
        super().learn(*lesson)


# -- replays -----------------------------------------------------------------------------------


def test_in_a_uniform_log_a_round_is_accepted_if_the_policy_agrees_with_it():
    log = EvaluatedLog(uniform_log())
    agent: Any = FixedAgent(lambda context: {"action 1": 1.0}, log.labels)
    run = replay(log, agent, np.arange(400), 0, "any")
    agrees = np.array([one.action == "action 1" for one in uniform_log()])
    assert_allclose(run.accepted, agrees)
    assert [taught[1] for taught in agent.taught] == ["action 1"] * int(agrees.sum())


def test_a_policy_learns_accepted_rounds_only_with_the_probability_it_gave_them():
    log = EvaluatedLog(clean_log())
    agent: Any = NotingAgent(log.labels)
    run = replay(log, agent, np.arange(600), 0, "any")
    rows = np.flatnonzero(run.accepted)
    assert 0 < len(rows) < 600
    for i, (context, action, reward, probability) in zip(rows, agent.taught, strict=True):
        assert context is log.contexts[i]
        assert (action, reward) == (log.labels[log.actions[i]], log.rewards[i])
        assert probability == run.chosen[i, log.actions[i]]


@pytest.mark.parametrize("with_pmf", [True, False])
def test_accepted_rounds_are_distributed_as_if_the_policy_had_played(with_pmf):
    world = World(softmax(5, 3, 0.5, 7), softmax(5, 3, 0.6, 2), softmax(5, 3, 1.0, 3))
    log = EvaluatedLog(history_of(world, 8_000, seed=0, with_pmf=with_pmf))
    agent: Any = FixedAgent(policy_of(world), log.labels)
    run = replay(log, agent, np.arange(8_000), 0, "any")
    rows = np.flatnonzero(run.accepted)
    contexts: list[Any] = log.contexts
    kinds = [int(contexts[i]["kind"][1:]) for i in rows]
    actions = [int(str(log.labels[log.actions[i]])[1:]) for i in rows]
    n = len(rows)
    expected = world.target * n / 5
    counts = np.zeros((5, 3))
    np.add.at(counts, (kinds, actions), 1)
    assert (((counts - expected) ** 2) / expected).sum() < 36.1  # chi-square, 14, 0.999
    share = accepted_share(log)
    assert share == world.logging.min()
    assert abs(n - share * 8_000) < 4.0 * math.sqrt(share * 8_000)


def test_a_replay_counts_what_the_policy_wants_and_the_log_does_not_know():
    log = EvaluatedLog(clean_log())
    agent: Any = FixedAgent(lambda context: {"news": 0.75, "radio": 0.25}, EVERY_ACTION)
    run = replay(log, agent, np.arange(600), 0, "any")
    assert_allclose(run.outside, 0.25)
    assert_allclose(run.chosen.sum(axis=1), 0.75)


def test_only_open_actions_are_asked_for():
    log = EvaluatedLog(clean_log())
    agent: Any = StubAgent([*ACTIONS, "radio"])
    replay(log, agent, np.arange(600), 0, "any")
    assert agent.asked == [list(ACTIONS)] * 600
    same: Any = StubAgent(ACTIONS)
    replay(log, same, np.arange(600), 0, "any")
    assert same.asked == [None] * 600


# -- evaluations -------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_doubly_robust_estimate():
    found = evaluate_live(uniform_log(), EXPLORER, seed=3)
    assert list(found.estimates) == ["dr", "replay"]
    assert (found.value, found.low, found.high) == found.estimates["dr"][1:]
    assert found.reason is None
    assert found.n_rounds == 400
    assert 100 < found.n_accepted < 167
    assert_allclose(found.logged.value, uniform_log().rewards.mean())
    assert found == evaluate_live(uniform_log(), EXPLORER, seed=3)
    assert found != evaluate_live(uniform_log(), EXPLORER, seed=4)


def test_a_live_evaluation_is_printed_with_every_number():
    found = evaluate_live(uniform_log(), EXPLORER)
    text = str(found)
    assert f"{EXPLORER}, live for {found.n_accepted} rounds; 400 were logged" in text
    for one in [*found.estimates.values(), found.logged]:
        assert f"{one.name:7}{one.value:.4f} [{one.low:.4f}, {one.high:.4f}]" in text


def test_more_confidence_is_a_wider_interval():
    narrow, wide = (evaluate_live(uniform_log(), EXPLORER, confidence=c) for c in (0.5, 0.99))
    assert narrow.value == wide.value
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(("a", "b"), [(-3.0, 1e-4), (7e5, 1e6)])
def test_live_estimates_are_in_the_unit_of_the_rewards(a, b):
    plain = evaluate_live(uniform_log(), "linucb", reward_range=(0, 1))
    history = changed(uniform_log(), reward=lambda one: a + b * one.reward)
    found = evaluate_live(history, "linucb", reward_range=(a, a + b))
    assert found.reward_range == (a, a + b)
    assert found.n_accepted == plain.n_accepted
    for name, one in found.estimates.items():
        moved = [a + b * number for number in plain.estimates[name][1:]]
        assert_allclose(one[1:], moved, rtol=1e-7, atol=1e-6 * b)
    assert "give their reward_range" in evaluate_live(history, "linucb").warnings[-1]


def test_an_agent_is_copied_and_neither_learns_nor_logs(tmp_path):
    path = tmp_path / "own.jsonl"
    agent = Agent([f"action {i}" for i in range(3)], "linucb", floor=0.3, log=path)
    agent.learn({"age": 30.0, "load": 0.0, "device": "desk"}, "action 1", 1.0, 0.5)
    before, written = agent.fingerprint, path.read_bytes()
    found = evaluate_live(uniform_log(), agent)
    assert found.policy == "the agent"
    assert found.reason is None
    assert (agent.fingerprint, path.read_bytes()) == (before, written)


def test_an_agents_own_floor_is_played():
    world = WORLDS["labels"]
    bold, timid = (Agent(world.actions, "linucb", floor=floor) for floor in (0.01, 0.9))
    found = evaluate_live_many(world.log(600, 0), {"bold": bold, "timid": timid})
    assert isinstance(found["bold"], LiveEvaluation)
    assert isinstance(found["timid"], LiveEvaluation)
    assert found["bold"].low > found["timid"].high


def test_evaluate_live_many_agrees_with_single_evaluations_and_keeps_errors():
    found = evaluate_live_many(uniform_log(), [EXPLORER, "full-information"])
    assert found[EXPLORER] == evaluate_live(uniform_log(), EXPLORER)
    assert isinstance(found["full-information"], InputError)


# -- differences -------------------------------------------------------------------------------


def compared(found: dict[str, Any], name: str) -> Difference:
    difference = found[name].difference
    assert isinstance(difference, Difference)
    return difference


def test_a_difference_is_that_of_both_estimates_and_turns_with_the_baseline():
    log, both = uniform_log(), [EXPLORER, "linucb"]
    there: dict[str, Any] = evaluate_live_many(log, both, baseline=EXPLORER, seed=5)
    back: dict[str, Any] = evaluate_live_many(log, both, baseline="linucb", seed=5)
    forth, turned = compared(there, "linucb"), compared(back, EXPLORER)
    assert (forth.baseline, there[EXPLORER].difference) == (EXPLORER, None)
    assert_allclose(forth.value, there["linucb"].value - there[EXPLORER].value, atol=1e-12)
    assert_allclose(
        [turned.value, turned.low, turned.high], [-forth.value, -forth.high, -forth.low]
    )
    assert forth.low < forth.value < forth.high
    assert_allclose(
        [turned.anytime_low, turned.anytime_high, turned.p_value],
        [-forth.anytime_high, -forth.anytime_low, forth.p_value],
    )
    assert str(forth).startswith(f"{forth.value:.4f} [{forth.low:.4f}, {forth.high:.4f}]; at any t")
    assert f"minus {EXPLORER}: {forth}" in str(there["linucb"])


def test_without_a_baseline_the_difference_is_to_what_was_logged():
    found = evaluate_live(uniform_log(), "linucb")
    assert found.difference is not None
    assert found.difference.baseline == "logged"
    assert_allclose(found.difference.value, found.value - found.logged.value, atol=1e-12)
    assert found.difference.low > 0.0


def test_luck_that_two_policies_share_is_no_part_of_their_difference():
    log = uniform_log(800)
    twice = evaluate_live_many(log, {"one": EXPLORER, "other": EXPLORER}, baseline="one")
    assert compared(twice, "other")[1:4] == (0.0, 0.0, 0.0)
    assert compared(twice, "other").p_value == 1.0
    specs = ["linucb:alpha=1.0", "linucb:alpha=1.1"]
    alike: dict[str, Any] = evaluate_live_many(log, specs, baseline=specs[0])
    one, difference = alike[specs[1]], compared(alike, specs[1])
    assert 0.0 < difference.high - difference.low < 0.7 * (one.high - one.low)


def test_a_difference_is_in_the_unit_of_the_rewards():
    plain = evaluate_live(uniform_log(), "linucb", reward_range=(0, 1)).difference
    history = changed(uniform_log(), reward=lambda one: 50.0 + 1000.0 * one.reward)
    found = evaluate_live(history, "linucb", reward_range=(50, 1050)).difference
    assert plain is not None
    assert found is not None
    assert_allclose(found[1:6], [1000.0 * number for number in plain[1:6]], rtol=1e-6)
    assert_allclose(found.p_value, plain.p_value, rtol=1e-6)


def test_where_the_log_cannot_tell_of_one_of_two_there_is_no_difference():
    agents = {"odd": Agent([*ACTIONS, "radio"], "uniform"), "usual": Agent(ACTIONS, "uniform")}
    found = evaluate_live_many(changed(clean_log(), pmf=None), agents, baseline="odd")
    assert isinstance(found["odd"], LiveEvaluation)
    assert isinstance(found["usual"], LiveEvaluation)
    assert found["odd"].reason is not None
    assert (found["usual"].reason, found["usual"].difference) == (None, None)


def test_a_baseline_that_is_not_there_is_refused():
    with pytest.raises(UnknownNameError, match="unknown baseline 'linucp'"):
        evaluate_live_many(clean_log(), ["linucb"], baseline="linucp")
    with pytest.raises(InputError, match="a policy is named 'logged'"):
        evaluate_live_many(clean_log(), {"logged": "linucb"})


# -- at any time -------------------------------------------------------------------------------

LINUCB = "linucb:alpha=0.2"


def test_evidence_for_any_time_is_that_of_the_lives_and_reads_no_later_round():
    log = EvaluatedLog(uniform_log(300))
    found: dict[str, Any] = evaluate_live_many(
        uniform_log(300), [LINUCB, EXPLORER], baseline=LINUCB
    )
    _, _, terms, bounds = looks(log, (EXPLORER, LINUCB), (0, 0))
    assert (np.abs(terms) <= bounds[:, None]).all()
    assert_allclose(compared(found, EXPLORER).p_value, p_values(terms, bounds)[-1], rtol=1e-9)
    ends = anytime_interval(terms, bounds)[:2]
    difference = compared(found, EXPLORER)
    assert_allclose([difference.anytime_low, difference.anytime_high], ends, rtol=1e-9)
    # What was seen by round 200 is what it was with 200 rounds, so looking costs nothing.
    early = looks(EvaluatedLog(uniform_log(300)[:200]), (EXPLORER, LINUCB), (0, 0))[2]
    assert_allclose(terms[:, :200], early, rtol=1e-12)


@pytest.mark.parametrize(
    ("world", "explorers"),
    [
        ("clicks, 3 actions", (LINUCB, EXPLORER)),
        ("clicks, mixed log", ("softmax", LINUCB)),
        ("rare clicks", ("thompson", "uniform")),
    ],
)
def test_looking_after_every_round_at_explorers_that_earn_the_same(world, explorers):
    alike = dataclasses.replace(WORLDS[world], alike=True)
    n_rounds, n_logs = 250, 60
    wrong = wrong_by_normal = 0
    for seed in range(n_logs):
        log = EvaluatedLog(alike.log(n_rounds, seed))
        one, other, terms, bounds = looks(log, explorers, (seed, seed), n_replays=1)
        assert np.abs(one.chosen - other.chosen).mean() > 0.05  # they do not do the same
        wrong += bool((p_values(terms, bounds) < 0.05).any())
        count = np.arange(1, n_rounds + 1)
        mean = terms[0].cumsum() / count
        spread = np.maximum((terms[0] ** 2).cumsum() / count - mean**2, 1e-12)
        wrong_by_normal += bool((np.abs(mean) > 1.96 * np.sqrt(spread / count))[20:].any())
    assert wrong <= 0.05 * n_logs
    assert wrong_by_normal > 0.15 * n_logs  # what looking costs with an interval for one look


def test_what_two_lives_earned_on_average_is_held_at_all_times():
    world, held, n_logs = WORLDS["labels, mixed log"], 0, 30
    for seed in range(n_logs):
        log = EvaluatedLog(world.log(400, seed))
        # As `World.log` draws them: the first draws are those of contexts.
        _, means = world.contexts(400, np.random.default_rng([52, world.number, seed]))
        order = [log.index[label] for label in world.actions]
        one, other, terms, bounds = looks(log, (LINUCB, EXPLORER), (seed, seed), n_replays=2)
        ahead = ((one.chosen - other.chosen)[:, order] * means).sum(axis=1)
        counts = range(25, 401, 25)
        ends = [anytime_interval(terms[:, :n], bounds) for n in counts]
        truths = [ahead[:n].mean() for n in counts]
        held += all(low <= m <= high for (low, high, _), m in zip(ends, truths, strict=True))
        # They come to be apart: an average of policies that change, not of any one.
        assert ahead[300:].mean() != ahead[:100].mean()
    assert held >= 0.95 * n_logs


def test_explorers_that_earn_more_are_found_by_who_looks_and_sooner_the_more_they_do():
    by_world = []
    for world in ("labels", "clicks, 2 actions"):
        rounds = []
        for seed in range(8):
            log = EvaluatedLog(WORLDS[world].log(1200, seed))
            *_, terms, bounds = looks(log, (LINUCB, "uniform"), (seed, seed), n_replays=1)
            small = p_values(terms, bounds) < 0.05
            assert small.any(), (world, seed)
            rounds.append(int(small.argmax()))
        by_world.append(np.median(rounds))
    assert 20 < by_world[0] < 200 < by_world[1] < 900


# -- what a log cannot tell --------------------------------------------------------------------


def reason(history, policy: Any = EXPLORER):
    found = evaluate_live(history, policy)
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.n_accepted, found.estimates) == (0, {})
    assert str(found) == found.reason
    return found.reason


def test_a_log_without_exploration_cannot_tell():
    history = changed(clean_log(), probability=1.0, pmf=None)
    sentence = reason(history)
    assert f"this log cannot tell what {EXPLORER} would earn live: every round was" in sentence
    assert "Agent(floor=0.2)" in sentence


def test_a_log_of_which_too_few_rounds_would_be_accepted_cannot_tell():
    sentence = reason(clean_log(150))
    assert "of 150 rounds about 15 would be accepted, as some actions had a probability" in sentence
    assert "of only 0.1; expected at least 20: log more rounds, or with a higher floor" in sentence


def test_actions_that_were_never_tried_are_a_reason():
    pmf = {**dict.fromkeys(ACTIONS, 0.25), "radio": 0.0}
    history = changed(clean_log(), probability=0.25, pmf=pmf)
    assert "of the policy's choices are actions that the log never played" in reason(history)
    agent = Agent([*ACTIONS, "radio"], "uniform")
    without = changed(clean_log(), pmf=None)
    assert "actions that the log never played" in reason(without, agent)


def test_wrong_probabilities_are_a_reason():
    history = changed(
        clean_log(with_pmf=False), probability=lambda one: 0.0 if one.id == "r5" else 0.5
    )
    assert "1 of 600 rounds have no usable probability, number 5 the first (0)" in reason(history)
    halved = changed(clean_log(2000), probability=lambda one: one.probability / 2, pmf=None)
    assert "the weights, the policy's probability over the logged one, average" in reason(halved)
    pmf = dict.fromkeys(ACTIONS, 0.5)
    odd = changed(clean_log(), pmf=lambda one: pmf if one.id == "r4" else one.pmf)
    assert "round 4: the pmf sums to 2; expected 1" in reason(odd)


@pytest.mark.parametrize("seed", range(2))
def test_rounding_of_weights_that_are_all_1_is_no_reason(seed):
    world = WORLDS["clicks, 5 actions"]
    assert evaluate_live(world.log(400, seed), "uniform", seed=seed).reason is None


def test_wrong_arguments_are_refused():
    with pytest.raises(InputError, match="confidence is 95"):
        evaluate_live(clean_log(), EXPLORER, confidence=95)
    with pytest.raises(InputError, match="seed is -1"):
        evaluate_live(clean_log(), EXPLORER, seed=-1)
    with pytest.raises(InputError, match="the log has 19 rounds; expected at least 20"):
        evaluate_live(clean_log(19), EXPLORER)
    with pytest.raises(UnknownNameError, match="did you mean 'linucb'"):
        evaluate_live(clean_log(), "linucp")
    for policy in (3, lambda context: "news"):
        with pytest.raises(InputError, match=r"expected an Agent, .* by melee\.evaluate"):
            evaluate_live(clean_log(), policy)  # type: ignore[arg-type]


# -- against live runs -------------------------------------------------------------------------


def least_of(n, chance=0.95):
    """How many of n intervals hold the truth but once in a thousand times, if each does by 95 %."""
    return n * chance - 3.1 * math.sqrt(n * chance * (1.0 - chance))


def test_intervals_hold_what_explorers_earn_live_as_often_as_they_say():
    held: dict[str, list[bool]] = {}
    for world in ("clicks, 2 actions", "labels, mixed log"):
        explorers = (EXPLORER, "softmax")
        for cell in cells(WORLDS[world], explorers, n_rounds=160, n_logs=6, n_live=30):
            for name in cell.found:
                held.setdefault(name, []).extend(cell.holds(name).tolist())
    for name, n in (("dr", 24), ("replay", 24), ("difference", 12)):
        assert len(held[name]) == n
        assert sum(held[name]) >= least_of(n), (name, sum(held[name]))
    # Taught by the log, explorers do not pay for exploring: that is no live run.
    assert sum(held["trained on the log"]) < least_of(24)


@pytest.mark.long
def test_intervals_hold_live_runs_in_every_world_and_of_every_explorer():
    every = {
        (name, explorer): cell
        for name, world in WORLDS.items()
        for explorer, cell in zip(
            EXPLORERS, cells(world, EXPLORERS, n_rounds=400, n_logs=10, n_live=60), strict=True
        )
    }
    assert len(every) == 72
    for kind in ("dr", "replay", "difference"):
        held = {where: cell.holds(kind) for where, cell in every.items() if kind in cell.found}
        n_cells = 60 if kind == "difference" else 72
        assert len(held) == n_cells
        assert np.concatenate(list(held.values())).sum() >= least_of(n_cells * 10), kind
        for where, one in held.items():
            assert one.sum() >= 6, (kind, where)  # of 10; fewer are one cell in 16,000 by chance
        for explorer in EXPLORERS:
            some = [held[name, explorer] for name in WORLDS if (name, explorer) in held]
            assert sum(map(sum, some)) >= least_of(10 * len(some)), (kind, explorer)
        widths = [cell.width(kind) for cell in every.values() if kind in cell.found]
        # Of the ideal, by the spread of ten estimates: intervals that say something.
        assert np.median(widths) < {"dr": 1.35, "replay": 1.5, "difference": 1.9}[kind], kind
    narrower = [
        (np.diff(cell.found["dr"][:, 1:]) / np.diff(cell.found["replay"][:, 1:])).mean()
        for cell in every.values()
    ]
    assert np.mean(narrower) < 0.95
    trained = np.concatenate([cell.holds("trained on the log") for cell in every.values()])
    assert trained.sum() < least_of(72 * 10)


def test_logs_of_a_policy_that_learned_are_replayed_without_bias():
    world = worlds()["mild"]
    labels = [f"a{i}" for i in range(3)]
    values, lengths = [], []
    for seed in range(10):
        found = evaluate_live(adaptive_log(world, 400, seed), EXPLORER, seed=seed)
        values.append([found.value, found.estimates["replay"].value])
        lengths.append(found.n_accepted)
    n, rng, live = round(np.mean(lengths)), np.random.default_rng(0), []
    for seed in range(100):
        agent = Agent(labels, EXPLORER, seed=seed)
        total = 0.0
        for _ in range(n):
            kind = int(rng.integers(5))
            decision = agent.act({"kind": f"k{kind}"})
            mean = world.means[kind, labels.index(str(decision.action))]
            agent.learn(decision.id, float(rng.random() < mean))
            total += mean
        live.append(total / n)
    error = np.std(values, axis=0, ddof=1) / math.sqrt(10) + np.std(live) / 10.0
    assert (abs(np.mean(values, axis=0) - np.mean(live)) < 3.0 * error).all()


def test_halves_of_a_log_tell_how_far_estimates_are_off():
    # A uniform policy learns nothing, so the error of its replay is that of a mean.
    rng = np.random.default_rng(0)
    history = History(
        Round({"x": x}, "ab"[action], float(reward), 0.5)
        for x, action, reward in zip(
            rng.normal(size=600).tolist(),
            rng.integers(2, size=600).tolist(),
            rng.integers(2, size=600).tolist(),
            strict=True,
        )
    )
    log = EvaluatedLog(history)
    start, every = starts(log, "uniform", 0), np.arange(600)
    runs = [replay(log, start(i), every, 0, f"whole {i}") for i in range(8)]
    (of_dr, freedom), (of_replay, _) = luck(lives(log, start, runs, 0), 0)
    # Half of the rounds are accepted, other ones by each of eight replays.
    assert 0.7 < of_replay / (0.5 / math.sqrt(600) * math.sqrt(1.0 + 1.0 / 8)) < 1.5
    # What does not learn leaves nothing to halves: all is known by the rounds.
    assert_allclose(of_dr, 0.5 / math.sqrt(600), rtol=0.05)
    assert freedom == 1_000_000


def test_a_log_with_dropped_rounds_cannot_tell_of_live_runs():
    found = evaluate_live(without_most_failures(uniform_log()), "uniform")
    assert found.estimates == {}
    assert found.reason is not None
    assert "its rounds stand for 1 to 10 rounds, as others were dropped" in found.reason
    assert "log every round" in found.reason
    assert abs(found.logged.value - uniform_log().rewards.mean()) < 0.1


def test_a_log_of_which_every_round_stands_for_as_many_is_replayed_as_it_is():
    plain = evaluate_live(uniform_log(), "uniform")
    found = evaluate_live(changed(uniform_log(), stands_for=1.0 / 0.3), "uniform")
    assert (found.reason, found.n_accepted) == (None, plain.n_accepted)
    assert_allclose(found.estimates["dr"][1:], plain.estimates["dr"][1:], rtol=1e-6)
