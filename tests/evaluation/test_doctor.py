"""The doctor: each fault is found, by its own check, and sound logs are left in peace."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from melee.evaluation import Finding, examine
from melee.evaluation.doctor.findings import count_p_value
from melee.history import History, Round, SkippedRow
from tests.evaluation.worlds import ACTIONS, clean_log, without_most_failures


def faults(history):
    return [one for one in examine(history) if one.level != "ok"]


def replaced(history, **fields):
    """The log with fields replaced by functions of the number and the round."""
    return History(
        dataclasses.replace(one, **{name: value(i, one) for name, value in fields.items()})
        for i, one in enumerate(history)
    )


def with_column(name, value):
    """The clean log with one more column; a value of None is left out."""

    def context(i, one):
        made = value(i)
        return one.context if made is None else {**one.context, name: made}

    return replaced(clean_log(), context=context)


def without_pmf(history, probability):
    """Only the probability of the chosen action, changed."""
    return replaced(history, probability=probability, pmf=lambda i, one: None)


def chosen_at_random():
    """Logged as if the policy had been followed, but the choice was uniform."""
    rng = np.random.default_rng(0)

    def choose(one):
        action = str(rng.choice(ACTIONS))
        return dataclasses.replace(one, action=action, probability=one.pmf[action])

    return History(choose(one) for one in clean_log())


def swapped_in_turns():
    """Each action is chosen as often as logged in all, but not when it is said to be."""
    uniform = [0.55, 0.15, 0.15, 0.15]
    rng = np.random.default_rng(0)
    rounds = []
    for i, one in enumerate(clean_log(2000)):
        pmf = dict(zip(np.roll(ACTIONS, i).tolist(), uniform, strict=True))
        action = str(rng.choice(ACTIONS))
        rounds.append(
            dataclasses.replace(one, action=action, pmf=pmf, probability=pmf[action], reward=i % 2)
        )
    return History(rounds)


def with_problems(n):
    history = clean_log()
    history.problems = [SkippedRow(7 + i, "the action is missing") for i in range(n)]
    return history


def with_other_rows():
    history = clean_log()
    unread = [SkippedRow(7 + i, f"the reward is {i}x; expected a number") for i in range(2)]
    others = [SkippedRow(20 + i, "a checkpoint", is_sound=True) for i in range(50)]
    history.problems = unread + others
    return history


def repeated(history, *, keep_id):
    rounds = []
    for i, one in enumerate(history):
        one = one if keep_id else dataclasses.replace(one, id=None)
        rounds += [one, one] if i % 100 == 50 else [one]
    return History(rounds)


def drifting_rewards(direction):
    rng = np.random.default_rng(0)
    rises = lambda i: i >= 300 if direction == "up" else i < 300  # noqa: E731
    return replaced(
        clean_log(), reward=lambda i, one: float(rng.random() < (0.6 if rises(i) else 0.3))
    )


def rarely_played(chance):
    rng = np.random.default_rng(0)
    pmf = {"usual": 1.0 - chance, "rare": chance}
    actions = np.where(rng.random(600) < chance, "rare", "usual").tolist()
    return History(
        Round({"age": rng.normal()}, one, float(rng.integers(2)), pmf[one], pmf=pmf)
        for one in actions
    )


def rare_clicks(n_clicks):
    """Many rounds of uniform choices, and so many clicks, evenly spread."""
    rng = np.random.default_rng(0)
    every = 3000 // n_clicks
    return History(
        Round({"age": rng.normal()}, int(rng.integers(2)), float(i % every == 7), 0.5)
        for i in range(every * n_clicks)
    )


def from_round(start, of_round):
    """The clean log, with rewards changed from some round on."""
    return replaced(clean_log(), reward=lambda i, one: of_round(one) if i >= start else one.reward)


def visitors(n_visitors, *, shuffled=False, matter=True, with_page=False):
    """Thirty rounds each of visitors who have a taste of their own, or not."""
    rng = np.random.default_rng(0)
    rounds: list[Round] = []
    for _ in range(n_visitors):
        age, load = float(rng.integers(18, 80)), rng.normal()
        rate = float(rng.choice([0.1, 0.8])) if matter else 0.45
        name = f"v{len(rounds)}"
        for _ in range(30):
            context: Any = {"age": age}
            context |= {"visitor": name, "page": rng.normal()} if with_page else {"load": load}
            reward, action = float(rng.random() < rate), int(rng.integers(2))
            rounds.append(Round(context, action, reward, 0.5, id=str(len(rounds))))
    order = rng.permutation(len(rounds)) if shuffled else range(len(rounds))
    return History(rounds[i] for i in order)


def little_floor():
    """Twelve actions, of which one is preferred, a floor of 0.02, and few clicks."""
    rng = np.random.default_rng(0)
    p = np.full(12, 0.02 / 12)
    p[0] += 0.98
    pmf = dict(enumerate(p.tolist()))
    return History(
        Round(rng.normal(size=1), int(a), float(rng.random() < 0.025), pmf[int(a)], pmf=pmf)
        for a in rng.choice(12, size=12_000, p=p)
    )


BESIDES = {
    "few rounds": {"support", "power"},
    "only clicks from some round on": {"drift of rewards"},
    "38 clicks": {"power"},
    "little floor": {"support"},
    "rarely played": {"power"},
    "visitor ids": {"levels", "drift of contexts"},
    "visitors": {"drift of contexts"},  # sixty are too few for halves to be alike
    "too small probabilities": {"power"},
    "rewards in another unit": {"power"},
}
FAULTS = {
    "one unreadable row": (with_problems(1), "warning", "rows", "1 of 601 rows"),
    "many unreadable rows": (with_problems(50), "error", "rows", "50 of 650 rows .* row 7 the fi"),
    "rows without a round": (
        with_other_rows(),
        "warning",
        "rows",
        "50 of 652 rows hold no round, row 20 the first: a checkpoint",
    ),
    "the same fault twice": (
        with_other_rows(),
        "warning",
        "rows",
        "2 of 652 rows could not be read, row 7 the first: the reward is 0x",
    ),
    "rounds that stand for less than one": (
        replaced(clean_log(), stands_for=lambda i, one: [0.5, np.nan][i % 2] if i > 597 else 1.0),
        "error",
        "dropped rounds",
        "2 rounds stand for a number of rounds that cannot be, round 598 the first",
    ),
    "few rounds": (clean_log(12)[:12], "error", "size", "12 rounds"),
    "missing rewards": (
        replaced(clean_log(), reward=lambda i, one: np.nan if i in (4, 9) else one.reward),
        "error",
        "rewards",
        "2 rewards are missing, that of round 4 the first",
    ),
    "rewards outside": (
        replaced(clean_log(), reward=lambda i, one: 5e200 if i == 4 else one.reward),
        "error",
        "rewards",
        r"1 rewards are not from -1e\+100 to 1e\+100: they go from 5e\+200 to 5e\+200, .* round 4",
    ),
    "constant rewards": (
        replaced(clean_log(), reward=lambda i, one: 0.0),
        "warning",
        "rewards",
        "every reward is 0",
    ),
    "only clicks": (
        replaced(clean_log(), reward=lambda i, one: 1.0),
        "error",
        "missing zeros",
        "every reward is 1, none is 0",
    ),
    "only clicks from some round on": (
        from_round(400, lambda one: 1.0),
        "error",
        "missing zeros",
        r"none of the last 20\d rewards is 0, but \d\d of as many before are",
    ),
    "38 clicks": (
        rare_clicks(38),
        "warning",
        "rare rewards",
        "only 38 of 2,964 rewards are other than 0",
    ),
    "rewards in another unit": (
        from_round(350, lambda one: 100.0 * one.reward),
        "error",
        "unit of rewards",
        "typically 1 before round 35. and 100 from there on, as if in another unit",
    ),
    "little floor": (
        little_floor(),
        "warning",
        "power",
        r"earns 0\.\d{3} \(1,\d\d\d%\) more or less than the logged 0\.02",
    ),
    "column in another unit": (
        with_column("price", lambda i: (1.0 + i % 13) * (100.0 if i >= 420 else 1.0)),
        "warning",
        "units",
        r"price \(typically 7 before round 420, 700 from there on\)",
    ),
    "visitors": (
        visitors(60),
        "warning",
        "independence",
        r"1,800 rounds have 60 different contexts, .* worth \d{2,3} independent rounds",
    ),
    "visitors in any order": (
        visitors(60, shuffled=True),
        "warning",
        "independence",
        "1,800 rounds have 60 different contexts",
    ),
    "visitor ids": (
        visitors(120, with_page=True),
        "warning",
        "independence",
        "3,600 rounds have 120 different values of visitor",
    ),
    **{
        f"probability {wrong}": (
            without_pmf(clean_log(), lambda i, one, w=wrong: w if i == 3 else one.probability),
            "error",
            "probabilities",
            f"1 probabilities are {words}, that of round 3 the first",
        )
        for wrong, words in [(np.nan, "missing"), (0.0, "0 or less"), (1.5, "above 1")]
    },
    "no exploration": (
        without_pmf(clean_log(), lambda i, one: 1.0),
        "error",
        "exploration",
        "every round was logged with probability 1",
    ),
    "pmf does not sum to 1": (
        replaced(
            clean_log(), pmf=lambda i, one: dict.fromkeys(ACTIONS, 0.5) if i == 8 else one.pmf
        ),
        "error",
        "pmfs",
        "1 rounds have a pmf .* round 8 the first: the pmf sums to 2",
    ),
    "pmf of another choice": (
        replaced(clean_log(), probability=lambda i, one: 0.5 if i == 8 else one.probability),
        "error",
        "pmfs",
        "1 rounds have a pmf .* and the probability is 0.5",
    ),
    "wrong probabilities": (
        chosen_at_random(),
        "error",
        "calibration",
        "chosen .* times, but logged",
    ),
    "probabilities in wrong rounds": (
        swapped_in_turns(),
        "error",
        "calibration",
        "actions of probability 0.5 to 0.65: chosen",
    ),
    "too small probabilities": (
        without_pmf(clean_log(), lambda i, one: one.probability / 2),
        "error",
        "calibration",
        "cannot be more than the number of actions, 4",
    ),
    "too large probabilities": (
        without_pmf(clean_log(), lambda i, one: min(1.0, 1.4 * one.probability)),
        "warning",
        "calibration",
        "it would be 4, the number of actions",
    ),
    "never played": (
        replaced(clean_log(), pmf=lambda i, one: {**one.pmf, "radio": 0.0}),
        "warning",
        "support",
        "eligible, but never played: 'radio'",
    ),
    "rarely played": (
        rarely_played(0.01),
        "warning",
        "support",
        r"played less than 10 times: 'rare' \(\d\)",
    ),
    "mixed contexts": (
        replaced(clean_log(), context=lambda i, one: np.ones(3) if i == 2 else one.context),
        "error",
        "contexts",
        r"1 contexts are not as the others are \(3 numbers, not named\)",
    ),
    "NaN": (
        with_column("speed", lambda i: np.nan if i == 5 else float(i % 7)),
        "error",
        "numbers",
        r"NaN or infinite numbers in speed \(1 rounds\)",
    ),
    "mixed types": (
        with_column("zip", lambda i: "12" if i % 10 == 0 else float(i % 7)),
        "warning",
        "types",
        r"both numbers and texts in zip \(540 numbers, 60 texts\)",
    ),
    "constant number": (
        with_column("country", lambda i: 49.0),
        "warning",
        "constant columns",
        "the same value in every round: country",
    ),
    "constant text": (
        with_column("country", lambda i: "de"),
        "warning",
        "constant columns",
        "the same value in every round: country",
    ),
    "rare column": (
        with_column("coupon", lambda i: "yes" if i % 60 == 0 else None),
        "warning",
        "rare columns",
        r"in less than 5% of 600 rounds: coupon \(10 rounds\)",
    ),
    "scale": (
        with_column("income", lambda i: 1e8 + 1e6 * (i % 7)),
        "warning",
        "scales",
        "income is typically 1.03e.08 and load",
    ),
    "outlier": (
        with_column("income", lambda i: -999.0 if i == 77 else float(i % 7)),
        "warning",
        "outliers",
        r"income \(1 values, such as -999\)",
    ),
    "ids": (
        with_column("user", lambda i: f"u{i}"),
        "warning",
        "levels",
        r"texts that identify single rounds: user \(600 different texts in 600\)",
    ),
    "many levels": (
        with_column("city", lambda i: f"c{i % 150}"),
        "warning",
        "levels",
        r"more than 100 levels: city \(150\)",
    ),
    "rewards rise": (drifting_rewards("up"), "warning", "drift of rewards", "went from 0.253"),
    "rewards fall": (drifting_rewards("down"), "warning", "drift of rewards", "went from 0.547"),
    "numbers drift": (
        with_column("price", lambda i: float(i % 7) + (3.0 if i >= 300 else 0.0)),
        "warning",
        "drift of contexts",
        r"price \(by \d\d%\)",
    ),
    "levels drift": (
        with_column("shop", lambda i: "new" if i >= 300 and i % 2 else "old"),
        "warning",
        "drift of contexts",
        r"shop \(by 50%\)",
    ),
    "presence drifts": (
        with_column("score", lambda i: None if i >= 300 and i % 2 else float(i % 7)),
        "warning",
        "drift of contexts",
        r"score \(by 50%\)",
    ),
    "logged twice": (
        repeated(clean_log(), keep_id=True),
        "warning",
        "duplicates",
        "6 rounds are there twice: r50, r150, r250 and 3 more",
    ),
    "ids used twice": (
        replaced(clean_log(), id=lambda i, one: "r1" if i == 2 else one.id),
        "error",
        "duplicates",
        "1 rounds have the id of another but differ from it: r1",
    ),
    "repeated without ids": (
        repeated(clean_log(), keep_id=False),
        "warning",
        "duplicates",
        "6 rounds repeat the one before to the last digit",
    ),
    "out of order": (
        replaced(clean_log(), time=lambda i, one: 0.0 if i == 30 else one.time),
        "warning",
        "times",
        "1 rounds are earlier than the one before them",
    ),
    "times missing": (
        replaced(clean_log(), time=lambda i, one: None if i == 30 else one.time),
        "warning",
        "times",
        "1 of 600 rounds have no time",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_its_check_and_no_other(name):
    history, level, check, words = FAULTS[name]
    found = faults(history)
    assert any(
        (one.level, one.check) == (level, check) and re.search(words, one.found) for one in found
    ), found
    assert {one.check for one in found} - {check} <= BESIDES.get(name, set()), found
    assert all(one.advice for one in found)


def sparse(n_columns, n_rounds=2000):
    rng = np.random.default_rng(0)
    ones = rng.random((n_rounds, n_columns)) < rng.uniform(0.001, 0.05, size=n_columns)
    contexts: list[Any] = [
        {f"word {j}": float(one) for j, one in enumerate(row)} | {"age": rng.normal()}
        for row in ones
    ]
    return History(
        Round(one, int(rng.integers(2)), float(rng.integers(2)), 0.5) for one in contexts
    )


def kinds_of_contexts(n_kinds):
    """A few kinds of contexts that matter much; equal ones come again by nature."""
    rng = np.random.default_rng(0)
    rates = rng.random(n_kinds)
    kinds = rng.integers(n_kinds, size=2000).tolist()
    return History(
        Round({"city": f"c{k}"}, int(rng.integers(2)), float(rng.random() < rates[k]), 0.5)
        for k in kinds
    )


SOUND = {
    "65 sparse columns": sparse(65),
    "some hundred clicks": rare_clicks(300),
    "visitors without tastes": visitors(60, matter=False, shuffled=True),
    "rounds of few kinds": kinds_of_contexts(30),
    "prices that grow": with_column("price", lambda i: 1.01**i),
    "amounts of all sizes": with_column("price", lambda i: 10.0 ** (i * 7919 % 600 / 100)),
    "revenue": from_round(0, lambda one: one.reward * (5.0 + one.context["age"])),
    "rare and common values": with_column("visits", lambda i: float(i % 3 == 0) * (1 + i % 5)),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_only_looks_like_a_fault_is_left_in_peace(name):
    besides = {"prices that grow": {"drift of contexts"}, "amounts of all sizes": {"outliers"}}
    found = faults(SOUND[name])
    assert {one.check for one in found} <= besides.get(name, set()), found


def test_outliers_among_the_others_of_a_sparse_column_are_found():
    history = with_column("visits", lambda i: 9e4 if i == 77 else float(i % 3 == 0) * (1 + i % 5))
    assert [one.check for one in faults(history)] == ["outliers"]


@pytest.mark.parametrize("with_pmf", [True, False])
def test_at_most_1_of_50_clean_logs_raises_an_alarm(with_pmf):
    alarms = [faults(clean_log(500, seed, with_pmf=with_pmf)) for seed in range(100, 150)]
    assert sum(map(bool, alarms)) <= 1, [one for one in alarms if one]


@pytest.mark.parametrize("with_pmf", [True, False])
def test_at_most_1_of_30_logs_without_most_failures_raises_an_alarm(with_pmf):
    logs = (clean_log(1500, seed, with_pmf=with_pmf) for seed in range(100, 130))
    alarms = [faults(without_most_failures(one, seed=i)) for i, one in enumerate(logs)]
    assert sum(map(bool, alarms)) <= 1, [one for one in alarms if one]


def test_dropped_rounds_that_do_not_say_so_look_like_wrong_probabilities():
    log = without_most_failures(clean_log(3000))
    assert not faults(log)
    said = next(one.found for one in examine(log) if one.check == "size")
    assert said == f"{len(log):,} rounds, which stand for {log.stands_for.sum():,.0f}"
    unaware = replaced(log, stands_for=lambda i, one: 1.0)
    assert "calibration" in {one.check for one in faults(unaware)}


def test_the_halves_of_a_log_are_compared_by_the_rounds_they_stand_for():
    log = clean_log(2000)
    part = History([*log[:1000], *without_most_failures(log[1000:])])
    assert not faults(part)
    unaware = replaced(part, stands_for=lambda i, one: 1.0)
    assert "drift of rewards" in {one.check for one in faults(unaware)}


def test_a_clean_log_passes_every_check_by_name():
    found = examine(clean_log())
    assert all(one.level == "ok" and one.advice == "" for one in found)
    names = [one.check for one in found]
    assert len(names) == len(set(names))
    checks = {check for _, _, check, _ in FAULTS.values()}
    assert checks == set(names), "every check has a planted fault"


def test_rows_of_numbers_are_examined_by_position():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    rows[:, 1] = 4.0
    history = History(Round(row, i % 2, float(rng.integers(2)), 0.5) for i, row in enumerate(rows))
    assert [(one.check, one.found) for one in faults(history)] == [
        ("constant columns", "the same value in every round: x1")
    ]


def learning_log(seed):
    """Rewards rise only because the logging policy learns which action is good."""
    rng = np.random.default_rng(seed)
    rounds = []
    for i in range(1000):
        good = 0.5 + 0.4 * min(i / 600, 1.0)
        pmf = {"good": good, "bad": 1.0 - good}
        action = "good" if rng.random() < good else "bad"
        reward = float(rng.random() < (0.8 if action == "good" else 0.1))
        rounds.append(Round({"age": rng.normal()}, action, reward, pmf[action], pmf=pmf))
    return History(rounds)


def test_rewards_that_rise_because_the_policy_learned_are_no_drift():
    for seed in range(10):
        history = learning_log(seed)
        halves = history.rewards.reshape(2, 500)
        assert stats.ttest_ind(*halves).pvalue < 1e-3
        assert faults(history) == []


def test_equal_neighbours_are_no_duplicates_where_all_rounds_are_alike():
    rng = np.random.default_rng(0)
    history = History(
        Round({"device": str(rng.choice(["phone", "desk"]))}, int(a), float(rng.integers(2)), 0.5)
        for a in rng.integers(2, size=500)
    )
    assert faults(history) == []


def test_an_intercept_is_no_constant_column():
    assert faults(with_column("intercept", lambda i: 1.0)) == []


def test_groups_of_texts_and_missing_values_are_no_fault():
    history = with_column("tags", lambda i: ("new",) if i % 3 else ("new", "hot"))
    history = replaced(
        history, context=lambda i, one: {**one.context, "age": None if i % 5 else 30.0 + i % 9}
    )
    assert faults(history) == []


def test_an_empty_log_is_an_error():
    assert faults(History())[0] == Finding(
        "error",
        "size",
        "0 rounds",
        "log more: 20 are the least that can be evaluated on, thousands are usual",
    )


def test_small_probabilities_are_told_by_what_a_round_can_weigh():
    found = faults(rarely_played(0.02))
    assert [one.check for one in found] == ["support", "power"]
    assert "go down to 0.02, so that one round can weigh 50 of 600" in found[0].found


def test_mostly_certain_choices_are_a_warning():
    history = History(
        dataclasses.replace(one, probability=1.0 if i % 20 else 0.5, pmf=None)
        for i, one in enumerate(clean_log())
    )
    found = [one for one in faults(history) if one.check == "exploration"]
    assert found[0].level == "warning"
    assert "95.0% of rounds were logged with probability 1" in found[0].found


@pytest.mark.parametrize(("count", "p"), [(3, 0.01), (40, 0.2), (0, 0.004), (9, 0.004)])
def test_p_values_of_counts_are_near_those_of_the_binomial(count, p):
    n = 500
    exact = stats.binom(n, p)
    expected = min(1.0, 2.0 * min(exact.cdf(count), exact.sf(count - 1)))
    found = count_p_value(count, n * p, n * p * (1.0 - p))
    assert found == pytest.approx(expected, rel=0.6, abs=1e-5)


def test_what_cannot_happen_has_p_value_0():
    assert count_p_value(1, 0.0, 0.0) == 0.0
    assert count_p_value(0, 0.0, 0.0) == 1.0


numbers = st.floats(allow_nan=True, allow_infinity=True)
values = st.none() | numbers | st.sampled_from(["x", "y"]) | st.just(("x", "z")) | st.just(())
labels = st.sampled_from(["a", "b", 3, ("t", 1), None])
any_round = st.builds(
    Round,
    context=st.dictionaries(st.sampled_from(["n", "m", "o"]), values)
    | st.lists(numbers, min_size=2, max_size=2).map(np.array),
    action=labels,
    reward=numbers,
    probability=numbers | st.floats(0.1, 1.0),
    id=st.none() | st.sampled_from(["i", "j"]),
    time=st.none() | numbers,
    pmf=st.none() | st.dictionaries(labels, numbers),
)


@given(st.lists(any_round, max_size=60))
def test_no_log_is_too_bad_to_be_examined(rounds):
    for one in examine(History(rounds * 2)):
        assert one.level in ("ok", "warning", "error")
        assert one.found
        assert bool(one.advice) == (one.level != "ok")
