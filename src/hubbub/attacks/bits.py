"""Simulated people with one secret bit each, hubbub's answers about subsets, and the score of guessed bits."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, Score, ceiling
from hubbub.attacks.decoding import Bits, Dense, Floats
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, count_noise, open_protected
from hubbub.curator.session import Session
from hubbub.noise.source import system

#: Maximum tokens and columns per query; the parser accepts up to 10,000 tokens.
_MAX_TOKENS = 8000
_MAX_COLUMNS = 100


def people(count: int, databases: int, generator: np.random.Generator) -> list[Bits]:
    """Simulate databases of `count` people whose secret bits are fair coins."""
    return list(generator.integers(0, 2, (databases, count)))


def hubbub_answers(
    questions: Dense, secrets: Sequence[Bits], *, epsilon: Fraction, progress: Callable[[float], None] = lambda _: None
) -> list[Floats]:
    """Return hubbub's answers about some databases of people, at ε in total for each database.

    The first database is queried through hubbub. For the others, the same noise mechanism (taken from one more count at
    the same ε) is sampled again, which avoids thousands of queries.
    """
    first, *others = secrets
    table = AttackTable("people", {"person": np.arange(len(first)), "secret": first})
    with open_protected(table, epsilon=epsilon) as session:
        answers = [ask_hubbub(session, questions, epsilon=epsilon, progress=progress)]
    if others:
        noise = count_noise(table, "secret = 1", epsilon=share(epsilon, _nonempty(questions)))
        exact = [np.rint(questions.ask(each.astype(np.float64))).astype(np.int64) for each in others]
        answers += [noise.sample(each, system()).astype(np.float64) for each in exact]
    return answers


def share(epsilon: Fraction, parts: int) -> Fraction:
    """Return each query's share of ε, rounded down to 15 decimal places."""
    return Fraction(int(epsilon * 10**15) // max(1, parts), 10**15)


def _nonempty(questions: Dense) -> int:
    return int(np.count_nonzero(questions.matrix.any(axis=1)))


def ask_hubbub(
    session: Session, questions: Dense, *, epsilon: Fraction, progress: Callable[[float], None] = lambda _: None
) -> Floats:
    """Query how many people with the secret bit are in each subset, at ε in total, many subsets per query."""
    members = [np.flatnonzero(row) for row in questions.matrix]
    real = [i for i, subset in enumerate(members) if len(subset)]
    answers = np.zeros(len(members))
    per_query = share(epsilon, len(real))
    size = min(_MAX_COLUMNS, max(1, _MAX_TOKENS // (2 * questions.people + 16)))
    for start in range(0, len(real), size):
        progress(start / len(real))
        batch = real[start : start + size]
        text = _text([members[i] for i in batch])
        release = session.query(text, epsilon=per_query * len(batch), raw=True, fresh=True)
        answers[batch] = np.array(release.rows[0], dtype=np.float64)
    return answers


def _text(subsets: Sequence[NDArray[np.int64]]) -> str:
    counts = ", ".join(
        f"count(*) FILTER (WHERE secret = 1 AND person IN ({', '.join(map(str, each.tolist()))})) AS n{number}"
        for number, each in enumerate(subsets)
    )
    return f"SELECT {counts} FROM {TABLE}"  # noqa: S608 - built from integers


def score_bits(secrets: Sequence[Bits], guesses: Sequence[Bits]) -> Score:
    """Count the correct bits.

    Theorem (Many fair bits under one promise). Let x be uniform on {0,1}ⁿ and M be ε-private between any two x that
    differ in one bit. For every guess from M(x), the number of correct bits is stochastically dominated by a binomial
    with success probability e^ε/(1+e^ε). A confidence interval for independent trials that lies above this value
    refutes the guarantee, although the bits are not independent given the answers (Steinke, Nasr and Jagielski 2023).
    Proof    Given M(x) = y and x₁…xᵢ₋₁, the odds of xᵢ are the ratio of Σ Pr[M(x) = y | x₁…xᵢ₋₁, xᵢ, rest], summed over
             all rests, for its two values. Term by term this ratio is within e^ε, so each guess is correct with
             probability at most e^ε/(1+e^ε), given all earlier bits. Couple each guess with an independent coin of
             this probability.
    Assumes  the bits are fair and independent a priori; M includes everything that the adversary sees.
    Tested   tests/attacks/test_reconstruction.py::test_right_bits_are_dominated_by_coins_of_the_ceiling
    """
    right = sum(int((secret == guess).sum()) for secret, guess in zip(secrets, guesses, strict=True))
    return Score(right, sum(map(len, secrets)), 0.5)


def hubbub_finding(
    secrets: Sequence[Bits], guesses: Sequence[Bits], epsilon: Fraction, target: str, **facts: float | int | str
) -> AttackFinding:
    """Return the finding for guesses against hubbub."""
    return AttackFinding(target, epsilon, score_bits(secrets, guesses), ceiling(epsilon), facts)
