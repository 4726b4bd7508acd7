"""The cost of expressions over noisy results, computed before the charge from the query alone.

Each level of a nested query inserts the expressions of the level below, and the generated SQL repeats some arguments (a
divisor is first compared with zero), so a few hundred characters could expand to gigabytes. Expressions are graphs with
shared parts, and each part is counted once.

Tested in tests/sql/test_release_size.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, facts
from hubbub.sql.query import Query

#: Maximum characters of the generated SQL of all expressions over the results.
MAX_TEXT = 2_000_000
#: Maximum depth of nested function calls.
MAX_DEPTH = 120
#: Maximum bytes of a text in a result, and of each intermediate text.
MAX_WIDTH = 100_000
#: Maximum of characters × rows × variants: each result is computed for every measure moved up and down.
MAX_STEPS = 20_000_000_000

#: Assumed bytes of a text without declared values, and of a number or date as text.
_UNDECLARED, _NUMBER = 1_000, 64
_CHOICES = frozenset({"coalesce", "greatest", "least", "nullif", "case"})
_PARTS = frozenset({"substr", "left", "right", "trim", "ltrim", "rtrim", "lower", "upper"})
#: Changing case at most triples the bytes; changing it again adds nothing.
_CASE = 3
_GUARD = len(f"CASE WHEN {DUCKDB.is_nan('')} THEN NULL ELSE  END")


@dataclass(frozen=True, slots=True)
class ExpressionCost:
    """Cost of an expression: characters of its SQL, depth of calls, and bytes of its value as text.

    raw         characters without the guard against NaN
    never_nan   whether it needs no guard
    """

    length: int
    raw: int
    depth: int
    width: int
    never_nan: bool


class CostEstimator:
    """Computes the cost of the expressions of one query; `widths` has the bytes of each key."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._widths = widths
        self._known: dict[
            int, tuple[Expr, ExpressionCost]
        ] = {}  # keeps the expression alive, so that no other gets its id

    def of(self, expr: Expr) -> ExpressionCost:
        """Return the cost of an expression, counting each part once."""
        known = self._known.get(id(expr))
        if known is None:
            known = self._known[id(expr)] = (expr, self._compute(expr))
        return known[1]

    def _compute(self, expr: Expr) -> ExpressionCost:
        if isinstance(expr, Literal):
            return _leaf(expr, _literal(expr))
        if isinstance(expr, Col):
            width = self._widths.get(expr.name, _UNDECLARED if expr.kind is Kind.TEXT else _NUMBER)
            return _leaf(expr, width)
        parts = [self.of(arg) for arg in expr.args]
        marks = [f"\uf8ff{index}\uf8ff" for index in range(len(parts))]
        text = DUCKDB.spelling(expr.function)(expr, marks)
        raw, passes = len(text), render.passes_nan(expr)
        for mark, part in zip(marks, parts, strict=True):
            raw += text.count(mark) * ((part.raw if passes else part.length) - len(mark))
        never_nan = render.call_never_nan(expr, [part.never_nan for part in parts])
        cost = ExpressionCost(
            raw if never_nan else 2 * raw + _GUARD,
            raw,
            1 + max((part.depth for part in parts), default=0),
            _width(expr, [part.width for part in parts]),
            never_nan=never_nan,
        )
        if cost.length > MAX_TEXT or cost.depth > MAX_DEPTH or cost.width > MAX_WIDTH:
            raise too_expensive()  # now, because these numbers double at each level too
        return cost


def query_cost(query: Query) -> ExpressionCost:
    """Return the cost of post-processing a query's results, or raise if it is too high. Never reads the data."""
    estimator = CostEstimator({key.name: key_width(key.expr) for key in query.keys})
    expressions = [expr for _, expr in query.select] + [term.expr for term in query.order]
    expressions += [] if query.having is None else [query.having]
    costs = [estimator.of(expr) for expr in expressions]
    length = sum(cost.length for cost in costs)
    if length > MAX_TEXT:
        raise too_expensive()
    widths = [cost.width for cost in costs[: len(query.select)]]
    return ExpressionCost(length, length, max((cost.depth for cost in costs), default=0), sum(widths), never_nan=False)


def key_width(expr: Expr) -> int:
    """Bound the bytes of a key's value by its declared values."""
    if expr.kind is not Kind.TEXT:
        return _NUMBER
    known = facts(expr).values
    return _UNDECLARED if known is None else max((_bytes(str(value)) for value in known), default=0)


def too_expensive() -> QueryError:
    """Build the error for a query whose post-processing is too expensive."""
    return QueryError(
        "HB549",
        "The expressions over the results of this query are too large.",
        "Use fewer nested subqueries, or compute the outer expressions yourself from the result.",
    )


def _width(call: FunctionCall, parts: Iterable[int]) -> int:
    widths = list(parts)
    if call.kind is not Kind.TEXT:
        return _NUMBER
    if call.function == "concat":
        return sum(widths)
    if call.function in _CHOICES:
        return max(widths, default=0)
    if call.function in _PARTS:
        return widths[0]
    if call.function == "to_text":
        return max(_NUMBER, *widths)
    return sum(widths)


def _leaf(expr: Expr, width: int) -> ExpressionCost:
    length = len(render.expression(expr))
    return ExpressionCost(length, length, 1, width, never_nan=True)


def _literal(literal: Literal) -> int:
    return _bytes(literal.value) if isinstance(literal.value, str) else _NUMBER


def _bytes(text: str) -> int:
    """Bound the bytes of a text in JSON, where a control character takes six."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return len(text)
    return 6 * _CASE * len(text)
