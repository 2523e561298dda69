"""What an agent is asked to explain: a context, or a decision that waits for its reward."""

from typing import NamedTuple

from melee.agent.ids import check_text
from melee.agent.knowledge import Labels
from melee.agent.offered import Offered, offer
from melee.agent.pending import Pending, check_same
from melee.contexts import Context
from melee.decision import Decision
from melee.errors import InputError, shown
from melee.labels import Label


class Question(NamedTuple):
    """What is to be explained: a context, or a decision that waits for its reward."""

    context: Context
    labels: Labels | None  # the open actions, None for all
    pmf: tuple[float, ...] | None = None  # of the decision, where it is known
    id: str | None = None
    action: Label = None
    probability: float = 0.0
    since: int = 0


def recall(
    subject: str | Decision, labels: Labels | None, pending: Pending, version: int
) -> Question:
    """The question about a decision; refuses one that does not wait."""
    id = subject.id if isinstance(subject, Decision) else subject
    check_text(id)
    waiting = pending.waiting.get(id)
    if waiting is None:
        known = id in pending.done
        what = "does not wait for its reward any more" if known else "is not known"
        raise InputError(
            f"decision {shown(id)} {what}, and its context is not kept: pass the context, "
            "explain(context), for what the agent would do now"
        )
    if isinstance(subject, Decision):
        check_same(subject, waiting)
        opened: Labels | None = subject.actions
        pmf: tuple[float, ...] | None = subject.probabilities
    else:
        opened = waiting.actions
        pmf = None if waiting.probabilities is None else tuple(waiting.probabilities.tolist())
    if labels is not None and opened is not None:
        raise InputError(
            f"decision {shown(id)} knows the actions that were open; leave actions out, or pass "
            "its context"
        )
    if labels is not None and waiting.action not in labels:
        raise InputError(
            f"decision {shown(id)} chose {shown(waiting.action)}, which is not among the actions; "
            "expected those that were open then"
        )
    about = (id, waiting.action, waiting.probability, version - waiting.version)
    return Question(waiting.context, labels if opened is None else opened, pmf, *about)


def recall_offered(
    subject: str | Decision, given: Offered | None, pending: Pending, version: int
) -> tuple[Question, Offered]:
    """The question about a decision among candidates, and these."""
    id = subject.id if isinstance(subject, Decision) else subject
    waiting = pending.waiting.get(id) if isinstance(id, str) else None
    if waiting is not None and waiting.others is not None and waiting.actions is not None:
        if given is not None:
            raise InputError(
                f"decision {shown(id)} knows the candidates that were offered; leave actions out"
            )
        given = offer(waiting.actions, waiting.others)
    asked = recall(subject, None, pending, version)
    if given is None:
        raise InputError(
            f"decision {shown(id)}: without a log only the features of what was chosen are kept; "
            "pass the candidates that were offered: explain(decision, actions={...})"
        )
    if asked.action not in given.labels:
        raise InputError(
            f"decision {shown(id)} chose {shown(asked.action)}, which is not among the candidates; "
            "expected those that were offered then"
        )
    pmf = asked.pmf if asked.labels == given.labels else None
    return asked._replace(labels=given.labels, pmf=pmf), given
