"""Uploaded tables: parsed strictly, or rejected without quoting their values."""

import numpy as np
import pytest

from hubbub.attacks import upload
from hubbub.errors import AttackError

GOOD = 'name,age,zip,sick\nann,31,02138,1\n"o\'hara, b",47,2139,0\n'


def refused(content: bytes) -> str:
    with pytest.raises(AttackError, match="HB645") as caught:
        upload.table(upload.decode_upload(content))
    return caught.value.message


def test_a_table_is_read_column_by_column() -> None:
    table = upload.table(upload.decode_upload(GOOD.encode("utf-8-sig")))
    assert list(table.columns) == ["name", "age", "zip", "sick"]
    assert table.columns["age"].dtype == np.int64
    assert table.columns["age"].tolist() == [31, 47]
    assert table.columns["name"].tolist() == ["ann", "o'hara, b"]
    assert table.columns["zip"].tolist() == ["02138", "2139"]  # codes, not numbers


def test_formulas_and_html_are_text_like_any_other() -> None:
    text = "<b>x</b>,y\n=cmd|' /C calc'!A0,<script>alert(1)</script>\n+1+1,@SUM(A1)\n"
    table = upload.table(text)
    assert table.columns["<b>x</b>"].tolist() == ["=cmd|' /C calc'!A0", "+1+1"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no rows"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2,3\n", "more or fewer values"),
        (b"a,b\n1\n", "more or fewer values"),
        (b"a,a\n1,2\n", "two columns with the same name"),
        (b"A,a\n1,2\n", "two columns with the same name"),
        (b"a,\n1,2\n", "name is empty"),
        (b'"a""b",c\n1,2\n', "not plain text"),
        (b"a\x07b,c\n1,2\n", "not plain text"),
        (b'a,b\n"1,2\n', "not valid CSV"),
        (b"a,b\n" + b"x" * 200_000 + b",1\n", "not valid CSV"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not plain text"),
        (b"PK\x03\x04\x14\0\0\0", "not plain text"),
        (b"a,b\n1,\0\n", "not plain text"),
        (b"\xff\xfea\0,\0b\0", "not plain text"),
        (b"a," * 600 + b"b\n", "no rows"),
        ((",".join(f"c{n}" for n in range(200)) + "\n" + ",".join("1" * 200) + "\n").encode(), "columns"),
        (b"a\n" + b"1\n" * 100_001, "rows"),
        (b"a,b\n" + b"," * (1 << 19), "more or fewer values"),
        (b"\n" * (1 << 20), "no rows"),
        (b"a\n" + b"1" * (1 << 20), "bytes"),
    ],
    ids=range(21),
)
def test_what_is_no_table_is_refused(content: bytes, why: str) -> None:
    message = refused(content)
    assert why in message
    assert len(message) < 200


def test_a_refusal_holds_no_value() -> None:
    assert "s3cret" not in refused(b"a,b\ns3cret,1,s3cret\n")
    assert "s3cret" not in refused(b"s3cret,s3cret\n1,2\n")
