"""How much work the expressions over released answers are, told before the charge from the query alone.

Each level of a nested query puts the expressions of the level below into its own, and the rendered text repeats some
arguments (a divisor is compared with zero first, then divided by). So a few hundred characters can stand for gigabytes.
An expression here is a graph that shares its parts; every part is weighed once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hubbub.core.schema import Kind
from hubbub.errors import QueryError
from hubbub.sql import render
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.expressions import Call, Col, Expr, Literal, facts
from hubbub.sql.query import Query

#: Characters of rendered text, of all expressions over the answers together.
MOST_TEXT = 2_000_000
#: Calls inside each other.
MOST_DEPTH = 120
#: Bytes of a text in an answer, and of each text on the way to it.
MOST_WIDTH = 100_000
#: Characters times rows times variants that are computed: each answer is computed for every measure moved up and down.
MOST_STEPS = 20_000_000_000

#: Bytes of a text whose values nobody declared, and of a number or date as text.
_UNDECLARED, _WRITTEN = 1_000, 64
_CHOICES = frozenset({"coalesce", "greatest", "least", "nullif", "case"})
_PARTS = frozenset({"substr", "left", "right", "trim", "ltrim", "rtrim", "lower", "upper"})
#: Upper or lower case has three times the bytes at most, and no more when it is changed again.
_CASE = 3
_GUARD = len(f"CASE WHEN {DUCKDB.is_nan('')} THEN NULL ELSE  END")


@dataclass(frozen=True, slots=True)
class Weight:
    """Of one expression: characters when rendered, calls inside each other, bytes of its value as text.

    raw, never_nan   characters without the guard against NaN, and whether it needs none
    """

    length: int
    raw: int
    depth: int
    width: int
    never_nan: bool


class Weights:
    """Weighs the expressions of one query; `widths` has the bytes of each key."""

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._widths = widths
        self._known: dict[int, tuple[Expr, Weight]] = {}  # with the part itself, so that no other gets its number

    def of(self, expr: Expr) -> Weight:
        """Weigh an expression, each part of it once."""
        known = self._known.get(id(expr))
        if known is None:
            known = self._known[id(expr)] = (expr, self._weighed(expr))
        return known[1]

    def _weighed(self, expr: Expr) -> Weight:
        if isinstance(expr, Literal):
            return _leaf(expr, _literal(expr))
        if isinstance(expr, Col):
            width = self._widths.get(expr.name, _UNDECLARED if expr.kind is Kind.TEXT else _WRITTEN)
            return _leaf(expr, width)
        parts = [self.of(arg) for arg in expr.args]
        marks = [f"\uf8ff{place}\uf8ff" for place in range(len(parts))]
        text = DUCKDB.spelling(expr.function)(expr, marks)
        raw, passes = len(text), render.passes_nan(expr)
        for mark, part in zip(marks, parts, strict=True):
            raw += text.count(mark) * ((part.raw if passes else part.length) - len(mark))
        never_nan = render.call_never_nan(expr, [part.never_nan for part in parts])
        found = Weight(
            raw if never_nan else 2 * raw + _GUARD,
            raw,
            1 + max((part.depth for part in parts), default=0),
            _width(expr, [part.width for part in parts]),
            never_nan=never_nan,
        )
        if found.length > MOST_TEXT or found.depth > MOST_DEPTH or found.width > MOST_WIDTH:
            raise too_heavy()  # at once: numbers that double at each level would grow too
        return found


def weigh(query: Query) -> Weight:
    """Weigh all that a query makes of its answers, or refuse it where that is too much: free, and blind to the data."""
    weights = Weights({key.name: key_width(key.expr) for key in query.keys})
    expressions = [expr for _, expr in query.select] + [term.expr for term in query.order]
    expressions += [] if query.having is None else [query.having]
    found = [weights.of(expr) for expr in expressions]
    length = sum(each.length for each in found)
    if length > MOST_TEXT:
        raise too_heavy()
    shown = [each.width for each in found[: len(query.select)]]
    return Weight(length, length, max((each.depth for each in found), default=0), sum(shown), never_nan=False)


def key_width(expr: Expr) -> int:
    """Bound the bytes of a key's value, by its declared values."""
    known = facts(expr).values
    if expr.kind is not Kind.TEXT:
        return _WRITTEN
    return _UNDECLARED if known is None else max((_bytes(str(value)) for value in known), default=0)


def too_heavy() -> QueryError:
    """Make the refusal of a query whose answers would be too much work."""
    return QueryError(
        "HB549",
        "What this query computes from its answers is too large.",
        "Use fewer nested sub-queries, or compute outer expressions from the answer yourself.",
    )


def _width(call: Call, parts: Iterable[int]) -> int:
    widths = list(parts)
    if call.kind is not Kind.TEXT:
        return _WRITTEN
    if call.function == "concat":
        return sum(widths)
    if call.function in _CHOICES:
        return max(widths, default=0)
    if call.function in _PARTS:
        return widths[0]
    if call.function == "to_text":
        return max(_WRITTEN, *widths)
    return sum(widths)


def _leaf(expr: Expr, width: int) -> Weight:
    length = len(render.expression(expr))
    return Weight(length, length, 1, width, never_nan=True)


def _literal(literal: Literal) -> int:
    return _bytes(literal.value) if isinstance(literal.value, str) else _WRITTEN


def _bytes(text: str) -> int:
    """Bound the bytes of a text in JSON: a control character takes six."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return len(text)
    return 6 * _CASE * len(text)
