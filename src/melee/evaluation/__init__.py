"""What a log can tell: how good a policy would have been, and whether the log can be trusted."""

from melee.evaluation.differences import Difference
from melee.evaluation.doctor import Finding, examine
from melee.evaluation.doctor.power import Power, detectable
from melee.evaluation.estimates import Estimate, effective_sample_size
from melee.evaluation.live import LiveEvaluation, evaluate_live, evaluate_live_many
from melee.evaluation.off_policy import ESTIMATORS, Evaluation, evaluate, evaluate_many

__all__ = [
    "ESTIMATORS",
    "Difference",
    "Estimate",
    "Evaluation",
    "Finding",
    "LiveEvaluation",
    "Power",
    "detectable",
    "effective_sample_size",
    "evaluate",
    "evaluate_live",
    "evaluate_live_many",
    "evaluate_many",
    "examine",
]
