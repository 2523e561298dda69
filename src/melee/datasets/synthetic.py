"""The paper's synthetic tasks: two overlapping unit squares with a known Bayes error."""

from collections.abc import Iterator

import numpy as np

from melee.errors import InputError
from melee.task import Task


def rectangles(n_rows: int = 3000, *, bayes_error: float | None = None, seed: int = 0) -> Task:
    """Two classes, each uniform in a unit square of the plane, overlapping by design.

    A point of the overlap belongs to either class with equal chance, so the best possible
    rule errs on half of it: squares that share an area A have Bayes error A / 2. The direction
    of the shift, its split between the two axes and the place of both squares are random. Made
    for meta-training as in the paper; real tables have more columns, and correlated ones.

    Parameters
    ----------
    n_rows
        Rows, half of each class; the odd one belongs to class 0 for even seeds, else to class 1.
    bayes_error
        Error of the best rule, from 0 (apart) to 0.5 (on top of each other); drawn uniformly
        from that interval when left out.
    seed
        The same seed gives the same task.

    Examples
    --------
    >>> task = rectangles(100, bayes_error=0.1)
    >>> task, task.rewards.sum(axis=0).tolist()
    (Task('rectangles-0', 100 rows, 2 features, 2 actions), [50.0, 50.0])
    >>> task.provenance
    'two unit squares, Bayes error 0.100000, seed 0'
    """
    from melee.rng import check_seed, generator  # here, because it compiles

    name = f"rectangles-{check_seed(seed)}"
    rng = generator(seed, "rectangles")
    return _squares(name, n_rows, bayes_error, rng, odd_class=seed % 2, origin=f"seed {seed}")


def paper_tasks(n_tasks: int = 82, n_rows: int = 3000, seed: int = 0) -> Iterator[Task]:
    """The paper's training set: 82 tasks of 3000 rows, Bayes errors uniform in [0, 0.5].

    Task i depends on the seed and on i alone, so more tasks extend the set without changing it.

    >>> [task.name for task in paper_tasks(n_tasks=2, n_rows=50)]
    ['rectangles-0-0', 'rectangles-0-1']
    """
    from melee.rng import check_seed, generator

    for i in range(n_tasks):
        name = f"rectangles-{check_seed(seed)}-{i}"
        rng = generator(seed, "paper tasks", i)
        origin = f"seed {seed}, task {i}"
        yield _squares(name, n_rows, None, rng, odd_class=i % 2, origin=origin)


def _squares(
    name: str,
    n_rows: int,
    bayes_error: float | None,
    rng: np.random.Generator,
    *,
    odd_class: int,
    origin: str,
) -> Task:
    if n_rows < 2:
        raise InputError(f"n_rows is {n_rows}; two classes need at least 2 rows")
    error = float(rng.uniform(0.0, 0.5)) if bayes_error is None else float(bayes_error)
    if not 0.0 <= error <= 0.5:
        raise InputError(
            f"bayes_error is {bayes_error}; two balanced classes allow any value from 0 to 0.5"
        )
    # The overlap (1 - shift[0]) * (1 - shift[1]) is 2 * error for any split between the axes.
    split = rng.random()
    shift = 1.0 - (2.0 * error) ** np.array([split, 1.0 - split])
    direction = rng.choice([-1.0, 1.0], size=2)
    corner = rng.uniform(-1.0, 1.0, size=2)

    labels = rng.permutation((np.arange(n_rows) + odd_class) % 2)
    contexts = corner + labels[:, None] * direction * shift + rng.random((n_rows, 2))
    return Task.from_labels(
        name,
        contexts,
        labels,
        provenance=f"two unit squares, Bayes error {error:.6f}, {origin}",
    )
