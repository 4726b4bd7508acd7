"""Connect to Spark, and read columns, types and files of its tables, never a value.

Tested in tests/engines/test_spark.py.
"""

import hashlib
import re
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from hubbub.core.list_columns import part_of
from hubbub.core.schema import Kind
from hubbub.engines.base import (
    LOOSE_COLLATION,
    DataSource,
    EngineLimits,
    Field,
    UnreachableError,
    View,
    rounding_reason,
    type_of,
)
from hubbub.engines.spark import local_server, schema_cache
from hubbub.engines.spark.views import check_table
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession

    Session = SparkSession
    Frame = DataFrame
else:
    Session = Frame = Any

#: Session settings that the dialect relies on, whatever the server's own settings are.
_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # with the default, one row with a date before 1900 could cause an error
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # rows that are partitioned by owner need no further exchange to be grouped by owner and cell
    "spark.sql.requireAllClusterKeysForDistribution": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # otherwise the plan of a wide view would hide some of its functions
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_KINDS: Mapping[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    "tinyint": Kind.INTEGER,
    "smallint": Kind.INTEGER,
    "int": Kind.INTEGER,
    "bigint": Kind.INTEGER,
    "float": Kind.REAL,
    "double": Kind.REAL,
    "string": Kind.TEXT,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP,
}
_TYPES: Mapping[Kind, str] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "STRING",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
#: Texts that are read as dates. Without this, `today` would be one.
_DATES = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?$"
#: What has a meaning in a pattern of Hadoop's file systems.
_WILD = re.compile(r"[\\*?\[\]{}]")
#: Loggers to which pyspark writes error messages of the server, which may contain data.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_importing = threading.Lock()
#: Seconds for requests that a server answers by itself.
_SHORT = 20.0


def connect(address: str, limits: EngineLimits) -> Session:
    """Open a session; for a master such as local[*], on a server that this process starts."""
    builder, policy, deadlines = _library()
    where = address if address.startswith("sc://") else local_server.address_of(address, limits)
    with _explain_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some settings are deprecated but still work
        session: Session = builder().remote(where).create()
        # by default, the library retries for ten minutes, and waits for an hour where a cluster has no workers
        session.client.set_retry_policies([policy(max_retries=3, initial_backoff=200, max_backoff=1000)])
        session.client._rpc_deadlines = deadlines(limits.seconds)  # noqa: SLF001 - the builder does not take them
        for key, value in _SETTINGS.items():
            session.conf.set(key, value)
    return session


def _library() -> tuple[Any, Any, Any]:
    with _importing, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark warns about newer pandas versions, which hubbub does not use
        try:
            from pyspark.logger import PySparkLogger
            from pyspark.sql.connect.client.core import RpcDeadlines
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession
        except ImportError as missing:
            raise ConfigError(
                "HB411",
                "Spark sources require the pyspark package, which is not installed.",
                'Run pip install "hubbub[spark]".',
            ) from missing
        for name in _LOGGERS:
            PySparkLogger.getLogger(name).disabled = True
    short = dict.fromkeys(("config", "interrupt", "release_session", "fetch_error_details"), _SHORT)
    return lambda: SparkSession.builder, DefaultPolicy, lambda seconds: RpcDeadlines(analyze_plan=seconds, **short)


class LateError(UnreachableError):
    """Spark did not answer in time."""

    def __init__(self) -> None:
        super().__init__("Spark did not answer in time", "Check that the cluster has workers that are not all busy.")


@contextmanager
def time_limit(session: Session, seconds: float) -> Iterator[None]:
    """Interrupt what this thread asks of Spark before a charge: a cluster without workers would never answer.

    What the server analyzes has its own deadline, see `connect`.
    """
    tag, end = f"hubbub-{token_hex(16)}", time.monotonic() + seconds

    def interrupt() -> None:
        with suppress(Exception):
            session.interruptTag(tag)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    session.addTag(tag)
    try:
        yield
    except UnreachableError:
        if time.monotonic() < end:
            raise
        raise LateError from None
    finally:
        timer.cancel()
        session.removeTag(tag)


#: The columns with which this process read hubbub.yaml. The engine compares them with Spark's before every charge.
_declared: dict[DataSource, tuple[Field, ...]] = {}


def declared_types(view: View) -> Mapping[str, str]:
    """Return the types of a table's columns with which hubbub.yaml was read, if it was read in this process."""
    types = {field.name: field.type for field in _declared.get(view.source, ())}
    return {name: type_of(name, types) or "" for name, _ in view.columns} if types else {}


def schema(source: DataSource) -> tuple[Field, ...]:
    """Read the names and types of a table's columns; for files of a local Spark that are known, without starting it."""
    known = schema_cache.cached_fields(source)
    if known is not None:
        _declared[source] = known
        return known
    state = schema_cache.state_of(source)
    try:
        limits = EngineLimits()
        session = connect(source.address, limits)
        try:
            with time_limit(session, limits.seconds):
                table_frame = frame(session, source)
                check_source(session, source, table_frame)
                columns = fields(table_frame)
        finally:
            session.stop()
        schema_cache.store_fields(source, columns, state)
        _declared[source] = columns
        return columns
    except UnreachableError as error:
        raise ConfigError("HB411", f"{source.shown}: {error.why}.", error.remedy) from None


def frame(session: Session, source: DataSource, *, refresh: bool = False) -> Frame:
    """Return a lazy frame for a table or the files of a path; `refresh` updates Spark's list of a table's files."""
    table = source.table or ""
    with _explain_errors():
        if "/" in table:
            return session.read.parquet(table)
        if refresh:
            session.catalog.refreshTable(relation(source))
        return cast("Frame", session.table(relation(source)))


def check_source(session: Session, source: DataSource, table_frame: Frame) -> None:
    """Raise an error if the rows of a table can change without a change of its files."""
    with _explain_errors():
        check_table(session, source, table_frame)


def fields(frame: Frame) -> tuple[Field, ...]:
    """Read the columns of a table."""
    with _explain_errors():
        types = frame.dtypes
    return tuple(
        Field(
            name,
            kind,
            _kind(kind),
            LOOSE_COLLATION if " collate " in kind else rounding_reason(kind),
            element=_kind(_element_type(kind)),
        )
        for name, kind in types
    )


def relation(source: DataSource) -> str:
    """Write the quoted name of the table, or of the files of a path."""
    table = source.table or ""
    if "/" in table:
        return f"parquet.{_quoted(table)}"
    return ".".join(_quoted(part) for part in table.split("."))


def selection(view: View, types: Mapping[str, str]) -> str:
    """Write a SELECT of a table's columns in the types that the dialect expects, with casts that cannot fail."""
    shown = ", ".join(
        _column(name, kind, types[name]) if name in types else _part(name, kind, types) for name, kind in view.columns
    )
    return f"SELECT {shown} FROM {relation(view.source)}"  # noqa: S608


def fingerprint(session: Session, view: View, table_frame: Frame) -> bytes:
    """Hash what normally changes with a table: the declared version column, or its files with sizes and times.

    This detects files that were added, removed or rewritten. It does not detect a file that was changed in place with
    its size and time preserved.
    """
    state = hashlib.blake2b(repr([(field.name, field.type) for field in fields(table_frame)]).encode(), digest_size=32)
    with _explain_errors():
        if view.version is not None:
            text = f"SELECT CAST(max({_quoted(view.version)}) AS STRING) AS v FROM {relation(view.source)}"  # noqa: S608
            state.update(repr(session.sql(text).toArrow().to_pylist()).encode())
            return state.digest()
        files = sorted(table_frame.inputFiles())
        if not files:
            raise UnreachableError(
                "Spark does not list the files of this table, so changes would go unnoticed",
                "Declare a column that increases with every change: `version: updated_at`.",
            )
        listed = _listed(session, files, here=not view.source.address.startswith("sc://"))
    state.update(repr(sorted(listed)).encode())
    return state.digest()


def _listed(session: Session, files: list[str], *, here: bool) -> list[str]:
    """Return size and modification time of each file; the files of a local Spark are on this machine."""
    if here and all(urlsplit(file).scheme == "file" for file in files):
        stats = [(file, Path(unquote(urlsplit(file).path)).stat()) for file in files]
        return [f"{file} {about.st_size} {about.st_mtime_ns}" for file, about in stats]
    paths = [_pattern(file) for file in files]
    listed = session.read.format("binaryFile").load(paths).select("path", "length", "modificationTime").toArrow()
    return [str(row) for row in listed.to_pylist()]


def _pattern(file: str) -> str:
    r"""Write the pattern that matches one file: Spark lists files as URLs, and reads patterns of names.

    >>> print(_pattern("s3a://lake/day=1/a%20%5Bb%5D%2520.parquet"))
    s3a://lake/day=1/a \[b\]%20.parquet
    """
    return _WILD.sub(r"\\\g<0>", unquote(file))


def _part(name: str, kind: Kind, types: Mapping[str, str]) -> str:
    """Write an element of an array, or its length; NULL beyond the end."""
    column, place = part_of(name) or (name, 0)
    listed = _quoted(column)
    if not place:
        return f"CASE WHEN {listed} IS NOT NULL THEN CAST(size({listed}) AS BIGINT) END AS {_quoted(name)}"
    return f"{_value(f'get({listed}, {place - 1})', kind, _element_type(types[column]))} AS {_quoted(name)}"


def _element_type(type_name: str) -> str:
    """Return the type of the elements of an array; an empty text for another type."""
    return type_name[6:-1] if type_name.startswith("array<") else ""


def _column(name: str, kind: Kind, type_name: str) -> str:
    quoted = _quoted(name)
    if kind is not Kind.TEXT and type_name == _TYPES[kind].lower():
        return quoted
    return f"{_value(quoted, kind, type_name)} AS {quoted}"


def _value(quoted: str, kind: Kind, type_name: str) -> str:
    if kind is Kind.TEXT:
        # invalid UTF-8 would fail when the result is fetched; equal numbers must have the same text
        once = f"CASE WHEN {quoted} = 0 THEN abs({quoted}) ELSE {quoted} END"
        text = f"make_valid_utf8(CAST({once if type_name in ('float', 'double') else quoted} AS STRING))"
    elif kind in (Kind.DATE, Kind.TIMESTAMP) and _kind(type_name) is Kind.TEXT:
        text = f"try_cast(CASE WHEN CAST({quoted} AS STRING) RLIKE '{_DATES}' THEN {quoted} END AS {_TYPES[kind]})"
    elif kind in (Kind.DATE, Kind.TIMESTAMP) and _kind(type_name) not in (Kind.DATE, Kind.TIMESTAMP):
        text = f"CAST(NULL AS {_TYPES[kind]})"
    elif type_name == _TYPES[kind].lower():
        text = quoted
    else:
        text = f"try_cast({quoted} AS {_TYPES[kind]})"
    return text


def _kind(type_name: str) -> Kind | None:
    if type_name.startswith("decimal"):
        return Kind.REAL
    return Kind.TEXT if type_name.startswith(("varchar", "char", "string")) else _KINDS.get(type_name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn a failure before the charge into an `UnreachableError`, without the server's message."""
    why = remedy = ""
    try:
        yield
    except (UnreachableError, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001
        why, remedy = _explanation(error)
    if why:
        raise UnreachableError(why, remedy)


def _explanation(error: Exception) -> tuple[str, str]:
    condition = str(getattr(error, "getCondition", lambda: "")() or "")
    if condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND", "CATALOG")):
        return "Spark has no such table or path", "Check the table name or path in the source."
    if condition.startswith(("INSUFFICIENT", "UNAUTHORIZED")) or "ermission" in condition:
        return "Spark denies access to the table", "Grant SELECT on the table to this user."
    if condition.startswith(("UNABLE_TO_INFER", "FAILED_READ_FILE", "CANNOT_READ", "UNRESOLVED", "INVALID_SCHEMA")):
        return (
            "Spark cannot read the table",
            "Check that the path is a Parquet file or a folder of them, and that Spark's user can read it.",
        )
    return "Spark is unreachable", "Check that the server is running, and the address and token in the source."
