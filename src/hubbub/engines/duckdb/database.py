"""Open DuckDB over the declared files and lock it down: queries cannot access anything that is not declared.

Parquet and DuckDB files and Delta Lake tables are read in place. CSV files and SQLite tables are loaded, with casts
that cannot fail.

Tested in tests/engines/test_sources.py.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb

from hubbub.core.list_columns import part_of
from hubbub.core.schema import Kind
from hubbub.engines import files, hive
from hubbub.engines.base import (
    CSV_TEXT,
    LOOSE_COLLATION,
    DataSource,
    EngineLimits,
    Field,
    UnreachableError,
    View,
    collation_query,
    identifier,
    rounding_reason,
)
from hubbub.engines.duckdb.delta import read_snapshot
from hubbub.engines.duckdb.folder import read_folder
from hubbub.engines.duckdb.snapshot import NO_SNAPSHOTS, Snapshot
from hubbub.engines.duckdb.views import check_views
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
#: The type in DuckDB that each kind of column is read as.
TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
#: Types that are read without a cast; all others are cast with TRY_CAST.
_WITHOUT_CAST = {Kind.INTEGER: {t for t, k in _KINDS.items() if k is Kind.INTEGER}, Kind.REAL: {"FLOAT", "DOUBLE"}}


_LOCAL = threading.local()


def _catalog_reader() -> duckdb.DuckDBPyConnection:
    """Return this thread's database for reading headers, footers and catalogs; opening a new one takes far longer."""
    connection: duckdb.DuckDBPyConnection | None = getattr(_LOCAL, "connection", None)
    if connection is None:
        connection = _LOCAL.connection = duckdb.connect(
            ":memory:",
            # it reads what the file has now, and has no threads, so that a server can fork its workers
            config={
                "threads": 1,
                "async_threads": 0,
                "python_enable_replacements": False,
                "enable_external_file_cache": False,
            },
        )
    return connection


@contextmanager
def _attached(source: DataSource) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach a database file as `$source`; other files are read where they are."""
    connection = _catalog_reader()
    if source.form != "duckdb":
        yield connection
        return
    connection.execute(f"ATTACH {_text(source.path)} AS {identifier('$source')} (READ_ONLY)")
    try:
        yield connection
    finally:
        connection.execute(f"DETACH {identifier('$source')}")


def schema(source: DataSource) -> tuple[Field, ...]:
    """Read the names and types of a table's columns from a header, footer or catalog, never a value."""
    files.check_readable(source)
    if source.form == "csv":
        return tuple(Field(name, CSV_TEXT, None) for name in files.csv_header(source.path)[1])
    if source.form == "sqlite":
        return files.sqlite_fields(source)
    if source.in_folder:
        try:
            return snapshot_of(source).fields
        except hive.MixedColumnsError as error:
            raise ConfigError("HB436", f"{source.shown}: {error.why}{error.where}.", error.remedy) from None
        except hive.LayoutError as error:
            raise ConfigError("HB435", f"{source.shown}: {error.why}{error.where}.", error.remedy) from None
        except UnreachableError as error:
            raise ConfigError("HB411", f"{source.shown}: {error.why}.", error.remedy) from None
        except OSError:
            raise ConfigError("HB411", f"{source.shown} cannot be read.", "Grant read permission.") from None
    return _described(source)


def snapshot_of(source: DataSource) -> Snapshot:
    """Read which files of a folder have the rows of a table now."""
    return read_snapshot(source) if source.form == "delta" else read_folder(source, _footer)


def check_source(source: DataSource) -> None:
    """Raise an error if the table of a database file is now a view whose rows change by themselves."""
    if source.form == "sqlite":
        files.check_sqlite(source)
    elif source.form == "duckdb":
        try:
            with _attached(source) as connection:
                check_views(connection, "$source", source.table or "")
        except duckdb.Error:
            raise UnreachableError("the file is not readable", "Check the file with `hubbub check`.") from None


def guess_types(source: DataSource) -> tuple[Field, ...]:
    """Guess the types of a CSV file from its first rows. This reads values, so only `hubbub init --guess` uses it."""
    files.check_readable(source)
    try:
        rows = _catalog_reader().execute(f"DESCRIBE FROM read_csv({_text(source.path)}, header = true)").fetchall()
    except duckdb.Error:
        rows = []
    kinds = {name: _kind(kind) for name, kind, *_ in rows}
    return tuple(Field(field.name, field.type, kinds.get(field.name) or Kind.TEXT) for field in schema(source))


def _footer(path: Path) -> tuple[Field, ...]:
    """Read the columns of one Parquet file of a folder, whatever its folders are called."""
    relation = f"read_parquet({_literal(str(path))}, hive_partitioning = false)"
    try:
        rows = _catalog_reader().execute(f"DESCRIBE FROM {relation}").fetchall()
    except duckdb.Error:
        raise ConfigError("HB411", f"{path} is not a readable parquet file.", "Check the file.") from None
    return tuple(
        Field(name, kind, _kind(kind), rounding_reason(kind), element=_kind(_element_type(kind)))
        for name, kind, *_ in rows
    )


def _described(source: DataSource) -> tuple[Field, ...]:
    try:
        with _attached(source) as connection:
            if source.form == "duckdb":
                tables = connection.execute(
                    "SELECT table_name FROM information_schema.tables WHERE table_catalog = '$source' AND"
                    " table_schema = 'main'"
                ).fetchall()
                if (source.table,) not in tables:
                    raise files.no_such_table(source, [name for (name,) in tables])
                check_views(connection, "$source", source.table or "")
            relation = _relation(source, "$source")
            rows = connection.execute(f"DESCRIBE FROM {relation}").fetchall()
            # of the formats that are read in place, only a database has collations
            texts = [name for name, kind, *_ in rows if kind == "VARCHAR" and source.form == "duckdb"]
            distinguishes = {
                name: connection.execute(collation_query(identifier(name), relation)).fetchone() for name in texts
            }
    except UnreachableError as error:
        raise ConfigError("HB411", f"{source.shown}: {error.why}.", error.remedy) from None
    except duckdb.Error:
        raise ConfigError(
            "HB411",
            f"{source.path} is not a readable {source.form} file.",
            "Check the path. If a newer version wrote the file, write it again with an older version.",
        ) from None
    return tuple(
        Field(
            name,
            kind,
            _kind(kind),
            rounding_reason(kind) if distinguishes.get(name, (True,)) == (True,) else LOOSE_COLLATION,
            element=_kind(_element_type(kind)),
        )
        for name, kind, *_ in rows
    )


def open_locked(
    views: tuple[View, ...], limits: EngineLimits, spill: Path, snapshots: Mapping[str, Snapshot] = NO_SNAPSHOTS
) -> duckdb.DuckDBPyConnection:
    """Open the declared files in a new DuckDB database and lock it permanently; `snapshots` of folders by view."""
    root = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{limits.local_memory}MB",
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
        root.execute(f"SET max_temp_directory_size = '{limits.local_disk(spill)}MB'")
        paths = {str(view.source.path.resolve()) for view in views if view.source.form == "parquet"}
        opened = {
            view.name: snapshots[view.name].relation(view, spill / f"folder{place}", TYPES)
            for place, view in enumerate(views)
            if view.source.in_folder
        }
        paths |= {str(path) for _, links, _ in opened.values() for path in links}
        root.execute(f"SET allowed_paths = [{', '.join(map(_literal, sorted(paths)))}]")
        databases = sorted({view.source.path for view in views if view.source.form == "duckdb"})
        for number, path in enumerate(databases):
            root.execute(f"ATTACH {_text(path)} AS {identifier(f'$source{number}')} (READ_ONLY)")
        if any(_is_large(view) for view in views):
            root.execute(f"ATTACH {_text(spill / 'loaded.duckdb')} AS {identifier('$loaded')}")
        for view in views:
            if view.source.form in ("csv", "sqlite"):
                _load(root, view)
            elif view.source.in_folder:
                relation, _, types = opened[view.name]
                _show(root, view, relation, types)
            else:
                catalog = f"$source{databases.index(view.source.path)}" if view.source.form == "duckdb" else ""
                relation = _relation(view.source, catalog)
                _show(root, view, relation, _types(root, relation))
        for file in spill.glob("*.duckdb*"):
            file.chmod(0o600)  # the folder is private, but the umask may have left the file readable
        root.execute("SET enable_external_access = false")
        root.execute("SET lock_configuration = true")
    except BaseException:
        root.close()
        raise
    return root


def _types(root: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    return {name: kind for name, kind, *_ in root.execute(f"DESCRIBE FROM {relation}").fetchall()}


def _show(root: duckdb.DuckDBPyConnection, view: View, relation: str, types: Mapping[str, str]) -> None:
    """Create a view on a file that is read in place."""
    shown = ", ".join(
        _column(name, kind, types[name]) if name in types else _part(name, kind, types) for name, kind in view.columns
    )
    root.execute(f"CREATE VIEW {identifier(view.name)} AS SELECT {shown} FROM {relation}")  # noqa: S608


def _load(root: duckdb.DuckDBPyConnection, view: View) -> None:
    """Copy a CSV or SQLite table into memory or, if it is large, into a file in the private temporary folder.

    A CSV file is never queried in place: DuckDB 2.0 moves a TRY_CAST into its CSV reader, where it becomes a CAST that
    fails and prints the line. The extension that reads SQLite in place is not part of DuckDB and would be downloaded.
    """
    target = f"{identifier('$loaded') + '.' if _is_large(view) else ''}{identifier(view.name)}"
    declared = ", ".join(f"{identifier(name)} {TYPES[kind]}" for name, kind in view.columns)
    # the trim, which a cast does anyway, keeps the cast out of the CSV reader
    shown = ", ".join(
        identifier(name) if kind is Kind.TEXT else f"TRY_CAST(trim({identifier(name)}) AS {TYPES[kind]})"
        for name, kind in view.columns
    )
    root.execute(f"CREATE TABLE {target} ({declared})")
    if view.source.form == "csv":
        root.execute(f"INSERT INTO {target} SELECT {shown} FROM {_relation(view.source, '')}")  # noqa: S608
    else:
        for batch in files.sqlite_batches(view.source, tuple(name for name, _ in view.columns)):
            root.register("$batch", batch)
            root.execute(f"INSERT INTO {target} SELECT {shown} FROM {identifier('$batch')}")  # noqa: S608
            root.unregister("$batch")
    if _is_large(view):
        root.execute(f"CREATE VIEW {identifier(view.name)} AS FROM {target}")


def _is_large(view: View) -> bool:
    return view.source.form in ("csv", "sqlite") and view.source.path.stat().st_size > files.HASHED_WHOLE


def _part(name: str, kind: Kind, types: Mapping[str, str]) -> str:
    """Write an element of a list, or its length; NULL beyond the end."""
    column, place = part_of(name) or (name, 0)
    listed = identifier(column)
    if not place:
        return f"len({listed}) AS {identifier(name)}"
    return f"{_value(f'{listed}[{place}]', kind, _element_type(types[column]))} AS {identifier(name)}"


def _element_type(type_name: str) -> str:
    """Return the type of the elements of a list or an array; an empty text for another type."""
    return type_name.rpartition("[")[0] if type_name.endswith("]") else ""


def _column(name: str, kind: Kind, type_name: str) -> str:
    quoted = identifier(name)
    if type_name == TYPES[kind] or type_name in _WITHOUT_CAST.get(kind, ()):
        return quoted
    return f"{_value(quoted, kind, type_name)} AS {quoted}"


def _value(quoted: str, kind: Kind, type_name: str) -> str:
    # equal numbers must have the same text
    once = kind is Kind.TEXT and _KINDS.get(type_name) is Kind.REAL
    value = f"CASE WHEN {quoted} = 0 OR isnan({quoted}) THEN abs({quoted}) ELSE {quoted} END" if once else quoted
    return f"TRY_CAST({value} AS {TYPES[kind]})"


def _relation(source: DataSource, catalog: str) -> str:
    if source.form == "duckdb":
        return f"{identifier(catalog)}.main.{identifier(source.table or '')}"
    if source.form == "parquet":
        return f"read_parquet({_text(source.path)})"
    return csv_relation(source)


def csv_relation(source: DataSource) -> str:
    """Write the relation that reads a CSV file, every field as text."""
    delimiter, header = files.csv_header(source.path)
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in header)
    # Every field is text and unreadable lines are skipped, so that no value can make the reader fail. Use one thread:
    # several may start inside a quoted text and read its second line as a row (DuckDB 2.0).
    return (
        f"read_csv({_text(source.path)}, auto_detect = false, header = true, delim = {_literal(delimiter)},"
        f" quote = '\"', escape = '\"', null_padding = true, ignore_errors = true, parallel = false,"
        f" columns = {{{columns}}})"
    )


def _kind(type_name: str) -> Kind | None:
    if type_name.startswith("DECIMAL"):
        return Kind.REAL
    return Kind.TEXT if type_name.startswith("ENUM") else _KINDS.get(type_name)


def _text(path: Path) -> str:
    return _literal(str(path.resolve()))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
