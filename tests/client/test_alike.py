"""One suite over every kind of session: the same methods, the same answers, the same errors."""

import inspect
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Opener
from tests.server.conftest import lay_out

import hubbub
from hubbub.answers.budget import BudgetOverview
from hubbub.answers.estimate import Estimate
from hubbub.answers.methods_tables import TableMethods
from hubbub.answers.release import Release
from hubbub.client.async_session import AsyncSession
from hubbub.client.session import RemoteSession
from hubbub.core.schema import Table
from hubbub.curator.session import Session
from hubbub.errors import BudgetError, HubbubError, ParameterError, QueryError

COUNT = "SELECT COUNT(*) AS n FROM health"
MOMENTS = {"table": "health", "columns": ["spending"]}
PLANS = "SELECT coinsurance, COUNT(*) AS n, AVG(visits) AS visits FROM health GROUP BY coinsurance"


def test_the_sessions_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, inspect.Signature]:
        return {
            name: inspect.signature(each).replace(return_annotation=inspect.Signature.empty)
            for name, each in vars(kind).items()
            if callable(each) and not name.startswith("_")
        }

    # who holds the data may hand `release` a function beside a number; a server takes no code
    embedded = methods(Session)
    release = embedded.pop("release")
    # and publishes the profiles that it makes; from a server they are an analyst's own, as `TableMethods` has it
    assert embedded.pop("profile") == methods(TableMethods)["profile"]
    for kind in (RemoteSession, AsyncSession):
        served = methods(kind)
        assert list(served.pop("release").parameters) == list(release.parameters)[:2] == ["self", "number"]
        assert served == embedded


def test_what_may_be_asked_about_is_listed_and_described(session: Any) -> None:
    assert session.analyst == "ana"
    assert session.datasets() == ("health", "plans")
    table = session.describe("health")
    assert isinstance(table, Table)
    assert table.unit is not None
    assert (table.unit.column, table.unit.groups) == ("person", 5)
    column = table.column("spending")
    assert column is not None
    assert column.bounds is not None
    assert column.bounds.high == 5000
    assert column.step == Fraction(1, 100)
    plans = session.describe("plans").column("coinsurance")
    assert session.describe("plans").public
    assert plans.values == ("0", "100", "25", "50", "95")


@pytest.mark.parametrize("kind", ["embedded", "served", "async"])
def test_a_hidden_column_is_not_described(opener: Opener, tmp_path: Path, kind: str) -> None:
    path = lay_out(tmp_path)
    text = path.read_text().replace("{bounds: [0, 5000], step: 0.01}", "{hidden: true}")
    path.write_text(text.replace("{type: integer}\n      year", "{type: integer, hidden: true}\n      year"))
    table = opener(kind).describe("health")
    assert "spending" not in [column.name for column in table.columns]
    assert [column.name for column in table.columns if column.hidden] == ["person"]  # who is protected is told


def test_an_estimate_is_free_and_says_what_is_admitted(session: Any) -> None:
    found = session.estimate(PLANS, epsilon="0.1", groups=1)
    assert isinstance(found, Estimate)
    assert (found.epsilon, found.admitted, found.cells) == (Fraction(1, 10), True, 5)
    assert [each.name for each in found.expected] == ["n", "visits"]
    assert len(found.scaling) == 3
    assert not session.estimate(COUNT, epsilon=5.5).admitted
    assert session.releases() == ()


def test_an_answer_has_types_intervals_a_price_and_a_receipt(session: Any) -> None:
    release = session.query(PLANS, epsilon=Decimal("0.50"), groups=1)
    assert isinstance(release, Release)
    assert release.columns == ("coinsurance", "n", "visits")
    assert [row[0] for row in release.rows] == [0, 25, 50, 95, 100]
    assert [type(cell) for cell in release.rows[0]] == [int, int, float]
    assert (release.epsilon, release.delta, release.replayed) == (Fraction(1, 2), Fraction(0), False)
    assert release.receipt["query"].startswith("SELECT coinsurance")
    assert release.left is not None
    assert release.left < 10
    value, (low, high) = release.rows[0][1], release.intervals[0][1]
    assert isinstance(value, int)
    assert low is not None
    assert high is not None
    assert low <= value <= high
    frame = release.to_pandas()
    assert list(frame.columns) == ["coinsurance", "n", "n_low", "n_high", "visits", "visits_low", "visits_high"]
    assert (frame["n_low"][0], frame["n_high"][0]) == (low, high)
    assert list(release.to_pandas(intervals=False).columns) == list(release.columns)


def test_the_same_question_is_replayed_and_a_key_draws_anew(session: Any) -> None:
    first = session.query(COUNT, epsilon=0.1)
    again = session.query(COUNT, epsilon=0.1)
    assert (again.document(), again.replayed) == (first.document(), True)
    other = session.query(COUNT, epsilon=0.1, key="second")
    assert not other.replayed
    assert other.document() != first.document()
    assert session.query(COUNT, epsilon=0.1, key="second").document() == other.document()
    with pytest.raises(ParameterError, match="HB768"):
        session.query(COUNT, epsilon=0.1, key="third", fresh=True)
    (view,) = session.budget()
    assert isinstance(view, BudgetOverview)
    (own,) = [state for state in view.caps if state.scope == "analyst"]
    assert (own.spent, own.left) == (Fraction(2, 10), Fraction(98, 10))
    assert "spent 0.2 of ε=10" in repr(session.budget())
    assert "Fraction" not in repr(session.budget()) + repr(session.releases())
    fresh = session.query(COUNT, epsilon=0.1, fresh=True)
    assert not fresh.replayed
    assert not session.call("moments", MOMENTS, epsilon=0.1).replayed
    assert session.call("moments", MOMENTS, epsilon=0.1).replayed
    assert not session.call("moments", MOMENTS, epsilon=0.1, fresh=True).replayed


def test_public_tables_are_answered_exactly_without_an_epsilon(session: Any) -> None:
    sql = "SELECT coinsurance FROM plans ORDER BY coinsurance LIMIT 2"
    assert "free" in repr(session.estimate(sql))
    release = session.query(sql)
    assert (release.rows, release.epsilon, release.left) == ([("0",), ("100",)], 0, None)
    assert session.releases() == ()
    with pytest.raises(ParameterError, match="HB132"):
        session.query(COUNT)


def test_an_answer_that_is_mostly_noise_is_flagged(session: Any) -> None:
    many = "SELECT age, AVG(spending) AS dollars, COUNT(*) AS n FROM health GROUP BY age"
    found = session.estimate(many, epsilon="0.001")
    assert found.admitted
    dollars, count = found.warnings
    assert dollars == "dollars: ±5,000 on values of 0 to 5,000 is mostly noise. Ask for fewer groups or a larger ε."
    assert count.startswith("n: ±")
    assert "a group of 1,000 rows gives at most 1,000" in count
    assert dollars in repr(found)
    assert session.estimate(COUNT, epsilon="0.1").warnings == ()


def test_a_relative_margin_says_of_what(session: Any) -> None:
    sql = "SELECT AVG(spending) AS d, MEDIAN(age) AS m, COUNT(*) AS n FROM health"
    said = session.estimate(sql, within="5%", rows=1).target
    assert "d: 5% of 2,500, the scale that the column bounds give" in said
    assert "m: 5% of the ranks in a group of 1,000 rows" in said
    assert "n: 5% of 1,000, the most in a group of 1,000 rows" in said
    assert said in repr(session.estimate(sql, within="5%", rows=1))
    assert session.estimate(COUNT, within=50).target == session.estimate(COUNT, epsilon=1).target == ""


def test_within_asks_for_an_accuracy_instead_of_a_price(session: Any) -> None:
    estimate = session.estimate(COUNT, within="5%")
    assert session.query(COUNT, within="5%").epsilon == estimate.epsilon
    assert session.estimate(COUNT, within=50).expected[0].plus_minus <= 50


@pytest.mark.parametrize("values", [[30, 0.5], [Fraction(30), Decimal("0.50")], [30, Fraction(1, 2)]])
def test_parameters_are_taken_exactly(session: Any, values: list[Any]) -> None:
    sql = "SELECT COUNT(*) AS n FROM health WHERE age > ? AND spending > ?"
    release = session.query(sql, epsilon=1, parameters=values)
    assert release.receipt["query"].endswith("Fraction(1, 2)")


def test_text_truth_dates_and_times_can_be_parameters(session: Any) -> None:
    sql = "SELECT COUNT(*) AS n FROM health WHERE health = ? AND ? AND CAST(? AS DATE) < CAST(? AS TIMESTAMP)"
    values = ["good", True, date(2020, 1, 31), datetime(2020, 2, 1, 12, 30, 0, 5)]
    release = session.query(sql, epsilon=1, parameters=values)
    for each in values:
        assert repr(each) in release.receipt["query"]


def test_the_past_can_be_listed_page_by_page_and_had_again(session: Any) -> None:
    asked = [session.query(COUNT, epsilon=0.1, key=f"number {number}") for number in range(5)]
    listed = session.releases()
    assert [each.id for each in listed] == [each.receipt["ledger"][0]["sequence"] for each in reversed(asked)]
    assert {(each.analyst, each.dataset, each.released, each.epsilon) for each in listed} == {
        ("ana", "health", True, Fraction(1, 10))
    }
    assert listed[0].time.tzinfo is not None
    pages, before = [], None
    while page := session.releases(limit=2, before=before):
        pages.append(len(page))
        before = page[-1].id
    assert pages == [2, 2, 1]
    again = session.release(listed[-1].id)
    assert (again.document(), again.replayed) == (asked[0].document(), True)
    assert again.left == asked[-1].left
    with pytest.raises(ParameterError) as caught:
        session.release(999_999)
    assert caught.value.message == "There is no release number 999999."


#: What is asked, and the code that refuses it.
REFUSED: tuple[tuple[str, str, dict[str, Any], type[HubbubError], str], ...] = (
    ("query", "SELECT * FROM health", {"epsilon": 1}, QueryError, "HB5"),
    ("query", "", {"epsilon": 1}, QueryError, "HB5"),
    ("estimate", "SELECT COUNT(*)\nFROM nowhere", {"epsilon": 1}, QueryError, "HB5"),
    ("query", "SELECT COUNT(*) FROM wards", {"epsilon": 1}, QueryError, "HB5"),
    ("query", COUNT, {}, ParameterError, "HB132"),
    ("query", COUNT, {"epsilon": 1, "within": 5}, ParameterError, "HB132"),
    ("query", COUNT, {"epsilon": -1}, ParameterError, "HB103"),
    ("query", COUNT, {"epsilon": "much"}, ParameterError, "HB102"),
    ("query", COUNT, {"epsilon": float("nan")}, ParameterError, "HB102"),
    ("query", COUNT, {"epsilon": True}, ParameterError, "HB101"),
    ("query", COUNT, {"epsilon": 5.5}, BudgetError, "HB201"),
    ("query", COUNT, {"epsilon": 1, "weights": {"m": 2}}, ParameterError, "HB138"),
    ("query", COUNT, {"epsilon": 1, "parameters": [7]}, QueryError, "HB509"),
    ("query", f"{COUNT} WHERE age > ?", {"epsilon": 1}, QueryError, "HB509"),
    ("query", COUNT, {"epsilon": 1, "groups": 0}, HubbubError, "HB"),
    ("query", COUNT, {"epsilon": 1, "dialect": "klingon"}, HubbubError, "HB"),
    ("describe", "wards", {}, ParameterError, "HB120"),
    ("describe", "a/b", {}, ParameterError, "HB120"),
    ("release", "999999", {}, ParameterError, "HB1"),
)


def refusal(session: Any, method: str, sql: str, options: dict[str, Any]) -> tuple[object, ...]:
    given = int(sql) if method == "release" else sql
    with pytest.raises(HubbubError) as caught:
        getattr(session, method)(given, **options)
    error = caught.value
    if isinstance(error, BudgetError):
        return BudgetError, error.code, error.message, error.remedy  # the ledger's has a class below
    return type(error), error.code, error.message, error.remedy, getattr(error, "position", None), str(error)


@pytest.mark.parametrize("kind", ["served", "async"])
def test_a_refusal_has_the_same_class_words_and_place(opener: Opener, tmp_path: Path, kind: str) -> None:
    here, there = opener("embedded", folder=tmp_path / "here"), opener(kind, folder=tmp_path / "there")
    for method, sql, options, expected, code in REFUSED:
        found = refusal(there, method, sql, options)
        assert found == refusal(here, method, sql, options)
        assert issubclass(found[0], expected)  # type: ignore[arg-type]
        assert str(found[1]).startswith(code)
    assert there.releases() == ()


def test_a_parameter_without_a_form_is_refused_in_the_same_words(session: Any) -> None:
    for value in (None, b"x", datetime.fromisoformat("2020-01-01T00:00:00+01:00")):
        with pytest.raises(QueryError, match="HB509") as caught:
            session.query(f"{COUNT} WHERE age > ?", epsilon=1, parameters=[value])
        assert f"unsupported type or value ({type(value).__name__})" in caught.value.message


@pytest.mark.parametrize("kind", ["served", "async"])
def test_a_server_gives_the_very_values_of_the_embedded_session(opener: Opener, tmp_path: Path, kind: str) -> None:
    def everything(session: Any) -> dict[str, Any]:
        releases = session.releases()
        return {
            "tables": [session.describe(name) for name in session.datasets()],
            "budget": session.budget(),
            "estimate": session.estimate(PLANS, epsilon="0.3", groups=1, weights={"n": 2}),
            "releases": releases,
            "each": [session.release(each.id) for each in releases],
            "again": session.query(PLANS, epsilon="0.1"),
        }

    with hubbub.open(lay_out(tmp_path), analyst="ana") as here:
        here.query(PLANS, epsilon="0.1")
        here.query("SELECT MEDIAN(age) AS age FROM health", epsilon="1/3", rows=1)
        here.query("SELECT year, COUNT(*) AS n FROM health GROUP BY year", epsilon="0.5", raw=True)
        expected = everything(here)
    there = opener(kind)
    assert everything(there) == expected


def test_a_closed_session_says_so(session: Any) -> None:
    session.close()
    with pytest.raises(HubbubError, match=r"HB314 .*closed|HB804 .*closed"):
        session.budget()


def test_a_second_draw_sharpens_the_first(session: Any) -> None:
    first = session.query(PLANS, epsilon="0.5", groups=1)
    both = session.refine(first, epsilon="1", key="sharper")
    assert both.epsilon == Fraction(3, 2)
    assert [row[0] for row in both.rows] == [0, 25, 50, 95, 100]
    (low, high), (lower, higher) = first.intervals[0][1], both.intervals[0][1]
    assert higher - lower < high - low
    assert session.refine(first, epsilon="1", key="sharper").rows == both.rows
    assert sum(each.epsilon for each in session.releases()) == Fraction(3, 2)
    chosen = session.query("SELECT MEDIAN(age) AS age FROM health", epsilon="0.5")
    with pytest.raises(ParameterError, match="HB145"):
        session.refine(chosen, epsilon="1")
