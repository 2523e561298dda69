"""What a fresh installation must be able to do; run by its own interpreter, outside of the project.

    python -I tools/smoke.py base|bench

`base` is an agent's life and the command line; `bench` a simulation on bundled data besides. The
last line printed is a JSON list of what is installed, with its licences.
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

MELEE = Path(sysconfig.get_path("scripts")) / "melee"


def live() -> None:
    """An agent decides, learns, is saved, and goes on as if it had never been."""
    import melee

    agent = melee.Agent(["a", "b", "c"], seed=1)
    for i in range(30):
        decision = agent.act({"hour": i % 24, "device": "phone" if i % 3 else "desktop"})
        assert decision.probability > 0.0
        agent.learn(decision.id, reward=float(decision.action == "b"))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "agent.melee"
        agent.save(path)
        again = melee.Agent.load(path)
    assert again.n_learned_ == 30
    assert again.fingerprint == agent.fingerprint
    ours, theirs = agent.act({"hour": 3}), again.act({"hour": 3})
    assert (ours.action, ours.probability) == (theirs.action, theirs.probability)


def command(*arguments: str) -> str:
    """What a command prints."""
    done = subprocess.run([MELEE, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"melee {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def licences() -> list[tuple[str, str, str]]:
    """Name, version and licence of everything that is installed, as its metadata say it."""
    found = []
    for package in distributions():
        about: Any = package.metadata  # whose `get` types leave out
        named = [
            c.rpartition("::")[2].strip() for c in about.get_all("Classifier", []) if "License" in c
        ]
        text = about.get("License-Expression") or ", ".join(named) or about.get("License") or ""
        found.append((about["Name"], package.version, text.strip().partition("\n")[0]))
    return sorted(found)


def main() -> None:
    """Try it all."""
    from melee.version import __version__

    live()
    said = command("--version").strip()
    assert said == f"melee {__version__}", said
    assert "gated-ucb" in command("explorers")
    if sys.argv[1] == "bench":
        said = command("simulate", "--data", "iris", "--explorers", "melee,linucb")
        assert "linucb" in said, said
    print(json.dumps(licences()))


if __name__ == "__main__":
    main()
