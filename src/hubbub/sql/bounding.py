"""The engine's SQL: bound what each unit contributes, add up integers, give one row a cell.

Each unit keeps at most `groups` cells, and at most `rows` rows in each, both chosen in the order of a salted hash of
the unit's own data: the choice is a function of that unit's rows alone, in whatever order the engine finds them. Rows
are added up before anything is sorted: of rows, only those above a limit are. A row without an owner is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hubbub.sql import render
from hubbub.sql.candidates import Candidates
from hubbub.sql.keys import Groups
from hubbub.sql.measures import Additive, Distinct, Rows, Units
from hubbub.sql.relations import UNIT, Rel

#: Sums leave the engine clamped into ±2⁶¹, which brings no two of them further apart.
SATURATION = 1 << 61

Hash = Literal["engine", "portable"]

#: What a row is looked at for.
Item = Additive | Distinct | Candidates


@dataclass(frozen=True, slots=True)
class Limits:
    """What one unit may contribute to one grouping set; None where every row is its own unit."""

    groups: int
    rows: int


def sums(
    relation: Rel,
    cells: Groups,
    measures: Sequence[Additive],
    *,
    limits: Limits | None,
    salt: str,
    hashing: Hash = "engine",
) -> str:
    """Write the query that gives (cell, m0, m1, …) for the cells that are not empty."""
    if limits is None:
        return _by_row(relation, cells, measures)
    if all(isinstance(measure, Units) or measure == Rows() for measure in measures):
        return _counts_by_unit(relation, cells, measures, limits, Hasher(salt, hashing))
    return _by_unit(relation, cells, measures, limits, Hasher(salt, hashing))


@dataclass(frozen=True, slots=True)
class Hasher:
    """Writes a hash of columns, under a salt that analysts never see."""

    salt: str
    hashing: Hash

    def of(self, *columns: str) -> str:
        """Write the hash; ties do not matter, as whoever orders by it goes on with the columns themselves."""
        salt = "'" + self.salt.replace("'", "''") + "'"
        if self.hashing == "engine":
            return f"hash({', '.join([salt, *columns])})"
        texts = ", ".join(f"coalesce(CAST({column} AS VARCHAR), '')" for column in columns)
        return f"md5(concat_ws('|', {salt}, {texts}))"


def _by_row(relation: Rel, cells: Groups, measures: Sequence[Additive]) -> str:
    """Group by the raw keys and number the few groups afterwards: faster than numbering every row."""
    rows, values = _rows(relation, measures)
    outputs = [f"{text} AS k{j}" for j, text in enumerate(_keys(cells))]
    outputs += [f"{_row_total(measures[i], value)} AS s{i}" for i, value in enumerate(values)]
    grouping = f" GROUP BY {', '.join(str(j + 1) for j in range(len(cells.keys)))}" if cells.keys else ""
    inner = f"SELECT {', '.join(outputs)} FROM {rows}{grouping}"
    columns = tuple(f"g.k{j}" for j in range(len(cells.keys)))
    results = ", ".join(_saturated(f"g.s{i}", i) for i in range(len(measures)))
    placed = cells.placed(columns, grouped=True)
    found = f"SELECT {placed.cell} AS c, g.* FROM ({inner}) AS g{placed.joins} WHERE {placed.where}"
    return f"SELECT {cells.shown('g.c')}, {results} FROM ({found}) AS g WHERE g.c IS NOT NULL"


def _rows(relation: Rel, items: Sequence[Item]) -> tuple[str, list[str]]:
    """Write the rows with the raw number of each item beside them, and what each item makes of its own.

    A raw number is computed once and then looked at three times by its clamp.
    """
    raws = [(f'"$p{i}"', item.raw()) for i, item in enumerate(items)]
    columns = "".join(f", {raw} AS {name}" for name, raw in raws if raw)
    rows = f"({render.relation(relation)}) AS r"
    values = [item.value(name) for (name, _), item in zip(raws, items, strict=True)]
    return (f"(SELECT r.*{columns} FROM {rows}) AS r" if columns else rows), values


def _keys(cells: Groups) -> tuple[str, ...]:
    return tuple(render.expression(key.expr) for key in cells.keys)


def _row_total(measure: Additive, value: str) -> str:
    if isinstance(measure, Units):
        # each row is its own unit
        return f"count({value})" if value != "1" else "count(*)"
    return "count(*)" if value == "1" else measure.total(value)


def _saturated(text: str, place: int) -> str:
    return f"CAST(greatest(least(coalesce({text}, 0), {SATURATION}), -{SATURATION}) AS BIGINT) AS m{place}"


def _counts_by_unit(relation: Rel, cells: Groups, measures: Sequence[Additive], limits: Limits, hasher: Hasher) -> str:
    """Count rows and units alone: which rows are picked does not matter, only how many, so none has to be."""
    totals = [
        measure.total(f"v{i}") if isinstance(measure, Units) else f"least(count(*), {limits.rows})"
        for i, measure in enumerate(measures)
    ]
    ctes = [
        _base(relation, cells, measures, every=True),
        f'"$bounded" AS (SELECT u, c, {_narrowed(totals, measures, limits)} FROM "$base" GROUP BY u, c)',
    ]
    return f"WITH {', '.join(ctes)} {_added(cells, limits, hasher, len(measures))}"


def _by_unit(relation: Rel, cells: Groups, measures: Sequence[Additive], limits: Limits, hasher: Hasher) -> str:
    count = range(len(measures))
    values = [f"v{i}" for i in count]
    columns = ", ".join(["u", "c", *values])
    kept = ["n" if measure == Rows() else f"s{i}" for i, measure in enumerate(measures)]
    totals = "".join(f", {measures[i].total(f'v{i}')} AS s{i}" for i in count if kept[i] != "n")
    # a unit counts in a cell by any of its rows there, so its mark is not taken from the rows that were picked
    marks = [i for i in count if isinstance(measures[i], Units)]
    redone = [f"any_value(p.s{i})" if i in marks else measures[i].total(f"q.v{i}") for i in count]
    marked = ' JOIN "$part" AS p ON q.u = p.u AND q.c = p.c' if marks else ""
    ctes = [
        _base(relation, cells, measures, every=True),
        f'"$part" AS MATERIALIZED (SELECT u, c, count(*) AS n{totals} FROM "$base" GROUP BY u, c)',
        f'"$heavy" AS (SELECT u, c FROM "$part" WHERE n > {limits.rows})',
        *_picked(columns, values, hasher),
        f'"$bounded" AS (SELECT u, c, {_narrowed(kept, measures, limits)} FROM "$part" WHERE n <= {limits.rows} '
        f'UNION ALL SELECT q.u, q.c, {_narrowed(redone, measures, limits)} FROM "$order" AS q{marked} '
        f"WHERE q.place <= {limits.rows} GROUP BY q.u, q.c)",
    ]
    return f"WITH {', '.join(ctes)} {_added(cells, limits, hasher, len(measures))}"


def _narrowed(totals: Sequence[str], measures: Sequence[Additive], limits: Limits) -> str:
    """Write what a unit adds to a cell in integers that are just wide enough for it, as it is carried through a sort.

    Tried, not cast: the engine may look at sums of more rows than are allowed before it leaves those out.
    """
    widths = [render.narrow(limits.rows * max(-measure.low, measure.high)) for measure in measures]
    pairs = enumerate(zip(totals, widths, strict=True))
    return ", ".join(f"TRY_CAST({text} AS {width}) AS s{i}" for i, (text, width) in pairs)


def _added(cells: Groups, limits: Limits, hasher: Hasher, count: int) -> str:
    """Write the sums over what units add to their cells, and to no more cells than they may."""
    kept = '"$bounded"'
    if limits.groups < cells.size:
        # All pairs are ranked: to look for the units above their limit, and to leave out what they lose, takes longer,
        # unless nearly none is. rank, not row_number: the order is strict, and DuckDB may turn row_number() <= k into
        # a slower aggregate.
        order = f"{hasher.of('u', 'c')}, c"
        kept = f'(SELECT *, rank() OVER (PARTITION BY u ORDER BY {order}) AS place FROM "$bounded") '
        kept += f"WHERE place <= {limits.groups}"
    results = ", ".join(_saturated(f"sum(s{i})", i) for i in range(count))
    return f"SELECT {cells.shown('c')}, {results} FROM {kept} GROUP BY c"


def _base(relation: Rel, cells: Groups, items: Sequence[Item], *, every: bool) -> str:
    """Write the rows as (u, c, v0, v1, …): owner, cell and what is used of them; without `every`, where v0 is there."""
    unit = f"r.{render.identifier(UNIT)}"
    rows, values = _rows(relation, items)
    placed = cells.placed(_keys(cells), grouped=False)
    columns = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    present = placed.where + ("" if every else f" AND ({values[0]}) IS NOT NULL")
    return (
        f'"$base" AS NOT MATERIALIZED (SELECT {unit} AS u, {placed.cell} AS c, {columns} '
        f"FROM {rows}{placed.joins} WHERE {unit} IS NOT NULL AND {present})"
    )


def _picked(columns: str, values: Sequence[str], hasher: Hasher) -> list[str]:
    """Write the order of the rows of each heavy unit and cell.

    Copies of one row are told apart by a number, so that a row is picked with no regard to how many like it there are.
    """
    order = ", ".join(f"{value} NULLS LAST" for value in values)
    return [
        f'"$copies" AS (SELECT {columns}, row_number() OVER (PARTITION BY {columns}) AS i '
        f'FROM "$base" SEMI JOIN "$heavy" USING (u, c))',
        f'"$order" AS (SELECT {columns}, rank() OVER (PARTITION BY u, c '
        f'ORDER BY {hasher.of("u", "c", *values, "i")}, {order}, i) AS place FROM "$copies")',
    ]


def _cut(cells: Groups, limits: Limits, hasher: Hasher) -> list[str]:
    """Write the cells that units above their limit lose."""
    if limits.groups >= cells.size:
        return []
    # rank, not row_number: the order is strict, and DuckDB turns row_number() <= k into a slower aggregate
    return [
        f'"$wide" AS (SELECT u FROM "$part" GROUP BY u HAVING count(*) > {limits.groups})',
        f'"$cut" AS (SELECT u, c FROM (SELECT u, c, rank() OVER (PARTITION BY u ORDER BY {hasher.of("u", "c")}, c) '
        f'AS place FROM "$part" SEMI JOIN "$wide" USING (u)) WHERE place > {limits.groups})',
    ]


def _uncut(cells: Groups, limits: Limits) -> str:
    return '"$bounded"' if limits.groups >= cells.size else '"$bounded" ANTI JOIN "$cut" USING (u, c)'


def _grouped(relation: Rel, cells: Groups, item: Item, result: str) -> str:
    """Write a result over (c, v0, n): groups of raw keys and values of a table whose unit is the row, then numbered."""
    rows, values = _rows(relation, [item])
    texts = [*_keys(cells), *values]
    outputs = ", ".join(f"{text} AS k{j}" for j, text in enumerate(texts))
    grouping = ", ".join(str(j + 1) for j in range(len(texts)))
    last = f"g.k{len(cells.keys)}"
    inner = f"SELECT {outputs}, count(*) AS n FROM {rows} GROUP BY {grouping}"
    columns = tuple(f"g.k{j}" for j in range(len(cells.keys)))
    placed = cells.placed(columns, grouped=False)
    found = f"SELECT {placed.cell} AS c, {last} AS v0, g.n FROM ({inner}) AS g{placed.joins}"
    counted = f"{found} WHERE {last} IS NOT NULL AND {placed.where}"
    return f"SELECT {cells.shown('g.c')}, {result} FROM ({counted}) AS g"


def distinct(
    relation: Rel, cells: Groups, measure: Distinct, *, limits: Limits | None, salt: str, hashing: Hash = "engine"
) -> str:
    """Write the query that gives (cell, m0): how many different values the bounded rows of each cell have."""
    result = _saturated("count(DISTINCT v0)", 0)
    if limits is None:
        return _grouped(relation, cells, measure, _saturated("count(*)", 0)) + " GROUP BY g.c"
    hasher = Hasher(salt, hashing)
    ctes = [
        _base(relation, cells, [measure], every=False),
        '"$own" AS MATERIALIZED (SELECT DISTINCT u, c, v0 FROM "$base")',
        '"$part" AS MATERIALIZED (SELECT u, c, count(*) AS n FROM "$own" GROUP BY u, c)',
        f'"$heavy" AS (SELECT u, c FROM "$part" WHERE n > {limits.rows})',
        '"$order" AS (SELECT u, c, v0, rank() OVER (PARTITION BY u, c '
        f'ORDER BY {hasher.of("u", "c", "v0")}, v0) AS place FROM "$own" SEMI JOIN "$heavy" USING (u, c))',
        '"$bounded" AS (SELECT u, c, v0 FROM "$own" ANTI JOIN "$heavy" USING (u, c) UNION ALL '
        f'SELECT u, c, v0 FROM "$order" WHERE place <= {limits.rows})',
        *_cut(cells, limits, hasher),
    ]
    return f"WITH {', '.join(ctes)} SELECT {cells.shown('c')}, {result} FROM {_uncut(cells, limits)} GROUP BY c"


def buckets(
    relation: Rel, cells: Groups, candidates: Candidates, *, limits: Limits | None, salt: str, hashing: Hash = "engine"
) -> str:
    """Write the query that gives (cell, bucket, m0): how many bounded rows lie nearest to each candidate."""
    if limits is None:
        return _grouped(relation, cells, candidates, f"g.v0 AS bucket, {_saturated('g.n', 0)}")
    hasher = Hasher(salt, hashing)
    ctes = [
        _base(relation, cells, [candidates], every=False),
        '"$part" AS MATERIALIZED (SELECT u, c, count(*) AS n FROM "$base" GROUP BY u, c)',
        f'"$heavy" AS (SELECT u, c FROM "$part" WHERE n > {limits.rows})',
        *_picked("u, c, v0", ["v0"], hasher),
        '"$bounded" AS (SELECT u, c, v0 FROM "$base" ANTI JOIN "$heavy" USING (u, c) UNION ALL '
        f'SELECT u, c, v0 FROM "$order" WHERE place <= {limits.rows})',
        *_cut(cells, limits, hasher),
    ]
    return (
        f"WITH {', '.join(ctes)} SELECT {cells.shown('c')}, v0 AS bucket, {_saturated('count(*)', 0)} "
        f"FROM {_uncut(cells, limits)} GROUP BY c, v0"
    )
