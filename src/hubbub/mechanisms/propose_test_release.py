"""Propose a bound on the local sensitivity, test it, and release an answer only where it holds with room to spare."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.core import events, numbers
from hubbub.core.distributions import DiscreteLaplace, half_width, least, slip
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import Interval
from hubbub.core.loss import Approximate, Pure
from hubbub.mechanisms import additive
from hubbub.mechanisms.additive import Window
from hubbub.mechanisms.smooth import LocalValue
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease:
    """Release f + Lap(bound/ε₂) if the noisy distance to data of larger local sensitivity is large enough.

    Theorem (Propose, test, release). Let d(x) count the units that must change before one more can move f by more than
    `bound`. Test whether d(x) + Lap(1/ε₁) ≥ margin, and release f(x) with Laplace noise of scale bound/ε₂ only if it
    is. This is (ε₁ + ε₂, δ)-private with δ = Pr[Lap(1/ε₁) ≥ margin] (Dwork and Lei 2009).
    Proof    d changes by at most 1 between neighbors, so the test is ε₁-private. If f and f′ are at most `bound` apart,
             the two compose to ε₁ + ε₂. Otherwise d = 0 on both sides, either side passes the test with probability at
             most δ, and that there is no answer is ε₁-private.
    Assumes  `LocalValue`'s conditions, with as many bounds listed for every dataset; exact sampling.
    Charges  Approximate(Pure(ε₁ + ε₂), δ).
    Error    that of the Laplace mechanism, where there is an answer.
    Tested   tests/mechanisms/test_smooth.py::test_every_dataset_of_a_small_universe_stays_within_the_loss
             tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
    """

    bound: int
    margin: int
    test_scale: Fraction
    answer_scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", numbers.sensitivity(self.bound, "bound"))
        object.__setattr__(self, "margin", numbers.sensitivity(self.margin, "margin"))
        for name in ("test_scale", "answer_scale"):
            object.__setattr__(self, name, numbers.scale(getattr(self, name), name))

    @classmethod
    def from_epsilon(cls, *, bound: int, epsilon: numbers.Number, delta: numbers.Number) -> "ProposeTestRelease":
        """Spend half of ε on the test, and take the least margin whose δ is within the given one."""
        half, allowed = numbers.epsilon(epsilon) / 2, numbers.delta(delta)
        noise = DiscreteLaplace(1 / half)
        margin = max(1, least(lambda w: slip(noise, w, 1) <= allowed, noise.guess(float(allowed))))
        scale = numbers.sensitivity(bound, "bound") / half
        return cls(bound=bound, margin=margin, test_scale=1 / half, answer_scale=scale)

    @property
    def event(self) -> events.ProposalEvent:
        """The event that the ledger records."""
        return events.ProposalEvent(
            events.LaplaceEvent(1, self.test_scale), events.LaplaceEvent(self.bound, self.answer_scale), self.margin
        )

    @property
    def loss(self) -> Approximate:
        """The losses of the test and of the answer, and the chance that the test passes where it should not."""
        return Approximate(Pure(1 / self.test_scale + self.bound / self.answer_scale), slip(self._test, self.margin, 1))

    def sample(self, value: LocalValue, source: RandomSource) -> int | None:
        """Release a noisy value, or None; both noises are drawn in any case, so that both take the same time."""
        test = int(discrete_laplace(scale=self.test_scale, count=1, source=source)[0])
        noise = int(discrete_laplace(scale=self.answer_scale, count=1, source=source)[0])
        return value.value + noise if value.distance(self.bound) + test >= self.margin else None

    def distribution(self, value: LocalValue, window: Window | None = None) -> FiniteDistribution[int | None]:
        """List the distribution of the answer, up to 10⁻³⁰ or, clamped into a window, completely."""
        passes = self._test.tail(self.margin - value.distance(self.bound))
        answer = additive.distribution(DiscreteLaplace(self.answer_scale), value.value, window)
        mass: dict[int | None, tuple[Fraction, Fraction]] = {None: (1 - passes).enclosure}
        for outcome, chance in answer.mass.items():
            mass[outcome] = (passes * Interval.of(chance)).enclosure
        return FiniteDistribution(mass, answer.tail)

    def error(self, level: Fraction) -> Fraction:
        """Return the half width of an answer, if there is one."""
        return Fraction(half_width(DiscreteLaplace(self.answer_scale), numbers.confidence(level)))

    def pair_loss(self, one: LocalValue, two: LocalValue) -> Fraction | None:
        """Bound the loss between two values, but for δ; None if neither noise nor δ covers it. For audits."""
        moved, distances = abs(one.value - two.value), [value.distance(self.bound) for value in (one, two)]
        test = abs(distances[0] - distances[1]) / self.test_scale
        if moved <= self.bound:
            return test + moved / self.answer_scale
        return test if distances == [0, 0] else None

    @property
    def _test(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.test_scale)
