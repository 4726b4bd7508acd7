"""Scalar expressions after binding: a small closed language. The engine sees only what is rendered from it.

Each node knows its kind and the facts that hold for its value, derived from the declared ones by interval arithmetic,
so that an aggregate can be clamped and its sensitivity stated. A fact is never trusted for privacy: the aggregate
clamps once more, row by row, in the engine.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.schema import Bounds, Kind, Value


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of every non-NULL value of an expression, from declarations and the query alone.

    values   a finite list that contains it; what a GROUP BY without discovery needs
    step     it is a multiple of this (an integer has step 1)
    """

    bounds: Bounds | None = None
    values: tuple[Value, ...] | None = None
    step: Fraction | None = None


UNKNOWN = Facts()


@dataclass(frozen=True, slots=True)
class Col:
    """A column of the relation that the expression is evaluated over; `name` is unique there."""

    name: str
    kind: Kind
    facts: Facts = UNKNOWN


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the query; None is NULL."""

    value: Value | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of the allow-list applied to arguments (`case` is cond, value, …, else)."""

    function: str
    args: tuple["Expr", ...]
    kind: Kind
    facts: Facts = UNKNOWN


Expr = Col | Literal | Call


def facts(expr: Expr) -> Facts:
    """Give what is known of an expression's value."""
    if not isinstance(expr, Literal):
        return expr.facts
    if expr.value is None:
        return UNKNOWN
    if isinstance(expr.value, int | Fraction) and not isinstance(expr.value, bool):
        number = Fraction(expr.value)
        return Facts(Bounds(number, number), (expr.value,), abs(number) or Fraction(1))
    return Facts(values=(expr.value,))
