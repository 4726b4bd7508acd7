"""What in the ledger looks unusual, for whoever oversees it: what it could mean, and what it cannot.

It compares the texts of charged queries, whose cost is charged whatever they say. So nothing that is found here is a
hole in the guarantee: it is a reason to talk to somebody.

Tested in tests/server/test_oversight.py.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hubbub.answers.budget import PastCharge

#: Queries of one shape from which on they are told.
MANY = 10
#: Newest queries of an analyst on a dataset that are compared in pairs.
COMPARED = 100
_CONSTANT = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")
_ADDED = re.compile(r"\s*(?:AND|WHERE)\b", re.IGNORECASE)
_CANNOT = "What it cannot mean: that more was learned about a person than the ε of these queries allows."


@dataclass(frozen=True, slots=True)
class Observation:
    """Something unusual: who, on which dataset, what, and what it could and cannot mean."""

    analyst: str
    dataset: str
    what: str
    could: str
    cannot: str = _CANNOT
    charges: tuple[int, ...] = ()


def unusual(
    charges: Iterable[PastCharge], failures: Mapping[tuple[str, str], Sequence[int]]
) -> tuple[Observation, ...]:
    """Find series of similar queries, pairs that differ in one condition, and failures after a charge."""
    of: dict[tuple[str, str], list[PastCharge]] = defaultdict(list)
    for charge in charges:
        of[charge.analyst, charge.dataset].append(charge)
    found: list[Observation] = []
    for (analyst, dataset), queries in sorted(of.items()):
        found += [Observation(analyst, dataset, *said) for said in _similar(queries)]
        found += [Observation(analyst, dataset, *said) for said in _differences(queries)]
    for (analyst, dataset), failed in sorted(failures.items()):
        found.append(
            Observation(
                analyst,
                dataset,
                f"{_times(len(failed), 'query')} failed after the charge, for want of memory or time.",
                "It could mean that a query is too large, or that somebody tries what failures tell about the data.",
                "What it cannot mean: that more than this many failures are possible without a review, if `failures`"
                " is set. A failure has no noise, so each may tell something about the data.",
                tuple(failed),
            )
        )
    return tuple(found)


def shape(query: str) -> str:
    """Write a query without its constants.

    >>> shape("SELECT COUNT(*) FROM visits WHERE age = 41 AND site = 'North'")
    'select count(*) from visits where age = ? and site = ?'
    """
    return " ".join(_CONSTANT.sub("?", query).lower().split())


def one_condition_apart(query: str, other: str) -> bool:
    """Whether one query is the other with one condition, or several together, added in one place.

    >>> one_condition_apart("SELECT COUNT(*) FROM v", "SELECT COUNT(*) FROM v WHERE id <> 7")
    True
    """
    short, long = sorted((" ".join(query.split()), " ".join(other.split())), key=len)
    if len(short) == len(long):
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    # the part that was added may begin where both texts happen to agree, so it is looked for a little earlier
    extra = len(long) - len(short)
    return any(
        short[at:] == long[at + extra :] and _ADDED.match(long[at : at + extra])
        for at in range(max(0, start - len(" WHERE ")), start + 1)
    )


def _similar(queries: Sequence[PastCharge]) -> list[tuple[str, str, str, tuple[int, ...]]]:
    by_shape: dict[str, list[PastCharge]] = defaultdict(list)
    for query in queries:
        by_shape[shape(query.query)].append(query)
    return [
        (
            f"{len(same)} queries differ in their constants alone.",
            "It could mean a report that is made value by value, where one GROUP BY would be cheaper, or a search for"
            " somebody.",
            _CANNOT,
            tuple(each.id for each in same),
        )
        for same in by_shape.values()
        if len(same) >= MANY
    ]


def _differences(queries: Sequence[PastCharge]) -> list[tuple[str, str, str, tuple[int, ...]]]:
    newest = sorted(queries, key=lambda each: each.id)[-COMPARED:]
    pairs = [(a, b) for a, b in combinations(newest, 2) if one_condition_apart(a.query, b.query)]
    if not pairs:
        return []
    differ = "differs" if len(pairs) == 1 else "differ"
    return [
        (
            f"{_times(len(pairs), 'pair')} of queries {differ} by one condition that was added.",
            "It could mean that somebody looks at a part of the data next, or that one answer is subtracted from the"
            " other to find a few people.",
            _CANNOT,
            tuple(sorted({each.id for pair in pairs for each in pair})),
        )
    ]


def _times(count: int, what: str) -> str:
    if count == 1:
        return f"1 {what}"
    return f"{count} {what[:-1]}ies" if what.endswith("y") else f"{count} {what}s"
