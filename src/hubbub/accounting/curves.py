"""The Rényi curves of single mechanisms, in units of 10⁻¹⁸ at each of the fixed orders, rounded up.

Each formula is written with exponentials of negative numbers only, so that no size of loss overflows; an exponential
that is too small to matter is enclosed by zero and a bound, so that no size of loss is slow.
"""

from fractions import Fraction
from functools import lru_cache

from hubbub.core.loss import ORDERS
from hubbub.core.reals import Enclosure, exp, log

STEPS = 10**18

_FAR = 150  # e^-150 < 10^-65 is below every digit that is kept


def units(divergence: Fraction) -> int:
    """Round a divergence up to whole units; a divergence is never negative."""
    return max(0, -((-divergence.numerator * STEPS) // divergence.denominator))


def decay(x: Fraction) -> Enclosure:
    """Enclose e^(−x) for x ≥ 0."""
    return exp(-x) if x <= _FAR else (Fraction(0), exp(Fraction(-_FAR))[1])


@lru_cache(maxsize=65536)
def pure(epsilon: Fraction) -> tuple[int, ...]:
    """Bound the Rényi curve of any ε-private mechanism by that of binary randomized response."""
    return response(2, epsilon)


def response(answers: int, epsilon: Fraction) -> tuple[int, ...]:
    """Give the Rényi curve of randomized response over so many answers."""
    curve = []
    for order in ORDERS:
        top = 1 + decay((2 * order - 1) * epsilon)[1] + (answers - 2) * decay(order * epsilon)[1]
        bottom = 1 + (answers - 1) * decay(epsilon)[0]
        curve.append(units(epsilon + log(top / bottom)[1] / (order - 1)))
    return tuple(curve)


def laplace(sensitivity: int, scale: Fraction) -> tuple[int, ...]:
    """Give the Rényi curve of the discrete Laplace mechanism."""
    return pure(sensitivity / scale)


def bounded_range(epsilon: Fraction) -> tuple[int, ...]:
    """Bound the Rényi curve of a mechanism whose log-ratios lie in one interval of length ε."""
    return tuple(map(min, concentrated(epsilon * epsilon / 8), pure(epsilon)))


def concentrated(rho: Fraction) -> tuple[int, ...]:
    """Give the line α·ρ."""
    return tuple([units(order * rho) for order in ORDERS])
