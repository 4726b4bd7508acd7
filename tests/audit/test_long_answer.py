"""The checker finds what is wrong with the file of a long answer."""

import base64
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.audit.long_answer import problem

STORED = json.loads((Path(__file__).parents[1] / "formats" / "golden" / "columns" / "answer.json").read_text())
COLUMNS: list[dict[str, Any]] = STORED["columns"]


def _written(folder: Path, sql: str) -> str:
    path = folder / "other.parquet"
    duckdb.sql(f"COPY ({sql}) TO '{path}'")
    return base64.b64encode(path.read_bytes()).decode()


def test_a_sound_file_has_no_problem() -> None:
    assert problem(STORED) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rows": 4}, "another number of rows"),
        ({"columns": COLUMNS[1:]}, "other columns"),
        ({"columns": [{**COLUMNS[0], "kind": "real"}, *COLUMNS[1:]]}, "other columns"),
        ({"columns": [{**COLUMNS[0], "parts": ["values", "values"]}, *COLUMNS[1:]]}, "part twice"),
        ({"columns": [{**COLUMNS[0], "parts": ["values", "low"]}, *COLUMNS[1:]]}, "one end"),
        ({"parquet": "UEFSMQ=="}, "not a Parquet file"),
        ({"parquet": "?"}, "not a Parquet file"),
    ],
)
def test_a_changed_file_is_found(changed: dict[str, Any], words: str) -> None:
    assert words in (problem({**STORED, **changed}) or "")


def test_intervals_whose_ends_are_exchanged_are_found(tmp_path: Path) -> None:
    column = {"name": "n", "kind": "integer", "parts": ["values", "low", "high"]}
    for low, sound in ((1.0, True), (3.0, False)):
        sql = f"SELECT 1::DOUBLE AS ratio, 2::BIGINT AS c0_values, {low}::DOUBLE AS c0_low, 2.0::DOUBLE AS c0_high"
        answer = {"form": "parquet 1", "rows": 1, "columns": [column], "parquet": _written(tmp_path, sql)}
        assert (problem(answer) is None) is sound
