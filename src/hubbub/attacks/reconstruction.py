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
from hubbub.attacks.base import Finding, Progress, Study, percent, unheard
from hubbub.attacks.decoding import DECODERS, Bits, Dense, Floats, gaussian, rounded, subsets
from hubbub.attacks.table import Table
from hubbub.attacks.target import TABLE, protected
from hubbub.core import numbers
from hubbub.errors import AttackError

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
    people: int = 64,
    questions: int = 8,
    kind: str = "subsets",
    decoder: str = "least squares",
    noise: float = 0.25,
) -> Study:
    """Ask random sums over some people and solve for everybody's bit.

    people      how many
    questions   how many sums are asked for each person
    kind        subsets, or gaussian (weights; hubbub is asked about subsets in any case)
    decoder     least squares, linear program, or least absolute
    noise       the naive noise: its standard deviation in units of √people
    """
    count = numbers.integer(people, "people", 8, 256)
    each = numbers.integer(questions, "questions", 2, 32)
    if kind not in _KINDS or decoder not in DECODERS:
        raise AttackError(
            "HB643", "there is no such kind of questions or decoder.",
            f"Kinds: {', '.join(_KINDS)}. Decoders: {', '.join(DECODERS)}.",
        )  # fmt: skip
    if not 0 <= noise <= 1000:
        raise AttackError("HB643", "the noise is not between 0 and 1000.", "The default is 0.25.")
    made, truth = bits.people(count, generator)
    sums = _KINDS[kind](count, each * count, generator)
    exact = sums.ask(truth.astype(np.float64))
    near = exact + generator.normal(0, noise * sqrt(count), len(exact))
    findings = [
        _naive("exact sums", sums, exact, truth, decoder, exact),
        _naive(f"noise of sd {noise * sqrt(count):.3g}", sums, near, truth, decoder, exact),
        *(
            _naive("the same, a fifth wild", sums, wild(near, 0.2, generator), truth, how, exact)
            for how in dict.fromkeys([decoder, "least absolute"])
        ),
    ]
    plain = sums if kind == "subsets" else subsets(count, each * count, generator)
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"asking hubbub {each * count} questions at ε = {float(epsilon):g} in all")
        with protected(made, epsilon=epsilon) as session:
            answers = bits.asked(session, plain, epsilon=epsilon)
        findings.append(_ours(plain, answers, truth, decoder, epsilon))
        with protected(made, epsilon=epsilon) as session:
            told = session.query(
                f"SELECT person, count(*) FILTER (WHERE secret = 1) AS n FROM {TABLE} GROUP BY person",  # noqa: S608
                epsilon=epsilon, raw=True,
            )  # fmt: skip
        person, number = np.array(told.rows, dtype=np.float64).T
        singles = np.zeros(count)
        singles[person.astype(np.int64)] = number
        findings.append(bits.held(truth, rounded(singles), epsilon, "hubbub, one count a person", questions=count))
    title = f"Reconstruction by {decoder if decoder != 'linear program' else 'linear programming'}"
    return Study("reconstruction", title, tuple(_words(findings, count, each)), tuple(findings))


def _naive(target: str, sums: Dense, answers: Floats, truth: Bits, decoder: str, exact: Floats) -> Finding:
    start = time.perf_counter()
    guess = rounded(DECODERS[decoder](sums, answers))
    facts: dict[str, float | int | str] = {
        "decoder": decoder, "questions": len(answers), "wrong": int((guess != truth).sum()),
        "error": float(np.abs(answers - exact).mean()), "seconds": round(time.perf_counter() - start, 3),
    }  # fmt: skip
    return Finding(target, None, bits.scored(truth, guess), None, facts)


def _ours(sums: Dense, answers: Floats, truth: Bits, decoder: str, epsilon: Fraction) -> Finding:
    guess = rounded(DECODERS[decoder](sums, answers))
    error = float(np.abs(answers - sums.ask(truth.astype(np.float64))).mean())
    return bits.held(truth, guess, epsilon, "hubbub", decoder=decoder, questions=len(answers), error=error)


def _words(findings: Sequence[Finding], count: int, each: int) -> list[str]:
    said = []
    for finding in findings:
        if finding.epsilon is None:
            said.append(
                f"{finding.target[0].upper()}{finding.target[1:]}: from {each} sums a person,"
                f" {finding.facts['decoder']} has {percent(finding.score.share)} of {count} bits right."
            )
    ours = [finding for finding in findings if finding.epsilon is not None]
    if ours:
        best = max(ours, key=lambda finding: finding.score.share - (finding.ceiling or 1))
        said.append(
            "hubbub shares one ε among all the questions, so that more of them make each less exact. The attack came"
            f" nearest to its ceiling at ε = {float(best.epsilon or 0):g} ({best.target}):"
            f" {percent(best.score.share)} right, where {percent(best.ceiling or 1)} may be on average."
        )
    return said
