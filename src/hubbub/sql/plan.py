"""From a bound query and an ε to everything that will happen: the engine's SQL, the noise, the event, the errors.

Pure: no data, no randomness. The plan is what is shown before it is paid, what is charged, and what is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.core import numbers
from hubbub.core.events import Event, Together
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql import bounding
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Grid, spread
from hubbub.sql.aggregates.table import formulas
from hubbub.sql.bounding import Hash, Limits
from hubbub.sql.explain import derivation
from hubbub.sql.keys import Cells, cells
from hubbub.sql.measures import Measure, Reach, Sensitivity, sensitivity
from hubbub.sql.noised import Noise, Noised, mechanism
from hubbub.sql.query import Query
from hubbub.sql.split import concentrated, portions, shares

#: The level of every interval and of every ±.
LEVEL = Fraction(95, 100)

#: Most steps that a row adds to a sum of reals: what rounding loses is then far below every noise.
FINEST = 1 << 30


@dataclass(frozen=True, slots=True)
class Statement:
    """One text for the engine, and the grouping set whose cells it fills."""

    name: str
    sql: str
    cells: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What error to expect in one aggregate: ± at the level, for a group of `rows` rows (None: whatever the group)."""

    name: str
    plus_minus: float
    rows: int | None
    relative: float


@dataclass(frozen=True)
class Plan:
    """A priced query, ready to be charged and run."""

    query: Query
    epsilon: Fraction
    delta: Fraction
    noise: Noise
    relation: Relation
    limits: Limits | None
    cells: tuple[Cells, ...]
    statements: tuple[Statement, ...]
    measures: tuple[Noised, ...]
    formulas: Mapping[str, Formula]
    event: Event
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many cells are answered."""
        return sum(each.cells for each in self.statements)

    def places(self, name: str) -> list[int]:
        """Say which measures an aggregate is made of."""
        order = {noised.measure: i for i, noised in enumerate(self.measures)}
        return [order[measure] for measure in self.formulas[name].measures]


def plan(
    query: Query,
    *,
    epsilon: Fraction,
    delta: Fraction,
    salt: str,
    groups: int | None = None,
    rows: int | None = None,
    weights: Mapping[str, Fraction] | None = None,
    noise: Noise | None = None,
    hashing: Hash = "engine",
) -> Plan:
    """Plan a query for an ε, and a δ where one is given (0: none).

    groups, rows   tighten what the owner allows each unit
    weights        how much more exactly one aggregate is wanted than another, by name (default 1)
    noise          insist on Laplace or Gaussian noise; otherwise the one with the smaller error is taken
    """
    numbers.epsilon(epsilon)
    if delta:
        numbers.delta(delta)
    relation, limits = _protection(query, groups, rows)
    sets = cells(query)
    reaches = tuple(_reach(each, limits) for each in sets)
    rho = concentrated(epsilon, delta)
    kinds: list[Noise] = [noise] if noise else ["laplace", "gaussian"] if rho > 0 else ["laplace"]
    if noise == "gaussian" and not rho > 0:
        raise ParameterError(
            "HB553", "Gaussian noise needs a δ, and one that ε leaves room for.", "Give a δ, or raise ε."
        )
    found = [
        _noised(query, reaches, relation, kind, epsilon if kind == "laplace" else rho, dict(weights or {}))
        for kind in kinds
    ]
    chosen = min(found, key=lambda each: each[2])
    kind = kinds[found.index(chosen)]
    table, noised, _ = chosen
    statements = tuple(
        Statement(
            f"sums{i}",
            bounding.sums(query.relation, each, [n.measure for n in noised], limits=limits, salt=salt, hashing=hashing),
            each.size,
        )
        for i, each in enumerate(sets)
    )
    return Plan(
        query, epsilon, delta if kind == "gaussian" else Fraction(0), kind, relation, limits, sets, statements, noised,
        table, Together(tuple((n.mechanism.event, 1) for n in noised)), _expected(table, noised),
        derivation(query, relation, limits, reaches, noised),
    )  # fmt: skip


def _protection(query: Query, groups: int | None, rows: int | None) -> tuple[Relation, Limits | None]:
    """Find the relation and the limits: of several private tables the strictest of each holds."""
    private = [table for table in query.tables if table.unit is not None]
    units = [table.unit for table in private if table.unit is not None]
    if not units:
        raise QueryError("HB554", "this query reads no private table.", "Public tables can be read as they are.")
    replaced = any(table.relation is Relation.REPLACE for table in private)
    relation = Relation.REPLACE if replaced else Relation.ADD_REMOVE
    by_row = [unit.column is None for unit in units]
    if all(by_row):
        if len(private) > 1:
            raise QueryError("HB555", "rows of several tables are protected one by one.", "Ask about one of them.")
        return relation, None
    if any(by_row):
        raise QueryError("HB555", "these tables protect different units.", "Ask about one of them.")
    most = Limits(min(unit.groups for unit in units), min(unit.rows for unit in units))
    wanted = Limits(most.groups if groups is None else groups, most.rows if rows is None else rows)
    if not (1 <= wanted.groups <= most.groups and 1 <= wanted.rows <= most.rows):
        raise ParameterError(
            "HB556", f"a query may tighten the owner's bounds (groups {most.groups}, rows {most.rows}), not widen them.",
            "Choose smaller bounds, or leave them out.",
        )  # fmt: skip
    return relation, wanted


def _reach(each: Cells, limits: Limits | None) -> Reach:
    if limits is None:
        return Reach(each.size, 1, 1)
    return Reach(each.size, min(limits.groups, each.size), limits.rows)


def _grid(reaches: Sequence[Reach], budget: Fraction, kind: Noise, aggregates: int) -> Grid:
    """Choose how fine to count, so that every noise stays in the samplers' range."""
    touched = 2 * sum(reach.touched * reach.rows for reach in reaches)
    # the smallest portion is hardly below a hundredth of an even one
    least = budget / (500 * max(1, aggregates))
    if kind == "laplace":
        most = numbers.SCALE_MAX * least / touched
    else:
        # variance = (steps·touched)²/(2·portion) at most
        most = Fraction(int(float(numbers.SCALE_MAX) * float(2 * least) ** 0.5)) / touched
    if not most >= 1:
        raise QueryError("HB557", "at this ε the noise would be beyond every use.", "Raise ε, or tighten the bounds.")
    return Grid(min(FINEST, int(most)))


def _noised(
    query: Query,
    reaches: tuple[Reach, ...],
    relation: Relation,
    kind: Noise,
    budget: Fraction,
    weights: dict[str, Fraction],
) -> tuple[dict[str, Formula], tuple[Noised, ...], float]:
    """Choose measures, portions and mechanisms; give the worst weighted relative error as well."""
    table = formulas(query.aggregates, _grid(reaches, budget, kind, len(query.aggregates)))
    unknown = set(weights) - set(table)
    if unknown:
        raise ParameterError("HB558", f"there is no aggregate called {min(unknown)!r}.", f"There are {sorted(table)}.")
    measures: list[Measure] = list(dict.fromkeys(m for formula in table.values() for m in formula.measures))
    moved = [sensitivity(measure, reaches, relation) for measure in measures]
    sizes = [float(s.l1) if kind == "laplace" else float(s.l2_squared) ** 0.5 for s in moved]
    errors = np.zeros((len(table), len(measures)))
    for j, formula in enumerate(table.values()):
        for i, measure in enumerate(formula.measures):
            place = measures.index(measure)
            alone = [sizes[place] * 1e-3 if k == i else 0.0 for k in range(len(formula.measures))]
            errors[j, place] = float(spread(formula, _typical(formula), alone)[0]) * 1e3 / formula.size
    wanted = [float(weights.get(name, Fraction(1))) for name in table]
    power = 1.0 if kind == "laplace" else 0.5
    parts = portions(budget, shares(errors, wanted, power=power))
    noised = tuple(
        Noised(measure, s, part, mechanism(kind, s, part))
        for measure, s, part in zip(measures, moved, parts, strict=True)
    )
    by_measure = {n.measure: n for n in noised}
    worst = max(
        weight * float(_spread(formula, by_measure)[0]) / formula.size
        for weight, formula in zip(wanted, table.values(), strict=True)
    )
    return table, noised, worst


def _typical(formula: Formula) -> list[Floats]:
    return [np.array([each]) for each in formula.typical]


def _spread(formula: Formula, noised: Mapping[Measure, Noised]) -> Floats:
    return spread(formula, _typical(formula), [noised[measure].deviation for measure in formula.measures])


def factor(kind: Noise) -> float:
    """Give how many standard deviations of noise the level takes: exact for Gaussian and for single Laplace noise.

    A sum of independent Laplace noises is nearer to a Gaussian one, and stays within the factor of a single one.
    """
    return float(np.log(20.0) / np.sqrt(2.0)) if kind == "laplace" else 1.959964


def _expected(table: Mapping[str, Formula], noised: Sequence[Noised]) -> tuple[Expected, ...]:
    by_measure = {n.measure: n for n in noised}
    out = []
    for name, formula in table.items():
        kind: Noise = "laplace" if isinstance(noised[0].mechanism, Laplace) else "gaussian"
        half = factor(kind) * float(_spread(formula, by_measure)[0])
        if formula.linear and len(formula.measures) == 1:
            half = width(formula, by_measure[formula.measures[0]])
        out.append(Expected(name, half, None if formula.linear else TYPICAL_ROWS, half / formula.size))
    return tuple(out)


def width(formula: Formula, noised: Noised) -> float:
    """Give the exact ± of an answer that is one measure times a constant."""
    one = float((formula.value([np.array([1.0])]) - formula.value([np.array([0.0])]))[0])
    return abs(one) * float(noised.mechanism.error(LEVEL))
