"""Roll-in and roll-out: the states that a policy meets, and what each action is worth there.

Three kinds of roll-out value for an action a in round t (Algorithm 1, lines 8 and 9):

- `expert`: r_t(a). The expert plays on perfectly whatever a was, so only a's own reward differs
  (the paper's choice).
- `lookahead`: the mean reward, on the labelled rows, of acting greedily by f_{t,a}, the learner
  after one more round in which a was played (line 8 as written).
- `policy`: a's reward plus that of the next H rounds, played by the current policy from the
  state that saw a; every action faces the same rows and the same random numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from melee.arrays import Floats, Ints, Words
from melee.compiled import entry, kernel
from melee.distributions import greedy, mix_uniform, sample
from melee.explorers.interface import distribution, learn
from melee.explorers.melee_paper import PaperState
from melee.learners.interface import predict
from melee.loop import learn_from, play_rows
from melee.policy_optimizers import fit
from melee.preparation import Prepared
from melee.rng import ACT, LEARN, start_round, stream, uniform
from melee.scaling import Scaling, scale_row
from melee.states import copy_state

KINDS = ("expert", "lookahead", "policy")


@dataclass(frozen=True, eq=False)
class Examples:
    """What roll-ins add to the meta-dataset: features, and the value of every action."""

    features: Floats  # (states, K, features per action)
    values: Floats  # (states, K)


def roll_in(
    state: PaperState,
    prepared: Prepared,
    *,
    kind: str,
    beta: float = 0.0,
    horizon: int = 40,
    every: int = 1,
    seed: int = 0,
    names: tuple[str | int, ...] = (),
) -> Examples:
    """Play a task with a policy (Algorithm 1, lines 5 to 14) and value every action on the way.

    Parameters
    ----------
    state
        A fresh state of the policy that rolls in; its μ is the uniform exploration of line 13.
    kind, horizon
        The roll-out value, and H for `policy`.
    beta
        Probability with which the expert's action takes the place of the policy's, as AggreVaTe
        allows; uniform exploration goes on, so 1 is line 13 with the expert for π.
    every
        Record the state every so many rounds.
    seed, names
        Of the stream of random numbers.
    """
    recorded = np.arange(0, prepared.n_rounds, every)
    k, inputs = prepared.task.n_actions, prepared.task.n_features + 1
    features = np.empty((len(recorded), k, state.features.shape[1]))
    values = np.empty((len(recorded), k))
    rng = stream(seed, "roll-in", *names)
    for i, first in enumerate(int(r) for r in recorded):
        if kind == "policy":
            for a in range(k):
                values[i, a] = play_on(copy_state(state), prepared, first, a, horizon, rng.copy())
        stop = prepared.n_rounds if kind != "policy" else first + every
        record(
            state,
            prepared.scaling,
            prepared.task.contexts,
            prepared.task.rewards,
            prepared.order[first:stop],
            first,
            rng,
            float(beta),
            KINDS.index(kind),
            every,
            np.empty(inputs),
            np.empty(k),
            np.empty(k),
            np.empty(inputs),
            features[i:],
            values[i:],
        )
        if kind != "policy":  # that was one call for all rounds
            break
    return Examples(features, values)


def play_on(
    state: Any, prepared: Prepared, first: int, action: int, horizon: int, rng: Words
) -> float:
    """Total reward of `action` after `first` rounds, then of the policy; changes `state`."""
    task, row = prepared.task, prepared.order[first]
    reward = float(task.rewards[row, action])
    if horizon == 0:
        return reward
    learn_from(state, prepared.scaling, task.contexts[row], first + 1, rng, action, reward)
    rows = prepared.order[first + 1 : first + 1 + horizon]
    played = play_rows(state, prepared.scaling, task, rows, first + 1, rng)
    return reward + float(played.rewards.sum())


@entry
def record(
    state: PaperState,
    scaling: Scaling,
    contexts: Floats,
    reward_table: Floats,
    order: Ints,
    first: int,
    rng: Words,
    beta: float,
    kind: int,
    every: int,
    x: Floats,
    pmf: Floats,
    choice: Floats,
    before: Floats,
    features: Floats,
    values: Floats,
) -> None:
    """Roll in over the rows named by `order`, writing a state and its values every so often.

    Kinds are 0 (expert), 1 (lookahead) and 2 (policy, whose values are there already). Overwrites
    the scratch x and before (d + 1), pmf and choice (K), and the last two.
    """
    for i in range(order.shape[0]):
        t = first + i + 1
        row = order[i]
        scale_row(scaling, contexts[row], x)
        start_round(rng, t, ACT)
        distribution(state, x, t, rng, pmf)
        if i % every == 0:
            for a in range(pmf.shape[0]):
                for j in range(features.shape[2]):
                    features[i // every, a, j] = state.features[a, j]
            for a in range(pmf.shape[0]):
                if kind == 0:
                    values[i // every, a] = reward_table[row, a]
                elif kind == 1:
                    values[i // every, a] = look_ahead(
                        state, x, a, reward_table[row, a], choice, before
                    )
        if beta > 0.0:
            for a in range(pmf.shape[0]):
                choice[a] = reward_table[row, a]
            greedy(choice)
            mix_uniform(choice, state.mu)
            for a in range(pmf.shape[0]):
                pmf[a] = (1.0 - beta) * pmf[a] + beta * choice[a]
        action = sample(pmf, uniform(rng))
        start_round(rng, t, LEARN)
        learn(state, x, t, rng, action, reward_table[row, action], pmf[action])


@kernel
def look_ahead(
    state: PaperState, x: Floats, action: int, reward: float, choice: Floats, before: Floats
) -> float:
    """Mean reward on the labelled rows, greedily by f after it has seen this action and reward.

    For plain SGD by the direct method, where a round changes one row of weights: it is changed,
    asked, and put back. Overwrites the scratch choice (K) and before (d + 1).
    """
    weights, counts = state.polopt.learner.weights, state.polopt.learner.counts
    for j in range(weights.shape[1]):
        before[j] = weights[action, j]
    n_actions = weights.shape[0]
    fit(state.polopt, x, 0, n_actions, action, reward, 1.0, 1.0)
    total: float = 0.0
    for i in range(state.labelled.shape[0]):
        for a in range(n_actions):
            choice[a] = state.scores[a, i]
        choice[action] = predict(state.polopt.learner, state.labelled[i], action)
        greedy(choice)
        for a in range(n_actions):
            total += choice[a] * state.labelled_rewards[i, a]
    for j in range(weights.shape[1]):
        weights[action, j] = before[j]
    counts[action] -= 1.0
    return float(total / state.labelled.shape[0])
