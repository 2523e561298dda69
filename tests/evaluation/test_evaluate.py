"""Evaluating policies on logs, and refusing to."""

import dataclasses
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.errors import InputError, UnknownNameError
from melee.evaluation import Estimate, Evaluation, evaluate, evaluate_many
from melee.evaluation.choices import choices
from melee.evaluation.log import EvaluatedLog
from melee.history import History, Round
from tests.evaluation.worlds import (
    ACTIONS,
    DEVICES,
    World,
    clean_log,
    greedy,
    without_most_failures,
    worlds,
)

BEST = dict(zip(DEVICES, ACTIONS, strict=False))


def best(context):
    return BEST[context["device"]]


def changed(history, **fields):
    """The log with some fields replaced, by values or by functions of a round."""
    return History(
        dataclasses.replace(
            one,
            **{name: value(one) if callable(value) else value for name, value in fields.items()},
        )
        for one in history
    )


class StubAgent:
    """Wants the action that was last rewarded; uniform before."""

    def __init__(self, actions):
        self.actions, self.last, self.asked = list(actions), None, []
        self.actions_ = self.actions

    def pmf(self, context, *, actions=None):
        self.asked.append(actions)
        open_ = self.actions if actions is None else actions
        if self.last in open_:
            return {label: float(label == self.last) for label in open_}
        return dict.fromkeys(open_, 1.0 / len(open_))

    def learn(self, context, action, reward, probability):
        if reward > 0.5:
            self.last = action


def history_of(world, n_rounds, seed, *, with_pmf=True):
    x, a, r = world.draw(n_rounds, seed)
    labels = [f"a{i}" for i in range(world.means.shape[1])]
    return History(
        Round(
            {"kind": f"k{i}"},
            labels[j],
            float(k),
            float(world.logging[i, j]),
            pmf=dict(zip(labels, world.logging[i].tolist(), strict=True)) if with_pmf else None,
        )
        for i, j, k in zip(x, a, r, strict=True)
    )


def policy_of(world):
    labels = [f"a{i}" for i in range(world.means.shape[1])]
    rows = [dict(zip(labels, row.tolist(), strict=True)) for row in world.target]
    return lambda context: rows[int(context["kind"][1:])]


def test_a_log_without_most_of_its_failures_says_what_the_whole_log_says():
    whole = changed(
        clean_log(6000), reward=lambda one: float(one.reward > 0.0 and one.id[-1] in "01")
    )
    part = without_most_failures(whole)
    assert len(part) < 0.3 * len(whole)
    expected, found = evaluate(whole, best), evaluate(part, best)
    for name, one in found.estimates.items():
        assert abs(one.value - expected.estimates[name].value) < 0.02, name
        if name != "dm":
            assert one.low < expected.estimates[name].value < one.high
    assert abs(found.logged.value - whole.rewards.mean()) < 0.01
    unaware = changed(part, stands_for=1.0)
    assert unaware.rewards.mean() > 3 * whole.rewards.mean()
    with pytest.raises(InputError, match=r"average 1\.\d+; expected 1, within chance"):
        evaluate(unaware, best)


def test_a_round_that_stands_for_three_counts_as_three():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 4, size=500).tolist()
    rounds = list(clean_log(500))
    pairs = list(zip(rounds, times, strict=True))
    some = History(dataclasses.replace(one, stands_for=n) for one, n in pairs)
    many = History(one for one, n in pairs for _ in range(n))
    found = evaluate(some, best, estimators=("ips", "snips"))
    expected = evaluate(many, best, estimators=("ips", "snips"))
    for name in ("ips", "snips"):
        assert_allclose(found.estimates[name].value, expected.estimates[name].value)
        # It is the same number by less evidence.
        assert found.estimates[name].high > expected.estimates[name].high
    assert_allclose(found.logged.value, expected.logged.value)
    assert found.effective_sample_size < expected.effective_sample_size


def test_rounds_that_stand_for_nothing_that_can_be_are_refused():
    log = changed(clean_log(50), stands_for=lambda one: 0.5 if one.id == "r7" else 1.0)
    with pytest.raises(InputError, match=r"1 of 50 rounds stand for .* round 7 the first .0.5."):
        evaluate(log, best)


def test_an_explorer_learns_a_round_as_often_as_it_stands_for_others(monkeypatch):
    module = import_module("melee.evaluation.choices")
    agent: Any = StubAgent(ACTIONS)
    learned = []
    agent.learn = lambda *record: learned.append(record[1])
    monkeypatch.setattr(module, "fresh_agent", lambda log, spec, seed: agent)
    log = changed(clean_log(30), stands_for=lambda one: 4.0 if one.id == "r0" else 1.5)
    choices(EvaluatedLog(log), "stub", 0)
    assert learned[:5] == [log[0].action] * 4 + [log[1].action]
    assert len(learned) == int(log.stands_for.sum())


def test_the_estimates_are_near_the_truth_and_the_log_is_described():
    found = evaluate(clean_log(3000), best)
    age = 0.002 * (48.5 - 18)
    for name in ("dr", "snips", "ips", "dm"):
        assert abs(found.estimates[name].value - (0.6 + age)) < 0.05
    assert list(found.estimates) == ["dr", "snips", "ips", "dm"]
    assert_allclose(found.logged.value, clean_log(3000).rewards.mean())
    assert found.logged.name == "logged"
    assert found.n_rounds == 3000
    assert 1500 < found.effective_sample_size < 2500
    assert found.warnings == ()


def test_an_evaluation_is_printed_with_every_number():
    found = evaluate(clean_log(), best)
    text = str(found)
    assert "best on 600 logged rounds; effective sample size" in text
    for one in [*found.estimates.values(), found.logged]:
        assert f"{one.name:7}{one.value:.4f} [{one.low:.4f}, {one.high:.4f}]" in text


@pytest.mark.parametrize("with_pmf", [True, False])
def test_whole_evaluations_hold_the_truth_as_often_as_they_promise(with_pmf):
    world = worlds()["mild"]
    held = {"dr": 0, "snips": 0, "ips": 0}
    for seed in range(100):
        found = evaluate(
            history_of(world, 300, seed, with_pmf=with_pmf),
            policy_of(world),
            estimators=("dr", "snips", "ips"),
        )
        for one in found.estimates.values():
            held[one.name] += one.low <= world.truth <= one.high
    assert min(held.values()) >= 90, held


def adaptive_log(world, n_rounds, seed):
    """Logged by an ε-greedy policy that learns the means of each kind as it goes."""
    rng = np.random.default_rng(seed)
    n_kinds, n_actions = world.means.shape
    sums, counts = np.zeros((n_kinds, n_actions)), np.zeros((n_kinds, n_actions))
    labels = [f"a{i}" for i in range(n_actions)]
    rounds = []
    for _ in range(n_rounds):
        kind = int(rng.integers(n_kinds))
        p = greedy(np.array([(sums[kind] / (counts[kind] + 1)).argmax()]), n_actions, 0.1)[0]
        action = int(rng.choice(n_actions, p=p))
        reward = float(rng.random() < world.means[kind, action])
        sums[kind, action] += reward
        counts[kind, action] += 1
        pmf = dict(zip(labels, p.tolist(), strict=True))
        rounds.append(
            Round({"kind": f"k{kind}"}, labels[action], reward, pmf[labels[action]], pmf=pmf)
        )
    return History(rounds)


def test_logs_of_a_policy_that_learned_give_unbiased_estimates_and_honest_intervals():
    world = worlds()["mild"]
    values, held = [], 0
    for seed in range(64):
        found = evaluate(adaptive_log(world, 300, seed), policy_of(world), estimators=("dr",))
        one = found.estimates["dr"]
        values.append(one.value)
        held += one.low <= world.truth <= one.high
    error = np.std(values, ddof=1) / 8
    assert abs(np.mean(values) - world.truth) < 3.0 * error
    assert held >= 58


def test_a_label_and_a_certain_distribution_are_the_same_policy():
    one = evaluate(clean_log(), best)
    other = evaluate(clean_log(), lambda context: {best(context): 1.0})
    assert one.estimates == other.estimates


def test_an_agent_is_asked_with_the_eligible_actions_and_does_not_learn():
    agent: Any = StubAgent(["news", "sports", "tech", "music", "radio"])
    found = evaluate(clean_log(), agent)
    assert agent.last is None
    assert agent.asked == [list(ACTIONS)] * 600
    assert found.policy == "the agent"
    uniform = evaluate(clean_log(), lambda context: dict.fromkeys(ACTIONS, 0.25))
    assert found.estimates == uniform.estimates


def test_an_agent_is_asked_for_all_actions_where_none_are_logged():
    agent: Any = StubAgent(ACTIONS)
    evaluate(clean_log(with_pmf=False), agent)
    assert agent.asked == [None] * 600


def test_a_spec_answers_for_each_round_before_it_learns_it(monkeypatch):
    module = import_module("melee.evaluation.choices")
    monkeypatch.setattr(module, "fresh_agent", lambda log, spec, seed: StubAgent(log.labels))
    history = clean_log()
    chosen, outside = choices(EvaluatedLog(history), "stub", seed=0)
    log = EvaluatedLog(history)
    last = None
    for i, one in enumerate(history):
        expected = np.full(4, 0.25) if last is None else np.eye(4)[log.index[last]]
        assert_allclose(chosen[i], expected)
        last = one.action if one.reward > 0.5 else last
    assert not outside.any()


def test_a_spec_learns_along_the_log_with_a_real_agent():
    found = evaluate(clean_log(1500), "epsilon-greedy:epsilon=0.05")
    assert found.policy == "epsilon-greedy:epsilon=0.05"
    logged, learned = found.logged, found.estimates["dr"]
    assert learned.high > logged.low
    assert learned.low > 0.4
    again = evaluate(clean_log(1500), "epsilon-greedy:epsilon=0.05")
    assert again.estimates == found.estimates


def test_evaluate_many_evaluates_each_policy_and_keeps_the_reasons_of_refusals():
    found = evaluate_many(clean_log(), {"best": best, "radio": lambda context: "radio"})
    assert found["best"] == evaluate(clean_log(), best)
    assert isinstance(found["best"], Evaluation)
    with pytest.raises(InputError, match="never played"):
        raise found["radio"]  # type: ignore[misc]


def refused(history, policy=best, **options):
    with pytest.raises(InputError) as caught:
        evaluate(history, policy, **options)
    return str(caught.value)


def test_a_log_without_exploration_is_refused_and_only_the_model_answers():
    history = changed(clean_log(), probability=1.0, pmf=None)
    sentence = refused(history)
    assert "every round was logged with probability 1" in sentence
    assert "Agent(floor=0.02)" in sentence
    assert 'estimators=("dm",)' in sentence
    found = evaluate(history, best, estimators=("dm",))
    assert list(found.estimates) == ["dm"]
    assert "what a model of rewards believes" in found.warnings[0]


@pytest.mark.parametrize(
    ("wrong", "shown"), [(np.nan, "missing"), (0.0, "0"), (1.5, "1.5"), (-0.1, "-0.1")]
)
def test_probabilities_that_cannot_be_are_refused(wrong, shown):
    history = changed(
        clean_log(with_pmf=False),
        probability=lambda one: wrong if one.id in ("r5", "r9") else one.probability,
    )
    sentence = refused(history)
    assert f"2 of 600 rounds have no usable probability, number 5 the first ({shown})" in sentence
    assert "dm" in evaluate(history, best, estimators=("dm",)).estimates


@pytest.mark.parametrize(
    ("wrong", "shown"), [(np.nan, "missing"), (np.inf, "inf"), (-1e200, "-1e+200")]
)
def test_rewards_that_cannot_be_are_refused(wrong, shown):
    history = changed(clean_log(), reward=lambda one: wrong if one.id == "r3" else one.reward)
    assert f"1 of 600 rewards cannot be used, that of round 3 the first ({shown})" in refused(
        history
    )


@pytest.mark.parametrize(("a", "b"), [(0.0, 100.0), (-3.0, 1e-4), (7e5, 1e6)])
def test_estimates_are_in_the_unit_of_the_rewards(a, b):
    plain = evaluate(clean_log(), best)
    history = changed(clean_log(), reward=lambda one: a + b * one.reward)
    found = evaluate(history, best, reward_range=(a, a + b))
    assert found.reward_range == (a, a + b)
    assert found.warnings == plain.warnings
    for one, other in [
        *((found.estimates[name], plain.estimates[name]) for name in plain.estimates),
        (found.logged, plain.logged),
    ]:
        moved = [a + b * number for number in other[1:]]
        assert_allclose(one[1:], moved, rtol=1e-9, atol=1e-9 * b)
    assert_allclose(found.estimates["ips"].value, a + b * plain.estimates["ips"].value)


def test_a_range_that_is_not_declared_is_observed_and_said():
    history = changed(clean_log(), reward=lambda one: 40.0 * one.reward - 10.0)
    found = evaluate(history, best)
    assert found.reward_range == (-10.0, 30.0)
    assert found.estimates == evaluate(history, best, reward_range=(-10, 30)).estimates
    (said,) = [one for one in found.warnings if "between -10 and 30, as they do in this log" in one]
    assert "give their reward_range" in said
    wide = evaluate(history, best, reward_range=(-1000, 1000)).estimates["snips"]
    assert wide.low < found.estimates["snips"].low
    assert wide.high > found.estimates["snips"].high
    within = evaluate(clean_log(), best)
    assert within.reward_range == (0.0, 1.0)
    assert not any("as they do in this log" in one for one in within.warnings)


def test_rewards_that_say_nothing_of_their_range_are_refused():
    history = changed(clean_log(), reward=lambda one: 5.0)
    assert "every reward of the log is 5" in refused(history)
    found = evaluate(history, best, reward_range=(0, 10))
    assert found.logged.value == 5.0
    outside = changed(clean_log(), reward=lambda one: 5.0 * one.reward)
    with pytest.raises(
        InputError, match=r"rewards cannot be used, .* expected numbers from 0 to 1"
    ):
        evaluate(outside, best, reward_range=(0, 1))
    with pytest.raises(InputError, match=r"reward_range is \(1, 0\); expected the least"):
        evaluate(outside, best, reward_range=(1, 0))


def test_a_spec_goes_along_a_log_in_any_unit():
    spec = "epsilon-greedy:epsilon=0.1"
    plain = evaluate(clean_log(), spec, estimators=("snips",))
    history = changed(clean_log(), reward=lambda one: 100.0 * one.reward - 50.0)
    found = evaluate(history, spec, estimators=("snips",))
    assert found.effective_sample_size == plain.effective_sample_size
    expected = 100.0 * np.array(plain.estimates["snips"][1:]) - 50.0
    assert_allclose(found.estimates["snips"][1:], expected)


def test_numbers_are_shown_in_digits_that_tell_something():
    assert str(Estimate("dr", 0.5, 0.25, 0.75)) == "0.5000 [0.2500, 0.7500]"
    assert str(Estimate("dr", -12.5, -20.0, 1.0)) == "-12.5000 [-20.0000, 1.0000]"
    assert str(Estimate("dr", 0.0043, 0.0, 0.012)) == "0.00430 [0.00000, 0.01200]"
    assert str(Estimate("dr", 0.00043, 0.0002, 0.0009)) == "0.000430 [0.000200, 0.000900]"
    assert str(Estimate("dr", 1e-9, -0.02, 0.02)) == "0.00000 [-0.02000, 0.02000]"
    assert str(Estimate("dr", 1.5e-7, 0.0, 3.25e-7)) == "1.5e-07 [0, 3.25e-07]"
    assert str(Estimate("dr", 1234567.0, 0.0, 2e6)) == "1.23457e+06 [0, 2e+06]"
    assert str(Estimate("dr", 0.43201, 0.43198, 0.43204)) == "0.432010 [0.431980, 0.432040]"
    assert str(Estimate("dr", 0.0, 0.0, 0.0)) == "0.0000 [0.0000, 0.0000]"


def test_a_pmf_that_does_not_sum_to_1_is_refused():
    pmf = dict.fromkeys(ACTIONS, 0.5)
    history = changed(clean_log(), pmf=lambda one: pmf if one.id == "r4" else one.pmf)
    assert "round 4: the pmf sums to 2; expected 1" in refused(history)


def test_few_rounds_are_refused():
    assert "the log has 19 rounds; expected at least 20" in refused(clean_log(19))


def test_actions_that_the_log_never_played_are_refused_beyond_1_percent():
    often = {"radio": 0.02, "news": 0.98}
    sentence = refused(clean_log(), lambda context: often)
    assert "2.0% of the policy's choices are actions that the log never played" in sentence
    seldom = {"radio": 0.005, "news": 0.995}
    found = evaluate(clean_log(), lambda context: seldom)
    assert "0.50% of the policy's choices are actions unknown to the log" in found.warnings[0]


def test_the_model_alone_says_when_it_does_not_know_the_action():
    found = evaluate(clean_log(), lambda context: "radio", estimators=("dm",))
    assert any("100.0% of the policy's choices" in warning for warning in found.warnings)
    assert_allclose(found.estimates["dm"].value, clean_log().rewards.mean())


def test_actions_that_had_probability_0_are_refused():
    def only_two(one):
        p = np.where(np.isin(ACTIONS, [one.action, "music"]), 0.5, 0.0)
        return dict(zip(ACTIONS, p.tolist(), strict=True))

    history = History(
        dataclasses.replace(one, probability=0.5, pmf=only_two(one))
        for one in clean_log()
        if one.action != "music"
    )
    history.extend(History(one for one in clean_log() if one.action == "music")[:30])
    sentence = refused(history, lambda context: "news")
    assert "of the policy's choices had probability 0 in the log" in sentence
    assert "Agent(floor=0.02)" in sentence


@pytest.mark.parametrize(("factor", "mean"), [(0.5, "1.98"), (1.4, "0.707")])
def test_weights_that_do_not_average_1_are_refused(factor, mean):
    history = changed(clean_log(), probability=lambda one: one.probability * factor, pmf=None)
    sentence = refused(history)
    assert f"the weights, the policy's probability over the logged one, average {mean}" in sentence
    assert "melee doctor" in sentence


def test_right_probabilities_are_hardly_ever_refused():
    world = worlds()["nearly the same policy"]
    n_refused = sum(
        isinstance(
            evaluate_many(
                history_of(world, 200, seed), {"": policy_of(world)}, estimators=("ips",)
            )[""],
            InputError,
        )
        for seed in range(150)
    )
    assert n_refused <= 1


def test_a_log_that_is_worth_few_rounds_is_refused():
    world = worlds()["heavy"]
    sentence = refused(history_of(world, 200, seed=0), policy_of(world))
    assert "the effective sample size is" in sentence
    assert "of 200 rounds; expected at least 10" in sentence


def test_the_lack_of_great_weights_does_not_fool_the_effective_sample_size():
    logging = np.array([[0.5, 0.5], [0.998, 0.002]])
    world = World(np.full((2, 2), 0.5), logging, np.full((2, 2), 0.5))
    seed = next(s for s in range(99) if world.weights(*world.draw(300, s)[:2]).max() < 2.0)
    sentence = refused(history_of(world, 300, seed), policy_of(world))
    assert "the effective sample size is 4." in sentence


def test_little_evidence_and_a_wrong_model_come_with_warnings():
    world = worlds()["heavy"]
    found = evaluate(history_of(world, 600, seed=1), policy_of(world))
    assert "the log is worth only" in found.warnings[0]
    rng = np.random.default_rng(0)
    rounds = []
    for _ in range(2000):  # rewards depend on the product of two numbers: no ridge can see it
        x = rng.choice([-1.0, 1.0], size=2)
        action = int(rng.integers(2))
        rounds.append(Round(x, action, float((x[0] * x[1] > 0) == action), 0.5))

    def product(context: Any):
        return int(context[0] * context[1] > 0)

    found = evaluate(History(rounds), product)
    assert found.estimates["dr"].value > 0.95
    assert "trust dr" in found.warnings[-1]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"news": 0.5}, "probabilities of 0 or larger that sum to 1"),
        ({"news": 1.5, "tech": -0.5}, "probabilities of 0 or larger that sum to 1"),
        ({"news": "often"}, "probabilities of 0 or larger that sum to 1"),
        (["news"], "expected an action, or a dict"),
    ],
)
def test_answers_that_are_no_distribution_are_refused(answer, message):
    assert message in refused(clean_log(), lambda context: answer)


def test_wrong_arguments_are_refused():
    assert "confidence is 95" in refused(clean_log(), confidence=95)
    assert "estimators is 'dr'" in refused(clean_log(), estimators="dr")
    assert "seed is -1" in refused(clean_log(), seed=-1)
    assert "the policy is 3" in refused(clean_log(), 3)
    with pytest.raises(UnknownNameError, match="unknown estimator 'drr'; did you mean 'dr'"):
        evaluate(clean_log(), best, estimators=("drr",))
    with pytest.raises(UnknownNameError, match="did you mean 'linucb'"):
        evaluate(clean_log(), "linucp")


def test_an_agent_is_not_asked_for_actions_that_it_does_not_have():
    agent: Any = StubAgent(ACTIONS[:-1])
    with pytest.raises(InputError, match=r"had probability 0|never played|effective"):
        evaluate(clean_log(), lambda context: ACTIONS[-1] + "?")
    found = evaluate(clean_log(), agent)
    assert all(ACTIONS[-1] not in asked for asked in agent.asked)
    assert 0.0 <= found.estimates["dr"].value <= 1.0
    other: Any = StubAgent(["something else"])
    with pytest.raises(InputError, match="has none of the actions that could be chosen in round 0"):
        evaluate(clean_log(), other)
