"""A release as SVG: everything on the scale, nothing that a value could break out of."""

import re
from fractions import Fraction
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from hubbub.answers.bars import MAX_ROWS, bars
from hubbub.answers.release import Output, Release

SVG = "{http://www.w3.org/2000/svg}"


def release(keys: list[str], values: list[float | None], half: float | None = 5.0) -> Release:
    low = [None if v is None or half is None else v - half for v in values]
    high = [None if v is None or half is None else v + half for v in values]
    outputs = (Output("k", "text", keys), Output("n", "real", values, low, high))
    return Release(outputs, [0.1] * len(keys), Fraction(1, 10), Fraction(0), {})


def across(drawn: str) -> list[float]:
    return [float(found) for found in re.findall(r'(?:x|x1|x2|cx|width)="(-?[\d.]+)%"', drawn)]


def test_a_row_shows_its_bar_its_value_and_both_ends() -> None:
    tree = ElementTree.fromstring(bars(release(["a", "b"], [10.0, 100.0])))
    circles = [float((each.get("cx") or "").strip("%")) for each in tree.iter(f"{SVG}circle")]
    # the scale runs from 0 (at 1 %) to 105 (at 99 %)
    assert [round(each, 2) for each in circles] == [round(1 + 98 * v / 105, 2) for v in (10, 100)]
    ends = [line for line in tree.iter(f"{SVG}line") if line.get("class") == "hub-interval"]
    spans = [line for line in ends if line.get("x1") != line.get("x2")]
    assert [(line.get("x1"), line.get("x2")) for line in spans] == [
        (f"{round(1 + 98 * (v - 5) / 105, 3)}%", f"{round(1 + 98 * (v + 5) / 105, 3)}%") for v in (10, 100)
    ]
    texts = ["".join(each.itertext()) for each in tree.iter(f"{SVG}text")]
    assert texts == ["a", "10.0 ±5.0", "b", "100.0 ±5.0"]


@given(st.lists(st.one_of(st.none(), st.floats(-1e12, 1e12)), min_size=1, max_size=8), st.text(max_size=60))
def test_everything_is_on_the_scale_and_is_xml(values: list[float | None], key: str) -> None:
    key = "".join(c for c in key if c.isprintable())
    drawn = bars(release([key] * len(values), values))
    ElementTree.fromstring(drawn)
    assert all(-0.01 <= place <= 100.01 for place in across(drawn))


def test_hostile_keys_and_names_are_text() -> None:
    hostile = '"><script>alert(1)</script>'
    outputs = (Output("k", "text", [hostile]), Output(hostile, "integer", [3], [1.0], [5.0]))
    drawn = bars(Release(outputs, [0.1], Fraction(1), Fraction(0), {}))
    assert "<script" not in drawn
    ElementTree.fromstring(drawn)


def test_no_style_attribute_is_needed() -> None:
    drawn = bars(release(["a"], [1.0]))
    assert "style" not in drawn
    assert "javascript" not in drawn


def test_many_rows_are_cut_and_that_is_said() -> None:
    drawn = bars(release(["k"] * 100, [1.0] * 100))
    assert drawn.count("<circle") == MAX_ROWS
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
    assert texts[-1] == f"… {100 - MAX_ROWS} more rows are not shown in this chart"
    assert "not shown" not in bars(release(["k"] * MAX_ROWS, [1.0] * MAX_ROWS))


def test_what_has_no_interval_is_not_drawn() -> None:
    assert bars(Release((Output("k", "text", ["a"]),), [None], Fraction(1), Fraction(0), {})) == ""
    assert bars(release([], [])) == ""
    assert "<circle" in bars(release(["a"], [7.0], None))
