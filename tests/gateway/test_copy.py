"""COPY: text and CSV as PostgreSQL writes them."""

import csv
import io

import pytest

from hubbub.gateway import copy
from hubbub.gateway.statements import Copy, read
from hubbub.gateway.values import FLOAT8, STRING

COLUMNS = (("name", STRING), ("x", FLOAT8))
ROWS = [("a\tb", 1.5), ('say "hi", you', None), ("", 2.0), ("two\nlines\\", float("nan"))]


def payload(command: str) -> bytes:
    (statement,) = read(command)
    assert isinstance(statement, Copy)
    messages = list(copy.response(statement, COLUMNS, ROWS))
    assert messages[0][:1] == b"H"
    assert messages[-1] == b"c\0\0\0\x04"
    return b"".join(each[5:] for each in messages[1:-1])


def test_csv_is_read_by_others() -> None:
    text = payload("COPY (SELECT 1) TO STDOUT CSV HEADER").decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [["name", "x"], ["a\tb", "1.5"], ['say "hi", you', ""], ["", "2"], ["two\nlines\\", "NaN"]]
    assert text.splitlines()[3] == '"",2'  # an empty text is quoted, NULL is not


def test_text_escapes_what_separates() -> None:
    lines = payload("COPY (SELECT 1) TO STDOUT").decode().split("\n")
    assert lines == ["a\\tb\t1.5", 'say "hi", you\t\\N', "\t2", "two\\nlines\\\\\tNaN", ""]


def test_binary_has_its_header_with_the_first_row() -> None:
    (statement,) = read("COPY (SELECT 1) TO STDOUT (FORMAT binary)")
    assert isinstance(statement, Copy)
    first, last = list(copy.response(statement, COLUMNS, ROWS))[1], list(copy.response(statement, COLUMNS, []))[1]
    assert first[5:24] == b"PGCOPY\n\xff\r\n\0" + bytes(8)
    assert first[24:26] == b"\0\x02"
    assert last[24:] == b"\xff\xff"


@pytest.mark.parametrize(
    "text", ["COPY (SELECT 1) TO STDOUT (FORMAT csv, DELIMITER 'xx')", "COPY (SELECT 1) TO STDOUT (NULL)"]
)
def test_options_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(Exception, match="HB809"):
        read(text)
