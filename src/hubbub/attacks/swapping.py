"""Swapping attack: exchanging values between pairs of rows leaves most rows as they are.

Statistics offices exchange the place of residence, or another column, between pairs of similar rows before they publish
them (Dalenius and Reiss 1982; Chawla and others 2005, § 1.2). Counts by the other columns stay exact. A row that is
unique in public columns is still found unless it was swapped, and the adversary loses only the share of swapped rows.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Fact, Progress, describe_findings, no_progress, percent
from hubbub.attacks.game import Bits, flip, guess_from, informed_at, score_guesses
from hubbub.attacks.linkage import COIN
from hubbub.attacks.simulated import clinic
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count_noises
from hubbub.errors import AttackError


def swapped(values: NDArray[Any], rate: float, rng: np.random.Generator) -> NDArray[Any]:
    """Exchange values between random pairs of rows, for a share `rate` of the rows."""
    order = rng.permutation(len(values))
    first, second = order[: len(order) // 2], order[len(order) // 2 : len(order) // 2 * 2]
    pairs = rng.random(len(first)) < rate
    result = values.copy()
    result[first[pairs]], result[second[pairs]] = values[second[pairs]], values[first[pairs]]
    return result


def link(public: NDArray[np.int64], released: NDArray[np.int64], coins: Bits, rng: np.random.Generator) -> Bits:
    """Guess each person's coin by the majority of released rows with the person's public values; at random if none."""
    size = int(max(public.max(), released.max())) + 1
    evidence = np.bincount(released, weights=2.0 * coins - 1, minlength=size)[public]
    return guess_from(evidence, rng)


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    quasi: tuple[str, ...] = (),
    column: str = "",
    rates: tuple[str, ...] = ("0.1", "0.5", "1"),
) -> AttackStudy:
    """Learn people's secrets from a table in which a column was swapped between pairs of rows.

    Each row gets a fair coin as its secret. Public are the columns `quasi` (default: all but the last). The values of
    `column` (default: the last public column) are exchanged between random pairs of rows, for each share of rows in
    `rates`, and the rows are published without names. The adversary knows everyone's true public values and reads the
    coin of the row that matches. Against hubbub, the adversary queries the count of coins in each person's cell, and
    knows all other rows in it.
    """
    table = clinic(2000, generator) if table is None else table
    known = tuple(dict.fromkeys(quasi)) or tuple(table.columns)[:-1]
    table.keep(known)  # report a missing column before the work begins
    moved = column or (known[-1] if known else "")
    shares = [_rate(text) for text in rates]
    if COIN in table.columns or moved not in known or table.rows < 2 or not shares:
        raise AttackError(
            "HB651", f"{table.name} cannot be swapped by {moved}.", f"Choose one of {', '.join(known)}, and a rate."
        )
    coins = flip(table.rows, generator)
    public = table.keep(known)
    findings = []
    for step, rate in enumerate([0.0, *shares]):
        progress(step / (len(shares) + 1) / 2, f"{rate:.0%} swapped")
        values = swapped(public.column(moved), rate, generator)
        both = {name: np.concatenate([column, column]) for name, column in public.columns.items()}
        both[moved] = np.concatenate([public.column(moved), values])
        codes = AttackTable("both", both).codes(known)
        guesses = link(codes[: table.rows], codes[table.rows :], coins, generator)
        unmoved = float(np.mean(values == public.column(moved)))
        facts: dict[str, Fact] = {f"rows that keep their {moved}": unmoved}
        name = "names removed, nothing swapped" if not rate else f"{moved} swapped in {rate:.0%} of the rows"
        findings.append(AttackFinding(name, None, score_guesses(guesses, coins), None, facts))
    cells = public.codes(known)
    others = np.bincount(cells, weights=coins).astype(np.int64)[cells] - coins
    cell = " AND ".join(condition(name, table.column(name)[0]) for name in known)
    progress(0.5, "hubbub")
    noises = count_noises(public.where(**{COIN: coins}), f"{cell} AND {COIN}", epsilons=epsilons)
    findings += informed_at("hubbub, everyone else known", epsilons, noises, others, coins)
    progress(1.0, "done")
    words = (
        f"With {moved} swapped in {shares[0]:.0%} of the rows, {percent(findings[1].score.share)} of the secrets are "
        f"still read off, compared with {percent(findings[0].score.share)} without swapping. Which rows were swapped "
        "is all that an adversary does not know, and no bound follows from it.",
        *describe_findings(findings),
    )
    return AttackStudy("swapping", f"Swapping {moved} between rows", words, tuple(findings))


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate <= 1:
        raise AttackError("HB643", "The setting rates must list shares above 0 and up to 1.", "Use 0.1,0.5,1")
    return rate
