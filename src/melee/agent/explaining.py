"""Explaining: what an agent predicts of every action in a context, and what that depends on.

What a name of a context does to a prediction is found by leaving it out: its features are set to
what is usual, the averages that contexts are standardized by (of a number its mean, of a level how
often it occurs), and the prediction is made again. For a linear model that is the sum of w_j·x_j
over the features of the name, x standardized; hidden units have their say too. Effects do not add
up to the prediction where names act together.

What is needed is noted under the agent's lock, the explorer's state copied; predictions are made
afterwards, by interpreted kernels, while the agent goes on.
"""

from heapq import nlargest
from typing import Any, NamedTuple

import numpy as np

from melee import growth
from melee.agent.decision import Decision
from melee.agent.explanation import Explained, Explanation, Influence
from melee.agent.ids import check_text
from melee.agent.knowledge import Knowledge, Labels
from melee.agent.pending import Pending, check_same
from melee.arrays import Floats, Ints
from melee.compiled import is_implemented
from melee.contexts import Context, Value
from melee.errors import InputError, shown
from melee.explorers import Explorer
from melee.explorers.hidden import Widened, widen
from melee.explorers.ranged import unit
from melee.explorers.rescaled import Rescaled, scale_context
from melee.labels import Label
from melee.learners.interface import n_rows, predict_all, spread
from melee.states import copy_state

N_FEATURES = 5
"""Names of a context that are listed for an action."""
MOST_TRIED = 200
"""Names that are left out, one at a time: of more, those that are furthest from the usual."""
ROUNDING = 1e-12
"""A smaller effect, in units of the rewards' range, is none."""


class Question(NamedTuple):
    """What is to be explained: a context, or a decision that waits for its reward."""

    context: Context
    labels: Labels | None  # the open actions, None for all
    pmf: tuple[float, ...] | None = None  # of the decision, where it is known
    id: str | None = None
    action: Label = None
    probability: float = 0.0
    since: int = 0


class Noted(NamedTuple):
    """What an answer needs; nothing in it changes any more."""

    question: Question
    pmf: dict[Label, float]
    known: Labels  # the open actions that still exist, in the order of the state's
    explorer: Explorer
    state: Any  # the explorer's own, of these actions
    t: int
    inputs: list[Floats]  # the context as that state sees it, then the same without each name
    names: list[tuple[str, Value]]
    unit: tuple[float, float] | None


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


def note(question: Question, knowledge: Knowledge) -> Noted:
    """Everything that the answer needs, in a moment; changes nothing."""
    model, labels = knowledge.model, question.labels
    if labels is not None and question.pmf is None:
        for label in labels:
            knowledge.number(label)
    chosen = None
    if labels is not None:
        numbers = sorted(knowledge.index[one] for one in labels if one in knowledge.index)
        chosen = np.array(numbers, np.int64)
    pmf = _probabilities(question, knowledge, chosen)
    if chosen is None or len(chosen):
        state = model.state
        if chosen is not None:
            state = growth.among(state, model.axes, chosen, model.n_actions)
        rows, names = _rows(knowledge, question.context)
        own, inputs = _inside(state, rows)
        own = copy_state(own)
    else:  # all of them are gone
        own, inputs, names = None, [], []
    known = knowledge.labels if chosen is None else tuple(knowledge.labels[i] for i in chosen)
    t = model.n_learned + 1
    return Noted(
        question, pmf, known, knowledge.explorer, own, t, inputs, names, unit(model.state.range)
    )


def _probabilities(
    question: Question, knowledge: Knowledge, chosen: Ints | None
) -> dict[Label, float]:
    """Those of the decision where they are known, or those of now."""
    if question.pmf is not None and question.labels is not None:
        return dict(zip(question.labels, question.pmf, strict=True))
    pmf = knowledge.pmf(question.context, chosen)
    unchanged = question.id is not None and question.since == 0
    if unchanged and pmf[question.action] != question.probability:
        raise InputError(
            f"decision {shown(question.id)} was made among other actions than "
            f"{'these' if question.labels else 'all'}, and without a log only its id is kept; pass "
            "the Decision itself, or those that were open: explain(id, actions=[...])"
        )
    return pmf


def _rows(knowledge: Knowledge, context: Context) -> tuple[list[Floats], list[tuple[str, Value]]]:
    """The context's row, the same without each of its names, and these names and their values."""
    features, scaling = knowledge.features, knowledge.model.state.scaling
    row = np.zeros(knowledge.model.n_features)
    if features.width is None:  # nothing is known: all contexts are alike
        return [row], []
    features.expect(context)
    features.encode(context, row)
    usual, scale = scaling.shift_scale
    distances = np.abs((row - usual) * scale)
    if not isinstance(context, dict):
        furthest = np.argsort(-distances, kind="stable")[:MOST_TRIED]
        moved = [int(i) for i in furthest if row[i] != usual[i]]
        without = [np.where(np.arange(len(row)) == i, usual, row) for i in moved]
        return [row, *without], [(features.names[i], float(row[i])) for i in moved]

    def left_out(name: str) -> Floats:
        without = row.copy()
        features.leave_out(name, context.get(name), usual, without)
        return without

    tried = ((name, left_out(name)) for name in dict.fromkeys((*context, *features.columns)))
    changed = ((name, one) for name, one in tried if (one != row).any())
    kept = nlargest(MOST_TRIED, changed, key=lambda one: np.abs((one[1] - row) * scale).max())
    return [row, *(one for _, one in kept)], [(name, context.get(name)) for name, _ in kept]


def _inside(state: Any, rows: list[Floats]) -> tuple[Any, list[Floats]]:
    """The explorer's own state, and rows as it sees them: scaled, with hidden units."""
    inputs = []
    for row in rows:
        own, x = state, row
        while isinstance(own, Rescaled | Widened):
            if isinstance(own, Rescaled):
                scale_context(own, x)
                x = own.scaled
            else:
                widen(own.units, x, own.wide)
                x = own.wide
            own = own.inner
        inputs.append(x.copy())
    return own, inputs


def answer(noted: Noted, policy: str) -> Explanation:
    """What there is to say of every action."""
    question, said = noted.question, _said(noted)
    nothing = (None, None, None, ())
    actions = [
        Explained(label, probability, *said.get(label, nothing))
        for label, probability in noted.pmf.items()
    ]
    actions.sort(key=lambda one: (-one.probability, -(one.prediction or 0.0)))
    recalled = question.id is not None and (question.pmf is not None or question.since == 0)
    about = (question.id, question.action, question.since, recalled)
    return Explanation(tuple(actions), policy, *about)


def _said(noted: Noted) -> dict[Label, tuple[Any, ...]]:
    """Prediction, uncertainty, bonus and features of every action, in units of reward."""
    n = len(noted.known)
    learner = next(growth.learners(noted.state), None) if noted.explorer.predicts else None
    if learner is None or noted.unit is None or n_rows(learner) % n:
        return {}
    zero, size = noted.unit
    x = noted.inputs[0]
    every = np.array([_predicted(learner, one, n) for one in noted.inputs])  # inputs, models, n
    predictions = every.mean(axis=1)
    effects = (predictions[0] - predictions[1:]) * size
    uncertainty = _uncertainty(learner, x, every[0])
    bonuses = noted.explorer.bonuses(noted.state, x, noted.t)
    said = {}
    for a, label in enumerate(noted.known):
        parts = [
            Influence(*named, float(effect))
            for named, effect in zip(noted.names, effects[:, a], strict=True)
            if abs(effect) > ROUNDING * size
        ]
        said[label] = (
            zero + float(predictions[0, a]) * size,
            None if uncertainty is None else float(uncertainty[a]) * size,
            None if bonuses is None else float(bonuses[a]) * size,
            tuple(nlargest(N_FEATURES, parts, key=lambda part: abs(part.effect))),
        )
    return said


def _predicted(learner: Any, x: Floats, n: int) -> Floats:
    """The predictions of every model (models, actions): several where an explorer takes a vote."""
    predictions = np.empty(n_rows(learner))
    predict_all(learner, x, 0, predictions)
    return predictions.reshape(-1, n)


def _uncertainty(learner: Any, x: Floats, every: Floats) -> Floats | None:
    """The learner's spread; where several models vote, that of their predictions."""
    if len(every) > 1:
        return np.asarray(every.std(axis=0))
    if not is_implemented(spread, type(learner)):
        return None
    return np.array([spread(learner, x, a) for a in range(every.shape[1])])
