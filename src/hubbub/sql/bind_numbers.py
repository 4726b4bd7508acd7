"""Exact numbers while binding: arithmetic on constants is folded, and arithmetic on decimals is rounded to decimals.

Tested in tests/sql/test_decimals.py.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql import decimals, ranges
from hubbub.sql.expressions import Expr, FunctionCall, Literal, facts
from hubbub.sql.functions import build
from hubbub.sql.rules import values_of_case

_LARGEST = Fraction(10) ** 300
#: Products of many constants could have millions of digits.
_MAX_BITS = 4096


def _quotient(a: Fraction, b: Fraction) -> Fraction | None:
    return a / b if b else None


def _integer_quotient(a: Fraction, b: Fraction) -> Fraction | None:
    return Fraction(math.trunc(a / b)) if b else None


def _remainder(a: Fraction, b: Fraction) -> Fraction | None:
    return a - b * math.trunc(a / b) if b else None


def _rounded(a: Fraction, places: Fraction = Fraction(0)) -> Fraction:
    scale = Fraction(10) ** int(places)
    return ranges.round_half_away(a * scale) / scale


#: None: a division by zero, which is NULL in the engine.
_FOLDED: dict[str, Callable[..., Fraction | int | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "intdiv": _integer_quotient,
    "mod": _remainder,
    "neg": lambda a: -a,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": _rounded,
}


def number(expr: Expr) -> Fraction | None:
    """Return the value of a numeric constant."""
    if isinstance(expr, Literal) and isinstance(expr.value, int | Fraction) and expr.kind.numeric:
        return Fraction(expr.value)
    return None


def fold(call: FunctionCall) -> Literal | None:
    """Compute a function of constants exactly, as SQL computes decimals; None if it is not folded.

    >>> both = (Literal(Fraction("0.06"), Kind.REAL), Literal(Fraction("0.01"), Kind.REAL))
    >>> fold(FunctionCall("add", both, Kind.REAL))
    Literal(value=Fraction(7, 100), kind=<Kind.REAL: 'real'>)
    """
    values = [value for arg in call.args if (value := number(arg)) is not None]
    if call.function not in _FOLDED or len(values) < len(call.args):
        return None
    result = _FOLDED[call.function](*values)
    if result is None:
        return None
    exact = Fraction(result)
    if abs(exact) > _LARGEST or max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MAX_BITS:
        return None
    return Literal(int(exact) if call.kind is Kind.INTEGER else exact, call.kind)


# --- decimals ----------------------------------------------------------------------------------------------------


def _step(expr: Expr) -> Fraction | None:
    """Return the step of a decimal: an integer, a constant, or a number with bounds and a step."""
    if isinstance(expr, FunctionCall) and expr.function == "decimal":
        return number(expr.args[1])
    return None if facts(expr).bounds is None else facts(expr).step


def _size(expr: Expr) -> Fraction:
    bounds = facts(expr).bounds
    return Fraction(0) if bounds is None else decimals.size(bounds)


def _is_double(step: Fraction) -> bool:
    """Tell whether multiples of a step are doubles, so that one operation on them is rounded once, to the nearest."""
    return step.denominator & (step.denominator - 1) == 0


def _decimal(call: Expr, step: Fraction, size: Fraction) -> Expr:
    """Round to a decimal, if doubles can count the steps."""
    count = decimals.parts(step, size)
    if count is None:
        return call
    rounded = build("decimal", (call, Literal(step, Kind.REAL), Literal(count, Kind.INTEGER)))
    return call if rounded is None else rounded


def is_decimal(expr: Expr, dialect: str) -> bool:
    """Tell whether SQL computes an expression in DECIMAL: from integers and constants, without a column of reals."""
    if not isinstance(expr, FunctionCall):
        return expr.kind is Kind.INTEGER or (isinstance(expr, Literal) and isinstance(expr.value, Fraction))
    match expr.function:
        case "decimal" | "round":
            return is_decimal(expr.args[0], dialect)
        case "case":
            return all(is_decimal(value, dialect) for value in values_of_case(expr.args))
        case "add" | "sub" | "mul" | "mod" | "neg" | "abs" | "coalesce" | "nullif" | "greatest" | "least":
            return all(is_decimal(value, dialect) for value in expr.args)
        case "div":
            return dialect == "postgres" and all(is_decimal(value, dialect) for value in expr.args)
    return expr.kind is Kind.INTEGER


def exact(call: FunctionCall) -> Expr:
    """Round arithmetic on decimals to decimals, so that comparisons, keys and roundings of it are exact."""
    if call.kind is not Kind.REAL or call.function not in ("add", "sub", "mul", "div", "mod", "round"):
        return call
    steps = [step for arg in call.args if (step := _step(arg)) is not None]
    if len(steps) < len(call.args) or all(map(_is_double, steps)):
        return call
    x, *rest = call.args
    match call.function:
        case "add" | "sub":
            step = ranges.common_step(steps)
            return call if step is None else _decimal(call, step, _size(x) + _size(rest[0]))
        case "mul":
            return _decimal(call, steps[0] * steps[1], _size(x) * _size(rest[0]))
        case "div":
            divisor = number(rest[0])
            return call if not divisor else _decimal(call, steps[0] / abs(divisor), _size(x) / abs(divisor))
        case "mod":
            return _exact_remainder(call, steps)
    return _exact_rounding(call)


def _exact_remainder(call: FunctionCall, steps: list[Fraction]) -> Expr:
    """Divide numbers of parts of the common step, which are integers."""
    step = ranges.common_step(steps)
    count = None if step is None else decimals.parts(step, max(map(_size, call.args)))
    if step is None or count is None:
        return call
    part, counts = step / count, list[Expr]()
    for arg in call.args:
        constant, scaled = number(arg), build("mul", (arg, Literal(1 / part, Kind.REAL)))
        whole = None if scaled is None else build("decimal", (scaled, *_literals(Fraction(1), 1)))
        if whole is None:
            return call
        counts.append(whole if constant is None else Literal(constant / part, Kind.REAL))
    remainder = build("mod", tuple(counts))
    product = None if remainder is None else build("mul", (remainder, Literal(part, Kind.REAL)))
    rounded = None if product is None else build("decimal", (product, *_literals(part, 1)))
    return call if rounded is None else rounded


def _exact_rounding(call: FunctionCall) -> Expr:
    """Round a decimal to places: scale it to a decimal, in which halves are exact, round that, and scale it back."""
    places = number(call.args[1]) if len(call.args) > 1 else None
    if places is None or places <= 0:
        return call
    unit = Fraction(1, 10 ** int(places))
    scaled = build("mul", (call.args[0], Literal(1 / unit, Kind.REAL)))
    rounded = None if scaled is None else build("round", (exact(scaled), Literal(0, Kind.INTEGER)))
    product = None if rounded is None else build("mul", (rounded, Literal(unit, Kind.REAL)))
    result = None if product is None else build("decimal", (product, *_literals(unit, 1)))
    return call if result is None else result


def _literals(step: Fraction, count: int) -> tuple[Literal, Literal]:
    return Literal(step, Kind.REAL), Literal(count, Kind.INTEGER)


# --- comparisons -------------------------------------------------------------------------------------------------


def _part(expr: Expr) -> Fraction | None:
    """Return the part of which all values of a column or a rounded number are multiples."""
    step = _step(expr)
    if step is None or (isinstance(expr, FunctionCall) and expr.function != "decimal"):
        return None
    count = 1 if expr.kind is Kind.INTEGER else decimals.parts(step, _size(expr))
    if isinstance(expr, FunctionCall):
        count = int(number(expr.args[2]) or 1)
    return None if count is None or not decimals.fits(step, count, _size(expr)) else step / count


def settle(args: list[Expr]) -> list[Expr]:
    """Move constants that doubles cannot tell from a decimal, such as 0.07000000000000000001, between two decimals."""
    compared = [arg for arg in args if number(arg) is None]
    part = ranges.common_step(map(_part, compared)) if compared else None
    return args if part is None else [_settled(arg, part) for arg in args]


def _settled(arg: Expr, part: Fraction) -> Expr:
    value = number(arg)
    if value is None or not isinstance(arg, Literal) or value % part == 0 or abs(value) > ranges.LARGEST:
        return arg
    below = math.floor(value / part)
    if ranges.nearest(value) not in (ranges.nearest(below * part), ranges.nearest((below + 1) * part)):
        return arg
    return replace(arg, value=(below + Fraction(1, 2)) * part, kind=Kind.REAL)
