"""Bind aggregates: noisy ones over the whole query, and exact ones within one privacy unit.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.aggregates.distinct import SUFFIX
from hubbub.sql.aggregates.table import AGGREGATES, aggregate_function
from hubbub.sql.bind_aggregated import as_date, combined, is_since_1970, mean_within, since_1970
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_arg_extremes import ARG_EXTREMES, first_by
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_scope import Context, NameScope, is_unit, missing_unit
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr, Facts, Literal, facts, finds_bounds
from hubbub.sql.natural_bounds import MAX_BOUND, clamped, of_aggregate, useful
from hubbub.sql.nodes import AGGREGATE_NAMES, AGGREGATE_NODES, SPECIAL_AGGREGATES
from hubbub.sql.nulls import nullable
from hubbub.sql.query import Aggregate, grouping_name
from hubbub.sql.relations import Rel, UnitAggregate, UnitWindow, WindowFunction
from hubbub.sql.text import quote

_MAX_ROWS = Fraction(2) ** 63  #: of one unit
_BIT = Facts(Bounds(Fraction(0), Fraction(1)), None, Fraction(1))


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
    return any(is_aggregate(inner) for inner in node.walk(prune=_has_own_aggregates))


def _has_own_aggregates(node: exp.Expr) -> bool:
    """Tell whether the aggregates in a node are not those of the query around it."""
    return isinstance(node, exp.Query | exp.Window)


def bind_call(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    """Parse an aggregate and bind its arguments over rows."""
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(ctx, columns, node)
    function, count = AGGREGATE_NODES[type(node)]
    parts = [node.args.get(name) for name in ("this", "expression")[:count]]
    level = Fraction(1, 2) if isinstance(node, exp.Median) else None
    if isinstance(parts[0], exp.Distinct):
        function, parts = _over_distinct(ctx, node, function, parts[0])
    return AggregateCall(node, function, tuple(_value(ctx, columns, node, function, part) for part in parts), level)


def _filter(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    if not is_aggregate(node.this):
        raise ctx.error(node, "HB512", "FILTER must follow an aggregate.", "Write COUNT(*) FILTER (WHERE …).")
    call = bind_call(ctx, columns, node.this)
    where = condition(ctx, columns, node.expression.this)
    both = where if call.where is None else apply(ctx, node, "and", [call.where, where])
    return replace(call, where=both)


def _any_value(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    called = node.this if isinstance(node, exp.IgnoreNulls) else node
    if not isinstance(called, exp.AnyValue):
        raise ctx.error(node, "HB512", "IGNORE NULLS is supported in windows alone.", "Remove it: NULL does not count.")
    return AggregateCall(node, "any_value", (scalar(ctx, columns, called.this),))


def _count_if(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    return AggregateCall(node, "count", where=condition(ctx, columns, node.this))


def _approximate_count(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    return _count(ctx, columns, exp.Count(this=exp.Distinct(expressions=[node.this])))


def _mode(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    if node.this is None:
        raise ctx.error(node, "HB512", "mode() needs an argument.", "Write mode(x).")
    return AggregateCall(node, "mode", (scalar(ctx, columns, node.this),))


def _quantile_node(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    return _quantile(ctx, columns, node, node.this, node.args.get("quantile") or node.args.get("expression"))


def _over_distinct(
    ctx: Context, node: exp.Expr, function: str, distinct: exp.Expr
) -> tuple[str, list[exp.Expr | None]]:
    """Return the function over distinct values and its argument; the minimum and maximum stay the same."""
    over = function if function in ("min", "max") else function + SUFFIX
    if over not in AGGREGATES or len(distinct.expressions) != 1:
        raise ctx.error(
            node,
            "HB512",
            f"DISTINCT is not supported in {quote(function)}, or it is followed by several expressions.",
            "Use it in COUNT, SUM, AVG, VARIANCE or STDDEV of one expression.",
        )
    return over, list(distinct.expressions)


def _value(ctx: Context, columns: NameScope, node: exp.Expr, function: str, part: exp.Expr | None) -> Expr:
    if part is None:
        raise ctx.error(node, "HB512", f"{quote(function)} needs an argument.", f"Write {function}(x).")
    value = scalar(ctx, columns, part)
    if value.kind is Kind.BOOLEAN and function.removesuffix(SUFFIX) in ("sum", "avg"):
        one, zero = Literal(1, Kind.INTEGER), Literal(0, Kind.INTEGER)
        return apply(
            ctx, node, "case", [value, one, apply(ctx, node, "not", [value]), zero, Literal(None, Kind.BOOLEAN)]
        )
    return value


def _count(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall:
    counted = node.this
    if counted is None or isinstance(counted, exp.Star):
        return AggregateCall(node, "count")
    chosen = _chosen_unit(ctx, columns, node)
    if chosen is not None:
        return chosen
    if not isinstance(counted, exp.Distinct):
        mark = missing_unit(ctx, columns, counted)
        if mark is not None:
            return AggregateCall(node, "count", (mark,))
        # the privacy ID is never NULL, so counting it counts rows
        return AggregateCall(node, "count", () if is_unit(ctx, columns, counted) else (scalar(ctx, columns, counted),))
    if len(counted.expressions) > 1 or isinstance(counted.expressions[0], exp.Tuple):
        return AggregateCall(node, "count_distinct", (combined(ctx, columns, node, counted.expressions),))
    if is_unit(ctx, columns, counted.expressions[0]):
        return AggregateCall(node, "count_units")
    mark = missing_unit(ctx, columns, counted.expressions[0])
    if mark is not None:
        there = apply(ctx, node, "not", [apply(ctx, node, "is_null", [mark])])
        return AggregateCall(node, "count_units", where=there)
    return AggregateCall(node, "count_distinct", (scalar(ctx, columns, counted.expressions[0]),))


def _chosen_unit(ctx: Context, columns: NameScope, node: exp.Expr) -> AggregateCall | None:
    """Bind COUNT(CASE WHEN c THEN id END), also with DISTINCT, as the count of the privacy ID where c is true."""
    counted, distinct = node.this, isinstance(node.this, exp.Distinct)
    if distinct and len(counted.expressions) == 1:
        counted = counted.expressions[0]
    counted = counted.unnest()
    branch = counted.args["ifs"][0] if isinstance(counted, exp.Case) and len(counted.args["ifs"]) == 1 else counted
    default = counted.args.get("default" if isinstance(counted, exp.Case) else "false")
    plain = isinstance(branch, exp.If) and counted.this is (None if isinstance(counted, exp.Case) else branch.this)
    if not plain or not (default is None or isinstance(default, exp.Null)):
        return None
    if not is_unit(ctx, columns, branch.args["true"]):
        return None
    return AggregateCall(node, "count_units" if distinct else "count", where=condition(ctx, columns, branch.this))


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


_SPECIAL: dict[type[exp.Expr], Callable[[Context, NameScope, exp.Expr], AggregateCall]] = {
    exp.Filter: _filter,
    exp.WithinGroup: _within_group,
    exp.AnyValue: _any_value,
    exp.IgnoreNulls: _any_value,
    exp.CountIf: _count_if,
    exp.Count: _count,
    exp.ApproxDistinct: _approximate_count,
    exp.Mode: _mode,
    exp.Quantile: _quantile_node,
    exp.ApproxQuantile: _quantile_node,
    exp.PercentileCont: _quantile_node,
    exp.PercentileDisc: _quantile_node,
    exp.Anonymous: _named,
}


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
        if call.function in (*_BOOLEANS, *ARG_EXTREMES):
            instead = "COUNT_IF(x)" if call.function in _BOOLEANS else "the rows by value"
            raise self.ctx.error(
                node,
                "HB512",
                f"{quote(call.function)} over several people would show one person's row.",
                f"Count {'instead: ' if call.function in _BOOLEANS else ''}{instead}. Within a subquery that groups by "
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


# --- within one unit ---------------------------------------------------------------------------------------------

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
#: Aggregates of conditions: the maximum and minimum, where false is less than true.
_BOOLEANS = ("bool_or", "bool_and")


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
        if call.function in _BOOLEANS and call.arguments[0].kind is not Kind.BOOLEAN:
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
