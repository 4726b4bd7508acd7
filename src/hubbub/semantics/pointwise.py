"""How often the odds of a fact rise by more than e^ε: under δ > 0, more often than δ.

(ε, δ)-privacy bounds the probability of every event, not the ratio at every answer. The chance that an answer moves the
odds of a true fact beyond e^ε is computed here for the noise at hand; `core.odds` bounds it where only (ε, δ) is known.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from hubbub.accounting.convert import delta_at
from hubbub.accounting.cost import RENYI_UNIT, ZERO, PrivacyCost, privacy_cost
from hubbub.accounting.gaussian import variance_for
from hubbub.core.events import Composed, Event, GaussianEvent, ThresholdEvent, WeightedThresholdEvent
from hubbub.core.interval import Interval, exp, sqrt
from hubbub.core.loss import ORDERS, Renyi
from hubbub.core.normal import discrete_tail, tail
from hubbub.core.odds import wider
from hubbub.errors import ParameterError

_ZERO, _ONE = Fraction(0), Fraction(1)


def gaussian_exceedance(*, epsilon: Fraction, sensitivity_squared: Fraction | int, variance: Fraction) -> Interval:
    """Enclose the probability that continuous Gaussian noise moves the odds of the truth by more than e^ε.

    Theorem (Odds under Gaussian noise). With D and σ as in `accounting.gaussian.profile`, it is Φ(D/(2σ) − εσ/D) for
    the two datasets that are farthest apart, and less for others.
    Proof    The logarithm of the ratio is normal with mean μ²/2 and variance μ², μ = D/σ; the expression increases in
    D.
    Tested   tests/semantics/test_pointwise.py::test_gaussian_noise_moves_odds_more_often_than_delta
    """
    mu = sqrt(Interval.of(Fraction(sensitivity_squared) / variance))
    return tail(epsilon / mu - mu / 2)


def calibrated_exceedance(*, epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """Return, rounded up, the chance of `gaussian_exceedance` for noise calibrated to (ε, δ); None if there is none.

    >>> f"{float(calibrated_exceedance(epsilon=Fraction(1), delta=Fraction(1, 10**5))):.2e}"
    '1.61e-04'
    """
    try:
        variance = variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=1)
    except ParameterError:  # no usable noise has this ε and δ
        return None
    return gaussian_exceedance(epsilon=epsilon, sensitivity_squared=1, variance=variance).above(40)


def exceedance_of(events: Sequence[Event], *, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bound the rise of odds by a fixed list of events: λ, about ε, and the probability of a factor of more than e^λ.

    Theorem (Odds under a list of events). Let the events have Rényi divergences r_α in total, and let keys that only
    one person has be shown with probabilities of at most δᵢ. Except with probability Σδᵢ + min over α of
    e^((α−1)(r_α − ε)), the odds of the truth rise by a factor of at most e^ε/(1 − Σδᵢ). The second term is 0 if the
    pure losses add up to at most ε.
    Proof    An answer without such a key has the ratio of the noise, divided by at most Π(1 − δᵢ), the chance that none
    is shown. For the noise, with L = ln P/Q, P(L > ε) ≤ E_P[e^((α−1)(L − ε))] (Markov), and E_P[e^((α−1)L)] =
    e^((α−1)r_α).
    Assumes  events fixed before the first answer. One integer with discrete Gaussian noise is computed exactly. A δ of
             another kind is taken as that of `core.odds.exceedance`.
    Tested   tests/semantics/test_pointwise.py::test_a_count_with_gaussian_noise_is_exact
             tests/semantics/test_pointwise.py::test_private_groups_exceed_the_factor_with_their_own_delta
             tests/semantics/test_pointwise.py::test_several_gaussian_counts_stay_below_the_bound
             tests/semantics/test_pointwise.py::test_a_delta_of_another_kind_is_taken_as_any
    """
    parts = [part for event in events for part in _parts(event)]
    total = sum((privacy_cost(event) for event in events), ZERO)
    own = min(_ONE, total.delta)
    if own == 1:
        return epsilon, _ONE
    if all(isinstance(part, ThresholdEvent | WeightedThresholdEvent) for part in parts if privacy_cost(part).delta):
        # −ln(1 − δ) ≤ δ/(1 − δ)
        return epsilon + own / (1 - own), min(_ONE, own + _by_noise(parts, total, epsilon))
    by_noise = _ZERO if total.pure is not None and total.pure <= epsilon else _delta(total, epsilon)
    return wider(epsilon=epsilon, delta=min(_ONE, own + by_noise))


def _delta(total: PrivacyCost, epsilon: Fraction) -> Fraction:
    return delta_at(Renyi(tuple(value * RENYI_UNIT for value in total.renyi)), epsilon=epsilon)


def _parts(event: Event) -> Iterator[Event]:
    """List the events of a composition; a repeated one twice, which is enough to see that it is not alone."""
    if not isinstance(event, Composed):
        yield event
        return
    for part, count in event.parts:
        yield from (inner for inner in _parts(part) for _ in range(min(count, 2)))


def _by_noise(parts: Sequence[Event], total: PrivacyCost, epsilon: Fraction) -> Fraction:
    if total.pure is not None and total.pure <= epsilon:
        return _ZERO
    match parts:
        case [GaussianEvent(1, variance)]:
            # the ratio at z and z + 1 is above e^ε from this z on, as in `accounting.gaussian.discrete_profile`
            first = math.floor(epsilon * variance - Fraction(1, 2)) + 1
            return min(_ONE, discrete_tail(first, variance).above(40))
    power = min((order - 1) * (value * RENYI_UNIT - epsilon) for order, value in zip(ORDERS, total.renyi, strict=True))
    return exp(Interval.of(power)).above(40) if power < 0 else _ONE
