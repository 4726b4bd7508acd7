"""Equal values in different representations: whichever comes first, the result of an engine has the same bytes.

Tables contain every value in two forms that the engine considers equal (both zeros, NaN of either sign, scales,
paddings, collations, time zones), or that only a person would (Unicode normal forms), in two orders. The queries use
discovered keys, computed keys, DISTINCT, subqueries per unit, joins, and every hash that selects a unit's rows:

  through plans     every statement returns the same bytes before noise for both orders
  through h.query   the released keys match a list written by hand
  owners            a person whose number is -0 in one row and 0 in another is one unit, in SQL and in analyses

Each planted error skips one canonical form and must be detected.

    HUBBUB_CAMPAIGN=full HUBBUB_PARTS=duckdb,postgres,spark       or some of them
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from fractions import Fraction
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from tests.campaigns.frame import Report, run
from tests.fixtures import equal_values as alike
from tests.fixtures import spark
from tests.fixtures.equal_values import PEOPLE, EqualPair
from tests.fixtures.postgres_server import Server

from hubbub.analyses import rows as reading
from hubbub.config import Config, load
from hubbub.core.schema import Column, Kind
from hubbub.curator.public import read_public_table
from hubbub.curator.session import open_session
from hubbub.engines.base import Arrays, Engine, identifier
from hubbub.engines.duckdb import database as duckdb_open
from hubbub.engines.multi_engine import engine_for, open_engine
from hubbub.engines.registry import engine_named
from hubbub.sql import partition_selection as discover
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.base import Canonical, Dialect
from hubbub.sql.dialects.duckdb import DuckDBDialect
from hubbub.sql.dialects.postgres import PostgresDialect
from hubbub.sql.plan import plan

UNITS = {
    "row": "row",
    "pid": "{column: pid, groups: 1, rows: 1}",
    "who": "{column: who, groups: 2, rows: 2}",
}
#: Both zeros are keys of a join.
PUBLIC = "z,zone\n0.0,a\n-0.0,b\n1.0,c\n"


_passes = count()


def declared(folder: Path, pairs: Sequence[EqualPair], sources: dict[str, str]) -> Path:
    """Write a hubbub.yaml that declares every table three times, once per privacy unit."""
    columns = ", ".join(
        ["pid: {}", "who: {}", "half: {}", "flag: {}", "n: {bounds: [-999999999, 999999999]}"]
        + [f"{pair.name}: {pair.declared}" for pair in pairs]
    )
    names = [(f"{world}_{unit}", sources[world], UNITS[unit]) for world in sources for unit in UNITS]
    datasets = "".join(
        f"  {name}: {{source: '{source}', unit: {unit}, columns: {{{columns}}}, "
        f"budget: {{epsilon: 1000000, delta: 0.4}}}}\n"
        for name, source, unit in names
    )
    caps = ", ".join(f"{name}: {{epsilon: 1000000, delta: 0.4}}" for name, *_ in names)
    (folder / "pub.csv").write_text(PUBLIC)
    (folder / "hubbub.yaml").write_text(
        f"version: 1\ndatasets:\n{datasets}  pub: {{source: pub.csv, public: true, columns: {{z: {{type: real}}}}}}\n"
        f"analysts: {{ana: {{{caps}}}}}\n"
    )
    return folder / "hubbub.yaml"


def queries(pairs: Sequence[EqualPair], unit: str) -> Iterator[str]:
    """Yield the queries on a table t, for every column that they apply to."""
    for pair in pairs:
        c = identifier(pair.name)
        yield f"SELECT {c}, count(*) AS m FROM t GROUP BY {c}"
        yield f"SELECT count(DISTINCT {c}) AS m FROM t"
        if unit != "row":
            yield f"SELECT k, count(*) AS m FROM (SELECT {unit}, {c} AS k FROM t GROUP BY {unit}, {c}) AS s GROUP BY k"
            yield f"SELECT k, count(*) AS m FROM (SELECT {unit}, min({c}) AS k FROM t GROUP BY {unit}) AS s GROUP BY k"
    # both forms by arithmetic; and two groups of a unit of which a hash keeps one
    for zero in ("zero", "n"):
        signed = f"CASE WHEN flag THEN -abs({zero}) ELSE abs({zero}) END"
        yield f"SELECT {signed} AS k, count(*) AS m FROM t GROUP BY k"
        yield f"SELECT CASE WHEN half THEN {signed} ELSE {zero} + 1 END AS k, count(*) AS m FROM t GROUP BY k"
        yield f"SELECT count(DISTINCT CASE WHEN half THEN {signed} ELSE {zero} + 1 END) AS m FROM t"
        yield f"SELECT k, count(*) AS m FROM (SELECT {signed} AS k FROM t) AS s GROUP BY k"
    if unit == "row":
        return  # a join on a duplicate key is refused, and so is a union
    yield "SELECT zone, count(*) AS m FROM t JOIN pub ON t.zero = pub.z GROUP BY zone"
    yield "SELECT z, count(*) AS m FROM t LEFT JOIN pub ON t.zero = pub.z GROUP BY z"
    yield "SELECT k, count(*) AS m FROM (SELECT zero AS k FROM t UNION ALL SELECT free FROM t) AS s GROUP BY k"


def shown(table: Arrays, whole: frozenset[str]) -> list[tuple[str, ...]]:
    """Return a result as sorted texts that distinguish both zeros; some columns as integers."""
    columns = [
        [repr(int(value) if name in whole else value) for value in np.ma.getdata(table[name]).tolist()]
        for name in sorted(table)
    ]
    return sorted(zip(*columns, strict=True))


class Side:
    """One engine with the tables of a hubbub.yaml."""

    def __init__(self, name: str, pairs: Sequence[EqualPair], yaml: Path) -> None:
        self.name = name
        self.pairs = pairs
        self.yaml = yaml
        self.config: Config = load(yaml)
        self.zones = read_public_table(self.config.datasets["pub"], self.config.limits)

    def integers(self, engine: Engine, world: str, unit: str, text: str) -> list[list[tuple[str, ...]]]:
        """Plan a query on one table and return the results of its statements before noise."""
        config, name = self.config, f"{world}_{unit}"
        tables = {name: config.datasets[name].table, "pub": self.zones}
        own = engine_for(engine, [name])
        query = bind(text.replace("FROM t", f"FROM {name} AS t"), tables=tables)
        made = plan(
            query,
            epsilon=Fraction(1000),
            delta=Fraction(1, 10**6),
            salt="salt",
            dialect=engine_named(own.dialect).load_dialect(),
        )
        # an integer is a double in the engine, and has one zero when it is released
        whole = frozenset(f"k{j}" for j, key in enumerate(query.keys) if key.expr.kind is Kind.INTEGER)
        return [own.run(each.sql).through(lambda found: shown(found, whole)) for each in made.statements]

    def owners(self, engine: Engine, world: str) -> tuple[set[str], int, int]:
        """Read the rows of an analysis: the texts of zeros, the owners by number, and by SQL."""
        table = self.config.datasets[f"{world}_who"].table
        own = engine_for(engine, [table.name])
        columns = tuple(column for column in table.columns if column.name == "n")
        rows = reading.Rows(table, columns, RenderOptions("salt", "engine", engine_named(own.dialect).load_dialect()))
        taken = own.run(rows.sql)
        zeros = taken.through(lambda found: {repr(v) for v in found["$unit"].tolist() if v == 0})
        numbers = taken.through(lambda found: len(set(np.asarray(rows.take(found).owners).tolist())))
        counted = self.integers(engine, world, "who", "SELECT count(DISTINCT who) AS m FROM t")
        return zeros, numbers, int(float(counted[0][0][-1]))


def by_plans(report: Report, side: Side, texts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Compare the two orders before noise, and their owners."""
    config = side.config
    views = [dataset.view for dataset in config.datasets.values()]
    engine = open_engine(views, frozenset({"pub"}), limits=config.limits)
    try:
        for unit, text in report.progress(texts, f"{side.name}: plans"):
            first, second = (side.integers(engine, world, unit, text) for world in ("first", "second"))
            if first != second:
                yield f"{side.name}, unit {unit}: {text}: {first} {second}"
        for world in ("first", "second"):
            if (found := side.owners(engine, world)) != ({"0.0"}, PEOPLE, PEOPLE):
                yield f"{side.name}: owners in {world}: {found}"
    finally:
        engine.close()


def by_asking(report: Report, side: Side, units: Sequence[str], *, alone: bool) -> Iterator[str]:
    """Query as an analyst, at an ε where noise has probability e⁻¹⁰⁰; `alone`: one column at a time."""
    worlds = [name.removesuffix("_row") for name in side.config.datasets if name.endswith("_row")]
    with open_session(side.yaml, analyst="ana") as session:
        for world, unit in report.progress([(w, u) for w in worlds for u in units], f"{side.name}: keys"):
            # nothing would be released for a form that only one row has
            pairs = [pair for pair in side.pairs if pair.one or world in ("first", "second")]
            # columns with one value each can be queried together, and give one group
            single = [[pair] for pair in pairs if alone or len(pair.keys) != 1]
            others = [pair for pair in pairs if len(pair.keys) == 1 and not alone]
            for columns in [*single, others] if others else single:
                names = ", ".join(identifier(pair.name) for pair in columns)
                text = f"SELECT {names}, count(*) AS m FROM {world}_{unit} GROUP BY {names}"
                # a new key: without one, the answer of an earlier pass would be replayed
                answer = session.query(text, epsilon=1000, delta="1e-6", key=f"pass {next(_passes)}")
                found = [row for row in answer.rows if row[-1]]  # Booleans are declared, and released even without rows
                for place, pair in enumerate(columns):
                    keys = sorted(_text(row[place]) for row in found)
                    if keys != sorted(map(_text, pair.keys)):
                        yield f"{side.name}, {world}, unit {unit}: {pair.name} shows {keys}"


def _text(key: object) -> str:
    """Distinguish zeros and types; a timestamp is its text."""
    return repr(key) if isinstance(key, float | bool) else str(key).replace("T", " ")


@contextmanager
def on_duckdb() -> Iterator[Side]:
    with TemporaryDirectory() as place:
        folder = Path(place)
        yield Side("duckdb", alike.DUCKDB, declared(folder, alike.DUCKDB, alike.in_duckdb(folder)))


@contextmanager
def on_postgres() -> Iterator[Side]:
    with TemporaryDirectory() as place, ExitStack() as started:
        server = started.enter_context(Server(fsync="off", full_page_writes="off"))
        sources = started.enter_context(alike.in_postgres(server))
        yield Side("postgres", alike.POSTGRES, declared(Path(place), alike.POSTGRES, sources))


@contextmanager
def on_spark() -> Iterator[Side]:
    with TemporaryDirectory() as place, spark.shared(Path(place)) as address:
        sources = alike.in_spark(address, Path(place), tuple(alike.WORLDS))
        yield Side("spark", alike.SPARK, declared(Path(place), alike.SPARK, sources))


# --- errors that must be noticed -------------------------------------------------------------------------------------

Patch = AbstractContextManager[object]


def _as_it_comes(_: Dialect, text: str, kind: object) -> Canonical:
    return Canonical(text)


def _owner_as_stored(_: Dialect, column: str, kind: object) -> Canonical:
    return Canonical(column)


def _by_text(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)


def _collated(words: type[Dialect]) -> Patch:
    scanned: Callable[[Dialect, Column], str] = words.scanned

    def spoilt(dialect: Dialect, column: Column) -> str:
        return scanned(dialect, column).replace(" COLLATE C)", ")").replace(' COLLATE "C")', ")")

    return patch.object(words, "scanned", spoilt)


def _at_random(_: Dialect, salt: str, columns: object) -> str:
    return "hashtext(CAST(random() AS text))"


def _cast(name: str, kind: Kind, found: str) -> str:
    types = {Kind.TEXT: "VARCHAR", Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE"}
    return f"TRY_CAST({identifier(name)} AS {types.get(kind, kind.name)}) AS {identifier(name)}"


def _raw(column: NDArray[Any], kind: Kind) -> NDArray[Any]:
    return np.asarray(np.ma.getdata(column))


def planted(engine: str) -> Iterator[tuple[str, bool, tuple[Patch, ...]]]:
    """Skip one canonical form each; yield whether the analyst's path must detect it, or the plans."""
    keys = patch.object(Dialect, "canonical", _as_it_comes)
    words: type[Dialect] = DuckDBDialect if engine == "duckdb" else PostgresDialect
    owners = patch.object(words, "owner", _owner_as_stored), patch.object(reading, "numbered", _by_text)
    yield "keys as they come", False, (keys,)
    yield "keys as they come, to the end", True, (keys, patch.object(discover, "_canonical", _raw))
    yield "owners by their text", False, owners
    yield "collations stay", True, (_collated(words),)
    if engine == "postgres":
        # what is hashed is in canonical form before, so that a hash of texts would be right; one of nothing is not
        yield "rows chosen at random", False, (patch.object(words, "own_hash", _at_random),)
    else:
        yield "numbers written as they come", True, (patch.object(duckdb_open, "_column", _cast),)


def is_detected(report: Report, side: Side, patches: Sequence[Patch], *, asking: bool) -> bool:
    """Return whether a difference is detected; a query that fails ends the campaign."""
    texts = [(unit, text) for unit in ("row", "pid") for text in queries((), unit)]
    with ExitStack() as spoilt:
        for each in patches:
            spoilt.enter_context(each)
        return any(by_asking(report, side, ("row",), alone=False) if asking else by_plans(report, side, texts))


def body(report: Report) -> None:
    sides = {"duckdb": on_duckdb, "postgres": on_postgres, "spark": on_spark}
    # at the small scale tests/engines/test_spark.py uses the Spark that all tests share
    for name in report.parts(*sides) if report.full else ("duckdb", "postgres"):
        with sides[name]() as side:
            units = UNITS if report.full else ("row", "pid")
            texts = [(unit, text) for unit in units for text in queries(side.pairs, unit)]
            complaints = [*by_plans(report, side, texts), *by_asking(report, side, ("row", "who"), alone=report.full)]
            for complaint in complaints[:20]:
                report.say(complaint)
            report.figure(f"{name}: questions in two orders", len(texts))
            report.target(f"{name}: answers that depend on the order", len(complaints), at_most=0)
            for error, asking, patches in planted(name) if name != "spark" else ():
                found = is_detected(report, side, patches, asking=asking)
                report.target(f"{name}: planted: {error}", found, at_least=1)


if __name__ == "__main__":
    run(body)
