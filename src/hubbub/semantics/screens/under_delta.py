"""Screens about beliefs under δ, and under a guarantee for most data only.

Tested in tests/semantics/screens/test_readings.py.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import expm1, log10, sqrt, tanh

from hubbub.core.numbers import brief
from hubbub.semantics import bounds
from hubbub.semantics.odds import in_a_hundred, percent, semantic
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, ceiling, decimal
from hubbub.semantics.screens.figures import Curves


@lru_cache(maxsize=64)
def approximate(*, epsilon: Fraction, delta: Fraction, n: int) -> Reading:
    """Show how far beliefs change under (ε, δ)-privacy, beside the published theorem."""
    level, chance = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=n)
    printed = semantic(epsilon=epsilon, delta=delta, people=n)
    says = "says nothing: δ is not below ε²/n" if printed is None else f"has {decimal(printed[0])}"
    if printed is not None and printed[0] >= 1:
        says += ", which is vacuous: a statistical difference is at most 1"
    first = (
        f"At ε = {brief(epsilon)} and δ = {brief(delta)}, with {n:,} people, one person's data changes a belief by at"
        f" most {in_a_hundred(level)} percentage points, except with probability {ceiling(chance)}."
        if level < 1
        else f"At ε = {brief(epsilon)}, δ = {brief(delta)} and {n:,} people, there is no bound on beliefs: δ is too"
        " large for this many people."
    )
    places = sorted({k / 10 for k in range(1, 31)} | {float(epsilon)})
    return Reading(
        (
            first,
            f"The published theorem (Kasiviswanathan and Smith 2014, Theorem 2.4(1)) {says}.",
            f"Without δ the bound would be {percent(bounds.beliefs(epsilon=epsilon))}, for every answer. The exception"
            " is over the data, drawn from the adversary's own belief, and over the noise; for other data no such bound"
            " holds (`hubbub explain oblivious`).",
        ),
        ("bound", "beliefs change by", "except with probability"),
        (
            ("this one", ceiling(level), ceiling(chance)),
            (
                "as printed",
                "–" if printed is None else decimal(printed[0]),
                "–" if printed is None else decimal(printed[1]),
            ),
            ("without δ", ceiling(bounds.beliefs(epsilon=epsilon)), "0"),
        ),
        Curves(
            f"Beliefs under δ = {brief(delta)}, {n:,} people",
            "ε",
            "statistical difference",
            (
                ("bound", _curve(places, lambda x: _approximate(x, delta, n))),
                ("as printed", _curve([x for x in places if x < 0.35], lambda x: _printed(x, delta, n))),
                ("without δ", tuple((x, tanh(x / 2)) for x in places)),
            ),
            at=float(epsilon),
        ),
    )


def _curve(places: list[float], height: Callable[[Fraction], float]) -> tuple[tuple[float, float], ...]:
    return tuple((x, height(Fraction(x).limit_denominator(1000))) for x in places)


def _approximate(epsilon: Fraction, delta: Fraction, people: int) -> float:
    return float(bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=people)[0])


def _printed(epsilon: Fraction, delta: Fraction, people: int) -> float:
    printed = semantic(epsilon=epsilon, delta=delta, people=people)
    return 1.0 if printed is None else min(1.0, float(printed[0]))


def _added(epsilon: Fraction, delta: Fraction, people: int) -> float:
    """Return e^(3ε) − 1 + √(nδ)."""
    return expm1(3 * float(epsilon)) + sqrt(people * float(delta))


@lru_cache(maxsize=64)
def local(*, epsilon: Fraction, delta: Fraction, exceptions: Fraction, n: int) -> Reading:
    """Show local semantic privacy: a guarantee for the data that a belief considers likely."""
    level, chance = bounds.local_beliefs(epsilon=epsilon, delta=delta, exceptions=exceptions, people=n)
    plain, _ = bounds.approximate_beliefs(epsilon=epsilon, delta=delta, people=n)
    powers = [k / 2 for k in range(-30, -3)]
    return Reading(
        (
            f"A mechanism is (ε, δ)-private on all data except on some that a belief considers to have probability"
            f" δ₁ = {brief(exceptions)} or less. For that belief it is as good as δ₂ = δ + δ₁ ="
            f" {brief(delta + exceptions)} everywhere.",
            f"With {n:,} people, the belief then changes by at most {in_a_hundred(level)} percentage points, except"
            f" with probability {ceiling(chance)}. On all data it would be {in_a_hundred(plain)}."
            if level < 1
            else f"With {n:,} people, δ₂ is too large for any bound.",
            "This protects nobody against an adversary who considers an exception likely, and nobody whose data is one."
            " It is not differential privacy: hubbub charges for no such mechanism (`hubbub explain local-sensitivity`"
            " shows the leak).",
            "In print, Theorem 4.2 adds √(nδ₂) to e^(3ε) − 1, and Theorem 2.4 adds 2√(nδ). Their common proof gives"
            f" √(nδ₂), so here {decimal(_added(epsilon, delta + exceptions, n))} in all. Where they apply, the bound"
            " above is below both.",
        ),
        ("δ₁", "beliefs change by", "except with probability"),
        tuple(
            (brief(share), ceiling(found[0]), ceiling(found[1]))
            for share, found in (
                (share, bounds.local_beliefs(epsilon=epsilon, delta=delta, exceptions=share, people=n))
                for share in dict.fromkeys((Fraction(0), exceptions, 10 * exceptions, 100 * exceptions))
                if share < 1
            )
        ),
        Curves(
            f"Beliefs at ε = {brief(epsilon)}, {n:,} people",
            "δ₁, as a power of ten",
            "statistical difference",
            (
                (
                    "bound for the belief",
                    tuple(
                        (
                            power,
                            float(
                                bounds.local_beliefs(
                                    epsilon=epsilon, delta=delta, exceptions=Fraction(10**power), people=n
                                )[0]
                            ),
                        )
                        for power in powers
                    ),
                ),
                ("without exceptions", ((powers[0], float(plain)), (powers[-1], float(plain)))),
            ),
            at=log10(float(exceptions)),
        ),
    )


_PEOPLE = base.whole(
    "n", "People", 10**6, steps=(1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9), low=1, high=10**12
)

SCREENS = (
    Screen(
        "approximate",
        "How far can beliefs change with a δ?",
        "(ε, δ)-semantic privacy (Kasiviswanathan and Smith 2014, Theorem 2.4(1), and a sharper bound).",
        (base.epsilon("1", high="5"), base.delta("1e-12", high="0.1"), _PEOPLE),
        approximate,
    ),
    Screen(
        "local",
        "What if the data is almost surely well-behaved?",
        "Local semantic privacy: a guarantee for the data that a belief considers likely (Kasiviswanathan and Smith"
        " 2014, Theorem 4.2).",
        (
            base.epsilon("0.1", high="5"),
            base.delta("1e-12", high="0.1"),
            base.real(
                "exceptions",
                "δ₁, probability of exceptions",
                "3e-12",
                steps=("1e-15", "1e-12", "3e-12", "1e-10", "1e-9", "1e-8", "1e-6"),
                low="1e-30",
                high="0.1",
            ),
            _PEOPLE,
        ),
        local,
    ),
)
