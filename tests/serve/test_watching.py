"""Windows and alarms."""

import random
import statistics

import pytest

from melee.serve.metrics import Requests
from melee.serve.watching import Sums, Watch

NOW = 1_000_000 * 60.0


def test_an_average_and_its_interval_are_those_of_the_numbers():
    rng = random.Random(0)
    values = [rng.gauss(3.0, 2.0) for _ in range(500)]
    sums = Sums()
    for one in values:
        sums.add(one)
    found = sums.to_json()
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5
    mean = statistics.fmean(values)
    assert [found["average"], found["low"], found["high"]] == pytest.approx(
        [mean, mean - half, mean + half]
    )
    assert Sums().to_json() == {"rewards": 0, "average": None, "low": None, "high": None}


def test_a_window_holds_what_happened_in_it():
    watch = Watch()
    for minutes_ago, label in [(2000, "a"), (700, "a"), (30, "b"), (5, "b"), (0, "a")]:
        watch.decided(label, explored=label == "b", now=NOW - 60 * minutes_ago)
        watch.rewarded(label, float(minutes_ago), now=NOW - 60 * minutes_ago)
    found = watch.to_json(["a", "b", "c"], NOW)
    assert [one["decisions"] for one in found["windows"]] == [2, 3, 4]
    assert [one["average"] for one in found["windows"]] == [2.5, 35 / 3, 735 / 4]
    assert found["windows"][0]["explored"] == 0.5
    assert [one["decisions"] for one in found["actions"]] == [2, 2, 0]
    assert [one["share"] for one in found["actions"]] == [0.5, 0.5, 0.0]
    assert len(found["course"]) == 60
    assert [one["average"] for one in found["course"] if one["rewards"]] == [30.0, 5.0, 0.0]


def watched(rewards, n_decided=200, never=None):
    watch = Watch()
    for i in range(n_decided):
        watch.decided("ab"[i % 2], explored=False, now=NOW)
    for i, (minutes_ago, reward) in enumerate(rewards):
        label = "ab"[i % 2]
        if label != never:
            watch.rewarded(label, reward, now=NOW - 60 * minutes_ago)
    return watch.alarms(["a", "b"], NOW)


def test_all_is_quiet_where_nothing_is_wrong():
    assert watched([(i % 30, float(i % 3 == 0)) for i in range(300)]) == []
    assert watched([(0, 1.0)] * 10, n_decided=20) == []


def test_rewards_that_only_ever_say_1_raise_an_alarm():
    (said,) = watched([(0, 1.0)] * 60)
    assert said.startswith("All 60 rewards are 1: nothing can be learned from them.")


def test_an_action_that_is_never_rewarded_raises_an_alarm():
    (said,) = watched([(0, float(i % 4 == 0)) for i in range(200)], never="b")
    assert said.startswith("Action 'b' was decided 100 times in the last day and never rewarded")


def test_decisions_without_any_reward_raise_an_alarm():
    (said,) = watched([])
    assert said.startswith("200 decisions in the last day, and no reward")


def test_a_scale_that_changed_raises_an_alarm():
    before = [(60, float(i % 2)) for i in range(100)]
    (said,) = watched([*before, *[(1, 100.0 * (i % 3)) for i in range(100)]])
    assert said.endswith("did their unit change?")
    assert watched([*before, *[(1, 2.0 * (i % 3)) for i in range(100)]]) == []


def test_latencies_are_counted_in_buckets():
    requests = Requests()
    for i in range(1000):
        requests.note("/x", 200, 0.002 if i < 985 else 0.3)
    assert requests.quantile("/x", 0.5) == 0.0025
    assert requests.quantile("/x", 0.99) == 0.5
    assert requests.quantile("/y", 0.5) is None
    lines = list(requests.lines())
    assert 'melee_http_request_duration_seconds_bucket{route="/x",le="0.0025"} 985' in lines
    assert 'melee_http_request_duration_seconds_bucket{route="/x",le="+Inf"} 1000' in lines


def test_what_exploring_costs_is_its_share_times_what_it_earns_less():
    rng, watch = random.Random(3), Watch()
    kept: dict[bool, list[float]] = {False: [], True: []}
    for i in range(4000):
        explored = rng.random() < 0.2
        reward = float(rng.random() < (0.3 if explored else 0.5))
        watch.decided("a", explored=explored, now=NOW, id=str(i))
        watch.rewarded("a", reward, now=NOW, id=str(i))
        kept[explored].append(reward)
    found = watch.to_json(["a"], NOW)["windows"][0]["exploring"]
    share = len(kept[True]) / 4000
    less = statistics.fmean(kept[False]) - statistics.fmean(kept[True])
    assert found["cost"] == pytest.approx(share * less)
    assert found["low"] < 0.2 * 0.2 < found["high"]
    few = Watch().to_json(["a"], NOW)["windows"][0]["exploring"]
    assert few == {"cost": None, "low": None, "high": None}


def test_an_average_that_changes_raises_an_alarm():
    rng = random.Random(4)
    before = [(300 + i % 60, float(rng.random() < 0.5)) for i in range(600)]
    (said,) = watched([*before, *((i % 50, float(rng.random() < 0.2)) for i in range(600))])
    assert said.startswith("The average reward of the last hour is 0.")
    assert "half_life" in said
    assert watched([*before, *((i % 50, float(rng.random() < 0.5)) for i in range(600))]) == []


def test_rewards_that_stop_raise_an_alarm():
    (said,) = watched([(300, float(i % 2)) for i in range(200)], n_decided=400)
    assert said.startswith("400 decisions in the last hour and no reward, while there were some")
