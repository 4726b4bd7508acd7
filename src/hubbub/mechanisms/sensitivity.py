"""Sensitivities of sums and histograms under the add/remove and the replace relation.

A unit has at most `rows` rows (possibly none: a filter may drop them). Replacing a unit is not covered by "a symmetric
difference of at most one": it changes a histogram by 2 where adding or removing a unit changes it by 1.
"""

from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError

_MAX = numbers.SENSITIVITY_MAX


def of_sum(*, lower: int, upper: int, rows: int, relation: Relation) -> int:
    """Return the sensitivity of a sum of integers that are clamped into [lower, upper], row by row.

    Theorem (Sensitivity of a sum). A unit adds between m = min(0, rows·lower) and M = max(0, rows·upper) to the sum.
    So one more or one less moves it by at most max(−m, M), and another in its place by at most M − m; both are
    attained.
    Tested   tests/mechanisms/test_sensitivity.py::test_brute_force_over_neighbors_finds_the_declared_sensitivity

    >>> of_sum(lower=0, upper=1, rows=1, relation=Relation.REPLACE)
    1
    """
    lower = numbers.integer(lower, "lower", -_MAX, _MAX)
    upper = numbers.integer(upper, "upper", lower, _MAX)
    rows = numbers.integer(rows, "rows", 1, _MAX)
    least, most = min(0, rows * lower), max(0, rows * upper)
    difference = max(-least, most) if check_relation(relation) is Relation.ADD_REMOVE else most - least
    return numbers.sensitivity(difference)


def of_histogram(*, rows: int, relation: Relation) -> int:
    """Return the L1 sensitivity of counts over disjoint cells, however many cells there are.

    Theorem (Sensitivity of a histogram). Each row stands in one cell, so a unit adds at most `rows` in all: one more
    or one less moves the counts by at most `rows` in L1, another in its place by at most 2·rows; both are attained.
    Tested   tests/mechanisms/test_sensitivity.py::test_brute_force_over_neighbors_finds_the_declared_sensitivity

    >>> of_histogram(rows=1, relation=Relation.ADD_REMOVE), of_histogram(rows=1, relation=Relation.REPLACE)
    (1, 2)
    """
    return numbers.sensitivity(numbers.integer(rows, "rows", 1, _MAX) * check_relation(relation).units_changed)


def of_histogram_squared(*, rows: int, relation: Relation) -> int:
    """Return the squared L2 sensitivity of counts over disjoint cells.

    Theorem (Squared sensitivity of a histogram). The worst unit has all its rows in one cell: rows² for one more or
    one less, and 2·rows² for another in its place, with its rows in another cell.
    Proof    With a, b ≥ 0 the counts of two units, Σ(a−b)² ≤ Σa² + Σb² ≤ (Σa)² + (Σb)² ≤ 2·rows².
    Tested   tests/mechanisms/test_sensitivity.py::test_brute_force_over_neighbors_finds_the_declared_sensitivity

    >>> of_histogram_squared(rows=3, relation=Relation.REPLACE)
    18
    """
    rows = numbers.integer(rows, "rows", 1, _MAX)
    return numbers.integer(rows * rows * check_relation(relation).units_changed, "sensitivity", 1, _MAX**2)


def check_relation(relation: Relation) -> Relation:
    """Return the relation if it is one, or raise."""
    if not isinstance(relation, Relation):
        raise ParameterError(
            "HB154",
            "The relation is not a Relation between neighboring datasets.",
            "Pass Relation.ADD_REMOVE or Relation.REPLACE.",
        )
    return relation
