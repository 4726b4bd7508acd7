"""Casts, regular expressions and formats of dates on Spark.

Tested in tests/sql/test_spark_functions.py.
"""

from collections.abc import Mapping
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql import ranges
from hubbub.sql.dialects.base import Spelling, whole, word
from hubbub.sql.dialects.parse_times import FIELDS, time_format
from hubbub.sql.dialects.spark_syntax import SYNTAX
from hubbub.sql.expressions import FunctionCall, Literal, facts
from hubbub.sql.patterns import MAX_ATTEMPTS, NO_COMPLEMENT, REWRITE_COMPLEMENT, attempts, translated
from hubbub.sql.relations import MAX_TEXT_LENGTH

#: The smallest double that rounds to no finite FLOAT.
_FLOATS = Fraction(2) ** 128 - Fraction(2) ** 103
#: Spark's names do not depend on case.
_FIELD_NAMES = {"Y": "y", "m": "m", "d": "d", "H": "h", "M": "i", "S": "s"}
#: Texts that DuckDB reads as a number, except for a sign after a plus. No group is repeated: Java recurses for each
#: repetition, and a long text would cause a stack overflow.
_DIGITS = r"[0-9](?:[0-9_]*[0-9])?"
_NUMBER = (
    rf"^(?!(?s:.*)__)[ \t\n\x0B\f\r]*[+]?-?((({_DIGITS})([.]({_DIGITS})?)?|[.]{_DIGITS})([eE][+-]?{_DIGITS})?"
    r"|(?i:inf|infinity|nan))[ \t\n\x0B\f\r]*$"
)


def _no_text(call: FunctionCall, what: str) -> None:
    if call.args[0].kind is Kind.TEXT:
        raise SYNTAX.refusal(
            f"a cast from text to {what} is not supported", "Declare the type in hubbub.yaml, or cast to DOUBLE."
        )


def _to_integer(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "an integer")
    x, size = f"rint(CAST({a[0]} AS DOUBLE))", 1 << (whole(call.args[1]) - 1)
    return f"CASE WHEN {x} >= {SYNTAX.number(-size)} AND {x} < {SYNTAX.number(size)} THEN {x} END"


def _to_real(call: FunctionCall, a: list[str]) -> str:
    if call.args[0].kind is not Kind.TEXT:
        return f"CAST({a[0]} AS DOUBLE)"
    plain = f"regexp_replace({a[0]}, '_|[+](?=-)', '')"
    return f"try_cast(CASE WHEN {a[0]} RLIKE {SYNTAX.text(_NUMBER)} THEN {plain} END AS DOUBLE)"


def _to_float(call: FunctionCall, a: list[str]) -> str:
    _no_text(call, "a FLOAT")
    x = f"CAST({a[0]} AS DOUBLE)"
    fits = f"abs({x}) < {SYNTAX.number(_FLOATS)} OR abs({x}) > {SYNTAX.number(ranges.LARGEST)}"
    return f"CAST(CAST(CASE WHEN {fits} THEN {x} END AS FLOAT) AS DOUBLE)"


def _to_text(call: FunctionCall, a: list[str]) -> str:
    kind, x = call.args[0].kind, a[0]
    if kind is Kind.REAL:
        raise SYNTAX.refusal("a cast from a real number to text is not supported", "Cast it to an integer first.")
    if kind is not Kind.INTEGER:
        return f"CAST({x} AS STRING)"
    bounds = facts(call.args[0]).bounds
    if bounds is not None and max(-bounds.low, bounds.high) < 1 << 62:
        return f"CAST(CAST({x} AS BIGINT) AS STRING)"
    # use two parts of 62 bits: a cast would use Java's digits of a double
    size = SYNTAX.number(1 << 62)
    small = f"CASE WHEN abs({x}) < {SYNTAX.number(1 << 124)} THEN {x} END"
    high = f"CAST({small} / {size} AS BIGINT)"
    low = f"CAST({small} - CAST({high} AS DOUBLE) * {size} AS BIGINT)"
    whole_number = f"CAST({high} AS DECIMAL(19, 0)) * CAST({1 << 62} AS DECIMAL(19, 0)) + CAST({low} AS DECIMAL(19, 0))"
    return f"CAST(CAST({whole_number} AS DECIMAL(38, 0)) AS STRING)"


def _to_date(kind: Kind) -> Spelling:
    def spelled(call: FunctionCall, a: list[str]) -> str:
        _no_text(call, f"a {kind.value}")
        return SYNTAX.clamped(f"CAST({a[0]} AS {SYNTAX.types[kind]})", kind, None)

    return spelled


def _pattern(call: FunctionCall) -> str:
    """Translate a pattern for Java's engine, which backtracks, where the number of ways to try has a bound."""
    pattern = word(call.args[1])
    text = translated(pattern, start=r"\A", end=r"\z")
    if text is None:
        raise SYNTAX.refusal(NO_COMPLEMENT, REWRITE_COMPLEMENT)
    if attempts(pattern, MAX_TEXT_LENGTH) > MAX_ATTEMPTS:
        raise SYNTAX.refusal(
            "this regular expression can be matched in too many ways, so that it is not supported",
            "Start it with ^ and use at most one of *, + and {n,}, or use LIKE, which has no such limit.",
        )
    return text


def _regexp(call: FunctionCall, a: list[str]) -> str:
    return f"({a[0]} RLIKE {SYNTAX.text(_pattern(call))})"


def _extract(call: FunctionCall, a: list[str]) -> str:
    text, group = _pattern(call), whole(call.args[2])
    pattern = SYNTAX.text(text.replace("(?:", "(") if group else text)
    return f"CASE WHEN {a[0]} RLIKE {pattern} THEN regexp_extract({a[0]}, {pattern}, {group}) END"


def _replace(call: FunctionCall, a: list[str]) -> str:
    every = isinstance(call.args[3], Literal) and call.args[3].value is True
    if not every and not word(call.args[1]).startswith("^"):
        raise SYNTAX.refusal("replacing the first match alone is not supported", "Replace all, or start it with ^.")
    return f"regexp_replace({a[0]}, {SYNTAX.text(_pattern(call))}, {a[2]})"


def _parse_time(call: FunctionCall, a: list[str]) -> str:
    """Read the fields with a regular expression; every function gets values that it can take, also in other rows."""
    form = time_format(word(call.args[1]))
    if form is None:
        raise SYNTAX.refusal(
            "this format of a date is not supported", "Name each field once, without blanks at its ends."
        )
    pattern = SYNTAX.text(rf"\A{form.pattern}\z")
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
    return SYNTAX.clamped(f"transform(array(named_struct({fields})), f -> {body})[0]", Kind.TIMESTAMP, None)


def _to_boolean(call: FunctionCall, a: list[str]) -> str:
    if call.args[0].kind is not Kind.TEXT:
        return f"CAST({a[0]} AS BOOLEAN)"
    low = f"lower({a[0]})"
    truths, lies = "'t', 'true', 'y', 'yes', '1'", "'f', 'false', 'n', 'no', '0'"
    return f"CASE WHEN {low} IN ({truths}) THEN TRUE WHEN {low} IN ({lies}) THEN FALSE END"


CASTS: Mapping[str, Spelling] = {
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
