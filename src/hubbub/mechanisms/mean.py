"""A private mean, computed from a noisy sum and a noisy count."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core import events, numbers
from hubbub.core.distributions import half_width
from hubbub.core.finite import FiniteDistribution
from hubbub.core.loss import Pure, Zcdp
from hubbub.core.unit import Relation
from hubbub.errors import ParameterError
from hubbub.mechanisms import sensitivity
from hubbub.mechanisms.additive import Window, independent
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import RandomSource

Pair = tuple[int, int]  #: the sum of (value − center), and the number of rows


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMean:
    """Noise on the sum of distances from the center of the bounds, and on the count; the mean follows from both.

    Theorem (Mean from a pair). If neighbors move the sum by at most S and the count by at most C, then the pair with
    independent noises costs the sum of both losses, and every function of the noisy pair costs no more.
    Proof    Independent coordinates: log-ratios (and Rényi divergences) add up. The rest is post-processing.
    Assumes  values are integers in [lower, upper] (steps of a grid), clamped row by row.
    Charges  the composition of both events.
    Error    `interval` propagates both errors; it holds the true mean with probability at least its level.
    Tested   tests/mechanisms/test_mean.py::test_interval_holds_the_mean_wherever_the_noise_is_within_its_widths
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one

    Centering the values halves the sensitivity for bounds such as [18, 90]: an absent row then counts as the center.
    """

    lower: int
    upper: int
    total: Laplace | Gaussian
    count: Laplace | Gaussian

    def __post_init__(self) -> None:
        lower = numbers.integer(self.lower, "lower", -numbers.SENSITIVITY_MAX, numbers.SENSITIVITY_MAX - 1)
        numbers.integer(self.upper, "upper", lower + 1, numbers.SENSITIVITY_MAX)
        if (type(self.total), type(self.count)) not in ((Laplace, Laplace), (Gaussian, Gaussian)):
            raise ParameterError(
                "HB155", "The two noises are of different kinds.", "Pass two Laplace or two Gaussian mechanisms."
            )

    @classmethod
    def from_epsilon(
        cls, *, lower: int, upper: int, rows: int, relation: Relation, epsilon: numbers.Number
    ) -> "NoisyMean":
        """Split ε evenly: at the bounds, the errors of sum and count then have the same effect.

        >>> NoisyMean.from_epsilon(lower=18, upper=90, rows=1, relation=Relation.ADD_REMOVE, epsilon=1).total
        Laplace(sensitivity=36, scale=Fraction(72, 1))
        """
        half = numbers.epsilon(epsilon) / 2
        center = _center(lower, upper)
        of_total = sensitivity.of_sum(lower=lower - center, upper=upper - center, rows=rows, relation=relation)
        # a unit may have no rows, so a replacement also changes the count by at most `rows`
        of_count = sensitivity.of_sum(lower=0, upper=1, rows=rows, relation=relation)
        return cls(
            lower=lower,
            upper=upper,
            total=Laplace(sensitivity=of_total, scale=of_total / half),
            count=Laplace(sensitivity=of_count, scale=of_count / half),
        )

    @property
    def center(self) -> int:
        """The value that is subtracted from each row before summing."""
        return _center(self.lower, self.upper)

    @property
    def event(self) -> events.Composed:
        """The composition of both events."""
        return events.Composed(((self.total.event, 1), (self.count.event, 1)))

    @property
    def loss(self) -> Pure | Zcdp:
        """The sum of both losses, attained where a unit moves the sum and the count at once."""
        if isinstance(self.total, Laplace) and isinstance(self.count, Laplace):
            return Pure(self.total.loss.epsilon + self.count.loss.epsilon)
        if isinstance(self.total, Gaussian) and isinstance(self.count, Gaussian):
            return Zcdp(self.total.loss.rho + self.count.loss.rho)
        raise AssertionError("both noises are of one kind")

    def sample(self, value: Pair, source: RandomSource) -> Pair:
        """Add noise to the centered sum and to the count."""
        return self.total.sample(value[0], source), self.count.sample(value[1], source)

    def distribution(self, value: Pair, window: Window | None = None) -> FiniteDistribution[tuple[int, ...]]:
        """List the distribution of the pair."""
        return independent([self.total.distribution(value[0], window), self.count.distribution(value[1], window)])

    def error(self, level: Fraction) -> Fraction:
        """Bound the error of the noisy sum; that of the mean depends on the count: see `interval`."""
        return self.total.error(level)

    def answer(self, noisy: Pair) -> Fraction:
        """Estimate the mean from a noisy pair, clamped into the bounds; the center if the noisy count is below 1.

        >>> m = NoisyMean.from_epsilon(lower=0, upper=100, rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
        >>> m.answer((-300, 30))
        Fraction(40, 1)
        """
        total, count = noisy
        return self._clamped(Fraction(total, count)) if count >= 1 else Fraction(self.center)

    def interval(self, noisy: Pair, level: Fraction) -> tuple[Fraction, Fraction]:
        """Enclose the true mean (of at least one row) with probability at least `level`.

        Each noise exceeds its width with at most half of the failure probability, so both are within with probability
        at least `level`; then the mean lies between the extreme quotients.
        """
        one_noise = 1 - (1 - numbers.confidence(level)) / 2
        total, count = noisy
        total_width = half_width(self.total.noise, one_noise)
        count_width = half_width(self.count.noise, one_noise)
        fewest, most = max(1, count - count_width), max(1, count + count_width)
        low, high = total - total_width, total + total_width
        return (
            self._clamped(Fraction(low, fewest if low < 0 else most)),
            self._clamped(Fraction(high, fewest if high > 0 else most)),
        )

    def _clamped(self, centered: Fraction) -> Fraction:
        return min(max(self.center + centered, Fraction(self.lower)), Fraction(self.upper))


def _center(lower: int, upper: int) -> int:
    return (lower + upper) // 2
