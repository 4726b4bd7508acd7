"""Privacy filters: whether one more adaptively chosen query fits within a budget.

A privacy filter depends only on costs, never on answers or data, so a refusal reveals nothing but costs.

Theorem (Pure filter). If every query is admitted only while the sum of pure losses stays within ε, the whole transcript
is ε-DP, however each query was chosen from the answers before it.
Proof    The log-ratio of a transcript is the sum of the log-ratios of its answers, each given the transcript before it.
Tested   tests/accounting/test_filters.py::test_worst_adaptive_analyst_stays_within_a_pure_cap,
tests/accounting/test_filters.py::test_charging_the_realised_loss_is_caught

Theorem (Rényi filter at one order). Fix α and B beforehand. If every query is admitted only while the sum of the Rényi
divergences at α stays within B, then D_α of the whole transcript is at most B (Feldman and Zrnic, 2021; Lécuyer, 2021).
Proof    Let L_i be the ratio P/Q of the first i answers and R_i the sum of their prices. E_Q[(L_i)^α e^(−(α−1)R_i)]
does not grow with i: R_i is known before answer i is drawn, and E_Q[(answer i's ratio)^α | before] is at most
e^((α−1)·its price). It starts at 1, and R ≤ B at the end.
Tested   tests/accounting/test_filters.py::test_worst_adaptive_analyst_keeps_the_divergence_at_each_order

Theorem (Either filter may admit). Let an (ε, δ) cap fix, in advance and by itself alone, a share δ_own, and for some
orders α shares δ_α with δ_own + Σ δ_α ≤ δ, and let B_α be the largest divergence of order α that implies (ε, δ_α)-DP.
If a query is admitted whenever afterwards the events' own failure probabilities sum to at most δ_own, and either the
pure losses sum to at most ε, or at some order α the divergences sum to at most B_α, then the whole transcript is
(ε, δ)-DP, however each query was chosen.
Proof    Which filter admits depends on the path, so no bound at a single order covers all transcripts; but the totals
only grow. First let no event have a failure probability. Give each final transcript to one filter that holds at its
end: these classes are disjoint and fixed by the prices in the transcript. If filter j holds at the end it held all
along, so the transcript has the same probability in the process that is stopped before the first query that filter j
alone would not admit, for P and for Q alike; and that process is (ε, δ_j)-DP by the theorems above (δ_j = 0 for the
pure filter).
So for any set S of transcripts P(S) − e^ε Q(S) = Σ_j (P_j(S∩C_j) − e^ε Q_j(S∩C_j)) ≤ Σ_j δ_j.
With failures, each answer's distributions are (1−δ_i)P′ + δ_i P″ and (1−δ_i)Q′ + δ_i Q″ given the past. The chance
that any answer under P comes from its P″ is at most the sum of the δ_i on the path, hence at most δ_own. A transcript
without such an answer has probability w·P′ and at least w·Q′, with the same w = Π(1−δ_i) ≤ 1, and P′, Q′ are
transcripts of the first kind. So P(S) ≤ δ_own + e^ε Q(S) + Σ_j δ_j: the failures are paid once, not once for each
filter. (Compare Whitehouse, Ramdas, Rogers and Wu, 2023, for one filter.) An event that is itself interactive, such as
a sparse vector, and is interleaved with others, is covered by concurrent composition (Lyu, 2022; Haney and others,
2023).
Tested   tests/accounting/test_filters.py::test_worst_adaptive_analyst_stays_within_an_approximate_cap,
tests/accounting/test_filters.py::test_a_filter_without_the_conversion_slack_is_caught,
tests/accounting/test_filters.py::test_shares_of_a_cap_never_exceed_its_delta

The shares. Half of δ is for the failure probabilities of the events. Of the other half, nine tenths go to the order
that allows the most when divergences grow like ρα, as those of Gaussian noise and of many small losses do; the other
orders, which help when a few large losses are mixed in, share the rest. A separate filter for zCDP is not needed: ρ
implies (ε, δ) through one best order, and what the filter adds up at that order is at most ρα.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hubbub.accounting import curves
from hubbub.accounting.convert import divergence_for, renyi_epsilon
from hubbub.accounting.cost import RENYI_UNIT, PrivacyCost
from hubbub.core.loss import ORDERS
from hubbub.core.numbers import EPSILON_MIN, MAX_PLACES
from hubbub.core.reals import floor_to
from hubbub.errors import ParameterError

_OWN = Fraction(1, 2)
_FIRST = Fraction(9, 10)
_NEVER = -1
_PLACES = 9  # decimal places of the remaining ε that is found by search


@dataclass(frozen=True, slots=True)
class Budget:
    """A privacy budget: everything charged to it together is (ε, δ)-DP; δ = 0 means pure DP."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 <= self.delta < 1):
            raise ParameterError("HB108", "This is not a valid privacy budget.", "Use ε > 0 and 0 ≤ δ < 1.")


@dataclass(frozen=True, slots=True)
class FilterLimits:
    """The limits that a budget implies: total failure probability, share of δ and Rényi total at each order."""

    delta: Fraction
    shares: tuple[Fraction, ...]
    renyi: tuple[int, ...]


@lru_cache(maxsize=1024)
def filter_limits(budget: Budget) -> FilterLimits:
    """Split a budget over the filters; an order that can never admit anything gets no share, and the limit −1.

    >>> filter_limits(Budget(Fraction(1), Fraction(0))).renyi[0]
    -1
    """
    own = budget.delta * _OWN
    conversion = budget.delta - own
    shares = dict.fromkeys(ORDERS, Fraction(0))
    if conversion:
        room = {order: divergence_for(order, budget.epsilon, conversion) for order in ORDERS}
        first = max(ORDERS, key=lambda order: room[order] / order)
        least = conversion * (1 - _FIRST) / (len(ORDERS) - 1)
        others = [o for o in ORDERS if o != first and divergence_for(o, budget.epsilon, least) > 0]
        shares |= dict.fromkeys(others, conversion * (1 - _FIRST) / max(1, len(others)))
        shares[first] = conversion * (_FIRST if others else 1)
    most = [divergence_for(order, budget.epsilon, share) if share else Fraction(0) for order, share in shares.items()]
    whole = [x.numerator * curves.STEPS // x.denominator for x in most]
    return FilterLimits(own, tuple(shares.values()), tuple([x if x > 0 else _NEVER for x in whole]))


def admits(budget: Budget, spent: PrivacyCost, price: PrivacyCost) -> bool:
    """Say whether the budget still holds, for every adaptive analyst, after adding `price` to `spent`.

    `admits(budget, spent, ZERO)` says whether it holds now.
    """
    if spent.pure is not None and price.pure is not None and spent.pure + price.pure <= budget.epsilon:
        within = True
    elif budget.delta:
        most = filter_limits(budget).renyi
        within = any(s + p <= b for s, p, b in zip(spent.renyi, price.renyi, most, strict=True))
    else:
        within = False
    if not within or not (price.delta or spent.delta):
        return within
    return spent.delta + price.delta <= filter_limits(budget).delta


def remaining_epsilon(budget: Budget, spent: PrivacyCost) -> Fraction:
    """Give the largest ε, rounded down, such that one event of this pure loss still fits; 0 if none does.

    The result of the pure filter is exact if it is a valid input; that of the Rényi filters has 9 decimal places.
    """
    if spent.delta > filter_limits(budget).delta:
        return Fraction(0)
    left = Fraction(0) if spent.pure is None else max(Fraction(0), budget.epsilon - spent.pure)
    rooms = [most - value for most, value in zip(filter_limits(budget).renyi, spent.renyi, strict=True)]
    # a pure loss of ε has divergence at least ε − ln(2)/(α−1) ≥ ε − 2, which bounds the search
    low, high = int(left * 10**_PLACES), max(0, max(rooms) // curves.STEPS + 3) * 10**_PLACES
    while high - low > 1:
        middle = (low + high) // 2
        if any(p <= room for p, room in zip(curves.pure(Fraction(middle, 10**_PLACES)), rooms, strict=True)):
            low = middle
        else:
            high = middle
    remaining = max(floor_to(left, MAX_PLACES), Fraction(low, 10**_PLACES))
    return remaining if remaining >= EPSILON_MIN else Fraction(0)


def spent_epsilon(budget: Budget, spent: PrivacyCost) -> Fraction:
    """Give the ε, rounded up, of all charges so far at the budget's δ, by the best filter.

    It is at most the budget's ε exactly if the budget holds, ignoring the δ of the events.
    """
    bounds = [] if spent.pure is None else [spent.pure]
    bounds += [
        max(Fraction(0), budget.epsilon + (value - most) * RENYI_UNIT)
        for value, most in zip(spent.renyi, filter_limits(budget).renyi, strict=True)
        if most != _NEVER
    ]
    if not bounds and not budget.delta:
        raise ParameterError(
            "HB109",
            "The charges under this budget do not satisfy pure DP, and the budget has δ = 0.",
            "Set a positive δ on the budget.",
        )
    # no order can admit anything under a budget this small, so any conversion shows how far it is exceeded
    conversion = budget.delta * (1 - _OWN)
    return min(
        bounds or [renyi_epsilon(o, v * RENYI_UNIT, conversion) for o, v in zip(ORDERS, spent.renyi, strict=True)]
    )
