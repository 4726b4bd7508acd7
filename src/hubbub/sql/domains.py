"""Finite expressions: the list of values that one can take, found by computing it over all values of its parts.

A key whose values are known in advance needs no discovery. Parts are columns with a declared list, truth values, whole
numbers and dates with bounds, and sub-expressions that are themselves known to be whole numbers within bounds.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

from hubbub.core import deadline as patience
from hubbub.core.schema import Kind, Value
from hubbub.sql import dates
from hubbub.sql.evaluate import Scalar, Unsure, evaluate, public, scalar
from hubbub.sql.expressions import Call, Col, Expr, Literal, facts
from hubbub.sql.rules import range_of, values_of_case, whole

#: No list is longer.
MOST_VALUES = 1_000_000
#: Combinations of parts that are computed one by one for a key; beyond, only what bounds tell is known.
MOST_COMBINATIONS = 100_000
#: The same for a column of a sub-query, which may never be a key.
FEW_COMBINATIONS = 2_000


def with_values(expr: Expr, most: int = MOST_COMBINATIONS) -> Expr:
    """Give the expression with its finite list of values among its facts, where there is one."""
    if isinstance(expr, Literal) or expr.facts.values is not None:
        return expr
    found = values(expr, most)
    return expr if found is None else replace(expr, facts=replace(expr.facts, values=found))


def values(expr: Expr, most: int = MOST_COMBINATIONS) -> tuple[Value, ...] | None:
    """List every value other than NULL that an expression can take; None if there is no list of moderate length."""
    if isinstance(expr, Call):
        computed = _computed(expr, most)
        if expr.function == "case":
            return _branches(expr, computed, most)
        if computed is not None:
            return computed
        if expr.function == "date_trunc":
            return _truncated(expr)
        if expr.function == "round":
            return _rounded(expr)
    return _listed(expr)


def _span(expr: Expr) -> tuple[int, int] | None:
    """Give the ends between which all whole numbers (or days) are the values of a part, by its facts alone."""
    if expr.kind is not Kind.DATE and not whole(expr):
        return None
    within = range_of(expr)
    if within.low is None or within.high is None or within.high - within.low >= MOST_VALUES:
        return None
    low, high = math.ceil(within.low), math.floor(within.high)
    return (low, high) if max(-low, high) <= 2**53 else None


def _count(expr: Expr) -> int | None:
    """Count the values of a part without writing them down; None if there is no list."""
    known = facts(expr).values
    if known is not None or expr.kind is Kind.BOOLEAN:
        return 2 if known is None else len(known)
    span = _span(expr)
    return None if span is None else span[1] - span[0] + 1


def _listed(expr: Expr) -> tuple[Value, ...] | None:
    """List the values of a part by its facts alone."""
    known = facts(expr).values
    if known is not None or expr.kind is Kind.BOOLEAN:
        return (False, True) if known is None else known
    span = _span(expr)
    if span is None:
        return None
    numbers = range(span[0], span[1] + 1)
    if expr.kind is Kind.INTEGER:
        return tuple(numbers)
    if expr.kind is Kind.REAL:
        return tuple(Fraction(n) for n in numbers)
    first = dates.moment(Fraction(span[0]), Kind.DATE).date()
    return tuple(first + timedelta(days=n) for n in range(len(numbers)))


def _parts(expr: Expr, root: Expr) -> Iterator[Expr]:
    """Give the columns and, where a column has no list, the smallest sub-expressions that have one."""
    if isinstance(expr, Literal):
        return
    if isinstance(expr, Col):
        if _count(expr) is None:
            raise Unsure
        yield expr
        return
    try:
        yield from list(itertools.chain.from_iterable(_parts(arg, root) for arg in expr.args))
    except Unsure:
        if expr is root or _count(expr) is None:
            raise
        yield expr


def _computed(expr: Call, most: int) -> tuple[Value, ...] | None:
    try:
        parts = list(dict.fromkeys(_parts(expr, expr)))
        if math.prod((_count(part) or 0) + 1 for part in parts) > most:
            return None
        lists = [_listed(part) or () for part in parts]
        names = [f"${i}" for i in range(len(parts))]
        named = _replaced(expr, {part: Col(name, part.kind) for part, name in zip(parts, names, strict=True)})
        choices: list[list[Scalar]] = [[*(scalar(value) for value in found), None] for found in lists]
        found = dict.fromkeys(
            public(value, expr.kind)
            for chosen in itertools.product(*choices)
            if (value := _one(named, dict(zip(names, chosen, strict=True)))) is not None
        )
    except Unsure:
        return None
    return _in_order(tuple(value for value in found if value is not None), expr.kind)


def _one(expr: Expr, values: dict[str, Scalar]) -> Scalar:
    patience.check()
    return evaluate(expr, values)


def _replaced(expr: Expr, names: dict[Expr, Col]) -> Expr:
    if expr in names:
        return names[expr]
    return replace(expr, args=tuple(_replaced(arg, names) for arg in expr.args)) if isinstance(expr, Call) else expr


def _in_order(found: tuple[Value, ...], kind: Kind) -> tuple[Value, ...]:
    """Sort numbers and dates; text stays in the order in which its parts were declared or written."""
    return found if kind is Kind.TEXT else tuple(sorted(found))


def _branches(expr: Call, computed: tuple[Value, ...] | None, most: int) -> tuple[Value, ...] | None:
    """A CASE is one of its branches, whatever its conditions are about; in the order in which they are written."""
    lists = [values(value, most) for value in values_of_case(expr.args)]
    if any(listed is None for listed in lists):
        return computed
    found = tuple(dict.fromkeys(value for listed in lists for value in listed or ()))
    if computed is not None:
        reached = set(computed)
        found = tuple(value for value in found if value in reached)
    return _in_order(found, expr.kind) if len(found) <= MOST_VALUES else None


def _truncated(expr: Call) -> tuple[Value, ...] | None:
    unit, part = expr.args
    within = range_of(part)
    if within.low is None or within.high is None or not (isinstance(unit, Literal) and isinstance(unit.value, str)):
        return None
    current = dates.floor_to(unit.value, dates.moment(within.low, part.kind))
    last, found = dates.moment(within.high, part.kind), list[Value]()
    following: datetime | None = current
    while following is not None and following <= last:
        found.append(following)
        if len(found) > MOST_COMBINATIONS:
            return None
        following = dates.following(unit.value, following)
    return tuple(found)


def _rounded(expr: Call) -> tuple[Value, ...] | None:
    """A bounded number rounded to some places: every multiple between its ends, computed as the engine does."""
    within = range_of(expr)
    places = expr.args[1].value if len(expr.args) > 1 and isinstance(expr.args[1], Literal) else 0
    if within.low is None or within.high is None or not isinstance(places, int):
        return None
    scale = Fraction(10) ** places
    first, last = round(within.low * scale), round(within.high * scale)
    if last - first > MOST_COMBINATIONS:
        return None
    size = 10.0 ** abs(places)
    found = (float(n) / size if places >= 0 else float(n) * size for n in range(first, last + 1))
    return tuple(Fraction(n) for n in found)
