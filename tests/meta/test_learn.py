import numpy as np
import pytest

from melee.explorers.melee_paper import PER_ACTION
from melee.meta.learn import Comparisons, Setting, choose_setting, features_used, fit, value_of
from melee.meta.rollouts import Examples

ALL = features_used("all")


def example_blocks(n_blocks=6, n=300, k=3, seed=0, noise=0.3):
    """Values that follow probability - 2·count, plus noise."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(n_blocks):
        features = rng.random((n, k, len(PER_ACTION)))
        values = features[:, :, 0] - 2 * features[:, :, 2] + noise * rng.normal(size=(n, k))
        blocks.append(Examples(features, values))
    return blocks


def test_weights_point_where_the_values_do():
    weights = fit(Comparisons.of(example_blocks(), ALL), Setting("standardize", 0.1), seed=0)
    assert weights[2] < 0 < weights[0]
    assert weights[2] / weights[0] == pytest.approx(-2.0, rel=0.2)
    assert np.abs(weights[[1, 4, 5]]).max() < 0.25 * weights[0]
    assert list(weights[[3, 6, 7]]) == [0.0, 0.0, 0.0]


def test_renaming_actions_in_the_data_changes_nothing_but_the_order_of_steps():
    blocks = example_blocks()
    renamed = [Examples(b.features[:, ::-1], b.values[:, ::-1]) for b in blocks]
    setting = Setting("standardize", 0.01)
    a = fit(Comparisons.of(blocks, ALL), setting, seed=0)
    b = fit(Comparisons.of(renamed, ALL), setting, seed=0)
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.999


def test_the_ablation_uses_the_probabilities_alone():
    weights = fit(
        Comparisons.of(example_blocks(), features_used("probabilities")),
        Setting("minmax", 0.1),
        seed=0,
    )
    assert weights[0] > 0
    assert not weights[1:].any()


def test_examples_count_by_what_is_at_stake():
    # Ten states say a, one says b; but the one is worth a hundred times more.
    features = np.zeros((11, 2, len(PER_ACTION)))
    features[:, 0, 0] = 1.0
    values = np.zeros((11, 2))
    values[:10, 0] = 0.01
    values[10, 1] = 1.0
    weights = fit(Comparisons.of([Examples(features, values)], ALL), Setting("minmax", 0.1), seed=0)
    assert weights[0] < 0


def test_aggregation_keeps_every_block():
    blocks = example_blocks(n_blocks=4, n=10)
    data = Comparisons.of(blocks, ALL)
    assert data.features.shape == (40, 3, 5)
    assert data.used == [0, 1, 2, 4, 5]
    assert list(np.bincount(data.groups)) == [10] * 4
    np.testing.assert_array_equal(data.values[10:20], blocks[1].values)


def test_the_setting_is_the_one_that_is_worth_most_on_held_out_tasks():
    data = Comparisons.of(example_blocks(), ALL)
    chosen = choose_setting(data, seed=0)
    folds = data.groups % 3

    def worth(setting):
        return sum(
            value_of(
                fit(data, setting, 0, folds != f)[ALL],
                data.features[folds == f],
                data.values[folds == f],
            )
            for f in range(3)
        )

    assert worth(chosen) >= worth(Setting("standardize", 0.001))
    assert worth(chosen) >= worth(Setting("minmax", 1.0))


def test_values_that_never_differ_give_no_preference():
    features = np.random.default_rng(0).random((20, 2, len(PER_ACTION)))
    data = Comparisons.of([Examples(features, np.ones((20, 2)))], ALL)
    assert not fit(data, Setting("standardize", 0.1), seed=0).any()


def test_ties_in_score_share_the_value():
    features = np.zeros((1, 2, 5))
    assert value_of(np.zeros(5), features, np.array([[1.0, 0.0]])) == 0.5


def test_one_kind_of_count_is_used_and_never_both():
    blocks = example_blocks()
    for counts, others in [("predicted", "played"), ("played", "predicted")]:
        weights = fit(
            Comparisons.of(blocks, features_used("all", counts)), Setting("minmax", 0.1), 0
        )
        assert weights[PER_ACTION.index(f"{counts} count")] != 0.0
        assert weights[PER_ACTION.index(f"{others} count")] == 0.0


def test_a_task_that_was_drawn_twice_is_held_out_as_one():
    blocks = example_blocks(n_blocks=5, n=10)
    data = Comparisons.of(blocks, ALL, tasks=[7, 3, 7, 12, 3])
    assert [int(g) for g in data.groups[::10]] == [1, 0, 1, 2, 0]
