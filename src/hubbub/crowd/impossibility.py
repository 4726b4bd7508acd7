"""Impossibility of a perfect sanitizer (Chawla and others 2005, § 3), as an executable adversary.

A sanitizer would be perfect if seeing the sanitized data never helped anyone to isolate a person, whatever they know.
If the sanitized data is useful, something can be computed from it that cannot be guessed without it. Use that value to
mask one person's point, and give the masked point to the adversary as auxiliary information. With the sanitized data
the adversary removes the mask and knows the point exactly; without it they hold noise. So the sanitized data helped,
whichever sanitizer made it.

Differential privacy does not prevent this and does not claim to: the adversary learns the same from a release made
without the person.

Tested in tests/crowd/test_isolation.py.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from hubbub.crowd.neighbors import Floats

_GRID = 2.0**52  # points are masked as integers: every masked integer is a point of the cube


def mask_point(point: Floats, published: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return the adversary's auxiliary information: a point of the cube, masked with the data to be published."""
    integers = np.rint((point + 1) / 2 * (_GRID - 1)).astype(np.uint64)
    return integers ^ _mask(len(point), published)


def unmask_point(known: NDArray[np.uint64], published: NDArray[np.generic]) -> Floats:
    """Guess the point from the published data. With any other data the guess is a random point of the cube."""
    integers = known ^ _mask(len(known), published)
    guess: Floats = integers.astype(np.float64) / (_GRID - 1) * 2 - 1
    return guess


def _mask(d: int, published: NDArray[np.generic]) -> NDArray[np.uint64]:
    key = hashlib.shake_256(np.ascontiguousarray(published).tobytes()).digest(8 * d)
    return np.frombuffer(key, dtype=np.uint64) % np.uint64(_GRID)
