"""Exhaustive reconstruction: try every database (Dinur and Nissim 2003, theorem 1)."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hubbub.attacks import bits
from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, describe_findings, no_progress, percent
from hubbub.attacks.bits import hubbub_answers, hubbub_finding, score_bits
from hubbub.attacks.decoding import Bits, Dense, Floats
from hubbub.attacks.table import AttackTable
from hubbub.core import numbers

#: Maximum number of people; the work is the square of the number of databases.
MAX_PEOPLE = 14
_BLOCK = 1 << 8


def every_subset(people: int) -> Dense:
    """Return a query for every subset; subset q holds the people whose bits are set in the number q."""
    names = np.arange(1 << people)[:, None]
    return Dense((names >> np.arange(people) & 1).astype(np.float64))


def worst_errors(answers: Floats, people: int) -> Floats:
    """Return, for every database, its largest error over all answers; databases are numbered like subsets."""
    subsets = every_subset(people).matrix.astype(np.float32)
    narrow = answers.astype(np.float32)
    worst = [
        np.abs(subsets[start : start + _BLOCK] @ subsets.T - narrow).max(axis=1)
        for start in range(0, len(subsets), _BLOCK)
    ]
    return np.concatenate(worst).astype(np.float64)


def reconstruct(answers: Floats, people: int) -> Bits:
    """Find a database whose subset sums are nearest to all answers, by trying every one.

    Theorem (Exhaustive reconstruction). If every subset sum of n bits is answered within E, any database that is within
    E of all answers differs from the true one in at most 4E bits (Dinur and Nissim 2003, theorem 1), so at E = n/401
    fewer than 1% of the bits are wrong. The bound is attained.
    Proof    Let c be within E of all answers, and Q the people with c = 1 and x = 0. Both sums over Q are within E of
             one answer, so |Q| ≤ 2E; likewise for c = 0 and x = 1. Attained: let c and x differ in 2E bits in each
             direction, and answer with the midpoint of their sums.
    Assumes  nothing about the noise but that it is within E. The nearest database is within E because x is.
    Tested   tests/attacks/test_reconstruction.py::test_exhaustive_search_is_wrong_in_at_most_four_times_the_noise
             tests/attacks/test_reconstruction.py::test_four_times_the_noise_is_attained
    """
    best = int(np.argmin(worst_errors(answers, people)))
    return (best >> np.arange(people) & 1).astype(np.int64)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - people are simulated
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 7,
    error: int = 1,
    databases: int = 40,
) -> AttackStudy:
    """Query every subset of a few people, then search for a database that fits all answers.

    people      number of people (2^people queries)
    error       maximum error of each answer of the naive target
    databases   number of repetitions with fresh secrets
    """
    count = numbers.integer(people, "people", 2, MAX_PEOPLE)
    error = numbers.integer(error, "error", 0, 1000)
    secrets = bits.people(count, numbers.integer(databases, "databases", 1, 1000), generator)
    questions = every_subset(count)
    exact = [questions.ask(secret.astype(np.float64)) for secret in secrets]
    naive = [reconstruct(each + generator.uniform(-error, error, len(each)), count) for each in exact]
    worst = max(int((guess != secret).sum()) for guess, secret in zip(naive, secrets, strict=True))
    queries = len(questions.matrix)
    findings = [
        AttackFinding(
            "exact sums",
            None,
            score_bits(secrets, [reconstruct(each, count) for each in exact]),
            None,
            {"queries": queries},
        ),
        AttackFinding(
            f"noise of at most {error}",
            None,
            score_bits(secrets, naive),
            None,
            {"queries": queries, "maximum wrong bits": worst, "bound": 4 * error},
        ),
    ]
    for step, epsilon in enumerate(epsilons):
        answers = hubbub_answers(
            questions,
            secrets,
            epsilon=epsilon,
            progress=lambda done, step=step, epsilon=epsilon: progress(  # type: ignore[misc]
                (step + done) / len(epsilons), f"{queries} queries to hubbub at ε = {float(epsilon):g} in total"
            ),
        )
        noise = float(np.std(np.array(answers) - exact))
        guesses = [reconstruct(each, count) for each in answers]
        findings.append(hubbub_finding(secrets, guesses, epsilon, "hubbub", queries=queries, noise=noise))
    return AttackStudy(
        "exhaustive", "Exhaustive reconstruction", tuple(_words(findings, count, error)), tuple(findings)
    )


def _words(findings: Sequence[AttackFinding], count: int, error: int) -> list[str]:
    exact, naive, *ours = findings
    sentences = [
        f"Exact subset sums of {count} people's bits reveal {percent(exact.score.share)} of the bits.",
        f"With noise of at most {error} on every answer, at most {4 * error} bits can be wrong;"
        f" observed: {naive.facts['maximum wrong bits']} of {count} or fewer, in {naive.score.trials // count}"
        " databases.",
    ]
    if ours:
        least = min(float(each.facts["noise"]) for each in ours)
        sentences.append(
            f"hubbub splits one budget among the same {1 << count} queries: the noise had a standard deviation of"
            f" {least:.3g} or more, for sums of at most {count}."
        )
    return [*sentences, *describe_findings(ours)]
