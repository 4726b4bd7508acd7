"""Long answers are arrays and Parquet, and read like the lists of short ones."""

import csv
from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from hubbub.answers.columns import Column, numbers
from hubbub.answers.release import Output, Release, read_answer, stored_answer
from hubbub.answers.sampling import SamplingErrors, noise_sentences
from hubbub.answers.stored import unpack_answer
from hubbub.errors import ParameterError

CELLS: dict[str, tuple[Any, list[Any]]] = {
    "text": (np.array(["1", None, "ε'\",\n", "", "é"], dtype=object), ["1", None, "ε'\",\n", "", "é"]),
    "integer": (
        np.ma.array([1, 0, -(2**63), 4, 2**63 - 1], mask=[False, True, False, False, False]),
        [1, None, -(2**63), 4, 2**63 - 1],
    ),
    "real": (np.array([1.5, np.nan, -0.0, np.nan, 5e-324]), [1.5, None, -0.0, None, 5e-324]),
    "boolean": (
        np.ma.array([True, False, True, False, True], mask=[False, False, False, True, False]),
        [True, False, True, None, True],
    ),
    "date": (
        np.array(["2020-02-29", "NaT", "0001-01-01", "9999-12-31", "1969-12-31"], dtype="datetime64[D]"),
        [date(2020, 2, 29), None, date.min, date.max, date(1969, 12, 31)],
    ),
    "timestamp": (
        np.array(["2020-01-01T00:00:00.000001", "NaT", "0001-01-01", "9999-12-31", "1969-12-31"], "datetime64[us]"),
        [datetime(2020, 1, 1, microsecond=1), None, datetime.min, datetime(9999, 12, 31), datetime(1969, 12, 31)],
    ),
}


def long_release() -> Release:
    outputs = [Output(kind, kind, Column(array)) for kind, (array, _) in CELLS.items()]
    low, high = numbers(np.array([0.0, 1.0, np.nan, 3.0, 4.0])), numbers(np.array([2.0, 3.0, np.inf, 5.0, 6.0]))
    half = numbers(np.full(5, 2.0))
    count = Column(np.arange(1, 6))
    outputs.append(Output("n", "integer", count, low, high, SamplingErrors(half, at_most=False), (low, high)))
    ratio = numbers(np.full(5, 0.5))
    return Release(tuple(outputs), ratio, Fraction(1), Fraction(0), {"query": "", "data": [], "ledger": []})


@pytest.mark.parametrize("kind", CELLS)
def test_cells_of_a_long_column_are_those_of_a_list(kind: str) -> None:
    array, cells = CELLS[kind]
    column = Column(array)
    assert list(column) == cells == column[:]
    assert len(column) == 5
    assert column == cells
    assert column != [*cells[:4], "other"]
    assert column != cells[:4]
    assert [column[place] for place in (0, 1, -1)] == [cells[0], cells[1], cells[-1]]
    assert column[1:3] == cells[1:3]
    assert [type(cell) for cell in column] == [type(cell) for cell in cells]


def test_a_long_answer_is_stored_and_read_without_a_change() -> None:
    release = long_release()
    stored = stored_answer(release.outputs, release.ratio, {"a": 1})
    outputs, ratio, model = read_answer(stored)
    assert [output.name for output in outputs] == [*CELLS, "n"]
    assert model == {"a": 1}
    for output in outputs[:-1]:
        assert list(output.values) == CELLS[output.kind][1]
        assert output.low is None
        assert output.sampling is None
    n = outputs[-1]
    assert isinstance(n.values, Column)
    assert list(n.values) == [1, 2, 3, 4, 5]
    assert n.low is not None
    assert n.high is not None
    assert n.joint is not None
    assert n.sampling is not None
    assert (list(n.low), list(n.high)) == ([0.0, 1.0, None, 3.0, 4.0], [2.0, 3.0, None, 5.0, 6.0])
    assert list(n.joint[0]) == list(n.low)
    assert list(n.sampling.values) == [2.0] * 5
    assert list(ratio) == [0.5] * 5


def test_a_file_with_other_columns_or_rows_is_no_answer() -> None:
    release = long_release()
    stored = stored_answer(release.outputs, release.ratio, {})
    forged: list[dict[str, Any]] = [
        {**stored, "form": "parquet 2"},
        {**stored, "rows": 4},
        {**stored, "columns": stored["columns"][1:]},
        {**stored, "columns": [{**stored["columns"][0], "kind": "real"}, *stored["columns"][1:]]},
        {**stored, "columns": [{**stored["columns"][0], "parts": ["values", "more"]}, *stored["columns"][1:]]},
        {**stored, "parquet": "!"},
    ]
    for each in forged:
        with pytest.raises(ValueError, match=r"."):
            unpack_answer(each)


def test_only_the_first_rows_are_shown() -> None:
    release = long_release()
    assert release.texts(2) == release.texts()[:2]
    head = release.head(2)
    assert len(head.rows) == len(head.ratio) == 2
    assert head.rows == release.rows[:2]
    assert release.head(9) is release


def test_noise_sentences_of_long_columns_are_those_of_lists() -> None:
    def short(values: Sequence[Any] | None) -> list[Any] | None:
        return None if values is None else list(values)

    release = long_release()
    (*_, n) = release.outputs
    assert n.sampling is not None
    listed = Output("n", "integer", list(n.values), short(n.low), short(n.high), SamplingErrors([2.0] * 5))
    same = Release((listed,), [0.5] * 5, Fraction(1), Fraction(0), release.receipt)
    assert noise_sentences(release) == noise_sentences(same) != []


def test_exports_have_all_rows(tmp_path: Path) -> None:
    release = long_release()
    names = [*CELLS, "n", "n_low", "n_high"]
    release.export(tmp_path / "all.parquet")
    relation = duckdb.read_parquet(str(tmp_path / "all.parquet"))
    assert relation.columns == names
    assert [tuple(row) for row in relation.fetchall()] == [
        (*row, low, high)
        for row, low, high in zip(release.rows, [0.0, 1.0, None, 3.0, 4.0], [2.0, 3.0, None, 5.0, 6.0], strict=True)
    ]
    release.export(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == names
    assert len(rows) == 6
    assert rows[3][0] == "ε'\",\n"
    with pytest.raises(ParameterError, match="HB126"):
        release.export(tmp_path / "all.xlsx")


def test_frames_have_the_cells_of_a_long_answer() -> None:
    frame = long_release().to_pandas(intervals=False)
    assert frame["n"].tolist() == [1, 2, 3, 4, 5]
    assert frame["text"].isna().tolist() == [False, True, False, False, False]
    frame = long_release().to_polars(intervals=False)
    assert frame["n"].to_list() == [1, 2, 3, 4, 5]
    assert frame["real"].to_list() == CELLS["real"][1]
