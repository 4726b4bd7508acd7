"""Opening DuckDB over the declared files, and locking it: what is not declared cannot be reached from inside.

A Parquet or DuckDB file stays where it is; a CSV or SQLite table is loaded, by casts that cannot fail.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

from hubbub.core.schema import Kind
from hubbub.engines import files
from hubbub.engines.base import LOOSE, Field, Place, View, identifier, rounding, telling_apart
from hubbub.errors import ConfigError

_KINDS: dict[str, Kind] = {
    "BOOLEAN": Kind.BOOLEAN,
    "VARCHAR": Kind.TEXT,
    "UUID": Kind.TEXT,
    "DATE": Kind.DATE,
    "FLOAT": Kind.REAL,
    "DOUBLE": Kind.REAL,
    "HUGEINT": Kind.INTEGER,
    "UHUGEINT": Kind.INTEGER,
    **{f"{sign}{size}INT": Kind.INTEGER for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")},
    "INTEGER": Kind.INTEGER,
    "UINTEGER": Kind.INTEGER,
    **{f"TIMESTAMP{tail}": Kind.TIMESTAMP for tail in ("", "_S", "_MS", "_NS", " WITH TIME ZONE")},
}
_TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
#: Types that a scan may see as they are; every other one is cast by a cast that cannot fail.
_AS_THEY_ARE = {Kind.INTEGER: {t for t, k in _KINDS.items() if k is Kind.INTEGER}, Kind.REAL: {"FLOAT", "DOUBLE"}}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one engine may use: memory, and disk to spill to, in MB; threads; seconds for one query."""

    memory: int = 1000
    disk: int = 10_000
    threads: int = os.cpu_count() or 1
    seconds: int = 300


def schema(place: Place) -> tuple[Field, ...]:
    """Read the names and types of a table's columns from a header, a footer or a catalogue; never a value."""
    files.readable(place)
    if place.form == "csv":
        return tuple(Field(name, "text in a CSV file", None) for name in files.csv_header(place.path)[1])
    if place.form == "sqlite":
        return files.sqlite_fields(place)
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        return _described(connection, place)


def guessed(place: Place) -> tuple[Field, ...]:
    """Guess the types of a CSV file from its first rows. This reads values: for owners who ask for it, once."""
    files.readable(place)
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        try:
            found = connection.execute(f"DESCRIBE FROM read_csv({_text(place.path)}, header = true)").fetchall()
        except duckdb.Error:
            found = []
    kinds = {name: _kind(kind) for name, kind, *_ in found}
    return tuple(Field(field.name, field.type, kinds.get(field.name) or Kind.TEXT) for field in schema(place))


def _described(connection: duckdb.DuckDBPyConnection, place: Place) -> tuple[Field, ...]:
    try:
        if place.form == "duckdb":
            connection.execute(f"ATTACH {_text(place.path)} AS {identifier('$source')} (READ_ONLY)")
            tables = connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_catalog = '$source' AND"
                " table_schema = 'main'"
            ).fetchall()
            if (place.table,) not in tables:
                raise files.no_such_table(place, [name for (name,) in tables])
        relation = _relation(place, "$source")
        found = connection.execute(f"DESCRIBE FROM {relation}").fetchall()
        # of the forms that are read in place, only a database has collations
        texts = [name for name, kind, *_ in found if kind == "VARCHAR" and place.form == "duckdb"]
        told = {name: connection.execute(telling_apart(identifier(name), relation)).fetchone() for name in texts}
    except duckdb.Error:
        raise ConfigError(
            "HB411",
            f"{place.path} is not a {place.form} file that can be read.",
            "Check the path; a file of a newer version must be written again by an older one.",
        ) from None
    return tuple(
        Field(name, kind, _kind(kind), rounding(kind) if told.get(name, (True,)) == (True,) else LOOSE)
        for name, kind, *_ in found
    )


def locked(views: tuple[View, ...], limits: Limits, spill: Path) -> duckdb.DuckDBPyConnection:
    """Open the declared files in a DuckDB of their own and lock it, for good."""
    root = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{limits.memory}MB",
            "threads": str(limits.threads),
            "max_execution_time": str(limits.seconds * 1000),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "allow_extension_repositories": "forbidden",
            "allow_persistent_secrets": "false",
            "python_enable_replacements": "false",
        },
    )
    try:
        root.execute("SET TimeZone = 'UTC'")
        root.execute(f"SET temp_directory = {_text(spill)}")
        root.execute(f"SET max_temp_directory_size = '{limits.disk}MB'")
        paths = sorted({str(view.place.path.resolve()) for view in views if view.place.form == "parquet"})
        root.execute(f"SET allowed_paths = [{', '.join(map(_literal, paths))}]")
        databases = sorted({view.place.path for view in views if view.place.form == "duckdb"})
        for number, path in enumerate(databases):
            root.execute(f"ATTACH {_text(path)} AS {identifier(f'$source{number}')} (READ_ONLY)")
        if any(_is_large(view) for view in views):
            root.execute(f"ATTACH {_text(spill / 'loaded.duckdb')} AS {identifier('$loaded')}")
        for view in views:
            if view.place.form in ("csv", "sqlite"):
                _load(root, view)
            else:
                _show(root, view, f"$source{databases.index(view.place.path)}" if view.place.form == "duckdb" else "")
        for copied in spill.iterdir():
            copied.chmod(0o600)  # its folder is ours alone; the umask may have left the file open
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")
    except BaseException:
        root.close()
        raise
    return root


def _show(root: duckdb.DuckDBPyConnection, view: View, catalog: str) -> None:
    """Leave a Parquet or DuckDB file where it is."""
    relation = _relation(view.place, catalog)
    types = {name: kind for name, kind, *_ in root.execute(f"DESCRIBE FROM {relation}").fetchall()}
    shown = ", ".join(_column(name, kind, types[name]) for name, kind in view.columns)
    root.execute(f"CREATE VIEW {identifier(view.name)} AS SELECT {shown} FROM {relation}")  # noqa: S608


def _load(root: duckdb.DuckDBPyConnection, view: View) -> None:
    """Copy a CSV or SQLite table, into memory or, where it is large, into a file in the private temporary folder.

    A CSV file is never queried in place: DuckDB 2.0 moves a TRY_CAST into its CSV reader, where it is a CAST that
    fails and prints the line. The extension that reads SQLite in place is not part of DuckDB and would be fetched.
    """
    target = f"{identifier('$loaded') + '.' if _is_large(view) else ''}{identifier(view.name)}"
    declared = ", ".join(f"{identifier(name)} {_TYPES[kind]}" for name, kind in view.columns)
    # the trim, which a cast does anyway, keeps the cast out of the reader
    shown = ", ".join(
        identifier(name) if kind is Kind.TEXT else f"TRY_CAST(trim({identifier(name)}) AS {_TYPES[kind]})"
        for name, kind in view.columns
    )
    root.execute(f"CREATE TABLE {target} ({declared})")
    if view.place.form == "csv":
        root.execute(f"INSERT INTO {target} SELECT {shown} FROM {_relation(view.place, '')}")  # noqa: S608
    else:
        for batch in files.sqlite_batches(view.place, tuple(name for name, _ in view.columns)):
            root.register("$batch", batch)
            root.execute(f"INSERT INTO {target} SELECT {shown} FROM {identifier('$batch')}")  # noqa: S608
            root.unregister("$batch")
    if _is_large(view):
        root.execute(f"CREATE VIEW {identifier(view.name)} AS FROM {target}")


def _is_large(view: View) -> bool:
    return view.place.form in ("csv", "sqlite") and view.place.path.stat().st_size > files.HASHED_WHOLE


def _column(name: str, kind: Kind, found: str) -> str:
    quoted = identifier(name)
    if found == _TYPES[kind] or found in _AS_THEY_ARE.get(kind, ()):
        return quoted
    # equal numbers have one text
    once = kind is Kind.TEXT and _KINDS.get(found) is Kind.REAL
    value = f"CASE WHEN {quoted} = 0 OR isnan({quoted}) THEN abs({quoted}) ELSE {quoted} END" if once else quoted
    return f"TRY_CAST({value} AS {_TYPES[kind]}) AS {quoted}"


def _relation(place: Place, catalog: str) -> str:
    if place.form == "duckdb":
        return f"{identifier(catalog)}.main.{identifier(place.table or '')}"
    if place.form == "parquet":
        return f"read_parquet({_text(place.path)})"
    delimiter, header = files.csv_header(place.path)
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in header)
    # Every field is text and a line that cannot be read is left out: no value can make the reader fail. One thread:
    # several, starting in the midst of a quoted text, take its second line for a row (DuckDB 2.0).
    return (
        f"read_csv({_text(place.path)}, auto_detect = false, header = true, delim = {_literal(delimiter)},"
        f" quote = '\"', escape = '\"', null_padding = true, ignore_errors = true, parallel = false,"
        f" columns = {{{columns}}})"
    )


def _kind(found: str) -> Kind | None:
    if found.startswith("DECIMAL"):
        return Kind.REAL
    return Kind.TEXT if found.startswith("ENUM") else _KINDS.get(found)


def _text(path: Path) -> str:
    return _literal(str(path.resolve()))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
