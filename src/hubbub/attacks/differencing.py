"""Differencing: two counts over many people, of which one leaves out Mr X, tell his secret (Dwork 2011)."""

from collections.abc import Sequence
from fractions import Fraction
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Finding, Progress, Study, ceiling, compared, unheard
from hubbub.attacks.game import Bits, flip, informed, scored, settled
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import Table
from hubbub.attacks.target import condition, count, counting, laplace, protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import AttackError
from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

#: What naive protections hide or round to.
LEAST, STEP = 10, 5


def difference(everybody: NDArray[np.int64], without: NDArray[np.int64], generator: np.random.Generator) -> Bits:
    """Guess a person's bit from a count with and one without: closer to one apart, or closer to equal."""
    return settled(2 * (everybody - without) - 1, generator)


def odds(apart: int, *, scale: Fraction) -> float:
    """Give how many times likelier this difference of two noisy counts is for a 1 than for a 0.

    The difference of two discrete Laplace variables of q = e^(−1/scale) has a mass in proportion to
    q^|d|·(|d| + (1+q²)/(1−q²)), the sum of q^(|k|+|d−k|) over k.

    >>> [round(odds(apart, scale=Fraction(2)), 3) for apart in (0, 1, 100)]
    [0.887, 1.128, 1.633]
    """
    rate = float(1 / scale)
    q = exp(-rate)
    rest = (1 + q * q) / (1 - q * q) if q < 1 else inf
    one, zero = abs(apart - 1), abs(apart)
    return exp(rate * (zero - one)) * (one + rest) / (zero + rest)


def study(
    table: Table | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    column: str = "",
    quasi: tuple[str, ...] = (),
    trials: int = 2000,
) -> Study:
    """Ask how many people have something, then how many but for Mr X have it, and subtract.

    Each trial singles out one person by columns that anybody may know (`quasi`), flips a coin for whether that person
    has the commonest value of `column`, and asks for both counts. Hidden small counts do not help, for both are large;
    rounded ones give in to asking in many ways. hubbub's two answers cost ε together.
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
        Finding(
            "unprotected",
            None,
            scored(difference(everybody, without, generator), coins),
            None,
            {"people counted": int(without.min())},
        ),
        Finding(f"counts below {LEAST} hidden", None, scored(_hidden(everybody, without, generator), coins), None),
        Finding(
            f"counts rounded to {STEP}, asked in 50 ways",
            None,
            scored(_rounded(without, coins, generator), coins),
            None,
        ),
    ]
    where = condition(secret, value)
    person = " AND ".join(condition(name, table.column(name)[rows[0]]) for name in known)
    for place, epsilon in enumerate(epsilons):
        progress(place / len(epsilons), f"hubbub at ε = {brief(epsilon)}")
        both = _asked(table.keep([*dict.fromkeys((secret, *known))]), where, person, epsilon)
        first, second = (
            noise.sample(counts, system()) for noise, counts in zip(both, (everybody, without), strict=True)
        )
        largest = max(odds(apart, scale=both[0].scale) for apart in np.unique(first - second).tolist())
        findings.append(
            Finding(
                "hubbub",
                epsilon,
                scored(difference(first, second, generator), coins),
                ceiling(epsilon),
                {"largest posterior odds": largest, "e^ε": exp(epsilon)},
            )
        )
        whole = counting(table.keep([secret]), where, epsilon=epsilon)
        guesses = informed(whole, without, coins, system())
        findings.append(Finding("hubbub, all others known", epsilon, scored(guesses, coins), ceiling(epsilon)))
    progress(1.0, "done")
    return Study("differencing", "Two counts, and what is between them", compared(findings), tuple(findings))


def singled_out(table: Table, known: Sequence[str]) -> NDArray[np.int64]:
    """Find the rows that are alone with their values of these columns."""
    codes = table.codes(known)
    alone = np.flatnonzero(np.bincount(codes)[codes] == 1)
    if not len(alone):
        raise AttackError(
            "HB651",
            f"nobody in {table.name} is alone in what is known: {', '.join(known)}.",
            "Name more columns with --quasi; they are what an attacker may know of a person.",
        )
    return alone


def _secret(table: Table, column: str) -> tuple[str, object]:
    """Choose the secret column, the last that has few values where none is named, and its commonest value."""
    few = [name for name, values in table.columns.items() if 2 <= len(np.unique(values)) <= 50]
    if not column and not few:
        raise AttackError("HB651", f"no column of {table.name} has few values.", "Name one with --set column=…")
    name = column or few[-1]
    values, counts = np.unique(table.column(name), return_counts=True)
    return name, values[np.argmax(counts)]


def _hidden(everybody: NDArray[np.int64], without: NDArray[np.int64], generator: np.random.Generator) -> Bits:
    evidence = np.where(np.minimum(everybody, without) < LEAST, 0, 2 * (everybody - without) - 1)
    return settled(evidence, generator)


def _rounded(without: NDArray[np.int64], coins: Bits, generator: np.random.Generator) -> Bits:
    """Ask with and without among 50 random halves of the others: where a 1 is added, one in five rounds otherwise."""
    halves = generator.binomial(without[:, None], 0.5, size=(len(without), 50))
    apart = np.rint((halves + coins[:, None]) / STEP) != np.rint(halves / STEP)
    return np.asarray(apart.any(axis=1))


def _asked(table: Table, where: str, person: str, epsilon: Fraction) -> tuple[Laplace, Laplace]:
    """Ask hubbub for both counts, at half of ε each, and give what noise they came with."""
    with protected(table, epsilon=epsilon) as session:
        first, second = (
            laplace(count(session, text, epsilon=epsilon / 2)) for text in (where, f"{where} AND NOT ({person})")
        )
    return first, second
