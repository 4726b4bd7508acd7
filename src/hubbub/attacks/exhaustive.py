"""Reconstruction by trying every database: the first theorem of Dinur and Nissim (2003)."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.attacks import bits
from hubbub.attacks.base import Finding, Progress, Study, compared, percent, unheard
from hubbub.attacks.bits import answered, held, scored
from hubbub.attacks.decoding import Bits, Dense, Floats
from hubbub.attacks.table import Table
from hubbub.core import numbers

#: More people than this have too many databases (their square is gone through).
MOST_PEOPLE = 14
_BLOCK = 1 << 8


def every_subset(people: int) -> Dense:
    """Ask about every subset; subset q has the people whose bits are set in the number q."""
    names = np.arange(1 << people)[:, None]
    return Dense((names >> np.arange(people) & 1).astype(np.float64))


def worst_errors(answers: Floats, people: int) -> Floats:
    """Say for every database by how much it misses the answers at worst; databases are numbered like subsets."""
    subsets = every_subset(people).matrix.astype(np.float32)
    told = answers.astype(np.float32)
    worst = [
        np.abs(subsets[start : start + _BLOCK] @ subsets.T - told).max(axis=1)
        for start in range(0, len(subsets), _BLOCK)
    ]
    return np.concatenate(worst).astype(np.float64)


def reconstruct(answers: Floats, people: int) -> Bits:
    """Find a database whose subset sums are nearest to all answers, by trying every one.

    Theorem (Exhaustive reconstruction). If every subset sum of n bits is answered within E, any database that is within
    E of all answers differs from the true one in at most 4E bits (Dinur and Nissim 2003, theorem 1); so at E = n/401
    fewer than 1 % of the bits stay unknown. The bound is attained.
    Proof    Let c be within E of all answers, and Q the people with c = 1 and x = 0. Both sums over Q are within E of
             one answer, so |Q| ≤ 2E; likewise for c = 0 and x = 1. Attained: let c and x differ in 2E bits each way and
             answer half way between their sums.
    Assumes  nothing of how the noise is made, only that it is within E. The nearest database is within E as x is.
    Tested   tests/attacks/test_reconstruction.py::test_exhaustive_search_is_wrong_in_at_most_four_times_the_noise
             tests/attacks/test_reconstruction.py::test_four_times_the_noise_is_attained
    """
    best = int(np.argmin(worst_errors(answers, people)))
    return (best >> np.arange(people) & 1).astype(np.int64)


def study(
    table: Table | None = None,  # noqa: ARG001 - people are made up
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    people: int = 7,
    error: int = 1,
    databases: int = 40,
) -> Study:
    """Ask about every subset of a few people, then try every database until one fits all answers.

    people      how many (every subset is asked: 2^people questions)
    error       how far off each answer of the naive target may be
    databases   how often all is done again, with fresh secrets
    """
    count = numbers.integer(people, "people", 2, MOST_PEOPLE)
    error = numbers.integer(error, "error", 0, 1000)
    secrets = bits.people(count, numbers.integer(databases, "databases", 1, 1000), generator)
    questions = every_subset(count)
    exact = [questions.ask(secret.astype(np.float64)) for secret in secrets]
    naive = [reconstruct(each + generator.uniform(-error, error, len(each)), count) for each in exact]
    worst = max(int((guess != secret).sum()) for guess, secret in zip(naive, secrets, strict=True))
    asked = len(questions.matrix)
    findings = [
        Finding(
            "exact sums",
            None,
            scored(secrets, [reconstruct(each, count) for each in exact]),
            None,
            {"questions": asked},
        ),
        Finding(
            f"noise of at most {error}",
            None,
            scored(secrets, naive),
            None,
            {"questions": asked, "most wrong": worst, "bound": 4 * error},
        ),
    ]
    for step, epsilon in enumerate(epsilons):
        answers = answered(
            questions,
            secrets,
            epsilon=epsilon,
            progress=lambda done, step=step, epsilon=epsilon: progress(  # type: ignore[misc]
                (step + done) / len(epsilons), f"asking hubbub {asked} questions at ε = {float(epsilon):g} in all"
            ),
        )
        noise = float(np.std(np.array(answers) - exact))
        guesses = [reconstruct(each, count) for each in answers]
        findings.append(held(secrets, guesses, epsilon, "hubbub", questions=asked, noise=noise))
    return Study("exhaustive", "Exhaustive reconstruction", tuple(_words(findings, count, error)), tuple(findings))


def _words(findings: Sequence[Finding], count: int, error: int) -> list[str]:
    exact, naive, *ours = findings
    said = [
        f"Whoever gets every subset sum of {count} people's bits exactly knows {percent(exact.score.share)} of them.",
        f"With noise of at most {error} on every answer, at most {4 * error} bits can be wrong;"
        f" here it was {naive.facts['most wrong']} of {count} at most, in {naive.score.trials // count} databases.",
    ]
    if ours:
        least = min(float(each.facts["noise"]) for each in ours)
        said.append(
            f"hubbub answers the same {1 << count} questions under one budget, of which each gets a share: the noise"
            f" had a standard deviation of {least:.3g} or more, where sums go up to {count}."
        )
    return [*said, *compared(ours)]
