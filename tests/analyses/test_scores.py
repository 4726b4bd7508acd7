"""A score is one COUNT or SUM in SQL: its integer is exact, and it moves by its sensitivity and no more."""

from fractions import Fraction
from itertools import product

import pytest
from tests.contract.tables import FEW, ROW, people

from hubbub.analyses.base import EngineRun, Setting
from hubbub.analyses.scores import Score, joint_protection, plan_score
from hubbub.core.schema import PrivacyUnit
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions

WORLD = people()


def planned(sql: str, unit: PrivacyUnit = ROW, relation: Relation = Relation.ADD_REMOVE, **bounds: int) -> Score:
    setting = Setting({"t": WORLD.table(unit, relation)}, Fraction(1), Fraction(0), RenderOptions("salt"), **bounds)
    return plan_score(setting, sql)


def integer(score: Score, units: tuple[tuple[tuple[object, ...], ...], ...]) -> int:
    """Compute the score of a table whose units have rows (k, i)."""
    WORLD.show(tuple(tuple((0.0, 0.0, k, True, True, i, "p") for k, i in unit) for unit in units))
    return score.integer(EngineRun(WORLD.ask, system(), lambda _, __: None)).through(int)


@pytest.mark.parametrize(
    ("sql", "each", "monotone"),
    [
        ("SELECT COUNT(*) FROM t WHERE k = 'a'", 1, True),
        ("SELECT SUM(i) FROM t", 3, True),
        ("SELECT SUM(i - 2) FROM t", 2, False),
        ("SELECT COUNT(DISTINCT i) FROM t", 1, True),
    ],
)
@pytest.mark.parametrize("unit", [ROW, FEW], ids=["row", "unit"])
def test_neighbors_move_a_score_by_its_sensitivity_and_no_more(
    sql: str, each: int, *, monotone: bool, unit: PrivacyUnit
) -> None:
    """All units of up to two rows beside a base, by brute force; the expected figures are written by hand."""
    rows = 1 if unit == ROW else 2
    score = planned(sql, unit)
    rows_of = [(k, i) for k, i in product("ab", (0, 3))]
    others = [((one,) * rows) for one in rows_of] + [((one, two)[:rows]) for one, two in product(rows_of, repeat=2)]
    base = ((("b", 2),),)
    moves = [integer(score, (*base, unit_rows)) - integer(score, base) for unit_rows in others]
    assert score.sensitivity * score.step == each * rows
    assert (score.monotone, min(moves) >= 0) == (monotone, monotone)
    assert max(map(abs, moves)) * score.step == each * rows


def test_a_filter_and_several_rows_are_counted_exactly() -> None:
    score = planned("SELECT COUNT(*) FROM t WHERE i >= 2")
    assert integer(score, ((("a", 1),), (("a", 2),), (("b", 3),), (("c", 3),))) == 3
    assert integer(score, ()) == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(i) FROM t",
        "SELECT COUNT(*), SUM(i) FROM t",
        "SELECT COUNT(*) + 1 FROM t",
        "SELECT COUNT(*) FROM t GROUP BY k",
        "SELECT COUNT(*) FROM t HAVING COUNT(*) > 3",
        "SELECT COUNT(*) FROM t LIMIT 1",
        "SELECT MEDIAN(i) FROM t",
        "SELECT VAR_POP(i) FROM t",
    ],
)
def test_anything_but_one_count_or_sum_is_refused(sql: str) -> None:
    with pytest.raises(QueryError) as refused:
        planned(sql)
    assert refused.value.code == "HB670"


def test_bounds_that_are_left_to_be_found_are_refused() -> None:
    unit = PrivacyUnit("u", groups=4, rows=8, auto=True)
    with pytest.raises(QueryError) as refused:
        planned("SELECT COUNT(*) FROM t", unit)
    assert refused.value.code == "HB576"
    assert planned("SELECT COUNT(*) FROM t", unit, rows=3).sensitivity == 3


def test_scores_over_different_private_tables_are_refused() -> None:
    tables = {"t": WORLD.table(ROW, Relation.ADD_REMOVE)}
    tables["s"] = type(tables["t"])("s", tables["t"].columns, ROW, Relation.ADD_REMOVE)
    setting = Setting(tables, Fraction(1), Fraction(0), RenderOptions("salt"))
    both = [plan_score(setting, f"SELECT COUNT(*) FROM {name}") for name in "ts"]
    with pytest.raises(QueryError) as refused:
        joint_protection(both)
    assert refused.value.code == "HB670"
