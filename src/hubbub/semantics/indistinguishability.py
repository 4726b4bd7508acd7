"""Pairs of finite distributions: likelihood ratios, joint distributions and conditional distributions.

The constructions of Kasiviswanathan and Smith (2014), Lemma 3.3 and Lemma 3.4; the bounds are in `bounds`.
"""

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import TypeVar

from hubbub.core import reals
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.reals import Enclosure
from hubbub.mechanisms.enumeration import delta_at

First = TypeVar("First", bound=Hashable)
Second = TypeVar("Second", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)

_ZERO = Fraction(0)
_NOTHING: Enclosure = (_ZERO, _ZERO)


def far_apart(p: FiniteDistribution[Outcome], q: FiniteDistribution[Outcome], epsilon: Fraction) -> Enclosure:
    """Enclose the larger probability, under p or q, of the outcomes whose two probabilities differ by more than e^ε.

    Theorem (Point-wise implies set-wise). If it is at most δ then p and q are (ε, δ)-indistinguishable.
    Proof    Outside those outcomes p(S) ≤ e^ε q(S); they add at most δ (Lemma 3.3, part 1).
    Tested   tests/semantics/test_indistinguishability.py::test_point_wise_closeness_implies_closeness

    >>> fair = exact_distribution({1: Fraction(1, 2), 0: Fraction(1, 2)})
    >>> far_apart(exact_distribution({1: Fraction(1)}), fair, Fraction(1))
    (Fraction(1, 2), Fraction(1, 2))
    """
    least, most = reals.exp(epsilon)
    masses = {"p": _NOTHING, "q": _NOTHING}
    for outcome in {**p.mass, **q.mass}:
        a, b = p.mass.get(outcome, (_ZERO, p.tail)), q.mass.get(outcome, (_ZERO, q.tail))
        surely = a[0] > most * b[1] or b[0] > most * a[1]
        perhaps = surely or a[1] > least * b[0] or b[1] > least * a[0]
        for name, mass in (("p", a), ("q", b)):
            low, high = masses[name]
            masses[name] = (low + mass[0] if surely else low, high + mass[1] if perhaps else high)
    tail = p.tail + q.tail
    return max(masses["p"][0], masses["q"][0]), min(Fraction(1), max(masses["p"][1], masses["q"][1]) + tail)


def three_answers(epsilon: Fraction, delta: Fraction) -> tuple[FiniteDistribution[str], FiniteDistribution[str]]:
    """Return a pair that is (ε, δ)-indistinguishable and has as much mass outside e^{±2ε} as any such pair.

    Theorem (Three answers). With a = δ/(1 − e^{−ε}) and b = a·e^{−2ε}, (a, b, rest) and (b, a, rest) attain the bound
    of `bounds.pointwise`.
    Proof    P(more) − e^ε Q(more) = a(1 − e^{−ε}) = δ. Here the ratio is a little above e^{2ε}, so that it is outside.
    Tested   tests/semantics/test_indistinguishability.py::test_the_three_answers_are_those_that_attain_the_bound
    """
    fall, edge = reals.exp(-epsilon)[0], 1 - Fraction(1, 10**9)
    heavy = min(Fraction(1, 2), delta / (1 - fall * edge) * edge)
    light = heavy * fall * fall * edge
    rest = 1 - heavy - light
    return (
        exact_distribution({"more": heavy, "less": light, "rest": rest}),
        exact_distribution({"more": light, "less": heavy, "rest": rest}),
    )


def hints(
    epsilon: Fraction, delta: Fraction, kept: Fraction
) -> tuple[FiniteDistribution[tuple[int, Hashable]], FiniteDistribution[tuple[int, Hashable]]]:
    """Return joint distributions of a bit and an answer that are (ε, δ)-indistinguishable, and not once it is seen.

    Theorem (Rare hints). For d < ½, let the answer be, with probability r = 2δ/(1 − (1 − 2d)e^{−2ε}), a hint that is
    right with probability (1 + κ)/2, κ a little above 1 − (1 − 2d)e^{−3ε}, against a hint by a fair coin; and a
    randomized response with odds e^ε, against one about the bit 0, otherwise. These are (ε, δ)-indistinguishable, and
    given a hint, the bits are not (3ε, d)-indistinguishable: for small ε, an exception of δ/d is needed.
    Proof    Given a wrong hint the bit has (1 − κ)/2 against ½, and ½ − e^{3ε}(1 − κ)/2 > d. Over both hints,
    r(½ − e^ε(1 − κ)/2) = δ, and the right hints, r((1 + κ)/2 − e^ε/2), are less. The responses keep e^{±ε}.
    Tested   tests/semantics/test_indistinguishability.py::test_rare_hints_need_an_exception_of_delta_over_d
    """
    odds = reals.exp(epsilon)[0]
    strength = min(Fraction(1), 1 - (1 - 2 * kept) * reals.exp(-3 * epsilon)[0] + Fraction(1, 10**9))
    rare = min(Fraction(1), 2 * delta / (1 - reals.exp(epsilon)[1] * (1 - strength)))

    def answers(bit: int, about: int, skill: Fraction) -> FiniteDistribution[Hashable]:
        mass: dict[Hashable, Fraction] = {
            about: (1 - rare) * odds / (1 + odds),
            1 - about: (1 - rare) / (1 + odds),
            ("hint", bit): rare * (1 + skill) / 2,
            ("hint", 1 - bit): rare * (1 - skill) / 2,
        }
        return exact_distribution(mass)

    half = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    return joined(half, lambda bit: answers(bit, bit, strength)), joined(half, lambda bit: answers(bit, 0, _ZERO))


def joined(
    first: Mapping[First, Fraction], distribution: Callable[[First], FiniteDistribution[Second]]
) -> FiniteDistribution[tuple[First, Second]]:
    """List the joint distribution of (X, A(X)).

    Theorem (Joint distributions). If A(a) and A′(a) are (ε, δ)-indistinguishable but for values a of X of probability
    δ₁, then (X, A(X)) and (X, A′(X)) are (ε, δ + δ₁)-indistinguishable.
    Proof    Pr[(X, A(X)) ∈ S] is the mean over a of Pr[A(a) ∈ S_a] ≤ e^ε Pr[A′(a) ∈ S_a] + δ, and at most 1 at the
    exceptions (Lemma 3.3, parts 3 and 4).
    Tested   tests/semantics/test_indistinguishability.py::test_joint_distributions_add_the_exceptions_to_delta
    """
    distributions = {a: distribution(a) for a, chance in first.items() if chance}
    return FiniteDistribution(
        {
            (a, b): (first[a] * low, first[a] * high)
            for a, answers in distributions.items()
            for b, (low, high) in answers.mass.items()
        },
        sum((first[a] * answers.tail for a, answers in distributions.items()), _ZERO),
    )


def given(pair: FiniteDistribution[tuple[First, Second]], second: Second) -> FiniteDistribution[First]:
    """List the conditional distribution of the first part given the second, for exact probabilities.

    >>> half = Fraction(1, 2)
    >>> both = joined({0: half, 1: half}, lambda a: exact_distribution({0: Fraction(1 + a, 3), 1: Fraction(2 - a, 3)}))
    >>> given(both, 0).mass[1]
    (Fraction(2, 3), Fraction(2, 3))
    """
    masses = {a: low for (a, b), (low, _) in pair.mass.items() if b == second}
    whole = sum(masses.values(), _ZERO)
    return exact_distribution({a: mass / whole for a, mass in masses.items()})


def far_apart_given(
    pair: FiniteDistribution[tuple[First, Second]],
    other: FiniteDistribution[tuple[First, Second]],
    *,
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """Return the probability of second parts given which the first parts are not (ε, δ)-indistinguishable.

    It is the larger one under the two distributions, whose probabilities must be exact. A second part that is possible
    under only one of them counts.
    """
    sides = [{b: _ZERO for _, b in (*pair.mass, *other.mass)} for _ in range(2)]
    for side, distribution in zip(sides, (pair, other), strict=True):
        for (_, b), (low, _) in distribution.mass.items():
            side[b] += low
    bad = [
        b
        for b in sides[0]
        if (sides[0][b] == 0) != (sides[1][b] == 0)
        or (sides[0][b] and delta_at(given(pair, b), given(other, b), epsilon)[1] > delta)
    ]
    return max(sum((side[b] for b in bad), _ZERO) for side in sides)
