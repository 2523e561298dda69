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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from melee import growth
from melee.agent.arguments import read_open
from melee.agent.catalogue import Catalogue
from melee.agent.explanation import Explained, Explanation, Influence
from melee.agent.knowledge import Knowledge, Labels
from melee.agent.offered import Offered, offer
from melee.agent.offering import read_offer
from melee.agent.questions import Question, recall, recall_offered
from melee.agent.recalling import explain_past, offered_in
from melee.arrays import Floats, Ints
from melee.compiled import is_implemented
from melee.contexts import Context, Value, read_context
from melee.decision import Decision
from melee.errors import InputError, shown
from melee.explorers import Explorer
from melee.explorers.candidates import Pairs, lay_out
from melee.explorers.hidden import Widened, widen
from melee.explorers.ranged import unit
from melee.explorers.rescaled import Rescaled, scale_context
from melee.labels import Label
from melee.learners.interface import n_rows, predict_all, spread
from melee.learners.offers import Candidates, OpenActions
from melee.scaling import Scaling
from melee.states import copy_state

if TYPE_CHECKING:
    from melee.agent.agent import Agent

N_FEATURES = 5
"""Names of a context that are listed for an action."""
MOST_TRIED = 200
"""Names that are left out, one at a time: of more, those that are furthest from the usual."""
ROUNDING = 1e-12
"""A smaller effect, in units of the rewards' range, is none."""


class NotedQuestion(NamedTuple):
    """What an answer needs; nothing in it changes any more."""

    question: Question
    pmf: dict[Label, float]
    known: Labels  # the open actions that still exist, in the order of the state's
    explorer: Explorer
    state: Any  # the explorer's own
    t: int
    inputs: list[Any]  # what is offered as that state sees it, then the same without each name
    names: list[tuple[str, Any]]  # and the value of each, or `Each`
    unit: tuple[float, float] | None


class Each(NamedTuple):
    """The values of a name that is the candidates' own."""

    values: tuple[Value, ...]


class OfferedRows(NamedTuple):
    """Candidates before they are scaled and joined to the context, and the same without each name.

    Laying them out takes long where they are many, and is done when the agent goes on.
    """

    contexts: list[Floats]
    tables: list[Floats]
    records: Ints
    sides: Ints
    scaling: Scaling


def explain(agent: "Agent", subject: Any, actions: Any) -> Explanation:
    """Why a decision was made, or would be in a context."""
    context = None if isinstance(subject, str | Decision) else read_context(subject)
    if isinstance(agent._knowledge, Catalogue):
        return _explain_offered(agent, agent._knowledge, subject, context, actions)
    labels = None if actions is None else tuple(read_open(actions))
    if context is None and labels is None and (past := _explain_past(agent, subject)):
        return past
    with agent._lock:
        if context is None:
            asked = recall(subject, labels, agent._pending, agent._knowledge.version)
        else:
            asked = Question(context, labels)
        noted = _note(asked, agent._knowledge)
    return _answer(noted, agent._policy)


def _explain_past(agent: "Agent", subject: str | Decision) -> Explanation | None:
    """Why a decision that waits no longer was made, if there is a journal that knows."""
    id = subject.id if isinstance(subject, Decision) else subject
    if agent._keeper is None or id in agent._pending.waiting:
        return None
    return explain_past(agent._keeper.journal, id)


def _explain_offered(
    agent: "Agent", known: Catalogue, subject: Any, context: Context | None, actions: Any
) -> Explanation:
    """The same among candidates."""
    if context is None and actions is None and (past := _explain_past(agent, subject)):
        return past
    with agent._lock:
        if context is None:
            given = _offered_then(agent, known, subject, actions)
            asked, offered = recall_offered(subject, given, agent._pending, known.version)
        else:
            offered = read_offer(agent, known, actions)
            asked = Question(context, offered.labels)
        noted, rows = _note_offered(asked, known, offered)
    return _answer_offered(noted, rows, agent._policy)


def _offered_then(agent: "Agent", known: Catalogue, subject: Any, actions: Any) -> Offered | None:
    """The candidates of a decision that waits: those that are given, or what a journal has."""
    if actions is not None:
        return read_offer(agent, known, actions)
    id = subject.id if isinstance(subject, Decision) else subject
    waiting = agent._pending.waiting.get(id)
    if waiting is None or waiting.others is not None or agent._keeper is None:
        return None
    event = agent._keeper.journal.find(id)
    found = None if event is None else offered_in(event, agent._keeper.journal)
    return None if found is None or found.features is None else offer(found.labels, found.features)


def _note(question: Question, knowledge: Knowledge) -> NotedQuestion:
    """Everything that the answer needs, in a moment; changes nothing."""
    model, labels = knowledge.model, question.labels
    if labels is not None and question.pmf is None:
        for label in labels:
            knowledge.number(label)
    chosen = None
    if labels is not None:
        numbers = sorted(knowledge.index[label] for label in labels if label in knowledge.index)
        chosen = np.array(numbers, np.int64)
    pmf = _probabilities(question, knowledge, chosen)
    own: Any = None
    inputs: list[Any] = []
    names: list[tuple[str, Value]] = []
    if chosen is None or len(chosen):  # else all of them are gone
        rows, names = _rows(knowledge, question.context)
        own, inputs = _inside(model.state, rows)
        own = copy_state(own)
    if chosen is not None:
        inputs = [OpenActions(x, chosen, model.n_actions) for x in inputs]
    known, t = knowledge.labels_of(chosen), model.n_learned + 1
    return NotedQuestion(
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
    changed = ((name, without) for name, without in tried if (without != row).any())
    kept = nlargest(MOST_TRIED, changed, key=lambda tried: np.abs((tried[1] - row) * scale).max())
    return [row, *(without for _, without in kept)], [(name, context.get(name)) for name, _ in kept]


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


def _note_offered(
    question: Question, known: Catalogue, offered: Offered
) -> tuple[NotedQuestion, OfferedRows]:
    """Everything that the answer about candidates needs, in a moment."""
    context, model = question.context, known.model
    pmf = question.pmf or tuple(known.probabilities(context, offered))
    row, table, records = known.rows(context, offered)
    contexts, tables = [row], [table]
    names: list[tuple[str, Any]] = []
    usual = model.state.scaling.shift_scale[0]
    here = np.zeros(len(row))
    there = np.zeros(table.shape[1])
    for column, side in enumerate(known.sides):
        if side >= 0:
            here[side] = usual[column]
        else:
            there[-1 - side] = usual[column]
    if len(records) <= MOST_TRIED and known.features.width == 0 and isinstance(context, dict):
        for name in known.features.columns:
            without = row.copy()
            known.features.leave_out(name, context.get(name), here, without)
            contexts.append(without)
            tables.append(table)
            names.append((name, context.get(name)))
    if len(records) <= MOST_TRIED and known.traits.width == 0:
        for name in known.traits.columns:
            changed = table.copy()
            values = []
            for a, features in enumerate(offered.features):
                value = features.get(name) if isinstance(features, dict) else None
                known.traits.leave_out(name, value, there, changed[a])
                values.append(value)
            contexts.append(row)
            tables.append(changed)
            names.append((name, Each(tuple(values))))
    chances = dict(zip(offered.labels, pmf, strict=True))
    state, t = copy_state(model.state.inner), model.n_learned + 1
    noted = NotedQuestion(
        question,
        chances,
        offered.labels,
        known.explorer,
        state,
        t,
        [],
        names,
        unit(model.state.range),
    )
    rows = OfferedRows(contexts, tables, records, model.sides, copy_state(model.state.scaling))
    return noted, rows


def _answer_offered(noted: NotedQuestion, rows: OfferedRows, policy: str) -> Explanation:
    """What there is to say of every candidate."""
    paired, inputs = noted.state, []
    n, n_columns = len(rows.records), len(rows.sides)
    for context, table in zip(rows.contexts, rows.tables, strict=True):
        room = (np.zeros(n_columns), np.zeros(n_columns + 1))
        laid = Candidates(np.zeros((n, paired.inputs.shape[1])), np.zeros((n, 4)))
        pairs = Pairs(context, table, rows.records, rows.sides, rows.scaling, *room, *laid)
        for a in range(n):
            lay_out(paired, pairs, a)
        inputs.append(laid)
    return _answer(noted._replace(state=paired.inner, inputs=inputs), policy)


def _answer(noted: NotedQuestion, policy: str) -> Explanation:
    """What there is to say of every action."""
    question, said = noted.question, _said(noted)
    nothing = (None, None, None, ())
    actions = [
        Explained(label, probability, *said.get(label, nothing))
        for label, probability in noted.pmf.items()
    ]
    actions.sort(key=lambda explained: (-explained.probability, -(explained.prediction or 0.0)))
    recalled = question.id is not None and (question.pmf is not None or question.since == 0)
    about = (question.id, question.action, question.since, recalled)
    return Explanation(tuple(actions), policy, *about)


def _said(noted: NotedQuestion) -> dict[Label, tuple[Any, ...]]:
    """Prediction, uncertainty, bonus and features of every action, in units of reward."""
    n = len(noted.known)
    learner = next(growth.learners(noted.state), None) if noted.explorer.predicts else None
    if learner is None or noted.unit is None or not noted.inputs:
        return {}
    x = noted.inputs[0]
    if n_rows(learner) % _n_per_block(x, n):
        return {}
    zero, size = noted.unit
    every = np.array([_predicted(learner, x, n) for x in noted.inputs])  # inputs, models, n
    predictions = every.mean(axis=1)
    effects = (predictions[0] - predictions[1:]) * size
    uncertainty = _uncertainty(learner, x, every[0])
    bonuses = noted.explorer.bonuses(noted.state, x, noted.t)
    said = {}
    for a, label in enumerate(noted.known):
        parts = [
            Influence(name, value.values[a] if isinstance(value, Each) else value, float(effect))
            for (name, value), effect in zip(noted.names, effects[:, a], strict=True)
            if abs(effect) > ROUNDING * size
        ]
        said[label] = (
            zero + float(predictions[0, a]) * size,
            None if uncertainty is None else float(uncertainty[a]) * size,
            None if bonuses is None else float(bonuses[a]) * size,
            tuple(nlargest(N_FEATURES, parts, key=lambda part: abs(part.effect))),
        )
    return said


def _predicted(learner: Any, x: Any, n: int) -> Floats:
    """The predictions of every model (models, actions): several where an explorer takes a vote."""
    predictions = np.empty((n_rows(learner) // _n_per_block(x, n), n))
    predict_all(learner, x, 0, predictions.reshape(-1))
    return predictions


def _n_per_block(x: Any, n: int) -> int:
    """How many models there are for n choices: one for all, or one for each action."""
    if isinstance(x, OpenActions):
        return x.n_actions
    return 1 if isinstance(x, Candidates) else n


def _uncertainty(learner: Any, x: Any, every: Floats) -> Floats | None:
    """The learner's spread; where several models vote, that of their predictions."""
    if len(every) > 1:
        return np.asarray(every.std(axis=0))
    if not is_implemented(spread, type(learner)):
        return None
    return np.array([spread(learner, x, a) for a in range(every.shape[1])])
