"""The screen about Reed–Solomon codes: a low sensitivity without an algorithm that needs few reads.

Tested in tests/attacks/test_code_screen.py.
"""

from functools import lru_cache

import numpy as np

from hubbub.analyses.functions.sample_complexity import ReedSolomon, looks_uniform
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen
from hubbub.semantics.screens.figures import Bars


@lru_cache(maxsize=32)
def reed_solomon(*, field: str, length: int, dimension: int) -> Reading:
    """Enumerate a small code: the distance from it moves by 1, and few reads tell nothing of it."""
    code = ReedSolomon(int(field), length, dimension)
    moved = max(int((code.distance.max(axis=axis) - code.distance.min(axis=axis)).max()) for axis in range(length))
    farthest = tuple(int(place) for place in np.unravel_index(np.argmax(code.distance), code.distance.shape))
    most = int(code.distance.max())
    sets = {"in the code": code.words, f"at distance {most}": code.shifted(farthest)}
    reads = range(1, length + 1)
    tells = {
        name: tuple(not looks_uniform(words, field=code.field, reads=count) for count in reads)
        for name, words in sets.items()
    }
    far = f"at distance {most}"
    return Reading(
        (
            f"Data: {length} letters, each 0 to {code.field - 1}. The query: how many letters must change until they"
            f" are the values of a polynomial of degree below {dimension}? Over all {code.distance.size:,} words,"
            f" replacing one letter moves the answer by at most {moved}: it can be released with Laplace noise of"
            " scale 1/ε.",
            f"And yet nobody can tell it from a few letters: any {dimension} letters of a random word of the code are"
            f" uniform, and so are those of words at distance {most}. {dimension + 1} letters tell them apart.",
            "A query that a few random rows answer has a low sensitivity (`hubbub.analyses.functions`); the converse is"
            " false, as this code shows (Dwork, McSherry, Nissim and Smith 2006, section 3.2, over a prime field).",
        ),
        ("letters read", "words of the code", f"words {far}"),
        tuple(
            (str(count), *("tell something" if tells[name][place] else "uniform" for name in sets))
            for place, count in enumerate(reads)
        ),
        Bars(
            "Share of all words at each distance from the code",
            tuple(str(distance) for distance in range(most + 1)),
            (("words", tuple(float((code.distance == distance).mean()) for distance in range(most + 1))),),
        ),
    )


SCREEN = Screen(
    "reed-solomon",
    "A low sensitivity that few rows cannot show",
    "The distance from a Reed–Solomon code: sensitivity 1, and nothing to learn from fewer reads than its dimension.",
    (
        base.choice("field", "Size of the alphabet", "5", "7"),
        base.whole("length", "Letters", 4, steps=(3, 4, 5), low=2, high=7),
        base.whole("dimension", "Dimension", 2, steps=(1, 2), low=1, high=4),
    ),
    reed_solomon,
)
