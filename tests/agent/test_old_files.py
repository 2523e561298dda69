"""Files of agents that earlier versions wrote: every later version has to read them.

`python -m tests.agent.test_old_files` wrote them, once, and must not be run again for a format that
has been released: a new format gets files of its own beside these. They are compressed, for most of
what trees may keep is empty.
"""

import gzip
import json
import warnings
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from melee import Agent
from tests.news import News, live

FILES = Path(__file__).parent / "files"
MADE = {
    "v3-melee-young": ("melee", 60, {}),
    "v3-melee-settled": ("melee", 330, {"half_life": 200}),
    "v3-linucb": ("linucb:alpha=0.2", 40, {"timeout": 1e9, "default_reward": 0.0}),
}
ASKED = [
    {"age": 25, "device": "phone", "subscriber": True},
    {"age": 66, "device": "tablet", "subscriber": False, "likes": ["chess"]},
    {"device": "desktop", "never seen": 3.0},
]


def made(spec, n_rounds, settings):
    agent = Agent(["sports", ("politics", 2), "science"], spec, seed=5, **settings)
    world = News(seed=21)
    live(agent, world, n_rounds)
    agent.add_actions(["weather"])
    live(agent, world, 20)
    agent.act(ASKED[0], id="waiting")
    return agent


@pytest.mark.parametrize("name", MADE)
def test_a_file_of_an_earlier_version_is_read_and_goes_on(name):
    expected = json.loads((FILES / f"{name}.json").read_text())
    with warnings.catch_warnings():  # a later version may ship another policy, and says so
        warnings.simplefilter("ignore", UserWarning)
        agent = Agent.from_bytes(gzip.decompress((FILES / f"{name}.melee.gz").read_bytes()))
    assert agent.n_learned_ == expected["learned"]
    assert agent.n_pending_ == 1
    assert agent.actions_ == ["sports", ("politics", 2), "science", "weather"]
    assert agent.feature_names_ == expected["features"]
    for context, pmf in zip(ASKED, expected["pmfs"], strict=True):
        assert_allclose(list(agent.pmf(context).values()), pmf, atol=1e-9)
    assert agent.learn("waiting", 1.0)
    decision = agent.act(ASKED[1])
    assert agent.learn(decision.id, 0.0)


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for name, (spec, n_rounds, settings) in MADE.items():
        written = made(spec, n_rounds, settings)
        (FILES / f"{name}.melee.gz").write_bytes(gzip.compress(written.to_bytes(), mtime=0))
        expected = {
            "learned": written.n_learned_,
            "features": written.feature_names_,
            "pmfs": [list(written.pmf(context).values()) for context in ASKED],
        }
        (FILES / f"{name}.json").write_text(json.dumps(expected, indent=1) + "\n")
