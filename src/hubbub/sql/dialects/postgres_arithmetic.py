"""Arithmetic on PostgreSQL, which raises nothing there: bounds keep it from overflow, scaling from underflow."""

from collections.abc import Mapping
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql import rules
from hubbub.sql.dialects.base import Spelling, function, guarded, whole
from hubbub.sql.dialects.postgres_words import TINY, WORDS, ZERO
from hubbub.sql.expressions import Call, Col, Expr, facts
from hubbub.sql.expressions import Literal as Constant

_LARGE = WORDS.number(Fraction(2) ** 500)
#: Past this nothing may get: what is above is refused, so no sum or product below it overflows.
_MOST = Fraction(2) ** 1000
#: An integer of a scan, or a sum inside a unit over bounded ones, is smaller.
INTEGER = Fraction(2) ** 126


def reach(expr: Expr) -> Fraction | None:  # noqa: C901 - one rule a function
    """Bound the magnitude of a number, from its facts, or from what the scan makes of its kind; None: maybe infinite.

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
    parts = [reach(arg) for arg in expr.args]
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
            values = [reach(value) for value in rules.values_of_case(expr.args)]
            found = [value for value in values if value is not None]
            return max(found, default=Fraction(0)) if len(found) == len(values) else None
        case "to_real":
            return Fraction(1) if expr.args[0].kind is Kind.BOOLEAN else parts[0]
        case "length" | "strpos" | "year" | "date_diff" | "days_between":
            return Fraction(2) ** 62
    return None


def _bounded(call: Call, name: str) -> list[Fraction]:
    found = [reach(arg) for arg in call.args]
    known = [each for each in found if each is not None and each <= _MOST]
    if len(known) < len(found):
        raise WORDS.refusal(
            f"{name} of numbers without bounds is not answered",
            "Declare the bounds of the columns in hubbub.yaml, or clamp them: GREATEST(0, LEAST(x, 100)).",
        )
    return known


def _kept(call: Call, name: str) -> None:
    found = reach(call)
    if found is None or found > _MOST:
        raise WORDS.refusal(f"{name} with so large a result is not answered")


def let(call: Call, texts: list[str], body: str) -> str:
    """Write a text in which arguments stand several times, as x and y; a long one is computed once and named."""
    if all(isinstance(arg, Col | Constant) for arg in call.args):
        names = dict(zip(("{x}", "{y}"), texts, strict=False))
        for name, text in names.items():
            body = body.replace(name, text)
        return body
    named = ", ".join(f"{text} AS {name}" for text, name in zip(texts, "xy", strict=False))
    body = body.replace("{x}", '"$let".x').replace("{y}", '"$let".y')
    # OFFSET 0 keeps the planner from putting the texts back where their names stand
    return f'(SELECT {body} FROM (SELECT {named} OFFSET 0) AS "$let")'


def _plain(sign: str, name: str) -> Spelling:
    def spelled(call: Call, a: list[str]) -> str:
        _bounded(call, name)
        _kept(call, name)
        return f"({a[0]} {sign} {a[1]})"

    return spelled


def _not_small(expr: Expr) -> bool:
    """Say whether a number is 0 or at least 1 away from it."""
    if isinstance(expr, Constant):
        return isinstance(expr.value, int | Fraction) and not 0 < abs(Fraction(expr.value)) < 1
    return rules.whole(expr)


def _mul(call: Call, a: list[str]) -> str:
    _bounded(call, "a product")
    _kept(call, "a product")
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


def _div(call: Call, a: list[str]) -> str:
    sizes = _bounded(call, "a quotient")
    x, y = call.args
    if isinstance(y, Constant) and y.value == 0:
        return "CAST(NULL AS float8)"
    if rules.whole(x) and _not_small(y):
        return f"({a[0]} / nullif({a[1]}, {ZERO}))"
    if max(sizes) > Fraction(2) ** 400:
        raise WORDS.refusal("a quotient of so large numbers is not answered")
    edge, infinite = WORDS.number(Fraction(2) ** 524), "'Infinity'::float8"
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


def _intdiv(call: Call, a: list[str]) -> str:
    _bounded(call, "a quotient")
    return f"trunc({a[0]} / nullif({a[1]}, {ZERO}))"


def _mod(call: Call, a: list[str]) -> str:
    if call.kind is not Kind.INTEGER:
        raise WORDS.refusal("the remainder of broken numbers is not answered")
    if max(_bounded(call, "a remainder")) > INTEGER:
        raise WORDS.refusal("the remainder of so large numbers is not answered")
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
    """Write a whole double below 2¹²⁶ as the numeric that it is, in two parts: a cast would keep 15 digits."""
    size = WORDS.number(2**63)
    high = f"trunc({text} / {size})"
    low = f"({text} - {high} * {size})"
    return f"(CAST(CAST({high} AS bigint) AS numeric) * {2**63} + CAST(CAST({low} AS bigint) AS numeric))"


def _round(call: Call, a: list[str]) -> str:
    places = whole(call.args[1]) if len(call.args) > 1 else 0
    value = Call("round", call.args[:1], call.kind, call.facts)
    bounds = facts(call.args[0]).bounds
    low, high = (-1, 1) if bounds is None else (0, 1) if bounds.low >= 0 else (-1, 0) if bounds.high <= 0 else (-1, 1)
    if places == 0:
        return let(value, a[:1], WORDS.away("{x}", low, high))
    (size,) = _bounded(value, "a rounding")
    scale = 10 ** abs(places)
    if size * scale > _MOST:
        raise WORDS.refusal("a rounding of so large numbers is not answered")
    if places > 0:
        return let(
            value, a[:1], f"({WORDS.away(f'({{x}} * {WORDS.number(scale)})', low, high)} / {WORDS.number(scale)})"
        )
    divided = WORDS.fraction("{x}", Fraction(scale))
    return let(value, a[:1], f"({WORDS.away(divided, low, high)} * {WORDS.number(scale)})")


def _exp(call: Call, a: list[str]) -> str:
    inside = "CASE WHEN {x} > '709.782712893384'::float8 THEN 'Infinity'::float8 "
    inside += f"WHEN {{x}} < '-745.1332191019411'::float8 THEN {ZERO} ELSE exp({{x}}) END"
    return let(call, a, inside)


def _power(call: Call, a: list[str]) -> str:
    base, exponent = call.args
    value = exponent.value if isinstance(exponent, Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value <= 64:
        raise WORDS.refusal("a power whose exponent is not a constant from 0 to 64 is not answered")
    (size,) = _bounded(Call("power", (base,), call.kind), "a power")
    if value == 0:
        return f"CASE WHEN {a[0]} IS NOT NULL THEN {WORDS.number(1)} END"
    if max(size, Fraction(1)) ** int(-(-value // 1)) > _MOST:
        raise WORDS.refusal("a power with so large a result is not answered")
    least = WORDS.number(Fraction(2.0 ** (-1000 / float(value))))
    below = "" if Fraction(value).denominator == 1 else " WHEN {x} < 0 THEN NULL"
    large = f"abs({{x}}) >= {least}"
    body = f"CASE WHEN {{x}} IS NULL THEN NULL{below} WHEN {large} THEN power({{x}}, {a[1]}) ELSE {ZERO} END"
    return let(Call("power", (base,), call.kind), a[:1], body)


def _width_bucket(call: Call, a: list[str]) -> str:
    count = whole(call.args[3])
    low, high, n = a[1], a[2], WORDS.number(count)
    part = f"CASE WHEN abs({{x}} - {low}) >= {TINY} THEN ({{x}} - {low}) / ({high} - {low}) ELSE {ZERO} END"
    body = (
        f"CASE WHEN {{x}} IS NULL THEN NULL WHEN {{x}} < {low} THEN {ZERO} WHEN {{x}} >= {high} THEN "
        f"{WORDS.number(count + 1)} ELSE least({n}, floor({n} * ({part})) + 1) END"
    )
    return let(Call("width_bucket", call.args[:1], call.kind), a[:1], body)


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
    "sqrt": guarded("sqrt", ">= 0"),
    "ln": guarded("ln", "> 0"),
    "log10": guarded("log", "> 0"),
    "exp": _exp,
    "power": _power,
    "width_bucket": _width_bucket,
}
