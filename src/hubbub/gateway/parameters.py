"""The types of the parameters of a query, for clients that ask for them before they send values.

Tested in tests/gateway/test_parameters.py.
"""

from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.gateway.lexer import tokens
from hubbub.gateway.values import INT8, STRING

#: Types that mean the same as those that a column has, in a comparison.
_UNKNOWN = (0, 705)


def count(sql: str) -> int:
    """Return the highest number of a parameter in a text."""
    return max((int(token.text[1:]) for token in tokens(sql) if token.kind == "parameter"), default=0)


def types(sql: str, given: Sequence[int], columns: Mapping[str, int]) -> list[int]:
    """Return the type of each parameter: as it was given, or of the column that it is compared with, or text.

    >>> types("SELECT COUNT(*) FROM v WHERE age > $1 AND region = $2 LIMIT $3", [], {"age": 20, "region": 25})
    [20, 25, 20]
    """
    number = max(count(sql), len(given))
    known = {place: oid for place, oid in enumerate(given, 1) if oid not in _UNKNOWN}
    if number > len(known):
        for place, oid in _compared(sql, columns).items():
            known.setdefault(place, oid)
    return [known.get(place, STRING.oid) for place in range(1, number + 1)]


def _compared(sql: str, columns: Mapping[str, int]) -> dict[int, int]:
    try:
        tree = sqlglot.parse_one(sql, read="postgres")
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError):
        return {}
    compared: dict[int, int] = {}
    for node in tree.find_all(exp.Parameter):
        if not node.name.isdecimal():
            continue
        parent = node.parent
        if isinstance(parent, exp.Cast):
            oid = _CASTS.get(parent.args["to"].sql("postgres").upper())
            if oid is not None:
                compared[int(node.name)] = oid
            continue
        if isinstance(parent, exp.Limit | exp.Offset | exp.Fetch):
            compared[int(node.name)] = INT8.oid
            continue
        while isinstance(parent, exp.Paren | exp.Neg | exp.Tuple):
            parent = parent.parent
        names = [] if parent is None else [each.name.lower() for each in parent.find_all(exp.Column)]
        oids = {columns[name] for name in names if name in columns}
        if len(oids) == 1 and isinstance(parent, exp.Binary | exp.Between | exp.In):
            compared[int(node.name)] = oids.pop()
    return compared


_CASTS = {
    "INT": 23,
    "INTEGER": 23,
    "SMALLINT": 21,
    "BIGINT": 20,
    "TEXT": 25,
    "VARCHAR": 1043,
    "BOOLEAN": 16,
    "DOUBLE PRECISION": 701,
    "REAL": 700,
    "DECIMAL": 1700,
    "NUMERIC": 1700,
    "DATE": 1082,
    "TIMESTAMP": 1114,
}
