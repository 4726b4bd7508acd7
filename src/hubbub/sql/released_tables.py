"""Small tables that a statement writes itself: the keys of a release, and its noisy numbers for later queries.

Their rows are a list of VALUES. A key is public, and a noisy number is the answer of an earlier release, so that to a
query they are public tables.

Tested in tests/sql/test_keyed_releases.py.
"""

from collections.abc import Sequence
from dataclasses import replace

from hubbub.core.schema import Column, Kind, Table, Value
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import released_place
from hubbub.sql.relations import MAX_TEXT_LENGTH

#: Maximum number of keys of such a table.
MAX_KEYS = 10_000
#: The column of the noisy numbers.
NUMBER = "v"
_KEYS = "$keys"

Keys = Sequence[tuple[Kind, Sequence[Value | None]]]


def key_name(place: int) -> str:
    """Return the name of a key column."""
    return f"k{place}"


def keys_name(place: int) -> str:
    """Return the name of a table of keys."""
    return f"{_KEYS}{place}"


def is_written(table: Table) -> bool:
    """Tell whether the rows of a table are written into the statement."""
    return table.public and (table.name.startswith(_KEYS) or released_place(table.name) is not None)


def key_table(name: str, keys: Keys) -> Table:
    """Return a public table of keys, each combination of which is there once."""
    columns = tuple(
        Column(key_name(i), kind, values=tuple(dict.fromkeys(value for value in values if value is not None)))
        for i, (kind, values) in enumerate(keys)
    )
    names = tuple(column.name for column in columns)
    rows = {name: tuple(values) for name, (_, values) in zip(names, keys, strict=True)}
    size = len(keys[0][1])
    lengths = {n: max((len(v) for v in rows[n] if isinstance(v, str)), default=0) for n in names}
    return Table(name, columns, None, unique=names, size=size, repeats={}, rows=rows, lengths=lengths)


def released_table(name: str, keys: Keys, kind: Kind) -> Table:
    """Return the table of the noisy numbers of a release, with its keys and nothing known of its numbers."""
    table = key_table(name, keys)
    return replace(table, columns=(*table.columns, Column(NUMBER, kind)))


def short_enough(values: Sequence[Value | None]) -> bool:
    """Tell whether texts are read as they are written: queries truncate longer ones."""
    return all(not isinstance(value, str) or len(value) <= MAX_TEXT_LENGTH for value in values)


def rows_of(table: Table, dialect: Dialect) -> str:
    """Write the rows of such a table as a FROM item; the numbers of a release that has not run yet have a name."""
    place = released_place(table.name)
    names = [dialect.identifier(column.name) for column in table.columns]
    columns = [[dialect.literal(v, column.kind) for v in table.rows[column.name]] for column in table.columns[:-1]]
    last = table.columns[-1]
    if place is None:
        columns.append([dialect.literal(value, last.kind) for value in table.rows[last.name]])
    else:
        numbers = dialect.released_rows(place)
        if numbers is None:
            return dialect.identifier(table.name)
        if len(numbers) != table.size:
            raise AssertionError("a release has one number for each of its keys")
        columns.append([dialect.released(dialect.literal(number, last.kind)) for number in numbers])
    rows = ", ".join(f"({', '.join(row)})" for row in zip(*columns, strict=True))
    typed = ", ".join(
        f"CAST({name} AS {dialect.types[column.kind]}) AS {name}"
        for name, column in zip(names, table.columns, strict=True)
    )
    return f"(SELECT {typed} FROM (VALUES {rows}) AS t({', '.join(names)}))"
