"""A random forest: trees whose splits are drawn at random, led by noisy histograms, with noisy counts in their leaves.

CALL random_forest(table => 'visits', columns => ['age', 'bmi'], target => 'smoker')

One query counts each class in the buckets of each column. From these noisy counts alone, all trees are drawn. Then
each tree is one query: the rows of each class in each of its leaves. A row is in one leaf of each tree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.attributes import Attribute, Rows, by_columns
from hubbub.analyses.programs.forest_splits import Guide, grow, importances
from hubbub.analyses.programs.inputs import ProgramInput, column_values, value_cells
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.naive_bayes import class_count_request, class_counts, classifier_input
from hubbub.analyses.programs.regression import json_value
from hubbub.analyses.programs.tree import Node, fill_chances, leaf_number, tree_json
from hubbub.analyses.programs.vectors import Floats
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.sql.measures import RowCount, sensitivity
from hubbub.sql.noise import standard_deviation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TREES, MAX_TREES = 20, 200
LEAVES, MAX_LEAVES = 32, 256
#: Share of the budget for the counts that lead the splits; chosen on the made-up families of decision 0136.
_GUIDE = 0.2


@dataclass(frozen=True, kw_only=True)
class RandomForestAnalysis(PreparedAnalysis):
    """A prepared random forest."""

    inputs: ProgramInput
    attributes: tuple[Attribute, ...]
    classes: tuple[Value, ...]
    trees: int
    leaves: int
    seed: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Count by column, draw all trees, then count the leaves of each."""
        leading, counting = self.allocation.noises
        counts = class_counts(run, self.inputs, self.attributes, self.classes, leading)
        guide = Guide.of(self.attributes, counts, standard_deviation(leading))
        noise = standard_deviation(counting)
        even = np.full(len(self.classes), 1 / len(self.classes))
        trees, found = [], np.zeros(len(self.attributes))
        names = [each.column for each in self.attributes]
        for number in range(self.trees):
            root = grow(guide, self.leaves, np.random.default_rng([self.seed, number]))
            table = self._counts(run, root)
            trees.append(tree_json(root, table, even, noise, pruned=False))
            found += importances(root, table, noise, names)
            run.progress((number + 1) / self.trees, f"tree {number + 1} of {self.trees}")
        kept = np.maximum(found, 0.0)
        shares = kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept))
        outputs = (Output("column", "text", names), Output("importance", "real", shares.tolist()))
        model = {
            "columns": names,
            "target": self.inputs.names[-1],
            "classes": [json_value(each) for each in self.classes],
            "trees": trees,
            "importances": shares.tolist(),
            "noise": noise,
        }
        return Published(outputs, model)

    def _counts(self, run: Run, root: Node) -> Floats:
        """Get the noisy number of rows of each class in each leaf of a tree with one query."""
        leaves = root.leaves()
        for number, leaf in enumerate(leaves):
            leaf.number = number
        target = self.inputs.column(self.inputs.names[-1])
        cells = value_cells((leaf_number(self.inputs, root), tuple(range(len(leaves)))), (target, self.classes))
        exact = self.inputs.integers(run, self.inputs.rows, cells, [RowCount()])
        noisy = exact.through(lambda counts: self.allocation.noises[1].sample(counts[0], run.source))
        return np.asarray(noisy, dtype=float).reshape(len(leaves), -1)


def random_forest(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    trees: int = TREES,
    leaves: int = LEAVES,
    bins: int = 16,
    seed: int = 0,
) -> RandomForestAnalysis:
    """Prepare a random forest for a target of declared values.

    Theorem (Random forest from counts). The forest is a function of noisy class counts by bucket, and for each of its
    trees of one noisy vector of counts by leaf and class: it costs what these noises cost.
    Proof    The splits of all trees follow from declarations, a public seed and the noisy counts by bucket. A row is
             in one cell (leaf and class) of a tree, so a tree's counts have the sensitivity of a count by cells, where
             a unit keeps its bounds' cells and rows. All else is post-processing.
    Charges  Together of the event of the counts by bucket, and that of the leaves as many times as there are trees.
    Error    of each count of a leaf: its noise; an average over trees has less.
    Tested   tests/analyses/programs/test_forest.py::test_what_is_drawn_is_what_is_charged
             tests/analyses/programs/test_forest.py::test_counts_of_neighbors_are_within_the_sensitivity

    leaves   most leaves of a tree
    seed     of the public random splits; another seed is another question
    """
    trees = numbers.integer(trees, "trees", 1, MAX_TREES)
    leaves = numbers.integer(leaves, "leaves", 2, MAX_LEAVES)
    seed = numbers.integer(seed, "seed", 0, 2**31)
    inputs, attributes = classifier_input(setting, table, columns, target, bins)
    classes = column_values(inputs, inputs.names[-1])
    contribution = inputs.contribution_bounds(1 << 30)
    needs = [
        class_count_request(inputs, len(attributes), len(classes), _GUIDE),
        NoiseRequest(sensitivity(RowCount(), (contribution,), inputs.relation), 1 - _GUIDE, trees),
    ]
    allocation = allocate_budget(setting, needs)
    half = float(allocation.noises[1].error(Fraction(95, 100)))
    lines = [
        *inputs.lines(),
        f"rows of each class in each bucket of {len(attributes)} columns ({_GUIDE:.0%}), which lead the random splits: "
        f"{describe_noise(allocation.noises[0])}",
        f"{trees} trees of up to {leaves} leaves, each one query: {describe_noise(allocation.noises[1])}",
    ]
    return RandomForestAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=(Expected("rows of a class in a leaf", half, None, half / 1000),),
        attributes=attributes,
        classes=classes,
        trees=trees,
        leaves=leaves,
        seed=seed,
        allocation=allocation,
    )


@dataclass(frozen=True, slots=True)
class RandomForest:
    """The model of a random forest, with methods as in scikit-learn; rows by columns, or as an array.

    feature_importances  how much splits by each column separate the classes, as shares that add up to 1. What the noise
                         alone adds is taken off on average. Splits are random, and columns that say the same share
                         their importance: a small one does not show that a column has no effect.
    """

    columns: tuple[str, ...]
    target: str
    classes: tuple[bool | int | float | str, ...]
    trees: tuple[Mapping[str, Any], ...]
    feature_importances: Floats

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "random_forest")
        return cls(
            tuple(model["columns"]),
            model["target"],
            tuple(model["classes"]),
            tuple(model["trees"]),
            np.array(model["importances"]),
        )

    def predict_proba(self, rows: Rows) -> Floats:
        """Give the probability of each class for each row: the mean over all trees."""
        data = by_columns(rows, self.columns)
        size = len(next(iter(data.values())))
        total = np.zeros((size, len(self.classes)))
        for tree in self.trees:
            own = np.empty_like(total)
            fill_chances(tree, data, np.arange(size), own)
            total += own
        return total / len(self.trees)

    def predict(self, rows: Rows) -> NDArray[np.object_]:
        """Give the most probable class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[self.predict_proba(rows).argmax(axis=1)])

    def plot(self) -> "Figure":
        """Plot the importances, the largest first."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 1.2 + 0.35 * len(self.columns)), layout="constrained")
        axes = figure.subplots()
        order = np.argsort(self.feature_importances)
        axes.barh([self.columns[j] for j in order], self.feature_importances[order])
        axes.set_xlabel(f"importance for {self.target}, as a share")
        return figure
