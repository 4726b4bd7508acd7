"""Reconstruction from a synthetic table: a table that answers too many sums well reveals the bits (Dwork 2011).

A synthetic table answers every query, so the attack computes random sums on it and solves for everyone's bit.
Publishing carelessly generated rows publishes those answers.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.answers.release import Release
from hubbub.attacks import bits
from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, ceiling, describe_findings, no_progress, percent
from hubbub.attacks.decoding import Bits, Dense, Floats, least_squares, subsets
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, open_protected
from hubbub.core import numbers
from hubbub.curator.session import Session
from hubbub.errors import AttackError

_RELEASES = ("mwem", "synthetic", "small_database")
#: Share of the secrets that a careless publisher flips.
_FLIPPED = 0.02
_QUERIES_PER_PERSON = 8


#: For each synthetic row, the index of the person with its public columns, and the secret that it shows.
Rows = tuple[NDArray[np.int64], Bits]


def known(count: int) -> dict[str, NDArray[np.bool_]]:
    """Return public columns that identify each person: the binary digits of their index."""
    width = max(1, (count - 1).bit_length())
    return {f"known_{digit}": (np.arange(count) >> digit & 1).astype(np.bool_) for digit in range(width)}


def decoded(rows: Rows, questions: Dense) -> Floats:
    """Answer the queries from a table, and solve for each person's rows with the secret minus rows without."""
    person, secret = rows
    sided = np.bincount(person, weights=2.0 * secret - 1, minlength=questions.people)
    return least_squares(questions, questions.ask(sided.astype(np.float64)), tolerance=1e-9)


def resampled(secret: Bits, generator: np.random.Generator) -> Rows:
    """Resample the rows with replacement, like a generative model that fits perfectly."""
    person = generator.integers(0, len(secret), len(secret))
    return person, secret[person]


def flip_some(secret: Bits, generator: np.random.Generator) -> Rows:
    """Publish the rows with one in fifty secrets flipped."""
    flipped = generator.random(len(secret)) < _FLIPPED
    return np.arange(len(secret)), np.where(flipped, 1 - secret, secret)


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - people are simulated
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    people: int = 64,
    release: str = "mwem",
    databases: int = 4,
) -> AttackStudy:
    """Compute random sums about real people on a synthetic table, and solve for their bits.

    people      number of people, each identified by public columns
    release     hubbub release to attack: mwem, synthetic (slow) or small_database
    databases   number of repetitions with fresh secrets
    """
    count = numbers.integer(people, "people", 4, 512)
    if release not in _RELEASES:
        raise AttackError("HB643", f"Unknown release {release[:40]!r}.", f"Use one of: {', '.join(_RELEASES)}.")
    secrets = bits.people(count, numbers.integer(databases, "databases", 1, 100), generator)
    public = known(count)
    queries = subsets(count, _QUERIES_PER_PERSON * count, generator)
    findings = [
        _finding(name, [make(secret, generator) for secret in secrets], secrets, queries, generator)
        for name, make in (("resampled rows", resampled), ("one in fifty secrets flipped", flip_some))
    ]
    for step, epsilon in enumerate(epsilons):
        rows = []
        for index, secret in enumerate(secrets):
            progress((step + index / len(secrets)) / len(epsilons), f"hubbub's {release} at ε = {float(epsilon):g}")
            people_table = AttackTable("people", {**public, "secret": secret.astype(np.bool_)})
            with open_protected(people_table, epsilon=epsilon) as session:
                published = _published(session, release, [*public, "secret"], epsilon)
            rows.append(_rows(published, len(public), count))
        finding = _finding(f"hubbub's {release}", rows, secrets, queries, generator)
        findings.append(replace(finding, epsilon=epsilon, ceiling=ceiling(epsilon)))
    return AttackStudy(
        "synthetic", "Reconstruction of a synthetic table", tuple(_words(findings, count)), tuple(findings)
    )


def _published(session: Session, release: str, columns: Sequence[str], epsilon: Fraction) -> Release:
    if release == "mwem":
        return session.mwem(TABLE, list(columns), rounds=8, epsilon=epsilon)
    if release == "synthetic":
        return session.synthetic(TABLE, list(columns), epsilon=epsilon)
    return session.small_database(TABLE, list(columns), size=2, ways=2, epsilon=epsilon)


def _rows(release: Release, width: int, count: int) -> Rows:
    """Read synthetic rows; drop rows that match no real person or lack a value."""
    rows = np.array([[-1 if cell is None else cell for cell in row[: width + 1]] for row in release.rows])
    rows = rows.astype(np.int64)
    person = (rows[:, :width] << np.arange(width)).sum(axis=1)
    real = (rows >= 0).all(axis=1) & (person < count)
    return person[real], rows[real, width]


def _finding(
    target: str, rows: Sequence[Rows], secrets: Sequence[Bits], queries: Dense, generator: np.random.Generator
) -> AttackFinding:
    guesses, errors, constant = [], [], []
    for (person, shown), secret in zip(rows, secrets, strict=True):
        estimate = decoded((person, shown), queries)
        blind = generator.integers(0, 2, len(secret))
        guesses.append(np.where(np.abs(estimate) < 0.5, blind, estimate > 0).astype(np.int64))
        # the number of people is public, so a table of another size is scaled
        ones = np.bincount(person[shown == 1], minlength=len(secret)) * (len(secret) / max(1, len(person)))
        truth = queries.ask(secret.astype(np.float64))
        errors.append(np.abs(queries.ask(ones.astype(np.float64)) - truth))
        constant.append(np.abs(queries.ask(np.full(len(secret), 0.5)) - truth))
    return AttackFinding(
        target,
        None,
        bits.score_bits(secrets, guesses),
        None,
        {
            "queries": len(errors[0]),
            "mean error of a sum": float(np.mean(errors)),
            "error of a constant ½": float(np.mean(constant)),
        },
    )


def _words(findings: Sequence[AttackFinding], count: int) -> list[str]:
    constant = float(findings[0].facts["error of a constant ½"])
    sentences = [
        f"A table that assigns ½ to everyone reveals nothing; its mean error for random sums over {count} people is"
        f" {constant:.2g}. A table with a much smaller error reveals the bits, because the sums can be solved.",
        *(
            f"{finding.target[0].upper()}{finding.target[1:]}: mean error"
            f" {float(finding.facts['mean error of a sum']):.2g}; the attack recovers {percent(finding.score.share)} of"
            " the bits."
            for finding in findings
            if finding.epsilon is None
        ),
    ]
    ours = [finding for finding in findings if finding.epsilon is not None]
    if ours:
        least = min(float(each.facts["mean error of a sum"]) for each in ours)
        sentences.append(f"{ours[0].target[0].upper()}{ours[0].target[1:]}: mean error {least:.2g} or more.")
    return [*sentences, *describe_findings(ours)]
