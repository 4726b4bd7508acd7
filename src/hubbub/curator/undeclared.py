"""Warnings about constants that a column never equals, because they are not among its declared values.

Such a comparison is usually a misspelling, and its count is 0. Everything comes from the plan, so it reveals nothing.

Tested in tests/curator/test_undeclared.py.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from hubbub.core.schema import Column, Kind, Value
from hubbub.curator import enforced
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.query import Query
from hubbub.sql.relations import scans


def never_equal(query: Query) -> tuple[str, ...]:
    """Say which constants of a query are compared with a column of a private table that cannot have this value."""
    declared = {
        column.name: (source, values)
        for scan in scans(query.relation)
        if scan.table.unit is not None
        for column, source in zip(scan.columns, scan.sources, strict=True)
        for values in [_declared(scan.table.column(source))]
        if values
    }
    found = dict[str, None]()
    for column, constant in (pair for expr in enforced.expressions(query) for pair in _compared(expr)):
        source, values = declared.get(column.name, ("", ()))
        if values and constant is not None and constant not in values:
            found[_sentence(source, constant, values)] = None
    return tuple(found)


def _declared(column: Column | None) -> tuple[Value, ...]:
    if column is None or column.values is None or column.kind not in (Kind.TEXT, Kind.INTEGER):
        return ()
    return column.values if column.other is None else (*column.values, column.other)


def _compared(expr: Expr) -> Iterator[tuple[Col, Value | None]]:
    if not isinstance(expr, FunctionCall):
        return
    columns = [each for each in expr.args if isinstance(each, Col)]
    if expr.function in ("eq", "ne", "in") and len(columns) == 1:
        yield from ((columns[0], each.value) for each in expr.args if isinstance(each, Literal))
    for each in expr.args:
        yield from _compared(each)


def _sentence(column: str, constant: Value, values: tuple[Value, ...]) -> str:
    by_text = {str(value): value for value in values}
    by_lower = {text.lower(): text for text in by_text}
    near = get_close_matches(str(constant).lower(), by_lower, n=1) if isinstance(constant, str) else []
    hint = f" Did you mean {_shown(by_text[by_lower[near[0]]])}?" if near else ""
    return f"{column} is never {_shown(constant)}, which is not among its declared values.{hint}"


def _shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
