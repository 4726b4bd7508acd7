"""Find the blocks that the conditions of a query allow, and restrict its scans to them.

Tested in tests/sql/test_blocks.py.
"""

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from typing import assert_never

from hubbub.core.blocks import Blocks, BlockSet, number
from hubbub.core.schema import Kind, Table
from hubbub.errors import QueryError
from hubbub.sql import dates
from hubbub.sql.conditions import Conditions, Restrictions
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.filter_pushdown import pushed_down
from hubbub.sql.query import Queries, Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow, filtered_scans
from hubbub.sql.restrictions import Restriction

#: Days after its start by which a period that `date_trunc` names has ended.
_LONGEST = {"year": 366, "quarter": 92, "month": 31, "week": 7}


def within_blocks(query: Query | Queries) -> Query | Queries:
    """Restrict each table of a query to the blocks that its conditions allow; refuse a query that reads none.

    Theorem (Blocks of a query). Every scan of a table reads the same blocks, and these are the `read` of the query's
    table, which is charged. So a wrong reading of a condition could change an answer, and never a charge.
    Proof    The set of a table is the union over all scans of it, in all releases of the statement, and is written
             into each scan and into each list of tables. A row outside of this set reaches no scan ("Scans by block").
             That answers stay the same rests on "Conditions bind": a filter directly above a scan, or one that may be
             moved there, is true only of rows whose time lies within the range that is found.
    Charges  nothing.
    Tested   tests/sql/test_blocks.py::test_conditions_narrow_the_blocks_and_change_no_answer
             tests/sql/test_blocks.py::test_several_scans_of_a_table_read_and_charge_the_same_blocks
    """
    parts = query.parts if isinstance(query, Queries) else (query,)
    tables = {t.name: t for part in parts for t in part.tables if t.blocks is not None}
    if not tables:
        return query
    reached: dict[str, BlockSet] = {}
    for part in parts:
        for scan, predicate in filtered_scans(pushed_down(part.relation, [])):
            blocks = scan.table.blocks
            if blocks is not None:
                allowed = _allowed(scan, blocks, predicate)
                before = reached.get(scan.table.name)
                reached[scan.table.name] = allowed if before is None else before.union(allowed)
    narrowed = {name: _reading(table, reached.get(name)) for name, table in tables.items()}
    changed = tuple(_restricted(part, narrowed) for part in parts)
    if isinstance(query, Queries):
        return replace(query, parts=changed)
    return changed[0]


def _reading(table: Table, allowed: BlockSet | None) -> Table:
    blocks = table.blocks
    if blocks is None or blocks.read is None:
        raise AssertionError("the blocks that exist are known before a query is bound")
    if allowed is None:  # read by no scan that was found: charged in all blocks
        allowed = blocks.read
    if not len(allowed):
        if not len(blocks.read):
            raise no_block(table.name)
        raise QueryError(
            "HB794",
            f"The conditions of this query allow no block of {table.name}. Its open blocks are {blocks.read.text()}.",
            f"Ask about other dates in {blocks.column}, or leave the condition out.",
        )
    return replace(table, blocks=blocks.reading(allowed))


def no_block(name: str) -> QueryError:
    """Return the error for a dataset that has no open block."""
    return QueryError("HB795", f"{name} has no open block today.", "Ask the data owner when its blocks begin.")


def _allowed(scan: Scan, blocks: Blocks, predicate: Expr | None) -> BlockSet:
    if blocks.read is None:
        raise AssertionError("the blocks that exist are known before a query is bound")
    allowed = blocks.read
    if predicate is None:
        return allowed
    for expr, restriction in _known(predicate).items():
        span = _time_of(expr, scan, blocks.column)
        if span is None:
            continue
        (low, high), kind = restriction.ends(), expr.kind
        if restriction.values == ():
            return BlockSet(blocks.by, ())
        first = None if low is None else number(blocks.by, dates.timestamp(low, kind).date())
        last = None if high is None else number(blocks.by, _after(high, kind, span))
        allowed = allowed.between(first, last)
        values = restriction.values
        if values is not None and not isinstance(values, range) and not span:
            moments = [dates.number(v) for v in values if isinstance(v, date)]
            listed = {number(blocks.by, dates.timestamp(each, kind).date()) for each in moments}
            allowed = BlockSet.of(blocks.by, set(allowed) & listed)
    return allowed


def _known(predicate: Expr) -> Restrictions:
    known: dict[Expr, Restriction] = {}
    for expr, restriction in Conditions().implied(predicate, truth=True).items():
        known[expr] = known.get(expr, Restriction()).met(restriction)
    return known


def _after(high: Fraction, kind: Kind, days: int) -> date:
    """Return the last day that a value of at most `high` may stand for."""
    day = dates.timestamp(high, kind).date()
    return day if day.year >= dates.LAST.year else day + timedelta(days=days)


def _time_of(expr: Expr, scan: Scan, column: str) -> int | None:
    """Tell by how many days an expression may be before the time of a row; None if it is not about that time."""
    if isinstance(expr, Col):
        named = {col.name: source for col, source in zip(scan.columns, scan.sources, strict=True)}
        return 0 if named.get(expr.name) == column and expr.kind in (Kind.DATE, Kind.TIMESTAMP) else None
    if isinstance(expr, FunctionCall) and expr.function == "date_trunc" and isinstance(expr.args[0], Literal):
        inside = _time_of(expr.args[1], scan, column)
        return None if inside is None else inside + _LONGEST.get(str(expr.args[0].value), 1)
    return None


def _restricted(query: Query, tables: dict[str, Table]) -> Query:
    names = tuple(tables.get(table.name, table) for table in query.tables)
    return replace(query, tables=names, relation=_with_tables(query.relation, tables))


def _with_tables(rel: Rel, tables: dict[str, Table]) -> Rel:
    match rel:
        case Scan():
            return replace(rel, table=tables.get(rel.table.name, rel.table))
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return replace(rel, input=_with_tables(rel.input, tables))
        case Join():
            return replace(rel, left=_with_tables(rel.left, tables), right=_with_tables(rel.right, tables))
        case Union():
            return replace(rel, inputs=tuple(_with_tables(each, tables) for each in rel.inputs))
        case _:
            assert_never(rel)
