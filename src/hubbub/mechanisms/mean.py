"""A mean, as a noisy sum over a noisy count."""

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

Pair = tuple[int, int]  #: the sum of (value − centre), and the number of rows


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMean:
    """Noise on the sum about the centre of the bounds, and noise on the count; the mean follows from both.

    Theorem (Mean from a pair). If neighbors move the sum by at most S and the count by at most C, then the pair with
    independent noises costs the sum of both losses, and every function of the noisy pair costs no more.
    Proof    Independent coordinates: log-ratios (and Rényi divergences) add up. The rest is post-processing.
    Assumes  values are integers in [lower, upper] (steps of a grid), clamped row by row.
    Charges  Together of both events.
    Error    `interval` propagates both errors; it holds the true mean with probability at least its level.
    Tested   tests/mechanisms/test_mean.py::test_interval_holds_the_mean_wherever_the_noise_is_within_its_widths
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one

    Taking values from the centre halves the sensitivity of bounds such as [18, 90]: an absent row then counts as the
    centre.
    """

    lower: int
    upper: int
    total: Laplace | Gaussian
    count: Laplace | Gaussian

    def __post_init__(self) -> None:
        lower = numbers.integer(self.lower, "lower", -numbers.SENSITIVITY_MAX, numbers.SENSITIVITY_MAX - 1)
        numbers.integer(self.upper, "upper", lower + 1, numbers.SENSITIVITY_MAX)
        if (type(self.total), type(self.count)) not in ((Laplace, Laplace), (Gaussian, Gaussian)):
            raise ParameterError("HB155", "the two noises are not of one kind.", "Give two Laplace or two Gaussian.")

    @classmethod
    def from_epsilon(
        cls, *, lower: int, upper: int, rows: int, relation: Relation, epsilon: numbers.Number
    ) -> "NoisyMean":
        """Split ε evenly: the sum's error is then as large as the count's at the bounds' ends.

        >>> NoisyMean.from_epsilon(lower=18, upper=90, rows=1, relation=Relation.ADD_REMOVE, epsilon=1).total
        Laplace(sensitivity=36, scale=Fraction(72, 1))
        """
        half = numbers.epsilon(epsilon) / 2
        centre = _centre(lower, upper)
        moved = sensitivity.of_sum(lower=lower - centre, upper=upper - centre, rows=rows, relation=relation)
        # a unit may own no row, so also a replacement moves the count by `rows` at most
        counted = sensitivity.of_sum(lower=0, upper=1, rows=rows, relation=relation)
        return cls(
            lower=lower,
            upper=upper,
            total=Laplace(sensitivity=moved, scale=moved / half),
            count=Laplace(sensitivity=counted, scale=counted / half),
        )

    @property
    def centre(self) -> int:
        """The point that values are taken from before they are added up."""
        return _centre(self.lower, self.upper)

    @property
    def event(self) -> events.Composed:
        """The facts of both noises."""
        return events.Composed(((self.total.event, 1), (self.count.event, 1)))

    @property
    def loss(self) -> Pure | Zcdp:
        """The sum of both losses, attained where a unit moves the sum and the count at once."""
        if isinstance(self.total, Laplace) and isinstance(self.count, Laplace):
            return Pure(self.total.loss.epsilon + self.count.loss.epsilon)
        if isinstance(self.total, Gaussian) and isinstance(self.count, Gaussian):
            return Zcdp(self.total.loss.rho + self.count.loss.rho)
        raise AssertionError("two noises of one kind")

    def sample(self, value: Pair, source: RandomSource) -> Pair:
        """Add noise to the sum about the centre and to the count."""
        return self.total.sample(value[0], source), self.count.sample(value[1], source)

    def distribution(self, value: Pair, window: Window | None = None) -> FiniteDistribution[tuple[int, ...]]:
        """Write out the pair's distribution."""
        return independent([self.total.distribution(value[0], window), self.count.distribution(value[1], window)])

    def error(self, level: Fraction) -> Fraction:
        """Bound the error of the noisy sum; that of the mean depends on the count: see `interval`."""
        return self.total.error(level)

    def answer(self, noisy: Pair) -> Fraction:
        """Estimate the mean from a noisy pair, inside the bounds; the centre where the count says nothing.

        >>> m = NoisyMean.from_epsilon(lower=0, upper=100, rows=1, relation=Relation.ADD_REMOVE, epsilon=1)
        >>> m.answer((-300, 30))
        Fraction(40, 1)
        """
        total, count = noisy
        return self._clamped(Fraction(total, count)) if count >= 1 else Fraction(self.centre)

    def interval(self, noisy: Pair, level: Fraction) -> tuple[Fraction, Fraction]:
        """Enclose the true mean (of at least one row) with probability at least `level`.

        Each noise is within its width but for half of the failure probability, so both are at once with probability at
        least `level`; then the mean lies between the extreme quotients.
        """
        each = 1 - (1 - numbers.confidence(level)) / 2
        total, count = noisy
        wide, long = half_width(self.total.noise, each), half_width(self.count.noise, each)
        fewest, most = max(1, count - long), max(1, count + long)
        low, high = total - wide, total + wide
        return (
            self._clamped(Fraction(low, fewest if low < 0 else most)),
            self._clamped(Fraction(high, fewest if high > 0 else most)),
        )

    def _clamped(self, about_centre: Fraction) -> Fraction:
        return min(max(self.centre + about_centre, Fraction(self.lower)), Fraction(self.upper))


def _centre(lower: int, upper: int) -> int:
    return (lower + upper) // 2
