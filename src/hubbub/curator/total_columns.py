"""Find the running total or sliding window in a query over released counts or sums.

Tested in tests/curator/test_running_totals.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.curator.query import PreparedQuery
from hubbub.sql.after_intervals import ROW_ID
from hubbub.sql.expressions import Col
from hubbub.sql.keys import Domain
from hubbub.sql.query import After

#: Keys whose order is the same for hubbub and for the engine that adds up.
_ORDERED = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.INTEGER})
_FRAMES = frozenset(
    {("ROWS", "UNBOUNDED", "PRECEDING", "CURRENT ROW"), ("RANGE", "UNBOUNDED", "PRECEDING", "CURRENT ROW")}
)
#: Frames of more rows have no key of so many values.
_DIGITS = 6
_CLAUSES = frozenset({"expressions", "from", "from_", "order"})


@dataclass(frozen=True)
class TotalColumn:
    """The one column of a query over released counts or sums that is a running total.

    place  its place in the answer
    along  the place of its ordered key among the keys
    key    the name of that key, as it is released
    keys   for each released key, its place among the keys of the query
    width  of a sliding window, how many values it has; None: from the first value on
    """

    place: int
    along: int
    key: str
    keys: tuple[int, ...]
    width: int | None = None

    def terms(self, ranks: Sequence[int]) -> NDArray[np.int64]:
        """Give the number of values in each total."""
        most = len(ranks) if self.width is None else self.width
        return np.minimum(1 + np.asarray(ranks, dtype=np.int64), most).astype(np.int64)

    @property
    def text(self) -> str:
        """Say what it is."""
        return "running totals" if self.width is None else f"sums of the last {self.width} values"


def ranks_of(domain: Domain) -> list[int] | None:
    """Number the values of an ordered key from the smallest; NULL comes last."""
    values: list[Any] = list(domain.values)
    if domain.key.expr.kind not in _ORDERED or len(set(values)) != len(values):
        return None
    order = {value: rank for rank, value in enumerate(sorted(values))}
    return [order[value] for value in values] + ([len(values)] if domain.null else [])


def total_column(planned: PreparedQuery) -> TotalColumn | None:
    """Find the running total of a query that selects its keys and one running total, and nothing else."""
    plan, after = planned.plan, planned.plan.query.after
    query = plan.query
    if after is None or after.public or len(after.released) != 1 or planned.values is not None or planned.joint:
        return None
    limited = query.having is not None or query.limit is not None or query.top or len(query.sets) != 1
    if (
        limited
        or len(plan.cells) != 1
        or len(plan.groups) != 1
        or len(plan.measures) != 1
        or len(query.aggregates) != 1
    ):
        return None
    *names, count = [name for name, _ in after.released[0].columns]
    inner = [key.name for key in query.keys]
    selected = [(name, expr.name) for name, expr in query.select[:-1] if isinstance(expr, Col)]
    if [name for name, _ in query.select] != [*names, count] or sorted(name for _, name in selected) != sorted(inner):
        return None
    if not isinstance(query.select[-1][1], Col) or [name for name, _ in after.outputs][-1:] != [ROW_ID]:
        return None
    return _window(after, [inner.index(name) for _, name in selected], names, count)


def _window(after: After, places: Sequence[int], keys: Sequence[str], count: str) -> TotalColumn | None:
    tree = sqlglot.parse_one(after.sql, read="duckdb")
    if not isinstance(tree, exp.Select) or any(value and name not in _CLAUSES for name, value in tree.args.items()):
        return None
    source = tree.args.get("from") or tree.args.get("from_")
    if not isinstance(source, exp.From) or not isinstance(source.this, exp.Table) or source.this.args.get("joins"):
        return None
    if source.this.name != after.released[0].name or len(tree.expressions) != len(after.outputs):
        return None
    totals: list[TotalColumn] = []
    for place, each in enumerate(tree.expressions[:-1]):
        shown = each.this if isinstance(each, exp.Alias) else each
        if isinstance(shown, exp.Column) and shown.name in keys:
            continue
        key, width = _ordered_key(shown, keys, count)
        if key is None:
            return None
        totals.append(TotalColumn(place, places[keys.index(key)], key, tuple(places), width))
    return totals[0] if len(totals) == 1 else None


def _ordered_key(shown: exp.Expression, keys: Sequence[str], count: str) -> tuple[str | None, int | None]:
    """Give the key that SUM(count) OVER (PARTITION BY all other keys ORDER BY key) runs along, and the window's width.

    Every cell of the keys is released, so that a frame of n rows is one of n values of the key.
    """
    if not isinstance(shown, exp.Window) or type(shown.this) is not exp.Sum or not _is_column(shown.this.this, count):
        return None, None
    parts = shown.args.get("partition_by") or []
    order, spec = shown.args.get("order"), shown.args.get("spec")
    known = {"this", "partition_by", "order", "spec", "over"}
    if any(value and name not in known for name, value in shown.args.items()) or not isinstance(order, exp.Order):
        return None, None
    terms = order.expressions
    if len(terms) != 1 or not isinstance(terms[0], exp.Ordered) or terms[0].args.get("desc"):
        return None, None
    if terms[0].args.get("nulls_first") or not isinstance(terms[0].this, exp.Column):
        return None, None
    key = terms[0].this.name
    others = [each.name for each in parts if isinstance(each, exp.Column)]
    if len(others) != len(parts) or key not in keys or sorted([*others, key]) != sorted(keys):
        return None, None
    if spec is None:
        return key, None
    kind, *frame = (str(spec.args.get(name)) for name in ("kind", "start", "start_side", "end"))
    if spec.args.get("exclude"):
        return None, None
    if (kind, *frame) in _FRAMES:
        return key, None
    before = frame[0] if kind == "ROWS" and frame[1:] == ["PRECEDING", "CURRENT ROW"] else ""
    return (key, int(before) + 1) if before.isascii() and before.isdecimal() and len(before) < _DIGITS else (None, None)


def _is_column(expression: exp.Expression | None, name: str) -> bool:
    return isinstance(expression, exp.Column) and expression.name == name
