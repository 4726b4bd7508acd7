"""Bind exact aggregates within one privacy unit.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.bind_aggregate_call import BOOLEANS, AggregateCall, bind_call
from hubbub.sql.bind_aggregates import require_bounds
from hubbub.sql.bind_arg_extremes import ARG_EXTREMES, first_by
from hubbub.sql.bind_scope import Context, NameScope
from hubbub.sql.expressions import Col, Expr, Facts, facts
from hubbub.sql.natural_bounds import of_aggregate
from hubbub.sql.nulls import nullable
from hubbub.sql.relations import Rel, UnitAggregate, UnitWindow, WindowFunction
from hubbub.sql.text import quote

_MAX_ROWS = Fraction(2) ** 63  #: of one unit

UnitFunction = Choice["count", "count_distinct", "sum", "avg", "min", "max"]
UNIT_FUNCTIONS: dict[str, UnitFunction] = {
    "count": "count",
    "count_distinct": "count_distinct",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
    "bool_or": "max",
    "bool_and": "min",
    "any_value": "min",  # any of them will do, and the least is the same on every engine
}


@dataclass
class UnitAggregateBinder:
    """Binds the exact aggregates of a subquery that groups by the privacy ID column, over one unit's rows."""

    ctx: Context
    columns: NameScope
    rel: Rel | None = None  #: the rows of each unit
    aggregates: list[tuple[str, UnitAggregate]] = field(default_factory=list)
    firsts: list[tuple[str, WindowFunction]] = field(default_factory=list)  #: windows that the aggregates read

    def rows(self, rel: Rel, keys: Sequence[Expr]) -> Rel:
        """Return the rows with what the aggregates read, given the keys by which they are grouped."""
        firsts = tuple((name, replace(first, partition=tuple(keys))) for name, first in self.firsts)
        return UnitWindow(rel, firsts) if firsts else rel

    def __call__(self, node: exp.Expr) -> Expr:
        """Bind an aggregate to a column of the subquery."""
        call = bind_call(self.ctx, self.columns, node)
        if call.function in ARG_EXTREMES:
            call = self._first(call)
        function = UNIT_FUNCTIONS.get(call.function)
        if call.function in BOOLEANS and call.arguments[0].kind is not Kind.BOOLEAN:
            raise self.ctx.error(
                node, "HB508", f"{quote(call.function)} takes a condition.", "Add a comparison, such as x > 0."
            )
        if function is None:
            raise self.ctx.error(
                node,
                "HB512",
                f"{quote(call.function)} is not supported in a subquery that groups by the privacy ID column.",
                "Use COUNT, SUM, AVG, MIN or MAX there.",
            )
        conditions = self.ctx.conditions.with_condition(call.where)
        argument = conditions.bounded(call.arguments[0]) if call.arguments else None
        if function in ("sum", "avg") and argument is not None:
            argument = require_bounds(self.ctx, node, function, argument)
        kind, result = self._result(function, argument)
        if argument is not None and not function.startswith("count"):
            # an aggregate of no values is NULL
            result = replace(result, null=call.where is not None or nullable(conditions.shadow(argument)))
        wanted = UnitAggregate(function, argument, call.where, Col("", kind, result))
        for name, other in self.aggregates:
            if replace(other, column=replace(other.column, name="")) == wanted:
                return replace(wanted.column, name=name)
        weight = 1 + (0 if argument is None else self.ctx.check_size(argument, node))
        col = self.ctx.new_column(function, wanted.column.kind, wanted.column.facts, weight)
        bounds = of_aggregate(function, argument, self.rel)
        if bounds is not None:
            self.ctx.naturals[col.name] = bounds
        self.aggregates.append((col.name, replace(wanted, column=col)))
        return col

    def _first(self, call: AggregateCall) -> AggregateCall:
        """Return the minimum of a window that gives all rows of a group the value at an extreme."""
        conditions = self.ctx.conditions.with_condition(call.where)
        wanted = first_by(self.ctx, conditions, call.node, call.function, call.arguments, call.where)
        for _, other in self.firsts:
            if replace(other, column=wanted.column) == wanted:
                return AggregateCall(call.node, "min", (other.column,))
        self.firsts.append((wanted.column.name, wanted))
        return AggregateCall(call.node, "min", (wanted.column,))

    @staticmethod
    def _result(function: str, argument: Expr | None) -> tuple[Kind, Facts]:
        if function.startswith("count") or argument is None:
            return Kind.INTEGER, Facts(Bounds(Fraction(0), _MAX_ROWS), None, Fraction(1))
        known = facts(argument)
        if function == "sum" and known.bounds is not None:
            low, high = min(known.bounds.low, Fraction(0)) * _MAX_ROWS, max(known.bounds.high, Fraction(0)) * _MAX_ROWS
            return argument.kind, Facts(Bounds(low, high), None, known.step)
        if function == "avg":
            return Kind.REAL, Facts(known.bounds)
        return argument.kind, known
