"""Numbers as evaluations show them: in as many digits as tell something."""

import math


def in_digits(value: float, *others: float, places: int = 4) -> tuple[str, ...]:
    """A number and what it is shown with, such as the ends of its interval, in as many places.

    At least so many as asked for, and as many as it takes for three digits of the number and for
    two of how far all of them are apart: rates of clicks, and large logs, need more than usual.

    >>> in_digits(0.0043, 0.0031, 0.0058, places=3)
    ('0.00430', '0.00310', '0.00580')
    >>> in_digits(0.43201, 0.43199, 0.43203, places=3)
    ('0.432010', '0.431990', '0.432030')
    """
    every = (value, *others)
    size = max(map(abs, others or every))
    if size != 0.0 and not 1e-5 <= size < 1e5:
        kind = f".{places + 2}g"
    else:
        apart = max(every) - min(every)
        # A number that is nearly 0 beside its interval has no digits that count.
        told = max(abs(value), 0.05 * apart)
        kind = f".{max(places, _places(told, 3), _places(apart, 2))}f"
    return tuple(f"{number:{kind}}" for number in every)


def _places(size: float, n_digits: int) -> int:
    """How many places show so many digits of a number; at most 12."""
    return min(12, n_digits - 1 - math.floor(math.log10(size))) if size > 0.0 else 0
