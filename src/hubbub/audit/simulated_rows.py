"""Made-up rows for declared tables: nobody's data, with everything in it that data can hold, and neighbors of it.

Each unit has rows of its own and other rows that may stand in their place; a neighbor is a choice of which of both are
there. Values lie at the ends of their bounds as often as anywhere else, and outside of them, where sensitivity shows.
"""

import datetime
import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Column, Kind, Table
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
_WORDS = ("ash", "birch", "cedar", "elm", "", "🙂")
_ODD = {Kind.REAL: (float("nan"), float("inf"), float("-inf"), -0.0, 1e300), Kind.INTEGER: (2**53, -(2**63), 2**63 - 1)}
_DAY = datetime.date(1970, 1, 1)
_OWNER, _TURN = "$owner", "$turn"  # no column of a file is called that by chance
_MOST_ROWS = 60
#: So many units have as many rows as can be, at the ends of their bounds: in one group or in all, high or low.
EXTREME = 4
_PUBLIC_ROWS = 200


class MadeUp:
    """Made-up rows in an engine of their own, in memory, with the names of the declared tables.

    >>> from hubbub.core.schema import Unit
    >>> people = Table("people", (Column("age", Kind.INTEGER),), Unit(None))
    >>> with MadeUp([people], units=3, chance=random.Random(1)) as made:
    ...     made.ask("SELECT count(*) AS n FROM people").through(lambda found: int(found["n"][0]))
    3
    """

    def __init__(self, tables: Iterable[Table], *, units: int, chance: random.Random) -> None:
        self.units = units
        self._tables = tuple(tables)
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        for table in self._tables:
            self._fill(table, chance)
        self.show()

    def show(self, *, gone: Iterable[int] = (), swapped: Iterable[int] = ()) -> None:
        """Let the tables be without some units, and with others in the place of some."""
        out, other = _list(gone), _list(swapped)
        owner, turn = identifier(_OWNER), identifier(_TURN)
        for table in self._tables:
            kept = "TRUE"
            if table.unit is not None:
                kept = f"{owner} NOT IN ({out}) AND {turn} = CASE WHEN {owner} IN ({other}) THEN 1 ELSE 0 END"
            rows = f"SELECT * EXCLUDE ({owner}, {turn}) FROM {identifier('$' + table.name)} WHERE {kept}"  # noqa: S608
            self._connection.execute(f"CREATE OR REPLACE VIEW {identifier(table.name)} AS {rows}")

    def shuffle(self, chance: random.Random) -> None:
        """Put the rows of every table into another order."""
        for table in self._tables:
            name, word = identifier("$" + table.name), DUCKDB.text(str(chance.random()))
            rows = f"SELECT * FROM {name} ORDER BY hash({word}, rowid)"  # noqa: S608
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {rows}")

    def ask(self, sql: str) -> Secret[Mapping[str, NDArray[Any]]]:
        """Run a text that was rendered for DuckDB."""
        found: Any = self._connection.execute(sql).fetchnumpy()
        return Secret(found)

    def write(self, table: Table, path: Path) -> None:
        """Write the rows of a table, as they are shown now, to a Parquet file."""
        self._connection.execute(f"COPY {identifier(table.name)} TO {DUCKDB.text(str(path))} (FORMAT parquet)")

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def __enter__(self) -> "MadeUp":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, table: Table, chance: random.Random) -> None:
        columns = ", ".join(f"{identifier(column.name)} {_TYPES[column.kind]}" for column in table.columns)
        target = identifier("$" + table.name)
        self._connection.execute(
            f"CREATE TABLE {target} ({columns}, {identifier(_OWNER)} BIGINT, {identifier(_TURN)} INTEGER)"
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


def _private(table: Table, units: int, chance: random.Random) -> Iterable[Sequence[object]]:
    unit = table.unit
    if unit is None:
        raise AssertionError("a private table has a unit")
    most = 1 if unit.column is None else min(_MOST_ROWS, 2 * unit.groups * unit.rows)
    for owner in range(units):
        for turn in (0, 1):
            extreme = owner < EXTREME
            rows = most if extreme or most == 1 else chance.choice((0, 1, 1, 2, chance.randint(1, most)))
            for number in range(rows):
                made = (
                    _end(column, chance, owner, turn, number) if extreme else _value(column, chance)
                    for column in table.columns
                )
                row = [
                    owner if column.name == unit.column else value
                    for column, value in zip(table.columns, made, strict=True)
                ]
                yield [*row, owner, turn]


def _end(column: Column, chance: random.Random, owner: int, turn: int, number: int) -> object:
    """Give a unit the most that it can do: all rows at one end, in one group or spread over all of them."""
    if column.values:
        return column.values[(number if owner % 2 else turn) % len(column.values)]
    if column.bounds is not None:
        return column.bounds.low if (owner // 2 + turn) % 2 else column.bounds.high
    if column.kind is Kind.BOOLEAN:
        return True
    return _WORDS[number % len(_WORDS)] if column.kind is Kind.TEXT else _value(column, chance, odd=False)


def _public(table: Table, chance: random.Random) -> Iterable[Sequence[object]]:
    seen = set()
    for _ in range(_PUBLIC_ROWS):
        row = [_value(column, chance, odd=False) for column in table.columns]
        mark = tuple(
            value for column, value in zip(table.columns, row, strict=True) if column.name in (table.unique or ())
        )
        if not mark or mark not in seen:
            seen.add(mark)
            yield [*row, 0, 0]


def _value(column: Column, chance: random.Random, *, odd: bool = True) -> object:
    if odd and chance.random() < 0.08:
        return chance.choice((None, *_ODD.get(column.kind, ())))
    if column.values:
        return chance.choice(column.values if not odd or chance.random() < 0.95 else (*_WORDS, 7))
    if column.kind is Kind.BOOLEAN:
        return chance.random() < 0.5
    if column.kind is Kind.TEXT:
        return chance.choice(_WORDS)
    if column.bounds is None:
        return chance.randint(-3, 12)
    low, high = column.bounds.low, column.bounds.high
    inside = low + (high - low) * Fraction(chance.randint(0, 1000), 1000)
    return chance.choice((low, high, inside, inside, low - 1 if odd else low, high + 1 if odd else high))


def _exact(value: object, kind: Kind) -> str | None:
    """Write a value so that a cast of its text gives it back."""
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
