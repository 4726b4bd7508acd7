"""The engine's SQL: bound what each unit contributes, add up integers, give one row a cell.

Each unit keeps at most `groups` cells, and at most `rows` rows in each, both chosen in the order of a salted hash of the
unit's own data: the choice is a function of that unit's rows alone, in whatever order the engine finds them. Only units
above a limit are sorted. A row without an owner (NULL) is left out, as nobody could be charged for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hubbub.sql import render
from hubbub.sql.keys import Cells
from hubbub.sql.measures import Measure, Units
from hubbub.sql.relations import UNIT, Rel

#: Sums leave the engine clamped into ±2⁶¹, which brings no two of them further apart.
SATURATION = 1 << 61

Hash = Literal["engine", "portable"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one unit may contribute to one grouping set; None where every row is its own unit."""

    groups: int
    rows: int


def sums(
    relation: Rel,
    cells: Cells,
    measures: Sequence[Measure],
    *,
    limits: Limits | None,
    salt: str,
    hashing: Hash = "engine",
) -> str:
    """Write the query that gives (cell, m0, m1, …) for the cells that are not empty."""
    if limits is None:
        return _by_row(relation, cells, measures)
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


def _by_row(relation: Rel, cells: Cells, measures: Sequence[Measure]) -> str:
    """Group by the raw keys and number the few groups afterwards: faster than numbering every row."""
    keys = [render.expression(domain.key.expr) for domain in cells.domains]
    outputs = [f"{text} AS k{j}" for j, text in enumerate(keys)]
    outputs += [f"{_row_total(measure)} AS s{i}" for i, measure in enumerate(measures)]
    grouping = f" GROUP BY {', '.join(str(j + 1) for j in range(len(keys)))}" if keys else ""
    inner = f"SELECT {', '.join(outputs)} FROM ({render.relation(relation)}) AS r{grouping}"
    columns = tuple(f"g.k{j}" for j in range(len(keys)))
    results = ", ".join(_saturated(f"g.s{i}", i) for i in range(len(measures)))
    return f"SELECT {cells.number()} AS cell, {results} FROM ({inner}) AS g{cells.joins(columns)}"


def _row_total(measure: Measure) -> str:
    value = measure.value()
    if isinstance(measure, Units):
        # each row is its own unit
        return f"count({value})" if value != "1" else "count(*)"
    return "count(*)" if value == "1" else measure.total(value)


def _saturated(text: str, place: int) -> str:
    return f"CAST(greatest(least(coalesce({text}, 0), {SATURATION}), -{SATURATION}) AS BIGINT) AS m{place}"


def _by_unit(relation: Rel, cells: Cells, measures: Sequence[Measure], limits: Limits, hasher: Hasher) -> str:
    count = range(len(measures))
    unit = f"r.{render.identifier(UNIT)}"
    keys = tuple(render.expression(domain.key.expr) for domain in cells.domains)
    values = [f"v{i}" for i in count]
    columns = ", ".join(["u", "c", *values])
    totals = ", ".join(f"{measure.total(f'v{i}')} AS s{i}" for i, measure in enumerate(measures))
    # a unit counts in a cell by any of its rows there, so its mark is not taken from the rows that were picked
    marks = [i for i in count if isinstance(measures[i], Units)]
    redone = ", ".join(f"any_value(p.s{i})" if i in marks else f"{measures[i].total(f'q.v{i}')}" for i in count)
    marked = ' JOIN "$part" AS p ON q.u = p.u AND q.c = p.c' if marks else ""
    kept = ", ".join(f"s{i}" for i in count)
    results = ", ".join(_saturated(f"sum(s{i})", i) for i in count)
    base = (
        f"SELECT {unit} AS u, {cells.number()} AS c, "
        + ", ".join(f"{measure.value()} AS v{i}" for i, measure in enumerate(measures))
        + f" FROM ({render.relation(relation)}) AS r{cells.joins(keys)} WHERE {unit} IS NOT NULL"
    )
    order = ", ".join(f"{value} NULLS LAST" for value in values)
    cut_groups = limits.groups < cells.size
    ctes = [
        f'"$base" AS NOT MATERIALIZED ({base})',
        f'"$part" AS MATERIALIZED (SELECT u, c, count(*) AS n, {totals} FROM "$base" GROUP BY u, c)',
        f'"$heavy" AS (SELECT u, c FROM "$part" WHERE n > {limits.rows})',
        # copies of one row are told apart by a number, so that a row is picked with no regard to how many like it exist
        f'"$copies" AS (SELECT {columns}, row_number() OVER (PARTITION BY {columns}) AS i '
        f'FROM "$base" SEMI JOIN "$heavy" USING (u, c))',
        f'"$order" AS (SELECT {columns}, rank() OVER (PARTITION BY u, c '
        f'ORDER BY {hasher.of("u", "c", *values, "i")}, {order}, i) AS place FROM "$copies")',
        f'"$bounded" AS (SELECT u, c, {kept} FROM "$part" WHERE n <= {limits.rows} UNION ALL '
        f'SELECT q.u, q.c, {redone} FROM "$order" AS q{marked} '
        f"WHERE q.place <= {limits.rows} GROUP BY q.u, q.c)",
    ]
    if cut_groups:
        # rank, not row_number: the order is strict, and DuckDB turns row_number() <= k into a slower aggregate
        ctes += [
            f'"$wide" AS (SELECT u FROM "$part" GROUP BY u HAVING count(*) > {limits.groups})',
            f'"$cut" AS (SELECT u, c FROM (SELECT u, c, rank() OVER (PARTITION BY u ORDER BY {hasher.of("u", "c")}, c) '
            f'AS place FROM "$part" SEMI JOIN "$wide" USING (u)) WHERE place > {limits.groups})',
        ]
    source = '"$bounded" ANTI JOIN "$cut" USING (u, c)' if cut_groups else '"$bounded"'
    return f"WITH {', '.join(ctes)} SELECT c AS cell, {results} FROM {source} GROUP BY c"
