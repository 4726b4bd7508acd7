"""What a database declares about its tables: keys, references, NOT NULL, enums, and lists and bounds in CHECK.

Tested in tests/engines/test_constraints.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.engines.base import Field


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that refer to the columns `key` of another table."""

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as its database declares it; no value was read.

    keys       columns that identify a row, the primary key first
    required   columns that are NOT NULL
    values     the values that an enum or a CHECK allows
    bounds     the lowest and the highest value that a CHECK allows, as they are written
    problem    why the table cannot be read, or empty
    """

    name: str
    fields: tuple[Field, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    references: tuple[ForeignKey, ...] = ()
    required: frozenset[str] = frozenset()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    problem: str = ""


def read_checks(texts: Iterable[str], dialect: str) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, str]]]:
    """Read lists of values and bounds from CHECK expressions; what is not understood is left out.

    >>> read_checks(["age >= 0 AND age <= 110", "sex = ANY (ARRAY['f'::text, 'm'::text])"], "postgres")
    ({'sex': ('f', 'm')}, {'age': ('0', '110')})
    """
    values: dict[str, tuple[str, ...]] = {}
    lows: dict[str, str] = {}
    highs: dict[str, str] = {}
    for text in texts:
        try:
            tree = sqlglot.parse_one(text, read=dialect)
        except SqlglotError:
            continue
        for part in _conjuncts(tree):
            listed = _listed(part)
            if listed is not None:
                values[listed[0]] = listed[1]
            for name, low, high in _bounded(part):
                lows |= {} if low is None else {name: low}
                highs |= {} if high is None else {name: high}
    return values, {name: (low, highs[name]) for name, low in lows.items() if name in highs}


def _plain(node: exp.Expr | None) -> exp.Expr | None:
    """Remove parentheses and casts."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node


def _conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    inner = _plain(node)
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.this)
        yield from _conjuncts(inner.expression)
    elif inner is not None:
        yield inner


def _column(node: exp.Expr | None) -> str | None:
    inner = _plain(node)
    return str(inner.name) if isinstance(inner, exp.Column) else None


def _constant(node: exp.Expr | None) -> str | None:
    inner = _plain(node)
    if isinstance(inner, exp.Neg):
        number = _constant(inner.this)
        return None if number is None else f"-{number}"
    return str(inner.this) if isinstance(inner, exp.Literal) else None


def _listed(node: exp.Expr) -> tuple[str, tuple[str, ...]] | None:
    """Read x IN ('a', 'b') and PostgreSQL's form of it, x = ANY (ARRAY['a', 'b'])."""
    items: list[exp.Expr] = []
    if isinstance(node, exp.In):
        items = list(node.expressions)
    elif isinstance(node, exp.EQ) and isinstance(_plain(node.expression), exp.Any):
        array = _plain(_plain(node.expression).this)  # type: ignore[union-attr]
        items = list(array.expressions) if isinstance(array, exp.Array) else []
    name, constants = _column(node.this), [_constant(item) for item in items]
    known = tuple(constant for constant in constants if constant is not None)
    return None if name is None or not known or len(known) < len(items) else (name, known)


def _bounded(node: exp.Expr) -> Iterator[tuple[str, str | None, str | None]]:
    """Read x >= 0, 0 <= x and x BETWEEN 0 AND 9 as (column, low, high)."""
    if isinstance(node, exp.Between):
        name = _column(node.this)
        if name is not None:
            yield name, _constant(node.args.get("low")), _constant(node.args.get("high"))
    elif isinstance(node, exp.GTE | exp.GT | exp.LTE | exp.LT):
        above = isinstance(node, exp.GTE | exp.GT)
        for column, other, low in ((node.this, node.expression, above), (node.expression, node.this, not above)):
            name, constant = _column(column), _constant(other)
            if name is not None and constant is not None:
                yield (name, constant, None) if low else (name, None, constant)
