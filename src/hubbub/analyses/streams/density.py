"""How much of a universe has ever appeared in a stream, from a table of bits that is private at every moment."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers, reals
from hubbub.core.events import Composed, ResponseEvent
from hubbub.core.finite import Finite, exactly
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.bernoulli import bernoulli
from hubbub.noise.source import Source

Bits = NDArray[np.bool_]

#: Elements that a universe has at most: two megabytes of bits.
MOST = 1 << 24

#: Shares of ε are cut to so many places, so that they can be added up for ever.
PLACES = 24

_HALF = Fraction(1, 2)
_SHARES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Density:
    """One bit for each element: a fair coin at first, a coin of ½ + bias from each of its arrivals on.

    Theorem (Pan-private density). Let streams be neighbors if they differ in what happens at the arrivals of one
    element (it may arrive at any of these times, or nothing may). For every such pair, the bits at one moment that the
    keeper does not choose, together with all answers, are (state + outputs·answer)-private, where
    state = −ln(1 − 2·bias) and answer = 1/scale: a look into the state costs `state`, each answer `answer`
    (Dwork, Naor, Pitassi, Rothblum and Yekhanin 2010; Dwork 2011, with the noise corrected).
    Proof    Let x be the element. The other bits have one law in both streams; fix them. Sum over the histories of
             x's bit: those that show b at the look have probability P(b), which is ½ if x did not arrive before, else
             ½ ± bias, whatever came earlier; so P(b) changes by a factor 1 ± 2·bias or the inverse of one, and |ln|
             of that is at most −ln(1 − 2·bias). Along each history an answer's factor is the noise at one of two
             neighboring counts, so it lies between the smaller and the larger of two values whose ratio is at most
             e^(1/scale), and these are the same for both streams. The bounds multiply.
    Assumes  one look. Two looks at different times may not be private at all: a bit that changed had an arrival. The
             state holds the bits and no count of arrivals. The bits are drawn exactly.
    Charges  Response(2, state), which dominates every pair of that pure loss, and Laplace(1, scale) for each answer.
    Error    deviation of the answer √(|X|/4 + 2·scale²)/(|X|·bias) at most: see `deviation`.
             As printed (Dwork 2011), noise of scale 1/(ε|X|) is added after scaling by 4/ε, which is ¼ on the number
             of ones: once the state was seen, that answer alone loses 3.7 at ε = 1, where 1 is promised.
    Tested   tests/analyses/streams/test_density.py::test_state_and_answer_together_keep_their_promise_exactly
             tests/analyses/streams/test_density.py::test_the_printed_noise_loses_far_more_once_the_state_was_seen
             tests/analyses/streams/test_density.py::test_two_looks_are_one_too_many

    Theorem (Replaced elements). Let neighbors differ in the arrivals of `elements` elements: 1 under add/remove, 2
    under replace, where one element's arrivals go and another's come. One look and all answers lose at most `elements`
    times as much as above.
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
        numbers.integer(self.size, "universe", 1, MOST)
        numbers.integer(self.outputs, "outputs", 1, 10**6)
        numbers.integer(self.elements, "elements", 1, 2)
        if not 0 < self.bias < _HALF:
            raise QueryError("HB530", "the coin of an element that arrived lies between ½ and 1.", "Lower ε.")
        object.__setattr__(self, "scale", numbers.scale(self.scale))

    @classmethod
    def from_epsilon(cls, *, size: int, epsilon: numbers.Number, outputs: int, elements: int = 1) -> "Density":
        """Share ε between the state and so many answers, so that an answer is as exact as can be.

        The coin is as far from fair as the state's share of one element allows: bias = (1 − e^−ε)/2.
        """
        whole = numbers.epsilon(epsilon)
        numbers.integer(size, "universe", 1, MOST)
        numbers.integer(outputs, "outputs", 1, 10**6)

        def with_share(share: int) -> "Density":
            state = reals.floor_to(whole * share / _SHARES, PLACES)
            bias = reals.floor_to((1 - reals.exp(-state / elements)[1]) / 2, numbers.MAX_PLACES)
            scale = elements / reals.floor_to((whole - state) / outputs, PLACES)
            return cls(size=size, bias=bias, scale=scale, outputs=outputs, elements=elements)

        return min(map(with_share, range(1, _SHARES)), key=lambda made: made.deviation(Fraction(0)))

    @classmethod
    def printed(cls, *, size: int, epsilon: numbers.Number, outputs: int = 1, elements: int = 1) -> "Density":
        """Take the coin ½ + ε/4 of the literature, with the answer's noise corrected: 2ε in all for one answer.

        ε is for one element. The state keeps it only while 1 − ε/2 ≥ e^−ε, that is up to ε = 1.5936.
        """
        half = numbers.epsilon(epsilon)
        if not 1 - half / 2 >= reals.exp(-half)[1]:
            raise QueryError(
                "HB530",
                "with a coin of ½ + ε/4 the state keeps ε only up to ε = 1.5936.",
                "Take a smaller ε, or the coin that hubbub chooses by itself.",
            )
        return cls(size=size, bias=half / 4, scale=1 / half, outputs=outputs, elements=elements)

    @property
    def state(self) -> Fraction:
        """The loss of a look, for all elements that one unit changes, rounded up."""
        return self.elements * reals.ceil_to(-reals.log(1 - 2 * self.bias)[0], numbers.MAX_PLACES)

    @property
    def answer(self) -> Laplace:
        """What is added to the number of ones."""
        return Laplace(sensitivity=self.elements, scale=self.scale)

    @property
    def event(self) -> Composed:
        """What is charged: one look, and every answer."""
        return Composed(((ResponseEvent(2, self.state), 1), (self.answer.event, self.outputs)))

    def start(self, source: Source) -> Bits:
        """Toss a fair coin for every element."""
        return bernoulli(probability=_HALF, count=self.size, source=source)

    def take(self, bits: Bits, elements: NDArray[np.int64], source: Source) -> Bits:
        """Let elements arrive, by number; numbers outside of the universe are nothing.

        An element that arrives several times is tossed once for all of them: its last toss is the one that stays.
        """
        present = np.unique(elements[(elements >= 0) & (elements < self.size)])
        after = bits.copy()
        after[present] = bernoulli(probability=_HALF + self.bias, count=len(present), source=source)
        return after

    def tell(self, bits: Bits, source: Source) -> int:
        """Count the ones, with noise: one of the answers."""
        return self.answer.sample(int(np.count_nonzero(bits)), source)

    def estimate(self, noisy: int) -> float:
        """Turn a noisy count of ones into the part of the universe that has arrived, without bias."""
        return float((Fraction(noisy, self.size) - _HALF) / self.bias)

    def deviation(self, density: Fraction) -> float:
        """Give the estimate's standard deviation where that part is true."""
        present = self.size * min(max(density, Fraction(0)), Fraction(1))
        coins = (self.size - present) / 4 + present * (Fraction(1, 4) - self.bias**2)
        return math.sqrt(coins + self.answer.variance[1]) / (self.size * float(self.bias))

    # --- laws, for the audit ------------------------------------------------------------------------------------------

    def starts(self) -> Finite[tuple[bool, ...]]:
        """Write out the law of the bits before any arrival."""
        rows = list(product((False, True), repeat=self.size))
        return exactly(dict.fromkeys(rows, Fraction(1, len(rows))))

    def steps(self, bits: tuple[bool, ...], element: int | None) -> Finite[tuple[bool, ...]]:
        """Write out the law of the bits after one more arrival (None: nothing arrives)."""
        if element is None:
            return exactly({bits: Fraction(1)})
        one, zero = ((*bits[:element], bit, *bits[element + 1 :]) for bit in (True, False))
        return exactly({one: _HALF + self.bias, zero: _HALF - self.bias})

    def answers(self, bits: tuple[bool, ...]) -> Finite[int]:
        """Write out the law of one answer, all of it beyond the possible counts gathered at the two ends."""
        return self.answer.law(sum(bits), window=(-1, self.size + 1))
