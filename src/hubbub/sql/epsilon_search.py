"""Find the smallest ε that reaches a given margin of error.

Tested in tests/sql/test_plan.py.
"""

from collections.abc import Mapping
from fractions import Fraction

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.noise import Noise
from hubbub.sql.plan import plan
from hubbub.sql.query import Query

#: The powers of ten between which ε is searched.
_FIRST, _LAST = -6, 3


def solve(
    query: Query,
    *,
    within: numbers.Number,
    delta: Fraction,
    groups: int | None = None,
    rows: int | None = None,
    weights: Mapping[str, Fraction] | None = None,
    joint: bool = False,
    noise: Noise | None = None,
) -> Fraction:
    """Return the smallest ε (to three digits) at which the expected error of every result is within the given margin.

    A number is in the units of the results. A percentage such as "5%" is relative to the magnitude of each result: the
    declared range for averages and similar aggregates, a group of 1,000 rows for counts, sums and ranks. `noise` asks
    for one kind, as in `plan`.
    """
    relative, margin = _target(within)

    def fits(epsilon: Fraction) -> bool:
        try:
            planned = plan(
                query,
                epsilon=epsilon,
                delta=delta,
                salt="",
                groups=groups,
                rows=rows,
                weights=weights,
                joint=joint,
                noise=noise,
                sketch=True,
            )
        except (QueryError, ParameterError) as error:
            if error.code == "HB557" or (error.code == "HB553" and noise is not None):  # ε is too small
                return False
            raise
        return all(_error(each, relative=relative) <= margin for each in planned.outputs)

    low, high = 0, 900 * (_LAST - _FIRST)
    if not fits(_grid(high)):
        raise ParameterError(
            "HB566",
            "No reasonable ε reaches this margin of error for every result.",
            "Use a larger margin of error, or select fewer aggregates.",
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(_grid(middle)) else (middle, high)
    return _grid(high)


def _grid(place: int) -> Fraction:
    """Return the numbers 1.00, 1.01, …, 9.99 times powers of ten, in order.

    >>> [str(_grid(place)) for place in (5400, 5401, 6300)]
    ['1', '101/100', '10']
    """
    power, digits = divmod(place, 900)
    return Fraction(100 + digits, 100) * Fraction(10) ** (power + _FIRST)


def _error(error: Expected, *, relative: bool) -> float:
    if relative:
        return error.relative
    if error.unit == "rank":
        raise ParameterError(
            "HB567",
            "The error of MIN, MAX and quantiles is measured in ranks, so the margin of error must be a percentage.",
            'Pass a percentage, such as within="5%".',
        )
    return error.plus_minus


def _target(within: numbers.Number) -> tuple[bool, float]:
    if isinstance(within, str) and within.strip().endswith("%"):
        share = numbers.exact(within.strip()[:-1], "within") / 100
        return True, float(numbers.in_range(share, "within", Fraction(1, 10**9), Fraction(100)))
    amount = numbers.exact(within, "within")
    return False, float(numbers.in_range(amount, "within", Fraction(1, 10**9), Fraction(10**30)))
