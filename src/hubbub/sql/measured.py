"""Describe the noisy sums of a plan by what they mean, so that other queries can be derived from them.

A description is a stored format (`measured` in a receipt, docs/formats.md). Two parts of descriptions that are equal
mean the same rows, groups or sums of the same declared tables. Where that is not known, there is no description.

Tested in tests/sql/test_measured.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import Any

from hubbub.core import wire
from hubbub.core.events import Event, to_facts
from hubbub.core.schema import Kind
from hubbub.sql.expressions import Col, Expr, FunctionCall, Literal, released_place
from hubbub.sql.keys import Cells, Domain
from hubbub.sql.measures import BoundedSum, DistinctCount, DistinctSum, Measure, RowCount, UnitCount
from hubbub.sql.plan import Plan
from hubbub.sql.public_rows import never_null
from hubbub.sql.relations import Filter, Project, Rel, Scan

#: The formats of new descriptions: of sums of groups, and of the sums behind a cube (`residual_views`).
FORMAT, CUBE_FORMAT = 1, 2
#: The most noisy sums that a receipt keeps.
MOST_SUMS = 20_000

#: Kinds whose values are in the list or read as NULL: a number with decimals may be beside the steps of its column.
WHOLE = frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.TEXT, Kind.DATE})
#: Functions of two or more arguments whose order does not matter.
_SYMMETRIC = frozenset({"and", "or", "eq", "ne"})
#: Comparisons that are written the other way round.
_TURNED = {"gt": "lt", "ge": "le"}


class Undescribed(Exception):  # noqa: N818 - it is not an error of anybody
    """No description is known for this part of a query."""


@dataclass(frozen=True)
class DescribedRows:
    """The rows of a relation, by meaning.

    of       the table; joins and subqueries with groups have no description
    where    the conditions that every row fulfills, by their text; expressions read columns of the tables
    columns  the columns of the relation, as expressions over columns of the tables
    """

    of: str
    where: Mapping[str, Expr]
    columns: Mapping[str, Expr]

    def resolved(self, expr: Expr) -> Expr:
        """Write an expression over the columns of the tables."""
        return _resolved(expr, self.columns)

    def text(self, expr: Expr) -> str:
        """Write the one form of an expression."""
        return text(self.resolved(expr))


@dataclass(frozen=True)
class Described:
    """A plan with the meaning of its rows and keys.

    given  the contribution bounds that the query itself asked for
    """

    plan: Plan
    rows: DescribedRows
    given: tuple[int | None, int | None]
    keys: tuple[Expr, ...] = field(default=())

    @property
    def by_row(self) -> bool:
        """Whether each row is its own privacy unit, so that no row is left out."""
        return self.plan.limits is None

    def measure(self, measure: Measure) -> dict[str, Any]:
        """Describe one measure."""
        return measure_form(measure, self.rows, by_row=self.by_row)


def describe(plan: Plan, given: tuple[int | None, int | None]) -> Described | None:
    """Describe a plan; None if the meaning of its noisy sums is not fixed before it runs, or not known.

    Groups that were selected privately cannot be summed: those that are not shown are missing. Bounds that a query
    finds depend on its noise.
    """
    limits = plan.limits
    found = bool(plan.levels or plan.left_out or plan.clipped or plan.owners) or plan.inputs is not None
    if plan.threshold is not None or plan.top is not None or found or not plan.measures:
        return None
    if limits is not None and (limits.auto or limits.owners > 1):
        return None
    if len(plan.cells) < len(plan.groups):
        return None
    try:
        rows = described_rows(plan.query.relation)
        described = Described(plan, rows, given, tuple(rows.resolved(key.expr) for key in plan.query.keys))
        for each in described.keys:
            text(each)
    except Undescribed:
        return None
    return described


def measured(described: Described | None) -> dict[str, Any] | None:
    """Return what a receipt says about the noisy sums of a plan; None if it says nothing."""
    if described is None or described.plan.size * len(described.plan.measures) > MOST_SUMS:
        return None
    plan, limits = described.plan, described.plan.limits
    try:
        measures = [described.measure(each.measure) for each in plan.measures]
    except Undescribed:
        return None
    return {
        "form": FORMAT,
        "of": described.rows.of,
        "where": sorted(described.rows.where),
        "given": list(described.given),
        "bounds": None if limits is None else limits.to_json(),
        "sets": [cells_form(described, each) for each in plan.cells],
        "measures": measures,
    }


def measured_views(
    described: Described,
    sets: Sequence[Cells],
    measures: Sequence[Measure],
    noises: Sequence[Sequence[Event]],
    *,
    shared: bool = False,
) -> dict[str, Any] | None:
    """Return what a receipt says about sums that an analysis released; None if it says nothing.

    The analysis adds `sums`: for each measure, the noisy integers of all cells of all sets, in order.

    sets     the grouping sets, as cells of the keys of the description
    noises   for each measure, for each set, the event of the noise of one cell
    shared   cells and sets of one measure may have draws in common; otherwise every cell has a draw of its own
    """
    if not described.by_row:
        return None
    try:
        forms = [described.measure(each) for each in measures]
    except Undescribed:
        return None
    if sum(each.size for each in sets) * len(measures) > MOST_SUMS:
        return None
    return {
        "form": FORMAT,
        "of": described.rows.of,
        "where": sorted(described.rows.where),
        "given": list(described.given),
        "bounds": None,
        "sets": [cells_form(described, each) for each in sets],
        "measures": forms,
        "noises": [[to_facts(event) for event in each] for each in noises],
    } | ({"shared": True} if shared else {})


def cells_form(described: Described, cells: Cells) -> dict[str, Any]:
    """Describe the groups of one grouping set: its keys with their values, NULL last, and the cells that are kept."""
    keys = [key_form(described.keys[place], domain) for place, domain in zip(cells.places, cells.domains, strict=True)]
    return {"keys": keys} | ({} if cells.kept is None else {"kept": list(cells.kept)})


def key_form(key: Expr, domain: Domain) -> dict[str, Any]:
    """Describe one key with its values, NULL last, and whether every row has one of them."""
    return {
        "of": text(key),
        "values": [wire.value(value) for value in domain.values],
        "null": domain.null,
        "whole": domain.kind in WHOLE and (domain.null or never_null(key)),
    }


def size_of(form: Mapping[str, Any]) -> int:
    """Count the cells of a grouping set."""
    if "kept" in form:
        return len(form["kept"])
    return prod(len(key["values"]) + key["null"] for key in form["keys"])


def measure_form(measure: Measure, rows: DescribedRows, *, by_row: bool) -> dict[str, Any]:
    """Describe a measure. Where each row is a unit, counts of units are counts of rows."""
    where = None if measure.where is None else rows.text(measure.where)
    match measure:
        case RowCount():
            return {"kind": "rows", "present": _present(measure.present, rows), "where": where}
        case UnitCount():
            return {"kind": "rows", "present": [], "where": where} if by_row else {"kind": "units", "where": where}
        case BoundedSum():
            terms = [
                {"of": rows.text(term.expr), "low": str(term.bounds.low), "high": str(term.bounds.high)}
                | {"center": str(term.centre)}
                for term in measure.terms
            ]
            return {
                "kind": "sum",
                "terms": sorted(terms, key=repr),
                "present": _present(measure.present, rows),
                "where": where,
                "offset": str(measure.offset),
                "step": str(measure.step),
                "steps": max(-measure.low, measure.high),
            }
        case DistinctCount():
            return {"kind": "values", "of": rows.text(measure.expr), "where": where}
        case DistinctSum():
            inner = measure_form(measure.of, rows, by_row=by_row)
            return {"kind": "values", "of": rows.text(measure.expr), "sum": inner, "where": where}
        case _:
            raise Undescribed


def _present(exprs: tuple[Expr, ...], rows: DescribedRows) -> list[str]:
    """List the expressions that must not be NULL, without those that never are by declaration."""
    resolved = [rows.resolved(each) for each in exprs]
    return sorted({text(each) for each in resolved if not never_null(each)})


def described_rows(rel: Rel) -> DescribedRows:
    """Describe the rows of one table, with conditions and computed columns, or raise `Undescribed`.

    Joins and subqueries with groups are left out: what their columns mean depends on which rows found a match.
    """
    match rel:
        case Scan():
            columns = {
                col.name: replace(col, name=f"0.{source}") for col, source in zip(rel.columns, rel.sources, strict=True)
            }
            return DescribedRows(f"{rel.table.name!r} as 0", {}, columns)
        case Filter():
            below = described_rows(rel.input)
            tests = {text(each): each for each in _conjuncts(below.resolved(rel.predicate))}
            return replace(below, where={**below.where, **tests})
        case Project():
            below = described_rows(rel.input)
            return replace(below, columns={name: below.resolved(expr) for name, expr in rel.outputs})
        case _:
            raise Undescribed


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, FunctionCall) and expr.function == "and":
        return [part for each in expr.args for part in _conjuncts(each)]
    return [expr]


def _resolved(expr: Expr, columns: Mapping[str, Expr]) -> Expr:
    if isinstance(expr, Col):
        if released_place(expr.name) is not None or expr.name not in columns:
            raise Undescribed  # a noisy number of another release, which is not part of the text
        return columns[expr.name]
    if isinstance(expr, FunctionCall):
        return replace(expr, args=tuple(_resolved(each, columns) for each in expr.args))
    return expr


def text(expr: Expr) -> str:
    """Write the one form of an expression over columns of tables. Facts follow from declarations and are left out."""
    return json.dumps(_tree(expr), separators=(",", ":"), ensure_ascii=False)


def _tree(expr: Expr) -> list[Any]:
    match expr:
        case Col():
            return ["column", expr.name, expr.kind.value]
        case Literal():
            whole = isinstance(expr.value, int | Fraction) and not isinstance(expr.value, bool)
            exact = Fraction(expr.value) if whole else expr.value  # type: ignore[arg-type]
            return ["value", None if exact is None else wire.value(exact), expr.kind.value]
        case FunctionCall():
            args, name = [_tree(each) for each in expr.args], expr.function
            args = sorted(args, key=json.dumps) if name in _SYMMETRIC else args
            name, args = (_TURNED[name], args[::-1]) if name in _TURNED else (name, args)
            return [name, args, expr.kind.value]


def parsed(form: str) -> Expr:
    """Read what `text` wrote; without facts.

    >>> parsed('["is_null",[["column","0.age","integer"]],"boolean"]').args[0].name
    '0.age'
    """
    return _expression(json.loads(form))


def _expression(tree: Sequence[Any]) -> Expr:
    what, content, kind = tree
    match what:
        case "column":
            return Col(content, Kind(kind))
        case "value":
            return Literal(None if content is None else wire.read_value(content), Kind(kind))
        case _:
            return FunctionCall(what, tuple(map(_expression, content)), Kind(kind))
