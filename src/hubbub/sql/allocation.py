"""Who gets how much: a query's budget shared over its measures and choices, and what error to expect of each answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.estimate import Expected
from hubbub.core import numbers
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError, QueryError
from hubbub.sql import partition_selection as discover
from hubbub.sql.aggregates import counts
from hubbub.sql.aggregates.formula import TYPICAL_ROWS, Floats, Formula, Grid, secant, spread
from hubbub.sql.aggregates.order import Choice, Target
from hubbub.sql.aggregates.table import choices, formulas
from hubbub.sql.bounding import Limits
from hubbub.sql.candidates import Candidates
from hubbub.sql.keys import Found, Groups
from hubbub.sql.measures import Measure, Reach, Rows, sensitivity
from hubbub.sql.noise import Chosen, Noise, Noised, chosen, half_width, mechanism
from hubbub.sql.query import Query
from hubbub.sql.split import portions, shares

#: The level of every interval and of every ±.
LEVEL = Fraction(95, 100)

#: Most steps that a row adds to a sum of reals: what rounding loses is then far below every noise.
FINEST = 1 << 30

#: How much the count of a choice's rows matters beside the choice: it only says how sure the choice is.
_COUNT_OF_A_CHOICE = 0.2


def reach(each: Groups, limits: Limits | None) -> Reach:
    """Say how far a unit reaches in one grouping set."""
    if limits is None:
        return Reach(each.size, 1, 1)
    return Reach(each.size, min(limits.groups, each.size), limits.rows)


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be answered, before any budget is given to it."""

    query: Query
    groups: tuple[Groups, ...]
    reaches: tuple[Reach, ...]
    relation: Relation
    weights: dict[str, Fraction]
    intervals: bool

    @property
    def found(self) -> bool:
        """Whether groups are discovered."""
        return any(isinstance(each, Found) for each in self.groups)


@dataclass(frozen=True, slots=True)
class Allotted:
    """Measures and choices with their portions and mechanisms; `worst` is the largest weighted relative error.

    `derived` says which measures (by place) are the sums of a histogram (by place), and need no statement of their own.
    """

    formulas: dict[str, Formula]
    measures: tuple[Noised, ...]
    choices: tuple[Chosen, ...]
    histograms: tuple[Candidates, ...]
    derived: dict[int, int]
    worst: float


def allot(task: Task, kind: Noise, budget: Fraction) -> Allotted:
    """Share a budget (ε, or ρ for Gaussian noise) over what the query needs."""
    aggregates = task.query.aggregates
    table = formulas(aggregates, _grid(task.reaches, budget, kind, len(aggregates)))
    if task.found:
        table[discover.KEYS] = counts.of(discover.UNITS)
    wanted = choices(aggregates, discover.CELLS if task.found else sum(reach.cells for reach in task.reaches))
    names = [*table, *(choice.name for choice in wanted)]
    unknown = set(task.weights) - set(names)
    if unknown:
        raise ParameterError("HB558", f"there is no aggregate called {min(unknown)!r}.", f"There are {sorted(names)}.")
    measures: list[Measure] = [m for formula in table.values() for m in formula.measures]
    measures = list(dict.fromkeys([*measures, *(counted(choice) for choice in wanted)]))
    errors = _errors(task, kind, table, wanted, measures)
    weights = [float(task.weights.get(name, discover.WEIGHT if name == discover.KEYS else 1)) for name in names]
    parts = portions(budget, shares(errors, weights, power=1.0 if kind == "laplace" else 0.5))
    moved = [sensitivity(measure, task.reaches, task.relation) for measure in measures]
    noised = tuple(
        Noised(measure, s, part, mechanism(kind, s, part))
        for measure, s, part in zip(measures, moved, parts, strict=False)
    )
    histograms = tuple(dict.fromkeys(choice.candidates for choice in wanted))
    picked = tuple(
        chosen(
            choice,
            histograms.index(choice.candidates),
            kind=kind,
            portion=part,
            reaches=task.reaches,
            relation=task.relation,
            intervals=task.intervals,
        )
        for choice, part in zip(wanted, parts[len(measures) :], strict=True)
    )
    spent = np.array([float(part) for part in parts]) ** (-1.0 if kind == "laplace" else -0.5)
    worst = float(np.max(np.sqrt(((errors * spent) ** 2).sum(axis=1)) * np.array(weights)))
    summed = {measure for formula in table.values() for measure in formula.measures}
    # a histogram is held for some of the found groups at a time, so their rows are counted by themselves
    derived = {
        measures.index(counted(each.choice)): each.histogram
        for each in picked
        if counted(each.choice) not in summed and not task.found
    }
    return Allotted(table, noised, picked, histograms, derived, worst)


def counted(choice: Choice) -> Rows:
    """Give the count of the rows that a choice is made from."""
    return Rows((choice.candidates.expr,), choice.candidates.where)


def _grid(reaches: Sequence[Reach], budget: Fraction, kind: Noise, aggregates: int) -> Grid:
    """Choose how fine to count, so that every noise stays in the samplers' range."""
    touched = 2 * sum(reach.touched * reach.rows for reach in reaches)
    # the smallest portion is a fiftieth of the largest, and an aggregate has six measures at most
    least = budget / (500 * max(1, aggregates))
    if kind == "laplace":
        most = numbers.SCALE_MAX * least / touched
    else:
        # the variance is at most (steps·touched)²/(2·portion)
        most = Fraction(int(float(numbers.SCALE_MAX) * sqrt(2 * least))) / touched
    if not most >= 1:
        raise QueryError("HB557", "at this ε the noise would be beyond every use.", "Raise ε, or tighten the bounds.")
    return Grid(min(FINEST, int(most), max(1, numbers.SENSITIVITY_MAX // touched)))


def _errors(
    task: Task, kind: Noise, table: Mapping[str, Formula], wanted: Sequence[Choice], measures: Sequence[Measure]
) -> NDArray[np.float64]:
    """Give each answer's relative error at a typical group (a standard deviation), for a whole unit of ε, or of ρ.

    Columns are measures, then choices.
    """
    moved = [sensitivity(measure, task.reaches, task.relation) for measure in measures]
    # noise of ε = 1 has a standard deviation of √2 times the sensitivity, noise of ρ = 1 of 1/√2 times it
    noise = [sqrt(2) * s.l1 if kind == "laplace" else sqrt(s.l2_squared / 2) for s in moved]
    errors = np.zeros((len(table) + len(wanted), len(measures) + len(wanted)))
    for j, formula in enumerate(table.values()):
        sums = typical(formula)
        for i, measure in enumerate(formula.measures):
            place = measures.index(measure)
            (moves,) = secant(formula.value, sums, i, noise[place] * 1e-4)
            errors[j, place] = abs(float(moves)) * 1e4 / formula.size
    for j, choice in enumerate(wanted):
        place = measures.index(counted(choice))
        errors[len(table) + j, place] = _COUNT_OF_A_CHOICE * noise[place] / TYPICAL_ROWS
        unit = chosen(
            choice,
            0,
            kind=kind,
            portion=Fraction(1),
            reaches=task.reaches,
            relation=task.relation,
            intervals=task.intervals,
        )
        errors[len(table) + j, len(measures) + j] = ranks(unit) / 2 / TYPICAL_ROWS
    return errors


def ranks(each: Chosen) -> float:
    """Bound the estimate's error in rows, at the level, where there are rows enough."""
    pick = each.picks[0]
    scale = pick.aim.level.denominator if isinstance(pick.aim, Target) else 1
    odds = float(LEVEL / (1 - LEVEL))
    return log(each.choice.candidates.count * odds) / float(pick.mechanism.rate) / scale


def typical(formula: Formula) -> list[Floats]:
    """Give the typical sums as vectors of one cell."""
    return [np.array([each]) for each in formula.typical]


def factor(kind: Noise) -> float:
    """Give how many standard deviations of noise the level takes: exact for Gaussian and for single Laplace noise.

    A sum of independent Laplace noises is nearer to a Gaussian one, and stays within the factor of a single one.
    """
    return log(20.0) / sqrt(2.0) if kind == "laplace" else 1.959964


def expected(allotted: Allotted, kind: Noise) -> tuple[Expected, ...]:
    """Give the error to expect of each aggregate."""
    by_measure = {n.measure: n for n in allotted.measures}
    out = []
    for name, formula in allotted.formulas.items():
        if name == discover.KEYS:
            continue
        own = [by_measure[measure] for measure in formula.measures]
        # the slope at the typical group: a secant as wide as a large noise leaves the range of a root or a quotient
        small = [n.deviation * 1e-4 for n in own]
        half = factor(kind) * 1e4 * float(spread(formula.value, typical(formula), small)[0])
        if formula.linear and len(own) == 1:
            half = width(formula, own[0])
        if formula.low is not None and formula.high is not None:
            half = min(half, formula.high - formula.low)
        out.append(Expected(name, half, None if formula.linear else TYPICAL_ROWS, half / formula.size))
    for each in allotted.choices:
        half = ranks(each)
        out.append(Expected(each.choice.name, half, None, half / TYPICAL_ROWS, "rank"))
    return tuple(out)


def width(formula: Formula, noised: Noised) -> float:
    """Give the exact ± of an answer that is one measure times a constant."""
    one = float((formula.value([np.array([1.0])]) - formula.value([np.array([0.0])]))[0])
    return abs(one) * half_width(noised.mechanism, LEVEL)
