"""Derive the noisy sums of a query from those of earlier releases: which, with what weights, and with what error.

Nothing here reads a noisy number but `sums`, and whether a query can be derived, from what and how exactly, never
depends on one. Tested in tests/sql/test_derived.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.estimate import Expected
from hubbub.core.chunked_json import dumps
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql.aggregates.formula import Formula, Resolution
from hubbub.sql.aggregates.sums import plain_average
from hubbub.sql.aggregates.table import formulas
from hubbub.sql.allocation import MAX_STEPS, Allocation, expected_errors
from hubbub.sql.coarser import SourceView, view
from hubbub.sql.expected import output_errors
from hubbub.sql.measured import MOST_SUMS, Described, Undescribed
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import AnyNoise, LinearNoise, Noise, NoisyMeasure, NoNoise, variance_of
from hubbub.sql.overlaps import Overlaps, Solved
from hubbub.sql.plan import Plan
from hubbub.sql.residual_views import MOST_CELLS as MOST_OF_CUBE
from hubbub.sql.residual_views import residual_view
from hubbub.sql.terms import MOST_VIEWS, Source, ViewTerm, fits, mean_of_views, noise_of

#: The most cells of sources that are looked at for one query, the smallest sources first: each is evaluated.
MOST_CELLS = 200_000
#: An average of views has a short receipt, and is preferred unless overlapping releases give less than this variance.
_BETTER = Fraction(999, 1000)


@dataclass(frozen=True)
class Derivation:
    """How the noisy sums of a query follow from those of earlier releases.

    plan      the plan of the query, with the noise of the derived sums
    terms     for each of its measures, where it is an average of views
    solved    for each of its measures, where it is solved for from overlapping releases
    expected  the errors of its outputs
    exact     whether the derived sums are about the same rows as those of the query itself would be
    """

    plan: Plan
    views: tuple[SourceView, ...]
    terms: tuple[tuple[ViewTerm, ...], ...]
    solved: tuple[Solved | None, ...]
    expected: tuple[Expected, ...]
    exact: bool

    @cached_property
    def used(self) -> list[int]:
        """The places of the sources."""
        viewed = {self.views[term.view].source for terms in self.terms for term in terms}
        read = {term.source for each in self.solved if each is not None for row in each.rows for term in row}
        return sorted(viewed | read)

    def no_worse_than(self, expected: Sequence[Expected]) -> bool:
        """Say whether every output is at least as exact as it would be at a price."""
        paid = {each.name: each.plus_minus for each in expected}
        own = {each.name: each.plus_minus for each in self.expected}
        return own.keys() == paid.keys() and all(own[name] <= paid[name] * (1 + 1e-9) for name in own)


def derive(described: Described, sources: Sequence[Source]) -> Derivation | None:
    """Return the most exact derivation of a query from earlier releases of the same data; None if there is none.

    Theorem (Derived sums). Each derived sum is a weighted sum of released ones whose exact values, with these weights,
    add up to the exact value that the query asks for, where each row is a unit; its noise is the weighted sum of their
    noises, which are independent. Among weighted means of the views that are used, this one has the least variance, up
    to a millionth.
    Proof    By "Groups as sums", the cells of a view that belong to a group have exactly the rows of the group, each in
             one cell, so sums of rows over the cells are sums over the group. A sum about another center differs by the
             center times a count of the same rows. The weights of the views add up to 1, and are in inverse proportion
             to the variances, which is least squares for one unknown. Every draw is in one term only: each view
             is another grouping set with noise of its own, and measures whose terms share a draw are not derived.
             Where a unit has several rows, sources bound what it adds to a cell, and a view is used in two cases: it
             has the same conditions, groups and bounds as the query, so that the bounded sums are of the same kind; or
             no unit loses a cell (there are no more cells than a unit may be in), so that each unit counts with at
             least as many rows as in the query itself: min(n, r) of the n rows in each cell, and Σ min(nᵢ, r) is at
             least min(Σnᵢ, r). Units and different values are counted in single cells alone, because they may be in
             several.
    Assumes  the sources are of the same data, declarations and bounds, and none is a derived answer itself.
    Charges  nothing: post-processing.
    Tested   tests/sql/test_derived.py::test_derived_sums_are_least_squares
             tests/sql/test_derived.py::test_a_unit_in_several_cells_is_not_counted_twice
             tests/curator/test_reuse.py::test_intervals_of_derived_answers_cover
    """
    plan = described.plan
    if not _derivable(plan):
        return None
    best: Derivation | None = None
    overlaps = Overlaps(described, sources) if described.by_row else None
    for views in _classes(described, sources):
        for table in _variants(plan):
            for converting in (True, False):
                found = _attempt(described, sources, views, table, overlaps, converting=converting)
                if found is not None and (best is None or _worst(found) < _worst(best) * (1 - 1e-9)):
                    best = found
                if found is not None:
                    break
    return best


def _derivable(plan: Plan) -> bool:
    """Say whether a query is computed from sums over declared groups alone."""
    one = len(plan.cells) == 1 and len(plan.groups) == 1 and plan.query.after is None
    return one and not plan.choices and bool(plan.formulas) and plan.size * len(plan.measures) <= MOST_SUMS


def _worst(found: Derivation) -> float:
    return max((each.relative for each in found.expected), default=0.0)


def _variants(plan: Plan) -> Iterator[Mapping[str, Formula]]:
    """Give the formulas of a query: as planned, and with sums about 0, which may come from separate releases."""
    yield plan.formulas
    resolution, aggregates = Resolution(MAX_STEPS), plan.query.aggregates
    plain = {each.name: plain_average(each, resolution) for each in aggregates if each.function == "avg"}
    yield formulas(aggregates, resolution, centred=False) | plain


def _classes(described: Described, sources: Sequence[Source]) -> list[list[SourceView]]:
    """Group the views whose sums are of the same rows: all of them, or those with the same groups and bounds."""
    found: dict[str, list[SourceView]] = {"[]": []} if described.by_row else {}
    limits = described.plan.limits
    bounds = None if limits is None else limits.to_json()
    names, known = described.rows.where.keys(), dict[str, SourceView | None]()
    alike_views = Counter[tuple[str, str, str]]()
    able = [place for place, source in enumerate(sources) if source.conditions <= names]
    for position, source in _within([sources[place] for place in able]):
        place, first = able[position], 0
        if source.cube:
            whole = residual_view(described, source.facts, source.noises, place) if fits(described, source) else None
            if whole is not None:
                found["[]"].append(whole)
            continue
        if not fits(described, source):
            continue
        for part, (form, size) in enumerate(zip(source.facts["sets"], source.sizes, strict=True)):
            name, begins = source.forms[part], first
            first += size
            # of views that are as exact as each other, a mean has the first ones
            alike_views[name, source.measures, source.scales] += not source.shared
            if alike_views[name, source.measures, source.scales] > MOST_VIEWS:
                continue
            if name not in known:  # many releases of one query have one form
                known[name] = view(described, source.facts, place, part, begins)
            each = known[name]
            same = each is not None and each.same and source.facts["bounds"] == bounds
            if each is None or not (described.by_row or same or _keeps_more(described, source, size)):
                continue
            alike = [] if described.by_row or same else [form, source.facts["where"], source.facts["bounds"]]
            found.setdefault(dumps(alike, sort_keys=True), []).append(
                replace(each, source=place, part=part, first=begins, same=same)
            )
    return list(found.values())


def _within(sources: Sequence[Source]) -> list[tuple[int, Source]]:
    """Choose the sources that are looked at, so that many large releases of one analyst slow nobody down.

    The smallest come first: whoever adds large ones cannot keep others from using small ones.
    """
    sizes = [_cells_of(source) for source in sources]
    left, chosen = MOST_CELLS, list[int]()
    for place in sorted(range(len(sources)), key=sizes.__getitem__):
        left -= sizes[place]
        if left < 0:
            break
        chosen.append(place)
    return [(place, sources[place]) for place in sorted(chosen)]


def _cells_of(source: Source) -> int:
    """Count the cells that are looked at: of a cube, those of one marginal."""
    return MOST_OF_CUBE if source.cube else sum(source.sizes)


def _keeps_more(described: Described, source: Source, cells: int) -> bool:
    """Say whether every unit counts in a source with at least as many rows as in the query.

    Where rows are cut before they are grouped, a condition of the query would have cut others.
    """
    facts, limits = source.facts, source.facts["bounds"]
    if facts["given"] != [None, None] or limits is None:
        return False
    if "total" in limits:
        same = set(facts["where"]) == described.rows.where.keys()
        return same and limits["rows"] >= limits["total"] and limits["groups"] >= min(cells, limits["total"])
    return bool(limits["groups"] >= cells)


def _attempt(
    described: Described,
    sources: Sequence[Source],
    views: Sequence[SourceView],
    table: Mapping[str, Formula],
    overlaps: Overlaps | None,
    *,
    converting: bool,
) -> Derivation | None:
    """Derive every measure from these views; `converting` sums to another center takes a count as well."""
    measures = list(dict.fromkeys(measure for formula in table.values() for measure in formula.measures))
    made: list[tuple[tuple[ViewTerm, ...], Solved | None]] = []
    noisy: list[NoisyMeasure] = []
    used = set[tuple[int, int, int]]()
    for measure in measures:
        try:
            form = described.measure(measure)
        except Undescribed:
            return None
        terms = mean_of_views(form, views, sources, by_row=described.by_row, converting=converting)
        solved = None if overlaps is None else overlaps.solve(form, converting=converting)
        noise = noise_of(terms, views, sources) if terms else None
        if solved is not None and (noise is None or variance_of(solved.noise) < _BETTER * variance_of(noise)):
            noise, terms = solved.noise, ()
        else:
            solved = None
        # sets of a source that have draws in common count as one
        draws = {
            (each.source, -1 if sources[each.source].shared else each.part, term.place)
            for term in terms
            for each in (views[term.view],)
        }
        draws |= solved.draws if solved is not None else set()
        if noise is None or draws & used:
            return None
        used |= draws
        made.append((terms, solved))
        noisy.append(NoisyMeasure(measure, Sensitivity(0, 0), Fraction(0), noise))
    exact = all(described.by_row or each.same for each in views)
    return _derivation(described.plan, table, noisy, views, made, exact=exact)


def _derivation(
    plan: Plan,
    table: Mapping[str, Formula],
    noisy: Sequence[NoisyMeasure],
    views: Sequence[SourceView],
    made: Sequence[tuple[tuple[ViewTerm, ...], Solved | None]],
    *,
    exact: bool,
) -> Derivation:
    kinds = [noise for each in noisy for noise in _parts(each.mechanism)]
    kind: Noise = "gaussian" if kinds and all(isinstance(noise, Gaussian) for noise in kinds) else "laplace"
    allocation = Allocation(dict(table), tuple(noisy), (), (), 0.0, None)
    errors = expected_errors(allocation, kind)
    derived = replace(
        plan,
        formulas=table,
        measures=tuple(noisy),
        noise=kind,
        expected=errors,
        adds=tuple((0, 0) for _ in noisy),
        statements=(),
        outputs=output_errors(plan.query, plan.groups, allocation, errors, kind),
    )
    terms, solved = tuple(each for each, _ in made), tuple(each for _, each in made)
    return Derivation(derived, tuple(views), terms, solved, derived.outputs, exact)


def _parts(noise: AnyNoise) -> list[AnyNoise]:
    parts: list[AnyNoise] = [each for each, _, _ in noise.terms] if isinstance(noise, LinearNoise) else [noise]
    return [each for each in parts if not isinstance(each, NoNoise)]


def sums(derivation: Derivation, released: Mapping[int, Sequence[Sequence[int]]]) -> list[list[Fraction]]:
    """Compute the derived noisy sums exactly; `released` has those of each source, by its place."""
    pairs = zip(derivation.terms, derivation.solved, strict=True)
    return [
        _summed(derivation, terms, released) if solved is None else solved.sums(released) for terms, solved in pairs
    ]


def _summed(
    derivation: Derivation, terms: Sequence[ViewTerm], released: Mapping[int, Sequence[Sequence[int]]]
) -> list[Fraction]:
    whole = lcm(*(term.weight.denominator for term in terms))
    total: list[Fraction | int] = [0] * derivation.plan.size
    for term in terms:
        each, factor = derivation.views[term.view], int(term.weight * whole)
        values: Sequence[Fraction | int] = released[each.source][term.place]
        if each.made is not None:
            values = each.made.values(released[each.source][term.place])
        for place, group in enumerate(each.cells.tolist()):
            if group >= 0:
                total[group] += factor * values[each.first + place]
    return [Fraction(value, whole) for value in total]


def as_arrays(exact: Sequence[Sequence[Fraction]]) -> list[NDArray[np.float64]]:
    """Return exact sums as numbers that answers are computed from."""
    return [np.array([float(value) for value in each], dtype=np.float64) for each in exact]
