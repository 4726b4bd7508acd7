"""The engine's SQL: bound what each unit contributes, add up integers, give one row a cell.

Each unit keeps at most `groups` cells, and at most `rows` rows in each, both chosen in the order of a salted hash of
the unit's own data: the choice is a function of that unit's rows alone, in whatever order the engine finds them. Rows
are added up before anything is sorted: of rows, only those above a limit are. A row without an owner is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.core.schema import Kind
from hubbub.core.unit import Hash
from hubbub.sql import render
from hubbub.sql.candidates import Candidates
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.keys import Cells, Found, Groups
from hubbub.sql.measures import Additive, Distinct, Rows, Units
from hubbub.sql.relations import UNIT, Rel, owner_kind

#: Sums leave the engine clamped into ±2⁶¹, which brings no two of them further apart.
SATURATION = 1 << 61

#: What a row is looked at for.
Item = Additive | Distinct | Candidates


@dataclass(frozen=True, slots=True)
class Limits:
    """What one unit may contribute to one grouping set; None where every row is its own unit."""

    groups: int
    rows: int


@dataclass(frozen=True, slots=True)
class Words:
    """How the text is written: in whose words, and by which hash under which salt, which analysts never see."""

    salt: str
    hashing: Hash = "engine"
    dialect: Dialect = DUCKDB

    def hash(self, *columns: tuple[str, Kind]) -> str:
        """Write a hash; ties do not matter, as whoever orders by it goes on with the columns themselves.

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
class _Task:
    """What one text is about, with the words for it."""

    relation: Rel
    cells: Groups
    words: Words

    @property
    def dialect(self) -> Dialect:
        return self.words.dialect

    @property
    def cell(self) -> tuple[str, ...]:
        """The columns that a cell is carried in."""
        return self.cells.names(self.words.dialect)

    @property
    def pair(self) -> str:
        """The columns of a unit and a cell."""
        return ", ".join(["u", *self.cell])

    def order(self, *values: tuple[str, Kind]) -> str:
        """The hash of a unit, a cell and values of its own."""
        if isinstance(self.cells, Found) and self.words.hashing == "engine":
            cell = self.cells.carried(self.dialect)
        else:
            cell = self.cells.hashed(self.dialect)
        return self.words.hash(("u", owner_kind(self.relation)), *cell, *values)


def sums(relation: Rel, cells: Groups, measures: Sequence[Additive], *, limits: Limits | None, words: Words) -> str:
    """Write the query that gives (cell, m0, m1, …) for the cells that are not empty."""
    task = _Task(relation, cells, words)
    if limits is None:
        return _by_row(task, measures)
    if all(isinstance(measure, Units) or measure == Rows() for measure in measures):
        return _counts_by_unit(task, measures, limits)
    return _by_unit(task, measures, limits)


def _by_row(task: _Task, measures: Sequence[Additive]) -> str:
    """Group by the raw keys and number the few groups afterwards: faster than numbering every row."""
    cells, dialect = task.cells, task.dialect
    rows, values = _rows(task, measures)
    outputs = [f"{text} AS k{j}" for j, text in enumerate(_keys(task))]
    outputs += [f"{_row_total(measures[i], value, dialect)} AS s{i}" for i, value in enumerate(values)]
    grouping = f" GROUP BY {', '.join(str(j + 1) for j in range(len(cells.keys)))}" if cells.keys else ""
    inner = f"SELECT {', '.join(outputs)} FROM {rows}{grouping}{dialect.fence}"
    columns = tuple(Canonical(f"g.k{j}") for j in range(len(cells.keys)))
    results = ", ".join(_saturated(f"g.s{i}", i, dialect) for i in range(len(measures)))
    placed = cells.placed(columns, dialect, grouped=True)
    found = f"SELECT {placed.cell}, g.* FROM ({inner}) AS g{placed.joins} WHERE {placed.where}"
    there = (
        dialect.numbered("g.s0")
        if isinstance(cells, Cells)
        else " AND ".join(f"g.{name} IS NOT NULL" for name in task.cell)
    )
    return f"SELECT {cells.shown('g.', dialect)}, {results} FROM ({found}) AS g WHERE {there}"


def _rows(task: _Task, items: Sequence[Item]) -> tuple[str, list[str]]:
    """Write the rows with the raw number of each item beside them, and what each item makes of its own.

    A raw number is computed once and then looked at three times by its clamp.
    """
    dialect = task.dialect
    raws = [(dialect.identifier(f"$p{i}"), item.raw(dialect)) for i, item in enumerate(items)]
    columns = "".join(f", {raw} AS {name}" for name, raw in raws if raw)
    rows = f"({render.relation(task.relation, dialect)}) AS r"
    values = [item.value(name, dialect) for (name, _), item in zip(raws, items, strict=True)]
    return (f"(SELECT r.*{columns} FROM {rows}) AS r" if columns else rows), values


def _keys(task: _Task) -> tuple[Canonical, ...]:
    """Write the keys of a row, each in the form that stands for all that are equal to it.

    A declared key is looked up by equality and goes on as a number, which has one form already.
    """
    if isinstance(task.cells, Found):
        return tuple(render.key(key.expr, task.dialect) for key in task.cells.keys)
    return tuple(Canonical(render.expression(key.expr, task.dialect)) for key in task.cells.keys)


def _row_total(measure: Additive, value: str, dialect: Dialect) -> str:
    if isinstance(measure, Units):
        # each row is its own unit
        return f"count({value})" if value != "1" else "count(*)"
    return "count(*)" if value == "1" else measure.total(value, dialect)


def _saturated(text: str, place: int, dialect: Dialect) -> str:
    inside = f"greatest(least(coalesce({text}, 0), {SATURATION}), -{SATURATION})"
    return f"CAST({inside} AS {dialect.integers[64]}) AS m{place}"


def _counts_by_unit(task: _Task, measures: Sequence[Additive], limits: Limits) -> str:
    """Count rows and units alone: which rows are picked does not matter, only how many, so none has to be."""
    totals = [
        measure.total(f"v{i}", task.dialect) if isinstance(measure, Units) else f"least(count(*), {limits.rows})"
        for i, measure in enumerate(measures)
    ]
    narrowed, pair = _narrowed(totals, measures, limits, task.dialect), task.pair
    base, bounded = _named(task, "base", "bounded")
    ctes = [
        _base(task, measures, every=True),
        f"{bounded} AS (SELECT {pair}, {narrowed} FROM {base} GROUP BY {pair})",
    ]
    return f"WITH {', '.join(ctes)} {_added(task, limits, measures)}"


def _named(task: _Task, *names: str) -> list[str]:
    return [task.dialect.identifier(f"${name}") for name in names]


def _by_unit(task: _Task, measures: Sequence[Additive], limits: Limits) -> str:
    dialect, pair = task.dialect, task.pair
    base, part, heavy, order, bounded = _named(task, "base", "part", "heavy", "order", "bounded")
    count = range(len(measures))
    values = [f"v{i}" for i in count]
    kept = ["n" if measure == Rows() else f"s{i}" for i, measure in enumerate(measures)]
    totals = "".join(f", {measures[i].total(f'v{i}', dialect)} AS s{i}" for i in count if kept[i] != "n")
    # a unit counts in a cell by any of its rows there, so its mark is not taken from the rows that were picked
    marks = [i for i in count if isinstance(measures[i], Units)]
    redone = [dialect.any_of(f"p.s{i}") if i in marks else measures[i].total(f"q.v{i}", dialect) for i in count]
    same = " AND ".join(f"q.{name} = p.{name}" for name in ("u", *task.cell))
    marked = f" JOIN {part} AS p ON {same}" if marks else ""
    own = ", ".join(f"q.{name}" for name in ("u", *task.cell))
    ctes = [
        _base(task, measures, every=True),
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n{totals} FROM {base} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        *_picked(task, [(value, Kind.INTEGER) for value in values]),
        f"{bounded} AS (SELECT {pair}, {_narrowed(kept, measures, limits, dialect)} FROM {part} "
        f"WHERE n <= {limits.rows} "
        f"UNION ALL SELECT {own}, {_narrowed(redone, measures, limits, dialect)} FROM {order} AS q{marked} "
        f"WHERE q.place <= {limits.rows} GROUP BY {own})",
    ]
    return f"WITH {', '.join(ctes)} {_added(task, limits, measures)}"


def _narrowed(totals: Sequence[str], measures: Sequence[Additive], limits: Limits, dialect: Dialect) -> str:
    """Write what a unit adds to a cell in integers that are just wide enough for it, as it is carried through a sort.

    Tried, not cast: the engine may look at sums of more rows than are allowed before it leaves those out.
    """
    pairs = enumerate(zip(totals, _most(measures, limits), strict=True))
    return ", ".join(f"{dialect.fitting(text, size)} AS s{i}" for i, (text, size) in pairs)


def _most(measures: Sequence[Additive], limits: Limits) -> list[int]:
    """Say how much a unit adds to a cell at most, either way."""
    return [limits.rows * max(-measure.low, measure.high) for measure in measures]


def _added(task: _Task, limits: Limits, measures: Sequence[Additive]) -> str:
    """Write the sums over what units add to their cells, and to no more cells than they may."""
    cells, dialect = task.cells, task.dialect
    (kept,) = _named(task, "bounded")
    if limits.groups < cells.size:
        # All pairs are ranked: to look for the units above their limit, and to leave out what they lose, takes longer,
        # unless nearly none is. rank, not row_number: the order is strict, and DuckDB may turn row_number() <= k into
        # a slower aggregate.
        order = ", ".join([task.order(), *task.cell])
        kept = f"(SELECT *, rank() OVER (PARTITION BY u ORDER BY {order}) AS place FROM {kept}){dialect.unnamed} "
        kept += f"WHERE place <= {limits.groups}"
    totals = [dialect.total(f"s{i}", most) for i, most in enumerate(_most(measures, limits))]
    results = ", ".join(_saturated(text, i, dialect) for i, text in enumerate(totals))
    return f"SELECT {cells.shown('', dialect)}, {results} FROM {kept} GROUP BY {', '.join(task.cell)}"


def _base(task: _Task, items: Sequence[Item], *, every: bool) -> str:
    """Write the rows as (u, c, v0, v1, …): owner, cell and what is used of them; without `every`, where v0 is there."""
    dialect = task.dialect
    unit = f"r.{dialect.identifier(UNIT)}"
    (base,) = _named(task, "base")
    rows, values = _rows(task, items)
    placed = task.cells.placed(_keys(task), dialect, grouped=False)
    columns = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    present = placed.where + ("" if every else f" AND ({values[0]}) IS NOT NULL")
    return (
        f"{base} AS {dialect.inlined}(SELECT {dialect.gathered}{unit} AS u, {placed.cell}, {columns} "
        f"FROM {rows}{placed.joins} WHERE {unit} IS NOT NULL AND {present})"
    )


def _picked(task: _Task, values: Sequence[tuple[str, Kind]]) -> list[str]:
    """Write the order of the rows of each heavy unit and cell.

    Copies of one row are told apart by a number, so that a row is picked with no regard to how many like it there are.
    """
    base, heavy, copies, ordered = _named(task, "base", "heavy", "copies", "order")
    columns = ", ".join([task.pair, *(value for value, _ in values)])
    order = ", ".join(f"{value} NULLS LAST" for value, _ in values)
    found = task.dialect.with_match(base, heavy, ("u", *task.cell))
    return [
        f"{copies} AS (SELECT {columns}, row_number() OVER (PARTITION BY {columns}{task.dialect.unordered}) AS i "
        f"FROM {found})",
        f"{ordered} AS (SELECT {columns}, rank() OVER (PARTITION BY {task.pair} "
        f"ORDER BY {task.order(*values, ('i', Kind.INTEGER))}, {order}, i) AS place FROM {copies})",
    ]


def _cut(task: _Task, limits: Limits) -> list[str]:
    """Write the cells that units above their limit lose."""
    if limits.groups >= task.cells.size:
        return []
    part, wide, cut = _named(task, "part", "wide", "cut")
    order = ", ".join([task.order(), *task.cell])
    found = task.dialect.with_match(part, wide, ("u",))
    # rank, not row_number: the order is strict, and DuckDB turns row_number() <= k into a slower aggregate
    return [
        f"{wide} AS (SELECT u FROM {part} GROUP BY u HAVING count(*) > {limits.groups})",
        f"{cut} AS (SELECT {task.pair} FROM (SELECT {task.pair}, rank() OVER (PARTITION BY u ORDER BY {order}) "
        f"AS place FROM {found}){task.dialect.unnamed} WHERE place > {limits.groups})",
    ]


def _uncut(task: _Task, limits: Limits) -> str:
    bounded, cut = _named(task, "bounded", "cut")
    if limits.groups >= task.cells.size:
        return bounded
    return task.dialect.without_match(bounded, cut, ("u", *task.cell))


def _grouped(task: _Task, item: Item, result: str) -> str:
    """Write a result over (c, v0, n): groups of raw keys and values of a table whose unit is the row, then numbered."""
    cells, dialect = task.cells, task.dialect
    rows, values = _rows(task, [item])
    texts = [*_keys(task), *values]
    outputs = ", ".join(f"{text} AS k{j}" for j, text in enumerate(texts))
    grouping = ", ".join(str(j + 1) for j in range(len(texts)))
    last = f"g.k{len(cells.keys)}"
    inner = f"SELECT {outputs}, count(*) AS n FROM {rows} GROUP BY {grouping}{dialect.fence}"
    columns = tuple(Canonical(f"g.k{j}") for j in range(len(cells.keys)))
    placed = cells.placed(columns, dialect, grouped=False)
    found = f"SELECT {placed.cell}, {last} AS v0, g.n FROM ({inner}) AS g{placed.joins}"
    counted = f"{found} WHERE {last} IS NOT NULL AND {placed.where}"
    return f"SELECT {cells.shown('g.', dialect)}, {result} FROM ({counted}) AS g"


def distinct(relation: Rel, cells: Groups, measure: Distinct, *, limits: Limits | None, words: Words) -> str:
    """Write the query that gives (cell, m0): how many different values the bounded rows of each cell have."""
    task = _Task(relation, cells, words)
    dialect, pair = task.dialect, task.pair
    result = _saturated("count(DISTINCT v0)", 0, dialect)
    if limits is None:
        by = ", ".join(f"g.{name}" for name in task.cell)
        return f"{_grouped(task, measure, _saturated('count(*)', 0, dialect))} GROUP BY {by}"
    base, own, part, heavy, order, bounded = _named(task, "base", "own", "part", "heavy", "order", "bounded")
    keys, kind = ("u", *task.cell), measure.expr.kind
    hashed = task.order(("v0", Kind.REAL if kind.numeric else kind))
    ctes = [
        _base(task, [measure], every=False),
        f"{own} AS {dialect.materialized}(SELECT DISTINCT {pair}, v0 FROM {base})",
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n FROM {own} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        f"{order} AS (SELECT {pair}, v0, rank() OVER (PARTITION BY {pair} "
        f"ORDER BY {hashed}, v0) AS place FROM {dialect.with_match(own, heavy, keys)})",
        f"{bounded} AS (SELECT {pair}, v0 FROM {dialect.without_match(own, heavy, keys)} UNION ALL "
        f"SELECT {pair}, v0 FROM {order} WHERE place <= {limits.rows})",
        *_cut(task, limits),
    ]
    found = f"SELECT {cells.shown('', dialect)}, {result} FROM {_uncut(task, limits)}"
    return f"WITH {', '.join(ctes)} {found} GROUP BY {', '.join(task.cell)}"


def buckets(relation: Rel, cells: Groups, candidates: Candidates, *, limits: Limits | None, words: Words) -> str:
    """Write the query that gives (cell, bucket, m0): how many bounded rows lie nearest to each candidate."""
    task = _Task(relation, cells, words)
    dialect, pair = task.dialect, task.pair
    if limits is None:
        return _grouped(task, candidates, f"g.v0 AS bucket, {_saturated('g.n', 0, dialect)}")
    base, part, heavy, order, bounded = _named(task, "base", "part", "heavy", "order", "bounded")
    ctes = [
        _base(task, [candidates], every=False),
        f"{part} AS {dialect.materialized}(SELECT {pair}, count(*) AS n FROM {base} GROUP BY {pair})",
        f"{heavy} AS (SELECT {pair} FROM {part} WHERE n > {limits.rows})",
        *_picked(task, [("v0", Kind.INTEGER)]),
        f"{bounded} AS (SELECT {pair}, v0 FROM {dialect.without_match(base, heavy, ('u', *task.cell))} UNION ALL "
        f"SELECT {pair}, v0 FROM {order} WHERE place <= {limits.rows})",
        *_cut(task, limits),
    ]
    return (
        f"WITH {', '.join(ctes)} SELECT {cells.shown('', dialect)}, v0 AS bucket, {_saturated('count(*)', 0, dialect)} "
        f"FROM {_uncut(task, limits)} GROUP BY {', '.join(task.cell)}, v0"
    )
