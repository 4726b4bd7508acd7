"""Pan-private density: the fraction of a universe that has appeared in a stream, from a table of random bits."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers, reals
from hubbub.core.events import Composed, ResponseEvent
from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.bernoulli import bernoulli
from hubbub.noise.source import RandomSource

Bits = NDArray[np.bool_]

#: Maximum number of elements in a universe: two megabytes of bits.
MAX_UNIVERSE = 1 << 24

#: Decimal places of a share of ε, so that sums of many shares stay short.
PLACES = 24

_HALF = Fraction(1, 2)
_SHARES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Density:
    """One bit per element: a fair coin at first, tossed again with bias ½ + bias at each of its arrivals.

    Theorem (Pan-private density). Let streams be neighbors if they differ in the arrivals of one element (at each of
    these times the element arrives in one stream, and nothing in the other). For every such pair, the bits at one
    moment that the curator does not choose, together with all answers, are (state + outputs·answer)-private, where
    state = −ln(1 − 2·bias) and answer = 1/scale: a look into the state costs `state`, each answer `answer`
    (Dwork, Naor, Pitassi, Rothblum and Yekhanin 2010; Dwork 2011, with the noise corrected).
    Proof    Let x be the element. The other bits have the same distribution in both streams; fix them. Sum over the
             histories of x's bit: those that show b at the look have probability P(b), which is ½ if x did not arrive
             before, else ½ ± bias, whatever came earlier; so P(b) changes by a factor 1 ± 2·bias or the inverse of one,
             and |ln| of that is at most −ln(1 − 2·bias). Along each history an answer's factor is the noise at one of
             two neighboring counts, so it lies between the smaller and the larger of two values whose ratio is at most
             e^(1/scale), and these are the same for both streams. The bounds multiply.
    Assumes  one look. Two looks at different times may not be private at all: a bit that changed had an arrival. The
             state holds the bits and no count of arrivals. The bits are sampled exactly.
    Charges  Response(2, state), which dominates every pair of that pure loss, and Laplace(1, scale) for each answer.
             The pure loss holds whenever the look happens. That the Rényi curve and the Gaussian price of these events
             hold is shown for a fixed time of the look only, not for one that follows the answers.
    Error    deviation of the answer √(|X|/4 + 2·scale²)/(|X|·bias) at most: see `deviation`.
             As printed (Dwork 2011), noise of scale 1/(ε|X|) is added after scaling by 4/ε, which is ¼ on the number
             of ones: once the state was seen, that answer alone loses 3.7 at ε = 1, where 1 is claimed.
    Tested   tests/analyses/streams/test_density.py::test_state_and_answer_together_keep_their_promise_exactly
             tests/analyses/streams/test_density.py::test_the_printed_noise_loses_far_more_once_the_state_was_seen
             tests/analyses/streams/test_density.py::test_two_looks_are_one_too_many

    Theorem (Replaced elements). Let neighbors differ in the arrivals of `elements` elements: 1 under add/remove, 2
    under replace, where the arrivals of one element are removed and those of another added. One look and all answers
    lose at most `elements` times as much as above.
    Proof    Change the elements one after the other. Each step is a pair of the theorem above, and pure losses add up.
    Charges  Response(2, elements·state of one) and Laplace(elements, scale) for each answer.
    Tested   tests/analyses/streams/test_contract.py::test_every_kind_of_stream_keeps_what_it_charges
             tests/analyses/streams/test_contract.py::test_the_enumeration_finds_a_density_that_ignores_the_relation
    """

    size: int
    bias: Fraction
    scale: Fraction
    outputs: int
    elements: int = 1

    def __post_init__(self) -> None:
        numbers.integer(self.size, "universe", 1, MAX_UNIVERSE)
        numbers.integer(self.outputs, "outputs", 1, 10**6)
        numbers.integer(self.elements, "elements", 1, 2)
        if not 0 < self.bias < _HALF:
            raise QueryError("HB530", "ε is too large: the bias of the coin must be less than ½.", "Lower ε.")
        object.__setattr__(self, "scale", numbers.scale(self.scale))

    @classmethod
    def from_epsilon(cls, *, size: int, epsilon: numbers.Number, outputs: int, elements: int = 1) -> "Density":
        """Split ε between the state and the answers so that the error of an answer is smallest.

        The coin has the largest bias that the state's share for one element allows: bias = (1 − e^−ε)/2.
        """
        total = numbers.epsilon(epsilon)
        numbers.integer(size, "universe", 1, MAX_UNIVERSE)
        numbers.integer(outputs, "outputs", 1, 10**6)

        def with_share(share: int) -> "Density":
            state = reals.floor_to(total * share / _SHARES, PLACES)
            bias = reals.floor_to((1 - reals.exp(-state / elements)[1]) / 2, numbers.MAX_PLACES)
            scale = elements / reals.floor_to((total - state) / outputs, PLACES)
            return cls(size=size, bias=bias, scale=scale, outputs=outputs, elements=elements)

        return min(map(with_share, range(1, _SHARES)), key=lambda density: density.deviation(Fraction(0)))

    @classmethod
    def printed(cls, *, size: int, epsilon: numbers.Number, outputs: int = 1, elements: int = 1) -> "Density":
        """Use the coin ½ + ε/4 of the literature, with the answer's noise corrected: 2ε in total for one answer.

        ε is for one element. The state is ε-private only while 1 − ε/2 ≥ e^−ε, that is, up to ε = 1.5936.
        """
        half = numbers.epsilon(epsilon)
        if not 1 - half / 2 >= reals.exp(-half)[1]:
            raise QueryError(
                "HB530",
                "With classic, the state is ε-private only up to ε = 1.5936.",
                "Use a smaller ε, or omit classic.",
            )
        return cls(size=size, bias=half / 4, scale=1 / half, outputs=outputs, elements=elements)

    @property
    def state(self) -> Fraction:
        """The loss of one intrusion, for all elements that one unit changes, rounded up."""
        return self.elements * reals.ceil_to(-reals.log(1 - 2 * self.bias)[0], numbers.MAX_PLACES)

    @property
    def answer(self) -> Laplace:
        """The noise on the number of ones."""
        return Laplace(sensitivity=self.elements, scale=self.scale)

    @property
    def event(self) -> Composed:
        """The privacy event that is charged: one intrusion and all answers."""
        return Composed(((ResponseEvent(2, self.state), 1), (self.answer.event, self.outputs)))

    def start(self, source: RandomSource) -> Bits:
        """Toss a fair coin for every element."""
        return bernoulli(probability=_HALF, count=self.size, source=source)

    def take(self, bits: Bits, elements: NDArray[np.int64], source: RandomSource) -> Bits:
        """Add arrivals, given as indexes of elements; an index outside the universe is ignored.

        An element that arrives several times is tossed once, because only its last toss matters.
        """
        present = np.unique(elements[(elements >= 0) & (elements < self.size)])
        after = bits.copy()
        after[present] = bernoulli(probability=_HALF + self.bias, count=len(present), source=source)
        return after

    def noisy_count(self, bits: Bits, source: RandomSource) -> int:
        """Return the number of ones plus noise: one of the answers."""
        return self.answer.sample(int(np.count_nonzero(bits)), source)

    def estimate(self, noisy: int) -> float:
        """Turn a noisy count of ones into an unbiased estimate of the fraction of the universe that has arrived."""
        return float((Fraction(noisy, self.size) - _HALF) / self.bias)

    def deviation(self, density: Fraction) -> float:
        """Return the standard deviation of the estimate if `density` is the true value."""
        present = self.size * min(max(density, Fraction(0)), Fraction(1))
        coins = (self.size - present) / 4 + present * (Fraction(1, 4) - self.bias**2)
        return math.sqrt(coins + self.answer.variance[1]) / (self.size * float(self.bias))

    # --- exact distributions, for the audit ---------------------------------------------------------------------------

    def starts(self) -> FiniteDistribution[tuple[bool, ...]]:
        """Return the distribution of the bits before any arrival."""
        rows = list(product((False, True), repeat=self.size))
        return exact_distribution(dict.fromkeys(rows, Fraction(1, len(rows))))

    def steps(self, bits: tuple[bool, ...], element: int | None) -> FiniteDistribution[tuple[bool, ...]]:
        """Return the distribution of the bits after one more arrival (None: nothing arrives)."""
        if element is None:
            return exact_distribution({bits: Fraction(1)})
        one, zero = ((*bits[:element], bit, *bits[element + 1 :]) for bit in (True, False))
        return exact_distribution({one: _HALF + self.bias, zero: _HALF - self.bias})

    def answers(self, bits: tuple[bool, ...]) -> FiniteDistribution[int]:
        """Return the distribution of one answer, with the mass beyond the possible counts collected at both ends."""
        return self.answer.distribution(sum(bits), window=(-1, self.size + 1))
