"""The small tables of a game, as text: weights of databases, and sets of databases by pattern.

A database of two people with the values 1 and 0 is written 10. In a pattern, * stands for any value, and people beyond
its end may have any. Several patterns are separated by commas.

Tested in tests/semantics/screens/test_game.py.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction

from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.semantics.games import uniform

Rows = tuple[int, ...]

_HEAVIEST = Fraction(10**6)


def label(rows: Rows) -> str:
    """Write a database.

    >>> label((1, 0, 2))
    '102'
    """
    return "".join(map(str, rows))


def named(worlds: Collection[Rows]) -> str:
    """Write a set of databases."""
    listed = ", ".join(map(label, sorted(worlds)))
    return listed if len(worlds) == 1 else f"one of {listed}"


def matching(patterns: str, worlds: Collection[Rows]) -> frozenset[Rows]:
    """Return the databases that match one of the patterns.

    >>> sorted(map(label, matching("1,*1", ((0, 0), (0, 1), (1, 0), (1, 1)))))
    ['01', '10', '11']
    """
    matches: set[Rows] = set()
    for pattern in patterns.replace(" ", "").split(","):
        chosen = {
            rows
            for rows in worlds
            if len(pattern) <= len(rows)
            and all(sign in ("*", str(row)) for sign, row in zip(pattern, rows, strict=False))
        }
        if not pattern or not chosen:
            raise ParameterError(
                "HB694",
                f"{pattern[:20]!r} matches no database.",
                f"Write a database such as {label(max(worlds))}, with * for any value.",
            )
        matches |= chosen
    return frozenset(matches)


def weights(text: str, worlds: Collection[Rows]) -> Mapping[Rows, Fraction]:
    """Read a prior: uniform, or a weight for each database (those that are not listed get none).

    >>> found = weights("00=3,11=1", ((0, 0), (0, 1), (1, 0), (1, 1)))
    >>> [str(found[rows]) for rows in ((0, 0), (0, 1), (1, 1))]
    ['3/4', '0', '1/4']
    """
    if text.strip() == "uniform":
        return uniform(worlds)
    names = {label(rows): rows for rows in worlds}
    given: dict[Rows, Fraction] = {}
    for part in text.replace(" ", "").split(","):
        name, sign, weight = part.partition("=")
        if not sign or name not in names:
            raise ParameterError(
                "HB694",
                f"{part[:40]!r} is not the weight of a database.",
                f"Write weights such as {label(max(worlds))}=2, or uniform.",
            )
        given[names[name]] = numbers.in_range(weight, "prior", Fraction(0), _HEAVIEST)
    whole = sum(given.values(), Fraction(0))
    if not whole:
        raise ParameterError("HB694", "All prior weights are 0.", "Give one database a positive weight.")
    return {rows: given.get(rows, Fraction(0)) / whole for rows in worlds}
