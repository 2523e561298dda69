"""Checks of a log's contexts: values, scales, levels, and whether they change with time."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from melee.arrays import Floats
from melee.contexts import Context
from melee.evaluation.doctor.changes import ScaleChange, change_of_scale, distance
from melee.evaluation.doctor.columns import ContextColumn
from melee.evaluation.doctor.findings import LEVEL, Symptom, listed
from melee.evaluation.tails import chi_square_tail, kolmogorov_tail

SCALES = 1e6
"""Times by which the sizes of columns may differ."""
FAR = 20.0
"""Robust deviations from the median beyond which a value is an outlier."""
RARE = 0.05
"""Share of rounds below which a column is rarely present."""
MANY_LEVELS = 100
"""Levels beyond which a column takes the room of the others."""
SHIFT = 0.1
"""Distance between halves of a log (of distribution functions) that is worth a warning."""
_SAMPLE = 20_000
"""Rounds of each half that are compared."""


def kinds(contexts: Sequence[Context]) -> Iterator[Symptom]:
    """Contexts of more than one kind, so that no agent could learn from all."""
    found = Counter("named" if isinstance(c, dict) else f"{len(c)} numbers" for c in contexts)
    if len(found) > 1:
        (usual, _), *others = found.most_common()
        n_others = sum(n for _, n in others)
        yield Symptom(
            "error",
            f"{n_others:,} contexts are not as the others are ({others[0][0]}, not {usual})",
            "use names and values in every round, or the same number of numbers; split the log "
            "where the contexts changed",
        )


def not_finite(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """NaN and infinite numbers."""
    bad = {column.name: int((~np.isfinite(column.numbers)).sum()) for column in columns}
    names = [f"{name} ({count:,} rounds)" for name, count in bad.items() if count]
    if names:
        yield Symptom(
            "error",
            f"NaN or infinite numbers in {listed(names)}",
            "give None under a name where a value is missing; in rows of numbers, put a number in "
            "its place",
        )


def mixed(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Columns with numbers in some rounds and texts in others."""
    names = [
        f"{column.name} ({len(column.numbers):,} numbers, {len(set(column.level_rows)):,} texts)"
        for column in columns
        if len(column.numbers) and len(column.levels)
    ]
    if names:
        yield Symptom(
            "warning",
            f"both numbers and texts in {listed(names)}",
            "log one type per name; a number that arrives as a text is taken for a category",
        )


def constant(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Columns that say the same in every round. A column of ones is an intercept: no fault."""
    names = []
    for column in columns:
        if len(column.present) < n:
            continue
        if len(column.numbers) == n:
            same = bool((column.numbers == column.numbers[0]).all()) and column.numbers[0] != 1.0
        else:
            same = (
                len(column.numbers) == 0
                and len(column.levels) == n
                and len(set(column.levels)) == 1
            )
        if same:
            names.append(column.name)
    if names:
        yield Symptom(
            "warning",
            f"the same value in every round: {listed(names)}",
            "leave them out, or find out why they do not vary; a broken join often looks like this",
        )


def rarely_present(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Columns that most rounds lack."""
    names = [
        f"{column.name} ({len(column.present):,} rounds)"
        for column in columns
        if len(column.present) < RARE * n
    ]
    if names:
        yield Symptom(
            "warning",
            f"in less than {RARE:.0%} of {n:,} rounds: {listed(names)}",
            "check the spelling of the names and whether the field is still sent; little can be "
            "learned from them",
        )


def scale(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Columns of sizes that differ by more than a million."""
    sizes = {}
    for column in columns:
        size = np.abs(column.numbers[np.isfinite(column.numbers) & (column.numbers != 0.0)])
        if len(size):
            sizes[column.name] = float(np.median(size))
    if not sizes:
        return
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if sizes[large] > SCALES * sizes[small]:
        yield Symptom(
            "warning",
            f"{large} is typically {sizes[large]:.3g} and {small} {sizes[small]:.3g}",
            "measure them in units of like size; take logarithms of counts and amounts",
        )


def outliers(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Numbers further from the median than chance could put them.

    Where most values are equal, as in columns of zeros and a few ones, the others are by nature far
    from these: they are compared with each other.
    """
    names = []
    for column in columns:
        values = column.numbers[np.isfinite(column.numbers)]
        if _change(column) is not None:
            continue
        while len(values) >= 20:
            away = np.abs(values - np.median(values))
            deviation = 1.4826 * float(np.median(away))
            if deviation > 0.0:
                n_far = int((away > FAR * deviation).sum())
                if n_far:
                    furthest = values[away.argmax()]
                    names.append(f"{column.name} ({n_far:,} values, such as {furthest:.3g})")
                break
            values = values[away > 0.0]
    if names:
        yield Symptom(
            "warning",
            f"values more than {FAR:.0f} robust deviations from the median: {listed(names)}",
            "look for wrong units and placeholders such as -999 (log them as missing); take "
            "logarithms of amounts",
        )


def change_of_unit(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Columns that go on in another unit."""
    names = []
    for column in columns:
        change = _change(column)
        if change is not None:
            names.append(
                f"{column.name} (typically {change.before:.3g} before round "
                f"{column.number_rows[change.at]:,}, {change.after:.3g} from there on)"
            )
    if names:
        yield Symptom(
            "warning",
            f"as if in another unit from some round on: {listed(names)}",
            "bring all to one unit, or leave out the rounds before; what is learned of one scale "
            "is wrong for the other",
        )


def _change(column: ContextColumn) -> ScaleChange | None:
    """Where the numbers of a column change their scale; of long ones about where."""
    step = _step(column.numbers)
    change = change_of_scale(column.numbers[::step])
    return change and change._replace(at=step * change.at)


def many_levels(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Texts that hardly ever occur twice, or are too many to be learned apart."""
    ids, many = [], []
    for column in columns:
        n_levels = len(set(column.levels))
        if n_levels > 20 and n_levels > 0.5 * len(column.levels):
            ids.append(f"{column.name} ({n_levels:,} different texts in {len(column.levels):,})")
        elif n_levels > MANY_LEVELS:
            many.append(f"{column.name} ({n_levels:,})")
    if ids:
        yield Symptom(
            "warning",
            f"texts that identify single rounds: {listed(ids)}",
            "leave ids out of contexts; nothing learned from one round helps in the next",
        )
    if many:
        yield Symptom(
            "warning",
            f"more than {MANY_LEVELS} levels: {listed(many)}",
            "group rare levels, or describe them by features of their own",
        )


def drift(columns: Sequence[ContextColumn], n: int) -> Iterator[Symptom]:
    """Columns distributed otherwise in the second half of the log than in the first."""
    if n < 40:
        return
    names = []
    threshold = LEVEL / (2 * max(len(columns), 1))
    for column in columns:
        if _change(column) is not None:
            continue
        found = [_numbers_shift(column, n), _levels_shift(column, n)]
        if any(p < threshold and apart > SHIFT for apart, p in found):
            names.append(f"{column.name} (by {max(apart for apart, _ in found):.0%})")
    if names:
        yield Symptom(
            "warning",
            f"other values in the second half of the log than in the first: {listed(names)}",
            "find out what changed; evaluate on the recent part, whose contexts are like those "
            "to come",
        )


def _numbers_shift(column: ContextColumn, n: int) -> tuple[float, float]:
    """The Kolmogorov-Smirnov distance of the halves, and its p-value."""
    usable = np.isfinite(column.numbers)
    late = column.number_rows[usable] >= n // 2
    values = column.numbers[usable]
    first, second = _thinned(values[~late]), _thinned(values[late])
    if min(len(first), len(second)) < 20:
        return 0.0, 1.0
    apart = distance(first, second)
    pairs = len(first) * len(second) / (len(first) + len(second))
    return apart, kolmogorov_tail(apart * math.sqrt(pairs))


def _levels_shift(column: ContextColumn, n: int) -> tuple[float, float]:
    """The distance of the halves' shares of levels, and the p-value of a chi-square test.

    Being a number and being missing count as levels. Groups of texts: presence only, since
    texts of one round do not vary independently.
    """
    level = np.full(n, "(missing)", dtype=object)
    level[column.present] = "(present)"
    if len(set(column.level_rows)) == len(column.level_rows):
        level[column.level_rows] = column.levels
    counts = [Counter(half) for half in (level[: n // 2].tolist(), level[n // 2 :].tolist())]
    total = counts[0] + counts[1]
    common = [name for name, count in total.most_common(50) if count >= 20]
    table = np.array([[half[name] for name in common] for half in counts], dtype=np.float64)
    rest = np.array([n // 2, n - n // 2]) - table.sum(axis=1)
    if rest.sum() >= 20:
        table = np.column_stack([table, rest])
    if table.shape[1] < 2:
        return 0.0, 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    chi_square = ((table - expected) ** 2 / expected).sum()
    shares = table / table.sum(axis=1, keepdims=True)
    apart = 0.5 * float(np.abs(shares[0] - shares[1]).sum())
    return apart, chi_square_tail(float(chi_square), table.shape[1] - 1)


def _thinned(values: Floats) -> Floats:
    return values[:: _step(values)]


def _step(values: Floats) -> int:
    return 1 + len(values) // _SAMPLE


CHECKS: dict[str, tuple[Callable[[Sequence[ContextColumn], int], Iterator[Symptom]], str]] = {
    "numbers": (not_finite, "every number is finite"),
    "types": (mixed, "every column has one type"),
    "constant columns": (constant, "every column varies"),
    "rare columns": (rarely_present, "every column is present often enough"),
    "scales": (scale, "columns are of like size"),
    "units": (change_of_unit, "every column keeps its scale"),
    "outliers": (outliers, "no value is far from all others"),
    "levels": (many_levels, "no column has too many levels"),
    "drift of contexts": (drift, "both halves of the log have contexts alike"),
}
"""The checks of columns by name, each with what it says when all is well."""
