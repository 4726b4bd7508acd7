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
from hubbub.sql import packed_sums, render
from hubbub.sql.candidates import Candidates
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.keys import Cells, DiscoveredCells, Groups
from hubbub.sql.measures import Additive, DistinctCount, RowCount, UnitCount
from hubbub.sql.owner_joins import follows_references
from hubbub.sql.relations import Rel, Truncate, owner_columns, owner_kind
from hubbub.sql.unit_parts import small

#: Sums are clamped to ±2⁶¹ in the engine. Clamping never increases the distance between two sums.
SATURATION = 1 << 61

#: What a statement computes from each row.
Item = Additive | DistinctCount | Candidates


@dataclass(frozen=True, slots=True)
class ContributionBounds:
    """The most that one unit can contribute to one grouping set. None is used where each row is a unit.

    With `auto` both are the public maximum of rows over all groups, and a query finds its own bounds below it.
    `total` is the maximum number of rows in all groups together, where it is less than the other two allow. Where rows
    have two `owners`, the bound is for each of them in each group, and one owner is in all groups.
    """

    groups: int
    rows: int
    auto: bool = False
    total: int | None = None
    owners: int = 1

    def to_json(self) -> dict[str, int | bool]:
        """Return the form in receipts; `auto`, `total` and `owners` are there only where they are set."""
        more = {"auto": True} if self.auto else {} if self.total is None else {"total": self.total}
        owners = {"owners": self.owners} if self.owners > 1 else {}
        return {"groups": self.groups, "rows": self.rows} | more | owners

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
                f"groups and rows must be at least 1, and cannot exceed the owner's contribution limits (groups "
                f"{self.groups}, rows {self.rows}).",
                "Use values in these ranges or omit them.",
            )
        return bounds


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How SQL is rendered: the dialect, the hash with its salt, and its memory. Analysts never see the salt."""

    salt: str
    hashing: Hash = "engine"
    dialect: Dialect = DUCKDB
    memory: int | None = None  #: MB that a statement may take before it runs in parts; None: no limit

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
        return self.options.hash(("u", owner_kind(self.relation)), *self.cells.hashed(self.dialect), *values)


def sums(
    relation: Rel,
    cells: Groups,
    measures: Sequence[Additive],
    *,
    limits: ContributionBounds | None,
    options: RenderOptions,
) -> str:
    """Write the query that returns (cell, m0, m1, …) for each cell with rows.

    Theorem (Bounds that a cut implies). Where units were cut to T rows, a bound of T or more rows in a cell keeps all
    of them, and a bound of T or more cells keeps all cells: statements without these bounds give the same integers.
    Proof    A unit with at most T rows has at most T in a cell, and rows in at most T cells.
    Tested   tests/sql/test_implied_bounds.py::test_bounds_that_a_cut_implies_change_no_integer
    """
    ctx = StatementContext(relation, cells, options)
    if limits is None or (bounds_implied(ctx, limits) and not any(isinstance(each, UnitCount) for each in measures)):
        return _by_row(ctx, measures)
    counts = all(isinstance(measure, UnitCount) or measure == RowCount() for measure in measures)
    if counts or _within_cut(ctx, limits.rows):
        return _without_sorting_rows(ctx, measures, limits)
    return _by_unit(ctx, measures, limits)


def _within_cut(ctx: StatementContext, bound: int) -> bool:
    """Whether the rows of a unit were cut to at most as many as a bound allows."""
    return isinstance(ctx.relation, Truncate) and ctx.relation.rows <= bound


def bounds_implied(ctx: StatementContext, limits: ContributionBounds) -> bool:
    """Whether a cut implies both bounds, so that rows can be added up whoever owns them."""
    return _within_cut(ctx, min(limits.groups, limits.rows))


def _by_row(ctx: StatementContext, measures: Sequence[Additive]) -> str:
    """Group by the raw keys, then number the groups: faster than numbering every row."""
    cells, dialect = ctx.cells, ctx.dialect
    rows, values = rows_with_values(ctx, measures)
    outputs = [f"{text} AS k{j}" for j, text in enumerate(cell_keys(ctx))]
    outputs += [f"{_row_total(measures[i], value, dialect)} AS s{i}" for i, value in enumerate(values)]
    grouping = f" GROUP BY {', '.join(str(j + 1) for j in range(len(cells.keys)))}" if cells.keys else ""
    inner = f"SELECT {', '.join(outputs)} FROM {rows}{with_owner(ctx)}{grouping}{dialect.fence}"
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


def rows_with_values(ctx: StatementContext, items: Sequence[Item]) -> tuple[str, list[str]]:
    """Write the rows with a raw value for each item, and the expressions that turn raw values into integers.

    A raw value is computed once because its clamp reads it three times.
    """
    dialect = ctx.dialect
    raws = [(dialect.identifier(f"$p{i}"), item.raw(dialect)) for i, item in enumerate(items)]
    columns = "".join(f", {raw} AS {name}" for name, raw in raws if raw)
    rows = f"({render.relation(ctx.relation, dialect)}) AS r"
    values = [item.value(name, dialect) for (name, _), item in zip(raws, items, strict=True)]
    return (f"(SELECT r.*{columns} FROM {rows}) AS r" if columns else rows), values


def with_owner(ctx: StatementContext) -> str:
    """Write the condition that a row has an owner, where rows have one."""
    known = [f"r.{ctx.dialect.identifier(name)} IS NOT NULL" for name in owner_columns(ctx.relation)]
    return f" WHERE {' AND '.join(known)}" if known else ""


def cell_keys(ctx: StatementContext) -> tuple[Canonical, ...]:
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


def _without_sorting_rows(ctx: StatementContext, measures: Sequence[Additive], limits: ContributionBounds) -> str:
    """Write a statement where how many rows of a unit are kept matters, but not which, or where all are kept."""
    totals = [
        f"least(count(*), {limits.rows})" if measure == RowCount() else measure.total(f"v{i}", ctx.dialect)
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
    if ctx.dialect.groups_first:
        return _by_first_groups(ctx, measures, limits)
    return _by_first_rows(ctx, measures, limits)


def _by_first_rows(ctx: StatementContext, measures: Sequence[Additive], limits: ContributionBounds) -> str:
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
        base_rows(ctx, measures, every=True, twice=True),
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n{totals} FROM {base} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        *rank_rows(ctx, [(value, Kind.INTEGER) for value in values]),
        f"{bounded} AS (SELECT {pair}, {_narrow(kept, measures, limits, dialect)} FROM {part} "
        f"WHERE n <= {limits.rows} "
        f"UNION ALL SELECT {own}, {_narrow(redone, measures, limits, dialect)} FROM {order} AS q{marked} "
        f"WHERE q.place <= {limits.rows} GROUP BY {own})",
    ]
    return f"WITH {', '.join(ctes)} {_add_up(ctx, limits, measures)}"


def _by_first_groups(ctx: StatementContext, measures: Sequence[Additive], limits: ContributionBounds) -> str:
    """Write the same sums with less work: only rows of groups that a unit keeps are sorted, and added up by cell.

    Theorem (Groups or rows first). The integers are those of rows first, so units are bounded in the same way.
    Proof    Which groups a unit keeps depends on its cells alone, and which rows it keeps in a cell on its rows there.
    Tested   tests/sql/test_groups_first.py::test_groups_or_rows_first_gives_the_same_integers
    """
    dialect, cell, rows = ctx.dialect, ", ".join(ctx.cell), limits.rows
    base, bounded, kept, heavy, order = inner_names(ctx, "base", "bounded", "kept", "heavy", "order")
    places, largest = range(len(measures)), _largest(measures, limits)
    counted = {i for i in places if measures[i] == RowCount()}
    # any row of a unit in a cell makes the unit count there, so its mark does not depend on the rows that are kept
    marks = {i for i in places if isinstance(measures[i], UnitCount)}
    sums = {i: (measures[i].low, measures[i].high) for i in places if i not in counted | marks}
    fields = packed_sums.packed(sums, rows)
    if fields is None:
        return _by_first_rows(ctx, measures, limits)
    alone = [i for i in places if i in marks or (i in sums and i not in fields.fields)]
    totals = [f"sum({fields.row(dialect)}) AS p"]
    totals += [f"{dialect.fitting(measures[i].total(f'v{i}', dialect), largest[i])} AS s{i}" for i in alone]
    light = f"p < {dialect.number(fields.threshold)}"
    unpacked = {i: fields.count("p") for i in counted} | {i: fields.sum(i, "p") for i in fields.fields}
    light_alone = {i: f"s{i}" if i in marks else f"CASE WHEN u IS NULL THEN s{i} END" for i in alone}
    amounts = [(unpacked | light_alone)[i] for i in places]
    added = ", ".join(f"{dialect.total(text, largest[i])} AS s{i}" for i, text in enumerate(amounts))
    listed = ", ".join(f"s{i}" for i in places)
    redone = ", ".join("NULL" if i in marks else f"v{i}" for i in places)
    whole = f"CAST(CASE WHEN {light} THEN p END AS {dialect.integers[64]}) AS p"
    others = "".join(f", s{i}" for i in alone)
    # pairs with too many rows stay by themselves; all others of a cell are added up, so that little is stored
    first = f"SELECT CASE WHEN NOT {light} THEN u END AS u, {cell}, {whole}{others} FROM "
    first = f"({first}{_first_groups(ctx, limits, bounded)}){dialect.unnamed}"
    ctes = [
        base_rows(ctx, measures, every=True, twice=True),
        f"{bounded} AS (SELECT {ctx.pair}, {', '.join(totals)} FROM {base} GROUP BY {ctx.pair})",
        f"{kept} AS {dialect.materialized}(SELECT {ctx.pair}, {added} FROM {first} GROUP BY {ctx.pair})",
        f"{heavy} AS (SELECT {ctx.pair} FROM {kept} WHERE u IS NOT NULL)",
        *rank_rows(ctx, [(f"v{i}", Kind.INTEGER) for i in places]),
    ]
    chosen = f"SELECT {cell}, {redone} FROM {order} WHERE place <= {rows}"
    united = f"(SELECT {cell}, {listed} FROM {kept} UNION ALL {chosen}){dialect.unnamed}"
    return f"WITH {', '.join(ctes)} {_by_cell(ctx, limits, measures, united)}"


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
    (kept,) = inner_names(ctx, "bounded")
    return _by_cell(ctx, limits, measures, _first_groups(ctx, limits, kept))


def _first_groups(ctx: StatementContext, limits: ContributionBounds, pairs: str) -> str:
    """Write a FROM item: of the pairs of units and cells, the first of each unit by hash."""
    if limits.groups >= ctx.cells.size or _within_cut(ctx, limits.groups):
        return pairs
    # Rank all pairs: filtering for the units above their limit first is slower unless there are almost none.
    # Use rank, not row_number: the order is strict, and DuckDB may turn row_number() <= k into a slower aggregate.
    order = ", ".join([ctx.order(), *ctx.cell])
    ranked = f"SELECT *, rank() OVER (PARTITION BY u ORDER BY {order}) AS place FROM {pairs}"
    return f"({ranked}){ctx.dialect.unnamed} WHERE place <= {limits.groups}"


def _by_cell(ctx: StatementContext, limits: ContributionBounds, measures: Sequence[Additive], rows: str) -> str:
    """Write the sums of s0, s1, … by cell."""
    dialect = ctx.dialect
    totals = [dialect.total(f"s{i}", most) for i, most in enumerate(_largest(measures, limits))]
    results = ", ".join(saturated(text, i, dialect) for i, text in enumerate(totals))
    return f"SELECT {ctx.cells.shown('', dialect)}, {results} FROM {rows} GROUP BY {', '.join(ctx.cell)}"


def base_rows(ctx: StatementContext, items: Sequence[Item], *, every: bool, twice: bool = False) -> str:
    """Write the rows as (u, c, v0, v1, …): owner, cell, values. Without `every`, skip rows whose v0 is NULL.

    Where rows have two owners, the second is w. Rows that are read `twice` are computed once if owners are found by
    joins; reading a plain table twice is faster than storing its rows.
    """
    dialect = ctx.dialect
    owners = [f"r.{dialect.identifier(name)}" for name in owner_columns(ctx.relation)]
    unit = ", ".join(f"{owner} AS {name}" for owner, name in zip(owners, "uw", strict=False))
    known = " AND ".join(f"{owner} IS NOT NULL" for owner in owners)
    (base,) = inner_names(ctx, "base")
    rows, values = rows_with_values(ctx, items)
    lookup = ctx.cells.lookup(cell_keys(ctx), dialect, grouped=False)
    columns = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    present = lookup.where + ("" if every else f" AND ({values[0]}) IS NOT NULL")
    stored = follows_references(ctx.relation) or (dialect.splits_units and small(ctx.relation))
    once = dialect.materialized if twice and stored else dialect.inlined
    return (
        f"{base} AS {once}(SELECT {dialect.gathered}{unit}, {lookup.cell}, {columns} "
        f"FROM {rows}{lookup.joins} WHERE {known} AND {present})"
    )


def rank_rows(ctx: StatementContext, values: Sequence[tuple[str, Kind]]) -> list[str]:
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


def shared(relation: Rel, cells: Groups, measures: Sequence[Additive], *, options: RenderOptions) -> str:
    """Write the query that returns (u, w, cell, m0, m1, …): the sums of the rows that two owners share in each cell.

    Their order is that of a salted hash of owners and cell: it is fixed before the data is seen, whatever rows exist.
    """
    ctx = StatementContext(relation, cells, options)
    dialect = ctx.dialect
    (base,) = inner_names(ctx, "base")
    totals = [saturated(each.total(f"v{i}", dialect), i, dialect) for i, each in enumerate(measures)]
    by = ", ".join(["u", "w", *ctx.cell])
    order = options.hash(("u", owner_kind(relation)), ("w", owner_kind(relation, 1)), *cells.hashed(dialect))
    part = f"SELECT {by}, {', '.join(totals)} FROM {base} GROUP BY {by}"
    sums = ", ".join(f"m{i}" for i in range(len(measures)))
    return (
        f"WITH {base_rows(ctx, measures, every=True)} SELECT u, w, {cells.shown('', dialect)}, {sums} "
        f"FROM ({part}) AS t ORDER BY {order}, {by}"
    )
