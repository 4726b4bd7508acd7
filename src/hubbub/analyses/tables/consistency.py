"""Consistency of noisy numbers: non-negative, integer, and adding up to their totals.

This is post-processing of noisy numbers, so it costs nothing.

Tested in tests/analyses/tables/test_contingency.py.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Numbers that are processed in all rounds together, and the largest and smallest number of rounds.
_EFFORT, _MAX_ROUNDS, _MIN_ROUNDS = 50_000_000, 2_000, 50
_ENOUGH = 1e-4


def non_negative(
    start: Floats, slope: Callable[[Floats], Floats], steepest: float, *, total: float | None = None
) -> Floats:
    """Find the non-negative vector that is nearest to the measurements, by accelerated projected descent.

    slope     half the gradient of the squared distance
    steepest  the largest eigenvalue of its matrix
    total     the sum of the numbers. Without it, a table of many empty cells becomes too large, because noise below
              zero is cut off and noise above it stays
    """

    def inside(values: Floats) -> Floats:
        if total is None:
            return np.maximum(values, 0.0)
        return project_to_totals(values.reshape(1, -1), np.array([max(total, 0.0)])).reshape(values.shape)

    found = ahead = inside(start)
    pace = 1.0
    for _ in range(min(_MAX_ROUNDS, max(_MIN_ROUNDS, _EFFORT // max(start.size, 1)))):
        step = inside(ahead - slope(ahead) / steepest)
        change = step - found
        if float(np.sum((ahead - step) * change)) > 0:  # the direction changed: restart the acceleration
            pace = 1.0
        faster = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        ahead = step + (pace - 1) / faster * change
        pace, found = faster, step
        if float(np.abs(change).max(initial=0.0)) < _ENOUGH:
            break
    return found


def project_to_totals(values: Floats, totals: Floats) -> Floats:
    """Change each row as little as possible so that it is non-negative and adds up to its total (which is ≥ 0).

    This is the projection onto a simplex: the same amount is subtracted from all numbers that stay positive.

    >>> project_to_totals(np.array([[3.0, -1.0, 2.0]]), np.array([4.0])).tolist()
    [[2.5, 0.0, 1.5]]
    """
    if not values.size:
        return values.copy()
    ordered = -np.sort(-values, axis=1)
    # the amount to subtract if the k largest stay positive
    taken = (np.cumsum(ordered, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
    kept = np.maximum((ordered > taken).sum(axis=1), 1)
    return np.maximum(values - np.take_along_axis(taken, kept[:, None] - 1, axis=1), 0.0)


def round_to_totals(values: Floats, totals: Whole) -> Whole:
    """Round each row of non-negative numbers to integers that add up to its total, by largest remainders.

    The numbers must add up approximately to their total. Ties go to the first.

    >>> round_to_totals(np.array([[1.5, 0.25, 2.25], [0.0, 0.0, 0.0]]), np.array([4, 0])).tolist()
    [[2, 0, 2], [0, 0, 0]]
    """
    floors = np.floor(values + 1e-9)
    whole = floors.astype(np.int64)
    missing = totals - whole.sum(axis=1)
    order = np.argsort(-(values - floors), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(values.shape[1]), order.shape), axis=1)
    width = max(values.shape[1], 1)
    each, left = np.divmod(missing, width)
    whole += each[:, None] + (rank < left[:, None])
    # a total below the sum of the floors is taken from the smallest remainders first, but never below zero
    short = np.minimum(whole, 0).sum(axis=1)
    if short.any():
        whole = _taken(np.maximum(whole, 0), -short)
    return whole


def round_from_total(fitted: Floats) -> Whole:
    """Round a table from the total down, one axis after the other, so that each step adds up to the one before."""
    totals = np.array([max(0, round(float(fitted.sum())))], dtype=np.int64)
    for depth in range(fitted.ndim):
        values = fitted.sum(axis=tuple(range(depth + 1, fitted.ndim))).reshape(len(totals), -1)
        totals = round_to_totals(project_to_totals(values, totals.astype(np.float64)), totals).reshape(-1)
    return totals.reshape(fitted.shape)


def _taken(whole: Whole, amount: Whole) -> Whole:
    """Subtract an amount from the largest numbers of each row."""
    order = np.argsort(-whole, axis=1, kind="stable")
    ordered = np.take_along_axis(whole, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    left = ordered - np.clip(amount[:, None] - before, 0, ordered)
    out = np.empty_like(whole)
    np.put_along_axis(out, order, left, axis=1)
    return out


def round_running_totals(values: Floats) -> Whole:
    """Round non-negative numbers so that every running total is off by at most one half.

    >>> round_running_totals(np.array([0.4, 0.4, 0.4, 0.8])).tolist()
    [0, 1, 0, 1]
    """
    totals = np.rint(np.cumsum(values)).astype(np.int64)
    return np.diff(totals, prepend=0)


def ends(value: NDArray[np.int64] | Floats, middle: Floats, half: Floats | float) -> tuple[list[float], list[float]]:
    """Give non-negative intervals around estimates that contain the published values."""
    low = np.minimum(np.maximum(middle - half, 0.0), value)
    high = np.maximum(np.maximum(middle + half, 0.0), value)
    return [float(end) for end in np.round(low, 3)], [float(end) for end in np.round(high, 3)]
