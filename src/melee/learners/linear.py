"""Sums of products that keep their order, so that compiled callers agree to the last bit.

The rows of a matrix are named by number instead of being sliced: a slice costs an atomic
reference count, which is a good part of a round's time.
"""

from melee.arrays import Floats
from melee.compiled import kernel


@kernel
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


@kernel
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


@kernel
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
