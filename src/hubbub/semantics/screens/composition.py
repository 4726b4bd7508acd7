"""Screens about several releases and several people, and about the bits that answers tell.

Tested in tests/semantics/screens/test_readings.py.
"""

from fractions import Fraction
from functools import lru_cache
from math import exp

from hubbub.core.numbers import brief
from hubbub.mechanisms.additive import independent
from hubbub.mechanisms.enumeration import worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.semantics.information import bits_about_a_fact, bits_about_a_person
from hubbub.semantics.odds import group, percent, posterior
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, ceiling, decimal
from hubbub.semantics.screens.figures import Curves

_EVEN = Fraction(1, 2)


@lru_cache(maxsize=64)
def composition(*, epsilon: Fraction, second: Fraction, size: int, delta: Fraction) -> Reading:
    """Show that the ε of releases add up, and that a group of k loses kε, by enumeration."""
    responses = [RandomizedResponse(answers=2, epsilon=each) for each in (epsilon, second)]
    both = worst_ratio(*[independent([each.distribution(bit) for each in responses]) for bit in (0, 1)])
    noise = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
    window = (-4, size + 4)
    together = worst_ratio(noise.distribution(0, window), noise.distribution(size, window))
    grouped = group(size, epsilon=epsilon, delta=delta)
    places = range(1, 21)
    return Reading(
        (
            f"Alice's bit is published twice by randomized response, at ε = {brief(epsilon)} and at ε ="
            f" {brief(second)}, perhaps by two owners who do not know of each other. The pair of answers loses"
            f" {decimal(both)}: the two ε add up, and no less will do.",
            f"Someone who is 50% sure of her bit can be {percent(posterior(_EVEN, epsilon=epsilon)[1])} sure after the"
            f" first answer, and {percent(posterior(_EVEN, epsilon=epsilon + second)[1])} sure after both. A ledger"
            " adds up what one owner releases; nobody adds up across owners.",
            f"A count with Laplace noise at ε = {brief(epsilon)} loses {decimal(together)} when {size:,}"
            f" {'person leaves' if size == 1 else 'people leave together'}: a group of k loses k·ε, and a fact that all"
            f" of them share goes from 50% to at most {percent(posterior(_EVEN, epsilon=grouped[0])[1])}.",
            f"With δ = {brief(delta)}, the group has δ(e^(kε) − 1)/(e^ε − 1) = {ceiling(grouped[1])}."
            if delta
            else "With a δ, that of a group grows faster still, by (e^(kε) − 1)/(e^ε − 1).",
        ),
        ("release or group", "ε by enumeration", "sum"),
        (
            (
                "first release",
                decimal(worst_ratio(*[responses[0].distribution(bit) for bit in (0, 1)])),
                brief(epsilon),
            ),
            (
                "second release",
                decimal(worst_ratio(*[responses[1].distribution(bit) for bit in (0, 1)])),
                brief(second),
            ),
            ("both releases", decimal(both), brief(epsilon + second)),
            (f"group of {size:,}", decimal(together), brief(grouped[0])),
        ),
        Curves(
            "How sure someone can become who starts at 50%",
            "releases, or people in a group",
            "belief, at most",
            ((f"at ε = {brief(epsilon)} each", tuple((float(k), 1 / (1 + exp(-k * float(epsilon)))) for k in places)),),
            at=float(size),
        ),
    )


@lru_cache(maxsize=64)
def information(*, epsilon: Fraction, delta: Fraction, n: int) -> Reading:
    """Show how many bits answers tell about one person, and why few bits are not enough."""
    fact = bits_about_a_fact([(epsilon, delta)])
    person = bits_about_a_person(epsilon)
    places = [Fraction(k, 10) for k in range(1, 51)]
    # a random row in the clear tells a fair bit of each person with probability 1/n
    row = Fraction(1, n)
    return Reading(
        (
            f"At ε = {brief(epsilon)}{f' and δ = {brief(delta)}' if delta else ''}, the answers tell at most"
            f" {ceiling(fact)} bits about a yes-or-no fact about one person, to someone who knows everybody else's"
            " data."
            + ("" if delta else f" Everything about that person together gets at most {ceiling(person)} bits."),
            "Without δ, randomized response attains the first, and responding with random sets of values comes as near"
            " as one likes to the second. The definition alone gives ε·log₂e ="
            f" {ceiling(Fraction(float(epsilon) * 1.4426950408889634))} bits.",
            f"The converse fails: publishing the row of one of {n:,} people at random tells"
            f" {ceiling(row)} bits about each, and yet somebody's row is always out (`hubbub explain difference`). Few"
            " bits do not make a release private.",
        ),
        ("mechanism", "bits about one person", "private"),
        (
            ("any ε-private one: a yes-or-no fact", ceiling(bits_about_a_fact([(epsilon, Fraction(0))])), "yes"),
            ("any ε-private one: all about one person", ceiling(person), "yes"),
            (f"one random row of {n:,} in the clear", ceiling(row), "no"),
        ),
        Curves(
            "Bits about one person, at most",
            "ε",
            "bits",
            (
                ("a yes-or-no fact", tuple((float(x), float(bits_about_a_fact([(x, delta)]))) for x in places)),
                ("everything about one person", tuple((float(x), float(bits_about_a_person(x))) for x in places)),
            ),
            at=float(epsilon),
            top=2.0,
        ),
    )


SCREENS = (
    Screen(
        "composition",
        "What do several releases, or several people, add up to?",
        "Composition and group privacy (Dwork, McSherry, Nissim and Smith 2006; Dwork 2011).",
        (
            base.epsilon("0.5", high="5"),
            base.real("second", "ε of a second release", "0.5", steps=base.EPSILONS[:-2], low="0.001", high="5"),
            base.whole("size", "People in the group", 2, steps=(1, 2, 3, 4, 5, 7, 10, 15, 20), low=1, high=20),
            base.real("delta", "δ", "0", steps=("0", *base.DELTAS), low="0", high="0.5"),
        ),
        composition,
    ),
    Screen(
        "information",
        "How many bits do the answers tell about one person?",
        "The mutual-information form of privacy, and why it is not enough (Kasiviswanathan and Smith 2014, remark 1).",
        (
            base.epsilon("1", high="10"),
            base.real("delta", "δ", "0", steps=("0", *base.DELTAS), low="0", high="0.5"),
            base.whole("n", "People (random row)", 1000, steps=(10, 100, 1000, 10**4, 10**5, 10**6), low=2, high=10**9),
        ),
        information,
    ),
)
