"""Bind functions that write text: padding, repetition, and the text of dates, all of them made of simpler functions.

How long a result can get follows from constants of the query, so that no row decides how much text is written.

Tested in tests/sql/test_bind_text.py.
"""

import calendar
import re
from collections.abc import Callable

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_apply import NULL, apply
from hubbub.sql.bind_scope import Context
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.nodes import TEXT_NODES

#: The longest text to which another is filled up.
MAX_PADDING = 100
#: The most times that a text is repeated.
MAX_REPEATED = 16
_FIELD = re.compile(r"%(.)|([^%]+)", re.ASCII)
_MONTHS = tuple(calendar.month_name[1:])
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
#: Numbers in a date format: the function and the number of digits.
_NUMBERS = {"Y": ("year", 4), "m": ("month", 2), "d": ("day", 2), "j": ("dayofyear", 3), "H": ("hour", 2)} | {
    "M": ("minute", 2),
    "S": ("second", 2),
}
#: In these dialects a format for a month's or a day's name gives it with blanks or in other letters.
_OTHER_NAMES = ("postgres",)


def _text(value: str) -> Literal:
    return Literal(value, Kind.TEXT)


def _integer(value: int) -> Literal:
    return Literal(value, Kind.INTEGER)


def escaped_pattern(ctx: Context, node: exp.Expr, pattern: str, sign: str) -> list[Expr]:
    """Write a pattern with `!` as its escape character, if it needs one."""
    signs, chars = list[tuple[str, bool]](), iter(pattern)
    for char in chars:
        meant = next(chars, "") if char == sign else char
        if char == sign and meant not in ("%", "_", sign):
            raise ctx.error(node, "HB508", "The escape character must precede %, _ or itself.", "Change the pattern.")
        signs.append((meant, char == sign and meant in "%_"))
    if not any(escaped for _, escaped in signs):
        return [Literal("".join(meant for meant, _ in signs), Kind.TEXT)]
    written = "".join(f"!{meant}" if escaped or meant == "!" else meant for meant, escaped in signs)
    return [Literal(written, Kind.TEXT), Literal("!", Kind.TEXT)]


def as_text(ctx: Context, node: exp.Expr, part: Expr) -> Expr:
    """Convert a value that is joined with texts to text, if every dialect writes it in the same way."""
    if isinstance(part, Literal) and isinstance(part.value, int) and not isinstance(part.value, bool):
        return _text(str(part.value))
    if part.kind not in (Kind.INTEGER, Kind.DATE) or isinstance(part, Literal):
        return part
    return apply(ctx, node, "to_text", [part])


def joined(ctx: Context, node: exp.Expr, parts: list[Expr]) -> Expr:
    """Join texts."""
    return parts[0] if len(parts) == 1 else apply(ctx, node, "concat", parts)


def pad(ctx: Context, node: exp.Expr, text: Expr) -> Expr:
    """Bind LPAD and RPAD: fill a text up to a constant length, or cut it."""
    size = _whole(ctx, node, node.args.get("expression"), "length", MAX_PADDING)
    fill = node.args.get("fill_pattern")
    written = " " if fill is None else str(fill.this) if isinstance(fill, exp.Literal) and fill.is_string else ""
    if not written or (node.args.get("is_left") and len(written) != 1):
        raise ctx.error(
            node,
            "HB508",
            "LPAD fills up with one character, and RPAD with a constant text.",
            "Write LPAD(x, 5, '0').",
        )
    filling, text = _text((written * size)[:size]), as_text(ctx, node, text)
    if not size:
        return apply(ctx, node, "left", [text, _integer(0)])
    if not node.args.get("is_left"):
        return apply(ctx, node, "left", [apply(ctx, node, "concat", [text, filling]), _integer(size)])
    full = apply(ctx, node, "ge", [apply(ctx, node, "length", [text]), _integer(size)])
    filled = apply(ctx, node, "right", [apply(ctx, node, "concat", [filling, text]), _integer(size)])
    return apply(ctx, node, "case", [full, apply(ctx, node, "left", [text, _integer(size)]), filled])


def repeated(ctx: Context, node: exp.Expr, text: Expr) -> Expr:
    """Bind REPEAT with a constant number of times."""
    times = _whole(ctx, node, node.args.get("times"), "number of times", MAX_REPEATED)
    if isinstance(text, Literal):
        return _text(str(text.value) * times)
    text = as_text(ctx, node, text)
    return joined(ctx, node, [text] * times) if times else apply(ctx, node, "left", [text, _integer(0)])


def _whole(ctx: Context, node: exp.Expr, part: exp.Expr | None, what: str, most: int) -> int:
    written = str(part.this) if isinstance(part, exp.Literal) and not part.is_string else ""
    if not (written.isdecimal() and len(written) < 6 and int(written) <= most):
        raise ctx.error(
            node,
            "HB508",
            f"The {what} must be a constant from 0 to {most}.",
            "Write the number, as in LPAD(x, 5, '0').",
        )
    return int(written)


def date_text(ctx: Context, node: exp.Expr, date: Expr) -> Expr:
    """Bind STRFTIME, TO_CHAR, FORMAT_DATE, DATE_FORMAT and FORMAT: the text of a date in a constant format."""
    form = node.args.get("format")
    if not isinstance(form, exp.Literal) or date.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise _unknown_format(ctx, node)
    text = str(form.this)
    text = text.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    parts, place = list[Expr](), 0
    for found in _FIELD.finditer(text):
        place = found.end()
        letter, plain = found.groups()
        if plain is not None and re.search(r"[^\W_]", plain):
            raise _unknown_format(ctx, node)
        parts.append(_text(plain) if plain is not None else _field(ctx, node, letter, date))
    if place != len(text) or not any(not isinstance(part, Literal) for part in parts):
        raise _unknown_format(ctx, node)
    return joined(ctx, node, parts)


def _field(ctx: Context, node: exp.Expr, letter: str, date: Expr) -> Expr:
    if letter in _NUMBERS:
        name, digits = _NUMBERS[letter]
        number = apply(ctx, node, "to_text", [apply(ctx, node, name, [date])])
        zeros = _text("0" * (digits - 1))
        return apply(ctx, node, "right", [apply(ctx, node, "concat", [zeros, number]), _integer(digits)])
    if letter not in "bBaA" or ctx.dialect in _OTHER_NAMES:
        raise _unknown_format(ctx, node)
    return _name(ctx, node, date, _MONTHS if letter in "bB" else _DAYS, short=letter in "ba")


def _name(ctx: Context, node: exp.Expr, date: Expr, names: tuple[str, ...], *, short: bool) -> Expr:
    of_month = names is _MONTHS
    number = apply(ctx, node, "month" if of_month else "dow", [date])
    branches = list[Expr]()
    for place, name in enumerate(names, start=int(of_month)):
        branches += [apply(ctx, node, "eq", [number, _integer(place)]), _text(name[:3] if short else name)]
    return apply(ctx, node, "case", [*branches, NULL])


def name_of_date(ctx: Context, node: exp.Expr, date: Expr) -> Expr:
    """Bind DAYNAME and MONTHNAME."""
    names = _MONTHS if isinstance(node, exp.Monthname) else _DAYS
    return _name(ctx, node, date, names, short=False)


def _unknown_format(ctx: Context, node: exp.Expr) -> Exception:
    return ctx.error(
        node,
        "HB508",
        "The text of a date needs a constant format of %Y, %m, %d, %j, %H, %M, %S, %b, %B, %a and %A, and signs "
        "between them. In PostgreSQL's dialect, which fills up names with blanks, it cannot have names.",
        "Write STRFTIME(d, '%Y-%m'), or group by DATE_TRUNC('month', d).",
    )


def concat(ctx: Context, node: exp.Expr, parts: list[Expr]) -> Expr:
    """Bind the function concat, which treats NULL as empty text (the operator || returns NULL)."""
    texts = [as_text(ctx, node, part) for part in parts]
    filled = [part if isinstance(part, Literal) else apply(ctx, node, "coalesce", [part, _text("")]) for part in texts]
    return apply(ctx, node, "concat", filled)


def piped(ctx: Context, node: exp.Expr, parts: list[Expr]) -> Expr:
    """Bind the operator ||; a number beside a text is written as text, where the dialect does so."""
    return apply(ctx, node, "concat", [as_text(ctx, node, part) for part in parts])


JOINED: dict[type[exp.Expr], Callable[[Context, exp.Expr, list[Expr]], Expr]] = {exp.Concat: concat, exp.DPipe: piped}
TEXTS: dict[type[exp.Expr], Callable[[Context, exp.Expr, Expr], Expr]] = {
    exp.Pad: pad,
    exp.Repeat: repeated,
    exp.TimeToStr: date_text,
    exp.Dayname: name_of_date,
    exp.Monthname: name_of_date,
}
if TEXTS.keys() != TEXT_NODES.keys():
    raise AssertionError("every node of text functions has a rule")
