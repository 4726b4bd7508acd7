"""The table of an answer: bars on one scale for each column, and numbers that are mostly noise."""

import re
from fractions import Fraction
from xml.etree import ElementTree

import pytest

from hubbub.answers.release import Output, Release
from hubbub.server.pages.answer_table import MAX_ROWS, answer_table

REGION = Output("region", "text", ["<b>", "South", "West"])
COUNT = Output("n", "integer", [100, 50, 4], [90.0, 40.0, 0.0], [110.0, 60.0, 14.0])
MEAN = Output("mean", "real", [2.0, None, 0.0], [1.0, None, 0.0], [3.0, None, 0.0])


def _release(*outputs: Output) -> Release:
    return Release(outputs, [None] * len(outputs[0].values), Fraction(1), Fraction(0), {})


def _marks(svg: str) -> tuple[float, list[float]]:
    """Return where the point of a value is, and where its line starts and ends, in percent of the width."""
    tree = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    point = tree.find(f"{space}circle")
    line = next(each for each in tree.iter(f"{space}line") if each.get("class") == "hub-interval")
    assert point is not None
    return float(point.get("cx", "").strip("%")), [float(line.get(end, "").strip("%")) for end in ("x1", "x2")]


def test_bars_of_a_column_share_a_scale() -> None:
    table = answer_table(_release(REGION, COUNT))
    assert table.columns == (("region", False), ("n", True))
    (at, ends), (half, _), _ = (_marks(row[1].bar) for row in table.rows)
    # 0 is at 1%, the largest end, 110, at 99%
    assert (at, half) == pytest.approx((1 + 98 * 100 / 110, 1 + 98 * 50 / 110), abs=1e-3)
    assert ends == pytest.approx([1 + 98 * 90 / 110, 99], abs=1e-3)
    assert [row[0].bar for row in table.rows] == ["", "", ""]


def test_only_numbers_not_larger_than_their_noise_are_gray() -> None:
    rows = answer_table(_release(REGION, COUNT, MEAN)).rows
    assert [row[1].is_mostly_noise for row in rows] == [False, False, True]
    assert [row[2].is_mostly_noise for row in rows] == [False, False, False]  # NULL; and 0 without noise
    assert rows[1][2].text == "–"
    unbounded = Output("total", "real", [9.0], [1.0], [None])
    assert answer_table(_release(unbounded)).rows[0][0].is_mostly_noise
    assert not answer_table(_release(REGION, Output("n", "integer", [1, 2, 3]))).is_noisy


def test_a_long_answer_is_cut_and_has_few_bars() -> None:
    count = MAX_ROWS + 5
    table = answer_table(_release(Output("n", "integer", [5] * count, [1.0] * count, [9.0] * count)))
    assert len(table.rows) == MAX_ROWS
    assert sum(bool(row[0].bar) for row in table.rows) == 200
    assert re.fullmatch(r"5 ±4", table.rows[-1][0].text)
