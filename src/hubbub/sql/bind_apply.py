"""Functions applied to bound arguments, and constants: with the limits inside which they are total and quick."""

import re
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from hubbub.core.schema import Kind, Value
from hubbub.sql import dates
from hubbub.sql.bind_scope import Context, Scope
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.functions import FUNCTIONS, build
from hubbub.sql.parse import quote
from hubbub.sql.rules import MAX_PLACES

MAX_LIST = 1_000
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

NULL = Literal(None, Kind.BOOLEAN)
_NUMBER = re.compile(r"(\d{1,40})(\.\d{0,40})?([eE][+-]?\d{1,3})?", re.ASCII)

#: Functions whose arguments meet in one kind; text constants beside dates are read as dates.
_MEETING = frozenset(
    {
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "is_distinct",
        "in",
        "between",
        "nullif",
        "coalesce",
        "greatest",
        "least",
        "case",
    }
)


def apply(ctx: Context, node: exp.Expr, name: str, args: list[Expr]) -> Expr:
    """Apply a function of the list to bound arguments, or say why it does not fit."""
    if name in _MEETING:
        args = _met(ctx, node, name, args)
    if any(isinstance(arg, Literal) and arg.value is None for arg in args) and name not in ("case", "coalesce"):
        raise ctx.refusal(
            node, "HB508", "NULL as a constant makes the whole expression NULL.", "Write IS NULL or IS NOT NULL."
        )
    _sensible(ctx, node, name, args)
    found = build(name, tuple(args))
    if found is None:
        constant = FUNCTIONS[name].constant
        if any(i < len(args) and not isinstance(args[i], Literal) for i in constant):
            raise ctx.refusal(
                node,
                "HB508",
                f"{quote(name)} takes constants here, not columns.",
                "Write the values; a list that depends on data can be a public table joined to.",
            )
        kinds = ", ".join(arg.kind.value for arg in args)
        raise ctx.refusal(
            node,
            "HB508",
            f"{quote(name)} cannot be applied to ({kinds}).",
            "Convert with CAST(x AS …), or check which columns are meant.",
        )
    ctx.weigh(found, node)
    return found


def _met(ctx: Context, node: exp.Expr, name: str, args: list[Expr]) -> list[Expr]:
    """Give NULLs the kind of their neighbors, read text constants beside dates as dates, and let dates meet times."""
    values = [i for i in range(len(args)) if name != "case" or i % 2 == 1 or i == len(args) - 1]
    kinds = {args[i].kind for i in values if not (isinstance(args[i], Literal) and args[i] == NULL)}
    dated = kinds & {Kind.DATE, Kind.TIMESTAMP}
    met = list(args)
    for i in values:
        arg = args[i]
        if isinstance(arg, Literal) and arg.value is None and kinds:
            met[i] = Literal(None, next(iter(kinds)) if len(kinds) == 1 else _widest(kinds))
        elif dated and isinstance(arg, Literal) and isinstance(arg.value, str):
            met[i] = dated_literal(ctx, node, arg.value, dated)
    if {arg.kind for i, arg in enumerate(met) if i in values} == {Kind.DATE, Kind.TIMESTAMP}:
        for i in values:
            if met[i].kind is Kind.DATE:
                met[i] = as_moment(ctx, node, met[i])
    return met


def _widest(kinds: set[Kind]) -> Kind:
    return next((k for k in (Kind.REAL, Kind.TIMESTAMP, Kind.TEXT) if k in kinds), Kind.REAL)


def as_moment(ctx: Context, node: exp.Expr, arg: Expr) -> Expr:
    """Take a date as the moment at which it begins."""
    if isinstance(arg, Literal):
        at = arg.value
        moment = datetime(at.year, at.month, at.day) if isinstance(at, date) else None
        return Literal(moment, Kind.TIMESTAMP)
    return apply(ctx, node, "to_timestamp", [arg])


def dated_literal(ctx: Context, node: exp.Expr, text: str, dated: set[Kind]) -> Literal:
    """Read a text constant that stands beside dates."""
    for kind in (Kind.DATE, Kind.TIMESTAMP):
        value = dates.read(text, kind)
        if value is not None and (kind is Kind.DATE or Kind.TIMESTAMP in dated):
            return Literal(value, kind)
    raise ctx.refusal(
        node,
        "HB508",
        f"{quote(text)} is not a date of the form 2024-02-29 (or a time 2024-02-29 12:30:00).",
        "Write it in that form; compare a DATE with a date without a time.",
    )


def _sensible(ctx: Context, node: exp.Expr, name: str, args: list[Expr]) -> None:
    """Hold constants that steer a function inside the limits in which it is total and quick."""
    constants = [arg.value if isinstance(arg, Literal) else None for arg in args]
    wrong = ""
    match name, constants[1:]:
        case "round", [int(places)] if abs(places) > MAX_PLACES:
            wrong = f"numbers are rounded to at most {MAX_PLACES} places"
        case "substr", [int(start), *rest] if start < 1 or any(
            isinstance(n, int) and not 0 <= n <= 10**6 for n in rest
        ):
            wrong = "a part of a text begins at 1 or later and has a length from 0 to 1,000,000"
        case "substr" | "left" | "right", [int(n), *_] if not 0 <= n <= 10**6:
            wrong = "a length is from 0 to 1,000,000"
        case "width_bucket", [low, high, int(count)] if not (_less(low, high) and 1 <= count <= 10**6):
            wrong = "the ends of the buckets must rise, and there are 1 to 1,000,000 of them"
        case "like", [str(pattern)] if "\\" in pattern:
            wrong = "a backslash in a pattern means different things in different dialects"
        case "like", [str(pattern)] if pattern.count("%") > MAX_WILDCARDS:
            wrong = f"a pattern has at most {MAX_WILDCARDS} signs %"
        case "in", rest if len(rest) > MAX_LIST:
            wrong = f"a list has at most {MAX_LIST} values; a longer one can be a public table joined to"
        case "day_shift", [int(days)] if abs(days) > MAX_SHIFT["day"]:
            wrong = "dates are moved by at most 200 years"
    if wrong:
        raise ctx.refusal(node, "HB508", f"This is outside what {quote(name)} takes: {wrong}.", "Change the constant.")


def _less(low: Value | None, high: Value | None) -> bool:
    return isinstance(low, int | Fraction) and isinstance(high, int | Fraction) and float(low) < float(high)


# --- constants ---


def literal(ctx: Context, _: Scope, node: exp.Expr) -> Expr:
    """Bind a constant as it is written."""
    text = str(node.this)
    if node.args.get("is_string"):
        return Literal(text, Kind.TEXT)
    found = _NUMBER.fullmatch(text)
    if not found:
        raise ctx.refusal(node, "HB508", f"{quote(text)} is not a number of reasonable length.", "Write fewer digits.")
    value = Fraction(text)
    if found[2] is None and found[3] is None:
        return whole_number(ctx, node, int(text))
    if value > Fraction(10) ** 300:
        raise ctx.refusal(node, "HB508", f"{quote(text)} is too large.", "Numbers go up to 1e300.")
    return Literal(value, Kind.REAL)


def whole_number(ctx: Context, node: exp.Expr, value: int) -> Literal:
    """Take a whole number that a double holds exactly."""
    if int(float(value)) != value:
        raise ctx.refusal(
            node,
            "HB508",
            f"Numbers are held as doubles, and {quote(str(value))} is not one exactly.",
            "Whole numbers are exact up to 9007199254740992; compare with a range instead.",
        )
    return Literal(value, Kind.INTEGER)


def boolean(_: Context, __: Scope, node: exp.Expr) -> Expr:
    """Bind TRUE or FALSE."""
    return Literal(bool(node.this), Kind.BOOLEAN)


def null(_: Context, __: Scope, ___: exp.Expr) -> Expr:
    """Bind NULL; it takes its kind from its neighbors."""
    return NULL


def parameter(ctx: Context, _: Scope, node: exp.Expr) -> Expr:
    """Bind ? or $1 to the value handed in."""
    name = node.name if isinstance(node, exp.Placeholder) else str(node.this.name)
    place = int(name) if name.isdecimal() and len(name) < 6 else 0
    if not 1 <= place <= len(ctx.parameters):
        raise ctx.refusal(
            node,
            "HB509",
            f"There is no value for this parameter: {len(ctx.parameters)} were handed in.",
            "Hand in one value for each ? or for $1, $2, …",
        )
    ctx.parameters_used.add(place)
    return constant(ctx, node, ctx.parameters[place - 1])


def constant(ctx: Context, node: exp.Expr, value: object) -> Literal:
    """Take a value that was handed in beside the text."""
    match value:
        case bool():
            return Literal(value, Kind.BOOLEAN)
        case int():
            return whole_number(ctx, node, value)
        case Fraction() if abs(value) <= Fraction(10) ** 300:
            return Literal(value, Kind.REAL)
        case str() if "\0" not in value and len(value) <= 10_000 and _encodes(value):
            return Literal(value, Kind.TEXT)
        case datetime() if value.tzinfo is None:
            return Literal(value, Kind.TIMESTAMP)
        case date() if not isinstance(value, datetime):
            return Literal(value, Kind.DATE)
    raise ctx.refusal(
        node,
        "HB509",
        f"A parameter of type {type(value).__name__} cannot be used, or not with this value.",
        "Hand in a bool, int, Fraction, str, date or a datetime without zone, of moderate size.",
    )


def _encodes(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)
