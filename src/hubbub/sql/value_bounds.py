"""Bounds of values that are found privately: columns with `bounds: auto`.

Units are counted by the largest magnitude of their values, at levels that are powers of two, with noise. A bound is
chosen from that, and the query is planned with it for what is left of its ε.

Tested in tests/sql/test_value_bounds.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub.core.events import Composed, Event, LaplaceEvent
from hubbub.core.reals import floor_to
from hubbub.core.schema import Bounds
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import contribution_levels
from hubbub.sql.aggregates.table import aggregate_function
from hubbub.sql.auto_bounds import ChosenBound, LevelHistogram
from hubbub.sql.bounding import RenderOptions
from hubbub.sql.expressions import Expr, Literal, facts, finds_bounds
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import calibrate_noise
from hubbub.sql.query import Query
from hubbub.sql.relations import Rel

#: Magnitudes are counted in units of 2⁻²⁰, up to 2⁴⁰.
_UNIT, _LEVELS = Fraction(1, 1 << 20), tuple(1 << power for power in range(61))
#: The share of ε for all histograms of magnitudes.
_SHARE = Fraction(1, 4)
_PLACES = 24
#: The magnitude for which errors are estimated before the data is read.
_TYPICAL = 1 << 30
#: A declared or derived range that is at least this wide is as good as none.
_WIDE = Fraction(10) ** 12


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The histograms from which the bounds of some arguments are chosen, and what is left of ε for the query."""

    arguments: tuple[Expr, ...]
    histograms: tuple[LevelHistogram, ...]
    rest: Fraction

    def bounds(self, chosen: Sequence[ChosenBound]) -> dict[Expr, Bounds]:
        """Return the bounds of each argument."""
        return {expr: _ends(expr, each.bound) for expr, each in zip(self.arguments, chosen, strict=True)}

    def clipped(self, chosen: Sequence[ChosenBound]) -> dict[Expr, float]:
        """Return what the bounds may cut off one row of each unit, all together, as allowed for in intervals."""
        bounds = self.bounds(chosen)
        amounts = {expr: each.most * float(_UNIT) for expr, each in zip(self.arguments, chosen, strict=True)}
        return {bounded_argument(expr, bounds): amount for expr, amount in amounts.items()}

    @property
    def event(self) -> Event:
        """The event to charge: the histograms, and any pure mechanism that costs what is left."""
        rest = LaplaceEvent(1, 1 / self.rest)
        return Composed((*((each.mechanism.event, 1) for each in self.histograms), (rest, 1)))

    @property
    def settings(self) -> dict[str, Any]:
        """How the query is planned with the bounds: for what is left, with pure losses alone."""
        return {"epsilon": self.rest, "delta": Fraction(0), "noise": "laplace"}

    @property
    def typical(self) -> dict[Expr, Bounds]:
        """Bounds for which errors are estimated before the data is read."""
        return {expr: _ends(expr, _TYPICAL) for expr in self.arguments}


def value_bounds(
    query: Query, relation: Rel, neighbors: Relation, epsilon: Fraction, options: RenderOptions
) -> ValueBounds | None:
    """Set aside a part of ε for the bounds that a query has to find; None if it has to find none.

    Theorem (Bounds of values). Counting units by the level of their largest magnitude, with Laplace noise of scale
    s/ε₁, s = 1 under add/remove and 2 under replace, and then running a query that is (ε − ε₁)-private for whichever
    bounds are chosen from that, is ε-private.
    Proof    A unit is at one level. The query is planned with pure losses alone, for bounds that are a function of the
             noisy counts: adaptive composition. Every mechanism of pure loss e is dominated by randomized response of
             that loss, which is two-sided geometric noise of sensitivity 1 and scale 1/e (Kairouz, Oh and
             Viswanath 2015).
    Charges  Laplace(s, s/ε₁) for each histogram, and Laplace(1, 1/(ε − ε₁)) for the query.
    Tested   tests/sql/test_value_bounds.py::test_one_unit_moves_a_histogram_of_magnitudes_by_one
             tests/sql/test_value_bounds.py::test_the_query_costs_no_more_than_what_is_left_at_any_bounds
    """
    arguments = _arguments(query)
    if not arguments:
        return None
    portion = floor_to(epsilon * _SHARE / len(arguments), _PLACES)
    moved = Sensitivity(neighbors.units_changed, neighbors.units_changed**2)
    mechanism = calibrate_noise("laplace", moved, portion)
    if not isinstance(mechanism, Laplace):
        raise AssertionError("Laplace noise was asked for")
    rest = floor_to(epsilon * (1 - _SHARE), _PLACES)
    histograms = [
        LevelHistogram(
            f"values{i}",
            "values",
            0,
            (),
            _LEVELS,
            portion,
            float(rest) / (2 * len(query.aggregates)),
            mechanism,
            contribution_levels.values_by_level(relation, expr, where, _LEVELS, _UNIT, options),
        )
        for i, (expr, where) in enumerate(arguments.items())
    ]
    return ValueBounds(tuple(arguments), tuple(histograms), rest)


def with_bounds(query: Query, bounds: Mapping[Expr, Bounds]) -> Query:
    """Return a query whose arguments have these bounds; the engine clamps each row to them."""
    aggregates = tuple(
        replace(each, arguments=tuple(bounded_argument(expr, bounds) for expr in each.arguments))
        if _needs(each.function)
        else each
        for each in query.aggregates
    )
    return replace(query, aggregates=aggregates)


def bounded_argument(expr: Expr, bounds: Mapping[Expr, Bounds]) -> Expr:
    """Return an argument with its bounds, if it has any of its own."""
    if expr not in bounds or isinstance(expr, Literal):
        return expr
    return replace(expr, facts=replace(expr.facts, bounds=bounds[expr]))


def _arguments(query: Query) -> dict[Expr, Expr | None]:
    """Return the arguments whose bounds have to be found, each with the condition under which it is read."""
    found: dict[Expr, Expr | None] = {}
    for aggregate in query.aggregates:
        for expr in aggregate.arguments if _needs(aggregate.function) else ():
            bounds = facts(expr).bounds
            if finds_bounds(expr) and (bounds is None or bounds.high - bounds.low >= _WIDE):
                found[expr] = aggregate.where if expr not in found or found[expr] == aggregate.where else None
    if found and any(not facts(key.expr).values for key in query.keys):
        raise QueryError(
            "HB577",
            "The bounds of a column cannot be found in the same query as its groups.",
            "Declare the bounds of the column or the values of the keys, or clamp the column in the query: "
            "LEAST(GREATEST(x, low), high).",
        )
    return found


def _needs(function: str) -> bool:
    return aggregate_function(function).argument == "bounded"


def _ends(expr: Expr, level: int) -> Bounds:
    """Return the bounds at a level: on both sides of 0, unless the facts exclude one."""
    known, most = facts(expr).bounds, level * _UNIT
    low = -most if known is None or known.low < 0 else max(Fraction(0), known.low)
    high = most if known is None or known.high > 0 else min(Fraction(0), known.high)
    if known is not None:
        low, high = max(low, known.low), min(high, known.high)
    return Bounds(min(low, high), max(low, high))
