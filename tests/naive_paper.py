"""Slow twins of the paper's exploration features, from their definition."""

import numpy as np
from scipy import optimize

from tests import naive


def platt_probability(scores, labels, score):
    """The Platt-scaled probability of `score`, fitted from scratch to scores and labels."""
    n_positive, n_negative = labels.sum(), (1 - labels).sum()
    targets = np.where(labels == 1, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    if np.ptp(scores) < 1e-12:
        return targets.mean()
    mean, deviation = scores.mean(), scores.std()
    z = (scores - mean) / deviation

    def loss(w):
        return np.sum(np.logaddexp(0, w[0] * z + w[1]) - targets * (w[0] * z + w[1]))

    def gradient(w):
        error = 1 / (1 + np.exp(-(w[0] * z + w[1]))) - targets
        return np.array([error @ z, error.sum()])

    w = optimize.minimize(loss, [0, 0], jac=gradient, method="BFGS", options={"gtol": 1e-10}).x
    return 1 / (1 + np.exp(-(w[0] * (score - mean) / deviation + w[1])))


def margin(predictions, a):
    return predictions[a] - np.delete(predictions, a).max()


def paper_features(history, x, labelled, labelled_rewards, rate):
    """Φ(f_t, x_t, h_{t-1}) for a history of (x, action, reward), by the direct method."""
    f = naive.Optimizer(labelled_rewards.shape[1], lambda: naive.Sgd(len(x), rate))
    predicted = []
    for past, action, reward in history:
        predicted.append(naive.greedy(f.predict(past)))
        f.learn(past, action, reward, 1.0)
    played = [(a, r) for _, a, r in history]
    return features_of(f.predict, predicted, played, x, labelled, labelled_rewards)


def features_of(f, predicted, played, x, labelled, labelled_rewards):
    """Φ of a function f from contexts to predictions, what its forerunners predicted, one-hot with
    ties shared, and the actions and rewards so far."""
    n_actions = labelled_rewards.shape[1]
    best = labelled_rewards == labelled_rewards.max(axis=1, keepdims=True)
    on_labelled = np.array([f(row) for row in labelled])
    p = np.array(
        [
            platt_probability(
                np.array([margin(row, a) for row in on_labelled]),
                best[:, a].astype(float),
                margin(f(x), a),
            )
            for a in range(n_actions)
        ]
    )
    p /= p.sum()
    seen = [[r for a, r in played if a == k] for k in range(n_actions)]
    return {
        "probability": p,
        "predicted": naive.greedy(f(x)),
        "predicted count": np.sum([np.zeros(n_actions), *predicted], axis=0) / max(len(played), 1),
        "played count": [len(rewards) / max(len(played), 1) for rewards in seen],
        "average": [np.mean(rewards) if rewards else 0 for rewards in seen],
        "variance": [np.var(rewards) if rewards else 0 for rewards in seen],
        "entropy": -sum(q * np.log(q) for q in p),
    }


class MeleePaper(naive.Twin):
    """The action of the highest v·φ, mixed with uniform exploration.

    `policy` are the weights v by the names of features.
    """

    mu: float

    def __init__(self, *sizes, policy, labelled, **settings):
        super().__init__(*sizes, **settings)
        self.policy, self.labelled = policy, labelled
        self.predicted, self.played = [], []

    def predict(self, x):
        return self.f.predict(x)

    def pmf(self, x, t):
        features = features_of(self.predict, self.predicted, self.played, x, *self.labelled)
        features["time step"] = t
        scores = sum(self.policy[name] * np.array(value) for name, value in features.items())
        return naive.mix_uniform(naive.greedy(np.round(scores, 6)), self.mu)

    def learn(self, x, t, action, rewards, p):
        self.predicted.append(naive.greedy(self.predict(x)))
        super().learn(x, t, action, rewards, p)
        self.played.append((action, rewards[action]))


class BanditronMelee(MeleePaper, naive.Banditron):
    """The same over a perceptron's weights, learned as Banditron learns them."""

    def predict(self, x):
        return naive.Banditron.predict(self, x)
