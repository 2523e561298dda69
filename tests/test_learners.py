import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from melee.errors import InputError
from melee.learners import interface, linear
from melee.learners.registry import REGISTRY, parse
from melee.learners.ridge import DiagonalRidge, Ridge
from melee.learners.sgd import AdaptiveSgd, Sgd
from melee.testing import checks_for_explorer, checks_for_learner, growing
from tests.forms import compiled
from tests.seldom import seldom
from tests.twins import LEARNER_TWINS

dot, dot_row, quadratic_form = (
    compiled(linear.dot),
    compiled(linear.dot_row),
    compiled(linear.quadratic_form),
)

correct, predict, spread = (
    compiled(interface.correct),
    compiled(interface.predict),
    compiled(interface.spread),
)

D = 5
ROW = 1  # of the three models in every learner here; the others must stay as they are


def new(kind, setting=0.1, logistic=False):
    """A learner of three models."""
    if kind in (Ridge, DiagonalRidge):
        return kind.start(3, D, setting)
    return kind.start(3, D, setting, logistic)


def learn(learner, x, target, weight=1.0, row=ROW):
    correct(learner, x, row, target - predict(learner, x, row), weight)


def rounds(n, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * size
    X[rng.random((n, D)) < 0.1] = 0.0
    X[:, -1] = 1.0
    targets = np.clip(0.5 + 0.2 * X[:, 0] - 0.1 * X[:, 1] + 0.1 * rng.normal(size=n), 0, 1)
    return list(zip(X, targets, rng.choice([0.5, 1.0, 1.0, 3.0], n), strict=True))


numbers = st.floats(-5, 5).map(lambda v: round(v, 3))
contexts = st.lists(numbers, min_size=D - 1, max_size=D - 1).map(lambda v: np.array([*v, 1.0]))


# --- sums of products -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 21])
def test_sums_of_products_agree_with_numpy(n):
    rng = np.random.default_rng(n)
    a, b, rows = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(3, n))
    blocks = rng.normal(size=(2, n, n))
    blocks += blocks.transpose(0, 2, 1)
    assert_allclose(dot(a, b), a @ b, rtol=1e-12, atol=1e-14)
    assert_allclose(quadratic_form(blocks, 1, a), a @ blocks[1] @ a, rtol=1e-11, atol=1e-13)
    for row in range(3):
        assert dot_row(rows, row, b) == dot(rows[row].copy(), b)


# --- every learner ------------------------------------------------------------------------------

LEARNERS = ["sgd", "sgd/loss=logistic/learning_rate=0.5", "sgd/steps=adaptive",
            "sgd/steps=adaptive/loss=logistic/learning_rate=0.5", "ridge", "diagonal",
            "adaptive", "adaptive-diagonal", "adaptive/strong=0.3"]  # fmt: skip
# Under an explorer each kind of learner is compiled six times. Ridges and adaptive ones are those
# of linucb and melee, which have the same checks; an adaptive diagonal is made of what is here.
FEW = [name for name in LEARNERS if name.startswith(("sgd", "diagonal"))]
GROWING = {function.__name__ for function in growing.CHECKS}
PLAYED = {check.name for check in checks_for_explorer("epsilon-greedy")}
PLAYED -= {"settings_are_written_and_read_again", "bad_settings_are_refused"}
CHECKS = [
    pytest.param(
        check,
        id=f"{learner}-{check}",
        marks=seldom(check, learner, FEW, PLAYED) or seldom(check, learner, ("sgd",)),
    )
    for learner in LEARNERS
    for check in checks_for_learner(learner, LEARNER_TWINS[learner.partition("/")[0]])
]


@pytest.mark.parametrize("check", CHECKS)
def test_every_learner_passes(check):
    check()


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=str(check))
        for check in checks_for_explorer("epsilon-greedy:learner=adaptive-diagonal")
        if check.name in GROWING
    ],
)
def test_an_adaptive_diagonal_grows_and_is_saved(check, monkeypatch):
    """Interpreted, which takes a tenth of the time that compiling it takes."""
    monkeypatch.setenv("MELEE_COMPILE", "never")
    check()


def test_every_registered_learner_is_checked():
    assert {learner.partition("/")[0] for learner in LEARNERS} == set(REGISTRY.own)


def test_above_its_limits_a_ridge_is_replaced_by_its_diagonal():
    ridge = parse("ridge/exact=20/ridge=0.3")
    assert ridge.fits(n_rows=10, n_inputs=21)
    assert not ridge.fits(n_rows=10, n_inputs=22)
    assert not parse("ridge/exact=5000").fits(n_rows=100, n_inputs=1000)  # by memory
    assert ridge.smaller() == parse("diagonal/ridge=0.3")
    assert parse("sgd").smaller() == parse("sgd")


def test_a_learner_takes_the_settings_that_an_explorer_has_for_it():
    shared = {"ridge": 2.0, "exact": 9, "loss": "logistic"}
    assert parse("ridge", shared) == parse("ridge/ridge=2/exact=9")
    assert parse("sgd", shared, {"learning_rate": 0.3}) == parse(
        "sgd/loss=logistic/learning_rate=0.3"
    )
    assert parse("sgd/learning_rate=0.7", {}, {"learning_rate": 0.3}) == parse(
        "sgd/learning_rate=0.7"
    )
    with pytest.raises(InputError, match=r"learner 'ridge/ridge=3': ridge is a key of the explo"):
        parse("ridge/ridge=3", shared)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("rigde", r"unknown learner 'rigde'; did you mean 'ridge'\? Known: sgd, ridge, diagonal"),
        ("ridge/alpha=1", r"unknown parameter of ridge 'alpha'; known: ridge, exact"),
        ("ridge/ridge", r"learner 'ridge/ridge': 'ridge' is not of the form key=value"),
        ("ridge/ridge=0", r"ridge: ridge is 0\.0; expected a number, more than 0"),
        ("sgd/loss=hinge", r"unknown loss for sgd 'hinge'; known: squared, logistic"),
    ],
)
def test_a_text_that_makes_no_learner_says_what_is_wrong(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse(text)


ALL = [
    pytest.param(Sgd, 0.1, False, id="sgd"),
    pytest.param(Sgd, 0.5, True, id="sgd logistic"),
    pytest.param(AdaptiveSgd, 0.1, False, id="adaptive"),
    pytest.param(AdaptiveSgd, 0.5, True, id="adaptive logistic"),
    pytest.param(Ridge, 0.1, False, id="ridge"),
    pytest.param(DiagonalRidge, 0.1, False, id="diagonal"),
]


def copied(learner):
    return {k: v.copy() for k, v in learner._asdict().items() if isinstance(v, np.ndarray)}


def rescaled(learner, x):
    """The prediction after an adaptive learner has met the sizes in x, before its step."""
    size = np.maximum(np.abs(x), 1e-300)
    learner.weights[ROW] *= np.minimum(1.0, learner.scales[ROW] / size)
    np.maximum(learner.scales[ROW], np.abs(x), out=learner.scales[ROW])
    return predict(learner, x, ROW)


@pytest.mark.parametrize(("kind", "setting", "logistic"), ALL)
@given(data=st.data())
def test_a_step_never_passes_the_target(kind, setting, logistic, data):
    learner = new(kind, setting, logistic)
    size = st.sampled_from([0.01, 1.0, 100.0])
    for _ in range(4):
        x = data.draw(contexts) * data.draw(size)
        target, weight = data.draw(st.floats(0, 1)), data.draw(st.sampled_from([0.1, 1.0, 100.0]))
        error = target - predict(learner, x, ROW)
        before = predict(learner, x, ROW)
        if kind is AdaptiveSgd:
            before = rescaled(learner._replace(**copied(learner)), x)
        correct(learner, x, ROW, error, weight)
        after = predict(learner, x, ROW)
        low, high = min(before, target), max(before, target)
        slack = 1e-6 * (1 + abs(before))
        assert low - slack <= after <= high + slack


# --- steps that adapt -------------------------------------------------------------------------


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_adaptive_steps_do_not_see_the_scale_of_a_feature(factor, logistic):
    as_is = new(AdaptiveSgd, 0.3, logistic)
    rescaled = new(AdaptiveSgd, 0.3, logistic)
    for x, target, weight in rounds(200):
        y = x.copy()
        y[2] *= factor
        assert_allclose(predict(rescaled, y, ROW), predict(as_is, x, ROW), rtol=1e-9, atol=1e-12)
        learn(as_is, x, target, weight)
        learn(rescaled, y, target, weight)


def test_a_plain_step_does_see_the_scale_of_a_feature():
    as_is, rescaled = new(Sgd), new(Sgd)
    for x, target, weight in rounds(50):
        learn(as_is, x, target, weight)
        learn(rescaled, x * [1, 1, 100, 1, 1], target, weight)
    x = rounds(1, seed=1)[0][0]
    assert abs(predict(rescaled, x * [1, 1, 100, 1, 1], ROW) - predict(as_is, x, ROW)) > 0.01


@pytest.mark.parametrize("logistic", [False, True])
def test_adaptive_steps_learn_from_badly_scaled_features(logistic):
    learner = new(AdaptiveSgd, 0.3, logistic)
    scales, errors = np.array([1e6, 1e-6, 1e3, 1e-3, 1.0]), []
    for x, target, _ in rounds(800):
        errors.append(abs(predict(learner, x * scales, ROW) - target))
        learn(learner, x * scales, target)
    assert np.isfinite(errors).all()
    assert np.mean(errors[-200:]) < 0.15


def test_a_new_extreme_does_not_throw_an_adaptive_model_off():
    learner = new(AdaptiveSgd, 0.3)
    for x, target, _ in rounds(200):
        learn(learner, x, target)
    x = np.array([50.0, 0.0, 0.0, 0.0, 1.0])
    learn(learner, x, 0.7)
    assert abs(predict(learner, x, ROW) - 0.7) < 1.0


# --- ridge --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rounds", [0, 1, 50, 2000])
@pytest.mark.parametrize("penalty", [0.01, 0.1, 10.0])
def test_ridge_agrees_with_solving_from_scratch(n_rounds, penalty):
    learner = new(Ridge, penalty)
    history = rounds(n_rounds, seed=n_rounds)
    for x, target, weight in history:
        learn(learner, x, target, weight)
    X, y, w = (np.array([h[i] for h in history]) for i in range(3))
    X = X.reshape(-1, D)
    information = penalty * np.eye(D) + (X.T * w) @ X
    assert_allclose(
        learner.weights[ROW], np.linalg.solve(information, X.T @ (w * y)), rtol=1e-7, atol=1e-9
    )
    assert_allclose(learner.inverse[ROW] @ information, np.eye(D), atol=1e-7)
    for x, *_ in rounds(5, seed=99):
        expected = np.sqrt(x @ np.linalg.inv(information) @ x)
        assert_allclose(spread(learner, x, ROW), expected, rtol=1e-7)


def test_a_weight_counts_like_as_many_observations():
    once, thrice = new(Ridge), new(Ridge)
    for x, target, _ in rounds(20):
        learn(once, x, target, 3.0)
        for _ in range(3):
            learn(thrice, x, target)
    assert_allclose(once.weights, thrice.weights, atol=1e-9)
    assert_allclose(once.inverse, thrice.inverse, atol=1e-9)


@given(
    st.permutations(range(10)),
    st.lists(st.tuples(contexts, st.floats(0, 1)), min_size=10, max_size=10),
)
def test_the_order_of_rounds_does_not_matter_to_ridge(order, history):
    given_order, other_order = new(Ridge), new(Ridge)
    for i, j in enumerate(order):
        learn(given_order, *history[i])
        learn(other_order, *history[j])
    assert_allclose(given_order.weights, other_order.weights, atol=1e-8)
    assert_allclose(given_order.inverse, other_order.inverse, atol=1e-8)


@pytest.mark.parametrize("kind", [Ridge, DiagonalRidge])
@given(st.lists(contexts, min_size=2, max_size=8), contexts)
def test_spread_shrinks_with_every_observation(kind, history, x):
    assume(np.abs(x).max() > 0)
    learner = new(kind)
    last = spread(learner, x, ROW)
    assert last == pytest.approx(np.linalg.norm(x) / np.sqrt(0.1))
    for seen in history:
        learn(learner, seen, 0.5)
        now = spread(learner, x, ROW)
        assert now <= last * (1 + 1e-9)
        last = now


def test_huge_inputs_leave_a_ridge_of_use():
    learner = new(Ridge)
    for x, target, _ in rounds(200):
        learn(learner, x * [1e8, 1, 1, 1, 1], target)
    errors = [abs(predict(learner, x * [1e8, 1, 1, 1, 1], ROW) - y) for x, y, _ in rounds(100, 5)]
    assert np.mean(errors) < 0.2
