"""Exact privacy loss of a finite mechanism between two inputs, from the two distributions of its answer.

Every figure is an enclosure (low, high) of the true one: rationals where the distributions are rational and no
logarithm is taken, directed rounding elsewhere. So the high end proves a loss and the low end refutes it. A
distribution that is truncated (`tail` > 0) has unknown outcomes, so the high end of its ratio is infinite; an additive
mechanism can be clamped into a window instead (`distribution(value, window=…)`), which makes it finite.

The statistical difference is measured here too, but it is not a privacy loss: releasing a random respondent's record in
the clear has a difference of only 1/n (Dwork, McSherry, Nissim and Smith 2006, example 2).
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from hubbub.core import reals
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ONE, Interval, sqrt, total
from hubbub.core.loss import ORDERS, Approximate, BoundedRange, Loss, Pure, Renyi, Zcdp
from hubbub.core.reals import Enclosure
from hubbub.errors import MechanismError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Outcome = TypeVar("Outcome", bound=Hashable)
Seen = TypeVar("Seen", bound=Hashable)
Value = TypeVar("Value")
Extended = Fraction | float  #: a rational, or math.inf
LossBounds = tuple[Extended, Extended]  #: low ≤ the true figure ≤ high

#: Irrational figures are enclosed to about 10⁻³⁸; a loss that is attained exactly is proved up to this slack.
SLACK = Fraction(1, 10**30)


def worst_ratio(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> LossBounds:
    """Enclose the least ε such that neither distribution exceeds e^ε times the other anywhere: max |ln(p/q)|.

    Theorem (Loss by enumeration). M is ε-indistinguishable between x and x′ if and only if
    |ln(Pr[M(x)=y]/Pr[M(x′)=y])| ≤ ε for every single outcome y of a countable range: a set's probability is the sum
    over its outcomes, and e^ε factors out.
    Assumes  the two distributions are those of M(x) and M(x′), which the sampler's own tests show.
    Tested   tests/mechanisms/test_enumeration.py::test_coin_flipped_answer_loses_ln_3
             tests/mechanisms/test_enumeration.py::test_enclosures_hold_what_brute_force_over_all_events_finds

    >>> from hubbub.core.finite import exact_distribution
    >>> yes = exact_distribution({1: Fraction(3, 4), 0: Fraction(1, 4)})
    >>> no = exact_distribution({1: Fraction(1, 4), 0: Fraction(3, 4)})
    >>> round(float(worst_ratio(yes, no)[1]), 4)
    1.0986
    """
    forward, backward = _log_ratios(p, q), _log_ratios(q, p)
    return max(forward[0][1], backward[0][1], Fraction(0)), max(forward[1][1], backward[1][1], Fraction(0))


def ratio_range(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> LossBounds:
    """Enclose the length of the interval that ln(p/q) ranges over: the quantity of bounded-range accounting."""
    (low_least, low_most), (high_least, high_most) = _log_ratios(p, q)
    # inf - inf never arises: a maximum of +inf or a minimum of -inf alone makes the range infinite
    low = math.inf if math.inf in (low_most, -low_least) else low_most - low_least
    high = math.inf if math.inf in (high_most, -high_least) else high_most - high_least
    return max(low, Fraction(0)), high


def delta_at(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], epsilon: Fraction) -> Enclosure:
    """Enclose the least δ of (ε, δ)-privacy between the two: the larger hockey-stick divergence of both directions.

    Theorem (Profile by enumeration). The least δ with Pr[M(x)∈S] ≤ e^ε·Pr[M(x′)∈S] + δ for every S is
    Σ_y max(0, Pr[M(x)=y] − e^ε·Pr[M(x′)=y]), attained by the S of the outcomes with a positive term.
    Tested   tests/mechanisms/test_enumeration.py::test_enclosures_hold_what_brute_force_over_all_events_finds
    """
    growth = reals.exp(epsilon)
    forward, backward = _hockey_stick(p, q, growth), _hockey_stick(q, p, growth)
    return max(forward[0], backward[0]), max(forward[1], backward[1])


def total_variation(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> Enclosure:
    """Enclose the statistical difference, half the sum of |p − q|. It does not bound a privacy loss."""
    forward, backward = _hockey_stick(p, q, _ONE), _hockey_stick(q, p, _ONE)
    # both enclose the same number
    return max(forward[0], backward[0]), min(forward[1], backward[1])


def renyi(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], order: Fraction) -> LossBounds:
    """Enclose the Rényi divergence of order α (n or n + ½), the larger of both directions: ln(Σ p^α·q^(1−α))/(α−1)."""
    if not order > 1 or (2 * order).denominator != 1:
        raise ParameterError("HB150", "The order is not a multiple of ½ above 1.", "Choose an order such as 3/2 or 2.")
    forward, backward = _Divergence.between(p, q).at(order), _Divergence.between(q, p).at(order)
    return max(forward[0], backward[0]), max(forward[1], backward[1])


def satisfies(loss: Loss, p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> bool:
    """Return whether two distributions provably satisfy a stated loss, up to `SLACK`.

    It accepts only the losses of `hubbub.core.loss`; a bound on the statistical difference is deliberately not one of
    them.
    """
    match loss:
        case Pure(epsilon):
            return worst_ratio(p, q)[1] <= epsilon + SLACK
        case BoundedRange(epsilon):
            return ratio_range(p, q)[1] <= epsilon + SLACK
        case Zcdp(rho):
            return _stays_below(p, q, [(order, rho * order) for order in ORDERS])
        case Renyi(curve):
            return _stays_below(p, q, zip(ORDERS, curve, strict=True))
        case Approximate(Pure(epsilon), delta):
            return delta_at(p, q, epsilon)[1] <= delta + SLACK
        case Approximate(rest, delta):
            slips = max(_slip(p, q), _slip(q, p))
            return slips <= delta + SLACK and satisfies(rest, _given_both(p, q), _given_both(q, p))
        case _:
            raise ParameterError(
                "HB152",
                f"{type(loss).__name__} is not a privacy loss.",
                "Use Pure, BoundedRange, Zcdp, Renyi or Approximate; a statistical difference is no guarantee.",
            )


def image(distribution: FiniteDistribution[Outcome], view: Callable[[Outcome], Seen]) -> FiniteDistribution[Seen]:
    """Return the distribution of a function of the answer, whose loss is at most that of the answer.

    >>> from hubbub.core.finite import exact_distribution
    >>> image(exact_distribution({-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}), abs).mass[1]
    (Fraction(1, 2), Fraction(1, 2))
    """
    mass: dict[Seen, Enclosure] = {}
    for outcome, (low, high) in distribution.mass.items():
        seen = view(outcome)
        so_far = mass.get(seen, (Fraction(0), Fraction(0)))
        mass[seen] = (so_far[0] + low, so_far[1] + high)
    return FiniteDistribution(mass, distribution.tail)


@dataclass(frozen=True, slots=True)
class WorstPair:
    """The largest figure over several pairs of neighbors, and the pair with the largest lower bound."""

    bounds: LossBounds
    pair: tuple[object, object]


def worst_over(
    pairs: Iterable[tuple[Value, Value]],
    distribution: Callable[[Value], FiniteDistribution[Outcome]],
    measure: Callable[[FiniteDistribution[Outcome], FiniteDistribution[Outcome]], LossBounds] = worst_ratio,
) -> WorstPair:
    """Measure every pair of neighboring inputs and return the worst."""
    measured = [WorstPair(measure(distribution(x), distribution(y)), (x, y)) for x, y in pairs]
    if not measured:
        raise ParameterError("HB153", "There are no neighbors to compare.", "Pass at least one pair of inputs.")
    worst = max(measured, key=lambda pair: pair.bounds[0])
    return WorstPair((worst.bounds[0], max(pair.bounds[1] for pair in measured)), worst.pair)


@dataclass(frozen=True, slots=True)
class PrivacyProfile:
    """The privacy profile: enclosures of δ(ε) at chosen points."""

    points: tuple[tuple[Fraction, Enclosure], ...]

    def plot(self, axes: "Axes | None" = None, *, label: str | None = None) -> "Axes":
        """Plot the upper bounds of δ against ε (needs the extra `plot`)."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MechanismError(
                "HB690", "Plotting needs matplotlib, which is not installed.", "Run pip install 'hubbub[plot]'."
            ) from error
        if axes is None:
            axes = Figure(layout="constrained").add_subplot()
        axes.plot([float(e) for e, _ in self.points], [float(high) for _, (_, high) in self.points], label=label)
        axes.set_xlabel("ε")
        axes.set_ylabel("δ(ε)")
        axes.set_ylim(bottom=0)
        if label is not None:
            axes.legend()
        return axes


def profile(
    p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], epsilons: Sequence[Fraction]
) -> PrivacyProfile:
    """Compute δ at each ε.

    >>> from hubbub.core.finite import exact_distribution
    >>> yes = exact_distribution({1: Fraction(3, 4), 0: Fraction(1, 4)})
    >>> no = exact_distribution({1: Fraction(1, 4), 0: Fraction(3, 4)})
    >>> [round(float(high), 3) for _, (_, high) in profile(yes, no, [Fraction(0), Fraction(1), Fraction(2)]).points]
    [0.5, 0.07, 0.0]
    """
    return PrivacyProfile(tuple((epsilon, delta_at(p, q, epsilon)) for epsilon in epsilons))


_ONE: Enclosure = (Fraction(1), Fraction(1))


def _pairs(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> Iterator[tuple[Enclosure, Enclosure]]:
    nothing_of_p, nothing_of_q = (Fraction(0), p.tail), (Fraction(0), q.tail)
    for outcome, mass in p.mass.items():
        yield mass, q.mass.get(outcome, nothing_of_q)
    for outcome, mass in q.mass.items():
        if outcome not in p.mass:
            yield nothing_of_p, mass
    if p.tail or q.tail:
        yield nothing_of_p, nothing_of_q


def _slip(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> Fraction:
    """Bound the probability under p of outcomes that are impossible under q."""
    return sum((high for outcome, (_, high) in p.mass.items() if _impossible(q, outcome)), Fraction(0))


def _given_both(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> FiniteDistribution[Outcome]:
    """Condition p on the outcomes that are possible under q."""
    kept = {outcome: mass for outcome, mass in p.mass.items() if not _impossible(q, outcome)}
    low = sum((low for low, _ in kept.values()), Fraction(0))
    high = min(sum((high for _, high in kept.values()), p.tail), Fraction(1))
    return FiniteDistribution({outcome: (a / high, b / low) for outcome, (a, b) in kept.items()}, p.tail / low)


def _impossible(q: FiniteDistribution[Outcome], outcome: Outcome) -> bool:
    return q.mass.get(outcome, (Fraction(0), q.tail))[1] == 0


def _log_ratios(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> tuple[LossBounds, LossBounds]:
    """Bound the minimum and maximum of ln(p/q): first values that are surely reached, then values never exceeded.

    The logarithm grows, so that of the extreme ratio is the extreme logarithm: one of each is computed.
    """
    reached_least: Extended = math.inf
    reached_most: Extended = Fraction(0)
    least: Extended = math.inf
    most: Extended = Fraction(0)
    for (p_low, p_high), (q_low, q_high) in _pairs(p, q):
        if p_high == q_high == 0:
            continue
        if p_low > 0:
            reached_most = max(reached_most, p_low / q_high if q_high > 0 else math.inf)
        if q_low > 0:
            reached_least = min(reached_least, p_high / q_low)
        if p_high > 0:
            most = max(most, p_high / q_low if q_low > 0 else math.inf)
        if q_high > 0:
            least = min(least, p_low / q_high)
    return (_log(reached_least, 1), _log(reached_most, 0)), (_log(least, 0), _log(most, 1))


def _log(ratio: Extended, side: int) -> Extended:
    """Return one end of the enclosure of the logarithm of a ratio from 0 to infinity."""
    if isinstance(ratio, float):
        return ratio
    return reals.log(ratio)[side] if ratio > 0 else -math.inf


def _hockey_stick(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], growth: Enclosure) -> Enclosure:
    low, high = Fraction(0), p.tail
    for outcome, (p_low, p_high) in p.mass.items():
        q_low, q_high = q.mass.get(outcome, (Fraction(0), q.tail))
        low += max(Fraction(0), p_low - growth[1] * q_high)
        high += max(Fraction(0), p_high - growth[0] * q_low)
    return low, min(high, Fraction(1))


@dataclass(frozen=True, slots=True)
class _Divergence:
    """The Rényi divergence of p from q at any order. What all orders need of an outcome is computed once.

    terms      for each outcome that p can have: its probability p, and (p/q)^1, (p/q)^2, (p/q)^4, … as far as needed
    unbounded  whether q may be 0 somewhere, so that there is no upper bound
    infinite   whether q is 0 where p is not
    """

    terms: list[tuple[Interval, list[Interval]]]
    unbounded: bool
    infinite: bool

    @classmethod
    def between(cls, p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome]) -> "_Divergence":
        """Prepare the terms of a pair of distributions."""
        terms, unbounded = [], False
        for p_mass, q_mass in _pairs(p, q):
            if p_mass[1] == 0:
                continue
            if q_mass[1] == 0 and p_mass[0] > 0:
                return cls([], unbounded=True, infinite=True)
            unbounded = unbounded or q_mass[0] == 0
            # where q may be 0 there is no upper bound; use the value at the upper end of q
            mass = Interval.of(p_mass)
            terms.append((mass, [mass / Interval.of(q_mass if q_mass[0] > 0 else q_mass[1])]))
        return cls(terms, unbounded=unbounded, infinite=False)

    def at(self, order: Fraction) -> LossBounds:
        """Enclose ln(Σ p^α·q^(1−α))/(α−1), where p^α·q^(1−α) = p·(p/q)^(α−1), with a root where α is not whole."""
        if self.infinite:
            return math.inf, math.inf
        whole = order.denominator == 1
        exponent = int(order - 1) if whole else int(2 * order - 2)
        powers = [(mass, _power(squares, exponent)) for mass, squares in self.terms]
        added = total([mass * (power if whole else sqrt(power)) for mass, power in powers])
        low, high = added.low, added.high
        least = max(Fraction(0), reals.log(Fraction(low))[0] / (order - 1)) if low > 0 else Fraction(0)
        return least, math.inf if self.unbounded else reals.log(Fraction(high))[1] / (order - 1)


def _power(squares: list[Interval], exponent: int) -> Interval:
    """Multiply powers of two; those that are missing are added to the list."""
    while len(squares) < exponent.bit_length():
        squares.append(squares[-1] * squares[-1])
    result = ONE
    for place in range(exponent.bit_length()):
        if exponent >> place & 1:
            result *= squares[place]
    return result


def _stays_below(
    p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], bounds: Iterable[tuple[Fraction, Fraction]]
) -> bool:
    """Return whether both divergences are provably at most the bound at each order, up to `SLACK`."""
    both = _Divergence.between(p, q), _Divergence.between(q, p)
    return all(each.at(order)[1] <= bound + SLACK for order, bound in bounds for each in both)
