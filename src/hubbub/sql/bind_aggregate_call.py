"""Parse calls of aggregates, with arguments that are bound over rows.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from hubbub.core.schema import Kind
from hubbub.sql.aggregates.distinct import SUFFIX
from hubbub.sql.aggregates.table import AGGREGATES
from hubbub.sql.bind_aggregated import combined
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_scope import Context, NameScope, is_unit, missing_unit
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.nodes import AGGREGATE_NAMES, AGGREGATE_NODES, SPECIAL_AGGREGATES
from hubbub.sql.text import quote

#: Aggregates of conditions: the maximum and minimum, where false is less than true.
BOOLEANS = ("bool_or", "bool_and")


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
