"""Compare an answer of hubbub at a large ε with the exact one of plain DuckDB, value by value."""

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.sql.suites.questions import SuiteQuestion

from hubbub.answers.release import Release

Row = tuple[Any, ...]
#: A value may lie this many half-widths of its 95% interval from the truth. Laplace noise lies beyond 8 of them with a
#: probability of e⁻²³, and Gaussian noise with less: below 10⁻⁶ for the 5,000 values of all suites.
HALF_WIDTHS = 8
LOOSE = 0.05


def plain(cell: Any) -> Any:
    """Write a value as both sides have it: numbers as doubles, days as timestamps."""
    if isinstance(cell, bool) or cell is None:
        return cell
    if isinstance(cell, int | float | Decimal):
        return None if math.isnan(cell) else float(cell)
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return datetime(cell.year, cell.month, cell.day)
    return cell


def differences(question: SuiteQuestion, release: Release, exact: Sequence[Row]) -> Iterator[str]:
    """Say where an answer differs from the exact one.

    Declared groups without rows are only in hubbub's answer; their counts must be zero. Everything else must be there
    on both sides, in the same order if the query states one.
    """
    if exact and len(exact[0]) != len(release.outputs):
        yield f"{len(release.outputs)} columns instead of {len(exact[0])}"
    elif release.epsilon == 0 and all(output.low is None for output in release.outputs):
        yield from _public_differences(question, release, exact)
    else:
        yield from _noisy_differences(question, release, exact)


def _noisy_differences(question: SuiteQuestion, release: Release, exact: Sequence[Row]) -> Iterator[str]:
    """Match the rows of both sides by their keys: the columns without noise."""
    names = [output.name for output in release.outputs]
    compared = [i for i, name in enumerate(names) if name not in question.listed("unchecked")]
    values = [i for i in compared if release.outputs[i].low is not None or names[i] in question.listed("noisy")]
    keys = [i for i in compared if i not in values]
    ours = {tuple(plain(row[i]) for i in keys): place for place, row in enumerate(release.rows)}
    theirs = {tuple(plain(row[i]) for i in keys): row for row in exact}
    if len(ours) != len(release.rows) or len(theirs) != len(exact):
        yield f"rows with equal keys: {len(release.rows)} of {len(ours)} keys, exactly {len(exact)} of {len(theirs)}"
        return
    yield from (f"missing: {row}" for key, row in theirs.items() if key not in ours)
    loose, near = (float(question.options.get(name, value)) for name, value in (("loose", LOOSE), ("near", 1e-6)))
    for key, place in ours.items():
        row, intervals = release.rows[place], release.intervals[place]
        if key in theirs:
            heard = [(names[i], _apart(row[i], theirs[key][i], intervals[i], loose, near)) for i in values]
        else:
            # a declared group without rows: its count, or its sums, are zero
            counts = [i for i in values if release.outputs[i].kind == "integer"] or values
            heard = [(names[i], _apart(row[i], 0, intervals[i], math.inf)) for i in counts]
            heard += [] if counts else [("the row", "is one too many")]
        yield from (f"{name} of {key}: {why}" for name, why in heard if why)
    order = [key for key in ours if key in theirs]
    if _ordered(question) and order != [key for key in theirs if key in ours]:
        yield f"another order: {order[:5]}, exactly {list(theirs)[:5]}"


def _ordered(question: SuiteQuestion) -> bool:
    return "ORDER BY" in question.text.upper().rpartition(")")[2]


def _public_differences(question: SuiteQuestion, release: Release, exact: Sequence[Row]) -> Iterator[str]:
    """Say where an exact answer about public tables differs from the right one: in no row and no value."""
    ours, theirs = ([tuple(map(plain, row)) for row in rows] for rows in (release.rows, exact))
    if not _ordered(question):
        ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    if len(ours) != len(theirs):
        yield f"{len(ours)} rows instead of {len(theirs)}"
    for mine, right in zip(ours, theirs, strict=False):
        numbers = [isinstance(a, float) and isinstance(b, float) for a, b in zip(mine, right, strict=True)]
        if not all(
            math.isclose(a, b, rel_tol=1e-9) if number else a == b
            for a, b, number in zip(mine, right, numbers, strict=True)
        ):
            yield f"{mine} instead of {right}"


def _apart(
    value: Any, right: Any, interval: tuple[float | None, float | None], loose: float, near: float = 1e-6
) -> str | None:
    """Say how a value differs from the right one, or that its interval says too little."""
    mine, exact = plain(value), plain(right)
    if exact is None and mine in (0.0, None):
        return None  # a sum over no rows
    if not isinstance(mine, float) or not isinstance(exact, float):
        return None if mine == exact else f"{value} instead of {right}"
    ends = [end for end in interval if end is not None]
    half = max((abs(end - mine) for end in ends), default=0.0)
    if half > loose * max(1.0, abs(exact)):
        return f"the interval {interval} of {value} is too wide (exactly {right})"
    allowed = near * max(1.0, abs(exact)) + HALF_WIDTHS * half
    return None if abs(mine - exact) <= allowed else f"{value} {interval} instead of {right}"
