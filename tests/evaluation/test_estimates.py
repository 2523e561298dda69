"""Estimates of a policy's mean reward: their definitions, their bias, their intervals."""

import itertools
import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from melee.evaluation import estimates
from melee.evaluation.reward_model import cross_fitted, implied_weights
from tests.evaluation.worlds import worlds

WORLDS = worlds()


def naive_ips(target, logging, actions, rewards):
    """The definition, round by round."""
    total = 0.0
    for pi, p, action, reward in zip(target, logging, actions, rewards, strict=True):
        total += pi[action] / p[action] * reward
    return total / len(actions)


def naive_snips(target, logging, actions, rewards):
    top = bottom = 0.0
    for pi, p, action, reward in zip(target, logging, actions, rewards, strict=True):
        top += pi[action] / p[action] * reward
        bottom += pi[action] / p[action]
    return top / bottom


def naive_direct(target, q):
    return sum(
        sum(p * v for p, v in zip(*row, strict=True)) for row in zip(target, q, strict=True)
    ) / len(q)


def naive_doubly_robust(target, logging, actions, rewards, q):
    total = 0.0
    for i, action in enumerate(actions):
        total += target[i][action] / logging[i][action] * (rewards[i] - q[i][action])
    return naive_direct(target, q) + total / len(actions)


def repeated(times, *arrays):
    """Arrays with every row as often as the round stands for."""
    return [np.repeat(one, times, axis=0) for one in arrays]


def naive_switch(target, logging, actions, rewards, q, tau):
    """Wang, Agarwal and Dudík (2017), the doubly robust form: heavy rounds are the model's."""
    total = 0.0
    for i, action in enumerate(actions):
        weight = target[i][action] / logging[i][action]
        if weight <= tau:
            total += weight * (rewards[i] - q[i][action])
    return naive_direct(target, q) + total / len(actions)


def naive_shrunk(target, logging, actions, rewards, q, lam):
    """Su, Dimakopoulou, Krishnamurthy and Dudík (2020), optimistic shrinkage."""
    total = 0.0
    for i, action in enumerate(actions):
        weight = target[i][action] / logging[i][action]
        total += lam * weight / (weight**2 + lam) * (rewards[i] - q[i][action])
    return naive_direct(target, q) + total / len(actions)


def drawn(n_rounds, seed, n_actions=4):
    rng = np.random.default_rng(seed)
    target, logging = rng.dirichlet(np.ones(n_actions), (2, n_rounds))
    logging = 0.5 * logging + 0.5 / n_actions
    actions = rng.integers(n_actions, size=n_rounds)
    return target, logging, actions, rng.random(n_rounds), rng.random((n_rounds, n_actions))


@pytest.mark.parametrize(("n_rounds", "seed"), [(1, 0), (2, 1), (30, 2), (500, 3)])
def test_a_round_that_stands_for_several_counts_as_if_it_were_there_so_often(n_rounds, seed):
    target, logging, actions, rewards, q = drawn(n_rounds, seed)
    times = np.random.default_rng(seed).integers(1, 12, size=n_rounds)
    sizes, rows = times / times.mean(), np.arange(n_rounds)
    weights = sizes * target[rows, actions] / logging[rows, actions]
    predicted = estimates.ratio_terms(sizes * (target * q).sum(axis=1), sizes)
    of_chosen = q[rows, actions]
    found = [
        estimates.ips(weights, rewards, sizes=sizes),
        estimates.snips(weights, rewards, sizes=sizes),
        estimates.direct(predicted, weights, rewards, of_chosen, sizes=sizes),
        estimates.doubly_robust(weights, rewards, of_chosen, predicted, sizes=sizes),
        estimates.switch(weights, rewards, of_chosen, predicted, tau=1.1, sizes=sizes),
        estimates.shrunk(weights, rewards, of_chosen, predicted, lam=2.5, sizes=sizes),
    ]
    target, logging, actions, rewards, q = repeated(times, target, logging, actions, rewards, q)
    expected = [
        naive_ips(target, logging, actions, rewards),
        naive_snips(target, logging, actions, rewards),
        naive_direct(target, q),
        naive_doubly_robust(target, logging, actions, rewards, q),
        naive_switch(target, logging, actions, rewards, q, tau=1.1),
        naive_shrunk(target, logging, actions, rewards, q, lam=2.5),
    ]
    assert_allclose([one.value for one in found], expected, rtol=1e-9)


def test_sizes_of_1_change_nothing():
    target, logging, actions, rewards, q = drawn(200, 0)
    rows = np.arange(200)
    weights, predicted = (target / logging)[rows, actions], (target * q).sum(axis=1)
    of_chosen, ones = q[rows, actions], np.ones(200)
    assert estimates.ips(weights, rewards, sizes=ones) == estimates.ips(weights, rewards)
    assert estimates.snips(weights, rewards, sizes=ones) == estimates.snips(weights, rewards)
    plain = estimates.doubly_robust(weights, rewards, of_chosen, predicted)
    terms = estimates.ratio_terms(ones * predicted, ones)
    assert estimates.doubly_robust(weights, rewards, of_chosen, terms, sizes=ones) == plain
    arguments = weights, rewards - of_chosen, predicted
    for choose in (estimates.choose_tau, estimates.choose_lam):
        assert choose(*arguments, ones) == choose(*arguments)


def test_a_weight_that_all_rounds_share_is_switched_in_all_or_none_whatever_their_sizes():
    sizes = np.random.default_rng(0).uniform(0.1, 3.0, size=300)
    sizes /= sizes.mean()
    weights = sizes * (0.7 / 0.3)
    found = estimates.choose_tau(weights, np.ones(300), np.zeros(300), sizes)
    kept = estimates.switched(weights / sizes, found)
    assert (kept > 0.0).all()


def dropped(weights, rewards, share, rng):
    """What is left of a log after a share of its failures was dropped; sizes come last."""
    kept = (rewards > 0.0) | (rng.random(len(rewards)) >= share)
    times = np.where(rewards[kept] > 0.0, 1.0, 1.0 / (1.0 - share))
    sizes = times / times.mean()
    return sizes * weights[kept], rewards[kept], sizes


@pytest.mark.parametrize("name", ["mild", "rare rewards"])
def test_intervals_hold_the_truth_of_a_log_whose_failures_were_mostly_dropped(name):
    world, rng = WORLDS[name], np.random.default_rng(0)
    hits, widths = np.zeros(2), np.zeros((2, 2))
    for seed in range(300):
        kinds, actions, rewards = world.draw(2000, seed)
        weights = world.weights(kinds, actions)
        w, r, sizes = dropped(weights, rewards, 0.9, rng)
        for i, estimator in enumerate((estimates.ips, estimates.snips)):
            whole, part = estimator(weights, rewards), estimator(w, r, 0.95, sizes)
            hits[i] += part.low <= world.truth <= part.high
            widths[i] += whole.high - whole.low, part.high - part.low
    assert (hits >= 0.91 * 300).all(), hits
    # Where only failures were dropped and these are most rounds, hardly anything was lost.
    if name == "rare rewards":
        assert (widths[:, 1] < 1.15 * widths[:, 0]).all(), widths


@pytest.mark.parametrize(("n_rounds", "seed"), [(1, 0), (2, 1), (30, 2), (500, 3)])
def test_estimates_agree_with_their_definitions(n_rounds, seed):
    target, logging, actions, rewards, q = drawn(n_rounds, seed)
    rows = np.arange(n_rounds)
    weights = target[rows, actions] / logging[rows, actions]
    predicted = (target * q).sum(axis=1)
    found = [
        estimates.ips(weights, rewards),
        estimates.snips(weights, rewards),
        estimates.direct(predicted, weights, rewards, q[rows, actions]),
        estimates.doubly_robust(weights, rewards, q[rows, actions], predicted),
        estimates.switch(weights, rewards, q[rows, actions], predicted, tau=1.1),
        estimates.shrunk(weights, rewards, q[rows, actions], predicted, lam=2.5),
    ]
    expected = [
        naive_ips(target, logging, actions, rewards),
        naive_snips(target, logging, actions, rewards),
        naive_direct(target, q),
        naive_doubly_robust(target, logging, actions, rewards, q),
        naive_switch(target, logging, actions, rewards, q, tau=1.1),
        naive_shrunk(target, logging, actions, rewards, q, lam=2.5),
    ]
    assert [one.name for one in found] == ["ips", "snips", "dm", "dr", "switch", "dros"]
    assert_allclose([one.value for one in found], expected, rtol=1e-12)


weighted_rounds = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 1), st.floats(-1, 2), st.floats(-1, 2)),
    min_size=2,
    max_size=30,
)


@settings(max_examples=40)
@given(weighted_rounds)
def test_switch_and_shrinkage_lie_between_the_model_and_doubly_robust(given_rounds):
    weights, rewards, of_chosen, predicted = np.array(given_rounds).T
    dr = estimates.doubly_robust(weights, rewards, of_chosen, predicted)
    by: list[Any] = [estimates.switch, estimates.shrunk]
    whole = [one(weights, rewards, of_chosen, predicted, np.inf) for one in by]
    none = [one(weights, rewards, of_chosen, predicted, 0.0) for one in by]
    for one in whole:
        assert one[1:] == dr[1:]
    for one in none:
        assert_allclose(one.value, predicted.mean(), atol=1e-12)
        assert one[2:] == dr[2:]


@pytest.mark.parametrize(("reduced", "most"), [("switched", 3.0), ("shrunken", 1.5)])
def test_smaller_weights_are_never_larger_than_the_setting_allows(reduced, most):
    weights = np.geomspace(1e-3, 1e6, 200)
    setting = {"switched": 3.0, "shrunken": 9.0}[reduced]
    kept = getattr(estimates, reduced)(weights, setting)
    assert (kept <= weights).all()
    assert kept.max() <= most


@pytest.mark.parametrize("choose", [estimates.choose_tau, estimates.choose_lam])
def test_settings_are_those_of_the_least_estimated_square_error(choose):
    reduced = {"choose_tau": estimates.switched, "choose_lam": estimates.shrunken}[choose.__name__]
    rng = np.random.default_rng(0)
    weights = rng.lognormal(sigma=1.5, size=400)
    weights /= weights.mean()
    predicted = rng.uniform(0.3, 0.5, size=400)
    for wrong, errors in [(0.0, rng.normal(size=400)), (0.5, rng.normal(0.5, 0.01, size=400))]:
        setting = choose(weights, errors, predicted)
        tried = [*np.geomspace(0.01, 1e4, 50), np.inf]
        squares = {}
        for one in [*tried, setting]:
            kept = reduced(weights, one)
            bias = sum((weights - kept) * errors) / 400
            squares[one] = statistics.variance(predicted + kept * errors) / 400 + bias**2
        assert squares[setting] <= 1.05 * min(squares.values())
        if wrong:  # where the model is wrong everywhere, weights are kept whole
            assert reduced(weights, setting).sum() > 0.95 * weights.sum()


def all_logs(n_rounds):
    """Every log of a tiny world and its probability: two contexts, two actions, rewards 0 or 1."""
    chance_of_context = [0.3, 0.7]
    logging = np.array([[0.8, 0.2], [0.4, 0.6]])
    means = np.array([[0.9, 0.2], [0.1, 0.6]])
    one = list(itertools.product([0, 1], [0, 1], [0, 1]))
    for rounds in itertools.product(one, repeat=n_rounds):
        x, a, r = (np.array(column) for column in zip(*rounds, strict=True))
        chance = math.prod(
            chance_of_context[i] * logging[i, j] * (means[i, j] if k else 1.0 - means[i, j])
            for i, j, k in rounds
        )
        yield x, a, r.astype(float), chance, logging


TARGET = np.array([[0.25, 0.75], [0.5, 0.5]])
TRUTH = 0.3 * (0.25 * 0.9 + 0.75 * 0.2) + 0.7 * (0.5 * 0.1 + 0.5 * 0.6)


def test_ips_and_doubly_robust_are_right_on_average_over_all_logs_with_any_model():
    q = np.array([[0.5, 0.9], [0.8, 0.3]])
    mean_ips = mean_dr = mean_dm = total = 0.0
    for x, a, r, chance, logging in all_logs(2):
        weights = TARGET[x, a] / logging[x, a]
        predicted = (TARGET * q)[x].sum(axis=1)
        mean_ips += chance * estimates.ips(weights, r).value
        mean_dr += chance * estimates.doubly_robust(weights, r, q[x, a], predicted).value
        mean_dm += chance * predicted.mean()
        total += chance
    assert_allclose([total, mean_ips, mean_dr], [1.0, TRUTH, TRUTH], rtol=1e-12)
    assert abs(mean_dm - TRUTH) > 0.05  # the model is wrong, and dm with it


@pytest.mark.parametrize("cross", [True, False])
def test_cross_fitting_is_what_keeps_doubly_robust_unbiased(cross):
    mean_dr = 0.0
    for x, a, r, chance, logging in all_logs(3):
        X = (x[:, None] - 0.5) * 2.0
        if cross:
            q = cross_fitted(X, a, r, 2, np.arange(3))
        else:  # a model that has seen the very rounds it is corrected by
            X2, a2, r2 = (np.concatenate([one, one]) for one in (X, a, r))
            q = cross_fitted(X2, a2, r2, 2, np.repeat([0, 1], 3))[:3]
        weights = TARGET[x, a] / logging[x, a]
        rows = np.arange(3)
        predicted = (TARGET[x] * q).sum(axis=1)
        mean_dr += chance * estimates.doubly_robust(weights, r, q[rows, a], predicted).value
    assert bool(abs(mean_dr - TRUTH) < 1e-12) is cross


def test_t_interval_agrees_with_scipy():
    values = np.random.default_rng(0).random(40)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    found = estimates.t_interval(values, 0.9)
    assert_allclose(np.array(found), np.array(expected), rtol=1e-12)


def test_each_end_is_that_of_a_t_interval_with_one_more_round_against_it():
    weights, rewards = np.array([0.5, 2.0, 1.0, 0.5]), np.array([1.0, 0.0, 1.0, 0.0])
    extra = (0.25 + 4.0 + 1.0 + 0.25) / 4.0
    high = stats.ttest_1samp([*(weights * rewards), extra], 0.0).confidence_interval(0.5).high
    assert high > estimates.snips(weights, rewards, confidence=0.5).high
    low = stats.ttest_1samp([*(weights * rewards), 0.0], 0.0).confidence_interval(0.5).low
    found = estimates.ips(weights, rewards, confidence=0.5)
    assert_allclose(np.array([found.low, found.high]), np.array([low, high]), rtol=1e-12)


def test_ips_reaches_as_high_as_snips_where_heavy_rounds_did_not_come():
    weights, rewards = np.full(200, 0.8), np.tile([1.0, 1.0, 1.0, 0.0], 50)
    found, by_sum = estimates.ips(weights, rewards), estimates.snips(weights, rewards)
    assert_allclose([found.value, by_sum.value], [0.6, 0.75])
    assert found.high == by_sum.high > 0.8
    plain = stats.ttest_1samp([*(weights * rewards), 0.0], 0.0).confidence_interval(0.95).low
    assert_allclose(found.low, plain, rtol=1e-12)


def test_no_success_at_all_leaves_room_for_some():
    weights, rewards = np.ones(200), np.zeros(200)
    exact = 1.0 - 0.025 ** (1 / 200)  # Clopper and Pearson's
    for found in (estimates.ips(weights, rewards), estimates.snips(weights, rewards)):
        assert found.low == 0.0
        assert 0.7 * exact < found.high < 1.3 * exact


rounds = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
    min_size=2,
    max_size=30,
)


@given(rounds, st.floats(0.5, 0.99))
def test_intervals_lie_in_0_to_1_and_grow_with_confidence(given_rounds, confidence):
    weights, rewards, chosen, predicted = np.array(given_rounds).T
    calls: list[tuple[Any, Any]] = [
        (estimates.ips, (weights, rewards)),
        (estimates.snips, (weights, rewards)),
        (estimates.direct, (predicted, weights, rewards, chosen)),
        (estimates.doubly_robust, (weights, rewards, chosen, predicted)),
        (estimates.switch, (weights, rewards, chosen, predicted, 2.0)),
        (estimates.shrunk, (weights, rewards, chosen, predicted, 2.0)),
    ]
    for estimate, arguments in calls:
        narrow = estimate(*arguments, confidence)
        wide = estimate(*arguments, 0.5 + 0.5 * confidence)
        assert 0.0 <= wide.low <= narrow.low <= narrow.high <= wide.high <= 1.0


@given(rounds, st.floats(0.1, 10))
def test_snips_does_not_depend_on_the_unit_of_weights_and_stays_within_rewards(given_rounds, unit):
    weights, rewards, _, _ = np.array(given_rounds).T
    found, scaled = estimates.snips(weights, rewards), estimates.snips(unit * weights, rewards)
    assert_allclose(found[1:], scaled[1:], rtol=1e-9, atol=1e-9)
    assert rewards.min() - 1e-9 <= found.value <= rewards.max() + 1e-9


@given(rounds)
def test_effective_sample_size_is_between_1_and_the_number_of_rounds(given_rounds):
    weights = np.array(given_rounds)[:, 0]
    assert 1.0 - 1e-9 <= estimates.effective_sample_size(weights) <= len(weights) + 1e-9


def test_effective_sample_size_counts_rounds_of_equal_weight():
    assert_allclose(estimates.effective_sample_size(np.array([3.0] * 7 + [0.0] * 5)), 7.0)
    assert estimates.effective_sample_size(np.zeros(3)) == 0.0


def coverage(world, n_rounds, n_logs):
    """Shares of logs, of those that would be accepted, whose interval holds the truth."""
    q = 0.8 * world.means  # a model that is wrong
    predicted = (world.target * q).sum(axis=1)
    expected_effective = n_rounds / (world.target**2 / world.logging).sum(axis=1).mean()
    held, n_accepted = {"ips": 0, "snips": 0, "dr": 0}, 0
    for seed in range(n_logs):
        x, a, rewards = world.draw(n_rounds, seed)
        weights = world.weights(x, a)
        low, high = estimates.mean_interval(weights, 0.0, estimates.typical_weight(weights), 0.9999)
        effective = min(estimates.effective_sample_size(weights), expected_effective)
        if effective < 10.0 or not low <= 1.0 <= high:
            continue
        n_accepted += 1
        for found in (
            estimates.ips(weights, rewards),
            estimates.snips(weights, rewards),
            estimates.doubly_robust(weights, rewards, q[x, a], predicted[x]),
        ):
            held[found.name] += found.low <= world.truth <= found.high
    return {name: n / max(n_accepted, 1) for name, n in held.items()}, n_accepted


REFUSED = {("heavy", 200), ("heavy, pure target", 200), ("tiny floor, uniform target", 200)} | {
    ("rare rewards, heavy", 200)
}


SMALL = [
    "mild",
    "mild, many actions",
    "heavy, uniform target",
    "rare rewards",
    "rare rewards, uniform target",
    "nearly certain rewards",
    "nearly the same policy",
]
"""Worlds of which 50 rounds are worth 10, often enough."""


@pytest.mark.parametrize("n_rounds", [50, 200, 1000])
@pytest.mark.parametrize("name", SMALL)
def test_snips_holds_the_truth_as_often_as_it_says_in_small_logs(name, n_rounds):
    world = WORLDS[name]
    held, n_accepted = {0.8: 0, 0.95: 0}, 0
    for seed in range(250):
        x, a, rewards = world.draw(n_rounds, seed)
        weights = world.weights(x, a)
        low, high = estimates.mean_interval(weights, 0.0, estimates.typical_weight(weights), 0.9999)
        if estimates.effective_sample_size(weights) < 10.0 or not low <= 1.0 <= high:
            continue
        n_accepted += 1
        for confidence in held:
            found = estimates.snips(weights, rewards, confidence)
            held[confidence] += found.low <= world.truth <= found.high
    assert n_accepted >= 150
    for confidence, n_held in held.items():
        error = math.sqrt(confidence * (1.0 - confidence) / n_accepted)
        assert n_held / n_accepted >= confidence - 2.5 * error, confidence


def test_few_effective_rounds_make_snips_less_sure():
    weights = np.array([100.0] * 11 + [0.01] * 500)
    rewards = np.tile([1.0, 0.0], 256)[:511]
    found = estimates.snips(weights, rewards)
    w, r = np.append(weights, 100.0), np.append(rewards, 1.0)
    ratio = w @ r / w.sum()
    error = (w * (r - ratio)).std(ddof=1) / w.mean() / math.sqrt(512)
    assert_allclose(found.high, ratio + stats.t(11).ppf(0.975) * error, rtol=1e-3)


LINEAR = np.random.default_rng(5).uniform(-0.5, 0.5, (5, 6)) / math.sqrt(6)
LEVELS = np.random.default_rng(6).uniform(0.5, 1.5, 5)
BEST = float(
    np.mean([(np.array(x) @ LINEAR.T + LEVELS).max() for x in itertools.product([-1, 1], repeat=6)])
)
"""What the best action of each context earns on average, at a rate of 1."""


def direct_by_model(rate, n_rounds, seed):
    """The direct method and the truth, where rewards are linear, as the model is."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n_rounds, 6))
    means = rate * (X @ LINEAR.T + LEVELS)
    rows, actions = np.arange(n_rounds), rng.integers(5, size=n_rounds)
    rewards = (rng.random(n_rounds) < means[rows, actions]).astype(float)
    chosen = np.eye(5)[means.argmax(axis=1)]
    fold = rows % 5
    q = cross_fitted(X, actions, rewards, 5, fold)
    implied = implied_weights(X, actions, chosen, np.zeros(n_rounds), fold)
    predicted = (chosen * q).sum(axis=1)
    return estimates.direct(predicted, implied, rewards, q[rows, actions]), rate * BEST


@pytest.mark.parametrize(("rate", "n_rounds"), [(0.005, 4000), (0.05, 800)])
def test_the_direct_method_has_no_bias_and_an_honest_interval_where_its_model_is_right(
    rate, n_rounds
):
    values, held = [], 0
    for seed in range(120):
        found, truth = direct_by_model(rate, n_rounds, seed)
        values.append(found.value)
        held += found.low <= truth <= found.high
    error = np.std(values, ddof=1) / math.sqrt(120)
    assert abs(np.mean(values) - truth) < 2.5 * error
    assert error < 0.04 * truth  # so that a bias of a tenth would show
    assert held >= 108  # of 114 promised


@pytest.mark.parametrize(("n_rounds", "n_logs"), [(200, 400), (2000, 400)])
@pytest.mark.parametrize("name", WORLDS)
def test_95_percent_intervals_hold_the_truth_in_92_percent_of_logs_or_more(name, n_rounds, n_logs):
    shares, n_accepted = coverage(WORLDS[name], n_rounds, n_logs)
    if (name, n_rounds) in REFUSED:
        assert n_accepted == 0
        return
    assert n_accepted >= 0.95 * n_logs
    for estimator, share in shares.items():
        assert share >= 0.92, (estimator, share)


def test_a_plain_t_interval_would_not_hold_where_rewards_are_rare(monkeypatch):
    nothing_more = lambda weights, rewards, sizes: (0.0, 0.0)  # noqa: E731
    monkeypatch.setattr(estimates, "extra_weights", nothing_more)
    shares, _ = coverage(WORLDS["rare rewards, uniform target"], 200, n_logs=100)
    assert shares["ips"] < 0.6
