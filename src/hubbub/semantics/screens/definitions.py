"""Screens about the definition: what it means that two datasets cannot be told apart, and what is not enough.

Tested in tests/semantics/screens/test_readings.py.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import inf, isinf

from hubbub.accounting import gaussian
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.numbers import brief
from hubbub.mechanisms.enumeration import delta_at, total_variation, worst_ratio
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.semantics.indistinguishability import far_apart
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, decimal
from hubbub.semantics.screens.figures import Bars, Curves, axis_for

_WINDOW = (-6, 7)


@lru_cache(maxsize=64)
def indistinguishable(*, mechanism: str, epsilon: Fraction, delta: Fraction) -> Reading:
    """Show the answers of a mechanism on two neighboring datasets, and how far apart they are."""
    distribution: Callable[[int], FiniteDistribution[int]]
    if mechanism == "response":
        distribution = RandomizedResponse(answers=2, epsilon=epsilon).distribution
        words = "Alice's bit by randomized response"
    elif mechanism == "laplace":
        laplace = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon)
        words = "a count with Laplace noise"

        def distribution(count: int) -> FiniteDistribution[int]:
            return laplace.distribution(count, _WINDOW)

    else:
        variance = gaussian.discrete_variance_for(epsilon=epsilon, delta=delta, sensitivity=1)
        normal = Gaussian(sensitivity_squared=1, variance=variance)
        words = f"a count with Gaussian noise of variance {decimal(variance)}, clamped to the answers below"

        def distribution(count: int) -> FiniteDistribution[int]:
            return normal.distribution(count, _WINDOW)

    without, present = distribution(0), distribution(1)
    loss = worst_ratio(present, without)
    slip, outside = delta_at(present, without, epsilon), far_apart(present, without, epsilon)
    answers = sorted(present.mass)
    heights = [tuple(float(each.mass[answer][0]) for answer in answers) for each in (without, present)]
    pure = mechanism != "gaussian"
    ratios = [float(present.mass[t][0] / without.mass[t][0]) for t in answers]
    return Reading(
        (
            f"The mechanism publishes {words}. Two neighboring datasets differ in Alice's bit: the true value is 0 or"
            " 1.",
            f"It is ε-indistinguishable if no answer is more than e^ε times as likely for one as for the other. The"
            f" largest log-ratio of these answers is {decimal(loss)}."
            + ("" if pure else " It grows without bound as the answers are clamped less: no ε alone holds."),
            f"It is (ε, δ)-indistinguishable if every set of answers obeys Pr[A(x) ∈ S] ≤ e^ε·Pr[A(y) ∈ S] + δ. At"
            f" ε = {brief(epsilon)}, the least such δ is {decimal(slip)}."
            + (
                ""
                if pure
                else f" δ is not the chance of a larger ratio: that is {decimal(outside)} here, by Lemma 3.3(1) never"
                " less than the least δ."
            ),
        ),
        ("answer", "Alice has 0", "Alice has 1", "ratio"),
        tuple(
            (str(answer), decimal(without.mass[answer]), decimal(present.mass[answer]), decimal(ratio))
            for answer, ratio in zip(answers, ratios, strict=True)
        ),
        Bars(
            "Probability of each answer" + ("" if mechanism == "response" else ", clamped at both ends"),
            tuple(map(str, answers)),
            (
                ("Alice has 0", heights[0]),
                ("Alice has 1", heights[1]),
            ),
            axis_for(*heights),
        ),
    )


@lru_cache(maxsize=64)
def difference(*, n: int) -> Reading:
    """Show that a small statistical difference protects nobody."""

    def published(rows: tuple[int, ...]) -> FiniteDistribution[tuple[int, int]]:
        return exact_distribution({(place, row): Fraction(1, len(rows)) for place, row in enumerate(rows)})

    zeros = (0,) * n
    mine, yours = published((1, *zeros[1:])), published(zeros)
    apart, loss = total_variation(mine, yours), worst_ratio(mine, yours)
    shown = "∞" if isinf(loss[1]) and loss[0] == inf else decimal(loss)
    return Reading(
        (
            f"A mechanism picks one of {n:,} people at random and publishes that person's row in the clear.",
            f"For two neighboring datasets, its answers have a statistical difference of only 1/n = {decimal(apart)}:"
            " the difference shows only if the one changed row is picked.",
            f"Its ε is {shown}: the answer (Alice, 1) is possible for one dataset and impossible for the other. And in"
            " every run, somebody's row is published: after the answer, the belief about that person is certain.",
            "A useful mechanism needs a statistical difference of at least about 1/n, because otherwise even data that"
            " differ everywhere look alike. So no useful bound on it protects anybody, and hubbub accepts none as a"
            " privacy loss. The same holds for mutual information (`hubbub explain information`).",
        ),
        ("quantity", "value"),
        (
            ("statistical difference of neighbors", decimal(apart)),
            ("ε", shown),
            ("probability that somebody's row is published", "100%"),
            ("change of the belief about that person", "100%"),
        ),
        Curves(
            "One random row in the clear",
            "people n",
            "probability",
            (
                ("statistical difference 1/n", tuple((float(x), 1 / x) for x in range(1, 101))),
                ("somebody's row is published", ((1.0, 1.0), (100.0, 1.0))),
            ),
            at=float(n),
            top=1.05,
        ),
    )


SCREENS = (
    Screen(
        "indistinguishable",
        "What does it mean that two datasets cannot be told apart?",
        "ε- and (ε, δ)-indistinguishability (Dwork, McSherry, Nissim and Smith 2006, definition 1; Kasiviswanathan and"
        " Smith 2014, definition 1.2).",
        (
            base.choice("mechanism", "Mechanism", "response", "laplace", "gaussian"),
            base.epsilon("1.0986", high="5"),
            base.delta("1e-5", high="0.1"),
        ),
        indistinguishable,
    ),
    Screen(
        "difference",
        "Is a small statistical difference enough?",
        "No: publishing a random person's row has one (Dwork, McSherry, Nissim and Smith 2006, example 2;"
        " Kasiviswanathan and Smith 2014, remark 1).",
        (base.whole("n", "People", 100, steps=(2, 5, 10, 20, 50, 100, 1000), low=2, high=1000),),
        difference,
    ),
)
