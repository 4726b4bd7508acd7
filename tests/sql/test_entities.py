"""Private tables can be matched only with a declared common entity; checked on all small datasets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import pytest

from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.bind import bind
from hubbub.sql.plan import plan

PATIENTS = Table("patients", (Column("id", Kind.INTEGER), Column("x", Kind.TEXT, values=("u", "v"))), PrivacyUnit("id"))
STAFF = Table("staff", (Column("id", Kind.INTEGER), Column("ward", Kind.TEXT, values=("a", "b"))), PrivacyUnit("id"))

#: All ways in which a query can match the units of two tables or combine their rows.
MATCHES = {
    "join": "SELECT coalesce(s.ward, 'none') AS g, count(*) FROM patients p JOIN staff s ON p.id = s.id GROUP BY g",
    "left join": (
        "SELECT coalesce(s.ward, 'none') AS g, count(*) FROM patients p LEFT JOIN staff s ON p.id = s.id GROUP BY g"
    ),
    "left join on a condition": (
        "SELECT coalesce(s.ward, 'none') AS g, count(*) FROM patients p LEFT JOIN staff s "
        "ON p.id = s.id AND s.ward <> 'b' GROUP BY g"
    ),
    "right join": (
        "SELECT coalesce(p.x, 'none') AS g, count(*) FROM patients p RIGHT JOIN staff s ON p.id = s.id GROUP BY g"
    ),
    "using": "SELECT x AS g, count(*) FROM patients JOIN staff USING (id) GROUP BY g",
    "in": "SELECT x AS g, count(*) FROM patients WHERE id IN (SELECT id FROM staff) GROUP BY g",
    "union": (
        "SELECT g, count(*) FROM (SELECT id, x AS g FROM patients UNION ALL SELECT id, ward FROM staff) GROUP BY g"
    ),
    "nested": (
        "SELECT x AS g, count(*) FROM patients p JOIN (SELECT id, count(*) AS n FROM staff GROUP BY id) s "
        "ON p.id = s.id GROUP BY g"
    ),
}

#: One person's rows in each table: none, or one of either value.
NOBODY = (None, None)
Person = tuple[str | None, str | None]
World = tuple[Person, Person]
PEOPLE: tuple[Person, ...] = tuple(product((None, "u", "v"), (None, "a", "b")))


def tables(entity: str = "", **changes: Any) -> dict[str, Table]:
    declared = {table.name: replace(table, unit=PrivacyUnit("id", entity=entity)) for table in (PATIENTS, STAFF)}
    return {**declared, "staff": replace(declared["staff"], **changes)}


def answers(text: str) -> Mapping[World, Mapping[str, int]]:
    """Return the exact results of a query on every dataset of two people, planned for tables of one entity."""
    planned = plan(bind(text, tables=tables("person")), epsilon=Fraction(1), delta=Fraction(0), salt="s")
    (statement,) = planned.statements
    results: dict[World, Mapping[str, int]] = {}
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE patients (id BIGINT, x VARCHAR); CREATE TABLE staff (id BIGINT, ward VARCHAR)")
        for world in product(PEOPLE, PEOPLE):
            engine.execute("DELETE FROM patients; DELETE FROM staff")
            for number, (x, ward) in enumerate(world):
                for name, value in (("patients", x), ("staff", ward)):
                    if value is not None:
                        engine.execute(f"INSERT INTO {name} VALUES (?, ?)", [number, value])
            results[world] = {str(row[:-1]): int(row[-1]) for row in engine.execute(statement.sql).fetchall()}
    return results


def distance(a: Mapping[str, int], b: Mapping[str, int]) -> int:
    return sum(abs(a.get(key, 0) - b.get(key, 0)) for key in {*a, *b})


def max_distance(text: str, neighbors: Sequence[tuple[World, World]]) -> int:
    results = answers(text)
    return max(distance(results[a], results[b]) for a, b in neighbors)


#: Neighbors: one person of the entity leaves both tables.
OF_ONE = [((one, other), (NOBODY, other)) for one in PEOPLE for other in PEOPLE]
#: Neighbors if a patient and a member of staff with equal numbers are two people: one of them leaves one table.
OF_TWO = [((one, other), ((one[0], None), other)) for one in PEOPLE for other in PEOPLE] + [
    ((one, other), ((None, one[1]), other)) for one in PEOPLE for other in PEOPLE
]


@pytest.mark.parametrize("name", MATCHES)
def test_every_accepted_match_moves_by_no_more_than_one_unit_has(name: str) -> None:
    """Each person has one row per table and group, so a count changes by at most 1 between neighbors."""
    assert max_distance(MATCHES[name], OF_ONE) == 1


def test_two_people_of_one_number_move_a_join_by_more_than_one_has() -> None:
    """If two people are treated as one entity, a member of staff changes two counts of patients by 1 each."""
    assert max_distance(MATCHES["left join"], OF_TWO) == 2


@pytest.mark.parametrize("name", MATCHES)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"": ""}, "declared none"),
        ({"unit": PrivacyUnit("id", entity="employee")}, "one entity"),
        ({"unit": PrivacyUnit("id")}, "staff declared none"),
        ({"relation": Relation.REPLACE}, "one relation"),
        ({"columns": (Column("id", Kind.TEXT), STAFF.columns[1])}, "one column type"),
    ],
)
def test_tables_that_share_a_name_alone_do_not_meet(name: str, changes: dict[str, object], says: str) -> None:
    declared = tables() if "" in changes else tables("person", **changes)
    with pytest.raises(QueryError) as refused:
        bind(MATCHES[name], tables=declared)
    assert refused.value.code in ("HB513", "HB514", "HB519")
    assert says in refused.value.remedy


def test_the_refusal_says_what_to_declare() -> None:
    with pytest.raises(QueryError) as refused:
        bind(MATCHES["join"], tables=tables())
    assert "`unit: {column: …, entity: person}`" in refused.value.remedy
    assert "patients and staff declared none" in refused.value.remedy


def test_a_table_without_an_entity_meets_itself_and_public_tables() -> None:
    areas = Table("areas", (Column("ward", Kind.TEXT, values=("a", "b")), Column("n", Kind.INTEGER)), None)
    for text in (
        "SELECT count(*) FROM patients a JOIN patients b ON a.id = b.id",
        "SELECT count(*) FROM patients WHERE id IN (SELECT id FROM patients WHERE x = 'u')",
        "SELECT count(*) FROM (SELECT id FROM patients UNION ALL SELECT id FROM patients)",
        "SELECT count(*) FROM staff JOIN areas USING (ward)",
    ):
        assert bind(text, tables={**tables(), "areas": areas}).aggregates


def test_a_table_does_not_meet_one_whose_entity_has_its_name() -> None:
    """A table without an entity has an owner of its own, whatever its name is."""
    with pytest.raises(QueryError):
        bind(MATCHES["join"], tables={**tables("patients"), "patients": PATIENTS})


def test_a_unit_without_an_entity_reads_in_replay_keys_as_it_always_did() -> None:
    assert repr(PrivacyUnit("person", 5, 5)) == "Unit(column='person', groups=5, rows=5, entity='person')"
    assert repr(PrivacyUnit(None)) == "Unit(column=None, groups=1, rows=1, entity='')"
    assert repr(PrivacyUnit("id", entity="patient")) == "Unit(column='id', groups=1, rows=1, entity='patient')"
