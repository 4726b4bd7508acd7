"""The price of an event: what it costs in each of the forms that the filters add up.

A price holds three numbers side by side: the pure loss, the Rényi divergence at each of the fixed orders, and the
event's own failure probability. All are rounded up once, at the single event, and added exactly after that; so the
price of k events is exactly k times the price of one, in whatever order and grouping they come.
"""

import json
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from operator import add

from hubbub.accounting import curves
from hubbub.core.distributions import distribution_of, slip
from hubbub.core.events import (
    Composed,
    Event,
    FlipsEvent,
    GaussianEvent,
    LaplaceEvent,
    MetricEvent,
    ResponseEvent,
    SelectionEvent,
    SparseVectorEvent,
    ThresholdEvent,
    from_facts,
)
from hubbub.core.loss import ORDERS
from hubbub.core.numbers import MAX_DENOMINATOR, MAX_PLACES
from hubbub.core.reals import ceil_to
from hubbub.errors import ParameterError

#: One unit of the Rényi totals: they are integers, in steps of 10⁻¹⁸.
RENYI_UNIT = Fraction(1, curves.STEPS)

_NOTHING = Fraction(0)
_NO_RENYI = (0,) * len(ORDERS)
_GRID = 10**MAX_PLACES


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """What was spent, or would be: pure loss, Rényi divergence at each of `ORDERS`, failure probability.

    The meaning for two neighbors, with distributions P and Q of the answer: P = (1−δ)P′ + δP″ and Q = (1−δ)Q′ + δQ″ where
    P′ and Q′ keep the pure loss (if there is one) and the Rényi curve, both at once and in both directions.
    """

    pure: Fraction | None
    renyi: tuple[int, ...]
    delta: Fraction

    def __add__(self, other: "PrivacyCost") -> "PrivacyCost":
        pure = None if self.pure is None or other.pure is None else self.pure + other.pure
        # most events have no δ of their own, and a sum of Fractions costs a gcd
        delta = self.delta if not other.delta else other.delta if not self.delta else self.delta + other.delta
        return PrivacyCost(pure, tuple(map(add, self.renyi, other.renyi)), delta)

    def times(self, count: int) -> "PrivacyCost":
        """Price so many of the same.

        >>> price(Laplace(1, Fraction(10))).times(3).pure
        Fraction(3, 10)
        """
        if not count >= 0:
            raise ParameterError("HB106", f"{count} events cannot be priced.", "Give a count of 0 or more.")
        if count == 0:
            return ZERO
        pure = None if self.pure is None else self.pure * count
        return PrivacyCost(pure, tuple([value * count for value in self.renyi]), self.delta * count)

    def to_json(self) -> list[object]:
        """Give the compact canonical form: [pure or null, [Rényi units…], δ], fractions as strings."""
        return [None if self.pure is None else str(self.pure), list(self.renyi), str(self.delta)]

    @staticmethod
    def from_json(form: object) -> "PrivacyCost":
        """Read the canonical form back; anything that `to_json` would not have written is refused."""
        try:
            pure, renyi, delta = form  # type: ignore[misc]
            read = PrivacyCost(None if pure is None else Fraction(pure), tuple(renyi), Fraction(delta))  # type: ignore[has-type]
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise ParameterError("HB107", "this is not a price.", "The record is damaged.") from error
        good = len(read.renyi) == len(ORDERS) and all(type(value) is int and value >= 0 for value in read.renyi)
        if not good or read.to_json() != form or read.delta < 0 or (read.pure is not None and read.pure < 0):
            raise ParameterError("HB107", "this price is not in canonical form.", "The record is damaged.")
        return read


ZERO = PrivacyCost(_NOTHING, _NO_RENYI, _NOTHING)


def is_tame(loss: Fraction) -> bool:
    """Say whether a loss can be added up exactly for ever: `numbers.epsilon` would accept its denominator."""
    return loss.denominator <= MAX_DENOMINATOR or _GRID % loss.denominator == 0


def _summable(loss: Fraction) -> Fraction:
    # any other is rounded up to 30 places, so that totals stay short
    return loss if is_tame(loss) else ceil_to(loss, MAX_PLACES)


def _refuse_impossible(event: Event) -> None:
    # bool and str pass by: they choose a case and are not counted with
    numbers = [getattr(event, field.name) for field in fields(event) if field.type in (int, Fraction)]
    good = all(type(number) in (int, Fraction) for number in numbers)
    good = good and all(number > 0 for number in numbers)
    if not good or (isinstance(event, ResponseEvent) and event.answers < 2):
        raise ParameterError("HB105", "these are not the facts of a known event.", "The record is damaged.")


def _of_pure(loss: Fraction, curve: tuple[int, ...] | None = None) -> PrivacyCost:
    return PrivacyCost(_summable(loss), curves.pure(loss) if curve is None else curve, _NOTHING)


@lru_cache(maxsize=16384)
def privacy_cost(event: Event) -> PrivacyCost:  # noqa: C901 — one case for each kind of event
    """Price one event; an event that no mechanism can have made is refused.

    Laplace, response and flips are priced by their own curves; the exponential mechanism, and a metric mechanism whose
    normaliser moves, by bounded range (Durfee and Rogers, 2019): a score that moves by at most D moves every log-ratio
    inside one interval of length 2·rate·D, or rate·D where all scores move the same way. The other selections and the
    sparse vector are priced by their pure loss: (1/threshold_scale + hits·(2 or 1)/query_scale)·D, the constants of
    Lyu, Su and Li (2017).

    Theorem (Bounded range of the exponential mechanism). With Pr[r] ∝ exp(rate·u(x, r)) and |u(x, r) − u(x′, r)| ≤ D,
    the log-ratio lies in one interval of length 2·rate·D; of length rate·D if u(x, ·) − u(x′, ·) never changes sign.
    Proof    The log-ratio is rate·(u(x, r) − u(x′, r)) plus a constant (the normalisers), and the first term ranges
    over [−rate·D, rate·D], or over one half of it.
    Tested   tests/accounting/test_cost.py::test_exponential_mechanism_has_bounded_range

    >>> price(Laplace(1, Fraction(10))).pure
    Fraction(1, 10)
    """
    _refuse_impossible(event)
    match event:
        case LaplaceEvent(sensitivity, scale):
            return _of_pure(sensitivity / scale, curves.laplace(sensitivity, scale))
        case GaussianEvent(sensitivity_squared, variance):
            return PrivacyCost(None, curves.concentrated(sensitivity_squared / (2 * variance)), _NOTHING)
        case SelectionEvent(rule, sensitivity, monotone, rate):
            loss = rate * sensitivity * (1 if monotone else 2)
            return _of_pure(loss, curves.bounded_range(loss) if rule == "exponential" else None)
        case ResponseEvent(answers, epsilon):
            return _of_pure(epsilon, curves.response(answers, epsilon))
        case FlipsEvent(distance, rate):
            return _of_pure(distance * rate, tuple([distance * value for value in curves.pure(rate)]))
        case MetricEvent(moved, rate, constant_normaliser):
            if constant_normaliser:
                return _of_pure(rate * moved)
            return _of_pure(2 * rate * moved, curves.bounded_range(2 * rate * moved))
        case SparseVectorEvent(sensitivity, monotone, threshold_scale, query_scale, hits):
            return _of_pure(sensitivity / threshold_scale + hits * sensitivity * (1 if monotone else 2) / query_scale)
        case ThresholdEvent(noise, keys, above):
            base = privacy_cost(noise)
            return PrivacyCost(base.pure, base.renyi, _summable(slip(distribution_of(noise), above, keys)))
        case Composed(parts):
            total = ZERO
            for part, count in parts:
                total += privacy_cost(part).times(count)
            return total


@lru_cache(maxsize=65536)
def priced(facts: str) -> PrivacyCost:
    """Price a charge by its facts, as they stand in the ledger.

    >>> priced('{"mechanism":"laplace","scale":"10","sensitivity":1}').pure
    Fraction(1, 10)
    """
    return privacy_cost(from_facts(json.loads(facts)))
