"""Values as PostgreSQL writes them: compared with what a real client library reads and writes."""

import struct
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
import pytest
from psycopg.adapt import PyFormat, Transformer

from hubbub.errors import ParameterError
from hubbub.gateway.values import (
    BOOL,
    DATE,
    FLOAT8,
    INT8,
    KINDS,
    NUMERIC,
    STRING,
    STRINGS,
    TIMESTAMP,
    array_of,
    decode,
    encode_binary,
    encode_text,
    fitting,
)

SAMPLES = [
    (True, BOOL),
    (-(2**63), INT8),
    (0.1, FLOAT8),
    (1e300, FLOAT8),
    (float("inf"), FLOAT8),
    ("a\tb'\"é", STRING),
    (date(1900, 2, 28), DATE),
    (datetime(2026, 11, 19, 4, 5, 6, 789), TIMESTAMP),
    (["a", 'b"c', None, "NULL", ""], STRINGS),
    ([], STRINGS),
    *((Decimal(value), NUMERIC) for value in (0, 1, -9_999, 10_000, 2**63, -(10**40) - 7)),
]


@pytest.mark.parametrize(("value", "kind"), SAMPLES)
@pytest.mark.parametrize("form", [0, 1])
def test_a_client_reads_what_was_written(value: Any, kind: Any, form: int) -> None:
    written = encode_binary(value, kind) if form else encode_text(value)
    loader = Transformer().get_loader(kind.oid, psycopg.pq.Format(form))
    assert written is not None
    assert loader.load(written) == value


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (True, True),
        (7, 7),
        (2**40, 2**40),
        (0.25, 0.25),
        (Decimal("-12345678.000912"), Fraction("-12345678.000912")),
        (Decimal("0.0001"), Fraction("0.0001")),
        ("text", "text"),
        (date(1999, 12, 31), date(1999, 12, 31)),
        (datetime(1999, 12, 31, 23, 59, 59, 1), datetime(1999, 12, 31, 23, 59, 59, 1)),
    ],
)
@pytest.mark.parametrize("form", [PyFormat.TEXT, PyFormat.BINARY])
def test_what_a_client_writes_is_read(value: Any, read: Any, form: PyFormat) -> None:
    dumper = Transformer().get_dumper(value, form)
    assert decode(bytes(dumper.dump(value) or b""), dumper.oid, dumper.format) == read


@pytest.mark.parametrize(
    ("content", "oid", "form"),
    [
        (None, 23, 0),
        (b"x", 23, 0),
        (b"\0", 23, 1),
        (b"1e999999", 1700, 0),
        (b"nan", 701, 0),
        (struct.pack(">d", float("nan")), 701, 1),
        (struct.pack(">HhHH", 1, 30000, 0, 0) + b"\0\1", 1700, 1),
        (struct.pack(">q", 2**63 - 1), 1114, 1),
        (b"\xff", 25, 0),
        (b"1", 2278, 0),
        (b"1" * 100, 20, 0),
        (struct.pack(">iiIii", 1, 0, 25, 2**30, 1), 1009, 1),
    ],
)
def test_a_parameter_that_cannot_be_used_is_refused(content: bytes | None, oid: int, form: int) -> None:
    with pytest.raises(ParameterError, match=r"HB813|HB1"):
        decode(content, oid, form)


def test_a_value_of_another_type_than_was_announced_is_never_passed_off_as_it() -> None:
    assert fitting(3, FLOAT8) == 3.0
    assert fitting(None, INT8) is None
    assert fitting(1.5, STRING) == "1.5"
    for value, kind in ((1.5, INT8), (2**63, INT8), (True, INT8), ("1", INT8), (datetime(2026, 1, 1), DATE)):
        with pytest.raises(ParameterError, match="HB814"):
            fitting(value, kind)


def test_arrays_are_read_from_text() -> None:
    assert array_of("{}") == []
    assert array_of('{p,"f g",3}') == ["p", "f g", "3"]


def test_every_kind_of_column_has_a_type() -> None:
    assert set(KINDS) == {"boolean", "integer", "real", "text", "date", "timestamp"}
