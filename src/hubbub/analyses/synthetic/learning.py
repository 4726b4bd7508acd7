"""The steps of a synthesis: count columns, select and measure pairs in rounds, fit the model, and report its error.

Tested in tests/analyses/synthetic/test_synthetic.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt
from typing import Any

import numpy as np

from hubbub.analyses.base import Run
from hubbub.analyses.synthetic.columns import Levels, SyntheticColumn, levels
from hubbub.analyses.synthetic.estimation import NoisyMarginal
from hubbub.analyses.synthetic.junction_tree import Pair
from hubbub.analyses.synthetic.model import Model, Whole, fit, independent
from hubbub.analyses.synthetic.noise import SynthesisNoise
from hubbub.analyses.synthetic.select import Candidate, added, candidates, forest, scores, small_enough
from hubbub.analyses.synthetic.utility import ColumnUtility, column_utilities
from hubbub.analyses.tables.marginals import Counts, counts
from hubbub.core.secret import Secret
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

#: Maximum number of cells of a model.
MAX_CELLS = 200_000


@dataclass(frozen=True)
class Learned:
    """What is known after the rounds: the first columns may be given, the others were counted.

    known     the levels of all columns
    measured  the noisy sums of the counted columns, those that were given, and those of the selected pairs
    selected  of these, the first of the selected pairs
    ones      the exact counts of the counted columns, and `twos` of all pairs, still secret
    """

    known: tuple[Levels, ...]
    measured: tuple[NoisyMarginal, ...]
    selected: int
    model: Model
    ones: Secret[list[Whole]]
    twos: Secret[dict[Pair, Whole]]
    total: float


@dataclass(frozen=True)
class Learner:
    """Counts columns, and selects, measures and fits pairs of them in several rounds.

    columns  the columns that are counted; they come after those that are given
    wide     the pairs of columns that can be selected, in the order of the noise's marginals
    first    how many pairs of the first round connect columns that no pair connects yet
    cells    the maximum number of cells of the model
    """

    columns: tuple[SyntheticColumn, ...]
    noises: SynthesisNoise
    rounds: int
    wide: tuple[Pair, ...]
    first: int
    cells: int = MAX_CELLS

    def learn(
        self,
        run: Run,
        given: Sequence[Levels] = (),
        fixed: Callable[[float], Sequence[NoisyMarginal]] = lambda _: (),
    ) -> Learned:
        """Count, select and measure; `fixed` gives noisy sums of the given columns for a number of rows."""
        run.progress(0.02, "counting columns")
        truth = counts(run, self.noises.ones)
        noisy = truth.through(
            lambda found: [
                noise.sample(each, run.source) for noise, each in zip(self.noises.counted, found, strict=True)
            ]
        )
        total = _total(noisy, self.noises.counted)
        own = [levels(each, counted, total) for each, counted in zip(self.columns, noisy, strict=True)]
        known = (*given, *own)
        ones = Secret(truth.through(lambda found: [merged(each, (of,)) for each, of in zip(found, own, strict=True)]))
        model = independent([each.size for each in known], [each.sums + 1e-9 for each in known])
        measured = [
            NoisyMarginal(
                (len(given) + i,),
                (tuple(range(each.size)),),
                merged(noisy[i], (each,)).astype(np.float64),
                standard_deviation(noise),
            )
            for i, (each, noise) in enumerate(zip(own, self.noises.counted, strict=True))
        ] + list(fixed(total))
        selected = len(measured)
        twos: Secret[dict[Pair, Whole]] = Secret({})
        if self.noises.pairs:
            run.progress(0.05, "counting pairs")
            twos = Secret(counts(run, self.noises.twos).through(lambda found: self._tables(found, known)))
            model, measured = self._fitted(run, known, twos, measured, model, total)
        return Learned(known, tuple(measured), selected, model, ones, twos, total)

    def report(self, run: Run, learned: Learned, rows: Whole) -> list[ColumnUtility]:
        """Estimate the error of the rows, column by column, from noisy sums of differences."""
        scale = learned.total / max(1, len(rows))
        given = len(learned.known) - len(self.columns)
        singles = [
            np.rint(np.bincount(rows[:, given + i], minlength=each.size) * scale)
            for i, each in enumerate(learned.known[given:])
        ]
        off = learned.ones.through(
            lambda true: self.noises.reported[0].sample(
                np.array([np.abs(t - s.astype(np.int64)).sum() for t, s in zip(true, singles, strict=True)]), run.source
            )
        )
        wide: Counts | None = None
        if self.noises.pairs:
            wide = learned.twos.through(
                lambda true: self.noises.reported[1].sample(_off(true, rows, learned.known, scale)[given:], run.source)
            )
        halves = [self.noises.budget.half_width(standard_deviation(each)) for each in self.noises.reported]
        names = [each.name for each in self.columns]
        return column_utilities(names, off, wide, halves, learned.total, others=self.noises.partners)

    def describe(self, learned: Learned, utilities: Sequence[ColumnUtility], rows: Whole) -> dict[str, Any]:
        """Give all measurements and the report."""
        given = len(learned.known) - len(self.columns)
        return {
            "total": round(learned.total, 3),
            "rows": len(rows),
            "noise": self.noises.budget.noise,
            "shares": dict(self.noises.shares),
            "columns": [
                {
                    "name": of.asked.name,
                    "levels": of.labels(),
                    "measured": each.noisy.astype(np.int64).tolist(),
                    "deviation": each.deviation,
                    "synthetic": np.bincount(rows[:, given + i], minlength=of.size).tolist(),
                }
                for i, (of, each) in enumerate(zip(learned.known[given:], learned.measured, strict=False))
            ],
            "pairs": [
                {
                    "columns": [learned.known[c].asked.name for c in each.columns],
                    "groups": [list(own) for own in each.groups],
                    "measured": each.noisy.astype(np.int64).tolist(),
                    "deviation": each.deviation,
                }
                for each in learned.measured[learned.selected :]
            ],
            "utility": [each.to_json() for each in utilities],
        }

    def _tables(self, found: Sequence[Counts], known: Sequence[Levels]) -> dict[Pair, Whole]:
        """Sum the counts of all pairs to tables of levels."""
        return {(i, j): merged(each, (known[i], known[j])) for (i, j), each in zip(self.wide, found, strict=True)}

    def _fitted(
        self,
        run: Run,
        known: Sequence[Levels],
        twos: Secret[dict[Pair, Whole]],
        measured: list[NoisyMarginal],
        model: Model,
        total: float,
    ) -> tuple[Model, list[NoisyMarginal]]:
        """Add the selected pairs to the measurements; pairs that are measured already count as selected."""
        sizes = [each.size for each in known]
        listed = tuple(each for each in candidates(known) if each.pair in set(self.wide))
        # the mean of |Z| is the expected error of the noise on a sum
        noise = standard_deviation(self.noises.measured) * (
            sqrt(2 / np.pi) if isinstance(self.noises.measured, Gaussian) else sqrt(1 / 2)
        )
        chosen: list[Pair] = [(each.columns[0], each.columns[1]) for each in measured if len(each.columns) == 2]
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
        first = min(self.noises.pairs, self.first)
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
        fitting = small_enough(sizes, chosen, joins or every - taken or every, self.cells)
        # a pair that was selected before always fits
        return np.array([i for i, each in enumerate(listed) if each.pair in (fitting or set(chosen))], dtype=np.int64)


def merged(table: Whole, known: Sequence[Levels]) -> Whole:
    """Sum a table of categories to a table of levels."""
    found = table.reshape([len(each.merged) for each in known])
    for axis, each in enumerate(known):
        if each.size < len(each.merged):
            found = added(found, each.merged, axis)
    return found


def _total(noisy: Sequence[Counts], noises: Sequence[AdditiveNoise]) -> float:
    """Estimate the number of rows from every column's counts, weighted by their accuracy."""
    weights = np.array(
        [1 / (len(each) * standard_deviation(noise) ** 2) for each, noise in zip(noisy, noises, strict=True)]
    )
    sums = np.array([float(each.sum()) for each in noisy])
    return max(1.0, float(sums @ weights / weights.sum()))


def _off(true: dict[Pair, Whole], rows: Whole, known: Sequence[Levels], scale: float) -> Counts:
    """Sum the errors of the pairs of each column."""
    found = np.zeros(len(known), dtype=np.int64)
    for (i, j), table in true.items():
        made = np.bincount(rows[:, i] * known[j].size + rows[:, j], minlength=table.size) * scale
        found[[i, j]] += int(np.abs(table - np.rint(made).astype(np.int64).reshape(table.shape)).sum())
    return found
