"""The forecast of a budget, by hand."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hubbub.server.budget_forecast import forecast, recent

NOW = datetime(2026, 11, 19, tzinfo=UTC)


def ago(days: int, amount: str) -> tuple[datetime, Fraction]:
    return NOW - timedelta(days=days), Fraction(amount)


def test_the_rate_counts_charges_of_the_window_alone() -> None:
    past = {"ana": [ago(90, "2"), ago(31, "5"), ago(29, "6"), ago(1, "8")], "ben": [ago(3, "1/2")], "eve": []}
    assert recent(past, NOW) == 3 + Fraction(1, 2)
    assert recent({"ana": [ago(31, "5")]}, NOW) == 0


@pytest.mark.parametrize(
    ("past", "left", "words"),
    [
        ({"ana": [ago(10, "3")]}, "0", "used up"),
        ({}, "1", "Nothing was spent in the last 30 days"),
        ({"ana": [ago(40, "3")]}, "1", "Nothing was spent in the last 30 days"),
        ({"ana": [ago(10, "3")]}, "3", "until about 2026-12-19"),
        ({"ana": [ago(10, "3")]}, "1/2", "until about 2026-11-24"),
        ({"ana": [ago(10, "0.001")]}, "30", "for more than 10 years"),
    ],
)
def test_the_rest_lasts_as_long_as_it_does(
    past: dict[str, list[tuple[datetime, Fraction]]], left: str, words: str
) -> None:
    assert words in forecast(past, Fraction(left), NOW)
