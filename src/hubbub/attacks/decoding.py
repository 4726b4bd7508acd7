"""Decode bits from many noisy sums: least squares, linear programming, least absolute errors.

    secret bits x → queries A → noisy answers y ≈ A·x → decoded reals → guessed bits (at least ½)

Everything here uses only queries and answers, as an analyst could.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import AttackError

Floats = NDArray[np.float64]
Bits = NDArray[np.int64]

#: Rows of packed queries to unpack at a time.
_BLOCK = 1 << 10


class LinearQueries(Protocol):
    """Linear queries about some people, each with one answer."""

    @property
    def people(self) -> int:
        """Number of people."""
        ...

    def ask(self, values: Floats) -> Floats:
        """Return the exact answers: A·x."""
        ...

    def back(self, answers: Floats) -> Floats:
        """Return, for each person, the sum of the answers that include them: Aᵀ·y."""
        ...

    def gram_product(self, values: Floats) -> Floats:
        """Return Aᵀ·A·x."""
        ...


@dataclass(frozen=True, eq=False)
class Dense:
    """Arbitrary queries as a matrix with one row each: subsets (0 and 1) or Gaussian weights."""

    matrix: Floats

    @property
    def people(self) -> int:
        """Number of people."""
        return int(self.matrix.shape[1])

    def ask(self, values: Floats) -> Floats:
        """A·x."""
        answers: Floats = self.matrix @ values
        return answers

    def back(self, answers: Floats) -> Floats:
        """Aᵀ·y."""
        sums: Floats = self.matrix.T @ answers
        return sums

    def gram_product(self, values: Floats) -> Floats:
        """Aᵀ·A·x."""
        return self.back(self.ask(values))


@dataclass(frozen=True, eq=False)
class Packed:
    """Subsets of many people, one bit each: 80,000 queries about 10,000 people take 100 MB instead of 6.4 GB."""

    bits: NDArray[np.uint8]
    people: int

    def ask(self, values: Floats) -> Floats:
        """A·x."""
        narrow = values.astype(np.float32)
        return np.concatenate([(block @ narrow).astype(np.float64) for block in self._blocks()])

    def back(self, answers: Floats) -> Floats:
        """Aᵀ·y."""
        narrow = answers.astype(np.float32)
        sums = np.zeros(self.people)
        for index, block in enumerate(self._blocks()):
            sums += narrow[index * _BLOCK : (index + 1) * _BLOCK] @ block
        return sums

    def gram_product(self, values: Floats) -> Floats:
        """Aᵀ·A·x in one pass, because unpacking dominates the cost."""
        narrow = values.astype(np.float32)
        sums = np.zeros(self.people)
        for block in self._blocks():
            sums += (block @ narrow) @ block
        return sums

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        """Unpack one block after the other into the same buffer."""
        buffer = np.empty((min(_BLOCK, len(self.bits)), self.people), dtype=np.float32)
        for start in range(0, len(self.bits), _BLOCK):
            part = self.bits[start : start + _BLOCK]
            np.copyto(buffer[: len(part)], np.unpackbits(part, axis=1, count=self.people))
            yield buffer[: len(part)]


@dataclass(frozen=True, eq=False)
class SparseQueries:
    """Queries about the same small number of people each, by their indexes: a sparse matrix of ones."""

    members: NDArray[np.int64]
    people: int

    def ask(self, values: Floats) -> Floats:
        """A·x."""
        answers: Floats = values[self.members].sum(axis=1)
        return answers

    def back(self, answers: Floats) -> Floats:
        """Aᵀ·y."""
        repeated = np.repeat(answers, self.members.shape[1])
        return np.bincount(self.members.ravel(), weights=repeated, minlength=self.people).astype(np.float64)

    def gram_product(self, values: Floats) -> Floats:
        """Aᵀ·A·x."""
        return self.back(self.ask(values))


def subsets(people: int, count: int, generator: np.random.Generator) -> Dense:
    """Return random subset queries: each person is in each with probability ½."""
    return Dense(generator.integers(0, 2, (count, people)).astype(np.float64))


def gaussian(people: int, count: int, generator: np.random.Generator) -> Dense:
    """Return sums with standard normal weights."""
    return Dense(generator.standard_normal((count, people)))


def packed(people: int, count: int, generator: np.random.Generator) -> Packed:
    """Return random subset queries about many people, packed."""
    width = -(-people // 8)
    return Packed(np.frombuffer(generator.bytes(count * width), dtype=np.uint8).reshape(count, width), people)


def few(people: int, count: int, size: int, generator: np.random.Generator) -> SparseQueries:
    """Return queries about random lists of `size` people; a person listed twice counts twice."""
    return SparseQueries(generator.integers(0, people, (count, size)), people)


def least_squares(questions: LinearQueries, answers: Floats, *, rounds: int = 60, tolerance: float = 1e-3) -> Floats:
    """Solve min ‖A·x − y‖₂ by conjugate gradients on Aᵀ·A·x = Aᵀ·y, from ½ everywhere.

    With 8 random queries per person, all eigenvalues of Aᵀ·A but one lie within a factor ((1+√⅛)/(1−√⅛))² ≈ 4.4 of
    each other, so each round reduces the error by about (√4.4+1)/(√4.4−1) ≈ 2.8: six rounds suffice for any size.
    """
    estimate = np.full(questions.people, 0.5)
    residual = questions.back(answers - questions.ask(estimate))
    direction, old = residual.copy(), float(residual @ residual)
    first = old
    for _ in range(rounds):
        if old <= tolerance**2 * first or old == 0:
            break
        image = questions.gram_product(direction)
        step = old / float(direction @ image)
        estimate += step * direction
        residual -= step * image
        new = float(residual @ residual)
        direction = residual + (new / old) * direction
        old = new
    return estimate


def least_absolute(questions: Dense, answers: Floats, *, rounds: int = 400) -> Floats:
    """Solve min ‖A·x − y‖₁ over 0 ≤ x ≤ 1 by alternating directions (ADMM), which is robust against wild answers.

    This is the decoding of Dwork, McSherry and Talwar (2007), whose linear program tolerates up to 23.9% wild answers
    to many Gaussian queries; the sum of absolute values is split from A·x = z + y, the box from x.
    """
    matrix = questions.matrix
    people = questions.people
    size = float(np.abs(matrix).mean()) * np.sqrt(people)
    scaled, wanted = matrix / size, answers / size
    inverse = np.linalg.inv(scaled.T @ scaled + np.eye(people))
    boxed, gap = np.full(people, 0.5), np.zeros(len(answers))
    gap_dual, box_dual = np.zeros(len(answers)), np.zeros(people)
    step = 10.0
    for _ in range(rounds):
        estimate = inverse @ (scaled.T @ (wanted + gap - gap_dual) + boxed - box_dual)
        residual = scaled @ estimate - wanted
        gap = _shrunk(residual + gap_dual, 1 / step)
        boxed = np.clip(estimate + box_dual, 0.0, 1.0)
        gap_dual += residual - gap
        box_dual += estimate - boxed
    return boxed


def _shrunk(values: Floats, by: float) -> Floats:
    kept: Floats = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
    return kept


def least_worst(questions: Dense, answers: Floats) -> Floats:
    """Solve min ‖A·x − y‖∞ over 0 ≤ x ≤ 1, the linear program of Dinur and Nissim (2003), by the simplex method.

    It finds a point within the noise of all answers if there is one; a single wild answer defeats it.
    """
    try:
        from scipy.optimize import linprog
    except ModuleNotFoundError:
        raise AttackError(
            "HB659", "Decoding by linear programming needs scipy.", 'Run: pip install "hubbub[attack]"'
        ) from None
    matrix, people = questions.matrix, questions.people
    edge = np.ones((len(answers), 1))
    solution = linprog(
        np.r_[np.zeros(people), 1.0],
        A_ub=np.block([[matrix, -edge], [-matrix, -edge]]),
        b_ub=np.r_[answers, -answers],
        bounds=[(0, 1)] * people + [(0, None)],
        method="highs",
    )
    if solution.x is None:
        raise AttackError("HB659", "The linear program could not be solved.", "Use fewer queries or another decoder.")
    decoded: Floats = solution.x[:people]
    return decoded


def rounded(decoded: Floats) -> Bits:
    """Guess a bit for each person: 1 if the value is at least ½."""
    return (decoded >= 0.5).astype(np.int64)


#: Decoders by name.
DECODERS: dict[str, Callable[[Dense, Floats], Floats]] = {
    "least squares": least_squares,
    "linear program": least_worst,
    "least absolute": least_absolute,
}
