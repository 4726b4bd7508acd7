"""Arithmetic on PostgreSQL without errors: bounds prevent overflow, and scaling prevents underflow.

Tested in tests/sql/test_postgres_functions.py.
"""

from collections.abc import Mapping
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql import ranges, rules
from hubbub.sql.dialects.base import Spelling, function, guarded, whole
from hubbub.sql.dialects.postgres_syntax import SYNTAX, TINY, ZERO
from hubbub.sql.expressions import Col, Expr, FunctionCall, facts
from hubbub.sql.expressions import Literal as Constant

_LARGE = SYNTAX.number(Fraction(2) ** 500)
#: The largest supported magnitude. Sums and products of smaller numbers do not overflow.
_MAX = Fraction(2) ** 1000
#: Bounds every integer of a scan and every sum of integers inside a unit.
INTEGER = Fraction(2) ** 126
_FINITE = f"BETWEEN {SYNTAX.number(-ranges.LARGEST)} AND {SYNTAX.number(ranges.LARGEST)}"


def magnitude_bound(expr: Expr) -> Fraction | None:  # noqa: C901 - one rule a function
    """Bound the magnitude of a number, from its facts or from its kind in the scan; None: possibly infinite.

    Theorem (No overflow on PostgreSQL). Where every operand of +, −, ·, / and round has a reach, and the result's is at
    most 2¹⁰⁰⁰, float8 raises no overflow. By induction: facts hold of the doubles that are computed; integers of a scan
    are int8, so below 2⁶⁴, and sums of them in a unit are below 2¹²⁶; the other rules are those of real numbers, with a
    rounding of one part in 2⁵² at most, for which there is room up to 2¹⁰²⁴.
    Tested   tests/sql/test_postgres_functions.py::test_every_function_is_total_on_postgres
    """
    bounds = facts(expr).bounds
    if bounds is not None:
        return max(abs(bounds.low), abs(bounds.high))
    if isinstance(expr, Constant):
        return Fraction(0)
    if isinstance(expr, Col):
        return INTEGER if expr.kind is Kind.INTEGER else None
    parts = [magnitude_bound(arg) for arg in expr.args]
    known = [part for part in parts if part is not None]
    match expr.function:
        case "add" | "sub":
            return sum(known, Fraction(0)) if len(known) == len(parts) else None
        case "mul":
            return known[0] * known[1] if len(known) == len(parts) else None
        case "neg" | "abs" | "nullif" | "intdiv" | "mod":
            return parts[0]
        case "floor" | "ceil" | "trunc" | "round":
            return None if parts[0] is None else 2 * parts[0] + 10**16
        case "sqrt":
            return None if parts[0] is None else max(Fraction(1), parts[0])
        case "ln" | "log10":
            return Fraction(1100)
        case "coalesce" | "greatest" | "least":
            return max(known) if len(known) == len(parts) else None
        case "case":
            values = [magnitude_bound(value) for value in rules.values_of_case(expr.args)]
            finite = [value for value in values if value is not None]
            return max(finite, default=Fraction(0)) if len(finite) == len(values) else None
        case "to_real":
            return Fraction(1) if expr.args[0].kind is Kind.BOOLEAN else parts[0]
        case "length" | "strpos" | "year" | "date_diff" | "days_between" | "seconds_between":
            return Fraction(2) ** 62
    return None


def _bounded(call: FunctionCall, name: str) -> list[Fraction]:
    magnitudes = [magnitude_bound(arg) for arg in call.args]
    known = [each for each in magnitudes if each is not None and each <= _MAX]
    if len(known) < len(magnitudes):
        raise SYNTAX.refusal(
            f"{name} of unbounded numbers is not supported",
            "Declare bounds for the columns in hubbub.yaml, or clamp them: GREATEST(0, LEAST(x, 100)).",
        )
    return known


def _check_result(call: FunctionCall, name: str) -> None:
    magnitude = magnitude_bound(call)
    if magnitude is None or magnitude > _MAX:
        raise SYNTAX.refusal(f"{name} with such a large result is not supported")


def let(call: FunctionCall, texts: list[str], body: str) -> str:
    """Write a text that repeats its arguments, {x} and {y}; arguments that are not simple are computed once."""
    if all(isinstance(arg, Col | Constant) for arg in call.args):
        names = dict(zip(("{x}", "{y}"), texts, strict=False))
        for name, text in names.items():
            body = body.replace(name, text)
        return body
    named = ", ".join(f"{text} AS {name}" for text, name in zip(texts, "xy", strict=False))
    body = body.replace("{x}", '"$let".x').replace("{y}", '"$let".y')
    # OFFSET 0 prevents the planner from inlining the arguments again
    return f'(SELECT {body} FROM (SELECT {named} OFFSET 0) AS "$let")'


def _plain(sign: str, name: str) -> Spelling:
    def spelled(call: FunctionCall, a: list[str]) -> str:
        _bounded(call, name)
        _check_result(call, name)
        return f"({a[0]} {sign} {a[1]})"

    return spelled


def _not_small(expr: Expr) -> bool:
    """Return whether a number is 0 or at least 1 in magnitude."""
    if isinstance(expr, Constant):
        return isinstance(expr.value, int | Fraction) and not 0 < abs(Fraction(expr.value)) < 1
    return rules.is_integer(expr)


def _mul(call: FunctionCall, a: list[str]) -> str:
    _bounded(call, "a product")
    _check_result(call, "a product")
    if any(map(_not_small, call.args)):
        return f"({a[0]} * {a[1]})"

    def small(s: str, other: str) -> str:
        scaled = f"(({s} * {_LARGE}) * {other})"
        return f"CASE WHEN abs({scaled}) >= {TINY} THEN {scaled} * {TINY} ELSE {ZERO} END"

    return let(
        call,
        a,
        (
            f"CASE WHEN {{x}} IS NULL OR {{y}} IS NULL THEN NULL WHEN abs({{x}}) >= {TINY} THEN "
            f"CASE WHEN abs({{y}}) >= {TINY} THEN {{x}} * {{y}} ELSE {small('{y}', '{x}')} END "
            f"ELSE CASE WHEN abs({{y}}) >= {TINY} THEN {small('{x}', '{y}')} ELSE {ZERO} END END"
        ),
    )


def _div(call: FunctionCall, a: list[str]) -> str:
    sizes = _bounded(call, "a quotient")
    x, y = call.args
    if isinstance(y, Constant) and y.value == 0:
        return "CAST(NULL AS float8)"
    if rules.is_integer(x) and _not_small(y):
        return f"({a[0]} / nullif({a[1]}, {ZERO}))"
    if max(sizes) > Fraction(2) ** 400:
        raise SYNTAX.refusal("a quotient of such large numbers is not supported")
    edge, infinite = SYNTAX.number(Fraction(2) ** 524), "'Infinity'::float8"
    scaled, tiny = f"(({{x}} * {_LARGE}) / {{y}})", f"({{x}} / ({{y}} * {_LARGE}))"
    return let(
        call,
        a,
        (
            f"CASE WHEN {{x}} IS NULL OR {{y}} IS NULL OR {{y}} = 0 THEN NULL WHEN abs({{y}}) >= {TINY} THEN "
            f"CASE WHEN abs({{x}}) >= {TINY} THEN {{x}} / {{y}} WHEN abs({scaled}) >= {TINY} "
            f"THEN {scaled} * {TINY} ELSE {ZERO} END "
            f"ELSE CASE WHEN {tiny} >= {edge} THEN {infinite} WHEN {tiny} <= - {edge} THEN - {infinite} "
            f"ELSE {tiny} * {_LARGE} END END"
        ),
    )


def _intdiv(call: FunctionCall, a: list[str]) -> str:
    _bounded(call, "a quotient")
    return f"trunc({a[0]} / nullif({a[1]}, {ZERO}))"


def _mod(call: FunctionCall, a: list[str]) -> str:
    if not all(map(rules.is_integer, call.args)):
        raise SYNTAX.refusal("the remainder of numbers with a fraction is not supported")
    if max(_bounded(call, "a remainder")) > INTEGER:
        raise SYNTAX.refusal("the remainder of such large numbers is not supported")
    quick = "CAST(CAST({x} AS bigint) % CAST({y} AS bigint) AS float8)"
    exact = f"CAST({as_numeric('{x}')} % {as_numeric('{y}')} AS float8)"
    return let(
        call,
        a,
        (
            f"CASE WHEN {{x}} IS NULL OR {{y}} IS NULL OR {{y}} = 0 THEN NULL "
            f"WHEN abs({{x}}) < '9e18'::float8 AND abs({{y}}) < '9e18'::float8 THEN {quick} ELSE {exact} END"
        ),
    )


def as_numeric(text: str) -> str:
    """Write an integer-valued double below 2¹²⁶ as an exact numeric, in two parts: a cast keeps only 15 digits."""
    size = SYNTAX.number(2**63)
    high = f"trunc({text} / {size})"
    low = f"({text} - {high} * {size})"
    return f"(CAST(CAST({high} AS bigint) AS numeric) * {2**63} + CAST(CAST({low} AS bigint) AS numeric))"


def _round(call: FunctionCall, a: list[str]) -> str:
    places = whole(call.args[1]) if len(call.args) > 1 else 0
    value = FunctionCall("round", call.args[:1], call.kind, call.facts)
    bounds = facts(call.args[0]).bounds
    low, high = (-1, 1) if bounds is None else (0, 1) if bounds.low >= 0 else (-1, 0) if bounds.high <= 0 else (-1, 1)
    if places == 0:
        return let(value, a[:1], SYNTAX.away("{x}", low, high))
    (size,) = _bounded(value, "a rounding")
    scale = 10 ** abs(places)
    if size * scale > _MAX:
        raise SYNTAX.refusal("rounding of such large numbers is not supported")
    if places > 0:
        return let(
            value, a[:1], f"({SYNTAX.away(f'({{x}} * {SYNTAX.number(scale)})', low, high)} / {SYNTAX.number(scale)})"
        )
    divided = SYNTAX.fraction("{x}", Fraction(scale))
    return let(value, a[:1], f"({SYNTAX.away(divided, low, high)} * {SYNTAX.number(scale)})")


def _exp(call: FunctionCall, a: list[str]) -> str:
    inside = "CASE WHEN {x} > '709.782712893384'::float8 THEN 'Infinity'::float8 "
    inside += f"WHEN {{x}} < '-745.1332191019411'::float8 THEN {ZERO} ELSE exp({{x}}) END"
    return let(call, a, inside)


def _power(call: FunctionCall, a: list[str]) -> str:
    base, exponent = call.args
    value = exponent.value if isinstance(exponent, Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value <= 64:
        raise SYNTAX.refusal("a power whose exponent is not a constant from 0 to 64 is not supported")
    (size,) = _bounded(FunctionCall("power", (base,), call.kind), "a power")
    if value == 0:
        return f"CASE WHEN {a[0]} IS NOT NULL THEN {SYNTAX.number(1)} END"
    if max(size, Fraction(1)) ** int(-(-value // 1)) > _MAX:
        raise SYNTAX.refusal("a power with such a large result is not supported")
    least = SYNTAX.number(Fraction(2.0 ** (-1000 / float(value))))
    below = "" if Fraction(value).denominator == 1 else " WHEN {x} < 0 THEN NULL"
    large = f"abs({{x}}) >= {least}"
    body = f"CASE WHEN {{x}} IS NULL THEN NULL{below} WHEN {large} THEN power({{x}}, {a[1]}) ELSE {ZERO} END"
    return let(FunctionCall("power", (base,), call.kind), a[:1], body)


def _width_bucket(call: FunctionCall, a: list[str]) -> str:
    count = whole(call.args[3])
    low, high, n = a[1], a[2], SYNTAX.number(count)
    part = f"CASE WHEN abs({{x}} - {low}) >= {TINY} THEN ({{x}} - {low}) / ({high} - {low}) ELSE {ZERO} END"
    body = (
        f"CASE WHEN {{x}} IS NULL THEN NULL WHEN {{x}} < {low} THEN {ZERO} WHEN {{x}} >= {high} THEN "
        f"{SYNTAX.number(count + 1)} ELSE least({n}, floor({n} * ({part})) + 1) END"
    )
    return let(FunctionCall("width_bucket", call.args[:1], call.kind), a[:1], body)


ARITHMETIC: Mapping[str, Spelling] = {
    "add": _plain("+", "a sum"),
    "sub": _plain("-", "a difference"),
    "mul": _mul,
    "div": _div,
    "intdiv": _intdiv,
    "mod": _mod,
    "sign": function("sign"),
    "trunc": function("trunc"),
    "round": _round,
    "decimal": lambda call, a: SYNTAX.decimal(a[0], *rules.decimal_grid(call.args)),
    "sqrt": guarded("sqrt", ">= 0"),
    "ln": guarded("ln", "> 0"),
    "log10": guarded("log", "> 0"),
    "exp": _exp,
    "sin": guarded("sin", _FINITE),
    "cos": guarded("cos", _FINITE),
    "tan": guarded("tan", _FINITE),
    "asin": guarded("asin", "BETWEEN -1 AND 1"),
    "acos": guarded("acos", "BETWEEN -1 AND 1"),
    "atan": function("atan"),
    "power": _power,
    "width_bucket": _width_bucket,
}
