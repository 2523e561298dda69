"""Imitation: AggreVaTe for `melee`, with roll-outs by the policy itself.

An episode is rolled in by the current policy. In some of its states, spread evenly over the
logarithm of time, a few actions are tried: the predicted one and those that the policy scores
highest. Each is taken and followed by H rounds of the current policy from the state that saw it,
every one with the same rows and the same random numbers; the total reward is its value. H = 0 is
the expert's value of the paper: the action's own reward.

LEARN chooses weights that make valuable actions win: with p the softmax of the scores over the
tried actions, the expected value Σ_a p_a·v_a is maximised over all states collected so far, held
close to where it started (Sun et al. 2017 call the differentiable form AggreVaTeD).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from melee.arrays import Floats
from melee.explorers.melee import (
    HIGHEST,
    LOWEST,
    N_INPUTS,
    Melee,
    MeleeState,
    Network,
    exponents,
)
from melee.extras import needed
from melee.loop import act_on
from melee.meta.episodes import episode, play_rows, start
from melee.meta.rollouts import play_on
from melee.rng import generator, stream
from melee.states import copy_state

with needed("training a policy", "bench"):
    from scipy.optimize import minimize

N_TRIED = 4
TEMPERATURE = 0.05
"""Of the softmax: scores are rewards, so differences of a few percent should count."""
HOLDS = (0.1, 0.01, 0.001)
"""How strongly LEARN may be held to where it started, beside values of unit deviation."""


@dataclass(frozen=True, eq=False)
class Tried:
    """States, the actions tried in each, and what they were worth."""

    features: Floats  # (states, N_TRIED, inputs)
    means: Floats  # (states, N_TRIED)
    spreads: Floats  # (states, N_TRIED)
    values: Floats  # (states, N_TRIED)
    there: Floats  # (states, N_TRIED), 0 where there are fewer actions

    @classmethod
    def together(cls, blocks: Sequence["Tried"]) -> "Tried":
        """All blocks as one."""
        return cls(*(np.concatenate([vars(b)[name] for b in blocks]) for name in vars(blocks[0])))


def collect(job: tuple[str, int, Melee, Network, int, int]) -> Tried:
    """Roll a network in on the episode of that seed, trying actions in some states."""
    family, seed, explorer, network, n_states, horizon = job
    prepared = episode(family, seed, explorer)
    state, own = start(explorer, network, prepared)
    k, last = prepared.task.n_actions, prepared.n_rounds - 1
    drawn = generator(seed, "states").random(n_states)
    rounds = np.unique(np.exp(drawn * np.log(last + 1)).astype(np.int64) - 1)
    rng = stream(seed, "roll-in")
    shape = (len(rounds), N_TRIED)
    tried = Tried(np.ones((*shape, N_INPUTS)), *(np.zeros(shape) for _ in range(4)))
    pmf, at = np.empty(k), 0
    for i, first in enumerate(int(r) for r in rounds):
        play_rows(state, prepared, at, first, rng)
        at = first
        row = prepared.order[first]
        act_on(state, prepared.scaling, prepared.task.contexts[row], first + 1, rng, pmf)
        actions = _worth_trying(own, network)
        n = len(actions)
        tried.features[i, :n] = own.features[actions]
        tried.means[i, :n] = own.means[actions]
        tried.spreads[i, :n] = own.spreads[actions]
        tried.there[i, :n] = 1.0
        for j, action in enumerate(actions):
            tried.values[i, j] = play_on(
                copy_state(state), prepared, first, int(action), horizon, rng.copy()
            )
    return tried


def _worth_trying(own: MeleeState, network: Network) -> Any:
    """The predicted action and those that the policy scores highest."""
    scores = own.means + np.exp(exponents(network, own.features)) * own.spreads
    scores[np.argmax(own.means)] = np.inf
    return np.argsort(-scores, kind="stable")[:N_TRIED]


def fit(blocks: Sequence[Tried], network: Network) -> Network:
    """LEARN: the network, near this one, whose choices among the tried actions are worth most.

    Values are noisy, so how strongly to hold on to this network is chosen by the worth of the
    choices on every fourth task, which that fit has not seen; not to move at all is one choice.
    """
    tried, held_out = Tried.together(blocks), Tried.together(blocks[::4])
    seen = [block for i, block in enumerate(blocks) if i % 4]
    worth = {np.inf: expected_value(network, held_out, _relative(held_out))[0]}
    for hold in HOLDS if seen else ():
        moved = _fit(Tried.together(seen), network, hold)
        worth[hold] = expected_value(moved, held_out, _relative(held_out))[0]
    best = max(worth, key=lambda hold: worth[hold])
    return network if best == np.inf else _fit(tried, network, best)


def _relative(tried: Tried) -> Floats:
    """Values beside the mean of their state, of unit deviation over all."""
    n = tried.there.sum(axis=1, keepdims=True)
    values = tried.values - (tried.values * tried.there).sum(axis=1, keepdims=True) / n
    return np.asarray(values * tried.there / (values[tried.there > 0.0].std() + 1e-9))


def _fit(tried: Tried, network: Network, hold: float) -> Network:
    values, start_from = _relative(tried), pack(network)

    def loss(weights: Floats) -> tuple[float, Floats]:
        worth, slope = expected_value(unpack(weights, network), tried, values)
        away = weights - start_from
        return hold * float(away @ away) - worth, 2.0 * hold * away - slope

    found = minimize(loss, start_from, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return unpack(np.asarray(found.x), network)


def expected_value(network: Network, tried: Tried, values: Floats) -> tuple[float, Floats]:
    """The mean over states of Σ_a p_a·v_a, and its gradient in the packed weights."""
    n = len(values)
    hidden = np.tanh(tried.features @ network.inner.T)
    raw = tried.features @ network.linear + hidden @ network.outer
    size = np.exp(np.clip(raw, LOWEST, HIGHEST)) * tried.spreads
    scores = np.where(tried.there > 0.0, (tried.means + size) / TEMPERATURE, -np.inf)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    worth = (p * values).sum(axis=1, keepdims=True)
    inside = (raw > LOWEST) & (raw < HIGHEST)
    slope = p * (values - worth) / TEMPERATURE * size * inside / n  # of the exponents
    of_linear = np.einsum("sa,saj->j", slope, tried.features)
    of_outer = np.einsum("sa,sau->u", slope, hidden)
    back = slope[:, :, None] * (1.0 - hidden**2) * network.outer
    of_inner = np.einsum("sau,saj->uj", back, tried.features)
    return float(worth.mean()), np.concatenate([of_linear, of_outer, of_inner.ravel()])


def pack(network: Network) -> Floats:
    """All weights in one vector: linear, outer, inner."""
    return np.concatenate([network.linear, network.outer, network.inner.ravel()])


def unpack(weights: Floats, like: Network) -> Network:
    """The network of the same shape with these weights."""
    n = len(like.outer)
    return like._replace(
        linear=np.ascontiguousarray(weights[:N_INPUTS]),
        outer=np.ascontiguousarray(weights[N_INPUTS : N_INPUTS + n]),
        inner=np.ascontiguousarray(weights[N_INPUTS + n :].reshape(n, N_INPUTS)),
    )
