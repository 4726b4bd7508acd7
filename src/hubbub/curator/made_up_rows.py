"""Rows that are made up from declarations alone, with which analysts can try queries for free.

Tested in tests/curator/test_made_up_rows.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.columns import Column as LongColumn
from hubbub.core import blocks as time_blocks
from hubbub.core.list_columns import length_name, part_of
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table

#: Rows of a stand-in, unless the owner says how many.
DEFAULT_ROWS = 10_000
#: The most rows that follow from a declared number of rows.
MOST_DECLARED = 100_000
#: A privacy unit has so many rows on average.
_ROWS_PER_UNIT = 4
#: The share of NULL in nullable columns.
_NULL = 0.05
_WORDS = 20
_FIRST_DAY, _LAST_DAY = date(2020, 1, 1), date(2024, 12, 31)
_DAY = 86_400_000_000
#: Part of the public seed; raise it when the rows of a stand-in change.
_EDITION = "made-up rows, edition 1"

Columns = dict[str, LongColumn]
Array = NDArray[Any]


@dataclass
class MadeUpRows:
    """The made-up rows of tables; they fit together, and are the same each time.

    Theorem (Made-up rows). The rows are a function of the declarations, of public tables, and of the day of `today`
    where blocks have no last one: the same on all data.
    Proof    `tables` has declarations and the rows of public tables, `sizes` what the owner wrote. Nothing else is
             read, and the generator of each column is seeded by a constant and the names of table and column.
    Assumes  declarations are written without looking at the data, or may be known.
    Charges  nothing.
    Tested   tests/curator/test_made_up_rows.py::test_the_rows_do_not_depend_on_the_data
             tests/curator/test_sandbox.py::test_the_real_data_is_not_needed
    """

    tables: Mapping[str, Table]
    sizes: Mapping[str, int]
    today: date
    _made: dict[str, Columns] = field(default_factory=dict)

    def of(self, name: str) -> Columns:
        """Make the rows of one private table, after those that its keys refer to."""
        if name not in self._made:
            self._made[name] = self._make(self.tables[name])
        return self._made[name]

    def _make(self, table: Table) -> Columns:
        count = self.sizes[table.name]
        given = self._keys(table, count)
        made = dict(given)
        lengths: dict[str, Array] = {}
        for column in table.columns:
            if column.name in made:
                continue
            part = part_of(column.name)
            if part is not None:
                name, place = part
                if name not in lengths:
                    most = next(c.bounds for c in table.columns if c.name == length_name(name))
                    some = _seeded(table.name, length_name(name))
                    lengths[name] = some.integers(0, int(most.high) + 1 if most is not None else 2, count)
                if not place:
                    made[column.name] = LongColumn(lengths[name])
                    continue
                made[column.name] = _with_null(self._values(table, column, count), lengths[name] < place)
                continue
            values = self._values(table, column, count)
            if column.nullable:
                some = _seeded(table.name, f"{column.name} is null")
                values = _with_null(values, some.random(count) < _NULL)
            made[column.name] = values
        return _without_repeats(made, table.unique) if table.unique else made

    def _keys(self, table: Table, count: int) -> Columns:
        """Make the columns that name owners, rows of other tables and, if nothing else does, the rows themselves."""
        made: Columns = {}
        kinds = {column.name: column.kind for column in table.columns}
        for owner in table.owners:
            if owner.path is not None:
                step = owner.path.steps[0]
                there = self.of(step.table)
                size = len(there[step.key[0]])
                row = _seeded(table.name, f"of {step.table}").integers(0, size, count)
                made |= {
                    name: LongColumn(there[key].array[row]) for name, key in zip(step.columns, step.key, strict=True)
                }
            elif (column := _id_column(owner)) is not None and column in kinds:
                people = max(1, count if table.unique == (column,) else count // _ROWS_PER_UNIT)
                some = _seeded(table.name, f"owner {column}")
                # some have more rows than others; each has one at least where there are enough rows
                more = people * some.random(max(0, count - people)) ** 2
                ids = 1 + np.concatenate([np.arange(min(people, count)), more.astype(np.int64)])
                made[column] = LongColumn(_identifiers(ids, kinds[column]))
        listed = {column.name for column in table.columns if column.values is not None}
        free = [n for n in table.unique or () if n not in made and n not in listed and kinds.get(n) in _NUMBERED]
        if free:
            numbers = np.arange(1, count + 1)
            made[free[-1]] = LongColumn(_identifiers(numbers, kinds[free[-1]]))
        return made

    def _values(self, table: Table, column: Column, count: int) -> LongColumn:
        some = _seeded(table.name, column.name)
        if column.values is not None:
            return _chosen(some, [_plain(value) for value in column.values], column.kind, count)
        blocks = table.blocks
        if blocks is not None and blocks.column == column.name:
            existing = blocks.existing(self.today).ranges
            low, high = existing[0] if existing else (blocks.first, blocks.first)
            last = time_blocks.start(blocks.by, high + 1) - timedelta(days=1)
            return _times(some, column.kind, time_blocks.start(blocks.by, low), last, count)
        if column.kind in (Kind.DATE, Kind.TIMESTAMP):
            if column.bounds is None:
                return _times(some, column.kind, _FIRST_DAY, _LAST_DAY, count)
            length = 1 if column.kind is Kind.DATE else _DAY
            ends = (int(column.bounds.low // length), int(column.bounds.high // length))
            first, last = (date(1970, 1, 1) + timedelta(days=end) for end in ends)
            return _times(some, column.kind, first, last, count)
        shared = self._shared(column)
        if shared:
            return _chosen(some, shared, column.kind, count)
        return _made_up(some, column, count)

    def _shared(self, column: Column) -> list[Any]:
        """Take the values of a public table's column of the same name and kind, so that joins find partners."""
        for table in self.tables.values():
            known = table.column(column.name) if table.public else None
            if known is not None and known.kind is column.kind and table.rows.get(column.name):
                return list(dict.fromkeys(_plain(v) for v in table.rows[column.name] if v is not None))
        return []


_NUMBERED = (Kind.INTEGER, Kind.REAL, Kind.TEXT)


def _id_column(owner: PrivacyUnit) -> str | None:
    return owner.column if owner.period is None else owner.period.column


def _seeded(*names: str) -> np.random.Generator:
    """Give a generator with a public seed: no privacy depends on it."""
    digest = sha256("\0".join((_EDITION, *names)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def _plain(value: Any) -> Any:
    return float(value) if value.__class__.__name__ == "Fraction" else value


def _identifiers(numbers: Array, kind: Kind) -> Array:
    if kind is Kind.TEXT:
        return np.array([f"id{number}" for number in numbers.tolist()], dtype=object)
    return numbers.astype(np.float64 if kind is Kind.REAL else np.int64)


def _chosen(some: np.random.Generator, values: Sequence[Any], kind: Kind, count: int) -> LongColumn:
    """Choose among listed values, the first ones more often."""
    weights = 1 / np.sqrt(np.arange(1, len(values) + 1))
    picked = some.choice(len(values), size=count, p=weights / weights.sum())
    types = {Kind.DATE: "datetime64[D]", Kind.TIMESTAMP: "datetime64[us]", Kind.BOOLEAN: "bool"}
    types |= {Kind.INTEGER: "int64", Kind.REAL: "float64"}
    listed: Array = np.empty(len(values), dtype=object)
    listed[:] = values
    typed = listed.astype(types[kind]) if kind in types else listed
    return LongColumn(typed[picked])


def _times(some: np.random.Generator, kind: Kind, first: date, last: date, count: int) -> LongColumn:
    days = max(1, (last - first).days + 1)
    begin = np.datetime64(first, "D")
    if kind is Kind.DATE:
        return LongColumn(begin + some.integers(0, days, count))
    return LongColumn(begin.astype("datetime64[us]") + some.integers(0, days * 86_400, count) * 1_000_000)


def _made_up(some: np.random.Generator, column: Column, count: int) -> LongColumn:
    """Make up numbers within declared bounds, or around 100; or words."""
    if column.kind is Kind.BOOLEAN:
        return LongColumn(some.random(count) < 0.3)
    if column.kind is Kind.TEXT:
        return _chosen(some, [f"{column.name} {number}" for number in range(1, _WORDS + 1)], Kind.TEXT, count)
    if column.bounds is None or column.auto:
        numbers = np.exp(some.normal(np.log(100), 0.5, count))
    else:
        low, high = float(column.bounds.low), float(column.bounds.high)
        numbers = low + (high - low) * some.beta(2, 3, count)
        step = 1.0 if column.kind is Kind.INTEGER else float(column.step or 0)
        numbers = np.clip(np.round(numbers / step) * step, low, high) if step else np.round(numbers, 2)
    if column.kind is Kind.INTEGER:
        return LongColumn(np.round(numbers).astype(np.int64))
    return LongColumn(np.round(numbers, 6))


def _with_null(column: LongColumn, null: Array) -> LongColumn:
    values = column.array.copy()
    if values.dtype == object:
        values[null] = None
        return LongColumn(values)
    return LongColumn(np.ma.array(values, mask=null | column.null))


def _without_repeats(made: Columns, unique: Sequence[str]) -> Columns:
    """Keep the first row of each key."""
    codes = [np.unique(np.ma.getdata(made[name].array).astype(str), return_inverse=True)[1] for name in unique]
    _, first = np.unique(np.stack(codes, axis=1), axis=0, return_index=True)
    kept = np.sort(first)
    return {name: LongColumn(column.array[kept]) for name, column in made.items()}


__all__ = ["DEFAULT_ROWS", "MOST_DECLARED", "MadeUpRows"]
