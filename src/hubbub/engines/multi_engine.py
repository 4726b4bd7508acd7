"""Open the engines of all datasets and route each query to the engine that serves its tables.

Tested in tests/curator/test_postgres_source.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from hubbub.core.secret import Secret
from hubbub.engines.base import Arrays, DataSource, Engine, EngineLimits, Field, Upload, View, identifier
from hubbub.engines.duckdb.connection import DuckDBEngine
from hubbub.errors import QueryError, RunError

#: Maximum number of rows of a public file that is uploaded to a server.
MAX_UPLOADED_ROWS = 100_000


def read_schema(source: DataSource) -> tuple[Field, ...]:
    """Read the names and types of a table's columns, never a value."""
    read: Callable[[DataSource], tuple[Field, ...]] = source.engine.load_schema_reader()
    return read(source)


class MultiEngine:
    """The engines of one hubbub.yaml, and the datasets that each of them serves."""

    dialect = "several"

    def __init__(self, engines: Mapping[str, Engine], uploaded: frozenset[str]) -> None:
        """Take the engine of each dataset; the servers know the datasets in `uploaded` as well."""
        self._engines = dict(engines)
        self._uploaded = uploaded

    def engine_for(self, names: Iterable[str]) -> Engine:
        """Return the engine that serves all of these datasets, or raise an error."""
        datasets = list(names)
        engines = {id(self._engines[name]): self._engines[name] for name in datasets if name not in self._uploaded}
        if not engines:
            return self._engines[datasets[0]] if datasets else next(iter(self._engines.values()))
        if len(engines) > 1:
            raise QueryError(
                "HB575",
                f"{', '.join(sorted(datasets))} are in different sources and cannot be joined.",
                "Query one source at a time, or copy the tables into one source. Public files of up to "
                f"{MAX_UPLOADED_ROWS:,} rows are uploaded automatically.",
            )
        return next(iter(engines.values()))

    def run(self, sql: str) -> Secret[Arrays]:  # noqa: ARG002
        """Fail: only the engine that serves the tables of a query can run it."""
        raise RunError

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Ask the engine of the dataset."""
        return self._engines[name].fingerprint(name)

    def content_hash(self, name: str) -> Secret[bytes] | None:
        """Ask the engine of the dataset."""
        return self._engines[name].content_hash(name)

    def interrupt(self, caller: int | None = None) -> None:
        """Stop running queries on all engines."""
        for engine in self._distinct():
            engine.interrupt(caller)

    def close(self) -> None:
        """Close all engines."""
        with ExitStack() as stack:
            for engine in self._distinct():
                stack.callback(engine.close)

    def _distinct(self) -> list[Engine]:
        return list({id(engine): engine for engine in self._engines.values()}.values())


def engine_for(engine: Engine, names: Iterable[str]) -> Engine:
    """Return the engine for a query on these datasets."""
    return engine.engine_for(names) if isinstance(engine, MultiEngine) else engine


def open_engine(views: Sequence[View], public: frozenset[str], *, limits: EngineLimits) -> Engine:
    """Open one engine for each server and one for all files; `public` names the public datasets."""
    servers: dict[tuple[str, str], list[View]] = {}
    files = [view for view in views if not view.source.engine.is_server]
    for view in views:
        if view.source.engine.is_server:
            servers.setdefault((view.source.form, view.source.address), []).append(view)
    engines: dict[str, Engine] = {}
    with ExitStack() as opened:
        if files or not servers:
            local = DuckDBEngine(files, limits=limits)
            opened.callback(local.close)
            engines |= {view.name: local for view in files}
        shared = [view for view in files if view.name in public and servers and _is_small(local, view)]
        uploads = [Upload(view, _reader(local, view)) for view in shared]
        for served in servers.values():
            entry = served[0].source.engine
            connect: Callable[..., Engine] = (
                entry.load_copy() if limits.copy and entry.copy else entry.load_connection()
            )
            engine = connect(served, limits=limits, uploads=uploads)
            opened.callback(engine.close)
            engines |= {view.name: engine for view in served}
        opened.pop_all()
    if len({id(engine) for engine in engines.values()}) == 1:
        return next(iter(engines.values()))
    return MultiEngine(engines, frozenset(upload.view.name for upload in uploads)) if engines else local


def _is_small(engine: DuckDBEngine, view: View) -> bool:
    """Return whether a public table is small enough to be uploaded to a server."""
    text = f"SELECT count(*) AS n FROM {identifier(view.name)}"  # noqa: S608
    return engine.run(text).through(lambda arrays: int(arrays["n"][0])) <= MAX_UPLOADED_ROWS


def _reader(engine: DuckDBEngine, view: View) -> Callable[[], Arrays]:
    """Return a function that reads all rows of a public table."""
    columns = ", ".join(identifier(name) for name, _ in view.columns)
    text = f"SELECT {columns} FROM {identifier(view.name)}"  # noqa: S608
    return lambda: engine.run(text).through(dict)
