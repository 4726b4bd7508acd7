"""What a declared column says about itself."""

from dataclasses import replace
from fractions import Fraction

from hubbub.core.schema import Bounds, Column, Kind


def test_bounds_are_written_in_the_unit_of_their_column() -> None:
    day = Column("d", Kind.DATE, bounds=Bounds(Fraction(0), Fraction(366)))
    assert day.range_text == "1970-01-01 to 1971-01-02"
    second = Column("t", Kind.TIMESTAMP, bounds=Bounds(Fraction(0), Fraction(90_000_000)))
    assert second.clamping == "clamped to 1970-01-01 00:00 to 1970-01-01 00:01"
    income = Column("x", Kind.INTEGER, bounds=Bounds(Fraction(-1500), Fraction(2_000_000)))
    assert income.range_text == "-1500 to 2,000,000"
    assert replace(income, auto=True).clamping == "bounds found by each query"
    assert Column("x", Kind.TEXT).clamping == ""
