"""Where randomness comes from: a keyed stream of 64-bit words."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class Source(Protocol):
    """Independent uniform 64-bit words, never the same twice."""

    def words(self, count: int) -> Words:
        """Give the next `count` words."""
        ...
