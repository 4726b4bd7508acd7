"""A profile counts every unit once in each histogram, the same on every engine; brute force counts along."""

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures import postgres, spark
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.postgres_server import Server

from hubbub.analyses.base import Arrays, EngineRun, Setting
from hubbub.analyses.profile import profile
from hubbub.answers.profile import Profile
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.engines.base import Engine
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.dialects.postgres import POSTGRES
from hubbub.sql.dialects.spark import SPARK

GROUPS, ROWS = 2, 3
COLUMNS = (
    Column("who", Kind.INTEGER),
    Column("x", Kind.REAL, Bounds(Fraction(-1), Fraction(3))),
    Column("n", Kind.INTEGER, Bounds(Fraction(0), Fraction(5))),
    Column("kind", Kind.TEXT, values=("a", "it's", "c")),
    Column("fine", Kind.BOOLEAN),
    Column("free", Kind.REAL, Bounds(Fraction(-(10**18)), Fraction(10**18)), auto=True),
    Column("word", Kind.TEXT),
    Column("secret", Kind.TEXT, hidden=True),
)
TABLE = Table("t", COLUMNS, PrivacyUnit("who", groups=GROUPS, rows=ROWS))
#: One value of each kind that a column can hold, with what lies outside its declaration.
POOLS: dict[str, list[Any]] = {
    "x": [-1.0, 0.5, 3.0, -7.25, 99.0, None, float("nan"), float("inf"), float("-inf")],
    "n": [0, 3, 5, -2, 40, None],
    "kind": ["a", "it's", "c", "z", None],
    "fine": [True, False, None],
    "free": [0.0, -3.5, 700.0, 1e12, None],
    "word": ["p", None],
}


def people(seed: int, units: int, most: int) -> list[tuple[Any, ...]]:
    """Make rows; a unit has the same value in all its rows of x, n, free and word, so that any row shows it."""
    chance, rows = random.Random(seed), list[tuple[Any, ...]]()
    for unit in range(units):
        same = {name: chance.choice(POOLS[name]) for name in ("x", "n", "free", "word")}
        for _ in range(min(most, int(chance.paretovariate(0.9)))):
            kind, fine = chance.choice(POOLS["kind"]), chance.choice(POOLS["fine"])
            rows.append((unit, same["x"], same["n"], kind, fine, same["free"], same["word"], "CANARY"))
    rows += [(None, 0.5, 3, "a", True, 0.0, "p", "CANARY")] * 4  # rows without an owner
    return rows


def filled(rows: list[tuple[Any, ...]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (who BIGINT, x DOUBLE, n BIGINT, kind VARCHAR, fine BOOLEAN, free DOUBLE, word VARCHAR,"
        " secret VARCHAR)"
    )
    insert_rows(connection, "t", rows)
    return connection


def asked(connection: duckdb.DuckDBPyConnection) -> Any:
    def ask(sql: str) -> Secret[Arrays]:
        assert "secret" not in sql
        return Secret({name: np.asarray(each) for name, each in connection.execute(sql).fetchnumpy().items()})

    return ask


def exact(ask: Any, dialect: Dialect = DUCKDB, table: Table = TABLE, **arguments: Any) -> Profile:
    setting = Setting({"t": table}, Fraction(1), Fraction(0), RenderOptions("salt", "portable", dialect))
    prepared = profile(setting, table="t", **arguments)
    return prepared.exact(EngineRun(ask, system(), lambda _, __: None))


@pytest.fixture(scope="module")
def rows() -> list[tuple[Any, ...]]:
    return people(5, 120, 40)


@pytest.fixture(scope="module")
def local(rows: list[tuple[Any, ...]]) -> Iterator[duckdb.DuckDBPyConnection]:
    with filled(rows) as connection:
        yield connection


def by_unit(rows: list[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    units: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        if row[0] is not None:
            units.setdefault(row[0], []).append(row)
    return units


def bucket(number: int, levels: list[int]) -> int:
    return next((place for place, level in enumerate(levels) if number <= level), len(levels))


def test_every_unit_is_in_exactly_one_bucket_of_each_histogram(
    rows: list[tuple[Any, ...]], local: duckdb.DuckDBPyConnection
) -> None:
    made, units = exact(asked(local), max_rows=20).model, by_unit(rows)
    levels = made["rows"]["levels"]
    assert levels == [1, 2, 3, 4, 8, 16, 20]  # the declared bound is a level
    counts = Counter(bucket(len(each), levels) for each in units.values())
    assert made["rows"]["counts"] == [counts[place] for place in range(len(levels) + 1)]
    for entries in (made["values"].values(), made["nulls"].values()):
        assert all(sum(entry["counts"]) == len(units) for entry in entries)
    assert set(made["values"]) == {"x", "n", "free"}
    assert set(made["nulls"]) == {"kind", "fine", "word"}
    assert set(made["groups"]) == {"kind", "fine"}


def test_positions_and_left_out_rows_are_those_of_brute_force(
    rows: list[tuple[Any, ...]], local: duckdb.DuckDBPyConnection
) -> None:
    made, units = exact(asked(local), max_rows=20).model, by_unit(rows)
    levels, half = made["rows"]["levels"], made["rows"]["half"]
    positions, left = [0.0] * (len(levels) + 1), [0.0] * (len(levels) + 1)
    groups: Counter[int] = Counter()
    for each in units.values():
        n, place = len(each), bucket(len(each), levels)
        keys = Counter(row[3] for row in each if row[3] in ("a", "it's", "c"))
        groups[bucket(len(keys), made["groups"]["kind"]["levels"]) if keys else -1] += 1
        if place == len(levels):
            continue
        low, high = ([0, *levels])[place], levels[place]
        if high - low > 1:
            positions[place] += round(2 * half * (n - low - 1) / (high - low - 1) - half)
        kept = sum(min(count, ROWS) for count in keys.values()) * min(1.0, GROUPS / max(1, len(keys)))
        left[place] += half * (n - kept) / high
    assert made["rows"]["positions"] == pytest.approx(positions, abs=1)
    assert made["groups"]["kind"]["left"] == pytest.approx(left, abs=len(units) / 2)  # each unit is rounded
    assert made["groups"]["kind"]["counts"] == [groups[place] for place in range(len(made["groups"]["kind"]["levels"]))]


def test_values_are_counted_where_they_are_before_any_clamping(
    rows: list[tuple[Any, ...]], local: duckdb.DuckDBPyConnection
) -> None:
    made, units = exact(asked(local)).model, by_unit(rows)
    for name, place, low, high in (("x", 1, -1, 3), ("n", 2, 0, 5)):
        entry = made["values"][name]
        first, last = entry["inside"]
        assert (entry["edges"][first], entry["edges"][last]) == (low, high)
        expected: Counter[str] = Counter()
        for each in units.values():
            value = each[0][place]
            missing = value is None or value != value
            inside = not missing and low <= value <= high
            expected["null" if missing else "in" if inside else "out"] += 1
        counts = entry["counts"]
        assert counts[0] == expected["null"]
        assert sum(counts[j] for j in range(1, len(counts)) if first < j - 1 <= last) == expected["in"]
        assert expected["out"] > 0
    assert made["values"]["free"]["bounds"] is None  # found by each query, so that no value lies outside
    assert max(made["values"]["free"]["edges"]) < 10**10
    listed = made["nulls"]["kind"]["counts"]
    assert listed[0] + listed[1] + listed[2] == len(units)
    assert made["nulls"]["word"]["counts"][0] == sum(each[0][6] is None for each in units.values())


def test_a_table_of_single_rows_has_one_level(local: duckdb.DuckDBPyConnection) -> None:
    table = Table("t", COLUMNS, PrivacyUnit(None), Relation.REPLACE)
    made = exact(asked(local), table=table, columns=["n"])
    (total,) = local.execute("SELECT count(*) FROM t").fetchone() or (0,)
    assert made.model["rows"]["counts"] == [total]
    assert made.units().value == made.rows().value == total
    assert sum(made.model["values"]["n"]["counts"]) == total
    assert made.model["groups"] == {}


def test_hidden_columns_and_the_privacy_id_cannot_be_profiled(local: duckdb.DuckDBPyConnection) -> None:
    for name in ("secret", "who", "nowhere"):
        with pytest.raises(QueryError) as refusal:
            exact(asked(local), columns=[name])
        assert refusal.value.code == "HB541"
        assert "secret" not in refusal.value.remedy


def test_the_split_of_epsilon_is_stated_and_adds_up() -> None:
    setting = Setting({"t": TABLE}, Fraction(1, 5), Fraction(0), RenderOptions("salt"))
    prepared = profile(setting, table="t")
    spent = [noise.loss.epsilon for noise in prepared.noises]
    assert Fraction(1, 5) * Fraction(999, 1000) < sum(spent) <= Fraction(1, 5)
    assert len(prepared.derivation) == 1 + len(spent)
    assert all("ε = " in line for line in prepared.derivation[1:])
    assert "one row of each unit" in prepared.derivation[0]


@pytest.mark.postgres
@pytest.mark.spark
def test_every_engine_counts_the_same_integers(
    local: duckdb.DuckDBPyConnection, postgres_server: Server, spark_address: str, tmp_path: Path
) -> None:
    postgres_server.run("CREATE DATABASE profiles")
    postgres.copied(local, ["t"], postgres_server, "profiles")
    engines: list[tuple[Dialect, Engine]] = [
        (POSTGRES, postgres.engine({"t": TABLE}, postgres_server, "profiles")),
        (SPARK, spark.engine({"t": TABLE}, spark.copied(local, ["t"], tmp_path), spark_address)),
    ]
    mine = exact(asked(local), max_rows=20).model
    try:
        for dialect, engine in engines:
            assert exact(engine.run, dialect, max_rows=20).model == mine, dialect.name
    finally:
        for _, engine in engines:
            engine.close()
        postgres_server.run("DROP DATABASE profiles WITH (FORCE)")
