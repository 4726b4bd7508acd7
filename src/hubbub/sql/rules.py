"""Rules that the allow-list is made of: the kind of a result, where it lies, of what step it is a multiple."""

import math
from collections.abc import Callable
from datetime import date
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql import dates, ranges
from hubbub.sql.expressions import Call, Expr, Literal, facts
from hubbub.sql.ranges import ANY, Range

Kinds = tuple[Kind, ...]
Args = tuple[Expr, ...]
KindRule = Callable[[Kinds], Kind | None]
RangeRule = Callable[[Args], Range]
StepRule = Callable[[Args], Fraction | None]

BOOLEAN, INTEGER, REAL, TEXT, DATE, TIMESTAMP = Kind
_NUMBERS = (INTEGER, REAL)
DATED = (DATE, TIMESTAMP)

#: The most decimal places, either way, that numbers are rounded to.
MAX_PLACES = 15

#: Beyond this the engine leaves numbers as they are instead of rounding them, and rounding is not monotone any more.
_ROUNDED = Fraction(10) ** 290

#: The range rule of each function; the allow-list enters its own here, for a rule looks into its arguments.
WITHIN: dict[str, RangeRule] = {}


# --- kinds -------------------------------------------------------------------------------------------------------


def takes(*wanted: Kind | tuple[Kind, ...], gives: Kind) -> KindRule:
    """Accept arguments of exactly these kinds, each one kind or one of several."""

    def rule(kinds: Kinds) -> Kind | None:
        fits = len(kinds) == len(wanted) and all(
            kind is want or (isinstance(want, tuple) and kind in want) for kind, want in zip(kinds, wanted, strict=True)
        )
        return gives if fits else None

    return rule


def number(gives: Kind = REAL) -> KindRule:
    """Accept one number."""
    return takes(_NUMBERS, gives=gives)


def numbers(gives: Kind = REAL) -> KindRule:
    """Accept two numbers."""
    return takes(_NUMBERS, _NUMBERS, gives=gives)


def _meet(kinds: Kinds) -> Kind | None:
    if not all(kind.numeric for kind in kinds):
        return None
    return INTEGER if all(kind is INTEGER for kind in kinds) else REAL


def one_number(kinds: Kinds) -> Kind | None:
    """Accept a number and keep its kind."""
    return _meet(kinds) if len(kinds) == 1 else None


def two_numbers(kinds: Kinds) -> Kind | None:
    """Accept two numbers; integers give an integer."""
    return _meet(kinds) if len(kinds) == 2 else None


def common(kinds: Kinds) -> Kind | None:
    """Give the kind in which values of these kinds meet: integers and reals meet in reals."""
    found = set(kinds)
    if len(found) == 1:
        return kinds[0]
    return REAL if found == {INTEGER, REAL} else None


def compared(kinds: Kinds) -> Kind | None:
    """Accept two values that meet."""
    return BOOLEAN if len(kinds) == 2 and common(kinds) else None


def listed(kinds: Kinds) -> Kind | None:
    """Accept a value and others that meet with it."""
    return BOOLEAN if len(kinds) >= 2 and common(kinds) else None


def three(kinds: Kinds) -> Kind | None:
    """Accept a value and two ends."""
    return listed(kinds) if len(kinds) == 3 else None


def logic(kinds: Kinds) -> Kind | None:
    """Accept truth values."""
    return BOOLEAN if len(kinds) >= 2 and set(kinds) == {BOOLEAN} else None


def same(kinds: Kinds) -> Kind | None:
    """Accept values that meet, and give what they meet in."""
    return common(kinds) if kinds else None


def first_of_two(kinds: Kinds) -> Kind | None:
    """Accept two values that meet and keep the first's kind."""
    return kinds[0] if compared(kinds) else None


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
    """Accept two texts or more."""
    return TEXT if len(kinds) >= 2 and set(kinds) == {TEXT} else None


def part_of_text(kinds: Kinds) -> Kind | None:
    """Accept a text and one or two whole numbers."""
    return TEXT if kinds[:1] == (TEXT,) and kinds[1:] in ((INTEGER,), (INTEGER, INTEGER)) else None


def rounded(kinds: Kinds) -> Kind | None:
    """Accept a number, and to how many places."""
    return REAL if kinds and kinds[0].numeric and kinds[1:] in ((), (INTEGER,)) else None


# --- ranges ------------------------------------------------------------------------------------------------------


def range_of(expr: Expr) -> Range:
    """Give where an expression's value lies, with ends known one by one (facts keep only pairs)."""
    if isinstance(expr, Call):
        return WITHIN[expr.function](expr.args)
    if isinstance(expr, Literal) and isinstance(expr.value, date):
        at = dates.number(expr.value)
        return Range(at, at)
    bounds = facts(expr).bounds
    if bounds is None:
        return Range(Fraction(0), Fraction(1)) if expr.kind is BOOLEAN else ANY
    if expr.kind in DATED:
        return Range(bounds.low, bounds.high)
    if max(abs(bounds.low), abs(bounds.high)) > ranges.LARGEST:
        return ANY
    return Range(ranges.nearest(bounds.low), ranges.nearest(bounds.high))


def on(rule: Callable[..., Range]) -> RangeRule:
    """Apply a rule of interval arithmetic to the ranges of the arguments."""
    return lambda args: rule(*(range_of(arg) for arg in args))


def fixed(low: int, high: int) -> RangeRule:
    """Give a range that never depends on the arguments."""
    return lambda _: Range(Fraction(low), Fraction(high))


def unknown(_: Args) -> Range:
    """Know nothing."""
    return ANY


def from_zero(_: Args) -> Range:
    """Know only that it is not negative."""
    return Range(Fraction(0), None)


def values_of_case(args: Args) -> Args:
    """Give the values among the arguments of a CASE, NULL aside."""
    return tuple(v for v in (*args[1::2], args[-1]) if not (isinstance(v, Literal) and v.value is None))


def of_case(args: Args) -> Range:
    """Bound a CASE by its branches."""
    return ranges.union(range_of(value) for value in values_of_case(args))


def of_any(args: Args) -> Range:
    """Bound a value that is one of the arguments."""
    return ranges.union(range_of(arg) for arg in args)


def of_first(args: Args) -> Range:
    """Bound a value that is the first argument, or NULL."""
    return range_of(args[0])


def _constants(args: Args) -> Args:
    return tuple(arg for arg in args if isinstance(arg, Literal) and arg.value is not None)


def greatest(args: Args) -> Range:
    """Bound the greatest: a constant is never NULL, so it counts; any other argument may be NULL, and then does not."""
    whole = of_any(args)
    lows = [low for arg in _constants(args) if (low := range_of(arg).low) is not None]
    return Range(max([*lows, *([] if whole.low is None else [whole.low])], default=None), whole.high)


def least(args: Args) -> Range:
    """Bound the least, by the same reasoning."""
    whole = of_any(args)
    highs = [high for arg in _constants(args) if (high := range_of(arg).high) is not None]
    return Range(whole.low, min([*highs, *([] if whole.high is None else [whole.high])], default=None))


def _places(args: Args) -> int:
    value = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else 0
    return value if isinstance(value, int) else 0


def rounding(args: Args) -> Range:
    """Bound a rounding, which is monotone, by what the engine makes of the ends."""
    within = ranges.monotone(lambda end: Fraction(ranges.to_places(float(end), _places(args))))(range_of(args[0]))
    return within if all(end is None or abs(end) < _ROUNDED for end in (within.low, within.high)) else ANY


def whole_quotient(args: Args) -> Range:
    """Bound a division that is rounded toward zero."""
    return ranges.monotone(math.trunc)(ranges.divide(range_of(args[0]), range_of(args[1])))


def remainder(args: Args) -> Range:
    """Bound a remainder; of whole numbers it is at least 1 below the divisor."""
    dividend, divisor = range_of(args[0]), ranges.absolute(range_of(args[1]))
    if divisor.high is not None and divisor.high >= 1 and all(whole(arg) for arg in args):
        divisor = Range(divisor.low, divisor.high - 1)
    return ranges.remainder(dividend, divisor)


def buckets(args: Args) -> Range:
    """Bound the number of a bucket."""
    count = args[3].value if isinstance(args[3], Literal) else None
    return Range(Fraction(0), Fraction(count + 1)) if isinstance(count, int) else ANY


def squares(args: Args) -> Range:
    """Bound a square; nothing is said of other powers."""
    base, exponent = range_of(args[0]), args[1]
    if not (isinstance(exponent, Literal) and exponent.value == 2 and base.low is not None and base.high is not None):
        return ANY
    size = ranges.absolute(base)
    exact = ranges.multiply(size, size)
    return Range(Fraction(0), None if exact.high is None else ranges.hull(None, exact.high * (1 + ranges.SLACK)).high)


def years(args: Args) -> Range:
    """Bound the year of a date within bounds; without them it is one of ten thousand, which is as good as unknown."""
    within, kind = range_of(args[0]), args[0].kind
    low = None if within.low is None else Fraction(dates.moment(within.low, kind).year)
    high = None if within.high is None else Fraction(dates.moment(within.high, kind).year)
    return Range(low, high)


def difference(args: Args) -> Range:
    """Bound a difference."""
    return ranges.add(range_of(args[-2]), ranges.negate(range_of(args[-1])))


def boundaries(args: Args) -> Range:
    """Bound how many boundaries of a unit of time lie between two dates: more the later the second, fewer the first."""
    unit, ends = args[0], []
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        return ANY
    for arg, other in ((args[2], args[1]), (args[1], args[2])):
        low, high = range_of(arg).low, range_of(other).high
        if low is None or high is None:
            return ANY
        first, last = dates.moment(low, arg.kind), dates.moment(high, other.kind)
        ends.append(Fraction(dates.boundary(unit.value, first) - dates.boundary(unit.value, last)))
    return Range(ends[0], -ends[1])


def moments(args: Args) -> Range:
    """Bound a date that is taken as a moment."""
    day = ranges.point(Fraction(dates.DAY))
    if args[0].kind is DATE:
        return ranges.multiply(range_of(args[0]), day)
    return range_of(args[0]) if args[0].kind is TIMESTAMP else ANY


def as_number(args: Args) -> Range:
    """Bound a number or a truth value taken as a real."""
    return ANY if args[0].kind is TEXT else range_of(args[0])


# --- steps -------------------------------------------------------------------------------------------------------


def step_of(expr: Expr) -> Fraction | None:
    """Give the step of which an expression's value is a multiple (up to the rounding of doubles)."""
    return facts(expr).step


def no_step(_: Args) -> Fraction | None:
    """Know no step; an integer's is 1 in any case."""
    return None


def common_step(args: Args) -> Fraction | None:
    """Give the step that all arguments share."""
    return ranges.common_step(step_of(arg) for arg in args)


def step_of_product(args: Args) -> Fraction | None:
    """Multiply the steps."""
    a, b = step_of(args[0]), step_of(args[1])
    return None if a is None or b is None else a * b


def step_of_first(args: Args) -> Fraction | None:
    """Keep the first argument's step."""
    return step_of(args[0])


def step_of_places(args: Args) -> Fraction | None:
    """Give the decimal step that is rounded to."""
    return Fraction(1, 10) ** _places(args)


def step_of_case(args: Args) -> Fraction | None:
    """Give the step that all branches share."""
    return ranges.common_step(step_of(value) for value in values_of_case(args))


def whole(expr: Expr) -> bool:
    """Say whether every value is a whole number, also where the kind is real (floor gives a DOUBLE)."""
    if expr.kind is INTEGER:
        return True
    if isinstance(expr, Literal):
        return isinstance(expr.value, Fraction) and expr.value.denominator == 1
    if not isinstance(expr, Call) or expr.kind is not REAL:
        return False
    match expr.function:
        case "floor" | "ceil" | "trunc" | "sign":
            return True
        case "round":
            return _places(expr.args) <= 0
        case "add" | "sub" | "mul" | "neg" | "abs" | "greatest" | "least" | "coalesce" | "to_real":
            # sums, differences and products of whole doubles are whole, also where they are rounded (past 2⁵³)
            return all(whole(arg) for arg in expr.args)
        case "case":
            return all(whole(value) for value in values_of_case(expr.args))
    return False


def whole_number(args: Args) -> Range:
    """Bound a number that is rounded half to even into an integer type of so many bits."""
    bits = args[1].value if isinstance(args[1], Literal) else None
    size = Fraction(2) ** (int(bits) - 1) if isinstance(bits, int) else None
    if size is None:
        return ANY
    within = ANY if args[0].kind is TEXT else ranges.monotone(round)(range_of(args[0]))
    low = -size if within.low is None else max(within.low, -size)
    high = size if within.high is None else min(within.high, size)
    return Range(low, high) if low <= high else Range(-size, size)
