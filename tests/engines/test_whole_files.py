"""Files are looked at whole: every byte counts for the version of the data, and an unreadable line ends nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.core.schema import Kind
from hubbub.engines import files
from hubbub.engines.base import DataSource, View
from hubbub.engines.duckdb.connection import DuckDBEngine

MIB = 1 << 20


@pytest.mark.parametrize("place", [0, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB + 4])
def test_a_byte_anywhere_in_a_file_changes_its_digest(tmp_path: Path, place: int) -> None:
    """Three mebibytes and five bytes, all alike; one of them changes, and the size does not."""
    path = tmp_path / "wide.csv"
    path.write_bytes(b"1" * (3 * MIB + 5))
    before = files.digest(DataSource("csv", path))
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"2")
    assert path.stat().st_size == 3 * MIB + 5
    assert files.digest(DataSource("csv", path)) != before


#: A line in each way that cannot be read as two columns: bytes that are no text, too many fields, a quote too many.
UNREADABLE = (b"\xff\xfe\xfd,1\n", b"5,6,7,8\n", b'"a"b"c,1\n')


@pytest.mark.parametrize("line", UNREADABLE)
def test_a_line_that_cannot_be_read_is_no_failure_and_hides_no_other(
    tmp_path: Path, open_engine: Callable[..., DuckDBEngine], line: bytes
) -> None:
    """A failure would tell that such a line is there: all others are read, before it and after it."""
    path = tmp_path / "lines.csv"
    path.write_bytes(b"id,n\n" + b"1,10\n" * 3 + line + b"2,20\n" * 4)
    engine = open_engine([View("lines", DataSource("csv", path), (("id", Kind.INTEGER), ("n", Kind.INTEGER)))])
    counted = engine.run("SELECT count(*) FILTER (WHERE id = 1) AS a, count(*) FILTER (WHERE id = 2) AS b FROM lines")
    assert counted.through(lambda found: (int(found["a"][0]), int(found["b"][0]))) == (3, 4)
