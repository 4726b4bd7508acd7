"""Sample complexity of a function and what it implies about its sensitivity.

A function that an algorithm approximates from a few of its inputs has low sensitivity (Dwork, McSherry, Nissim and
Smith 2006, Lemma 1, with a strict inequality that the printed lemma lacks); the converse fails, as the distance from a
Reed–Solomon code shows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.core import numbers
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError

Data = tuple[int, ...]
Outcome = tuple[Fraction, frozenset[int], Fraction]
"""One outcome of a run: its probability, the positions it read, and its answer."""


def sensitivity_from_samples(*, reads: Number, succeeds: Number, within: Number) -> Fraction:
    """Return the sensitivity implied by an algorithm that reads few entries; declare it to `h.release`.

    Theorem (Low sample complexity). Let an algorithm read each entry with probability at most α, whatever the data,
    and be within σ of f(x) with probability more than (1+α)/2. Then f moves by at most 2σ when one entry is replaced.
    Proof    Let x and x′ differ in entry i. Given that i is not read, the answer has the same distribution for both and
             is within σ of f(x) with probability more than ((1+α)/2 − α)/(1−α) = ½; likewise for f(x′). So some answer
             is within σ of both. At exactly (1+α)/2 this fails: read the one entry with probability α, and else guess
             one of two values that are arbitrarily far apart.
    Assumes  entries are replaced, not added. The bound is often loose.
    Tested   tests/analyses/functions/test_sample_complexity.py::test_sensitivity_follows_from_success_above_the_bound
             tests/analyses/functions/test_sample_complexity.py::test_printed_lemma_fails_at_the_bound_itself

    >>> sensitivity_from_samples(reads="0.1", succeeds="0.9", within=3)
    Fraction(6, 1)
    """
    alpha = numbers.in_range(reads, "reads", Fraction(0), Fraction(1))
    beta = numbers.in_range(succeeds, "succeeds", Fraction(0), Fraction(1))
    sigma = numbers.exact(within, "within")
    if not beta > (1 + alpha) / 2 or not sigma >= 0:
        raise ParameterError(
            "HB195",
            f"A success probability of {numbers.brief(beta)} does not bound the sensitivity.",
            f"Use an algorithm whose success probability exceeds (1 + reads)/2 = {numbers.brief((1 + alpha) / 2)}.",
        )
    return 2 * sigma


@dataclass(frozen=True, slots=True)
class SampleComplexity:
    """Exact figures of an algorithm: probabilities of reading an entry and of success, and the sensitivity of f."""

    reads: Fraction
    succeeds: Fraction
    sensitivity: Fraction


def measure_complexity(
    algorithm: Callable[[Data], Iterable[Outcome]],
    function: Callable[[Data], Fraction],
    *,
    values: Sequence[int],
    size: int,
    within: Fraction,
) -> SampleComplexity:
    """Enumerate all datasets of a finite universe and all outcomes of a run."""
    reads, succeeds, moved = Fraction(0), Fraction(1), Fraction(0)
    for data in product(values, repeat=size):
        true, outcomes = function(data), list(algorithm(data))
        if sum((chance for chance, _, _ in outcomes), Fraction(0)) != 1:
            raise ParameterError(
                "HB195", "The probabilities of a run do not sum to 1.", "List every outcome of the run."
            )
        for i in range(size):
            reads = max(reads, sum((chance for chance, read, _ in outcomes if i in read), Fraction(0)))
            others = (function((*data[:i], value, *data[i + 1 :])) for value in values)
            moved = max(moved, *(abs(true - other) for other in others))
        near = sum((chance for chance, _, said in outcomes if abs(said - true) <= within), Fraction(0))
        succeeds = min(succeeds, near)
    return SampleComplexity(reads, succeeds, moved)


def distances(member: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the Hamming distance of every point of a finite product to the nearest member of a set.

    One pass per coordinate: keeping its value costs 0, changing it costs 1.

    >>> distances(np.array([[True, False], [False, False]])).tolist()
    [[0, 1], [1, 2]]
    """
    if not member.any():
        raise ParameterError("HB195", "The set is empty.", "Pass a set with at least one member.")
    distance = np.where(member, 0, member.ndim + 1).astype(np.int64)
    for axis in range(member.ndim):
        distance = np.minimum(distance, distance.min(axis=axis, keepdims=True) + 1)
    return distance


@dataclass(frozen=True)
class ReedSolomon:
    """The words (p(0), …, p(n−1)) of polynomials p of degree below k over the field of a prime q.

    Theorem (Low sensitivity without low sample complexity). The distance of a word from this code moves by at most 1
    when a letter is replaced. Yet any k positions of a uniform word of the code, or of any shift of it, are uniform: an
    algorithm that reads at most k positions, even adaptively, cannot distinguish words at distance 0 from words far
    away (Dwork, McSherry, Nissim and Smith 2006, section 3.2, over a prime field).
    Proof    k values determine a polynomial of degree below k, so each combination occurs once among the words; a shift
             permutes the combinations. What is read next depends on what was read, which has the same distribution.
    Tested   tests/analyses/functions/test_sample_complexity.py::test_few_reads_tell_nothing_of_a_distance_from_a_code
    """

    field: int
    length: int
    dimension: int

    def __post_init__(self) -> None:
        prime = numbers.integer(self.field, "field", 2, 13)
        if any(prime % divisor == 0 for divisor in range(2, prime)):
            raise ParameterError("HB195", "The size of the field is not a prime.", "Use 2, 3, 5, 7, 11 or 13.")
        numbers.integer(self.length, "length", 2, self.field)
        numbers.integer(self.dimension, "dimension", 1, self.length - 1)
        numbers.integer(self.field**self.length, "words", 1, 1_000_000)

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """All words of the code, one per row."""
        powers = np.arange(self.length)[None, :] ** np.arange(self.dimension)[:, None]
        polynomials = np.array(list(product(range(self.field), repeat=self.dimension)))
        found: NDArray[np.int64] = (polynomials @ powers) % self.field
        return found

    @cached_property
    def distance(self) -> NDArray[np.int64]:
        """The distance of every word of that length from the code."""
        member = np.zeros((self.field,) * self.length, dtype=np.bool_)
        member[tuple(self.words.T)] = True
        return distances(member)

    def shifted(self, by: Data) -> NDArray[np.int64]:
        """Return the words of the code plus one word: all are at the distance of that word from the code."""
        found: NDArray[np.int64] = (self.words + np.array(by)) % self.field
        return found


def looks_uniform(words: NDArray[np.int64], *, field: int, reads: int) -> bool:
    """Tell whether any `reads` positions of a uniform word among these are uniform, and so reveal nothing."""
    length = words.shape[1]
    numbers.integer(comb(length, reads), "choices", 1, 100_000)
    for places in combinations(range(length), reads):
        codes = np.ravel_multi_index(tuple(words[:, list(places)].T), (field,) * reads)
        counts = np.bincount(codes, minlength=field**reads)
        if counts.min() != counts.max():
            return False
    return True
