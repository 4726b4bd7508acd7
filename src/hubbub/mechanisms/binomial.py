"""Binomial noise: the number of heads among fair coins, less half of them."""

from dataclasses import dataclass
from fractions import Fraction
from math import comb

from hubbub.core import events, numbers
from hubbub.core.coins import MAX_COINS, binomial_delta, coins_for
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.loss import Approximate, Pure
from hubbub.errors import ParameterError
from hubbub.mechanisms.additive import check_size
from hubbub.noise.source import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Binomial:
    """Add the number of heads among `coins` fair coins, less half of them, to an integer.

    Theorem (Binomial mechanism). If f moves by at most D between neighbors, the answer is (ε, δ)-private with the exact
    δ of `binomial_delta` (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006, with the exact δ in the place of a
    bound). It has no pure loss: the noise has an end, beyond which an answer is impossible.
    Proof    See `binomial_delta`. Under composition an (ε, δ)-private mechanism is one that loses ε, but for a failure
             of probability δ (Kairouz, Oh and Viswanath 2015).
    Assumes  integer f; D for the relation of the unit; an even number of independent fair coins.
    Charges  Approximate(Pure(ε), δ).
    Error    at most half of the coins, always; `error` is the exact half width at a confidence level.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_binomial.py::test_binomial_noise_beside_the_geometric_law
    """

    sensitivity: int
    coins: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        numbers.sensitivity(self.sensitivity)
        if numbers.integer(self.coins, "coins", 2, MAX_COINS) % 2:
            raise ParameterError("HB103", "The number of coins is odd.", "Use an even number.")
        object.__setattr__(self, "epsilon", numbers.epsilon(self.epsilon))

    @classmethod
    def from_epsilon(cls, *, sensitivity: int, epsilon: numbers.Number, delta: numbers.Number) -> "Binomial":
        """Find the number of coins that (ε, δ) needs."""
        exact, slip = numbers.epsilon(epsilon), numbers.delta(delta)
        coins = coins_for(sensitivity=numbers.sensitivity(sensitivity), epsilon=exact, delta=slip)
        if coins is None:
            raise ParameterError(
                "HB103", f"More than {MAX_COINS:,} coins would be needed.", "Increase ε, or use Laplace noise."
            )
        return cls(sensitivity=sensitivity, coins=coins, epsilon=exact)

    @property
    def event(self) -> events.BinomialEvent:
        """The event that the ledger records."""
        return events.BinomialEvent(self.sensitivity, self.coins, self.epsilon)

    @property
    def loss(self) -> Approximate:
        """The loss ε with its exact δ."""
        delta = binomial_delta(coins=self.coins, sensitivity=self.sensitivity, epsilon=self.epsilon)
        return Approximate(Pure(self.epsilon), delta)

    def sample(self, value: int, source: RandomSource) -> int:
        """Toss all coins, 64 to a word, and add the heads."""
        words, rest = divmod(self.coins, 64)
        heads = int.from_bytes(source.words(words).tobytes(), "little").bit_count() if words else 0
        last = (int(source.words(1)[0]) & ((1 << rest) - 1)).bit_count() if rest else 0
        return int(value) + heads + last - self.coins // 2

    def distribution(self, value: int) -> FiniteDistribution[int]:
        """List the exact probabilities."""
        check_size(self.coins + 1)
        half, whole = self.coins // 2, 1 << self.coins
        return exact_distribution(
            {value + k - half: Fraction(comb(self.coins, k), whole) for k in range(self.coins + 1)}
        )

    def error(self, level: Fraction) -> Fraction:
        """Return the least w such that the noise is within ±w with probability at least `level`, exactly."""
        goal, half = numbers.confidence(level) * (1 << self.coins), self.coins // 2
        term = comb(self.coins, half)
        covered, width = term, 0
        while covered < goal:
            width += 1
            term = term * (half - width + 1) // (half + width)
            covered += 2 * term
        return Fraction(width)
