"""Multiplicative weights: update a distribution where its error is largest (Hardt, Ligett, McSherry 2012).

CALL mwem(table => 'patients', columns => ['region', 'sick', {'column': 'age', 'bins': 8}], rounds => 5)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod, sqrt
from typing import Any, cast

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.synthetic.junction_tree import Clique, Floats
from hubbub.analyses.synthetic.model import Whole, spread
from hubbub.analyses.tables.axes import axes
from hubbub.analyses.tables.marginals import Counts, Marginal, counts, marginal
from hubbub.analyses.tables.table_release import expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.permute_and_flip import RULES, PermuteAndFlip, selection_rule
from hubbub.sql.noise_budget import NoiseBudget
from hubbub.sql.release_size import labels_width
from hubbub.sql.split import portions

#: Maximum numbers of cells, of candidate tables, and of rows.
MAX_CELLS = 200_000
MAX_TABLES = 2_000
MAX_ROWS = 1_000_000
#: Share of ε for the number of rows; the rest is split equally between selections and measurements.
TOTAL_SHARE = 0.05
#: Passes over all measurements after each round.
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

    ways     the number of columns of the tables that should agree
    rounds   the number of tables to measure; by default the number of columns
    size     the number of rows; by default about that of the data, or as many as a release can have
    """
    on = axes(setting.table(table), columns)
    ways = numbers.integer(ways, "ways", 1, len(on))
    turns = len(on) if rounds is None else numbers.integer(rounds, "rounds", 1, 100)
    if size is not None:
        size = numbers.integer(size, "size", 1, MAX_ROWS)
        setting.fits(size, [labels_width(each.labels) for each in on])
    if prod(each.size for each in on) > MAX_CELLS or comb(len(on), ways) > MAX_TABLES:
        raise QueryError(
            "HB594",
            f"mwem supports at most {MAX_CELLS:,} cells and {MAX_TABLES:,} tables.",
            "Use fewer columns or bins, or CALL synthetic(…), which has no such limit.",
        )
    cells = marginal(setting, table, on, where=where)
    workload = tuple(combinations(range(len(on)), ways))
    sensitivity = max(cells.part(prod(cells.shape[c] for c in each)).l1 for each in workload)
    first, rest = portions(setting.epsilon, [TOTAL_SHARE, 1 - TOTAL_SHARE])
    epsilon = portions(rest, [1.0] * (2 * turns))[0]
    counted = Laplace.from_epsilon(sensitivity=cells.part(1).l1, epsilon=first)
    measured = Laplace.from_epsilon(sensitivity=sensitivity, epsilon=epsilon)
    selection = selection_rule(setting.delta).from_epsilon(
        candidates=len(workload), sensitivity=sensitivity, monotone=False, relation=cells.relation, epsilon=epsilon
    )
    events = ((cast(Event, counted.event), 1), (selection.event, turns), (cast(Event, measured.event), turns))
    half_width = NoiseBudget("laplace", epsilon).half_width(sqrt(2) * float(measured.scale))
    return Mwem(
        protection=cells.protection,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(events),
        noise=f"{RULES[selection.rule]}, laplace",
        derivation=(
            f"the number of rows: Laplace noise of scale {brief(counted.scale)}",
            f"{turns} times one of {len(workload):,} tables is selected: {RULES[selection.rule]} at "
            f"ε = {brief(epsilon)} each; a score moves by at most {sensitivity:,}",
            f"each is measured: Laplace noise of scale {brief(measured.scale)}",
            "the weights of all cells are told from these noisy counts alone",
        ),
        expected=(expected("selected tables", half_width),),
        marginal=cells,
        workload=workload,
        rounds=turns,
        size=size,
        max_rows=max(1, setting.max_cells // len(on)),
        counted=counted,
        selection=selection,
        measured=measured,
    )


@dataclass(frozen=True, kw_only=True)
class Mwem(PreparedAnalysis):
    """Prepared multiplicative weights.

    Theorem (Multiplicative weights with fixed rounds). T tables selected by a rule for selections and measured with
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

    marginal: Marginal
    workload: tuple[Clique, ...]  #: the tables that should agree
    rounds: int
    size: int | None
    max_rows: int
    counted: Laplace  #: on the number of rows
    selection: Exponential | PermuteAndFlip  #: of the table with the largest error
    measured: Laplace  #: on the selected table

    def run(self, run: Run) -> Published:
        """Select, measure and update in rounds; sample rows."""
        run.progress(0.05, "counting")
        truth = counts(run, [self.marginal])
        total = max(1, truth.through(lambda found: self.counted.sample(int(found[0].sum()), run.source)))
        weights = np.full(self.marginal.shape, total / self.marginal.size)
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
            weights = reweighted(weights, known, float(total))
        run.progress(0.9, "drawing rows")
        some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on the randomness of rows
        rows = spread(weights.reshape(1, -1), np.zeros(self.size or min(total, self.max_rows), dtype=np.int64), some)
        at = np.unravel_index(rows, self.marginal.shape)
        outputs = tuple(
            Output(axis.name, axis.kind.value, list(np.array([*axis.labels, None], dtype=object)[codes]))
            for axis, codes in zip(self.marginal.axes, at, strict=True)
        )
        return Published(outputs, self._model(total, known, len(rows)))

    def scores(self, truth: Counts, told: dict[Clique, Whole]) -> Whole:
        """Score each table by its error, minus the expected error of the noise."""
        return np.array(
            [
                int(np.abs(self._table(truth, each) - told[each]).sum())
                - round(float(self.measured.scale) * told[each].size)
                for each in self.workload
            ],
            dtype=np.int64,
        )

    def _table(self, truth: Counts, each: Clique) -> Whole:
        found: Whole = summed(truth.reshape(self.marginal.shape), each)
        return found

    def _model(self, total: int, known: Sequence[tuple[Clique, Floats]], rows: int) -> dict[str, Any]:
        names = self.marginal.names
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
    """Sum a table to some of its columns."""
    return table.sum(axis=tuple(c for c in range(table.ndim) if c not in each))


def reweighted(weights: Floats, known: Sequence[tuple[Clique, Floats]], total: float) -> Floats:
    """Update the weights multiplicatively to fit all measurements; their total stays."""
    for _ in range(PASSES):
        for each, noisy in known:
            shape = [n if c in each else 1 for c, n in enumerate(weights.shape)]
            step = (noisy - summed(weights, each)) / total
            weights = weights * np.exp(np.clip(step, -1, 1)).reshape(shape)
            weights = weights * (total / weights.sum())
    return weights
