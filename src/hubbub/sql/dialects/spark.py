"""The dialect of Spark.

The session is in ANSI mode (overflow raises an error and never wraps), in UTC, and compares texts byte by byte. Guards
on arguments prevent all errors. Spark functions that differ from DuckDB's (round on decimals, floor to 64 bits, digits
of a double) are not used.

Tested in tests/sql/test_spark_functions.py.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

from hubbub.core.schema import Column, Kind
from hubbub.sql import ranges
from hubbub.sql.dialects import shifts
from hubbub.sql.dialects.base import (
    COMMON_SPELLINGS,
    FINITE,
    Dialect,
    Spelling,
    function,
    guarded,
    infix,
    nonzero,
    part_of_text,
    whole,
    word,
)
from hubbub.sql.dialects.case import BLANKS, simple_case
from hubbub.sql.dialects.like_patterns import like_parts, like_pattern
from hubbub.sql.dialects.parse_times import FIELDS, time_format
from hubbub.sql.expressions import FunctionCall, Literal, facts
from hubbub.sql.patterns import MAX_ATTEMPTS, NO_COMPLEMENT, REWRITE_COMPLEMENT, attempts, translated
from hubbub.sql.relations import MAX_TEXT_LENGTH
from hubbub.sql.rules import decimal_grid

#: Sums of 2⁴⁰ rows fit into 64 bits where a row adds fewer than 2²², and in two parts where it adds fewer than 2⁴⁴.
_PART = 22
#: The smallest double that rounds to no finite FLOAT.
_FLOATS = Fraction(2) ** 128 - Fraction(2) ** 103
_DAYS = 719_162  # from 0001-01-01 to 1970-01-01
#: Spark's names do not depend on case.
_FIELD_NAMES = {"Y": "y", "m": "m", "d": "d", "H": "h", "M": "i", "S": "s"}
_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
#: Texts that DuckDB reads as a number, except for a sign after a plus. No group is repeated: Java recurses for each
#: repetition, and a long text would cause a stack overflow.
_DIGITS = r"[0-9](?:[0-9_]*[0-9])?"
_NUMBER = (
    rf"^(?!(?s:.*)__)[ \t\n\x0B\f\r]*[+]?-?((({_DIGITS})([.]({_DIGITS})?)?|[.]{_DIGITS})([eE][+-]?{_DIGITS})?"
    r"|(?i:inf|infinity|nan))[ \t\n\x0B\f\r]*$"
)


class SparkDialect(Dialect):
    """Spark SQL 4.

    Theorem (Exact sums on Spark). The sum of at most 2⁴⁰ integers between −m and m is exact and raises nothing: for
    m < 2²² it is below 2⁶²; for m < 2⁴⁴ each v is 2²²·⌊v/2²²⌋ + (v mod 2²²), parts below 2²² + 1 either way, and both
    sums are below 2⁶³; for m < 2⁸⁵ it is below 2¹²⁵ < 10³⁸, which DECIMAL(38, 0) holds.
    Assumes  a table of fewer than 2⁴⁰ rows (10¹²), and limits of 2³⁰ rows a unit at most, so m < 2⁵³⁺³⁰.
    Tested   tests/sql/test_spark_functions.py::test_sums_are_exact_at_the_edges_of_their_parts
    """

    name: ClassVar[str] = "spark"
    sha256, hexadecimal = "sha2({}, 256)", "CAST(conv({}, 16, 10) AS BIGINT)"
    types: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOLEAN: "BOOLEAN",
        Kind.INTEGER: "DOUBLE",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "STRING",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    integers: ClassVar[Mapping[int, str]] = {
        8: "TINYINT",
        16: "SMALLINT",
        32: "INT",
        64: "BIGINT",
        128: "DECIMAL(38, 0)",
    }
    materialized: ClassVar[str] = ""
    inlined: ClassVar[str] = ""
    unordered: ClassVar[str] = " ORDER BY NULL"
    #: One exchange by owner serves all groupings and rankings that follow.
    gathered: ClassVar[str] = "/*+ REPARTITION(u) */ "

    def identifier(self, name: str) -> str:
        """Quote a name."""
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Write a text literal with escaped backslashes."""
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def scanned(self, column: Column) -> str:
        """Clamp a column, which already has the type of its kind."""
        name = self.identifier(column.name)
        if column.kind in (Kind.BOOLEAN, Kind.TEXT):
            return name
        if column.kind in (Kind.DATE, Kind.TIMESTAMP):
            return self.clamped(name, column.kind, column)
        double = f"CAST({name} AS DOUBLE)"
        text = self.clamped(double, column.kind, column)
        if column.kind is Kind.INTEGER:
            return text
        nan = f"CASE WHEN {self.is_nan(double)} THEN NULL"
        clean = f"{nan} {text.removeprefix('CASE ')}" if column.bounds else f"{nan} ELSE {double} END"
        return self.rounded(clean, column)

    def whole_floor(self, text: str) -> str:
        """Convert the 64 bits that floor() returns."""
        return f"CAST(floor({text}) AS DOUBLE)"

    def position(self, values: Sequence[str], column: str) -> str:
        """Search an array; array_position returns 0 for a missing value, and NULL for NULL."""
        return f"nullif(array_position(array({', '.join(values)}), {column}), 0) - 1"

    def numbered(self, total: str) -> str:
        """Write two equivalent tests, chosen by the sum, so that Spark cannot evaluate them before grouping.

        A plain test depends only on the keys, and Spark would look up the key of every row instead of every group.
        """
        return f"CASE WHEN coalesce({total}, 0) >= 0 THEN g.c IS NOT NULL ELSE coalesce(g.c, -1) >= 0 END"

    def steps(self, text: str, low: int, high: int, kind: str) -> str:
        """Round half away from zero: double, which is exact, add or subtract 1, and halve as an integer."""
        doubled = f"CAST(2e0 * {self.between(text, self.number(low), self.number(high))} AS BIGINT)"
        return f"CAST({_halved(doubled, signed=low < 0)} AS {kind})"

    def on_grid(self, text: str, step: Fraction) -> str:
        """Use 38 digits; the value is below 2⁶², so that its double fits into 64 bits."""
        doubled = f"CAST(2e0 * ({self.fraction(text, step)}) AS BIGINT)"
        return f"CAST({_halved(doubled, signed=True)} AS DECIMAL(28, 0))"

    def total(self, text: str, most: int) -> str:
        """Sum in 64 bits if they suffice, else in two parts of 64 bits if they suffice, else in 38 digits."""
        if most < 1 << _PART:
            return f"sum({text})"
        if most < 1 << (2 * _PART):
            size = 1 << _PART
            high = f"CAST(sum(shiftright(CAST({text} AS BIGINT), {_PART})) AS DECIMAL(38, 0))"
            return f"({high} * {size} + sum(CAST({text} AS BIGINT) & {size - 1}))"
        return f"sum(CAST({text} AS DECIMAL(28, 0)))"

    def cut(self, text: str) -> str:
        """Return the text unchanged: the cast drops the fraction."""
        return text

    def fitting(self, text: str, most: int) -> str:
        """Cast to the narrowest type, or NULL."""
        return f"try_cast({text} AS {self.narrow(most)})"

    def own_hash(self, salt: str, columns: Sequence[tuple[str, Kind]]) -> str:
        """Hash the columns together."""
        return f"xxhash64({', '.join([self.text(salt), *(name for name, _ in columns)])})"

    def portable_text(self, column: str, kind: Kind) -> str:
        """Write the integer part and the millionths of a real."""
        if kind is not Kind.REAL:
            return f"CAST({column} AS STRING)"
        far = self.between(column, self.number(-(1 << 62)), self.number((1 << 62) - (1 << 10)))
        near = self.between(column, self.number(-(1 << 52)), self.number(1 << 52))
        part = _floor(f"(({near} - {_floor(near)}) * {self.number(10**6)})")
        return " || '.' || ".join(f"CAST(CAST({x} AS BIGINT) AS STRING)" for x in (_floor(far), part))


def _halved(doubled: str, *, signed: bool) -> str:
    """Write half of an integer, rounded away from zero: for x ≥ 0, round(x) = ⌊(⌊2x⌋ + 1)/2⌋."""
    if not signed:
        return f"shiftright({doubled} + 1, 1)"
    return f"(({doubled} + CASE WHEN {doubled} < 0 THEN -1 ELSE 1 END) div 2)"


def _floor(x: str) -> str:
    # floor() returns 64 bits; rint is exact and at most 1 too large
    return f"(rint({x}) - CASE WHEN rint({x}) > {x} THEN 1e0 ELSE 0e0 END)"


def _ceil(x: str) -> str:
    return f"(rint({x}) + CASE WHEN rint({x}) < {x} THEN 1e0 ELSE 0e0 END)"


def _trunc(x: str) -> str:
    return f"(sign({x}) * {_floor(f'abs({x})')})"


def _away(x: str) -> str:
    """Round half away from zero: rint rounds half to even, and the difference to it is exact."""
    return f"(sign({x}) * (rint(abs({x})) + CASE WHEN abs({x}) - rint(abs({x})) = 0.5e0 THEN 1e0 ELSE 0e0 END))"


def _double(name: str) -> Spelling:
    return lambda _, a: f"CAST({name}({', '.join(a)}) AS DOUBLE)"


def _round(call: FunctionCall, a: list[str]) -> str:
    places = whole(call.args[1]) if len(a) > 1 else 0
    if places == 0:
        return _away(a[0])
    scale = SPARK.number(10 ** abs(places))
    there, back = ("*", "/") if places > 0 else ("/", "*")
    scaled = f"({a[0]} {there} {scale})"
    most = SPARK.number(ranges.LARGEST)
    # keep the number if scaling overflows; NaN compares as larger
    return f"CASE WHEN abs({scaled}) <= {most} THEN {_away(scaled)} {back} {scale} ELSE {a[0]} END"


def _several(name: str) -> Spelling:
    return lambda _, a: f"{name}({', '.join(a)})" if len(a) > 1 else a[0]


def _power(_: FunctionCall, a: list[str]) -> str:
    x, y = a
    defined = f"{x} > 0 OR ({x} = 0 AND {y} >= 0) OR ({x} < 0 AND {y} = rint({y}))"
    # ±1 to the power of infinity is NaN in Java and 1 in C
    endless = f"abs({x}) = 1 AND abs({y}) > {SPARK.number(ranges.LARGEST)}"
    return f"CASE WHEN {endless} THEN 1e0 ELSE power(CASE WHEN {defined} THEN {x} END, {y}) END"


def _width_bucket(call: FunctionCall, a: list[str]) -> str:
    x, low, high, count = a[0], a[1], a[2], whole(call.args[3])
    place = f"({SPARK.number(count)} * (({x} - {low}) / ({high} - {low})))"
    return (
        f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} < {low} THEN 0e0 WHEN {x} >= {high} THEN {SPARK.number(count + 1)}"
        f" ELSE least({SPARK.number(count)}, {_floor(place)} + 1e0) END"
    )


def _cased(name: str) -> Spelling:
    def spelled(_: FunctionCall, a: list[str]) -> str:
        before, after = simple_case(name)
        return f"translate({a[0]}, {SPARK.text(before)}, {SPARK.text(after)})"

    return spelled


def _trimmed(side: str) -> Spelling:
    return lambda _, a: f"trim({side} {SPARK.text(BLANKS)} FROM {a[0]})"


def _like(call: FunctionCall, a: list[str]) -> str:
    parts = like_parts(call)
    if len(parts) > 3 or (len(parts) == 3 and (parts[0] or parts[2])):
        return f"({a[0]} RLIKE {SPARK.text(like_pattern(parts))})"
    if len(a) > 2:
        return f"({a[0]} LIKE {a[1]} ESCAPE {a[2]})"
    # no character is special, so use an escape that does not occur
    escape = next(sign for sign in "!#~^@&;:|" if sign not in word(call.args[1]))
    return f"({a[0]} LIKE {a[1]} ESCAPE '{escape}')"


def _boundary(unit: str, text: str) -> str:
    """Number the years, quarters, …, seconds, as `dates.boundary` does."""
    match unit:
        case "year":
            return f"year({text})"
        case "quarter":
            return f"(year({text}) * 4 + quarter({text}))"
        case "month":
            return f"(year({text}) * 12 + month({text}))"
        case "day":
            return f"unix_date(CAST({text} AS DATE))"
    return f"((unix_micros(CAST({text} AS TIMESTAMP)) + {_DAYS * 86_400_000_000}) div {_MICROS[unit]})"


def _date_diff(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[0])
    if unit == "week":  # whole weeks, as in DuckDB
        return f"CAST(datediff({a[2]}, {a[1]}) div 7 AS DOUBLE)"
    return f"CAST({_boundary(unit, a[2])} - {_boundary(unit, a[1])} AS DOUBLE)"


def _date_shift(call: FunctionCall, a: list[str]) -> str:
    unit = word(call.args[2])
    if not isinstance(call.args[1], Literal):
        months, count = shifts.shift_parts(SPARK, a[1], unit)
        if months:
            shifted = f"(CAST({a[0]} AS TIMESTAMP) + make_ym_interval(0, CAST({count} AS INT)))"
        else:
            shifted = f"timestamp_micros(unix_micros(CAST({a[0]} AS TIMESTAMP)) + CAST({count} AS BIGINT))"
        return SPARK.clamped(shifted, Kind.TIMESTAMP, None)
    amount = whole(call.args[1])
    factor, unit = {"week": (7, "day"), "quarter": (3, "month")}.get(unit, (1, unit))
    shifted = f"(CAST({a[0]} AS TIMESTAMP) + INTERVAL '{factor * amount}' {unit.upper()})"
    return SPARK.clamped(shifted, Kind.TIMESTAMP, None)


def _day_shift(call: FunctionCall, a: list[str]) -> str:
    if isinstance(call.args[1], Literal):
        return SPARK.clamped(f"date_add({a[0]}, {whole(call.args[1])})", Kind.DATE, None)
    days = shifts.day_number(SPARK, f"CAST(datediff({a[0]}, {shifts.FIRST}) AS DOUBLE)", a[1])
    return f"date_add({shifts.FIRST}, CAST({days} AS INT))"


def _make_date(_: FunctionCall, a: list[str]) -> str:
    return shifts.calendar_day(
        SPARK, a, "INT", lambda day, count: f"date_add({day}, {count})", lambda day: f"month({day})"
    )


def _seconds(_: FunctionCall, a: list[str]) -> str:
    last, first = (f"unix_micros(CAST({text} AS TIMESTAMP))" for text in a)
    return f"(CAST({last} - {first} AS DOUBLE) / 1e6)"


def _no_text(call: FunctionCall, what: str) -> None:
    if call.args[0].kind is Kind.TEXT:
        raise SPARK.refusal(
            f"a cast from text to {what} is not supported", "Declare the type in hubbub.yaml, or cast to DOUBLE."
        )


def _to_integer(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "an integer")
    x, size = f"rint(CAST({a[0]} AS DOUBLE))", 1 << (whole(call.args[1]) - 1)
    return f"CASE WHEN {x} >= {SPARK.number(-size)} AND {x} < {SPARK.number(size)} THEN {x} END"


def _to_real(call: FunctionCall, a: list[str]) -> str:
    if call.args[0].kind is not Kind.TEXT:
        return f"CAST({a[0]} AS DOUBLE)"
    plain = f"regexp_replace({a[0]}, '_|[+](?=-)', '')"
    return f"try_cast(CASE WHEN {a[0]} RLIKE {SPARK.text(_NUMBER)} THEN {plain} END AS DOUBLE)"


def _to_float(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "a FLOAT")
    x = f"CAST({a[0]} AS DOUBLE)"
    fits = f"abs({x}) < {SPARK.number(_FLOATS)} OR abs({x}) > {SPARK.number(ranges.LARGEST)}"
    return f"CAST(CAST(CASE WHEN {fits} THEN {x} END AS FLOAT) AS DOUBLE)"


def _to_text(call: FunctionCall, a: list[str]) -> str:
    kind, x = call.args[0].kind, a[0]
    if kind is Kind.REAL:
        raise SPARK.refusal("a cast from a real number to text is not supported", "Cast it to an integer first.")
    if kind is not Kind.INTEGER:
        return f"CAST({x} AS STRING)"
    bounds = facts(call.args[0]).bounds
    if bounds is not None and max(-bounds.low, bounds.high) < 1 << 62:
        return f"CAST(CAST({x} AS BIGINT) AS STRING)"
    # use two parts of 62 bits: a cast would use Java's digits of a double
    size = SPARK.number(1 << 62)
    small = f"CASE WHEN abs({x}) < {SPARK.number(1 << 124)} THEN {x} END"
    high = f"CAST({small} / {size} AS BIGINT)"
    low = f"CAST({small} - CAST({high} AS DOUBLE) * {size} AS BIGINT)"
    whole_number = f"CAST({high} AS DECIMAL(19, 0)) * CAST({1 << 62} AS DECIMAL(19, 0)) + CAST({low} AS DECIMAL(19, 0))"
    return f"CAST(CAST({whole_number} AS DECIMAL(38, 0)) AS STRING)"


def _to_date(kind: Kind) -> Spelling:
    def spelled(call: FunctionCall, a: list[str]) -> str:
        _no_text(call, f"a {kind.value}")
        return SPARK.clamped(f"CAST({a[0]} AS {SparkDialect.types[kind]})", kind, None)

    return spelled


def _pattern(call: FunctionCall) -> str:
    """Translate a pattern for Java's engine, which backtracks, where the number of ways to try has a bound."""
    pattern = word(call.args[1])
    text = translated(pattern, start=r"\A", end=r"\z")
    if text is None:
        raise SPARK.refusal(NO_COMPLEMENT, REWRITE_COMPLEMENT)
    if attempts(pattern, MAX_TEXT_LENGTH) > MAX_ATTEMPTS:
        raise SPARK.refusal(
            "this regular expression can be matched in too many ways, so that it is not supported",
            "Start it with ^ and use at most one of *, + and {n,}, or use LIKE, which has no such limit.",
        )
    return text


def _regexp(call: FunctionCall, a: list[str]) -> str:
    return f"({a[0]} RLIKE {SPARK.text(_pattern(call))})"


def _extract(call: FunctionCall, a: list[str]) -> str:
    text, group = _pattern(call), whole(call.args[2])
    pattern = SPARK.text(text.replace("(?:", "(") if group else text)
    return f"CASE WHEN {a[0]} RLIKE {pattern} THEN regexp_extract({a[0]}, {pattern}, {group}) END"


def _replace(call: FunctionCall, a: list[str]) -> str:
    every = isinstance(call.args[3], Literal) and call.args[3].value is True
    if not every and not word(call.args[1]).startswith("^"):
        raise SPARK.refusal("replacing the first match alone is not supported", "Replace all, or start it with ^.")
    return f"regexp_replace({a[0]}, {SPARK.text(_pattern(call))}, {a[2]})"


def _parse_time(call: FunctionCall, a: list[str]) -> str:
    """Read the fields with a regular expression; every function gets values that it can take, also in other rows."""
    form = time_format(word(call.args[1]))
    if form is None:
        raise SPARK.refusal(
            "this format of a date is not supported", "Name each field once, without blanks at its ends."
        )
    pattern = SPARK.text(rf"\A{form.pattern}\z")
    read = {
        name: f"try_cast(regexp_extract({a[0]}, {pattern}, {form.fields.index(name) + 1}) AS INT)"
        if name in form.fields
        else str(default)
        for name, (_, default) in FIELDS.items()
    }
    # year 0 is a leap year, as year 4
    first = "make_date(CASE WHEN f.y = 0 THEN 4 ELSE f.y END, least(greatest(f.m, 1), 12), 1)"
    day = f"date_add({first}, f.d - 1)"
    valid = f"f.m BETWEEN 1 AND 12 AND f.d >= 1 AND month({day}) = f.m AND f.h < 24 AND f.i < 60 AND f.s < 60"
    micros = f"(unix_micros(CAST({day} AS TIMESTAMP)) + (f.h * 3600 + f.i * 60 + f.s) * 1000000L)"
    start = "TIMESTAMP '0001-01-01 00:00:00'"
    body = f"CASE WHEN {valid} THEN CASE WHEN f.y = 0 THEN {start} ELSE timestamp_micros({micros}) END END"
    fields = ", ".join(f"'{_FIELD_NAMES[name]}', {text}" for name, text in read.items())
    return SPARK.clamped(f"transform(array(named_struct({fields})), f -> {body})[0]", Kind.TIMESTAMP, None)


def _to_boolean(call: FunctionCall, a: list[str]) -> str:
    if call.args[0].kind is not Kind.TEXT:
        return f"CAST({a[0]} AS BOOLEAN)"
    low = f"lower({a[0]})"
    truths, lies = "'t', 'true', 'y', 'yes', '1'", "'f', 'false', 'n', 'no', '0'"
    return f"CASE WHEN {low} IN ({truths}) THEN TRUE WHEN {low} IN ({lies}) THEN FALSE END"


SparkDialect.spellings = {
    **COMMON_SPELLINGS,
    "add": infix("+"),
    "sub": infix("-"),
    "mul": infix("*"),
    "div": lambda _, a: f"({a[0]} / {nonzero(a[1])})",
    "intdiv": lambda _, a: _trunc(f"({a[0]} / {nonzero(a[1])})"),
    "mod": lambda _, a: f"({a[0]} % {nonzero(a[1])})",
    "floor": lambda _, a: _floor(a[0]),
    "ceil": lambda _, a: _ceil(a[0]),
    "trunc": lambda _, a: _trunc(a[0]),
    "sign": function("sign"),
    "round": _round,
    "decimal": lambda call, a: SPARK.decimal(a[0], *decimal_grid(call.args)),
    "sqrt": guarded("sqrt", ">= 0"),
    "ln": guarded("ln", "> 0"),
    "log10": guarded("log10", "> 0"),
    "log2": guarded("log2", "> 0"),
    "exp": function("exp"),
    "sin": guarded("sin", FINITE),
    "cos": guarded("cos", FINITE),
    "tan": guarded("tan", FINITE),
    "asin": guarded("asin", "BETWEEN -1 AND 1"),
    "acos": guarded("acos", "BETWEEN -1 AND 1"),
    "atan": function("atan"),
    "power": _power,
    "width_bucket": _width_bucket,
    "is_distinct": infix("IS DISTINCT FROM"),
    "greatest": _several("greatest"),
    "least": _several("least"),
    "lower": _cased("lower"),
    "upper": _cased("upper"),
    "trim": _trimmed("BOTH"),
    "ltrim": _trimmed("LEADING"),
    "rtrim": _trimmed("TRAILING"),
    "length": _double("length"),
    "substr": part_of_text("substr"),
    "left": part_of_text("left"),
    "right": part_of_text("right"),
    "strpos": _double("instr"),
    "starts_with": function("startswith"),
    "ends_with": function("endswith"),
    "contains": function("contains"),
    "replace": function("replace"),
    "split_part": lambda call, a: f"split_part({a[0]}, {a[1]}, {whole(call.args[2])})",
    "like": _like,
    "year": _double("year"),
    "quarter": _double("quarter"),
    "month": _double("month"),
    "week": _double("weekofyear"),
    "day": _double("day"),
    "dayofyear": _double("dayofyear"),
    "dow": lambda _, a: f"CAST(dayofweek({a[0]}) - 1 AS DOUBLE)",
    "isodow": lambda _, a: f"CAST(weekday({a[0]}) + 1 AS DOUBLE)",
    "hour": _double("hour"),
    "minute": _double("minute"),
    "second": _double("second"),
    "date_trunc": lambda call, a: f"date_trunc('{word(call.args[0])}', CAST({a[1]} AS TIMESTAMP))",
    "date_diff": _date_diff,
    "date_shift": _date_shift,
    "day_shift": _day_shift,
    "make_date": _make_date,
    "seconds_between": _seconds,
    "days_between": lambda _, a: f"CAST(datediff({a[0]}, {a[1]}) AS DOUBLE)",
    "to_integer": _to_integer,
    "to_real": _to_real,
    "to_float": _to_float,
    "to_text": _to_text,
    "to_date": _to_date(Kind.DATE),
    "to_timestamp": _to_date(Kind.TIMESTAMP),
    "to_boolean": _to_boolean,
    "parse_time": _parse_time,
    "regexp": _regexp,
    "regexp_extract": _extract,
    "regexp_replace": _replace,
}
SPARK: SparkDialect = SparkDialect()
