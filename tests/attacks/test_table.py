"""Tables to attack, read by hubbub's engine."""

from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.attacks.table import AttackTable, parse_numbers, read
from hubbub.errors import AttackError


def test_a_csv_file_is_read_with_numbers_where_all_reads_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('age,pay,zip,name,none\n40,1.5,02138,Ann,\n41,N,2138,"B, o\nb",\n')
    table = read(path)
    assert table.rows == 2
    assert table.columns["age"].dtype == np.int64
    assert table.columns["pay"][0] == 1.5
    assert np.isnan(table.columns["pay"][1])
    assert table.columns["zip"].tolist() == ["02138", "2138"]  # two codes, although the number is the same
    assert table.columns["name"].tolist() == ["Ann", "B, o\nb"]
    assert table.columns["none"].tolist() == ["", ""]


def test_a_parquet_file_keeps_its_types(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i, i / 2 AS half, i > 1 AS large, 'w' || i AS word, DATE '2020-01-01' + i::INTEGER AS day,"
            f" CASE WHEN i > 0 THEN i END AS gap FROM range(3) t(i)) TO '{path}'"
        )
    table = read(path)
    assert table.columns["i"].tolist() == [0, 1, 2]
    assert table.columns["large"].tolist() == [False, False, True]
    assert table.columns["word"].tolist() == ["w0", "w1", "w2"]
    assert str(table.columns["day"][1]).startswith("2020-01-02")
    assert np.isnan(table.columns["gap"][0])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gone.csv", None),
        ("empty.csv", b""),
        ("header.csv", b"a,b\n"),
        ("twice.csv", b"a,a\n1,2\n"),
        ("broken.parquet", b"PAR1 no"),
        ("notes.txt", b"hello"),
        ("latin.csv", b"\xe4,b\n1,2\n"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AttackError) as refused:
        read(path)
    assert refused.value.code == "HB641"
    assert refused.value.remedy


def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    monkeypatch.setattr("hubbub.attacks.table.MAX_CELLS", 100)
    with pytest.raises(AttackError, match="more than 100 cells"):
        read(path)
    monkeypatch.setattr("hubbub.attacks.table.MAX_BYTES", 100)
    with pytest.raises(AttackError, match="larger than"):
        read(path)


def test_a_column_that_is_not_there_is_named_with_the_nearest_that_is() -> None:
    with pytest.raises(AttackError, match="has no column 'aeg'") as refused:
        AttackTable("people", {"age": np.arange(3)}).column("aeg")
    assert "Did you mean age?" in str(refused.value)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=40))
def test_rows_have_one_code_just_if_they_agree(rows: list[tuple[int, str, bool]]) -> None:
    numbers, words, flags = zip(*rows, strict=True)
    table = AttackTable("t", {"n": np.array(numbers), "w": np.array(words, dtype=object), "f": np.array(flags)})
    codes = table.codes(["n", "w", "f"])
    for (i, one), (j, other) in product(enumerate(rows), enumerate(rows)):
        assert (codes[i] == codes[j]) == (one == other)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "2"], "i"),
        (["1", ""], "f"),
        (["1.5", "NA"], "f"),
        (["1", "x"], "O"),
        (["007", "8"], "O"),
        (["1_000", "2"], "O"),
        (["", ""], "O"),
        (["99999999999999999999", "1"], "f"),
        (["-3", "+4"], "i"),
    ],
)
def test_text_is_taken_for_numbers_only_where_nothing_is_lost(texts: list[str], kind: str) -> None:
    assert parse_numbers(np.array(texts, dtype=object)).dtype.kind == kind
