"""Convert constants, and values compared with constants, to the kind of the values beside them.

SQL reads '35' beside a number as 35, 1 beside a boolean as TRUE, and a text beside a number constant as a number.

Tested in tests/sql/test_spellings.py.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.functions import build

_NUMBER = re.compile(r"\s*([+-]?)(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE]([+-]?\d{1,3}))?\s*", re.ASCII)
_TRUTHS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(("f", "false", "n", "no", "0"), False)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "in", "between")


def coerce(name: str, args: Sequence[Expr], places: Sequence[int]) -> list[Expr]:
    """Convert the arguments at some places to a common kind, where SQL does."""
    kinds = {args[i].kind for i in places if not _is_null(args[i])}
    if len({Kind.REAL if kind.numeric else kind for kind in kinds}) != 2:
        return list(args)
    converted = list(args)
    for i in places:
        if _is_null(args[i]):
            continue
        if Kind.BOOLEAN in kinds:
            numbers = kinds != {Kind.BOOLEAN, Kind.TEXT} and not _all_truths(args, places, name)
            converted[i] = _as_number(args[i]) if numbers else _as_truth(args[i])
        elif Kind.TEXT in kinds and any(kind.numeric for kind in kinds):
            converted[i] = _from_text(name, args, places, args[i])
    return converted


def number(text: str) -> Literal | None:
    """Read a text constant as a number.

    >>> number("35"), number("x")
    (Literal(value=35, kind=<Kind.INTEGER: 'integer'>), None)
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    value = Fraction(match[2]) * Fraction(10) ** int(match[3] or 0) * (-1 if match[1] == "-" else 1)
    if "." in text or match[3] is not None or abs(value) > 2**53:
        return Literal(value, Kind.REAL) if abs(value) < Fraction(10) ** 300 else None
    return Literal(int(value), Kind.INTEGER)


def _is_null(arg: Expr) -> bool:
    return isinstance(arg, Literal) and arg.value is None


def _all_truths(args: Sequence[Expr], places: Sequence[int], name: str) -> bool:
    """Tell whether booleans are compared with the constants 0 and 1 only."""
    others = [args[i] for i in places if args[i].kind.numeric]
    return name in _COMPARISONS and all(isinstance(arg, Literal) and arg.value in (0, 1) for arg in others)


def _as_truth(arg: Expr) -> Expr:
    if not isinstance(arg, Literal) or arg.kind is Kind.BOOLEAN:
        return arg
    value = _TRUTHS.get(arg.value.strip().lower()) if isinstance(arg.value, str) else bool(arg.value)
    return arg if value is None else Literal(value, Kind.BOOLEAN)


def _as_number(arg: Expr) -> Expr:
    if arg.kind is not Kind.BOOLEAN:
        return arg
    if isinstance(arg, Literal):
        return Literal(int(arg.value is True), Kind.INTEGER)
    return build("to_integer", (arg, Literal(64, Kind.INTEGER))) or arg


def _from_text(name: str, args: Sequence[Expr], places: Sequence[int], arg: Expr) -> Expr:
    """Convert a text constant beside numbers, or a text that is compared with number constants."""
    if arg.kind is not Kind.TEXT:
        return arg
    if isinstance(arg, Literal):
        return (number(arg.value) if isinstance(arg.value, str) else None) or arg
    constants = all(isinstance(args[i], Literal) for i in places if args[i].kind is not Kind.TEXT)
    return (build("to_real", (arg,)) or arg) if constants and name in _COMPARISONS else arg
