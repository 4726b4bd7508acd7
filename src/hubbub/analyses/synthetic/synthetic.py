"""Synthetic rows: select pairs of columns, measure them, and generate rows from the measurements.

CALL synthetic(table => 'visits', columns => ['region', 'age', {'column': 'cost', 'quantiles': 16}])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, sqrt
from typing import Any

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.synthetic.columns import Levels, SyntheticColumn, asked, levels
from hubbub.analyses.synthetic.estimation import NoisyMarginal
from hubbub.analyses.synthetic.junction_tree import Pair
from hubbub.analyses.synthetic.model import Model, Whole, fit, independent
from hubbub.analyses.synthetic.noise import SynthesisNoise
from hubbub.analyses.synthetic.select import Candidate, added, candidates, forest, scores, small_enough
from hubbub.analyses.synthetic.utility import ColumnUtility, column_utilities
from hubbub.analyses.tables.marginals import Counts, counts, marginal
from hubbub.analyses.tables.table_release import expected, table_budgets
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.secret import Secret
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise
from hubbub.sql.release_size import labels_width

#: Shares of the budget: counts of columns, selections of pairs, counts of the selected pairs, and the report.
SHARES = {"columns": 0.18, "selections": 0.08, "pairs": 0.72, "report": 0.02}
#: Maximum numbers of rows, of cells of the model, and of measured pairs.
MAX_ROWS = 1_000_000
MAX_CELLS = 200_000
MAX_PAIRS = 128
#: How often the model is fitted.
ROUNDS = 6


def synthetic(
    setting: Setting,
    *,
    table: str,
    columns: list[object],
    size: int | None = None,
    pairs: int | None = None,
    rounds: int | None = None,
    noise: str | None = None,
    where: str | None = None,
) -> "Synthesis":
    """Prepare synthetic rows.

    columns   names, axes as in a table ({'column': 'age', 'bins': 10}), or {'column': 'pay', 'quantiles': 16}
    size      the number of rows; by default about that of the data, or as many as a release can have
    pairs     the number of pairs of columns to measure; by default twice the number of columns, minus one
    rounds    how often the model is fitted; the pairs of the first round form a tree
    """
    on = asked(setting.table(table), columns)
    if size is not None:
        size = numbers.integer(size, "size", 1, MAX_ROWS)
        setting.fits(size, [labels_width(each.axis.labels) for each in on])
    wide = len(on) > 1
    count = numbers.integer(pairs, "pairs", 1, MAX_PAIRS) if wide and pairs is not None else _usual(len(on))
    turns = numbers.integer(rounds, "rounds", 1, 10) if rounds is not None else ROUNDS
    ones = tuple(marginal(setting, table, [each.axis], where=where) for each in on)
    twos = tuple(
        marginal(setting, table, [one.axis, other.axis], where=where)
        for place, one in enumerate(on)
        for other in on[place + 1 :]
    )
    budget = table_budgets(setting, noise)[-1]
    noises = SynthesisNoise(budget, count, SHARES if wide else _narrow(), ones, twos)
    return Synthesis(
        protection=ones[0].protection,
        epsilon=setting.epsilon,
        delta=setting.delta if budget.noise == "gaussian" else Fraction(0),
        event=noises.event,
        noise=budget.noise,
        derivation=noises.derivation,
        expected=tuple(
            expected(each.name, budget.half_width(standard_deviation(own)))
            for each, own in zip(on, noises.counted, strict=True)
        ),
        columns=on,
        size=size,
        max_rows=max(1, setting.max_cells // len(on)),
        rounds=turns,
        noises=noises,
    )


def _usual(columns: int) -> int:
    return 0 if columns == 1 else max(2, min(MAX_PAIRS, 2 * columns - 1))


def _narrow() -> dict[str, float]:
    """Split the budget for a single column."""
    return {"columns": SHARES["columns"] + SHARES["selections"] + SHARES["pairs"], "report": SHARES["report"]}


@dataclass(frozen=True, kw_only=True)
class Synthesis(PreparedAnalysis):
    """Prepared synthetic rows: select, measure, generate.

    Theorem (Select, measure, generate). Let every column's counts, K selected pairs' counts and the sums of the report
    get noise, and let each pair be selected by the exponential mechanism; let the shares of the four add up to the
    budget. Then the rows, with all that is published beside them, cost no more than the budget, although each selection
    is made by what was measured before.
    Proof    "Programs with fixed events": K selections and all noises are fixed before the run. A selection's scores
             move by at most the L1 sensitivity of a pair ("Scores of pairs"); the counts of a pair, however coarse, by
             no more than "Sums of bounded cells" says; each sum of the report by at most D, or (d−1)·D where it is over
             the d−1 pairs of a column, by the triangle inequality. Fitting, drawing rows and choosing levels use noisy
             numbers alone. With Gaussian noise the losses are ρ's, an ε-selection's being ε²/8 (bounded range).
    Assumes  each marginal is bounded by itself, in the engine. Rows drawn are of no unit: who has several rows in the
             table is not seen in them.
    Charges  the four kinds of events, whatever is selected.
    Tested   tests/analyses/synthetic/test_synthetic.py::test_synthetic_rows_cost_what_they_say
             tests/analyses/test_base.py::test_an_analysis_draws_what_its_event_says
    """

    columns: tuple[SyntheticColumn, ...]
    size: int | None
    max_rows: int
    rounds: int
    noises: SynthesisNoise

    def run(self, run: Run) -> Published:
        """Count, select and measure in rounds, sample rows, and report their error."""
        run.progress(0.02, "counting columns")
        truth = counts(run, self.noises.ones)
        noisy = truth.through(
            lambda found: [
                noise.sample(each, run.source) for noise, each in zip(self.noises.counted, found, strict=True)
            ]
        )
        total = _total(noisy, self.noises.counted)
        known = [levels(each, counted, total) for each, counted in zip(self.columns, noisy, strict=True)]
        ones = Secret(
            truth.through(lambda found: [_merged(each, (of,)) for each, of in zip(found, known, strict=True)])
        )
        model = independent([each.size for each in known], [each.sums + 1e-9 for each in known])
        measured = [
            NoisyMarginal(
                (i,),
                (tuple(range(each.size)),),
                _merged(noisy[i], (each,)).astype(np.float64),
                standard_deviation(noise),
            )
            for i, (each, noise) in enumerate(zip(known, self.noises.counted, strict=True))
        ]
        twos: Secret[dict[Pair, Whole]] = Secret({})
        if self.noises.pairs:
            run.progress(0.05, "counting pairs")
            twos = Secret(counts(run, self.noises.twos).through(lambda found: _pairs(found, known)))
            model, measured = self._fit(run, known, twos, measured, model, total)
        run.progress(0.9, "drawing rows")
        some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on the randomness of rows
        rows = model.rows(self.size or min(max(1, round(total)), self.max_rows), some)
        run.progress(0.95, "comparing")
        utilities = self._utilities(run, known, rows, ones, twos, total)
        outputs = tuple(
            Output(each.name, each.column.kind.value, own.values(rows[:, i], some))
            for i, (each, own) in enumerate(zip(self.columns, known, strict=True))
        )
        return Published(outputs, self._model(known, measured, utilities, rows, total))

    def _fit(
        self,
        run: Run,
        known: Sequence[Levels],
        twos: Secret[dict[Pair, Whole]],
        measured: list[NoisyMarginal],
        model: Model,
        total: float,
    ) -> tuple[Model, list[NoisyMarginal]]:
        """Select pairs with large errors of the model, measure them, and fit the model again; in several rounds."""
        sizes, listed = [each.size for each in known], candidates(known)
        # the mean of |Z| is the expected error of the noise on a sum
        noise = standard_deviation(self.noises.measured) * (
            sqrt(2 / np.pi) if isinstance(self.noises.measured, Gaussian) else sqrt(1 / 2)
        )
        chosen: list[Pair] = []
        for turn, picks in enumerate(self._selections_per_round()):
            run.progress(0.1 + 0.8 * turn / self.rounds, f"selecting pairs, turn {turn + 1} of {self.rounds}")
            told = partial(scores, listed=listed, model=model.pairs(), total=total, noise=noise)
            scored = Secret(twos.through(told))
            taken: set[Pair] = set()
            for _ in range(picks):
                allowed = self._allowed(sizes, listed, chosen, taken, tree=turn == 0)
                each = listed[self._selected(run, scored, allowed)]
                measured.append(self._measured(run, twos, each))
                chosen.append(each.pair)
                taken.add(each.pair)
            run.progress(0.1 + 0.8 * (turn + 0.5) / self.rounds, f"telling the model, turn {turn + 1} of {self.rounds}")
            model = fit(sizes, measured, total, last=turn == self.rounds - 1, start=model if turn else None)
        return model, measured

    def _selected(self, run: Run, scored: Secret[Whole], allowed: Whole) -> int:
        """Select one of the allowed candidates."""
        best = self.noises.selection(len(allowed))
        return int(allowed[scored.through(lambda found: best.sample(found[allowed], run.source))])

    def _measured(self, run: Run, twos: Secret[dict[Pair, Whole]], each: Candidate) -> NoisyMarginal:
        """Measure the selected pair."""
        sums = twos.through(lambda true: self.noises.measured.sample(each.sums(true[each.pair]), run.source))
        groups = tuple(tuple(map(int, own)) for own in each.groups)
        return NoisyMarginal(
            each.pair, groups, sums.ravel().astype(np.float64), standard_deviation(self.noises.measured)
        )

    def _selections_per_round(self) -> list[int]:
        """Distribute the selections over the rounds: a tree first, so that every column is in a pair."""
        if self.rounds == 1:
            return [self.noises.pairs]
        first = min(self.noises.pairs, len(self.columns) - 1)
        left, found = self.noises.pairs - first, [first]
        for turn in range(self.rounds - 1, 0, -1):
            found.append(ceil(left / turn))
            left -= found[-1]
        return found

    def _allowed(
        self, sizes: Sequence[int], listed: Sequence[Candidate], chosen: Sequence[Pair], taken: set[Pair], *, tree: bool
    ) -> Whole:
        """Find the candidates that can be selected now, using earlier selections only."""
        every = {each.pair for each in listed}
        joins = {pair for pair in every if forest(chosen, pair)} if tree else set()
        fitting = small_enough(sizes, chosen, joins or every - taken or every, MAX_CELLS)
        # a pair that was selected before always fits
        return np.array([i for i, each in enumerate(listed) if each.pair in (fitting or set(chosen))], dtype=np.int64)

    def _utilities(
        self,
        run: Run,
        known: Sequence[Levels],
        rows: Whole,
        ones: Secret[list[Whole]],
        twos: Secret[dict[Pair, Whole]],
        total: float,
    ) -> list[ColumnUtility]:
        """Estimate the error of the rows, column by column, from noisy sums of differences."""
        scale = total / len(rows)
        singles = [np.rint(np.bincount(rows[:, i], minlength=each.size) * scale) for i, each in enumerate(known)]
        off = ones.through(
            lambda true: self.noises.reported[0].sample(
                np.array([np.abs(t - s.astype(np.int64)).sum() for t, s in zip(true, singles, strict=True)]), run.source
            )
        )
        wide: Counts | None = None
        if self.noises.pairs:
            wide = twos.through(lambda true: self.noises.reported[1].sample(_off(true, rows, known, scale), run.source))
        halves = [self.noises.budget.half_width(standard_deviation(each)) for each in self.noises.reported]
        return column_utilities([each.name for each in self.columns], off, wide, halves, total)

    def _model(
        self,
        known: Sequence[Levels],
        measured: Sequence[NoisyMarginal],
        utilities: Sequence[ColumnUtility],
        rows: Whole,
        total: float,
    ) -> dict[str, Any]:
        """Give all measurements and the report."""
        return {
            "total": round(total, 3),
            "rows": len(rows),
            "noise": self.noises.budget.noise,
            "shares": dict(self.noises.shares),
            "columns": [
                {
                    "name": of.asked.name,
                    "levels": of.labels(),
                    "measured": each.noisy.astype(np.int64).tolist(),
                    "deviation": each.deviation,
                    "synthetic": np.bincount(rows[:, i], minlength=of.size).tolist(),
                }
                for i, (of, each) in enumerate(zip(known, measured, strict=False))
            ],
            "pairs": [
                {
                    "columns": [self.columns[c].name for c in each.columns],
                    "groups": [list(own) for own in each.groups],
                    "measured": each.noisy.astype(np.int64).tolist(),
                    "deviation": each.deviation,
                }
                for each in measured[len(known) :]
            ],
            "utility": [each.to_json() for each in utilities],
        }


def _total(noisy: Sequence[Counts], noises: Sequence[AdditiveNoise]) -> float:
    """Estimate the number of rows from every column's counts, weighted by their accuracy."""
    weights = np.array(
        [1 / (len(each) * standard_deviation(noise) ** 2) for each, noise in zip(noisy, noises, strict=True)]
    )
    sums = np.array([float(each.sum()) for each in noisy])
    return max(1.0, float(sums @ weights / weights.sum()))


def _merged(table: Whole, known: Sequence[Levels]) -> Whole:
    """Sum a table of categories to a table of levels."""
    found = table.reshape([len(each.merged) for each in known])
    for axis, each in enumerate(known):
        if each.size < len(each.merged):
            found = added(found, each.merged, axis)
    return found


def _pairs(found: Sequence[Counts], known: Sequence[Levels]) -> dict[Pair, Whole]:
    names = [(i, j) for i in range(len(known)) for j in range(i + 1, len(known))]
    return {(i, j): _merged(each, (known[i], known[j])) for (i, j), each in zip(names, found, strict=True)}


def _off(true: dict[Pair, Whole], rows: Whole, known: Sequence[Levels], scale: float) -> Counts:
    """Sum the errors of the pairs of each column."""
    found = np.zeros(len(known), dtype=np.int64)
    for (i, j), table in true.items():
        made = np.bincount(rows[:, i] * known[j].size + rows[:, j], minlength=table.size) * scale
        found[[i, j]] += int(np.abs(table - np.rint(made).astype(np.int64).reshape(table.shape)).sum())
    return found
