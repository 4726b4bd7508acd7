"""Losses and tail bounds of a receipt, rounded so that the loss is never understated; used by `receipt`.

Like the checker, this file imports nothing from the rest of hubbub. Tested in tests/audit/test_receipt.py.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

_UP = Context(prec=50, rounding=ROUND_CEILING)
_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
#: π from below, to 50 digits.
_PI = Fraction("3.1415926535897932384626433832795028841971693993751")
_LARGEST_VARIANCE = Fraction(10**10)


#: π/2 from above.
_HALF_PI = Fraction(11, 7)
#: How much doubles may be off, relatively; far more than they are.
_OFF = 1 + 1e-6


class ReceiptError(Exception):
    """A claim of the receipt is wrong; the text says which."""


@dataclass(frozen=True)
class Loss:
    """Pure ε (None if there is none), ρ of zero-concentrated DP, δ, and ε and ρ of those draws that have a pure ε.

    pair   the variance of a Gaussian pair that is nowhere better to tell apart, but for a probability; None: that of ε
    """

    pure: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)
    part: tuple[Fraction, Fraction] | None = None
    pair: tuple[Fraction, Fraction] | None = None

    @property
    def gaussian(self) -> tuple[Fraction, Fraction] | None:
        """The Gaussian pair; for a pure ε one of variance (π/2)ε²."""
        if self.pair is not None or self.pure is None:
            return self.pair
        return _HALF_PI * self.pure * self.pure, Fraction(0)

    @property
    def pure_part(self) -> tuple[Fraction, Fraction]:
        """ε and ρ of the draws that have a pure ε."""
        if self.part is not None:
            return self.part
        return (Fraction(0), Fraction(0)) if self.pure is None else (self.pure, self.rho)

    def divergence(self, order: Fraction) -> Fraction:
        """Bound the Rényi divergence: ρα, but at most ε for draws with a pure ε."""
        epsilon, rho = self.pure_part
        return min(epsilon, rho * order) + (self.rho - rho) * order

    def __add__(self, other: "Loss") -> "Loss":
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        (one, two), (three, four) = self.pure_part, other.pure_part
        pair = None
        if self.gaussian is not None and other.gaussian is not None:
            pair = self.gaussian[0] + other.gaussian[0], self.gaussian[1] + other.gaussian[1]
        return Loss(pure, self.rho + other.rho, self.delta + other.delta, (one + three, two + four), pair)

    def times(self, count: int) -> "Loss":
        """Return the loss of `count` repetitions."""
        epsilon, rho = self.pure_part
        pure = None if self.pure is None else self.pure * count
        pair = None if self.gaussian is None else (self.gaussian[0] * count, self.gaussian[1] * count)
        return Loss(pure, self.rho * count, self.delta * count, (epsilon * count, rho * count), pair)

    def gaussian_epsilon(self, delta: Fraction) -> Fraction | None:
        """Bound the ε at which the Gaussian pair is (ε, δ)-private; None if there is no pair, or none does."""
        if self.gaussian is None:
            return None
        variance, slip = float(self.gaussian[0]), self.gaussian[1]
        low, high, most = 0.0, variance + 40 * math.sqrt(variance), float(delta - slip)
        if not _pair_delta(variance, high) <= most:
            return None
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if _pair_delta(variance, middle) <= most else (middle, high)
        return Fraction(high)


def positive(value: object) -> int:
    """Return a positive integer, or reject the receipt."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ReceiptError("A size is not a positive integer.")
    return value


def above_zero(value: Fraction) -> Fraction:
    """Return a positive number, or reject the receipt."""
    if not value > 0:
        raise ReceiptError("The scale of some noise is 0.")
    return value


def show_loss(loss: Loss) -> str:
    """Write a loss for people."""
    return f"ρ = {float(loss.rho):.4g}" if loss.pure is None else f"ε = {float(loss.pure):.4g}"


def wide_tail(least: int, noise: dict[str, Any]) -> Fraction:
    """Bound Pr[Z ≥ least], Pr[z] ∝ exp(−z²/2σ²), where least > σ: by the normal tail from least − ½ on.

    Beyond σ the density is convex, so each term is at most its integral from z − ½ to z + ½. The ratio of tail and
    density is cut off after an even number of steps of Laplace's continued fraction, which bounds it from above.
    """
    variance = above_zero(noise["variance"])
    deviation = Fraction(_UP.sqrt(_decimal(variance, _UP)))
    x = (Fraction(least) - Fraction(1, 2)) / deviation
    if not x > 1:
        raise ReceiptError("The threshold is so low that one unit passes it.")
    ratio = (x**4 + 9 * x**2 + 8) / (x**5 + 10 * x**3 + 15 * x)
    return ratio * _exp(-x * x / 2, _UP) / Fraction(_DOWN.sqrt(_decimal(2 * _PI, _DOWN)))


def coins_delta(coins: int, moved: int, epsilon: Fraction) -> Fraction:
    """Bound Σ max(0, Pr[k] − e^ε·Pr[k − moved]) over the number k of heads, by whole numbers up to 2^coins."""
    least = _exp(epsilon, _DOWN)
    top, bottom = least.numerator, least.denominator
    excess, here, there = 0, 1, [0] * moved  # C(N, k), and C(N, j) for j = k − moved, …, k − 1
    for heads in range(coins + 1):
        before = there[heads % moved]
        if not here * bottom > top * before:
            break  # the ratio only falls from here
        excess += here * bottom - top * before
        there[heads % moved] = here
        here = here * (coins - heads) // (heads + 1)
    return Fraction(excess, bottom << coins)


def any_of(keys: int, slip: Fraction) -> Fraction:
    """Return 1 − (1 − p)^k, rounded up: the chance that any of the k keys of one unit is shown."""
    return 1 - _exp(keys * _ln(1 - slip, _DOWN), _DOWN)


def laplace_tail(least: int, scale: Fraction) -> Fraction:
    """Bound Pr[Z ≥ least] = qˡ/(1 + q), with q = exp(−1/scale) and least ≥ 0."""
    if least < 0:
        raise ReceiptError("The threshold is so low that one unit passes it.")
    return _exp(-least / scale, _UP) / (1 + _exp(-1 / scale, _DOWN))


def gaussian_tail(least: int, noise: dict[str, Any]) -> Fraction:
    """Bound Pr[Z ≥ least], Pr[z] ∝ exp(−z²/2σ²): sum the terms, and bound the rest by a geometric series."""
    if least < 1:
        raise ReceiptError("The threshold is so low that one unit passes it.")
    variance = above_zero(noise["variance"])
    if variance > _LARGEST_VARIANCE:
        raise ReceiptError("The variance is too large for this checker.")
    term = _decimal(_exp(-Fraction(least * least) / (2 * variance), _UP), _UP)
    ratio = _decimal(_exp(-Fraction(2 * least + 1) / (2 * variance), _UP), _UP)
    fall = _decimal(_exp(-1 / variance, _UP), _UP)
    tail, small = Decimal(0), term.scaleb(-40)
    while term > small:
        tail = _UP.add(tail, term)
        term, ratio = _UP.multiply(term, ratio), _UP.multiply(ratio, fall)
    tail = _UP.add(tail, _UP.divide(term, _DOWN.subtract(Decimal(1), ratio)))
    return Fraction(tail) / _normalizer(variance)


def _normalizer(variance: Fraction) -> Fraction:
    """Bound Σ exp(−z²/2σ²) over all integers from below: it is √(2πσ²) times at least 1 + 2·exp(−2π²σ²)."""
    if variance > 16:
        return Fraction(_DOWN.sqrt(_decimal(2 * _PI * variance, _DOWN)))
    return 1 + 2 * sum((_exp(-Fraction(z * z) / (2 * variance), _DOWN) for z in range(1, 80)), Fraction(0))


def gaussian_loss(squared: Fraction, variance: Fraction) -> Loss:
    """Return the loss of discrete Gaussian noise on an integer vector: ρ, and the Gaussian pair.

    It is Gaussian noise of variance σ² − c, rounded, but for a probability of 5e^(−2π²c(2−c/σ²)) for each coordinate
    that moves, of which there are at most D²; c = 1 from σ² = 10 on, 2 from 100, 10 from 10,000.
    """
    rho = squared / (2 * above_zero(variance))
    if variance < 10:
        return Loss(None, rho)
    c = 1 if variance < 100 else 2 if variance < 10_000 else 10
    slip = 5 * squared * _exp(-Fraction(1973, 100) * c * (2 - c / variance), _UP)
    return Loss(None, rho, pair=(squared / (variance - c), slip))


def range_loss(loss: Fraction) -> Loss:
    """Return the loss of a choice whose log-ratios lie in an interval of this length: ε²/8, and (π/8)ε²."""
    return Loss(loss, loss * loss / 8, pair=(_HALF_PI * loss * loss / 4, Fraction(0)))


def _pair_delta(variance: float, epsilon: float) -> float:
    """Bound Φ(−a) − e^ε·Φ(−b), a = ε/√v − √v/2, b = a + √v: the δ of the Gaussian pair of variance v at ε."""
    if not variance > 0:
        return 0.0
    root = math.sqrt(variance)
    near, far = epsilon / root - root / 2, epsilon / root + root / 2
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    inside = math.erfc(near / math.sqrt(2)) / 2 if near < 0 else density * _mills(near)
    return (inside - density * _mills(far)) * _OFF


def _mills(x: float) -> float:
    """Return (1 − Φ(x))/φ(x) for x ≥ 0."""
    if x < 25:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x


def approximate(loss: Loss, delta: Fraction) -> Fraction:
    """Bound ε at δ: minimum over orders α of D + ln((α−1)/α) − ln(δα)/(α−1) (Canonne, Kamath and Steinke 2020)."""
    low = _ln(delta, _DOWN)
    bounds = (loss.divergence(order) + up - (low + down) / (order - 1) for order, up, down in _orders())
    return max(Fraction(0), min(bounds))


@cache
def _orders() -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return each order α with ln((α−1)/α) from above and ln α from below."""
    orders = [Fraction(n, 8) for n in range(9, 161)] + [Fraction(n) for n in range(21, 2001, 3)]
    return [(order, _ln((order - 1) / order, _UP), _ln(order, _DOWN)) for order in orders]


def _ln(x: Fraction, context: Context) -> Fraction:
    return _outwards(context.ln(_decimal(x, context)), context)


def _exp(x: Fraction, context: Context) -> Fraction:
    return _outwards(context.exp(_decimal(x, context)), context)


def _decimal(x: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(x.numerator), Decimal(x.denominator))


def _outwards(value: Decimal, context: Context) -> Fraction:
    # ln and exp round to nearest whatever the context says, so take one step outwards
    return Fraction(context.next_plus(value) if context is _UP else context.next_minus(value))
