"""Multiplicative weights: a distribution over all cells, mended where it is most wrong (Hardt, Ligett, McSherry 2012).

CALL mwem(table => 'patients', columns => ['region', 'sick', {'column': 'age', 'bins': 8}], rounds => 5)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, prod, sqrt
from typing import Any, cast

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.synthetic.model import Clique, Floats, Whole, spread
from hubbub.analyses.tables.axes import axes
from hubbub.analyses.tables.marginals import Counts, OfMarginal, counts, marginal
from hubbub.analyses.tables.measured import expected, half_width
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.size import labels_width
from hubbub.sql.split import portions

#: Most cells of the distribution, most tables that it may be wrong in, most rows that are made.
MOST_CELLS = 200_000
MOST_TABLES = 2_000
MOST_ROWS = 1_000_000
#: Shares of ε: the number of rows; the rest is halved between selections and measurements.
TOTAL_SHARE = 0.05
#: How often all that was measured is gone through again after each round.
PASSES = 100


def mwem(
    setting: Setting,
    *,
    table: str,
    columns: list[object],
    ways: int = 2,
    rounds: int | None = None,
    size: int | None = None,
    where: str | None = None,
) -> "Mwem":
    """Prepare synthetic rows by multiplicative weights, with a pure ε.

    ways     the tables that shall agree are those of so many columns
    rounds   how many of these are measured; by default as many as there are columns
    size     how many rows to make; by default about as many as there are, or as many as a release may have
    """
    on = axes(setting.table(table), columns)
    ways = numbers.integer(ways, "ways", 1, len(on))
    turns = len(on) if rounds is None else numbers.integer(rounds, "rounds", 1, 100)
    if size is not None:
        size = numbers.integer(size, "size", 1, MOST_ROWS)
        setting.fits(size, [labels_width(each.labels) for each in on])
    if prod(each.size for each in on) > MOST_CELLS or comb(len(on), ways) > MOST_TABLES:
        raise QueryError(
            "HB594",
            f"multiplicative weights hold at most {MOST_CELLS:,} cells and {MOST_TABLES:,} tables.",
            "Leave columns out or give fewer bins, or ask for synthetic(…), which has no such limit.",
        )
    return Mwem(setting, marginal(setting, table, on, where=where), ways, turns, size)


@dataclass(frozen=True)
class Mwem(OfMarginal):
    """Prepared multiplicative weights.

    Theorem (Multiplicative weights with fixed rounds). T tables selected by the exponential mechanism and measured with
    Laplace noise, and the number of rows, cost the sum of their ε: ε in all. What is selected is told from what was
    measured before.
    Proof    "Programs with fixed events". A table is sums of disjoint cells of one bounded marginal, so its counts move
             by at most the part that "Sums of bounded cells" gives in L1, and so does Σ|s(x) − m| for any m that was
             told from noisy numbers. The update of the weights uses noisy numbers alone.
    Assumes  the whole marginal is bounded once, in the engine; tables of it are sums.
    Charges  T selections, T measurements, one count.
    Tested   tests/analyses/synthetic/test_mwem.py::test_multiplicative_weights_cost_what_they_say
             tests/analyses/synthetic/test_mwem.py::test_neighbors_move_a_score_by_no_more_than_its_sensitivity
    """

    ways: int
    rounds: int
    size: int | None

    @property
    def delta(self) -> Fraction:
        """No δ."""
        return Fraction(0)

    @property
    def noise(self) -> str:
        """The kinds of noise."""
        return "exponential, laplace"

    @cached_property
    def workload(self) -> tuple[Clique, ...]:
        """The tables that shall agree."""
        return tuple(combinations(range(len(self.asked.axes)), self.ways))

    @cached_property
    def moved(self) -> int:
        """How far a unit moves any of these tables in L1."""
        return max(self.asked.part(self._cells(each)).l1 for each in self.workload)

    @cached_property
    def _parts(self) -> tuple[Fraction, Fraction]:
        own, rest = portions(self.epsilon, [TOTAL_SHARE, 1 - TOTAL_SHARE])
        return own, portions(rest, [1.0] * (2 * self.rounds))[0]

    @cached_property
    def counted(self) -> Laplace:
        """The noise on the number of rows."""
        return Laplace.from_epsilon(sensitivity=self.asked.part(1).l1, epsilon=self._parts[0])

    @cached_property
    def selection(self) -> Exponential:
        """The choice of the table that is most wrong."""
        return Exponential.from_epsilon(
            candidates=len(self.workload),
            sensitivity=self.moved,
            monotone=False,
            relation=self.relation,
            epsilon=self._parts[1],
        )

    @cached_property
    def measured(self) -> Laplace:
        """The noise on the chosen table."""
        return Laplace.from_epsilon(sensitivity=self.moved, epsilon=self._parts[1])

    @property
    def event(self) -> Event:
        """The facts that are charged."""
        return Composed(
            (
                (cast(Event, self.counted.event), 1),
                (self.selection.event, self.rounds),
                (cast(Event, self.measured.event), self.rounds),
            )
        )

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows from the declarations."""
        return (
            f"the number of rows: Laplace noise of scale {brief(self.counted.scale)}",
            f"{self.rounds} times one of {len(self.workload):,} tables is selected: exponential mechanism at "
            f"ε = {brief(self._parts[1])} each; a score moves by at most {self.moved:,}",
            f"each is measured: Laplace noise of scale {brief(self.measured.scale)}",
            "the weights of all cells are told from these noisy counts alone",
        )

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The error of a count of a selected table, as measured."""
        return (expected("selected tables", half_width("laplace", sqrt(2) * float(self.measured.scale))),)

    def run(self, run: Run) -> Published:
        """Select, measure and mend in turns; draw rows."""
        run.progress(0.05, "counting")
        truth = counts(run, [self.asked])
        total = max(1, truth.through(lambda found: self.counted.sample(int(found[0].sum()), run.source)))
        weights = np.full(self.asked.shape, total / self.asked.size)
        known: list[tuple[Clique, Floats]] = []
        for turn in range(self.rounds):
            run.progress(0.1 + 0.8 * turn / self.rounds, f"round {turn + 1} of {self.rounds}")
            told = {each: np.rint(summed(weights, each)).astype(np.int64) for each in self.workload}
            place = truth.through(
                lambda found, told=told: self.selection.sample(self.scores(found[0], told), run.source)  # type: ignore[misc]
            )
            each = self.workload[place]
            noisy = truth.through(
                lambda found, each=each: self.measured.sample(self._table(found[0], each), run.source)  # type: ignore[misc]
            )
            known.append((each, noisy.astype(np.float64)))
            weights = mended(weights, known, float(total))
        run.progress(0.9, "drawing rows")
        some = np.random.default_rng(run.source.words(4).tolist())  # rows are free to be drawn by any randomness
        room = max(1, self.setting.max_cells // len(self.asked.axes))
        rows = spread(weights.reshape(1, -1), np.zeros(self.size or min(total, room), dtype=np.int64), some)
        at = np.unravel_index(rows, self.asked.shape)
        outputs = tuple(
            Output(axis.name, axis.kind.value, list(np.array([*axis.labels, None], dtype=object)[codes]))
            for axis, codes in zip(self.asked.axes, at, strict=True)
        )
        return Published(outputs, self._model(total, known, len(rows)))

    def scores(self, truth: Counts, told: dict[Clique, Whole]) -> Whole:
        """Score each table by how much it is off, less what noise is off by anyway."""
        return np.array(
            [
                int(np.abs(self._table(truth, each) - told[each]).sum())
                - round(float(self.measured.scale) * told[each].size)
                for each in self.workload
            ],
            dtype=np.int64,
        )

    def _table(self, truth: Counts, each: Clique) -> Whole:
        found: Whole = summed(truth.reshape(self.asked.shape), each)
        return found

    def _cells(self, each: Clique) -> int:
        return prod(self.asked.shape[c] for c in each)

    def _model(self, total: int, known: Sequence[tuple[Clique, Floats]], rows: int) -> dict[str, Any]:
        names = self.asked.names
        return {
            "total": total,
            "rows": rows,
            "measured": [
                {"columns": [names[c] for c in each], "counts": noisy.astype(np.int64).ravel().tolist()}
                for each, noisy in known
            ],
            "scale": float(self.measured.scale),
        }


def summed(table: Any, each: Clique) -> Any:
    """Add a table up to some of its columns."""
    return table.sum(axis=tuple(c for c in range(table.ndim) if c not in each))


def mended(weights: Floats, known: Sequence[tuple[Clique, Floats]], total: float) -> Floats:
    """Multiply the weights until they agree better with all that was measured; they keep their total."""
    for _ in range(PASSES):
        for each, noisy in known:
            shape = [n if c in each else 1 for c, n in enumerate(weights.shape)]
            step = (noisy - summed(weights, each)) / total
            weights = weights * np.exp(np.clip(step, -1, 1)).reshape(shape)
            weights = weights * (total / weights.sum())
    return weights
