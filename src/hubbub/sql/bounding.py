"""Write the SQL that bounds the contribution of each privacy unit and adds up integers, one row per cell.

Each unit keeps at most `groups` cells and at most `rows` rows in each cell, chosen in the order of a salted hash of the
unit's own data. The choice is therefore a function of that unit's rows alone, in whatever order the engine reads them.
Rows are added up first; only the rows of units above a limit are sorted. Rows without an owner are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.core.schema import Kind
from hubbub.core.unit import Hash
from hubbub.errors import ParameterError
from hubbub.sql import render
from hubbub.sql.candidates import Candidates
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.keys import Cells, DiscoveredCells, Groups
from hubbub.sql.measures import Additive, DistinctCount, KeyWeight, RowCount, UnitCount
from hubbub.sql.relations import UNIT, Rel, owner_kind

#: Sums are clamped to ±2⁶¹ in the engine. Clamping never increases the distance between two sums.
SATURATION = 1 << 61

#: What a statement computes from each row.
Item = Additive | DistinctCount | Candidates


@dataclass(frozen=True, slots=True)
class ContributionBounds:
    """The most that one unit can contribute to one grouping set. None is used where each row is a unit.

    With `auto` both are the public maximum of rows over all groups, and a query finds its own bounds below it.
    `total` is the maximum number of rows in all groups together, where it is less than the other two allow.
    """

    groups: int
    rows: int
    auto: bool = False
    total: int | None = None

    def to_json(self) -> dict[str, int | bool]:
        """Return the form in receipts; `auto` and `total` are there only where they are set."""
        more = {"auto": True} if self.auto else {} if self.total is None else {"total": self.total}
        return {"groups": self.groups, "rows": self.rows} | more

    def within_total(self) -> "ContributionBounds":
        """Return the same bounds, each at most the total, which is dropped where it has no effect."""
        if self.total is None:
            return self
        groups, rows = min(self.groups, self.total), min(self.rows, self.total)
        return ContributionBounds(groups, rows, self.auto, self.total if self.total < groups * rows else None)

    def tightened(self, groups: int | None, rows: int | None) -> "ContributionBounds":
        """Return the bounds of a query, which cannot exceed the owner's."""
        if self.auto and groups is None and rows is None:
            return self
        if self.auto and rows is None:
            raise ParameterError(
                "HB556",
                "The bounds of this dataset are found privately, so groups cannot be given without rows.",
                "Pass rows= as well, or omit groups=.",
            )
        bounds = ContributionBounds(
            self.groups if groups is None else groups, self.rows if rows is None else rows, total=self.total
        )
        if not (1 <= bounds.groups <= self.groups and 1 <= bounds.rows <= self.rows):
            raise ParameterError(
                "HB556",
                f"groups and rows cannot exceed the owner's contribution limits (groups {self.groups}, "
                f"rows {self.rows}).",
                "Use smaller values or omit them.",
            )
        return bounds


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How SQL is rendered: the dialect, and the hash with its salt. Analysts never see the salt."""

    salt: str
    hashing: Hash = "engine"
    dialect: Dialect = DUCKDB

    def hash(self, *columns: tuple[str, Kind]) -> str:
        """Write a hash. Ties do not matter: every ORDER BY continues with the columns themselves.

        Theorem (One choice on every engine). With the portable hash a plan gives the same integers before noise on
        every engine that accepts it. Which pairs and rows of a unit are kept is decided by the order of md5 of texts
        that all engines write alike, and by the values themselves where two hashes are equal; values are compared as
        doubles, integers, dates, or bytes of text, in one order everywhere; and each row's integers are equal, as each
        function of a dialect is, bit by bit, or is refused. The loss is the same with either hash: the choice depends
        on the unit's own rows alone.
        Assumes  one C library, or correctly rounded ln, log10, exp and power; results below 2⁻¹⁰⁰⁰ may be 0.
        Tested   tests/sql/test_postgres_bounding.py::test_the_shared_hash_keeps_the_same_rows_on_every_engine
                 tests/sql/test_postgres_functions.py::test_every_function_is_total_on_postgres
        """
        if self.hashing == "engine":
            return self.dialect.own_hash(self.salt, columns)
        return self.dialect.portable_hash(self.salt, columns)


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The relation, the cells and the rendering options of one statement."""

    relation: Rel
    cells: Groups
    options: RenderOptions

    @property
    def dialect(self) -> Dialect:
        """The dialect of the statement."""
        return self.options.dialect

    @property
    def cell(self) -> tuple[str, ...]:
        """The columns that identify a cell inside the statement."""
        return self.cells.names(self.options.dialect)

    @property
    def pair(self) -> str:
        """The columns that identify a unit and a cell."""
        return ", ".join(["u", *self.cell])

    def order(self, *values: tuple[str, Kind]) -> str:
        """Write the hash of a unit, a cell, and further values."""
        if isinstance(self.cells, DiscoveredCells) and self.options.hashing == "engine":
            cell = self.cells.hashed_natively(self.dialect)
        else:
            cell = self.cells.hashed(self.dialect)
        return self.options.hash(("u", owner_kind(self.relation)), *cell, *values)


def sums(
    relation: Rel,
    cells: Groups,
    measures: Sequence[Additive],
    *,
    limits: ContributionBounds | None,
    options: RenderOptions,
) -> str:
    """Write the query that returns (cell, m0, m1, …) for each cell with rows."""
    ctx = StatementContext(relation, cells, options)
    if limits is None:
        return _by_row(ctx, measures)
    if all(isinstance(measure, UnitCount) or measure == RowCount() for measure in measures):
        return _counts_by_unit(ctx, measures, limits)
    return _by_unit(ctx, measures, limits)


def _by_row(ctx: StatementContext, measures: Sequence[Additive]) -> str:
    """Group by the raw keys, then number the groups: faster than numbering every row."""
    cells, dialect = ctx.cells, ctx.dialect
    rows, values = _rows(ctx, measures)
    outputs = [f"{text} AS k{j}" for j, text in enumerate(_keys(ctx))]
    outputs += [f"{_row_total(measures[i], value, dialect)} AS s{i}" for i, value in enumerate(values)]
    grouping = f" GROUP BY {', '.join(str(j + 1) for j in range(len(cells.keys)))}" if cells.keys else ""
    inner = f"SELECT {', '.join(outputs)} FROM {rows}{grouping}{dialect.fence}"
    columns = tuple(Canonical(f"g.k{j}") for j in range(len(cells.keys)))
    results = ", ".join(saturated(f"g.s{i}", i, dialect) for i in range(len(measures)))
    lookup = cells.lookup(columns, dialect, grouped=True)
    numbered = f"SELECT {lookup.cell}, g.* FROM ({inner}) AS g{lookup.joins} WHERE {lookup.where}"
    present = (
        dialect.numbered("g.s0")
        if isinstance(cells, Cells)
        else " AND ".join(f"g.{name} IS NOT NULL" for name in ctx.cell)
    )
    return f"SELECT {cells.shown('g.', dialect)}, {results} FROM ({numbered}) AS g WHERE {present}"


def _rows(ctx: StatementContext, items: Sequence[Item]) -> tuple[str, list[str]]:
    """Write the rows with a raw value for each item, and the expressions that turn raw values into integers.

    A raw value is computed once because its clamp reads it three times.
    """
    dialect = ctx.dialect
    raws = [(dialect.identifier(f"$p{i}"), item.raw(dialect)) for i, item in enumerate(items)]
    columns = "".join(f", {raw} AS {name}" for name, raw in raws if raw)
    rows = f"({render.relation(ctx.relation, dialect)}) AS r"
    values = [item.value(name, dialect) for (name, _), item in zip(raws, items, strict=True)]
    return (f"(SELECT r.*{columns} FROM {rows}) AS r" if columns else rows), values


def _keys(ctx: StatementContext) -> tuple[Canonical, ...]:
    """Write the keys of a row in canonical form.

    A declared key needs none: it is looked up by equality and continues as a number.
    """
    if isinstance(ctx.cells, DiscoveredCells):
        return tuple(render.key(key.expr, ctx.dialect) for key in ctx.cells.keys)
    return tuple(Canonical(render.expression(key.expr, ctx.dialect)) for key in ctx.cells.keys)


def _row_total(measure: Additive, value: str, dialect: Dialect) -> str:
    if isinstance(measure, UnitCount):
        # each row is a unit
        return f"count({value})" if value != "1" else "count(*)"
    return "count(*)" if value == "1" else measure.total(value, dialect)


def saturated(text: str, place: int, dialect: Dialect) -> str:
    """Write a sum as a column of the result, clamped to 64 bits."""
    inside = f"greatest(least(coalesce({text}, 0), {SATURATION}), -{SATURATION})"
    return f"CAST({inside} AS {dialect.integers[64]}) AS m{place}"


def _counts_by_unit(ctx: StatementContext, measures: Sequence[Additive], limits: ContributionBounds) -> str:
    """Write a statement that only counts: how many rows are kept matters, not which, so none are sorted."""
    totals = [
        measure.total(f"v{i}", ctx.dialect) if isinstance(measure, UnitCount) else f"least(count(*), {limits.rows})"
        for i, measure in enumerate(measures)
    ]
    narrowed, pair = _narrow(totals, measures, limits, ctx.dialect), ctx.pair
    base, bounded = inner_names(ctx, "base", "bounded")
    ctes = [
        base_rows(ctx, measures, every=True),
        f"{bounded} AS (SELECT {pair}, {narrowed} FROM {base} GROUP BY {pair})",
    ]
    return f"WITH {', '.join(ctes)} {_add_up(ctx, limits, measures)}"


def inner_names(ctx: StatementContext, *names: str) -> list[str]:
    """Name the parts of a WITH so that they cannot be confused with tables."""
    return [ctx.dialect.identifier(f"${name}") for name in names]


def _by_unit(ctx: StatementContext, measures: Sequence[Additive], limits: ContributionBounds) -> str:
    dialect, pair = ctx.dialect, ctx.pair
    base, part, heavy, order, bounded = inner_names(ctx, "base", "part", "heavy", "order", "bounded")
    count = range(len(measures))
    values = [f"v{i}" for i in count]
    kept = ["n" if measure == RowCount() else f"s{i}" for i, measure in enumerate(measures)]
    totals = "".join(f", {measures[i].total(f'v{i}', dialect)} AS s{i}" for i in count if kept[i] != "n")
    # any row of a unit in a cell makes the unit count there, so its mark does not depend on the rows that are kept
    marks = [i for i in count if isinstance(measures[i], UnitCount)]
    redone = [dialect.any_of(f"p.s{i}") if i in marks else measures[i].total(f"q.v{i}", dialect) for i in count]
    same = " AND ".join(f"q.{name} = p.{name}" for name in ("u", *ctx.cell))
    marked = f" JOIN {part} AS p ON {same}" if marks else ""
    own = ", ".join(f"q.{name}" for name in ("u", *ctx.cell))
    ctes = [
        base_rows(ctx, measures, every=True),
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n{totals} FROM {base} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        *_rank_rows(ctx, [(value, Kind.INTEGER) for value in values]),
        f"{bounded} AS (SELECT {pair}, {_narrow(kept, measures, limits, dialect)} FROM {part} "
        f"WHERE n <= {limits.rows} "
        f"UNION ALL SELECT {own}, {_narrow(redone, measures, limits, dialect)} FROM {order} AS q{marked} "
        f"WHERE q.place <= {limits.rows} GROUP BY {own})",
    ]
    return f"WITH {', '.join(ctes)} {_add_up(ctx, limits, measures)}"


def _narrow(totals: Sequence[str], measures: Sequence[Additive], limits: ContributionBounds, dialect: Dialect) -> str:
    """Write what a unit adds to a cell as the narrowest integer type, because the value is carried through a sort.

    This uses TRY_CAST: the engine may evaluate sums of more rows than allowed before it filters them out.
    """
    pairs = enumerate(zip(totals, _largest(measures, limits), strict=True))
    return ", ".join(f"{dialect.fitting(text, size)} AS s{i}" for i, (text, size) in pairs)


def _largest(measures: Sequence[Additive], limits: ContributionBounds) -> list[int]:
    """Return the largest amount, in absolute value, that a unit adds to a cell."""
    return [limits.rows * max(-measure.low, measure.high) for measure in measures]


def _add_up(ctx: StatementContext, limits: ContributionBounds, measures: Sequence[Additive]) -> str:
    """Write the sums over the units, after limiting the number of cells of each unit."""
    cells, dialect = ctx.cells, ctx.dialect
    (kept,) = inner_names(ctx, "bounded")
    if limits.groups < cells.size:
        # Rank all pairs: filtering for the units above their limit first is slower unless there are almost none.
        # Use rank, not row_number: the order is strict, and DuckDB may turn row_number() <= k into a slower aggregate.
        order = ", ".join([ctx.order(), *ctx.cell])
        kept = f"(SELECT *, rank() OVER (PARTITION BY u ORDER BY {order}) AS place FROM {kept}){dialect.unnamed} "
        kept += f"WHERE place <= {limits.groups}"
    totals = [dialect.total(f"s{i}", most) for i, most in enumerate(_largest(measures, limits))]
    results = ", ".join(saturated(text, i, dialect) for i, text in enumerate(totals))
    return f"SELECT {cells.shown('', dialect)}, {results} FROM {kept} GROUP BY {', '.join(ctx.cell)}"


def base_rows(ctx: StatementContext, items: Sequence[Item], *, every: bool) -> str:
    """Write the rows as (u, c, v0, v1, …): owner, cell, values. Without `every`, skip rows whose v0 is NULL."""
    dialect = ctx.dialect
    unit = f"r.{dialect.identifier(UNIT)}"
    (base,) = inner_names(ctx, "base")
    rows, values = _rows(ctx, items)
    lookup = ctx.cells.lookup(_keys(ctx), dialect, grouped=False)
    columns = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    present = lookup.where + ("" if every else f" AND ({values[0]}) IS NOT NULL")
    return (
        f"{base} AS {dialect.inlined}(SELECT {dialect.gathered}{unit} AS u, {lookup.cell}, {columns} "
        f"FROM {rows}{lookup.joins} WHERE {unit} IS NOT NULL AND {present})"
    )


def _rank_rows(ctx: StatementContext, values: Sequence[tuple[str, Kind]]) -> list[str]:
    """Write the ranking of the rows in each unit and cell above the limit.

    Identical rows are numbered, so that each copy gets a hash of its own.
    """
    base, heavy, copies, ordered = inner_names(ctx, "base", "heavy", "copies", "order")
    columns = ", ".join([ctx.pair, *(value for value, _ in values)])
    order = ", ".join(f"{value} NULLS LAST" for value, _ in values)
    matching = ctx.dialect.with_match(base, heavy, ("u", *ctx.cell))
    return [
        f"{copies} AS (SELECT {columns}, row_number() OVER (PARTITION BY {columns}{ctx.dialect.unordered}) AS i "
        f"FROM {matching})",
        f"{ordered} AS (SELECT {columns}, rank() OVER (PARTITION BY {ctx.pair} "
        f"ORDER BY {ctx.order(*values, ('i', Kind.INTEGER))}, {order}, i) AS place FROM {copies})",
    ]


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


def _grouped(ctx: StatementContext, item: Item, result: str) -> str:
    """Write a result over (c, v0, n) for a table with row-level privacy: group by raw keys and values, then number."""
    cells, dialect = ctx.cells, ctx.dialect
    rows, values = _rows(ctx, [item])
    texts = [*_keys(ctx), *values]
    outputs = ", ".join(f"{text} AS k{j}" for j, text in enumerate(texts))
    grouping = ", ".join(str(j + 1) for j in range(len(texts)))
    last = f"g.k{len(cells.keys)}"
    inner = f"SELECT {outputs}, count(*) AS n FROM {rows} GROUP BY {grouping}{dialect.fence}"
    columns = tuple(Canonical(f"g.k{j}") for j in range(len(cells.keys)))
    lookup = cells.lookup(columns, dialect, grouped=False)
    numbered = f"SELECT {lookup.cell}, {last} AS v0, g.n FROM ({inner}) AS g{lookup.joins}"
    counted = f"{numbered} WHERE {last} IS NOT NULL AND {lookup.where}"
    return f"SELECT {cells.shown('g.', dialect)}, {result} FROM ({counted}) AS g"


def distinct(
    relation: Rel, cells: Groups, measure: DistinctCount, *, limits: ContributionBounds | None, options: RenderOptions
) -> str:
    """Write the query that returns (cell, m0): the number of distinct values among the bounded rows of each cell."""
    ctx = StatementContext(relation, cells, options)
    dialect, pair = ctx.dialect, ctx.pair
    result = saturated("count(DISTINCT v0)", 0, dialect)
    if limits is None:
        by = ", ".join(f"g.{name}" for name in ctx.cell)
        return f"{_grouped(ctx, measure, saturated('count(*)', 0, dialect))} GROUP BY {by}"
    base, own, part, heavy, order, bounded = inner_names(ctx, "base", "own", "part", "heavy", "order", "bounded")
    keys, kind = ("u", *ctx.cell), measure.expr.kind
    hashed = ctx.order(("v0", Kind.REAL if kind.numeric else kind))
    ctes = [
        base_rows(ctx, [measure], every=False),
        f"{own} AS {dialect.materialized}(SELECT DISTINCT {pair}, v0 FROM {base})",
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n FROM {own} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        f"{order} AS (SELECT {pair}, v0, rank() OVER (PARTITION BY {pair} "
        f"ORDER BY {hashed}, v0) AS place FROM {dialect.with_match(own, heavy, keys)})",
        f"{bounded} AS (SELECT {pair}, v0 FROM {dialect.without_match(own, heavy, keys)} UNION ALL "
        f"SELECT {pair}, v0 FROM {order} WHERE place <= {limits.rows})",
        *_dropped_cells(ctx, limits),
    ]
    result_rows = f"SELECT {cells.shown('', dialect)}, {result} FROM {_kept_cells(ctx, limits)}"
    return f"WITH {', '.join(ctes)} {result_rows} GROUP BY {', '.join(ctx.cell)}"


def key_weights(relation: Rel, cells: Groups, measure: KeyWeight, *, options: RenderOptions) -> str:
    """Write the query that returns (cell, m0): the total weight of the units in each cell.

    The square root and the quotient are correctly rounded on every engine, and ⌊W/√n⌋ is then exact: W²/n is a square
    or differs from every square m² by at least 1/n, so W/√n differs from m by far more than its rounding error.
    """
    ctx = StatementContext(relation, cells, options)
    dialect, pair = ctx.dialect, ctx.pair
    base, part, order, kept = inner_names(ctx, "base", "part", "order", "kept")
    ranked = f"rank() OVER (PARTITION BY u ORDER BY {', '.join([ctx.order(), *ctx.cell])}) AS place"
    weight = "1"
    if measure.keys > 1:
        share = f"floor({dialect.number(measure.weight)} / sqrt(count(*) OVER (PARTITION BY u)))"
        weight = f"CAST({share} AS {dialect.integers[64]})"
    ctes = [
        base_rows(ctx, [RowCount()], every=True),
        f"{part} AS (SELECT {pair} FROM {base} GROUP BY {pair})",
        f"{order} AS (SELECT {pair}, {ranked} FROM {part})",
        f"{kept} AS (SELECT {pair}, {weight} AS s0 FROM {order} WHERE place <= {measure.keys})",
    ]
    total = saturated(dialect.total("s0", measure.weight), 0, dialect)
    return (
        f"WITH {', '.join(ctes)} SELECT {cells.shown('', dialect)}, {total} FROM {kept} GROUP BY {', '.join(ctx.cell)}"
    )


def buckets(
    relation: Rel, cells: Groups, candidates: Candidates, *, limits: ContributionBounds | None, options: RenderOptions
) -> str:
    """Write the query that returns (cell, bucket, m0): the number of bounded rows nearest to each candidate."""
    ctx = StatementContext(relation, cells, options)
    dialect, pair = ctx.dialect, ctx.pair
    if limits is None:
        return _grouped(ctx, candidates, f"g.v0 AS bucket, {saturated('g.n', 0, dialect)}")
    base, part, heavy, order, bounded = inner_names(ctx, "base", "part", "heavy", "order", "bounded")
    ctes = [
        base_rows(ctx, [candidates], every=False),
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n FROM {base} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        *_rank_rows(ctx, [("v0", Kind.INTEGER)]),
        f"{bounded} AS (SELECT {pair}, v0 FROM {dialect.without_match(base, heavy, ('u', *ctx.cell))} UNION ALL "
        f"SELECT {pair}, v0 FROM {order} WHERE place <= {limits.rows})",
        *_dropped_cells(ctx, limits),
    ]
    return (
        f"WITH {', '.join(ctes)} SELECT {cells.shown('', dialect)}, v0 AS bucket, {saturated('count(*)', 0, dialect)} "
        f"FROM {_kept_cells(ctx, limits)} GROUP BY {', '.join(ctx.cell)}, v0"
    )
