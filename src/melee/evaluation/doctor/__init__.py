"""What is wrong with a log, and what to do about it."""

from melee.evaluation.doctor.doctor import examine
from melee.evaluation.doctor.findings import Finding

__all__ = ["Finding", "examine"]
