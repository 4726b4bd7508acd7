"""Intersection attack: several k-anonymous tables of the same people reveal what each of them hides.

Each owner forms groups of k on its own, so a person is in different groups with different people; the only value that
all of the person's groups share is usually the person's own (Ganta, Kasiviswanathan and Smith 2008; Chawla and others
2005, § 7). Differentially private releases compose: their ε add up, whoever made them.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import (
    AttackFinding,
    AttackStudy,
    Fact,
    Progress,
    Score,
    ceiling,
    describe_findings,
    no_progress,
    percent,
)
from hubbub.attacks.game import Bits, flip, guess_from, score_guesses
from hubbub.attacks.homogeneity import GROUP, Codes, grouped
from hubbub.attacks.linkage import COIN
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count_noises
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.errors import AttackError
from hubbub.noise.source import system

#: Number of values of the simulated secret: a code of a diagnosis.
_CODES = 40


def weigh(groups: Codes, values: Codes, width: int) -> NDArray[np.int64]:
    """Return for each row how often each value occurs in its group: all that a k-anonymous table tells of the row."""
    counts = np.zeros((int(groups.max()) + 1, width), dtype=np.int64)
    np.add.at(counts, (groups, values), 1)
    return counts[groups]


def intersect(weights: Sequence[NDArray[np.int64]]) -> tuple[Codes, Bits]:
    """Guess the likeliest value that occurs in all of a person's groups, and tell who has only one such value."""
    product = np.prod(np.asarray(weights, dtype=np.float64), axis=0)
    return np.asarray(product.argmax(axis=1), dtype=np.int64), np.count_nonzero(product, axis=1) == 1


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    quasi: tuple[str, ...] = (),
    sensitive: str = "",
    k: int = 5,
    releases: int = 2,
) -> AttackStudy:
    """Intersect the groups of several k-anonymous tables that have people in common.

    Half of the rows are in the table of every one of `releases` owners; each owner has a share of the others, groups
    its own rows by `k` using public columns (`quasi`; default: all but `sensitive`), and publishes the values of the
    column `sensitive` in each group. The adversary knows the public columns of a person and which tables the person is
    in, and guesses the value that all groups share. Against hubbub, every owner publishes a noisy count of a fair coin
    at ε, for an adversary who knows all other rows: the total is the sum of the ε.
    """
    k, owners = numbers.integer(k, "k", 2, 10**6), numbers.integer(releases, "releases", 2, 16)
    table = _patients(2000, generator) if table is None else table
    secret = sensitive or list(table.columns)[-1]
    known = tuple(name for name in (quasi or tuple(table.columns)) if name != secret)
    own = (table.rows - table.rows // 2) // owners
    if not known or own < 1 or table.rows // 2 < k or {COIN, GROUP} & set(table.columns):
        raise AttackError(
            "HB651",
            f"{table.name} cannot be shared by {owners} owners in groups of {k} with these columns.",
            f"Use a table with more rows, a column other than {secret}, and none named {COIN} or {GROUP}.",
        )
    order, values = generator.permutation(table.rows), table.codes([secret])
    common, width = order[: table.rows // 2], int(values.max()) + 1
    weights = []
    for owner in range(owners):
        progress(owner / owners / 2, f"table {owner + 1} of {owners}")
        start = len(common) + owner * own
        rows = np.concatenate([common, order[start : start + own]])
        turned = known[owner % len(known) :] + known[: owner % len(known)]  # each owner generalizes in its own order
        groups = grouped(table.take(rows), turned, k)
        weights.append(weigh(groups, values[rows], width)[: len(common)])
    truth = values[common]
    blind = float(np.bincount(truth).max() / len(truth))
    findings = []
    for count in range(1, owners + 1):
        guesses, sure = intersect(weights[:count])
        score = Score(int(np.count_nonzero(guesses == truth)), len(truth), blind)
        name = f"{k}-anonymous: 1 table" if count == 1 else f"{k}-anonymous: {count} tables intersected"
        facts: dict[str, Fact] = {"revealed with certainty": float(sure.mean())}
        findings.append(AttackFinding(name, None, score, None, facts))
    findings += _private(table, known, epsilons, owners, generator, progress)
    first, last = (percent(float(findings[index].facts["revealed with certainty"])) for index in (0, owners - 1))
    words = (
        f"One {k}-anonymous table reveals {secret} with certainty for {first} of the people that all owners have; "
        f"{owners} tables of these people, each {k}-anonymous, for {last}.",
        f"{owners} releases of hubbub at ε each have {owners}·ε together, and the maximum is that of the sum.",
        *describe_findings(findings),
    )
    return AttackStudy("intersection", "Intersecting tables of the same people", words, tuple(findings))


def _private(
    table: AttackTable,
    known: Sequence[str],
    epsilons: Sequence[Fraction],
    owners: int,
    generator: np.random.Generator,
    progress: Progress,
) -> list[AttackFinding]:
    """Let every owner publish one noisy count of the coins, and add the evidence of all counts."""
    coins = flip(table.rows, generator)
    progress(0.5, "hubbub")
    where = f"{condition(known[0], table.column(known[0])[0])} AND {COIN}"
    noises = count_noises(table.keep(known[:1]).where(**{COIN: coins}), where, epsilons=epsilons)
    findings = []
    for epsilon, noise in zip(epsilons, noises, strict=True):
        answers = noise.sample(np.tile(coins.astype(np.int64), owners), system()).reshape(owners, -1)
        votes = np.where(answers > 0, 1, -1).sum(axis=0)  # of two sides, each answer favors one by e^ε
        agreed = np.abs(votes) == owners
        right = float(np.mean((votes > 0)[agreed] == coins[agreed])) if agreed.any() else 0.5
        facts: dict[str, Fact] = {"ε of each release": brief(epsilon), "right where all releases agree": right}
        total = epsilon * owners
        score = score_guesses(guess_from(votes, generator), coins)
        findings.append(
            AttackFinding(f"hubbub: {owners} releases, everyone else known", total, score, ceiling(total), facts)
        )
    return findings


def _patients(people: int, generator: np.random.Generator) -> AttackTable:
    codes = np.array([f"code {number:02d}" for number in range(_CODES)], dtype=object)
    weights = 1 / np.arange(1, _CODES + 1)
    diagnosis = generator.choice(codes, people, p=weights / weights.sum())
    return clinic(people, generator).where(diagnosis=diagnosis)
