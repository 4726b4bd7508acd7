"""Write the statements that read values of the bounded rows: distinct values, and rows near candidates.

Tested in tests/sql/test_aggregates.py and tests/sql/test_implied_bounds.py.
"""

from collections.abc import Sequence

from hubbub.core.schema import Kind
from hubbub.sql.bounding import (
    ContributionBounds,
    Item,
    RenderOptions,
    StatementContext,
    base_rows,
    bounds_implied,
    cell_keys,
    inner_names,
    rank_rows,
    rows_with_values,
    saturated,
    with_owner,
)
from hubbub.sql.candidates import Candidates
from hubbub.sql.dialects.base import Canonical
from hubbub.sql.keys import Groups
from hubbub.sql.measures import Distinct, DistinctCount, DistinctSum
from hubbub.sql.relations import Rel


def distinct(
    relation: Rel, cells: Groups, measure: Distinct, *, limits: ContributionBounds | None, options: RenderOptions
) -> str:
    """Write the query that returns (cell, m0): a measure of the distinct values among the bounded rows of each cell.

    The values are v0, in canonical form; for a sum v1 is what each adds, which v0 determines.
    """
    ctx = StatementContext(relation, cells, options)
    dialect, pair = ctx.dialect, ctx.pair
    items: list[Item] = [DistinctCount(measure.expr, measure.where)]
    items += [measure.of] if isinstance(measure, DistinctSum) else []
    values = ", ".join(f"v{i}" for i in range(len(items)))
    if limits is None or bounds_implied(ctx, limits):
        return _of_values(ctx, measure, values, f"({_grouped(ctx, items)}) AS g")
    base, own, part, heavy, order, bounded = inner_names(ctx, "base", "own", "part", "heavy", "order", "bounded")
    keys, kind = ("u", *ctx.cell), measure.expr.kind
    hashed = ctx.order(("v0", Kind.REAL if kind.numeric else kind))
    ctes = [
        base_rows(ctx, items, every=False),
        f"{own} AS {dialect.materialized}(SELECT DISTINCT {pair}, {values} FROM {base})",
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n FROM {own} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        f"{order} AS (SELECT {pair}, {values}, rank() OVER (PARTITION BY {pair} "
        f"ORDER BY {hashed}, v0) AS place FROM {dialect.with_match(own, heavy, keys)})",
        f"{bounded} AS (SELECT {pair}, {values} FROM {dialect.without_match(own, heavy, keys)} UNION ALL "
        f"SELECT {pair}, {values} FROM {order} WHERE place <= {limits.rows})",
        *_dropped_cells(ctx, limits),
    ]
    return f"WITH {', '.join(ctes)} {_of_values(ctx, measure, values, _kept_cells(ctx, limits))}"


def _of_values(ctx: StatementContext, measure: Distinct, values: str, rows: str) -> str:
    """Write a measure of the distinct values in each cell of some rows."""
    dialect, by = ctx.dialect, ", ".join(ctx.cell)
    if isinstance(measure, DistinctCount):
        result = saturated("count(DISTINCT v0)", 0, dialect)
    else:
        rows = f"(SELECT DISTINCT {by}, {values} FROM {rows}) AS d"
        result = saturated(measure.of.total("v1", dialect), 0, dialect)
    return f"SELECT {ctx.cells.shown('', dialect)}, {result} FROM {rows} GROUP BY {by}"


def _grouped(ctx: StatementContext, items: Sequence[Item]) -> str:
    """Write (c, v0, …, n) for a table with row-level privacy: group by raw keys and values, then number."""
    cells, dialect = ctx.cells, ctx.dialect
    rows, values = rows_with_values(ctx, items)
    texts = [*cell_keys(ctx), *values]
    outputs = ", ".join(f"{text} AS k{j}" for j, text in enumerate(texts))
    grouping = ", ".join(str(j + 1) for j in range(len(texts)))
    first = len(cells.keys)
    named = ", ".join(f"g.k{first + j} AS v{j}" for j in range(len(items)))
    inner = f"SELECT {outputs}, count(*) AS n FROM {rows}{with_owner(ctx)} GROUP BY {grouping}{dialect.fence}"
    columns = tuple(Canonical(f"g.k{j}") for j in range(len(cells.keys)))
    lookup = cells.lookup(columns, dialect, grouped=False)
    numbered = f"SELECT {lookup.cell}, {named}, g.n FROM ({inner}) AS g{lookup.joins}"
    return f"{numbered} WHERE g.k{first} IS NOT NULL AND {lookup.where}"


def buckets(
    relation: Rel, cells: Groups, candidates: Candidates, *, limits: ContributionBounds | None, options: RenderOptions
) -> str:
    """Write the query that returns (cell, bucket, m0): the number of bounded rows nearest to each candidate."""
    ctx = StatementContext(relation, cells, options)
    dialect, pair = ctx.dialect, ctx.pair
    if limits is None or bounds_implied(ctx, limits):
        result = f"{cells.shown('g.', dialect)}, g.v0 AS bucket, {saturated('g.n', 0, dialect)}"
        return f"SELECT {result} FROM ({_grouped(ctx, [candidates])}) AS g"
    base, part, heavy, order, bounded = inner_names(ctx, "base", "part", "heavy", "order", "bounded")
    ctes = [
        base_rows(ctx, [candidates], every=False, twice=True),
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n FROM {base} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        *rank_rows(ctx, [("v0", Kind.INTEGER)]),
        f"{bounded} AS (SELECT {pair}, v0 FROM {dialect.without_match(base, heavy, ('u', *ctx.cell))} UNION ALL "
        f"SELECT {pair}, v0 FROM {order} WHERE place <= {limits.rows})",
        *_dropped_cells(ctx, limits),
    ]
    return (
        f"WITH {', '.join(ctes)} SELECT {cells.shown('', dialect)}, v0 AS bucket, {saturated('count(*)', 0, dialect)} "
        f"FROM {_kept_cells(ctx, limits)} GROUP BY {', '.join(ctx.cell)}, v0"
    )


def _dropped_cells(ctx: StatementContext, limits: ContributionBounds) -> list[str]:
    """Write the cells that are dropped for units above their limit."""
    if limits.groups >= ctx.cells.size:
        return []
    part, wide, cut = inner_names(ctx, "part", "wide", "cut")
    order = ", ".join([ctx.order(), *ctx.cell])
    matching = ctx.dialect.with_match(part, wide, ("u",))
    # use rank, not row_number: the order is strict, and DuckDB turns row_number() <= k into a slower aggregate
    return [
        f"{wide} AS (SELECT u FROM {part} GROUP BY u HAVING count(*) > {limits.groups})",
        f"{cut} AS (SELECT {ctx.pair} FROM (SELECT {ctx.pair}, rank() OVER (PARTITION BY u ORDER BY {order}) "
        f"AS place FROM {matching}){ctx.dialect.unnamed} WHERE place > {limits.groups})",
    ]


def _kept_cells(ctx: StatementContext, limits: ContributionBounds) -> str:
    bounded, cut = inner_names(ctx, "bounded", "cut")
    if limits.groups >= ctx.cells.size:
        return bounded
    return ctx.dialect.without_match(bounded, cut, ("u", *ctx.cell))
