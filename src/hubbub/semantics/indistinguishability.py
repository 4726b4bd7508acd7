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
