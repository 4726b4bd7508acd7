"""Screens about the theorems between privacy and beliefs.

Tested in tests/semantics/screens/test_readings.py.
"""

from fractions import Fraction
from functools import lru_cache
from math import atanh, exp, expm1, tanh

from hubbub.core.finite import FiniteDistribution
from hubbub.core.numbers import brief
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.semantics import bounds
from hubbub.semantics.games import databases, semantic_level, with_default
from hubbub.semantics.odds import in_a_hundred
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, ceiling, decimal
from hubbub.semantics.screens.figures import Curves

Rows = tuple[int, ...]

_SLIDE = tuple(k / 20 for k in range(1, 61))


def _level(epsilon: Fraction, people: int) -> Fraction:
    """Return the largest difference of beliefs for randomized response on the exclusive or of all bits, exactly."""
    response = RandomizedResponse(answers=2, epsilon=epsilon)
    by_bit = [response.distribution(bit) for bit in (0, 1)]

    def distribution(rows: Rows) -> FiniteDistribution[int]:
        return by_bit[sum(rows) % 2]

    return semantic_level(distribution, databases((0, 1), people=people), with_default(0), people=people)[1]


@lru_cache(maxsize=64)
def theorem(*, epsilon: Fraction) -> Reading:
    """Show that ε-privacy bounds beliefs, and the converse, with what was printed."""
    both, one = _level(epsilon, 2), _level(epsilon, 1)
    most, back = bounds.beliefs(epsilon=epsilon), bounds.privacy(level=one)[0]
    printed = expm1(float(epsilon))
    return Reading(
        (
            f"At ε = {brief(epsilon)}, one person's data changes no belief by more than tanh(ε/2) ="
            f" {in_a_hundred(most)} percentage points, whatever the belief, the answer and the mechanism. Randomized"
            f" response on the exclusive or of two bits attains it: {decimal(both)}, by enumeration of all beliefs.",
            f"The paper prints e^ε − 1 = {decimal(printed)}, which holds and is"
            f" {'loose' if printed < 1 else 'vacuous here: a statistical difference is at most 1'}.",
            f"The converse: if no belief changes by more than s, the mechanism is 4·artanh(s)-private. Randomized"
            f" response on one bit changes beliefs by s = {decimal(one)}, which gives back ε = {decimal(back)}: no less"
            " will do.",
            f"The paper prints (½ + s)/(½ − s) ≤ e^(3s), so that s would give ε = 3s = {decimal(3 * one)}. That is less"
            f" than the true ε = {brief(epsilon)}: the printed converse is false.",
        ),
        ("statement", "bound", "attained", "printed"),
        (
            ("ε-private ⇒ beliefs within", ceiling(most), decimal(both), decimal(printed)),
            ("beliefs within s ⇒ private at", ceiling(back), brief(epsilon), decimal(3 * one)),
        ),
        Curves(
            "How far one person's data changes a belief",
            "ε",
            "statistical difference",
            (
                ("bound tanh(ε/2), attained by two bits", tuple((x, tanh(x / 2)) for x in _SLIDE)),
                ("one bit: tanh(ε/4)", tuple((x, tanh(x / 4)) for x in _SLIDE)),
                ("printed: e^ε − 1", tuple((x, expm1(x)) for x in _SLIDE if expm1(x) < 1.3)),
            ),
            at=float(epsilon),
        ),
    )


@lru_cache(maxsize=64)
def converse(*, level: Fraction) -> Reading:
    """Show what a bound on beliefs implies, as printed and corrected."""
    epsilon, _ = bounds.privacy(level=level)
    places = tuple(k / 100 for k in range(1, 61))
    # randomized response whose beliefs change by exactly s has odds ((1 + s)/(1 − s))²
    odds = ((1 + level) / (1 - level)) ** 2
    excess = max(0.0, float(odds / (1 + odds)) - exp(3 * float(level)) * float(1 / (1 + odds)))
    return Reading(
        (
            f"Suppose that one person's data changes no belief by more than s = {in_a_hundred(level)} percentage"
            f" points. Then the mechanism is ε-private at ε = 4·artanh(s) = {decimal(epsilon)}, and randomized response"
            f" with odds {decimal(odds)} is such a mechanism with exactly this ε.",
            f"The printed converse has 3s = {decimal(3 * level)} (Theorem 2.4(2), for s ≤ 0.45). Against the same"
            f" mechanism it fails: at ε = 3s its δ is {decimal(excess)} instead of 0.",
            f"The printed Theorem 2.2 has 6s = {decimal(6 * level)} instead (ε/2-semantic ⇒ 3ε), which holds up to"
            " s = 0.858.",
        ),
        ("form", "ε"),
        (
            ("corrected: 4·artanh(s)", ceiling(epsilon)),
            ("printed, Theorem 2.4(2): 3s", decimal(3 * level)),
            ("printed, Theorem 2.2: 6s", decimal(6 * level)),
        ),
        Curves(
            "What a bound on beliefs implies",
            "s, the largest change of a belief",
            "ε",
            (
                ("4·artanh(s), attained", tuple((s, 4 * atanh(s)) for s in places)),
                ("3s, printed: false", tuple((s, 3 * s) for s in places)),
                ("6s, printed", tuple((s, 6 * s) for s in places)),
            ),
            at=float(level),
            top=4.0,
        ),
    )


SCREENS = (
    Screen(
        "beliefs",
        "How far can one person's data change any belief?",
        "Privacy implies semantic privacy, and back (Kasiviswanathan and Smith 2014, Theorem 2.2, in tight form).",
        (base.epsilon("0.4", high="10"),),
        theorem,
    ),
    Screen(
        "converse",
        "If no belief changes much, how private is the mechanism?",
        "Semantic privacy implies privacy: the printed converse is false, the corrected one is attained"
        " (Kasiviswanathan and Smith 2014, equation 6 and Theorem 2.4(2)).",
        (
            base.real(
                "level",
                "s, the largest change of a belief",
                "0.0997",
                steps=("0.01", "0.05", "0.0997", "0.2", "0.3", "0.4", "0.5"),
                low="0.001",
                high="0.6",
            ),
        ),
        converse,
    ),
)
