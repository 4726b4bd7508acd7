"""Naive Bayes from one noisy histogram: for each column, the number of rows of each class in each bucket."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.attributes import Attribute, Rows, attribute, bucket_numbers, by_columns
from hubbub.analyses.programs.inputs import ProgramInput, column_values, program_input, value_cells
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.regression import json_value
from hubbub.analyses.programs.vectors import Floats, over_cells
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import QueryError
from hubbub.sql.measures import RowCount
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class NaiveBayesAnalysis(PreparedAnalysis):
    """Prepared naive Bayes."""

    inputs: ProgramInput
    attributes: tuple[Attribute, ...]
    classes: tuple[Value, ...]
    counting: AdditiveNoise

    def run(self, run: Run) -> Published:
        """Count once."""
        counts = class_counts(run, self.inputs, self.attributes, self.classes, self.counting)
        half = float(self.counting.error(Fraction(95, 100)))
        names = [json_value(each) for each in self.classes]
        labels = [(each.column, label) for each in self.attributes for label in each.labels]
        columns = np.concatenate(counts).T
        outputs = (
            Output("column", "text", [column for column, _ in labels]),
            Output("bucket", "text", [label for _, label in labels]),
            *(
                Output(str(name), "real", each.tolist(), (each - half).tolist(), (each + half).tolist())
                for name, each in zip(names, columns, strict=True)
            ),
        )
        model = {
            "columns": [each.column for each in self.attributes],
            "target": self.inputs.names[-1],
            "classes": names,
            "attributes": [each.to_json() for each in self.attributes],
            "labels": [each.labels for each in self.attributes],
            "counts": [each.tolist() for each in counts],
            "noise": standard_deviation(self.counting),
        }
        run.progress(1.0, "counted")
        return Published(outputs, model)


def class_counts(
    run: Run,
    inputs: ProgramInput,
    attributes: tuple[Attribute, ...],
    classes: tuple[Value, ...],
    noise: AdditiveNoise,
) -> list[Floats]:
    """Get the noisy number of rows in each bucket and class, a table for each attribute, with one query."""
    target = inputs.column(inputs.names[-1])
    tests = [test for each in attributes for test in each.tests]
    exact = inputs.integers(run, inputs.rows, value_cells((target, classes)), [RowCount(where=test) for test in tests])
    noisy = exact.through(lambda found: noise.sample(found, run.source)).astype(float)
    return np.split(noisy, np.cumsum([len(each.tests) for each in attributes])[:-1])


def class_count_request(inputs: ProgramInput, attributes: int, classes: int, share: float) -> NoiseRequest:
    """Ask for noise on `class_counts`.

    Theorem (Class counts by bucket). A row changes one count of each of d attributes, all in the cell of its class, so
    these counts have the sensitivity of vectors of L1 norm d and squared L2 norm d in bounded cells.
    Proof    The buckets of an attribute are disjoint, so at most one of its tests holds; each count moves by 0 or 1.
             The rest is "Vectors in bounded cells", with the classes as cells.
    Tested   tests/analyses/programs/test_naive_bayes.py::test_counts_of_neighbors_are_within_the_sensitivity
    """
    moved = over_cells(attributes, attributes, inputs.contribution_bounds(classes), inputs.relation)
    return NoiseRequest(moved, share)


def classifier_input(
    setting: Setting, table: str, columns: list[str], target: str, bins: int
) -> tuple[ProgramInput, tuple[Attribute, ...]]:
    """Choose the columns of a classifier and divide them into buckets."""
    if target in columns:
        raise QueryError("HB547", f"The target {target!r} is also listed in columns.", "Remove it from columns.")
    bins = numbers.integer(bins, "bins", 2, 64)
    inputs = program_input(setting, table, [*columns, target])
    if len(inputs.names) < 2:
        raise QueryError("HB540", "columns is empty.", "List at least one column.")
    return inputs, tuple(attribute(inputs, name, bins) for name in inputs.names[:-1])


def naive_bayes(setting: Setting, *, table: str, columns: list[str], target: str, bins: int = 16) -> NaiveBayesAnalysis:
    """Prepare naive Bayes for a target of declared values.

    Theorem (Naive Bayes from counts). The model is a function of one noisy vector of counts, one for each bucket of
    each column and each class; it costs what the noise of that vector costs.
    Proof    Post-processing of "Class counts by bucket".
    Charges  One event.
    Error    of each count: exact intervals.
    Tested   tests/analyses/programs/test_naive_bayes.py::test_what_is_drawn_is_what_is_charged
             tests/analyses/programs/test_naive_bayes.py::test_at_a_large_epsilon_it_is_the_exact_classifier
    """
    inputs, attributes = classifier_input(setting, table, columns, target, bins)
    classes = column_values(inputs, inputs.names[-1])
    allocation = allocate_budget(setting, [class_count_request(inputs, len(attributes), len(classes), 1.0)])
    half = float(allocation.noises[0].error(Fraction(95, 100)))
    lines = [
        *inputs.lines(),
        f"one query: rows of each class in each bucket of {len(attributes)} columns; a row is in one bucket of each",
        f"counts: {describe_noise(allocation.noises[0])}",
    ]
    return NaiveBayesAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=(Expected("rows of a class in a bucket", half, None, half / 1000),),
        attributes=attributes,
        classes=classes,
        counting=allocation.noises[0],
    )


def class_shares(counts: Floats, noise: float) -> Floats:
    """Give the distribution of each class over the buckets of a column, mixed with that of all rows by the noise.

    What the noise hides is taken to be as in all rows, so that a bucket without rows speaks for no class.
    """
    kept = np.maximum(counts, 0.0) + 1.0
    every = kept.sum(axis=1, keepdims=True) / kept.sum()
    mixed = kept + noise * len(kept) * every
    return np.asarray(mixed / mixed.sum(axis=0))


@dataclass(frozen=True, slots=True)
class NaiveBayes:
    """The model of naive Bayes, with methods as in scikit-learn; rows are given by columns, or as an array."""

    columns: tuple[str, ...]
    target: str
    classes: tuple[bool | int | float | str, ...]
    attributes: tuple[Mapping[str, Any], ...]
    labels: tuple[tuple[str, ...], ...]
    counts: tuple[Floats, ...]  #: noisy rows by bucket and class, for each column
    noise: float  #: standard deviation of each count

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "naive_bayes")
        return cls(
            tuple(model["columns"]),
            model["target"],
            tuple(model["classes"]),
            tuple(model["attributes"]),
            tuple(map(tuple, model["labels"])),
            tuple(np.array(each) for each in model["counts"]),
            model["noise"],
        )

    @property
    def class_prior(self) -> Floats:
        """The share of each class: every column counts all rows, so their mean has less noise."""
        rows = np.maximum(np.mean([each.sum(axis=0) for each in self.counts], axis=0), 1.0)
        return np.asarray(rows / rows.sum())

    def predict_proba(self, rows: Rows) -> Floats:
        """Give the probability of each class for each row; a value that was not declared is ignored."""
        data = by_columns(rows, self.columns)
        size = len(next(iter(data.values())))
        logs = np.tile(np.log(self.class_prior), (size, 1))
        for attribute_, counts in zip(self.attributes, self.counts, strict=True):
            number = bucket_numbers(attribute_, data[attribute_["column"]])
            known = number >= 0
            logs[known] += np.log(class_shares(counts, self.noise))[number[known]]
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict(self, rows: Rows) -> NDArray[np.object_]:
        """Give the most probable class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[self.predict_proba(rows).argmax(axis=1)])

    def plot(self) -> "Figure":
        """Plot the distribution of each class over the buckets, a panel for each column."""
        return panels(
            self.columns,
            self.labels,
            [class_shares(each, self.noise) for each in self.counts],
            [str(each) for each in self.classes],
            "share of the class",
        )


def panels(
    columns: tuple[str, ...],
    labels: tuple[tuple[str, ...], ...],
    values: list[Floats],
    names: list[str],
    unit: str,
) -> "Figure":
    """Draw steps over the buckets of each column, a panel each."""
    from matplotlib.figure import Figure

    wide = min(3, len(columns))
    figure = Figure(figsize=(4.5 * wide, 3.2 * -(-len(columns) // wide)), layout="constrained")
    grid = figure.subplots(-(-len(columns) // wide), wide, squeeze=False).ravel()
    for axes, column, marks, table in zip(grid, columns, labels, values, strict=False):
        for name, line in zip(names, table.T, strict=True):
            axes.step(range(len(marks)), line, where="mid", label=name)
        axes.set_xticks(range(len(marks)), labels=marks, rotation=60, ha="right", fontsize=7)
        axes.set(title=column, ylabel=unit)
    for axes in grid[len(columns) :]:
        axes.axis("off")
    grid[0].legend()
    return figure
