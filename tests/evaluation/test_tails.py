"""Tails beside SciPy's, over all that logs can ask for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from melee.evaluation.tails import (
    chi_square_tail,
    kolmogorov_tail,
    normal_tail,
    poisson_at_least,
    poisson_at_most,
    t_quantile,
)

EXACT = 1e-12


def test_normal_tails_are_scipys():
    z = np.linspace(-8.0, 30.0, 400)
    assert_allclose([normal_tail(one) for one in z], special.ndtr(-z), rtol=EXACT)


@pytest.mark.parametrize("mean", [1e-6, 0.01, 0.5, 3.0, 9.9, 40.0, 1e3, 12_345.6, 2e5])
def test_poisson_tails_are_scipys(mean):
    around = mean + np.sqrt(mean) * np.linspace(-6.0, 6.0, 25)
    counts = np.unique(np.concatenate([[0, 1, 2, 5, 20], np.maximum(around.round(), 0)]))
    at_most = [poisson_at_most(one, mean) for one in counts]
    at_least = [poisson_at_least(one, mean) for one in counts]
    assert_allclose(at_most, special.pdtr(counts, mean), rtol=EXACT, atol=1e-200)
    more = np.where(counts > 0, special.pdtrc(np.maximum(counts - 1, 0), mean), 1.0)
    assert_allclose(at_least, more, rtol=EXACT, atol=1e-200)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 20, 50])
def test_chi_square_tails_are_scipys(freedom):
    x = np.concatenate([[0.0, 1e-9], np.geomspace(0.01, 1000.0, 200)])
    tails = [chi_square_tail(one, freedom) for one in x]
    assert_allclose(tails, special.chdtrc(freedom, x), rtol=EXACT)


def test_kolmogorov_tails_are_scipys():
    y = np.concatenate([[0.0, 1e-3, 1.0], np.linspace(0.02, 15.0, 500)])
    assert_allclose([kolmogorov_tail(one) for one in y], special.kolmogorov(y), rtol=EXACT)


@pytest.mark.parametrize("confidence", [0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9])
def test_t_quantiles_are_scipys(confidence):
    freedom = np.array([1, 2, 3, 4, 5, 9, 31, 32, 33, 199, 1999, 20_000, 20_001, 10**7])
    found = np.array([t_quantile(int(one), confidence) for one in freedom])
    # Of the tail, since 0.5 + confidence / 2 has lost digits where that is near 1.
    assert_allclose(found, -special.stdtrit(freedom, 0.5 * (1.0 - confidence)), rtol=EXACT)


@pytest.mark.parametrize("freedom", [1, 5, 20_001])
def test_t_quantiles_exist_for_every_confidence_there_is(freedom):
    confidences = [5e-324, 1e-17, 1e-15, 1e-9, 0.5, 1.0 - 1e-12, np.nextafter(1.0, 0.0)]
    found = [t_quantile(freedom, one) for one in confidences]
    assert np.isfinite(found).all()
    assert found[0] == 0.0
    assert np.all(np.diff(found[3:]) > 0.0)
