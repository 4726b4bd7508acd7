"""Types and values of PostgreSQL: the ones that answers and parameters have, as text and in binary.

Tested in tests/gateway/test_values.py.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import HubbubError, ParameterError

_DAY, _MOMENT = date(2000, 1, 1), datetime(2000, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
TEXT, BINARY = 0, 1


@dataclass(frozen=True, slots=True)
class PgType:
    """A type: its object id, its name in PostgreSQL, its size in bytes (-1: it varies), and its class in Python."""

    oid: int
    name: str
    size: int
    python: type


BOOL = PgType(16, "boolean", 1, bool)
NAME = PgType(19, "name", 64, str)
INT8 = PgType(20, "bigint", 8, int)
INT2 = PgType(21, "smallint", 2, int)
INT4 = PgType(23, "integer", 4, int)
STRING = PgType(25, "text", -1, str)
OID = PgType(26, "oid", 4, int)
FLOAT8 = PgType(701, "double precision", 8, float)
STRINGS = PgType(1009, "text[]", -1, list)
DATE = PgType(1082, "date", 4, date)
TIMESTAMP = PgType(1114, "timestamp without time zone", 8, datetime)
NUMERIC = PgType(1700, "numeric", -1, Fraction)

#: The types of the kinds of columns that releases have.
KINDS: Mapping[str, PgType] = {
    "boolean": BOOL,
    "integer": INT8,
    "real": FLOAT8,
    "text": STRING,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
#: The types of the columns of the tables in the schema `hubbub`.
CLASSES: Mapping[type, PgType] = {each.python: each for each in KINDS.values()}


def encode_text(value: Any) -> bytes | None:
    """Write a value as PostgreSQL writes it.

    >>> encode_text(True), encode_text(0.1), encode_text(["a", "b,c"])
    (b't', b'0.1', b'{a,"b,c"}')
    """
    match value:
        case None:
            return None
        case bool():
            return b"t" if value else b"f"
        case float():
            return _float(value).encode()
        case datetime():
            return str(value).encode()
        case list() | tuple():
            return ("{" + ",".join(map(_element, value)) + "}").encode(errors="replace")
    return str(value).replace("\0", "").encode(errors="replace")


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value).removesuffix(".0")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    text = (encode_text(value) or b"").decode()
    if text and text.upper() != "NULL" and not set(text) & set('{}," \\\t\n'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_BINARY: Mapping[int, Callable[[Any], bytes]] = {
    BOOL.oid: lambda value: b"\1" if value else b"\0",
    INT2.oid: struct.Struct(">h").pack,
    INT4.oid: struct.Struct(">i").pack,
    OID.oid: struct.Struct(">I").pack,
    INT8.oid: struct.Struct(">q").pack,
    FLOAT8.oid: struct.Struct(">d").pack,
    DATE.oid: lambda value: struct.pack(">i", (value - _DAY).days),
    TIMESTAMP.oid: lambda value: struct.pack(">q", (value - _MOMENT) // _MICROSECOND),
}


def encode_binary(value: Any, kind: PgType) -> bytes | None:
    """Write a value in the binary format of its type."""
    if value is None:
        return None
    if kind is STRINGS:
        return _array(value)
    if kind is NUMERIC:
        return _whole(int(value))
    write = _BINARY.get(kind.oid)
    return encode_text(value) if write is None else write(value)


def _whole(value: int) -> bytes:
    """Write a whole number as PostgreSQL's numeric: digits to the base 10,000, the highest first.

    >>> _whole(-10_002).hex(" ", 2)
    '0002 0001 4000 0000 0001 0002'
    """
    digits: list[int] = []
    rest = abs(value)
    while rest:
        rest, digit = divmod(rest, 10_000)
        digits.insert(0, digit)
    sign = 0x4000 if value < 0 else 0
    return struct.pack(f">HhHH{len(digits)}H", len(digits), max(0, len(digits) - 1), sign, 0, *digits)


def _array(value: Any) -> bytes:
    """Write a one-dimensional array of texts."""
    if not value:
        return struct.pack(">iii", 0, 0, STRING.oid)
    parts = [struct.pack(">iiiii", 1, int(None in value), STRING.oid, len(value), 1)]
    for each in value:
        item = encode_text(each)
        parts.append(b"\xff\xff\xff\xff" if item is None else struct.pack(">i", len(item)) + item)
    return b"".join(parts)


def fitting(value: Any, kind: PgType) -> Any:
    """Return a value as one of its column's type, or raise: a client reads it as what was announced."""
    if value is None or kind.python is str:
        return value if value is None or isinstance(value, str) else (encode_text(value) or b"").decode()
    if kind is FLOAT8 and isinstance(value, int | Fraction) and not isinstance(value, bool):
        return float(value)
    if kind is INT8 and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind is INT8 and isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise _misfit(kind)
    if type(value) is kind.python or kind in (STRINGS, NUMERIC):
        return value
    if kind.python is date and isinstance(value, datetime):
        raise _misfit(kind)
    if isinstance(value, kind.python) and not (kind.python is int and isinstance(value, bool)):
        return value
    raise _misfit(kind)


def _misfit(kind: PgType) -> HubbubError:
    return ParameterError(
        "HB814",
        f"The answer has a value that does not fit the announced type {kind.name}. The answer is recorded.",
        "Send the same query as a simple query, without preparing it: that is free.",
    )


#: A parameter; lists are for questions about the catalog only.
Parameter = Value | float | list[Any]


def decode(content: bytes | None, oid: int, form: int) -> Parameter:
    """Read a parameter."""
    if content is None:
        raise _invalid("NULL is not supported")
    try:
        if form == BINARY:
            return _from_binary(content, oid)
        return _from_text(content.decode(), oid)
    except (ValueError, struct.error, OverflowError):
        raise _invalid(f"it is not of the type with the object id {oid}") from None


def _invalid(why: str) -> ParameterError:
    return ParameterError(
        "HB813",
        f"A query parameter cannot be used: {why}. Nothing was charged.",
        "Use bool, int2, int4, int8, float4, float8, numeric, text, date or timestamp, and no NULL.",
    )


_INTEGERS = {21: ">h", 23: ">i", 20: ">q", 26: ">I"}
_FLOATS = {700: ">f", 701: ">d"}
_TRUTHS = dict.fromkeys(("t", "true", "1", "on", "yes", "y"), True) | dict.fromkeys(
    ("f", "false", "0", "off", "no", "n"), False
)
_TEXTS = frozenset({0, 18, 19, 25, 705, 1042, 1043})
_MOMENTS = frozenset({1114, 1184})
_ARRAYS = frozenset({1002, 1003, 1005, 1007, 1009, 1015, 1016, 1028})
_PARTS = re.compile(r'"[^"]*"|[^,"]+')


def _from_binary(content: bytes, oid: int) -> Parameter:
    if oid in _INTEGERS:
        return int(struct.unpack(_INTEGERS[oid], content)[0])
    if oid in _FLOATS:
        return _finite(struct.unpack(_FLOATS[oid], content)[0])
    if oid == BOOL.oid:
        return bool(struct.unpack(">?", content)[0])
    if oid == DATE.oid:
        return _DAY + timedelta(days=struct.unpack(">i", content)[0])
    if oid in _MOMENTS:
        return _MOMENT + timedelta(microseconds=struct.unpack(">q", content)[0])
    if oid == NUMERIC.oid:
        return _numeric(content)
    if oid in _TEXTS:
        return content.decode()
    if oid in _ARRAYS:
        return _array_values(content)
    raise _invalid(f"the type with the object id {oid} is not supported")


def _from_text(text: str, oid: int) -> Parameter:
    if oid in _INTEGERS:
        if len(text) > 20:
            raise ValueError("too long")
        return int(text)
    if oid in _FLOATS or oid == NUMERIC.oid:
        return numbers.exact(text.strip(), "parameter")
    if oid == BOOL.oid:
        if (word := text.strip().lower()) not in _TRUTHS:
            raise ValueError("not a truth value")
        return _TRUTHS[word]
    if oid == DATE.oid:
        return date.fromisoformat(text[:10])
    if oid in _MOMENTS:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    if oid in _TEXTS:
        return text
    if oid in _ARRAYS:
        return list(array_of(text))
    raise _invalid(f"the type with the object id {oid} is not supported")


def _array_values(content: bytes) -> list[Any]:
    """Read a one-dimensional array."""
    dimensions, _, element = struct.unpack(">iiI", content[:12])
    if dimensions == 0:
        return []
    count, at = struct.unpack(">i", content[12:16])[0], 20
    if dimensions != 1 or not 0 <= count <= len(content):
        raise ValueError("not an array of one dimension")
    values: list[Any] = []
    for _ in range(count):
        size = struct.unpack(">i", content[at : at + 4])[0]
        values.append(None if size < 0 else _from_binary(content[at + 4 : at + 4 + size], element))
        at += 4 + max(0, size)
    return values


def array_of(text: str) -> list[str]:
    """Read an array of texts without nesting.

    >>> array_of('{a,"b c"}')
    ['a', 'b c']
    """
    return [part[1:-1] if part[:1] == '"' else part for part in _PARTS.findall(text.strip()[1:-1])]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _numeric(content: bytes) -> Fraction:
    """Read PostgreSQL's numeric: digits to the base 10,000, and the power of the first one."""
    count, weight, sign, _ = struct.unpack(">HhHH", content[:8])
    digits = struct.unpack(f">{count}H", content[8:])
    if sign not in (0, 0x4000) or abs(weight) > 100 or count > 100 or any(digit > 9999 for digit in digits):
        raise ValueError("not a number")
    value = sum((Fraction(10_000) ** (weight - place) * digit for place, digit in enumerate(digits)), Fraction(0))
    return -value if sign else value


def typical(oid: int) -> Value | None:
    """Return a value of a type, for a query whose parameters are not known yet.

    >>> typical(20), typical(25)
    (1, '')
    """
    if oid in _INTEGERS:
        return 1
    if oid in _FLOATS or oid == NUMERIC.oid:
        return Fraction(1)
    if oid == BOOL.oid:
        return True
    if oid == DATE.oid:
        return _DAY
    return _MOMENT if oid in _MOMENTS else ""
