"""Homogeneity attack: k-anonymous tables and suppressed small counts reveal what they should hide.

If all rows of a k-anonymous group share a secret, the table reveals it, and an adversary who knows the others of a
group always learns the last one. The absence of a small count is itself information. Both protections depend on the
data, and their privacy loss is infinite (Chawla, Dwork, McSherry, Smith and Wee 2005, 1.2).
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
    describe_findings,
    no_progress,
    percent,
)
from hubbub.attacks.game import Bits, flip, guess_from, informed_at, score_guesses
from hubbub.attacks.linkage import COIN
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count_noises
from hubbub.core import numbers
from hubbub.errors import AttackError

#: Column with the number of a row's group in the k-anonymous table.
GROUP = "hubbub_group"

Codes = NDArray[np.int64]


def grouped(table: AttackTable, quasi: Sequence[str], k: int) -> Codes:
    """Make a table k-anonymous: sort the rows by the public columns and form groups of k (the last up to 2k − 1).

    Each group would be published with the ranges of its values.
    """
    order = np.lexsort([np.unique(table.column(name), return_inverse=True)[1] for name in reversed(quasi)])
    groups = np.empty(table.rows, dtype=np.int64)
    groups[order] = np.minimum(np.arange(table.rows) // k, max(table.rows // k - 1, 0))
    return groups


def homogeneous(groups: Codes, values: Codes) -> Bits:
    """Return for each row whether all rows of its group have the same value."""
    low, high = np.full(groups.max() + 1, values.max()), np.full(groups.max() + 1, values.min())
    np.minimum.at(low, groups, values)
    np.maximum.at(high, groups, values)
    return np.asarray((low == high)[groups])


def commonest(groups: Codes, values: Codes) -> Codes:
    """Guess for each row the most common value of its group."""
    width = int(values.max()) + 1
    pairs, counts = np.unique(groups * width + values, return_counts=True)
    order = np.lexsort([counts, pairs // width])
    # the last assignment per group wins: the value with the largest count
    values_of_groups = np.zeros(groups.max() + 1, dtype=np.int64)
    values_of_groups[pairs[order] // width] = pairs[order] % width
    return np.asarray(values_of_groups[groups])


def suppressed(counts: Codes, least: int) -> Codes:
    """Publish counts, with -1 instead of small ones."""
    return np.where(counts < least, -1, counts)


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    quasi: tuple[str, ...] = (),
    sensitive: str = "",
    k: int = 5,
) -> AttackStudy:
    """Infer secrets from a k-anonymous table and from suppressed small counts.

    Rows are grouped by `k` using public columns (`quasi`; default: all but `sensitive`). The study reports what the
    groups reveal about the column `sensitive`. Then each row gets a fair coin as its secret, which is guessed from the
    group, from the group by an adversary who knows its other rows, from whether a count of the group is shown if counts
    below k are suppressed, and from hubbub's noisy count by an adversary who knows the other rows.
    """
    k = numbers.integer(k, "k", 2, 10**6)
    table = clinic(2000, generator) if table is None else table
    secret = sensitive or list(table.columns)[-1]
    known = tuple(name for name in (quasi or tuple(table.columns)) if name != secret)
    if not known or table.rows < k or {COIN, GROUP} & set(table.columns):
        raise AttackError(
            "HB651",
            f"{table.name} cannot be grouped by {k} with these columns.",
            f"Use a table with {k} rows or more, a column other than {secret}, and none named {COIN} or {GROUP}.",
        )
    progress(0.0, f"groups of {k}")
    groups = grouped(table, known, k)
    values = table.codes([secret])
    sure = homogeneous(groups, values)
    blind = float(np.bincount(values).max() / table.rows)
    score = Score(int(np.count_nonzero(commonest(groups, values) == values)), table.rows, blind)
    facts: dict[str, Fact] = {"groups": int(groups.max()) + 1, "revealed with certainty": float(np.mean(sure))}
    name = f"{k}-anonymous"
    coins = flip(table.rows, generator)
    ones = np.bincount(groups, weights=coins).astype(np.int64)[groups]
    others = ones - coins
    sizes = np.bincount(groups)[groups]
    alike: dict[str, Fact] = {"revealed with certainty": float(np.mean((ones == 0) | (ones == sizes)))}
    findings = [
        AttackFinding(f"{name}: {secret}", None, score, None, facts),
        AttackFinding(
            f"{name}: coin", None, score_guesses(guess_from(2 * ones - sizes, generator), coins), None, alike
        ),
        AttackFinding(f"{name}: coin, rest of the group known", None, score_guesses(ones - others > 0, coins), None),
        AttackFinding(f"counts below {k} suppressed, {k - 1} others known", None, _gaps(k, coins), None),
    ]
    progress(0.5, "hubbub")
    both = AttackTable(table.name, {GROUP: groups, COIN: coins})
    noises = count_noises(both, f"{condition(GROUP, groups[0])} AND {COIN}", epsilons=epsilons)
    findings += informed_at("hubbub: coin, rest of the group known", epsilons, noises, others, coins)
    progress(1.0, "done")
    words = (
        f"A {k}-anonymous release of {table.name} reveals {secret} with certainty for {percent(float(np.mean(sure)))}"
        " of the rows, because all rows of their group have the same value.",
        *describe_findings(findings),
    )
    return AttackStudy("homogeneity", f"Homogeneity of {k}-anonymous groups", words, tuple(findings))


def _gaps(k: int, coins: Bits) -> Score:
    """Guess who is in a cell with k − 1 others from whether its count is shown."""
    return score_guesses(suppressed(k - 1 + coins.astype(np.int64), k) >= 0, coins)
