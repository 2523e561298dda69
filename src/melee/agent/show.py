"""An agent as text, and as a table in a notebook."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from melee.agent.agent import Agent

SHOWN = 12
STYLE = "text-align:left;padding:2px 12px 2px 0"


def as_text(agent: "Agent") -> str:
    """One line: what it is, and how far it has come."""
    return (
        f"<Agent: {len(agent.actions_)} actions, explorer {agent.policy_}, "
        f"{_rewards(agent)}{agent.n_learned_} rounds learned, {agent.n_pending_} pending>"
    )


def reward_text(reward: float) -> str:
    """A mean reward to three places, or three digits where that says more or takes less room."""
    plain = 1e-2 <= abs(reward) < 1e6 or reward == 0.0
    return f"{reward:,.3f}" if plain else f"{reward:.3g}"


def _rewards(agent: "Agent") -> str:
    """The range of rewards, if it is declared."""
    if agent._range is None:
        return ""
    low, high = agent._range
    return f"rewards from {low:g} to {high:g}, "


def as_html(agent: "Agent") -> str:
    """A small table: the actions, how often each was learned from, and what it earned."""
    rows = sorted(agent.summary(), key=lambda row: -row[1])
    body = "".join(
        f"<tr><td style='{STYLE}'>{escape(str(label))}</td><td style='{STYLE}'>{plays:,}</td>"
        f"<td style='{STYLE}'>{reward_text(average) if plays else '–'}</td></tr>"
        for label, plays, average in rows[:SHOWN]
    )
    if len(rows) > SHOWN:
        body += f"<tr><td colspan='3'>… and {len(rows) - SHOWN} more</td></tr>"
    said = agent.diagnostics()
    facts = (
        f"{agent.n_learned_:,} rounds learned · {agent.n_pending_:,} pending · "
        f"{said['features']:,.0f} features · {_rewards(agent).replace(',', ' ·')}"
        f"average reward {reward_text(said['average reward'])}"
    )
    names = "".join(f"<th style='{STYLE}'>{n}</th>" for n in ("action", "rounds", "reward"))
    return (
        f"<div><b>Agent</b> <code>{escape(agent.policy_)}</code><br>{facts}"
        f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )
