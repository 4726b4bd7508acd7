"""Where enforcing declarations can change what a query sees: values are clamped, and unlisted ones become NULL.

The scan enforces declarations before anything else, so conditions and keys see clamped values and lists as well.
Everything here comes from the plan, so stating it reveals nothing.

Tested in tests/curator/test_enforced.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.schema import Kind
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal
from hubbub.sql.keys import Cells
from hubbub.sql.plan import Plan
from hubbub.sql.public_rows import never_null
from hubbub.sql.query import Query
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow, scans

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "between"})
_NEVER_NULL = frozenset({"is_null", "is_distinct"})
_FILLING = frozenset({"least", "greatest"})


@dataclass(frozen=True, slots=True)
class ColumnReads:
    """Where one relation is read: the names of its columns that matter, as far as clamping or a list can matter."""

    rel: Rel
    names: frozenset[str]


def selections(query: Query) -> tuple[ColumnReads, ...]:
    """List what conditions and keys read that clamping or a list can change."""
    plain = frozenset(col.name for scan in scans(query.relation) for col in scan.columns)
    loose = frozenset(name for scan in scans(query.relation) for name in scan.loose)
    found = list(_filters(query.relation, plain))
    for aggregate in query.aggregates:
        if aggregate.where is not None:
            found.append(ColumnReads(query.relation, _changed(aggregate.where, plain, condition=True)))
    found += [ColumnReads(query.relation, _changed(key.expr, plain) - loose) for key in query.keys]
    return tuple(found)


def arguments(query: Query) -> tuple[ColumnReads, ...]:
    """List what aggregates read that clamping or a list can change."""
    plain = frozenset(col.name for scan in scans(query.relation) for col in scan.columns)
    exprs = [expr for aggregate in query.aggregates for expr in aggregate.arguments]
    return tuple(ColumnReads(query.relation, _changed(expr, plain)) for expr in exprs)


def expressions(query: Query) -> Iterator[Expr]:
    """Yield all conditions, keys and arguments of a query over private rows."""
    yield from (key.expr for key in query.keys)
    yield from (each.where for each in query.aggregates if each.where is not None)
    yield from _computed(query)
    rest = [query.relation]
    while rest:
        rel = rest.pop()
        if isinstance(rel, Filter):
            yield rel.predicate
        elif isinstance(rel, PerUnit):
            yield from (each.where for _, each in rel.aggregates if each.where is not None)
        rest += _inputs(rel)


def dropped(query: Query, tables: frozenset[str]) -> tuple[str, ...]:
    """List the keys with declared values whose other values are in no group."""
    return tuple(
        sorted(
            source
            for scan in scans(query.relation)
            if scan.table.name in tables
            for col, source in zip(scan.columns, scan.sources, strict=True)
            if col.name in scan.loose and col.kind is not Kind.BOOLEAN
        )
    )


def keys_without_null(plan: Plan, tables: frozenset[str]) -> tuple[str, ...]:
    """List the columns by which a key may be NULL where NULL is no group, beside those of `dropped`."""
    query = plan.query
    sources = {
        col.name: source
        for scan in scans(query.relation)
        if scan.table.name in tables
        for col, source in zip(scan.columns, scan.sources, strict=True)
        if col.name not in scan.loose or col.kind is Kind.BOOLEAN
    }
    declared = {place for groups in plan.groups if isinstance(groups, Cells) for place in groups.places}
    keys = [query.keys[place].expr for place in declared]
    projected = dict(_projected(query.relation))
    found = frozenset().union(
        *(_columns_that_may_be_null(key, projected) for key in keys if isinstance(key, Literal) or not key.facts.null)
    )
    return tuple(sorted({sources[name] for name in found & sources.keys()}))


def _projected(rel: Rel) -> Iterator[tuple[str, Expr]]:
    if isinstance(rel, Project):
        yield from rel.outputs
    for each in _inputs(rel):
        yield from _projected(each)


def _columns_that_may_be_null(expr: Expr, projected: Mapping[str, Expr]) -> frozenset[str]:
    """Return the columns by which an expression may be NULL; `projected` has what subqueries compute, by name."""
    if never_null(expr):
        return frozenset()
    if isinstance(expr, Col):
        if expr.name not in projected:
            return frozenset({expr.name})
        inner = {name: each for name, each in projected.items() if name != expr.name}  # a column may keep its name
        return _columns_that_may_be_null(projected[expr.name], inner)
    if not isinstance(expr, FunctionCall) or expr.function in _NEVER_NULL:
        return frozenset()
    args = (*expr.args[1::2], expr.args[-1]) if expr.function == "case" else expr.args
    return frozenset().union(*(_columns_that_may_be_null(each, projected) for each in args))


def fills_null(query: Query) -> bool:
    """Tell whether LEAST or GREATEST may put a constant in the place of NULL, which they ignore, in an aggregate."""
    return any(map(_fills, _computed(query)))


def _changed(expr: Expr, plain: frozenset[str], *, condition: bool = False) -> frozenset[str]:
    """Return the columns whose clamping or list could change an expression; in a condition, NULL counts as false.

    A column x compares with a constant strictly between its bounds as it does unclamped (and x ≥ c and x < c with the
    upper bound, x > c and x ≤ c with the lower). That x equals listed values is true for the same rows.
    """
    if isinstance(expr, Col):
        return frozenset({expr.name})
    if not isinstance(expr, FunctionCall):
        return frozenset()
    args = expr.args
    first = args[0] if args else None
    if isinstance(first, Col) and first.name in plain:
        if expr.function in _COMPARISONS and _same(expr, first, condition=condition):
            return frozenset()
        if expr.function == "is_null" and first.facts.values is None:
            return frozenset()
    if expr.function == "case":
        parts = [_changed(each, plain, condition=True) for each in args[:-1:2]]
        parts += [_changed(each, plain) for each in (*args[1::2], args[-1])]
    else:
        parts = [_changed(each, plain, condition=condition and expr.function in ("and", "or")) for each in args]
    return frozenset().union(*parts)


def _same(comparison: FunctionCall, column: Col, *, condition: bool) -> bool:
    constants = [each.value for each in comparison.args[1:] if isinstance(each, Literal)]
    if len(constants) < len(comparison.args) - 1:
        return False
    if column.facts.values is not None:
        listed = all(each in column.facts.values for each in constants)
        return condition and comparison.function in ("eq", "in") and listed
    bounds = column.facts.bounds
    if bounds is None:
        return True
    low, high = comparison.function in ("gt", "le"), comparison.function in ("lt", "ge")
    return all(
        isinstance(each, int | float | Fraction)
        and (bounds.low < each or (low and bounds.low == each))
        and (each < bounds.high or (high and each == bounds.high))
        for each in constants
    )


def _filters(rel: Rel, plain: frozenset[str]) -> Iterator[ColumnReads]:
    match rel:
        case Filter():
            yield ColumnReads(rel.input, _changed(rel.predicate, plain, condition=True))
        case PerUnit():
            tests = [each.where for _, each in rel.aggregates if each.where is not None]
            yield from (ColumnReads(rel.input, _changed(each, plain, condition=True)) for each in tests)
    for each in _inputs(rel):
        yield from _filters(each, plain)


def _inputs(rel: Rel) -> tuple[Rel, ...]:
    match rel:
        case Scan():
            return ()
        case Join():
            return (rel.left, rel.right)
        case Union():
            return tuple(rel.inputs)
        case Filter() | Project() | PerUnit() | UnitWindow() | Truncate():
            return (rel.input,)


def _computed(query: Query) -> Iterator[Expr]:
    for aggregate in query.aggregates:
        yield from aggregate.arguments
    rest = [query.relation]
    while rest:
        rel = rest.pop()
        if isinstance(rel, Project):
            yield from (expr for _, expr in rel.outputs)
        elif isinstance(rel, PerUnit):
            yield from (each.argument for _, each in rel.aggregates if each.argument is not None)
        rest += _inputs(rel)


def _fills(expr: Expr) -> bool:
    if not isinstance(expr, FunctionCall):
        return False
    if expr.function in _FILLING and any(isinstance(each, Literal) and each.value is not None for each in expr.args):
        return not any(never_null(each) for each in expr.args if not isinstance(each, Literal))
    return any(map(_fills, expr.args))
