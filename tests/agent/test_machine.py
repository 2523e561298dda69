"""Anything that can be done to an agent, in any order, against a model of what it should know."""

import math
import warnings

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from melee import Agent, InputError
from melee.errors import MeleeWarning
from tests.agent_lives import ACTIONS, Clock

FLOOR = 0.05
MAX_PENDING = 12
TIMEOUT = 100.0

numbers = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-5, 5), st.booleans())
texts = st.sampled_from(["a", "b", "c", "", "ä", "\ud800"])
contexts = st.dictionaries(
    st.sampled_from(["age", "device", "hour", "tags", "late", "x" * 50]),
    st.one_of(numbers, texts, st.lists(texts, max_size=3)),
    max_size=5,
)
rewards = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
picks = st.integers(0, 10**6)


class Life(RuleBasedStateMachine):
    """What an agent should know: decisions that wait, rewards of those done, its actions."""

    spec = "linucb"
    default_reward: float | None = None
    half_life: int | None = None

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed):
        self.clock = Clock()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("melee.agent.overdue.time", self.clock)
        self.agent = self.made(
            actions=ACTIONS[:3],
            explorer=self.spec,
            seed=seed,
            floor=FLOOR,
            timeout=TIMEOUT,
            default_reward=self.default_reward,
            half_life=self.half_life,
            max_pending=MAX_PENDING,
            max_features=24,
        )
        self.actions = set(ACTIONS[:3])
        self.pending: dict[str, tuple[object, float]] = {}  # oldest first: action, time
        self.done: dict[str, float | None] = {}
        self.n_learned = 0
        self.n_made = 0
        self.total = dict.fromkeys(self.actions, 0.0)

    def made(self, **options):
        return Agent(**options)

    def loaded(self):
        """The agent as it is after it was kept and read again."""
        return Agent.from_bytes(self.agent.to_bytes())

    def teardown(self):
        if hasattr(self, "patch"):
            self.patch.undo()

    # What the agent does by itself.

    def finish(self, id, reward):
        action, _ = self.pending.pop(id)
        self.done[id] = reward
        if len(self.done) > MAX_PENDING:
            del self.done[next(iter(self.done))]
        if reward is not None and action in self.actions:
            self.n_learned += 1
            self.total[action] += reward
            return True
        return False

    def give_up(self):
        n = 0
        while self.pending:
            id, (_, made) = next(iter(self.pending.items()))
            if self.clock.now - made <= TIMEOUT and len(self.pending) <= MAX_PENDING:
                break
            self.finish(id, self.default_reward)
            n += 1
        return n

    def check(self, decision, open_actions):
        pmf = decision.pmf
        assert set(pmf) == set(open_actions)
        assert math.isclose(sum(pmf.values()), 1.0, abs_tol=1e-9)
        assert min(pmf.values()) >= FLOOR / len(pmf) - 1e-12
        assert decision.action in pmf
        assert decision.probability == pmf[decision.action]
        assert decision.id not in self.pending
        assert decision.id not in self.done

    def some(self, pick):
        """Some of the actions, at least one."""
        known = sorted(self.actions, key=repr)
        chosen = [one for i, one in enumerate(known) if pick >> i & 1]
        return chosen or [known[pick % len(known)]]

    # Deciding.

    @rule(context=contexts)
    def act(self, context):
        self.give_up()
        decision = self.agent.act(context)
        self.check(decision, self.actions)
        self.pending[decision.id] = (decision.action, self.clock.now)
        self.give_up()

    @rule(context=contexts, pick=picks)
    def act_among_some(self, context, pick):
        self.give_up()
        decision = self.agent.act(context, actions=self.some(pick))
        self.check(decision, self.some(pick))
        self.pending[decision.id] = (decision.action, self.clock.now)
        self.give_up()

    @rule(context=contexts)
    def act_by_a_name(self, context):
        self.give_up()
        self.n_made += 1
        decision = self.agent.act(context, id=f"mine {self.n_made}")
        self.check(decision, self.actions)
        assert decision.id == f"mine {self.n_made}"
        self.pending[decision.id] = (decision.action, self.clock.now)
        with pytest.raises(InputError, match="is taken"):
            self.agent.act(context, id=decision.id)
        self.give_up()

    @rule(many=st.lists(contexts, max_size=5))
    def act_many(self, many):
        if many:
            self.give_up()
        decisions = self.agent.act_many(many)
        assert len(decisions) == len(many)
        for decision in decisions:
            self.check(decision, self.actions)
            self.pending[decision.id] = (decision.action, self.clock.now)
        self.give_up()

    @rule(context=contexts, pick=picks)
    def ask(self, context, pick):
        pmf = self.agent.pmf(context, actions=self.some(pick))
        assert math.isclose(sum(pmf.values()), 1.0, abs_tol=1e-9)
        assert min(pmf.values()) >= FLOOR / len(pmf) - 1e-12

    # Learning.

    @precondition(lambda self: self.pending)
    @rule(pick=picks, reward=rewards)
    def learn(self, pick, reward):
        self.give_up()
        self.agent.give_up()
        if self.pending:
            id = list(self.pending)[pick % len(self.pending)]
            assert self.agent.learn(id, reward) == self.finish(id, reward)

    @precondition(lambda self: any(reward is not None for reward in self.done.values()))
    @rule(pick=picks)
    def learn_again(self, pick):
        self.give_up()
        self.agent.give_up()
        known = [(id, reward) for id, reward in self.done.items() if reward is not None]
        if known:
            assert self.agent.learn(*known[pick % len(known)]) is False

    @precondition(lambda self: self.done)
    @rule(pick=picks)
    def learn_something_else(self, pick):
        self.give_up()
        self.agent.give_up()
        id = list(self.done)[pick % len(self.done)]
        known = self.done[id]
        before = self.agent.fingerprint
        with pytest.raises(InputError, match=r"given up|send the final reward only"):
            self.agent.learn(id, 0.5 if known is None else 1.0 if known < 0.5 else 0.0)
        assert self.agent.fingerprint == before

    @rule()
    def learn_the_unknown(self):
        self.give_up()
        with pytest.raises(InputError, match="is not known"):
            self.agent.learn("nobody", 1.0)

    @rule(context=contexts, pick=picks, reward=rewards, probability=st.floats(1e-3, 1))
    def learn_a_record(self, context, pick, reward, probability):
        action = sorted(self.actions, key=repr)[pick % len(self.actions)]
        self.give_up()
        assert self.agent.learn(context, action, reward, probability)
        self.n_learned += 1
        self.total[action] += reward

    @rule(many=st.lists(st.tuples(contexts, picks, rewards, st.floats(1e-3, 1)), max_size=5))
    def learn_many_records(self, many):
        known = sorted(self.actions, key=repr)
        rounds = [(x, known[pick % len(known)], r, p) for x, pick, r, p in many]
        columns = [list(one) for one in zip(*rounds, strict=True)] or [[], [], [], []]
        self.give_up()
        assert self.agent.learn_many(*columns) == len(many)
        self.n_learned += len(many)
        for _, action, reward, _ in rounds:
            self.total[action] += reward

    @rule(pick=picks, reward=rewards, twice=st.booleans())
    def learn_many(self, pick, reward, twice):
        self.give_up()
        self.agent.give_up()
        ids = [id for i, id in enumerate(self.pending) if pick >> i & 1]
        given = ids + ids[:1] if twice else ids
        learned = self.agent.learn_many(given, [reward] * len(given))
        assert learned == sum([self.finish(id, reward) for id in ids])

    @precondition(lambda self: len(self.pending) > 1)
    @rule(place=st.integers(0, 1))
    def learn_many_with_a_bad_one(self, place):
        self.give_up()
        self.agent.give_up()
        ids = list(self.pending)
        before = self.agent.fingerprint
        ids.insert(place, "nobody")
        with pytest.raises(InputError, match="is not known"):
            self.agent.learn_many(ids, [1.0] * len(ids))
        assert self.agent.fingerprint == before

    # Changing.

    @precondition(lambda self: len(self.actions) < 7)
    @rule(more=st.sets(st.integers(100, 109), min_size=1, max_size=2))
    def add_actions(self, more):
        new = sorted(more - self.actions)
        self.agent.add_actions(new)
        self.actions |= set(new)
        self.total.update(dict.fromkeys(new, 0.0))
        with pytest.raises(InputError, match="exists already"):
            self.agent.add_actions([*more])

    @rule(pick=picks)
    def remove_actions(self, pick):
        gone = self.some(pick)
        if len(gone) == len(self.actions):
            with pytest.raises(InputError, match="at least one to stay"):
                self.agent.remove_actions(gone)
            return
        self.agent.remove_actions(gone)
        self.actions -= set(gone)
        for action in gone:
            del self.total[action]

    @rule(seconds=st.sampled_from([1.0, 60.0, 101.0]))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def give_up_now(self):
        assert self.agent.give_up() == self.give_up()

    @rule()
    def save_and_load(self):
        before = self.agent.fingerprint
        self.agent = self.loaded()
        assert self.agent.fingerprint == before

    @invariant()
    def agrees(self):
        if not hasattr(self, "agent"):
            return
        assert set(self.agent.actions_) == self.actions
        assert self.agent.n_pending_ == len(self.pending)
        assert self.agent.n_learned_ == self.n_learned
        for action, plays, average in self.agent.summary():
            assert math.isclose(plays * average, self.total[action], abs_tol=1e-9)


class MeleeLife(Life):
    spec = "melee"
    half_life = 10


class EpsilonGreedyLife(Life):
    spec = "epsilon-greedy:epsilon=0.2"
    default_reward = 0.25


class LinUcbLife(Life):
    spec = "linucb:alpha=2"


LIVES = [MeleeLife, EpsilonGreedyLife, LinUcbLife]


def run(life, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MeleeWarning)  # many decisions wait, many names appear
        checked = settings(suppress_health_check=list(HealthCheck), deadline=None, **options)
        run_state_machine_as_test(life, settings=checked)


@pytest.mark.parametrize("life", LIVES)
def test_whatever_is_done_an_agent_knows_what_it_should(life):
    run(life, max_examples=25, stateful_step_count=30, derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize("life", LIVES)
def test_whatever_is_done_for_long_an_agent_knows_what_it_should(life):
    run(life, max_examples=200, stateful_step_count=60)
