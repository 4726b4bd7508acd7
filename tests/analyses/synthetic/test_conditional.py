"""Rows given the levels of some columns, held against the whole joint distribution."""

from itertools import product

import numpy as np
import pytest

from hubbub.analyses.synthetic.conditional import rows_given
from hubbub.analyses.synthetic.junction_tree import JunctionTree, calibrated, junction_tree
from hubbub.analyses.synthetic.model import Model

SIZES = (2, 3, 2, 3, 2)


def model(pairs: list[tuple[int, int]], seed: int = 1) -> tuple[Model, np.ndarray]:
    """Make a distribution over five columns from random tables of pairs, and its joint table."""
    some = np.random.default_rng(seed)
    tree: JunctionTree = junction_tree(SIZES, pairs)
    factors = [some.dirichlet(np.ones(int(np.prod(shape)) or 1) * 0.5).reshape(shape) for shape in _shapes(tree)]
    tables, _ = calibrated(tree, factors)
    joint = np.ones(SIZES)
    for clique, factor in zip(tree.cliques, factors, strict=True):
        joint = joint * factor.reshape([SIZES[c] if c in clique else 1 for c in range(len(SIZES))])
    return Model(SIZES, tree.cliques, tables, tree.links), joint / joint.sum()


def _shapes(tree: JunctionTree) -> list[tuple[int, ...]]:
    return [tuple(SIZES[c] for c in clique) for clique in tree.cliques]


@pytest.mark.parametrize(
    ("pairs", "given"),
    [
        ([(0, 1), (1, 2), (2, 3), (3, 4)], (0, 4)),  # evidence at both ends of a chain
        ([(0, 1), (1, 2), (2, 3), (3, 4)], (2,)),
        ([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], (1, 3)),
        ([(0, 1), (2, 3)], (1, 4)),  # trees that share nothing, and a column alone
        ([(0, 1), (1, 2), (2, 3), (3, 4)], ()),
        ([(0, 1), (1, 2), (2, 3), (3, 4)], (0, 1, 2, 3)),
    ],
)
def test_rows_have_the_distribution_of_the_other_columns(pairs: list[tuple[int, int]], given: tuple[int, ...]) -> None:
    """4,000 rows of each combination of levels: every frequency is within 6.5 deviations, but for a chance of 1e-8."""
    made, joint = model(pairs)
    some, count = np.random.default_rng(2), 4_000
    combinations = list(product(*(range(SIZES[c]) for c in given)))
    columns = {c: np.repeat([each[i] for each in combinations], count) for i, c in enumerate(given)}
    rows = rows_given(made, columns, count * len(combinations), some)
    free = [c for c in range(len(SIZES)) if c not in given]
    for place, each in enumerate(combinations):
        own = rows[place * count : (place + 1) * count]
        assert (own[:, list(given)] == np.array(each, dtype=np.int64)).all()
        exact = joint[tuple(each[given.index(c)] if c in given else slice(None) for c in range(len(SIZES)))]
        exact = exact / exact.sum()
        seen = np.zeros(exact.shape)
        np.add.at(seen, tuple(own[:, c] for c in free), 1)
        assert (np.abs(seen / count - exact) <= 6.5 * np.sqrt(exact * (1 - exact) / count) + 4 / count).all()


def test_levels_that_cannot_occur_do_not_stop_it() -> None:
    table = np.array([[0.5, 0.0], [0.5, 0.0]])
    made = Model((2, 2), ((0, 1),), (table,), ())
    rows = rows_given(made, {1: np.ones(50, dtype=np.int64)}, 50, np.random.default_rng(1))
    assert set(rows[:, 0].tolist()) == {0, 1}
    assert (rows[:, 1] == 1).all()
    assert rows_given(made, {1: np.ones(0, dtype=np.int64)}, 0, np.random.default_rng(1)).shape == (0, 2)


def test_blocks_do_not_change_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    made, joint = model([(0, 1), (1, 2), (2, 3), (3, 4)])
    monkeypatch.setattr("hubbub.analyses.synthetic.conditional._BLOCK", 50)
    rows = rows_given(made, {0: np.zeros(3_000, dtype=np.int64)}, 3_000, np.random.default_rng(3))
    exact = joint[0].sum(axis=(0, 1, 2)) / joint[0].sum()
    assert np.abs(np.bincount(rows[:, 4], minlength=2) / 3_000 - exact).max() <= 6.5 * 0.5 / np.sqrt(3_000)
