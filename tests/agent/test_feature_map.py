"""The map from contexts to rows: what it learns, what it keeps, when it hashes."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from melee.errors import InputError, MeleeWarning
from melee.features import SETTLED, WATCHED, FeatureMap


def encoded(features, context):
    row = np.full(features.n_features, np.nan)
    features.encode(context, row)
    return dict(zip(features.names, row.tolist(), strict=bool(features.names)))


def learned(*contexts, **settings):
    features = FeatureMap(**settings)
    for context in contexts:
        features.learn(context)
    return features


def test_numbers_texts_and_groups_have_features_of_their_own():
    features = learned(*[{"age": 30.0, "device": "phone", "tags": ("a", "b")}] * 3)
    row = encoded(features, {"age": 41.0, "device": "phone", "tags": ("b",)})
    assert row["age"] == 41.0
    assert row["device=phone"] == row["tags=b"] == 1.0
    assert row["tags=a"] == row["device=(rare)"] == 0.0


def test_a_level_shares_a_feature_until_it_has_been_learned_from_three_times():
    features = learned({"device": "phone"}, {"device": "phone"})
    assert features.names == ["device=(rare)"]
    assert encoded(features, {"device": "phone"}) == {"device=(rare)": 1.0}
    assert encoded(features, {"device": "never seen"}) == {"device=(rare)": 1.0}
    features.learn({"device": "phone"})
    assert encoded(features, {"device": "phone"}) == {"device=(rare)": 0.0, "device=phone": 1.0}
    assert encoded(features, {"device": "other"}) == {"device=(rare)": 1.0, "device=phone": 0.0}


@pytest.mark.parametrize("absent", [{}, {"age": None}])
def test_missing_is_a_value_with_the_mean_in_place_of_the_number(absent):
    features = learned({"age": 20.0, "hour": 1.0}, {"age": 40.0, "hour": 2.0}, {"hour": 2.0})
    row = encoded(features, {"hour": 2.0, **absent})
    assert row["age is missing"] == 1.0
    assert row["age"] == 30.0
    assert encoded(features, {"age": 50.0, "hour": 2.0})["age is missing"] == 0.0


def test_a_column_that_appears_later_says_where_it_is_present():
    features = learned({"hour": 1.0}, {"hour": 2.0, "age": 50.0})
    assert encoded(features, {"hour": 3.0})["age is present"] == 0.0
    assert encoded(features, {"hour": 3.0, "age": 20.0})["age is present"] == 1.0
    # The past has the value that is worth nothing in the new feature.
    new = features.names.index("age")
    assert features.filled[new] == 50.0
    assert features.filled[features.names.index("age is present")] == 0.0


def test_a_late_number_counts_as_nothing_until_its_scale_is_known():
    features = learned(*[{"hour": float(i % 24)} for i in range(SETTLED)])
    values = np.random.default_rng(0).normal(1000.0, 7.0, WATCHED)
    for i, value in enumerate(values):
        assert encoded(features, {"hour": 1.0, "price": float(value)}).get("price", 0.0) == 0.0, i
        features.learn({"hour": 1.0, "price": float(value)})
    row = encoded(features, {"hour": 1.0, "price": 1007.0})
    assert_allclose(row["price"], (1007.0 - values.mean()) / values.std())
    assert encoded(features, {"hour": 1.0, "price": 1e9})["price"] == 5.0


def test_a_late_number_that_does_not_vary_at_first_is_watched_on():
    features = learned(*[{"hour": float(i % 24)} for i in range(SETTLED)])
    for _ in range(100):
        features.learn({"hour": 1.0, "purchases": 0.0})
    features.learn({"hour": 1.0, "purchases": 3.0})
    features.learn({"hour": 1.0, "purchases": 1.0})
    rows = [encoded(features, {"hour": 1.0, "purchases": n})["purchases"] for n in (0.0, 1.0, 2.0)]
    assert rows[0] < rows[1] < rows[2]


def test_encoding_changes_nothing():
    features = learned({"age": 30.0, "device": "phone"})
    before = json.dumps(features.to_json())
    encoded(features, {"age": 1.0, "device": "tablet", "new": "x", "tags": ("y",)})
    assert json.dumps(features.to_json()) == before


def test_beyond_the_cap_new_levels_are_hashed_and_one_warning_says_so():
    features = FeatureMap(max_features=16, rare=1)
    notices = []
    for i in range(100):
        features.learn({"user": f"u{i}", f"n{i}": 1.0})
        if features.notice is not None:
            notices.append(features.notice)
            features.notice = None
    assert len(notices) == 1
    assert "share 2 features by hashing" in notices[0]
    assert features.n_features == 16
    rows = [list(encoded(features, {"user": f"u{i}"}).values()) for i in range(50, 100)]
    assert all(np.isfinite(row).all() for row in rows)
    assert len({tuple(row) for row in rows}) > 1  # buckets and signs tell some of them apart
    assert any(row[-2] or row[-1] for row in rows)


def test_beyond_the_cap_rare_levels_are_hashed_too():
    features = FeatureMap(max_features=40)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        features.learn({"city": f"c{int(rng.integers(500))}"})
    first = features.first_bucket
    rows = np.array([list(encoded(features, {"city": f"c{i}"}).values()) for i in range(500)])
    own = rows[:, :first].sum(axis=1) > 0
    assert 30 <= own.sum() <= 35  # those that came often enough in time
    assert (np.abs(rows[~own][:, first:]).sum(axis=1) == 1.0).all()  # each of the others a bucket
    assert (np.abs(rows[:, first:]).sum(axis=0) > 0).all()  # and each bucket someone


def test_levels_are_still_learned_after_thousands_that_came_twice():
    features = FeatureMap()
    for i in range(3400):
        features.learn({"user": f"u{i // 2}", "device": "phone"})
    for _ in range(3):
        features.learn({"user": "regular", "device": "tablet"})
    assert {"user=regular", "device=tablet"} <= set(features.names)


def test_what_is_counted_of_rare_levels_is_bounded():
    features = FeatureMap(max_features=10, rare=3)
    for i in range(5000):
        features.learn({"id": f"{i}"})
    assert len(features.candidates) <= 81
    assert features.n_features <= 10


def test_the_first_context_says_whether_all_are_named_or_numbers():
    features = learned(np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="is 3 numbers; expected 2 numbers"):
        features.learn(np.zeros(3))
    with pytest.raises(InputError, match="is a dict of names and values; expected 2 numbers"):
        features.learn({"age": 1.0})
    with pytest.raises(InputError, match="is 2 numbers; expected a dict"):
        learned({"age": 1.0}).learn(np.zeros(2))


contexts = st.lists(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.one_of(
            st.none(),
            st.floats(-1e6, 1e6),
            st.sampled_from(["x", "y", "z"]),
            st.lists(st.sampled_from(["p", "q", "r"]), max_size=3).map(tuple),
        ),
        max_size=4,
    ),
    max_size=30,
)


@given(contexts, contexts)
def test_a_map_that_was_written_and_read_goes_on_alike(first, then):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        features = learned(*first, max_features=12)
        other = FeatureMap.from_json(json.loads(json.dumps(features.to_json())))
        for context in then:
            features.learn(context)
            other.learn(context)
            assert encoded(features, context) == encoded(other, context)
    assert features.to_json() == other.to_json()


@given(contexts, contexts)
def test_where_encoding_finds_nothing_new_learning_changes_no_row(first, then):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        features = learned(*first)
        for context in then:
            row = np.zeros(features.n_features)
            nothing_new = features.encode(context, row)
            revision = features.revision
            features.learn(context)
            if nothing_new:
                assert features.revision == revision
                assert (
                    list(encoded(features, context).values()) == row.tolist() or not features.names
                )


@given(contexts)
def test_features_only_ever_join_at_the_end(given_contexts):
    features = FeatureMap(max_features=12)
    names: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        for context in given_contexts:
            features.learn(context)
            assert features.names[: len(names)] == names
            names = list(features.names)
            assert len(names) <= 12
