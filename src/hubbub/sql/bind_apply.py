"""Bind function calls and constants, within the limits in which functions are total and fast.

Tested in tests/sql/test_bind.py.
"""

import re
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from hubbub.core.schema import Kind, Value
from hubbub.sql import bind_numbers, dates
from hubbub.sql.bind_coerce import coerce
from hubbub.sql.bind_scope import Context, NameScope
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.functions import FUNCTIONS, build
from hubbub.sql.patterns import RULES, parts_of_text, size_of
from hubbub.sql.rules import MAX_PLACES
from hubbub.sql.text import quote

MAX_LIST = 1_000
MAX_REPLACEMENT = 8
#: Formats of dates whose parts are numbers.
_FORMAT = re.compile(r"(%[YmdHMS]|[-/. :T])+", re.ASCII)
MAX_WILDCARDS = 8
MAX_SHIFT = {
    "year": 200,
    "quarter": 800,
    "month": 2_400,
    "week": 10_400,
    "day": 73_000,
    "hour": 10**6,
    "minute": 10**8,
    "second": 10**9,
}

#: Operators as they are written in SQL, for messages.
_OPERATORS = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "intdiv": "//",
    "mod": "%",
    "neg": "-",
    "is_distinct": "IS DISTINCT FROM",
}

NULL = Literal(None, Kind.BOOLEAN)
_NUMBER = re.compile(r"(\d{1,40})(\.\d{0,40})?([eE][+-]?\d{1,3})?", re.ASCII)

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "in", "between")
#: Functions whose arguments share one kind; text constants next to dates are parsed as dates.
_SAME_KIND = frozenset({*_COMPARISONS, "nullif", "coalesce", "greatest", "least", "case"})


def apply(ctx: Context, node: exp.Expr, name: str, args: list[Expr]) -> Expr:
    """Apply a function of the allow-list to bound arguments."""
    if name in _SAME_KIND:
        args = _unify(ctx, node, name, args)
    if any(isinstance(arg, Literal) and arg.value is None for arg in args) and name not in ("case", "coalesce"):
        raise ctx.error(
            node, "HB508", "A constant NULL makes the whole expression NULL.", "Write IS NULL or IS NOT NULL."
        )
    _check_limits(ctx, node, name, args)
    if name in _COMPARISONS or name == "nullif":
        args = bind_numbers.settle(args)
    call = build(name, tuple(args))
    if call is None:
        shown = quote(_OPERATORS.get(name, name.upper()))
        positions = FUNCTIONS[name].constant
        if any(i < len(args) and not isinstance(args[i], Literal) for i in positions):
            raise ctx.error(
                node,
                "HB508",
                f"This argument of {shown} must be a constant, not a column.",
                "Write the values. For a list that is stored as data, join a public table.",
            )
        kinds = ", ".join(arg.kind.value for arg in args)
        raise ctx.error(
            node,
            "HB508",
            f"{shown} cannot be applied to these types: {kinds}.",
            "Convert the arguments with CAST(x AS …).",
        )
    constant = bind_numbers.fold(call)
    if constant is not None:
        return integer_literal(ctx, node, constant.value) if isinstance(constant.value, int) else constant
    exact = bind_numbers.exact(call)
    ctx.check_size(exact, node)
    return exact


def _unify(ctx: Context, node: exp.Expr, name: str, args: list[Expr]) -> list[Expr]:
    """Give NULLs the kind of the other arguments, and convert constants and dates next to dates and timestamps."""
    values = [i for i in range(len(args)) if name != "case" or i % 2 == 1 or i == len(args) - 1]
    args = coerce(name, args, values)
    kinds = {args[i].kind for i in values if not (isinstance(args[i], Literal) and args[i] == NULL)}
    dated = kinds & {Kind.DATE, Kind.TIMESTAMP}
    unified = list(args)
    for i in values:
        arg = args[i]
        if isinstance(arg, Literal) and arg.value is None and kinds:
            unified[i] = Literal(None, next(iter(kinds)) if len(kinds) == 1 else _widest(kinds))
        elif dated and isinstance(arg, Literal) and isinstance(arg.value, str):
            unified[i] = dated_literal(ctx, node, arg.value, dated)
    if {arg.kind for i, arg in enumerate(unified) if i in values} == {Kind.DATE, Kind.TIMESTAMP}:
        for i in values:
            if unified[i].kind is Kind.DATE:
                unified[i] = as_timestamp(ctx, node, unified[i])
    return unified


def _widest(kinds: set[Kind]) -> Kind:
    return next((k for k in (Kind.REAL, Kind.TIMESTAMP, Kind.TEXT) if k in kinds), Kind.REAL)


def as_timestamp(ctx: Context, node: exp.Expr, arg: Expr) -> Expr:
    """Convert a date to the timestamp of its midnight."""
    if isinstance(arg, Literal):
        day = arg.value
        midnight = datetime(day.year, day.month, day.day) if isinstance(day, date) else None
        return Literal(midnight, Kind.TIMESTAMP)
    return apply(ctx, node, "to_timestamp", [arg])


def dated_literal(ctx: Context, node: exp.Expr, text: str, dated: set[Kind]) -> Literal:
    """Parse a text constant next to dates."""
    for kind in (Kind.DATE, Kind.TIMESTAMP):
        value = dates.parse(text, kind)
        if value is not None and (kind is Kind.DATE or Kind.TIMESTAMP in dated):
            return Literal(value, kind)
    raise ctx.error(
        node,
        "HB508",
        f"{quote(text)} is not a valid date or timestamp.",
        "Write a date as 2024-02-29 and a timestamp as 2024-02-29 12:30:00. Compare a DATE with a date.",
    )


def _check_limits(  # noqa: C901 - one case a function
    ctx: Context, node: exp.Expr, name: str, args: list[Expr]
) -> None:
    """Check that constant arguments are within the limits in which a function is total and fast."""
    constants = [arg.value if isinstance(arg, Literal) else None for arg in args]
    problem = ""
    match name, constants[1:]:
        case "round", [int(places)] if abs(places) > MAX_PLACES:
            problem = f"round supports at most {MAX_PLACES} places"
        case "substr", [int(start), *rest] if start < 1 or any(
            isinstance(n, int) and not 0 <= n <= 10**6 for n in rest
        ):
            problem = "substr starts at 1 or later and has a length from 0 to 1,000,000"
        case "substr" | "left" | "right", [int(n), *_] if not 0 <= n <= 10**6:
            problem = f"the length in {name} must be from 0 to 1,000,000"
        case "width_bucket", [low, high, int(count)] if not (_less(low, high) and 1 <= count <= 10**6):
            problem = "width_bucket needs low < high and from 1 to 1,000,000 buckets"
        case "like", [str(pattern), *_] if "\\" in pattern:
            problem = "a LIKE pattern cannot contain a backslash, because its meaning depends on the dialect"
        case "like", [str(pattern), *_] if pattern.count("%") > MAX_WILDCARDS:
            problem = f"a LIKE pattern can contain at most {MAX_WILDCARDS} % signs"
        case "replace", [str(old), str(new)] if not old or len(new) > MAX_REPLACEMENT * len(old):
            problem = f"replace needs a text, and one in its place of at most {MAX_REPLACEMENT} times its length"
        case "split_part", [str(separator), int(part)] if not separator or not 1 <= part <= 1000:
            problem = "split_part needs a separator and a part from 1 to 1,000"
        case "regexp", [str(pattern)] if size_of(pattern) is None:
            problem = f"a regular expression {RULES}"
        case "regexp_extract", [str(pattern), int(group)] if not _extracts(pattern, group):
            problem = f"a regular expression of which a part is taken has no | and one group at most, and {RULES}"
        case "regexp_replace", [str(pattern), str(new), _] if not _replaces(pattern, new):
            problem = (
                f"a regular expression that is replaced has no | and matches no empty text, and {RULES}; the text in "
                f"its place has at most {MAX_REPLACEMENT} characters, without \\, $ and &"
            )
        case "parse_time", [str(form)] if not re.fullmatch(_FORMAT, form):
            problem = "a format consists of %Y, %m, %d, %H, %M, %S and separators"
        case "in", rest if len(rest) > MAX_LIST:
            problem = f"IN supports at most {MAX_LIST:,} values; for more, join a public table"
        case "day_shift", [int(days)] if abs(days) > MAX_SHIFT["day"]:
            problem = "a date can be shifted by at most 200 years"
    if problem:
        raise ctx.error(node, "HB508", f"Invalid constant: {problem}.", "Change the constant.")


def _extracts(pattern: str, group: int) -> bool:
    parts = parts_of_text(pattern)
    return parts is not None and (group == 0 or (group == 1 and parts[1] == 1))


def _replaces(pattern: str, new: str) -> bool:
    parts = parts_of_text(pattern)
    return parts is not None and parts[0] > 0 and len(new) <= MAX_REPLACEMENT and not set(new) & set("\\$&")


def _less(low: Value | None, high: Value | None) -> bool:
    return isinstance(low, int | Fraction) and isinstance(high, int | Fraction) and float(low) < float(high)


# --- constants ---------------------------------------------------------------------------------------------------


def literal(ctx: Context, _: NameScope, node: exp.Expr) -> Expr:
    """Bind a number or string in the text."""
    text = str(node.this)
    if node.args.get("is_string"):
        return Literal(text, Kind.TEXT)
    match = _NUMBER.fullmatch(text)
    if not match:
        raise ctx.error(
            node,
            "HB508",
            f"{quote(text)} is not a valid number, or has too many digits.",
            "Write fewer digits, and spaces around + and -.",
        )
    value = Fraction(text)
    if match[2] is None and match[3] is None:
        return integer_literal(ctx, node, int(text))
    if value > Fraction(10) ** 300:
        raise ctx.error(node, "HB508", f"{quote(text)} is too large.", "Use a number up to 1e300.")
    return Literal(value, Kind.REAL)


def integer_literal(ctx: Context, node: exp.Expr, value: int) -> Literal:
    """Make a constant of an integer that a double represents exactly."""
    if int(float(value)) != value:
        raise ctx.error(
            node,
            "HB508",
            f"{quote(str(value))} cannot be represented exactly as a double.",
            "Use an integer up to 9007199254740992, or compare with a range.",
        )
    return Literal(value, Kind.INTEGER)


def boolean(_: Context, __: NameScope, node: exp.Expr) -> Expr:
    """Bind TRUE or FALSE."""
    return Literal(bool(node.this), Kind.BOOLEAN)


def null(_: Context, __: NameScope, ___: exp.Expr) -> Expr:
    """Bind NULL, which takes its kind from the other arguments."""
    return NULL


def parameter(ctx: Context, _: NameScope, node: exp.Expr) -> Expr:
    """Bind ? or $1 to its value."""
    name = node.name if isinstance(node, exp.Placeholder) else str(node.this.name)
    number = int(name) if name.isdecimal() and len(name) < 6 else 0
    if not 1 <= number <= len(ctx.parameters):
        raise ctx.error(
            node,
            "HB509",
            f"This parameter has no value: {len(ctx.parameters)} values were passed.",
            "Pass one value for each ?, or for $1, $2, ….",
        )
    ctx.parameters_used.add(number)
    return constant(ctx, node, ctx.parameters[number - 1])


def constant(ctx: Context, node: exp.Expr, value: object) -> Literal:
    """Make a constant of a parameter's value."""
    match value:
        case bool():
            return Literal(value, Kind.BOOLEAN)
        case int():
            return integer_literal(ctx, node, value)
        case Fraction() if abs(value) <= Fraction(10) ** 300:
            return Literal(value, Kind.REAL)
        case str() if "\0" not in value and len(value) <= 10_000 and _encodes(value):
            return Literal(value, Kind.TEXT)
        case datetime() if value.tzinfo is None:
            return Literal(value, Kind.TIMESTAMP)
        case date() if not isinstance(value, datetime):
            return Literal(value, Kind.DATE)
    raise ctx.error(
        node,
        "HB509",
        f"This parameter has an unsupported type or value ({type(value).__name__}).",
        "Pass a bool, int, Fraction, str (up to 10,000 characters), date, or datetime without a time zone.",
    )


def _encodes(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)
