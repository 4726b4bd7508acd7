"""Composition theorems for a number of answers and losses fixed in advance.

For adaptively chosen losses, see `filters`.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import starmap

from hubbub.accounting import convert
from hubbub.accounting.cost import is_summable
from hubbub.core.interval import Interval, exp, log, sqrt
from hubbub.core.loss import Approximate, BoundedRange, Loss, Pure, Renyi, Zcdp
from hubbub.core.numbers import EPSILON_MIN, MAX_PLACES
from hubbub.core.reals import floor_to
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError

#: The largest number of terms of the optimal formula: two seconds of work.
COUNT_MAX = 100_000

_ZERO, _ONE = Fraction(0), Fraction(1)


def _split(loss: Loss) -> tuple[Pure | BoundedRange | Zcdp | Renyi, Fraction]:
    return (loss.loss, loss.delta) if isinstance(loss, Approximate) else (loss, _ZERO)


def _joined(loss: Pure | Zcdp | Renyi, delta: Fraction) -> Loss:
    return Approximate(loss, min(_ONE, delta)) if delta else loss


def _form(parts: Sequence[Pure | BoundedRange | Zcdp | Renyi]) -> type[Pure] | type[Zcdp] | type[Renyi]:
    """Give the strongest form that all losses have."""
    if all(isinstance(part, Pure | BoundedRange) for part in parts):
        return Pure
    return Renyi if any(isinstance(part, Renyi) for part in parts) else Zcdp


def _count(count: int) -> None:
    if not count >= 1:
        raise ParameterError("HB106", f"The number of answers is {count}.", "Pass a count of 1 or more.")


def basic(losses: Sequence[Loss]) -> Loss:
    """Add losses of one form: pure to pure, concentrated to concentrated, Rényi curves to Rényi curves; δ adds as well.

    Theorem (Basic composition). Answers of loss ε_i, ρ_i or D_α^i, each but for probability δ_i, have together the loss
    Σε_i, Σρ_i or ΣD_α^i, but for probability Σδ_i; also when each mechanism is chosen by the answers before it.
    Proof    Log-ratios add along a transcript, and so do divergences given the past; failures add by the union bound.
    (Dwork, McSherry, Nissim and Smith, 2006; Bun and Steinke, 2016; Mironov, 2017.)
    Tested   tests/accounting/test_compose.py::test_basic_composition_covers_the_exact_product,
    tests/accounting/test_compose.py::test_an_uneven_split_equals_composition,
    tests/accounting/test_compose.py::test_adaptive_second_query_stays_within_the_sum
    """
    if not losses:
        return Pure(_ZERO)
    parts, deltas = zip(*map(_split, losses), strict=True)
    total: Pure | Zcdp | Renyi
    form = _form(parts)
    if form is Pure:
        total = Pure(sum((part.epsilon for part in parts), _ZERO))
    elif form is Zcdp:
        total = Zcdp(sum((convert.to_zcdp(part).rho for part in parts), _ZERO))
    else:
        total = renyi(parts)
    return _joined(total, sum(deltas, _ZERO))


def renyi(losses: Sequence[Pure | BoundedRange | Zcdp | Renyi]) -> Renyi:
    """Add the Rényi curves that the losses imply; for many small losses at some δ, far below the sum of all ε.

    >>> total = renyi([Pure(Fraction(1, 10))] * 100)
    >>> float(convert.epsilon_at(total, delta=Fraction(1, 10**6)))  # doctest: +ELLIPSIS
    5.08...
    """
    curves = [convert.to_renyi(loss).curve for loss in losses]
    return Renyi(tuple([sum(column, _ZERO) for column in zip(*curves, strict=True)]))


def advanced(loss: Pure | BoundedRange | Approximate, *, count: int, delta: Fraction) -> Approximate:
    """Compose `count` equal losses by the classic theorem; only for comparison, since `optimal` is never larger.

    Theorem (Advanced composition). k answers of loss (ε, δ₀) have together (ε′, kδ₀ + δ)-DP with
    ε′ = ε√(2k ln(1/δ)) + kε(e^ε − 1) (Dwork, Rothblum and Vadhan, 2010).
    Tested   tests/accounting/test_compose.py::test_hundred_small_losses_by_four_theorems,
    tests/accounting/test_compose.py::test_optimal_composition_is_never_above_advanced_or_basic
    """
    _count(count)
    part, own = _split(loss)
    if not isinstance(part, Pure | BoundedRange) or not 0 < delta < 1:
        raise ParameterError("HB110", "Advanced composition requires a pure ε and a δ in (0, 1).", "Pass both.")
    epsilon, plain = part.epsilon, count * part.epsilon
    if epsilon > 1:  # then the second term alone is above the plain sum
        return Approximate(Pure(plain), min(_ONE, count * own + delta))
    root = sqrt(2 * count * -log(Interval.of(delta)))
    total = epsilon * root + count * epsilon * (exp(Interval.of(epsilon)) - 1)
    return Approximate(Pure(min(plain, total.above())), min(_ONE, count * own + delta))


def _segments(epsilon: Fraction, count: int) -> Iterator[tuple[int, Interval, Interval]]:
    """Give for i = 1, 2, … the sums S_i and T_i of `optimal`."""
    if not count <= COUNT_MAX:
        raise ParameterError(
            "HB103", f"Optimal composition supports at most {COUNT_MAX:,} answers.", "Compose by Rényi curves."
        )
    odds = exp(Interval.of(-epsilon))
    mass = exp(-count * log(1 + odds))
    above, tilted = Interval.of(0), Interval.of(0)
    for i in range(1, count // 2 + 2):
        above, tilted = above + mass, tilted * odds * odds + mass
        yield i, above, tilted
        mass = mass * odds * (count - i + 1) / i


def optimal(loss: Pure | BoundedRange | Approximate, *, count: int, delta: Fraction) -> Fraction:
    """Give the smallest ε, rounded up, such that any `count` answers of this loss together satisfy (ε, δ)-DP.

    Theorem (Optimal homogeneous composition). k answers of loss (ε₀, δ₀) have together exactly (ε, δ)-DP, in the worst
    case, with 1−δ = (1−δ₀)^k (1−δ′) and δ′ = Σ_ℓ C(k,ℓ) p^(k−ℓ) (1−p)^ℓ (1 − e^(ε−(k−2ℓ)ε₀))⁺, p = e^ε₀/(1+e^ε₀)
    (Kairouz, Oh and Viswanath, 2015; Murtagh and Vadhan, 2016). The answers may be chosen adaptively.
    Proof    Every ε₀-DP pair is a post-processing of randomized response; δ′ is the hockey stick of its k-fold product.
    For (k−2i)ε₀ ≤ ε ≤ (k−2i+2)ε₀ it is S − e^(ε−(k−2i+2)ε₀) T, with S the sum of the first i masses and T that of the
    masses times e^(−2(i−1−ℓ)ε₀), and is solved for ε in closed form.
    Tested   tests/accounting/test_compose.py::test_hundred_small_losses_by_four_theorems,
    tests/accounting/test_compose.py::test_optimal_composition_equals_brute_force,
    tests/accounting/test_compose.py::test_optimal_composition_is_never_above_advanced_or_basic
    """
    _count(count)
    part, own = _split(loss)
    if not isinstance(part, Pure | BoundedRange) or not 0 <= delta < 1 or not 0 <= own < 1:
        raise ParameterError("HB110", "Optimal composition requires a pure ε and a δ in [0, 1).", "Pass both.")
    epsilon = part.epsilon
    left = 1 - (1 - delta) / exp(count * log(Interval.of(1 - own))) if own else Interval.of(delta)
    if left.low < 0:
        raise ParameterError("HB110", "The failure probabilities of the events exceed this δ.", "Choose a larger δ.")
    if left.low == 0:
        return count * epsilon
    for i, above, tilted in _segments(epsilon, count):
        top, bottom = (count - 2 * i + 2) * epsilon, max(_ZERO, (count - 2 * i) * epsilon)
        at_bottom = above - exp(Interval.of(bottom - top)) * tilted
        if at_bottom.high > left.low:
            ratio = (above - Interval(left.low, left.low)) / tilted
            return max(_ZERO, min(top, (top + log(ratio)).above()))
    return _ZERO


def optimal_delta(loss: Pure | BoundedRange, *, count: int, epsilon: Fraction) -> Fraction:
    """Give the smallest δ such that any `count` answers of this loss satisfy (ε, δ)-DP: `optimal` solved for δ."""
    _count(count)
    if not epsilon >= 0:
        raise ParameterError("HB103", "epsilon must not be negative.", "Choose a value of 0 or more.")
    if epsilon >= count * loss.epsilon:
        return _ZERO
    delta = _ONE
    for i, above, tilted in _segments(loss.epsilon, count):
        if epsilon >= (count - 2 * i) * loss.epsilon:
            top = (count - 2 * i + 2) * loss.epsilon
            delta = min(_ONE, (above - exp(Interval.of(epsilon - top)) * tilted).at_least(0).above())
            break
    return delta


def ways(loss: Pure, *, count: int, delta: Fraction) -> dict[str, Fraction]:
    """Compare the ε of `count` equal losses at one δ by each theorem.

    >>> {name: round(float(epsilon), 2) for name, epsilon in
    ...     ways(Pure(Fraction(1, 10)), count=100, delta=Fraction(1, 10**6)).items()}
    {'basic': 10.0, 'advanced': 6.31, 'renyi': 5.08, 'optimal': 4.77}
    """
    together = Renyi(tuple([count * value for value in convert.to_renyi(loss).curve]))
    classic = advanced(loss, count=count, delta=delta).loss
    return {
        "basic": count * loss.epsilon,
        "advanced": convert.to_pure(classic).epsilon if isinstance(classic, Pure | BoundedRange) else _ZERO,
        "renyi": min(count * loss.epsilon, convert.epsilon_at(together, delta=delta)),
        "optimal": optimal(loss, count=count, delta=delta),
    }


def parallel(losses: Sequence[Loss], *, relation: Relation) -> Loss:
    """Give the loss of analyses of disjoint parts; the loss of each part is for one unit added or removed.

    Theorem (Parallel composition). If no unit lies in two parts, analyses of the parts have together the largest of
    their losses when neighbors add or remove a unit, and that of a group of two units, 2·max ε, when they replace one.
    Proof    One unit added or removed changes one part. A replacement is a removal and an addition; they change two
    parts once each, or one part twice, and the second costs more. (Dwork, McSherry, Nissim and Smith, 2006, section
    3.2; McSherry, 2009.)
    Tested   tests/accounting/test_compose.py::test_disjoint_analyses_cost_their_maximum_or_twice_it
    """
    if not losses:
        return Pure(_ZERO)
    parts, deltas = zip(*map(_split, losses), strict=True)
    worst: Pure | Zcdp | Renyi
    form = _form(parts)
    if form is Pure:
        worst = Pure(max(part.epsilon for part in parts))
    elif form is Zcdp:
        worst = Zcdp(max(convert.to_zcdp(part).rho for part in parts))
    else:
        worst = Renyi(tuple(starmap(max, zip(*[convert.to_renyi(part).curve for part in parts], strict=True))))
    return convert.group(_joined(worst, max(deltas)), units=relation.units_changed)


def shares(epsilon: Fraction, *, weights: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
    """Split a loss in proportion to weights; the sum is at most ε, and exactly ε if all shares are valid inputs.

    >>> shares(Fraction(1), weights=(1, 2, 1))
    (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    """
    if not weights or not all(weight > 0 for weight in weights):
        raise ParameterError("HB103", "All weights must be positive.", "Pass one positive weight per part.")
    total = sum(weights, _ZERO)
    return tuple([_round_down(epsilon * weight / total) for weight in weights])


def halving(epsilon: Fraction) -> Iterator[Fraction]:
    """Give ε/2, ε/4, … for a program with an unknown number of rounds; ends below the smallest valid ε.

    Theorem (Halving budget). However many rounds are taken, the sum of their losses is below ε.
    Proof    The first n shares sum to ε(1 − 2⁻ⁿ), or less where a share is rounded down. (Dwork, 2011, prints the noise
    of round i as (d+1)(ε/2ⁱ); a scale is sensitivity over loss, so it is (d+1)/(ε/2ⁱ).)
    Tested   tests/accounting/test_compose.py::test_halving_never_spends_the_whole
    """
    share = epsilon / 2
    while share >= EPSILON_MIN:
        yield _round_down(share)
        share /= 2


def _round_down(share: Fraction) -> Fraction:
    return share if is_summable(share) else floor_to(share, MAX_PLACES)
