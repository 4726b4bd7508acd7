"""The screen about tests of membership: the trade-off between false and true positives.

Tested in tests/semantics/screens/test_readings.py.
"""

from fractions import Fraction
from functools import lru_cache

from hubbub.accounting import gaussian
from hubbub.core.finite import exact_distribution
from hubbub.core.numbers import brief
from hubbub.core.reals import exp
from hubbub.semantics.odds import percent
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, decimal, share
from hubbub.semantics.screens.figures import Curves
from hubbub.semantics.tradeoff import TradeOff, approximate, best_power, gaussian_noise


@lru_cache(maxsize=64)
def _gaussian(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, TradeOff]:
    variance = gaussian.variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=1)
    return variance, gaussian_noise(sensitivity_squared=1, variance=variance)


@lru_cache(maxsize=64)
def membership(*, epsilon: Fraction, delta: Fraction, level: Fraction) -> Reading:
    """Show how many members the best test can find at a rate of false alarms."""
    odds = exp(epsilon)[0]
    told = exact_distribution({1: odds / (1 + odds), 0: 1 / (1 + odds)})
    blank = exact_distribution({1: 1 / (1 + odds), 0: odds / (1 + odds)})
    pure, mixed = approximate(epsilon=epsilon, delta=Fraction(0)), approximate(epsilon=epsilon, delta=delta)
    variance, normal = _gaussian(epsilon, delta)
    found = best_power(told, blank, level)
    curves = [("any ε-private mechanism, at most", pure)]
    curves += [(f"with δ = {brief(delta)}, at most", mixed), ("Gaussian noise for this ε and δ", normal)]
    return Reading(
        (
            "Someone tests from the answers whether Alice's data was used. Two rates judge a test: how often it wrongly"
            " says yes (false positives, the level), and how often it rightly does (true positives, the power).",
            f"At ε = {brief(epsilon)} and a level of {share(level)}, no test has a power of more than"
            f" {percent(pure.power(level))}. The best test on randomized response, by Neyman and Pearson, has"
            f" {share(found)}: the bound min(e^ε·α, 1 − e^−ε(1 − α)) is attained.",
            f"With δ = {brief(delta)}, the bound is {percent(mixed.power(level))}. Gaussian noise that is calibrated to"
            f" this pair (variance {decimal(variance)}) allows {percent(normal.power(level))}: at one level a curve may"
            " be far below the bound of its (ε, δ).",
            "A bound on tests alone is not enough: a mechanism that publishes a random person's row has power at most"
            " α + 1/n (`hubbub explain difference`).",
        ),
        ("mechanism", "power, at most"),
        (
            ("randomized response, attained", share(found)),
            ("any ε-private mechanism", percent(pure.power(level))),
            ("any (ε, δ)-private mechanism", percent(mixed.power(level))),
            ("Gaussian noise for (ε, δ)", percent(normal.power(level))),
            ("a coin", share(level)),
        ),
        Curves(
            "The best test of membership",
            "false positives",
            "true positives",
            (
                *((name, tuple((float(x), float(y)) for x, y in curve.curve())) for name, curve in curves),
                ("a coin", ((0.0, 0.0), (1.0, 1.0))),
            ),
            at=float(level),
        ),
    )


SCREENS = (
    Screen(
        "test",
        "How well can a test tell whether your data was used?",
        "Hypothesis tests (Wasserman and Zhou 2010; Kasiviswanathan and Smith 2014, equations 4 and 5).",
        (
            base.epsilon("1", high="5"),
            base.delta("1e-5", high="0.1"),
            base.real(
                "level",
                "False positives",
                "0.05",
                steps=("0.001", "0.01", "0.05", "0.1", "0.25", "0.5"),
                low="0.000001",
                high="1",
            ),
        ),
        membership,
    ),
)
