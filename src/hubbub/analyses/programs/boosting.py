"""Explainable boosting: a sum of one shape function for each column, learned from noisy sums over its buckets.

The log-odds of a row are an intercept and, for each column, the value of the bucket that the row is in: what a column
does can be read from a plot. Columns take turns: each turn asks for the sum of (label − probability) in each bucket of
one column and moves that column's values until the sums would be zero (as in DP-EBM, Nori and others 2021).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.attributes import Attribute, Rows, bucket_numbers, by_columns
from hubbub.analyses.programs.inputs import ProgramInput, added, call, column_values, equals, numbered_cells, real
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.naive_bayes import class_count_request, class_counts, classifier_input, panels
from hubbub.analyses.programs.regression import json_value, positive_last
from hubbub.analyses.programs.vectors import STEPS, Floats, on_grid, over_cells, totals
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col
from hubbub.sql.noise import standard_deviation
from hubbub.sql.relations import Project

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS = 3
MAX_ROUNDS = 20
MAX_TURNS = 200  #: rounds times columns, each of which is a query

# Chosen on the made-up families named in docs/decisions/0123-classifiers.md, none of which a benchmark reports.
_COUNTS = 0.3  #: share of the budget for the counts of both classes in each bucket
_SPREAD = 0.7  #: assumed size of a move of the first round, which each later round halves
_TURN = 2.0  #: the most that one turn moves the log-odds of a bucket


@dataclass(frozen=True, kw_only=True)
class BoostingAnalysis(PreparedAnalysis):
    """Prepared explainable boosting."""

    inputs: ProgramInput
    attributes: tuple[Attribute, ...]
    values: tuple[Value, ...]  #: all that the target can be
    classes: tuple[Value, Value]
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Count once, then let columns take turns."""
        noises = self.allocation.noises
        counts = class_counts(run, self.inputs, self.attributes, self.values, noises[0])
        place = self.values.index(self.classes[1])
        counted = standard_deviation(noises[0]) * np.sqrt(len(self.values))
        rows = [np.maximum(each.sum(axis=1), 1.0) for each in counts]
        total = max(1.0, float(np.mean([each.sum() for each in rows])))
        base = float(np.clip(np.mean([each[:, place].sum() for each in counts]) / total, 1e-3, 1 - 1e-3))
        # what the noise hides is taken to be as in all rows
        shares = [
            (np.maximum(table[:, place], 0.0) + counted * base) / (each + counted)
            for table, each in zip(counts, rows, strict=True)
        ]
        intercept = log(base / (1 - base))
        shapes = [np.zeros(len(each)) for each in rows]
        turns, done = self.rounds * len(shapes), 0
        for number in range(self.rounds):
            for j, attribute in enumerate(self.attributes):
                residual = self._residuals(run, attribute, intercept, shapes)
                noise = standard_deviation(noises[1]) / STEPS
                held = rows[j] + noise
                error = noise / (held * shares[j] * (1 - shares[j]))
                spread = (_SPREAD / 2**number) ** 2
                shapes[j] = shapes[j] + turn(shares[j], residual / held, spread / (spread + error**2))
                middle = float(rows[j] @ shapes[j] / rows[j].sum())
                shapes[j], intercept = shapes[j] - middle, intercept + middle
                done += 1
                run.progress(done / turns, f"turn {done} of {turns}")
        return self._published(intercept, shapes, rows, counted)

    def _residuals(self, run: Run, attribute: Attribute, intercept: float, shapes: list[Floats]) -> Floats:
        """Get the noisy sum of label − probability over the rows of each bucket with one query."""
        target = self.inputs.column(self.inputs.names[-1])
        effects = [
            each.choose([real(on_grid(value)) for value in shape])
            for each, shape in zip(self.attributes, shapes, strict=True)
        ]
        margin = call("add", added(effects), real(on_grid(intercept)))
        chance = call("div", real(1), call("add", real(1), call("exp", call("neg", margin))))
        label = call("case", equals(target, self.classes[1]), real(1), real(0))
        residual = call("sub", label, chance)
        bucket = attribute.number()
        rows = Project(self.inputs.rows, (("residual", residual), ("bucket", bucket)))
        left, number = Col("residual", residual.kind, residual.facts), Col("bucket", bucket.kind)
        cells = numbered_cells(number, len(attribute.tests))
        exact = self.inputs.integers(run, rows, cells, totals([left]))
        noisy = exact.through(lambda sums: self.allocation.noises[1].sample(sums[0], run.source))
        return np.asarray(noisy / STEPS)

    def _published(self, intercept: float, shapes: list[Floats], rows: list[Floats], noise: float) -> Published:
        labels = [(each.column, label) for each in self.attributes for label in each.labels]
        half = 1.96 * noise
        many = np.concatenate(rows)
        outputs = (
            Output("column", "text", [column for column, _ in labels]),
            Output("bucket", "text", [label for _, label in labels]),
            Output("effect", "real", np.concatenate(shapes).tolist()),
            Output("rows", "real", many.tolist(), (many - half).tolist(), (many + half).tolist()),
        )
        model = {
            "columns": [each.column for each in self.attributes],
            "target": self.inputs.names[-1],
            "classes": [json_value(each) for each in self.classes],
            "attributes": [each.to_json() for each in self.attributes],
            "labels": [each.labels for each in self.attributes],
            "shapes": [each.tolist() for each in shapes],
            "intercept": intercept,
        }
        return Published(outputs, model)


def turn(shares: Floats, residual: Floats, trust: Floats) -> Floats:
    """Give how far the log-odds of buckets move so that mean probabilities become the shares of the positive class.

    A bucket's mean probability now is its share less its mean residual. Buckets move by as much as they are trusted.
    """
    now = np.clip(shares - residual, 1e-3, 1 - 1e-3)
    then = np.clip(shares, 1e-3, 1 - 1e-3)
    step = np.log(then / (1 - then)) - np.log(now / (1 - now))
    return np.asarray(trust * np.clip(step, -_TURN, _TURN))


def explainable_boosting(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    positive: Value | None = None,
    bins: int = 16,
    rounds: int = ROUNDS,
) -> BoostingAnalysis:
    """Prepare explainable boosting for a two-valued target.

    Theorem (Boosting from noisy residuals). The shape functions are functions of noisy class counts by bucket and, for
    each turn, of noisy sums of label − p over the buckets of one column: they cost what these noises cost.
    Proof    |label − p| ≤ 1, each row lies in one bucket of the column, and its integer is clamped to ±S: a vector of
             norm at most S in bounded cells, whatever shapes earlier answers gave. The counts are "Class counts by
             bucket". All else is post-processing.
    Charges  Together of the event of the counts, and that of the sums as many times as there are turns.
    Error    of the sums of a turn, in rows: their noise.
    Tested   tests/analyses/programs/test_boosting.py::test_what_is_drawn_is_what_is_charged
             tests/analyses/programs/test_boosting.py::test_residuals_of_neighbors_are_within_the_sensitivity

    positive   the value that counts as 1; by default the second of two declared values
    """
    rounds = numbers.integer(rounds, "rounds", 1, MAX_ROUNDS)
    inputs, attributes = classifier_input(setting, table, columns, target, bins)
    turns = rounds * len(attributes)
    if turns > MAX_TURNS:
        raise QueryError(
            "HB545", f"{rounds} rounds over {len(attributes)} columns are too many.", "Use fewer rounds or columns."
        )
    values = column_values(inputs, inputs.names[-1])
    classes = positive_last(values, positive)
    most = max(len(each.tests) for each in attributes)
    sums = over_cells(STEPS, STEPS**2, inputs.contribution_bounds(most), inputs.relation)
    needs = [
        class_count_request(inputs, len(attributes), len(values), _COUNTS),
        NoiseRequest(sums, 1 - _COUNTS, turns),
    ]
    allocation = allocate_budget(setting, needs)
    half = float(allocation.noises[1].error(Fraction(95, 100))) / STEPS
    lines = [
        *inputs.lines(),
        f"rows of each class in each bucket ({_COUNTS:.0%}): {describe_noise(allocation.noises[0])}",
        f"{turns} turns of {len(attributes)} columns, each one query: sums of label − probability in the buckets of a "
        f"column, in steps of 1/{STEPS}: {describe_noise(allocation.noises[1])}",
    ]
    return BoostingAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=(Expected("residuals of a bucket in a turn, in rows", half, None, half / 1000),),
        attributes=attributes,
        values=values,
        classes=classes,
        rounds=rounds,
        allocation=allocation,
    )


@dataclass(frozen=True, slots=True)
class ExplainableBoosting:
    """The model of explainable boosting, with methods as in scikit-learn; rows by columns, or as an array."""

    columns: tuple[str, ...]
    target: str
    classes: tuple[bool | int | float | str, ...]
    attributes: tuple[Mapping[str, Any], ...]
    labels: tuple[tuple[str, ...], ...]
    shapes: tuple[Floats, ...]  #: the effect of each bucket on the log-odds, for each column
    intercept: float

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "explainable_boosting")
        return cls(
            tuple(model["columns"]),
            model["target"],
            tuple(model["classes"]),
            tuple(model["attributes"]),
            tuple(map(tuple, model["labels"])),
            tuple(np.array(each) for each in model["shapes"]),
            model["intercept"],
        )

    def decision_function(self, rows: Rows) -> Floats:
        """Give the log-odds of the second class; a value that was not declared has no effect."""
        data = by_columns(rows, self.columns)
        margin = np.full(len(next(iter(data.values()))), self.intercept)
        for attribute, shape in zip(self.attributes, self.shapes, strict=True):
            number = bucket_numbers(attribute, data[attribute["column"]])
            margin += np.where(number >= 0, shape[number], 0.0)
        return margin

    def predict_proba(self, rows: Rows) -> Floats:
        """Give the probability of each class for each row."""
        chance = 1 / (1 + np.exp(-self.decision_function(rows)))
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, rows: Rows) -> NDArray[np.object_]:
        """Give the more probable class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[(self.decision_function(rows) > 0).astype(int)])

    def plot(self) -> "Figure":
        """Plot the effect of each column on the log-odds, a panel each."""
        shapes = [shape[:, None] for shape in self.shapes]
        return panels(self.columns, self.labels, shapes, [f"log-odds of {self.classes[1]}"], "effect")
