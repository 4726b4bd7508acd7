"""Replay a plan on simulated neighbors: honest plans pass, and broken ones are detected."""

import os
import random
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from tests.fixtures import owned_tables

from hubbub.audit.replan import plan_again
from hubbub.audit.replay import ReplayResult, replay
from hubbub.audit.simulated_rows import SimulatedData
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.question import Question
from hubbub.errors import AuditError, QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import plan as plans
from hubbub.sql.plan import Plan

COLUMNS = (
    Column("patient", Kind.INTEGER),
    Column("region", Kind.TEXT, values=("North", "South", "East")),
    Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(110))),
    Column("x", Kind.REAL, bounds=Bounds(Fraction(-1), Fraction(1))),
    Column("day", Kind.DATE, bounds=Bounds(Fraction(18000), Fraction(18100))),
    Column("word", Kind.TEXT),
    Column("flag", Kind.BOOLEAN),
)
ZONES = (Column("area", Kind.TEXT, values=("North", "South")), Column("zone", Kind.TEXT, values=("a", "b")))
AREAS = Table("areas", ZONES, unit=None, unique=("area",))
TEXTS = (
    "SELECT region, COUNT(*) AS n, SUM(x) AS s, AVG(age) AS a FROM visits GROUP BY region",
    "SELECT COUNT(DISTINCT patient) AS n, COUNT(DISTINCT word) AS w FROM visits",
    "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "SELECT region, MEDIAN(age) AS m, MODE(region) AS r FROM visits GROUP BY region",
    "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
    "SELECT zone, COUNT(*) AS n FROM visits JOIN areas ON region = area GROUP BY zone",
    "CALL tabulate(table => 'visits', columns => ['region'])",
    "CALL moments(table => 'visits', columns => ['x'])",
)


def tables(unit: PrivacyUnit, relation: Relation) -> dict[str, Table]:
    return {"visits": Table("visits", COLUMNS, unit, relation), "areas": AREAS}


#: Datasets of 20, 8 and 3 units; the full scale also tries 1, none and 20 others.
WORLDS = 6 if os.environ.get("HUBBUB_CAMPAIGN") == "full" else 3


def replayed(text: str, known: dict[str, Table], spoil: Any = None) -> ReplayResult:
    made = plan_again(Question(text, epsilon=1, delta="1e-6"), known, salt="s", hashing="engine")
    made = made if spoil is None else replace(made, plan=spoil(made.plan))
    return replay(made, known, worlds=WORLDS, chance=random.Random(3))


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    "unit",
    [PrivacyUnit(None), PrivacyUnit("patient", groups=2, rows=2), PrivacyUnit("patient", 20, 20, auto=True)],
    ids=["row", "patient", "auto"],
)
@pytest.mark.parametrize("text", TEXTS)
def test_an_honest_plan_covers_simulated_neighbors_of_both_relations(
    text: str, unit: PrivacyUnit, relation: Relation
) -> None:
    if unit.column is None and "patient" in text:
        return  # a row has no owner to be counted
    if unit.auto and text.startswith("CALL"):
        with pytest.raises(QueryError, match="HB576"):
            replayed(text, tables(unit, relation))
        return
    found = replayed(text, tables(unit, relation))
    assert found.problems == []
    assert found.pairs[Relation.REPLACE] >= 5
    assert found.pairs[Relation.ADD_REMOVE] >= 5 or text.startswith("CALL")
    assert str(found.pairs[Relation.REPLACE]) in found.summary()


def test_a_plan_without_a_bound_on_rows_is_found() -> None:
    def spoil(made: Plan) -> Plan:
        texts = [replace(each, sql=each.sql.replace("<= 2", "<= 9000")) for each in made.statements]
        assert texts[0] != made.statements[0]
        return replace(made, statements=tuple(texts))

    known = tables(PrivacyUnit("patient", groups=2, rows=2), Relation.ADD_REMOVE)
    assert replayed("SELECT region, SUM(x) AS s FROM visits GROUP BY region", known, spoil).problems


AUTO = PrivacyUnit("patient", 20, 20, auto=True)


def _uncut(of: Any, *given: Any) -> Any:
    texts = (re.sub(r"(<= )\d+(\) AS r|$)", r"\g<1>9000\2", each.sql) for each in of(*given))
    return tuple(replace(each, sql=sql) for each, sql in zip(of(*given), texts, strict=True))


PLANTED: dict[str, tuple[str, str, Any]] = {
    "bound not applied": ("SELECT COUNT(*) AS n FROM visits", "statements_at", _uncut),
    "noise of the bound 1": (
        "SELECT SUM(x) AS s FROM visits",
        "at_bounds",
        lambda of, *given: of(*given[:-1], [1 for _ in given[-1]]),
    ),
    "loss of the bound 1": (
        "SELECT SUM(x) AS s FROM visits",
        "at_bounds",
        lambda of, *given: replace(
            of(*given),
            measures=tuple(
                replace(m, mechanism=replace(m.mechanism, scale=old.mechanism.scale))
                for m, old in zip(of(*given).measures, given[1].measures, strict=True)
            ),
        ),
    ),
    "half of a histogram's noise": (
        "SELECT COUNT(*) AS n FROM visits",
        "add_histograms",
        lambda of, *given: (
            of(*given)[0],
            tuple(replace(each, mechanism=_halved(each.mechanism)) for each in of(*given)[1]),
        ),
    ),
}


def _halved(mechanism: Laplace) -> Laplace:
    object.__setattr__(mechanism, "sensitivity", 0)  # one unit is said to change nothing
    return mechanism


@pytest.mark.parametrize("name", PLANTED)
def test_errors_in_bounds_that_are_found_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, function, around = PLANTED[name]
    known, of = tables(AUTO, Relation.ADD_REMOVE), getattr(plans, function)
    assert replayed(text, known).problems == []
    monkeypatch.setattr(plans, function, lambda *given: around(of, *given))
    assert replayed(text, known).problems != []


def test_a_plan_that_depends_on_the_order_of_rows_is_found() -> None:
    def spoil(made: Plan) -> Plan:
        (one,) = made.statements
        text = "SELECT 0 AS cell, CAST(coalesce(first(age), 0) AS BIGINT) AS m0 FROM visits"
        return replace(made, statements=(replace(one, sql=text),))

    known = tables(PrivacyUnit(None), Relation.ADD_REMOVE)
    found = replayed("SELECT COUNT(*) AS n FROM visits", known, spoil)
    assert found.problems == ["The row order changes the exact results."]


def test_an_analysis_that_does_not_cover_what_moved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known, shown = tables(PrivacyUnit("patient", groups=2, rows=2), Relation.ADD_REMOVE), SimulatedData.show

    def without_anybody(self: SimulatedData, *, removed: Any = (), replaced: Any = (), **_: Any) -> None:
        shown(self, removed=range(self.units) if removed or replaced else ())

    text = "CALL moments(table => 'visits', columns => ['x'])"
    assert replayed(text, known).problems == []
    monkeypatch.setattr(SimulatedData, "show", without_anybody)
    assert "its noise covers" in replayed(text, known).problems[0]


def test_a_user_defined_function_cannot_be_replayed() -> None:
    with pytest.raises(AuditError, match="HB634"):
        plan_again(Question("CALL release(code => 'ab')", epsilon=1), {}, salt="s", hashing="engine")


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("SELECT COUNT(*) AS n, SUM(x) AS s FROM items", "id"),
        ("SELECT SUM(x) AS s FROM people JOIN orders ON person = id JOIN items USING (part, number)", "house"),
    ],
)
def test_rows_that_have_their_owner_through_keys_are_simulated_with_it(text: str, unit: str) -> None:
    """Some rows have an owner, and a plan without a bound on its rows is noticed."""

    def spoil(made: Plan) -> Plan:
        return replace(made, statements=tuple(replace(s, sql=s.sql.replace("<= 5", "<= 99")) for s in made.statements))

    known = owned_tables.tables(unit)
    honest = replayed(text, known)
    assert honest.problems == []
    assert honest.pairs[Relation.ADD_REMOVE] > 0
    assert replayed(text, known, spoil).problems


def test_simulated_rows_have_a_nan_whatever_chance_brings() -> None:
    """Statements must expect NaN in every column of real numbers, so a replay must not depend on luck to try one."""
    table = Table("t", (Column("x", Kind.REAL), Column("u", Kind.INTEGER)), PrivacyUnit("u", rows=1))
    for seed in range(20):
        with SimulatedData([table], units=8, chance=random.Random(seed)) as data:
            rows = data.ask('SELECT count(*) AS n FROM "t" WHERE isnan(x)')
            assert rows.through(lambda found: int(found["n"][0])) >= 1
