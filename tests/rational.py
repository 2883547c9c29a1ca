"""Minimax fits in rational arithmetic: the exact minimum for the numbers given."""

import itertools
from fractions import Fraction

import numpy as np


def solved(M, right):
    """The solution of a square system of Fractions; None where it is singular."""
    rows = [[*row, value] for row, value in zip(M, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[k] != 0:
                rows[i] = [a - row[k] * c for a, c in zip(row, rows[k], strict=True)]
    return [row[-1] for row in rows]


def exactly(values):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(values)]


def weights_of(A):
    """w with A^T w = 0, of d + 1 rows; None where there are several."""
    for k in range(len(A)):
        rest = A[:k] + A[k + 1 :]
        w = solved([list(column) for column in zip(*rest, strict=True)], [-a for a in A[k]])
        if w is not None:
            return [*w[:k], Fraction(1), *w[k:]]
    return None


def exact_minimum(A, b, row_weights=None):
    """max |<w, b>| / sum |w|/row weight over A^T w = 0 on d + 1 rows, all of them: the vertices of the dual."""
    (b,) = exactly(b)
    best, A = Fraction(0), exactly(A)
    sizes = [Fraction(1)] * len(b) if row_weights is None else [1 / Fraction(v) for v in row_weights]
    for which in itertools.combinations(range(len(b)), len(A[0]) + 1):
        w = weights_of([A[i] for i in which])
        if w is not None:
            value = sum(v * b[i] for v, i in zip(w, which, strict=True))
            best = max(best, abs(value) / sum(abs(v) * sizes[i] for v, i in zip(w, which, strict=True)))
    return best
