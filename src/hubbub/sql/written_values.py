"""Lists of VALUES in a query: small public tables that the statement writes itself.

    SELECT name, COUNT(*) FROM visits JOIN (VALUES (0, 17, 'child'), (18, 64, 'adult')) AS b(low, high, name)
    ON age BETWEEN low AND high GROUP BY name

Tested in tests/sql/test_written_values.py.
"""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

from sqlglot import exp

from hubbub.core.schema import Kind, Table, Value
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_scope import Context, NameScope
from hubbub.sql.expressions import Literal
from hubbub.sql.query import Queries, Query
from hubbub.sql.released_tables import is_written, key_table, keys_name, short_enough
from hubbub.sql.rules import common

#: Maximum number of rows, and of values, of a list in a query.
MAX_ROWS = 1_000
MAX_VALUES = 10_000


def with_values_as_tables(ctx: Context, tree: exp.Expr) -> tuple[Context, exp.Expr]:
    """Return a query in which each list of VALUES is a public table, and a context that knows these tables.

    Theorem (Lists of values). A list of constants in a query is a public table: its rows are the same for all data.
    Proof    Every value is a constant or a parameter of the query; nothing else is bound.
    Assumes  nothing.
    Charges  nothing.
    Tested   tests/sql/test_written_values.py::test_a_list_joins_and_groups_as_in_duckdb
             tests/sql/test_written_values.py::test_a_list_holds_constants_alone
    """
    if tree.find(exp.Values) is None:
        return ctx, tree
    tree, tables = tree.copy(), dict[str, Table]()
    for node in list(tree.find_all(exp.Values)):
        table = _table(ctx, node)
        tables[table.name] = table
        named = exp.Table(this=exp.to_identifier(table.name, quoted=True), alias=node.args.get("alias"))
        named.this.meta.update(node.meta)
        node.replace(named)
    return replace(ctx, tables={**ctx.tables, **tables}), tree


def without_written(query: Query) -> Query:
    """Return a query without the tables that the statement writes: they are no datasets."""
    return replace(query, tables=tuple(table for table in query.tables if not is_written(table)))


def all_without_written(query: Query | Queries) -> Query | Queries:
    """Return a query, or the releases of a statement, without the tables that the statement writes."""
    if isinstance(query, Query):
        return without_written(query)
    return replace(query, parts=tuple(without_written(part) for part in query.parts))


def _table(ctx: Context, node: exp.Values) -> Table:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or len(rows) > MAX_ROWS or len(rows) * max(widths) > MAX_VALUES:
        raise ctx.error(
            node,
            "HB508",
            f"A list of VALUES has rows of one length, and at most {MAX_ROWS:,} of them.",
            "Ask the data owner to declare a longer list as a public table.",
        )
    columns = [_column(ctx, node, [row[place] for row in rows]) for place in range(widths.pop())]
    # tables are equal if their columns are, so the name tells other rows apart
    digest = sha256(repr([[(type(v).__name__, str(v)) for v in values] for _, values in columns]).encode()).hexdigest()
    table = key_table(f"{keys_name(0)}_{digest[:32]}", columns)
    repeats = {
        column.name: max(Counter(values).values()) for column, (_, values) in zip(table.columns, columns, strict=True)
    }
    table = replace(table, unique=None, repeats=repeats)
    names = {column.name: f"col{place}" for place, column in enumerate(table.columns)}
    return replace(
        table,
        columns=tuple(replace(column, name=names[column.name]) for column in table.columns),
        repeats={names[column]: count for column, count in table.repeats.items()},
        rows={names[column]: values for column, values in table.rows.items()},
        lengths={names[column]: length for column, length in table.lengths.items()},
    )


def _column(ctx: Context, node: exp.Expr, cells: list[exp.Expr]) -> tuple[Kind, list[Value | None]]:
    bound = [scalar(ctx, NameScope((), "VALUES"), cell) for cell in cells]
    literals = [each for each in bound if isinstance(each, Literal) and each.value is not None]
    kind = common(tuple(each.kind for each in literals)) if len(literals) == len(bound) else None
    values = [each.value for each in literals]
    if kind is None or not short_enough(values):
        raise ctx.error(
            node,
            "HB508",
            "A list of VALUES holds constants of one type in each column, and no NULL.",
            "Write numbers, short texts or dates, as in (VALUES (0, 'man'), (1, 'woman')) AS t(code, label).",
        )
    return kind, list(values)
