"""Trade-off curves: the largest true-positive rate of a membership test at each false-positive rate.

A curve follows from a privacy profile, a list of (ε, δ) pairs that all hold at once: each pair bounds the best test.
One pair gives the bound of pure or approximate DP; many give that of Gaussian noise, of a Rényi curve or of a whole
ledger. (Wasserman and Zhou 2010; Kasiviswanathan and Smith 2014, equations 4 and 5; Dong, Roth and Su 2022.)
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

from hubbub.accounting import gaussian
from hubbub.accounting.convert import delta_at
from hubbub.accounting.cost import RENYI_UNIT, PrivacyCost
from hubbub.accounting.pld import tight_deltas
from hubbub.core.events import Event
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Approximate, Renyi
from hubbub.core.odds import exceedance
from hubbub.core.reals import ceil_to
from hubbub.errors import ParameterError
from hubbub.semantics import odds
from hubbub.semantics.information import bits_about_a_fact

Outcome = TypeVar("Outcome", bound=Hashable)

#: The ε at which a profile is evaluated, up to where the guarantee is vacuous.
GRID = tuple([Fraction(k, 8) for k in range(32)] + [Fraction(k, 2) for k in range(8, 33)])
FINE = tuple(sorted({*GRID, *[Fraction(k, 64) for k in range(64)], *[Fraction(k, 32) for k in range(128)]}))
#: The false-positive rates at which a curve is plotted.
LEVELS = tuple(Fraction(k, 40) for k in range(41))

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The trade-off curve of a privacy profile.

    points     (ε, δ) pairs that all hold at once; each δ is rounded up
    certain    False if they were computed in floating point (`tight`): for reports only, never for decisions

    Theorem (Trade-off of a profile). If a mechanism is (ε, δ(ε))-private for every ε of a list, a test with
    false-positive rate α has a false-negative rate of at least max over ε of 0, 1 − δ(ε) − e^ε α and e^{−ε}(1 − δ(ε) −
    α); with one pair, or with all ε ≥ 0, some test is no worse.
    Proof    Each pair bounds every test: `odds.power`. The other way: Neyman and Pearson's best tests are the sets
    where the ratio is above some e^{±ε}, and there the bound at that ε is an equality.
    Tested   tests/semantics/test_tradeoff.py::test_the_best_test_on_randomized_response_meets_the_bound
             tests/semantics/test_tradeoff.py::test_the_profile_of_a_finite_pair_gives_its_best_test
             tests/semantics/test_tradeoff.py::test_gaussian_noise_has_the_gaussian_trade_off
    """

    points: tuple[tuple[Fraction, Fraction], ...]
    certain: bool = True

    def __post_init__(self) -> None:
        if not self.points:
            raise ParameterError("HB103", "No privacy parameters were given.", "Pass at least one pair of ε and δ.")

    def power(self, level: Fraction) -> Fraction:
        """Bound the true-positive rate of a test at this false-positive rate."""
        if not 0 <= level <= 1:
            raise ParameterError("HB103", "The level is not between 0 and 1.", "Pass a probability such as 0.05.")
        return min(odds.power(epsilon=epsilon, delta=delta, level=level) for epsilon, delta in self.points)

    def missed(self, level: Fraction) -> Fraction:
        """Bound the false-negative rate from below: the trade-off function at this level."""
        return 1 - self.power(level)

    def guess(self) -> Fraction:
        """Bound the success rate of the best guess at membership decided by a fair coin."""
        return min(odds.guess(epsilon=epsilon, delta=delta) for epsilon, delta in self.points)

    def exceedance(self, epsilon: Fraction) -> Fraction:
        """Bound the probability that the odds of the truth rise by more than e^ε: `core.odds.exceedance` at each pair.

        Tested   tests/semantics/test_tradeoff.py::test_a_profile_bounds_how_often_odds_rise
        """
        below = [(epsilon - at, delta) for at, delta in self.points if at < epsilon]
        return min([_ONE, *(exceedance(delta=delta, slack=slack) for slack, delta in below)])

    def bits(self) -> Fraction:
        """Bound the bits that the answers tell about a yes-or-no fact about one person."""
        return bits_about_a_fact(self.points)

    def curve(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Return the bound at `LEVELS` and at its kinks, so that linear interpolation equals the bound.

        The bound is concave: without the kinks, a plot would run below it and overstate the protection.
        """
        least = self._least()
        kinks = [_meet(one, other) for one, other in pairwise(least)]
        levels = sorted({*LEVELS, *(level for level in kinks if level < 1)})
        lines = [(level, *least[bisect_left(kinks, level)]) for level in levels]
        return tuple((level, slope * level + start) for level, slope, start in lines)

    def _least(self) -> list[tuple[Fraction, Fraction]]:
        """Return the lines that form the bound at or above level 0, in order."""
        candidates = {line for epsilon, delta in self.points for line in odds.lines(epsilon=epsilon, delta=delta)}
        hull: list[tuple[Fraction, Fraction]] = []
        for slope, start in sorted(candidates, key=lambda line: (-line[0], line[1])):
            if hull and hull[-1][0] == slope:
                continue
            while hull and (
                start <= hull[-1][1] or (len(hull) > 1 and _meet((slope, start), hull[-1]) <= _meet(hull[-1], hull[-2]))
            ):
                hull.pop()
            hull.append((slope, start))
        return hull


def _meet(one: tuple[Fraction, Fraction], other: tuple[Fraction, Fraction]) -> Fraction:
    return (one[1] - other[1]) / (other[0] - one[0])


def approximate(*, epsilon: Fraction, delta: Fraction) -> TradeOff:
    """Return the trade-off of approximate DP or, with δ = 0, of pure DP.

    >>> curve = approximate(epsilon=Fraction(1), delta=Fraction(0))
    >>> round(float(curve.power(Fraction(1, 20))), 4)
    0.1359
    """
    return TradeOff(((epsilon, delta),))


def gaussian_noise(*, sensitivity_squared: Fraction | int, variance: Fraction) -> TradeOff:
    """Return the trade-off of continuous Gaussian noise, from its exact profile on a grid.

    In the limit of a fine grid it is Φ(Φ⁻¹(1 − α) − μ) with μ = sensitivity/σ (Dong, Roth and Su 2022).
    """
    return TradeOff(
        tuple(
            (
                epsilon,
                ceil_to(
                    gaussian.profile(epsilon=epsilon, sensitivity_squared=sensitivity_squared, variance=variance).above(
                        40
                    ),
                    40,
                ),
            )
            for epsilon in FINE
        )
    )


def composed(total: PrivacyCost) -> TradeOff:
    """Return the trade-off of all charges in a total privacy cost, as a list fixed in advance.

    The pure sum, if there is one, also holds for adaptively chosen queries.
    """
    loss = Approximate(Renyi(tuple(value * RENYI_UNIT for value in total.renyi)), min(_ONE, total.delta))
    points = [] if total.pure is None else [(total.pure, min(_ONE, total.delta))]
    return TradeOff((*points, *[(epsilon, delta_at(loss, epsilon=epsilon)) for epsilon in GRID]))


def tight(events: Sequence[Event], *, one_coordinate: bool = False) -> TradeOff:
    """Return the trade-off of a fixed list of events by privacy loss distributions: in floating point, for reports.

    It needs the extra `pld`, and rejects events without such a distribution (`accounting.pld`).
    """
    deltas = tight_deltas(events, epsilons=FINE, one_coordinate=one_coordinate)
    above = [_ZERO if not delta else Fraction(math.nextafter(min(delta, 1.0), 2)) for delta in deltas]
    return TradeOff(
        tuple((epsilon, min(_ONE, delta)) for epsilon, delta in zip(FINE, above, strict=True)), certain=False
    )


def best_power(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], level: Fraction) -> Fraction:
    """Return the power of the Neyman–Pearson test of q against p at a level, for exact distributions.

    >>> from hubbub.core.finite import exact_distribution
    >>> yes = exact_distribution({1: Fraction(3, 4), 0: Fraction(1, 4)})
    >>> no = exact_distribution({1: Fraction(1, 4), 0: Fraction(3, 4)})
    >>> best_power(yes, no, Fraction(1, 4)), best_power(yes, no, Fraction(1, 20))
    (Fraction(3, 4), Fraction(3, 20))
    """
    pairs = [(p.mass.get(t, (_ZERO, _ZERO))[0], q.mass.get(t, (_ZERO, _ZERO))[0]) for t in {**p.mass, **q.mass}]
    power, left = _ZERO, level
    for real, innocent in sorted(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] else math.inf, reverse=True):
        share = _ONE if innocent <= left else left / innocent  # a coin decides the last outcome
        power, left = power + share * real, left - share * innocent
    return power
