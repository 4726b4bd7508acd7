"""Cross-training: publish half of the points as a recursive histogram, which sets the noise for the other half.

Not differentially private: the histogram is exact, and so are the counts of both halves in its cells.

Tested in tests/crowd/test_sanitizers.py.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.histogram import CellLocations, RecursiveHistogram, build_histogram
from hubbub.crowd.neighbors import Floats
from hubbub.errors import CrowdError


@dataclass(frozen=True, eq=False)
class CrossTrainedData:
    """The release: the histogram of B, and each point of A plus normal noise scaled to its cell of the histogram.

    cells  the cell of each point of A, published
    who    which points were in A; not published, for comparison
    """

    histogram: RecursiveHistogram
    moved: Floats
    cells: CellLocations
    who: NDArray[np.bool_]


def cross_train(points: Floats, *, t: int, rng: np.random.Generator) -> CrossTrainedData:
    """Split the points at random, build the histogram of B, and add N(0, ρ²) to each point of A, ρ its cell's side."""
    who = rng.random(len(points)) < 0.5
    if not 2 * t <= (~who).sum() < len(points):
        raise CrowdError("HB622", f"Too few points for t = {t}: one half needs at least 2t points.", "Use a smaller t.")
    histogram = build_histogram(points[~who], t=t)
    cells = histogram.locate(points[who])
    moved = points[who] + rng.standard_normal((int(who.sum()), points.shape[1])) * cells.side[:, None]
    return CrossTrainedData(histogram, moved, cells, who)
