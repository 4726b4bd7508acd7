"""A restriction of the values of an expression, and what it makes of the facts about the expression.

Tested in tests/sql/test_conditions.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import ceil, floor

from hubbub.core.schema import Bounds, Kind, Value
from hubbub.sql import dates, domains
from hubbub.sql.expressions import Col, Expr, Facts, Values, facts
from hubbub.sql.nulls import nullable
from hubbub.sql.rules import DATED, range_of


@dataclass(frozen=True, slots=True)
class Restriction:
    """What is known of a value.

    low, high  bounds of a number, or of a date as a number
    values     a list that contains every value other than NULL
    excluded   values that it does not have, in the form of `same_value`
    null       whether it can be NULL (then NULL is a group of its own); None: nothing is known
    """

    low: Fraction | None = None
    high: Fraction | None = None
    values: Values | None = None
    excluded: frozenset[object] = frozenset()
    null: bool | None = None

    def met(self, other: "Restriction") -> "Restriction":
        """Return what holds if both do."""
        known = [each.null for each in (self, other) if each.null is not None]
        return Restriction(
            _highest(self.low, other.low),
            _lowest(self.high, other.high),
            _common(self.values, other.values),
            self.excluded | other.excluded,
            all(known) if known else None,
        )

    def ends(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the bounds, also where only a list is known."""
        values = self.values or ()
        if isinstance(values, range):
            values = (values[0], values[-1])
        numbers = [number for number in map(moment, values) if number is not None]
        return _highest(self.low, min(numbers, default=None)), _lowest(self.high, max(numbers, default=None))

    def applied(self, expr: Expr) -> Facts:
        """Return the facts about an expression under this restriction; an empty list means that no row is left."""
        own, within = facts(expr), range_of(expr)
        low, high = _highest(within.low, self.low), _lowest(within.high, self.high)
        whole = (False, True) if expr.kind is Kind.BOOLEAN and own.values is None else own.values
        values = _common(whole, self.values)
        ordered = expr.kind.numeric or expr.kind in DATED
        bounds = own.bounds
        if ordered and low is not None and high is not None:
            if low > high:
                values = ()
            else:
                bounds = Bounds(low, high)
        if values is None and self.excluded:
            values = domains.values(Col("", expr.kind, Facts(bounds, None, own.step)), domains.MAX_COMBINATIONS)
        if isinstance(values, range) and (not self.excluded or len(values) > domains.MAX_VALUES):
            # of a very long range excluded values stay, as groups without rows
            clipped = values = _clipped(values, low, high)
            bounds = Bounds(Fraction(clipped[0]), Fraction(clipped[-1])) if clipped else bounds
        elif values is not None:
            values = tuple(v for v in values if same_value(v) not in self.excluded and _in_range(v, low, high))
            ends = [end for end in map(moment, values) if end is not None]
            bounds = Bounds(min(ends), max(ends)) if ordered and ends else bounds
        null = nullable(expr) if self.null is None else self.null
        return Facts(bounds, values, own.step, null)


def either(parts: Sequence[Restriction]) -> Restriction:
    """Return what holds if one of several restrictions does."""
    filled = [part for part in parts if part.values != ()]
    lists = [part.values for part in filled]
    values = None if None in lists else tuple(dict.fromkeys(v for listed in lists for v in listed or ()))
    ranges = [part.ends() for part in filled]
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    nulls = {part.null for part in parts}
    return Restriction(
        None if not lows or None in lows else min(low for low in lows if low is not None),
        None if not highs or None in highs else max(high for high in highs if high is not None),
        values,
        frozenset.intersection(*(part.excluded for part in filled)) if filled else frozenset(),
        True if True in nulls else None if None in nulls else False,
    )


def same_value(value: object) -> object:
    """Return a form in which values are equal that the engine considers equal: numbers are doubles there."""
    return float(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else value


def moment(value: Value) -> Fraction | None:
    """Return a number as the engine has it, or a date as a number; None for other values."""
    if isinstance(value, date):
        return dates.number(value)
    return Fraction(float(value)) if isinstance(value, int | Fraction) and not isinstance(value, bool) else None


def _in_range(value: Value, low: Fraction | None, high: Fraction | None) -> bool:
    number = moment(value)
    return number is None or ((low is None or low <= number) and (high is None or number <= high))


def _clipped(values: range, low: Fraction | None, high: Fraction | None) -> range | tuple[()]:
    """Return the part of a range of integers between two ends."""
    first = values[0] if low is None else max(values[0], ceil(low))
    last = values[-1] if high is None else min(values[-1], floor(high))
    return range(first, last + 1) if first <= last else ()


def _is_in(value: Value, values: range) -> bool:
    """Tell whether a range has a number, as the engine has it, without going through the range."""
    number = moment(value) if isinstance(value, int | Fraction) else None
    return number is not None and number.denominator == 1 and number.numerator in values


def _common(a: Values | None, b: Values | None) -> Values | None:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, range) and isinstance(b, range):
        return _clipped(a, Fraction(b[0]), Fraction(b[-1]))
    if isinstance(b, range):
        return tuple(value for value in a if _is_in(value, b))
    if isinstance(a, range):
        return tuple(sorted(int(value) for value in b if _is_in(value, a)))  # type: ignore[arg-type]
    others = {same_value(value) for value in b}
    return tuple(value for value in a if same_value(value) in others)


def _highest(*ends: Fraction | None) -> Fraction | None:
    return max((end for end in ends if end is not None), default=None)


def _lowest(*ends: Fraction | None) -> Fraction | None:
    return min((end for end in ends if end is not None), default=None)
