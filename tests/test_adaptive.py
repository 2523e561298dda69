"""The learner that knows its noise, against whole histories and for what it promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from melee.learners import forest, interface
from melee.learners.adaptive import (
    AVERAGE,
    DEVIATION,
    FOREST,
    GRADED,
    HOW,
    LOW,
    MAX_EXACT,
    MAX_WIDENED,
    NOISE,
    PLAIN,
    PRIOR,
    RARE,
    SPAN,
    WIDE,
    WINDOW,
    Adaptive,
    mix,
)
from melee.learners.forest import FEWEST, TREES, doubt_of, find, is_grown, said_of
from melee.learners.registry import parse
from melee.states import arrays_of
from tests.forms import compiled
from tests.twins import adaptive_twin

observe, predict, spread, spread_guess = (
    compiled(interface.observe),
    compiled(interface.predict),
    compiled(interface.spread),
    compiled(interface.spread_guess),
)
predict_all, spread_guess_all = (
    compiled(interface.predict_all),
    compiled(interface.spread_guess_all),
)

D, HIDDEN, ROWS = 7, 3, 3
TRAINED = np.array([0.2, 0.4, 0.3, 0.5, 0.4, 1.0, -0.5, 0.4, -0.8, 0.5, 1.0])
"""How a policy might have learned to mix members; all of them count for long."""


def rounds(n, seed=0, noise=0.1, signal=0.3, labels=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) / 2
    X[:, -1] = 1.0
    targets = 0.5 + signal * (X[:, 0] - X[:, 4]) + noise * rng.normal(size=n)
    if labels:
        targets = (targets > 0.6).astype(float)
    weights = rng.choice([0.5, 1.0, 1.0, 3.0], n)
    rows = np.minimum(rng.integers(0, 2 * ROWS, n), ROWS - 1)  # the last one most often
    return list(zip(X, rows.tolist(), targets.tolist(), weights.tolist(), strict=True))


def started(name="adaptive", how=HOW):
    learner = parse(name).start_widened(ROWS, D, HIDDEN)
    learner.how[:] = how
    mix(learner)
    return learner


def taught(history, **settings):
    learner = started(**settings)
    for x, row, target, weight in history:
        observe(learner, x, row, target, weight)
    return learner


# --- against the definition ---------------------------------------------------------------------


def agrees(learner, twin, x):
    """Whether it says of every row what follows from the whole history."""
    every, said, guesses = range(ROWS), np.zeros(ROWS), np.zeros(ROWS)
    assert_allclose([predict(learner, x, a) for a in every], [twin.predict(a, x) for a in every])
    assert_allclose([spread(learner, x, a) for a in every], [twin.spread(a, x) for a in every])
    expected = [twin.spread_guess(a, x) for a in every]
    assert_allclose([spread_guess(learner, x, a) for a in every], expected)
    predict_all(learner, x, 0, said)
    spread_guess_all(learner, x, 0, guesses)
    assert_allclose(said, [predict(learner, x, a) for a in every], rtol=1e-12)
    assert_allclose(guesses, [spread_guess(learner, x, a) for a in every], rtol=1e-12)
    assert is_grown(learner.forest) == twin.forest.is_grown()
    if is_grown(learner.forest):  # whatever it weighs
        find(learner.forest, x)
        for a in every:
            assert_allclose(said_of(learner.forest, a), np.mean(twin.forest.values(a, x)))
            assert_allclose(doubt_of(learner.forest, a), np.mean(twin.forest.doubts(a, x)))


@pytest.mark.parametrize("how", [HOW, TRAINED], ids=["by default", "as trained"])
@pytest.mark.parametrize("name", ["adaptive", "adaptive-diagonal", "adaptive/strong=0.3/ridge=3"])
@pytest.mark.parametrize(
    ("noise", "signal", "labels"), [(0.02, 0.5, False), (0.4, 0.05, False), (0.3, 0.5, True)]
)
def test_everything_it_says_follows_from_the_whole_history(name, how, noise, signal, labels):
    learner = started(name, how)
    twin = adaptive_twin(parse(name), D, ROWS, n_hidden=HIDDEN, how=how)
    n_members = set()
    for x, row, target, weight in rounds(90, 4, noise, signal, labels):
        assert_allclose(learner.now[:PRIOR], twin.weights(), atol=1e-8)
        assert_allclose(learner.now[[LOW, SPAN]], twin.range())
        found = learner.now[[PRIOR, NOISE, DEVIATION]]
        assert_allclose(found, [twin.prior(), twin.noise(), twin.deviation()], rtol=1e-8)
        assert_allclose(learner.now[[RARE, GRADED]], [twin.rare(), twin.graded()], atol=1e-9)
        agrees(learner, twin, x)
        observe(learner, x, row, target, weight)
        twin.learn(row, x, target, weight)
        n_members.add(int((learner.now[:PRIOR] > 0).sum()))
    assert {2, 3} <= n_members or how is not HOW or noise > signal or labels
    assert labels == (learner.now[GRADED] == 0.0)


def turning(n, labels):
    """Rounds whose rewards turn at a value, which trees find."""
    for x, row, target, weight in rounds(n, seed=4, noise=0.1, signal=0.0):
        turned = target + 0.3 * (-1.0) ** (row + int(x[1] > 0.1))
        yield x, row, float(turned > 0.5) if labels else turned, weight


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("kept", [3 * FEWEST, forest.KEPT])
def test_what_its_trees_say_follows_from_the_whole_history(monkeypatch, kept, labels):
    monkeypatch.setattr(forest, "KEPT", kept)
    learner = started(how=TRAINED)
    twin = adaptive_twin(parse("adaptive"), D, ROWS, n_hidden=HIDDEN, how=TRAINED)
    for i, (x, row, target, weight) in enumerate(turning(4 * FEWEST + 40, labels)):
        assert_allclose(learner.now[:PRIOR], twin.weights(), atol=1e-8)
        assert learner.forest.kept[0] == min(i, kept) == twin.forest.n_kept
        if i % 16 == 0:
            agrees(learner, twin, x)
        observe(learner, x, row, target, weight)
        twin.learn(row, x, target, weight)
    assert learner.forest.grown[0] == TREES
    assert_allclose(learner.errors, twin.squared_errors(), rtol=1e-8)
    assert learner.now[FOREST] > 0.1
    for x, *_ in rounds(9, seed=9):
        agrees(learner, twin, x)


@pytest.mark.parametrize("name", ["adaptive", "adaptive-diagonal"])
@pytest.mark.parametrize(
    ("n_rounds", "calm"), [(330, 200), pytest.param(540, 300, marks=pytest.mark.long)]
)
def test_after_a_change_everything_still_follows_from_the_whole_history(name, n_rounds, calm):
    learner, twin = started(name), adaptive_twin(parse(name), D, ROWS, n_hidden=HIDDEN, how=HOW)
    for i, (x, _, target, weight) in enumerate(rounds(n_rounds, noise=0.2)):
        row, dropped = int(i % 9 == 0), 0.4 * (i > calm)
        observe(learner, x, row, target - dropped, weight)
        twin.learn(row, x, target - dropped, weight)
        assert learner.changes[0] == twin.n_changes
        if learner.changes[0] == 0.0:
            grown_before = learner.forest.columns.copy()
    assert (learner.forest.columns != grown_before).any() == (name == "adaptive")
    assert twin.n_changes >= 1
    assert_allclose(learner.lately, [twin.lately(row) for row in range(ROWS)], atol=1e-9)
    assert_allclose(learner.now[:PRIOR], twin.weights(), atol=1e-8)
    for x, *_ in rounds(5, seed=9):
        agrees(learner, twin, x)


@pytest.mark.parametrize("name", ["adaptive", "adaptive-diagonal"])
def test_what_was_seen_before_a_change_counts_for_a_tenth(name):
    learner, x = started(name), np.append(np.zeros(D - 1), 1.0)
    for i in range(2000):
        observe(learner, x, i % 2, 0.8 + 0.1 * (i % 4 // 2), 1.0)
    said, spreads = predict(learner, x, 0), [spread(learner, x, a) for a in range(ROWS)]
    before = learner.now[NOISE]
    while learner.changes[0] == 0.0:
        observe(learner, x, 0, 0.5, 1.0)
    wider = [spread(learner, x, a) / learner.now[NOISE] for a in range(ROWS)]
    assert wider[1] == pytest.approx(np.sqrt(10.0) * spreads[1] / before, rel=0.02)
    assert_array_equal(learner.plain.diagonal[2], np.full(D - HIDDEN, 1.0 / 6.0))  # as at first
    assert learner.watched.tolist() == [0.0, 0.0, 0.0]
    for _ in range(200):
        observe(learner, x, 0, 0.5, 1.0)
    assert predict(learner, x, 0) < 0.65 < said


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.99])
def test_a_world_that_does_not_change_is_hardly_ever_said_to(rate):
    rng, learner, x = np.random.default_rng(8), started(), np.append(np.zeros(D - 1), 1.0)
    for reward in rng.random(20_000) < rate:
        observe(learner, x, 0, float(reward), 1.0)
    assert learner.changes[0] <= 1.0


@pytest.mark.parametrize("n", [10.0, WINDOW, 5 * WINDOW])
def test_evidence_weighs_no_more_after_a_while(n):
    learner = started(how=[0.01, -0.2, 0.3, *np.zeros(8)])
    learner.totals[:5] = n, 0.0, 0.0, -1.0, 1.0
    learner.errors[:] = n * 4.0 * np.array([0.05, 0.06, 0.08, 0.01])
    mix(learner)
    e = (n * np.array([0.05, 0.06, 0.08]) + 0.05) / (n + 0.2)
    expected = np.exp([0.0, 0.3, -0.2] - 0.005 * min(n, WINDOW) * np.log(e))
    assert_allclose(learner.now[[WIDE, PLAIN, AVERAGE]], expected / expected.sum(), rtol=1e-9)
    assert learner.now[FOREST] == 0.0  # while it is not grown


# --- what it promises ---------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "signal", "loses"), [(0.01, 0.5, AVERAGE), (0.5, 0.0, WIDE)])
def test_the_member_loses_that_does_not_suit_the_noise(noise, signal, loses):
    learner = taught(rounds(600, seed=2, noise=noise, signal=signal))
    assert learner.now[loses] == 0.0
    assert learner.now[2 - loses] > 0.3


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_it_finds_its_noise(noise):
    learner = taught(rounds(1500, seed=3, noise=noise))
    assert 0.9 * noise < learner.now[NOISE] < 1.3 * noise
    assert compiled(interface.noise)(learner) == learner.now[NOISE]


@pytest.mark.parametrize("name", ["adaptive", "adaptive-diagonal"])
def test_what_nothing_is_known_of_is_expected_to_earn_the_prior_mean(name):
    learner = started(name)
    for x, _, target, weight in rounds(50):
        assert predict(learner, x, 1) == pytest.approx(learner.now[PRIOR], abs=1e-12)
        assert spread_guess(learner, x, 1) == pytest.approx(spread(learner, x, 1), rel=1e-12)
        observe(learner, x, 0, target, weight)
    assert learner.now[PRIOR] == pytest.approx(np.mean([r[2] for r in rounds(50)]), abs=1e-3)


@pytest.mark.parametrize("power", [-300, -40, -1, 3, 40])
@given(seed=st.integers(0, 5))
def test_the_unit_of_rewards_does_not_matter(power, seed):
    history, unit = rounds(25, seed=seed), 2.0**power
    ours = taught(history)
    theirs = taught([(x, row, target * unit, weight) for x, row, target, weight in history])
    for x, *_ in rounds(5, seed=9):
        for row in range(ROWS):
            assert_allclose(predict(theirs, x, row), predict(ours, x, row) * unit, rtol=1e-9)
            assert_allclose(spread(theirs, x, row), spread(ours, x, row) * unit, rtol=1e-9)
    assert_allclose(theirs.now[:PRIOR], ours.now[:PRIOR], atol=1e-9)


@pytest.mark.parametrize("targets", [(0.0, 1e-200), (0.5, 0.5), (1e-170, 2e-170), (-1e6, 1e6)])
def test_targets_that_hardly_differ_or_differ_much_leave_finite_numbers(targets):
    learner = started()
    for i, (x, row, _, weight) in enumerate(rounds(40)):
        observe(learner, x, row, targets[i % 2], weight)
        assert all(np.isfinite(array).all() for array in arrays_of(learner))
        assert learner.now[NOISE] > 0.0
        assert learner.now[DEVIATION] > 0.0
        assert np.isfinite([predict(learner, x, row), spread(learner, x, row)]).all()


def test_the_first_target_is_no_error_of_anyone():
    learner = taught([(np.ones(D), 0, 0.9, 1.0)])
    assert_array_equal(learner.errors, np.zeros(4))
    observe(learner, np.ones(D), 0, 0.1, 1.0)
    assert (learner.errors > 0).all()


@pytest.mark.parametrize("name", ["adaptive", "adaptive-diagonal"])
def test_an_encouraged_model_predicts_and_spreads_as_if_it_had_seen_rounds(name):
    learner = taught(rounds(60), name=name)
    fresh = started(name)
    x = np.append(np.zeros(D - 1), 1.0)
    before = [spread(learner, x, row) for row in range(ROWS)]
    fresh.encourage(0, 0.8, 5.0)
    assert predict(fresh, x, 0) == pytest.approx(0.8)
    assert spread(fresh, x, 0) < spread(fresh, x, 1)
    assert spread_guess(fresh, x, 0) == pytest.approx(spread(fresh, x, 0))
    assert [spread(learner, x, row) for row in range(ROWS)] == before


@pytest.mark.parametrize("noise", [0.05, 0.4])
def test_guessed_spreads_come_close(noise):
    learner = taught(rounds(300, seed=5, noise=noise))
    ratios = [
        spread_guess(learner, x, row) / spread(learner, x, row)
        for x, *_ in rounds(100, seed=6)
        for row in range(ROWS)
    ]
    assert 0.8 < np.median(ratios) < 1.25
    assert np.quantile(np.abs(np.log(ratios)), 0.9) < 0.7


# --- limits -------------------------------------------------------------------------------------


def test_hidden_units_are_given_up_before_exactness_and_that_for_diagonals():
    learner = parse("adaptive/exact=500")
    assert learner.welcomes_hidden(n_rows=4, n_inputs=501)
    assert not learner.welcomes_hidden(n_rows=5, n_inputs=501)  # 5·501² > 2²⁰
    assert learner.fits(n_rows=16, n_inputs=501)
    assert not learner.fits(n_rows=17, n_inputs=501)
    assert not learner.fits(n_rows=2, n_inputs=502)
    assert (MAX_WIDENED, MAX_EXACT) == (2**20, 2**22)
    smaller = parse("adaptive/exact=5/ridge=3/strong=4").smaller()
    assert smaller == parse("adaptive-diagonal/ridge=3/strong=4")
    assert smaller.start(2, 9).exact is False
    assert learner.start(2, 9).exact is True


def test_the_plain_member_sees_no_hidden_units():
    learner = started()
    assert isinstance(learner, Adaptive)
    assert learner.wide.toward.shape == (ROWS, D)
    assert learner.plain.toward.shape == (ROWS, D - HIDDEN)
    history = [(x, row, target, w) for x, row, target, w in rounds(30)]
    other = []
    for x, row, target, w in history:
        moved = x.copy()
        moved[D - 1 - HIDDEN : -1] += 1.0
        other.append((moved, row, target, w))
    ours, theirs = taught(history), taught(other)
    assert_array_equal(ours.plain.ridge.weights, theirs.plain.ridge.weights)
    assert_array_equal(ours.average.ridge.weights, theirs.average.ridge.weights)
    assert not np.allclose(ours.wide.ridge.weights, theirs.wide.ridge.weights)
