"""LEARN: a linear cost-sensitive classifier of actions, fitted to the meta-dataset.

Cost-sensitive classification is reduced to binary classification by weighted all pairs
(Beygelzimer, Dani, Hayes, Langford and Zadrozny, 2005): for every state and every two actions
a and b, an example with input φ_a - φ_b, label "a is worth more" and weight |ρ̂_a - ρ̂_b|. A
linear classifier of such differences, without intercept, is a linear score of single actions.
It is the one that training on all renamings of the actions would give: no action is special.

Scaling (standardize or min-max) and learning rate are chosen by three-fold cross-validation on
the meta-dataset; whole tasks are held out, as states of one task are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from melee.arrays import Floats, Ints
from melee.explorers.melee_paper import N_SHARED, PER_ACTION
from melee.extras import needed
from melee.meta.rollouts import Examples

with needed("training a policy", "bench"):
    from sklearn.linear_model import SGDClassifier

COUNTS = ("predicted", "played")
"""Which actions of the history π counts: those that f predicted (the paper's), or those played."""
FEATURE_SETS = ("all", "probabilities")
"""Which features π may use: all, or the paper's ablation, the calibrated probabilities."""
LEARNING_RATES = (0.001, 0.01, 0.1, 1.0)
SCALINGS = ("standardize", "minmax")
N_EPOCHS = 5
N_FOLDS = 3


@dataclass(frozen=True)
class Setting:
    """What cross-validation chose."""

    scaling: str
    learning_rate: float


def features_used(feature_set: str, counts: str = "predicted") -> list[int]:
    """The places of the features that π may use: one kind of count, never both.

    >>> [PER_ACTION[j] for j in features_used("all", "played")]
    ['probability', 'predicted', 'played count', 'average', 'variance']
    """
    if feature_set == "probabilities":
        return [PER_ACTION.index("probability")]
    others = {f"{kind} count" for kind in COUNTS if kind != counts}
    return [j for j, name in enumerate(PER_ACTION) if name not in others]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """The meta-dataset as binary classification, and which task each state is from."""

    features: Floats  # (states, K, used features)
    values: Floats  # (states, K)
    groups: Ints  # (states,)
    used: list[int]

    @classmethod
    def of(
        cls, blocks: Sequence[Examples], used: list[int], tasks: Sequence[int] | None = None
    ) -> "Comparisons":
        """All blocks together; `tasks` says which task each is from, one of its own by default."""
        sizes = [len(block.values) for block in blocks]
        numbers = range(len(blocks)) if tasks is None else tasks
        groups = np.unique(np.array(numbers), return_inverse=True)[1]
        return cls(
            np.concatenate([block.features[:, :, used] for block in blocks]),
            np.concatenate([block.values for block in blocks]),
            np.repeat(groups, sizes),
            used,
        )


def choose_setting(data: Comparisons, seed: int) -> Setting:
    """The setting whose choices are worth most on held-out tasks; ties go to the first."""
    groups = data.groups if data.groups.max() + 1 >= N_FOLDS else np.arange(len(data.groups))
    folds = groups % N_FOLDS
    worth = {
        Setting(scaling, rate): sum(
            value_of(
                fit(data, Setting(scaling, rate), seed, folds != fold)[data.used],
                data.features[folds == fold],
                data.values[folds == fold],
            )
            for fold in range(N_FOLDS)
        )
        for scaling in SCALINGS
        for rate in LEARNING_RATES
    }
    return max(worth, key=lambda setting: worth[setting])


def value_of(weights: Floats, features: Floats, values: Floats) -> float:
    """Total value of the highest-scored actions; ties share."""
    scores = features @ weights
    chosen = scores == scores.max(axis=1, keepdims=True)
    return float(((values * chosen).sum(axis=1) / chosen.sum(axis=1)).sum())


def fit(data: Comparisons, setting: Setting, seed: int, rows: Ints | slice = slice(None)) -> Floats:
    """The weights of the policy, for raw features, in the order of the schema."""
    features, values = data.features[rows], data.values[rows]
    flat = features.reshape(-1, features.shape[2])
    size = flat.std(axis=0) if setting.scaling == "standardize" else np.ptp(flat, axis=0)
    scale = 1.0 / np.where(size > 0.0, size, 1.0)
    pairs = list(combinations(range(values.shape[1]), 2))
    inputs = np.concatenate([(features[:, a] - features[:, b]) * scale for a, b in pairs])
    margins = np.concatenate([values[:, a] - values[:, b] for a, b in pairs])
    matters = margins != 0.0
    weights = np.zeros(len(PER_ACTION) + N_SHARED)
    if len(np.unique(margins[matters] > 0.0)) < 2:  # one label only: nothing to tell apart
        weights[data.used] = 0.0
        return weights
    classifier = SGDClassifier(
        loss="log_loss",
        learning_rate="constant",
        eta0=setting.learning_rate,
        alpha=1e-6,
        fit_intercept=False,
        average=True,
        max_iter=N_EPOCHS,
        tol=None,
        random_state=seed % 2**32,
    )
    importance = np.abs(margins[matters]) / np.abs(margins[matters]).mean()
    classifier.fit(inputs[matters], margins[matters] > 0.0, sample_weight=importance)
    weights[data.used] = classifier.coef_[0] * scale
    return weights
