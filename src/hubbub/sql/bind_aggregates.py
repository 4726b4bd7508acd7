"""Bind the noisy aggregates over the whole query.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.aggregates.distinct import SUFFIX
from hubbub.sql.aggregates.table import aggregate_function
from hubbub.sql.bind_aggregate_call import BOOLEANS, AggregateCall, bind_call
from hubbub.sql.bind_aggregated import as_date, is_since_1970, mean_within, since_1970
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_arg_extremes import ARG_EXTREMES
from hubbub.sql.bind_expr import scalar
from hubbub.sql.bind_scope import Context, NameScope
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr, Facts, Literal, facts, finds_bounds
from hubbub.sql.natural_bounds import MAX_BOUND, clamped, useful
from hubbub.sql.query import Aggregate, grouping_name
from hubbub.sql.text import quote

_BIT = Facts(Bounds(Fraction(0), Fraction(1)), None, Fraction(1))


@dataclass
class AggregateBinder:
    """Binds the noisy aggregates of a query; an aggregate that is written twice is measured once."""

    ctx: Context
    columns: NameScope
    keys: Mapping[Expr, str] = field(default_factory=dict)  #: the keys of GROUP BY and their names
    aggregates: list[Aggregate] = field(default_factory=list)
    shared: bool = False  #: whether each row has two owners

    def names(self) -> list[tuple[str, object]]:
        """List the names of what was bound."""
        grouping = [(grouping_name(name), None) for name in self.keys.values()]
        return [*grouping, *((aggregate.name, aggregate) for aggregate in self.aggregates)]

    def __call__(self, node: exp.Expr) -> Expr:
        """Bind an aggregate to a column of the result."""
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self._grouping(node)
        call = bind_call(self.ctx, self.columns, node)
        if call.function == "any_value":
            raise self.ctx.error(
                node,
                "HB512",
                "ANY_VALUE would show the value of one row.",
                "Use MODE(x) for the most frequent value, or MIN(x) or MAX(x). Add a value that is the same for all "
                "rows of a group to GROUP BY.",
            )
        if call.function in (*BOOLEANS, *ARG_EXTREMES):
            instead = "COUNT_IF(x)" if call.function in BOOLEANS else "the rows by value"
            raise self.ctx.error(
                node,
                "HB512",
                f"{quote(call.function)} over several people would show one person's row.",
                f"Count {'instead: ' if call.function in BOOLEANS else ''}{instead}. Within a subquery that groups by "
                "the privacy ID column, it is supported.",
            )
        if call.function in ("min", "max", "quantile") and call.arguments[0].kind in (Kind.DATE, Kind.TIMESTAMP):
            return self._of_dates(node, call)
        return self._quotient(node, call) if self.shared and call.function == "avg" else self._aggregate(call)

    def _quotient(self, node: exp.Expr, call: AggregateCall) -> Expr:
        """Bind AVG of rows with two owners, which are only counted and added up, as low + SUM(x - low) / COUNT(x)."""
        x = self._prepared(call, call.arguments[0])
        bounds = facts(x).bounds
        if bounds is None:
            raise AssertionError("an average has bounds")
        shifted = x if bounds.low >= 0 else apply(self.ctx, node, "sub", [x, Literal(bounds.low, Kind.REAL)])
        total = self._aggregate(replace(call, function="sum", arguments=(shifted,)))
        count = self._aggregate(replace(call, function="count", arguments=(x,)))
        return mean_within(self.ctx, node, total, count, bounds)

    def _of_dates(self, node: exp.Expr, call: AggregateCall) -> Expr:
        """Bind an extreme or a quantile of dates: of the days or seconds since 1970, which are a date again later."""
        (date,) = call.arguments
        number = self._aggregate(replace(call, arguments=(since_1970(self.ctx, node, date),)))
        return as_date(self.ctx, node, number, date.kind)

    def _aggregate(self, call: AggregateCall) -> Expr:
        arguments = tuple(self._prepared(call, argument) for argument in call.arguments)
        wanted = Aggregate("", call.function, arguments, call.where, call.level)
        for other in self.aggregates:
            if replace(other, name="") == wanted:
                return Col(other.name, aggregate_function(other.function).kind(other))
        self.aggregates.append(replace(wanted, name=self.ctx.new_name(call.function)))
        return Col(self.aggregates[-1].name, aggregate_function(wanted.function).kind(wanted))

    def _grouping(self, node: exp.Expr) -> Expr:
        """Bind GROUPING(a, b, …): a number whose bits say which keys the row's grouping set lacks."""
        parts = node.expressions
        bound = [scalar(self.ctx, self.columns, part) for part in parts]
        if not parts or any(expr not in self.keys for expr in bound):
            raise self.ctx.error(
                node, "HB512", "GROUPING takes expressions of GROUP BY.", "Write the expression as in GROUP BY."
            )
        bits = [Col(grouping_name(self.keys[expr]), Kind.INTEGER, _BIT) for expr in bound]
        number: Expr = bits[0]
        for bit in bits[1:]:
            doubled = apply(self.ctx, node, "mul", [number, Literal(2, Kind.INTEGER)])
            number = apply(self.ctx, node, "add", [doubled, bit])
        return number

    def _prepared(self, call: AggregateCall, argument: Expr) -> Expr:
        """Check that an argument has what its aggregate needs: bounds for numbers, a finite list for a mode."""
        needed = aggregate_function(call.function).argument
        conditions = self.ctx.conditions.with_condition(call.where)
        if needed == "any":
            return conditions.bounded(with_values(argument))
        if needed == "listed":
            listed = conditions.listed(argument)
            if facts(listed).values is None:
                raise self.ctx.error(
                    call.node,
                    "HB515",
                    f"{call.function} needs a finite list of values, and none is declared for this expression.",
                    "Ask for the largest group: SELECT x, COUNT(*) FROM … GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1. "
                    "Or round it into buckets: floor(x / 10).",
                )
            if not facts(listed).values:
                raise self.ctx.error(
                    call.node,
                    "HB569",
                    f"The conditions of this query exclude every value from which {call.function} could choose.",
                    "Change the condition. A value that is not in the declared list is read as NULL.",
                )
            return listed
        return require_bounds(self.ctx, call.node, call.function, conditions.bounded(argument))


def _written(node: exp.Expr, function: str) -> str:
    return "median" if isinstance(node, exp.Median) else function


def require_bounds(ctx: Context, node: exp.Expr, function: str, argument: Expr) -> Expr:
    """Accept a number with known and useful bounds."""
    function = function.removesuffix(SUFFIX)
    if not argument.kind.numeric:
        dated = argument.kind in (Kind.DATE, Kind.TIMESTAMP)
        raise ctx.error(
            node,
            "HB508",
            f"{quote(function)} takes numbers, not {argument.kind.value} values.",
            "Use MEDIAN, or count days: DATE_DIFF('day', DATE '2024-01-01', x)."
            if dated
            else "Use COUNT, or CAST it to a number.",
        )
    argument = argument if useful(facts(argument).bounds) else clamped(ctx.naturals, argument)
    if not useful(facts(argument).bounds):
        if finds_bounds(argument) and not isinstance(argument, Literal):
            # the engine clamps each row to the bounds that the query finds, which are below this maximum
            whole = Bounds(-MAX_BOUND, MAX_BOUND)
            return replace(argument, facts=replace(argument.facts, bounds=whole))
        raise ctx.error(
            node,
            "HB515",
            f"{quote(_written(node, function))} needs bounds, and no useful bounds are known for this expression.",
            "Limit the dates, as in WHERE x BETWEEN DATE '2020-01-01' AND DATE '2024-12-31'."
            if is_since_1970(argument)
            else "Write WHERE x BETWEEN 0 AND 100, or GREATEST(0, LEAST(x, 100)), in which NULL counts as 100. The "
            "data owner can declare bounds instead.",
        )
    return argument
