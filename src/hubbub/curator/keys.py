"""Check that the declared keys of private tables are unique: the owner of each row depends on it.

Tested in tests/curator/test_keys.py.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b

from hubbub.core.schema import Column, Kind, Table
from hubbub.core.secret import Secret, combine_secrets
from hubbub.curator.versions import Versions
from hubbub.engines.base import Arrays, Engine, Guaranteed
from hubbub.engines.multi_engine import engine_for
from hubbub.engines.registry import engine_named
from hubbub.errors import ConfigError, LedgerError
from hubbub.sql.dialects.base import Dialect

_log = logging.getLogger("hubbub.curator")


def tables_behind(table: Table) -> tuple[str, ...]:
    """Name the tables that the rows of a table depend on: itself, and those through which they have their owner."""
    path = None if table.unit is None else table.unit.path
    return (table.name, *(() if path is None else path.tables))


def fingerprint(table: Table, engine: Engine) -> Secret[bytes]:
    """Return a fingerprint of all data that the rows of a table depend on; its own, if that is all."""
    return _together([engine.fingerprint(name) for name in tables_behind(table)])


def content_hash(table: Table, engine: Engine) -> Secret[bytes] | None:
    """Return a hash of all rows that the rows of a table depend on, or None if an engine has none."""
    parts = []
    for name in tables_behind(table):
        part = engine.content_hash(name)
        if part is None:
            return None
        parts.append(part)
    return _together(parts)


def _together(parts: list[Secret[bytes]]) -> Secret[bytes]:
    if len(parts) == 1:
        return parts[0]
    combined = combine_secrets({str(place): part for place, part in enumerate(parts)})
    return Secret(combined.through(lambda values: blake2b(repr([*values.values()]).encode(), digest_size=32).digest()))


def current_version(table: Table, tables: Mapping[str, Table], engine: Engine, versions: Versions) -> str:
    """Return the version of the data behind a table after the keys in it were checked."""
    return versions.current(
        table.name, lambda: checked_state(table, tables, engine, versions), lambda: content_hash(table, engine)
    )


def checked_state(table: Table, tables: Mapping[str, Table], engine: Engine, versions: Versions) -> Secret[bytes]:
    """Return the fingerprint of the data behind a table after the keys in it were checked."""
    state = fingerprint(table, engine)
    check_keys(table, tables, engine, versions)
    return state


def check_keys(table: Table, tables: Mapping[str, Table], engine: Engine, versions: Versions) -> None:
    """Raise one constant error unless the keys that a table's owners depend on are unique in this state of the data.

    Theorem (Keys before answers). No query reads a private table in a state in which its key, or one on the way to
    its owners, was found not to be unique, or was not looked at. What an analyst sees of the check is the same for all
    of them, for every query, and says nothing but that the owner's declaration does not hold.
    Proof    `Curator._version` calls this, by `current_version`, for every table of a plan before it charges. A state
             passes only by its fingerprint, which is recorded after the check has found no duplicate in it.
    Assumes  different states have different fingerprints, and the data does not change during the query: with a
             constraint in the database the key is unique at every moment.
    Charges  nothing: it reads data, and gives the analyst one bit about whether the owner's declaration holds.
    Tested   tests/curator/test_keys.py::test_a_key_that_is_not_unique_stops_the_dataset_for_everybody
             tests/curator/test_keys.py::test_a_key_is_checked_again_when_the_data_changes
    """
    for name in tables_behind(table):
        one = tables[name]
        if one.public or one.unique is None:
            continue
        state = _state(one, engine)
        if versions.verified(name, state):
            continue
        if has_duplicates(one, engine_for(engine, [name])):
            _log.error("%s: %s", name, key_error(one).message)
            raise LedgerError(
                "HB735",
                f"The data of {table.name} contradicts its declaration. Nothing was run or charged.",
                "Contact the data owner, who finds the reason with: hubbub check",
            )
        versions.record_verified(name, state)


def _state(table: Table, engine: Engine) -> Secret[bytes]:
    keys = [column for column in table.columns if column.name in (table.unique or ())]
    columns = repr((table.unique, [(c.name, c.kind.value, _narrowed(c)) for c in keys]))
    return Secret(engine.fingerprint(table.name).through(lambda state: blake2b(state + columns.encode()).digest()))


def key_problems(tables: Iterable[Table], engine: Engine) -> list[ConfigError]:
    """List the private tables whose key is not unique; for the data owner."""
    keyed = [table for table in tables if not table.public and table.unique is not None]
    return [key_error(table) for table in keyed if has_duplicates(table, engine_for(engine, [table.name]))]


def key_error(table: Table) -> ConfigError:
    """Return the error for a key that is not unique, for the data owner."""
    return ConfigError(
        "HB734",
        f"datasets.{table.name}.key is not true: several rows have the same {', '.join(table.unique or ())}. "
        "Queries on the dataset, and on those that refer to it, are refused.",
        "Name columns whose values are unique, or remove the duplicate rows.",
    )


def has_duplicates(table: Table, engine: Engine) -> bool:
    """Tell whether several rows of a table have the same key, as owners are found by it or as queries read it."""
    dialect: Dialect = engine_named(engine.dialect).load_dialect()
    keys = [column for column in table.columns if column.name in (table.unique or ())]
    if isinstance(engine, Guaranteed) and engine.guarantees_unique(table.name, table.unique or ()):
        # a constraint keeps integers apart that queries, which read doubles, do not
        whole = [dialect.identifier(column.name) for column in keys if column.kind is Kind.INTEGER]
        if not whole or not _beyond_doubles(table.name, whole, dialect, engine.run):
            return False
    raw = [dialect.owner(dialect.identifier(column.name), column.kind) for column in keys]
    # a privacy ID among them is compared as it is, whatever is declared about its column
    read = [owner if _narrowed(column) else dialect.scanned(column) for column, owner in zip(keys, raw, strict=True)]
    return any(_repeated(table.name, [*form], dialect, engine.run) for form in (raw, read))


def _narrowed(column: Column) -> bool:
    """Tell whether queries cannot read a column as it is."""
    return column.hidden or column.bounds is not None or column.values is not None


def _beyond_doubles(name: str, keys: list[str], dialect: Dialect, run: Callable[[str], Secret[Arrays]]) -> bool:
    """Tell whether a key has integers that doubles may round; an index finds them without reading all rows."""
    tests = " OR ".join(f"{key} > {1 << 53} OR {key} < {-1 << 53}" for key in keys)
    rows = f"SELECT 1 AS one FROM {dialect.identifier(name)} AS s WHERE {tests} LIMIT 1"  # noqa: S608
    text = f"SELECT count(*) AS n FROM ({rows}) AS b"  # noqa: S608
    return run(text).through(lambda arrays: int(arrays["n"][0]) > 0)


def _repeated(name: str, keys: list[str], dialect: Dialect, run: Callable[[str], Secret[Arrays]]) -> bool:
    names = [dialect.identifier(f"$key{i}") for i in range(len(keys))]
    listed = ", ".join(f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
    whole = " AND ".join(f"{name} IS NOT NULL" for name in names)
    by = ", ".join(names)
    rows = f"SELECT {listed} FROM {dialect.identifier(name)} AS s"  # noqa: S608 - identifiers are quoted
    groups = f"SELECT count(*) AS m FROM ({rows}) AS k WHERE {whole} GROUP BY {by} HAVING count(*) > 1"  # noqa: S608
    text = f"SELECT count(*) AS n FROM ({groups}) AS d"  # noqa: S608
    return run(text).through(lambda arrays: int(arrays["n"][0]) > 0)
