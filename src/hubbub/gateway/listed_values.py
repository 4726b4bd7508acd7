"""Lists of declared values, which dashboards ask for their filters: answered from declarations, free.

`SELECT DISTINCT region FROM visits` says nothing about the data if the values of region are declared, so the service
refuses it as a waste of budget. A dashboard cannot do without the list.

Tested in tests/gateway/test_listed_values.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.core.schema import Column, Table, Value

_PARTS = frozenset({"expressions", "from_", "distinct", "group", "order", "limit", "kind", "hint"})
#: Longer texts are queries for the service, and so is every text with a function, a join or a condition.
_MAX_TEXT = 1000


@dataclass(frozen=True, slots=True)
class ListedValues:
    """The groups that a column is declared to have, as GROUP BY shows them, under the name that the query gives."""

    name: str
    column: Column
    values: tuple[Value | None, ...]


def may_list_values(sql: str) -> bool:
    """Tell quickly, from the text alone, whether a query can be a list of values."""
    return len(sql) <= _MAX_TEXT and "(" not in sql and any(word in sql.lower() for word in ("distinct", "group"))


def listed_values(sql: str, tables: Sequence[Table]) -> ListedValues | None:
    """Return the declared values that a query lists; None for every other query.

    Theorem (A list of declared values is free). The answer is a function of the text and of declarations.
    Proof    Only `sql` and `tables` are read, and a table holds declarations alone.
    Charges  nothing: no private data is read.
    Tested   tests/gateway/test_listed_values.py::test_only_the_plain_list_is_answered
    """
    if not may_list_values(sql):
        return None
    try:
        tree = sqlglot.parse_one(sql, read="postgres")
    except (SqlglotError, RecursionError):
        return None
    if not isinstance(tree, exp.Select) or {name for name, part in tree.args.items() if part} - _PARTS:
        return None
    table = _table(tree, tables)
    if table is None or len(tree.expressions) != 1:
        return None
    shown = tree.expressions[0]
    column = _column(shown.unalias(), table)
    if column is None or not _grouped(tree, column):
        return None
    others = [each for each in (column.other,) if each is not None]
    values: list[Value | None] = [*(column.values or ()), *others, *([None] if column.nullable else [])]
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if order is not None:
        descending = _order(order, {column.name.lower(), shown.alias_or_name.lower(), "1"})
        if descending is None:
            return None
        values.sort(key=lambda value: (value is None, 0 if value is None else value), reverse=descending)
    if limit is not None:
        most = limit.expression
        if not isinstance(most, exp.Literal) or most.is_string or not most.name.isdecimal():
            return None
        values = values[: int(most.name)]
    return ListedValues(shown.alias_or_name, column, tuple(values))


def _table(tree: exp.Select, tables: Sequence[Table]) -> Table | None:
    source = tree.args.get("from_")
    named = None if source is None else source.this
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        return None
    if {name for name, part in named.args.items() if part} - {"this", "db", "catalog", "alias"}:
        return None
    found = [table for table in tables if table.name.lower() == named.name.lower()]
    return found[0] if len(found) == 1 and found[0].unit is not None else None


def _column(node: exp.Expr, table: Table) -> Column | None:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    found = [column for column in table.columns if column.name.lower() == node.name.lower()]
    return found[0] if len(found) == 1 and found[0].values is not None and not found[0].hidden else None


def _grouped(tree: exp.Select, column: Column) -> bool:
    """Return whether each value is listed once: by DISTINCT, or by GROUP BY this column."""
    distinct, group = tree.args.get("distinct"), tree.args.get("group")
    if group is None:
        return distinct is not None and not distinct.args.get("on")
    keys = group.expressions
    plain = not {name for name, part in group.args.items() if part} - {"expressions"}
    return plain and len(keys) == 1 and keys[0].name.lower() in (column.name.lower(), "1")


def _order(order: exp.Order, names: set[str]) -> bool | None:
    """Return whether the order is descending; None if it is another one."""
    if len(order.expressions) != 1:
        return None
    key = order.expressions[0]
    if not isinstance(key, exp.Ordered) or not isinstance(key.this, exp.Column | exp.Literal):
        return None
    return bool(key.args.get("desc")) if key.this.name.lower() in names else None
