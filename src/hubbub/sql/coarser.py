"""Find which groups of an earlier release a group of another query is the sum of.

Everything here reads descriptions (`measured`), never noisy numbers. Tested in tests/sql/test_derived.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.core import wire
from hubbub.core.schema import Kind
from hubbub.sql.atoms import Atoms, Grouping
from hubbub.sql.evaluate import UnknownValueError, evaluate, scalar
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.keys import Cells
from hubbub.sql.measured import WHOLE, Described, cells_form, text
from hubbub.sql.noise import AnyNoise
from hubbub.sql.prune import names


class CellValues(Protocol):
    """How the cells of a view follow from numbers that are no cells."""

    def values(self, sums: Sequence[int]) -> list[Fraction]:
        """Compute the noisy cells."""
        ...

    def positions(self) -> list[int]:
        """Give the places of the grouping sets that are read."""
        ...


@dataclass(frozen=True)
class SourceView:
    """One grouping set of a source, as a partition of the groups of a query.

    source  the place of the source among those that are given
    part    the place of the grouping set in the source
    first   where its cells begin among all cells of the source
    cells   for each of its cells, the group of the query that it is a part of; −1 for none
    most    the largest number of cells in one group
    same    whether it has the same conditions and groups as the query
    made    of a cube: how its cells follow from the released sums
    spread  of a cube: for each measure, the noise of the least exact group
    """

    source: int
    part: int
    first: int
    cells: NDArray[np.int64]
    most: int
    same: bool
    made: CellValues | None = None
    spread: tuple[tuple[tuple[AnyNoise, Fraction, int], ...], ...] = ()


def view(described: Described, facts: Mapping[str, Any], source: int, part: int, first: int) -> SourceView | None:
    """Return how the groups of a query consist of those of a grouping set; None if they are not known to.

    Theorem (Groups as sums). Let every row of a source fulfill conditions that the query states too, let the further
    conditions and the keys of the query be functions of the keys of the source, and let each row that fulfills them
    have keys that are a cell of the source. Then a row that counts in a group of the query counts in exactly one of the
    cells of this group, and every row of these cells is in the group.
    Proof    A cell fixes the keys, and with them the truth of the further conditions and the keys of the query, which
             are evaluated as the engine does. A row in no cell has a key that is NULL or unlisted: that is excluded by
             a key whose cells include NULL (unlisted values are read as NULL), by a declaration that it has no NULL, by
             a further condition that no row with NULL fulfills, or by the query having the same key, in whose groups
             such a row is not either.
    Assumes  declarations of keys are true: a `required` column with listed values has no others.
    Charges  nothing: it reads descriptions alone.
    Tested   tests/sql/test_derived.py::test_groups_are_sums_only_where_every_row_is_in_a_cell
             tests/sql/test_derived.py::test_sums_of_cells_are_the_groups_by_enumeration
    """
    if facts["of"] != described.rows.of or not set(facts["where"]) <= described.rows.where.keys():
        return None
    form = facts["sets"][part]
    more = [expr for name, expr in described.rows.where.items() if name not in facts["where"]]
    (groups,) = described.plan.cells
    own = cells_form(described, groups)
    named = {key["of"]: f"$key{place}" for place, key in enumerate(form["keys"])}
    try:
        tests = [_over(expr, named) for expr in more]
        keys = [_over(described.keys[place], named) for place in groups.places]
        if not all(_covered(key, name, tests, own) for name, key in zip(named.values(), form["keys"], strict=True)):
            return None
        found = _positions(form, list(named.values()), tests, keys, groups)
    except (UnknownValueError, _Unknown):
        return None
    counts = np.bincount(found[found >= 0], minlength=groups.size)
    if not counts.all():
        return None
    identical = not more and form == own
    return SourceView(source, part, first, found, int(counts.max()), identical)


class _Unknown(Exception):  # noqa: N818 - it is not an error of anybody
    """An expression is no function of the keys."""


def _over(expr: Expr, named: Mapping[str, str]) -> Expr:
    """Write an expression over the keys of a source."""
    name = named.get(text(expr))
    if name is not None:
        return Col(name, expr.kind)
    if isinstance(expr, Col):
        raise _Unknown
    if isinstance(expr, FunctionCall):
        return replace(expr, args=tuple(_over(each, named) for each in expr.args))
    return expr


def _covered(key: Mapping[str, Any], name: str, tests: Sequence[Expr], own: Mapping[str, Any]) -> bool:
    """Say whether every row that counts in the query has a listed value of this key."""
    if key["whole"] or any(key["of"] == each["of"] for each in own["keys"]):
        return True
    alone = [test for test in tests if names(test) == {name} and _kinds(test, name) <= WHOLE]
    return any(evaluate(test, {name: None}) is not True for test in alone)


def _kinds(expr: Expr, name: str) -> set[Kind]:
    """Return the kinds of a column in an expression: a number with decimals may be beside the listed values."""
    if isinstance(expr, FunctionCall):
        return set().union(*(_kinds(each, name) for each in expr.args))
    return {expr.kind} if isinstance(expr, Col) and expr.name == name else set()


def _positions(
    form: Mapping[str, Any], named: Sequence[str], tests: Sequence[Expr], keys: Sequence[Expr], groups: Cells
) -> NDArray[np.int64]:
    """Return the group of each cell."""
    lists = {
        name: (*(scalar(wire.read_value(value)) for value in key["values"]), *([None] if key["null"] else []))
        for name, key in zip(named, form["keys"], strict=True)
    }
    found = Atoms(lists).cells(query_grouping(tests, keys, groups))
    return found[list(form["kept"])] if "kept" in form else found


def query_grouping(where: Iterable[Expr], keys: Sequence[Expr], groups: Cells) -> Grouping:
    """Say which conditions and keys put a row into a group of a query; the keys are those of the grouping set."""
    lists = [(*map(scalar, domain.values), *([None] if domain.null else [])) for domain in groups.domains]
    return Grouping(tuple(where), tuple(zip(keys, lists, strict=True)), groups.kept)
