"""The report: one self-contained HTML page, its figures as SVG and PNG, its tables as CSV."""

from melee.report.data import collect
from melee.report.html import write_report
from melee.report.values import ReportData

__all__ = ["ReportData", "collect", "write_report"]
