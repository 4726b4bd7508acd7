"""Bind aggregates: noisy ones over the whole query, and exact ones within one privacy unit.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.aggregates.table import aggregate_function
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_scope import Context, NameScope, is_unit
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr, Facts, Literal, facts, finds_bounds
from hubbub.sql.nodes import AGGREGATE_NAMES, AGGREGATE_NODES, SPECIAL_AGGREGATES
from hubbub.sql.nulls import nullable
from hubbub.sql.query import Aggregate
from hubbub.sql.relations import UnitAggregate
from hubbub.sql.text import quote

#: Wider bounds come from the column type rather than from a declaration, and the noise would be useless.
MAX_BOUND = Fraction(2) ** 53
_MAX_ROWS = Fraction(2) ** 63  #: of one unit


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A parsed aggregate: its function, bound arguments, quantile level and filter."""

    node: exp.Expr
    function: str
    arguments: tuple[Expr, ...] = ()
    level: Fraction | None = None
    where: Expr | None = None


def is_aggregate(node: exp.Expr) -> bool:
    """Tell whether a node is an aggregate."""
    return (
        type(node) in AGGREGATE_NODES
        or isinstance(node, SPECIAL_AGGREGATES)
        or (isinstance(node, exp.Anonymous) and str(node.name).lower() in AGGREGATE_NAMES)
    )


def has_aggregate(node: exp.Expr) -> bool:
    """Tell whether an expression contains an aggregate."""
    return any(is_aggregate(inner) for inner in node.walk())


def bind_call(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    """Parse an aggregate and bind its arguments over rows."""
    if isinstance(node, exp.Filter):
        if not is_aggregate(node.this):
            raise ctx.error(node, "HB512", "FILTER must follow an aggregate.", "Write COUNT(*) FILTER (WHERE …).")
        call = bind_call(ctx, columns, node.this)
        where = condition(ctx, columns, node.expression.this)
        both = where if call.where is None else apply(ctx, node, "and", [call.where, where])
        return replace(call, where=both)
    if isinstance(node, exp.WithinGroup):
        return _within_group(ctx, columns, node)
    if isinstance(node, exp.CountIf):
        return AggregateCall(node, "count", where=condition(ctx, columns, node.this))
    if isinstance(node, exp.Count):
        return _count(ctx, columns, node)
    if isinstance(node, exp.Mode):
        if node.this is None:
            raise ctx.error(node, "HB512", "mode() needs an argument.", "Write mode(x).")
        return AggregateCall(node, "mode", (scalar(ctx, columns, node.this),))
    if isinstance(node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
        level = node.args.get("quantile") if isinstance(node, exp.Quantile) else node.args.get("expression")
        return _quantile(ctx, columns, node, node.this, level)
    if isinstance(node, exp.Anonymous):
        return _named(ctx, columns, node)
    function, count = AGGREGATE_NODES[type(node)]
    parts = [node.args.get(name) for name in ("this", "expression")[:count]]
    level = Fraction(1, 2) if isinstance(node, exp.Median) else None
    return AggregateCall(node, function, tuple(_value(ctx, columns, node, function, part) for part in parts), level)


def _value(ctx: Context, columns: NameScope, node: exp.Expr, function: str, part: exp.Expr | None) -> Expr:
    if part is None:
        raise ctx.error(node, "HB512", f"{quote(function)} needs an argument.", f"Write {function}(x).")
    if isinstance(part, exp.Distinct):
        raise ctx.error(
            part,
            "HB512",
            f"DISTINCT is supported only in COUNT, not in {quote(function)}.",
            "Remove DISTINCT, or use COUNT(DISTINCT x).",
        )
    value = scalar(ctx, columns, part)
    if value.kind is Kind.BOOLEAN and function in ("sum", "avg"):
        one, zero = Literal(1, Kind.INTEGER), Literal(0, Kind.INTEGER)
        return apply(
            ctx, node, "case", [value, one, apply(ctx, node, "not", [value]), zero, Literal(None, Kind.BOOLEAN)]
        )
    return value


def _count(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    counted = node.this
    if counted is None or isinstance(counted, exp.Star):
        return AggregateCall(node, "count")
    if not isinstance(counted, exp.Distinct):
        # the privacy ID is never NULL, so counting it counts rows
        return AggregateCall(node, "count", () if is_unit(ctx, columns, counted) else (scalar(ctx, columns, counted),))
    if len(counted.expressions) != 1:
        raise ctx.error(
            node,
            "HB512",
            "COUNT(DISTINCT …) takes one expression.",
            "Count the distinct values of each expression separately.",
        )
    if is_unit(ctx, columns, counted.expressions[0]):
        return AggregateCall(node, "count_units")
    return AggregateCall(node, "count_distinct", (scalar(ctx, columns, counted.expressions[0]),))


def _named(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    function, count = AGGREGATE_NAMES[str(node.name).lower()]
    arguments: Sequence[exp.Expr] = node.expressions
    if len(arguments) != count:
        raise ctx.error(node, "HB512", f"{quote(str(node.name))} takes {count} arguments.", f"Pass {count} arguments.")
    if function == "quantile":
        return _quantile(ctx, columns, node, arguments[0], arguments[1])
    return AggregateCall(node, function, tuple(_value(ctx, columns, node, function, part) for part in arguments))


def _quantile(
    ctx: Context, columns: NameScope, node: exp.Expr, argument: exp.Expr, level: exp.Expr | None
) -> AggregateCall:
    bound = scalar(ctx, columns, level) if isinstance(level, exp.Literal | exp.Placeholder | exp.Parameter) else None
    value = bound.value if isinstance(bound, Literal) else None
    if not isinstance(value, int | Fraction) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ctx.error(
            node,
            "HB512",
            "The level of a quantile must be a constant from 0 to 1.",
            "Write quantile_cont(x, 0.9). A list of levels must be a separate SELECT item.",
        )
    return AggregateCall(node, "quantile", (scalar(ctx, columns, argument),), Fraction(value))


def _within_group(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    function, terms = node.this, node.expression.expressions if isinstance(node.expression, exp.Order) else []
    fits = isinstance(function, exp.PercentileCont | exp.PercentileDisc | exp.Mode) and len(terms) == 1
    if not fits or function.args.get("expression") is not None:
        raise ctx.error(
            node,
            "HB512",
            "WITHIN GROUP must follow PERCENTILE_CONT, PERCENTILE_DISC or MODE and order by one column.",
            "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
        )
    if isinstance(function, exp.Mode):
        if function.this is not None:
            raise ctx.error(
                node,
                "HB512",
                "mode() WITHIN GROUP takes its argument from ORDER BY.",
                "Write mode() WITHIN GROUP (ORDER BY x).",
            )
        return AggregateCall(node, "mode", (scalar(ctx, columns, terms[0].this),))
    call = _quantile(ctx, columns, node, terms[0].this, function.this)
    descending = bool(terms[0].args.get("desc"))
    return replace(call, level=1 - call.level) if descending and call.level is not None else call


def split_levels(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Split a quantile with a list of levels into one per level; return any other node alone."""
    function = node
    while isinstance(function, exp.Filter | exp.WithinGroup):
        function = function.this
    for array in node.find_all(exp.Array):
        if array.parent is not function or not is_aggregate(function):
            continue
        split = []
        for i in range(len(array.expressions)):
            copied = node.copy()
            inner = next(a for a in copied.find_all(exp.Array))
            level = inner.expressions[i].copy()
            inner.replace(level)
            split.append((str(level.this)[:20], copied))
        return split
    return [("", node)]


# --- over the whole query ----------------------------------------------------------------------------------------


@dataclass
class AggregateBinder:
    """Binds the noisy aggregates of a query; an aggregate that is written twice is measured once."""

    ctx: Context
    columns: NameScope
    aggregates: list[Aggregate] = field(default_factory=list)

    def __call__(self, node: exp.Expr) -> Expr:
        """Bind an aggregate to a column of the result."""
        call = bind_call(self.ctx, self.columns, node)
        arguments = tuple(self._prepared(call, argument) for argument in call.arguments)
        wanted = Aggregate("", call.function, arguments, call.where, call.level)
        for other in self.aggregates:
            if replace(other, name="") == wanted:
                return Col(other.name, aggregate_function(other.function).kind(other))
        self.aggregates.append(replace(wanted, name=self.ctx.new_name(call.function)))
        return Col(self.aggregates[-1].name, aggregate_function(wanted.function).kind(wanted))

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
                    "Ask the data owner to declare its values, or round it into buckets: floor(x / 10).",
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


def require_bounds(ctx: Context, node: exp.Expr, function: str, argument: Expr) -> Expr:
    """Accept a number with known and useful bounds."""
    if not argument.kind.numeric:
        raise ctx.error(
            node,
            "HB508",
            f"{quote(function)} takes numbers, not {argument.kind.value} values.",
            "Use COUNT, or CAST it to a number.",
        )
    known = facts(argument).bounds
    if known is None or max(abs(known.low), abs(known.high)) > MAX_BOUND:
        if finds_bounds(argument) and not isinstance(argument, Literal):
            # the engine clamps each row to the bounds that the query finds, which are below this maximum
            whole = Bounds(-MAX_BOUND, MAX_BOUND)
            return replace(argument, facts=replace(argument.facts, bounds=whole))
        raise ctx.error(
            node,
            "HB515",
            f"{quote(function)} needs bounds, and no useful bounds are known for this expression.",
            "Clamp the expression, as in GREATEST(0, LEAST(x, 100)), or ask the data owner to declare bounds.",
        )
    return argument


# --- within one unit ---------------------------------------------------------------------------------------------

UnitFunction = Choice["count", "count_distinct", "sum", "avg", "min", "max"]
_UNIT_FUNCTIONS: dict[str, UnitFunction] = {
    "count": "count",
    "count_distinct": "count_distinct",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
}


@dataclass
class UnitAggregateBinder:
    """Binds the exact aggregates of a subquery that groups by the privacy ID column, over one unit's rows."""

    ctx: Context
    columns: NameScope
    aggregates: list[tuple[str, UnitAggregate]] = field(default_factory=list)

    def __call__(self, node: exp.Expr) -> Expr:
        """Bind an aggregate to a column of the subquery."""
        call = bind_call(self.ctx, self.columns, node)
        function = _UNIT_FUNCTIONS.get(call.function)
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
            require_bounds(self.ctx, node, function, argument)
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
        self.aggregates.append((col.name, replace(wanted, column=col)))
        return col

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
