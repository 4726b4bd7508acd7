"""Small graphs, whose neighbors differ by one node or one edge; each edge is the one row of a unit."""

from typing import Any


def one_each(*rows: tuple[Any, ...]) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Give each row to a unit of its own."""
    return tuple((row,) for row in rows)


WEIGHED = {"ends": ["a", "b"], "weight": "v"}
#: Five nodes in a ring, which no two edges can part; two triangles.
RING = one_each(*((i, (i + 1) % 5, 1.0) for i in range(5)))
TWINS = one_each((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5))
BOOK = one_each(*((end, leaf) for end in (0, 1) for leaf in (2, 3, 4, 5)))
PATH = one_each((0, 1), (1, 2), (2, 3))
