"""Proposals from past questions, on texts whose columns are counted by hand."""

from fractions import Fraction

from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.curator.suggest import suggest_cube

TABLE = Table(
    "visits",
    (
        Column("region", Kind.TEXT, values=("N", "S")),
        Column("sex", Kind.BOOLEAN),
        Column("age", Kind.INTEGER, Bounds(Fraction(0), Fraction(99))),
        Column("cost", Kind.REAL, Bounds(Fraction(0), Fraction(9))),
        Column("word", Kind.TEXT),
    ),
    PrivacyUnit(None),
)


def test_columns_that_past_questions_read_together_are_proposed() -> None:
    texts = [
        *["SELECT region, COUNT(*) FROM visits WHERE age >= 18 GROUP BY region -- rows = 2"] * 5,
        "SELECT SUM(cost) AS s FROM visits WHERE sex",
        "SELECT word, COUNT(*) FROM visits GROUP BY word",
        "SELECT MEDIAN(age) FROM visits",
        "SELECT COUNT(DISTINCT region) FROM visits",
        "CALL kmeans(table => 'visits', columns => ['age'], k => 3)",
        "not sql",
    ]
    found = suggest_cube(texts, TABLE)
    assert (found.columns, found.measures, found.order) == (("age", "region", "sex"), ("count", "sum(cost)"), 2)
    assert (found.answered, found.asked) == (6, 9)
    assert "--columns age,region,sex --measures 'count,sum(cost)' --order 2" in found.lines()[1]


def test_nothing_is_proposed_without_a_question_that_a_cube_answers() -> None:
    found = suggest_cube(["SELECT MEDIAN(age) FROM visits"], TABLE)
    assert (found.columns, found.order, found.answered) == ((), 0, 0)
    assert len(found.lines()) == 1
