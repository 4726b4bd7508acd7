"""Hiding in groups: k-anonymous tables and suppressed small counts tell what they mean to hide.

In a k-anonymous table nobody is alone in what is known of them, and where all of a group have one secret, it is told;
whoever knows the others of a group knows the last one always. Small counts that are left out tell by being left out.
Both are choices made from the data, and their loss is infinite (Chawla, Dwork, McSherry, Smith and Wee 2005, 1.2).
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Fact, Finding, Progress, Score, Study, compared, percent, unheard
from hubbub.attacks.game import Bits, flip, informed_at, scored, settled
from hubbub.attacks.linkage import COIN
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import Table
from hubbub.attacks.target import condition, countings
from hubbub.core import numbers
from hubbub.errors import AttackError

#: The column that says to which group of the k-anonymous table a row belongs.
GROUP = "hubbub_group"

Codes = NDArray[np.int64]


def grouped(table: Table, quasi: Sequence[str], k: int) -> Codes:
    """Make a table k-anonymous: rows in the order of what is known of them, in groups of k (the last up to 2k − 1).

    Each group would be published with the range of its values; every release of this kind has such groups.
    """
    order = np.lexsort([np.unique(table.column(name), return_inverse=True)[1] for name in reversed(quasi)])
    groups = np.empty(table.rows, dtype=np.int64)
    groups[order] = np.minimum(np.arange(table.rows) // k, max(table.rows // k - 1, 0))
    return groups


def homogeneous(groups: Codes, values: Codes) -> Bits:
    """Say of each row whether all of its group have one value."""
    low, high = np.full(groups.max() + 1, values.max()), np.full(groups.max() + 1, values.min())
    np.minimum.at(low, groups, values)
    np.maximum.at(high, groups, values)
    return np.asarray((low == high)[groups])


def commonest(groups: Codes, values: Codes) -> Codes:
    """Guess for each row the value that most of its group have."""
    width = int(values.max()) + 1
    pairs, counts = np.unique(groups * width + values, return_counts=True)
    order = np.lexsort([counts, pairs // width])
    # of each group the last one stays: that with the largest count
    found = np.zeros(groups.max() + 1, dtype=np.int64)
    found[pairs[order] // width] = pairs[order] % width
    return np.asarray(found[groups])


def suppressed(counts: Codes, least: int) -> Codes:
    """Publish counts, and -1 in the place of small ones."""
    return np.where(counts < least, -1, counts)


def study(
    table: Table | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    quasi: tuple[str, ...] = (),
    sensitive: str = "",
    k: int = 5,
) -> Study:
    """Read secrets off a k-anonymous table, and off the gaps where small counts are left out.

    Rows are put in groups of `k` by what an outsider may know (`quasi`; default: all but `sensitive`). What the groups
    tell of the column `sensitive` is reported as it stands. Then a fair coin stands beside each row as its secret:
    guessed from the group, from the group by who knows its others, from whether a count of the group is shown where
    counts below k are not, and from hubbub's noisy count, by who knows the others there too.
    """
    k = numbers.integer(k, "k", 2, 10**6)
    table = clinic(2000, generator) if table is None else table
    told = sensitive or list(table.columns)[-1]
    known = tuple(name for name in (quasi or tuple(table.columns)) if name != told)
    if not known or table.rows < k or {COIN, GROUP} & set(table.columns):
        raise AttackError(
            "HB651",
            f"{table.name} cannot be put in groups of {k} by these columns.",
            f"It needs {k} rows, a column beside {told}, and none called {COIN} or {GROUP}.",
        )
    progress(0.0, f"groups of {k}")
    groups = grouped(table, known, k)
    values = table.codes([told])
    sure = homogeneous(groups, values)
    blind = float(np.bincount(values).max() / table.rows)
    found = Score(int(np.count_nonzero(commonest(groups, values) == values)), table.rows, blind)
    facts: dict[str, Fact] = {"groups": int(groups.max()) + 1, "told for certain": float(np.mean(sure))}
    name = f"{k}-anonymous"
    coins = flip(table.rows, generator)
    ones = np.bincount(groups, weights=coins).astype(np.int64)[groups]
    others = ones - coins
    sizes = np.bincount(groups)[groups]
    alike: dict[str, Fact] = {"told for certain": float(np.mean((ones == 0) | (ones == sizes)))}
    findings = [
        Finding(f"{name}: {told}", None, found, None, facts),
        Finding(f"{name}: a coin", None, scored(settled(2 * ones - sizes, generator), coins), None, alike),
        Finding(f"{name}: a coin, the others of the group known", None, scored(ones - others > 0, coins), None),
        Finding(f"counts below {k} left out, {k - 1} others known", None, _gaps(k, coins), None),
    ]
    progress(0.5, "hubbub")
    both = Table(table.name, {GROUP: groups, COIN: coins})
    noises = countings(both, f"{condition(GROUP, groups[0])} AND {COIN}", epsilons=epsilons)
    findings += informed_at("hubbub: a coin, the others of the group known", epsilons, noises, others, coins)
    progress(1.0, "done")
    words = (
        f"In a {k}-anonymous release of {table.name}, {told} of {percent(float(np.mean(sure)))} of the rows is told "
        "for certain: all of their group have the same.",
        *compared(findings),
    )
    return Study("homogeneity", f"Hidden in groups of {k}", words, tuple(findings))


def _gaps(k: int, coins: Bits) -> Score:
    """Guess who is in a cell with k − 1 others from whether its count is shown at all."""
    return scored(suppressed(k - 1 + coins.astype(np.int64), k) >= 0, coins)
