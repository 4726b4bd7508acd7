"""Conversions between differential privacy and bounds on beliefs (Kasiviswanathan and Smith 2014), in tight form.

Semantic privacy bounds the difference between the beliefs of game 0 and game i (see `games`). Loose constants of the
paper are replaced by the best ones, and constants that are too small by the least ones that hold; docs/meaning.md lists
them. Every bound is rounded up.
"""

import math
from fractions import Fraction

from hubbub.accounting.convert import delta_at
from hubbub.core import numbers
from hubbub.core.interval import Interval, exp, log
from hubbub.core.loss import Pure
from hubbub.core.odds import LARGE
from hubbub.errors import ParameterError
from hubbub.semantics.odds import guess

_ZERO, _ONE = Fraction(0), Fraction(1)
#: The η that are tried to split a loss at ε + η.
_ETAS = tuple(2.0**-30 * 1.1**step for step in range(260))


def beliefs(*, epsilon: Fraction) -> Fraction:
    """Bound how far one person's data changes any belief under ε-privacy: tanh(ε/2).

    Theorem (Privacy bounds beliefs). ε-DP implies tanh(ε/2)-semantic privacy, and no less will do: randomized response
    on the exclusive or of two bits attains it.
    Proof    In `games.semantic_level` each ratio Pr[A(x) = t]/Pr[A(x₋ᵢ) = t] is within e^{±ε}, so ln(M/m) ≤ 2ε. (The
    paper has e^ε − 1 for ε and for ε/2; both hold and neither is attained.)
    Tested   tests/semantics/test_games.py::test_response_over_an_exclusive_or_attains_the_bound
             tests/semantics/test_bounds.py::test_both_printed_forms_of_the_first_theorem_hold_and_are_loose

    >>> round(float(beliefs(epsilon=Fraction(1))), 4)
    0.4621
    """
    return delta_at(Pure(epsilon), epsilon=_ZERO)


def privacy(*, level: Fraction, delta: Fraction = _ZERO) -> tuple[Fraction, Fraction]:
    """Return the (ε, δ) that semantic privacy implies.

    Theorem (Beliefs bound privacy). s-semantic privacy implies 4·artanh(s)-DP, and no less will do: randomized response
    on one bit attains it. (s, δ)-semantic privacy implies (4·artanh(s), 2δ/(1 − s))-DP.
    Proof    Let x and y differ in person i, so that game i is the same for both; e^ε = ((1 + s)/(1 − s))² = R. Somebody
    who holds x with probability w = 1/(1 + √R) and y otherwise keeps that in game i, and in game 0 gets from w to above
    w + s exactly after the answers B that are more than R times as likely for x as for y. So without δ there are none.
    With δ, wP(B) + (1−w)Q(B) ≤ δ for the distributions P, Q of the answer, hence P(S) − R·Q(S) ≤ P(B) ≤ δ/w for every
    S, and 1/w = 1 + (1 + s)/(1 − s) = 2/(1 − s). x and y may be exchanged.
    Tested   tests/semantics/test_bounds.py::test_response_on_one_bit_attains_the_converse_and_breaks_the_printed_one
             tests/semantics/test_bounds.py::test_the_converse_with_delta_holds_on_random_mechanisms

    >>> round(float(privacy(level=Fraction("0.0996679946"))[0]), 6)
    0.4
    """
    if not 0 <= level < 1:
        raise ParameterError("HB103", "The level is not between 0 and 1.", "Pass a statistical difference below 1.")
    ratio = Interval.of((1 + level) / (1 - level))
    return (2 * log(ratio)).above() if level else _ZERO, min(_ONE, 2 * delta / (1 - level))


def difference(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Bound the statistical difference of two distributions that are (ε, δ)-indistinguishable.

    Theorem (Difference of indistinguishable distributions). It is at most (e^ε − 1 + 2δ)/(e^ε + 1), which some pair
    attains; the paper's e^ε − 1 + δ (Lemma 3.3, part 5) is never smaller.
    Proof    `odds.guess` is ½(1 + difference).
    Tested   tests/semantics/test_indistinguishability.py::test_statistical_difference_has_an_exact_bound
    """
    return 2 * guess(epsilon=epsilon, delta=delta) - 1


def pointwise(*, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Return the point-wise form of (ε, δ)-indistinguishability: (2ε, the mass of the answers that exceed it).

    Theorem (Point-wise form). If two distributions are (ε, δ)-indistinguishable, then under either of them the answers
    whose ratio is outside e^{±2ε} have a probability of at most δ(1 + e^{−2ε})/(1 − e^{−ε}), and no less will do.
    Proof    On S, where P > e^{2ε}Q: δ ≥ P(S) − e^ε Q(S) ≥ P(S)(1 − e^{−ε}). On S′, where Q > e^{2ε}P: likewise
    Q(S′) ≤ δ/(1 − e^{−ε}), and P(S′) ≤ e^{−2ε}Q(S′). Add up. Three answers attain it: S, S′ and a rest.
    (Kasiviswanathan and Smith print 2δ/e^ε in Lemma 3.3, part 2, and 2δ/(εe^ε) in its proof; both fail. The 2δ/ε that
    they use holds up to ε = 1.4525.)
    Tested   tests/semantics/test_indistinguishability.py::test_three_answers_attain_the_point_wise_form
             tests/semantics/test_indistinguishability.py::test_the_point_wise_form_holds_on_random_pairs
    """
    fall = exp(-epsilon)
    return 2 * epsilon, min(_ONE, (delta * (1 + fall * fall) / (1 - fall)).above(60))


def conditioned(*, epsilon: Fraction, delta: Fraction, kept: Fraction) -> tuple[Fraction, Fraction]:
    """Bound the probability that conditional distributions are not (3ε, kept)-indistinguishable: (3ε, probability).

    Theorem (Conditioning). If (A, B) and (A′, B′) are (ε, δ)-indistinguishable, then for every d > 0, except with
    probability (1 + e^ε)δ/d + δ + δ(1 + e^{−2ε})/(1 − e^{−ε}) over t drawn from B or from B′, A given B = t and A′
    given B′ = t are (3ε, d)-indistinguishable.
    Proof    As Kasiviswanathan and Smith, Lemma 3.4. Outside the answers whose ratio exceeds e^{±2ε} (`pointwise`), a t
    with a set S_t where A exceeds e^{3ε} times A′ by d adds Pr[B = t]·d to Pr[(A, B) ∈ T] − e^ε Pr[(A′, B′) ∈ T] for
    T = ∪ S_t × {t}, which is at most δ: B is such a t with probability at most δ/d. In the other direction B′ is one
    with probability at most δ/d, and so B with probability at most e^ε δ/d + δ. (They print 2δ/d for both, which fails
    from about ε = ln 2 on.)
    Tested   tests/semantics/test_indistinguishability.py::test_conditional_distributions_stay_close_on_random_joints
             tests/semantics/test_indistinguishability.py::test_the_printed_conditioning_lemma_fails_at_one
    """
    wide, mass = pointwise(epsilon=epsilon, delta=delta)
    return wide + epsilon, min(_ONE, ((1 + exp(epsilon)) * delta / kept + delta + mass).above(60))


def printed_chance(*, delta: Fraction, people: int) -> Fraction:
    """Return 4√(nδ), rounded up: the probability of Theorem 2.4 at which beliefs are bounded."""
    squared = math.ceil(people * delta * 10**80)
    root = math.isqrt(squared)
    return min(_ONE, Fraction(4 * (root + (root * root < squared)), 10**40))


def approximate_beliefs(*, epsilon: Fraction, delta: Fraction, people: int) -> tuple[Fraction, Fraction]:
    """Bound how far beliefs change under (ε, δ)-privacy, and the probability that they change more.

    Theorem (Approximate privacy bounds beliefs). (ε, δ)-DP on n people implies (s, δ′)-semantic privacy, for all η > 0
    and 0 < d < 1, with κ = δ/(1 − e^{−η}) and
    (1) E = e^{ε+η}, s = (E − 1 + 2d)/(E + 1), δ′ = n((1 + e^ε)κ/d + δ);
    (2) E = e^{2ε+η}, the same s, δ′ = n((1 + e^ε)δ/d + δ + κ(1 + e^{−ε−η})).
    Proof    (1) Draw x by the belief; let w(x) and v(x) be the probabilities of x with the answer t in game 0 and in
    game i, p and q the posteriors, and B and B′ where w > Ev and where v > Ew. By `core.odds.exceedance` B has a
    probability of at most κ in game 0, and B′ in game i. By Markov p(B) ≤ d except with probability κ/d in game 0, and
    q(B′) ≤ d except with probability κ/d in game i, so e^ε κ/d + δ in game 0. For a set T and c = Σv/Σw, p(T) ≤ d +
    cE·q(T), and 1 − p(T) ≥ (c/E)(1 − q(T) − d). With a = 1 − p(T) and b = q(T) that gives (1 − d − a)(1 − d − b) ≤
    E²ab, whence a + b ≥ 2(1 − d)/(E + 1): p(T) − q(T) ≤ s. Add up over the n persons.
    (2) `conditioned` with 2ε + η for 3ε, then `difference`.
    Here     δ′ is the 4√(nδ) of Kasiviswanathan and Smith, Theorem 2.4(1), and η and d are chosen for the least s. Any
    choice is valid, so the search may be in floating point; s is computed exactly and rounded up. Compare
    `odds.semantic`, the theorem as printed.
    Tested   tests/semantics/test_bounds.py::test_the_bound_under_delta_holds_on_random_games
             tests/semantics/test_bounds.py::test_the_bound_under_delta_holds_on_games_near_it
             tests/semantics/test_bounds.py::test_a_million_people_at_one

    >>> bound = approximate_beliefs(epsilon=Fraction(1), delta=Fraction(1, 10**12), people=10**6)
    >>> [round(float(x), 4) for x in bound]
    [0.4899, 0.004]
    """
    people = numbers.integer(people, "people", 1, 10**12)
    if not delta:
        return beliefs(epsilon=epsilon), _ZERO
    chance = printed_chance(delta=delta, people=people)
    if chance == 1 or epsilon > LARGE:
        return _ONE, _ONE
    levels = [_level(way, epsilon, delta, people, chance) for way in (1, 2)]
    return min(levels), chance


def _level(way: int, epsilon: Fraction, delta: Fraction, people: int, chance: Fraction) -> Fraction:
    """Return s of one way of the theorem, with the best η of a grid."""

    def rough(eta: float) -> float:
        kappa = float(delta) / -math.expm1(-eta)
        left = float(chance / people - delta) - (0 if way == 1 else kappa * (1 + math.exp(-float(epsilon) - eta)))
        d = (1 + math.exp(float(epsilon))) * (kappa if way == 1 else float(delta)) / left if left > 0 else 1.0
        growth = math.exp(way * float(epsilon) + eta)
        return 1 - 2 * (1 - min(d, 1.0)) / (growth + 1)

    eta = Fraction(min(_ETAS, key=rough))
    kappa = delta / (1 - exp(-eta))
    left = chance / people - delta - (0 if way == 1 else kappa * (1 + exp(-epsilon - eta)))
    if not Interval.of(left).low > 0:
        return _ONE
    d = (1 + exp(epsilon)) * (kappa if way == 1 else delta) / left
    growth = exp(way * epsilon + eta)
    return max(_ZERO, min(_ONE, (1 - 2 * (1 - d) / (growth + 1)).above(40)))


def local_beliefs(
    *, epsilon: Fraction, delta: Fraction, exceptions: Fraction, people: int
) -> tuple[Fraction, Fraction]:
    """Bound how far a belief changes under a mechanism that is private on most databases of the prior.

    Theorem (Local semantic privacy). Let A(x) and A(y) be (ε, δ)-indistinguishable for every neighbor y of x, for all
    x but for a set to which the belief b gives a probability of at most δ₁. Then, for that belief, the posteriors of
    game 0 and every game i are as close as under (ε, δ + δ₁)-privacy for all beliefs: `approximate_beliefs` at δ₂ = δ +
    δ₁.
    Proof    With x drawn by b, Pr[(x, A(x)) ∈ S] ≤ e^ε Pr[(x, A(x₋ᵢ)) ∈ S] + δ + δ₁: split by whether x is an exception
    (Kasiviswanathan and Smith, Lemma 3.3, part 4, and Theorem 4.2). The rest is as before.
    Leaves out  every other belief: there is no guarantee against an adversary who considers an exception likely. This
                is
    not differential privacy, and no budget accounts for it.
    Tested   tests/semantics/test_local_sensitivity.py::test_the_calculator_adds_the_exceptions_to_delta
             tests/semantics/test_local_sensitivity.py::test_local_semantic_privacy_of_a_median_holds_in_the_exact_game

    >>> at = {"epsilon": Fraction(1, 10), "people": 10**6}
    >>> both = local_beliefs(delta=Fraction(1, 10**12), exceptions=Fraction(3, 10**12), **at)
    >>> both == approximate_beliefs(delta=Fraction(4, 10**12), **at)
    True
    """
    return approximate_beliefs(epsilon=epsilon, delta=delta + exceptions, people=people)
