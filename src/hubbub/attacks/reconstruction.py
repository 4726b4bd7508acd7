"""Reconstruction attack: 8 random sums per person reveal nearly every bit, unless the queries share a budget.

Sums of random subsets, or with Gaussian weights, are decoded by least squares, by a linear program, or by least
absolute errors, which tolerates that a fifth of the answers is wild (Dinur and Nissim 2003; Dwork, McSherry and Talwar
2007).
"""

import time
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

import numpy as np

from hubbub.attacks import bits
from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, ceiling, describe_findings, no_progress, percent
from hubbub.attacks.decoding import DECODERS, Bits, Dense, Floats, gaussian, rounded, subsets
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, laplace, open_protected
from hubbub.core import numbers
from hubbub.errors import AttackError
from hubbub.noise.source import system

_KINDS = {"subsets": subsets, "gaussian": gaussian}


def wild(answers: Floats, share: float, generator: np.random.Generator) -> Floats:
    """Replace a random share of the answers by uniform values in three times their range."""
    changed = answers.copy()
    replaced = generator.random(len(answers)) < share
    low, high = answers.min(), answers.max()
    changed[replaced] = generator.uniform(2 * low - high, 2 * high - low, int(replaced.sum()))
    return changed


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - people are simulated
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 48,
    questions: int = 8,
    kind: str = "subsets",
    decoder: str = "least squares",
    noise: float = 0.25,
    databases: int = 6,
) -> AttackStudy:
    """Query random sums over some people and solve for everyone's bit.

    people      number of people
    questions   number of sums per person
    kind        subsets, or gaussian (weights; hubbub always gets subsets)
    decoder     least squares, linear program, or least absolute
    noise       standard deviation of the naive noise, in units of √people
    databases   number of repetitions with fresh secrets
    """
    count = numbers.integer(people, "people", 8, 256)
    per_person = numbers.integer(questions, "questions", 2, 32)
    if kind not in _KINDS or decoder not in DECODERS:
        raise AttackError(
            "HB643",
            "Unknown kind of queries or unknown decoder.",
            f"Use a kind from: {', '.join(_KINDS)}; and a decoder from: {', '.join(DECODERS)}.",
        )
    if not 0 <= noise <= 1000:
        raise AttackError("HB643", "noise must be between 0 and 1000.", "Use a value such as the default, 0.25.")
    secrets = bits.people(count, numbers.integer(databases, "databases", 1, 100), generator)
    sums = _KINDS[kind](count, per_person * count, generator)
    exact = [sums.ask(secret.astype(np.float64)) for secret in secrets]
    near = [true + generator.normal(0, noise * sqrt(count), len(true)) for true in exact]
    broken = [wild(answers, 0.2, generator) for answers in near]
    findings = [
        _finding("exact sums", None, sums, exact, secrets, decoder),
        _finding(f"noise of sd {noise * sqrt(count):.3g}", None, sums, near, secrets, decoder),
        *(
            _finding(f"20% wild answers, {how}", None, sums, broken, secrets, how)
            for how in dict.fromkeys([decoder, "least absolute"])
        ),
    ]
    plain = sums if kind == "subsets" else subsets(count, per_person * count, generator)
    for step, epsilon in enumerate(epsilons):
        answers = bits.hubbub_answers(
            plain,
            secrets,
            epsilon=epsilon,
            progress=lambda done, step=step, epsilon=epsilon: progress(  # type: ignore[misc]
                (step + done) / len(epsilons),
                f"{per_person * count} queries to hubbub at ε = {float(epsilon):g} in total",
            ),
        )
        findings.append(_finding("hubbub", epsilon, plain, answers, secrets, decoder))
        guesses = _one_by_one(secrets, epsilon)
        findings.append(bits.hubbub_finding(secrets, guesses, epsilon, "hubbub, one count per person", queries=count))
    title = f"Reconstruction by {decoder if decoder != 'linear program' else 'linear programming'}"
    return AttackStudy("reconstruction", title, tuple(_words(findings, count, per_person)), tuple(findings))


def _one_by_one(secrets: Sequence[Bits], epsilon: Fraction) -> list[Bits]:
    """Use all of ε for one query, a count per person. Further databases get fresh samples of the same noise."""
    first, *others = secrets
    table = AttackTable("people", {"person": np.arange(len(first)), "secret": first})
    with open_protected(table, epsilon=epsilon) as session:
        release = session.query(
            f"SELECT person, count(*) FILTER (WHERE secret = 1) AS n FROM {TABLE} GROUP BY person",  # noqa: S608
            epsilon=epsilon,
            raw=True,
        )
    person, number = np.array(release.rows, dtype=np.float64).T
    counts = np.zeros(len(first))
    counts[person.astype(np.int64)] = number
    noise = laplace(release)
    return [rounded(each) for each in (counts, *(noise.sample(each, system()).astype(np.float64) for each in others))]


def _finding(
    target: str, epsilon: Fraction | None, sums: Dense, answers: Sequence[Floats], secrets: Sequence[Bits], decoder: str
) -> AttackFinding:
    start = time.perf_counter()
    guesses = [rounded(DECODERS[decoder](sums, each)) for each in answers]
    took = (time.perf_counter() - start) / len(secrets)
    errors = [np.abs(answer - sums.ask(bit.astype(np.float64))) for answer, bit in zip(answers, secrets, strict=True)]
    return AttackFinding(
        target,
        epsilon,
        bits.score_bits(secrets, guesses),
        None if epsilon is None else ceiling(epsilon),
        {"decoder": decoder, "queries": len(errors[0]), "error": float(np.mean(errors)), "seconds": round(took, 3)},
    )


def _words(findings: Sequence[AttackFinding], count: int, per_person: int) -> list[str]:
    naive = [finding for finding in findings if finding.epsilon is None]
    sentences = [
        f"{finding.target[0].upper()}{finding.target[1:]}: from {per_person} sums per person over {count} people,"
        f" {finding.facts['decoder']} recovers {percent(finding.score.share)} of the bits."
        for finding in naive
    ]
    ours = findings[len(naive) :]
    if ours:
        sentences.append("hubbub splits one ε among all queries, so more queries make each answer less accurate.")
    return [*sentences, *describe_findings(ours)]
