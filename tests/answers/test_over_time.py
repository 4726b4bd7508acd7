"""Answers of several periods as one table and as charts."""

import re

import pytest

from hubbub.answers import over_time
from hubbub.answers.over_time import MAX_CURVES, charts
from hubbub.answers.release import Output, Release


class _Stub(Release):
    """A release with outputs and nothing else."""

    def __init__(self, *outputs: Output) -> None:
        object.__setattr__(self, "outputs", outputs)


def release(*rows: tuple[str, float, float, float]) -> Release:
    keys, values, low, high = (list(column) for column in zip(*rows, strict=True))
    return _Stub(Output("region", "text", keys, None, None), Output("n", "real", values, low, high))


def test_a_chart_has_a_curve_for_each_key_with_its_intervals() -> None:
    found = charts(
        {
            "2026-01": release(("North", 10.0, 8.0, 12.0), ("South", 5.0, 3.0, 7.0)),
            "2026-02": release(("North", 20.0, 18.0, 22.0), ("<b>", 1.0, 0.0, 2.0)),
        }
    )
    assert [*found] == ["n"]
    titles = re.findall(r"<title>([^<]*)</title>", found["n"])
    assert titles[1:] == [
        "North: 10 (8 to 12) at 2026-01",
        "North: 20 (18 to 22) at 2026-02",
        "South: 5 (3 to 7) at 2026-01",
        "&lt;b&gt;: 1 (0 to 2) at 2026-02",
    ]


def test_what_has_no_number_is_left_out_and_curves_are_few() -> None:
    assert charts({"2026-01": release(("North", float("nan"), 0.0, 1.0))}) == {}
    many = charts({"2026-01": release(*((f"{i:030}", 1.0, 0.0, 2.0) for i in range(9)))})
    assert many["n"].count("<circle") == MAX_CURVES
    assert "…" in many["n"]


def test_nothing_makes_an_empty_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert over_time.growing_table({}) == ""
    assert charts({}) == {}
