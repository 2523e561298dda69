"""Where tasks come from: synthetic ones, tables in files, openml.org, and suites of them."""

from melee.datasets.listing import Listing, describe
from melee.datasets.openml import cache_directory, fetch
from melee.datasets.suites import Entry, Suite, family, load_suite
from melee.datasets.synthetic import paper_tasks, rectangles
from melee.datasets.tables import read_rewards, read_table, table_to_task

__all__ = [
    "Entry",
    "Listing",
    "Suite",
    "cache_directory",
    "describe",
    "family",
    "fetch",
    "load_suite",
    "paper_tasks",
    "read_rewards",
    "read_table",
    "rectangles",
    "table_to_task",
]
