"""Convert between forms of privacy loss. Every result is exact or an upper bound."""

from collections.abc import Callable
from fractions import Fraction

from hubbub.accounting import curves
from hubbub.core.interval import Interval, exp, log, sqrt
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Loss, Pure, Renyi, Zcdp
from hubbub.core.reals import ceil_to
from hubbub.errors import MechanismError, ParameterError

_ONE, _ZERO = Fraction(1), Fraction(0)


def _probability(value: Interval) -> Fraction:
    return _ONE if value.high >= 1 else max(_ZERO, value.above())


# ── from a divergence at one order to (ε, δ) ──────────────────────────────────────────────────────────────────────────


def _slack(order: Fraction, delta: Fraction) -> Interval:
    return log(Interval.of(1 - 1 / order)) - log(Interval.of(order * delta)) / (order - 1)


def renyi_epsilon(order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """Give the ε at which a divergence of one order implies (ε, δ)-DP.

    Theorem (Rényi to approximate). If D_α(P‖Q) ≤ r then P(S) ≤ e^ε Q(S) + δ for every S, with
    δ = e^((α−1)(r−ε))/(α−1) · (1−1/α)^α; that is, ε = r + ln(1−1/α) − ln(αδ)/(α−1).
    Proof    With Z = ln dP/dQ, the least δ is E_P[(1 − e^(ε−Z))⁺], and (1 − e^(−y))⁺ ≤ e^((α−1)y)·(1−1/α)^α/(α−1)
    for all y: the maximum of (1−e^(−y))e^(−(α−1)y) is where e^(−y) = 1−1/α. E_P[e^((α−1)Z)] ≤ e^((α−1)r). (Balle,
    Barthe, Gaboardi, Hsu and Sato, 2020; Canonne, Kamath and Steinke, 2020, proposition 12.)
    Tested   tests/accounting/test_convert.py::test_divergence_implies_the_stated_delta_on_random_pairs,
    tests/accounting/test_convert.py::test_conversions_match_a_high_precision_reference
    """
    return max(_ZERO, (divergence + _slack(order, delta)).above())


def divergence_for(order: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the largest divergence (rounded down) at this order that implies (ε, δ)-DP; negative if none does."""
    return (epsilon - _slack(order, delta)).below()


def renyi_delta(order: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction:
    """Give the δ at which a divergence of one order implies (ε, δ)-DP: `renyi_epsilon` solved for δ."""
    power = (order - 1) * Interval.of(divergence - epsilon) + order * log(Interval.of(1 - 1 / order))
    return _probability(exp(power) / (order - 1))


# ── zero-concentrated privacy ─────────────────────────────────────────────────────────────────────────────────────────


def _least(bound: Callable[[Fraction], Fraction], guess: Fraction) -> Fraction:
    # any order gives a valid bound; the search only tightens it, so it need not find the best one
    low, high = guess / 8, guess * 8
    best = bound(1 + guess)
    for _ in range(28):
        step = (high - low) / 3
        left, right = ceil_to(low + step, 15), ceil_to(high - step, 15)
        at_left, at_right = bound(1 + left), bound(1 + right)
        best = min(best, at_left, at_right)
        low, high = (low, right) if at_left <= at_right else (left, high)
    return best


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Give the ε at which ρ-zCDP implies (ε, δ)-DP.

    Theorem (Concentrated to approximate). ρ-zCDP implies (ε, δ)-DP with ε = inf over α > 1 of
    ρα + ln(1−1/α) − ln(αδ)/(α−1). (Bun and Steinke, 2016, have ρ + 2√(ρ ln(1/δ)), which is larger.)
    Proof    The divergence of every order α is at most ρα; apply the conversion of each and take the best.
    Tested   tests/accounting/test_convert.py::test_concentrated_conversion_is_tight_and_below_the_classic_one
    """
    if delta >= 1:
        return _ZERO
    guess = ceil_to(sqrt(-log(Interval.of(delta)) / rho).above(), 6)
    return _least(lambda order: renyi_epsilon(order, rho * order, delta), guess)


def zcdp_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Give the δ at which ρ-zCDP implies (ε, δ)-DP: `zcdp_epsilon` solved for δ."""
    guess = ceil_to(max((epsilon - rho) / (2 * rho), (1 / sqrt(Interval.of(rho))).above()), 12)
    return _least(lambda order: renyi_delta(order, rho * order, epsilon), guess)


def to_zcdp(loss: Pure | BoundedRange | Zcdp) -> Zcdp:
    """Give a ρ that the loss implies.

    Theorem (Bounded range to concentrated). A log-ratio inside an interval of length ε implies (ε²/8)-zCDP.
    Proof    K(α) = ln E_Q[e^(αZ)] is 0 at α = 0 and at α = 1, and its second derivative is the variance of Z under a
    tilted distribution, at most ε²/4 on an interval of length ε. So K(α) ≤ α(α−1)ε²/8 for α > 1 (the error of
    interpolation), and D_α = K(α)/(α−1). (Cesar and Rogers, 2021.)
    Tested   tests/accounting/test_convert.py::test_concentrated_line_is_above_the_exact_curves
    Theorem (Pure to concentrated). ε-DP implies (ε²/2)-zCDP (Bun and Steinke, 2016, proposition 3.3).
    Proof    The log-ratio lies in [−ε, ε], an interval of length 2ε.
    Tested   tests/accounting/test_convert.py::test_concentrated_line_is_above_the_exact_curves
    """
    match loss:
        case Pure(epsilon):
            return Zcdp(epsilon * epsilon / 2)
        case BoundedRange(epsilon):
            return Zcdp(epsilon * epsilon / 8)
        case Zcdp():
            return loss


def to_renyi(loss: Pure | BoundedRange | Zcdp | Renyi) -> Renyi:
    """Give the tight Rényi curve that the loss implies (the theorems are in `curves`)."""
    match loss:
        case Pure(epsilon):
            curve = curves.pure(epsilon)
        case BoundedRange(epsilon):
            curve = curves.bounded_range(epsilon)
        case Zcdp(rho):
            curve = curves.concentrated(rho)
        case Renyi():
            return loss
    return Renyi(tuple([Fraction(value, curves.STEPS) for value in curve]))


def to_pure(loss: Pure | BoundedRange) -> Pure:
    """Give the pure loss.

    Theorem (Bounded range to pure). A log-ratio inside an interval of length ε is at most ε in absolute value.
    Proof    dP/dQ has mean 1 under Q, so the interval holds 0. (Durfee and Rogers, 2019.)
    Tested   tests/accounting/test_convert.py::test_bounded_range_pairs_are_pure
    """
    return Pure(loss.epsilon)


# ── any loss, at a δ or at an ε ───────────────────────────────────────────────────────────────────────────────────────


def epsilon_at(loss: Loss, *, delta: Fraction) -> Fraction:
    """Give the smallest known ε such that the loss implies (ε, δ)-DP.

    Theorem (Pure loss trades for δ). ε₀-DP implies (ε, δ)-DP for δ ≥ (e^ε₀ − e^ε)/(1 + e^ε₀), and no less will do.
    Proof    As in `curves.pure`, E_Q[(dP/dQ − e^ε)⁺] is largest for randomized response.
    Tested   tests/accounting/test_convert.py::test_pure_loss_trades_for_delta_exactly_as_randomized_response

    >>> float(epsilon_at(Pure(Fraction(1)), delta=Fraction(1, 10)))  # doctest: +ELLIPSIS
    0.852...
    """
    if not 0 <= delta < 1:
        raise ParameterError("HB103", "delta must be between 0 and 1.", "Choose a value in that range.")
    match loss:
        case Approximate(inner, own):
            if not own <= delta < 1:
                raise ParameterError(
                    "HB110",
                    "The failure probabilities of the events exceed this δ.",
                    "Choose a larger δ.",
                )
            return epsilon_at(inner, delta=(delta - own) / (1 - own))
        case Pure(epsilon) | BoundedRange(epsilon) if not delta:
            return epsilon
        case Zcdp() | Renyi() if not delta:
            raise ParameterError("HB110", "This loss does not satisfy pure DP.", "Ask for ε at some δ > 0.")
        case Pure(epsilon):
            # e^ε = e^ε₀ − δ(1 + e^ε₀), written so that no exponential grows: ε = ε₀ + ln(1 − δ(1 + e^(−ε₀)))
            left = 1 - delta * (1 + exp(Interval.of(-epsilon)))
            return _ZERO if left.low <= 0 else min(epsilon, max(_ZERO, (epsilon + log(left)).above()))
        case BoundedRange(epsilon):
            return min(epsilon_at(Pure(epsilon), delta=delta), epsilon_at(to_renyi(loss), delta=delta))
        case Zcdp(rho):
            return zcdp_epsilon(rho, delta)
        case Renyi(curve):
            return min(renyi_epsilon(order, value, delta) for order, value in zip(ORDERS, curve, strict=True))


def delta_at(loss: Loss, *, epsilon: Fraction) -> Fraction:
    """Give the smallest known δ such that the loss implies (ε, δ)-DP: `epsilon_at` solved for δ."""
    if not epsilon >= 0:
        raise ParameterError("HB103", "epsilon must not be negative.", "Choose a value of 0 or more.")
    match loss:
        case Approximate(inner, own):
            return min(_ONE, own + (1 - own) * delta_at(inner, epsilon=epsilon))
        case Pure(bound):
            if epsilon >= bound:
                return _ZERO
            return _probability((1 - exp(Interval.of(epsilon - bound))) / (1 + exp(Interval.of(-bound))))
        case BoundedRange(bound):
            return min(delta_at(Pure(bound), epsilon=epsilon), delta_at(to_renyi(loss), epsilon=epsilon))
        case Zcdp(rho):
            return zcdp_delta(rho, epsilon)
        case Renyi(curve):
            return min(renyi_delta(order, value, epsilon) for order, value in zip(ORDERS, curve, strict=True))


# ── several units at once ─────────────────────────────────────────────────────────────────────────────────────────────


def group(loss: Loss, *, units: int) -> Loss:
    """Give the loss for datasets that differ in `units` privacy units instead of one.

    Theorem (Group privacy). For datasets k steps apart: ε-DP gives kε-DP, a range of ε a range of kε, ρ-zCDP gives
    k²ρ-zCDP, and (ε, δ)-DP gives (kε, δ_k)-DP with δ_k = δ(e^(kε)−1)/(e^ε−1).
    Proof    Log-ratios along the k steps add. For (ε, δ): P₀(S) ≤ e^ε P₁(S) + δ ≤ e^(2ε)P₂(S) + e^ε δ + δ ≤ …, and the
    geometric sum is δ_k. For zCDP: Bun and Steinke (2016), proposition 1.9.
    Tested   tests/accounting/test_convert.py::test_group_privacy_of_laplace_is_exactly_k_times,
    tests/accounting/test_convert.py::test_group_delta_is_the_geometric_sum,
    tests/accounting/test_convert.py::test_group_privacy_of_concentrated_loss_is_quadratic
    """
    if not units >= 1:
        raise ParameterError("HB103", "A group must have at least one privacy unit.", "Pass an integer of 1 or more.")
    if units == 1:
        return loss
    match loss:
        case Pure(epsilon):
            return Pure(units * epsilon)
        case BoundedRange(epsilon):
            return BoundedRange(units * epsilon)
        case Zcdp(rho):
            return Zcdp(units * units * rho)
        case Approximate(Pure(epsilon) | BoundedRange(epsilon), delta):
            # if the last term of the sum alone exceeds 1, there is no guarantee
            if not delta or (units - 1) * epsilon > -log(Interval.of(delta)).low:
                return Approximate(Pure(units * epsilon), _ONE if delta else _ZERO)
            rise = exp(Interval.of(units * epsilon)) - 1
            return Approximate(Pure(units * epsilon), _probability(delta * rise / (exp(Interval.of(epsilon)) - 1)))
        case _:
            raise MechanismError(
                "HB602",
                "Group privacy is not known for this form of loss.",
                "Use its pure, bounded-range, zCDP or (ε, δ) form.",
            )


def total_variation(loss: Pure | BoundedRange, *, units: int) -> Fraction:
    """Bound how well any test can distinguish two datasets that differ in `units` privacy units.

    Theorem (Leakage is inherent). An ε-DP answer about two datasets n units apart has total variation at most
    tanh(nε/2); so with ε far below 1/n even two datasets without a unit in common give nearly the same answer, and
    an answer that is to be useful must leak (Dwork, McSherry, Nissim and Smith, 2006, section 2).
    Proof    By group privacy the pair is nε-DP; the δ at ε = 0 of that, (e^(nε)−1)/(e^(nε)+1), is tanh(nε/2).
    Tested   tests/accounting/test_convert.py::test_leakage_is_inherent
    """
    return delta_at(group(to_pure(loss), units=units), epsilon=_ZERO)
