"""Screens about what follows from an answer: the one-time pad, the insurer, and what can never be promised.

Tested in tests/semantics/screens/test_readings.py.
"""

from fractions import Fraction
from functools import lru_cache
from math import exp

from hubbub.core.numbers import brief
from hubbub.core.odds import consequence
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.odds import group, percent, posterior, power
from hubbub.semantics.one_time_pad import guess_rates
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, share
from hubbub.semantics.screens.figures import Curves

_SLIDE = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3")


@lru_cache(maxsize=64)
def pad(*, epsilon: Fraction, n: int, width: int) -> Reading:
    """Tell how a useful release becomes the key to a secret of someone who is not in the data."""
    before, after = guess_rates(people=n, width=width, epsilon=epsilon)
    error = float(Laplace.from_epsilon(sensitivity=1, epsilon=epsilon).error(Fraction(95, 100)))
    rates = [guess_rates(people=n, width=width, epsilon=Fraction(each)) for each in _SLIDE]
    places = [float(each) for each in _SLIDE]
    return Reading(
        (
            f"A database will teach how many of {n:,} people have some trait; nobody knows the number now. Alice is not"
            " among them. She has a secret bit.",
            f"Somebody who knows the data and her secret publishes one more bit: her secret, encrypted. The key is"
            f" whether the count lies in an even or an odd bucket of width {width}. To anyone without the database it"
            f" is a one-time pad: their best guess at her secret is right with {share(Fraction(before))}.",
            f"Now the count is released with noise for ε = {brief(epsilon)} (95% margin of error ±{error:.0f}). The"
            f" best guess at Alice's secret is right with {share(Fraction(after))}. The more useful the release, the"
            " better the key: move ε.",
            "So no useful release, private or not, can promise that nothing about anybody can be learned from it"
            " together with other information (Dwork and Naor 2010). But Alice's data was not even used: refusing to"
            " take part would not have helped her. What differential privacy promises is that taking part makes no"
            " consequence more than e^ε times as likely (`hubbub explain insurer`).",
        ),
        ("ε", "right guesses"),
        tuple((each, share(Fraction(rate[1]))) for each, rate in zip(_SLIDE, rates, strict=True)),
        Curves(
            "Guesses at the secret of someone who is not in the data",
            "ε",
            "right guesses",
            (
                ("with the release", tuple(zip(places, (rate[1] for rate in rates), strict=True))),
                ("without it", tuple(zip(places, (rate[0] for rate in rates), strict=True))),
            ),
            at=float(epsilon),
        ),
    )


@lru_cache(maxsize=64)
def insurer(*, epsilon: Fraction, delta: Fraction, chance: Fraction) -> Reading:
    """Tell how much likelier a bad consequence can become by taking part."""
    most = power(epsilon=epsilon, delta=delta, level=chance)
    noise = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon).noise
    # an insurer who raises the premium from a threshold on: the chance without and with one more case in the count
    real = [(float(noise.tail(z).high), float(noise.tail(z - 1).high)) for z in range(-12, 41)]
    places = [k / 50 for k in range(51)]
    rare = (
        "A rare event can become many times as likely by δ alone; that is why δ must be far below the probability of"
        " anything that matters."
        if delta
        else "For thresholds beyond the count, it attains the factor."
    )
    return Reading(
        (
            "An insurer reads the published statistics and decides on Alice's premium by some rule."
            f" Suppose that without her data the premium rises with probability {share(chance)}.",
            f"With her data, it rises with probability at most {percent(most)}, whoever decides and whatever else they"
            f" know. {consequence(epsilon=epsilon, delta=delta)}",
            "What she should fear is not the study but the finding: if it shows that people like her are at risk, the"
            " premium may rise whether or not she took part (`hubbub explain smoking`).",
            "The figure shows an actual insurer too, who raises the premium when a count of cases with Laplace noise"
            f" reaches a threshold. {rare}",
        ),
        ("premium rises without her data", "with her data, at most"),
        tuple(
            (share(level), percent(power(epsilon=epsilon, delta=delta, level=level)))
            for level in dict.fromkeys((chance, Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)))
        ),
        Curves(
            "Probability that the premium rises",
            "without Alice's data",
            "with her data",
            (
                (
                    "bound for every insurer",
                    tuple((p, float(power(epsilon=epsilon, delta=delta, level=Fraction(p)))) for p in places),
                ),
                ("an insurer with a threshold", tuple(sorted(real))),
                ("no difference", ((0.0, 0.0), (1.0, 1.0))),
            ),
            at=float(chance),
        ),
    )


@lru_cache(maxsize=64)
def limits(*, epsilon: Fraction) -> Reading:
    """List what no mechanism can promise, and what hubbub does not."""
    ten = group(10, epsilon=epsilon, delta=Fraction(0))[0]
    even = Fraction(1, 2)
    shared = [posterior(even, epsilon=size * epsilon)[1] for size in (1, 10, 100)]
    places = [k / 20 for k in range(1, 41)]
    return Reading(
        (
            "Differential privacy promises one thing: that the answers, and all that follows from them, are almost the"
            " same whether or not one person's data is used. Everything below is outside that promise.",
            f"Some of it depends on ε. At ε = {brief(epsilon)}, a fact about one person goes from 50% to at most"
            f" {percent(shared[0])}; one that ten people share, to {percent(shared[1])}; one that a hundred share, to"
            f" {percent(shared[2])}.",
        ),
        ("not promised", "why", "see"),
        (
            (
                "that nothing is learned about you",
                "facts about people like you are what a study is for",
                "smoking, height",
            ),
            ("that a release is harmless with other information", "any useful answer can be a key", "pad, dalenius"),
            ("that a group is hidden", f"ten people lose 10ε = {brief(ten)}", "composition"),
            ("that others keep account", "two ε add up, also those of two owners", "composition"),
            ("that exact data published elsewhere stays safe", "no ε is spent there", "hubbub attack linkage"),
            ("that no answer is ever revealing", "with δ > 0, a rare one may be", "approximate, game"),
            ("that every belief, however wrong, stays put", "with δ > 0, it may not", "oblivious"),
            ("that few bits or small differences are enough", "they are not", "difference, information"),
            ("that a large ε means anything", "from ε = 7 on, almost any guess can be right", "--epsilon 7"),
            (
                "that the data is safe from its owner",
                "the owner and the machine are trusted",
                "docs/threat-model.md",
            ),
        ),
        Curves(
            "How sure someone can become who starts at 50%",
            "ε",
            "belief, at most",
            tuple(
                (name, tuple((x, 1 / (1 + exp(-size * x))) for x in places))
                for size, name in ((1, "a fact about one person"), (10, "shared by ten"), (100, "shared by a hundred"))
            ),
            at=float(epsilon),
        ),
    )


SCREENS = (
    Screen(
        "pad",
        "Can a release reveal the secret of someone who is not in the data?",
        "Yes, every useful one can: its answer serves as a one-time pad (Dwork 2011, after Dwork and Naor 2010).",
        (
            base.real("epsilon", "ε", "0.5", steps=_SLIDE, low="0.01", high="3"),
            base.whole("n", "People", 199, steps=(19, 39, 59, 99, 199, 399), low=1, high=400),
            base.whole("width", "Width of a bucket", 20, steps=(1, 2, 5, 10, 20, 50, 100), low=1, high=400),
        ),
        pad,
    ),
    Screen(
        "insurer",
        "Can taking part raise my premium?",
        "No consequence becomes more than e^ε times as likely (Dwork 2011).",
        (
            base.epsilon("1", high="5"),
            base.real("delta", "δ", "0", steps=("0", *base.DELTAS), low="0", high="0.5"),
            base.real(
                "chance",
                "Chance without your data",
                "0.1",
                steps=("0.001", "0.01", "0.05", "0.1", "0.2", "0.5", "0.9"),
                low="0.000001",
                high="1",
            ),
        ),
        insurer,
    ),
    Screen(
        "limits",
        "What can never be promised?",
        "The honest list: what differential privacy does not say.",
        (base.epsilon("0.1", high="5"),),
        limits,
    ),
)
