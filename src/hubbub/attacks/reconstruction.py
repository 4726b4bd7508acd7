"""Reconstruction from few questions: 8 random sums a person give away nearly every bit, unless a budget is shared.

Sums of random subsets, or with Gaussian weights, are decoded by least squares, by a linear program, or by least
absolute errors, which holds out where a fifth of the answers is wild (Dinur and Nissim 2003; Dwork, McSherry and Talwar
2007).
"""

import time
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

import numpy as np

from hubbub.attacks import bits
from hubbub.attacks.base import Finding, Progress, Study, ceiling, compared, percent, unheard
from hubbub.attacks.decoding import DECODERS, Bits, Dense, Floats, gaussian, rounded, subsets
from hubbub.attacks.table import Table
from hubbub.attacks.target import TABLE, laplace, protected
from hubbub.core import numbers
from hubbub.errors import AttackError
from hubbub.noise.source import system

_KINDS = {"subsets": subsets, "gaussian": gaussian}


def wild(answers: Floats, share: float, generator: np.random.Generator) -> Floats:
    """Replace a random share of the answers by anything, in three times the range of the others."""
    changed = answers.copy()
    places = generator.random(len(answers)) < share
    low, high = answers.min(), answers.max()
    changed[places] = generator.uniform(2 * low - high, 2 * high - low, int(places.sum()))
    return changed


def study(
    table: Table | None = None,  # noqa: ARG001 - people are made up
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    people: int = 48,
    questions: int = 8,
    kind: str = "subsets",
    decoder: str = "least squares",
    noise: float = 0.25,
    databases: int = 6,
) -> Study:
    """Ask random sums over some people and solve for everybody's bit.

    people      how many
    questions   how many sums are asked for each person
    kind        subsets, or gaussian (weights; hubbub is asked about subsets in any case)
    decoder     least squares, linear program, or least absolute
    noise       the naive noise: its standard deviation in units of √people
    databases   how often all is done again, with fresh secrets
    """
    count = numbers.integer(people, "people", 8, 256)
    each = numbers.integer(questions, "questions", 2, 32)
    if kind not in _KINDS or decoder not in DECODERS:
        raise AttackError(
            "HB643",
            "there is no such kind of questions or decoder.",
            f"Kinds: {', '.join(_KINDS)}. Decoders: {', '.join(DECODERS)}.",
        )
    if not 0 <= noise <= 1000:
        raise AttackError("HB643", "the noise is not between 0 and 1000.", "The default is 0.25.")
    secrets = bits.people(count, numbers.integer(databases, "databases", 1, 100), generator)
    sums = _KINDS[kind](count, each * count, generator)
    exact = [sums.ask(secret.astype(np.float64)) for secret in secrets]
    near = [true + generator.normal(0, noise * sqrt(count), len(true)) for true in exact]
    broken = [wild(answers, 0.2, generator) for answers in near]
    findings = [
        _finding("exact sums", None, sums, exact, secrets, decoder),
        _finding(f"noise of sd {noise * sqrt(count):.3g}", None, sums, near, secrets, decoder),
        *(
            _finding(f"a fifth wild, {how}", None, sums, broken, secrets, how)
            for how in dict.fromkeys([decoder, "least absolute"])
        ),
    ]
    plain = sums if kind == "subsets" else subsets(count, each * count, generator)
    for step, epsilon in enumerate(epsilons):
        answers = bits.answered(
            plain,
            secrets,
            epsilon=epsilon,
            progress=lambda done, step=step, epsilon=epsilon: progress(  # type: ignore[misc]
                (step + done) / len(epsilons), f"asking hubbub {each * count} sums at ε = {float(epsilon):g} in all"
            ),
        )
        findings.append(_finding("hubbub", epsilon, plain, answers, secrets, decoder))
        guesses = _one_by_one(secrets, epsilon)
        findings.append(bits.held(secrets, guesses, epsilon, "hubbub, one count a person", questions=count))
    title = f"Reconstruction by {decoder if decoder != 'linear program' else 'linear programming'}"
    return Study("reconstruction", title, tuple(_words(findings, count, each)), tuple(findings))


def _one_by_one(secrets: Sequence[Bits], epsilon: Fraction) -> list[Bits]:
    """Spend all on one question: a count for each person. Further databases get the same noise, drawn again."""
    first, *others = secrets
    made = Table("people", {"person": np.arange(len(first)), "secret": first})
    with protected(made, epsilon=epsilon) as session:
        told = session.query(
            f"SELECT person, count(*) FILTER (WHERE secret = 1) AS n FROM {TABLE} GROUP BY person",  # noqa: S608
            epsilon=epsilon,
            raw=True,
        )
    person, number = np.array(told.rows, dtype=np.float64).T
    found = np.zeros(len(first))
    found[person.astype(np.int64)] = number
    noise = laplace(told)
    return [rounded(each) for each in (found, *(noise.sample(each, system()).astype(np.float64) for each in others))]


def _finding(
    target: str, epsilon: Fraction | None, sums: Dense, answers: Sequence[Floats], secrets: Sequence[Bits], decoder: str
) -> Finding:
    start = time.perf_counter()
    guesses = [rounded(DECODERS[decoder](sums, each)) for each in answers]
    took = (time.perf_counter() - start) / len(secrets)
    errors = [np.abs(told - sums.ask(bit.astype(np.float64))) for told, bit in zip(answers, secrets, strict=True)]
    return Finding(
        target,
        epsilon,
        bits.scored(secrets, guesses),
        None if epsilon is None else ceiling(epsilon),
        {"decoder": decoder, "questions": len(errors[0]), "error": float(np.mean(errors)), "seconds": round(took, 3)},
    )


def _words(findings: Sequence[Finding], count: int, each: int) -> list[str]:
    naive = [finding for finding in findings if finding.epsilon is None]
    said = [
        f"{finding.target[0].upper()}{finding.target[1:]}: from {each} sums a person over {count} people,"
        f" {finding.facts['decoder']} has {percent(finding.score.share)} of the bits right."
        for finding in naive
    ]
    ours = findings[len(naive) :]
    if ours:
        said.append("hubbub shares one ε among all the questions, so that more of them make each less exact.")
    return [*said, *compared(ours)]
