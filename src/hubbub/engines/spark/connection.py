"""Spark: the plan runs on the cluster, and nothing but the grouped result travels.

Each table of the plan is named in a WITH before it, as a selection of the owner's table or files in the types that the
dialect counts on. A public table of another place is uploaded once a session.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, UnreachableError, Upload, View
from hubbub.engines.duckdb.open import Limits
from hubbub.engines.spark import catalog as server
from hubbub.engines.spark.catalog import schema
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: Queries that run at once; more wait in line.
_AT_ONCE = 16
#: Seconds that a query which was told to stop gets for it.
_GRACE = 5
#: Rows of a public table that may be uploaded.
MOST_UPLOADED = 100_000


class _Opened:
    """One session, what was uploaded into it, and how its tables are read."""

    def __init__(self, session: server.Session) -> None:
        self.session = session
        self.uploaded: set[str] = set()
        self.selections: dict[str, tuple[Mapping[str, str], str]] = {}
        self.mutex = threading.Lock()

    def selection(self, view: View) -> str:
        """Write how a table is read, by the types that it had when this session first saw it."""
        with self.mutex:
            if view.name not in self.selections:
                seen = server.frame(self.session, view.place)
                types = {field.name: field.type for field in server.fields(seen)}
                self.selections[view.name] = (types, server.selection(view, types))
            return self.selections[view.name][1]


class Spark:
    """The tables of one Spark Connect server, or of a Spark that is started here (local[*]).

    A session in which anything failed is thrown away, and the next query opens another, so a restarted server is found
    again by itself. A query that takes longer than its limit is interrupted.
    """

    dialect = "spark"

    def __init__(self, views: Sequence[View], *, limits: Limits, uploads: Sequence[Upload] = ()) -> None:
        self._views = {view.name: view for view in views}
        self._uploads = {upload.view.name: upload for upload in uploads}
        self._limits = limits
        self._address = next(iter(self._views.values())).place.address
        self._mutex = threading.Lock()
        self._opened: _Opened | None = None
        self._types: dict[str, Mapping[str, str]] = {}
        self._running: dict[str, tuple[int, _Opened]] = {}
        self._workers = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="hubbub-spark")

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT in a thread of its own, for no longer than the limit."""
        tag = f"hubbub-{uuid4().hex}"
        running: Future[Secret[Arrays] | str] = self._workers.submit(self._run, sql, tag, threading.get_ident())
        found: Secret[Arrays] | str
        try:
            found = running.result(timeout=self._limits.seconds)
        except Late:
            self._stop(tag)
            with suppress(Late):
                running.result(timeout=_GRACE)
            found = "late"
        except BaseException:
            self._stop(tag)
            raise
        if isinstance(found, str):
            _log.info("the engine failed: %s", found)
            self._forget()
            raise RunError
        return found

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Ask the server for the table's files or version; see that it is as it was declared."""
        opened = self._session()
        try:
            return self._looked(opened, self._views[name])
        except UnreachableError:
            self._forget(opened)
        # the server may have gone away and come back since the session was opened: once more, with a new one
        opened = self._session()
        try:
            return self._looked(opened, self._views[name])
        except UnreachableError:
            self._forget(opened)
            raise

    def interrupt(self, caller: int | None = None) -> None:
        """Stop every query that is running now, or those that one thread asked for."""
        for tag, (asking, _) in tuple(self._running.items()):
            if caller in (None, asking):
                self._stop(tag)

    def close(self) -> None:
        """Let go of the session; a Spark that was started here stays until the process ends."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._forget()

    # --- sessions ----------------------------------------------------------------------------------------------------

    def _session(self) -> _Opened:
        with self._mutex:
            if self._opened is None:
                self._opened = _Opened(server.connect(self._address, self._limits))
            return self._opened

    def _forget(self, opened: _Opened | None = None) -> None:
        """Throw the session away (only this one, where one is named)."""
        with self._mutex:
            if self._opened is None or opened not in (None, self._opened):
                return
            gone, self._opened = self._opened, None
        with suppress(Exception):
            gone.session.stop()

    def _stop(self, tag: str) -> None:
        known = self._running.get(tag)
        if known is not None:
            with suppress(Exception):
                known[1].session.interruptTag(tag)

    def _looked(self, opened: _Opened, view: View) -> Secret[bytes]:
        seen = server.frame(opened.session, view.place, afresh=view.version is None)
        self._unchanged(view, {field.name: field.type for field in server.fields(seen)})
        return Secret(server.fingerprint(opened.session, view, seen))

    def _unchanged(self, view: View, types: Mapping[str, str]) -> None:
        """Refuse a table whose columns are not what they were when it was first seen."""
        shown = {name: types.get(name, "") for name, _ in view.columns}
        if "" in shown.values() or self._types.setdefault(view.name, shown) != shown:
            raise UnreachableError(
                "the columns of the table are not what they were when hubbub was started",
                "Check hubbub.yaml with `hubbub check`, and start hubbub again.",
            )

    # --- queries -----------------------------------------------------------------------------------------------------

    def _run(self, sql: str, tag: str, caller: int) -> Secret[Arrays] | str:
        """Give the result, or the name of what went wrong: the text of an error may hold a cell of the data."""
        try:
            opened = self._session()
            self._running[tag] = (caller, opened)
            try:
                return Secret(self._fetched(opened, sql, tag))
            finally:
                self._running.pop(tag, None)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends here
            return type(error).__name__

    def _fetched(self, opened: _Opened, sql: str, tag: str) -> Arrays:
        quoted = {name: "`" + name.replace("`", "``") + "`" for name in (*self._views, *self._uploads)}
        ctes = [
            f"{quoted[name]} AS ({opened.selection(view)})" for name, view in self._views.items() if quoted[name] in sql
        ]
        for name, upload in self._uploads.items():
            if quoted[name] in sql:
                self._upload(opened, name, upload)
        opened.session.addTag(tag)
        try:
            # inside of FROM nothing but a query can stand
            text = f"WITH {', '.join(ctes)} " if ctes else ""
            found = opened.session.sql(f"{text}SELECT * FROM ({sql}) AS `$result`").toArrow()  # noqa: S608
        finally:
            opened.session.removeTag(tag)
        return {name: _array(found.column(name)) for name in found.column_names}

    def _upload(self, opened: _Opened, name: str, upload: Upload) -> None:
        with opened.mutex:
            if name in opened.uploaded:
                return
            arrays = upload.read()
            if len(next(iter(arrays.values()))) > MOST_UPLOADED:
                raise ValueError("too many rows to upload")
            table = _table({column: (arrays[column], kind) for column, kind in upload.view.columns})
            opened.session.createDataFrame(table).createOrReplaceTempView("`" + name.replace("`", "``") + "`")
            opened.uploaded.add(name)


def _table(columns: Mapping[str, tuple[NDArray[Any], Kind]]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    types = {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }
    made = {}
    for name, (values, kind) in columns.items():
        data, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            data = data.astype("datetime64[D]" if kind is Kind.DATE else "datetime64[us]")
        made[name] = pa.array(data, type=types[kind], mask=mask, from_pandas=False)
    return pa.table(made)


def _array(column: Any) -> NDArray[Any]:
    """Give a column as numpy has it: exact integers, text as objects, moments without a zone, masked where NULL."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        filled = column.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(0).to_numpy().view("datetime64[us]")
    elif pa.types.is_decimal(kind):
        filled = np.array([None if value is None else int(value) for value in column.to_pylist()], dtype=object)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        filled = np.array([*column.to_pylist(), None], dtype=object)[:-1]
    else:
        filled = column.fill_null(False if pa.types.is_boolean(kind) else 0).to_numpy()
    found: NDArray[Any] = filled if column.null_count == 0 else np.ma.MaskedArray(filled, column.is_null().to_numpy())
    return found


__all__ = ["Spark", "schema"]
