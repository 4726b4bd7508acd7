"""What a function's sample complexity says about its sensitivity, and what it does not.

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
"""One way that a run may go: with what probability, which places it read, what it said."""


def from_samples(*, reads: Number, succeeds: Number, within: Number) -> Fraction:
    """Give the sensitivity that follows from an algorithm that reads little: to be declared to `h.release`.

    Theorem (Low sample complexity). Let an algorithm read each entry with probability at most α, whatever the data,
    and be within σ of f(x) with probability more than (1+α)/2. Then f moves by at most 2σ when one entry is replaced.
    Proof    Let x and x′ differ in entry i. Given that i is not read, the answer has one law for both, and is within σ
             of f(x) with probability more than ((1+α)/2 − α)/(1−α) = ½; likewise for f(x′). So some answer is within σ
             of both. At exactly (1+α)/2 this fails: read the one entry with probability α, and else guess one of two
             values that are as far apart as one likes.
    Assumes  entries are replaced, not added. The bound is often loose.
    Tested   tests/analyses/functions/test_sample_complexity.py::test_sensitivity_follows_from_success_above_the_bound
             tests/analyses/functions/test_sample_complexity.py::test_printed_lemma_fails_at_the_bound_itself

    >>> from_samples(reads="0.1", succeeds="0.9", within=3)
    Fraction(6, 1)
    """
    alpha = numbers.in_range(reads, "reads", Fraction(0), Fraction(1))
    beta = numbers.in_range(succeeds, "succeeds", Fraction(0), Fraction(1))
    sigma = numbers.exact(within, "within")
    if not beta > (1 + alpha) / 2 or not sigma >= 0:
        raise ParameterError(
            "HB195",
            f"success with probability {numbers.brief(beta)} says nothing about the sensitivity.",
            f"It must be more than (1 + reads)/2 = {numbers.brief((1 + alpha) / 2)}; equal to it is not enough.",
        )
    return 2 * sigma


@dataclass(frozen=True, slots=True)
class Examined:
    """The exact figures of an algorithm: how often an entry is read, how often it is near, how far f moves."""

    reads: Fraction
    succeeds: Fraction
    sensitivity: Fraction


def examine(
    algorithm: Callable[[Data], Iterable[Outcome]],
    function: Callable[[Data], Fraction],
    *,
    values: Sequence[int],
    size: int,
    within: Fraction,
) -> Examined:
    """Go through all datasets of a finite universe and all ways that a run may go."""
    reads, succeeds, moved = Fraction(0), Fraction(1), Fraction(0)
    for data in product(values, repeat=size):
        true, outcomes = function(data), list(algorithm(data))
        if sum((chance for chance, _, _ in outcomes), Fraction(0)) != 1:
            raise ParameterError("HB195", "the probabilities of a run do not add up to 1.", "List every way it may go.")
        for i in range(size):
            reads = max(reads, sum((chance for chance, read, _ in outcomes if i in read), Fraction(0)))
            others = (function((*data[:i], value, *data[i + 1 :])) for value in values)
            moved = max(moved, *(abs(true - other) for other in others))
        near = sum((chance for chance, _, said in outcomes if abs(said - true) <= within), Fraction(0))
        succeeds = min(succeeds, near)
    return Examined(reads, succeeds, moved)


def distances(member: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give the Hamming distance of every point of a finite product to the nearest member of a set.

    One pass for each coordinate: there one may stay, or go anywhere for 1.

    >>> distances(np.array([[True, False], [False, False]])).tolist()
    [[0, 1], [1, 2]]
    """
    if not member.any():
        raise ParameterError("HB195", "the set is empty, and nothing is near to it.", "Give a set with a member.")
    found = np.where(member, 0, member.ndim + 1).astype(np.int64)
    for axis in range(member.ndim):
        found = np.minimum(found, found.min(axis=axis, keepdims=True) + 1)
    return found


@dataclass(frozen=True)
class ReedSolomon:
    """The words (p(0), …, p(n−1)) of polynomials p of degree below k over the field of a prime q.

    Theorem (Low sensitivity without low sample complexity). The distance of a word from this code moves by at most 1
    when a letter is replaced. Yet any k places of a uniform word of the code, or of any shift of it, are uniform:
    whoever reads at most k places, adaptively too, sees the same of words at distance 0 and of words far away (Dwork,
    McSherry, Nissim and Smith 2006, section 3.2, over a prime field).
    Proof    k values determine a polynomial of degree below k, so each combination occurs once among the words; a shift
             permutes the combinations. What is read next depends on what was read, which has one law for both.
    Tested   tests/analyses/functions/test_sample_complexity.py::test_few_reads_tell_nothing_of_a_distance_from_a_code
    """

    field: int
    length: int
    dimension: int

    def __post_init__(self) -> None:
        prime = numbers.integer(self.field, "field", 2, 13)
        if any(prime % divisor == 0 for divisor in range(2, prime)):
            raise ParameterError("HB195", "the field has no prime number of elements.", "Choose 2, 3, 5, 7, 11 or 13.")
        numbers.integer(self.length, "length", 2, self.field)
        numbers.integer(self.dimension, "dimension", 1, self.length - 1)
        numbers.integer(self.field**self.length, "words", 1, 1_000_000)

    @cached_property
    def words(self) -> NDArray[np.int64]:
        """All words of the code, one a row."""
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
        """Give the words of the code with one word added to all: all of them are as far from the code as that one."""
        found: NDArray[np.int64] = (self.words + np.array(by)) % self.field
        return found


def looks_uniform(words: NDArray[np.int64], *, field: int, reads: int) -> bool:
    """Say whether any so many places of a uniform word among these are uniform: then they tell nothing."""
    length = words.shape[1]
    numbers.integer(comb(length, reads), "choices", 1, 100_000)
    for places in combinations(range(length), reads):
        codes = np.ravel_multi_index(tuple(words[:, list(places)].T), (field,) * reads)
        counts = np.bincount(codes, minlength=field**reads)
        if counts.min() != counts.max():
            return False
    return True
