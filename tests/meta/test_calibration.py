from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from melee import calibration
from melee.calibration import platt_targets
from tests.forms import compiled

platt = compiled(calibration.platt)


def reference(scores, targets):
    """Slope and offset by SciPy on standardized scores, with an exact gradient and Hessian."""
    mean, deviation = scores.mean(), scores.std()
    design = np.column_stack([(scores - mean) / deviation, np.ones(len(scores))])

    def p(w):
        return 1 / (1 + np.exp(-design @ w))

    search: Any = minimize  # the stubs do not know this combination
    found = search(
        lambda w: np.sum(np.logaddexp(0, design @ w) - targets * (design @ w)),
        np.zeros(2),
        jac=lambda w: design.T @ (p(w) - targets),
        hess=lambda w: (design.T * (p(w) * (1 - p(w)))) @ design,
        method="trust-exact",
        options={"gtol": 1e-11},
    )
    a, b = found.x
    return a / deviation, b - a * mean / deviation


def noisy(seed, n=30, size=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    labels = (z + rng.normal(size=n) > 0.2).astype(float)
    return size * (z + 0.4), platt_targets(labels)


def probabilities(scores, fit):
    return 1 / (1 + np.exp(-(fit[0] * scores + fit[1])))


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e5])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scipy_at_any_scale_of_the_scores(seed, size):
    scores, targets = noisy(seed, size=size)
    fit = platt(scores, targets, 0.0, 0.0)
    slope, offset = reference(scores, targets)
    assert_allclose(fit[0] * size, slope * size, atol=1e-6)
    assert_allclose(fit[1], offset, atol=1e-6)


def test_agrees_with_scikit_learn_on_weighted_labels():
    # A target t is the label 1 with weight t and the label 0 with weight 1 - t.
    scores, targets = noisy(7)
    twice = np.concatenate([scores, scores])[:, None]
    labels = np.repeat([1, 0], len(scores))
    weights = np.concatenate([targets, 1 - targets])
    model = LogisticRegression(C=1e12, tol=1e-12, max_iter=1000).fit(twice, labels, weights)
    fit = platt(scores, targets, 0.0, 0.0)
    assert_allclose(fit, [model.coef_[0, 0], model.intercept_[0]], atol=1e-6)


def test_starting_elsewhere_ends_in_the_same_place():
    scores, targets = noisy(3)
    cold = platt(scores, targets, 0.0, 0.0)
    for start in [(5.0, -3.0), (-20.0, 10.0), (1e9, 1e9), (np.nan, 0.0)]:
        assert_allclose(platt(scores, targets, *start), cold, atol=1e-6)


def test_separable_scores_have_a_finite_fit():
    scores = np.linspace(-1, 1, 30)
    targets = platt_targets((scores > 0).astype(float))
    fit = platt(scores, targets, 0.0, 0.0)
    assert_allclose(fit, reference(scores, targets), atol=1e-6)
    assert 3 < fit[0] < 10


def test_one_class_gives_its_regularised_share_everywhere():
    scores, _ = noisy(1)
    fit = platt(scores, platt_targets(np.ones(30)), 0.0, 0.0)
    assert_allclose(probabilities(scores, fit), 31 / 32, atol=1e-6)


def test_constant_scores_give_the_mean_target_and_no_slope():
    _, targets = noisy(1)
    slope, offset = platt(np.full(30, 0.7), targets, 3.0, 1.0)
    assert slope == 0
    assert_allclose(1 / (1 + np.exp(-offset)), targets.mean(), atol=1e-12)


def test_targets_are_platts():
    assert_allclose(platt_targets(np.array([1.0, 1.0, 0.0])), [3 / 4, 3 / 4, 1 / 3])


@example([0.0, 0.0, 1.0], 0, 0.0, 8.0)  # it starts where the loss is flat
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    st.integers(0, 2**40),
    st.floats(-100, 100),
    st.floats(-100, 100),
)
def test_any_scores_get_finite_probabilities_that_match_their_mean(values, bits, slope, offset):
    scores = np.array(values)
    labels = np.array([float(bits >> i & 1) for i in range(len(values))])
    targets = platt_targets(labels)
    fit = platt(scores, targets, slope, offset)
    assert np.isfinite(fit).all()
    with np.errstate(over="ignore"):
        # The likelihood equations: fitted probabilities have the mean of the targets.
        assert_allclose(probabilities(scores, fit).mean(), targets.mean(), atol=1e-4)
