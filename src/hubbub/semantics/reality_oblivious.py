"""An adversary whose beliefs are far from the truth: the counterexample of Dwork and McSherry.

Semantic privacy samples the data from the adversary's own belief. If it must hold for any data instead
(reality-oblivious), Gaussian noise fails: an adversary who considers only two databases, both far from the truth, takes
the answer as overwhelming evidence for one of them. This is the effect of a wrong belief and not a leak: the answer is
private all along, and pure ε-privacy bounds even this adversary.
"""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.accounting import gaussian
from hubbub.core import numbers
from hubbub.core.interval import Interval, exp
from hubbub.core.reals import Enclosure


@dataclass(frozen=True, slots=True)
class Surprise:
    """The adversary considers "all zeros" and "a single one" equally likely; in truth all n rows are ones.

    Theorem (Reality-oblivious beliefs). With Gaussian noise of variance σ² on the sum, after the answer n the first is
    exp((1 − 2n)/(2σ²)) times as likely as the second, so that the belief in the second, a fixed ½ in the game without
    that row, tends to 1 as n grows, at any fixed (ε, δ).
    Proof    The densities at n are those of n and of n − 1 from the center: exp(−n²/2σ²) over exp(−(n−1)²/2σ²)
    (Kasiviswanathan and Smith 2014, Claim 1.2). Under ε-privacy the ratio is within e^{±ε} whatever comes.
    Tested   tests/semantics/test_reality_oblivious.py::test_a_hundred_ones_surprise_whoever_believed_in_zeros
             tests/semantics/test_reality_oblivious.py::test_pure_privacy_bounds_even_the_surprised
    """

    people: int
    variance: Fraction

    @property
    def ratio(self) -> Enclosure:
        """Enclose the likelihood ratio of the answer under "all zeros" and "a single one"."""
        return exp(Fraction(1 - 2 * self.people) / (2 * self.variance)).enclosure

    @property
    def posterior(self) -> Enclosure:
        """Enclose the belief in "a single one" after the answer n; without that row it stays ½."""
        return (1 / (1 + Interval.of(self.ratio))).enclosure

    @property
    def difference(self) -> Enclosure:
        """Enclose the difference between the beliefs with and without the row."""
        low, high = self.posterior
        return low - Fraction(1, 2), high - Fraction(1, 2)


def surprise(*, people: int, epsilon: Fraction, delta: Fraction) -> Surprise:
    """Calibrate the noise to (ε, δ) by its exact privacy profile.

    The variance ln(1/δ)/ε² of the paper is not always enough: at (1, 10⁻⁵) it has a δ of 4.3·10⁻⁵.
    """
    people = numbers.integer(people, "people", 1, 10**9)
    return Surprise(people, gaussian.variance_for(epsilon=epsilon, delta=delta, sensitivity_squared=1))
