"""The other way round: which ε makes the error small enough?"""

from collections.abc import Mapping
from fractions import Fraction

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.plan import plan
from hubbub.sql.query import Query

#: The ε that are tried: three significant digits.
_FIRST, _LAST = -6, 3


def solve(
    query: Query,
    *,
    within: numbers.Number,
    delta: Fraction,
    groups: int | None = None,
    rows: int | None = None,
    weights: Mapping[str, Fraction] | None = None,
) -> Fraction:
    """Find the least ε (to three digits) at which every answer is expected within ± the given error.

    A number is meant in the units of the answers. A text such as "5%" is meant of each answer's own size: of the
    declared range for averages and the like, and of a group of 1,000 rows for counts, sums and ranks.
    """
    relative, most = _target(within)

    def fits(epsilon: Fraction) -> bool:
        try:
            made = plan(query, epsilon=epsilon, delta=delta, salt="", groups=groups, rows=rows, weights=weights)
        except QueryError as error:
            if error.code == "HB557":  # too small an ε for any noise
                return False
            raise
        return all(_error(each, relative=relative) <= most for each in made.expected)

    low, high = 0, 900 * (_LAST - _FIRST)
    if not fits(_grid(high)):
        raise ParameterError(
            "HB566",
            "no reasonable ε makes every answer as exact as that.",
            "Allow a larger error, or ask for less at once.",
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(_grid(middle)) else (middle, high)
    return _grid(high)


def _grid(place: int) -> Fraction:
    """Give the numbers 1.00, 1.01, …, 9.99 times powers of ten, in order.

    >>> [str(_grid(place)) for place in (5400, 5401, 6300)]
    ['1', '101/100', '10']
    """
    power, digits = divmod(place, 900)
    return Fraction(100 + digits, 100) * Fraction(10) ** (power + _FIRST)


def _error(each: Expected, *, relative: bool) -> float:
    if relative:
        return each.relative
    if each.unit == "rank":
        raise ParameterError(
            "HB567",
            f"the error of {each.name} is a share of the rows, not an amount.",
            'Give a percentage, such as "5%".',
        )
    return each.plus_minus


def _target(within: numbers.Number) -> tuple[bool, float]:
    if isinstance(within, str) and within.strip().endswith("%"):
        share = numbers.exact(within.strip()[:-1], "within") / 100
        return True, float(numbers.in_range(share, "within", Fraction(1, 10**9), Fraction(100)))
    amount = numbers.exact(within, "within")
    return False, float(numbers.in_range(amount, "within", Fraction(1, 10**9), Fraction(10**30)))
