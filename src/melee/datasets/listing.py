"""What a suite holds, as rows for a terminal: cheap, and nothing is fetched for it."""

from dataclasses import dataclass

from melee.datasets.suites import Suite
from melee.errors import MissingPackageError, told


@dataclass(frozen=True)
class Listing:
    """One dataset of a suite; None stands for what is not known without fetching it.

    Parameters
    ----------
    n_features
        Columns of the table where the suite or the cache says how many, else of the task.
    cached
        Whether it can be loaded without a network.
    problem
        Why it cannot be read, or an empty text.
    """

    name: str
    n_rows: int | None
    n_features: int | None
    n_actions: int | None
    source: str
    cached: bool
    problem: str = ""


def describe(suite: Suite) -> list[Listing]:
    """One row per dataset, from the manifest or the cache; small files are read if need be.

    A file that cannot be read keeps its row, with the reason.

    >>> from melee.datasets import load_suite
    >>> describe(load_suite("bundled"))[0]
    Listing(name='iris', n_rows=150, n_features=4, n_actions=3, source='scikit-learn',
            cached=True, problem='')
    """
    rows = []
    for entry in suite:
        n_rows, n_columns, n_actions = entry.n_rows, entry.n_columns, entry.n_actions
        cached, problem = True, ""
        if entry.stored is not None:
            stored = entry.stored()
            cached = stored is not None
            if stored is not None:
                n_rows, n_columns, n_actions = stored.rows, stored.columns, stored.classes
        elif None in (n_rows, n_columns, n_actions):
            try:
                task = entry.load()
                n_rows, n_columns, n_actions = task.n_rows, task.n_features, task.n_actions
            except MissingPackageError:  # it is the same for all others
                raise
            except Exception as error:  # one file must not hide the others
                problem = told(error)
        rows.append(
            Listing(entry.name, n_rows, n_columns, n_actions, entry.source, cached, problem)
        )
    return rows
