"""Simulated rows for declared tables, with unusual values, and neighbors of these datasets.

Each privacy unit has its rows and a second set of rows that can replace them; a neighbor is a choice between the two.
Values often lie at their bounds and outside of them, where errors in a sensitivity show.

Tested in tests/audit/test_replay.py.
"""

import datetime
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Column, Kind, OwnerPath, PrivacyUnit, Reference, Table
from hubbub.core.secret import Secret
from hubbub.engines.base import identifier
from hubbub.sql.dialects.duckdb import DUCKDB

_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
_TEXTS = ("ash", "birch", "cedar", "elm", "", "🙂")
_ODD = {Kind.REAL: (float("nan"), float("inf"), float("-inf"), -0.0, 1e300), Kind.INTEGER: (2**53, -(2**63), 2**63 - 1)}
_DAY = datetime.date(1970, 1, 1)
_OWNER, _VERSION = "$owner", "$version"  # names that no real column is likely to have
_MAX_ROWS = 60
#: Number of units with the maximum number of rows, at a bound: in one group or in all, high or low.
EXTREME = 4
_PUBLIC_ROWS = 200


class SimulatedData:
    """Simulated rows in an in-memory DuckDB, under the names of the declared tables.

    >>> from hubbub.core.schema import PrivacyUnit
    >>> people = Table("people", (Column("age", Kind.INTEGER),), PrivacyUnit(None))
    >>> with SimulatedData([people], units=3, chance=random.Random(1)) as data:
    ...     data.ask("SELECT count(*) AS n FROM people").through(lambda rows: int(rows["n"][0]))
    3
    """

    def __init__(self, tables: Iterable[Table], *, units: int, chance: random.Random) -> None:
        self.units = units
        self._tables = _with_owners(tables)
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._parsed: dict[str, duckdb.Statement] = {}
        for table in self._tables:
            self._fill(table, chance)
        self.show()

    @property
    def entities(self) -> tuple[str | None, ...]:
        """Who can be taken out: the owners of all tables at once, or each entity alone where rows have two owners."""
        if not any(table.others for table in self._tables):
            return (None,)
        return tuple(dict.fromkeys(unit.entity for table in self._tables for unit in table.owners))

    def show(self, *, removed: Iterable[int] = (), replaced: Iterable[int] = (), entity: str | None = None) -> None:
        """Define the tables without the removed units, and with the other rows of the replaced ones.

        Where an entity is named, only its units are removed or replaced; a second owner is only removed.
        """
        without, other = _list(removed), _list(replaced)
        owner, version = identifier(_OWNER), identifier(_VERSION)
        for table in self._tables:
            condition = "TRUE"
            if table.unit is not None:
                mine = entity in (None, table.unit.entity)
                gone, changed = (without, other) if mine else (_list(()), _list(()))
                condition = (
                    f"{owner} NOT IN ({gone}) AND {version} = CASE WHEN {owner} IN ({changed}) THEN 1 ELSE 0 END"
                )
                for unit in table.others:
                    if unit.entity == entity:
                        column = f"TRY_CAST({identifier(str(unit.column))} AS BIGINT)"
                        condition += f" AND coalesce({column} NOT IN ({without}), TRUE)"
            rows = f"SELECT * EXCLUDE ({owner}, {version}) FROM {identifier('$' + table.name)} WHERE {condition}"  # noqa: S608
            self._connection.execute(f"CREATE OR REPLACE VIEW {identifier(table.name)} AS {rows}")

    def shuffle(self, chance: random.Random) -> None:
        """Reorder the rows of every table at random."""
        for table in self._tables:
            name, seed = identifier("$" + table.name), DUCKDB.text(str(chance.random()))
            rows = f"SELECT * FROM {name} ORDER BY hash({seed}, rowid)"  # noqa: S608
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {rows}")

    def ask(self, sql: str) -> Secret[Mapping[str, NDArray[Any]]]:
        """Run SQL that was rendered for DuckDB."""
        if sql not in self._parsed:  # a sixth of the time of a query on few rows, and neighbors are asked the same
            [self._parsed[sql]] = self._connection.extract_statements(sql)
        columns: Any = self._connection.execute(self._parsed[sql]).fetchnumpy()
        return Secret(columns)

    def write(self, table: Table, path: Path) -> None:
        """Write the current rows of a table to a Parquet file."""
        self._connection.execute(f"COPY {identifier(table.name)} TO {DUCKDB.text(str(path))} (FORMAT parquet)")

    def close(self) -> None:
        """Close the connection and discard the rows."""
        self._connection.close()

    def __enter__(self) -> "SimulatedData":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, table: Table, chance: random.Random) -> None:
        columns = ", ".join(f"{identifier(column.name)} {_TYPES[column.kind]}" for column in table.columns)
        target = identifier("$" + table.name)
        self._connection.execute(
            f"CREATE TABLE {target} ({columns}, {identifier(_OWNER)} BIGINT, {identifier(_VERSION)} INTEGER)"
        )
        rows = list(_public(table, chance) if table.unit is None else _private(table, self.units, chance))
        chance.shuffle(rows)
        if not rows:
            return
        kinds = [*(column.kind for column in table.columns), Kind.INTEGER, Kind.INTEGER]
        batch = {f"c{i}": np.array([_exact(row[i], kind) for row in rows], object) for i, kind in enumerate(kinds)}
        self._connection.register("$batch", batch)
        texts = ", ".join(f"TRY_CAST(c{i} AS {_TYPES[kind]})" for i, kind in enumerate(kinds))
        self._connection.execute(f"INSERT INTO {target} SELECT {texts} FROM {identifier('$batch')}")  # noqa: S608
        self._connection.unregister("$batch")


def _with_owners(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Add the tables through which rows have their owners, as far as their keys go, where they are not given."""
    known = {table.name: table for table in tables}
    for table in tuple(known.values()):
        path = None if table.unit is None else table.unit.path
        for place, step in enumerate(() if path is None else path.steps):
            if path is not None and step.table not in known:
                known[step.table] = _stand_in(path, place)
    return tuple(known.values())


def _stand_in(path: OwnerPath, place: int) -> Table:
    step, rest = path.steps[place], path.steps[place + 1 :]
    kinds = dict(zip(step.key, step.kinds, strict=True))
    if not rest:
        columns = kinds | {path.column: path.kind}
        unit = PrivacyUnit(path.column, rows=3)
    else:
        columns = kinds | dict(zip(rest[0].columns, rest[0].kinds, strict=True))
        unit = PrivacyUnit(_reference_to_owner(rest[0], path), rows=3, path=replace(path, steps=rest))
    return Table(step.table, tuple(Column(name, kind) for name, kind in columns.items()), unit, unique=step.key)


def _reference_to_owner(step: Reference, path: OwnerPath) -> str:
    """Return the column of a reference that holds the privacy ID, or a name that no column has."""
    held = step.table == path.tables[-1] and path.column in step.key
    return step.columns[step.key.index(path.column)] if held else f"{path.tables[-1]}.{path.column}"


def _keys(table: Table, owner: int, version: int, number: int, chance: random.Random) -> dict[str, int]:
    """Return the values of a row's key and of its reference, which may dangle; or its person and period."""
    path = None if table.unit is None else table.unit.path
    step = None if path is None else path.steps[0]
    period = None if table.unit is None else table.unit.period
    if period is not None:  # two owners are two periods of one person
        day = 20_000 + 40 * (owner % 2)
        return {period.column: owner // 2, period.time: day if period.time_kind is Kind.DATE else day * 86_400_000_000}
    code = (2 * owner + version) * _MAX_ROWS
    target = code + chance.choice((0, 0, 1, 2))
    references = () if step is None else step.columns
    return dict.fromkeys(table.unique or (), code + number) | dict.fromkeys(references, target)


def _private(table: Table, units: int, chance: random.Random) -> Iterable[Sequence[object]]:
    unit = table.unit
    if unit is None:
        raise AssertionError("A private table has a privacy unit.")
    single = unit.column is None or table.unique == (unit.column,)
    most = 1 if single else min(_MAX_ROWS, 2 * unit.groups * unit.rows)
    others = {each.column for each in table.others}
    for owner in range(units):
        for version in (0, 1):
            extreme = owner < EXTREME
            rows = most if extreme or most == 1 else chance.choice((0, 1, 1, 2, chance.randint(1, most)))
            rows = max(rows, 1) if owner == EXTREME else rows
            for number in range(rows):
                values = [
                    _at_bound(column, chance, owner, version, number) if extreme else _value(column, chance)
                    for column in table.columns
                ]
                if owner == EXTREME and number == 0:
                    # chance alone leaves NaN out of most small datasets
                    values = [
                        math.nan if column.kind is Kind.REAL else value
                        for column, value in zip(table.columns, values, strict=True)
                    ]
                keys = _keys(table, owner, version, number, chance)
                row = [
                    owner
                    if column.name == unit.column
                    else chance.randrange(units)
                    if column.name in others
                    else keys.get(column.name, value)
                    for column, value in zip(table.columns, values, strict=True)
                ]
                yield [*row, owner, version]


def _at_bound(column: Column, chance: random.Random, owner: int, version: int, number: int) -> object:
    """Return a value for maximal influence: all rows at one bound, in one group or spread over all groups."""
    if column.values:
        return column.values[(number if owner % 2 else version) % len(column.values)]
    if column.bounds is not None:
        return column.bounds.low if (owner // 2 + version) % 2 else column.bounds.high
    if column.kind is Kind.BOOLEAN:
        return True
    return _TEXTS[number % len(_TEXTS)] if column.kind is Kind.TEXT else _value(column, chance, odd=False)


def _public(table: Table, chance: random.Random) -> Iterable[Sequence[object]]:
    seen = set()
    for _ in range(_PUBLIC_ROWS):
        row = [_value(column, chance, odd=False) for column in table.columns]
        key = tuple(
            value for column, value in zip(table.columns, row, strict=True) if column.name in (table.unique or ())
        )
        if not key or key not in seen:
            seen.add(key)
            yield [*row, 0, 0]


def _value(column: Column, chance: random.Random, *, odd: bool = True) -> object:
    if odd and chance.random() < 0.08:
        return chance.choice((None, *_ODD.get(column.kind, ())))
    if column.values:
        return chance.choice(column.values if not odd or chance.random() < 0.95 else (*_TEXTS, 7))
    if column.kind is Kind.BOOLEAN:
        return chance.random() < 0.5
    if column.kind is Kind.TEXT:
        return chance.choice(_TEXTS)
    if column.bounds is None:
        return chance.randint(-3, 12)
    low, high = column.bounds.low, column.bounds.high
    inside = low + (high - low) * Fraction(chance.randint(0, 1000), 1000)
    return chance.choice((low, high, inside, inside, low - 1 if odd else low, high + 1 if odd else high))


def _exact(value: object, kind: Kind) -> str | None:
    """Write a value as text that casts back to it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | datetime.date):
        return str(value)
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        step = datetime.timedelta(days=1) if kind is Kind.DATE else datetime.timedelta(microseconds=1)
        try:
            moment = datetime.datetime.combine(_DAY, datetime.time()) + int(value) * step  # type: ignore[call-overload]
        except OverflowError:
            return None
        return str(moment.date() if kind is Kind.DATE else moment)
    return repr(float(value) if kind is Kind.REAL else int(value))  # type: ignore[arg-type, call-overload]


def _list(units: Iterable[int]) -> str:
    return ", ".join(map(str, [-1, *units]))
