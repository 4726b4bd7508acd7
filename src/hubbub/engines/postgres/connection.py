"""PostgreSQL: the plan runs where the data is, in a read-only session, and nothing but the grouped result travels.

Each table of the plan is named in a WITH before it, as a selection of the owner's table or view in the types that the
dialect counts on, by casts that cannot fail. A public table of another place travels with the query, as arrays.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, UnreachableError, Upload, View, identifier
from hubbub.engines.duckdb.open import Limits
from hubbub.engines.postgres import catalog
from hubbub.engines.postgres.catalog import Connection, RefusedError, schema
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: Sessions that are kept open while nobody uses them.
_IDLE = 8

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


class Postgres:
    """The tables and views of one database, read by one role.

    Every session is read-only, with a statement_timeout, a pinned search_path, the time zone UTC and row_security off
    (a policy that would hide rows is an error instead). A session that fails is thrown away, and the next query takes
    another, so a restarted server is found again by itself.
    """

    dialect = "postgres"

    def __init__(self, views: Sequence[View], *, limits: Limits, uploads: Sequence[Upload] = ()) -> None:
        self._views = {view.name: view for view in views}
        self._uploads = {upload.view.name: upload for upload in uploads}
        self._sent: dict[str, list[list[Any]]] = {}
        self._limits = limits
        self._address = next(iter(self._views.values())).place.address
        self._selections: dict[str, tuple[catalog.Described, str]] = {}
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._running: dict[Connection, int] = {}
        self._closed = False

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT on a session of its own."""
        failure = ""
        try:
            return Secret(self._run(sql))
        except Exception as error:  # noqa: BLE001 - its text may hold a cell of the data
            failure = type(error).__name__
        # raised out here, so that no error with data in it hangs on to this one
        _log.info("the engine failed: %s", failure)
        raise RunError

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Ask the server what changes, as a rule, when the table does; see that it is as it was declared."""
        if name in self._uploads:
            raise KeyError(name)  # its own engine knows
        view = self._views[name]
        try:
            with self._session() as session, session.transaction():
                found = self._described(session, view)
                return Secret(catalog.fingerprint(session, view, found))
        except RefusedError as refused:
            raise UnreachableError(refused.why, refused.remedy) from None
        except psycopg.Error as error:
            raise UnreachableError(*catalog.meaning(error)) from None

    def interrupt(self, caller: int | None = None) -> None:
        """Cancel every query that is running now, or those that one thread asked for."""
        for session, asking in tuple(self._running.items()):
            if caller in (None, asking):
                with suppress(psycopg.Error):
                    session.cancel_safe(timeout=5)

    def close(self) -> None:
        """Close every session that nobody uses; the others close when their query ends."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()

    # --- sessions ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        """Lend a session; one on which anything failed is not used again."""
        session = self._taken()
        self._running[session] = threading.get_ident()
        good = False
        try:
            yield session
            good = True
        finally:
            self._running.pop(session, None)
            with self._mutex:
                keep = good and not self._closed and len(self._idle) < _IDLE and not session.closed
                if keep:
                    self._idle.append(session)
            if not keep:
                session.close()

    def _taken(self) -> Connection:
        while True:
            with self._mutex:
                session = self._idle.pop() if self._idle else None
            if session is None:
                return catalog.connect(self._address, self._limits)
            try:
                # a server that went away is noticed here, and not by the query
                with session.transaction():
                    session.execute("SELECT 1")
            except psycopg.Error:
                session.close()
            else:
                return session

    # --- queries -----------------------------------------------------------------------------------------------------

    def _run(self, sql: str) -> Arrays:
        with self._session() as session, session.transaction():
            ctes: list[str] = []
            values: list[Any] = []
            for name, view in self._views.items():
                if identifier(name) in sql:
                    if name not in self._selections:
                        self._described(session, view)
                    ctes.append(f"{identifier(name)} AS NOT MATERIALIZED ({self._selections[name][1]})")
            for name in self._uploads:
                if identifier(name) in sql:
                    ctes.append(f"{identifier(name)} AS MATERIALIZED ({self._uploaded(name, values)})")
            named = f"WITH {', '.join(ctes)} " if ctes else ""
            text = f"{named}SELECT * FROM ({sql}) AS {identifier('$result')}"  # noqa: S608
            # with binary results the statement goes by the extended protocol, which takes one statement and no more;
            # a % of the text is none of a parameter where parameters are numbered by libpq itself
            cursor = psycopg.RawCursor(session)
            cursor.execute(text.encode(), values or None, binary=True)
            return _arrays(cursor)

    def _described(self, session: Connection, view: View) -> catalog.Described:
        """Look a table up; what it was when it was first seen must still be true."""
        found = catalog.described(session, view.place)
        known = self._selections.get(view.name)
        if known is not None and known[0] == found:
            return found
        text = catalog.selection(view, found)
        if known is not None and known[0].types != found.types:
            shown = {name for name, _ in view.columns}
            if any(known[0].types.get(name) != found.types.get(name) for name in shown):
                raise RefusedError(
                    "the types of its columns are not what they were when hubbub was started",
                    "Check hubbub.yaml with `hubbub check`, and start hubbub again.",
                )
        self._selections[view.name] = (found, text)
        return found

    def _uploaded(self, name: str, values: list[Any]) -> str:
        """Write a public table as arrays that travel with the query, behind the values that do already."""
        columns = self._uploads[name].view.columns
        if name not in self._sent:
            found = self._uploads[name].read()
            self._sent[name] = [_listed(found[column], kind) for column, kind in columns]
        first = len(values) + 1
        values += self._sent[name]
        arrays = ", ".join(f"${first + i}::{_ARRAYS[kind]}[]" for i, (_, kind) in enumerate(columns))
        shown = ", ".join(identifier(column) for column, _ in columns)
        return f"SELECT {shown} FROM unnest({arrays}) AS t({shown})"  # noqa: S608


def _listed(values: NDArray[Any], kind: Kind) -> list[Any]:
    """Give plain values, None where there is none."""
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
    found: Mapping[str, NDArray[Any]] = {
        column.name: _array(values, names[column.type_code].name if names[column.type_code] else "")  # type: ignore[union-attr]
        for column, values in zip(described, columns, strict=True)
    }
    return found


def _array(values: Sequence[Any], kind: str) -> NDArray[Any]:
    if kind in _NUMPY and None not in values:
        return np.asarray(values, dtype=_NUMPY[kind])
    found = np.empty(len(values), dtype=object)
    found[:] = values
    if None not in values:
        return found
    mask = np.array([value is None for value in values])
    return np.ma.MaskedArray(found, mask)


__all__ = ["Postgres", "schema"]
