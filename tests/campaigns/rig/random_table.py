"""One random table t(u, k, w, b, x, y) with unusual values, and a public table areas(area, zone)."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import duckdb

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation

WORDS = ("North", "Ça", "Ca\u0327", "", "\u200b", "🙂", "O'Brien")
REALS: tuple[float | None, ...] = (
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    2.0**53,
    -(2.0**53) - 2,
    1e300,
    -1e300,
    5e-324,
    7.5,
)
WHOLE: tuple[int | None, ...] = (None, 0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 3, 4)
PUBLIC = Table(
    "areas",
    (Column("area", Kind.TEXT, values=WORDS[:5]), Column("zone", Kind.TEXT, values=("a", "b"))),
    unit=None,
    unique=("area",),
)


@dataclass(frozen=True)
class RandomTable:
    """A declared table and its rows: owner, alternative (0: original, 1: replacement), values."""

    table: Table
    units: int
    by_row: bool
    bases = ("rows0", "rows1")

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables that queries can reference."""
        return {"t": self.table, "areas": PUBLIC}

    def views(self, rows: str, gone: frozenset[int]) -> dict[str, str]:
        """Return the SELECT of the view t without the units in `gone`, or with their replacements."""
        kept = "alternative = 0"
        if gone:
            listed = ", ".join(map(str, sorted(gone)))
            swapped = f"owner IN ({listed}) AND alternative = 1" if self.table.relation is Relation.REPLACE else "FALSE"
            kept = f"(alternative = 0 AND owner NOT IN ({listed})) OR ({swapped})"
        unit = "CAST(u AS BIGINT) AS u" if self.table.columns[0].kind is Kind.INTEGER else "u"
        return {"t": f"SELECT {unit}, k, w, b, x, y FROM {rows} WHERE {kept}"}

    def movable(self, rng: random.Random, text: str) -> list[int]:  # noqa: ARG002 - the same for every query
        """Choose some units; unit 0 is the one with very many rows, if there is one."""
        return [0, *rng.sample(range(1, self.units), min(self.units - 1, rng.choice((2, 3))))] if self.units else []


def random_table(
    rng: random.Random, connection: duckdb.DuckDBPyConnection, *, crowd: int = 0, unit: PrivacyUnit | None = None
) -> RandomTable:
    """Create a random schema and its rows; neighbors are views of the same rows."""
    if unit is None:
        wide = PrivacyUnit("u", groups=rng.choice((1, 2, 3, 50)), rows=rng.choice((1, 2, 5)))
        unit = PrivacyUnit(None) if rng.random() < 0.3 else wide
    by_row = unit.column is None
    low, span = rng.choice((0, -5, 2, -100)), rng.choice((1, 10, 1000))
    step = rng.choice((None, Fraction(1, 2)))
    columns = (
        Column("u", rng.choice((Kind.INTEGER, Kind.TEXT))),
        Column("k", Kind.TEXT, values=WORDS[: rng.randint(1, 5)], other=rng.choice((None, "Ça"))),
        Column("w", Kind.TEXT),
        Column("b", Kind.BOOLEAN),
        Column("x", Kind.REAL, bounds=Bounds(Fraction(low), Fraction(low + span)), step=step),
        Column("y", Kind.INTEGER, bounds=Bounds(Fraction(rng.choice((-3, 0))), Fraction(rng.choice((4, 90))))),
    )
    other = columns[1].other
    if other is not None and other not in (columns[1].values or ()):
        columns = (columns[0], replace(columns[1], values=(*(columns[1].values or ()), other)), *columns[2:])
    table = Table("t", columns, unit, rng.choice(list(Relation)))
    units = rng.choice((0, 1, 4, 8, 12))
    rows: list[tuple[object, ...]] = []
    for owner in range(units):
        for alternative in (0, 1):
            for _ in range(1 if by_row else rng.choice((0, 1, 1, 2, 4, 9))):
                row = (
                    owner,
                    alternative,
                    str(owner),
                    rng.choice((*WORDS, None)),
                    rng.choice((*WORDS, None)),
                    rng.choice((True, False, None)),
                    rng.choice(REALS) if rng.random() < 0.4 else rng.uniform(low - span, low + 2 * span),
                    rng.choice(WHOLE) if rng.random() < 0.4 else rng.randint(-5, 100),
                )
                rows += [row] * (1 if by_row else rng.choice((1, 1, 1, 2)))
    for name in ("rows0", "rows1"):
        rng.shuffle(rows)
        connection.execute(
            f"CREATE OR REPLACE TABLE {name} "
            "(owner BIGINT, alternative INTEGER, u VARCHAR, k VARCHAR, w VARCHAR, b BOOLEAN, x DOUBLE, y BIGINT)"
        )
        if rows:
            places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(rows))
            connection.execute(f"INSERT INTO {name} VALUES {places}", [value for row in rows for value in row])
        if crowd and units and not by_row:
            connection.execute(
                f"INSERT INTO {name} SELECT 0, 0, '0', CASE WHEN range % 3 = 0 THEN 'North' ELSE 'Ça' END, 'North', "
                f"TRUE, range % 17, range % 5 FROM range({crowd}) ORDER BY hash(range, '{name}')"
            )
    return RandomTable(table, units, by_row)


def found_bounds(rng: random.Random) -> PrivacyUnit | None:
    """Return a unit whose bounds each query finds, for a part of the tables."""
    most = rng.choice((1, 3, 20))
    return PrivacyUnit("u", most, most, auto=True) if rng.random() < 0.25 else None


class Views(Protocol):
    """A dataset whose neighbors are views of the same rows."""

    def views(self, rows: str, gone: frozenset[int]) -> dict[str, str]:
        """Return the SELECT of each table without the units in `gone`, or with their replacements."""


def define_view(connection: duckdb.DuckDBPyConnection, world: Views, *, rows: str, gone: frozenset[int]) -> None:
    """Define the tables without the units in `gone`, or with their replacements."""
    for name, select in world.views(rows, gone).items():
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS {select}")
