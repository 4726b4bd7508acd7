"""Bind a scan of a declared table: its visible columns, their facts, and the owner of its rows.

Tested in tests/sql/test_bind.py.
"""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.sql.bind_scope import MAX_SCANS, BoundRelation, Context, Owner, VisibleColumn
from hubbub.sql.expressions import Col, Facts
from hubbub.sql.relations import Scan

_INTEGERS = Bounds(-(Fraction(2) ** 128), Fraction(2) ** 128)


def bind_scan(ctx: Context, node: exp.Expr, table: Table, name: str) -> BoundRelation:
    """Bind the visible columns of a table."""
    ctx.scans += 1
    if ctx.scans > MAX_SCANS:
        raise ctx.error(
            node,
            "HB518",
            f"The query reads more than {MAX_SCANS} tables, counting a WITH clause at each use.",
            "Split it into several queries.",
        )
    if table not in ctx.used:
        ctx.used.append(table)
    owners = [unit.column for unit in table.owners]
    cols, sources, visible = list[Col](), list[str](), list[VisibleColumn]()
    for column in table.columns:
        if column.hidden:
            continue
        if column.name in owners:
            visible.append(VisibleColumn(column.name, name, None, owners.index(column.name)))
            continue
        facts = column_facts(column)
        if None in table.rows.get(column.name, ()):
            facts = replace(facts, null=True)
        col = ctx.new_column(column.name, column.kind, facts, 1)
        cols.append(col)
        sources.append(column.name)
        visible.append(VisibleColumn(column.name, name, col))
    return BoundRelation(Scan(table, tuple(cols), tuple(sources)), tuple(visible), _owner(table))


def _owner(table: Table) -> Owner | None:
    if table.unit is None:
        return None
    if table.unit.column is None:
        return Owner(table.name, None, table.relation)
    first, *others = (_alone(table, unit) for unit in table.owners)
    return replace(first, others=tuple(others))


def _alone(table: Table, unit: PrivacyUnit) -> Owner:
    kind = table.owner_kind(unit) or Kind.TEXT
    root = table.name if unit.path is None else unit.path.tables[-1]
    # periods of one entity are the same units only where they are equally long
    per = "" if unit.period is None or not unit.entity else f" per {unit.period.per}"
    return Owner(unit.entity + per, kind, table.relation, table="" if unit.entity else root)


def column_facts(column: Column) -> Facts:
    """Return the facts that the scan guarantees for a column."""
    return replace(_facts(column), required=column.required)


def _facts(column: Column) -> Facts:
    listed = None if column.values is None else (*column.values, *([] if column.other is None else [column.other]))
    values = None if listed is None else tuple(dict.fromkeys(listed))
    null = column.nullable
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        return Facts(column.bounds, values, null=null)
    if not column.kind.numeric:
        return Facts(None, values, null=null)
    integer = column.kind is Kind.INTEGER
    numbers = [Fraction(v) for v in values or () if isinstance(v, int | Fraction)]
    # the list with `other`, which may be beyond the bounds of the list
    spread = Bounds(min(numbers), max(numbers)) if numbers else column.bounds or (_INTEGERS if integer else None)
    return Facts(spread, values, column.step or (Fraction(1) if integer else None), null, column.auto)
