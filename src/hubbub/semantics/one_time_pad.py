"""Why no useful release can reveal nothing: its answer can serve as the key to somebody's secret.

Somebody who knows Alice's secret bit publishes it, encrypted by a bit that the release will teach (Dwork 2011, after
Dwork and Naor 2010). Before the release that is noise; after it, it is Alice's secret. Alice need not be in the data.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers


def guess_rates(*, people: int, width: int, epsilon: Fraction) -> tuple[float, float]:
    """Return how often the best guess at Alice's secret is right, without and with the release.

    The release is a count of other people with Laplace noise, and everything from 0 to n is equally likely before it.
    The pad is the parity of the count's bucket, of this width; the auxiliary information is Alice's bit, a fair coin,
    exclusive-or the pad.

    Theorem (Utility reveals). The auxiliary information alone tells nothing about the bit beyond the bias of the pad.
    With the release, the bit is told as often as the pad is: ½ + ½·Σ_t |Pr[t, pad 0] − Pr[t, pad 1]|. Alice is not in
    the data, so her participation makes no difference at all.
    Proof    Given the auxiliary information, bit and pad determine each other.
    Tested   tests/semantics/test_one_time_pad.py::test_the_rate_is_that_of_exact_enumeration
    """
    numbers.integer(people, "n", 1, 10_000)
    numbers.integer(width, "width", 1, 10_000)
    counts = np.arange(people + 1)
    pads = counts // width % 2
    bias = abs(float(np.mean(pads == 0)) - float(np.mean(pads == 1)))
    # answers beyond either end tell as much as the end: all their ratios are the same
    answers = np.arange(-1, people + 2)
    chances = np.vstack([_answers(int(count), answers, float(epsilon)) for count in counts]) / (people + 1)
    apart = np.abs(chances[pads == 0].sum(axis=0) - chances[pads == 1].sum(axis=0)).sum()
    return 0.5 + bias / 2, 0.5 + float(apart) / 2


def _answers(count: int, answers: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Return the probability of each answer; the first and the last hold the tails."""
    fall = np.exp(-epsilon)
    mass: NDArray[np.float64] = (1 - fall) / (1 + fall) * fall ** np.abs(answers - count)
    mass[[0, -1]] /= 1 - fall
    return mass
