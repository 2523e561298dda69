"""The picture of the service's page in the documentation, taken by a real browser.

    python -m tools.picture [--out FILE] [--size WIDTH,HEIGHT]

Needs chromium. An agent for news lives an hour of the past, with another explorer on a share of
its readers and a third one as a shadow; then a service goes on with its journal, and its page is
looked at. Times are those of now, so no two pictures are the same.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from unittest import mock

import melee
from melee.trials import Trials

ROOT = Path(__file__).resolve().parents[1]
ACTIONS = ["sports", "politics", "science", "culture"]
ROUNDS = 5_000
LATE = 0.03
"""The share of decisions whose rewards are still to come."""


def live(place: Path) -> None:
    """The journal of the last hour."""
    chance = random.Random(0)
    end = time.time()
    with mock.patch("time.time") as clock:
        clock.return_value = end - 3_600.0
        trials = Trials(melee.Agent(ACTIONS, journal=place))
        trials.begin("linucb", "linucb", share=0.3)
        trials.begin("softmax", "softmax")
        for i in range(ROUNDS):
            clock.return_value = end - 3_600.0 * (1.0 - i / ROUNDS)
            reader = {
                "age": chance.randrange(18, 80),
                "device": chance.choice(("phone", "desk")),
                "hour": chance.randrange(24),
            }
            decision = trials.act(reader, unit=f"reader {i}")
            if chance.random() > LATE:
                clicked = chance.random() < interest(reader, decision.action)
                trials.learn(decision, float(clicked))
        trials.close()


def interest(reader: dict[str, Any], action: str) -> float:
    """The chance that somebody reads on."""
    likes: dict[str, float] = {
        "sports": 0.45 if reader["device"] == "phone" else 0.15,
        "politics": 0.006 * (reader["age"] - 18),
        "science": 0.4 if reader["device"] == "desk" else 0.2,
        "culture": 0.25,
    }
    return likes[action]


def ask(url: str) -> Any:
    """What the service answers."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def take(url: str, out: Path, size: str) -> None:
    """Have chromium look at the page."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={size}",
                "--virtual-time-budget=5000",
                f"--screenshot={out.resolve()}",
                url,
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main() -> None:
    """Take it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/figures/service.png")
    parser.add_argument("--size", default="1100,1385", metavar="WIDTH,HEIGHT")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "melee-data"
        live(place)
        service = subprocess.Popen(
            [sys.executable, "-m", "melee.cli", "serve", "--journal", str(place), "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert service.stderr is not None
            url = ""
            while not url:
                found = re.search(r" at (http://\S+), journal in", service.stderr.readline())
                url = found[1] if found else ""
            while not ask(f"{url}/ready")["compiled"] or ask(f"{url}/v1/trials")["behind"]:
                time.sleep(0.2)
            while len(ask(f"{url}/v1/agents/agent")["trials"]) < 2:
                time.sleep(0.2)
            take(url, given.out, given.size)
        finally:
            service.terminate()
            service.wait(60)


if __name__ == "__main__":
    main()
