"""Privacy losses of a mechanism between neighboring datasets, in the forms that compose.

All numbers are exact or rounded up. `hubbub.accounting` has the theorems that convert one form into another.

Tested in tests/audit/test_black_box.py.
"""

from dataclasses import dataclass
from fractions import Fraction

#: The fixed grid of Rényi orders. It is part of the ledger format: totals are stored at these orders.
ORDERS: tuple[Fraction, ...] = tuple(
    Fraction(n, d)
    for n, d in (
        (3, 2),
        (2, 1),
        (5, 2),
        (3, 1),
        (4, 1),
        (5, 1),
        (6, 1),
        (8, 1),
        (11, 1),
        (16, 1),
        (23, 1),
        (32, 1),
        (45, 1),
        (64, 1),
        (128, 1),
        (512, 1),
    )
)


@dataclass(frozen=True, slots=True)
class Pure:
    """ε-differential privacy: |ln(Pr[M(x) ∈ S] / Pr[M(x′) ∈ S])| ≤ ε for every S."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """The log-ratio, as a function of the output, stays inside one interval of length ε (Durfee and Rogers, 2019)."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Zcdp:
    """ρ-zero-concentrated privacy: the Rényi divergence of order α is at most ρα for every α > 1."""

    rho: Fraction


@dataclass(frozen=True, slots=True)
class Renyi:
    """The Rényi divergence at each of `ORDERS` is at most the value at the same index of `curve`."""

    curve: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.curve) != len(ORDERS):
            raise ValueError(f"a Rényi curve has {len(ORDERS)} values, one for each order")


@dataclass(frozen=True, slots=True)
class Approximate:
    """P = (1 − δ)P′ + δP″ and Q = (1 − δ)Q′ + δQ″, and P′ and Q′ have `loss`; with a `Pure` loss: (ε, δ)-privacy."""

    loss: Pure | BoundedRange | Zcdp | Renyi
    delta: Fraction


Loss = Pure | BoundedRange | Zcdp | Renyi | Approximate
