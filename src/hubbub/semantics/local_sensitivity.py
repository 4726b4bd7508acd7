"""Noise calibrated to local sensitivity, and how it leaks (Kasiviswanathan and Smith 2014, section 4).

Noise that fits most databases does not protect people in the others. This is for study only and cannot be charged to a
budget; for a guarantee to everybody, use the mechanisms that bound the global sensitivity, or `CALL median(…)`, whose
noise follows a smooth bound on the local one.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from hubbub.accounting import gaussian
from hubbub.core.finite import FiniteDistribution
from hubbub.core.reals import Enclosure
from hubbub.errors import ParameterError
from hubbub.mechanisms.enumeration import LossBounds, worst_ratio
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.bounds import local_beliefs

Row = TypeVar("Row", bound=Hashable)
Rows = tuple[Row, ...]


def median(rows: Rows[int]) -> int:
    """Return the lower median.

    >>> median((5, 1, 3)), median((1, 2, 3, 4))
    (3, 2)
    """
    return sorted(rows)[(len(rows) - 1) // 2]


def neighbors(rows: Rows[Row], domain: Sequence[Row]) -> tuple[Rows[Row], ...]:
    """List the databases that differ in one row."""
    return tuple(
        (*rows[:index], other, *rows[index + 1 :]) for index, row in enumerate(rows) for other in domain if other != row
    )


def local_sensitivity(function: Callable[[Rows[Row]], int], rows: Rows[Row], domain: Sequence[Row]) -> int:
    """Return the local sensitivity: the largest change of a function by one row of this database.

    >>> local_sensitivity(median, (0, 0, 0, 9, 9), range(10)), local_sensitivity(median, (0, 0, 0, 0, 9), range(10))
    (9, 0)
    """
    return max(abs(function(rows) - function(other)) for other in neighbors(rows, domain))


def gaussian_leak(*, epsilon: Fraction, delta: Fraction, bound: int, moved: int) -> Enclosure:
    """Enclose the true δ at ε of Gaussian noise for a local sensitivity of `bound`, where a function moves by `moved`.

    Theorem (Gaussian noise by local sensitivity). Gaussian noise that is (ε, δ)-private for functions that move by at
    most s makes answers (ε, δ)-indistinguishable at databases of local sensitivity at most s, so Corollary 4.4 holds
    with δ₂ = δ + δ₁ (Kasiviswanathan and Smith 2014, footnote 3). At others it is (ε, δ′) with this larger δ′ only.
    Tested   tests/semantics/test_local_sensitivity.py::test_gaussian_noise_for_a_local_sensitivity_leaks_too

    >>> _, high = gaussian_leak(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), bound=1, moved=8)
    >>> round(float(high), 4)
    0.2355
    """
    variance = gaussian.discrete_variance_for(epsilon=epsilon, delta=delta, sensitivity=bound)
    return gaussian.discrete_profile(epsilon=epsilon, sensitivity=moved, variance=variance).enclosure


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNoise:
    """Laplace noise calibrated to a local sensitivity of at most `bound`, clamped into a window; for study only.

    Theorem (Noise by local sensitivity). If the belief b gives probability at least 1 − δ₁ to the databases whose local
    sensitivity is at most s, f + Lap(s/ε) is as close in all games, for that belief, as (ε, δ₁)-privacy makes it.
    Proof    At those databases the answer is within e^{±ε} of that at every neighbor; `bounds.local_beliefs` with δ =
    0 (Kasiviswanathan and Smith 2014, Corollary 4.4).
    Leaves out  everybody else. Two databases whose values of f are kD apart lose k times what is said: see `leak`.
    Tested   tests/semantics/test_local_sensitivity.py::test_local_semantic_privacy_of_a_median_holds_in_the_exact_game
             tests/semantics/test_local_sensitivity.py::test_the_median_of_nearly_equal_data_leaks_under_plain_privacy
    """

    function: Callable[[Rows[int]], int]
    domain: Sequence[int]
    bound: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.bound < 1:
            raise ParameterError(
                "HB103", "The bound on the local sensitivity is below 1.", "Pass a bound of at least 1."
            )

    @property
    def noise(self) -> Laplace:
        """The noise."""
        return Laplace(sensitivity=self.bound, scale=self.bound / self.epsilon)

    def distribution(self, rows: Rows[int]) -> FiniteDistribution[int]:
        """List the distribution of the answer."""
        return self.noise.distribution(self.function(rows), (min(self.domain), max(self.domain)))

    def exceptions(self, prior: Mapping[Rows[int], Fraction]) -> Fraction:
        """Return δ₁, the prior probability of databases with a larger local sensitivity."""
        return sum(
            (b for rows, b in prior.items() if local_sensitivity(self.function, rows, self.domain) > self.bound),
            Fraction(0),
        )

    def guarantee(self, prior: Mapping[Rows[int], Fraction]) -> tuple[Fraction, Fraction]:
        """Bound how far a person's data changes this belief, and the probability that it changes more."""
        (people,) = {len(rows) for rows in prior}
        return local_beliefs(epsilon=self.epsilon, delta=Fraction(0), exceptions=self.exceptions(prior), people=people)

    def leak(self, rows: Rows[int], other: Rows[int]) -> LossBounds:
        """Enclose the true privacy loss between two databases."""
        return worst_ratio(self.distribution(rows), self.distribution(other))
