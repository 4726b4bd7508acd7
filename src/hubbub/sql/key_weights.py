"""Write the SQL that weighs the units of each discovered group, by which groups are selected.

Tested in tests/sql/test_key_weights.py.
"""

from math import isqrt

from hubbub.sql.bounding import RenderOptions, StatementContext, base_rows, inner_names, saturated
from hubbub.sql.keys import Groups
from hubbub.sql.measures import KeyWeight, RowCount
from hubbub.sql.relations import Rel


def key_weights(relation: Rel, cells: Groups, measure: KeyWeight, *, options: RenderOptions) -> str:
    """Write the query that returns (cell, m0): the total weight of the units in each cell.

    The square root and the quotient are correctly rounded on every engine, and ⌊W/√n⌋ is then exact: W²/n is a square
    or differs from every square m² by at least 1/n, so W/√n differs from m by far more than its rounding error.
    Only the cells of units that have more than `keys` of them are sorted, where the engine keeps what it has computed.
    """
    ctx = StatementContext(relation, cells, options)
    dialect, pair, cell = ctx.dialect, ctx.pair, ", ".join(ctx.cell)
    base, part, units, wide, order, kept = inner_names(ctx, "base", "part", "units", "wide", "order", "kept")
    ranked = f"rank() OVER (PARTITION BY u ORDER BY {', '.join([ctx.order(), *ctx.cell])}) AS place"
    share = f"floor({dialect.number(measure.weight)} / sqrt({{}}))"
    ctes = [base_rows(ctx, [RowCount()], every=True)]
    if measure.keys > 1 and dialect.materialized:
        own = ", ".join(f"p.{name}" for name in ctx.cell)
        ctes += [
            f"{part} AS {dialect.materialized}(SELECT {pair} FROM {base} GROUP BY {pair})",
            f"{units} AS {dialect.materialized}(SELECT u, count(*) AS n FROM {part} GROUP BY u)",
            f"{wide} AS (SELECT u FROM {units} WHERE n > {measure.keys})",
            f"{order} AS (SELECT {pair}, {ranked} FROM {dialect.with_match(part, wide, ('u',))})",
            f"{kept} AS (SELECT {own}, CAST({share.format('k.n')} AS {dialect.integers[64]}) AS s0 FROM {part} AS p "
            f"JOIN {units} AS k ON k.u = p.u WHERE k.n <= {measure.keys} UNION ALL "
            f"SELECT {cell}, {isqrt(measure.weight**2 // measure.keys)} AS s0 FROM {order} "
            f"WHERE place <= {measure.keys})",
        ]
    else:
        counted = share.format("count(*) OVER (PARTITION BY u)")
        weight = "1" if measure.keys == 1 else f"CAST({counted} AS {dialect.integers[64]})"
        ctes += [
            f"{part} AS (SELECT {pair} FROM {base} GROUP BY {pair})",
            f"{order} AS (SELECT {pair}, {ranked} FROM {part})",
            f"{kept} AS (SELECT {pair}, {weight} AS s0 FROM {order} WHERE place <= {measure.keys})",
        ]
    total = saturated(dialect.total("s0", measure.weight), 0, dialect)
    return f"WITH {', '.join(ctes)} SELECT {cells.shown('', dialect)}, {total} FROM {kept} GROUP BY {cell}"
