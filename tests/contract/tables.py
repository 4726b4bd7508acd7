"""Analyses and queries on a small table in DuckDB, of a universe that holds ends, repeats, NULL and odd numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import duckdb
from tests.contract.search import Begin, Pool, Subject
from tests.contract.watched import Data, Row, Unit

from hubbub.analyses.base import EngineRun, PreparedAnalysis, Setting
from hubbub.analyses.registry import prepare
from hubbub.core.call import AnalysisCall
from hubbub.core.events import Event
from hubbub.core.schema import Bounds, Column, Kind, Table
from hubbub.core.schema import PrivacyUnit as Whose
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.engines.base import Arrays
from hubbub.engines.duckdb.connection import _fetch
from hubbub.noise.source import RandomSource
from hubbub.sql.bind import bind
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.finish import finish
from hubbub.sql.noise import Noise
from hubbub.sql.plan import Plan, plan

ROW = Whose(None)
FEW = Whose("u", groups=2, rows=2)
#: So little that noise decides what is asked next.
EPSILON = Fraction(1, 4)
#: So much that Gaussian noise is the smaller one.
DELTA = Fraction(1, 10)


def price(delta: Fraction, *, silent: bool) -> Fraction:
    """Give the ε of a run: for one without noise, in which the data decides, as much as leaves the same kind of it."""
    return EPSILON if not silent else Fraction(1) if delta else Fraction(10)


#: Answers of the engine that are kept; then they are forgotten.
MOST_ANSWERS = 5000
ODD = (float("inf"), float("nan"))


def _bounds(low: int, high: int) -> Bounds:
    return Bounds(Fraction(low), Fraction(high))


@dataclass(frozen=True)
class World:
    """Columns as they are declared, their types in the engine, and the few values that a row may have in each."""

    columns: tuple[Column, ...]
    types: tuple[str, ...]
    pools: tuple[Pool, ...]
    repeated: bool = True  #: whether a unit does the most with equal rows
    beside: tuple[Column, ...] = ()  #: columns of a second table, p, with one row for each unit,
    people: str = ""  #: and the query that makes it from the rows of the unit
    connection: duckdb.DuckDBPyConnection = field(
        default_factory=lambda: duckdb.connect(":memory:", config={"threads": 1})
    )
    #: The units to ask about, and those that the table of the engine holds.
    wanted: list[Data] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    #: What the engine answered, by units and text: pairs of neighbors share datasets, with and without noise.
    answered: dict[tuple[str, str], Arrays] = field(default_factory=dict)

    def table(self, unit: Whose, relation: Relation) -> Table:
        """Declare it."""
        return Table("t", (Column("u", Kind.INTEGER), *self.columns), unit, relation)

    def tables(self, unit: Whose, relation: Relation) -> dict[str, Table]:
        """Declare it, and the table of people beside it."""
        if not self.people:
            return {"t": self.table(unit, relation)}
        person = Table("p", (Column("u", Kind.INTEGER), *self.beside), Whose("u", entity="person"), relation)
        return {"t": self.table(replace(unit, entity="person"), relation), "p": person}

    def only(self, used: Sequence[str]) -> tuple[Pool, ...]:
        """Give what rows may hold where only these columns matter."""
        return tuple(
            pool if column.name in used else (pool[0][:1], ())
            for column, pool in zip(self.columns, self.pools, strict=True)
        )

    def shown(self, used: Sequence[str]) -> tuple[Row, ...]:
        """Give one row for each value of a text that nobody declared."""
        usual = [pool[0][0] for pool in self.pools]
        places = [i for i, column in enumerate(self.columns) if column.name in used and column.name == "w"]
        return tuple((*usual[:i], value, *usual[i + 1 :]) for i in places for value in self.pools[i][0])

    def corners(self, used: Sequence[str]) -> tuple[Begin, ...]:
        """Begin with units at the ends of their columns: in one place, in two, and beside nothing."""
        ends = [pool[0] if len(pool[0]) == 1 else (pool[0][0], pool[0][-1]) for pool in self.only(used)]
        rows = list(product(*ends))
        pairs = [((one,), (two,)) for one, two in permutations(rows, 2)][:12]
        wide = [(both, other) for both in combinations(rows[:4], 2) for other in ((), _without(rows, both))]
        return tuple(((), one, two) for one, two in [*wide, *pairs])

    def show(self, data: Data) -> None:
        """Ask about these units from now on."""
        self.wanted[:] = [data]

    def _fill(self, data: Data) -> None:
        """Let the table hold these units; the place of a unit is its number."""
        names = ["u", *(each.name for each in self.columns)]
        kinds = ["BIGINT", *self.types]
        rows = [(number, *row) for number, unit in enumerate(data) for row in unit or ()]
        values = (
            ", ".join(f"({', '.join(map(_literal, row))})" for row in rows) or f"({', '.join(['NULL'] * len(names))})"
        )
        read = ", ".join(
            f"CAST(c{i} AS {kind}) AS {name}" for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
        )
        places = ", ".join(f"c{i}" for i in range(len(names)))
        none = "" if rows else " WHERE FALSE"
        self.connection.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT {read} FROM (VALUES {values}) AS v({places}){none}"
        )
        if self.people:
            self.connection.execute(f"CREATE OR REPLACE TABLE p AS {self.people}")

    def ask(self, sql: str) -> Secret[Arrays]:
        """Run a text, fetched as the product does, or give what the engine answered on the same units."""
        (data,) = self.wanted
        # a repr, since 0.0 and -0.0, 1 and True are equal
        place = repr(data), sql
        if place not in self.answered:
            if len(self.answered) >= MOST_ANSWERS:
                self.answered.clear()
            if self.held != [place[0]]:
                self._fill(data)
                self.held[:] = [place[0]]
            self.answered[place] = _fetch(self.connection.cursor(), sql)
        return Secret({name: column.copy() for name, column in self.answered[place].items()})


def _without(rows: Sequence[Row], both: Sequence[Row]) -> Unit:
    return tuple(row for row in rows if row not in both)[-2:]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'"
    return f"'{value!r}'" if isinstance(value, float) else str(value).upper()


def people() -> World:
    """Numbers, texts, flags: each with NULL, numbers also beyond their bounds."""
    values = ("a", "b", "c")
    return World(
        (
            Column("x", Kind.REAL, _bounds(-1, 1)),
            Column("y", Kind.REAL, _bounds(-1, 1)),
            Column("k", Kind.TEXT, values=values),
            Column("f", Kind.BOOLEAN),
            Column("g", Kind.BOOLEAN),
            Column("i", Kind.INTEGER, _bounds(0, 3)),
            Column("w", Kind.TEXT),
        ),
        ("DOUBLE", "DOUBLE", "VARCHAR", "BOOLEAN", "BOOLEAN", "BIGINT", "VARCHAR"),
        (
            ((-1.0, 0.0, 1.0), (-0.5, None, 7.0, *ODD)),
            ((-1.0, 0.0, 1.0), (0.25, None)),
            (values, (None, "z")),
            ((True, False), (None,)),
            ((True, False), (None,)),
            ((0, 1, 2, 3), (None, 99)),
            (("p", "q"), (None,)),
        ),
    )


def families() -> World:
    """Rows of people, with a table of one row for each of them."""
    values = ("a", "b", "c")
    return World(
        (Column("k", Kind.TEXT, values=values), Column("f", Kind.BOOLEAN)),
        ("VARCHAR", "BOOLEAN"),
        ((values, (None, "z")), ((True, False), (None,))),
        beside=(Column("ill", Kind.BOOLEAN),),
        people="SELECT u, bool_or(f) AS ill FROM t WHERE u IS NOT NULL GROUP BY u",
    )


def links() -> World:
    """Edges between six nodes, with weights in steps of a quarter: loops, both directions, repeats, no node, NULL."""
    nodes = (0, 1, 2, 3, 4, 5)
    return World(
        (
            Column("a", Kind.INTEGER, _bounds(0, 5)),
            Column("b", Kind.INTEGER, _bounds(0, 5)),
            Column("v", Kind.REAL, _bounds(0, 1), Fraction(1, 4)),
        ),
        ("BIGINT", "BIGINT", "DOUBLE"),
        ((nodes, (None, 9)), (nodes, (None,)), ((0.0, 1.0), (0.5, None, 5.0))),
        repeated=False,
    )


@dataclass
class Analysis:
    """A prepared analysis on this world."""

    world: World
    prepared: PreparedAnalysis
    event: Event
    epsilon: Fraction
    delta: Fraction

    def run(self, data: Data, source: RandomSource) -> None:
        """Run it."""
        self.world.show(data)
        self.prepared.run(EngineRun(self.world.ask, source, lambda _, __: None))


@dataclass
class Query:
    """A planned query on this world."""

    world: World
    plan: Plan
    epsilon: Fraction
    delta: Fraction

    @property
    def event(self) -> Event:
        """What is charged."""
        return self.plan.event

    def run(self, data: Data, source: RandomSource) -> None:
        """Run it."""
        self.world.show(data)
        tables = {each.name: self.world.ask(each.sql).through(dict) for each in self.plan.statements}
        finish(self.plan, tables, source)


def analysis(
    name: str,
    world: World,
    arguments: Mapping[str, Any],
    used: str,
    *,
    unit: Whose,
    relation: Relation,
    delta: Fraction,
    by_cell: bool = False,
    begin: tuple[Begin, ...] = (),
) -> Subject:
    """Try an analysis under one unit, relation and δ; only the columns that it uses differ between rows."""
    tables = world.tables(unit, relation)

    def make(*, silent: bool) -> Analysis:
        setting = Setting(tables, price(delta, silent=silent), delta, RenderOptions("salt"))
        given = {key: value for key, value in {"table": "t", **arguments}.items() if value is not None}
        prepared = prepare(AnalysisCall(name, given), setting)
        return Analysis(world, prepared, prepared.event, prepared.epsilon, prepared.delta)

    said = ", ".join(f"{key}={value}" for key, value in arguments.items())
    pools = world.only(used.split())
    return Subject(
        f"{name}({said}) {_whose(unit)} {relation.value} δ={float(delta):g}",
        relation,
        pools,
        1 if unit == ROW else 6,
        make,
        by_cell,
        tuple(_placed(world, used.split(), each, unit) for each in begin),
    )


def _placed(world: World, used: Sequence[str], begin: Begin, unit: Whose) -> Begin:
    """Write short rows, of the used columns alone, as whole ones; a unit of one row has as many as it may."""
    names = [each.name for each in world.columns]
    usual = [pool[0][0] for pool in world.pools]

    def row(short: Row) -> Row:
        given = dict(zip(used, short, strict=True))
        return tuple(given.get(name, value) for name, value in zip(names, usual, strict=True))

    def rows(short: Unit) -> Unit:
        long = tuple(row(each) for each in short)
        return long[:1] if unit == ROW or not long else long * (6 // len(long) if world.repeated else 1)

    base, one, two = begin
    return tuple(tuple(map(row, each)) for each in base), rows(one), rows(two)


def query(text: str, world: World, used: str, *, unit: Whose, relation: Relation, delta: Fraction) -> Subject:
    """Try a query under one unit, relation and δ."""
    table = world.table(unit, relation)

    def make(*, silent: bool) -> Query:
        bound = bind(text, tables={"t": table})
        noise: Noise | None = "gaussian" if delta and not bound.top else None
        made = plan(bound, epsilon=Fraction(1), delta=delta, salt="salt", dialect=DUCKDB, noise=noise)
        return Query(world, made, Fraction(1), delta)

    name = f"{text} {_whose(unit)} {relation.value} δ={float(delta):g}"
    # groups that nobody declared are shown where there are many in them
    crowd = tuple((row,) for row in world.shown(used.split()) * 150) if "GROUP BY w" in text else ()
    begin = tuple(
        (crowd, *((each[:1] if unit == ROW else each * 3) for each in pair)) for _, *pair in world.corners(used.split())
    )
    rows = 1 if unit == ROW else 6
    return Subject(name, relation, world.only(used.split()), rows, make, by_cell=True, begin=begin)  # type: ignore[arg-type]


def _whose(unit: Whose) -> str:
    return "row" if unit.column is None else f"unit({unit.groups}, {unit.rows})"
