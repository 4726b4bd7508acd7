"""Where releases tell neighboring values of a column apart: cuts show that most earlier releases cannot help a query.

A cut lies between two values of a column. Everything here reads descriptions and declarations, never noisy numbers.

Tested in tests/sql/test_cuts.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from math import inf, isfinite, nextafter
from typing import Any

from hubbub.core.schema import Column, Kind
from hubbub.sql.atoms import MANY_VALUES, MOST_EVALUATIONS, Grouping, at_literals, compared, domain, literals, parts
from hubbub.sql.evaluate import Scalar, UnknownValueError, evaluate
from hubbub.sql.expressions import Expr, FunctionCall
from hubbub.sql.prune import names
from hubbub.sql.restrictions import same_value

#: Comparisons that ask for an order.
_ORDERED = frozenset({"lt", "le", "gt", "ge", "between"})
#: A value of columns that are compared with nothing.
_FIRST: dict[Kind, Scalar] = {Kind.DATE: date(2000, 1, 1), Kind.INTEGER: 0.0, Kind.REAL: 0.0}

#: A column, and the upper one of two values that lie beside each other (None: no value above).
Cut = tuple[str, Scalar]


@dataclass(frozen=True)
class Cuts:
    """What a grouping tells apart.

    every  all cuts at which a condition or a key may change
    sharp  those at which rows leave or enter a group, whatever the other columns are; of a query, where one of its
           groups ends; of a source, where all of its cells do
    loose  columns of which it may tell any values apart
    """

    every: frozenset[Cut]
    sharp: frozenset[Cut]
    loose: frozenset[str]


def cuts(groups: Grouping, columns: Mapping[str, Column], *, wanted: bool) -> Cuts:
    """Find the cuts of a grouping; of a query (`wanted`), changes of a key are sharp too.

    Theorem (Cuts). Let the conditions of a query and of each source be possible. If a query has a sharp cut that no
    source has, its sums are no linear function of those of the sources. If a source has a sharp cut that neither the
    query nor another source has, all of its weights are 0 in every unbiased estimate.
    Proof    Take two atoms that differ in the two values at the cut alone, with values of the other columns that
             fulfill all other conditions. By assumption every other grouping has both in one cell, or in none, as its
             conditions and keys are functions of the values, and change at its cuts alone. Let x be 1 on the one atom
             and −1 on the other. Then A·x = 0 for the rows A of all sources while C·x ≠ 0 for a group of the query, so
             no W has W·A = C. In the second case C·x = 0 and A·x is not 0 for one cell of the source alone, so its
             weight is 0; its column is no key there, so that this goes for every cell.
    Charges  nothing: no data and no noisy number is read.
    Tested   tests/sql/test_cuts.py::test_what_is_left_out_changes_no_derivation
    """
    alone: dict[str, tuple[list[Expr], list[tuple[Expr, dict[object, int]]]]] = {}
    mixed: list[tuple[str, Expr]] = []
    for condition in groups.where:
        mixed += _sorted_in(condition, alone, lambda own, each: own[0].append(each))
    for key, values in groups.keys:
        codes = {same_value(value): place for place, value in reversed(list(enumerate(values)))}
        mixed += _sorted_in(key, alone, lambda own, each, codes=codes: own[1].append((each, codes)))  # type: ignore[misc]
    every, sharp, loose = set[Cut](), set[Cut](), set[str]()
    for name, (tests, keys) in alone.items():
        found = _changes(name, columns.get(name), [*tests, *(key for key, _ in keys)], _reader(name, tests, keys))
        if found is None:
            loose.add(name)
            continue
        every |= found
        if all(name != other for other, _ in mixed) and (not keys or (wanted and groups.kept is None)):
            sharp |= found
    for name, part in mixed:
        found = _changes(name, columns.get(name), [part], lambda v, name=name, part=part: _value(part, name, v))  # type: ignore[misc]
        if found is None:
            loose.add(name)
        else:
            every |= found
    return Cuts(frozenset(every), frozenset(sharp), frozenset(loose))


def _sorted_in(expr: Expr, alone: dict[str, Any], put: Callable[[Any, Expr], None]) -> list[tuple[str, Expr]]:
    """Put an expression to its column, if it reads one, and otherwise list its parts."""
    used = names(expr)
    if len(used) != 1:
        return list(parts(expr))
    put(alone.setdefault(next(iter(used)), ([], [])), expr)
    return []


def _value(expr: Expr, name: str, value: Scalar) -> object:
    return same_value(evaluate(expr, {name: value}))


def _reader(
    name: str, tests: Sequence[Expr], keys: Sequence[tuple[Expr, dict[object, int]]]
) -> Callable[[Scalar], object]:
    """Return the part of a cell that one column decides; None outside of all cells."""

    def read(value: Scalar) -> object:
        if any(evaluate(test, {name: value}) is not True for test in tests):
            return None
        found = tuple(codes.get(_value(key, name, value), -1) for key, codes in keys)
        return None if -1 in found else found

    return read


def _changes(
    name: str, column: Column | None, exprs: Sequence[Expr], read: Callable[[Scalar], object]
) -> frozenset[Cut] | None:
    """Find the cuts at which something changes; None if they are not known."""
    neighbors = None if column is None else _neighbors(name, column, exprs)
    if neighbors is None or 2 * len(neighbors) * len(exprs) > MOST_EVALUATIONS:
        return None
    try:
        return frozenset((name, upper) for lower, upper in neighbors if read(lower) != read(upper))
    except (UnknownValueError, TypeError):
        return None


def _neighbors(name: str, column: Column, exprs: Sequence[Expr]) -> list[tuple[Scalar, Scalar]] | None:
    """List values that lie beside each other, where expressions of a column may change between them."""
    known = domain(column)
    if known is not None and len(known) <= MANY_VALUES:
        every = [*known, *([] if column.required else [None])]
        return list(pairwise(every))
    if not all(compared(each, name) for each in exprs):
        return None
    if column.kind is Kind.TEXT and any(map(_ordered, exprs)):
        return None  # the order of texts is the engine's
    if known is not None:
        return _beside(known, exprs, column)
    around: set[Any] = {value for each in exprs for value in literals(each)}
    try:
        # no comparison tells the values beyond all literals apart, nor, by equality, texts that are no literals
        other = f"{max(around, default='')}\x00" if column.kind is Kind.TEXT else None
        pairs = [pair for value in around for pair in _around(value, column.kind, other)]
    except (TypeError, OverflowError, ValueError):
        return None
    if not column.required:
        uppers: list[Any] = [upper for _, upper in pairs]
        last = max(uppers) if uppers else _FIRST.get(column.kind)
        pairs.append((last if other is None else other, None))
    return pairs


def _ordered(expr: Expr) -> bool:
    """Say whether an expression asks which of two values is larger."""
    return isinstance(expr, FunctionCall) and (expr.function in _ORDERED or any(map(_ordered, expr.args)))


def _beside(known: Sequence[Any], exprs: Sequence[Expr], column: Column) -> list[tuple[Scalar, Scalar]] | None:
    """List the neighbors in a long list around literals, if it is in order."""
    places = at_literals(known, exprs)
    if places is None:
        return None
    pairs: list[tuple[Scalar, Scalar]] = [(known[place - 1], known[place]) for place in places if place]
    return pairs if column.required else [*pairs, (known[-1], None)]


def _around(value: Any, kind: Kind, other: str | None) -> Iterator[tuple[Scalar, Scalar]]:
    """Give the values just below and above a literal; of a text, only equality is asked."""
    if kind is Kind.TEXT:
        yield other, str(value)
    elif kind is Kind.DATE and type(value) is date:
        yield value - timedelta(days=1), value
        yield value, value + timedelta(days=1)
    elif kind in (Kind.INTEGER, Kind.REAL) and type(value) is float and isfinite(value):
        yield nextafter(value, -inf), value
        yield value, nextafter(value, inf)
    else:
        raise TypeError(kind)
