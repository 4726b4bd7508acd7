"""What a Spark server says of a table: its columns and their types, its files. Never a value. And how to talk to it."""

import hashlib
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from hubbub.core.schema import Kind
from hubbub.engines.base import LOOSE, Field, Place, UnreachableError, View, rounding
from hubbub.engines.duckdb.open import Limits
from hubbub.engines.spark import local_server as spark_local
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession

    Session = SparkSession
    Frame = DataFrame
else:
    Session = Frame = Any

#: What a session must be for the dialect's texts to mean what they mean, whatever the server's own settings.
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
    # with the default, a date before 1900 in a file without a mark would be an error: one row could make it
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # rows that were gathered by their owner need not move again to meet by owner and group
    "spark.sql.requireAllClusterKeysForDistribution": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
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
#: Texts that may be read as dates: without this, `today` would be one.
_DATES = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?$"
#: Where pyspark writes the messages of a server's errors, which may hold a cell.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_importing = threading.Lock()


def connect(address: str, limits: Limits) -> Session:
    """Open a session, on a server of one's own where the address is a master such as local[*]."""
    builder, policy = _library()
    try:
        where = address if address.startswith("sc://") else spark_local.address_of(address, limits)
    except spark_local.NoServerError as missing:
        raise UnreachableError(missing.why, missing.remedy) from None
    with _meaning(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some settings are old, and still honoured
        session: Session = builder().remote(where).create()
        # as it comes, the library would go on trying for ten minutes
        session.client.set_retry_policies([policy(max_retries=3, initial_backoff=200, max_backoff=1000)])
        for key, value in _SETTINGS.items():
            session.conf.set(key, value)
    return session


def _library() -> tuple[Any, Any]:
    with _importing, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of every newer pandas, which is not used here
        try:
            from pyspark.logger import PySparkLogger
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession
        except ImportError as missing:
            raise ConfigError(
                "HB411",
                "a table in Spark needs the library pyspark, which is not installed here.",
                'pip install "hubbub[spark]"',
            ) from missing
        for name in _LOGGERS:
            PySparkLogger.getLogger(name).disabled = True
    return lambda: SparkSession.builder, DefaultPolicy


def schema(place: Place) -> tuple[Field, ...]:
    """Read the names and types of a table's columns."""
    try:
        session = connect(place.address, Limits())
        try:
            return fields(frame(session, place))
        finally:
            session.stop()
    except UnreachableError as error:
        raise ConfigError("HB411", f"{place.shown}: {error.why}.", error.remedy) from None


def frame(session: Session, place: Place, *, afresh: bool = False) -> Frame:
    """Name a table, or the files of a path; what is asked of one frame is looked up once (a table's files: afresh)."""
    table = place.table or ""
    with _meaning():
        if "/" in table:
            return session.read.parquet(table)
        if afresh:
            session.catalog.refreshTable(relation(place))
        return cast("Frame", session.table(relation(place)))


def fields(seen: Frame) -> tuple[Field, ...]:
    """Ask for the columns of a table."""
    with _meaning():
        found = seen.dtypes
    return tuple(
        Field(name, kind, _kind(kind), LOOSE if " collate " in kind else rounding(kind)) for name, kind in found
    )


def relation(place: Place) -> str:
    """Write the table, or the files of a path, so that SQL reads them as nothing else."""
    table = place.table or ""
    if "/" in table:
        return f"parquet.{_quoted(table)}"
    return ".".join(_quoted(part) for part in table.split("."))


def selection(view: View, types: Mapping[str, str]) -> str:
    """Write a table in the types that the dialect counts on, by casts that cannot fail; collations end here."""
    shown = ", ".join(_column(name, kind, types[name]) for name, kind in view.columns)
    return f"SELECT {shown} FROM {relation(view.place)}"  # noqa: S608


def fingerprint(session: Session, view: View, seen: Frame) -> bytes:
    """Hash what changes, as a rule, when a table does: a declared version, or its files with sizes and times.

    It tells when a file was added, removed or written anew. It does not tell when one was changed in place and its size
    and time were kept.
    """
    state = hashlib.blake2b(repr([(field.name, field.type) for field in fields(seen)]).encode(), digest_size=32)
    with _meaning():
        if view.version is not None:
            text = f"SELECT CAST(max({_quoted(view.version)}) AS STRING) AS v FROM {relation(view.place)}"  # noqa: S608
            state.update(repr(session.sql(text).toArrow().to_pylist()).encode())
            return state.digest()
        files = sorted(seen.inputFiles())
        if not files:
            raise UnreachableError(
                "Spark does not say of which files this table is, so a change would not be noticed",
                "Name a column that rises with every change: `version: updated_at`.",
            )
        listed = _listed(session, files, here=not view.place.address.startswith("sc://"))
    state.update(repr(sorted(listed)).encode())
    return state.digest()


def _listed(session: Session, files: list[str], *, here: bool) -> list[str]:
    """Say of each file how large it is and when it was written; those of a Spark of our own are on this machine."""
    if here and all(urlsplit(file).scheme == "file" for file in files):
        found = [(file, Path(unquote(urlsplit(file).path)).stat()) for file in files]
        return [f"{file} {about.st_size} {about.st_mtime_ns}" for file, about in found]
    listed = session.read.format("binaryFile").load(files).select("path", "length", "modificationTime").toArrow()
    return [str(row) for row in listed.to_pylist()]


def _column(name: str, kind: Kind, found: str) -> str:
    quoted = _quoted(name)
    if kind is Kind.TEXT:
        # bytes that are no UTF-8 would fail on their way out; equal numbers have one text
        once = f"CASE WHEN {quoted} = 0 THEN abs({quoted}) ELSE {quoted} END"
        text = f"make_valid_utf8(CAST({once if found in ('float', 'double') else quoted} AS STRING))"
    elif kind in (Kind.DATE, Kind.TIMESTAMP) and _kind(found) is Kind.TEXT:
        text = f"try_cast(CASE WHEN CAST({quoted} AS STRING) RLIKE '{_DATES}' THEN {quoted} END AS {_TYPES[kind]})"
    elif kind in (Kind.DATE, Kind.TIMESTAMP) and _kind(found) not in (Kind.DATE, Kind.TIMESTAMP):
        text = f"CAST(NULL AS {_TYPES[kind]})"
    elif found == _TYPES[kind].lower():
        return quoted
    else:
        text = f"try_cast({quoted} AS {_TYPES[kind]})"
    return f"{text} AS {quoted}"


def _kind(found: str) -> Kind | None:
    if found.startswith("decimal"):
        return Kind.REAL
    return Kind.TEXT if found.startswith(("varchar", "char", "string")) else _KINDS.get(found)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _meaning() -> Iterator[None]:
    """Turn a failure before the charge into what it means, in our words: the server's own may hold anything."""
    why = remedy = ""
    try:
        yield
    except (UnreachableError, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001
        why, remedy = _meant(error)
    if why:
        raise UnreachableError(why, remedy)


def _meant(error: Exception) -> tuple[str, str]:
    condition = str(getattr(error, "getCondition", lambda: "")() or "")
    if condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND", "CATALOG")):
        return "Spark has no such table or path", "Check the name after the last slash of the source."
    if condition.startswith(("INSUFFICIENT", "UNAUTHORIZED")) or "ermission" in condition:
        return "Spark does not let this user read the table", "Give the right to SELECT from it."
    if condition.startswith(("UNABLE_TO_INFER", "FAILED_READ_FILE", "CANNOT_READ", "UNRESOLVED", "INVALID_SCHEMA")):
        return (
            "what Spark has there is no table that it can read",
            "Check the path (a Parquet file or a folder of them), and that the user whom Spark runs as may read it.",
        )
    return "Spark does not answer", "Check that the server runs, and the address and token in the source."
