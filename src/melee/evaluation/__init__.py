"""What a log can tell: how good a policy would have been, and whether the log can be trusted."""

from melee.evaluation.differences import Difference
from melee.evaluation.doctor import Finding, examine
from melee.evaluation.doctor.power import Power, detectable
from melee.evaluation.estimates import Estimate, effective_sample_size
from melee.evaluation.live import LiveEvaluation, compare_live, evaluate_live
from melee.evaluation.off_policy import ESTIMATORS, Evaluation, compare, evaluate

__all__ = [
    "ESTIMATORS",
    "Difference",
    "Estimate",
    "Evaluation",
    "Finding",
    "LiveEvaluation",
    "Power",
    "compare",
    "compare_live",
    "detectable",
    "effective_sample_size",
    "evaluate",
    "evaluate_live",
    "examine",
]
