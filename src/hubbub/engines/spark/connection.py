"""The Spark engine: the plan runs on the cluster, and only the grouped result is fetched.

Each table of the plan becomes a WITH clause that selects from the owner's table or files in the types that the dialect
expects. Public tables of other sources are uploaded once per session.

Tested in tests/engines/test_spark.py.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, EngineLimits, UnreachableError, Upload, View, type_of
from hubbub.engines.spark import catalog, schema_cache
from hubbub.engines.spark.catalog import schema
from hubbub.errors import RunError

_log = logging.getLogger("hubbub.engine")

#: Maximum number of concurrent queries; more wait in a queue.
_MAX_CONCURRENT = 16
#: Seconds that an interrupted query gets to stop.
_GRACE = 5
#: Maximum number of rows of an uploaded public table.
MAX_UPLOADED_ROWS = 100_000


class _Session:
    """One Spark session, its uploaded tables, and the SELECTs of its tables."""

    def __init__(self, session: catalog.Session) -> None:
        self.session = session
        self.uploaded: set[str] = set()
        self.selections: dict[str, tuple[Mapping[str, str], str]] = {}
        self.users: set[str] = set()  # the tags of what runs in it
        self.retired = False
        self.mutex = threading.Lock()

    def selection(self, view: View) -> str:
        """Write the SELECT of a table, for the types that it had when this session first read it."""
        with self.mutex:
            if view.name not in self.selections:
                frame = catalog.frame(self.session, view.source)
                types = {field.name: field.type for field in catalog.fields(frame)}
                self.selections[view.name] = (types, catalog.selection(view, types))
            return self.selections[view.name][1]


class SparkEngine:
    """The tables of one Spark Connect server, or of a local Spark that this process starts (local[*]).

    Nothing new runs in a session in which anything failed, so the engine recovers when the server is restarted; what
    others run in it ends first. A query that exceeds its time limit is interrupted.
    """

    dialect = "spark"

    def __init__(self, views: Sequence[View], *, limits: EngineLimits, uploads: Sequence[Upload] = ()) -> None:
        self._views = {view.name: view for view in views}
        self._uploads = {upload.view.name: upload for upload in uploads}
        self._limits = limits
        self._address = next(iter(self._views.values())).source.address
        self._mutex = threading.Lock()
        self._current: _Session | None = None
        # the types that hubbub.yaml was read with, which may come from the cache
        self._types = {view.name: types for view in views if (types := catalog.declared_types(view))}
        self._running: dict[str, tuple[int, _Session]] = {}
        self._workers = ThreadPoolExecutor(max_workers=_MAX_CONCURRENT, thread_name_prefix="hubbub-spark")

    def run(self, sql: str) -> Secret[Arrays]:
        """Run one SELECT in a separate thread, within the time limit."""
        tag = f"hubbub-{uuid4().hex}"
        running: Future[Secret[Arrays] | str] = self._workers.submit(self._run, sql, tag, threading.get_ident())
        result: Secret[Arrays] | str
        try:
            result = running.result(timeout=self._limits.seconds)
        except Late:
            known = self._running.get(tag)
            self._stop(tag)
            with suppress(Late):
                running.result(timeout=_GRACE)
            if known is not None:  # the server may not even answer that the query has stopped
                self._retire(known[1])
                self._leave(known[1], tag)
            result = "late"
        except BaseException:
            self._stop(tag)
            raise
        if isinstance(result, str):
            _log.info("The engine failed: %s", result)
            raise RunError
        return result

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Hash the table's files or version, and check that its columns are still as declared."""
        try:
            return self._check_and_hash(self._views[name])
        except catalog.LateError:
            raise
        except UnreachableError:
            # the server may have been restarted since the session was opened, so retry with a new session
            return self._check_and_hash(self._views[name])

    def content_hash(self, name: str) -> Secret[bytes] | None:  # noqa: ARG002
        """Return None: Spark does not tell who wrote a row."""
        return None

    def interrupt(self, caller: int | None = None) -> None:
        """Stop all running queries, or those started by one thread."""
        for tag, (thread, _) in tuple(self._running.items()):
            if caller in (None, thread):
                self._stop(tag)

    def close(self) -> None:
        """Close the session. A local Spark server stays until this process ends."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        with self._mutex:
            opened = self._current
        if opened is not None:
            self._retire(opened)

    # --- sessions ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _using(self, tag: str) -> Iterator[_Session]:
        """Use the current session, or a new one; it is not closed meanwhile, whatever fails in it for others."""
        with self._mutex:
            if self._current is None:
                self._current = _Session(catalog.connect(self._address, self._limits))
            opened = self._current
            opened.users.add(tag)
        try:
            yield opened
        except BaseException:
            self._retire(opened)
            raise
        finally:
            self._leave(opened, tag)

    def _retire(self, opened: _Session) -> None:
        """Use a session for nothing new, and close it once nothing runs in it."""
        with self._mutex:
            if self._current is opened:
                self._current = None
            opened.retired = True
        self._leave(opened)

    def _leave(self, opened: _Session, tag: str = "") -> None:
        with self._mutex:
            opened.users.discard(tag)
            unused = opened.retired and not opened.users
        if unused:
            with suppress(Exception):
                opened.session.stop()

    def _stop(self, tag: str) -> None:
        known = self._running.get(tag)
        if known is not None:
            with suppress(Exception):
                known[1].session.interruptTag(tag)

    def _check_and_hash(self, view: View) -> Secret[bytes]:
        with self._using(uuid4().hex) as opened, catalog.time_limit(opened.session, self._limits.seconds):
            frame = catalog.frame(opened.session, view.source, refresh=view.version is None)
            catalog.check_source(opened.session, view.source, frame)
            self._check_types(view, {field.name: field.type for field in catalog.fields(frame)})
            return Secret(catalog.fingerprint(opened.session, view, frame))

    def _check_types(self, view: View, types: Mapping[str, str]) -> None:
        """Raise an error if the columns of a table have changed since hubbub.yaml, or the table, was first read."""
        shown = {name: type_of(name, types) or "" for name, _ in view.columns}
        if "" in shown.values() or self._types.setdefault(view.name, shown) != shown:
            schema_cache.forget_fields(view.source)
            raise UnreachableError(
                "the columns of the table have changed since hubbub was started",
                "Check hubbub.yaml with `hubbub check`, then restart hubbub.",
            )

    # --- queries -----------------------------------------------------------------------------------------------------

    def _run(self, sql: str, tag: str, caller: int) -> Secret[Arrays] | str:
        """Return the result or the class name of the error. The error message may contain data."""
        try:
            with self._using(tag) as opened:
                self._running[tag] = (caller, opened)
                try:
                    return Secret(self._fetch(opened, sql, tag))
                finally:
                    self._running.pop(tag, None)
        except Exception as error:  # noqa: BLE001 - no error may leave the engine
            return type(error).__name__

    def _fetch(self, opened: _Session, sql: str, tag: str) -> Arrays:
        quoted = {name: "`" + name.replace("`", "``") + "`" for name in (*self._views, *self._uploads)}
        ctes = [
            f"{quoted[name]} AS ({opened.selection(view)})" for name, view in self._views.items() if quoted[name] in sql
        ]
        for name, upload in self._uploads.items():
            if quoted[name] in sql:
                self._upload(opened, name, upload)
        opened.session.addTag(tag)
        try:
            # wrap the text in FROM (…), where only a query is valid
            text = f"WITH {', '.join(ctes)} " if ctes else ""
            result = opened.session.sql(f"{text}SELECT * FROM ({sql}) AS `$result`").toArrow()  # noqa: S608
        finally:
            opened.session.removeTag(tag)
        return {name: _array(result.column(name)) for name in result.column_names}

    def _upload(self, opened: _Session, name: str, upload: Upload) -> None:
        with opened.mutex:
            if name in opened.uploaded:
                return
            arrays = upload.read()
            if len(next(iter(arrays.values()))) > MAX_UPLOADED_ROWS:
                raise ValueError("too many rows to upload")
            table = _table({column: (arrays[column], kind) for column, kind in upload.view.columns})
            opened.session.createDataFrame(table).createOrReplaceTempView("`" + name.replace("`", "``") + "`")
            opened.uploaded.add(name)


def _table(columns: Mapping[str, tuple[NDArray[Any], Kind]]) -> Any:
    import pyarrow as pa

    types = {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }
    arrays = {}
    for name, (values, kind) in columns.items():
        data, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            data = data.astype("datetime64[D]" if kind is Kind.DATE else "datetime64[us]")
        arrays[name] = pa.array(data, type=types[kind], mask=mask, from_pandas=False)
    return pa.table(arrays)


def _array(column: Any) -> NDArray[Any]:
    """Convert a column to numpy: exact integers, text as objects, timestamps without a zone, NULL as masked."""
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
    array: NDArray[Any] = filled if column.null_count == 0 else np.ma.MaskedArray(filled, column.is_null().to_numpy())
    return array


__all__ = ["SparkEngine", "schema"]
