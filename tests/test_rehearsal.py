"""Tables as an agent meets them."""

import csv
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from melee import Agent, Task, prepare, read_table, rehearse, simulate
from melee.arrays import Floats
from melee.datasets import read_rewards, rectangles, table_to_task
from melee.errors import InputError, MeleeWarning
from melee.rehearsal import refusal
from melee.rng import generator
from melee.rows import Rows, Texts


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A table of numbers, texts, truth values, gaps, a name for every row, and rows unlabelled."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("tables") / "shop.csv"
    lines = ["id,age,city,member,note,bought"]
    for i in range(160):
        age = "" if rng.random() < 0.1 else f"{rng.integers(18, 80)}"
        city = "" if rng.random() < 0.1 else str(rng.choice(["Rome", "Oslo", "Lima", f"t{i}"]))
        member = str(bool(rng.random() < 0.5))
        bought = "" if i % 40 == 7 else ("tea" if city == "Oslo" else "milk")
        lines.append(f"{i},{age},{city},{member},always,{bought}")
    path.write_text("\n".join(lines) + "\n")
    return path


def read_plainly(path):
    """The labelled rows of a CSV file by another way than ours."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            label = row.pop("bought")
            if label:
                values = {
                    "id": float(row["id"]),
                    "age": float(row["age"]) if row["age"] else None,
                    "city": row["city"] or None,
                    "member": float(row["member"] == "True"),
                    "note": row["note"],
                }
                yield values, label


def test_rows_are_kept_as_they_were_read(shop):
    expected = list(read_plainly(shop))
    task = read_table(shop, target="bought", keep_rows=True)
    assert task.rows is not None
    assert list(task.rows) == [values for values, _ in expected]
    labels = [task.action_names[i] for i in task.rewards.argmax(axis=1)]
    assert labels == [label for _, label in expected]


def test_rows_are_kept_only_when_asked_for_and_change_nothing_else(shop):
    plain = read_table(shop, target="bought")
    kept = read_table(shop, target="bought", keep_rows=True)
    assert plain.rows is None
    assert plain.content_hash == kept.content_hash
    assert plain.number == kept.number


def test_rows_of_a_table_of_rewards_are_kept_without_the_rewards(tmp_path):
    path = tmp_path / "offers.csv"
    path.write_text("age,reward:book,reward:film\n20,0.1,0.9\n,0.8,0.5\n")
    assert list(read_rewards(path, keep_rows=True).named_rows()) == [{"age": 20.0}, {"age": None}]


def test_a_rehearsal_is_what_an_agent_does_with_the_rows_of_the_file(shop):
    rows = list(read_plainly(shop))
    task = read_table(shop, target="bought", keep_rows=True)
    run = rehearse(task, "linucb", seed=3)

    seed = int(generator(3, "rehearsal", task.number).integers(2**63))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        agent = Agent([0, 1], "linucb", seed=seed, floor=0.0)
    for i, row in enumerate(prepare(task, seed=3).order):
        values, label = rows[row]
        decision = agent.act(values)
        reward = float(task.action_names[decision.action] == label)
        agent.learn(decision, reward)
        assert (run.actions[i], run.rewards[i]) == (decision.action, reward)
        assert run.probabilities[i] == decision.probability
    assert "city=Oslo" in agent.feature_names_
    assert "age is missing" in agent.feature_names_


def test_a_rehearsal_has_the_rounds_of_a_simulation():
    prepared = prepare(rectangles(200, seed=1), seed=2)
    simulated, rehearsed = (play(prepared, "linucb", seed=2) for play in (simulate, rehearse))
    assert len(rehearsed.rewards) == len(simulated.rewards) == 170
    table = prepared.task.rewards[prepared.order]
    assert_array_equal(rehearsed.rewards, table[np.arange(170), rehearsed.actions])
    assert rehearsed.prepared is prepared


def an_agent(actions, task, seed=0):
    own = int(generator(seed, "rehearsal", task.number).integers(2**63))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)
        return Agent(actions, "linucb", seed=own, floor=0.0)


def coming_and_going(**rest):
    """Four actions: always there, closed in turns, there from row 80, and there until row 120."""
    rng = np.random.default_rng(5)
    can = np.ones((200, 4), bool)
    can[::2, 1] = False
    can[:80, 2] = False
    can[120:, 3] = False
    can[31, 1] = True
    contexts, rewards = rng.normal(size=(200, 2)), rng.random((200, 4))
    return Task("t", contexts, rewards, expected=rewards, open=can, ordered=True, **rest)


def test_actions_join_leave_and_are_closed_as_the_task_says():
    task = coming_and_going()
    run = rehearse(task, "linucb")
    agent, rows = an_agent([0, 3], task), task.named_rows()
    for i in range(170):
        row = 30 + i
        if row == 31:
            agent.add_actions([1])
        if row == 80:
            agent.add_actions([2])
        if row == 120:
            agent.remove_actions([3])
        offered = [a for a in agent.actions_ if row % 2 or a != 1]
        some = offered if len(offered) < len(agent.actions_) else None
        decision = agent.act(rows[row], actions=some)
        agent.learn(decision, task.rewards[row, decision.action])
        assert (run.actions[i], run.probabilities[i]) == (decision.action, decision.probability)
    assert task.open is not None
    assert task.open[30 + np.arange(170), run.actions].all()
    assert run.share is not None
    assert run.share < 1.0


def test_a_late_reward_is_learned_as_many_rounds_later():
    rng = np.random.default_rng(6)
    delays = rng.integers(0, 40, size=150)
    task = Task("t", rng.normal(size=(150, 2)), rng.random((150, 2)), delays=delays)
    prepared = prepare(task, seed=1)
    run = rehearse(prepared, "linucb", seed=1)
    agent, rows = an_agent([0, 1], task, 1), task.named_rows()
    waiting = []
    for i, row in enumerate(prepared.order):
        decision = agent.act(rows[row])
        assert (run.actions[i], run.probabilities[i]) == (decision.action, decision.probability)
        waiting.append((i + delays[row], decision.id, task.rewards[row, decision.action]))
        for due, id, reward in waiting:
            if due == i:
                agent.learn(id, reward)


def test_rewards_that_come_after_the_end_are_never_learned():
    plain = rectangles(150, seed=1)
    task = Task("t", plain.contexts, plain.rewards, delays=np.full(150, 2**61))
    assert (rehearse(task, "linucb").probabilities == 0.5).all()


def test_more_decisions_may_wait_than_an_agent_has_room_for(monkeypatch):
    monkeypatch.setattr("melee.rehearsal.MAX_PENDING", 10)
    plain = rectangles(150, seed=1)
    task = Task("t", plain.contexts, plain.rewards, delays=np.full(150, 50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an agent that gives decisions up says so
        rehearse(task, "linucb")


@pytest.mark.parametrize(
    "given", [{"open": np.ones((200, 2), bool)}, {"delays": np.zeros(200, int)}]
)
def test_a_simulation_refuses_what_only_an_agent_can_live_through(given):
    plain = rectangles(200, seed=1)
    task = Task("t", plain.contexts, plain.rewards, **given)
    with pytest.raises(InputError, match=r"task t: .* rewards come late.*; use melee\.rehearse"):
        simulate(task, "uniform")
    with pytest.raises(InputError, match="use melee"):
        simulate(prepare(task), "uniform")
    assert len(rehearse(task, "uniform").rewards) == 170


def test_rows_without_anything_are_met_as_empty_contexts():
    rewards = np.random.default_rng(0).random((100, 3))
    task = Task("t", np.zeros((100, 1)), rewards, rows=Rows({}, n_rows=100))
    assert list(task.named_rows())[:2] == [{}, {}]
    assert len(rehearse(task, "linucb").rewards) == 70
    assert len(task.rows.where(np.arange(100) < 7)) == 7  # type: ignore[union-attr]


def test_a_shorter_rehearsal_is_the_start_of_a_longer_one():
    task = rectangles(120, seed=1)
    for played in (task, coming_and_going()):
        run, longer = (rehearse(played, "linucb", max_rounds=n) for n in (30, None))
        assert_array_equal(run.actions, longer.actions[:30])


def test_seeds_and_datasets_have_luck_of_their_own():
    first, second = rectangles(300, seed=1), rectangles(300, seed=2)
    runs = [
        rehearse(first, "uniform", seed=0),
        rehearse(first, "uniform", seed=1),
        rehearse(second, "uniform", seed=0),
    ]
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        assert 0.3 < (runs[one].actions == runs[other].actions).mean() < 0.7


def test_the_floor_is_what_an_agent_mixes_in():
    task = rectangles(100, seed=1)
    assert rehearse(task, "linucb").probabilities.max() == 1.0
    assert rehearse(task, "linucb", floor=0.2).probabilities.max() == pytest.approx(0.9)


def test_a_task_of_numbers_is_met_under_the_names_of_its_features():
    named = Task("t", [[1.0, 2.0]], [[0.0, 1.0]], feature_names=["age", "hour"])
    assert list(named.named_rows()) == [{"age": 1.0, "hour": 2.0}]
    assert list(Task("t", [[1.0, 2.0]], [[0.0, 1.0]]).named_rows()) == [{"x0": 1.0, "x1": 2.0}]
    twice = Task("t", [[1.0, 2.0]], [[0.0, 1.0]], feature_names=["age", "age"])
    assert list(twice.named_rows()) == [{"x0": 1.0, "x1": 2.0}]


def test_rows_that_are_not_one_per_context_are_refused():
    rows = Rows({"age": np.array([1.0, 2.0])})
    with pytest.raises(InputError, match="there are 2 rows for 1 contexts; give one each"):
        Task("t", [[1.0]], [[0.0, 1.0]], rows=rows)


@pytest.mark.parametrize(
    ("explorer", "sentence"),
    [
        ("full-information", "which only a simulation knows"),
        ("melee-paper", "an agent starts without any"),
        ("banditron-melee", "an agent starts without any"),
    ],
)
def test_explorers_that_agents_refuse_are_refused_here_too(explorer, sentence):
    with pytest.raises(InputError, match=sentence):
        rehearse(rectangles(60, seed=0), explorer)
    assert sentence in refusal(explorer)


def test_what_an_explorer_says_of_itself_is_a_share_of_rounds():
    run = rehearse(rectangles(60, seed=0), "melee")
    assert sorted(run.diagnostics) == ["guard: over budget", "guard: unfamiliar"]
    assert all(0.0 <= share <= 1.0 for share in run.diagnostics.values())


# --- rows ---------------------------------------------------------------------------------------


def some_rows(**changes):
    columns: dict[str, Floats | Texts] = {
        "age": np.array([31.0, np.nan, 40.0]),
        "city": Texts(np.array([0, 1, -1], np.int32), ("Rome", "Oslo")),
    }
    return Rows(columns | changes)


def test_some_of_the_rows_are_rows():
    some = some_rows().where(np.array([True, False, True]))
    assert list(some) == [{"age": 31.0, "city": "Rome"}, {"age": 40.0, "city": None}]


def test_the_hash_of_rows_tells_names_values_and_gaps_apart():
    one = some_rows().content_hash
    assert some_rows().content_hash == one
    others = [
        some_rows(age=np.array([31.0, 0.0, 40.0])),
        some_rows(age=np.array([32.0, np.nan, 40.0])),
        some_rows(city=Texts(np.array([0, 1, 1], np.int32), ("Rome", "Oslo"))),
        some_rows(city=Texts(np.array([0, 1, -1], np.int32), ("Rome", "Lima"))),
        Rows({"years": some_rows().columns["age"], "city": some_rows().columns["city"]}),
    ]
    assert len({one, *(rows.content_hash for rows in others)}) == 6


def test_levels_of_any_type_are_texts():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "day": pd.to_datetime(["2020-01-01", "2020-01-02"]),
            "size": pd.Categorical([10, 9]),
            "label": ["a", "b"],
        }
    )
    rows = list(table_to_task(frame, "label", keep_rows=True).named_rows())
    assert rows[0] == {"n": 1.0, "day": "2020-01-01 00:00:00", "size": "10"}
