"""Bound scalar expressions, the only source of the SQL expressions that reach an engine.

Each expression has a kind and facts about its value, derived from declarations by interval arithmetic, from which
clamping bounds and sensitivities follow. Privacy does not depend on these facts: the engine clamps every row again.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind, Value

#: A finite list of values; a long list of consecutive integers is a range, which takes no memory.
Values = tuple[Value, ...] | range


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about every value of an expression other than NULL, from declarations and the query alone.

    values   a finite list that contains every value; GROUP BY then needs no partition selection
    step     every value is a multiple of this (1 for an integer)
    null     NULL is possible, and is a group of its own
    auto     the bounds of a column are a public maximum, and queries find closer ones
    required the owner declares that a column has no NULL; not in the text form, by which terms of measures are ordered
    """

    bounds: Bounds | None = None
    values: Values | None = None
    step: Fraction | None = None
    null: bool = False
    auto: bool = False
    required: bool = field(default=False, repr=False)


UNKNOWN = Facts()


@dataclass(frozen=True, slots=True)
class Col:
    """A column of the relation over which the expression is evaluated; `name` is unique there."""

    name: str
    kind: Kind
    facts: Facts = UNKNOWN


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; None is NULL."""

    value: Value | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function or operator of the allow-list with its arguments (of `case`: condition, value, …, else)."""

    function: str
    args: tuple["Expr", ...]
    kind: Kind
    facts: Facts = UNKNOWN


Expr = Col | Literal | FunctionCall

_RELEASED = "$released"


def released_value(place: int, kind: Kind) -> Col:
    """Return the noisy value of an earlier release of the same statement: a number of which nothing is known.

    It is a column without facts, so that no plan, bound or group depends on it. Names of other columns end in `_` and a
    number.
    """
    return Col(released_name(place), kind, Facts(null=True))


def released_name(place: int) -> str:
    """Return the name of the noisy value of a release, or of the table of its noisy values."""
    return f"{_RELEASED}{place}"


def released_place(name: str) -> int | None:
    """Return which release gives the value of a column; None for a column of a relation."""
    place = name.removeprefix(_RELEASED)
    return int(place) if place != name and place.isdecimal() else None


def finds_bounds(expr: Expr) -> bool:
    """Return whether an expression reads a column with `bounds: auto`."""
    if isinstance(expr, Col):
        return expr.facts.auto
    return isinstance(expr, FunctionCall) and any(map(finds_bounds, expr.args))


def facts(expr: Expr) -> Facts:
    """Return the facts about an expression's value."""
    if not isinstance(expr, Literal):
        return expr.facts
    if expr.value is None:
        return UNKNOWN
    if isinstance(expr.value, int | Fraction) and not isinstance(expr.value, bool):
        number = Fraction(expr.value)
        return Facts(Bounds(number, number), (expr.value,), abs(number) or Fraction(1))
    return Facts(values=(expr.value,))
