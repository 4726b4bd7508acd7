"""Differencing attack: two counts, with and without one person, reveal that person's secret (Dwork 2011)."""

from collections.abc import Sequence
from fractions import Fraction
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, ceiling, describe_findings, no_progress
from hubbub.attacks.game import Bits, flip, guess_from, informed, score_guesses
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count, count_noise, laplace, open_protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

#: Threshold of suppression and step of rounding of the naive protections.
LEAST, STEP = 10, 5


def difference(everybody: NDArray[np.int64], without: NDArray[np.int64], generator: np.random.Generator) -> Bits:
    """Guess a person's bit from a count with and a count without them: 1 if the counts differ by about one."""
    return guess_from(2 * (everybody - without) - 1, generator)


def odds(gap: int, *, scale: Fraction) -> float:
    """Return the likelihood ratio of this difference of two noisy counts, for a bit of 1 against 0.

    The difference of two discrete Laplace variables with q = e^(−1/scale) has a mass in proportion to
    q^|d|·(|d| + (1+q²)/(1−q²)), the sum of q^(|k|+|d−k|) over k.

    >>> [round(odds(gap, scale=Fraction(2)), 3) for gap in (0, 1, 100)]
    [0.887, 1.128, 1.633]
    """
    rate = float(1 / scale)
    q = exp(-rate)
    rest = (1 + q * q) / (1 - q * q) if q < 1 else inf
    one, zero = abs(gap - 1), abs(gap)
    return exp(rate * (zero - one)) * (one + rest) / (zero + rest)


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    column: str = "",
    quasi: tuple[str, ...] = (),
    trials: int = 2000,
) -> AttackStudy:
    """Count the people with a property, count them again without one person, and subtract.

    Each trial singles out one person by public columns (`quasi`), flips a coin for whether that person has the most
    common value of `column`, and requests both counts. Suppressing small counts does not help, because both are large;
    rounding fails against many variants of the query. hubbub's two answers share ε.
    """
    trials = numbers.integer(trials, "trials", 1, 10**6)
    table = clinic(1000, generator) if table is None else table
    secret, value = _secret(table, column)
    known = quasi or tuple(name for name in table.columns if name != secret)
    rows = generator.choice(singled_out(table, known), trials)
    has = table.column(secret) == value
    coins = flip(trials, generator)
    without = np.int64(np.count_nonzero(has)) - has[rows]
    everybody = without + coins
    findings = [
        AttackFinding(
            "unprotected",
            None,
            score_guesses(difference(everybody, without, generator), coins),
            None,
            {"people counted": int(without.min())},
        ),
        AttackFinding(
            f"counts below {LEAST} suppressed",
            None,
            score_guesses(_suppressed(everybody, without, generator), coins),
            None,
        ),
        AttackFinding(
            f"counts rounded to {STEP}, 50 query variants",
            None,
            score_guesses(_rounded(without, coins, generator), coins),
            None,
        ),
    ]
    where = condition(secret, value)
    person = " AND ".join(condition(name, table.column(name)[rows[0]]) for name in known)
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"hubbub at ε = {brief(epsilon)}")
        both = _count_noises(table.keep([*dict.fromkeys((secret, *known))]), where, person, epsilon)
        first, second = (
            noise.sample(counts, system()) for noise, counts in zip(both, (everybody, without), strict=True)
        )
        largest = max(odds(gap, scale=both[0].scale) for gap in np.unique(first - second).tolist())
        findings.append(
            AttackFinding(
                "hubbub",
                epsilon,
                score_guesses(difference(first, second, generator), coins),
                ceiling(epsilon),
                {"largest posterior odds": largest, "e^ε": exp(epsilon)},
            )
        )
        whole = count_noise(table.keep([secret]), where, epsilon=epsilon)
        guesses = informed(whole, without, coins, system())
        findings.append(
            AttackFinding("hubbub, everyone else known", epsilon, score_guesses(guesses, coins), ceiling(epsilon))
        )
    progress(1.0, "done")
    return AttackStudy("differencing", "Differencing two counts", describe_findings(findings), tuple(findings))


def singled_out(table: AttackTable, known: Sequence[str]) -> NDArray[np.int64]:
    """Find the rows with a unique combination of values in these columns."""
    codes = table.codes(known)
    unique = np.flatnonzero(np.bincount(codes)[codes] == 1)
    if not len(unique):
        raise AttackError(
            "HB651",
            f"No row of {table.name} is unique in the columns {', '.join(known)}.",
            "Pass more columns that an attacker may know with --quasi.",
        )
    return unique


def _secret(table: AttackTable, column: str) -> tuple[str, object]:
    """Choose the secret column, by default the last one with few values, and its most common value."""
    few = [name for name, values in table.columns.items() if 2 <= len(np.unique(values)) <= 50]
    if not column and not few:
        raise AttackError(
            "HB651", f"No column of {table.name} has 2 to 50 values.", "Choose a column with --set column=…"
        )
    name = column or few[-1]
    values, counts = np.unique(table.column(name), return_counts=True)
    return name, values[np.argmax(counts)]


def _suppressed(everybody: NDArray[np.int64], without: NDArray[np.int64], generator: np.random.Generator) -> Bits:
    evidence = np.where(np.minimum(everybody, without) < LEAST, 0, 2 * (everybody - without) - 1)
    return guess_from(evidence, generator)


def _rounded(without: NDArray[np.int64], coins: Bits, generator: np.random.Generator) -> Bits:
    """Query with and without the person in 50 random halves of the others: adding 1 changes one rounding in five."""
    halves = generator.binomial(without[:, None], 0.5, size=(len(without), 50))
    changed = np.rint((halves + coins[:, None]) / STEP) != np.rint(halves / STEP)
    return np.asarray(changed.any(axis=1))


def _count_noises(table: AttackTable, where: str, person: str, epsilon: Fraction) -> tuple[Laplace, Laplace]:
    """Query both counts at ε/2 each and return their noise mechanisms."""
    with open_protected(table, epsilon=epsilon) as session:
        first, second = (
            laplace(count(session, text, epsilon=epsilon / 2, fresh=True))
            for text in (where, f"{where} AND NOT ({person})")
        )
    return first, second
