"""What differences a log could show: stated, and then found in so many simulated logs."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.errors import InputError
from melee.evaluation import detectable
from melee.evaluation.doctor.power import REACH
from melee.evaluation.estimates import extra_weights, mean_interval
from melee.history import History, Round
from tests.evaluation.worlds import clean_log, without_most_failures


def draw(world, ahead, seed):
    """A log that prefers one action of each kind of context; the policy wants another rule's.

    What it wants is clicked more often, so that it is ahead of the log by so much. Returns
    probabilities, actions, the policy's actions and clicks.
    """
    n_actions, floor, n_rounds, rate = world
    rng = np.random.default_rng(seed)
    kinds = rng.integers(n_actions**2, size=n_rounds)
    wanted, preferred = kinds % n_actions, kinds // n_actions
    p = np.full((n_rounds, n_actions), floor / n_actions)
    p[np.arange(n_rounds), preferred] += 1.0 - floor
    actions = (rng.random(n_rounds)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    gain = ahead / (1.0 - 1.0 / n_actions)
    rewards = (rng.random(n_rounds) < rate + gain * (actions == wanted)).astype(float)
    return p, actions, wanted, rewards


def history_of(p, actions, rewards, *, with_pmf=True):
    return History(
        Round(np.zeros(1), int(a), float(r), float(row[a]), pmf=dict(enumerate(row.tolist())))
        if with_pmf
        else Round(np.zeros(1), int(a), float(r), float(row[a]))
        for row, a, r in zip(p, actions, rewards, strict=True)
    )


def stated(world, *, with_pmf=True):
    """A difference that logs of a world with such a difference say they show."""
    ahead = 0.0
    for seed in range(3):
        p, actions, _, rewards = draw(world, ahead, 1000 + seed)
        ahead = detectable(history_of(p, actions, rewards, with_pmf=with_pmf)).own
    return ahead


def found(world, ahead, n_logs=150):
    """The share of logs in which the interval of the difference excludes 0.

    That of `differences.difference` for one look, by a model that knows the mean reward only.
    """
    n_found = 0
    for seed in range(n_logs):
        p, actions, wanted, rewards = draw(world, ahead, seed)
        rows = np.arange(len(p))
        weights = (actions == wanted) / p[rows, actions]
        mean = rewards.mean()
        apart = weights - 1.0
        extra = max(extra_weights(np.abs(apart), rewards, 1.0))
        low, _ = mean_interval(apart * (rewards - mean), -extra, extra, 0.95)
        n_found += low > 0.0
    return n_found / n_logs


@pytest.mark.parametrize(
    ("world", "with_pmf"),
    [
        ((2, 0.2, 600, 0.4), True),
        ((3, 0.3, 1000, 0.1), True),
        ((3, 0.3, 1000, 0.1), False),
        ((4, 0.1, 2500, 0.05), True),
        ((2, 1.0, 400, 0.3), True),
    ],
)
def test_the_stated_difference_is_found_in_about_80_percent_of_logs(world, with_pmf):
    ahead = stated(world, with_pmf=with_pmf)
    assert 0.68 < found(world, ahead) < 0.92
    assert found(world, 0.5 * ahead) < 0.5


def test_the_variance_of_weights_is_that_of_policies_drawn_at_random():
    p, actions, _, rewards = draw((4, 0.4, 4000, 0.3), 0.0, 0)
    rng = np.random.default_rng(1)
    rows, squares, uniform = np.arange(4000), [], 0.25 / p[np.arange(4000), actions]
    for _ in range(200):
        weights = (rng.integers(4, size=4000) == actions) / p[rows, actions]
        squares.append(((weights - 1.0) ** 2).mean())
    power = detectable(history_of(p, actions, rewards))
    variance = rewards.var() / 4000
    assert_allclose(power.own, REACH * math.sqrt(variance * np.mean(squares)), rtol=0.12)
    assert_allclose(
        power.uniform, REACH * math.sqrt(variance * ((uniform - 1) ** 2).mean()), rtol=0.12
    )


def test_as_many_rounds_as_told_do_show_a_tenth():
    p, actions, _, rewards = draw((3, 0.3, 1500, 0.4), 0.0, 0)
    small = detectable(history_of(p, actions, rewards))
    assert small.own > small.wanted
    p, actions, _, rewards = draw((3, 0.3, round(small.n_rounds), 0.4), 0.0, 1)
    larger = detectable(history_of(p, actions, rewards))
    assert_allclose(larger.own, larger.wanted, rtol=0.05)


def test_with_as_much_floor_as_told_the_same_difference_is_shown():
    n = 5000
    p, actions, _, rewards = draw((3, 0.3, n, 0.4), 0.0, 0)
    power = detectable(history_of(p, actions, rewards))
    assert 0.3 < power.floor < 1.0
    floored, actions, _, rewards = draw((3, power.floor, n, 0.4), 0.0, 0)  # of the same contexts
    rng, rows, squares = np.random.default_rng(1), np.arange(n), []
    for _ in range(200):
        chosen = rng.integers(3, size=n) == actions
        apart = (chosen - p[rows, actions]) / floored[rows, actions]
        squares.append((apart**2).mean())
    shown = REACH * math.sqrt(rewards.var() * np.mean(squares) / n)
    assert_allclose(shown, power.wanted, rtol=0.08)


def test_the_statement_is_in_the_unit_of_the_rewards():
    history = clean_log()
    plain = detectable(history)
    dear = History(
        Round(one.context, one.action, 20.0 * one.reward, one.probability, pmf=one.pmf)
        for one in history
    )
    found = detectable(dear, reward_range=(0, 20))
    assert_allclose(found[:4], 20.0 * np.array(plain[:4]))
    assert_allclose(found[4:], plain[4:])


def test_dropped_rounds_cost_power_by_what_the_others_stand_for():
    log = clean_log(3000)
    part = without_most_failures(log)
    whole, found = detectable(log), detectable(part)
    assert_allclose(found.reward, whole.reward, rtol=0.1)
    clicks, mean = log.rewards.sum(), log.rewards.mean()
    of_clicks, of_others = clicks * (1.0 - mean) ** 2, (3000 - clicks) * mean**2
    more = (of_clicks + 10.0 * of_others) / (of_clicks + of_others)
    assert_allclose(found.own / whole.own, math.sqrt(more), rtol=0.1)


def test_what_no_log_of_its_kind_can_show_is_said():
    p, actions, _, rewards = draw((10, 0.02, 60, 0.3), 0.0, 0)
    found = detectable(history_of(p, actions, rewards))
    assert math.isinf(found.own)
    assert "no policy with choices of its own could be told from the logged one" in str(found)


def test_small_rates_are_told_in_three_digits():
    p, actions, _, _ = draw((2, 1.0, 20_000, 0.0), 0.0, 0)
    clicks = (np.arange(20_000) % 250 == 0).astype(float)
    text = detectable(history_of(p, actions, clicks)).shown
    assert re.search(r"earns 0\.00\d{3} \(\d\d%\) more or less than the logged 0\.00400$", text)


def test_rewards_about_0_have_no_tenth():
    rng = np.random.default_rng(0)
    rounds = [Round(np.zeros(1), int(rng.integers(2)), rng.normal(), 0.5) for _ in range(500)]
    found = detectable(History(rounds))
    assert math.isnan(found.wanted)
    assert found.needed == ""
    assert "%" not in str(found)


@pytest.mark.parametrize(
    "history",
    [
        History(),
        clean_log(15),
        History([Round(np.zeros(1), "a", float(i % 2), 1.0) for i in range(50)]),
        History([Round(np.zeros(1), "ab"[i % 2], 1.0, 0.5) for i in range(50)]),
        History([Round(np.zeros(1), "ab"[i % 2], math.nan, 0.5) for i in range(50)]),
    ],
    ids=["empty", "short", "certain", "constant", "missing"],
)
def test_logs_that_show_nothing_are_refused(history):
    with pytest.raises(
        InputError, match=r"of \d+ rounds \d+ have a reward .* expected at least 20"
    ):
        detectable(history)
