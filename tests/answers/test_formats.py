"""Arrow tables, Vega-Lite charts, and charts of text: the same numbers and intervals as the answer."""

import json
from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow
import pytest
from pyarrow import feather

from hubbub.answers.release import Output, Release
from hubbub.answers.text_bars import text_bars
from hubbub.errors import ParameterError

PAPER = {"query": "SELECT 1", "ledger": [{"sequence": 3}], "data": []}


def release(*outputs: Output) -> Release:
    return Release(outputs, [None] * len(outputs[0].values), Fraction(1, 2), Fraction(0), PAPER)


PLACE = Output("place", "text", ["North", "South\x1b[2J", None])
COUNT = Output("n", "integer", [100, 50, None], [90.0, 40.0, None], [110.0, None, None])
DAY = Output("day", "date", [date(2020, 1, 31), None, None])


def test_an_arrow_table_has_intervals_types_and_the_receipt() -> None:
    table = release(PLACE, COUNT, DAY).to_arrow()
    assert table.column_names == ["place", "n", "n_low", "n_high", "day"]
    kinds = [pyarrow.string(), pyarrow.int64(), pyarrow.float64(), pyarrow.float64(), pyarrow.date32()]
    assert [field.type for field in table.schema] == kinds
    assert table["n"].to_pylist() == [100, 50, None]
    assert table["n_high"].to_pylist() == [110.0, None, None]
    assert json.loads(table.schema.metadata[b"hubbub"]) == PAPER
    assert release(PLACE, COUNT).to_arrow(intervals=False).column_names == ["place", "n"]


def test_types_do_not_depend_on_the_values() -> None:
    table = release(Output("a", "integer", [None]), Output("t", "timestamp", [None])).to_arrow()
    assert [field.type for field in table.schema] == [pyarrow.int64(), pyarrow.timestamp("us")]


def test_a_file_has_the_same_columns(tmp_path: Path) -> None:
    release(PLACE, COUNT).export(tmp_path / "a.arrow")
    assert feather.read_table(tmp_path / "a.arrow")["n_low"].to_pylist() == [90.0, 40.0, None]


def test_a_vega_lite_chart_holds_the_answer_and_draws_the_intervals() -> None:
    chart = release(PLACE, COUNT).vega_lite()
    assert chart["data"]["values"][0] == {"group": "North", "value": 100, "low": 90.0, "high": 110.0}
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["bar", "rule", "point"]
    assert chart["layer"][1]["encoding"]["x2"] == {"field": "high"}
    assert "95% intervals (ε = 0.5)" in chart["description"]
    json.dumps(chart)
    with pytest.raises(ParameterError, match="HB131"):
        release(PLACE, COUNT).vega_lite("place")


def test_a_chart_of_text_is_to_scale() -> None:
    lines = text_bars(release(PLACE, COUNT), width=80)
    assert len(lines) == 3
    north, south, nothing = lines
    assert north.startswith("North")
    assert north.endswith("100 ±10")
    room = 80 - len("South\\x1b[2J") - len("50 (40 to …)") - 4
    left = len("South\\x1b[2J") + 2
    assert north.index("●") - left == round(100 / 110 * (room - 1))
    assert south.index("●") - left == round(50 / 110 * (room - 1))
    assert south[left + room - 1] == "─"  # no upper end: the interval goes on
    assert "\\x1b[2J" in south
    assert "●" not in nothing
    assert text_bars(release(PLACE)) == []


def test_a_bar_of_a_negative_number_ends_at_zero() -> None:
    change = Output("d", "real", [-5.0, 5.0], [-6.0, 4.0], [-4.0, 6.0])
    below, above = text_bars(release(change), width=60)
    assert below.index("●") < below.index("█") < above.index("█") < above.index("●")
