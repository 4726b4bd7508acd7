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

Theorem (Either filter may admit). Let an (ε, δ) cap fix, in advance, shares of δ: δ_own, δ_N and for some orders δ_α,
with δ_own + δ_N + Σ δ_α ≤ δ. Let B_α be the largest divergence of order α that implies (ε, δ_α)-DP, and V the limit of
the Gaussian filter (`gaussian_filter`) at (ε, δ_N). If a query is admitted whenever afterwards the events' own failure
probabilities sum to at most δ_own, and either the pure losses sum to at most ε, or the Gaussian filter admits it, or at
some order α the divergences sum to at most B_α, then the whole transcript is (ε, δ)-DP, however each query was chosen.
Proof    Which filter admits depends on the path, so no bound of a single filter covers all transcripts; but the totals
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
filter. (Compare Whitehouse, Ramdas, Rogers and Wu, 2023, for one filter.) Discrete Gaussian noise fails with a small
probability under the Gaussian filter only; the same argument, for that filter's process alone, pays for it with a part
of δ_N. An event that is itself interactive, such as a sparse vector, and is interleaved with others, is covered by
concurrent composition (Lyu, 2022; Haney and others, 2023; for Gaussian prices Vadhan and Zhang, 2023).
Tested   tests/accounting/test_filters.py::test_worst_adaptive_analyst_stays_within_an_approximate_cap,
tests/accounting/test_filters.py::test_a_filter_without_the_conversion_slack_is_caught,
tests/accounting/test_filters.py::test_a_gaussian_filter_that_admits_too_much_is_caught,
tests/accounting/test_filters.py::test_shares_of_a_cap_never_exceed_its_delta

The shares (`RULE` 2 in `policy`). Fixed parts of δ, the same for all caps: a tenth for the failure probabilities of
the events, 79% for the Gaussian filter and 1% for its failures, and 2% for each of five orders, which help where a
curve is far below that of its pure loss.

Theorem (A cap may change at any time). Let a cap be changed again and again, for any reason, also because of answers.
If its ε never exceeds E and its δ never exceeds d, everything charged to it together is (E, d)-DP.
Proof    Each share is a fixed part of δ, so each limit grows with ε and with δ, and never exceeds that of the cap
(E, d). What is ever admitted the fixed cap (E, d) would have admitted too, by the same filter.
Tested   tests/accounting/test_filters.py::test_limits_grow_with_the_cap,
tests/accounting/test_filters.py::test_a_cap_that_follows_the_answers_stays_within_the_largest

Totals with charges from before 19 November 2026 keep the first rule for good, because a change of the shares is not
covered by the proof above: half of δ for failures; of the other half nine tenths for the order that allows the most
when divergences grow like ρα, and the rest for the other orders. Such a cap that changes is (E, 8.5d)-DP.
Proof    Under (ε, δ) no order has more than δ/2, and failures have δ/2. With ε ≤ E and δ ≤ d no limit exceeds that at
(E, d/2), and these limits belong to the shares d/2 for each of 16 orders and for failures: 8.5d together. The theorem
above asks nothing else of shares.
Tested   tests/accounting/test_filters.py::test_limits_of_the_first_rule_are_below_those_of_half_the_largest_delta
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import le

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import curves, gaussian_filter
from hubbub.accounting.convert import divergence_for, renyi_epsilon
from hubbub.accounting.cost import RENYI_UNIT, PrivacyCost
from hubbub.core import shares
from hubbub.core.loss import ORDERS
from hubbub.core.numbers import EPSILON_MIN, MAX_PLACES
from hubbub.core.reals import floor_to
from hubbub.errors import ParameterError

# of the first rule
_FIRST_OWN = Fraction(1, 2)
_FIRST = Fraction(9, 10)
_NEVER = -1
_PLACES = 9  # decimal places of the remaining ε that is found by search
_NEWTON = 8  # steps of Newton's method
_FLAT = 1e-12  # the least slope that it divides by
_SURE = 1e-6  # a difference of divergences that doubles are sure of
_ORDERS = np.array([float(order) for order in ORDERS])
_TWICE, _ABOVE = 2 * _ORDERS - 1, _ORDERS - 1


@dataclass(frozen=True, slots=True)
class Budget:
    """A privacy budget: everything charged to it together is (ε, δ)-DP; δ = 0 means pure DP.

    share  of a part of a larger budget, how large a part: its limits are that part of the limits of the larger one
    """

    epsilon: Fraction
    delta: Fraction
    share: Fraction | None = None

    def part(self, share: Fraction) -> "Budget":
        """Give a part of this budget: every filter's limit is multiplied by the share, and rounded down.

        Theorem (Parts of a budget). Whatever a part admits, the whole budget admits. If totals are within parts of one
        budget whose shares sum to at most 1, all of them by the pure filter, or by one order, their sum is within the
        budget. By the Gaussian filter it is so if all totals are by one class m of small losses.
        Proof    A filter admits a total that is at most its limit, in each of its numbers. A limit L ≥ 0 becomes at
                 most xL, with x ≤ 1, and a filter that never admits (−1) stays so. Totals at most x_i·L sum to at most
                 L·Σx_i ≤ L. The variance of one class is a sum but for the excess, which is concave in Σε² and not
                 negative, so that the excess of a sum is at most the sum of the excesses.
        Leaves out  classes that differ: the smallest losses of one person then count with the excess of the largest of
                 another, and the whole budget may refuse a little of what the last part would still admit.
        Assumes  nothing else: a part decides no promise, because the caps that it is a part of hold besides.
        Charges  nothing.
        Tested   tests/accounting/test_fairness.py::test_a_part_admits_nothing_that_the_whole_does_not
                 tests/accounting/test_fairness.py::test_totals_within_parts_sum_to_a_total_within_the_whole
        """
        if not 0 < share <= 1:
            raise ParameterError("HB205", f"A share of {share} is not a part of a budget.", "Use 0 < share ≤ 1.")
        return Budget(self.epsilon * share, self.delta * share, share * (self.share or 1))

    @property
    def whole(self) -> "Budget":
        """The budget that this is a part of; itself if it is not a part."""
        return self if self.share is None else Budget(self.epsilon / self.share, self.delta / self.share)

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 <= self.delta < 1):
            raise ParameterError("HB108", "This is not a valid privacy budget.", "Use ε > 0 and 0 ≤ δ < 1.")


@dataclass(frozen=True, slots=True)
class FilterLimits:
    """The limits that a budget implies: total failure probability, share of δ and Rényi total at each order.

    gaussian   the share of the Gaussian filter, its limit, and that of its failures; −1 where it never admits
    """

    delta: Fraction
    shares: tuple[Fraction, ...]
    renyi: tuple[int, ...]
    gaussian: tuple[Fraction, int, int]

    def part(self, share: Fraction) -> "FilterLimits":
        """Give limits that are at most this share of these, each rounded down; −1 stays −1."""
        own, most, failures = self.gaussian
        renyi = tuple([_down(limit, share) for limit in self.renyi])
        return FilterLimits(self.delta * share, self.shares, renyi, (own, _down(most, share), _down(failures, share)))

    def hold(self, total: PrivacyCost) -> bool:
        """Say whether the Gaussian filter or an order holds for a total."""
        return self.gaussian_holds(total.gaussian) or any(map(le, total.renyi, self.renyi))

    def gaussian_holds(self, total: gaussian_filter.Price | None) -> bool:
        """Say whether the Gaussian filter holds."""
        _, most, failures = self.gaussian
        return (
            total is not None and gaussian_filter.failure(total) <= failures and gaussian_filter.variance(total) <= most
        )


def limits_for(budget: Budget, spent: PrivacyCost) -> FilterLimits:
    """Give the limits that apply to a total: those of the first rule if it began under it."""
    return filter_limits(budget) if spent.gaussian is not None else first_limits(budget)


@lru_cache(maxsize=1024)
def filter_limits(budget: Budget) -> FilterLimits:
    """Split a budget over the filters, in fixed parts; a filter that can never admit anything has the limit −1.

    >>> filter_limits(Budget(Fraction(1), Fraction(0))).renyi[0]
    -1
    """
    if budget.share is not None:
        return filter_limits(budget.whole).part(budget.share)
    epsilon, delta = budget.epsilon, budget.delta
    of_orders = tuple([delta * shares.ORDER if order in shares.ORDERS_USED else Fraction(0) for order in ORDERS])
    gaussian = delta * shares.GAUSSIAN
    most = gaussian_filter.limit(epsilon, gaussian) if delta else _NEVER
    failures = int(delta * shares.ROUNDING * gaussian_filter.FAILURE_STEPS) if delta else _NEVER
    return FilterLimits(delta * shares.OWN, of_orders, _renyi_limits(epsilon, of_orders), (gaussian, most, failures))


@lru_cache(maxsize=1024)
def first_limits(budget: Budget) -> FilterLimits:
    """Split a budget as the first rule does; an order that can never admit anything gets no share, and the limit −1."""
    if budget.share is not None:
        return first_limits(budget.whole).part(budget.share)
    own = budget.delta * _FIRST_OWN
    conversion = budget.delta - own
    parts = dict.fromkeys(ORDERS, Fraction(0))
    if conversion:
        room = {order: divergence_for(order, budget.epsilon, conversion) for order in ORDERS}
        first = max(ORDERS, key=lambda order: room[order] / order)
        least = conversion * (1 - _FIRST) / (len(ORDERS) - 1)
        others = [o for o in ORDERS if o != first and divergence_for(o, budget.epsilon, least) > 0]
        parts |= dict.fromkeys(others, conversion * (1 - _FIRST) / max(1, len(others)))
        parts[first] = conversion * (_FIRST if others else 1)
    renyi = _renyi_limits(budget.epsilon, tuple(parts.values()))
    return FilterLimits(own, tuple(parts.values()), renyi, (Fraction(0), _NEVER, _NEVER))


def _down(limit: int, share: Fraction) -> int:
    return limit if limit < 0 else limit * share.numerator // share.denominator


def _renyi_limits(epsilon: Fraction, shares: Sequence[Fraction]) -> tuple[int, ...]:
    most = [
        divergence_for(o, epsilon, share) if share else Fraction(0) for o, share in zip(ORDERS, shares, strict=True)
    ]
    whole = [x.numerator * curves.STEPS // x.denominator for x in most]
    return tuple([x if x > 0 else _NEVER for x in whole])


def admits(budget: Budget, spent: PrivacyCost, price: PrivacyCost) -> bool:
    """Say whether the budget still holds, for every adaptive analyst, after adding `price` to `spent`.

    `admits(budget, spent, ZERO)` says whether it holds now.
    """
    if spent.pure is not None and price.pure is not None and spent.pure + price.pure <= budget.epsilon:
        within = True
    elif budget.delta:
        after = spent + price
        within = limits_for(budget, after).hold(after)
    else:
        within = False
    if not within or not (price.delta or spent.delta):
        return within
    return spent.delta + price.delta <= limits_for(budget, spent + price).delta


def how_often(budget: Budget, spent: PrivacyCost, price: PrivacyCost, most: int) -> int:
    """Give the largest number of times, up to `most`, that `price` can be added to `spent`, as `admits` decides.

    Each filter admits k times a price up to some k, and one of the pure and Rényi filters suffices, so the largest of
    their k counts.
    """
    counts = [0]
    if spent.pure is not None and price.pure is not None:
        counts.append(_times(spent.pure, price.pure, budget.epsilon, most))
    limits = limits_for(budget, spent + price)
    if budget.delta:
        orders = zip(spent.renyi, price.renyi, limits.renyi, strict=True)
        counts += [_times(s, p, b, most) for s, p, b in orders]
        counts.append(_gaussian_times(limits, spent, price, most))
    if not (price.delta or spent.delta):
        return max(counts)
    return min(max(counts), _times(spent.delta, price.delta, limits.delta, most))


def _gaussian_times(limits: FilterLimits, spent: PrivacyCost, price: PrivacyCost, most: int) -> int:
    """Give the largest k up to `most` for which the Gaussian filter holds for spent + k·price, or 0."""
    if spent.gaussian is None or price.gaussian is None:
        return 0
    pairs, low, high = list(zip(spent.gaussian, price.gaussian, strict=True)), 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        if limits.gaussian_holds(tuple([part + middle * more for part, more in pairs])):
            low = middle
        else:
            high = middle
    return low


def _times(spent: Fraction | int, price: Fraction | int, limit: Fraction | int, most: int) -> int:
    """Give the largest k up to `most` with spent + k·price ≤ limit, or 0."""
    if spent > limit:
        return 0
    return min(most, int((limit - spent) // price)) if price else most


def remaining_epsilon(budget: Budget, spent: PrivacyCost) -> Fraction:
    """Give the largest ε, rounded down, such that one event of this pure loss still fits; 0 if none does.

    The result of the pure filter is exact if it is a valid input; that of the Rényi filters has 9 decimal places.
    """
    limits = limits_for(budget, spent)
    if spent.delta > limits.delta:
        return Fraction(0)
    left = Fraction(0) if spent.pure is None else max(Fraction(0), budget.epsilon - spent.pure)
    remaining = floor_to(left, MAX_PLACES)
    if budget.delta:  # otherwise no order admits anything
        rooms = [most - value for most, value in zip(limits.renyi, spent.renyi, strict=True)]
        remaining = max(remaining, Fraction(_largest_pure(rooms, int(left * 10**_PLACES)), 10**_PLACES))
        if spent.gaussian is not None and limits.gaussian_holds(spent.gaussian):
            largest = gaussian_filter.largest_pure(spent.gaussian, limits.gaussian[1], places=_PLACES)
            remaining = max(remaining, Fraction(largest, 10**_PLACES))
    return remaining if remaining >= EPSILON_MIN else Fraction(0)


def _largest_pure(rooms: Sequence[int], least: int) -> int:
    """Give the largest pure loss, in units of 10⁻⁹ and at least `least`, whose curve fits into the room of some order.

    Doubles guess it, and exact curves around the guess decide: the result does not depend on how good the guess is.
    """
    room = np.array(rooms, dtype=np.float64) / curves.STEPS

    def fits(loss: int) -> bool:
        # orders that doubles exclude by far more than their error, which is about 10⁻¹³, need no exact curve
        places = np.flatnonzero(_divergences(np.full_like(room, loss / 10**_PLACES)) <= room + _SURE * (1 + abs(room)))
        near: list[int] = places.tolist()
        values = curves.pure_at(Fraction(loss, 10**_PLACES), near)
        return any(value <= rooms[place] for place, value in zip(near, values, strict=True))

    # a pure loss of ε has divergence at least ε − ln(2)/(α−1) ≥ ε − 2, which bounds the search
    low, high = least, max(0, max(rooms) // curves.STEPS + 3) * 10**_PLACES
    guess, step = _guess(rooms), 1
    while high - low > 1:
        middle = min(max(guess, low + 1), high - 1) if step < high - low else (low + high) // 2
        if fits(middle):
            low, guess = middle, middle + step
        else:
            high, guess = middle, middle - step
        step *= 64
    return low


def _guess(rooms: Sequence[int]) -> int:
    """Guess the result of the search with doubles: Newton's method at all orders at once."""
    room = np.maximum(np.array(rooms, dtype=np.float64) / curves.STEPS, 0.0)
    # the divergence at order α of a pure loss x is at most x and at most αx²/2, so the search begins below its end
    least = np.maximum(room, np.sqrt(2 * room / _ORDERS))
    loss = least
    for _ in range(_NEWTON):
        slow, fast = np.exp(-loss), np.exp(-_TWICE * loss)
        slope = 1 + (slow / (1 + slow) - _TWICE * fast / (1 + fast)) / _ABOVE
        step = (_divergences(loss) - room) / np.maximum(slope, _FLAT)
        loss = np.minimum(np.maximum(loss - step, least), room + 2)
    return int(loss.max() * 10**_PLACES)


def _divergences(loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the divergences of pure losses, one at each order, in doubles."""
    divergences: NDArray[np.float64] = loss + (np.log1p(np.exp(-_TWICE * loss)) - np.log1p(np.exp(-loss))) / _ABOVE
    return divergences


def spent_epsilon(budget: Budget, spent: PrivacyCost) -> Fraction:
    """Give the ε, rounded up, of all charges so far at the budget's δ, by the best filter.

    It is at most the budget's ε exactly if the budget holds, ignoring the δ of the events.
    """
    bounds = [] if spent.pure is None else [spent.pure]
    own = limits_for(budget, spent)
    limits = zip(spent.renyi, own.renyi, strict=True)
    # of integers, because Fractions are slow
    least = min((value - most for value, most in limits if most != _NEVER), default=None)
    bounds += [] if least is None else [max(Fraction(0), budget.epsilon + least * RENYI_UNIT)]
    bounds += _gaussian_epsilon(budget, own, spent.gaussian)
    if not bounds and not budget.delta:
        raise ParameterError(
            "HB109",
            "The charges under this budget do not satisfy pure DP, and the budget has δ = 0.",
            "Set a positive δ on the budget.",
        )
    # no filter can admit anything under a budget this small, so any conversion shows how far it is exceeded
    conversion = budget.delta / 2
    return min(
        bounds or [renyi_epsilon(o, v * RENYI_UNIT, conversion) for o, v in zip(ORDERS, spent.renyi, strict=True)]
    )


def _gaussian_epsilon(budget: Budget, limits: FilterLimits, total: gaussian_filter.Price | None) -> list[Fraction]:
    """Give the ε of a total by the Gaussian filter, at most that of the budget exactly if the filter holds."""
    share, most, failures = limits.gaussian
    if not budget.delta or total is None or gaussian_filter.failure(total) > failures:
        return []
    value = gaussian_filter.variance(total)
    shown = gaussian_filter.shown_epsilon(value, share)
    return [min(shown, budget.epsilon) if value <= most else max(shown, budget.epsilon + RENYI_UNIT)]
