"""Synthetic rows: select pairs of columns, measure them, and generate rows from what was measured.

CALL synthetic(table => 'visits', columns => ['region', 'age', {'column': 'cost', 'quantiles': 16}])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, isqrt, sqrt
from typing import Any, cast

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.synthetic.columns import Asked, Levels, asked, levels
from hubbub.analyses.synthetic.model import (
    LAST_STEPS,
    STEPS,
    Floats,
    Measured,
    Model,
    Pair,
    Whole,
    fit,
    independent,
    private_pgm,
)
from hubbub.analyses.synthetic.select import Candidate, added, candidates, forest, scores, small_enough
from hubbub.analyses.synthetic.utility import Fares, compared
from hubbub.analyses.tables.marginals import Counts, Marginal, OfMarginal, counts, marginal
from hubbub.analyses.tables.measured import Budget, budgets, expected, half_width
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import mechanism
from hubbub.sql.size import labels_width
from hubbub.sql.split import portions

#: Shares of the budget: counts of each column, selections of pairs, counts of the selected pairs, the report.
SHARES = {"columns": 0.18, "selections": 0.08, "pairs": 0.72, "report": 0.02}
#: Most rows that are made; most cells of the model; most pairs that are measured.
MOST_ROWS = 1_000_000
MOST_CELLS = 200_000
MOST_PAIRS = 128

_Noise = Laplace | Gaussian


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

    columns   names, axes as in a published table ({'column': 'age', 'bins': 10}), or {'column': 'pay', 'quantiles': 16}
    size      how many rows to make; by default about as many as there are, or as many as a release may have
    pairs     how many pairs of columns are measured; by default twice as many as there are columns, less one
    rounds    how often the model is fitted; the first time the pairs make a tree
    """
    on = asked(setting.table(table), columns)
    if size is not None:
        size = numbers.integer(size, "size", 1, MOST_ROWS)
        setting.fits(size, [labels_width(each.axis.labels) for each in on])
    wide = len(on) > 1
    count = numbers.integer(pairs, "pairs", 1, MOST_PAIRS) if wide and pairs is not None else _usual(len(on))
    turns = numbers.integer(rounds, "rounds", 1, 10) if rounds is not None else 3
    if wide:
        with private_pgm():  # whoever has it not is told before anything is charged
            pass
    ones = tuple(marginal(setting, table, [each.axis], where=where) for each in on)
    twos = tuple(
        marginal(setting, table, [one.axis, other.axis], where=where)
        for place, one in enumerate(on)
        for other in on[place + 1 :]
    )
    budget = budgets(setting, noise)[-1]
    return Synthesis(setting, ones[0], on, size, count, turns, ones, twos, budget, SHARES if wide else _narrow())


def _usual(columns: int) -> int:
    return 0 if columns == 1 else max(2, min(MOST_PAIRS, 2 * columns - 1))


def _narrow() -> dict[str, float]:
    """Share the budget where there is one column only."""
    return {"columns": SHARES["columns"] + SHARES["selections"] + SHARES["pairs"], "report": SHARES["report"]}


@dataclass(frozen=True)
class Synthesis(OfMarginal):
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

    columns: tuple[Asked, ...]
    size: int | None
    pairs: int
    rounds: int
    ones: tuple[Marginal, ...]
    twos: tuple[Marginal, ...]
    budget: Budget
    shares: dict[str, float]

    @property
    def delta(self) -> Fraction:
        """The δ of it: none with Laplace noise."""
        return self.setting.delta if self.budget.noise == "gaussian" else Fraction(0)

    @property
    def noise(self) -> str:
        """The kind of noise."""
        return self.budget.noise

    @cached_property
    def _parts(self) -> dict[str, Fraction]:
        return dict(zip(self.shares, portions(self.budget.amount, list(self.shares.values())), strict=True))

    @cached_property
    def counted(self) -> tuple[_Noise, ...]:
        """The noise on the counts of each column."""
        parts = portions(self._parts["columns"], [1.0] * len(self.ones))
        return tuple(
            mechanism(self.budget.noise, each.sensitivity, part) for each, part in zip(self.ones, parts, strict=True)
        )

    @cached_property
    def moved(self) -> Sensitivity:
        """How far a unit moves the sums of any pair, however coarse."""
        found = [each.sensitivity for each in self.twos] + [each.part(each.size - 1) for each in self.twos]
        return Sensitivity(max(each.l1 for each in found), max(each.l2_squared for each in found))

    @cached_property
    def measured(self) -> _Noise:
        """The noise on the counts of each selected pair."""
        return mechanism(self.budget.noise, self.moved, _cut(self._parts["pairs"], self.pairs))

    def selection(self, among: int) -> Exponential:
        """Choose among so many candidates; the event does not depend on their number."""
        part = _cut(self._parts["selections"], self.pairs)
        epsilon = part if self.budget.noise == "laplace" else root_below(8 * part)
        return Exponential.from_epsilon(
            candidates=among, sensitivity=self.moved.l1, monotone=False, relation=self.relation, epsilon=epsilon
        )

    @cached_property
    def reported(self) -> tuple[_Noise, ...]:
        """The noise on the report: how far each column is off, and how far its pairs are."""
        d = len(self.columns)
        off = max(each.sensitivity.l1 for each in self.ones)
        vectors = [Sensitivity(d * off, d * off**2)]
        if d > 1:
            vectors.append(Sensitivity(d * (d - 1) * self.moved.l1, d * ((d - 1) * self.moved.l1) ** 2))
        parts = portions(self._parts["report"], [1.0] * len(vectors))
        return tuple(mechanism(self.budget.noise, each, part) for each, part in zip(vectors, parts, strict=True))

    @property
    def event(self) -> Event:
        """The facts that are charged."""
        parts = [(cast(Event, each.event), 1) for each in (*self.counted, *self.reported)]
        if self.pairs:
            parts += [
                (cast(Event, self.measured.event), self.pairs),
                (cast(Event, self.selection(1).event), self.pairs),
            ]
        return Composed(tuple(parts))

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows from the declarations."""
        kind = "Laplace" if self.budget.noise == "laplace" else "Gaussian"
        changed = "one unit more or less" if self.relation is Relation.ADD_REMOVE else "one unit replaced by another"
        lines = [
            f"neighbors differ by {changed}",
            f"{self.shares['columns']:.0%} for the counts of {len(self.ones)} columns: {kind} noise of standard "
            f"deviation {deviation(self.counted[0]):.4g}",
        ]
        if self.pairs:
            lines += [
                f"{self.shares['selections']:.0%} for the selection of {self.pairs} pairs of columns: exponential "
                f"mechanism at ε = {brief(self.selection(1).epsilon)} each; a score moves by at most {self.moved.l1:,}",
                f"{self.shares['pairs']:.0%} for the counts of these pairs: {kind} noise of standard deviation "
                f"{deviation(self.measured):.4g}",
            ]
        return (
            *lines,
            f"{self.shares['report']:.0%} for the report on how far the rows are off",
            "the rows are drawn from a model that was told from these noisy counts alone",
        )

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The error of a count of one category of each column, as measured."""
        return tuple(
            expected(each.name, half_width(self.budget.noise, deviation(noise)))
            for each, noise in zip(self.columns, self.counted, strict=True)
        )

    def run(self, run: Run) -> Published:
        """Count, select and measure in turns, draw rows, and report on them."""
        run.progress(0.02, "counting columns")
        truth = counts(run, self.ones)
        noisy = truth.through(
            lambda found: [noise.sample(each, run.source) for noise, each in zip(self.counted, found, strict=True)]
        )
        total = _total(noisy, self.counted)
        known = [levels(each, counted, total) for each, counted in zip(self.columns, noisy, strict=True)]
        ones = Secret(
            truth.through(lambda found: [_merged(each, (of,)) for each, of in zip(found, known, strict=True)])
        )
        model = independent([each.size for each in known], [each.sums + 1e-9 for each in known])
        measured = [
            Measured((i,), (tuple(range(each.size)),), _merged(noisy[i], (each,)).astype(np.float64), deviation(noise))
            for i, (each, noise) in enumerate(zip(known, self.counted, strict=True))
        ]
        twos: Secret[dict[Pair, Whole]] = Secret({})
        if self.pairs:
            run.progress(0.05, "counting pairs")
            twos = Secret(counts(run, self.twos).through(lambda found: _pairs(found, known)))
            model, measured = self._told(run, known, twos, measured, model, total)
        run.progress(0.9, "drawing rows")
        some = np.random.default_rng(run.source.words(4).tolist())  # rows are free to be drawn by any randomness
        room = max(1, self.setting.max_cells // len(self.columns))
        rows = model.rows(self.size or min(max(1, round(total)), room), some)
        run.progress(0.95, "comparing")
        fares = self._fares(run, known, rows, ones, twos, total)
        outputs = tuple(
            Output(each.name, each.column.kind.value, own.values(rows[:, i], some))
            for i, (each, own) in enumerate(zip(self.columns, known, strict=True))
        )
        return Published(outputs, self._model(known, measured, fares, rows, total))

    def _told(
        self,
        run: Run,
        known: Sequence[Levels],
        twos: Secret[dict[Pair, Whole]],
        measured: list[Measured],
        model: Model,
        total: float,
    ) -> tuple[Model, list[Measured]]:
        """Select pairs where the model is most wrong, measure them, tell the model anew; in several turns."""
        sizes, listed = [each.size for each in known], candidates(known)
        # the mean of |Z| is what the noise adds to a sum's error
        noise = deviation(self.measured) * (sqrt(2 / np.pi) if isinstance(self.measured, Gaussian) else sqrt(1 / 2))
        chosen: list[Pair] = []
        for turn, picks in enumerate(self._turns()):
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
            last = turn == self.rounds - 1
            model = fit(sizes, measured, total, steps=LAST_STEPS if last else STEPS, start=model if turn else None)
        return model, measured

    def _selected(self, run: Run, scored: Secret[Whole], allowed: Whole) -> int:
        """Select one of the candidates that may be."""
        best = self.selection(len(allowed))
        return int(allowed[scored.through(lambda found: best.sample(found[allowed], run.source))])

    def _measured(self, run: Run, twos: Secret[dict[Pair, Whole]], each: Candidate) -> Measured:
        """Measure what was selected."""
        sums = twos.through(lambda true: self.measured.sample(each.sums(true[each.pair]), run.source))
        groups = tuple(tuple(map(int, own)) for own in each.groups)
        return Measured(each.pair, groups, sums.ravel().astype(np.float64), deviation(self.measured))

    def _turns(self) -> list[int]:
        """Share the selections over the turns: a tree first, so that every column is told something of another."""
        if self.rounds == 1:
            return [self.pairs]
        first = min(self.pairs, len(self.columns) - 1)
        left, found = self.pairs - first, [first]
        for turn in range(self.rounds - 1, 0, -1):
            found.append(ceil(left / turn))
            left -= found[-1]
        return found

    def _allowed(
        self, sizes: Sequence[int], listed: Sequence[Candidate], chosen: Sequence[Pair], taken: set[Pair], *, tree: bool
    ) -> Whole:
        """Find the candidates that may be selected now: told from earlier selections alone."""
        every = {each.pair for each in listed}
        joins = {pair for pair in every if forest(chosen, pair)} if tree else set()
        fitting = small_enough(sizes, chosen, joins or every - taken or every, MOST_CELLS)
        # one that is there already always fits
        return np.array([i for i, each in enumerate(listed) if each.pair in (fitting or set(chosen))], dtype=np.int64)

    def _fares(
        self,
        run: Run,
        known: Sequence[Levels],
        rows: Whole,
        ones: Secret[list[Whole]],
        twos: Secret[dict[Pair, Whole]],
        total: float,
    ) -> list[Fares]:
        """Tell how far the rows are from the data, column by column: from noisy sums of differences."""
        scale = total / len(rows)
        singles = [np.rint(np.bincount(rows[:, i], minlength=each.size) * scale) for i, each in enumerate(known)]
        off = ones.through(
            lambda true: self.reported[0].sample(
                np.array([np.abs(t - s.astype(np.int64)).sum() for t, s in zip(true, singles, strict=True)]), run.source
            )
        )
        wide: Counts | None = None
        if self.pairs:
            wide = twos.through(lambda true: self.reported[1].sample(_off(true, rows, known, scale), run.source))
        halves = [half_width(self.budget.noise, deviation(each)) for each in self.reported]
        return compared([each.name for each in self.columns], off, wide, halves, total)

    def _model(
        self, known: Sequence[Levels], measured: Sequence[Measured], fares: Sequence[Fares], rows: Whole, total: float
    ) -> dict[str, Any]:
        """Give everything that was measured, and the report."""
        return {
            "total": round(total, 3),
            "rows": len(rows),
            "noise": self.budget.noise,
            "shares": self.shares,
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
            "utility": [each.form() for each in fares],
        }


def root_below(square: Fraction) -> Fraction:
    """Give a number whose square is at most this, and nearly so.

    >>> root_below(Fraction(2)) ** 2 <= 2, float(root_below(Fraction(2)))
    (True, 1.414213562373)
    """
    whole = isqrt(square.numerator * 10**24 // square.denominator)
    if not whole:
        raise QueryError(
            "HB593", "so small a budget leaves nothing for the selections.", "Raise ε, or ask for fewer pairs."
        )
    return Fraction(whole, 10**12)


def deviation(noise: _Noise) -> float:
    """Give the standard deviation of what is added, about."""
    return sqrt(2) * float(noise.scale) if isinstance(noise, Laplace) else sqrt(float(noise.variance))


def _cut(amount: Fraction, count: int) -> Fraction:
    """Give one of so many equal parts that add up to no more than the amount."""
    return portions(amount, [1.0] * count)[0]


def _total(noisy: Sequence[Counts], noises: Sequence[_Noise]) -> float:
    """Estimate the number of rows from every column's counts: the columns with few categories know it best."""
    weights = np.array([1 / (len(each) * deviation(noise) ** 2) for each, noise in zip(noisy, noises, strict=True)])
    sums = np.array([float(each.sum()) for each in noisy])
    return max(1.0, float(sums @ weights / weights.sum()))


def _merged(table: Whole, known: Sequence[Levels]) -> Whole:
    """Add a table of categories up to one of levels."""
    found = table.reshape([len(each.merged) for each in known])
    for axis, each in enumerate(known):
        if each.size < len(each.merged):
            found = added(found, each.merged, axis)
    return found


def _pairs(found: Sequence[Counts], known: Sequence[Levels]) -> dict[Pair, Whole]:
    names = [(i, j) for i in range(len(known)) for j in range(i + 1, len(known))]
    return {(i, j): _merged(each, (known[i], known[j])) for (i, j), each in zip(names, found, strict=True)}


def _off(true: dict[Pair, Whole], rows: Whole, known: Sequence[Levels], scale: float) -> Counts:
    """Add up, for each column, by how much its pairs are off."""
    found = np.zeros(len(known), dtype=np.int64)
    for (i, j), table in true.items():
        made = np.bincount(rows[:, i] * known[j].size + rows[:, j], minlength=table.size) * scale
        found[[i, j]] += int(np.abs(table - np.rint(made).astype(np.int64).reshape(table.shape)).sum())
    return found


__all__ = ["Floats", "Synthesis", "synthetic"]
