"""Why a decision was made, or would be: the answer, as a record, as text and in a notebook."""

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from melee.agent.show import SHOWN, STYLE, reward_text
from melee.contexts import Value
from melee.errors import shown
from melee.labels import Label

_COLUMNS = ("action", "probability", "prediction", "±", "bonus", "what mattered most")


class Influence(NamedTuple):
    """What one name of a context does to the prediction of an action.

    Attributes
    ----------
    name, value
        As in the context; None where it is missing.
    effect
        By how much the prediction is higher than it would be if what is under this name were as
        usual, in units of reward.
    """

    name: str
    value: Value
    effect: float


@dataclass(frozen=True)
class Explained:
    """What an agent has to say of one action. None stands for what its explorer has no notion of.

    Attributes
    ----------
    action, probability
        The action, and the probability with which it is, or was, chosen.
    prediction, uncertainty
        The reward that is expected of it, and one standard deviation of what is not known of that.
    bonus
        What exploring adds to the prediction, where the explorer plays the highest such sum.
    features
        The names of the context that matter most to the prediction, up to five.
    """

    action: Label
    probability: float
    prediction: float | None
    uncertainty: float | None
    bonus: float | None
    features: tuple[Influence, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a decision was made, or would be.

    Predictions, and all that follows from them, are those of the agent as it is now.

    Attributes
    ----------
    actions
        The open actions, the likeliest first; of equal ones that with the highest prediction.
    policy
        The explorer, and the first letters of its checksum.
    id, chosen
        The decision that is explained and its action; both None where a context is.
    since
        How many times the agent has learned or changed since the decision.
    recalled
        Whether the probabilities are those that the decision was made by; else they are of now.
    """

    actions: tuple[Explained, ...]
    policy: str
    id: str | None = None
    chosen: Label = None
    since: int = 0
    recalled: bool = False

    def as_table(self) -> list[dict[str, Any]]:
        """A row for every action, as `pandas.DataFrame` takes them; `features` is a dict."""
        return [
            {**vars(explained), "features": {part.name: part.effect for part in explained.features}}
            for explained in self.actions
        ]

    def __str__(self) -> str:
        rows = [_COLUMNS, *map(_cells, self.actions[:SHOWN])]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        lines = [self._about()]
        for row in rows:
            numbers = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            line = [row[0].ljust(widths[0]), *numbers[1:-1], row[-1]]
            lines.append("  ".join(line).rstrip())
        return "\n".join(lines + self._more())

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            inside = (f"<{tag} style='{STYLE}'>{escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{''.join(inside)}</tr>"

        body = "".join(row(_cells(explained), "td") for explained in self.actions[:SHOWN])
        body += "".join(f"<tr><td colspan='6'>{line}</td></tr>" for line in self._more())
        return (
            f"<div>{escape(self._about())}<table><thead>{row(_COLUMNS, 'th')}</thead>"
            f"<tbody>{body}</tbody></table></div>"
        )

    def _about(self) -> str:
        """What is explained, and as of when."""
        if self.id is None:
            return f"what {_plain(self.policy)} would do"
        about = f"decision {_plain(self.id)}: {_plain(self.chosen)}, by {_plain(self.policy)}"
        if self.since == 0:
            return about
        what = "predictions" if self.recalled else "probabilities and predictions"
        versions = f"{self.since:,} version{'' if self.since == 1 else 's'}"
        return f"{about}; the agent is {versions} further, {what} are of now"

    def _more(self) -> list[str]:
        left = len(self.actions) - SHOWN
        return [f"… and {left} more"] if left > 0 else []


def _cells(explained: Explained) -> tuple[str, ...]:
    """An action as a row of a table to be read."""
    numbers = (explained.prediction, explained.uncertainty, explained.bonus)
    parts = (
        f"{_plain(part.name)}={_value(part.value)} {_signed(part)}" for part in explained.features
    )
    return (
        _plain(explained.action),
        f"{explained.probability:.3f}",
        *("–" if number is None else reward_text(number) for number in numbers),
        ", ".join(parts) or "–",
    )


def _value(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else shown(value)


def _signed(part: Influence) -> str:
    return f"{'+' if part.effect > 0.0 else '-'}{reward_text(abs(part.effect))}"


def _plain(value: Any) -> str:
    """A text as it is, unless it is long or would move the cursor; anything else as code."""
    is_plain = isinstance(value, str) and value.isprintable() and len(value) <= 60
    return value if is_plain else shown(value)
