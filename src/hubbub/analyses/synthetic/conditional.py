"""Rows of a distribution, given the levels of some columns: exact, by messages along the junction tree.

Tested in tests/analyses/synthetic/test_conditional.py.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from hubbub.analyses.synthetic.junction_tree import Clique, Floats
from hubbub.analyses.synthetic.model import Model, Whole, marginal

#: Numbers that are held at once for each clique.
_BLOCK = 4_000_000


def rows_given(model: Model, given: Mapping[int, Whole], count: int, some: np.random.Generator) -> Whole:
    """Sample one row for each combination of given levels, from the distribution of the other columns given these.

    Levels that cannot occur together in the model count as not given.
    """
    free = [prod(model.sizes[c] for c in clique if c not in given) for clique in model.cliques]
    step = max(1, _BLOCK // max(free))
    parts = [
        _block(model, {c: each[start : start + step] for c, each in given.items()}, min(step, count - start), some)
        for start in range(0, count, step)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, len(model.sizes)), dtype=np.int64)


def _block(model: Model, given: Mapping[int, Whole], count: int, some: np.random.Generator) -> Whole:
    """Sample some rows. A clique's weights have one axis for the rows, and one for each column that is not given."""
    parents = {child: parent for parent, child in model.links}
    weights: dict[int, Floats] = {}
    for place, clique in enumerate(model.cliques):
        weights[place] = _given(_after(model, place, parents), clique, given)
    for parent, child in reversed(model.links):
        shared = [c for c in model.cliques[child] if c in model.cliques[parent] and c not in given]
        message = _over(weights[child], _free(model.cliques[child], given), shared)
        top = message.reshape(len(message), -1).max(axis=1)
        message = np.where((top > 0)[:, None], message.reshape(len(message), -1) / np.maximum(top, 1e-300)[:, None], 1)
        weights[parent] = weights[parent] * _laid(message, shared, _free(model.cliques[parent], given), model)
    found = np.zeros((count, len(model.sizes)), dtype=np.int64)
    for c, levels in given.items():
        found[:, c] = levels
    drawn: set[int] = set()
    roots = [place for place in range(len(model.cliques)) if place not in parents]
    for place in (*roots, *(child for _, child in model.links)):
        columns = _free(model.cliques[place], given)
        new = [c for c in columns if c not in drawn]
        if new:
            known = [c for c in columns if c in drawn]
            _draw(weights[place], columns, known, new, found, model, some)
            drawn |= {*new}
    return found


def _free(clique: Clique, given: Mapping[int, Whole]) -> list[int]:
    return [c for c in clique if c not in given]


def _after(model: Model, place: int, parents: Mapping[int, int]) -> Floats:
    """Give a clique's distribution given the columns that it shares with its parent."""
    table, clique = model.tables[place], model.cliques[place]
    if place not in parents:
        return table
    shared = tuple(c for c in clique if c in model.cliques[parents[place]])
    below = marginal(table, clique, shared).reshape([model.sizes[c] if c in shared else 1 for c in clique])
    return np.divide(table, below, out=np.zeros_like(table), where=below > 0)


def _given(table: Floats, clique: Clique, given: Mapping[int, Whole]) -> Floats:
    """Give the part of a table that belongs to the given levels, for each row; one for all where none is given."""
    axes = [axis for axis, c in enumerate(clique) if c in given]
    if not axes:
        return table[None]
    moved = np.moveaxis(table, axes, range(len(axes)))
    return np.asarray(moved[tuple(given[clique[axis]] for axis in axes)])


def _over(weights: Floats, columns: list[int], kept: list[int]) -> Floats:
    return np.asarray(weights.sum(axis=tuple(1 + axis for axis, c in enumerate(columns) if c not in kept)))


def _laid(message: Floats, shared: list[int], columns: list[int], model: Model) -> Floats:
    return message.reshape([len(message), *(model.sizes[c] if c in shared else 1 for c in columns)])


def _draw(
    weights: Floats,
    columns: list[int],
    known: list[int],
    new: list[int],
    found: Whole,
    model: Model,
    some: np.random.Generator,
) -> None:
    """Draw the new columns of a clique together, given those that are drawn."""
    count = len(found)
    moved = np.moveaxis(weights, [1 + columns.index(c) for c in (*known, *new)], range(1, 1 + len(columns)))
    first = np.arange(count) if len(moved) > 1 else np.zeros(count, dtype=np.int64)
    chosen = moved[(first, *(found[:, c] for c in known))].reshape(count, -1)
    upto = np.cumsum(chosen, axis=1)
    even = np.arange(1, upto.shape[1] + 1, dtype=np.float64)
    upto = np.where(upto[:, -1:] > 0, upto, even)  # impossible levels: all are equally likely
    at = (upto <= (some.random(count) * upto[:, -1])[:, None]).sum(axis=1)
    at = np.minimum(at, upto.shape[1] - 1)
    for c, places in zip(new, np.unravel_index(at, [model.sizes[c] for c in new]), strict=True):
        found[:, c] = places
