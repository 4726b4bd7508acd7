"""Apply filters as early as possible, before rows are truncated.

Tested in tests/sql/test_truncation.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hubbub.core.schema import Kind
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.prune import names
from hubbub.sql.relations import Filter, Join, PerUnit, Project, Rel, Scan, Truncate, Union, UnitWindow, columns


def pushed_down(rel: Rel, predicates: Sequence[Expr]) -> Rel:
    """Apply filters as early as their columns are available, so that truncation keeps rows that count."""
    match rel:
        case Filter():
            return pushed_down(rel.input, [*predicates, *_conjuncts(rel.predicate)])
        case Project():
            bare = {name: expr for name, expr in rel.outputs if isinstance(expr, Col)}
            below = [each for each in predicates if names(each) <= bare.keys()]
            rest = [each for each in predicates if not names(each) <= bare.keys()]
            return _filtered(replace(rel, input=pushed_down(rel.input, [_renamed(each, bare) for each in below])), rest)
        case Join():
            left_names, right_names = ({column.name for column in columns(side)} for side in (rel.left, rel.right))
            first = [each for each in predicates if names(each) <= left_names]
            second = [
                each for each in predicates if rel.kind == "inner" and each not in first and names(each) <= right_names
            ]
            rest = [each for each in predicates if each not in first and each not in second]
            return _filtered(
                replace(rel, left=pushed_down(rel.left, first), right=pushed_down(rel.right, second)), rest
            )
        case Union():
            return _filtered(replace(rel, inputs=tuple(pushed_down(each, []) for each in rel.inputs)), predicates)
        case PerUnit() | UnitWindow():
            return _filtered(replace(rel, input=pushed_down(rel.input, [])), predicates)
        case Scan() | Truncate():
            return _filtered(rel, predicates)


def _filtered(rel: Rel, predicates: Sequence[Expr]) -> Rel:
    if not predicates:
        return rel
    predicate = predicates[0] if len(predicates) == 1 else FunctionCall("and", tuple(predicates), Kind.BOOLEAN)
    return Filter(rel, predicate)


def _conjuncts(expr: Expr) -> Iterable[Expr]:
    if isinstance(expr, FunctionCall) and expr.function == "and":
        for arg in expr.args:
            yield from _conjuncts(arg)
    else:
        yield expr


def _renamed(expr: Expr, known: dict[str, Col]) -> Expr:
    if isinstance(expr, Col):
        return known[expr.name]
    return (
        replace(expr, args=tuple(_renamed(arg, known) for arg in expr.args)) if isinstance(expr, FunctionCall) else expr
    )
