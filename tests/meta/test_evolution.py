import json

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from melee.meta.evolution import Evolution


def climb(slope, n_generations, seed=0, start=None, noise=0.0):
    """The search after some generations on a function to be maximised."""
    search = Evolution.start(np.full(6, 2.0), 0.5) if start is None else start
    for _ in range(n_generations):
        candidates = search.ask(12, seed)
        luck = np.random.default_rng(search.generation).normal(size=12)
        search = search.tell(candidates, np.array([slope(c) for c in candidates]) + noise * luck)
    return search


def bowl(x):
    return -float(x @ x)


def ellipsoid(x):
    return -float((10.0 ** np.linspace(0, 4, len(x)) * x**2).sum())


def test_it_finds_the_top_of_a_bowl():
    assert np.abs(climb(bowl, 120).mean).max() < 1e-4


def test_it_learns_that_some_directions_are_steeper_than_others():
    found = climb(ellipsoid, 400)
    assert np.abs(found.mean).max() < 1e-3
    sizes = np.sqrt(np.diag(found.covariance))
    assert sizes[0] > 20 * sizes[-1]


def test_it_climbs_through_noise():
    before, after = np.full(6, 2.0), climb(bowl, 60, noise=1.0).mean
    assert bowl(after) > 0.1 * bowl(before)


def test_candidates_come_in_mirrored_pairs_around_the_mean():
    search = climb(ellipsoid, 5)
    candidates = search.ask(8, seed=3)
    assert_allclose(candidates[:4] + candidates[4:], np.tile(2 * search.mean, (4, 1)))


def test_the_first_candidates_have_the_covariance_that_was_asked_for():
    search = Evolution.start(np.zeros(3), 0.3)
    draws = np.concatenate([search.ask(400, seed) for seed in range(20)])
    assert_allclose(np.cov(draws.T), 0.09 * np.eye(3), atol=0.006)


def test_the_mean_moves_to_the_weighted_mean_of_the_better_half():
    search = Evolution.start(np.zeros(2), 1.0)
    candidates = search.ask(4, seed=0)
    fitness = np.array([0.0, 3.0, 1.0, 2.0])
    weights = np.log(2.5) - np.log([1.0, 2.0])
    weights /= weights.sum()
    moved = search.tell(candidates, fitness).mean
    assert_allclose(moved, weights[0] * candidates[1] + weights[1] * candidates[3])


def test_a_checkpoint_goes_on_to_the_same_bits():
    search = climb(ellipsoid, 7)
    again = Evolution.from_dict(json.loads(json.dumps(search.as_dict())))
    a, b = climb(ellipsoid, 5, start=search), climb(ellipsoid, 5, start=again)
    assert_array_equal(a.mean, b.mean)
    assert_array_equal(a.covariance, b.covariance)
    assert a.step == b.step
