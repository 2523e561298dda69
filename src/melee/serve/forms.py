"""Decisions and explanations in the form in which they are answered."""

from typing import Any

from melee.agent.explanation import Explanation
from melee.decision import Decision
from melee.labels import label_to_json


def to_json(decision: Decision) -> dict[str, Any]:
    """A decision as it is answered."""
    return {
        "id": decision.id,
        "action": label_to_json(decision.action),
        "probability": decision.probability,
        "policy": decision.policy,
        "version": decision.version,
        "actions": [label_to_json(label) for label in decision.actions],
        "probabilities": decision.probabilities,
    }


def explanation_to_json(why: Explanation) -> dict[str, Any]:
    """An explanation as it is answered."""
    return {
        "policy": why.policy,
        "actions": [
            {
                "action": label_to_json(explained.action),
                "probability": explained.probability,
                "prediction": explained.prediction,
                "uncertainty": explained.uncertainty,
                "bonus": explained.bonus,
                "features": [part._asdict() for part in explained.features],
            }
            for explained in why.actions
        ],
    }
