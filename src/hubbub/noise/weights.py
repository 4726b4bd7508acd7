"""Vectorized powers e^(−rate·gap) in doubles, with a proven error bound.

The rate is any positive rational and is never rounded: a gap is split into bytes, and the power is the product of one
table entry per byte, each the double nearest to its true value.

Tested in tests/noise/test_bernoulli.py.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core import reals
from hubbub.errors import ParameterError

Gaps = NDArray[np.uint64]
Doubles = NDArray[np.float64]

#: Every power from `Powers.of` has at most this relative error, or is 0 where the true power is below CLIPPED.
RELATIVE_ERROR = 2.0**-48
CLIPPED = 2.0**-369

_CONTEXT = Context(prec=40, traps=[])


@dataclass(frozen=True, slots=True)
class Powers:
    """Tables of e^(−rate·256ʲ·v) for each byte j of a gap, for gaps below 2^bits."""

    tables: tuple[Doubles, ...]
    bits: int

    def of(self, gaps: Gaps) -> Doubles:
        """Return e^(−rate·gap) for each gap.

        Proof of the error. An entry is e·(1 + a) with |a| ≤ 2⁻⁵², for it is at least e⁻⁵¹² > 2⁻⁷⁴⁰ and so no subnormal.
        At most 8 entries are multiplied, with 7 roundings of at most 2⁻⁵² each (whatever the rounding mode), while
        the product stays above 2⁻⁷⁴⁰. So the relative error is at most (1 + 2⁻⁵²)¹⁵ − 1 < 2⁻⁴⁸. A gap of 2^bits
        or more gives 0, and its power is at most e⁻²⁵⁶ < 2⁻³⁶⁹.
        """
        powers: Doubles = self.tables[0][gaps & np.uint64(255)]
        for j, table in enumerate(self.tables[1:], start=1):
            powers *= table[gaps >> np.uint64(8 * j) & np.uint64(255)]
        if self.bits < 64:
            powers *= gaps >> np.uint64(self.bits) == 0
        return powers


@lru_cache(maxsize=64, typed=True)
def powers(rate: Fraction) -> Powers:
    """Compute the tables for one rate, for gaps below 2^bits, the least with rate·2^bits ≥ 256, or for all 64 bits."""
    if not rate > 0:
        raise ParameterError("HB103", "The rate is not positive.", "Choose a positive rate.")
    bits = 0
    while bits < 64 and rate * (1 << bits) < 256:
        bits += 1
    tables = [_table(rate * (1 << start), min(8, bits - start)) for start in range(0, bits, 8)]
    return Powers(tuple(tables) or (_table(rate, 0),), bits)


def _table(rate: Fraction, bits: int) -> Doubles:
    """Return the doubles nearest to e^(−rate·v) for v < 2^bits, and 0 for the other bytes.

    Each of at most 8 factors and 7 products is within 10⁻³⁸, and Decimal → float rounds to the nearest: 2⁻⁵³ + 10⁻³⁶.
    """
    entries = [Decimal(1)]
    for bit in range(bits):
        low, _ = reals.exp(-rate * (1 << bit), 40)
        factor = _CONTEXT.divide(Decimal(low.numerator), Decimal(low.denominator))
        entries += [_CONTEXT.multiply(factor, entry) for entry in entries]
    table = np.zeros(256)
    table[: len(entries)] = [float(entry) for entry in entries]
    return table
