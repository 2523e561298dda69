"""Agents without actions of their own: candidates come with the question."""

import math
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

import melee
from melee.agent import familiar
from melee.errors import InputError
from melee.history import History

TOPICS = ("sport", "film", "news")
READER = {"age": 31.0, "likes": "film"}
ARTICLES = {
    "a17": {"topic": "sport", "hours old": 3},
    "a18": {"topic": "film", "hours old": 40, "tags": ["long", "new"]},
    "a19": {"topic": "news", "hours old": None},
}


def lived(rounds, agent=None, seed=0, explorer="linucb", **parameters):
    """An agent that has met readers, and articles that come and go; and what the last were."""
    rng = np.random.default_rng(seed)
    agent = melee.Agent(explorer=explorer, **parameters) if agent is None else agent
    articles = {f"a{i}": made(rng) for i in range(8)}
    for t in range(rounds):
        if t % 10 == 9:
            articles.pop(next(iter(articles)))
            articles[f"b{t}"] = made(rng)
        reader = {"age": float(rng.integers(18, 70)), "likes": TOPICS[rng.integers(3)]}
        decision = agent.act(reader, actions=articles)
        chance = 0.1 + 0.7 * (articles[decision.action]["topic"] == reader["likes"])
        agent.learn(decision.id, float(rng.random() < chance))
    return agent, articles


def made(rng):
    return {"topic": TOPICS[rng.integers(3)], "length": float(rng.normal())}


def likeliest(pmf):
    return max(pmf, key=pmf.get)


def test_a_new_article_is_judged_by_its_topic():
    agent, _ = lived(400)
    for topic in TOPICS:
        new = {one: {"topic": one, "length": 0.0} for one in TOPICS}
        assert likeliest(agent.pmf({"age": 40.0, "likes": topic}, actions=new)) == topic


def test_candidates_may_be_tables_labels_or_dicts():
    agent = melee.Agent(explorer="linucb")
    table = pd.DataFrame({"topic": ["sport", "film"], "length": [1.0, None]}, index=["x", "y"])
    assert agent.act(READER, actions=table).action in ("x", "y")
    assert agent.act(READER, actions=table.assign(id=[7, 8])).action in (7, 8)
    assert agent.act(READER, actions=["p", "q"]).action in ("p", "q")
    assert agent.act(READER, actions={"r": None, ("s", 1): {}}).actions == ("r", ("s", 1))
    numbers = melee.Agent(explorer="linucb")
    decision = numbers.act([1.0, 2.0], actions={"u": [1.0, 0.0, 3.0], "v": np.array([2, 1, 0])})
    assert numbers.learn(decision.id, 1.0)


def test_late_rewards_are_learned_by_the_features_of_then():
    agent, other = melee.Agent(explorer="linucb"), melee.Agent(explorer="linucb")
    first = agent.act(READER, actions=ARTICLES, id="one")
    other.act(READER, actions=ARTICLES, id="one")
    other.learn("one", 1.0)
    changed = {**ARTICLES, first.action: {"topic": "games"}}
    agent.act(READER, actions=changed, id="two")
    other.act(READER, actions=changed, id="two")
    assert agent.learn(first, 1.0)
    assert not agent.learn(first, 1.0)
    assert agent.pmf(READER, actions=ARTICLES) == other.pmf(READER, actions=ARTICLES)


@pytest.mark.parametrize("rounds", [0, 1, 30, 300])
def test_a_saved_agent_goes_on_as_if_never_saved(rounds, tmp_path):
    agent, articles = lived(rounds, half_life=100)
    agent.act(READER, actions=articles, id="waits")
    agent.save(tmp_path / "agent")
    again = melee.Agent.load(tmp_path / "agent")
    assert again.fingerprint == agent.fingerprint
    assert again.learn("waits", 1.0) is agent.learn("waits", 1.0) is True
    lived(30, agent, seed=1)
    lived(30, again, seed=1)
    assert again.fingerprint == agent.fingerprint


def test_looking_changes_nothing():
    agent, articles = lived(50)
    before = agent.fingerprint
    many = {i: made(np.random.default_rng(i)) for i in range(100)}  # more than ever before
    assert sum(agent.pmf(READER, actions=many).values()) == pytest.approx(1.0)
    assert len(agent.explain(READER, actions=articles).actions) == len(articles)
    assert agent.fingerprint == before


def test_many_at_once_are_the_same_decisions():
    one, many = (lived(60)[0] for _ in range(2))
    readers = [{"age": float(age), "likes": "news"} for age in range(20, 30)]
    offers = [{k: ARTICLES[k] for k in list(ARTICLES)[i % 2 :]} for i in range(10)]
    separately = [one.act(r, actions=o) for r, o in zip(readers, offers, strict=True)]
    assert many.act_many(readers, actions=offers) == separately
    same = [one.act(r, actions=ARTICLES) for r in readers]
    assert many.act_many(readers, actions=ARTICLES) == same
    assert many.act_many([], actions=ARTICLES) == []


def test_a_ranking_has_probabilities_and_rewards_by_place():
    agent, articles = lived(60)
    ranking = agent.act(READER, actions=articles, top=3)
    assert len(set(ranking.actions)) == 3
    chances = [place.probability for place in ranking.places]
    assert ranking.probability == pytest.approx(np.prod(chances))
    assert [len(place.actions) for place in ranking.places] == [8, 7, 6]
    learned = agent.n_learned_
    assert agent.learn(ranking.places[1], 1.0)
    assert agent.learn(f"{ranking.id}/3", 0.0)
    assert agent.n_learned_ == learned + 2
    fixed = melee.Agent(["a", "b", "c"], "linucb").act(READER, top=2, id="mine")
    assert [place.id for place in fixed.places] == ["mine/1", "mine/2"]


def test_a_ranking_takes_the_rewards_of_all_its_places_at_once():
    (at_once, articles), (place_by_place, _) = lived(60), lived(60)
    ranking = at_once.act(READER, actions=articles, top=3)
    assert at_once.learn(ranking, [0.0, 1.0, 0.5])
    for place, reward in zip(place_by_place.act(READER, actions=articles, top=3).places,
                             [0.0, 1.0, 0.5], strict=True):  # fmt: skip
        place_by_place.learn(place, reward)
    assert at_once.fingerprint == place_by_place.fingerprint
    assert not at_once.learn(ranking, rewards=[0.0, 1.0, 0.5])
    assert at_once.learn_many(ranking, [0.0, 1.0, 0.5]) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda agent, ranking: agent.learn(ranking, [1.0]), "3 places and there are 1 rewards"),
        (lambda agent, ranking: agent.learn_many(ranking, [1.0] * 4), "there are 4 rewards"),
        (lambda agent, ranking: agent.learn(ranking, [0.0, math.nan, 0.0]), "the reward is nan"),
        (lambda agent, ranking: agent.learn(ranking, 1.0), "rewards"),
        (lambda agent, ranking: agent.learn(ranking, [0.0] * 3, 0.5), "takes the rewards of its"),
        (lambda agent, ranking: agent.learn(ranking.id, 1.0), "is a ranking, whose places"),
    ],
)
def test_what_a_ranking_cannot_learn_is_refused_and_changes_nothing(call, sentence):
    agent, articles = lived(20)
    ranking = agent.act(READER, actions=articles, top=3)
    before = agent.fingerprint
    with pytest.raises(InputError, match=sentence):
        call(agent, ranking)
    assert agent.fingerprint == before
    assert agent.learn(ranking, [0.0, 0.0, 1.0])


def test_the_draw_is_as_frequent_as_its_probability():
    agent, articles = lived(100, explorer="softmax:temperature=0.3")
    pmf = agent.pmf(READER, actions=articles)
    chosen = [agent.act(READER, actions=articles).action for _ in range(2000)]
    for label, p in pmf.items():
        assert abs(chosen.count(label) / 2000 - p) < 4.0 * np.sqrt(p * (1 - p) / 2000) + 1e-9


def test_the_oldest_records_are_forgotten(monkeypatch):
    agent = melee.Agent(explorer="linucb")
    monkeypatch.setattr(agent._knowledge, "_free", [2, 1, 0])
    for i in range(5):
        agent.learn(READER, f"a{i}", 1.0, 0.5, features={"topic": "film"})
    assert agent.actions_ == ["a2", "a3", "a4"]
    assert agent.n_learned_ == 5
    counts = agent._knowledge.model.state.inner.counts
    assert counts[:4].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert sum(agent.pmf(READER, actions=ARTICLES).values()) == pytest.approx(1.0)


def shelved(t):
    """Candidates that stay; of some a number is missing, or comes late."""
    shelf: dict[str, Any] = {f"a{i}": {"words": 10.0 * i, "price": 0.5 + i} for i in range(6)}
    shelf["a2"]["price"] = None
    shelf["a3"]["price"] = "sold out" if t > 40 else 3.0
    if t > 300:
        shelf["a4"]["stars"] = float(t % 5)
    return shelf


def test_rows_that_are_kept_are_those_that_would_be_made_anew():
    agents = [melee.Agent(explorer="linucb", seed=1) for _ in range(2)]
    for t in range(360):
        known: Any = agents[1]._knowledge
        known.familiar.clear()
        shelf = shelved(t)
        kept, new = (agent.act({"age": t % 7}, actions=shelf, id=f"d{t}") for agent in agents)
        assert kept == new
        for agent in agents:
            agent.learn(kept.id, float(t % 3 == 0))
    assert agents[0].fingerprint == agents[1].fingerprint


def test_records_of_candidates_that_come_again_are_those_of_now():
    shelf: Any = {label: {"words": i} for i, label in enumerate("abc")}
    agent = melee.Agent(explorer="linucb", seed=1)
    agent.act({"age": 1}, actions=shelf)
    known: Any = agent._knowledge
    for change, label in (("learn", "b"), ("learn", "a"), ("remove", "b"), ("learn", "c")):
        if change == "learn":
            agent.learn({"age": 1}, label, 1.0, 1.0, features=shelf[label])
        else:
            agent.remove_actions([label])
        agent.act({"age": 1}, actions=shelf)
        records = known.rows({"age": 1.0}, known.read(shelf))[2]
        assert records.tolist() == [known.items.get(one, (-1,))[0] for one in shelf]
    known._free.clear()  # no room: the oldest, a's, is taken for another
    agent.learn({"age": 1}, "z", 1.0, 1.0, features={"words": 9})
    assert known.rows({"age": 1.0}, known.read(shelf))[2][0] == -1


def test_rows_are_kept_from_the_first_rounds_on(monkeypatch):
    agent = melee.Agent(explorer="linucb")
    shelf = {f"a{i}": {"words": 10.0 * i, "topic": TOPICS[i % 3]} for i in range(30)}
    shelf["a7"] = {"topic": "film"}
    for t in range(12):
        agent.learn(agent.act({"age": t}, actions=shelf).id, 0.0)
    known: Any = agent._knowledge
    encoded, encode = [], known.traits.encode

    def counted(features, row):
        encoded.append(features)
        return encode(features, row)

    monkeypatch.setattr(known.traits, "encode", counted)
    for t in range(10):
        chosen = agent.act({"age": t}, actions=shelf)
        agent.learn(chosen.id, 0.0)
    assert len(encoded) <= 60  # of 300: the one whose number is missing, and those that are chosen


def test_only_among_many_candidates_is_machine_code_waited_for(monkeypatch):
    asked = []
    monkeypatch.setattr("melee.compiled.Program.load", lambda one: asked.append(one))
    agent = melee.Agent(explorer="linucb")
    for n, times in ((999, 0), (1000, 1)):
        agent.pmf(READER, actions={i: {"n": float(i)} for i in range(n)})
        assert len(asked) == times


def test_rows_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(familiar, "MOST_KEPT", 20)
    agent = melee.Agent(explorer="linucb")
    for i in range(30):
        agent.act(READER, actions={f"a{i}-{j}": {"n": float(j)} for j in range(5)})
    known: Any = agent._knowledge
    assert len(known.familiar.kept) <= 25


def test_a_log_carries_candidates_and_warms_another_agent(tmp_path):
    path = tmp_path / "log.jsonl"
    agent, articles = lived(120, log=path)
    history = History.read(path)
    last: Any = history[-1]
    assert list(last.features) == list(articles)
    assert last.features == {k: dict(v) for k, v in articles.items()}
    assert path.stat().st_size / len(history) < 700  # eight candidates would be as much alone
    for name in ("again.jsonl", "again.parquet", "again.dsjson"):
        history.write(tmp_path / name)
        assert list(History.read(tmp_path / name)) == list(history)
    warmed = melee.Agent(explorer="linucb")
    assert warmed.learn_rounds(history) == 120
    for reader in (READER, {"age": 60.0, "likes": "news"}):
        mine, theirs = (one.pmf(reader, actions=articles) for one in (agent, warmed))
        assert mine == theirs
    fixed = melee.Agent(history.actions, "linucb")
    assert fixed.learn_rounds(history) == 120  # which looks at labels alone


@pytest.mark.parametrize("how", ["learn", "learn_many", "give_up"])
def test_an_agent_that_was_loaded_logs_the_features_of_what_was_chosen(tmp_path, how):
    agent = melee.Agent(explorer="linucb", timeout=60.0, default_reward=0.0)
    decision = agent.act(READER, actions=ARTICLES)
    path = tmp_path / "log.jsonl"
    loaded = melee.Agent.from_bytes(agent.to_bytes(), log=path)
    if how == "learn":
        loaded.learn(decision.id, 1.0)
    elif how == "learn_many":
        loaded.learn_many([decision.id], [1.0])
    else:
        loaded.give_up(now=4e9)
    (found,) = History.read(path)
    assert list(found.features or {}) == [decision.action]


def test_a_decision_is_explained_by_names_of_both_sides():
    agent, articles = lived(300)
    why = agent.explain({"age": 30.0, "likes": "film"}, actions={"x": {"topic": "film"}})
    names = {part.name for part in why.actions[0].features}
    assert {"likes", "topic"} <= names
    decision = agent.act(READER, actions=articles)
    assert agent.explain(decision, actions=articles).chosen == decision.action
    with pytest.raises(InputError, match="pass the candidates"):
        agent.explain(decision)


def test_levels_that_appear_late_depend_on_the_context_too():
    rng, agent = np.random.default_rng(0), melee.Agent(explorer="linucb")
    for t in range(1200):
        topics = TOPICS if t > 300 else TOPICS[:1]
        reader = {"likes": TOPICS[rng.integers(3)]}
        topic = topics[rng.integers(len(topics))]
        reward = float(topic == reader["likes"])
        agent.learn(reader, f"a{t % 50}", reward, 0.5, features={"topic": topic})
    new = {one: {"topic": one} for one in TOPICS}
    for topic in TOPICS:
        assert likeliest(agent.pmf({"likes": topic}, actions=new)) == topic


def test_threads_share_an_agent():
    agent = melee.Agent(explorer="linucb")

    def work(seed):
        lived(40, agent, seed=seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert agent.n_learned_ == 160


BAD: dict[str, tuple[Any, str]] = {
    "no candidates": (None, "no candidates"),
    "an empty dict": ({}, "there are 0 candidates"),
    "a number": (3, "expected candidates as a dict"),
    "a text": ("abc", "expected candidates as a dict"),
    "rows": ([{"id": "a", "x": 1.0}], "expected candidates as a dict"),
    "NaN in a feature": ({"a": {"x": float("nan")}}, "candidate 'a': they hold nan"),
    "an infinite feature": ({"a": {"x": np.inf}}, "finite"),
    "numbers among names": ({"a": {"x": 1.0}, "b": [1.0]}, "several kinds"),
    "numbers where names were": ({"a": [1.0, 2.0]}, "as the first ones were"),
    "an object": ({"a": {"x": object()}}, "candidate 'a'"),
    "a label twice": (["a", "a"], "given twice"),
    "a table with a label twice": (pd.DataFrame({"id": [1, 1], "x": [0, 1]}), "given twice"),
    "two columns of one name": (pd.DataFrame([[1, 2]], columns=["x", "x"]), "two columns"),
    "a label that is none": ({float("nan"): {}}, "is no label"),
    "features that are a text": ({"a": "sport"}, "candidate 'a'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_candidates_are_refused_and_nothing_is_changed(case):
    agent, _ = lived(5)
    before = agent.fingerprint
    given, message = BAD[case]
    for ask in (agent.act, agent.pmf):
        with pytest.raises(InputError, match=message):
            ask(READER, actions=given)
    assert agent.fingerprint == before


def test_other_misuse_is_refused():
    agent, articles = lived(5)
    before = agent.fingerprint
    with pytest.raises(InputError, match="expected at most as many"):
        agent.act(READER, actions=articles, top=9)
    with pytest.raises(InputError, match="top is 0"):
        agent.act(READER, actions=articles, top=0)
    with pytest.raises(InputError, match="no actions of its own"):
        agent.add_actions(["z"])
    with pytest.raises(InputError, match="lists of candidates"):
        agent.act_many([READER, READER], actions=[articles])
    with pytest.raises(InputError, match="as the first ones were"):
        agent.learn(READER, "a", 1.0, 0.5, features=[1.0])
    assert agent.fingerprint == before
    fixed = melee.Agent(["a", "b"], "linucb")
    with pytest.raises(InputError, match="have none"):
        fixed.learn(READER, "a", 1.0, 0.5, features={"x": 1.0})
    for spec in ("cover", "eg-epsilon-greedy", "epsilon-greedy:optimizer=dr"):
        with pytest.raises(InputError, match="candidates"):
            melee.Agent(explorer=spec)


def test_a_feature_that_changes_its_kind_is_another_column():
    agent = melee.Agent(explorer="linucb")
    for value in (3.0, "three", ["a", "b"], None, True):
        decision = agent.act(READER, actions={"a": {"x": value}, "b": {"x": 1.0}})
        assert agent.learn(decision.id, 1.0)
    assert sum(agent.pmf(READER, actions={"a": {"x": "three"}}).values()) == 1.0
