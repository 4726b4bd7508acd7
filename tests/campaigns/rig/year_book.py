"""A year's ledger read without hubbub: charges as they are in the SQLite file, and what breaks a promise.

Prices are those of Laplace noise alone: sensitivity over scale, added up. Any other noise is an error here.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

_ROW = re.compile(r"^(?P<who>\S.*?)\s{2,}(?P<epsilon>[\d.]+)\s+(?P<delta>\S+)\s+(?:almost )?[\d.]+%$")
_EACH = ", in each block"


@dataclass(frozen=True)
class Charge:
    """One charge: what it costs, the months that it says it reads, and the number of its releases."""

    analyst: str
    dataset: str
    key: str
    epsilon: Fraction
    months: tuple[str, ...]
    releases: int


@dataclass(frozen=True)
class Promise:
    """One line of `hubbub check`: the ε that somebody can spend at most, in each block or for all time."""

    dataset: str
    who: str
    epsilon: Fraction
    each: bool


def promised(checked: str) -> list[Promise]:
    """Read the budgets from the words of `hubbub check`, dataset by dataset."""
    found, dataset = [], ""
    for line in checked.splitlines():
        if line.endswith(".csv") and not line.startswith(" "):
            dataset = line.split()[0]
        row = _ROW.match(line.rstrip())
        if row is not None:
            assert row["delta"] == "0", line
            who = row["who"]
            found.append(Promise(dataset, who.removesuffix(_EACH), Fraction(row["epsilon"]), who.endswith(_EACH)))
    return found


def charges(ledger: Path) -> list[Charge]:
    """Read all charges of a ledger's file."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as file:
        rows = file.execute("SELECT kind, analyst, dataset, key, facts, sequence, charge FROM entries").fetchall()
    file.close()
    released = Counter(charge for kind, *_, charge in rows if kind == "release")
    return [
        Charge(analyst, dataset, key, price(facts := json.loads(text)), months(facts), released[sequence])
        for kind, analyst, dataset, key, text, sequence, _ in rows
        if kind == "charge"
    ]


def price(event: Mapping[str, Any]) -> Fraction:
    """Return the ε of an event of Laplace noise; KeyError for any other."""
    if event["mechanism"] == "together":
        return sum((price(part) * count for part, count in event["parts"]), Fraction(0))
    return Fraction(event["sensitivity"]) / Fraction({"laplace": event["scale"]}[event["mechanism"]])


def months(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the months of a charge."""
    found = []
    for first, last in facts["blocks"]["ranges"]:
        year, month = (int(part) for part in first.split("-"))
        while (name := f"{year:04}-{month:02}") <= last:
            found.append(name)
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return tuple(found)


def broken(
    booked: Sequence[Charge], promises: Iterable[Promise], expected: Mapping[str, tuple[Fraction, tuple[str, ...]]]
) -> list[str]:
    """List what breaks a promise; `expected` has the price and the months that each key asked for."""
    found = [
        f"{key} was charged {count} times" for key, count in Counter(each.key for each in booked).items() if count > 1
    ]
    for each in booked:
        if each.releases > 1:
            found.append(f"{each.key} has {each.releases} releases")
        if (each.epsilon, each.months) != expected[each.key]:
            found.append(f"{each.key} was charged {each.epsilon} in {each.months}, not {expected[each.key]}")
    for promise in promises:
        mine = [c for c in booked if c.dataset == promise.dataset and promise.who in ("all analysts", c.analyst)]
        spent: dict[str, Fraction] = {}
        for each in mine:
            for month in each.months if promise.each else ("for all time",):
                spent[month] = spent.get(month, Fraction(0)) + each.epsilon
        found += [
            f"{promise.who} spent {total} of {promise.epsilon} on {promise.dataset} in {month}"
            for month, total in spent.items()
            if total > promise.epsilon
        ]
    return found
