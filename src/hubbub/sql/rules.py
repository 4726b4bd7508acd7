"""Rules for the functions of the allow-list: the kind, range and step of a result.

Tested in tests/sql/test_functions.py.
"""

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql import dates, decimals, ranges
from hubbub.sql.expressions import Expr, FunctionCall, Literal, facts
from hubbub.sql.ranges import ANY, Range

Kinds = tuple[Kind, ...]
Args = tuple[Expr, ...]
KindRule = Callable[[Kinds], Kind | None]
RangeRule = Callable[[Args], Range]
StepRule = Callable[[Args], Fraction | None]
ArgsRule = Callable[[Args], bool]

BOOLEAN, INTEGER, REAL, TEXT, DATE, TIMESTAMP = Kind
_NUMBERS = (INTEGER, REAL)
DATED = (DATE, TIMESTAMP)

#: Maximum number of decimal places, positive or negative, in round().
MAX_PLACES = 15

#: Beyond this the engine does not round numbers any more, so rounding is not monotone.
_MAX_ROUNDED = Fraction(10) ** 290

#: The range rule of each function, filled by `functions.py`, because a rule needs the ranges of its arguments.
RANGE_RULES: dict[str, RangeRule] = {}


# --- kinds -------------------------------------------------------------------------------------------------------


def takes(*expected: Kind | tuple[Kind, ...], gives: Kind) -> KindRule:
    """Accept arguments of exactly these kinds, or of one of several kinds each."""

    def rule(kinds: Kinds) -> Kind | None:
        matches = len(kinds) == len(expected) and all(
            kind in allowed if isinstance(allowed, tuple) else kind is allowed
            for kind, allowed in zip(kinds, expected, strict=True)
        )
        return gives if matches else None

    return rule


def number(gives: Kind = REAL) -> KindRule:
    """Accept one number."""
    return takes(_NUMBERS, gives=gives)


def numbers(gives: Kind = REAL) -> KindRule:
    """Accept two numbers."""
    return takes(_NUMBERS, _NUMBERS, gives=gives)


def _numeric(kinds: Kinds) -> Kind | None:
    if not all(kind.numeric for kind in kinds):
        return None
    return INTEGER if all(kind is INTEGER for kind in kinds) else REAL


def one_number(kinds: Kinds) -> Kind | None:
    """Accept a number and keep its kind."""
    return _numeric(kinds) if len(kinds) == 1 else None


def two_numbers(kinds: Kinds) -> Kind | None:
    """Accept two numbers; integers give an integer."""
    return _numeric(kinds) if len(kinds) == 2 else None


def common(kinds: Kinds) -> Kind | None:
    """Return the common kind of several kinds; that of integers and reals is real."""
    distinct = set(kinds)
    if len(distinct) == 1:
        return kinds[0]
    return REAL if distinct == {INTEGER, REAL} else None


def comparison(kinds: Kinds) -> Kind | None:
    """Accept two values of a common kind."""
    return BOOLEAN if len(kinds) == 2 and common(kinds) else None


def in_list(kinds: Kinds) -> Kind | None:
    """Accept a value and a list of values of a common kind."""
    return BOOLEAN if len(kinds) >= 2 and common(kinds) else None


def between(kinds: Kinds) -> Kind | None:
    """Accept a value and two bounds of a common kind."""
    return in_list(kinds) if len(kinds) == 3 else None


def logic(kinds: Kinds) -> Kind | None:
    """Accept two or more booleans."""
    return BOOLEAN if len(kinds) >= 2 and set(kinds) == {BOOLEAN} else None


def same(kinds: Kinds) -> Kind | None:
    """Accept values of a common kind, which is the kind of the result."""
    return common(kinds) if kinds else None


def first_of_two(kinds: Kinds) -> Kind | None:
    """Accept two values of a common kind and keep the kind of the first."""
    return kinds[0] if comparison(kinds) else None


def case(kinds: Kinds) -> Kind | None:
    """Accept condition, value, …, else."""
    if len(kinds) < 3 or len(kinds) % 2 == 0 or set(kinds[:-1:2]) != {BOOLEAN}:
        return None
    return common((*kinds[1::2], kinds[-1]))


def anything(gives: Kind) -> KindRule:
    """Accept one value of any kind."""
    return lambda kinds: gives if len(kinds) == 1 else None


def text(gives: Kind = TEXT) -> KindRule:
    """Accept one text."""
    return takes(TEXT, gives=gives)


def texts(kinds: Kinds) -> Kind | None:
    """Accept two or more texts."""
    return TEXT if len(kinds) >= 2 and set(kinds) == {TEXT} else None


def end_of_text(kinds: Kinds) -> Kind | None:
    """Give the kind of the start or end of a text, of a given length."""
    return part_of_text(kinds) if len(kinds) == 2 else None


def part_of_text(kinds: Kinds) -> Kind | None:
    """Accept a text and one or two integers."""
    return TEXT if kinds[:1] == (TEXT,) and kinds[1:] in ((INTEGER,), (INTEGER, INTEGER)) else None


def pattern(kinds: Kinds) -> Kind | None:
    """Accept a text, a pattern and, optionally, an escape character."""
    return BOOLEAN if kinds in ((TEXT, TEXT), (TEXT, TEXT, TEXT)) else None


def rounded(kinds: Kinds) -> Kind | None:
    """Accept a number and, optionally, a number of decimal places."""
    return REAL if kinds and kinds[0].numeric and kinds[1:] in ((), (INTEGER,)) else None


# --- ranges ------------------------------------------------------------------------------------------------------


def range_of(expr: Expr) -> Range:
    """Return the range of an expression, of which one bound may be known (facts keep only pairs of bounds)."""
    if expr.kind is BOOLEAN:
        return Range(Fraction(0), Fraction(1))  # as a number; a comparison no less than a column
    if isinstance(expr, FunctionCall):
        return RANGE_RULES[expr.function](expr.args)
    if isinstance(expr, Literal) and isinstance(expr.value, date):
        number = dates.number(expr.value)
        return Range(number, number)
    bounds = facts(expr).bounds
    if bounds is None:
        return ANY
    if expr.kind in DATED:
        return Range(bounds.low, bounds.high)
    if max(abs(bounds.low), abs(bounds.high)) > ranges.LARGEST:
        return ANY
    return Range(ranges.nearest(bounds.low), ranges.nearest(bounds.high))


def on(rule: Callable[..., Range]) -> RangeRule:
    """Apply a rule of interval arithmetic to the ranges of the arguments."""
    return lambda args: rule(*(range_of(arg) for arg in args))


def fixed(low: int, high: int) -> RangeRule:
    """Return a range that does not depend on the arguments."""
    return lambda _: Range(Fraction(low), Fraction(high))


def any_arguments(_: Args) -> bool:
    """Accept all arguments of the right kinds."""
    return True


def unknown(_: Args) -> Range:
    """Return an unknown range."""
    return ANY


def from_zero(_: Args) -> Range:
    """Return the range of nonnegative numbers."""
    return Range(Fraction(0), None)


def values_of_case(args: Args) -> Args:
    """Return the branch values of a CASE, except NULL."""
    return tuple(v for v in (*args[1::2], args[-1]) if not (isinstance(v, Literal) and v.value is None))


def of_case(args: Args) -> Range:
    """Bound a CASE by its branches."""
    return ranges.union(range_of(value) for value in values_of_case(args))


def of_any(args: Args) -> Range:
    """Bound a value that equals one of the arguments."""
    return ranges.union(range_of(arg) for arg in args)


def of_first(args: Args) -> Range:
    """Bound a value that equals the first argument or is NULL."""
    return range_of(args[0])


def _constants(args: Args) -> Args:
    return tuple(arg for arg in args if isinstance(arg, Literal) and arg.value is not None)


def greatest(args: Args) -> Range:
    """Bound the greatest argument: a constant always counts, and any other argument counts unless it is NULL."""
    within = of_any(args)
    lows = [low for arg in _constants(args) if (low := range_of(arg).low) is not None]
    return Range(max([*lows, *([] if within.low is None else [within.low])], default=None), within.high)


def least(args: Args) -> Range:
    """Bound the least argument in the same way."""
    within = of_any(args)
    highs = [high for arg in _constants(args) if (high := range_of(arg).high) is not None]
    return Range(within.low, min([*highs, *([] if within.high is None else [within.high])], default=None))


def _places(args: Args) -> int:
    value = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else 0
    return value if isinstance(value, int) else 0


def rounding(args: Args) -> Range:
    """Bound a rounding, which is monotone, by rounding the bounds as the engine does."""
    within = ranges.monotone(lambda end: Fraction(ranges.to_places(float(end), _places(args))))(range_of(args[0]))
    return within if all(end is None or abs(end) < _MAX_ROUNDED for end in (within.low, within.high)) else ANY


def decimal_grid(args: Args) -> tuple[Fraction, int]:
    """Return the step of a decimal and the number of parts that it is divided into."""
    step, count = (arg.value if isinstance(arg, Literal) else None for arg in args[1:])
    if not (isinstance(step, int | Fraction) and isinstance(count, int) and step > 0 and count > 0):
        raise TypeError("expected a constant step and number of parts")
    return Fraction(step), count


def countable(args: Args) -> bool:
    """Tell whether a number has bounds within which doubles can hold every part of a step."""
    bounds = facts(args[0]).bounds
    return bounds is not None and decimals.fits(*decimal_grid(args), decimals.size(bounds))


def decimal(args: Args) -> Range:
    """Bound a rounding to parts of a step, which is monotone."""
    step, count = decimal_grid(args)
    return ranges.monotone(lambda end: Fraction(decimals.snap(float(end), step, count)))(range_of(args[0]))


def integer_quotient(args: Args) -> Range:
    """Bound a quotient that is rounded toward zero."""
    return ranges.monotone(math.trunc)(ranges.divide(range_of(args[0]), range_of(args[1])))


def remainder(args: Args) -> Range:
    """Bound a remainder, which for integers is at most the divisor minus 1."""
    dividend, divisor = range_of(args[0]), ranges.absolute(range_of(args[1]))
    if divisor.high is not None and divisor.high >= 1 and all(is_integer(arg) for arg in args):
        divisor = Range(divisor.low, divisor.high - 1)
    return ranges.remainder(dividend, divisor)


def buckets(args: Args) -> Range:
    """Bound a bucket number."""
    count = args[3].value if isinstance(args[3], Literal) else None
    return Range(Fraction(0), Fraction(count + 1)) if isinstance(count, int) else ANY


def squares(args: Args) -> Range:
    """Bound a square; the range of other powers is unknown."""
    base, exponent = range_of(args[0]), args[1]
    if not (isinstance(exponent, Literal) and exponent.value == 2 and base.low is not None and base.high is not None):
        return ANY
    size = ranges.absolute(base)
    exact = ranges.multiply(size, size)
    return Range(Fraction(0), None if exact.high is None else ranges.hull(None, exact.high * (1 + ranges.SLACK)).high)


def years(args: Args) -> Range:
    """Bound the year of a date with known bounds; 1 to 9999 is too wide to be useful."""
    within, kind = range_of(args[0]), args[0].kind
    low = None if within.low is None else Fraction(dates.timestamp(within.low, kind).year)
    high = None if within.high is None else Fraction(dates.timestamp(within.high, kind).year)
    return Range(low, high)


def difference(args: Args) -> Range:
    """Bound a difference."""
    return ranges.add(range_of(args[-2]), ranges.negate(range_of(args[-1])))


def boundaries(args: Args) -> Range:
    """Bound the number of boundaries between two dates, which grows with the second date and falls with the first."""
    unit, ends = args[0], []
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        return ANY
    for arg, other in ((args[2], args[1]), (args[1], args[2])):
        low, high = range_of(arg).low, range_of(other).high
        if low is None or high is None:
            return ANY
        first, last = dates.timestamp(low, arg.kind), dates.timestamp(high, other.kind)
        ends.append(Fraction(dates.boundary(unit.value, first) - dates.boundary(unit.value, last)))
    return Range(ends[0], -ends[1])


def timestamps(args: Args) -> Range:
    """Bound a date that is converted to a timestamp."""
    day = ranges.point(Fraction(dates.DAY))
    if args[0].kind is DATE:
        return ranges.multiply(range_of(args[0]), day)
    return range_of(args[0]) if args[0].kind is TIMESTAMP else ANY


def shifted_day(args: Args) -> Range:
    """Bound a date plus a number of days, within the supported years; by a constant, plans have none."""
    if isinstance(args[1], Literal):
        return ANY
    return _supported(ranges.add(range_of(args[0]), range_of(args[1])), DATE)


def shifted_time(args: Args) -> Range:
    """Bound a timestamp that is shifted by at most a number of units, each no longer than its longest."""
    unit = args[2].value if isinstance(args[2], Literal) else None
    days = {"year": 366, "quarter": 92, "month": 31, "week": 7}.get(str(unit), 1)
    if unit not in dates.UNITS or range_of(args[1]) == ANY or isinstance(args[1], Literal):
        return ANY
    span = ranges.multiply(range_of(args[1]), ranges.point(Fraction(days * dates.DAY)))
    return _supported(ranges.add(timestamps(args[:1]), _toward_zero(span)), TIMESTAMP)


def _toward_zero(span: Range) -> Range:
    low = None if span.low is None else min(span.low, Fraction(0))
    high = None if span.high is None else max(span.high, Fraction(0))
    return Range(low, high)


def day_of_year(args: Args) -> Range:
    """Bound the days of years with known bounds."""
    within = range_of(args[0])
    if within.low is None or within.high is None:
        return ANY
    low, high = (min(max(int(end), dates.FIRST.year), dates.LAST.year) for end in (within.low, within.high))
    return Range(dates.number(dates.FIRST.replace(year=low)), dates.number(dates.LAST.replace(year=high)))


def _supported(within: Range, kind: Kind) -> Range:
    """Clamp a range of dates to the supported years; an open end stays open."""
    whole = dates.all_time(kind)
    if within.low is None or within.high is None:
        return ANY
    return Range(min(max(within.low, whole.low), whole.high), min(max(within.high, whole.low), whole.high))


def seconds(args: Args) -> Range:
    """Bound the seconds between two dates or timestamps."""
    last, first = (timestamps((arg,)) for arg in args)
    return ranges.divide(ranges.add(last, ranges.negate(first)), ranges.point(Fraction(10**6)))


def as_number(args: Args) -> Range:
    """Bound a number or boolean that is converted to a real."""
    return ANY if args[0].kind is TEXT else range_of(args[0])


# --- steps -------------------------------------------------------------------------------------------------------


def step_of(expr: Expr) -> Fraction | None:
    """Return the step of which an expression's value is a multiple (up to the rounding of doubles)."""
    return facts(expr).step


def no_step(_: Args) -> Fraction | None:
    """Return no step; that of an integer is 1 anyway."""
    return None


def common_step(args: Args) -> Fraction | None:
    """Return the common step of all arguments."""
    return ranges.common_step(step_of(arg) for arg in args)


def step_of_product(args: Args) -> Fraction | None:
    """Return the product of two steps."""
    a, b = step_of(args[0]), step_of(args[1])
    return None if a is None or b is None else a * b


def step_of_first(args: Args) -> Fraction | None:
    """Return the step of the first argument."""
    return step_of(args[0])


def step_of_places(args: Args) -> Fraction | None:
    """Return the step of a rounding to decimal places."""
    return Fraction(1, 10) ** _places(args)


def step_of_case(args: Args) -> Fraction | None:
    """Return the common step of all branches of a CASE."""
    return ranges.common_step(step_of(value) for value in values_of_case(args))


def is_integer(expr: Expr) -> bool:
    """Tell whether every value is an integer, even if its kind is real (floor returns a DOUBLE)."""
    if expr.kind is INTEGER:
        return True
    if isinstance(expr, Literal):
        return isinstance(expr.value, Fraction) and expr.value.denominator == 1
    if not isinstance(expr, FunctionCall) or expr.kind is not REAL:
        return False
    match expr.function:
        case "floor" | "ceil" | "trunc" | "sign":
            return True
        case "round":
            return _places(expr.args) <= 0
        case "add" | "sub" | "mul" | "neg" | "abs" | "greatest" | "least" | "coalesce" | "to_real":
            # sums, differences and products of integral doubles are integral, even if they are rounded (beyond 2⁵³)
            return all(is_integer(arg) for arg in expr.args)
        case "decimal":
            step, count = decimal_grid(expr.args)
            return step.denominator == count == 1
        case "case":
            return all(is_integer(value) for value in values_of_case(expr.args))
    return False


def to_integer(args: Args) -> Range:
    """Bound a number that is rounded half to even and converted to an integer type with a given number of bits."""
    bits = args[1].value if isinstance(args[1], Literal) else None
    size = Fraction(2) ** (int(bits) - 1) if isinstance(bits, int) else None
    if size is None:
        return ANY
    within = ANY if args[0].kind is TEXT else ranges.monotone(round)(range_of(args[0]))
    low = -size if within.low is None else max(within.low, -size)
    high = size if within.high is None else min(within.high, size)
    return Range(low, high) if low <= high else Range(-size, size)
