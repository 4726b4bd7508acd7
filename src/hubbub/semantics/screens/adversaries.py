"""Screens about adversaries: those who know everybody else, those who are simulated, and those who are far off.

Tested in tests/semantics/screens/test_readings.py.
"""

from fractions import Fraction
from functools import lru_cache
from math import exp, log10

from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval, log
from hubbub.core.numbers import brief
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.semantics.games import Game
from hubbub.semantics.odds import percent, posterior
from hubbub.semantics.reality_oblivious import Surprise, surprise
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, decimal, share
from hubbub.semantics.screens.figures import Bars, Curves, axis_for
from hubbub.semantics.simulation import best_simulation, blanked, informed, loss_between, simulation_loss

Rows = tuple[int, ...]

_DOMAIN, _PEOPLE = (0, 1, 2), 2
_WINDOW = (-4, 8)


def informed_adversary(*, epsilon: Fraction, prior: Fraction) -> Reading:
    """Show an adversary who knows all rows except one, whose bit is published by randomized response."""
    response = RandomizedResponse(answers=2, epsilon=epsilon)
    rows = []
    for belief in dict.fromkeys((prior, Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**6))):
        game: Game[int, int] = Game({1: belief, 0: 1 - belief}, response.distribution, lambda world, _: world, 0)
        low, high = (game.belief(answer, bool) for answer in (0, 1))
        moved = informed(response.distribution, game.prior, bool)
        rows.append((share(belief), share(low), share(high), decimal(exp(float(moved[1])))))
    places = [k / 40 for k in range(1, 40)]
    odds = exp(float(epsilon))
    return Reading(
        (
            "Someone knows every row of the data except one bit, such as whether Alice has a disease. The answer tells"
            f" that bit by randomized response at ε = {brief(epsilon)}: the truth with odds e^ε = {decimal(odds)}.",
            f"They start out {share(prior)} sure that the bit is 1. The answer 1 makes them {rows[0][2]} sure, the"
            f" answer 0 {rows[0][1]}.",
            f"No probability changes by a factor of more than e^ε = {decimal(odds)}, whatever they know and whatever"
            " the mechanism is, if it is ε-private. The rarer the fact, the closer the factor comes to e^ε."
            " The converse holds too: if no such adversary's probability changes by more, the mechanism is ε-private.",
        ),
        ("prior", "after 0", "after 1", "largest factor"),
        tuple(rows),
        Curves(
            "One unknown bit",
            "prior belief",
            "belief after the answer",
            tuple(
                (name, tuple((p, p * rise / (p * rise + 1 - p)) for p in places))
                for name, rise in (("after the answer 1", odds), ("after the answer 0", 1 / odds), ("unchanged", 1.0))
            ),
            at=float(prior),
        ),
    )


@lru_cache(maxsize=64)
def _losses(epsilon: Fraction, unknown: int, default: int) -> tuple[tuple[float, float], FiniteDistribution[int], Rows]:
    noise = Laplace.from_epsilon(sensitivity=2, epsilon=epsilon)
    sums = {total: noise.distribution(total, _WINDOW) for total in range(2 * _PEOPLE + 1)}

    def distribution(rows: Rows) -> FiniteDistribution[int]:
        return sums[sum(rows)]

    apart = loss_between(distribution, _DOMAIN, people=_PEOPLE, differing=unknown)
    filled = simulation_loss(distribution, _DOMAIN, people=_PEOPLE, unknown=unknown, default=default)
    farthest = (2 if default == 0 else 0,) * _PEOPLE
    return (float(apart[1]), float(filled[1])), distribution(farthest), farthest


def simulator(*, epsilon: Fraction, unknown: int, default: int) -> Reading:
    """Show that an answer can be simulated without the rows that an adversary does not know."""
    (apart, filled), real, rows = _losses(epsilon, unknown, default)
    noise = Laplace.from_epsilon(sensitivity=2, epsilon=epsilon)
    hidden = range(unknown)
    imitated = noise.distribution(sum(blanked(rows, hidden, default)), _WINDOW)
    # what any simulator could do must be close to the answers for all values of the unknown rows
    fixed = sum(rows[unknown:])
    best = best_simulation([noise.distribution(fixed + total, _WINDOW) for total in range(2 * unknown + 1)])
    answers = range(_WINDOW[0], _WINDOW[1] + 1)
    heights = [tuple(float(each.mass[answer][0]) for answer in answers) for each in (real, imitated)]
    people = "one row" if unknown == 1 else f"{unknown} rows"
    return Reading(
        (
            f"Two people have values 0, 1 or 2, and their sum is published with Laplace noise at ε = {brief(epsilon)}"
            f" (one row). An adversary does not know {people}.",
            f"The simulator does not see the unknown data either. It puts {default} in its place, runs the same"
            f" mechanism, and its answers are within e^±{decimal(filled)} of the real ones, for all data.",
            f"That is never more than the privacy loss of {people}, e^±{decimal(apart)}; and whoever can be simulated"
            " within e^±ε is private at 2ε, with no better factor in general. So an answer about Alice tells little"
            " that could not have been made up without her.",
            f"For the data {', '.join(map(str, rows))}, no simulator at all could be closer than e^±{decimal(best)}.",
        ),
        ("quantity", "ε"),
        (
            (f"privacy loss of {people}", decimal(apart)),
            ("simulator that fills in the default", decimal(filled)),
            ("best possible simulator", decimal(best)),
            ("what the simulator implies", decimal(2 * filled)),
        ),
        Bars(
            f"Answers for the data {', '.join(map(str, rows))}, and simulated",
            tuple(map(str, answers)),
            (
                ("real", heights[0]),
                ("simulated", heights[1]),
            ),
            axis_for(*heights),
        ),
    )


def oblivious(*, epsilon: Fraction, delta: Fraction, n: int) -> Reading:
    """Show an adversary whose beliefs are far from the truth, against Gaussian noise."""
    at = surprise(people=n, epsilon=epsilon, delta=delta)
    printed = Surprise(n, (-log(Interval.of(delta)) / epsilon**2).above())
    most = posterior(Fraction(1, 2), epsilon=epsilon)[1]
    curve = tuple((k / 20, _sure(10 ** (k / 20), float(at.variance))) for k in range(101))
    return Reading(
        (
            f"In truth, all {n:,} people have a 1. An adversary considers only two databases, each with 50%: all zeros,"
            " or a single 1, which is Alice's. The sum is published with Gaussian noise calibrated to"
            f" ε = {brief(epsilon)} and δ = {brief(delta)} (variance {decimal(at.variance)}).",
            f"After the answer {n:,}, the first database is {decimal(at.ratio)} times as likely as the second: the"
            f" adversary is {share(at.posterior)} sure of Alice's 1. Without her row, it stays at 50%.",
            "This is the effect of a belief that is far from the truth, and not a leak: the noise is as private as"
            " stated. For beliefs from which the data is really drawn, such answers are rare (`hubbub explain"
            " approximate`). With δ > 0, no bound holds for every belief and every data at once.",
            f"Pure ε-privacy does bound even this adversary: at ε = {brief(epsilon)}, 50% becomes at most"
            f" {percent(most)}.",
        ),
        ("noise", "likelihood ratio", "belief in Alice's 1", "change"),
        (
            ("Gaussian", decimal(at.ratio), share(at.posterior), share(at.difference)),
            (
                "Gaussian with the variance as printed, ln(1/δ)/ε²",
                decimal(printed.ratio),
                share(printed.posterior),
                share(printed.difference),
            ),
            (
                "any ε-private mechanism, at most",
                decimal(exp(-float(epsilon))),
                percent(most),
                percent(most - Fraction(1, 2)),
            ),
        ),
        Curves(
            "All have a 1; the adversary expects almost none",
            "people, as a power of ten",
            "belief in Alice's 1",
            (
                ("Gaussian noise", curve),
                ("any ε-private mechanism, at most", ((0.0, float(most)), (5.0, float(most)))),
                ("without Alice's row", ((0.0, 0.5), (5.0, 0.5))),
            ),
            at=log10(n),
        ),
    )


def _sure(people: float, variance: float) -> float:
    """Return the belief in the single 1 after the answer n, in floating point for the figure."""
    return 1 / (1 + exp(max(-700.0, (1 - 2 * people) / (2 * variance))))


SCREENS = (
    Screen(
        "informed",
        "What can someone learn who knows everybody else's data?",
        "Semantic security against an informed adversary is equivalent to ε-privacy (Dwork, McSherry, Nissim and Smith"
        " 2006, definition 6 and claim 3).",
        (
            base.epsilon("1.0986"),
            base.real(
                "prior",
                "Prior belief",
                "0.5",
                steps=("0.01", "0.1", "0.25", "0.5", "0.75", "0.9", "0.99"),
                low="0.000001",
                high="0.999999",
            ),
        ),
        informed_adversary,
    ),
    Screen(
        "simulator",
        "Could the answer have been made up without the unknown data?",
        "Simulatability: ε-private implies ε-simulatable, which implies 2ε-private (Dwork, McSherry, Nissim and Smith"
        " 2006, definition 4 and claim 2).",
        (
            base.epsilon(high="5"),
            base.whole("unknown", "Unknown rows", 1, steps=(1, 2), low=1, high=2),
            base.whole("default", "Default value", 1, steps=(0, 1, 2), low=0, high=2),
        ),
        simulator,
    ),
    Screen(
        "oblivious",
        "What if the adversary's beliefs are far from the truth?",
        "Reality-oblivious beliefs, and why semantic privacy draws the data from the belief (Kasiviswanathan and Smith"
        " 2014, claim 1.2).",
        (
            base.epsilon("0.5", high="5"),
            base.delta("1e-6", high="0.1"),
            base.whole(
                "n", "People", 100, steps=(1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 100000), low=1, high=100000
            ),
        ),
        oblivious,
    ),
)
