"""Remove unused columns from a bound query, and list checks that its cells repeat.

Tested in tests/sql/test_bind.py.
"""

from collections.abc import Iterable
from dataclasses import replace

from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.query import Query
from hubbub.sql.relations import (
    PRESENT,
    Filter,
    Join,
    PerUnit,
    Project,
    Rel,
    Scan,
    Truncate,
    Union,
    UnitWindow,
    window_expressions,
)


def names(expr: Expr | None) -> set[str]:
    """Return the names of the columns in an expression."""
    if isinstance(expr, Col):
        return {expr.name}
    return set().union(*(names(arg) for arg in expr.args)) if isinstance(expr, FunctionCall) else set()


def _all(exprs: Iterable[Expr | None]) -> set[str]:
    return set().union(*(names(expr) for expr in exprs))


def prune(query: Query) -> Query:
    """Reduce the scans and projections of a query to the columns that it uses."""
    # where NULL is a group, the scan reads unlisted values as NULL
    listed = [key.expr for key in query.keys if isinstance(key.expr, Col) and not key.expr.facts.null]
    bare = {expr.name for expr in listed}
    inside: list[Expr] = [key.expr for key in query.keys if key.expr not in listed]
    for aggregate in query.aggregates:
        inside.extend((*aggregate.arguments, *([] if aggregate.where is None else [aggregate.where])))
    used = _all(inside)
    return replace(query, relation=_prune(query.relation, used, bare - used))


def _prune(rel: Rel, used: set[str], bare: set[str]) -> Rel:
    """Keep the columns in `used` and `bare`; the ones in `bare` are keys of the whole query and nothing else."""
    match rel:
        case Scan():
            kept = [i for i, col in enumerate(rel.columns) if col.name in used | bare]
            cols = tuple(rel.columns[i] for i in kept)
            sources = tuple(rel.sources[i] for i in kept)
            plain = {c.name for c in rel.table.columns if c.values is not None and c.other is None}
            loose = frozenset(
                c.name for c, s in zip(cols, sources, strict=True) if c.name in bare - used and s in plain
            )
            return replace(rel, columns=cols, sources=sources, loose=loose)
        case Filter():
            needed = used | names(rel.predicate)
            return replace(rel, input=_prune(rel.input, needed, bare - needed))
        case Project():
            return _projected(rel, used, bare)
        case Join():
            needed = used | _all(expr for pair in rel.on for expr in pair)
            left, right = (_prune(side, needed, bare - needed) for side in (rel.left, rel.right))
            return replace(rel, left=left, right=right)
        case Union():
            return _union(rel, used | bare)
        case PerUnit():
            needed = _all(expr for _, expr in rel.keys)
            aggregates = tuple((name, inner) for name, inner in rel.aggregates if name in used | bare)
            needed |= _all(expr for _, inner in aggregates for expr in (inner.argument, inner.where))
            return replace(rel, input=_prune(rel.input, needed, set()), aggregates=aggregates)
        case UnitWindow():
            functions = tuple((name, each) for name, each in rel.functions if name in used | bare)
            if not functions:
                return _prune(rel.input, used, bare)
            # rows that tie are ordered by all columns, so values outside a declared list must be read as NULL
            needed = used | bare | _all(expr for _, each in functions for expr in window_expressions(each))
            return UnitWindow(_prune(rel.input, needed, set()), functions)
        case Truncate():
            raise TypeError("only a plan contains Truncate")


def _projected(rel: Project, used: set[str], bare: set[str]) -> Rel:
    if _only_marks(rel, used | bare):
        return _prune(rel.input, used, bare)
    outputs = tuple((name, expr) for name, expr in rel.outputs if name in used | bare)
    passed = {expr.name for name, expr in outputs if name in bare and isinstance(expr, Col)}
    needed = _all(expr for name, expr in outputs if not (name in bare and isinstance(expr, Col)))
    return Project(_prune(rel.input, needed, passed - needed), outputs)


def _only_marks(rel: Project, used: set[str]) -> bool:
    """Tell whether a projection does nothing but add the mark of an outer join, which nobody reads."""
    if not rel.outputs or not rel.outputs[-1][0].startswith(PRESENT) or rel.outputs[-1][0] in used:
        return False
    return all(isinstance(expr, Col) and expr.name == name for name, expr in rel.outputs[:-1])


def _union(rel: Union, used: set[str]) -> Union:
    indices = [i for i, col in enumerate(rel.columns) if col.name in used]
    inputs = []
    for part in rel.inputs:
        if not isinstance(part, Project):
            raise TypeError("the inputs of a union must be projections")
        outputs = tuple(part.outputs[i] for i in indices)
        inputs.append(Project(_prune(part.input, _all(expr for _, expr in outputs), set()), outputs))
    return replace(rel, inputs=tuple(inputs), columns=tuple(rel.columns[i] for i in indices))
