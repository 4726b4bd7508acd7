"""Window functions that pass over NULL: written as others, because not every engine has IGNORE NULLS.

Tested in tests/sql/test_windows.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.bind_apply import NULL, apply
from hubbub.sql.bind_scope import Context
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, facts
from hubbub.sql.relations import SortTerm, WindowFunction

#: Frames of rows: up to the current one, and all.
_UP_TO, _ALL = (None, 0), (None, None)


@dataclass(frozen=True)
class NullsIgnored:
    """Writes FIRST_VALUE, LAST_VALUE, LAG and LEAD with IGNORE NULLS, over rows in one partition and order.

    Theorem (Values other than NULL). In each partition, each function has the value that SQL defines for it.
    Proof    Let c be the number of values up to a row. Rows with one c ≥ 1 are one with a value and those after it
             without, so their maximum is the last value up to each of them; rows that tie in the order share one c,
             and any of their values may be the last. Where c ≥ 1, the first value up to a row is the first of all rows
             in the order in which NULL comes last. The value before a row is the last value up to the row before it,
             and the value after it is that before it in the opposite order.
    Assumes  each function is partitioned by the unit, so that "Windows within a unit" holds of each.
    Charges  nothing by itself.
    Tested   tests/sql/test_windows.py::test_values_are_those_of_the_engine
             tests/sql/test_windows.py::test_values_after_a_null_are_noticed

    add   adds a window function to those of the query, and returns its column
    """

    ctx: Context
    node: exp.Expr
    partition: tuple[Expr, ...]
    order: tuple[SortTerm, ...]
    add: Callable[[WindowFunction], Col]

    def column(self, made: WindowFunction, frame: tuple[int | None, int | None] | None, peers: str) -> Col | None:
        """Return the column of a function; None if its form is not supported."""
        if made.argument is None or made.default is not None or made.number != 1:
            return None
        if made.function in ("lag", "lead"):
            backwards = made.function == "lead"
            last = self._last(made, _UP_TO, backwards=backwards)
            before = replace(made, function="lag", argument=last, partition=self.partition)
            return self.add(replace(before, order=self._order(backwards=backwards)))
        if made.function not in ("first_value", "last_value"):
            return None
        if frame == _ALL or (frame is None and peers == "all"):
            return self._first(made, backwards=made.function == "last_value")
        if frame not in (None, _UP_TO) or (frame is None and peers != "preceding"):
            return None
        if made.function == "last_value":
            return self._last(made, frame, backwards=False)
        first, count = self._first(made, backwards=False), self._count(made, frame, backwards=False)
        return self._greatest(made, self._where_any(count, first), count)

    def _order(self, *, backwards: bool) -> tuple[SortTerm, ...]:
        if not backwards:
            return self.order
        return tuple(SortTerm(t.expr, not t.descending, not t.nulls_first) for t in self.order)

    def _count(self, made: WindowFunction, frame: tuple[int | None, int | None] | None, *, backwards: bool) -> Col:
        number = Col("", Kind.INTEGER, facts(Literal(0, Kind.INTEGER)))
        number = replace(number, facts=replace(number.facts, bounds=None, values=None, step=None))
        order = self._order(backwards=backwards)
        return self.add(WindowFunction("count", made.argument, self.partition, order, number, frame))

    def _last(self, made: WindowFunction, frame: tuple[int | None, int | None] | None, *, backwards: bool) -> Col:
        count = self._count(made, frame, backwards=backwards)
        return self._greatest(made, made.argument, count)

    def _greatest(self, made: WindowFunction, value: Expr | None, count: Col) -> Col:
        return self.add(WindowFunction("max", value, (*self.partition, count), (), made.column))

    def _first(self, made: WindowFunction, *, backwards: bool) -> Col:
        missing = apply(self.ctx, self.node, "is_null", [made.argument or NULL])
        order = (SortTerm(missing, descending=False, nulls_first=False), *self._order(backwards=backwards))
        return self.add(WindowFunction("first_value", made.argument, self.partition, order, made.column, _ALL))

    def _where_any(self, count: Col, value: Col) -> Expr:
        some = apply(self.ctx, self.node, "gt", [count, Literal(0, Kind.INTEGER)])
        chosen = apply(self.ctx, self.node, "case", [some, value, NULL])
        return replace(chosen, facts=value.facts) if isinstance(chosen, FunctionCall) else chosen
