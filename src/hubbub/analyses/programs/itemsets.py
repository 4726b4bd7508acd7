"""Frequent itemsets and association rules from noisy counts, level by level as in Apriori.

A basket is a row, whose items are its true flags and the values of its columns; or it is all rows of one unit, whose
items are the distinct values of one column. Each level is one query that counts the baskets with each candidate. The
next candidates follow from noisy counts only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, Self

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.inputs import ProgramInput, call, column_values, equals, one_cell, program_input, real
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.regression import json_value
from hubbub.analyses.programs.vectors import over_cells
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.schema import Bounds, Kind
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.sql.bounding import ContributionBounds
from hubbub.sql.expressions import Col, Facts, FunctionCall
from hubbub.sql.measures import RowCount
from hubbub.sql.noise import half_width
from hubbub.sql.noise_budget import AdditiveNoise
from hubbub.sql.relations import PerUnit, UnitAggregate

MAX_ITEMS = 256
MAX_CANDIDATES = 1024

Itemset = tuple[int, ...]  #: positions in the list of items, increasing


@dataclass(frozen=True, slots=True)
class Item:
    """An item; if a basket is a row, items of one column exclude each other."""

    name: str
    column: str
    test: FunctionCall


@dataclass(frozen=True, kw_only=True)
class ItemsetsAnalysis(PreparedAnalysis):
    """Prepared itemsets: the noise of each level is fixed, its candidates are not."""

    inputs: ProgramInput
    items: tuple[Item, ...]
    exclusive: bool
    support: Fraction
    candidates: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Count single items, then the sets whose subsets are all frequent by their noisy counts."""
        levels = self.allocation.noises
        singles: list[Itemset] = [(place,) for place in range(len(self.items))]
        counts = self._counted(run, [(), *singles], levels[0])
        rows = max(counts[()], 1.0)
        kept = {each: count for each, count in counts.items() if each and count >= self.support * rows}
        last, found = dict(kept), {each: (count, levels[0]) for each, count in kept.items()}
        for level, noise in enumerate(levels[1:], 2):
            run.progress((level - 1) / len(levels), f"level {level} of {len(levels)}")
            wanted = self._next(last)
            # also without a candidate: the number of queries and draws is fixed
            counted = self._counted(run, wanted or [()], noise)
            last = {each: count for each, count in counted.items() if each and count >= self.support * rows}
            found |= {each: (count, noise) for each, count in last.items()}
        return self._published(rows, found)

    def _counted(self, run: Run, sets: Sequence[Itemset], noise: AdditiveNoise) -> dict[Itemset, float]:
        exact = self.inputs.integers(
            run, self.inputs.rows, one_cell(), [RowCount(where=self._holds(each)) for each in sets]
        )
        noisy = exact.through(lambda found: noise.sample(found[:, 0], run.source))
        return dict(zip(sets, noisy.astype(float).tolist(), strict=True))

    def _holds(self, each: Itemset) -> FunctionCall | None:
        tests = [self.items[place].test for place in each]
        return None if not tests else tests[0] if len(tests) == 1 else call("and", *tests)

    def _next(self, last: Mapping[Itemset, float]) -> list[Itemset]:
        """Give the sets with one more item whose subsets are all frequent, the largest minimum count first."""
        joined: dict[Itemset, float] = {}
        for one, other in combinations(sorted(last), 2):
            if one[:-1] != other[:-1] or (self.exclusive and self._same(one[-1], other[-1])):
                continue
            whole = (*one, other[-1])
            parts = [last.get(part) for part in combinations(whole, len(whole) - 1)]
            if all(part is not None for part in parts):
                joined[whole] = min(part for part in parts if part is not None)
        best = sorted(joined, key=lambda each: (-joined[each], each))
        return best[: self.candidates]

    def _same(self, one: int, other: int) -> bool:
        return self.items[one].column == self.items[other].column

    def _published(self, rows: float, found: Mapping[Itemset, tuple[float, AdditiveNoise]]) -> Published:
        order = sorted(found, key=lambda each: (len(each), -found[each][0], each))
        counts = np.array([found[each][0] for each in order])
        half = np.array([_half(found[each][1]) for each in order])
        names = [[self.items[place].name for place in each] for each in order]
        outputs = (
            Output("items", "text", [", ".join(each) for each in names]),
            Output("size", "integer", [len(each) for each in order]),
            Output("baskets", "real", counts.tolist(), (counts - half).tolist(), (counts + half).tolist()),
            Output("support", "real", np.clip(counts / rows, 0, 1).tolist()),
        )
        sets = [{"items": each, "count": count} for each, count in zip(names, counts.tolist(), strict=True)]
        return Published(outputs, {"rows": rows, "itemsets": sets})


def _half(noise: AdditiveNoise) -> float:
    return half_width(noise, Fraction(95, 100))


def frequent_itemsets(
    setting: Setting,
    *,
    table: str,
    columns: list[str] | None = None,
    item: str | None = None,
    support: Fraction | int = Fraction(1, 10),
    size: int = 3,
    candidates: int = 100,
) -> ItemsetsAnalysis:
    """Prepare frequent itemsets and their association rules.

    Theorem (Itemsets from noisy counts). A basket changes each count by 0 or 1. So a level of m candidates moves by at
    most m·r in L1, and √m·r in L2, where a unit has r baskets at most. A basket with one item of each of c columns
    holds at most c single items and C(c, k) sets of k, so m may be that if it is less; where a unit is replaced, twice
    that if it is less. With noises for these (the first level has the number of baskets beside), all levels together
    cost what the noises cost.
    Proof    The sensitivities are those of 0/1 vectors. Where a unit is replaced, a count is between 0 and r for either
             unit, so it moves by at most r, and the moves sum to at most what both add. Candidates follow from noisy
             counts (Apriori), and fixed noises
             add up under adaptive choice. Rules are made of published counts.
    Charges  Together of one noise a level.
    Tested   tests/analyses/programs/test_itemsets.py::test_counts_of_neighbors_are_within_the_sensitivities
             tests/analyses/programs/test_itemsets.py::test_what_is_drawn_is_what_is_charged

    columns, item  the items of a basket: columns of a row, or the values of one column over all rows of a unit
    support        minimum share of baskets that contain a frequent set
    size           maximum number of items in a set
    candidates     maximum number of sets that are counted at each level after the first
    """
    support = numbers.in_range(support, "support", Fraction(1, 10**6), Fraction(1))
    size = numbers.integer(size, "size", 1, 6)
    candidates = numbers.integer(candidates, "candidates", 1, MAX_CANDIDATES)
    if (columns is None) == (item is None):
        raise QueryError("HB547", "Neither columns nor item was given, or both were.", "Pass exactly one of them.")
    inputs, items = _of_units(setting, table, item) if columns is None else _of_rows(setting, table, columns)
    if not 2 <= len(items) <= MAX_ITEMS:
        raise QueryError(
            "HB545", f"There are {len(items)} items; 2 to {MAX_ITEMS} are allowed.", "Choose other columns."
        )
    contribution = inputs.contribution_bounds(1)
    first = len(inputs.names) + 1 if columns is not None else len(items) + 1
    # each column of a row has one value, so a row contains one set of k items for every k columns
    held = len(inputs.names) if columns is not None else len(items)
    counts = [first, *(min(candidates, max(1, comb(held, level))) for level in range(2, size + 1))]
    if inputs.relation is Relation.REPLACE:
        listed = [len(items) + 1, *[candidates] * (size - 1)]
        counts = [min(2 * most, every) for most, every in zip(counts, listed, strict=True)]
    # a count moves by one unit's rows at most under either relation
    moves = [over_cells(most, most, contribution, Relation.ADD_REMOVE) for most in counts]
    needs = [NoiseRequest(each, 1 / size) for each in moves]
    allocation = allocate_budget(setting, needs)
    lines = [
        *inputs.lines(),
        f"{len(items)} items; sets of up to {size}, at most {candidates} candidates a level, one query each",
        *(f"level {level}: {describe_noise(noise)}" for level, noise in enumerate(allocation.noises, 1)),
    ]
    expected = tuple(
        Expected(f"baskets with a set of {level}", _half(noise), None, _half(noise) / 1000)
        for level, noise in enumerate(allocation.noises, 1)
    )
    return ItemsetsAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=expected,
        items=items,
        exclusive=columns is not None,
        support=support,
        candidates=candidates,
        allocation=allocation,
    )


def _of_rows(setting: Setting, table: str, columns: Sequence[str]) -> tuple[ProgramInput, tuple[Item, ...]]:
    inputs = program_input(setting, table, columns)
    items = []
    for name in inputs.names:
        col = inputs.column(name)
        values = (True,) if col.kind is Kind.BOOLEAN else column_values(inputs, name)
        items += [
            Item(name if col.kind is Kind.BOOLEAN else f"{name} = {json_value(value)}", name, equals(col, value))
            for value in values
        ]
    return inputs, tuple(items)


def _of_units(setting: Setting, table: str, item: str | None) -> tuple[ProgramInput, tuple[Item, ...]]:
    """Combine all rows of a unit into one row with a flag for each value."""
    inputs = program_input(setting, table, [item])
    if inputs.limits is None:
        raise QueryError(
            "HB548",
            "item needs a privacy unit with several rows, but each row of this table is its own unit.",
            "Pass columns instead.",
        )
    values = column_values(inputs, inputs.names[0])[: MAX_ITEMS + 1]
    col = inputs.columns[0]
    side = Facts(Bounds(Fraction(0), Fraction(1)))
    flags = [Col(f"has{j}", Kind.REAL, side) for j in range(len(values))]
    inner = [
        (flag.name, UnitAggregate("max", call("case", equals(col, value), real(1), real(0)), None, flag))
        for flag, value in zip(flags, values, strict=True)
    ]
    baskets = PerUnit(inputs.rows, (), tuple(inner))
    items = [
        Item(str(json_value(value)), inputs.names[0], call("eq", flag, real(1)))
        for flag, value in zip(flags, values, strict=True)
    ]
    return replace(inputs, rows=baskets, limits=ContributionBounds(1, 1)), tuple(items)


@dataclass(frozen=True, slots=True)
class Rule:
    """An association rule with its support, confidence and lift."""

    if_: tuple[str, ...]
    then: tuple[str, ...]
    support: float
    confidence: float
    lift: float


@dataclass(frozen=True, slots=True)
class Itemsets:
    """The model of published itemsets, with their association rules."""

    rows: float
    counts: Mapping[frozenset[str], float]

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read them from a release."""
        model = model_of(release, "frequent_itemsets")
        sets: Iterable[Mapping[str, Any]] = model["itemsets"]
        return cls(model["rows"], {frozenset(each["items"]): each["count"] for each in sets})

    def rules(self, confidence: float = 0.5) -> list[Rule]:
        """List the rules of at least this confidence, the largest first. Free: computed from published counts."""
        found = []
        for items, count in self.counts.items():
            for size in range(1, len(items)):
                for chosen in combinations(sorted(items), size):
                    before, after = frozenset(chosen), items - frozenset(chosen)
                    if before not in self.counts or after not in self.counts:
                        continue
                    sure = min(1.0, count / max(self.counts[before], 1.0))
                    if sure >= confidence:
                        lift = sure * self.rows / max(self.counts[after], 1.0)
                        found.append(Rule(chosen, tuple(sorted(after)), count / self.rows, sure, lift))
        return sorted(found, key=lambda rule: (-rule.confidence, -rule.lift, rule.if_, rule.then))
