"""Screens about Lemmas 3.3 and 3.4 of Kasiviswanathan and Smith (2014), with corrected constants.

Tested in tests/semantics/screens/test_readings.py.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import exp, log10

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.numbers import brief
from hubbub.mechanisms.enumeration import delta_at, total_variation
from hubbub.semantics import bounds
from hubbub.semantics.indistinguishability import far_apart, far_apart_given, hints, joined, three_answers
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, ceiling, decimal
from hubbub.semantics.screens.figures import Curves


@lru_cache(maxsize=64)
def lemma(*, epsilon: Fraction, delta: Fraction) -> Reading:
    """Show the parts of Lemma 3.3 on a pair of distributions that attains them, with what was printed."""
    p, q = three_answers(epsilon, delta)
    slip = delta_at(p, q, epsilon)
    wide, tight = bounds.pointwise(epsilon=epsilon, delta=delta)
    outside = far_apart(p, q, wide)
    e, d = float(epsilon), float(delta)
    first, second = 2 * d / exp(e), 2 * d / (e * exp(e))
    apart, exact = total_variation(p, q), bounds.difference(epsilon=epsilon, delta=delta)
    # parts 3 and 4: the pair applies with probability 1 − δ₁, and an exception reveals everything
    rare = Fraction(1, 100)
    sides = [joined({False: 1 - rare, True: rare}, _unless_revealed(*side)) for side in ((p, "x"), (q, "y"))]
    together = delta_at(sides[0], sides[1], epsilon)
    places = [k / 20 for k in range(2, 61)]
    return Reading(
        (
            f"Two distributions over three answers are (ε, δ)-indistinguishable at ε = {brief(epsilon)} and"
            f" δ = {brief(delta)}; their least δ is {decimal(slip)}.",
            f"Part 2: the answers whose ratio is outside e^±2ε have probability {decimal(outside)}. Printed are"
            f" 2δ/e^ε = {decimal(first)} and, in the proof, 2δ/(εe^ε) = {decimal(second)}:"
            f" {'both are' if outside[0] > max(first, second) else 'the first is'} too small. The bound"
            f" δ(1 + e^−2ε)/(1 − e^−ε) = {ceiling(tight)} holds for every pair, and this pair attains it.",
            f"Parts 3 and 4: if the pair is what happens except with probability δ₁ = {brief(rare)}, the joint"
            f" distributions have δ = {decimal(together)}, at most δ + δ₁ = {ceiling(delta + rare)}.",
            f"Part 5: the statistical difference is {decimal(apart)}, at most (e^ε − 1 + 2δ)/(e^ε + 1) ="
            f" {ceiling(exact)}; printed is e^ε − 1 + δ = {decimal(exp(e) - 1 + d)}, which holds and is loose.",
        ),
        ("part", "this pair", "bound", "printed"),
        (
            ("1: closeness of sets from that of points", decimal(slip), decimal(far_apart(p, q, epsilon)), "the same"),
            ("2: probability of a ratio outside e^±2ε", decimal(outside), ceiling(tight), decimal(second)),
            ("3, 4: δ of joint distributions", decimal(together), ceiling(delta + rare), "the same"),
            ("5: statistical difference", decimal(apart), ceiling(exact), decimal(exp(e) - 1 + d)),
        ),
        Curves(
            "Probability of a ratio outside e^±2ε",
            "ε",
            "multiples of δ",
            (
                ("bound, attained", tuple((x, (1 + exp(-2 * x)) / (1 - exp(-x))) for x in places)),
                ("printed in the proof: 2/(εe^ε)", tuple((x, 2 / (x * exp(x))) for x in places)),
                ("printed in the lemma: 2/e^ε", tuple((x, 2 / exp(x)) for x in places)),
                ("used later: 2/ε", tuple((x, 2 / x) for x in places)),
            ),
            at=float(epsilon),
            top=12.0,
        ),
    )


def _unless_revealed(usual: FiniteDistribution[str], mark: str) -> Callable[[bool], FiniteDistribution[str]]:
    """Return the usual answers, or in an exception the one that reveals everything."""
    revealed = exact_distribution({mark: Fraction(1)})
    return lambda exception: revealed if exception else usual


@lru_cache(maxsize=64)
def conditioning(*, epsilon: Fraction, delta: Fraction, kept: Fraction) -> Reading:
    """Show the conditioning lemma: what an answer makes of indistinguishable joint distributions."""
    pair, other = hints(epsilon, delta, kept)
    wide, chance = bounds.conditioned(epsilon=epsilon, delta=delta, kept=kept)
    broken = far_apart_given(pair, other, epsilon=wide, delta=kept)
    e, d = float(epsilon), float(delta)
    powers = [k / 10 for k in range(-80, 0)]
    rest = float(bounds.pointwise(epsilon=epsilon, delta=delta)[1])
    return Reading(
        (
            f"A bit together with an answer about it has two distributions that are (ε, δ)-indistinguishable:"
            f" ε = {brief(epsilon)}, δ = {brief(delta)}. Given the answer, those of the bit should be close too.",
            f"Except for answers of probability {ceiling(chance)} at most, the two conditional distributions are"
            f" (3ε, d)-indistinguishable, with d = {brief(kept)}. The smaller d, the more answers are excepted.",
            f"The exception is needed: in this example, rare hints break the conclusion, and they have probability"
            f" {decimal(broken)}.",
            f"The paper prints 2δ/d + 2δ/(εe^ε) = {decimal(2 * d / float(kept) + 2 * d / (e * exp(e)))}. Its proof"
            " relies on the false constants of Lemma 3.3(2), and bounds one of two sets of answers under the wrong"
            " distribution: at ε = 1, δ = 0.001 and d = 0.0999 it fails.",
        ),
        ("quantity", "probability"),
        (
            ("answers that break (3ε, d), in this example", decimal(broken)),
            ("bound", ceiling(chance)),
            ("as printed", decimal(2 * d / float(kept) + 2 * d / (e * exp(e)))),
        ),
        Curves(
            "Probability of answers that reveal too much",
            "d, as a power of ten",
            "probability",
            (
                (
                    "bound",
                    tuple((x, min(1.0, (1 + exp(e)) * d / 10**x + d + rest)) for x in powers),
                ),
                ("rare hints", tuple((x, _rare(e, d, 10**x)) for x in powers if 10**x < 0.49)),
            ),
            at=log10(kept),
            top=1.0,
        ),
    )


def _rare(epsilon: float, delta: float, kept: float) -> float:
    """Return the probability of the hints of `hints`, in floating point for the figure."""
    return min(1.0, 2 * delta / (1 - (1 - 2 * kept) * exp(-2 * epsilon)))


SCREENS = (
    Screen(
        "lemma",
        "How do sets, single answers and joint distributions compare?",
        "Kasiviswanathan and Smith 2014, Lemma 3.3, with corrected constants.",
        (base.epsilon("0.5", high="5"), base.delta("0.01", high="0.05")),
        lemma,
    ),
    Screen(
        "conditioning",
        "What remains private after an answer is seen?",
        "The conditioning lemma (Kasiviswanathan and Smith 2014, Lemma 3.4).",
        (
            base.epsilon("0.01", high="5"),
            base.delta("1e-4", high="0.05"),
            base.real(
                "kept",
                "d, the δ that remains",
                "0.01",
                steps=("1e-6", "1e-4", "1e-3", "0.01", "0.05", "0.1", "0.4"),
                low="1e-8",
                high="0.45",
            ),
        ),
        conditioning,
    ),
)
