"""Sums of products that keep their order, so that compiled callers agree to the last bit.

The rows of a matrix are named by number instead of being sliced, which costs a little.
"""

import functools
from functools import reduce
from operator import add

import numpy as np

from melee.arrays import Floats
from melee.compiled import interpreted_as


def _dots_at_once(rows: Floats, b: Floats) -> Floats:
    """Rows @ b, summed as `dot` does; an accumulated sum has its terms in order."""
    n = b.shape[0]
    products = rows * b
    whole = n - n % 4
    sums = np.zeros((len(rows), 4))
    if whole:
        blocks = products[:, :whole].reshape(len(rows), whole // 4, 4)
        sums += np.add.accumulate(blocks, axis=1)[:, -1]
    for i in range(whole, n):
        sums[:, 0] += products[:, i]
    pairs = sums[:, ::2] + sums[:, 1::2]
    return np.asarray(pairs[:, 0] + pairs[:, 1])


def _dot_at_once(a: Floats, b: Floats) -> float:
    products = (a * b).tolist()
    whole = len(products) - len(products) % 4
    s0, s1, s2, s3 = (reduce(add, products[i:whole:4], 0.0) for i in range(4))
    s0 = reduce(add, products[whole:], s0)
    return float((s0 + s1) + (s2 + s3))


def _dot_row_at_once(a: Floats, row: int, b: Floats) -> float:
    return _dot_at_once(a[row], b)


def _dot_rows_at_once(a: Floats, first: int, b: Floats, out: Floats) -> None:
    out[:] = _dots_at_once(a[first : first + len(out)], b)


def _add_at_once(a: Floats, row: int, b: Floats, factor: float) -> None:
    a[row] += b * factor


@functools.lru_cache(maxsize=64)
def _above(n: int) -> Floats:
    """Where `quadratic_form` adds one term after the other: j < i, in whole blocks of four."""
    i = np.arange(n)
    block = np.where(i < n - n % 4, i // 4 * 4, i)
    return np.asarray(i[:, None] < block, np.bool_)


def _quadratic_form_at_once(a: Floats, block: int, x: Floats) -> float:
    n = x.shape[0]
    whole = n - n % 4
    products = a[block] * x[:, None]
    half = 0.5 * a[block].diagonal() * x
    terms = np.zeros((n + 1, n))
    terms[1:] = np.where(_above(n), products, 0.0)
    first = terms[0]
    first[:] = half
    i = np.arange(0, whole, 4)
    first[i + 1] = products[i, i + 1] + half[i + 1]
    first[i + 2] = products[i, i + 2] + products[i + 1, i + 2] + half[i + 2]
    rest = products[i + 2, i + 3] + half[i + 3]
    first[i + 3] = (products[i, i + 3] + products[i + 1, i + 3]) + rest
    parts = np.add.accumulate(terms, axis=0)[-1] * x
    total = 0.0
    if whole:
        fours = parts[:whole].reshape(-1, 4)
        sums = (fours[:, 0] + fours[:, 1]) + (fours[:, 2] + fours[:, 3])
        total += np.add.accumulate(sums)[-1]
    for part in parts[whole:]:
        total += part
    return float(2.0 * total)


@interpreted_as(_dot_at_once)
def dot(a: Floats, b: Floats) -> float:
    """The product a · b, in four interleaved sums: fast, and in a fixed order."""
    n = a.shape[0]
    s0 = s1 = s2 = s3 = 0.0
    for block in range(n // 4):
        i = 4 * block
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(n - n % 4, n):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@interpreted_as(_dot_row_at_once)
def dot_row(a: Floats, row: int, b: Floats) -> float:
    """The product a[row] · b, summed as `dot` does."""
    n = b.shape[0]
    s0 = s1 = s2 = s3 = 0.0
    for block in range(n // 4):
        i = 4 * block
        s0 += a[row, i] * b[i]
        s1 += a[row, i + 1] * b[i + 1]
        s2 += a[row, i + 2] * b[i + 2]
        s3 += a[row, i + 3] * b[i + 3]
    for i in range(n - n % 4, n):
        s0 += a[row, i] * b[i]
    return (s0 + s1) + (s2 + s3)


@interpreted_as(_dot_rows_at_once)
def dot_rows(a: Floats, first: int, b: Floats, out: Floats) -> None:
    """Overwrite `out` with the products of the rows from `first` on, each summed as `dot` does."""
    for k in range(out.shape[0]):
        out[k] = dot_row(a, first + k, b)


@interpreted_as(_add_at_once)
def add_to_row(a: Floats, row: int, b: Floats, factor: float) -> None:
    """Add b·factor to a[row]."""
    for i in range(b.shape[0]):
        a[row, i] += b[i] * factor


@interpreted_as(_quadratic_form_at_once)
def quadratic_form(a: Floats, block: int, x: Floats) -> float:
    """The number x' A x for the symmetric matrix A = a[block], from one triangle of it.

    Twice the sum over i of x_i·(A_ii x_i/2 + sum over j < i of A_ji x_j), four columns i at a
    time, so that each row of A is read along its length.
    """
    n = x.shape[0]
    total = 0.0
    for quarter in range(n // 4):
        i = 4 * quarter
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        if x0 == 0.0 and x1 == 0.0 and x2 == 0.0 and x3 == 0.0:
            continue  # as in many places of a pair
        s0 = 0.5 * a[block, i, i] * x0
        s1 = a[block, i, i + 1] * x0 + 0.5 * a[block, i + 1, i + 1] * x1
        s2 = a[block, i, i + 2] * x0 + a[block, i + 1, i + 2] * x1
        s2 += 0.5 * a[block, i + 2, i + 2] * x2
        s3 = a[block, i, i + 3] * x0 + a[block, i + 1, i + 3] * x1
        s3 += a[block, i + 2, i + 3] * x2 + 0.5 * a[block, i + 3, i + 3] * x3
        for j in range(i):
            s0 += a[block, j, i] * x[j]
            s1 += a[block, j, i + 1] * x[j]
            s2 += a[block, j, i + 2] * x[j]
            s3 += a[block, j, i + 3] * x[j]
        total += (s0 * x0 + s1 * x1) + (s2 * x2 + s3 * x3)
    for i in range(n - n % 4, n):
        s0 = 0.5 * a[block, i, i] * x[i]
        for j in range(i):
            s0 += a[block, j, i] * x[j]
        total += s0 * x[i]
    return 2.0 * total
