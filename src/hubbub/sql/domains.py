"""The finite list of values of an expression, computed from all values of its parts.

A key with such a list needs no partition selection. Parts are columns with declared values, booleans, integers and
dates with bounds, and subexpressions that are integers with bounds.

Tested in tests/sql/test_bind.py and tests/sql/test_functions.py.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

from hubbub.core import deadline
from hubbub.core.schema import Kind, Value
from hubbub.sql import dates
from hubbub.sql.evaluate import Scalar, UnknownValueError, evaluate, exact, scalar
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, Values, facts
from hubbub.sql.nulls import nullable
from hubbub.sql.rules import is_integer, range_of, values_of_case

#: Maximum length of a list.
MAX_VALUES = 1_000_000
#: Maximum number of consecutive integers, which are not listed one by one.
MAX_RANGE = 10_000_000
#: Up to this many consecutive integers are a list like any other.
_SHORT = 1_000
#: Maximum number of combinations of parts to compute for a key; beyond it, only bounds are used.
MAX_COMBINATIONS = 100_000
#: The same for a column of a subquery, which may never become a key.
MAX_SUBQUERY_COMBINATIONS = 2_000


def with_values(expr: Expr, limit: int = MAX_COMBINATIONS) -> Expr:
    """Add the finite list of values to the facts of an expression, if there is one."""
    if isinstance(expr, Literal) or expr.facts.values is not None:
        return expr
    listed = values(expr, limit)
    return expr if listed is None else replace(expr, facts=replace(expr.facts, values=listed))


def values(expr: Expr, limit: int = MAX_COMBINATIONS) -> Values | None:
    """List all values of an expression other than NULL; None if there is no list of moderate length."""
    if isinstance(expr, FunctionCall):
        computed = _computed(expr, limit)
        if expr.function == "case":
            return _branches(expr, computed, limit)
        if computed is not None:
            return computed
        if expr.function == "date_trunc":
            return _truncated(expr)
        if expr.function == "round":
            return _rounded(expr)
    return _listed(expr)


def _span(expr: Expr) -> tuple[int, int] | None:
    """Return the first and last integer (or day) of a part, from its facts alone."""
    if expr.kind is not Kind.DATE and not is_integer(expr):
        return None
    within = range_of(expr)
    if (
        within.low is None
        or within.high is None
        or within.high - within.low >= (MAX_RANGE if expr.kind is Kind.INTEGER else MAX_VALUES)
    ):
        return None
    low, high = math.ceil(within.low), math.floor(within.high)
    return (low, high) if max(-low, high) <= 2**53 else None


def _count(expr: Expr) -> int | None:
    """Count the values of a part without listing them; None if there is no list."""
    known = facts(expr).values
    if known is not None or expr.kind is Kind.BOOLEAN:
        return 2 if known is None else len(known)
    span = _span(expr)
    return None if span is None else span[1] - span[0] + 1


def _listed(expr: Expr) -> Values | None:
    """List the values of a part from its facts alone."""
    known = facts(expr).values
    if known is not None or expr.kind is Kind.BOOLEAN:
        return (False, True) if known is None else known
    span = _span(expr)
    if span is None:
        return None
    numbers = range(span[0], span[1] + 1)
    if expr.kind is Kind.INTEGER:
        return numbers if len(numbers) > _SHORT else tuple(numbers)
    if expr.kind is Kind.REAL:
        return tuple(Fraction(n) for n in numbers)
    first = dates.timestamp(Fraction(span[0]), Kind.DATE).date()
    return tuple(first + timedelta(days=n) for n in range(len(numbers)))


def _parts(expr: Expr, root: Expr) -> Iterator[Expr]:
    """Yield the columns and, where a column has no list, the smallest subexpressions that have one."""
    if isinstance(expr, Literal):
        return
    if isinstance(expr, Col):
        if _count(expr) is None:
            raise UnknownValueError
        yield expr
        return
    try:
        yield from list(itertools.chain.from_iterable(_parts(arg, root) for arg in expr.args))
    except UnknownValueError:
        if expr is root or _count(expr) is None:
            raise
        yield expr


def _combinations(parts: Sequence[Expr]) -> int:
    return math.prod((_count(part) or 0) + 1 for part in parts)


def _coarse_parts(expr: Expr, root: Expr, limit: int) -> list[Expr]:
    """List parts with fewer values: in place of too many combinations, the subexpression that is computed from them.

    Its values are then all integers within its range, which may be more than it can have, but never fewer.
    """
    whole = expr is not root and _count(expr) is not None
    try:
        parts = [
            part
            for arg in (expr.args if isinstance(expr, FunctionCall) else ())
            for part in _coarse_parts(arg, root, limit)
        ] or list(_parts(expr, root))
    except UnknownValueError:
        if not whole:
            raise
        return [expr]
    return [expr] if whole and _combinations(tuple(dict.fromkeys(parts))) > limit else parts


def _computed(expr: FunctionCall, limit: int) -> tuple[Value, ...] | None:
    try:
        results = dict.fromkeys(exact(value, expr.kind) for value in _results(expr, limit, any_null=True))
    except UnknownValueError:
        return None
    return _in_order(tuple(value for value in results if value is not None), expr.kind)


def null_is_possible(expr: Expr, limit: int = MAX_COMBINATIONS) -> bool:
    """Tell whether an expression can be NULL, given which of its columns can: by trying all values, if there are few.

    A part that is not known to be NULL is NULL in rows that belong to no group, such as those with an unlisted value.
    """
    if not nullable(expr) or not isinstance(expr, FunctionCall):
        return nullable(expr)
    try:
        return any(value is None for value in _results(expr, limit, any_null=False))
    except UnknownValueError:
        return True


def _results(expr: FunctionCall, limit: int, *, any_null: bool) -> Iterator[Scalar]:
    """Compute an expression for all values of its parts, and for NULL where a part can be NULL (or, if asked, may)."""
    parts = list(dict.fromkeys(_parts(expr, expr)))
    if _combinations(parts) > limit:
        parts = list(dict.fromkeys(_coarse_parts(expr, expr, limit)))
    if _combinations(parts) > limit:
        raise UnknownValueError
    names = [f"${i}" for i in range(len(parts))]
    named = _substitute(expr, {part: Col(name, part.kind) for part, name in zip(parts, names, strict=True)})
    choices: list[list[Scalar]] = [
        [*(scalar(value) for value in _listed(part) or ()), *([None] if any_null or nullable(part) else [])]
        for part in parts
    ]
    for chosen in itertools.product(*choices):
        yield _evaluate(named, dict(zip(names, chosen, strict=True)))


def _evaluate(expr: Expr, values: dict[str, Scalar]) -> Scalar:
    deadline.check()
    return evaluate(expr, values)


def _substitute(expr: Expr, names: dict[Expr, Col]) -> Expr:
    if expr in names:
        return names[expr]
    return (
        replace(expr, args=tuple(_substitute(arg, names) for arg in expr.args))
        if isinstance(expr, FunctionCall)
        else expr
    )


def _in_order(listed: tuple[Value, ...], kind: Kind) -> tuple[Value, ...]:
    """Sort numbers and dates; text keeps the order of its declaration or of the query."""
    return listed if kind is Kind.TEXT else tuple(sorted(listed))


def _branches(expr: FunctionCall, computed: tuple[Value, ...] | None, limit: int) -> tuple[Value, ...] | None:
    """List the values of the branches of a CASE, whatever its conditions are, in the order of the query."""
    lists = [values(value, limit) for value in values_of_case(expr.args)]
    if any(listed is None or len(listed) > MAX_VALUES for listed in lists):
        return computed
    branches = tuple(dict.fromkeys(value for listed in lists for value in listed or ()))
    if computed is not None:
        reachable = set(computed)
        branches = tuple(value for value in branches if value in reachable)
    return _in_order(branches, expr.kind) if len(branches) <= MAX_VALUES else None


def _truncated(expr: FunctionCall) -> tuple[Value, ...] | None:
    unit, part = expr.args
    within = range_of(part)
    if within.low is None or within.high is None or not (isinstance(unit, Literal) and isinstance(unit.value, str)):
        return None
    current: datetime | None = dates.floor_to(unit.value, dates.timestamp(within.low, part.kind))
    last, starts = dates.timestamp(within.high, part.kind), list[Value]()
    while current is not None and current <= last:
        starts.append(current)
        if len(starts) > MAX_COMBINATIONS:
            return None
        current = dates.next_start(unit.value, current)
    return tuple(starts)


def _rounded(expr: FunctionCall) -> tuple[Value, ...] | None:
    """List the multiples within the bounds of a rounded number, computed as the engine does."""
    within = range_of(expr)
    places = expr.args[1].value if len(expr.args) > 1 and isinstance(expr.args[1], Literal) else 0
    if within.low is None or within.high is None or not isinstance(places, int):
        return None
    scale = Fraction(10) ** places
    first, last = round(within.low * scale), round(within.high * scale)
    if last - first > MAX_COMBINATIONS:
        return None
    size = 10.0 ** abs(places)
    multiples = (float(n) / size if places >= 0 else float(n) * size for n in range(first, last + 1))
    return tuple(Fraction(n) for n in multiples)
