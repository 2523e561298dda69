import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from melee.datasets import paper_tasks, rectangles
from melee.errors import InputError


def stated_error(task):
    (error,) = re.findall(r"Bayes error ([\d.]+)", task.provenance)
    return float(error)


def error_of_the_best_rule(task):
    """Half the share of rows inside both squares, which are the bounding boxes of the classes."""
    x, label = task.contexts, task.rewards.argmax(axis=1)
    boxes = [(x[label == k].min(axis=0), x[label == k].max(axis=0)) for k in (0, 1)]
    low = np.maximum(boxes[0][0], boxes[1][0])
    high = np.minimum(boxes[0][1], boxes[1][1])
    return ((x >= low) & (x <= high)).all(axis=1).mean() / 2


def tolerance(error, n_rows):
    # Four standard errors of a share, halved, and the rows' distance from the squares' edges.
    return 4 * np.sqrt(2 * error * (1 - 2 * error) / n_rows) / 2 + 20 / n_rows


@pytest.mark.parametrize("bayes_error", [0.0, 0.01, 0.1, 0.25, 0.4, 0.499, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_rule_errs_as_often_as_asked(bayes_error, seed):
    task = rectangles(20_000, bayes_error=bayes_error, seed=seed)
    assert stated_error(task) == bayes_error
    assert error_of_the_best_rule(task) == pytest.approx(
        bayes_error, abs=tolerance(bayes_error, task.n_rows)
    )


def test_the_paper_tasks_have_the_errors_they_state_and_cover_the_interval():
    tasks = list(paper_tasks())
    assert len(tasks) == 82
    errors = np.array([stated_error(task) for task in tasks])
    found = np.array([error_of_the_best_rule(task) for task in tasks])
    assert (abs(found - errors) <= tolerance(errors, 3000)).all()
    # Uniform in [0, 0.5]: the mean of 82 draws lies within four standard errors of 0.25.
    assert abs(errors.mean() - 0.25) < 4 * (0.5 / np.sqrt(12)) / np.sqrt(82)
    assert errors.min() < 0.05
    assert errors.max() > 0.45


@given(st.integers(2, 61), st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_classes_are_balanced_and_each_lies_in_a_unit_square(n_rows, seed):
    task = rectangles(n_rows, seed=seed)
    counts = task.rewards.sum(axis=0)
    assert abs(counts[0] - counts[1]) == n_rows % 2
    for k in (0, 1):
        assert np.ptp(task.contexts[task.rewards[:, k] == 1], axis=0).max() <= 1.0


def test_the_odd_row_alternates_between_the_classes():
    assert [t.rewards[:, 0].sum() for t in paper_tasks(4, n_rows=5)] == [3, 2, 3, 2]


def test_rows_are_shuffled():
    labels = rectangles(1000).rewards.argmax(axis=1)
    # Independent neighbours differ half of the time: 500 of 999, give or take 4 * 16.
    assert abs(np.count_nonzero(np.diff(labels)) - 500) < 64


def test_tasks_are_diverse_and_repeatable():
    tasks = list(paper_tasks(10, n_rows=30, seed=3))
    again = list(paper_tasks(12, n_rows=30, seed=3))
    assert [t.content_hash for t in tasks] == [t.content_hash for t in again[:10]]
    assert len({t.content_hash for t in again}) == 12
    assert len({t.name for t in again}) == 12
    centres = [t.rewards.T @ t.contexts / 15 for t in tasks]
    directions = {tuple(np.sign(c[1] - c[0])) for c in centres}
    assert len(directions) >= 3


@pytest.mark.parametrize("bayes_error", [-0.1, 0.51, float("nan")])
def test_an_impossible_error_is_refused(bayes_error):
    with pytest.raises(InputError, match=r"bayes_error is .*from 0 to 0\.5"):
        rectangles(bayes_error=bayes_error)


def test_a_single_row_is_refused():
    with pytest.raises(InputError, match="n_rows is 1; two classes need at least 2 rows"):
        rectangles(1)
