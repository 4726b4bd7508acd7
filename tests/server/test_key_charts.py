"""Charts by the kind of the key: what is drawn where, computed here from the numbers of the answer."""

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import pytest

from hubbub.answers.release import Output, Release
from hubbub.server.key_charts import key_charts, key_kind
from hubbub.server.pages.answer_table import answer_table

SPACE = "{http://www.w3.org/2000/svg}"


def release(key: Output, *noisy: Output, query: str = "SELECT 1") -> Release:
    return Release((key, *noisy), [None] * len(key.values), Fraction(1), Fraction(0), {"query": query})


def noisy(*values: Any, half: float = 10.0, name: str = "n") -> Output:
    low, high = ([None if v is None else v + sign * half for v in values] for sign in (-1, 1))
    return Output(name, "integer", list(values), low, high)


MONTHS = Output("month", "text", ["2026-03", "2026-01", "2026-02"])


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (MONTHS, "time"),
        (Output("day", "date", [date(2026, 1, 1), None]), "time"),
        (Output("at", "timestamp", [datetime(2026, 1, 1, 12)]), "time"),
        (Output("quarter", "text", ["2026-Q1", "2026-Q4"]), "time"),
        (Output("year", "text", ["2024", "2025"]), "time"),
        (Output("mixed", "text", ["2026", "2026-01"]), "categories"),
        (Output("code", "text", ["1234", "9876"]), "categories"),
        (Output("wrong", "text", ["2026-13"]), "categories"),
        (Output("age", "integer", [1, 2]), "numbers"),
        (Output("flag", "boolean", [True, False]), "none"),
    ],
)
def test_the_kind_of_a_key(key: Output, kind: str) -> None:
    assert key_kind(release(key, noisy(*range(len(key.values))))) == kind
    assert key_kind(release(key, key, noisy(*range(len(key.values))))) == "none", "two keys have no one order"
    assert key_kind(release(key)) == "none"


def test_time_is_a_line_with_a_band_in_the_order_of_time() -> None:
    (chart,) = key_charts(release(MONTHS, noisy(90, 40, 60)))
    tree = ElementTree.fromstring(str(chart.drawing))
    assert "from 2026-01 to 2026-03" in tree.get("aria-label", "")
    dots = [(float(dot.get("cx", "")[:-1]), float(dot.get("cy", ""))) for dot in tree.findall(f"{SPACE}circle")]
    days = [(date(2026, month, 1) - date(2026, 1, 1)).days for month in (1, 2, 3)]
    assert [x for x, _ in dots] == pytest.approx([2 + 96 * each / days[-1] for each in days], abs=1e-3)
    # the scale goes from 0 to 100, the highest end of an interval, over 130 pixels
    assert [y for _, y in dots] == pytest.approx([146 - 1.3 * each for each in (40, 60, 90)], abs=0.01)
    (band,) = (path.get("d", "") for path in tree.iter(f"{SPACE}path") if path.get("class") == "band")
    corners = [float(pair.split()[1]) for pair in re.split("[MLZ]", band) if pair]
    assert corners == pytest.approx([146 - 1.3 * each for each in (50, 70, 100, 80, 50, 30)], abs=0.01)


def test_a_missing_value_breaks_the_line_and_a_missing_end_reaches_the_edge() -> None:
    days = [date(2026, 1, 1) + timedelta(days=each) for each in range(5)]
    output = Output("n", "real", [1.0, 2.0, None, 4.0, 5.0], [0.0, 1.0, None, None, 4.0], [2.0, 3.0, None, 5.0, None])
    (chart,) = key_charts(release(Output("day", "date", days), output))
    tree = ElementTree.fromstring(str(chart.drawing))
    bands = [path.get("d", "") for path in tree.iter(f"{SPACE}path") if path.get("class") == "band"]
    assert len(bands) == 2
    assert len(tree.findall(f"{SPACE}circle")) == 4
    assert " 146" in bands[1], "the lower end of the fourth is not known: the bottom of the scale"
    assert (
        key_charts(release(Output("day", "date", days), Output("n", "real", [None] * 5, [None] * 5, [None] * 5))) == []
    )


def test_numbers_are_columns_in_their_order() -> None:
    key = Output("age", "integer", [30, None, 10, 20])
    (chart,) = key_charts(release(key, noisy(30, 99, -20, 20)))
    tree = ElementTree.fromstring(str(chart.drawing))
    scale = 130 / (109 + 30)
    columns = tree.findall(f"{SPACE}rect")
    heights = [float(each.get("height", "")) for each in columns]
    assert heights == pytest.approx([scale * each for each in (20, 20, 30)], abs=0.02), "NULL has no place"
    tops = [float(each.get("y", "")) for each in columns]
    zero = 146 - scale * 30
    assert tops == pytest.approx([zero, zero - scale * 20, zero - scale * 30], abs=0.02)
    assert [each.text for each in tree.findall(f"{SPACE}text")][1:] == ["10", "20", "30"]
    titles = [each.text for each in tree.iter(f"{SPACE}title")]
    assert titles == ["10: -20 (-30 to -10)", "20: 20 (10 to 30)", "30: 30 (20 to 40)"]


def test_categories_are_sorted_unless_the_query_has_an_order() -> None:
    key = Output("region", "text", ["a", None, "c", "d"])
    found = answer_table(release(key, noisy(5, 50, 7, None)))
    assert [row[0].text for row in found.rows] == ["–", "c", "a", "d"]
    assert [row[1].text for row in found.rows] == ["50 ±10", "7 ±10", "5 ±10", "–"]
    assert (found.sorted_by, found.charts) == ("n", [])
    asked = answer_table(release(key, noisy(5, 50, 7, None), query="SELECT … order\n by region"))
    assert [row[0].text for row in asked.rows] == ["a", "–", "c", "d"]
    assert asked.sorted_by == ""


def test_a_charted_column_has_no_bars_in_its_rows_and_names_are_escaped() -> None:
    key = Output("<age>", "integer", [1, 2, 3])
    table = answer_table(release(key, *(noisy(1, 2, 3, name=f'"{name}"') for name in "abcd")))
    assert [chart.name for chart in table.charts] == ['"a"', '"b"', '"c"']
    assert [bool(cell.bar) for cell in table.rows[0]] == [False, False, False, False, True]
    assert "<age>" not in str(table.charts[0].drawing)
    assert ElementTree.fromstring(str(table.charts[0].drawing)).get("aria-label", "").startswith('"a" by <age>')
    assert not answer_table(release(Output("age", "integer", [1, 2]), noisy(1, 2))).charts, "two rows need no chart"
