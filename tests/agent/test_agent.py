"""The agent: decisions, rewards at any time, batches, actions that come and go, forgetting."""

import dataclasses
import inspect
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import melee
from melee import Agent, InputError
from melee.agent import knowledge, overdue
from melee.errors import MeleeWarning
from melee.history import History, Round
from tests.news import SPECS, News, live

ACTIONS = ["sports", "politics", "science"]


def agent(spec="epsilon-greedy", **settings):
    return Agent(ACTIONS, spec, **settings)


def test_the_example_of_the_front_page_works(tmp_path):
    made = melee.Agent(actions=ACTIONS)
    decision = made.act({"age": 31, "device": "phone", "hour": 20})
    assert decision.action in ACTIONS
    assert decision.probability == decision.pmf[decision.action]
    made.learn(decision.id, reward=1.0)
    made.save(tmp_path / "news.melee")
    loaded = melee.Agent.load(tmp_path / "news.melee")
    assert loaded.fingerprint == made.fingerprint


def test_an_agent_learns_what_readers_like():
    world = News(seed=0)
    made = Agent(ACTIONS)
    live(made, world, 600)
    good = [0.45, 0.8]  # the least that the best action earns, and the most
    assert good[0] + 0.1 < live(made, world, 600) < good[1]
    young_on_phone = {"age": 20, "device": "phone", "subscriber": True}
    old_on_tablet = {"age": 70, "device": "tablet", "subscriber": True}
    assert made.pmf(young_on_phone)["sports"] > 0.9
    assert made.pmf(old_on_tablet)["politics"] > 0.9


# -- decisions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_every_action_has_at_least_its_share_of_the_floor(spec):
    made = agent(spec, floor=0.06)
    world = News(seed=1)
    for _ in range(60):
        context = world.reader()
        decision = made.act(context)
        assert_allclose(sum(decision.probabilities), 1.0)
        assert min(decision.probabilities) >= 0.02 - 1e-12
        assert made.pmf(context) == decision.pmf
        made.learn(decision.id, world.reward(context, decision.action))


def test_actions_are_drawn_as_often_as_their_probability_says():
    made = agent("softmax", floor=0.3)
    live(made, News(seed=2), 50)
    context = {"age": 30, "device": "phone"}
    decisions = [made.act(context) for _ in range(4000)]
    for action in ACTIONS:
        share = np.mean([one.action == action for one in decisions])
        p = decisions[0].pmf[action]
        assert abs(share - p) < 4 * np.sqrt(p * (1 - p) / 4000)


def test_a_decision_is_determined_by_the_state_the_seed_and_the_id():
    contexts = [News(seed=3).reader() for _ in range(40)]
    one, other = agent("uniform", seed=0), agent("uniform", seed=0)
    for i, context in enumerate(contexts):  # other decisions in between do not matter
        other.act(context)
        assert one.act(context, id=f"r{i}").action == other.act(context, id=f"r{i}").action
    far = agent("uniform", seed=1)
    answers = [[a.act(c, id=f"q{i}").action for i, c in enumerate(contexts)] for a in (one, far)]
    assert answers[0] != answers[1]


def test_a_decision_names_the_policy_and_the_version_that_made_it():
    made = agent("linucb:alpha=0.2")
    first = made.act([1.0, 2.0])
    assert first.policy.startswith("linucb:alpha=0.2@")
    assert first.policy == made.policy_ != agent("linucb:alpha=0.3").policy_
    made.learn(first.id, 1.0)
    assert made.act([1.0, 2.0]).version > first.version


def test_a_floor_of_zero_is_allowed_with_a_warning():
    with pytest.warns(MeleeWarning, match="floor is 0: .* cannot be used to evaluate"):
        made = agent("epsilon-greedy", floor=0.0)
    decision = made.act([1.0])
    made.learn(decision.id, 1.0)
    assert sorted(made.act([1.0]).probabilities) == [0.0, 0.0, 1.0]


def test_seed_zero_is_a_seed_and_the_default():
    assert inspect.signature(Agent).parameters["seed"].default == 0
    assert agent(seed=0).act([1.0]) == agent().act([1.0])


# -- contexts ----------------------------------------------------------------------------------


def test_dicts_and_rows_of_tables_are_the_same_contexts():
    polars = pytest.importorskip("polars")
    rows = [
        {"age": 31.0, "device": "phone", "new": True},
        {"age": None, "device": "tablet", "new": False},
        {"age": 50.0, "device": "phone", "new": True},
    ]
    table = pd.DataFrame(rows)
    forms = [
        rows,
        table,
        polars.DataFrame(rows),
        [table.iloc[i] for i in range(3)],
        [table.iloc[[i]] for i in range(3)],
        list(polars.DataFrame(rows).iter_rows(named=True)),
    ]
    prints = set()
    for form in forms:
        made = agent("linucb")
        decisions = made.act_many(form) if len(form) else []
        made.learn_many([one.id for one in decisions], [1.0, 0.0, 0.5])
        prints.add(repr([made.pmf(row) for row in rows]) + repr(made.feature_names_))
    assert len(prints) == 1


@pytest.mark.parametrize(
    "row", [[1, 2.5], (1.0, 2.5), np.array([1.0, 2.5]), np.array([1, 2.5], np.float32)]
)
def test_numbers_in_any_form_are_the_same_context(row):
    made = agent("linucb")
    made.learn(row, "sports", 1.0, 0.5)
    assert made.feature_names_ == ["x0", "x1"]
    assert made.pmf([1.0, 2.5]) == made.pmf(row)


def test_new_columns_and_levels_may_appear_at_any_time():
    made = agent("linucb")
    for i in range(400):
        context: dict[str, object] = {"hour": float(i % 24)}
        if i > 150:
            context["device"] = ["phone", "tablet"][i % 2]
        if i > 300:
            context["price"] = 100.0 + i % 7
        decision = made.act(context)
        made.learn(decision.id, float(i % 2 == 0))
    names = made.feature_names_
    assert names[0] == "hour"
    assert {"device=phone", "device=tablet", "price", "price is present"} <= set(names)
    # What came late has been learned: the even rounds were the phones'.
    best = max(ACTIONS, key=lambda a: made.pmf({"hour": 3.0, "device": "phone"})[a])
    assert made.pmf({"hour": 3.0, "device": "phone"})[best] > 0.9


# -- rewards -----------------------------------------------------------------------------------


def test_rewards_may_come_in_any_order_and_only_once():
    made = agent()
    decisions = [made.act({"hour": float(i)}) for i in range(5)]
    assert made.n_pending_ == 5
    assert made.learn(decisions[3].id, 1.0) is True
    assert made.learn(decisions[0], 0.0) is True
    before = made.fingerprint
    assert made.learn(decisions[3].id, reward=1.0) is False
    assert made.fingerprint == before
    with pytest.raises(
        InputError, match=r"has the reward 1 already, sent or assumed .* now gets 0"
    ):
        made.learn(decisions[3].id, 0.0)
    with pytest.raises(InputError, match=r"decision 'nobody' is not known.*full record"):
        made.learn("nobody", 1.0)
    assert made.fingerprint == before
    assert (made.n_learned_, made.n_pending_) == (2, 3)


def test_a_full_record_teaches_as_its_decision_would_have():
    one, other = agent("linucb"), agent("linucb")
    world = News(seed=5)
    for _ in range(50):
        context = world.reader()
        decision = one.act(context)
        reward = world.reward(context, decision.action)
        one.learn(decision.id, reward)
        other.learn(context, decision.action, reward, decision.probability)
        assert one.pmf(context) == other.pmf(context)
    assert one.n_learned_ == other.n_learned_ == 50


def test_decisions_whose_time_is_over_teach_the_default_reward():
    made = agent(timeout=10.0, default_reward=0.0)
    first, second = made.act([1.0]), made.act([2.0])
    assert made.give_up(now=time.time() + 5) == 0
    made.learn(second.id, 1.0)
    assert made.give_up(now=time.time() + 11) == 1
    assert (made.n_learned_, made.n_pending_) == (2, 0)
    assert made.learn(first.id, 0.0) is False
    with pytest.raises(InputError, match="has the reward 0 already"):
        made.learn(first.id, 1.0)


def test_without_a_default_reward_they_teach_nothing():
    made = agent(timeout=0.01)
    late = made.act([1.0])
    time.sleep(0.02)
    made.act([1.0])
    assert made.n_learned_ == 0
    with pytest.raises(InputError, match="given up before its reward came"):
        made.learn(late.id, 1.0)


def test_waiting_decisions_are_bounded_and_one_warning_says_so():
    made = agent(max_pending=10)
    with pytest.warns(MeleeWarning, match="more than 10 decisions wait") as caught:
        decisions = [made.act([float(i)]) for i in range(30)]
    assert len(caught) == 1
    assert made.n_pending_ == 10
    assert made.learn(decisions[-1].id, 1.0) is True
    with pytest.raises(InputError, match="given up"):
        made.learn(decisions[15].id, 1.0)
    with pytest.raises(InputError, match="is not known"):
        made.learn(decisions[0].id, 1.0)  # the ids of the past are bounded too


def test_rounds_are_logged_when_their_reward_is_known(tmp_path):
    made = agent(log=tmp_path / "rounds.jsonl", timeout=60.0, default_reward=0.25)
    one, two, three = (made.act({"hour": float(i), "tags": ["a"]}) for i in range(3))
    made.learn(two.id, 1.0)
    made.learn(one.id, 0.0)
    made.learn({"hour": 5.0}, "science", 1.0, 0.5)
    made.give_up(now=time.time() + 100)
    made.learn(two.id, 1.0)  # once is enough
    history = History.read(tmp_path / "rounds.jsonl")
    assert [one.id for one in history] == [two.id, one.id, None, three.id]
    assert history.rewards.tolist() == [1.0, 0.0, 1.0, 0.25]
    assert history[0].pmf == two.pmf
    assert history[0].context == {"hour": 1.0, "tags": ("a",)}
    assert history[0].policy == made.policy_


def test_a_log_that_cannot_be_written_changes_nothing(tmp_path):
    made = agent(log=tmp_path / "nowhere" / "rounds.jsonl")
    decision = made.act([1.0])
    before = made.fingerprint
    with pytest.raises(melee.MeleeError, match=r"rounds\.jsonl"):
        made.learn(decision.id, 1.0)
    assert made.fingerprint == before


def test_a_warm_start_from_a_log_is_as_good_as_having_lived_it(tmp_path):
    made = Agent(ACTIONS, "uniform", log=tmp_path / "rounds.jsonl")
    live(made, News(seed=6), 500)
    history = History.read(tmp_path / "rounds.jsonl")
    warm = agent("melee")
    assert warm.learn_rounds(history) == 500
    assert warm.learn_rounds(history) == 0  # known by their ids
    cold = live(agent("melee"), News(seed=7), 150)
    assert live(warm, News(seed=7), 150) > cold + 0.05


def test_a_round_that_stands_for_several_is_learned_so_often():
    rounds = [
        Round(
            {"hour": float(i % 7)}, ACTIONS[i % 3], float(i % 4 == 0), 0.5, stands_for=1.0 + i % 3
        )
        for i in range(60)
    ]
    some, many = agent("linucb"), agent("linucb")
    named = [dataclasses.replace(one, id=f"r{i}") for i, one in enumerate(rounds)]
    assert some.learn_rounds(named) == 60
    assert some.learn_rounds(named) == 0  # known by their ids, however often they were learned
    assert many.learn_rounds([one for one in rounds for _ in range(int(one.stands_for))]) == 120
    assert some.pmf({"hour": 3.0}) == many.pmf({"hour": 3.0})
    with pytest.raises(melee.MeleeError, match=r"stands for 0\.5 rounds; expected from 1 to 1,000"):
        some.learn_rounds([dataclasses.replace(rounds[0], stands_for=0.5)])


def test_a_log_recovers_what_a_crash_lost(tmp_path):
    log = tmp_path / "rounds.jsonl"
    made = agent("linucb", log=log, timeout=60.0, default_reward=0.0)
    waiting = made.act({"hour": 1.0})
    content = made.to_bytes()
    made.learn(waiting.id, 1.0)
    lost = made.act({"hour": 2.0})
    made.learn(lost.id, 0.5)
    again = Agent.from_bytes(content, log=log)
    assert again.learn_rounds(History.read(log)) == 2  # the one that waits, and the lost one
    assert again.n_pending_ == 0
    assert again.learn(waiting.id, 1.0) is False
    assert len(History.read(log)) == 2  # they are not written again
    assert again.pmf({"hour": 3.0}) == made.pmf({"hour": 3.0})


def test_a_torn_line_does_not_swallow_the_next_round(tmp_path):
    log = tmp_path / "rounds.jsonl"
    log.write_bytes(b'{"context": {"a')
    made = agent(log=log)
    made.learn(made.act([1.0]).id, 1.0)
    history = History.read(log, usable=False)
    assert len(history) == 1
    assert len(history.problems) == 1


@pytest.mark.parametrize(
    "do",
    [
        pytest.param(lambda: Agent(["a", "b"], floor=0), id="made"),
        pytest.param(lambda: fill(Agent(["a", "b"], max_pending=1), None), id="own actions"),
        pytest.param(lambda: fill(Agent(max_pending=1), {"a": {}, "b": {}}), id="candidates"),
        pytest.param(lambda: fill(Agent(["a", "b"], max_pending=1), ["a"]), id="open actions"),
    ],
)
def test_a_warning_names_the_line_that_called_for_it(do):
    with pytest.warns(MeleeWarning) as caught:
        do()
    assert [warning.filename for warning in caught] == [__file__]


def fill(made, actions):
    for _ in range(2):
        made.act({"x": 1.0}, actions=actions)


def test_one_decision_of_a_clock_that_was_set_holds_up_nobody(monkeypatch):
    class Clock:
        now = 1e9

        def time(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(overdue, "time", clock)
    made = agent(timeout=10.0)
    clock.now = 2e9
    made.act([1.0])
    clock.now = 1e9
    made.act([2.0])
    assert made.give_up(now=1e9 + 11) == 1


def test_ids_tell_contexts_apart_even_before_anything_is_learned():
    one, other = agent(), agent()
    assert one.act({"u": "anna", "n": 1}).id != other.act({"u": "bert", "n": 7}).id
    assert agent().act({"u": "anna"}).id == agent().act({"u": "anna"}).id


def test_another_agents_decision_is_refused_even_under_a_known_id():
    one, other = agent("uniform"), Agent(["x", "y"], "uniform")
    mine, theirs = one.act([1.0]), other.act([1.0])
    assert mine.id == theirs.id
    with pytest.raises(InputError, match="not the one that was made here"):
        other.learn(mine, 1.0)
    assert other.learn(theirs, 1.0)


@pytest.mark.parametrize("now", [float("nan"), "soon", float("inf")])
def test_a_time_that_is_none_gives_up_nothing(now):
    made = agent(timeout=1.0)
    made.act([1.0])
    with pytest.raises(InputError, match="now is"):
        made.give_up(now)
    assert made.n_pending_ == 1


# -- batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_batches_decide_and_learn_as_single_calls_do(spec):
    world = News(seed=8)
    contexts = [world.reader() for _ in range(330)]
    single, many = agent(spec, half_life=70), agent(spec, half_life=70)
    for start in range(0, 330, 33):
        some = contexts[start : start + 33]
        ones = [single.act(context) for context in some]
        twos = many.act_many(some)
        assert ones == twos
        rewards = [world.reward(c, d.action) for c, d in zip(some, ones, strict=True)]
        for decision, reward in zip(ones, rewards, strict=True):
            single.learn(decision.id, reward)
        assert many.learn_many([decision.id for decision in twos], rewards) == 33
    context = {"age": 30, "device": "phone"}
    assert single.pmf(context) == many.pmf(context)
    assert single.n_learned_ == many.n_learned_ == 330
    assert single.summary() == many.summary()


def test_batches_of_numbers_and_full_records_are_as_single_calls():
    rng = np.random.default_rng(0)
    rows, rewards = rng.normal(size=(300, 5)), rng.random(300)
    actions = [ACTIONS[i] for i in rng.integers(3, size=300)]
    single, many = agent("linucb"), agent("linucb")
    for row, action, reward in zip(rows, actions, rewards, strict=True):
        single.learn(row, action, reward, 0.4)
    assert many.learn_many(rows, actions, rewards, [0.4] * 300) == 300
    assert single.fingerprint == many.fingerprint


def test_a_batch_keeps_nothing_of_the_callers_array_alive():
    made = agent("uniform")
    rows = np.arange(6.0).reshape(3, 2)
    decisions = made.act_many(rows)
    rows[:] = -1.0
    contexts = [one.context for one in made._pending.waiting.values()]
    assert [context.tolist() for context in contexts] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert all(context.base is None for context in contexts)
    assert [one.version for one in decisions] == [0, 0, 0]


@pytest.mark.parametrize("shape", [(3, 0), (1, 10_001)])
def test_rows_that_no_context_could_be_are_refused_in_batches_too(shape):
    made = agent("uniform")
    with pytest.raises(InputError, match="expected 1 to 10000 numbers each"):
        made.act_many(np.zeros(shape))


def test_more_contexts_than_may_wait_are_refused():
    made = agent("uniform", max_pending=5)
    with pytest.raises(InputError, match="6 contexts, and only 5 decisions may wait"):
        made.act_many(np.zeros((6, 2)))
    assert len(made.act_many(np.zeros((5, 2)))) == 5


def test_a_batch_with_one_bad_entry_is_refused_as_a_whole():
    made = agent()
    decisions = made.act_many(np.zeros((3, 2)))
    before = made.fingerprint
    with pytest.raises(InputError, match="reward is nan; expected a finite number, within"):
        made.learn_many([one.id for one in decisions], [1.0, np.nan, 0.0])
    with pytest.raises(InputError, match="is not known"):
        made.learn_many([decisions[0].id, "nobody"], [1.0, 0.0])
    with pytest.raises(InputError, match="2 rewards for 3 rounds"):
        made.learn_many([one.id for one in decisions], [1.0, 0.0])
    with pytest.raises(InputError, match="number 1 of the contexts"):
        made.act_many([[1.0, 2.0], [np.nan, 2.0]])
    assert made.fingerprint == before


# -- actions -----------------------------------------------------------------------------------


def test_labels_are_any_hashable_values():
    labels = [("banner", 3), 7, None, "text", 2.5, frozenset({1})]
    made = Agent(labels, "uniform")
    seen = {made.act([1.0]).action for _ in range(200)}
    assert seen == set(labels)


@pytest.mark.parametrize("spec", SPECS)
def test_only_open_actions_are_played_and_learned_from(spec):
    made = agent(spec)
    world = News(seed=9)
    for i in range(80):
        context = world.reader()
        some = [["sports", "science"], ["politics"], ACTIONS][i % 3]
        decision = made.act(context, actions=some)
        assert set(decision.pmf) == set(some) == set(decision.actions)
        assert decision.action in some
        assert_allclose(sum(decision.probabilities), 1.0)
        made.learn(decision.id, world.reward(context, decision.action))


def test_the_order_in_which_open_actions_are_named_does_not_matter():
    one, other = agent("softmax"), agent("softmax")
    for i in range(20):
        some = one.act([1.0], actions=["sports", "science"], id=f"{i}")
        assert some == other.act([1.0], actions=["science", "sports"], id=f"{i}")


def test_features_are_hashed_where_matrices_would_take_too_much_memory(monkeypatch):
    monkeypatch.setattr(knowledge, "MAX_MODEL_BYTES", 2**26)  # of 2³¹, for which 20,000 would do
    made = Agent(range(600), "linucb")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(300):
            made.learn({"n": 1.0}, i, 1.0, 0.5)
        for i in range(60):
            for _ in range(3):
                made.learn({"n": 1.0, "level": f"l{i}"}, i, 1.0, 0.5)
    assert [str(one.message) for one in caught if "by hashing" in str(one.message)]
    assert made._knowledge.model.state.block.nbytes < 2**25


@pytest.mark.parametrize("n_before", [40, 700])
@pytest.mark.parametrize("spec", ["melee", "epsilon-greedy:epsilon=0", "linucb", "squarecb"])
def test_a_new_action_that_is_better_is_found(spec, n_before):
    shares = []
    for seed in (0, 1, 2):
        world = News(seed=seed)
        made = agent(spec, seed=seed)
        live(made, world, n_before)
        made.add_actions(["weather"])  # clicked 95 times in 100
        live(made, world, 150)
        shares += [made.pmf(world.reader())["weather"] for _ in range(40)]
    assert np.mean(shares) > 0.75


@pytest.mark.parametrize("n_before", [40, 700])
def test_a_new_action_that_is_worse_is_soon_left_alone(n_before):
    class Worse(News):
        def chance(self, context, action):
            return 0.05 if action == "weather" else super().chance(context, action)

    world = Worse(seed=11)
    made = Agent(ACTIONS)
    live(made, world, n_before)
    made.add_actions(["weather"])
    live(made, world, 300)
    plays = {label: n for label, n, _ in made.summary()}
    assert 2 <= plays["weather"] < 40


def test_a_removed_action_is_gone_and_its_late_reward_does_no_harm():
    made = agent("linucb")
    live(made, News(seed=12), 60)
    decision = made.act({"device": "phone"}, actions=["sports"])
    made.remove_actions(["sports"])
    assert made.actions_ == ["politics", "science"]
    before = made.pmf({"device": "phone"})
    assert made.learn(decision.id, 1.0) is False
    assert made.pmf({"device": "phone"}) == before
    with pytest.raises(InputError, match="action 'sports' does not exist"):
        made.act({"device": "phone"}, actions=["sports"])
    made.add_actions(["sports"])
    assert set(made.act({"device": "phone"}).pmf) == set(ACTIONS)


def test_thousands_of_actions_work():
    made = Agent(range(3000))
    rng = np.random.default_rng(0)
    for _ in range(5):
        decision = made.act(rng.normal(size=4))
        assert len(decision.pmf) == 3000
        made.learn(decision.id, 1.0)
    made.add_actions(range(3000, 3010))
    made.remove_actions(range(100))
    some = made.act(rng.normal(size=4), actions=[200, 2500, 3005])
    assert some.action in (200, 2500, 3005)
    assert len(made.actions_) == 2910


# -- forgetting --------------------------------------------------------------------------------


class Drifting:
    """Which action is good depends on a number, and is turned around every 1,500 rounds."""

    def __init__(self, seed):
        self.rng, self.round = np.random.default_rng(seed), 0

    def reader(self):
        self.round += 1
        return self.rng.normal(size=3)

    def reward(self, context, action):
        side = 1 if (self.round // 1500) % 2 == 0 else -1
        good = ACTIONS.index(action) == (0 if context[0] * side > 0 else 1)
        return float(self.rng.random() < (0.8 if good else 0.2))


def test_forgetting_helps_in_a_drifting_world_and_its_absence_does_no_harm_in_a_calm_one():
    def earned(spec, world, n_rounds, half_life):
        runs = [live(agent(spec, half_life=half_life), world(seed), n_rounds) for seed in (0, 1)]
        return np.mean(runs)

    forgetting = earned("linucb", Drifting, 6000, half_life=300)
    assert forgetting > earned("linucb", Drifting, 6000, half_life=None) + 0.05
    assert earned("linucb", News, 1200, half_life=None) > earned("linucb", News, 1200, 300) - 0.01
    assert earned("melee", Drifting, 6000, half_life=None) > forgetting - 0.01  # it notices


def test_an_agent_that_forgets_decides_as_one_that_lived_only_the_recent_rounds():
    rng = np.random.default_rng(0)
    rows, rewards = rng.normal(size=(500, 3)), rng.random(500)
    forgetting = agent("linucb", half_life=100)
    for i in range(500):
        forgetting.learn(rows[i], ACTIONS[i % 3], rewards[i], 0.5)
    recent = agent("linucb")
    for i in range(400, 500):  # at 500 the older half of the last 200 has just been dropped
        recent.learn(rows[i], ACTIONS[i % 3], rewards[i], 0.5)
    for row in rng.normal(size=(10, 3)):
        assert forgetting.pmf(row) == recent.pmf(row)


# -- conventions -------------------------------------------------------------------------------


def test_it_follows_scikit_learn_where_that_applies():
    from sklearn.base import clone

    made = agent("linucb", seed=3, half_life=50, floor=0.1)
    live(made, News(seed=0), 20)
    copy = clone(made)
    assert copy.get_params() == made.get_params()
    assert copy.n_learned_ == 0
    assert set(made.get_params()) == set(inspect.signature(Agent).parameters)
    assert clone(made).set_params(seed=4).seed == 4
    with pytest.raises(InputError, match="has decided or learned already"):
        made.set_params(seed=4)
    with pytest.raises(InputError, match="unknown parameter 'alpha'"):
        copy.set_params(alpha=1)


def test_it_shows_itself_in_text_and_in_a_notebook():
    made = Agent(["<b>", "plain"], "uniform")
    decision = made.act([1.0], actions=["plain"])
    made.learn(decision.id, 1.0)
    assert "2 actions" in repr(made)
    assert "1 rounds learned" in repr(made)
    html = made._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>plain" not in html
    assert "1.000" in html


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"actions": []}, "there are no actions"),
        ({"actions": "abc"}, "expected a list of labels"),
        ({"actions": ["a", "a"]}, "action 'a' is given twice"),
        ({"actions": [[1]]}, "no label"),
        ({"actions": [float("nan")]}, "no label"),
        ({"floor": 2}, "floor is 2"),
        ({"seed": -1}, "seed is -1"),
        ({"half_life": 0}, "half_life is 0"),
        ({"timeout": -1}, "timeout is -1"),
        ({"default_reward": 3}, "reward is 3"),
        ({"default_reward": 0.0}, r"default_reward is 0.0 without a timeout.* give the timeout"),
        ({"max_pending": 0}, "max_pending is 0"),
        ({"max_features": 1.5}, "max_features is 1.5"),
        ({"explorer": "linucp"}, "did you mean 'linucb'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Agent(**{"actions": ACTIONS, "explorer": "uniform", **settings})


def test_warnings_are_ours_and_can_be_silenced():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        agent(floor=0.0)
