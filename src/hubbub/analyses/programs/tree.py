"""A decision tree as in ID3: splits by the exponential mechanism, leaves by noisy counts.

Each level is one query: for every leaf and every class, the number of rows in each bucket of each column. Every split
of every leaf is scored from these exact counts, which are not released, and one is selected in each leaf. The last
query counts the classes in the leaves, with Laplace noise (Friedman and Schuster 2010).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import describe_noise
from hubbub.analyses.programs.attributes import Attribute, Rows, TreeSplit, attribute, by_columns
from hubbub.analyses.programs.inputs import (
    ProgramInput,
    call,
    column_values,
    equals,
    program_input,
    real,
    value_cells,
    whole,
)
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.regression import json_value
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.core.reals import floor_to
from hubbub.core.schema import Value
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.expressions import Expr
from hubbub.sql.keys import Cells
from hubbub.sql.measures import RowCount, sensitivity
from hubbub.sql.noise import standard_deviation

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_LEAVES = 2048
#: Gini scores are integers in units of this part of a row.
PARTS = 1 << 10

_LEAVES = Fraction(2, 5)  #: share of ε for the counts in the leaves


@dataclass(slots=True)
class Node:
    """A node while the tree grows; it is public, because a mechanism selected it."""

    used: frozenset[str] = frozenset()
    split: TreeSplit | None = None
    children: list["Node"] = field(default_factory=list)
    number: int = -1

    def leaves(self) -> list["Node"]:
        """List the leaves below, in order."""
        return [self] if self.split is None else [leaf for child in self.children for leaf in child.leaves()]


def split_scores(splits: Sequence[TreeSplit], counts: Sequence[Integers], rule: str) -> Integers:
    """Score splits from exact counts (bucket, class) of each split's column.

    Theorem (Scores of splits). Let a split send a node's rows to children with n_vc rows of class c each, n_v in all.
    One row more raises Σ_v max_c n_vc by 0 or 1, and moves Σ_v Σ_c n_vc²/n_v by at most 1 either way.
    Proof    The row falls in one child, v. A maximum of counts rises by 0 or 1 when one of them does. With S = Σ n_c²
             and n rows before, a of them of its class, the second moves by (n(2a + 1) − S)/(n(n + 1)); S ≥ a² and
             a ≤ n give at most 1, a ≥ 0 and S ≤ n² at least −(n − 1)/(n + 1). Taking the floor of each child's share
             in parts of 1/K moves whole numbers by at most K.
    Tested   tests/analyses/programs/test_tree.py::test_brute_force_finds_the_sensitivity_of_scores
    """
    out = []
    for split, table in zip(splits, counts, strict=True):
        children = np.stack([table[list(each)].sum(axis=0) for each in split.children])
        if rule == "max":
            out.append(children.max(axis=1).sum())
        else:
            whole_ = np.maximum(children.sum(axis=1), 1)
            # exact integers: the square of a child of less than 2²⁶ rows fits into 64 bits
            squares = (children.astype(object) ** 2).sum(axis=1) * PARTS // whole_.astype(object)
            out.append(int(squares.sum()))
    return np.array(out, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class DecisionTreeAnalysis(PreparedAnalysis):
    """A prepared tree: the noise of each level and of the leaves is fixed, the queries are not."""

    inputs: ProgramInput
    attributes: tuple[Attribute, ...]
    classes: tuple[Value, ...]
    depth: int
    rule: str
    selection: Exponential  #: its facts do not depend on the number of candidates
    counting: Laplace

    def run(self, run: Run) -> Published:
        """Grow level by level, then count the leaves."""
        root = Node()
        for level in range(self.depth):
            self._split(run, root)
            run.progress((level + 1) / (self.depth + 1), f"level {level + 1} of {self.depth}")
        leaves = root.leaves()
        exact = self.inputs.integers(run, self.inputs.rows, self._cells(root, leaves), [RowCount()])
        noisy = exact.through(lambda found: self.counting.sample(found[0], run.source))
        counts = noisy.reshape(len(leaves), -1).astype(float)
        return self._published(root, counts)

    def _cells(self, root: Node, leaves: Sequence[Node]) -> Cells:
        for number, leaf in enumerate(leaves):
            leaf.number = number
        target = self.inputs.column(self.inputs.names[-1])
        return value_cells((leaf_number(self.inputs, root), tuple(range(len(leaves)))), (target, self.classes))

    def _split(self, run: Run, root: Node) -> None:
        """Count every bucket in every leaf with one query, and select a split in each leaf."""
        leaves = root.leaves()
        tests = [test for attribute in self.attributes for test in attribute.tests]
        exact = self.inputs.integers(
            run, self.inputs.rows, self._cells(root, leaves), [RowCount(where=test) for test in tests]
        )
        ends = np.cumsum([0, *(len(each.tests) for each in self.attributes)])

        def chosen(found: Integers) -> list[TreeSplit | None]:
            shaped = found.reshape(len(tests), len(leaves), len(self.classes))
            return [self._chosen(run, leaf, shaped[:, leaf.number], ends) for leaf in leaves]

        room = MAX_LEAVES - len(leaves)
        for leaf, split in zip(leaves, exact.through(chosen), strict=True):
            if split is None or room < len(split.children):
                continue
            room -= len(split.children) - 1
            used = leaf.used | {split.column} if split.values else leaf.used
            leaf.split, leaf.children = split, [Node(used) for _ in split.children]

    def _chosen(self, run: Run, leaf: Node, counts: Integers, ends: Integers) -> TreeSplit | None:
        splits: list[TreeSplit] = []
        tables: list[Integers] = []
        for place, each in enumerate(self.attributes):
            if each.column not in leaf.used:
                splits += each.splits
                tables += [counts[ends[place] : ends[place + 1]]] * len(each.splits)
        if not splits:
            return None
        scores = split_scores(splits, tables, self.rule)
        facts_ = self.selection
        choice = Exponential(
            candidates=len(splits), sensitivity=facts_.sensitivity, monotone=facts_.monotone, rate=facts_.rate
        )
        return splits[choice.sample(scores, run.source)]

    def _published(self, root: Node, counts: Floats) -> Published:
        half = float(self.counting.error(Fraction(95, 100)))
        noise = standard_deviation(self.counting)
        names = [json_value(each) for each in self.classes]
        tree = tree_json(root, counts, np.full(len(names), 1 / len(names)), noise)
        best = [names[int(np.argmax(_chances(row, np.zeros(len(names)), noise)))] for row in counts]
        outputs = [
            Output("leaf", "text", [text or "all rows" for text in _rules(root)]),
            Output("prediction", "text", [str(each) for each in best]),
            *(
                Output(
                    str(name),
                    "real",
                    counts[:, j].tolist(),
                    (counts[:, j] - half).tolist(),
                    (counts[:, j] + half).tolist(),
                )
                for j, name in enumerate(names)
            ),
        ]
        model = {
            "columns": [each.column for each in self.attributes],
            "target": self.inputs.names[-1],
            "classes": names,
            "tree": tree,
        }
        return Published(tuple(outputs), model)


def leaf_number(inputs: ProgramInput, node: Node) -> Expr:
    """Write the number of the leaf of a row."""
    if node.split is None:
        return whole(node.number)
    col, split = inputs.column(node.split.column), node.split
    children = [leaf_number(inputs, child) for child in node.children]
    if split.threshold is not None:
        return call("case", call("lt", col, real(split.threshold)), *children)
    tests: list[Expr] = []
    for value, child in zip(split.values[:-1], children[:-1], strict=True):
        tests += [equals(col, value), child]
    return call("case", *tests, children[-1]) if tests else children[-1]


def _chances(counts: Floats, before: Floats, noise: float) -> Floats:
    """Mix a leaf's noisy counts with the distribution of its parent, in proportion to the noise."""
    kept = np.maximum(counts, 0.0) + 2 * noise * before
    return np.asarray(kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept)))


def tree_json(node: Node, counts: Floats, before: Floats, noise: float, *, pruned: bool = True) -> dict[str, Any]:
    """Write a node and all below it; if `pruned`, a split whose children all predict the same class is omitted."""
    own = counts[[leaf.number for leaf in node.leaves()]].sum(axis=0)
    chances = _chances(own, before, noise)
    if node.split is None:
        return {"chances": chances.tolist()}
    children = [tree_json(child, counts, chances, noise, pruned=pruned) for child in node.children]
    ends = [child.get("chances") for child in children]
    if pruned and all(end is not None and int(np.argmax(end)) == int(np.argmax(chances)) for end in ends):
        return {"chances": chances.tolist()}
    split = node.split
    document: dict[str, Any] = {"column": split.column, "children": children, "otherwise": chances.tolist()}
    if split.threshold is not None:
        return document | {"threshold": float(split.threshold)}
    return document | {"values": [json_value(value) for value in split.values]}


def _rules(node: Node, so_far: str = "") -> list[str]:
    if node.split is None:
        return [so_far]
    split = node.split
    if split.threshold is not None:
        at = numbers.brief(split.threshold)
        tests = [f"{split.column} < {at}", f"{split.column} ≥ {at}"]
    else:
        tests = [f"{split.column} = {json_value(value)}" for value in split.values]
    head = f"{so_far}, " if so_far else ""
    return [rule for test, child in zip(tests, node.children, strict=True) for rule in _rules(child, head + test)]


def decision_tree(
    setting: Setting, *, table: str, columns: list[str], target: str, depth: int = 3, bins: int = 8, score: str = "gini"
) -> DecisionTreeAnalysis:
    """Prepare a decision tree for a target of declared values.

    Theorem (Private decision tree). Let a unit keep at most G cells (leaf and class) and r rows in each, so at most G·r
    rows. The choices of one level, one in each leaf, together cost what one choice costs whose scores move by G·r
    (max; all one way where a unit is added or removed) or by G·r·K (gini, in parts of 1/K; twice that under replace).
    So `depth` levels and the leaves' counts cost their sum.
    Proof    Leaves are disjoint sets of rows. A unit with s_l rows in leaf l moves that leaf's scores by at most s_l
             (or K·s_l), so the log-ratio of the choice there ranges over an interval of length proportional to s_l, and
             independent choices together range over the sum, as Σ s_l ≤ G·r. A choice of that range is what is
             charged. What a level asks depends on earlier choices alone.
    Charges  Together of one selection a level and Laplace noise on the leaves' counts.
    Error    leaves' counts: exact intervals; a split is at most ln(m/β)/rate below the best, with probability 1 − β.
    Tested   tests/analyses/programs/test_tree.py::test_brute_force_finds_the_sensitivity_of_scores
             tests/analyses/programs/test_tree.py::test_levels_and_leaves_are_charged_once_each
             tests/analyses/programs/test_tree.py::test_distribution_of_a_level_keeps_its_loss_on_neighbors

    score   'gini' (purity of the children) or 'max' (rows of the children's largest classes)
    """
    if target in columns:
        raise QueryError("HB547", f"The target {target!r} is also listed in columns.", "Remove it from columns.")
    if score not in ("gini", "max"):
        raise QueryError("HB546", f"There is no score {score!r}.", "Use 'gini' or 'max'.")
    depth = numbers.integer(depth, "depth", 1, 12)
    bins = numbers.integer(bins, "bins", 2, 64)
    inputs = program_input(setting, table, [*columns, target])
    if len(inputs.names) < 2:
        raise QueryError("HB540", "columns is empty.", "List at least one column.")
    classes = column_values(inputs, inputs.names[-1])
    attributes = tuple(attribute(inputs, name, bins) for name in inputs.names[:-1])
    contribution = inputs.contribution_bounds(1 << 30)
    rows = contribution.touched * contribution.rows
    counting = floor_to(setting.epsilon * _LEAVES, 24)
    level = floor_to((setting.epsilon - counting) / depth, 24)
    replaced = inputs.relation is Relation.REPLACE
    moved = rows if score == "max" else rows * PARTS * (2 if replaced else 1)
    selection = Exponential.from_epsilon(
        candidates=2, sensitivity=moved, monotone=score == "max", relation=inputs.relation, epsilon=level
    )
    l1 = sensitivity(RowCount(), (contribution,), inputs.relation).l1
    noise = Laplace(sensitivity=l1, scale=l1 / counting)
    lines = [
        *inputs.lines(),
        f"{depth} levels, one query each: in every leaf one selection by {score}, scores move by {moved:,} in all, "
        f"rate {numbers.brief(selection.rate)}",
        f"leaves: {describe_noise(noise)}",
    ]
    half = float(noise.error(Fraction(95, 100)))
    return DecisionTreeAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(((selection.event, depth), (noise.event, 1))),
        noise="exponential mechanism, laplace",
        derivation=tuple(lines),
        expected=(Expected("rows of a class in a leaf", half, None, half / 1000),),
        attributes=attributes,
        classes=classes,
        depth=depth,
        rule=score,
        selection=selection,
        counting=noise,
    )


@dataclass(frozen=True, slots=True)
class DecisionTree:
    """The model of a decision tree, with methods as in scikit-learn; rows are given by columns."""

    columns: tuple[str, ...]
    target: str
    classes: tuple[bool | int | float | str, ...]
    tree: Mapping[str, Any]

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "decision_tree")
        return cls(tuple(model["columns"]), model["target"], tuple(model["classes"]), model["tree"])

    def predict_proba(self, rows: Rows) -> Floats:
        """Give the probability of each class for rows by columns (a dict of lists, a DataFrame), or as an array."""
        data = by_columns(rows, self.columns)
        size = len(next(iter(data.values())))
        out = np.empty((size, len(self.classes)))
        fill_chances(self.tree, data, np.arange(size), out)
        return out

    def predict(self, rows: Rows) -> NDArray[np.object_]:
        """Give the most probable class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[self.predict_proba(rows).argmax(axis=1)])


def fill_chances(node: Mapping[str, Any], data: Mapping[str, NDArray[Any]], at: Integers, out: Floats) -> None:
    """Write the probabilities of some rows, whose numbers are given."""
    if "column" not in node:
        out[at] = node["chances"]
        return
    out[at] = node["otherwise"]
    own = data[node["column"]][at]
    if "threshold" in node:
        below = own.astype(float) < node["threshold"]
        parts = [at[below], at[~below]]
    else:
        parts = [at[own == value] for value in node["values"]]
    for child, rows in zip(node["children"], parts, strict=True):
        fill_chances(child, data, rows, out)
