"""Evaluate expressions in Python with exactly the engine's results.

Numbers are floats, as in the engine. Functions whose results could differ from the engine's (logarithms, powers, case
of letters outside ASCII) are missing here or raise `UnknownValueError`.

Tested in tests/sql/test_functions.py.
"""

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from fractions import Fraction

from hubbub.core.schema import Kind, Value
from hubbub.sql import dates, decimals, ranges
from hubbub.sql.dialects.case import BLANKS
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.rules import decimal_grid

Scalar = bool | float | str | date | None


class UnknownValueError(Exception):
    """Only the engine can compute this value."""


def scalar(value: Value | None) -> Scalar:
    """Convert a value to the engine's representation."""
    if value is None or isinstance(value, bool | str | date):
        return value
    return float(value)


def exact(value: Scalar, kind: Kind) -> Value | None:
    """Convert a value of the engine to an exact one; raise `UnknownValueError` for an infinite number."""
    if isinstance(value, float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise UnknownValueError
        return int(value) if kind is Kind.INTEGER else Fraction(value)
    return value


def evaluate(expr: Expr, values: Mapping[str, Scalar]) -> Scalar:
    """Evaluate an expression for given values of its columns."""
    if isinstance(expr, Literal):
        return scalar(expr.value)
    if isinstance(expr, Col):
        return values[expr.name]
    return _call(expr, values)


def _call(call: FunctionCall, values: Mapping[str, Scalar]) -> Scalar:
    name = call.function
    if name == "case":
        for i in range(0, len(call.args) - 1, 2):
            if evaluate(call.args[i], values) is True:
                return evaluate(call.args[i + 1], values)
        return evaluate(call.args[-1], values)
    if name == "decimal":
        return _decimal(call, values)
    args = [evaluate(arg, values) for arg in call.args]
    if name in _NULL_TOLERANT:
        return _NULL_TOLERANT[name](args)
    function = PYTHON_FUNCTIONS.get(name)
    if function is None or (name == "to_text" and call.args[0].kind is Kind.REAL):
        raise UnknownValueError
    if any(arg is None for arg in args):
        return None
    try:
        result = function(*args)
    except (OverflowError, ValueError):
        raise UnknownValueError from None
    return None if isinstance(result, float) and math.isnan(result) else result


def _decimal(call: FunctionCall, values: Mapping[str, Scalar]) -> Scalar:
    """Round to parts of a step, which need not be doubles."""
    value, (step, count) = evaluate(call.args[0], values), decimal_grid(call.args)
    return None if value is None else decimals.snap(float(value), step, count)  # type: ignore[arg-type]


def _and(args: list[Scalar]) -> Scalar:
    return False if False in args else None if None in args else True


def _or(args: list[Scalar]) -> Scalar:
    return True if True in args else None if None in args else False


def _between(args: list[Scalar]) -> Scalar:
    x, low, high = args
    above = None if x is None or low is None else x >= low  # type: ignore[operator]
    below = None if x is None or high is None else x <= high  # type: ignore[operator]
    return _and([above, below])


def _extreme(choose: Callable[..., Scalar]) -> Callable[[list[Scalar]], Scalar]:
    def rule(args: list[Scalar]) -> Scalar:
        present = [arg for arg in args if arg is not None]
        return choose(present) if present else None

    return rule


#: Functions that can return a value when an argument is NULL.
_NULL_TOLERANT: dict[str, Callable[[list[Scalar]], Scalar]] = {
    "and": _and,
    "or": _or,
    "between": _between,
    "coalesce": lambda args: next((arg for arg in args if arg is not None), None),
    "greatest": _extreme(lambda present: max(present)),
    "least": _extreme(lambda present: min(present)),
    "nullif": lambda args: None if args[0] == args[1] else args[0],
    "is_null": lambda args: args[0] is None,
    "is_distinct": lambda args: args[0] != args[1],
}


def _div(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _mod(a: float, b: float) -> float | None:
    return None if b == 0 or math.isinf(a) else math.fmod(a, b)


def _ascii(text: str) -> str:
    if not text.isascii():
        raise UnknownValueError
    return text


def _width_bucket(x: float, low: float, high: float, count: float) -> float:
    if x < low:
        return 0.0
    return count + 1 if x >= high else min(count, math.floor(count * ((x - low) / (high - low))) + 1.0)


def _to_integer(x: Scalar, bits: float) -> float | None:
    if isinstance(x, str):
        raise UnknownValueError
    rounded = round(Fraction(float(x)))  # type: ignore[arg-type]
    return float(rounded) if -(2 ** (bits - 1)) <= rounded < 2 ** (bits - 1) else None


def _to_text(x: Scalar) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, float) and x.is_integer() and abs(x) < 2**53:
        return str(int(x))
    if isinstance(x, date) and not isinstance(x, datetime):
        return x.isoformat()
    raise UnknownValueError


def _day(value: Scalar) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    raise UnknownValueError


def _timestamp(value: Scalar) -> datetime:
    if isinstance(value, datetime):
        return value
    day = _day(value)
    return datetime(day.year, day.month, day.day)


def _shifted_day(day: date, days: float) -> date:
    ordinal = min(max(day.toordinal() + days, dates.FIRST.toordinal()), dates.LAST.toordinal())
    return date.fromordinal(int(ordinal))


def _calendar_day(year: float, month: float, day: float) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except (ValueError, OverflowError):
        return None


#: Functions of arguments other than NULL. The results of all other functions are unknown here.
PYTHON_FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _div,
    "mod": _mod,
    "intdiv": lambda a, b: None if b == 0 else float(math.trunc(a / b)),
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "floor": lambda a: float(math.floor(a)),
    "ceil": lambda a: float(math.ceil(a)),
    "trunc": lambda a: float(math.trunc(a)),
    "round": lambda a, places=0.0: ranges.to_places(a, int(places)),
    "width_bucket": _width_bucket,
    "sqrt": lambda a: None if a < 0 else math.sqrt(a),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "in": lambda a, *rest: a in rest,
    "not": lambda a: not a,
    "lower": lambda a: _ascii(a).lower(),
    "upper": lambda a: _ascii(a).upper(),
    "trim": lambda a: a.strip(BLANKS),
    "ltrim": lambda a: a.lstrip(BLANKS),
    "rtrim": lambda a: a.rstrip(BLANKS),
    "length": lambda a: float(len(a)),
    "concat": lambda *parts: "".join(parts),
    "substr": lambda a, start, length=1e6: a[int(start) - 1 : int(start) - 1 + int(length)],
    "left": lambda a, n: a[: int(n)],
    "right": lambda a, n: a[-int(n) :] if n else "",
    "strpos": lambda a, b: float(a.find(b) + 1),
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
    "contains": lambda a, b: b in a,
    "year": lambda d: float(d.year),
    "quarter": lambda d: float((d.month + 2) // 3),
    "month": lambda d: float(d.month),
    "week": lambda d: float(d.isocalendar().week),
    "day": lambda d: float(d.day),
    "dayofyear": lambda d: float(d.timetuple().tm_yday),
    "dow": lambda d: float(d.isoweekday() % 7),
    "isodow": lambda d: float(d.isoweekday()),
    "hour": lambda d: float(_timestamp(d).hour),
    "minute": lambda d: float(_timestamp(d).minute),
    "second": lambda d: float(_timestamp(d).second),
    "date_trunc": dates.floor_to,
    "days_between": lambda a, b: float((a - b).days),
    "day_shift": _shifted_day,
    "make_date": _calendar_day,
    "to_integer": _to_integer,
    "to_real": lambda x: float(x) if not isinstance(x, str) else _raise_unknown(),
    "to_text": _to_text,
    "to_date": _day,
    "to_timestamp": _timestamp,
    "to_boolean": lambda x: x != 0 if not isinstance(x, str) else _raise_unknown(),
}


def _raise_unknown() -> Scalar:
    raise UnknownValueError
