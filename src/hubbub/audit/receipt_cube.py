"""Compute cells of a cube's marginals from the numbers that its receipt shows.

The checker imports nothing from the rest of hubbub but other files of the checker. It undoes the contrasts one value
after the other, where the rest of hubbub multiplies by their pseudo-inverse.

Tested in tests/audit/test_receipt_cube.py.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

from hubbub.audit.receipt_loss import ReceiptError

#: Cells are rounded to whole parts of so many.
_PARTS = 2**40


def numbers_of(measured: Mapping[str, Any]) -> list[int]:
    """Count the numbers of each subset of columns, the empty one first."""
    for key in measured["columns"]:
        if not key["null"] or len(key["scales"]) != len(key["values"]):
            raise ReceiptError("A column of a cube has another number of contrasts than values.")
    return [prod(len(measured["columns"][i]["scales"]) for i in each) for each in _subsets(measured)]


def cube_sets(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the keys of every marginal."""
    return [{"keys": [measured["columns"][i] for i in each]} for each in _subsets(measured)]


def cube_values(measured: Mapping[str, Any], number: int, sums: Sequence[int]) -> list[Fraction]:
    """Compute the cells of a marginal.

    Theorem (Cells of a cube, again). What a value has beyond the mean of its column follows from its contrasts: with
    t = y/(c·j·(j + 1)) for the contrast of factor c of the first j values with the next one, value v has −v·t of the
    contrast in which it is the last, and t of each later one. The cell adds up, over the subsets of its columns, what
    they tell beyond the mean of the other columns.
    Tested   tests/audit/test_receipt_cube.py::test_cells_are_found_again_from_exact_contrasts
    """
    subsets = _subsets(measured)
    wanted, first = subsets[number], 0
    scales = [key["scales"] for key in measured["columns"]]
    cells = list(product(*(range(len(scales[i]) + 1) for i in wanted)))
    total = dict.fromkeys(cells, Fraction(0))
    for each in subsets:
        size = prod(len(scales[i]) for i in each)
        if set(each) <= set(wanted):
            places = product(*(range(len(scales[i])) for i in each))
            part = {place: Fraction(y) for place, y in zip(places, sums[first : first + size], strict=True)}
            for axis, column in enumerate(each):
                part = _undone(part, axis, scales[column])
            others = prod(len(scales[i]) + 1 for i in wanted if i not in each)
            at = [wanted.index(i) for i in each]
            for cell in cells:
                total[cell] += part[tuple(cell[i] for i in at)] / others
        first += size
    return [Fraction((value * _PARTS + Fraction(1, 2)).__floor__(), _PARTS) for value in total.values()]


_Part = dict[tuple[int, ...], Fraction]


def _undone(part: Mapping[tuple[int, ...], Fraction], axis: int, scales: Sequence[int]) -> _Part:
    """Replace the contrasts along one axis by what each value has beyond the mean."""
    found: _Part = {}
    for rest in {(*place[:axis], *place[axis + 1 :]) for place in part}:
        later = Fraction(0)
        for value in range(len(scales), -1, -1):
            own = Fraction(0)
            if value:
                y = part[(*rest[:axis], value - 1, *rest[axis:])]
                own = y / (scales[value - 1] * value * (value + 1))
            found[(*rest[:axis], value, *rest[axis:])] = later - value * own
            later += own
    return found


def _subsets(measured: Mapping[str, Any]) -> list[tuple[int, ...]]:
    columns = range(len(measured["columns"]))
    return [each for size in range(measured["order"] + 1) for each in combinations(columns, size)]
