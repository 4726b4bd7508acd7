"""Why there is no perfect sanitizer (Chawla and others 2005, § 3), as an adversary that runs.

A sanitizer would be perfect if, whatever somebody knows beforehand, seeing the sanitized data helped them to isolate
nobody. Let the sanitized data be of any use: then something can be computed from it that cannot be guessed without it.
Let that mask one person's point, and let the adversary know the masked point beforehand. With the sanitized data they
take the mask off and name the point itself, at distance 0. Without it they hold noise. So the sanitized data helped,
whoever made it and how.

Differential privacy does not rule this out, and does not claim to: what is learned so about the person is learned just
as well from a release that was made without them.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.neighbors import Floats

_GRID = 2.0**52  # points are masked as whole numbers: every masked number is a place of the cube


def known_beforehand(point: Floats, published: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Make what the adversary is told beforehand: a point of the cube, masked with what the published data will say."""
    whole = np.rint((point + 1) / 2 * (_GRID - 1)).astype(np.uint64)
    return whole ^ _mask(len(point), published)


def guess(known: NDArray[np.uint64], published: NDArray[np.generic]) -> Floats:
    """Guess with the published data: the point itself. With any other data it is a random place of the cube."""
    whole = known ^ _mask(len(known), published)
    found: Floats = whole.astype(np.float64) / (_GRID - 1) * 2 - 1
    return found


def _mask(d: int, published: NDArray[np.generic]) -> NDArray[np.uint64]:
    key = hashlib.shake_256(np.ascontiguousarray(published).tobytes()).digest(8 * d)
    return np.frombuffer(key, dtype=np.uint64) % np.uint64(_GRID)
