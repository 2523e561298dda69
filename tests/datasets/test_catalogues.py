"""Tasks whose actions have features."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import melee
from melee.datasets.catalogues import KIOSKS, Kiosk, catalogue_task, draw_catalogue, value_task
from melee.errors import DataError, InputError
from melee.rows import Rows
from melee.task import Task


def small():
    rng = np.random.default_rng(0)
    kiosk = Kiosk(n_rounds=400, n_open=6, life=100, rate=0.3)
    return draw_catalogue(kiosk, "small", rng)


def test_values_are_the_middles_of_bins_and_pay_by_how_near_they_are():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0.0, 10.0, 4.0]})
    task = value_task(frame, n_values=5)
    assert [task.features_of(0, a) for a in range(2)] == [{"value": 1.0}, {"value": 3.0}]
    assert_allclose(task.rewards[2], [0.7, 0.9, 0.9, 0.7, 0.5])
    assert task.live


@pytest.mark.parametrize("target", [["a", "b"], [1.0, None], [2.0, 2.0]])
def test_a_target_that_is_no_number_is_refused(target):
    with pytest.raises(DataError, match="expected a number to be chosen"):
        value_task(pd.DataFrame({"x": [1.0, 2.0], "y": target}))


def test_a_suite_of_values_is_made_of_a_directory(tmp_path):
    pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}).to_csv(tmp_path / "prices.csv", index=False)
    suite = melee.load_suite(f"values:{tmp_path}")
    assert suite.names == ["prices"]
    assert suite.entry("prices").load().n_actions == 100


def test_a_catalogue_has_so_many_articles_at_a_time_and_pays_as_it_says():
    task = small()
    assert task.open is not None
    assert task.expected is not None
    assert (task.open.sum(axis=1) == 6).all()
    assert task.n_actions > 12
    assert abs(task.expected.mean() - 0.3) < 0.02
    assert abs((task.rewards - task.expected).mean()) < 0.01
    assert set(melee.load_suite("catalogue").names) == set(KIOSKS)


MADE = """
from melee.datasets.catalogues import catalogue_task
print(catalogue_task("news-40").content_hash)
"""


def test_a_catalogue_is_the_same_to_the_bit_with_any_number_of_threads():
    """Workers of a benchmark have one, and the process that plans has as many as cores."""
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MADE], env=one, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == catalogue_task("news-40").content_hash


def test_features_are_part_of_what_is_played():
    one, other = (
        Task("t", [[0.0], [1.0]], [[1.0, 0.0]] * 2, action_rows=Rows({"v": np.array(values)}))
        for values in ([1.0, 2.0], [1.0, 3.0])
    )
    plain = Task("t", [[0.0], [1.0]], [[1.0, 0.0]] * 2)
    assert len({task.content_hash for task in (one, other, plain)}) == 3
    each = Rows({"v": np.arange(4.0)})
    task = Task("t", [[0.0], [1.0]], [[1.0, 0.0]] * 2, action_rows=each)
    assert task.features_of(1, 0) == {"v": 2.0}
    assert plain.features_of(1, 0) == {}
    with pytest.raises(InputError, match="action_rows has 3 rows"):
        Task("t", [[0.0]], [[1.0, 0.0]], action_rows=Rows({"v": np.arange(3.0)}))
    with pytest.raises(InputError, match="have features"):
        melee.simulate(small())


def test_an_agent_that_is_shown_features_earns_more():
    task = small()
    shown, hidden = (melee.rehearse(task, "linucb", features=f).share for f in (True, False))
    assert shown is not None
    assert hidden is not None
    assert shown > hidden + 0.05
    blind = melee.rehearse(task, "cover:policies=2", max_rounds=30)  # it takes no candidates
    assert len(blind.actions) == 30


def test_features_by_row_and_action_are_met():
    rng = np.random.default_rng(1)
    near = rng.random((130, 4))
    rows = Rows({"near": near.ravel()})
    task = Task("near", np.zeros((130, 1)), near, action_rows=rows)
    run = melee.rehearse(task, "epsilon-greedy:learner=ridge")
    assert run.rewards[-50:].mean() > 0.7
