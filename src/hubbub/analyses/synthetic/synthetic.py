"""Synthetic rows: select pairs of columns, measure them, and generate rows from the measurements.

CALL synthetic(table => 'visits', columns => ['region', 'age', {'column': 'cost', 'quantiles': 16}])
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.synthetic.columns import SyntheticColumn, asked
from hubbub.analyses.synthetic.learning import Learner
from hubbub.analyses.synthetic.noise import SynthesisNoise
from hubbub.analyses.tables.marginals import marginal
from hubbub.analyses.tables.table_release import expected, table_budgets
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.sql.noise import standard_deviation
from hubbub.sql.release_size import labels_width

#: Shares of the budget: counts of columns, selections of pairs, counts of the selected pairs, and the report.
SHARES = {"columns": 0.18, "selections": 0.08, "pairs": 0.72, "report": 0.02}
#: Maximum numbers of rows, and of measured pairs.
MAX_ROWS = 1_000_000
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
    count = numbers.integer(pairs, "pairs", 1, MAX_PAIRS) if wide and pairs is not None else usual_pairs(len(on))
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


def usual_pairs(columns: int) -> int:
    """Give the number of pairs that are measured unless the analyst chooses."""
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

    @property
    def learner(self) -> Learner:
        """Give the steps of the run."""
        wide = tuple(combinations(range(len(self.columns)), 2))
        return Learner(self.columns, self.noises, self.rounds, wide, first=len(self.columns) - 1)

    def run(self, run: Run) -> Published:
        """Count, select and measure in rounds, sample rows, and report their error."""
        learned = self.learner.learn(run)
        run.progress(0.9, "drawing rows")
        some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on the randomness of rows
        rows = learned.model.rows(self.size or min(max(1, round(learned.total)), self.max_rows), some)
        run.progress(0.95, "comparing")
        utilities = self.learner.report(run, learned, rows)
        outputs = tuple(
            Output(each.name, each.column.kind.value, own.values(rows[:, i], some))
            for i, (each, own) in enumerate(zip(self.columns, learned.known, strict=True))
        )
        return Published(outputs, self.learner.describe(learned, utilities, rows))
