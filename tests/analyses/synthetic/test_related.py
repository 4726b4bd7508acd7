"""Related synthetic tables: what they cost, what one person moves, and what comes out."""

from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import pytest

from hubbub.accounting.cost import privacy_cost
from hubbub.analyses.base import Arrays, EngineRun, Setting
from hubbub.analyses.registry import prepare
from hubbub.analyses.synthetic.related import RelatedSynthesis, synthetic_tables
from hubbub.analyses.synthetic.related_tables import RelatedTables
from hubbub.analyses.tables.marginals import Marginal, counts
from hubbub.answers.release import Release
from hubbub.core.call import parse_call
from hubbub.core.events import Composed
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions

F = Fraction
ASKED: dict[str, Any] = {"table": "people", "columns": ["sex"], "child": "visits", "child_columns": ["kind", "paid"]}
QUICK: dict[str, Any] = {**ASKED, "pairs": 1, "child_pairs": 2, "rounds": 1}
#: Every third person has no visit, the others one to three; women come for 'a', men for 'b' or 'c'.
PEOPLE = "SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS sex FROM range(900) AS t(i)"
VISITS = """
    SELECT i AS who, CASE WHEN i % 2 = 0 THEN 'a' WHEN (i + j) % 4 = 1 THEN 'b' ELSE 'c' END AS kind, i % 5 = 0 AS paid
    FROM range(900) AS t(i), range(3) AS s(j) WHERE i % 3 > 0 AND j <= i % 3
"""


def setting(
    epsilon: str = "1", delta: str = "0", relation: Relation = Relation.ADD_REMOVE, unit: PrivacyUnit | None = None
) -> Setting:
    people = Table(
        "people",
        (Column("id", Kind.INTEGER), Column("sex", Kind.TEXT, values=("F", "M"))),
        PrivacyUnit("id", 1, 1, "person"),
        relation,
    )
    visits = Table(
        "visits",
        (
            Column("who", Kind.INTEGER),
            Column("kind", Kind.TEXT, values=("a", "b", "c")),
            Column("paid", Kind.BOOLEAN),
            Column("sex", Kind.BOOLEAN),
            Column("cost", Kind.INTEGER, Bounds(F(0), F(9))),
        ),
        unit or PrivacyUnit("who", 2, 2, "person"),
        relation,
    )
    other = Table("other", (Column("name", Kind.TEXT), Column("x", Kind.BOOLEAN)), PrivacyUnit(None), relation)
    tables = {"people": people, "visits": visits, "other": other}
    return Setting(tables, F(epsilon), F(delta), RenderOptions("salt"))


def released(bench: Any, prepared: RelatedSynthesis, people: str = PEOPLE, visits: str = VISITS) -> RelatedTables:
    published = prepared.run(bench({"people": people, "visits": visits}))
    rows = len(published.outputs[0].values)
    return RelatedTables.of(Release(published.outputs, [None] * rows, F(1), F(0), {}, None, model=published.model))


@pytest.mark.parametrize("relation", list(Relation))
def test_both_tables_cost_what_was_asked(relation: Relation) -> None:
    prepared = synthetic_tables(setting("1", relation=relation), **ASKED, pairs=2, child_pairs=3)
    assert isinstance(prepared.event, Composed)
    # columns and reports of people (sex, number) and of visits (kind, paid); two draws for each selected pair
    assert sum(count for _, count in prepared.event.parts) == (2 + 2 + 2 * 2) + (2 + 2 + 2 * 3)
    pure = privacy_cost(prepared.event).pure
    assert pure is not None
    assert F(999, 1000) <= pure <= 1
    assert prepared.delta == 0
    assert {each.name for each in prepared.private} == {"people", "visits"}
    gaussian = synthetic_tables(setting("1", "1/1000000", relation), **ASKED)
    assert gaussian.delta == F(1, 10**6)
    assert privacy_cost(gaussian.event).pure is None


#: A person: F or M, or none in the table of people; and visits.
Person = tuple[str | None, tuple[tuple[str | None, bool], ...]]
NOBODY: Person = (None, ())
PERSONS: tuple[Person, ...] = (
    NOBODY,
    ("F", ()),
    ("M", (("a", True),)),
    ("F", (("a", True),) * 6),
    ("M", (("a", True), ("b", True), ("c", False), ("b", False))),
    ("F", (("c", False), (None, True), ("c", False))),
    (None, (("a", True), ("b", False))),
)


def _load(connection: duckdb.DuckDBPyConnection, people: list[Person]) -> None:
    first = [f"({i}, '{sex}')" for i, (sex, _) in enumerate(people) if sex is not None]
    second = [
        f"({i}, {'NULL' if kind is None else repr(kind)}, {paid})"
        for i, (_, visits) in enumerate(people)
        for kind, paid in visits
    ]
    for name, columns, rows in (("people", "id, sex", first), ("visits", "who, kind, paid", second)):
        listed = ", ".join(rows) or f"({', '.join(['NULL'] * len(columns.split(', ')))})"
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM (VALUES {listed}) AS v({columns})")
    connection.execute("ALTER TABLE people ALTER sex TYPE VARCHAR")
    connection.execute("ALTER TABLE visits ALTER kind TYPE VARCHAR")
    connection.execute("ALTER TABLE visits ALTER paid TYPE BOOLEAN")


@pytest.mark.parametrize("relation", list(Relation))
def test_one_person_with_all_rows_moves_counts_by_no_more_than_stated(relation: Relation) -> None:
    """All pairs of seven persons among others, one more or in the place of another: every marginal of both parts.

    The bound of two rows of a person is reached; a person's rows that are not cut move a count by up to six.
    """
    prepared = synthetic_tables(setting("1", relation=relation), **ASKED, child_rows=2)
    marginals: list[Marginal] = []
    for learner in (prepared.people, prepared.rows):
        marginals += [*learner.noises.ones, *learner.noises.twos]
    with duckdb.connect() as connection:
        others: list[Person] = [("F", (("a", True), ("b", False))), ("M", ())]

        def seen(person: Person) -> list[Any]:
            _load(connection, [*others, person])
            run = EngineRun(
                lambda sql: Secret(cast(Arrays, connection.execute(sql).fetchnumpy())), system(), lambda _, __: None
            )
            return counts(run, marginals).through(lambda found: [each.copy() for each in found])

        all_counts = [seen(person) for person in PERSONS]
    pairs = (
        [(0, i) for i in range(1, len(PERSONS))]
        if relation is Relation.ADD_REMOVE
        else [(i, j) for i in range(len(PERSONS)) for j in range(i)]
    )
    most = [0] * len(marginals)
    for one, other in pairs:
        for place, (left, right) in enumerate(zip(all_counts[one], all_counts[other], strict=True)):
            moved = int(np.abs(left - right).sum())
            assert moved <= marginals[place].sensitivity.l1, marginals[place].names
            assert int(((left - right) ** 2).sum()) <= marginals[place].sensitivity.l2_squared
            most[place] = max(most[place], moved)
    people = len(prepared.people.noises.ones) + len(prepared.people.noises.twos)
    twice = 1 if relation is Relation.ADD_REMOVE else 2
    assert all(1 <= each <= twice for each in most[:people])
    assert all(2 <= each <= 2 * twice for each in most[people:])


def test_tables_fit_together_and_are_near_the_data(bench: Any) -> None:
    """At ε = 2000 degrees and links between tables are nearly those of the data: noise of less than a row each."""
    found = released(bench, synthetic_tables(setting("2000"), **ASKED, most=4, child_rows=4))
    tables = found.to_pandas()
    people, visits = tables["people"], tables["visits"]
    assert list(people.columns) == ["id", "sex"]
    assert list(visits.columns) == ["who", "kind", "paid"]
    assert people["id"].is_unique
    assert set(visits["who"]) <= set(people["id"])
    assert len(people) == pytest.approx(900, abs=5)
    degrees = visits.groupby("who").size().reindex(people["id"], fill_value=0).value_counts()
    assert {k: degrees.get(k, 0) for k in range(5)} == pytest.approx({0: 300, 1: 0, 2: 300, 3: 300, 4: 0}, abs=8)
    joined = visits.merge(people, left_on="who", right_on="id")
    # what follows from a person's column holds in the rows
    assert (joined["kind"] == "a").eq(joined["sex"] == "F").mean() > 0.98
    assert "RelatedTables(" in repr(found)


def test_a_person_without_rows_is_in_the_release_once(bench: Any) -> None:
    found = released(bench, synthetic_tables(setting("2000"), **QUICK), visits=VISITS + " AND FALSE")
    whole = found.release.to_pandas()
    assert list(whole.columns) == ["id", "sex", "row", "kind", "paid"]
    tables = found.to_pandas()
    none = whole[whole["row"].isna()]
    assert len(none) > 880
    assert none["kind"].isna().all()
    assert len(tables["visits"]) == len(whole) - len(none)


def test_files_and_a_report(bench: Any, tmp_path: Path) -> None:
    found = released(bench, synthetic_tables(setting("50"), **QUICK, size=40))
    import pandas as pd

    people, visits = found.write(tmp_path / "made")
    assert (people.name, visits.name) == ("people.csv", "visits.csv")
    assert len(pd.read_csv(people)) == 40
    assert set(pd.read_csv(visits)["who"]) <= set(pd.read_csv(people)["id"])
    with pytest.raises(ParameterError, match="HB172"):
        found.write(tmp_path, "xlsx")
    report = found.report()
    assert [line.split()[0] for line in report.splitlines()] == [
        "people",
        "sex",
        "visits_rows",
        "visits",
        "kind",
        "paid",
    ]
    assert set(found.utility) == {"people", "visits"}


def test_a_release_has_a_limited_size(bench: Any) -> None:
    limited = Setting(setting("50").tables, F(50), F(0), RenderOptions("salt"), max_cells=500)
    found = released(bench, synthetic_tables(limited, **QUICK))
    assert 0 < len(found.release.to_pandas()) <= 100


def test_it_can_be_called_by_name() -> None:
    text = (
        "CALL synthetic_tables(table => 'people', columns => ['sex'], child => 'visits',"
        " child_columns => [{'column': 'cost', 'bins': 3}], most => 3)"
    )
    prepared = prepare(parse_call(text), setting())
    assert isinstance(prepared, RelatedSynthesis)
    assert [each.axis.size for each in prepared.people.columns] == [2, 4]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"child": "people"}, "not tables of the same people"),
        ({"child": "other"}, "names its person"),
        ({"table": "visits", "child": "people"}, "may have several rows"),
        ({"child_columns": ["kind", "sex"]}, "in both tables"),
        ({"columns": ["id"]}, "privacy ID"),
        ({"child_columns": []}, "empty"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], says: str) -> None:
    with pytest.raises(QueryError, match=says):
        synthetic_tables(setting(), **(ASKED | how))


@pytest.mark.parametrize("how", [{"child_rows": 5}, {"most": 5}, {"size": 0}, {"pairs": 0}, {"rounds": 11}])
def test_numbers_out_of_range_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        synthetic_tables(setting(), **ASKED, **how)


def test_tighter_bounds_of_the_analyst_limit_the_rows_of_a_person() -> None:
    known = Setting(setting().tables, F(1), F(0), RenderOptions("salt"), groups=1, rows=2)
    prepared = synthetic_tables(known, **ASKED)
    assert [each.axis.size for each in prepared.people.columns] == [2, 3]
    with pytest.raises(ParameterError):
        synthetic_tables(known, **ASKED, child_rows=3)


def test_other_people_are_not_joined() -> None:
    with pytest.raises(QueryError, match="not tables of the same people"):
        synthetic_tables(setting(unit=PrivacyUnit("who", 2, 2, "nurse")), **ASKED)
