"""Screens about releases that look harmless and have no ε: noise on one side only, and a random part of the rows.

Tested in tests/semantics/screens/test_unprotected.py.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, log1p

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.interval import exp
from hubbub.core.numbers import brief
from hubbub.core.reals import Enclosure
from hubbub.mechanisms.enumeration import delta_at, total_variation, worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen, decimal, share
from hubbub.semantics.screens.figures import Bars, Curves

_COUNT = 100  #: a count with Alice; without her it is one less
_CUT = 100  #: probabilities of a geometric noise beyond this are one outcome
_LISTED = 20_000


def one_sided_noise(count: int, ratio: Fraction, shift: int) -> FiniteDistribution[int]:
    """List count − shift + Z, where Pr[Z = z] ∝ ratio^z for z ≥ 0: noise that never lowers an answer.

    Theorem (One-sided noise). Noise with a least value has an infinite loss, whatever is subtracted from the answer.
    Proof    The least answer of one count is impossible for a larger one. Its probability, 1 − ratio, is a δ that no
             ε makes smaller.
    Tested   tests/semantics/screens/test_unprotected.py::test_noise_on_one_side_has_no_epsilon_whatever_the_shift
    """
    mass = {count - shift + z: (1 - ratio) * ratio**z for z in range(_CUT)}
    return exact_distribution({**mass, count - shift + _CUT: ratio**_CUT})


def cut_noise(count: int, epsilon: Fraction, most: int) -> FiniteDistribution[int]:
    """List count + Z, where Z is two-sided geometric noise that is moved to ±most beyond that."""
    listed = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon).distribution(0, (-most, most))
    return FiniteDistribution({count + z: mass for z, mass in listed.mass.items()})


@lru_cache(maxsize=64)
def one_sided(*, epsilon: Fraction, shift: int) -> Reading:
    """Show that noise with a least value has no ε, and what cutting two-sided noise costs."""
    low, high = exp(-epsilon).enclosure
    # any ratio will do; this one decays as fast as Laplace noise
    ratio = Fraction(round((low + high) / 2 * 10**4), 10**4)
    one, two = (one_sided_noise(_COUNT - gone, ratio, shift) for gone in (0, 1))
    loss, slip = worst_ratio(one, two), delta_at(one, two, Fraction(50))
    noise, most = Laplace.from_epsilon(sensitivity=1, epsilon=epsilon), max(shift, 1)
    here, there = (noise.distribution(_COUNT - gone, (0, 200)) for gone in (0, 1))
    near, far = (cut_noise(_COUNT - gone, epsilon, most) for gone in (0, 1))
    places = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)
    return Reading(
        (
            "An owner wants no answer to be too small, and adds noise that is 0, 1, 2, … with decreasing"
            f" probability{f', then subtracts {shift}' if shift else ''}. With Alice the count is {_COUNT}, so no"
            f" answer below {_COUNT - shift} is possible; without her, {_COUNT - shift - 1} is, with probability"
            f" {share(1 - ratio)}. Whoever sees it knows that she is not in the data: the loss is infinite.",
            "Subtracting a constant moves all answers, and the smallest one still tells. Noise must reach to both"
            " sides, without an end: then every answer is possible with her and without her.",
            f"Two-sided noise that is cut at ±{most} needs a δ of {_small(delta_at(near, far, epsilon))} at ε ="
            f" {brief(epsilon)}: small where the cut is far out, and never 0.",
        ),
        ("noise", "loss by enumeration", "δ that no ε avoids"),
        (
            ("one-sided geometric", decimal(loss[0]), share(slip)),
            (
                f"two-sided, cut at ±{most}",
                decimal(worst_ratio(near, far)[0]),
                share(delta_at(near, far, Fraction(50))),
            ),
            (
                "two-sided (hubbub)",
                decimal(worst_ratio(here, there)),
                share(delta_at(here, there, epsilon + Fraction(1, 10**20))),
            ),
        ),
        Curves(
            "δ of two-sided noise that is cut at ±c",
            "c",
            "δ",
            ((f"at ε = {brief(epsilon)}", tuple((float(c), _cut_delta(epsilon, c)) for c in places)),),
            at=float(most),
            top=0.5,
        ),
    )


def _cut_delta(epsilon: Fraction, most: int) -> float:
    return float(delta_at(cut_noise(0, epsilon, most), cut_noise(1, epsilon, most), epsilon)[1])


def _small(chance: Enclosure) -> str:
    return f"{float(chance[1]):.2g}"


def subsamples(rows: tuple[int, ...], size: int) -> FiniteDistribution[tuple[int, ...]]:
    """List the random subsets of some rows, each as likely as the others.

    Theorem (Subsample and release). Releasing a random part of the rows has an infinite loss, however small it is.
    Proof    A subset with a given row is possible only where that row is in the data. Its probability, size/n, is
             also the statistical difference between neighbors, which bounds no loss.
    Tested   tests/semantics/screens/test_unprotected.py::test_a_part_of_the_rows_in_the_clear_has_no_epsilon
    """
    chosen = list(combinations(rows, size))
    return exact_distribution(dict.fromkeys(chosen, Fraction(1, len(chosen))))


@lru_cache(maxsize=64)
def subsample(*, n: int, size: int, epsilon: Fraction) -> Reading:
    """Show that publishing a random part of the rows has no ε, and what sampling is good for."""
    size = min(size, n)
    chance = Fraction(size, n)
    small = (n, size) if comb(n, size) <= _LISTED else (10, max(1, min(9, round(10 * chance))))
    people = tuple(range(small[0]))
    pair = [subsamples(rows, small[1]) for rows in (people, (*people[:-1], -1))]
    loss, apart = worst_ratio(*pair), total_variation(*pair)
    listed = f"{small[1]} of {small[0]} rows" + ("" if small == (n, size) else ", in small")
    amplified = log1p(float(chance) * (float(exp(epsilon).enclosure[1]) - 1))
    return Reading(
        (
            f"An owner publishes {size:,} of {n:,} rows, chosen at random, in the clear. Alice's row is among them with"
            f" probability {share(chance)}; if it is, everything about her is public. The loss is infinite, although"
            f" the statistical difference is only {decimal(apart)} ({listed}).",
            "Somebody's row is always published, so “it will probably be another one” protects nobody in particular.",
            f"Sampling helps where the sample is not published: a mechanism with ε = {brief(epsilon)} on it has ε ="
            f" {amplified:.4g} for all {n:,} people, ln(1 + (m/n)(e^ε − 1)).",
        ),
        ("release", "loss", "statistical difference"),
        (
            (f"{listed}, in the clear", decimal(loss[0]), decimal(apart)),
            (f"a private answer about {size:,} random rows", f"{amplified:.4g}", "–"),
        ),
        Bars(
            "How often a person's row is published",
            tuple(f"{each:,} of {n:,} rows" for each in dict.fromkeys((1, size, n))),
            (("in the clear", tuple(each / n for each in dict.fromkeys((1, size, n)))),),
        ),
    )


SCREENS = (
    Screen(
        "one-sided",
        "Noise on one side only",
        "Why noise must be able to lower an answer as well as raise it (Dwork 2011).",
        (base.epsilon("1", high="5"), base.whole("shift", "Shift", 3, steps=(0, 1, 3, 5, 10, 20, 50), low=0, high=50)),
        one_sided,
    ),
    Screen(
        "subsample",
        "A random part of the rows in the clear",
        "Why publishing a few rows at random has no ε (Dwork 2011).",
        (
            base.whole("n", "People", 10, steps=(2, 5, 10, 100, 10_000, 1_000_000), low=2, high=10**9),
            base.whole("size", "Rows published", 2, steps=(1, 2, 5, 10, 100), low=1, high=10**9),
            base.epsilon(),
        ),
        subsample,
    ),
)
