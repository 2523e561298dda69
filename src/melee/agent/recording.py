"""What an agent appends to its log: rounds, when their rewards are known."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from melee.agent.knowledge import Lesson
from melee.agent.pending import Waiting
from melee.contexts import Context
from melee.history import Round
from melee.labels import Label

if TYPE_CHECKING:
    from melee.agent.agent import Agent


def write_rewards(agent: "Agent", rewards: dict[str, float]) -> None:
    """Append the rounds of waiting decisions to the log."""
    if agent._log is not None:
        lessons = []
        for id, reward in rewards.items():
            waiting = agent._pending.waiting[id]
            about = (waiting.context, waiting.action, reward, waiting.probability)
            lessons.append(Lesson(*about, waiting.features))
        write(agent, lessons, list(rewards))


def write(agent: "Agent", lessons: Sequence[Lesson], ids: Sequence[str | None]) -> None:
    """Append rounds to the log, before they are learned: a failure leaves both as they were."""
    if agent._log is None or not lessons:
        return
    rounds = []
    for lesson, id in zip(lessons, ids, strict=True):
        waiting = None if id is None else agent._pending.waiting.get(id)
        about = lesson[:4]
        features = _features_of(lesson, waiting)
        if waiting is None:
            rounds.append(Round(*about, id, features=features))
        else:
            pmf = None
            if waiting.actions is not None and waiting.probabilities is not None:
                pmf = dict(zip(waiting.actions, waiting.probabilities.tolist(), strict=True))
            made = (waiting.time, pmf, agent._policy, str(waiting.version))
            rounds.append(Round(*about, id, *made, features=features))
    agent._log.append(rounds)


def _features_of(lesson: Lesson, waiting: Waiting | None) -> dict[Label, Context] | None:
    """The features of what could be chosen, as far as they are known."""
    if waiting is not None and waiting.others is not None and waiting.actions is not None:
        return dict(zip(waiting.actions, waiting.others, strict=True))
    return None if lesson.features is None else {lesson.action: lesson.features}
