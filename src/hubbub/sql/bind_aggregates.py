"""Aggregates: what is asked of the crowd (noisy), and what is computed inside one unit (exact)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal as Choice

from sqlglot import exp

from hubbub.core.schema import Bounds, Kind
from hubbub.sql.bind_apply import apply
from hubbub.sql.bind_expr import condition, scalar
from hubbub.sql.bind_scope import Context, Scope, is_unit
from hubbub.sql.domains import with_values
from hubbub.sql.expressions import Col, Expr, Facts, Literal, facts
from hubbub.sql.nodes import AGGREGATES, NAMED_AGGREGATES, ODD_AGGREGATES
from hubbub.sql.parse import quote
from hubbub.sql.query import Aggregate
from hubbub.sql.relations import Inner

#: Wider than this no noise is small: the bounds are those of the type, not of the subject.
WIDEST = Fraction(2) ** 53
_ROWS = Fraction(2) ** 63  #: no unit has more rows


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate as read: its name, arguments, level and filter; `units` counts the owners."""

    node: exp.Expr
    function: str
    arguments: tuple[Expr, ...] = ()
    level: Fraction | None = None
    where: Expr | None = None


def is_aggregate(node: exp.Expr) -> bool:
    """Say whether a node is an aggregate."""
    return (
        type(node) in AGGREGATES
        or isinstance(node, ODD_AGGREGATES)
        or (isinstance(node, exp.Anonymous) and str(node.name).lower() in NAMED_AGGREGATES)
    )


def has_aggregate(node: exp.Expr) -> bool:
    """Say whether an aggregate is anywhere in an expression."""
    return any(is_aggregate(inner) for inner in node.walk())


def read(ctx: Context, columns: Scope, node: exp.Expr) -> Asked:
    """Read an aggregate, its arguments bound over rows."""
    if isinstance(node, exp.Filter):
        if not is_aggregate(node.this):
            raise ctx.refusal(node, "HB512", "FILTER stands after an aggregate.", "Write COUNT(*) FILTER (WHERE …).")
        asked = read(ctx, columns, node.this)
        where = condition(ctx, columns, node.expression.this)
        both = where if asked.where is None else apply(ctx, node, "and", [asked.where, where])
        return replace(asked, where=both)
    if isinstance(node, exp.WithinGroup):
        return _within_group(ctx, columns, node)
    if isinstance(node, exp.CountIf):
        return Asked(node, "count", where=condition(ctx, columns, node.this))
    if isinstance(node, exp.Count):
        return _count(ctx, columns, node)
    if isinstance(node, exp.Mode):
        if node.this is None:
            raise ctx.refusal(node, "HB512", "mode() needs a column.", "Write mode(x).")
        return Asked(node, "mode", (scalar(ctx, columns, node.this),))
    if isinstance(node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
        level = node.args.get("quantile") if isinstance(node, exp.Quantile) else node.args.get("expression")
        return _quantile(ctx, columns, node, node.this, level)
    if isinstance(node, exp.Anonymous):
        return _named(ctx, columns, node)
    function, count = AGGREGATES[type(node)]
    parts = [node.args.get(place) for place in ("this", "expression")[:count]]
    level = Fraction(1, 2) if isinstance(node, exp.Median) else None
    return Asked(node, function, tuple(_value(ctx, columns, node, function, part) for part in parts), level)


def _value(ctx: Context, columns: Scope, node: exp.Expr, function: str, part: exp.Expr | None) -> Expr:
    if part is None:
        raise ctx.refusal(node, "HB512", f"{quote(function)} needs a column.", "Name what it is over.")
    if isinstance(part, exp.Distinct):
        raise ctx.refusal(
            part,
            "HB512",
            f"DISTINCT inside {quote(function)} is not answered, only inside COUNT.",
            "Count distinct values, or leave DISTINCT out.",
        )
    found = scalar(ctx, columns, part)
    if found.kind is Kind.BOOLEAN and function in ("sum", "avg"):
        one, zero = Literal(1, Kind.INTEGER), Literal(0, Kind.INTEGER)
        return apply(
            ctx, node, "case", [found, one, apply(ctx, node, "not", [found]), zero, Literal(None, Kind.BOOLEAN)]
        )
    return found


def _count(ctx: Context, columns: Scope, node: exp.Expr) -> Asked:
    counted = node.this
    if counted is None or isinstance(counted, exp.Star):
        return Asked(node, "count")
    if not isinstance(counted, exp.Distinct):
        # the unit is never NULL, so to count it is to count rows
        return (
            Asked(node, "count")
            if is_unit(ctx, columns, counted)
            else Asked(node, "count", (scalar(ctx, columns, counted),))
        )
    if len(counted.expressions) != 1:
        raise ctx.refusal(
            node,
            "HB512",
            "COUNT(DISTINCT …) is answered over one expression.",
            "Count distinct values of each by itself.",
        )
    if is_unit(ctx, columns, counted.expressions[0]):
        return Asked(node, "count_units")
    return Asked(node, "count_distinct", (scalar(ctx, columns, counted.expressions[0]),))


def _named(ctx: Context, columns: Scope, node: exp.Expr) -> Asked:
    function, count = NAMED_AGGREGATES[str(node.name).lower()]
    given: Sequence[exp.Expr] = node.expressions
    if len(given) != count:
        raise ctx.refusal(node, "HB512", f"{quote(str(node.name))} takes {count} arguments.", "Check its spelling.")
    if function == "quantile":
        return _quantile(ctx, columns, node, given[0], given[1])
    return Asked(node, function, tuple(_value(ctx, columns, node, function, part) for part in given))


def _quantile(ctx: Context, columns: Scope, node: exp.Expr, of: exp.Expr, level: exp.Expr | None) -> Asked:
    found = scalar(ctx, columns, level) if isinstance(level, exp.Literal | exp.Placeholder | exp.Parameter) else None
    share = found.value if isinstance(found, Literal) else None
    if not isinstance(share, int | Fraction) or isinstance(share, bool) or not 0 <= share <= 1:
        raise ctx.refusal(
            node,
            "HB512",
            "The level of a quantile is a constant from 0 to 1.",
            "Write quantile_cont(x, 0.9); for several levels, give the list as a SELECT item of its own.",
        )
    return Asked(node, "quantile", (scalar(ctx, columns, of),), Fraction(share))


def _within_group(ctx: Context, columns: Scope, node: exp.Expr) -> Asked:
    function, terms = node.this, node.expression.expressions if isinstance(node.expression, exp.Order) else []
    fits = isinstance(function, exp.PercentileCont | exp.PercentileDisc | exp.Mode) and len(terms) == 1
    if not fits or function.args.get("expression") is not None:
        raise ctx.refusal(
            node,
            "HB512",
            "WITHIN GROUP stands after PERCENTILE_CONT, PERCENTILE_DISC or MODE, ordered by one column.",
            "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
        )
    if isinstance(function, exp.Mode):
        if function.this is not None:
            raise ctx.refusal(
                node, "HB512", "mode() takes its column from ORDER BY.", "Write mode() WITHIN GROUP (ORDER BY x)."
            )
        return Asked(node, "mode", (scalar(ctx, columns, terms[0].this),))
    asked = _quantile(ctx, columns, node, terms[0].this, function.this)
    turned = bool(terms[0].args.get("desc")) and asked.level is not None
    return replace(asked, level=1 - asked.level) if turned and asked.level is not None else asked


def levels(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """Split several quantiles at once (a list of levels) into one for each level; else give the node alone."""
    bare = node
    while isinstance(bare, exp.Filter | exp.WithinGroup):
        bare = bare.this
    for array in node.find_all(exp.Array):
        if array.parent is not bare or not is_aggregate(bare):
            continue
        found = []
        for i in range(len(array.expressions)):
            copied = node.copy()
            inner = next(a for a in copied.find_all(exp.Array))
            level = inner.expressions[i].copy()
            inner.replace(level)
            found.append((str(level.this)[:20], copied))
        return found
    return [("", node)]


# --- over the crowd ----------------------------------------------------------------------------------------------


@dataclass
class Crowd:
    """The aggregates of the whole query; one that is written twice is asked once."""

    ctx: Context
    columns: Scope
    asked: list[Aggregate] = field(default_factory=list)

    def __call__(self, node: exp.Expr) -> Expr:
        """Bind an aggregate to a column of the answer."""
        found = read(self.ctx, self.columns, node)
        arguments = tuple(self._prepared(found, argument) for argument in found.arguments)
        wanted = Aggregate("", found.function, arguments, found.where, found.level)
        for other in self.asked:
            if replace(other, name="") == wanted:
                return Col(other.name, self._kind(other))
        self.asked.append(replace(wanted, name=self.ctx.name(found.function)))
        return Col(self.asked[-1].name, self._kind(wanted))

    def _prepared(self, asked: Asked, argument: Expr) -> Expr:
        """Check that an argument has what its aggregate needs: bounds for numbers, a finite list for a mode."""
        if asked.function in ("count", "count_distinct"):
            return with_values(argument)
        if asked.function == "mode":
            listed = with_values(argument)
            if facts(listed).values is None:
                raise self.ctx.refusal(
                    asked.node,
                    "HB515",
                    "The mode is chosen from a list of values, and none is declared for this.",
                    "Ask the owner to declare its values, or round it into buckets: mode(floor(x / 10)).",
                )
            return listed
        return bounded(self.ctx, asked.node, asked.function, argument)

    def _kind(self, aggregate: Aggregate) -> Kind:
        if aggregate.function.startswith("count"):
            return Kind.INTEGER
        if aggregate.function in ("sum", "min", "max", "mode"):
            return aggregate.arguments[0].kind
        return Kind.REAL


def bounded(ctx: Context, node: exp.Expr, function: str, argument: Expr) -> Expr:
    """Accept a number whose bounds are known and of use."""
    if not argument.kind.numeric:
        raise ctx.refusal(
            node, "HB508", f"{quote(function)} is over numbers; this is a {argument.kind.value}.", "Count it instead."
        )
    known = facts(argument).bounds
    if known is None or max(abs(known.low), abs(known.high)) > WIDEST:
        raise ctx.refusal(
            node,
            "HB515",
            f"{quote(function)} needs bounds, and none of use are known for this expression.",
            "Ask the owner to declare bounds, or clamp it yourself: GREATEST(0, LEAST(x, 100)).",
        )
    return argument


# --- inside one unit ---------------------------------------------------------------------------------------------

InnerFunction = Choice["count", "count_distinct", "sum", "avg", "min", "max"]
_INNER: dict[str, InnerFunction] = {
    "count": "count",
    "count_distinct": "count_distinct",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
}


@dataclass
class Inside:
    """The aggregates of a sub-query grouped by the unit: exact, over one unit's rows."""

    ctx: Context
    columns: Scope
    asked: list[tuple[str, Inner]] = field(default_factory=list)

    def __call__(self, node: exp.Expr) -> Expr:
        """Bind an aggregate to a column of the sub-query."""
        found = read(self.ctx, self.columns, node)
        function = _INNER.get(found.function)
        if function is None:
            raise self.ctx.refusal(
                node,
                "HB512",
                f"{quote(found.function)} is not computed inside one unit.",
                "There, COUNT, SUM, AVG, MIN and MAX are.",
            )
        argument = found.arguments[0] if found.arguments else None
        if function in ("sum", "avg") and argument is not None:
            bounded(self.ctx, node, function, argument)
        wanted = Inner(function, argument, found.where, Col("", *self._result(function, argument)))
        for name, other in self.asked:
            if replace(other, column=replace(other.column, name="")) == wanted:
                return replace(wanted.column, name=name)
        weight = 1 + (0 if argument is None else self.ctx.weigh(argument, node))
        col = self.ctx.col(function, wanted.column.kind, wanted.column.facts, weight)
        self.asked.append((col.name, replace(wanted, column=col)))
        return col

    @staticmethod
    def _result(function: str, argument: Expr | None) -> tuple[Kind, Facts]:
        if function.startswith("count") or argument is None:
            return Kind.INTEGER, Facts(Bounds(Fraction(0), _ROWS), None, Fraction(1))
        known = facts(argument)
        if function == "sum" and known.bounds is not None:
            low, high = min(known.bounds.low, Fraction(0)) * _ROWS, max(known.bounds.high, Fraction(0)) * _ROWS
            return argument.kind, Facts(Bounds(low, high), None, known.step)
        if function == "avg":
            return Kind.REAL, Facts(known.bounds)
        return argument.kind, known
