"""Estimates beside those of the Open Bandit Pipeline, of which the definitions are well known.

They are written out below, in its own form of arrays. `make test-peers` compares them, and ours,
with `obp` itself, on the logs of the Open Bandit Dataset that it brings.
"""

import csv
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from melee.evaluation import evaluate
from melee.evaluation.log import EvaluatedLog
from melee.history import History, Round

ESTIMATORS = ("ips", "snips", "dm", "dr", "switch", "dros")
EXACT = 1e-9


def defined(reward, action, pscore, action_dist, q_hat, tau, lambda_):
    """The means of OBP's `_estimate_round_rewards`; its arrays, of one position."""
    n_rounds = len(reward)
    iw = action_dist[np.arange(n_rounds), action, 0] / pscore
    q_factual = q_hat[np.arange(n_rounds), action, 0]
    baseline = np.average(q_hat[:, :, 0], weights=action_dist[:, :, 0], axis=1)
    rounds = {
        "ips": iw * reward,
        "snips": iw * reward / iw.mean(),
        "dm": baseline,
        "dr": baseline + iw * (reward - q_factual),
        "switch": baseline + (iw <= tau) * iw * (reward - q_factual),
        "dros": baseline
        + (iw if np.isinf(lambda_) else lambda_ * iw / (iw**2 + lambda_)) * (reward - q_factual),
    }
    return {name: float(values.mean()) for name, values in rounds.items()}


def compared(history, chances):
    """Our estimates of a policy of fixed chances, and the arrays that OBP takes."""
    found = evaluate(history, lambda context: chances, estimators=ESTIMATORS)
    log = EvaluatedLog(history)
    dist = np.array([chances[label] for label in log.labels])
    arrays = {
        "reward": log.rewards,
        "action": log.actions,
        "pscore": log.probabilities,
        "action_dist": np.tile(dist[None, :, None], (log.n_rounds, 1, 1)),
    }
    values = {name: one.value for name, one in found.estimates.items()}
    return values, found.settings, arrays, log.model.predicted[:, :, None]


def like_the_dataset(n_rounds, seed):
    """A log such as that of its Thompson sampling: many items, chances that vary, few clicks."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(20, 0.8)) * 0.8 + 0.2 / 20
    rates = rng.uniform(0.002, 0.02, 20)
    items = rng.choice(20, size=n_rounds, p=p)
    return History(
        Round(
            {"age": f"g{rng.integers(4)}", "position": f"p{rng.integers(3)}"},
            f"i{item}",
            float(rng.random() < rates[item]),
            float(p[item]),
        )
        for item in items
    )


def test_estimates_are_those_of_obps_definitions():
    history = like_the_dataset(2000, seed=0)
    chances = dict.fromkeys(EvaluatedLog(history).labels, 1.0 / 20.0)
    values, settings, arrays, q_hat = compared(history, chances)
    expected = defined(**arrays, q_hat=q_hat, tau=settings["switch"], lambda_=settings["dros"])
    assert_allclose([values[n] for n in ESTIMATORS], [expected[n] for n in ESTIMATORS], rtol=EXACT)


@pytest.fixture
def package():
    """The directory of `obp`."""
    spec = importlib.util.find_spec("obp")
    if spec is None or spec.origin is None:
        pytest.skip("obp is not installed; make test-peers installs it")
    return Path(spec.origin).parent


@pytest.fixture
def ope(package, monkeypatch):
    """Its estimators, without the rest of it.

    They name a type of PyTorch, which is more than all that is pinned here together; what stands
    beside them in `obp.ope` needs more still, and is not imported.
    """
    bare = ModuleType("obp.ope")
    bare.__path__ = [str(package / "ope")]
    for name, module in {"torch": SimpleNamespace(Tensor=object), "obp.ope": bare}.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("obp", "obp.utils", "obp.ope.estimators"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("obp.ope.estimators")


def obd(package, behavior, campaign):
    """Rows of the logs that come with `obp`, as a history; NaN of a text is a level as well."""
    path = package / "dataset" / "obd" / behavior / campaign / f"{campaign}.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return History(
        Round(
            {name: row[name] for name in ("position", "user_feature_0", "user_feature_1")},
            row["item_id"],
            float(row["click"]),
            float(row["propensity_score"]),
        )
        for row in rows
    )


@pytest.mark.parametrize("behavior", ["bts", "random"])
@pytest.mark.parametrize("campaign", ["all", "men", "women"])
def test_estimates_are_those_of_obp_on_the_open_bandit_dataset(package, ope, behavior, campaign):
    history = obd(package, behavior, campaign)
    log = EvaluatedLog(history)
    rng = np.random.default_rng(0)
    # Items are wanted about as often as they were shown, or too few rounds would tell of them.
    shown = np.bincount(log.actions, minlength=len(log.labels))
    wanted = shown * rng.uniform(0.5, 1.5, size=len(shown))
    chances = dict(zip(log.labels, (wanted / wanted.sum()).tolist(), strict=True))
    values, settings, arrays, q_hat = compared(history, chances)
    settings = {name: min(value, 1e12) for name, value in settings.items()}  # it knows no inf
    position = np.zeros(len(history), dtype=int)
    theirs = {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dm": ope.DirectMethod(),
        "dr": ope.DoublyRobust(),
        "switch": ope.SwitchDoublyRobust(tau=settings["switch"]),
        "dros": ope.DoublyRobustWithShrinkage(lambda_=settings["dros"]),
    }
    expected = defined(**arrays, q_hat=q_hat, tau=settings["switch"], lambda_=settings["dros"])
    for name, estimator in theirs.items():
        found = estimator.estimate_policy_value(
            **arrays, position=position, estimated_rewards_by_reg_model=q_hat
        )
        assert_allclose([values[name], expected[name]], found, rtol=EXACT, err_msg=name)
