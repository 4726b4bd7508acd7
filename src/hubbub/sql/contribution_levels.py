"""Write the SQL behind bounds that are found privately: units by level of contribution, and sums clipped to a bound.

Tested in tests/sql/test_auto_bounds.py.
"""

from collections.abc import Sequence
from fractions import Fraction

from hubbub.sql import render
from hubbub.sql.bounding import RenderOptions, StatementContext, base_rows, inner_names, saturated
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Expr
from hubbub.sql.keys import Groups
from hubbub.sql.measures import BoundedSum, UnitCount
from hubbub.sql.relations import UNIT, Rel, owned


def rows_by_level(relation: Rel, levels: Sequence[int], options: RenderOptions) -> str:
    """Write the query that returns (level, m0): the number of units whose rows reach that level."""
    dialect = options.dialect
    unit = f"r.{dialect.identifier(UNIT)}"
    rows = f"({render.relation(relation, dialect)}) AS r"
    owned = f"SELECT {unit} AS u, count(*) AS n FROM {rows} WHERE {unit} IS NOT NULL GROUP BY {unit}"
    return _by_level(f"({owned}) AS t", levels, dialect)


def cells_by_level(relation: Rel, cells: Groups, levels: Sequence[int], options: RenderOptions) -> str:
    """Write the query that returns (level, m0): the number of units whose cells reach that level."""
    ctx = StatementContext(relation, cells, options)
    base, part = inner_names(ctx, "base", "part")
    return (
        f"WITH {base_rows(ctx, [UnitCount()], every=True)}, "
        f"{part} AS (SELECT DISTINCT {ctx.pair} FROM {base}) "
        + _by_level(f"(SELECT u, count(*) AS n FROM {part} GROUP BY u) AS t", levels, options.dialect)
    )


def values_by_level(
    relation: Rel, expr: Expr, where: Expr | None, levels: Sequence[int], unit: Fraction, options: RenderOptions
) -> str:
    """Write the query that returns (level, m0): the number of units whose largest magnitude reaches that level.

    Levels are multiples of `unit`. Where each row is a unit, it counts rows. Units without a value are not counted.
    """
    dialect = options.dialect
    value = f"abs({render.expression(expr, dialect)})"
    if where is not None:
        value = f"CASE WHEN {render.expression(where, dialect)} THEN {value} END"
    rows = f"({render.relation(relation, dialect)}) AS r"
    if owned(relation):
        u = f"r.{dialect.identifier(UNIT)}"
        each = f"SELECT {u} AS u, max({value}) AS n FROM {rows} WHERE {u} IS NOT NULL GROUP BY {u}"
    else:
        each = f"SELECT {value} AS n FROM {rows}"
    present = f"(SELECT n FROM ({each}) AS v WHERE n IS NOT NULL) AS t"
    whens = " ".join(f"WHEN n <= {dialect.number(level * unit)} THEN {place}" for place, level in enumerate(levels))
    leveled = f"SELECT CAST(CASE {whens} ELSE {len(levels)} END AS {dialect.integers[64]}) AS level FROM {present}"
    return f"SELECT level, {saturated('count(*)', 0, dialect)} FROM ({leveled}) AS l GROUP BY level"


def sums_by_level(
    relation: Rel, cells: Groups, measure: BoundedSum, levels: Sequence[int], options: RenderOptions
) -> str:
    """Write the query that returns (level, m0): the number of units whose sums over all cells reach that level."""
    ctx = StatementContext(relation, cells, options)
    (part,) = inner_names(ctx, "part")
    most = levels[-1] + 1
    return f"WITH {_parts(ctx, measure, most)} " + _by_level(
        f"(SELECT u, {options.dialect.total('abs(s)', most)} AS n FROM {part} GROUP BY u) AS t",
        levels,
        options.dialect,
    )


def clipped_sum(relation: Rel, cells: Groups, measure: BoundedSum, bound: int, options: RenderOptions) -> str:
    """Write the query that returns (cell, m0): sums to which each unit adds at most a bound in L1 over all cells.

    A unit's cells are filled in the order of a salted hash until its bound is used up; the last one gets what is left.
    """
    ctx = StatementContext(relation, cells, options)
    dialect = options.dialect
    (part,) = inner_names(ctx, "part")
    wide = dialect.integers[128]
    order = ", ".join([ctx.order(), *ctx.cell])
    before = (
        f"sum(CAST(abs(s) AS {wide})) OVER (PARTITION BY u ORDER BY {order} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    room = f"greatest(0, {bound} - coalesce({before}, 0))"
    kept = f"SELECT *, CAST(least(abs(s), {room}) AS {dialect.integers[64]}) AS a FROM {part}"
    total = dialect.total("CASE WHEN s < 0 THEN -a ELSE a END", bound)
    return (
        f"WITH {_parts(ctx, measure, bound)} SELECT {cells.shown('', dialect)}, {saturated(total, 0, dialect)} "
        f"FROM ({kept}){dialect.unnamed} GROUP BY {', '.join(ctx.cell)}"
    )


def _parts(ctx: StatementContext, measure: BoundedSum, most: int) -> str:
    """Write the sums of each unit in each cell, clamped to ±most: what exceeds the bound of a unit is cut anyway."""
    dialect = ctx.dialect
    base, part = inner_names(ctx, "base", "part")
    inside = f"greatest(least(coalesce({measure.total('v0', dialect)}, 0), {most}), -{most})"
    return (
        f"{base_rows(ctx, [measure], every=True)}, {part} AS (SELECT {ctx.pair}, "
        f"CAST({inside} AS {dialect.integers[64]}) AS s FROM {base} GROUP BY {ctx.pair})"
    )


def _by_level(units: str, levels: Sequence[int], dialect: Dialect) -> str:
    """Count units by the level of n; those above the last level have a level of their own."""
    whens = " ".join(f"WHEN n <= {level} THEN {place}" for place, level in enumerate(levels))
    level = f"CASE {whens} ELSE {len(levels)} END"
    leveled = f"SELECT CAST({level} AS {dialect.integers[64]}) AS level FROM {units}"
    return f"SELECT level, {saturated('count(*)', 0, dialect)} FROM ({leveled}) AS l GROUP BY level"
