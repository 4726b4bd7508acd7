"""Atoms: sets of rows that earlier releases and a query tell apart, so that each of their groups is a union of atoms.

Everything here reads descriptions (`measured`) and declarations, never noisy numbers.

Tested in tests/sql/test_atoms.py.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from math import ceil, floor, inf, isfinite, nextafter, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core import wire
from hubbub.core.schema import Column, Kind
from hubbub.sql import dates
from hubbub.sql.bind_scan import column_facts
from hubbub.sql.evaluate import Scalar, UnknownValueError, evaluate, exact, scalar
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.measured import text
from hubbub.sql.prune import names
from hubbub.sql.restrictions import same_value

#: The most atoms of one query: each is a column of a system of equations.
MOST_ATOMS = 2_048
#: The most values of a column that are tried one by one.
MOST_VALUES = 4_000
#: The most evaluations of expressions of one column: a text with many conditions must not take long.
MOST_EVALUATIONS = 100_000
#: In a longer list of ordered values only those at literals are tried, if nothing else is asked of them.
MANY_VALUES = 300
#: Comparisons whose truth changes at the literals that they compare with, and nowhere else.
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "between"})
_LOGIC = frozenset({"and", "or", "not"})

Integers = NDArray[np.int64]


class TooManyAtomsError(Exception):
    """The rows cannot be told apart with so few atoms, or a condition cannot be evaluated."""


@dataclass(frozen=True)
class Grouping:
    """The conditions and keys that put a row into a cell.

    where   all of them hold for every row
    keys    each with its values, in the order of cells; NULL is the last where it is a group
    kept    the numbers of the cells that exist, if not all do
    """

    where: tuple[Expr, ...]
    keys: tuple[tuple[Expr, tuple[Scalar, ...]], ...]
    kept: tuple[int, ...] | None

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return prod(len(values) for _, values in self.keys) if self.kept is None else len(self.kept)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that are read."""
        return frozenset().union(*(names(each) for each in (*self.where, *(key for key, _ in self.keys))))


def grouping(where: Iterable[Expr], form: Mapping[str, Any], parse: Any) -> Grouping:
    """Read a grouping set of a description; `parse` reads an expression."""
    keys = tuple(
        (
            parse(key["of"]),
            (*(scalar(wire.read_value(value)) for value in key["values"]), *([None] if key["null"] else [])),
        )
        for key in form["keys"]
    )
    return Grouping(tuple(where), keys, tuple(form["kept"]) if "kept" in form else None)


@dataclass(frozen=True)
class Atoms:
    """All combinations of classes of column values.

    columns  for each column, one value of each class; NULL is a value
    shape    the number of classes of each column
    """

    columns: Mapping[str, tuple[Scalar, ...]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of classes of each column."""
        return tuple(map(len, self.columns.values()))

    def cells(self, groups: Grouping) -> Integers:
        """Return the cell of every atom; −1 for atoms whose rows are in none."""
        shown = np.ones(self.shape, dtype=bool)
        for condition in groups.where:
            shown &= self._each(condition, lambda value: value is True)
        numbers = np.zeros(self.shape, dtype=np.int64)
        for key, values in groups.keys:
            index = {same_value(value): place for place, value in reversed(list(enumerate(values)))}
            code = self._each(key, lambda value, index=index: index.get(same_value(value), -1))
            shown &= code >= 0
            numbers = numbers * len(values) + code
        if groups.kept is not None:
            kept = np.array(groups.kept, dtype=np.int64)
            near = np.minimum(np.searchsorted(kept, numbers), len(kept) - 1)
            shown &= kept[near] == numbers
            numbers = near
        return np.where(shown, numbers, -1).ravel()

    def _each(self, expr: Expr, read: Any) -> NDArray[Any]:
        """Evaluate an expression for the classes of the columns that it reads, and repeat the values for all others."""
        used = {name: values for name, values in self.columns.items() if name in names(expr)}
        found = [read(evaluate(expr, dict(zip(used, chosen, strict=True)))) for chosen in product(*used.values())]
        return np.array(found).reshape([len(values) if name in used else 1 for name, values in self.columns.items()])


def atoms(groupings: Sequence[Grouping], columns: Mapping[str, Column]) -> Atoms:
    """Divide rows into atoms, so that every condition has one truth and every key one value in each of them.

    Theorem (Atoms). Every row of the table is in exactly one atom, and all rows of one atom are in the same cell of
    each grouping, or in none.
    Proof    A scan leaves a column with one of its declared values, a value within its bounds, or NULL; the classes of
             a column cover these. The values of a class agree on every largest subexpression that reads this column
             alone: where values are tried one by one, by construction; otherwise because the column is only compared
             with literals, and the truth of a comparison changes at its literals alone. Conditions and keys are
             functions of these subexpressions.
    Assumes  declarations are true: a `required` column has no NULL and, where its values are listed, no other value.
    Charges  nothing: no data is read.
    Tested   tests/sql/test_atoms.py::test_every_row_is_in_one_atom_and_its_cells_are_those_of_the_engine
    """
    found: dict[str, list[Expr]] = {name: [] for name in sorted(frozenset().union(*(g.columns for g in groupings)))}
    for each in groupings:
        for expr in (*each.where, *(key for key, _ in each.keys)):
            for name, part in parts(expr):
                found[name].append(part)
    classes: dict[str, tuple[Scalar, ...]] = {}
    size = 1
    for name, own in found.items():
        column = columns.get(name)
        if column is None:
            raise TooManyAtomsError
        unique = list({text(part): part for part in own}.values())
        classes[name] = _classes(name, column, unique)
        size *= len(classes[name])
        if size > MOST_ATOMS:
            raise TooManyAtomsError
    return Atoms(classes)


def parts(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """Yield the largest subexpressions that read one column, with its name."""
    used = names(expr)
    if len(used) == 1:
        yield next(iter(used)), expr
    elif isinstance(expr, FunctionCall):
        for arg in expr.args:
            yield from parts(arg)


def _classes(name: str, column: Column, exprs: Sequence[Expr]) -> tuple[Scalar, ...]:
    """Return one value of each class of values that expressions of one column tell apart."""
    values = _values(name, column, exprs)
    if len(values) * len(exprs) > MOST_EVALUATIONS:
        raise TooManyAtomsError
    first: dict[tuple[object, ...], Scalar] = {}
    try:
        for value in values:
            first.setdefault(tuple(same_value(evaluate(part, {name: value})) for part in exprs), value)
    except (UnknownValueError, TypeError):
        raise TooManyAtomsError from None
    return tuple(first.values())


def _values(name: str, column: Column, exprs: Sequence[Expr]) -> list[Scalar]:
    """List values of a column that have every behavior which a row can have."""
    null: list[Scalar] = [] if column.required else [None]
    known, are_compared = domain(column), all(compared(each, name) for each in exprs)
    if known is not None:
        places = at_literals(known, exprs) if are_compared and len(known) > MANY_VALUES else None
        return [*(known if places is None else (known[place] for place in places)), *null]
    if not are_compared:
        raise TooManyAtomsError
    return [*_between(column.kind, {value for each in exprs for value in literals(each)}), *null]


def at_literals(known: Sequence[Any], exprs: Sequence[Expr]) -> list[int] | None:
    """List the places in an ordered list at which comparisons with literals may change, and the first one.

    Values of one class lie between two of these places, so that each class has its first value among them. None for
    texts and for values in no order.
    """
    if isinstance(known[0], str | bool) or any(not one < other for one, other in pairwise(known)):
        return None
    try:
        ends = {bisect_left(known, value) for each in exprs for value in literals(each)}
    except TypeError:
        return None
    return sorted({place + more for place in ends for more in (0, 1) if place + more < len(known)} | {0})


def domain(column: Column) -> list[Scalar] | None:
    """List all values of a column but NULL; None if there are too many."""
    known = column_facts(column).values
    if column.kind is Kind.BOOLEAN:
        return [False, True]
    if known is not None and column.kind in (Kind.INTEGER, Kind.TEXT, Kind.DATE) and len(known) <= MOST_VALUES:
        return [*map(scalar, known)]
    bounds = column.bounds
    if bounds is not None and column.kind in (Kind.INTEGER, Kind.DATE):
        low, high = ceil(bounds.low), floor(bounds.high)
        if high - low < MOST_VALUES:
            return _span(low, high, column.kind)
    return None


def _span(low: int, high: int, kind: Kind) -> list[Scalar]:
    if kind is Kind.INTEGER:
        return [float(value) for value in range(low, high + 1)]
    first = dates.timestamp(Fraction(low), Kind.DATE).date()
    return [first + timedelta(days=day) for day in range(high - low + 1)]


def compared(expr: Expr, name: str) -> bool:
    """Say whether a column is only compared with literals."""
    if not isinstance(expr, FunctionCall):
        return isinstance(expr, Literal)
    if expr.function in _LOGIC:
        return all(compared(arg, name) for arg in expr.args)
    own = [isinstance(arg, Col) for arg in expr.args]
    if expr.function == "is_null":
        return own == [True]
    others = [arg for arg in expr.args if not isinstance(arg, Col)]
    return expr.function in _COMPARISONS and sum(own) == 1 and all(isinstance(arg, Literal) for arg in others)


def literals(expr: Expr) -> Iterator[Scalar]:
    """Yield the values of all literals in an expression but NULL."""
    if isinstance(expr, Literal) and expr.value is not None:
        yield scalar(expr.value)
    if isinstance(expr, FunctionCall):
        for arg in expr.args:
            yield from literals(arg)


def _between(kind: Kind, known: set[Any]) -> list[Scalar]:
    """List the literals, and a value between and beyond each two of them."""
    if kind is Kind.TEXT:
        texts = sorted(map(str, known))
        return [*texts, *_other_texts(texts)]
    if kind is Kind.DATE:
        return _between_days(known)
    if kind not in (Kind.INTEGER, Kind.REAL) or any(isinstance(value, str | bool | date) for value in known):
        raise TooManyAtomsError
    points = sorted(map(float, known)) or [0.0]
    middles = [one / 2 + other / 2 for one, other in pairwise(points)]
    below, above = (min(points[0] - 1, nextafter(points[0], -inf)), max(points[-1] + 1, nextafter(points[-1], inf)))
    if not all(map(isfinite, (below, *middles, above))):
        raise TooManyAtomsError
    return [below, *points, *middles, above]


def _between_days(known: set[Any]) -> list[Scalar]:
    if not all(isinstance(value, date) and not isinstance(value, datetime) for value in known):
        raise TooManyAtomsError
    points = sorted(known) or [date(2000, 1, 1)]
    one = timedelta(days=1)
    middles = [first + one for first, other in pairwise(points) if other - first > one]
    return [points[0] - one, *points, *middles, points[-1] + one]


def _other_texts(texts: Sequence[str]) -> list[str]:
    """List a text below, between and above all that are given: only equality is asked of texts elsewhere."""
    return ["", *(each + "\x00" for each in texts)]


def expression_columns(columns: Iterable[Column], scan: str = "0") -> dict[str, Column]:
    """Name the columns of a table as descriptions do."""
    return {f"{scan}.{column.name}": column for column in columns if not column.hidden}


def columns_form(whole: Atoms, columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    """Write the classes of columns for a receipt: one value of each."""
    return [
        {"of": name, "values": [_shown(value, columns[name].kind) for value in values]}
        for name, values in whole.columns.items()
    ]


def _shown(value: Scalar, kind: Kind) -> Any:
    # a value between two integers stands for no row
    kind = Kind.REAL if isinstance(value, float) and not value.is_integer() else kind
    known = exact(value, kind)
    return None if known is None else wire.value(known)
