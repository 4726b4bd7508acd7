"""Queries over rows with two owners: what is accepted, and what one owner can change; on all small datasets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.fixtures.insert_rows import insert_rows
from tests.fixtures.repeated_sql import fetch

from hubbub.core.events import Composed, LaplaceEvent, SelectionEvent
from hubbub.core.schema import Bounds, Column, Kind, OwnerPath, PrivacyUnit, Reference, Table
from hubbub.core.unit import Relation
from hubbub.errors import HubbubError
from hubbub.sql.auto_bounds import ChosenBound
from hubbub.sql.bind import bind, bind_releases
from hubbub.sql.finish import exact_results
from hubbub.sql.plan import Plan, plan, settle
from hubbub.sql.query import Query
from hubbub.sql.relations import OWNERS, Join, PerUnit, Union
from hubbub.sql.render import relation as render
from hubbub.sql.several_owners import limits

PATIENT, DOCTOR = PrivacyUnit("patient", 8, 8, "patient", auto=True), PrivacyUnit("doctor", 8, 8, "doctor", auto=True)
VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("doctor", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("n", "s")),
        Column("cost", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(3))),
    ),
    PATIENT,
    others=(DOCTOR,),
)
DOCTORS = Table(
    "doctors",
    (Column("doctor", Kind.INTEGER), Column("kind", Kind.TEXT, values=("gp", "other"))),
    PrivacyUnit("doctor", 1, 2, "doctor"),
)
REGIONS = Table("regions", (Column("region", Kind.TEXT), Column("area", Kind.TEXT, values=("x", "y"))), None, size=2)
TABLES = {table.name: table for table in (VISITS, DOCTORS, REGIONS)}

ACCEPTED = {
    "count": "SELECT count(*) FROM visits",
    "filter": "SELECT count(*) FROM visits WHERE cost > 1",
    "sum": "SELECT sum(cost) FROM visits",
    "average": "SELECT avg(cost), avg(cost - 2), avg(cost) FILTER (WHERE cost > 1) FROM visits",
    "groups": "SELECT region, count(*), sum(cost) FROM visits GROUP BY region",
    "subquery": "SELECT count(*) FROM (SELECT doctor, cost + 1 AS c FROM visits WHERE region = 'n') WHERE c > 1",
    "private join": "SELECT kind, count(*) FROM visits v JOIN doctors d ON v.doctor = d.doctor GROUP BY kind",
    "private join, turned": "SELECT count(*) FROM doctors d JOIN visits v ON d.doctor = v.doctor WHERE d.kind = 'gp'",
    "join by name": "SELECT count(*) FROM visits JOIN doctors USING (doctor)",
    "public join": "SELECT area, count(*) FROM visits v JOIN regions r ON v.region = r.region GROUP BY area",
}

#: Visits (patient, doctor, region, cost) and doctors (doctor, kind).
World = tuple[tuple[tuple[int | None, int | None, str, int], ...], tuple[tuple[int, str], ...]]


def planned(text: str, tables: Mapping[str, Table] = TABLES) -> Plan:
    return plan(bound(text, tables), epsilon=Fraction(1), delta=Fraction(0), salt="s")


def bound(text: str, tables: Mapping[str, Table] = TABLES) -> Query:
    query = bind_releases(text, tables=tables)
    assert isinstance(query, Query)
    return query


def worlds() -> list[World]:
    """Some sets of visits of two patients and two doctors, with duplicates and NULL owners, and two doctors."""
    visits = [
        (1, 1, "n", 2),
        (1, 2, "s", 3),
        (2, 1, "n", 1),
        (2, 2, "n", 3),
        (1, 1, "n", 2),
        (None, 2, "s", 1),
        (2, None, "n", 2),
    ]
    doctors = ((1, "gp"), (2, "other"), (2, "gp"))
    kept = [tuple(v for v, k in zip(visits, which, strict=True) if k) for which in product((0, 1), repeat=7)]
    return [(chosen, doctors) for chosen in kept[7::31]]


def without(world: World, patient: int = 0, doctor: int = 0) -> World:
    visits, doctors = world
    return (
        tuple(v for v in visits if v[0] != patient and v[1] != doctor),
        tuple(d for d in doctors if d[0] != doctor),
    )


class Engine:
    """Runs statements on small datasets."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(
            "CREATE TABLE visits (patient BIGINT, doctor BIGINT, region VARCHAR, cost BIGINT); "
            "CREATE TABLE doctors (doctor BIGINT, kind VARCHAR); CREATE TABLE regions (region VARCHAR, area VARCHAR); "
            "INSERT INTO regions VALUES ('n', 'x'), ('s', 'y')"
        )

    def load(self, world: World) -> None:
        self.connection.execute("DELETE FROM visits; DELETE FROM doctors")
        for name, rows in zip(("visits", "doctors"), world, strict=True):
            insert_rows(self.connection, name, rows)

    def ask(self, sql: str) -> Mapping[str, Any]:
        return fetch(self.connection, sql)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


def relation_rows(engine: Engine, plan: Plan) -> list[tuple[Any, ...]]:
    table = engine.ask(render(plan.query.relation))
    owners = [table[name].tolist() for name in OWNERS]
    others = [np.ma.asarray(values).tolist() for name, values in table.items() if name not in OWNERS]
    return sorted(zip(*owners, *others, strict=True), key=repr)


@pytest.mark.parametrize("name", ACCEPTED)
def test_taking_an_owner_away_takes_its_rows_away_and_changes_no_other(engine: Engine, name: str) -> None:
    query = planned(ACCEPTED[name])
    for world in worlds():
        engine.load(world)
        rows = relation_rows(engine, query)
        assert all(None not in row[:2] for row in rows)
        for place, owner in ((0, 1), (0, 2), (1, 1), (1, 2)):
            engine.load(without(world, **{("patient", "doctor")[place]: owner}))
            assert relation_rows(engine, query) == [row for row in rows if row[place] != owner]


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_a_join_along_keys_compares_the_owner_whom_the_key_is_of(side: str) -> None:
    """Both owners are of one entity, so the entity alone does not tell whom a joined account belongs to."""
    columns = [Column(name, Kind.INTEGER) for name in ("sender", "receiver", "person", "iban")]
    owners = [PrivacyUnit(name, 8, 8, "person", auto=True) for name in ("sender", "receiver")]
    path = OwnerPath((Reference(("iban",), "accounts", ("iban",), (Kind.INTEGER,)),), "person", Kind.INTEGER)
    tables = {
        "sent": Table("sent", tuple(columns[:2]), owners[0], others=(owners[1],)),
        "accounts": Table("accounts", tuple(columns[2:]), PrivacyUnit("person", 1, 2, "person"), unique=("iban",)),
        "notes": Table("notes", (columns[3],), PrivacyUnit("accounts.person", 1, 2, "person", path=path)),
    }
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE sent AS FROM (VALUES (1, 2), (2, 1), (3, 1), (1, 1)) AS t (sender, receiver); "
        "CREATE TABLE accounts AS FROM (VALUES (1, 10), (1, 11), (2, 20), (3, 30)) AS t (person, iban); "
        "CREATE TABLE notes AS FROM (VALUES (10), (11), (20), (20)) AS t (iban)"
    )
    text = f"SELECT count(*) FROM sent s JOIN accounts a ON s.{side} = a.person JOIN notes n ON n.iban = a.iban"
    rows = connection.execute(render(planned(text, tables).query.relation)).fetchall()
    assert [(len(rows),)] == connection.execute(text).fetchall()


def at_bound(plan: Plan, bound: int) -> Plan:
    return settle(plan, [ChosenBound(bound, 0.0, float("inf"), 1.0, 1.0, "owners") for _ in plan.levels])


def sums(engine: Engine, plan: Plan) -> list[list[int]]:
    (statement,) = plan.statements
    measures, _ = exact_results(plan, {"shared": engine.ask(statement.sql)})
    return [each.tolist() for each in measures]


@pytest.mark.parametrize("name", ["groups", "private join"])
def test_one_owner_moves_each_cell_by_at_most_the_bound(engine: Engine, name: str) -> None:
    attained, query = 0, at_bound(planned(ACCEPTED[name]), 2)
    for world in worlds():
        engine.load(world)
        here = np.array(sums(engine, query))
        for place, owner in ((0, 1), (1, 1), (1, 2)):
            engine.load(without(world, **{("patient", "doctor")[place]: owner}))
            moved = here - np.array(sums(engine, query))
            assert moved.min() >= 0
            attained = max(attained, moved.max())
    assert attained == 2


def test_a_large_bound_gives_what_plain_sql_gives(engine: Engine) -> None:
    world = worlds()[-1]
    engine.load(world)
    query = at_bound(planned(ACCEPTED["groups"]), 24)
    present = [visit for visit in world[0] if None not in visit[:2]]
    expected = [[sum(1 for v in present if v[2] == key), sum(v[3] for v in present if v[2] == key)] for key in "ns"]
    counts, costs = sums(engine, query)
    assert [list(pair) for pair in zip(counts, costs, strict=True)] == expected


def test_noise_covers_all_cells_at_the_bound() -> None:
    query = planned(ACCEPTED["groups"])
    assert [each.sensitivity.l1 for each in query.measures] == [2, 2]
    assert "grouping set 0: 2 cells; a unit is in at most 2, with 1 rows in each" in query.derivation
    assert [each.sensitivity.l1 for each in at_bound(query, 4).measures] == [8, 8]
    assert isinstance(query.event, Composed)
    loss = Fraction(0)
    for part, count in query.event.parts:
        if isinstance(part, SelectionEvent):
            loss += 2 * part.rate * part.sensitivity * count
        else:
            assert isinstance(part, LaplaceEvent)
            loss += part.sensitivity / part.scale * count
    assert Fraction(99, 100) < loss <= 1


REFUSED = {
    "SELECT count(DISTINCT patient) FROM visits": "HB763",
    "SELECT median(cost) FROM visits": "HB763",
    "SELECT sum(cost - 1) FROM visits": "HB763",
    "SELECT region, count(*) FROM visits GROUP BY ROLLUP (region)": "HB763",
    "SELECT region FROM visits GROUP BY region ORDER BY count(*) DESC LIMIT 1": "HB763",
    "SELECT count(*) FROM (SELECT patient, count(*) AS n FROM visits GROUP BY patient)": "HB761",
    "SELECT count(*) FROM (SELECT DISTINCT patient FROM visits)": "HB761",
    "SELECT count(*) FROM (SELECT region FROM visits UNION ALL SELECT region FROM visits)": "HB761",
    "SELECT count(*) FROM visits a JOIN visits b ON a.doctor = b.doctor": "HB762",
    "SELECT count(*) FROM visits v LEFT JOIN doctors d ON v.doctor = d.doctor": "HB762",
    "SELECT count(*) FROM visits v JOIN doctors d ON v.patient = d.doctor": "HB762",
    "SELECT count(*) FROM doctors d LEFT JOIN visits v ON d.doctor = v.doctor": "HB513",
    "SELECT count(*) FROM doctors WHERE doctor IN (SELECT doctor FROM visits)": "HB514",
    "SELECT count(*) FROM visits WHERE doctor IN (SELECT doctor FROM doctors)": "HB514",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_proof_is_refused_by_name(text: str) -> None:
    with pytest.raises(HubbubError) as refused:
        planned(text)
    assert refused.value.code == REFUSED[text]


@pytest.mark.parametrize("text", ["SELECT w FROM t GROUP BY w", "SELECT w, count(*) FROM t GROUP BY w"])
def test_undeclared_groups_are_refused_for_their_reason_at_any_epsilon(text: str) -> None:
    """They were refused as too noisy, with the advice to increase ε."""
    table = replace(VISITS, name="t", columns=(*VISITS.columns, Column("w", Kind.TEXT)))
    with pytest.raises(HubbubError) as refused:
        plan(bound(text, {"t": table}), epsilon=Fraction(1000), delta=Fraction(1, 10**6), salt="s")
    assert refused.value.code == "HB763"


def test_relations_that_binding_does_not_make_are_refused_as_well() -> None:
    query = bound(ACCEPTED["private join"])
    joined = query.relation
    assert isinstance(joined, Join)
    wrong = (
        replace(joined, kind="left"),
        replace(joined, unit=False),
        replace(joined, right=joined.left),
        PerUnit(joined, (), ()),
        Union((joined, joined), ()),
    )
    for relation in wrong:
        with pytest.raises(HubbubError) as refused:
            limits(replace(query, relation=relation), None, None)
        assert refused.value.code == "HB761"


def test_bounds_of_a_query_are_refused() -> None:
    query = bound(ACCEPTED["count"])
    with pytest.raises(HubbubError, match="finds how much"):
        plan(query, epsilon=Fraction(1), delta=Fraction(0), salt="s", rows=1)


def test_a_join_in_which_one_row_matches_too_many_is_refused() -> None:
    many: Sequence[Table] = (VISITS, replace(DOCTORS, unit=PrivacyUnit("doctor", 100, 100, "doctor")))
    with pytest.raises(HubbubError) as refused:
        planned(ACCEPTED["private join"], {table.name: table for table in many})
    assert refused.value.code == "HB762"


def test_other_analyses_refuse_rows_with_two_owners() -> None:
    with pytest.raises(HubbubError, match="protects only one") as refused:
        bind(ACCEPTED["count"], tables=TABLES)
    assert refused.value.code == "HB765"


def test_a_replaced_owner_costs_the_same_noise_and_twice_the_scores() -> None:
    tables = {
        name: replace(table, relation=Relation.REPLACE) if table.unit else table for name, table in TABLES.items()
    }
    one, two = planned(ACCEPTED["count"]), planned(ACCEPTED["count"], tables)
    assert two.measures[0].sensitivity == one.measures[0].sensitivity
    assert two.levels[0].mechanism.sensitivity == 2 * one.levels[0].mechanism.sensitivity
