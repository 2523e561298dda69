"""Evaluating policies on logs whose actions have features."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import melee
from melee.errors import InputError, UnknownNameError
from melee.evaluation import evaluate, evaluate_live, evaluate_many, examine
from melee.evaluation.embeddings import N_BINS, Shelf, alike, gathered
from melee.evaluation.log import EvaluatedLog
from melee.evaluation.pair_model import PairRewardModel
from melee.history import History, Round

TOPICS = ("sport", "film", "news", "food")
N_KINDS, N_ITEMS = 3, 40


class Shop:
    """Readers of a few kinds; items of a few topics, each with a price of its own."""

    def __init__(self, seed=0, spread=0.0):
        rng = np.random.default_rng(seed)
        self.topic = rng.integers(len(TOPICS), size=N_ITEMS)
        self.price = rng.permutation(N_ITEMS).astype(float)
        of_topic = rng.uniform(0.3, 0.7, (N_KINDS, len(TOPICS)))
        own = spread * rng.uniform(-0.3, 0.3, (N_KINDS, N_ITEMS))  # what no topic says
        self.means = of_topic[:, self.topic] + own
        self.logging = np.exp(rng.normal(0.0, 0.7, (N_KINDS, N_ITEMS)))
        self.logging /= self.logging.sum(axis=1, keepdims=True)
        self.target = np.full((N_KINDS, N_ITEMS), 0.2 / N_ITEMS)
        self.target[np.arange(N_KINDS), rng.integers(N_ITEMS, size=N_KINDS)] += 0.8
        self.labels = [f"i{j}" for j in range(N_ITEMS)]
        self.features: Any = {
            label: {"topic": TOPICS[topic], "price": price}
            for label, topic, price in zip(self.labels, self.topic, self.price, strict=True)
        }

    def policy(self, context):
        return dict(zip(self.labels, self.target[int(context["kind"][1:])].tolist(), strict=True))

    @property
    def truth(self):
        return float((self.target * self.means).sum(axis=1).mean())

    def by_topic(self, pmfs):
        """Probabilities of each item's topic, (kinds, items)."""
        same = self.topic[:, None] == self.topic[None, :]
        return pmfs @ same

    @property
    def mips_weights(self):
        return self.by_topic(self.target) / self.by_topic(self.logging)

    def moments(self, weights):
        """Mean and variance of weight · reward for one round, by a sum over all that can be."""
        mean = (self.logging * weights * self.means).sum(axis=1).mean()
        square = (self.logging * weights**2 * self.means).sum(axis=1).mean()  # rewards are 0 or 1
        return mean, square - mean**2

    def log(self, n_rounds, seed):
        rng = np.random.default_rng(seed)
        rounds: Any = []
        pmfs = [dict(zip(self.labels, row.tolist(), strict=True)) for row in self.logging]
        for kind in rng.integers(N_KINDS, size=n_rounds):
            j = int(rng.choice(N_ITEMS, p=self.logging[kind]))
            reward = float(rng.random() < self.means[kind, j])
            chance = float(self.logging[kind, j])
            rounds.append(
                Round(
                    {"kind": f"k{kind}"},
                    self.labels[j],
                    reward,
                    chance,
                    pmf=pmfs[kind],
                    features=self.features,
                )
            )
        return History(rounds)


def naive_mips(history, policy, embedding):
    """From the definition: the mean of reward · π(e|x) / p(e|x), e that of the logged action."""
    terms = []
    for one in history:
        wanted, logged = policy(one.context), one.pmf
        own = embedding(one.features[one.action])
        same = [label for label in logged if embedding(one.features[label]) == own]
        weight = sum(wanted.get(label, 0.0) for label in same) / sum(logged[k] for k in same)
        terms.append(weight * one.reward)
    return float(np.mean(terms))


@pytest.mark.parametrize("names", [["topic"], ["topic", "price"]])
def test_mips_is_what_its_definition_says(names):
    shop = Shop()
    history = shop.log(1500, seed=3)
    found = evaluate(history, shop.policy, estimators=["mips"], embedding=names)
    ends = np.quantile(np.repeat(shop.price, 1500), np.arange(1, N_BINS) / N_BINS, method="lower")

    def embedding(features):
        bins = int(np.searchsorted(ends, features["price"]))
        return tuple({"topic": features["topic"], "price": bins}[name] for name in names)

    assert_allclose(found.estimates["mips"].value, naive_mips(history, shop.policy, embedding))
    by_function = evaluate(history, shop.policy, estimators=["mips"], embedding=embedding)
    assert by_function.estimates == found.estimates


def test_mips_is_unbiased_and_less_noisy_where_features_say_all():
    """Saito and Joachims (2022): proposition 3.3, and theorem 3.6 for the variance."""
    shop = Shop()
    ips_mean, ips_variance = shop.moments(shop.target / shop.logging)
    mips_mean, mips_variance = shop.moments(shop.mips_weights)
    assert_allclose([ips_mean, mips_mean], shop.truth)
    same = shop.topic[:, None] == shop.topic[None, :]
    within = shop.logging[:, None, :] * same / shop.by_topic(shop.logging)[:, :, None]
    weights = (shop.target / shop.logging)[:, None, :]
    spread = (within * weights**2).sum(2) - (within * weights).sum(2) ** 2
    gain = (shop.logging * shop.means * spread).sum(axis=1).mean()
    assert_allclose(ips_variance - mips_variance, gain)
    assert mips_variance < 0.25 * ips_variance

    n, values = 150, []
    for seed in range(100):
        history = shop.log(n, seed)
        found = evaluate(history, shop.policy, estimators=["mips"], embedding=["topic"])
        values.append(found.estimates["mips"])
    points = np.array([one.value for one in values])
    assert abs(points.mean() - shop.truth) < 4.0 * np.sqrt(mips_variance / n / len(points))
    assert 0.7 < points.var() / (mips_variance / n) < 1.4
    held = np.mean([one.low <= shop.truth <= one.high for one in values])
    assert held >= 0.92


def test_mips_is_biased_by_what_features_do_not_say_and_a_long_log_tells():
    shop = Shop(seed=7, spread=1.0)
    mean, variance = shop.moments(shop.mips_weights)
    assert abs(mean - shop.truth) > 0.1
    points = [
        evaluate(shop.log(200, seed), shop.policy, estimators=["mips"], embedding=["topic"])
        .estimates["mips"]
        .value
        for seed in range(60)
    ]
    assert abs(np.mean(points) - mean) < 4.0 * np.sqrt(variance / 200 / 60)
    loud = History(  # one item earns always, others of its topic never
        dataclasses.replace(one, reward=float(one.action == "i0"))
        for one in Shop(seed=2).log(3000, seed=0)
    )
    found = evaluate(loud, lambda context: "i0", estimators=["mips"], embedding=["topic"])
    assert any("do not earn alike" in one for one in found.warnings)
    fine = evaluate(Shop().log(300, 0), Shop().policy, estimators=["mips"], embedding=["topic"])
    assert not any("do not earn alike" in one for one in fine.warnings)


def own_price(features):
    return features["price"]


def test_mips_by_features_that_tell_all_apart_is_ips_and_says_so():
    shop = Shop()
    history = shop.log(1500, seed=0)
    every = ["dr", "ips", "mips"]
    found = evaluate(history, shop.policy, estimators=every, embedding=own_price)
    assert_allclose(found.estimates["mips"][1:], found.estimates["ips"][1:])
    assert any("mips is ips here" in one for one in found.warnings)


def test_mips_answers_for_what_had_no_chance_if_others_like_it_had():
    shop = Shop()
    shop.logging[:, 0] = 0.0
    shop.logging /= shop.logging.sum(axis=1, keepdims=True)
    history = shop.log(500, seed=0)
    with pytest.raises(InputError, match="had probability 0"):
        evaluate(history, lambda context: "i0", estimators=["ips"])
    found = evaluate(history, lambda context: "i0", estimators=["mips"], embedding=["topic"])
    one = found.estimates["mips"]
    assert one.low <= shop.means[:, 0].mean() <= one.high
    assert found.effective_sample_size > 20.0


def test_rounds_that_stand_for_several_count_so_often_in_mips():
    shop = Shop()
    history = shop.log(60, seed=0)
    thrice = History(dataclasses.replace(one, stands_for=3.0) for one in history[:20])
    mixed = History([*thrice, *history[20:]])
    repeated = History([*history[:20], *history[:20], *history])
    options: dict[str, Any] = {"estimators": ["mips"], "embedding": ["topic"]}
    found, expected = (evaluate(one, shop.policy, **options) for one in (mixed, repeated))
    assert_allclose(found.estimates["mips"].value, expected.estimates["mips"].value)


def test_differences_by_mips_are_those_of_its_terms():
    shop = Shop()
    history = shop.log(300, seed=0)
    policies = {"own": shop.policy, "even": lambda context: dict.fromkeys(shop.labels, 1 / N_ITEMS)}
    options: dict[str, Any] = {"estimators": ["mips"], "embedding": ["topic"], "baseline": "even"}
    found: Any = evaluate_many(history, policies, **options)
    own, even = (found[name].estimates["mips"].value for name in ("own", "even"))
    assert_allclose(found["own"].difference.value, own - even)
    assert found["own"].difference.p_value <= 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedding": ["size"]}, "unknown feature of candidates 'size'"),
        ({"embedding": "topic"}, "expected names of the candidates' features"),
        ({"embedding": []}, "expected names of the candidates' features"),
        ({"embedding": lambda features: []}, "can be compared as a whole"),
        ({"embedding": ["topic"], "estimators": ["ips"]}, "add mips to the estimators"),
    ],
)
def test_embeddings_that_cannot_be_are_refused(options, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        evaluate(Shop().log(30, 0), Shop().policy, **{"estimators": ["mips"], **options})


def test_logs_that_do_not_say_what_mips_needs_are_refused():
    shop = Shop()
    history = shop.log(30, 0)
    bare = History(dataclasses.replace(one, features=None) for one in history)
    with pytest.raises(InputError, match="goes by features of actions, and this log has none"):
        evaluate(bare, shop.policy, estimators=["mips"])
    without = History(dataclasses.replace(one, pmf=None) for one in history)
    with pytest.raises(InputError, match="probabilities of all actions, and round 0"):
        evaluate(without, shop.policy, estimators=["mips"])
    own = History(
        dataclasses.replace(one, features={one.action: one.features[one.action]}) for one in history
    )
    with pytest.raises(InputError, match="round 0 has the features of 1 of its 40 actions"):
        evaluate(own, shop.policy, estimators=["mips"])
    with pytest.raises(InputError, match="has to know what could be chosen"):
        evaluate(own, "linucb")


def test_numbers_are_binned_and_texts_are_not():
    features: Any = {f"i{j}": {"price": float(j), "few": float(j % 3)} for j in range(50)}
    pmf = dict.fromkeys(features, 0.02)
    rounds = [Round({}, "i0", 1.0, 0.02, pmf=pmf, features=features)] * 2
    shelf = Shelf(rounds, {})
    assert len(set(alike(shelf, ["price"])[0])) == N_BINS
    assert len(set(alike(shelf, ["few"])[0])) == 3
    assert len(set(alike(shelf)[0])) == 3 * N_BINS
    rows = {label: np.array([one["price"], 1.0]) for label, one in features.items()}
    arrays = Shelf([dataclasses.replace(one, features=rows) for one in rounds], {})
    assert_allclose(alike(arrays, [0]), alike(shelf, ["price"]))


def test_gathered_moves_mass_and_loses_none():
    rng = np.random.default_rng(0)
    values, groups = rng.random((5, 6)), np.array([[0, 1, 0, 3, 1, 5]] * 5)
    sums = gathered(values, groups)
    assert_allclose(sums.sum(axis=1), values.sum(axis=1))
    assert_allclose(sums[:, 0], values[:, 0] + values[:, 2])


# --- the model of rewards -----------------------------------------------------------------------


def pair_model(history):
    log = EvaluatedLog(history)
    assert isinstance(log.model, PairRewardModel)
    return log, log.model


def naive_predictions(model, rewards, actions, which, items, fold):
    """Ridge twice and offsets of items, from scratch for every fold; penalties as documented."""
    n, width = which.shape
    rows = np.arange(n)
    inputs = model.pairs(rows, which)
    own = inputs[rows, actions]
    d = own.shape[1] - 1
    penalty = np.diag([2.0 * d] * d + [2.0])
    q = np.empty((n, width))
    for part in np.unique(fold):
        train = np.flatnonzero(fold != part)
        mean = rewards[train].mean()
        A, y = own[train], rewards[train] - mean
        w = np.linalg.solve(A.T @ A + penalty, A.T @ y)
        w = w + np.linalg.solve(A.T @ A + penalty, A.T @ (y - A @ w))
        errors = y - A @ w
        for i in np.flatnonzero(fold == part):
            for k in range(width):
                mine = [
                    e
                    for e, j in zip(errors, train, strict=True)
                    if items[j, actions[j]] == items[i, k]
                ]
                q[i, k] = mean + inputs[i, k] @ w + sum(mine) / (len(mine) + 10.0)
    return q


def test_predictions_are_those_of_ridges_and_records_from_scratch():
    log, model = pair_model(Shop(spread=1.0).log(60, seed=0))
    fold = np.arange(60) % 5
    expected = naive_predictions(
        model, log.units, log.actions, log.shelf.which, log.shelf.items, fold
    )
    assert_allclose(model.predicted, expected, atol=1e-9)


def test_implied_weights_give_the_mean_prediction_for_any_rewards():
    shop = Shop(spread=1.0)
    log, model = pair_model(shop.log(80, seed=0))
    rng = np.random.default_rng(0)
    chosen = rng.dirichlet(np.ones(N_ITEMS), 80)
    outside = np.zeros(80)
    implied = model.implied_weights(chosen, outside)
    mean = (chosen * model.predicted).sum(axis=1).mean()
    assert_allclose(implied @ log.units / 80, mean, atol=1e-9)


def test_the_model_knows_new_items_by_their_features():
    """Items of the second half are new; a model per item would know nothing of them."""
    rng = np.random.default_rng(0)
    rounds: Any = []
    for i in range(1200):
        shelf: Any = {
            f"r{i} {j}": {"topic": TOPICS[j], "price": float(rng.integers(1, 50))} for j in range(4)
        }
        likes = TOPICS[int(rng.integers(4))]
        label = str(rng.choice(list(shelf)))
        reward = float(shelf[label]["topic"] == likes)
        pmf = dict.fromkeys(shelf, 0.25)
        rounds.append(Round({"likes": likes}, label, reward, 0.25, pmf=pmf, features=shelf))
    _, model = pair_model(History(rounds))
    wishes = np.array([TOPICS.index(one.context["likes"]) for one in rounds])
    truth = (np.arange(4)[None, :] == wishes[:, None]).astype(float)
    assert np.abs(model.predicted - truth).mean() < 0.1

    def wanted(context, candidates):
        return next(k for k, one in candidates.items() if one["topic"] == context["likes"])

    found = evaluate(History(rounds), wanted)
    assert found.estimates["dr"].low > 0.9
    ips = found.estimates["ips"]
    assert found.estimates["dr"].high - found.estimates["dr"].low < 0.5 * (ips.high - ips.low)


def test_rows_of_numbers_and_candidates_of_unequal_number_are_modelled():
    rng = np.random.default_rng(0)
    rounds: Any = []
    for _ in range(400):
        n = int(rng.integers(1, 7))
        shelf = {j: rng.normal(size=3) for j in range(n)}
        j = int(rng.integers(n))
        pmf = dict.fromkeys(shelf, 1.0 / n)
        reward = float(np.clip(0.5 + 0.2 * shelf[j][0], 0.0, 1.0))
        rounds.append(Round(rng.normal(size=2), j, reward, 1.0 / n, pmf=pmf, features=shelf))

    def largest(context, candidates):
        return max(candidates, key=lambda label: candidates[label][0])

    log = EvaluatedLog(History(rounds))
    assert log.chances.shape == (400, 6)
    found = evaluate(History(rounds), largest, estimators=["dr", "ips", "dm"])
    values = [
        float(np.clip(0.5 + 0.2 * max(f[0] for f in r.features.values()), 0, 1)) for r in rounds
    ]
    assert found.estimates["dr"].low <= np.mean(values) <= found.estimates["dr"].high
    assert abs(found.estimates["dm"].value - np.mean(values)) < 0.02


# --- agents, explorers and the doctor -----------------------------------------------------------


def small_log(n_rounds=240, seed=0):
    rng = np.random.default_rng(seed)
    agent = melee.Agent(explorer="uniform", seed=seed)
    history = History()
    for _ in range(n_rounds):
        shelf = {f"a{j}": {"topic": str(rng.choice(TOPICS[:2])), "age": j} for j in range(4)}
        reader = {"likes": str(rng.choice(TOPICS[:2]))}
        decision = agent.act(reader, actions=shelf)
        reward = float(shelf[decision.action]["topic"] == reader["likes"])
        history.append(
            context=reader,
            action=decision.action,
            reward=reward,
            probability=decision.probability,
            pmf=decision.pmf,
            features=shelf,
        )
    return history


def test_an_explorer_is_trained_on_candidates_and_asked_about_them():
    history = small_log()
    found: Any = evaluate_many(history, ["linucb:alpha=0.2", "uniform", "cover"])
    assert found["linucb:alpha=0.2"].estimates["dr"].value > found["uniform"].estimates["dr"].value
    assert isinstance(found["cover"], InputError)


def test_an_agent_of_candidates_is_asked_with_the_candidates_of_each_round():
    history = small_log()
    agent = melee.Agent(explorer="linucb:alpha=0.2")
    assert agent.learn_rounds(history[:120]) == 120
    before = agent.fingerprint
    found = evaluate(history[120:], agent)
    assert agent.fingerprint == before
    assert found.estimates["dr"].value > 0.7


def test_an_explorer_lives_through_a_log_of_candidates():
    found = evaluate_live(small_log(), "linucb:alpha=0.2")
    assert found.reason is None
    assert found.value > 0.5


def test_the_doctor_knows_candidates():
    history = small_log()
    by_check = {one.check: one for one in examine(history)}
    assert by_check["candidates"].level == "ok"
    assert by_check["support"].level == "ok"
    own = [
        dataclasses.replace(one, features={one.action: one.features[one.action]}) for one in history
    ]
    found = next(one for one in examine(History(own)) if one.check == "candidates")
    assert found.level == "warning"
    assert "240 of 240 rounds lack the features" in found.found
    rows = [dataclasses.replace(own[0], features={"a0": np.zeros(2)}), *history[1:]]
    kinds = [one for one in examine(History(rows)) if one.check == "candidates"]
    assert any(one.level == "error" and "dicts and 2 numbers" in one.found for one in kinds)
    late = [
        one
        if i < 100
        else dataclasses.replace(
            one, features={k: {**v, "topic": 1.0} for k, v in one.features.items()}
        )
        for i, one in enumerate(history)
    ]
    found = next(one for one in examine(History(late)) if one.check == "candidates")
    assert found.level == "warning"
    assert "both numbers and texts in features of candidates: topic (" in found.found
    same = [dataclasses.replace(one, features={k: {} for k in one.features}) for one in history]
    assert any("in no round do candidates differ" in one.found for one in examine(History(same)))


def test_functions_of_two_arguments_are_given_the_candidates():
    history = small_log()

    def by_topic(context, candidates):
        same = [k for k, one in candidates.items() if one["topic"] == context["likes"]]
        return dict.fromkeys(same or candidates, 1.0 / len(same or candidates))

    assert evaluate(history, by_topic).estimates["dr"].value > 0.9
    with_default = evaluate(history, lambda context, k=1: f"a{k}", estimators=["ips"])
    assert with_default.estimates["ips"].value < 0.9
    with pytest.raises(InputError, match="were not among the candidates of their round"):
        evaluate(history, lambda context: "z9")
