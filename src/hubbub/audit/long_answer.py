"""Check the file of a long answer: a Parquet file with the columns, types and rows that the answer states.

Like the checker of receipts, this file imports nothing from the rest of hubbub.

Tested in tests/audit/test_long_answer.py.
"""

import base64
import binascii
import tempfile
from pathlib import Path
from typing import Any

_TYPES = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
PARTS = ("values", "low", "high", "sampling", "joint_low", "joint_high")
KINDS = tuple(_TYPES)


def problem(answer: dict[str, Any]) -> str | None:
    """Return what is wrong with the file of an answer whose other fields are well formed; None if it is sound."""
    import duckdb  # here, because most answers have no file

    types = {"ratio": "DOUBLE"}
    pairs = []
    for place, column in enumerate(answer["columns"]):
        parts = column["parts"]
        if "values" not in parts or len(set(parts)) != len(parts):
            return "has a column without values, or with a part twice."
        types |= {f"c{place}_{name}": "DOUBLE" if name != "values" else _TYPES[column["kind"]] for name in parts}
        for low, high in (("low", "high"), ("joint_low", "joint_high")):
            if (low in parts) != (high in parts):
                return "has intervals with one end."
            pairs += [f'"c{place}_{low}" > "c{place}_{high}"'] if low in parts else []
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        path = Path(folder) / "answer.parquet"
        connection.execute("SET enable_progress_bar = false")
        try:
            path.write_bytes(base64.b64decode(answer["parquet"], validate=True))
            connection.read_parquet(str(path)).create_view("answer")
            described = connection.execute("DESCRIBE answer").fetchall()
            if {name: kind for name, kind, *_ in described} != types or len(described) != len(types):
                return "has other columns than the answer."
            wrong = " OR ".join(pairs) or "FALSE"
            text = f"SELECT count(*), count(*) FILTER ({wrong}) FROM answer"  # noqa: S608 - names are those of this file
            counted = connection.execute(text).fetchone()
        except (binascii.Error, ValueError, duckdb.Error):
            return "is not a Parquet file."
    rows, crossed = counted or (0, 0)
    if rows != answer["rows"]:
        return "has another number of rows than the answer."
    return "has an interval whose lower end exceeds its upper end." if crossed else None
