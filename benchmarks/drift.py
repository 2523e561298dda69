"""What forgetting earns in a drifting world, and what it costs in a calm one.

    python -m benchmarks.drift

Contexts are five normal numbers, actions four; an action's chance of a reward is a logistic
function of the context. In the drifting worlds the weights of that function change: *turns*, all at
once every 2,000 rounds; *slides*, along great circles, a quarter turn in 2,000 rounds. In the calm
one they stay. Agents play 8,000 rounds; the mean reward is over seeds, with its standard error.
"""

import argparse
import math

import numpy as np

from melee import Agent
from melee.arrays import Floats

N_FEATURES, N_ACTIONS = 5, 4
PERIOD = 2000
WORLDS = ("calm", "slides", "turns")
HALF_LIVES = (None, 250, 500, 1000, 2000, 4000)


def chances(world: str, n_rounds: int, seed: int) -> tuple[Floats, Floats]:
    """Contexts, and every action's chance of a reward in each round."""
    rng = np.random.default_rng([17, seed])
    contexts = rng.normal(size=(n_rounds, N_FEATURES))
    n_poses = n_rounds // PERIOD + 2
    poses = 2.5 * rng.normal(size=(n_poses, N_FEATURES, N_ACTIONS)) / math.sqrt(N_FEATURES)
    table = np.empty((n_rounds, N_ACTIONS))
    for t in range(n_rounds):
        pose, angle = t // PERIOD, (t % PERIOD) / PERIOD * math.pi / 2
        if world == "calm":
            weights = poses[0]
        elif world == "turns":
            weights = poses[pose]
        else:
            weights = math.cos(angle) * poses[pose] + math.sin(angle) * poses[pose + 1]
        table[t] = 1.0 / (1.0 + np.exp(-(contexts[t] @ weights)))
    return contexts, table


def earned(agent: Agent, contexts: Floats, table: Floats, seed: int) -> float:
    """The mean reward of an agent's life."""
    coins = np.random.default_rng([18, seed]).random(table.shape)
    total = 0.0
    for context, chance, coin in zip(contexts, table, coins, strict=True):
        decision = agent.act(context)
        reward = float(coin[decision.action] < chance[decision.action])
        agent.learn(decision.id, reward)
        total += reward
    return total / len(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--explorers", default="melee,linucb,epsilon-greedy:epsilon=0.05")
    parser.add_argument("--rounds", type=int, default=8000)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    names = ["never" if half is None else f"{half:,}" for half in HALF_LIVES]
    print("| explorer | world | best possible | " + " | ".join(names) + " |")
    print("| --- | --- | ---: |" + " ---: |" * len(names))
    for spec in given.explorers.split(","):
        for world in WORLDS:
            played = [chances(world, given.rounds, seed) for seed in range(given.seeds)]
            best = np.mean([table.max(axis=1).mean() for _, table in played])
            cells = []
            for half_life in HALF_LIVES:
                runs = []
                for seed, (contexts, table) in enumerate(played):
                    agent = Agent(range(N_ACTIONS), spec, half_life=half_life, seed=seed)
                    runs.append(earned(agent, contexts, table, seed))
                error = np.std(runs, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else 0.0
                cells.append(f"{np.mean(runs):.3f} ± {error:.3f}")
            print(f"| `{spec}` | {world} | {best:.3f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
