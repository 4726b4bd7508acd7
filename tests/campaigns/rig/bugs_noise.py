"""Errors in randomness, samplers and mechanisms."""
# ruff: noqa: ARG005 - a patch keeps the signature of what it stands for

import math
import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.campaigns.rig.bugs import BugCollection, swap, wrap, wrap_function

from hubbub.core import distributions, events
from hubbub.core.unit import Relation
from hubbub.mechanisms import additive, gaussian, laplace, metric, noisy_max, permute_and_flip, selection, top_k
from hubbub.mechanisms import bit_flips as flips
from hubbub.mechanisms import partition_selection as threshold
from hubbub.mechanisms import randomized_response as response
from hubbub.mechanisms import sparse_vector as sparse
from hubbub.noise import bernoulli, choice, geometric, source, uniform
from hubbub.noise import gaussian as gaussian_noise

NOISE = BugCollection("noise and mechanisms", ("sampling", "words", "randomness", "released"))
bug = NOISE.bug


# --- randomness ------------------------------------------------------------------------------------------------------


@bug("the generator has a fixed seed", "randomness")
def fixed_seed() -> None:
    source._Stream._rekey = _keyed(lambda: bytes(32))  # type: ignore[method-assign]


@bug("the key has 16 bits of entropy", "randomness")
def short_key() -> None:
    source._Stream._rekey = _keyed(lambda: os.urandom(2) + bytes(30))  # type: ignore[method-assign]


def _keyed(key: Any) -> Any:
    def rekey(self: Any) -> None:
        self._cipher = Cipher(algorithms.AES256(key()), modes.CTR(bytes(16))).encryptor()
        self._left = source._KEY_LIFETIME

    return rekey


@bug("a forked child goes on with its parent's noise", "randomness")
def fork_reuse() -> None:
    swap(source._process, lambda: (0, 0))


@bug("the counter starts again with every buffer", "randomness")
def counter_again() -> None:
    def around(fill: Any, self: Any, words: Any) -> None:
        if not hasattr(source, "_first_key"):
            source._first_key = os.urandom(32)  # type: ignore[attr-defined]
        self._cipher = Cipher(algorithms.AES256(source._first_key), modes.CTR(bytes(16))).encryptor()  # type: ignore[attr-defined]
        fill(self, words)

    wrap(source._Stream, "_fill", around)


@bug("words are handed out without being crossed off", "randomness")
def not_crossed_off() -> None:
    def take(self: Any, count: int) -> Any:
        if count > source._BUFFER or self._used == source._BUFFER:
            self._ready = np.empty(max(count, source._BUFFER), dtype=np.uint64)
            self._fill(self._ready)
            self._used = 0
        return self._ready[:count].copy()

    source._Stream.take = take  # type: ignore[method-assign]


@bug("noise comes from numpy's global generator", "words")
def global_generator() -> None:
    def drawn(*, scale: Fraction, count: int, source: Any) -> Any:
        return np.round(np.random.laplace(0.0, float(scale), count)).astype(np.int64)

    swap(geometric.discrete_laplace, drawn)


@bug("one draw serves all coordinates", "released", "sampling", "audit")
def shared_draw() -> None:
    def around(draw: Any, *, scale: Fraction, count: int, source: Any) -> Any:
        return np.repeat(draw(scale=scale, count=1, source=source), count)

    wrap_function(geometric.discrete_laplace, around)


# --- samplers --------------------------------------------------------------------------------------------------------


@bug("continuous noise in floats, rounded", "sampling")
def float_noise() -> None:
    def drawn(*, scale: Fraction, count: int, source: Any) -> Any:
        u = source.words(count).astype(np.float64) / 2.0**64 - 0.5
        return np.round(-float(scale) * np.sign(u) * np.log1p(-2 * np.abs(u) + 1e-300)).astype(np.int64)

    swap(geometric.discrete_laplace, drawn)


@bug("a sign on a geometric draw: zero comes twice as often", "sampling", "audit")
def two_zeros() -> None:
    def drawn(*, scale: Fraction, count: int, source: Any) -> Any:
        sign = np.where(source.words(count) & np.uint64(1) > 0, 1, -1)
        return sign * geometric.geometric(scale=scale, count=count, source=source)

    swap(geometric.discrete_laplace, drawn)


@bug("one-sided noise", "sampling", "audit")
def one_sided() -> None:
    swap(geometric.discrete_laplace, geometric.geometric)


@bug("half of the scale is used in drawing", "sampling", "released", "audit")
def half_scale() -> None:
    def around(draw: Any, *, scale: Fraction, count: int, source: Any) -> Any:
        return draw(scale=scale / 2, count=count, source=source)

    wrap_function(geometric.discrete_laplace, around)


@bug("the deviation is taken for the variance", "sampling")
def deviation_for_variance() -> None:
    def around(draw: Any, *, variance: Fraction, count: int, source: Any) -> Any:
        deviation = Fraction(math.isqrt(int(variance * 10**6)), 10**3)
        return draw(variance=max(Fraction(1, 100), deviation), count=count, source=source)

    wrap_function(gaussian_noise.discrete_gaussian, around)


@bug("Gaussian noise is cut off at two deviations", "sampling")
def cut_off() -> None:
    def around(draw: Any, *, variance: Fraction, count: int, source: Any) -> Any:
        most = 2 * math.isqrt(math.ceil(variance))
        return np.clip(draw(variance=variance, count=count, source=source), -most, most)

    wrap_function(gaussian_noise.discrete_gaussian, around)


@bug("empty cells get no noise", "sampling", "released", "audit")
def sparse_noise() -> None:
    def around(add: Any, value: Any, draw: Any) -> Any:
        noisy = add(value, draw)
        return np.where(value == 0, 0, noisy) if isinstance(value, np.ndarray) else noisy

    wrap_function(additive.add, around)


@bug("noisy counts are cut at 0 where a true one is not", "released")
def not_negative() -> None:
    def around(add: Any, value: Any, draw: Any) -> Any:
        noisy = add(value, draw)
        return np.maximum(noisy, 0) if isinstance(value, np.ndarray) and bool((value > 0).any()) else noisy

    wrap_function(additive.add, around)


@bug("a sum wraps around at the end of 64 bits", "sampling")
def wraps() -> None:
    swap(additive._saturating, lambda value, noise: value + noise)


# --- mechanisms ------------------------------------------------------------------------------------------------------


@bug("ε over D instead of D over ε", "enumeration")
def scale_inverted() -> None:
    def from_epsilon(cls: Any, *, sensitivity: int, epsilon: Any) -> Any:
        return cls(sensitivity=sensitivity, scale=Fraction(epsilon) / sensitivity)

    laplace.Laplace.from_epsilon = classmethod(from_epsilon)  # type: ignore[method-assign, assignment]


@bug("exp(ε·u/D) instead of exp(ε·u/2D)", "enumeration")
def rate_doubled() -> None:
    def around(make: Any, cls: Any, **named: Any) -> Any:
        made = make(cls, **named)
        return replace(made, rate=made.rate * (1 if made.monotone else 2))

    wrap(selection.Selection, "from_epsilon", around)


@bug("counts are called monotone under replace", "enumeration")
def monotone_replaced() -> None:
    def around(make: Any, cls: Any, *, relation: Relation, **named: Any) -> Any:
        return make(cls, relation=Relation.ADD_REMOVE, **named)

    wrap(selection.Selection, "from_epsilon", around)


@bug("noisy max with two outputs: the runner-up from the same noise", "sampling", also=("audit",))
def two_outputs() -> None:
    def sample(self: Any, value: Any, source: Any) -> Any:
        noise = geometric.discrete_laplace(scale=1 / self.one.rate, count=self.one.candidates, source=source)
        return np.argsort(-(self.one.scores(value) + noise), kind="stable")[: self.k]

    top_k.TopK.sample = sample  # type: ignore[method-assign]


@bug("k selections are charged as one", "enumeration", "receipt")
def one_of_k() -> None:
    top_k.TopK.event = property(lambda self: events.Composed(((self.one.event, 1),)))  # type: ignore[method-assign, assignment]
    top_k.TopK.loss = property(lambda self: self.one.loss)  # type: ignore[method-assign, assignment]


@bug("noisy max breaks ties by the true score", "sampling")
def ties_by_truth() -> None:
    def sample(self: Any, value: Any, source: Any) -> int:
        scores = self.scores(value)
        noise = geometric.discrete_laplace(scale=1 / self.rate, count=self.candidates, source=source)
        return int(np.lexsort((-scores, -(scores + noise)))[0])

    noisy_max.NoisyMax.sample = sample  # type: ignore[method-assign]


@bug("the exponential mechanism in floats that underflow", "sampling")
def float_softmax() -> None:
    def chosen(*, scores: Any, rate: Fraction, source: Any) -> int:
        weights = np.exp((scores - scores.max()) * float(rate)).astype(np.float16)
        weights[weights < 0.05] = 0
        u = float(source.words(1)[0]) / 2.0**64 * float(weights.sum())
        return int(np.searchsorted(np.cumsum(weights), u))

    swap(choice.choose, chosen)


@bug("permute-and-flip takes the best of the heads", "sampling")
def best_of_heads() -> None:
    def sample(self: Any, value: Any, source: Any) -> int:
        scores = self.scores(value)
        heads = np.flatnonzero(bernoulli.bernoulli_exp_each(rate=self.rate, gaps=scores.max() - scores, source=source))
        return int(heads[np.argmax(scores[heads])])

    permute_and_flip.PermuteAndFlip.sample = sample  # type: ignore[method-assign]


@bug("sparse vector: one noise for all queries", "sampling", also=("audit",))
def sparse_reused() -> None:
    def around(compare: Any, self: Any, query: int) -> Any:
        if not hasattr(self, "_kept"):
            self._kept = int(
                geometric.discrete_laplace(scale=self._parameters.query_scale, count=1, source=self._source)[0]
            )
        above = int(query) + self._kept >= self._bar
        self._queries += 1
        self._hits += above
        return above

    wrap(sparse.AboveThreshold, "compare", around)


@bug("sparse vector: no noise on the threshold", "sampling")
def sparse_bare_threshold() -> None:
    def around(make: Any, self: Any, facts: Any, bar: int, source: Any) -> None:
        make(self, facts, bar, source)
        self._bar = bar

    wrap(sparse.AboveThreshold, "__init__", around)


@bug("sparse vector: goes on after its last hit", "sampling")
def sparse_goes_on() -> None:
    sparse.AboveThreshold.halted = property(lambda self: self._queries >= self._parameters.queries)  # type: ignore[method-assign, assignment]


@bug("sparse vector: query noise does not grow with the hits", "enumeration")
def sparse_does_not_grow() -> None:
    def around(make: Any, cls: Any, *, hits: int, **named: Any) -> Any:
        return replace(make(cls, hits=1, **named), hits=hits)

    wrap(sparse.SparseVector, "from_epsilon", around)


@bug("key threshold off by one", "sampling", "released", also=("audit",))
def threshold_off_by_one() -> None:
    def sample(self: Any, value: Any, source: Any) -> Any:
        occurs = np.flatnonzero(value > 0)
        noisy = self.noise.sample(value[occurs].astype(np.int64), source)
        shown = noisy >= self.threshold - 1
        return occurs[shown], noisy[shown]

    threshold.PartitionSelection.sample = sample  # type: ignore[method-assign]


@bug("key threshold on the true count", "sampling")
def threshold_on_truth() -> None:
    def sample(self: Any, value: Any, source: Any) -> Any:
        occurs = np.flatnonzero(value >= self.threshold)
        return occurs, self.noise.sample(value[occurs].astype(np.int64), source)

    threshold.PartitionSelection.sample = sample  # type: ignore[method-assign]


@bug("key threshold passed by one noise, shown with another", "draws", "sampling")
def threshold_twice() -> None:
    def sample(self: Any, value: Any, source: Any) -> Any:
        occurs = np.flatnonzero(value > 0)
        counts = value[occurs].astype(np.int64)
        shown = self.noise.sample(counts, source) >= self.threshold
        return occurs[shown], self.noise.sample(counts, source)[shown]

    threshold.PartitionSelection.sample = sample  # type: ignore[method-assign]


@bug("key threshold for one key of a unit that has several", "enumeration", "receipt")
def threshold_one_key() -> None:
    wrap_function(distributions.slip, lambda slip, distribution, above, keys: slip(distribution, above, 1))


@bug("randomized response: a lie may be the truth", "sampling")
def lie_is_truth() -> None:
    def sample(self: Any, value: Any, source: Any) -> Any:
        if isinstance(value, int):
            return int(sample(self, np.array([value], dtype=np.int64), source)[0])
        lies = bernoulli.bernoulli_real(
            probability=response._lie(self.answers, self.epsilon), count=value.size, source=source
        )
        other = uniform.uniform_below(bound=self.answers, count=value.size, source=source)
        return np.where(lies, other, value % self.answers)

    response.RandomizedResponse.sample = sample  # type: ignore[method-assign]


@bug("flipped bits: each bit gets all of ε", "enumeration")
def flips_whole() -> None:
    def around(make: Any, cls: Any, *, bits: int, distance: int, epsilon: Any) -> Any:
        return replace(make(cls, bits=bits, distance=distance, epsilon=epsilon), rate=Fraction(epsilon))

    wrap(flips.BitFlips, "from_epsilon", around)


@bug("metric mechanism: the normaliser is called constant", "enumeration")
def metric_constant() -> None:
    metric.Space.uniform = property(lambda self: True)  # type: ignore[method-assign, assignment]


@bug("L1 sensitivity stands for the squared L2 of Gaussian noise", "enumeration", "prices")
def l1_for_l2() -> None:
    def from_rho(cls: Any, *, sensitivity_squared: int, rho: Any) -> Any:
        root = Fraction(math.isqrt(sensitivity_squared))
        return cls(sensitivity_squared=sensitivity_squared, variance=root / (2 * Fraction(rho)))

    gaussian.Gaussian.from_rho = classmethod(from_rho)  # type: ignore[method-assign, assignment]
