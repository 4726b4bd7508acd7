"""The functions of the allow-list in Python, for constants: exactly what the engine computes, or nothing.

Numbers are floats here, as in the engine. Functions for which the two could differ in the last bit (logarithms, powers,
case of letters outside ASCII) are absent or give `UNSURE`: then nothing is known about the values of an expression.
"""

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction

from hubbub.core.schema import Kind, Value
from hubbub.sql import dates, ranges
from hubbub.sql.dialects.case import BLANKS
from hubbub.sql.expressions import Call, Col, Expr, Literal

Scalar = bool | float | str | date | None


class Unsure(Exception):  # noqa: N818 - no error: a value that only the engine knows
    """The engine's value is not known for certain."""


def scalar(value: Value | None) -> Scalar:
    """Take a public value as the engine holds it."""
    if value is None or isinstance(value, bool | str | date):
        return value
    return float(value)


def public(value: Scalar, kind: Kind) -> Value | None:
    """Give the engine's value as an exact one; `Unsure` for an infinite number."""
    if isinstance(value, float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise Unsure
        return int(value) if kind is Kind.INTEGER else Fraction(value)
    return value


def evaluate(expr: Expr, values: Mapping[str, Scalar]) -> Scalar:
    """Compute an expression for given values of its columns."""
    if isinstance(expr, Literal):
        return scalar(expr.value)
    if isinstance(expr, Col):
        return values[expr.name]
    return _call(expr, values)


def _call(call: Call, values: Mapping[str, Scalar]) -> Scalar:
    name = call.function
    if name == "case":
        for i in range(0, len(call.args) - 1, 2):
            if evaluate(call.args[i], values) is True:
                return evaluate(call.args[i + 1], values)
        return evaluate(call.args[-1], values)
    args = [evaluate(arg, values) for arg in call.args]
    if name in _LENIENT:
        return _LENIENT[name](args)
    twin = TWINS.get(name)
    if twin is None or (name == "to_text" and call.args[0].kind is Kind.REAL):
        raise Unsure
    if any(arg is None for arg in args):
        return None
    try:
        found = twin(*args)
    except (OverflowError, ValueError):
        raise Unsure from None
    return None if isinstance(found, float) and math.isnan(found) else found


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


#: Functions that may give a value although an argument is NULL.
_LENIENT: dict[str, Callable[[list[Scalar]], Scalar]] = {
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
        raise Unsure
    return text


def _width_bucket(x: float, low: float, high: float, count: float) -> float:
    if x < low:
        return 0.0
    return count + 1 if x >= high else min(count, math.floor(count * ((x - low) / (high - low))) + 1.0)


def _to_integer(x: Scalar, bits: float) -> float | None:
    if isinstance(x, str):
        raise Unsure
    found = round(Fraction(float(x)))  # type: ignore[arg-type]
    return float(found) if -(2 ** (bits - 1)) <= found < 2 ** (bits - 1) else None


def _to_text(x: Scalar) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, float) and x.is_integer() and abs(x) < 2**53:
        return str(int(x))
    if isinstance(x, date) and not isinstance(x, datetime):
        return x.isoformat()
    raise Unsure


def _day(value: Scalar) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    raise Unsure


def _moment(value: Scalar) -> datetime:
    if isinstance(value, datetime):
        return value
    at = _day(value)
    return datetime(at.year, at.month, at.day)


#: Functions of arguments that are not NULL. What is not here is not known exactly.
TWINS: dict[str, Callable[..., Scalar]] = {
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
    "hour": lambda d: float(_moment(d).hour),
    "minute": lambda d: float(_moment(d).minute),
    "second": lambda d: float(_moment(d).second),
    "date_trunc": dates.floor_to,
    "days_between": lambda a, b: float((a - b).days),
    "day_shift": lambda d, n: d + timedelta(days=int(n)),
    "to_integer": _to_integer,
    "to_real": lambda x: float(x) if not isinstance(x, str) else _unsure(),
    "to_text": _to_text,
    "to_date": _day,
    "to_timestamp": _moment,
    "to_boolean": lambda x: x != 0 if not isinstance(x, str) else _unsure(),
}


def _unsure() -> Scalar:
    raise Unsure
