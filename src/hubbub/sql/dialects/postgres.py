"""PostgreSQL's words.

What it lacks, and what is done about it:

  TRY_CAST      casts are guarded by a test of the range; casts of text to other kinds are refused
  IEEE          float8 arithmetic raises on overflow, and on underflow to zero. Operands must have known bounds, so that
                nothing can overflow; products and quotients of small numbers are scaled, and are 0 below 2⁻¹⁰⁰⁰
  % on doubles  whole numbers are divided as integers; of broken numbers it is refused
  round         is half to even there: rounding half away from zero is written out
  text          every text is compared under the collation "C", byte by byte; case is that of `dialects.case`
  structures    a discovered cell is carried in several columns
  SEMI, ANTI    EXISTS, NOT EXISTS
"""

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from hubbub.core.schema import Column, Kind
from hubbub.sql import rules
from hubbub.sql.dialects.base import COMMON, Dialect, Spelling, function, guarded, infix, part_of_text, whole, word
from hubbub.sql.dialects.case import BLANKS, simple_case
from hubbub.sql.expressions import Call, Col, Expr, facts
from hubbub.sql.expressions import Literal as Constant

_TINY = f"'{2.0**-500!r}'::float8"


class Postgres(Dialect):
    """PostgreSQL 14 and later, with a database in UTF-8."""

    name: ClassVar[str] = "postgres"
    types: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOLEAN: "boolean", Kind.INTEGER: "float8", Kind.REAL: "float8", Kind.TEXT: "text", Kind.DATE: "date",
        Kind.TIMESTAMP: "timestamp",
    }  # fmt: skip
    integers: ClassVar[Mapping[int, str]] = {8: "smallint", 16: "smallint", 32: "integer", 64: "bigint", 128: "numeric"}
    unnamed: ClassVar[str] = ' AS "$s"'
    computed_once: ClassVar[str] = " OFFSET 0"
    fence: ClassVar[str] = " OFFSET 0"

    def number(self, value: int | Fraction) -> str:
        """Write the digits that are read back as the nearest double."""
        return f"'{float(value)!r}'::float8"

    def text(self, value: str) -> str:
        """Write a text whose order is that of its bytes; no backslash is special (standard_conforming_strings)."""
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise self.refusal("a text with a zero, or with half a character, is not answered", "Leave it out.")
        return f"""('{value.replace("'", "''")}'::text COLLATE "C")"""

    def is_nan(self, text: str) -> str:
        """Compare: NaN is equal to itself there."""
        return f"({text}) = 'NaN'::float8"

    def between(self, text: str, first: str, last: str) -> str:
        """Look at the value once: sub-queries are merged, and it is computed as often as it stands.

        What MAX and MIN of doubles are made from is strict, unlike greatest and least, and takes NaN for the largest.
        """
        return f"float8smaller(float8larger({text}, {first}), {last})"

    def clamped(self, text: str, kind: Kind, column: Column | None) -> str:
        """Clamp dates by functions of their own."""
        found = super().clamped(text, kind, column)
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            name = "date_" if kind is Kind.DATE else "timestamp_"
            return found.replace("float8smaller(float8larger(", f"{name}smaller({name}larger(", 1)
        return found

    def scanned(self, column: Column) -> str:
        """Clamp a column that the engine serves in the type of its kind."""
        name = self.identifier(column.name)
        match column.kind:
            case Kind.BOOLEAN:
                return name
            case Kind.TEXT:
                return f'(CAST({name} AS text) COLLATE "C")'
            case Kind.DATE | Kind.TIMESTAMP:
                return self.clamped(name, column.kind, column)
            case Kind.INTEGER:
                return self.clamped(f"CAST({name} AS float8)", column.kind, column)
        if column.bounds is None:
            return f"nullif({name}, 'NaN'::float8)"
        return self.clamped(f"nullif({name}, 'NaN'::float8)", column.kind, column)

    def owner(self, column: str, kind: Kind | None) -> str:
        """Tell texts apart byte by byte; the two zeros are one."""
        if kind is Kind.TEXT:
            return f'(CAST({column} AS text) COLLATE "C")'
        return self.one_zero(column) if kind is Kind.REAL else column

    def with_match(self, relation: str, other: str, columns: Sequence[str]) -> str:
        """Test with EXISTS."""
        return f"{relation} AS b WHERE EXISTS ({_match(other, columns)})"

    def without_match(self, relation: str, other: str, columns: Sequence[str]) -> str:
        """Test with NOT EXISTS."""
        return f"{relation} AS b WHERE NOT EXISTS ({_match(other, columns)})"

    def position(self, values: Sequence[str], column: str) -> str:
        """Look through an array."""
        return f"array_position(ARRAY[{', '.join(values)}], {column}) - 1"

    def away(self, text: str, low: int, high: int) -> str:
        """Add what is just below a half, away from zero, and cut: right for every double, past 2⁵² too."""
        up, down = f"floor({text} + {_HALF})", f"ceil({text} - {_HALF})"
        return up if low >= 0 else down if high <= 0 else f"trunc({text} + sign({text}) * {_HALF})"

    def steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Round first and clamp then, which is the same between whole numbers and looks at the value less often."""
        inside = self.between(self.away(text, low, high), self.number(low), self.number(high))
        return f"CAST({inside} AS {kind})"

    def whole_steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Leave out the rounding: a cast of a whole number is exact."""
        return f"CAST({self.between(text, self.number(low), self.number(high))} AS {kind})"

    def product(self, factors: Sequence[str]) -> str:
        """Leave out what would be below 2⁻⁵⁰⁰ times a bound."""
        if len(factors) == 1:
            return factors[0]
        large = " AND ".join(f"abs({factor}) >= {_TINY}" for factor in factors)
        there = " AND ".join(f"{factor} IS NOT NULL" for factor in factors)
        return f"(CASE WHEN {large} THEN {' * '.join(factors)} WHEN {there} THEN {self.number(0)} END)"

    def fraction(self, text: str, divisor: Fraction) -> str:
        """Divide; what is tiny cannot be divided by more than 1."""
        if divisor <= 1:
            return f"({text} / {self.number(divisor)})"
        quotient = f"{text} / {self.number(divisor)}"
        return f"(CASE WHEN abs({text}) >= {_TINY} THEN {quotient} WHEN {text} IS NOT NULL THEN {self.number(0)} END)"

    def quotient(self, text: str, divisor: Fraction) -> str:
        """Write a fraction, which is in parentheses here already."""
        return self.fraction(text, divisor)

    def on_grid(self, text: str, step: Fraction) -> str:
        """Count in 64 bits; their sums are numeric."""
        return f"CAST({self.away(self.fraction(text, step), -1, 1)} AS bigint)"

    def as_divisor(self, count: str) -> str:
        """Divide by a double."""
        return self.as_double(count)

    def extreme(self, function: str, text: str, kind: Kind) -> str:
        """Take AND for the least of truth values."""
        if kind is Kind.BOOLEAN:
            return f"{'bool_and' if function == 'min' else 'bool_or'}({text})"
        return f"{function}({text})"

    def fitting(self, text: str, most: int) -> str:  # noqa: ARG002 - nothing is gained by a narrower type
        """Leave sums in the type that the engine gives them, which holds them all."""
        return text

    def any_of(self, text: str) -> str:
        """Take the largest of equal values."""
        return f"max({text})"

    def own_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Chain 64-bit hashes of integers or texts, each seeded with the one before; the first with the salt's."""
        seed = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:8], "big", signed=True)
        found = f"'{seed}'::bigint"
        for column, kind in columns:
            if kind is Kind.INTEGER:
                found = f"hashint8extended(coalesce(CAST({column} AS bigint), 0), {found})"
            else:
                found = f"""hashtextextended(coalesce(CAST({column} AS text), '') COLLATE "C", {found})"""
        return found

    def portable_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Order by bytes."""
        return f'({super().portable_hash(salt, columns)} COLLATE "C")'


def _match(other: str, columns: Sequence[str]) -> str:
    same = " AND ".join(f"m.{column} = b.{column}" for column in columns)
    return f"SELECT 1 FROM {other} AS m WHERE {same}"


POSTGRES = Postgres()
_HALF = POSTGRES.number(Fraction(0.49999999999999994))
_ZERO = POSTGRES.number(0)
_SMALL = _TINY
_LARGE = POSTGRES.number(Fraction(2) ** 500)


# --- arithmetic ----------------------------------------------------------------------------------------------------

#: Past this nothing may get: what is above is refused, so no sum or product below it overflows.
_MOST = Fraction(2) ** 1000
#: An integer of a scan, or a sum inside a unit over bounded ones, is smaller.
_INTEGER = Fraction(2) ** 126


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
        return _INTEGER if expr.kind is Kind.INTEGER else None
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
        raise POSTGRES.refusal(
            f"{name} of numbers without bounds is not answered",
            "Declare the bounds of the columns in hubbub.yaml, or clamp them: GREATEST(0, LEAST(x, 100)).",
        )
    return known


def _kept(call: Call, name: str) -> None:
    found = reach(call)
    if found is None or found > _MOST:
        raise POSTGRES.refusal(f"{name} with so large a result is not answered")


def _let(call: Call, texts: list[str], body: str) -> str:
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
        return f"CASE WHEN abs({scaled}) >= {_SMALL} THEN {scaled} * {_SMALL} ELSE {_ZERO} END"

    return _let(call, a, (
        f"CASE WHEN {{x}} IS NULL OR {{y}} IS NULL THEN NULL WHEN abs({{x}}) >= {_SMALL} THEN "
        f"CASE WHEN abs({{y}}) >= {_SMALL} THEN {{x}} * {{y}} ELSE {small('{y}', '{x}')} END "
        f"ELSE CASE WHEN abs({{y}}) >= {_SMALL} THEN {small('{x}', '{y}')} ELSE {_ZERO} END END"
    ))  # fmt: skip


def _div(call: Call, a: list[str]) -> str:
    sizes = _bounded(call, "a quotient")
    x, y = call.args
    if isinstance(y, Constant) and y.value == 0:
        return "CAST(NULL AS float8)"
    if rules.whole(x) and _not_small(y):
        return f"({a[0]} / nullif({a[1]}, {_ZERO}))"
    if max(sizes) > Fraction(2) ** 400:
        raise POSTGRES.refusal("a quotient of so large numbers is not answered")
    edge, infinite = POSTGRES.number(Fraction(2) ** 524), "'Infinity'::float8"
    scaled, tiny = f"(({{x}} * {_LARGE}) / {{y}})", f"({{x}} / ({{y}} * {_LARGE}))"
    return _let(call, a, (
        f"CASE WHEN {{x}} IS NULL OR {{y}} IS NULL OR {{y}} = 0 THEN NULL WHEN abs({{y}}) >= {_SMALL} THEN "
        f"CASE WHEN abs({{x}}) >= {_SMALL} THEN {{x}} / {{y}} WHEN abs({scaled}) >= {_SMALL} "
        f"THEN {scaled} * {_SMALL} ELSE {_ZERO} END "
        f"ELSE CASE WHEN {tiny} >= {edge} THEN {infinite} WHEN {tiny} <= - {edge} THEN - {infinite} "
        f"ELSE {tiny} * {_LARGE} END END"
    ))  # fmt: skip


def _intdiv(call: Call, a: list[str]) -> str:
    _bounded(call, "a quotient")
    return f"trunc({a[0]} / nullif({a[1]}, {_ZERO}))"


def _mod(call: Call, a: list[str]) -> str:
    if call.kind is not Kind.INTEGER:
        raise POSTGRES.refusal("the remainder of broken numbers is not answered")
    if max(_bounded(call, "a remainder")) > _INTEGER:
        raise POSTGRES.refusal("the remainder of so large numbers is not answered")
    quick = "CAST(CAST({x} AS bigint) % CAST({y} AS bigint) AS float8)"
    exact = f"CAST({_exact('{x}')} % {_exact('{y}')} AS float8)"
    return _let(call, a, (
        f"CASE WHEN {{x}} IS NULL OR {{y}} IS NULL OR {{y}} = 0 THEN NULL "
        f"WHEN abs({{x}}) < '9e18'::float8 AND abs({{y}}) < '9e18'::float8 THEN {quick} ELSE {exact} END"
    ))  # fmt: skip


def _exact(text: str) -> str:
    """Write a whole double below 2¹²⁶ as the numeric that it is, in two parts: a cast would keep 15 digits."""
    size = POSTGRES.number(2**63)
    high = f"trunc({text} / {size})"
    low = f"({text} - {high} * {size})"
    return f"(CAST(CAST({high} AS bigint) AS numeric) * {2**63} + CAST(CAST({low} AS bigint) AS numeric))"


def _round(call: Call, a: list[str]) -> str:
    places = whole(call.args[1]) if len(call.args) > 1 else 0
    value = Call("round", call.args[:1], call.kind, call.facts)
    bounds = facts(call.args[0]).bounds
    low, high = (-1, 1) if bounds is None else (0, 1) if bounds.low >= 0 else (-1, 0) if bounds.high <= 0 else (-1, 1)
    if places == 0:
        return _let(value, a[:1], POSTGRES.away("{x}", low, high))
    (size,) = _bounded(value, "a rounding")
    scale = 10 ** abs(places)
    if size * scale > _MOST:
        raise POSTGRES.refusal("a rounding of so large numbers is not answered")
    if places > 0:
        return _let(value, a[:1], f"({POSTGRES.away(f'({{x}} * {POSTGRES.number(scale)})', low, high)} / "
                                  f"{POSTGRES.number(scale)})")  # fmt: skip
    divided = POSTGRES.fraction("{x}", Fraction(scale))
    return _let(value, a[:1], f"({POSTGRES.away(divided, low, high)} * {POSTGRES.number(scale)})")


def _exp(call: Call, a: list[str]) -> str:
    inside = "CASE WHEN {x} > '709.782712893384'::float8 THEN 'Infinity'::float8 "
    inside += f"WHEN {{x}} < '-745.1332191019411'::float8 THEN {_ZERO} ELSE exp({{x}}) END"
    return _let(call, a, inside)


def _power(call: Call, a: list[str]) -> str:
    base, exponent = call.args
    value = exponent.value if isinstance(exponent, Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value <= 64:
        raise POSTGRES.refusal("a power whose exponent is not a constant from 0 to 64 is not answered")
    (size,) = _bounded(Call("power", (base,), call.kind), "a power")
    if value == 0:
        return f"CASE WHEN {a[0]} IS NOT NULL THEN {POSTGRES.number(1)} END"
    if max(size, Fraction(1)) ** int(-(-value // 1)) > _MOST:
        raise POSTGRES.refusal("a power with so large a result is not answered")
    least = POSTGRES.number(Fraction(2.0 ** (-1000 / float(value))))
    below = "" if Fraction(value).denominator == 1 else " WHEN {x} < 0 THEN NULL"
    large = f"abs({{x}}) >= {least}"
    body = f"CASE WHEN {{x}} IS NULL THEN NULL{below} WHEN {large} THEN power({{x}}, {a[1]}) ELSE {_ZERO} END"
    return _let(Call("power", (base,), call.kind), a[:1], body)


def _width_bucket(call: Call, a: list[str]) -> str:
    count = whole(call.args[3])
    low, high, n = a[1], a[2], POSTGRES.number(count)
    part = f"CASE WHEN abs({{x}} - {low}) >= {_SMALL} THEN ({{x}} - {low}) / ({high} - {low}) ELSE {_ZERO} END"
    body = (
        f"CASE WHEN {{x}} IS NULL THEN NULL WHEN {{x}} < {low} THEN {_ZERO} WHEN {{x}} >= {high} THEN "
        f"{POSTGRES.number(count + 1)} ELSE least({n}, floor({n} * ({part})) + 1) END"
    )
    return _let(Call("width_bucket", call.args[:1], call.kind), a[:1], body)


# --- text, dates, casts --------------------------------------------------------------------------------------------


def _cased(name: Literal["lower", "upper"]) -> Spelling:
    def spelled(_: Call, a: list[str]) -> str:
        before, after = map(POSTGRES.text, simple_case(name))
        plain = f"octet_length({a[0]}) = length({a[0]})"
        return f"CASE WHEN {plain} THEN {name}({a[0]}) ELSE translate({a[0]}, {before}, {after}) END"

    return spelled


def _trimmed(name: str) -> Spelling:
    return lambda _, a: f"{name}({a[0]}, {POSTGRES.text(BLANKS)})"


def _double(name: str) -> Spelling:
    return lambda _, a: f"CAST({name}({', '.join(a)}) AS float8)"


def _ends_with(call: Call, a: list[str]) -> str:
    last = word(call.args[1])
    return f"(right({a[0]}, {len(last)}) = {a[1]})" if last else f"starts_with({a[0]}, {a[1]})"


def _part_of_date(name: str) -> Spelling:
    # the second has its fraction there
    return lambda _, a: f"floor(date_part('{name}', CAST({a[0]} AS timestamp)))"


def _date_trunc(call: Call, a: list[str]) -> str:
    return f"date_trunc('{word(call.args[0])}', CAST({a[1]} AS timestamp))"


def _date_diff(call: Call, a: list[str]) -> str:
    unit = word(call.args[0])
    first, last = (f"CAST({text} AS timestamp)" for text in a[1:])

    def part(name: str) -> str:
        return f"(date_part('{name}', {last}) - date_part('{name}', {first}))"

    match unit:
        case "year":
            return part("year")
        case "quarter":
            return f"({part('year')} * 4 + {part('quarter')})"
        case "month":
            return f"({part('year')} * 12 + {part('month')})"
        case "day":
            return f"CAST(CAST({last} AS date) - CAST({first} AS date) AS float8)"
        case "week":
            # whole weeks, as in DuckDB
            return f"trunc(CAST(CAST({last} AS date) - CAST({first} AS date) AS float8) / 7)"
    seconds = {"hour": 3600, "minute": 60, "second": 1}[unit]
    return (
        f"CAST(date_part('epoch', date_trunc('{unit}', {last}) - date_trunc('{unit}', {first})) / {seconds} AS float8)"
    )


def _date_shift(call: Call, a: list[str]) -> str:
    amount, unit = whole(call.args[1]), word(call.args[2])
    if unit == "quarter":
        amount, unit = 3 * amount, "month"
    shifted = f"(CAST({a[0]} AS timestamp) + INTERVAL '{amount} {unit}')"
    return POSTGRES.clamped(shifted, Kind.TIMESTAMP, None)


def _no_text(call: Call, to: str) -> None:
    if call.args[0].kind is Kind.TEXT:
        raise POSTGRES.refusal(f"a cast of text to {to} is not answered", "Cast it in a view of the database.")


def _truth(text: str) -> str:
    return f"CASE {text} WHEN TRUE THEN {POSTGRES.number(1)} WHEN FALSE THEN {_ZERO} END"


def _to_integer(call: Call, a: list[str]) -> str:
    _no_text(call, "a number")
    if call.args[0].kind is Kind.BOOLEAN:
        return _truth(a[0])
    size = 1 << (whole(call.args[1]) - 1)
    # round(float8) is half to even, as DuckDB's cast is
    fits = f"round({{x}}) >= {POSTGRES.number(-size)} AND round({{x}}) < {POSTGRES.number(size)}"
    body = f"CASE WHEN {fits} THEN round({{x}}) END"
    return _let(Call("to_integer", call.args[:1], call.kind), a[:1], body)


def _to_real(call: Call, a: list[str]) -> str:
    _no_text(call, "a number")
    return _truth(a[0]) if call.args[0].kind is Kind.BOOLEAN else a[0]


def _to_float(call: Call, a: list[str]) -> str:
    _no_text(call, "a number")
    if call.args[0].kind is Kind.BOOLEAN:
        return _truth(a[0])
    # from here on a double is past the largest float, or nearer to 0 than to the smallest
    most, least = POSTGRES.number(Fraction(2) ** 128 - Fraction(2) ** 103), POSTGRES.number(Fraction(2) ** -150)
    cast = "CAST(CAST({x} AS float4) AS float8)"
    body = f"CASE WHEN abs({{x}}) = 'Infinity'::float8 THEN {{x}} WHEN abs({{x}}) >= {most} THEN NULL "
    body += f"WHEN abs({{x}}) > {least} THEN {cast} WHEN {{x}} IS NOT NULL THEN {_ZERO} END"
    return _let(Call("to_float", call.args[:1], call.kind), a[:1], body)


def _to_text(call: Call, a: list[str]) -> str:
    kind = call.args[0].kind
    if kind is Kind.REAL:
        raise POSTGRES.refusal("a number with a fraction written as text is not answered")
    if kind is Kind.TEXT:
        return a[0]
    if kind is not Kind.INTEGER:
        return f'(CAST({a[0]} AS text) COLLATE "C")'
    size = reach(call.args[0])
    if size is None or size > _INTEGER:
        raise POSTGRES.refusal("a whole number that may be so large, written as text, is not answered")
    quick, exact = "CAST(CAST({x} AS bigint) AS text)", f"CAST({_exact('{x}')} AS text)"
    body = f"CASE WHEN abs({{x}}) < '9e18'::float8 THEN {quick} WHEN {{x}} IS NOT NULL THEN {exact} END"
    return f'({_let(call, a, body)} COLLATE "C")'


def _to_date(kind: Kind) -> Spelling:
    def spelled(call: Call, a: list[str]) -> str:
        _no_text(call, "a date")
        return f"CAST({a[0]} AS {Postgres.types[kind]})"

    return spelled


def _to_boolean(call: Call, a: list[str]) -> str:
    _no_text(call, "a truth value")
    return a[0] if call.args[0].kind is Kind.BOOLEAN else f"({a[0]} <> 0)"


Postgres.spellings = {
    **COMMON,
    "add": _plain("+", "a sum"), "sub": _plain("-", "a difference"), "mul": _mul, "div": _div, "intdiv": _intdiv,
    "mod": _mod, "sign": function("sign"), "trunc": function("trunc"), "round": _round,
    "sqrt": guarded("sqrt", ">= 0"), "ln": guarded("ln", "> 0"), "log10": guarded("log", "> 0"), "exp": _exp,
    "power": _power, "width_bucket": _width_bucket, "is_distinct": infix("IS DISTINCT FROM"),
    "lower": _cased("lower"), "upper": _cased("upper"), "trim": _trimmed("btrim"), "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"), "length": _double("length"), "substr": part_of_text("substr"),
    "left": part_of_text("left"), "right": part_of_text("right"), "strpos": _double("strpos"),
    "starts_with": function("starts_with"), "ends_with": _ends_with,
    "contains": lambda _, a: f"(strpos({a[0]}, {a[1]}) > 0)",
    "like": lambda _, a: f"({a[0]} LIKE {a[1]} ESCAPE '')",
    "year": _part_of_date("year"), "quarter": _part_of_date("quarter"), "month": _part_of_date("month"),
    "week": _part_of_date("week"), "day": _part_of_date("day"), "dayofyear": _part_of_date("doy"),
    "dow": _part_of_date("dow"), "isodow": _part_of_date("isodow"), "hour": _part_of_date("hour"),
    "minute": _part_of_date("minute"), "second": _part_of_date("second"),
    "date_trunc": _date_trunc, "date_diff": _date_diff, "date_shift": _date_shift,
    "day_shift": lambda call, a: POSTGRES.clamped(f"({a[0]} + ({whole(call.args[1])}))", Kind.DATE, None),
    "days_between": lambda _, a: f"CAST({a[0]} - {a[1]} AS float8)",
    "to_integer": _to_integer, "to_real": _to_real, "to_float": _to_float, "to_text": _to_text,
    "to_date": _to_date(Kind.DATE), "to_timestamp": _to_date(Kind.TIMESTAMP), "to_boolean": _to_boolean,
}  # fmt: skip
