"""Analyses of tables whose contribution bounds are found: they need rows=, and only a profile does without."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.analyses.base import PreparedAnalysis, Setting
from hubbub.analyses.functions.function import FunctionRequest
from hubbub.analyses.functions.sample_and_aggregate import AggregateRequest
from hubbub.analyses.registry import prepare
from hubbub.config import load
from hubbub.core.call import parse_call
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.curator.session import open_session
from hubbub.errors import ParameterError, QueryError
from hubbub.sql.bounding import ContributionBounds, RenderOptions

#: Tests assume independent rows: these use one row of each unit, whatever is declared.
ONE_ROW = frozenset({"anova", "chi_square", "difference_of_means", "survival"})
AUTO = PrivacyUnit("id", 50, 50, "person", auto=True)


@pytest.fixture
def known(town: Path) -> dict[str, Table]:
    """Give the town's tables with units whose bounds are found."""
    tables = {name: each.table for name, each in load(town / "hubbub.yaml").datasets.items()}
    return {n: replace(t, columns=(*t.columns, Column("id", Kind.INTEGER)), unit=AUTO) for n, t in tables.items()}


def setting(tables: dict[str, Table], groups: int | None = None, rows: int | None = None) -> Setting:
    return Setting(tables, Fraction(1), Fraction(1, 10**6), RenderOptions("s"), groups, rows)


def prepared(
    text: str, tables: dict[str, Table], groups: int | None = None, rows: int | None = None
) -> PreparedAnalysis:
    return prepare(parse_call(text), setting(tables, groups, rows))


def test_an_analysis_needs_bounds_of_its_own(example: tuple[str, str], known: dict[str, Table]) -> None:
    name, text = example
    if name == "profile":
        assert prepared(text, known).tables
        return
    if name in ONE_ROW:
        assert prepared(text, known).limits == ContributionBounds(1, 1)
        return
    with pytest.raises(QueryError, match="HB576") as caught:
        prepared(text, known)
    assert "rows=" in str(caught.value)


def test_an_analysis_with_bounds_is_planned_for_them(example: tuple[str, str], known: dict[str, Table]) -> None:
    name, text = example
    if name == "star_count":
        with pytest.raises(QueryError, match="HB596"):  # node privacy is about rows, whatever their bounds are
            prepared(text, known, rows=2)
        return
    if name == "synthetic_tables":
        with pytest.raises(
            QueryError, match="HB592"
        ):  # its table of people has one row for each, whatever is requested
            prepared(text, known, rows=2)
        return
    given = prepared(text, known, rows=2) if name != "profile" else prepared(text, known)
    declared = {n: replace(t, unit=replace(AUTO, groups=1, rows=2, auto=False)) for n, t in known.items()}
    if name != "profile":
        assert given.event == prepared(text, declared).event
        assert given.limits is None or not given.limits.auto


@pytest.mark.parametrize("order", [("groups", 3), ("rows", 51), ("rows", 0)])
def test_bounds_beyond_the_maximum_or_without_rows_are_refused(order: tuple[str, int], known: dict[str, Table]) -> None:
    with pytest.raises((QueryError, ParameterError), match=r"HB5[57]6"):
        prepared("CALL moments(table => 'visits', columns => ['x'])", known, **dict([order]))


def test_functions_of_users_need_bounds(known: dict[str, Table]) -> None:
    own = FunctionRequest.of(lambda _: 0.0, "visits", ["x"], sensitivity=1, bounds=(0, 1))
    with pytest.raises(QueryError, match="HB576"):
        own.prepare(setting(known))
    blocks = AggregateRequest.of("def f(rows): return 0.0", "visits", ["x"], bounds=[0, 1])
    with pytest.raises(QueryError, match="HB576"):
        blocks.prepare(setting(known), None)


def test_a_condition_that_reads_another_table_needs_its_bounds(known: dict[str, Table]) -> None:
    tables = known | {"people": replace(known["people"], unit=replace(AUTO, groups=1, rows=1, auto=False))}
    text = "CALL tabulate(table => 'people', columns => ['sick'], where => 'id IN (SELECT id FROM visits WHERE x > 0)')"
    with pytest.raises(QueryError, match="HB576"):
        prepared(text, tables)
    assert prepared(text, tables, rows=1).limits == ContributionBounds(1, 1)
    assert prepared(text.replace(", where", ", count => 'rows', where").split(", where")[0] + ")", tables).limits


def test_a_profile_and_sql_work_on_such_a_table(town: Path) -> None:
    path = town / "hubbub.yaml"
    path.write_text(path.read_text().replace("groups: 4, rows: 5", "rows: auto, max_rows: 30"))
    with open_session(path, analyst="ana") as session:
        profile = session.query("CALL profile(table => 'visits')", epsilon="1")
        assert sum(1 for _ in profile.receipt["event"]["parts"]) > 1
        assert session.query("SELECT COUNT(*) AS n FROM visits", epsilon="1").rows
        with pytest.raises(QueryError, match="HB576"):
            session.query("CALL moments(table => 'visits', columns => ['x'])", epsilon="1")
        release = session.query("CALL moments(table => 'visits', columns => ['x'])", epsilon="1", rows=3, groups=1)
        assert release.receipt["bounds"] == {"groups": 1, "rows": 3}
        for options in ({"groups": 2}, {"rows": 31}, {"rows": 2, "groups": 31}):
            with pytest.raises(ParameterError, match="HB556"):
                session.query("SELECT COUNT(*) AS n FROM visits", epsilon="1", **options)  # type: ignore[arg-type]
        fixed = session.query("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", epsilon="1", rows=2, groups=3)
        assert fixed.receipt["bounds"] == {"groups": 3, "rows": 2}
        assert {draw["kind"] for draw in fixed.receipt["draws"]} == {"sum"}
