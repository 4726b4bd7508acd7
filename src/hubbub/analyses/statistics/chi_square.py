"""Chi-square tests on private tables: independence of two columns, or the distribution of one.

CALL chi_square(table => 'visits', columns => ['region', 'smoker'])
CALL chi_square(table => 'visits', columns => ['region'], shares => [0.4, 0.3, 0.2, 0.1])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.statistics.chi_square_null import chi_square_p, fitted
from hubbub.analyses.statistics.null import Floats, noncentrality, one_row_each
from hubbub.analyses.tables.axes import Axis, axes
from hubbub.analyses.tables.marginals import Marginal, counts, marginal
from hubbub.analyses.tables.table_release import (
    TableRelease,
    noise_line,
    opening_lines,
    table_budgets,
    table_release,
)
from hubbub.answers.arrow import library
from hubbub.answers.estimate import TYPICAL_ROWS, Expected
from hubbub.answers.release import Output, Release
from hubbub.core.numbers import exact
from hubbub.errors import QueryError
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget
from hubbub.sql.release_size import NUMBER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Maximum number of cells: each is simulated some thousand times.
MAX_CELLS = 1_000


def chi_square(
    setting: Setting,
    *,
    table: str,
    columns: list[object],
    shares: list[Fraction] | None = None,
    where: str | None = None,
    noise: str | None = None,
) -> TableRelease:
    """Prepare a chi-square test: of independence for two columns, of goodness of fit for one.

    columns  one or two axes: names of columns, or {'column': 'age', 'bins': 5}
    shares   for one column, the share that is expected in each category, in their order (default: equal shares)

    Theorem (Chi-square test of a noisy table). Statistic, p-value and expected counts are functions of one vector of
    noisy counts and of the public law of its noise; they cost what the noise costs.
    Proof    Post-processing. The simulations are drawn from random words that are not used for the noise.
    Assumes  rows that are independent: each unit counts with one row ("Independent rows").
    Charges  the noise of the table, once.
    Error    under the null hypothesis p ≤ α with probability at most α, simulated for tables of 5 to 2,000 rows.
    Tested   tests/analyses/statistics/test_chi_square.py::test_a_true_null_hypothesis_is_rejected_no_more_than_stated
             tests/analyses/statistics/test_chi_square.py::test_the_p_value_is_that_of_scipy_where_noise_is_negligible
    """
    setting = one_row_each(setting)
    on = axes(setting.table(table), columns)
    if len(on) > 2 or (len(on) == 2 and shares is not None):
        raise QueryError(
            "HB587", "A chi-square test takes one column, with shares or without, or two.", "List one or two columns."
        )
    if any(each.size < 2 for each in on):
        raise QueryError("HB587", "A column has fewer than two categories.", "Choose another column, or other bins.")
    asked = marginal(setting, table, on, where=where)
    if asked.size > MAX_CELLS:
        raise QueryError("HB587", f"A chi-square test has at most {MAX_CELLS:,} cells.", "Use bins.")
    expected_shares = _shares(on[0], shares) if len(on) == 1 else None
    setting.fits(1, [NUMBER] * 4)
    options = [(each, each.mechanisms([asked.sensitivity], [1.0])[0]) for each in table_budgets(setting, noise)]
    budget, mechanism = min(options, key=lambda option: standard_deviation(option[1]))
    degrees = asked.size - 1 if len(on) == 1 else (on[0].size - 1) * (on[1].size - 1)
    size = effect_size(asked.size, degrees, standard_deviation(mechanism))
    what = "independent" if len(on) == 2 else "distributed as expected"
    return table_release(
        setting,
        asked,
        budget,
        (mechanism,),
        derivation=(
            *opening_lines(asked, "rows"),
            noise_line("the table", asked.sensitivity, mechanism),
            f"the p-value is simulated: tables whose columns are {what}, with this noise; post-processing",
        ),
        expected=(Expected("effect size w that is found with probability 0.8 at p ≤ 0.05", size, TYPICAL_ROWS, size),),
        publish=partial(_publish, asked, budget, mechanism, expected_shares, degrees),
    )


def effect_size(cells: int, degrees: int, deviation: float, rows: int = TYPICAL_ROWS) -> float:
    """Give the effect size w (Cohen) that a test at 5% finds with probability 0.8, for cells of equal size.

    With n rows in k cells and noise of variance v the noncentrality is n·w²/(1 + v·k/n).
    """
    return sqrt(noncentrality(degrees) * (1 + deviation**2 * cells / rows) / rows)


def _shares(axis: Axis, shares: Sequence[Fraction] | None) -> Floats:
    given = [Fraction(1, axis.size)] * axis.size if shares is None else [exact(each, "a share") for each in shares]
    if len(given) != axis.size or any(not each > 0 for each in given):
        raise QueryError(
            "HB587",
            f"shares must have a positive number for each of the {axis.size} categories of {axis.name}.",
            "List one for each category, in the order of the declaration.",
        )
    return np.array([[float(each / sum(given))] for each in given])


def _publish(
    asked: Marginal, budget: NoiseBudget, mechanism: AdditiveNoise, shares: Floats | None, degrees: int, run: Run
) -> Published:
    run.progress(0.1, "counting")
    noisy = counts(run, [asked]).through(lambda exact_counts: mechanism.sample(exact_counts[0], run.source))
    run.progress(0.4, "simulating")
    table = noisy.astype(np.float64).reshape(asked.shape if shares is None else (asked.size, 1))
    some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on it
    statistic, p = chi_square_p(table, mechanism, some, shares)
    total = float(table.sum())
    half = budget.half_width(standard_deviation(mechanism) * sqrt(table.size))
    model = {
        "columns": list(asked.names),
        "labels": [[str(label) for label in axis.labels] for axis in asked.axes],
        "shape": list(table.shape),
        "table": noisy.tolist(),
        "expected": fitted(table, shares).ravel().tolist(),
        "deviation": standard_deviation(mechanism),
        "statistic": statistic,
        "degrees": degrees,
        "p_value": p,
    }
    run.progress(0.9, "writing")
    outputs = (
        Output("p_value", "real", [round(p, 6)]),
        Output("statistic", "real", [round(statistic, 6)]),
        Output("degrees of freedom", "integer", [degrees]),
        Output("rows", "integer", [max(0, round(total))], [max(0.0, total - half)], [max(0.0, total + half)]),
    )
    return Published(outputs, model)


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """The result of a chi-square test, with the names that scipy uses; `table` holds the noisy counts."""

    pvalue: float
    statistic: float
    dof: int
    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    table: Floats
    expected_freq: Floats
    deviation: float

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "chi_square")
        table, expected = (np.array(model[key]).reshape(model["shape"]) for key in ("table", "expected"))
        labels = tuple(tuple(each) for each in model["labels"])
        columns, dof = tuple(model["columns"]), model["degrees"]
        return cls(model["p_value"], model["statistic"], dof, columns, labels, table, expected, model["deviation"])

    @property
    def residuals(self) -> Floats:
        """What each cell has more than expected, in standard deviations of sampling and noise together."""
        return np.asarray((self.table - self.expected_freq) / np.sqrt(self.expected_freq + self.deviation**2))

    def plot(self) -> "Axes":
        """Plot the residuals: blue cells have more than expected, red ones less."""
        pyplot: Any = library("matplotlib.pyplot")
        figure, axes = pyplot.subplots()
        most = max(3.0, float(np.abs(self.residuals).max()))
        image = axes.imshow(self.residuals, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
        rows, columns = self.labels[0], self.labels[1] if len(self.labels) == 2 else ("",)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_ylabel(self.columns[0])
        if len(self.columns) == 2:
            axes.set_xlabel(self.columns[1])
        axes.set_title(f"p = {self.pvalue:.3g}")
        figure.colorbar(image, label="standard deviations from the expected count")
        return axes  # type: ignore[no-any-return]
