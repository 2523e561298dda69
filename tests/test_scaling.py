"""One arithmetic for all that standardizes, in its two forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from melee.features import SETTLED, WATCHED, FeatureMap
from melee.scaling import standardize
from melee.standardizing import LIMIT, is_constant, measure, scaled

COLUMNS = {
    "usual": lambda rng, n: rng.normal(7.0, 3.0, n),
    "huge": lambda rng, n: 1e100 * rng.random(n),
    "tiny": lambda rng, n: 1e-100 * rng.random(n),
    "one value": lambda rng, n: np.full(n, 0.1),
    "one value and rounding": lambda rng, n: 1e6 * (1.0 + 1e-14 * rng.random(n)),
    "zero": lambda rng, n: np.zeros(n),
}


def table(n):
    rng = np.random.default_rng(n)
    return np.column_stack([column(rng, n) for column in COLUMNS.values()])


@pytest.mark.parametrize("n", [1, 2, 30, 256])
def test_kernels_and_tables_standardize_alike(n):
    rows = table(n)
    found = np.empty((2, rows.shape[1]))
    standardize(np.vstack([rows, rows + 1.0]), n, 9.0, found)  # later rows do not count
    shift, scale, constant = measure(rows)
    assert_allclose(found[0], shift, rtol=1e-12)
    assert_allclose(found[1], np.where(constant, 9.0, scale), rtol=1e-9)
    expected = [n == 1, n == 1, n == 1, True, True, True]
    assert_array_equal(constant, expected)


@pytest.mark.parametrize("method", ["standardize", "minmax"])
def test_a_constant_column_becomes_zero_and_is_not_blown_up(method):
    rows = table(30)
    shift, scale, constant = measure(rows, method)
    x = (rows - shift) * scale
    assert_allclose(x[:, constant], 0.0, atol=1e-7)
    assert (np.ptp(x[:, ~constant], axis=0) > 0.9).all()


@pytest.mark.parametrize(
    ("value", "expected"), [(7.0, 0.0), (8.0, 2.0), (9.4, 4.8), (10.0, LIMIT), (-1e300, -LIMIT)]
)
def test_a_value_is_shifted_scaled_and_cut(value, expected):
    assert_allclose(scaled(value, 7.0, 2.0, LIMIT), expected)


def test_late_numbers_of_an_agent_are_standardized_like_columns_of_a_table():
    values = np.random.default_rng(0).normal(1000.0, 7.0, (WATCHED, 1))
    features = FeatureMap()
    for i in range(SETTLED):
        features.learn({"hour": float(i % 24)})
    for value in values[:, 0]:
        features.learn({"hour": 1.0, "price": float(value)})
    shift, scale, _ = measure(values)
    row = np.empty(features.n_features)
    for price in (990.0, 1000.0, 1e9):
        features.encode({"hour": 1.0, "price": price}, row)
        expected = scaled(price, shift[0], scale[0], LIMIT)
        assert_allclose(row[features.names.index("price")], expected, rtol=1e-9)


def test_a_spread_is_rounding_only_beside_values_that_are_large():
    assert is_constant(1e-7, 1e6)
    assert not is_constant(1e-7, 1e4)
    assert is_constant(0.0, 0.0)
