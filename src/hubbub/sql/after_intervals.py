"""Intervals of what is computed from noisy results: which outputs can have one, and the query that gives them.

An output can have an interval if it is a released column, or smooth in the noise: sums, differences, products and
quotients of counts and sums, and their sums and averages over rows that no noise chooses. Such a query is run again on
copies of the released rows, in each of which one noisy value is moved by its margin of error.

Tested in tests/sql/test_after_intervals.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from hubbub.sql.generate import duckdb_sql
from hubbub.sql.query import Replicas
from hubbub.sql.query_levels import clauses, nested_queries, window_operands
from hubbub.sql.text import SourceText

#: What a released column is: a key, a count or sum with noise of its own, or any other noisy value.
Trait = Literal["exact", "linear", "rough"]

#: The number of a copy, of a released row, and of an output row: that of its first released row.
COPY, ROW, ROW_ID = "$copy", "$row", "$id"

_LINEAR = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Paren, exp.Neg, exp.Alias)
_MOVING = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_TOTALS = (exp.Sum, exp.Avg)


class _RoughError(Exception):
    """An expression has no interval."""


@dataclass
class _Output:
    """What an output reads: names of linear columns, and noisy divisors (and factors), which must not be near 0."""

    names: set[str] = field(default_factory=set)
    divisors: list[exp.Expr] = field(default_factory=list)


def with_replicas(
    tree: exp.Expr, table: str, traits: Mapping[str, Trait], text: SourceText, *, chosen: bool = False
) -> tuple[exp.Expr, Replicas | None]:
    """Return a query over one released table with the number of each output row as its last column, and its copies.

    A query with another form is returned as it is, without intervals. `chosen`: noise decides which rows are released.
    """
    source = _source(tree, table)
    if not isinstance(tree, exp.Select) or source is None:
        return tree, None
    if any(next(nested_queries(part), None) is not None for part in clauses(tree)) or tree.args.get("distinct"):
        return tree, None
    if any(item.is_star or isinstance(item, exp.Star) for item in tree.expressions):
        return tree, None
    reader = _Reader(tree, traits, chosen=chosen)
    copied, smooth, exact = list[tuple[int, str]](), list[tuple[int, frozenset[str]]](), list[int]()
    divisors, places = list[exp.Expr](), list[tuple[int, ...]]()
    for place, item in enumerate(tree.expressions):
        inner = item.this if isinstance(item, exp.Alias) else item
        if not reader.grouped and isinstance(inner, exp.Column) and traits.get(inner.name, "exact") != "exact":
            copied.append((place, inner.name))
            continue
        try:
            output = reader.read(inner)
        except _RoughError:
            continue
        if not output.names:
            exact.append(place)
        else:
            smooth.append((place, frozenset(output.names)))
            places.append(tuple(range(len(divisors), len(divisors) + len(output.divisors))))
            divisors += output.divisors
    copies = _copies(tree, table, [place for place, _ in smooth], divisors, reader, text) if smooth else ""
    main = tree.copy()
    main.append("expressions", exp.alias_(_row_id(grouped=reader.grouped), ROW_ID, quoted=True))
    _expose(_source(main, table), [ROW])
    return main, Replicas(copies, tuple(copied), tuple(smooth), tuple(places), tuple(exact))


def _source(tree: exp.Expr, table: str) -> exp.Expr | None:
    """Return what a query reads if that is one released table, alone or as a plain subquery, under its own names."""
    clause = tree.args.get("from_")
    if clause is None or tree.args.get("joins") or tree.args.get("with_"):
        return None
    read = clause.this
    alias = read.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    inner = read.this if isinstance(read, exp.Subquery) else None
    named = read if inner is None else inner.args["from_"].this if isinstance(inner, exp.Select) else None
    plain = inner is None or all(isinstance(item, exp.Column) for item in inner.expressions)
    only = inner is None or not any(inner.args.get(name) for name in ("where", "group", "order", "limit", "joins"))
    return read if plain and only and isinstance(named, exp.Table) and named.name == table else None


def _row_id(*, grouped: bool) -> exp.Expr:
    row = _column(ROW)
    return exp.Min(this=row) if grouped else row


def _expose(source: exp.Expr | None, names: list[str]) -> None:
    """Let a plain subquery give more columns of its released table."""
    if isinstance(source, exp.Subquery):
        for name in names:
            source.this.append("expressions", _column(name))


def _copies(
    tree: exp.Select, table: str, places: list[int], divisors: list[exp.Expr], reader: "_Reader", text: SourceText
) -> str:
    """Write the query over copies: windows and groups stay within a copy. All rows are there, whichever are shown."""
    copy, grouped = tree.copy(), reader.grouped
    items = [item.this if isinstance(item, exp.Alias) else item for item in copy.expressions]
    outputs = [*(items[place] for place in places), *(each.copy() for each in divisors)]
    named = [exp.alias_(each, f"o{i}", quoted=True) for i, each in enumerate(outputs)]
    ids = [exp.alias_(_column(COPY), COPY, quoted=True), exp.alias_(_row_id(grouped=grouped), ROW_ID, quoted=True)]
    copy.set("expressions", [*ids, *named])
    for window in copy.find_all(exp.Window):
        window.set("partition_by", [_column(COPY), *(window.args.get("partition_by") or [])])
    if grouped:
        copy.set("group", exp.Group(expressions=[_column(COPY), *(term.copy() for term in reader.terms)]))
    for name in ("order", "limit", "offset", "qualify", "having", *(("where",) if reader.chosen else ())):
        copy.set(name, None)
    _expose(_source(copy, table), [COPY, ROW])
    return duckdb_sql(copy, text, identify=True)


@dataclass
class _Reader:
    """Reads the outputs of one query."""

    tree: exp.Select
    traits: Mapping[str, Trait]
    grouped: bool = False
    chosen: bool = False  #: whether noise decides which rows or groups there are
    terms: list[exp.Expr] = field(default_factory=list)  #: of GROUP BY

    def __post_init__(self) -> None:
        group = self.tree.args.get("group")
        self.grouped = group is not None or any(
            isinstance(each, exp.AggFunc) and not isinstance(each.parent, exp.Window | exp.Filter | exp.IgnoreNulls)
            for item in self.tree.expressions
            for each in item.find_all(exp.AggFunc)
        )
        where = self.tree.args.get("where")
        self.chosen = self.chosen or (where is not None and not self._exact(where))
        if group is not None:
            self.terms = [self._term(term) for term in group.expressions]
            plain = not group.args.get("all") and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None
            self.chosen = self.chosen or not plain or not all(map(self._exact, self.terms))

    def _term(self, node: exp.Expr) -> exp.Expr:
        """Resolve a position or an alias in GROUP BY, as DuckDB does where no column has that name."""
        items = self.tree.expressions
        item: exp.Expr | None = None
        if isinstance(node, exp.Literal) and str(node.this).isdecimal() and 1 <= int(node.this) <= len(items):
            item = items[int(node.this) - 1]
        elif isinstance(node, exp.Column) and node.name not in self.traits:
            item = next((each for each in items if each.alias == node.name), None)
        return node if item is None else item.this if isinstance(item, exp.Alias) else item

    def _exact(self, node: exp.Expr) -> bool:
        """Tell whether an expression reads no noisy column."""
        return all(self.traits.get(column.name, "rough") == "exact" for column in node.find_all(exp.Column))

    def read(self, node: exp.Expr) -> _Output:
        """Return what a smooth expression reads; raise for any other one."""
        if self._exact(node):
            if self.chosen and (self.grouped or node.find(exp.Window) is not None):
                raise _RoughError
            return _Output()
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, _TOTALS) and self.grouped and not isinstance(node.this, exp.Distinct):
            return self._over_rows(node.this)
        if isinstance(node, _LINEAR):
            return self._combined(node)
        raise _RoughError

    def _column(self, node: exp.Column) -> _Output:
        if self.traits.get(node.name) != "linear":
            raise _RoughError
        return _Output({node.name})

    def _combined(self, node: exp.Expr) -> _Output:
        parts = [self.read(child) for child in node.iter_expressions() if not isinstance(child, exp.Identifier)]
        output = _Output(set().union(*(part.names for part in parts)), [d for part in parts for d in part.divisors])
        if isinstance(node, exp.Div) and not self._exact(node.expression):
            output.divisors.append(node.expression)
        if isinstance(node, exp.Mul) and not self._exact(node.this) and not self._exact(node.expression):
            output.divisors += [node.this, node.expression]  # near 0 a product is not linear in its noise
        return output

    def _window(self, node: exp.Window) -> _Output:
        function = node.this
        operands = window_operands(node)
        arguments = [function.this] if isinstance(function, (*_TOTALS, *_MOVING)) else []
        rest = [each for each in operands if each not in arguments]
        frame = node.args.get("spec")
        if not arguments or self.grouped or not all(map(self._exact, [*rest, *([] if frame is None else [frame])])):
            raise _RoughError
        return self._over_rows(arguments[0])

    def _over_rows(self, node: exp.Expr) -> _Output:
        """Read the argument of a sum over rows, which noise must not choose; its divisors cannot be checked."""
        output = self.read(node) if not isinstance(node, exp.Window) else None
        if self.chosen or output is None or output.divisors:
            raise _RoughError
        return output


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
