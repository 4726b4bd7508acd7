"""The PostgreSQL engine: the plan runs on the server, in a read-only session, and only the grouped result is fetched.

Each table of the plan becomes a WITH clause that selects from the owner's table or view in the types that the dialect
expects, with casts that cannot fail. Public tables of other sources are sent with the query, as arrays.

Tested in tests/engines/test_postgres.py.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, EngineLimits, UnreachableError, Upload, View, identifier, type_of
from hubbub.engines.postgres import catalog, data_version
from hubbub.engines.postgres.catalog import Connection, schema
from hubbub.engines.postgres.problems import explain_error
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: Maximum number of idle sessions to keep open.
_MAX_IDLE = 8

_NUMPY = {
    "bool": "bool",
    "int2": "int64",
    "int4": "int64",
    "int8": "int64",
    "float8": "float64",
    "date": "datetime64[us]",
    "timestamp": "datetime64[us]",
}
_ARRAYS = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "bigint",
    Kind.REAL: "float8",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A transaction; `selection` returns the SELECT of a table in it, and the fingerprint of the table."""

    session: Connection
    selection: Callable[[View], tuple[str, bytes]]


class PostgresEngine:
    """The tables and views of one database, read by one role.

    Every transaction is read-only, with a statement_timeout, a fixed search_path, the time zone UTC and row_security
    off (a policy that would hide rows raises an error instead). A session that fails is closed, and the next query
    opens another, so the engine recovers when the server is restarted.
    """

    dialect = "postgres"

    def __init__(self, views: Sequence[View], *, limits: EngineLimits, uploads: Sequence[Upload] = ()) -> None:
        self._views = {view.name: view for view in views}
        self._uploads = {upload.view.name: upload for upload in uploads}
        self._sent: dict[str, list[list[Any]]] = {}
        self._limits = limits
        self._address = next(iter(self._views.values())).source.address
        self._selections: dict[str, tuple[catalog.TableDescription, str]] = {}
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._running: dict[Connection, int] = {}
        self._closed = False

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT in a session."""
        failure = ""
        try:
            return Secret(self._run(sql))
        except Exception as error:  # noqa: BLE001 - the message may contain data
            failure = type(error).__name__
        # raise outside of the handler, so that the error with data is not attached as context
        _log.info("The engine failed: %s", failure)
        raise RunError

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Hash what normally changes with the table, and check that its columns are still as declared."""
        if name in self._uploads:
            raise KeyError(name)  # only its own engine can tell
        view = self._views[name]
        try:
            with self._session() as session, catalog.transaction(session, self._limits):
                table = self._describe(session, view)
                return Secret(data_version.fingerprint(session, view, table.oid))
        except psycopg.Error as error:
            raise UnreachableError(*explain_error(error)) from None

    def content_hash(self, name: str) -> Secret[bytes] | None:
        """Hash which transactions wrote the rows of the table, if the role can read that in time."""
        view = self._views[name]
        try:
            with self._session() as session, catalog.transaction(session, self._limits):
                value = data_version.content_hash(session, view, self._describe(session, view).oid)
        except psycopg.errors.QueryCanceled:
            return None
        except psycopg.Error as error:
            raise UnreachableError(*explain_error(error)) from None
        return None if value is None else Secret(value)

    def guarantees_unique(self, name: str, columns: tuple[str, ...]) -> bool:
        """Return whether a unique constraint of the table covers these columns."""
        try:
            with self._session() as session, catalog.transaction(session, self._limits):
                return catalog.has_unique_constraint(session, self._describe(session, self._views[name]), columns)
        except psycopg.Error as error:
            raise UnreachableError(*explain_error(error)) from None

    def interrupt(self, caller: int | None = None) -> None:
        """Cancel all running queries, or those started by one thread."""
        for session, thread in tuple(self._running.items()):
            if caller in (None, thread):
                with suppress(psycopg.Error):
                    session.cancel_safe(timeout=5)

    def close(self) -> None:
        """Close all idle sessions; the others are closed when their query ends."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    @contextmanager
    def snapshot(self) -> Iterator["Snapshot"]:
        """Open a transaction in which all tables are read as of one moment."""
        with self._session() as session, catalog.transaction(session, self._limits):
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

            def selection(view: View) -> tuple[str, bytes]:
                table = self._describe(session, view)
                return self._selections[view.name][1], data_version.fingerprint(session, view, table.oid)

            yield Snapshot(session, selection)

    # --- sessions ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """Provide a session. A session in which anything failed is not reused."""
        session = self._take_session()
        self._running[session] = threading.get_ident()
        good = False
        try:
            yield session
            good = True
        finally:
            self._running.pop(session, None)
            with self._mutex:
                keep = good and not self._closed and len(self._idle) < _MAX_IDLE and not session.closed
                if keep:
                    self._idle.append(session)
            if not keep:
                session.close()

    def _take_session(self) -> Connection:
        while True:
            with self._mutex:
                session = self._idle.pop() if self._idle else None
            if session is None:
                return catalog.connect(self._address)
            try:
                # detect a lost connection here rather than in the query
                with session.transaction():
                    session.execute("SELECT 1")
            except psycopg.Error:
                session.close()
            else:
                return session

    # --- queries -----------------------------------------------------------------------------------------------------

    def _run(self, sql: str) -> Arrays:
        with self._session() as session, catalog.transaction(session, self._limits):
            ctes: list[str] = []
            values: list[Any] = []
            for name, view in self._views.items():
                if identifier(name) in sql:
                    if name not in self._selections:
                        self._describe(session, view)
                    ctes.append(f"{identifier(name)} AS NOT MATERIALIZED ({self._selections[name][1]})")
            for name in self._uploads:
                if identifier(name) in sql:
                    ctes.append(f"{identifier(name)} AS MATERIALIZED ({self._uploaded(name, values)})")
            prefix = f"WITH {', '.join(ctes)} " if ctes else ""
            text = f"{prefix}SELECT * FROM ({sql}) AS {identifier('$result')}"  # noqa: S608
            # binary results use the extended protocol, which accepts only one statement
            # a RawCursor has $1 parameters, so that a % in the text is not a placeholder
            cursor = psycopg.RawCursor(session)
            cursor.execute(text.encode(), values or None, binary=True)
            return _arrays(cursor)

    def _describe(self, session: Connection, view: View) -> catalog.TableDescription:
        """Look up a table, and check that its types are those that it had at first."""
        table = catalog.describe(session, view.source)
        known = self._selections.get(view.name)
        if known is not None and known[0] == table:
            return table
        text = catalog.selection(view, table)
        if known is not None and known[0].types != table.types:
            shown = {name for name, _ in view.columns}
            if any(type_of(name, known[0].types) != type_of(name, table.types) for name in shown):
                raise UnreachableError(
                    "the column types have changed since hubbub was started",
                    "Check hubbub.yaml with `hubbub check`, then restart hubbub.",
                )
        self._selections[view.name] = (table, text)
        return table

    def _uploaded(self, name: str, values: list[Any]) -> str:
        """Write a public table as array parameters, after the parameters in `values`."""
        columns = self._uploads[name].view.columns
        if name not in self._sent:
            values_of = self._uploads[name].read()
            self._sent[name] = [_listed(values_of[column], kind) for column, kind in columns]
        first = len(values) + 1
        values += self._sent[name]
        arrays = ", ".join(f"${first + i}::{_ARRAYS[kind]}[]" for i, (_, kind) in enumerate(columns))
        shown = ", ".join(identifier(column) for column, _ in columns)
        return f"SELECT {shown} FROM unnest({arrays}) AS t({shown})"  # noqa: S608


def _listed(values: NDArray[Any], kind: Kind) -> list[Any]:
    """Return plain Python values, with None for NULL."""
    data = np.ma.getdata(values)
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        plain = data.astype("datetime64[D]" if kind is Kind.DATE else "datetime64[us]").tolist()
    else:
        plain = data.tolist()
    mask = np.ma.getmaskarray(values).tolist() if isinstance(values, np.ma.MaskedArray) else [False] * len(plain)
    return [None if hidden else value for value, hidden in zip(plain, mask, strict=True)]


def _arrays(cursor: "psycopg.RawCursor[tuple[Any, ...]]") -> Arrays:
    described = cursor.description or []
    rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(described)
    names = {column.type_code: psycopg.adapters.types.get(column.type_code) for column in described}
    arrays: Mapping[str, NDArray[Any]] = {
        column.name: _array(values, names[column.type_code].name if names[column.type_code] else "")  # type: ignore[union-attr]
        for column, values in zip(described, columns, strict=True)
    }
    return arrays


def _array(values: Sequence[Any], kind: str) -> NDArray[Any]:
    if kind in _NUMPY and None not in values:
        return np.asarray(values, dtype=_NUMPY[kind])
    column = np.empty(len(values), dtype=object)
    column[:] = values
    if None not in values:
        return column
    mask = np.array([value is None for value in values])
    return np.ma.MaskedArray(column, mask)


__all__ = ["PostgresEngine", "schema"]
