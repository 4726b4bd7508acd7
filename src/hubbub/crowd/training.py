"""Cross-training: half of the points are published as a recursive histogram, and say how far the other half moves.

Not differentially private: the histogram is exact, and so are the counts of both halves in its cells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.histogram import Histogram, Places, recursive
from hubbub.crowd.neighbors import Floats
from hubbub.errors import CrowdError


@dataclass(frozen=True, eq=False)
class CrossTrained:
    """What is published: the histogram of B, and each point of A plus normal noise as wide as its cell of it.

    places  the cell of each point of A: published (it only helps an adversary, so it is given)
    who     which points were in A: not published, for comparison
    """

    histogram: Histogram
    moved: Floats
    places: Places
    who: NDArray[np.bool_]


def cross_trained(points: Floats, *, t: int, rng: np.random.Generator) -> CrossTrained:
    """Divide the points by coin flips, cut the cube by B, and move each point of A by N(0, ρ²), ρ its cell's side."""
    who = rng.random(len(points)) < 0.5
    if not 2 * t <= (~who).sum() < len(points):
        raise CrowdError(
            "HB622", f"there are too few points for t = {t}: half of them must be 2t.", "Take a smaller t."
        )
    histogram = recursive(points[~who], t=t)
    places = histogram.locate(points[who])
    moved = points[who] + rng.standard_normal((int(who.sum()), points.shape[1])) * places.side[:, None]
    return CrossTrained(histogram, moved, places, who)
