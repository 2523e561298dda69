"""Rewards of agents in the user's units: declared, saved, shown, defaulted, logged."""

import pytest

from melee import Agent
from melee.errors import DataError, InputError
from melee.history import History
from tests.news import News, live

ACTIONS = ["sports", "politics", "science"]


class Euros(News):
    """What readers pay: mostly nothing, and a subscription costs us its discount."""

    def reward(self, context, action):
        return 30.0 * super().reward(context, action) - 2.5


@pytest.mark.parametrize("reward_range", [None, (-2.5, 27.5), [-10, 1000]])
@pytest.mark.parametrize("n_rounds", [1, 40, 300])
def test_a_saved_agent_goes_on_as_if_never_saved(reward_range, n_rounds):
    agent = Agent(ACTIONS, "linucb", seed=3, reward_range=reward_range)
    live(agent, Euros(seed=1), n_rounds)
    loaded = Agent.from_bytes(agent.to_bytes())
    assert loaded.reward_range == (None if reward_range is None else tuple(reward_range))
    assert loaded.fingerprint == agent.fingerprint
    for one in (agent, loaded):
        live(one, Euros(seed=2), 60)
        one.add_actions(["weather"])
        live(one, Euros(seed=3), 10)
    assert loaded.fingerprint == agent.fingerprint


def test_a_reward_outside_of_its_declared_range_is_refused_and_changes_nothing():
    agent = Agent(ACTIONS, "linucb", reward_range=(-5, 50))
    decision = agent.act({"age": 31})
    before = agent.fingerprint
    sentence = (
        "the reward is 50.5 and rewards were declared to be from -5 to 50; give a reward_range"
    )
    for attempt in (
        lambda: agent.learn(decision.id, 50.5),
        lambda: agent.learn({"age": 3}, "sports", 50.5, 0.5),
        lambda: agent.learn_many([decision.id], [50.5]),
    ):
        with pytest.raises(InputError, match=sentence):
            attempt()
    assert agent.fingerprint == before
    assert agent.learn(decision.id, 50)


def test_the_range_of_rewards_is_shown():
    agent = Agent(ACTIONS, "linucb", reward_range=(-5, 50))
    assert "rewards from -5 to 50, 0 rounds learned" in repr(agent)
    assert "rewards from -5 to 50 ·" in agent._repr_html_()
    assert "rewards from" not in repr(Agent(ACTIONS, "linucb"))


@pytest.mark.parametrize(
    ("reward", "shown"), [(0.5, "0.500"), (-1234.5, "-1,234.500"), (2e-5, "2e-05"), (3e9, "3e+09")]
)
def test_averages_are_shown_in_digits_that_tell_something(reward, shown):
    agent = Agent(ACTIONS, "linucb")
    agent.learn({"age": 3}, "sports", reward, 0.5)
    assert f"average reward {shown}" in agent._repr_html_()
    assert agent.summary()[0] == ("sports", 1, reward)


def test_a_default_reward_may_be_any_number_within_the_range():
    agent = Agent(ACTIONS, "linucb", timeout=1.0, default_reward=-2.5, reward_range=(-5, 50))
    agent.act({"age": 31})
    assert agent.give_up(now=1e12) == 1
    assert agent.n_learned_ == 1
    assert agent.diagnostics()["average reward"] == -2.5


def test_a_log_has_rewards_in_the_users_unit(tmp_path):
    file = tmp_path / "log.jsonl"
    agent = Agent(ACTIONS, "linucb", log=file)
    for reward in (12.5, -3.0, 1e6):
        agent.learn(agent.act({"age": 31}).id, reward)
    assert History.read(file).rewards.tolist() == [12.5, -3.0, 1e6]
    other = Agent(ACTIONS, "linucb", reward_range=(-3, 100))
    with pytest.raises(InputError, match=r"the reward is 1e\+06 and rewards were declared"):
        other.learn_rounds(History.read(file))
    assert Agent(ACTIONS, "linucb").learn_rounds(History.read(file)) == 3


def test_a_file_with_a_range_that_is_none_is_refused():
    content = Agent(ACTIONS, "linucb", reward_range=(0, 1)).to_bytes()
    from melee.agent.file import pack, unpack

    about, arrays = unpack(content, "here")
    about["parameters"]["reward_range"] = [1, 0]
    with pytest.raises(DataError, match=r"reward_range is \[1, 0\]; expected the least"):
        Agent.from_bytes(pack(about, arrays))


def test_an_outlier_does_not_undo_what_was_learned():
    agents = [Agent(ACTIONS, "melee", seed=3) for _ in range(2)]
    for agent in agents:
        live(agent, Euros(seed=1), 400)
    agents[1].learn({"age": 31, "device": "phone", "subscriber": True}, "science", 1e9, 0.3)
    plain, hit = (live(agent, Euros(seed=2), 500) for agent in agents)
    assert hit > plain - 1.0
    assert plain > 13.0  # a uniform choice earns 11.4


def test_a_late_action_is_tried_whatever_the_unit():
    for scale in (1e-6, 1e6):

        class Scaled(News):
            def reward(self, context, action, scale=scale):
                return scale * (super().reward(context, action) - 0.7)

        agent, world = Agent(ACTIONS, "linucb", seed=1), Scaled(seed=1)
        live(agent, world, 400)
        agent.add_actions(["weather"])
        live(agent, world, 200)
        assert {label: n for label, n, _ in agent.summary()}["weather"] > 50
