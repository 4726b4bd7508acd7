"""Datasets in several places: each query runs where its tables are, and public tables travel to the private ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module

from hubbub.core.secret import Secret
from hubbub.engines.base import SERVERS, Arrays, Engine, Field, Place, Upload, View, identifier
from hubbub.engines.duckdb.connection import DuckDB, Limits
from hubbub.engines.duckdb.connection import schema as schema_of_file
from hubbub.errors import QueryError, RunError

#: Rows of a public file that may travel to a server with a query.
MOST_UPLOADED = 100_000


def schema(place: Place) -> tuple[Field, ...]:
    """Read the names and types of a table's columns, wherever it is; never a value."""
    if place.form not in SERVERS:
        return schema_of_file(place)
    read: Callable[[Place], tuple[Field, ...]] = import_module(f"hubbub.engines.{place.form}.connection").schema
    return read(place)


class Several:
    """The engines of one hubbub.yaml, and which dataset each of them serves."""

    dialect = "several"

    def __init__(self, engines: Mapping[str, Engine], uploaded: frozenset[str]) -> None:
        """Take the engine that each dataset lives in; those in `uploaded` are known to the servers as well."""
        self._engines = dict(engines)
        self._uploaded = uploaded

    def serving(self, names: Iterable[str]) -> Engine:
        """Find the engine that sees all of these datasets, or refuse."""
        wanted = list(names)
        own = {id(self._engines[name]): self._engines[name] for name in wanted if name not in self._uploaded}
        if not own:
            return self._engines[wanted[0]] if wanted else next(iter(self._engines.values()))
        if len(own) > 1:
            raise QueryError(
                "HB575",
                f"{', '.join(sorted(wanted))} are in different places, and no engine sees all of them.",
                "Ask about one place at a time, or copy one table beside the other. Public files of up to "
                f"{MOST_UPLOADED:,} rows travel by themselves.",
            )
        return next(iter(own.values()))

    def run(self, sql: str) -> Secret[Arrays]:  # noqa: ARG002
        """Refuse: only an engine that serves the tables of a query can run it."""
        raise RunError

    def fingerprint(self, name: str) -> Secret[bytes]:
        """Ask the engine in which the dataset lives."""
        return self._engines[name].fingerprint(name)

    def interrupt(self, caller: int | None = None) -> None:
        """Stop what is running now, everywhere."""
        for engine in self._each():
            engine.interrupt(caller)

    def close(self) -> None:
        """Let go of all data."""
        with ExitStack() as closing:
            for engine in self._each():
                closing.callback(engine.close)

    def _each(self) -> list[Engine]:
        return list({id(engine): engine for engine in self._engines.values()}.values())


def serving(engine: Engine, names: Iterable[str]) -> Engine:
    """Find the engine for a query over these datasets: the only one, or the one among several that sees them all."""
    return engine.serving(names) if isinstance(engine, Several) else engine


def open_engine(views: Sequence[View], public: frozenset[str], *, limits: Limits) -> Engine:
    """Open an engine for each place, or the one where all is in one place; `public` names the public datasets."""
    places: dict[tuple[str, str], list[View]] = {}
    for view in views:
        where = (view.place.form, view.place.address) if view.place.form in SERVERS else ("files", "")
        places.setdefault(where, []).append(view)
    files = places.pop(("files", ""), [])
    engines: dict[str, Engine] = {}
    with ExitStack() as opened:
        if files or not places:
            local = DuckDB(files, limits=limits)
            opened.callback(local.close)
            engines |= {view.name: local for view in files}
        shared = [view for view in files if view.name in public and places and _is_small(local, view)]
        uploads = [Upload(view, _reader(local, view)) for view in shared]
        for (form, _), own in places.items():
            engine = _server(form)(own, limits=limits, uploads=uploads)
            opened.callback(engine.close)
            engines |= {view.name: engine for view in own}
        opened.pop_all()
    if len({id(engine) for engine in engines.values()}) == 1:
        return next(iter(engines.values()))
    return Several(engines, frozenset(upload.view.name for upload in uploads)) if engines else local


def _is_small(engine: DuckDB, view: View) -> bool:
    """Say whether a public table may travel; of one that may not, a question beside a server's table is refused."""
    text = f"SELECT count(*) AS n FROM {identifier(view.name)}"  # noqa: S608
    return engine.run(text).through(lambda arrays: int(arrays["n"][0])) <= MOST_UPLOADED


def _server(form: str) -> Callable[..., Engine]:
    """Find the engine of a kind of server: it needs a client that not everybody has installed."""
    found: Callable[..., Engine] = getattr(import_module(f"hubbub.engines.{form}.connection"), form.capitalize())
    return found


def _reader(engine: DuckDB, view: View) -> Callable[[], Arrays]:
    """Give a way to read a public table whole, once somebody asks."""
    columns = ", ".join(identifier(name) for name, _ in view.columns)
    text = f"SELECT {columns} FROM {identifier(view.name)}"  # noqa: S608
    return lambda: engine.run(text).through(dict)
