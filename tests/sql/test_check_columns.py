"""A column that a plan reads and its relation lacks is found before the charge, whatever operator lacks it."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.fixtures.unit_tables import TABLES

from hubbub.core.schema import Kind
from hubbub.sql.bind import bind
from hubbub.sql.check_columns import MESSAGE, check_columns
from hubbub.sql.expressions import Col, released_value
from hubbub.sql.plan import plan
from hubbub.sql.query import Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow

MISSING = Col("missing_1", Kind.INTEGER)
JOINED = "SELECT count(*) FROM p JOIN v USING (id) WHERE age > n"
UNITED = "SELECT count(*) FROM (SELECT n FROM v UNION ALL SELECT age FROM p) t WHERE n > 1"
GROUPED = "SELECT count(*) FROM (SELECT id, code, max(n) AS m FROM v GROUP BY id, code) t WHERE m > 1"
WINDOWED = "SELECT count(*) FROM (SELECT lag(n) OVER (PARTITION BY id ORDER BY day) AS b FROM v) t WHERE b > 1"


def changed(rel: Rel, kind: type[Rel], change: Callable[..., Rel]) -> Rel:
    """Change the first operator of a kind."""
    if isinstance(rel, kind):
        return change(rel)
    match rel:
        case Join():
            return replace(rel, left=changed(rel.left, kind, change))
        case Union():
            return replace(rel, inputs=(changed(rel.inputs[0], kind, change), *rel.inputs[1:]))
        case Scan():
            raise TypeError(f"there is no {kind}")
        case _:
            return replace(rel, input=changed(rel.input, kind, change))


def in_aggregate(rel: PerUnit) -> PerUnit:
    (name, inner), *rest = rel.aggregates
    return replace(rel, aggregates=((name, replace(inner, argument=MISSING)), *rest))


def in_window(rel: UnitWindow) -> UnitWindow:
    (name, function), *rest = rel.functions
    return replace(rel, functions=((name, replace(function, partition=(MISSING,))), *rest))


#: Each kind of operator with what it reads in vain.
PLANTED: dict[str, tuple[str, type[Rel], Callable[..., Rel]]] = {
    "a scan of a column that its table lacks": (
        JOINED,
        Scan,
        lambda rel: replace(rel, sources=("x", *rel.sources[1:])),
    ),
    "a scan without a column that is read": (JOINED, Scan, lambda rel: replace(rel, columns=(), sources=())),
    "a filter": (JOINED, Filter, lambda rel: replace(rel, predicate=MISSING)),
    "a projection": (UNITED, Project, lambda rel: replace(rel, outputs=((rel.outputs[0][0], MISSING),))),
    "the left side of a join": (JOINED, Join, lambda rel: replace(rel, on=((MISSING, Col("n_2", Kind.INTEGER)),))),
    "the right side of a join": (JOINED, Join, lambda rel: replace(rel, on=((Col("age_2", Kind.INTEGER), MISSING),))),
    "the owner of a join": (JOINED, Join, lambda rel: replace(rel, place=1)),
    "a union": (UNITED, Union, lambda rel: replace(rel, columns=(*rel.columns, MISSING))),
    "an input of a union": (
        UNITED,
        Union,
        lambda rel: replace(rel, inputs=(Filter(rel.inputs[0], MISSING), *rel.inputs[1:])),
    ),
    "a key within a unit": (GROUPED, PerUnit, lambda rel: replace(rel, keys=((rel.keys[0][0], MISSING),))),
    "an aggregate within a unit": (GROUPED, PerUnit, in_aggregate),
    "a window": (WINDOWED, UnitWindow, in_window),
    "below a truncation": (
        JOINED,
        Filter,
        lambda rel: Filter(Truncate(replace(rel, predicate=MISSING), 3, "", "engine"), rel.predicate),
    ),
}


def planned(query: Query) -> None:
    plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s")


@pytest.mark.parametrize("name", PLANTED)
def test_a_missing_column_is_found_before_the_charge(name: str) -> None:
    text, kind, change = PLANTED[name]
    query = bind(text, tables=TABLES)
    planned(query)
    wrong = replace(query, relation=changed(query.relation, kind, change))
    with pytest.raises(AssertionError, match=MESSAGE):
        check_columns(wrong, wrong.relation)


@pytest.mark.parametrize(
    "change",
    [
        lambda query: replace(
            query, keys=(replace(query.keys[0], expr=replace(query.keys[0].expr, name="missing_1")),)
        ),
        lambda query: replace(query, aggregates=(replace(query.aggregates[0], arguments=(MISSING,)),)),
        lambda query: replace(query, aggregates=(replace(query.aggregates[0], where=MISSING),)),
    ],
    ids=["a key", "an argument", "a condition"],
)
def test_a_missing_column_of_the_query_itself_is_found_by_planning(change: Callable[[Query], Query]) -> None:
    query = bind("SELECT code, sum(n) FROM v GROUP BY code", tables=TABLES)
    planned(query)
    with pytest.raises(AssertionError, match=MESSAGE):
        planned(change(query))


def test_noisy_values_of_earlier_releases_are_no_columns() -> None:
    query = bind("SELECT count(*) FROM v", tables=TABLES)
    check_columns(query, Filter(query.relation, released_value(0, Kind.REAL)))
