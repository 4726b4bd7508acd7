"""Random splits of a forest from noisy counts by bucket, and the importance of columns. No data is seen here.

Tested in tests/analyses/programs/test_forest.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.analyses.programs.attributes import Attribute
from hubbub.analyses.programs.tree import Node
from hubbub.analyses.programs.vectors import Floats

# Chosen on the made-up families of decision 0136.
_EVENLY = 0.3  #: share of columns that are drawn evenly, the rest by what they tell
_MIDDLE = (0.15, 0.85)  #: the part of a node's rows within which thresholds are drawn


@dataclass(frozen=True)
class Guide:
    """What leads the splits: for each column its buckets' noisy rows, and how likely it is drawn."""

    attributes: tuple[Attribute, ...]
    rows: tuple[Floats, ...]
    chances: Floats

    @classmethod
    def of(cls, attributes: tuple[Attribute, ...], counts: Sequence[Floats], noise: float) -> "Guide":
        """Draw columns by how much their buckets separate the classes beyond what noise does."""
        gains = np.array([max(0.0, _purity(each, noise**2) - _purity(each.sum(axis=0)[None], 0)) for each in counts])
        told = np.sqrt(gains)
        even = np.full(len(counts), 1 / len(counts))
        chances = even if told.sum() <= 0 else _EVENLY * even + (1 - _EVENLY) * told / told.sum()
        return cls(attributes, tuple(np.maximum(each.sum(axis=1), 0.0) + 1e-9 for each in counts), chances)


@dataclass(frozen=True)
class _Room:
    """What may still be split in a node: the buckets of each column, and how many leaves it may have."""

    buckets: tuple[range, ...]
    leaves: int


def grow(guide: Guide, leaves: int, draw: np.random.Generator) -> Node:
    """Draw a tree."""
    root = Node()
    waiting = [(root, _Room(tuple(range(len(each.tests)) for each in guide.attributes), leaves))]
    while waiting:
        node, room = waiting.pop()
        waiting += _split(guide, node, room, draw)
    return root


def _split(guide: Guide, node: Node, room: _Room, draw: np.random.Generator) -> list[tuple[Node, _Room]]:
    """Split a node by a column that has room, and give its children."""
    able = np.array(
        [
            2 <= (len(each.tests) if each.values else 2) <= room.leaves and len(buckets) >= 2
            for each, buckets in zip(guide.attributes, room.buckets, strict=True)
        ]
    )
    if not able.any():
        return []
    chances = guide.chances * able
    place = int(draw.choice(len(able), p=chances / chances.sum()))
    attribute, buckets = guide.attributes[place], room.buckets[place]
    if attribute.values:
        node.split, parts = attribute.splits[0], [range(b, b + 1) for b in buckets]
    else:
        inside = np.cumsum(guide.rows[place][buckets.start : buckets.stop])
        cut = int(np.searchsorted(inside[:-1] / inside[-1], draw.uniform(*_MIDDLE)))
        cut = min(max(cut, 0), len(buckets) - 2)
        node.split = attribute.splits[buckets.start + cut]
        parts = [range(buckets.start, buckets.start + cut + 1), range(buckets.start + cut + 1, buckets.stop)]
    node.children = [Node() for _ in parts]
    each = room.leaves // len(parts)
    return [
        (child, replace(room, leaves=each, buckets=(*room.buckets[:place], part, *room.buckets[place + 1 :])))
        for child, part in zip(node.children, parts, strict=True)
    ]


def importances(root: Node, counts: Floats, noise: float, columns: Sequence[str]) -> Floats:
    """Give for each column by how many rows its splits make the leaves purer, less what noise adds on average."""
    found = dict.fromkeys(columns, 0.0)

    def visit(node: Node) -> tuple[Floats, int]:
        if node.split is None:
            return counts[node.number], 1
        below = [visit(child) for child in node.children]
        own, leaves = np.sum([each for each, _ in below], axis=0), sum(many for _, many in below)
        parts = sum(_purity(each[None], many * noise**2) for each, many in below)
        found[node.split.column] += parts - _purity(own[None], leaves * noise**2)
        return own, leaves

    visit(root)
    return np.array([found[each] for each in columns])


def _purity(counts: Floats, variance: float) -> float:
    """Add up Σ n_c²/n over the rows of a table of noisy counts by class, less what noise adds on average.

    Rows of which noise may be all are left out.
    """
    many = counts.sum(axis=1)
    told = many > max(1.0, 3 * float(np.sqrt(variance * counts.shape[1])))
    size, rows = counts.shape[1], many[told]
    found = (counts[told] ** 2).sum(axis=1) / rows
    # half of the trace of second derivatives of Σ n_c²/n, times the variance: (C − 2 + C Σ p²)/n
    return float((found - variance * (size - 2 + size * np.clip(found / rows, 1 / size, 1)) / rows).sum())
