"""Count the values of CSV files, and of names of folders, that cannot be read as declared: queries see NULL instead.

For the data owner alone: the counts are exact. Tested in tests/engines/test_unreadable.py.
"""

from collections.abc import Mapping

import duckdb

from hubbub.core.schema import Kind
from hubbub.engines.base import DataSource, identifier
from hubbub.engines.duckdb.database import TYPES, csv_relation
from hubbub.engines.duckdb.snapshot import constant
from hubbub.engines.hive import listed

#: Rows that are looked at, from the beginning of a file.
ROWS = 100_000


def unreadable(source: DataSource, columns: Mapping[str, Kind]) -> tuple[int, Mapping[str, int]]:
    """Count the rows that are looked at, and for each column the values that cannot be read, if there are any."""
    typed = [(name, kind) for name, kind in columns.items() if kind is not Kind.TEXT]
    if not typed:
        return 0, {}
    names = ", ".join(identifier(name) for name, _ in typed)
    counts = ", ".join(_count(f"trim({identifier(name)})", TYPES[kind]) for name, kind in typed)
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        # a table of texts first: the reader would take over casts, and fail
        connection.execute(f"CREATE TABLE looked AS SELECT {names} FROM {csv_relation(source)} LIMIT {ROWS}")  # noqa: S608
        row = connection.execute(f"SELECT count(*), {counts} FROM looked").fetchone()  # noqa: S608
    if row is None:
        raise AssertionError("an aggregate has one row")
    return row[0], {name: count for (name, _), count in zip(typed, row[1:], strict=True) if count}


def unreadable_folders(source: DataSource, columns: Mapping[str, Kind]) -> tuple[int, Mapping[str, int]]:
    """Count the folders of a partitioned table, and for each column of their names the values that cannot be read."""
    listing = listed(source.path)
    values = {key: {part.values[place] for part in listing.parts} for place, key in enumerate(listing.keys)}
    counts = {}
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        for key, kind in ((key, columns[key]) for key in listing.keys if key in columns):
            texts = ", ".join(f"({constant(value, kind)})" for value in {None} | values[key])
            wrong = f"x IS NOT NULL AND TRY_CAST(x AS {TYPES[kind]}) IS NULL"
            row = connection.execute(f"SELECT count(*) FROM (VALUES {texts}) AS v(x) WHERE {wrong}").fetchone()  # noqa: S608
            counts[key] = 0 if row is None else int(row[0])
    return len({part.values for part in listing.parts}), {key: count for key, count in counts.items() if count}


def _count(text: str, type_name: str) -> str:
    return f"count(*) FILTER ({text} <> '' AND TRY_CAST({text} AS {type_name}) IS NULL)"
