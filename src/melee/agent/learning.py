"""Learning: rewards of decisions that wait, and full records of decisions made elsewhere."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from melee.agent import folding, recording
from melee.agent.arguments import check_alike, check_lengths, read_list
from melee.agent.catalogue import Catalogue
from melee.agent.ids import check_text, is_id
from melee.agent.knowledge import Lesson
from melee.agent.overdue import give_up, now
from melee.agent.pending import check_same
from melee.checks import check_probability, check_reward
from melee.contexts import Context, read_context, read_contexts, read_features
from melee.decision import Decision, Ranking
from melee.errors import InputError, shown, warn_caller
from melee.history import Round, check_stands_for, repetitions
from melee.labels import check_label

if TYPE_CHECKING:
    from melee.agent.agent import Agent

_RECORD = ("action", "reward", "probability")
"""What a full record has beside its context."""


# -- what callers pass ----------------------------------------------------------------------


def learn(agent: "Agent", subject: Any, values: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Learn a decision's reward, a ranking's rewards, or a full record; whether anything was."""
    if isinstance(subject, Ranking):
        if len(values) + len(named) != 1 or not named.keys() <= {"rewards"}:
            raise InputError(
                "a ranking takes the rewards of its places and nothing else: "
                "learn(ranking, [reward, reward, ...])"
            )
        return _learn_places(agent, subject, values[0] if values else named["rewards"]) > 0
    if isinstance(subject, str | Decision):
        if len(values) + len(named) != 1 or not named.keys() <= {"reward"}:
            raise InputError(
                "a decision's id takes a reward and nothing else: learn(id, reward); a full "
                "record begins with its context"
            )
        return _learn_decision(agent, subject, values[0] if values else named["reward"])
    features = _read_features(agent, [named.pop("features", None)])[0]
    record = {**dict(zip(_RECORD, values, strict=False)), **named}
    if len(values) + len(named) != len(_RECORD) or record.keys() != set(_RECORD):
        raise InputError(
            "a full record needs a context, an action, a reward and the probability that the "
            "action had: learn(context, action, reward, probability)"
        )
    action, reward, probability = (record[name] for name in _RECORD)
    context, label = read_context(subject), check_label(action)
    numbers = check_reward(reward, agent._range), check_probability(probability)
    lesson = Lesson(context, label, *numbers, features)
    return _learn_lessons(agent, [lesson], [None], write=True) == 1


def learn_many(
    agent: "Agent", subjects: Any, values: tuple[Any, ...], named: tuple[Any, ...], features: Any
) -> int:
    """Learn the rewards of many decisions, or many full records; how many.

    Parameters
    ----------
    values, named
        Actions, rewards and probabilities, by place and by name.
    """
    actions, rewards, probabilities = named
    if len(values) == 1 and all(given is None for given in named):
        rewards = values[0]
    elif values:
        actions, rewards, probabilities = (*values, *named[len(values) :])[:3]
    if rewards is None:
        raise InputError("there are no rewards; expected one for each decision or context")
    if isinstance(subjects, Ranking) and actions is probabilities is features is None:
        return _learn_places(agent, subjects, rewards)
    numbers = [check_reward(reward, agent._range) for reward in read_list(rewards, "rewards")]
    if actions is None and probabilities is None and features is None:
        return _learn_decisions(agent, read_list(subjects, "ids"), numbers)
    if actions is None or probabilities is None or len(values) > 3:
        raise InputError(
            "full records need contexts, actions, rewards and probabilities: "
            "learn_many(contexts, actions, rewards, probabilities)"
        )
    contexts = read_contexts(subjects)
    labels = [check_label(action) for action in read_list(actions, "actions")]
    chances = [check_probability(p) for p in read_list(probabilities, "probabilities")]
    known = [None] * len(labels) if features is None else read_list(features, "features")
    check_lengths(contexts, actions=labels, rewards=numbers, probabilities=chances, features=known)
    own = _read_features(agent, known)
    records = zip(contexts, labels, numbers, chances, own, strict=True)
    lessons = [Lesson(*record) for record in records]
    return _learn_lessons(agent, lessons, [None] * len(lessons), write=True)


def learn_rounds(agent: "Agent", rounds: Iterable[Round]) -> int:
    """Learn the rounds of a history; how many."""
    given = read_list(rounds, "rounds")
    for record in given:
        if not isinstance(record, Round):
            raise InputError(f"a round is {shown(record)}; expected rounds, as of a History")
        if record.id is not None and not is_id(record.id):
            raise InputError(f"a round's id is {shown(record.id)}; expected a text")
    lessons = [
        Lesson(
            read_context(record.context),
            check_label(record.action),
            check_reward(record.reward, agent._range),
            check_probability(record.probability),
            None if record.features is None else record.features.get(record.action),
        )
        for record in given
    ]
    times = repetitions(check_stands_for(record.stands_for) for record in given)
    ids = [record.id for record in given]
    return _learn_lessons(agent, lessons, ids, write=False, times=times)


def _read_features(agent: "Agent", given: Sequence[Any]) -> list[Context | None]:
    """The features of actions in full records."""
    if not isinstance(agent._knowledge, Catalogue):
        if any(features is not None for features in given):
            raise InputError(
                "features are given, and the actions of this agent have none; leave them out, "
                "or make an agent without actions, to which they come with the question"
            )
        return [None] * len(given)
    return [read_features(features, "an action") for features in given]


# -- what is learned ------------------------------------------------------------------------


def _learn_places(agent: "Agent", ranking: Ranking, rewards: Any) -> int:
    numbers = [check_reward(reward, agent._range) for reward in read_list(rewards, "rewards")]
    if len(numbers) != len(ranking.places):
        raise InputError(
            f"the ranking has {len(ranking.places)} places and there are {len(numbers)} rewards; "
            "expected one for each place; learn(ranking.places[0], reward) is for a single one"
        )
    return _learn_decisions(agent, list(ranking.places), numbers)


def _learn_decision(agent: "Agent", subject: str | Decision, reward: Any) -> bool:
    number = check_reward(reward, agent._range)
    id = subject.id if isinstance(subject, Decision) else subject
    check_text(id)
    with agent._guard:
        if agent.timeout is not None:
            give_up(agent, now())
        waiting = agent._pending.waiting.get(id)
        if waiting is None:
            return not agent._pending.repeats(id, number)
        if isinstance(subject, Decision):
            check_same(subject, waiting)
        lesson = Lesson(
            waiting.context, waiting.action, number, waiting.probability, waiting.features
        )
        if agent._log is not None:
            recording.write(agent, [lesson], [id])
        if agent._keeper is not None:
            agent._keeper.rewarded({id: number})
        learned = agent._knowledge.learn_one(lesson, waiting.encoded)
        agent._pending.finish(id, number)
        if agent._knowledge.features.notice is not None:
            _tell(agent)
        return learned


def _learn_decisions(agent: "Agent", subjects: list[Any], rewards: list[float]) -> int:
    check_lengths(subjects, rewards=rewards)
    new: dict[str, float] = {}
    with agent._guard:
        give_up(agent, now())
        for subject, reward in zip(subjects, rewards, strict=True):
            id = subject.id if isinstance(subject, Decision) else subject
            check_text(id)
            if id in new and new[id] != reward:
                raise InputError(f"decision {id!r} has two rewards here; send the final one")
            if id not in new and not agent._pending.repeats(id, reward):
                new[id] = reward
                if isinstance(subject, Decision):
                    check_same(subject, agent._pending.waiting[id])
        recording.write_rewards(agent, new)
        if agent._keeper is not None:
            agent._keeper.rewarded(new)
        learned = folding.finish(agent, new)
        _tell(agent)
        return learned


def _learn_lessons(
    agent: "Agent",
    lessons: list[Lesson],
    ids: Sequence[str | None],
    *,
    write: bool,
    times: Sequence[int] | None = None,
) -> int:
    """Learn full records, each once or so many times, but for those whose id is known."""
    with agent._guard:
        _check_lessons(agent, lessons)
        give_up(agent, now())
        fresh: dict[str | int, int] = {}  # by id, or by number where there is none
        for i, id in enumerate(ids):
            if id is None:
                fresh[i] = i
            elif id not in agent._pending.done:  # one that waits gets its reward
                fresh.setdefault(id, i)
        chosen = [lessons[i] for i in fresh.values()]
        names = [ids[i] for i in fresh.values()]
        if write:
            recording.write(agent, chosen, names)
        often = [1 if times is None else times[i] for i in fresh.values()]
        if agent._keeper is not None:
            agent._keeper.learned(chosen, names, often)
        folding.learn(agent, chosen, names, often)
        _tell(agent)
        return len(chosen)


def _check_lessons(agent: "Agent", lessons: list[Lesson]) -> None:
    """Refuse records of other kinds than before, and of actions that do not exist."""
    check_alike([lesson.context for lesson in lessons])
    knowledge = agent._knowledge
    if isinstance(knowledge, Catalogue):
        knowledge.check_lessons(lessons)
    else:
        for action in dict.fromkeys(lesson.action for lesson in lessons):
            knowledge.number(action)
        if lessons:
            knowledge.ready(lessons[0].context)


def _tell(agent: "Agent") -> None:
    """Warn of what the features have to say, when all is done."""
    features = agent._knowledge.features
    notice, features.notice = features.notice, None
    if notice is not None:
        warn_caller(notice)
