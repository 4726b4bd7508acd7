"""Two answers to one question, combined: what the first paid for is not lost when more is spent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from hubbub.answers.options import Options
from hubbub.answers.release import Cell, Output, Release
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError

#: A question as the ledger writes it: SQL, then what else was said. No literal ends like that, for want of a quote.
_SAID = re.compile(
    r"(?P<sql>.*?)(?: -- (?:groups = (?P<groups>\d+))?(?:, |(?<=-- ))?"
    r"(?:rows = (?P<rows>\d+))?(?:, |(?<=-- ))?(?P<raw>raw)?)?",
    re.DOTALL,
)
#: What a receipt does not hold well enough to ask it once more.
_UNSAID = re.compile(r" -- (?:\$1 = |(?:groups = \d+, )?(?:rows = \d+, )?weight of )")

#: Two half-widths that differ by less are one: they were computed as floats from one noise.
_SAME = 1e-9


def refinable(receipt: Mapping[str, Any]) -> bool:
    """Say whether a second draw can sharpen an answer: sums over groups that were declared, and nothing chosen.

    Keys that were found, candidates that were chosen and the largest k may differ in a second draw, and their errors
    do not average out.
    """
    draws, cells = receipt.get("draws", ()), receipt.get("cells", (None,))
    return bool(draws) and all(draw["kind"] == "sum" for draw in draws) and all(size is not None for size in cells)


def repeat_query(receipt: Mapping[str, Any], *, epsilon: Number) -> tuple[str, Options]:
    """Read from a receipt how to ask the same once more, at another price: the SQL and the options; or refuse (HB145).

    >>> repeat_query({"query": "SELECT COUNT(*) FROM t -- rows = 2", "draws": [{"kind": "sum"}], "cells": [1]}, epsilon=1)
    ('SELECT COUNT(*) FROM t', {'epsilon': 1, 'rows': 2})
    """
    said = _SAID.fullmatch(receipt["query"])
    if not refinable(receipt) or said is None or _UNSAID.search(receipt["query"]):
        raise ParameterError(
            "HB145",
            "this answer cannot be sharpened by a second draw. Nothing was charged.",
            "That is for counts, sums and averages over declared groups, asked without parameters or weights.",
        )
    options: Options = {"epsilon": epsilon}
    if said["groups"]:
        options["groups"] = int(said["groups"])
    if said["rows"]:
        options["rows"] = int(said["rows"])
    if said["raw"]:
        options["raw"] = True
    return said["sql"], options


def refine(first: Release, second: Release) -> Release:
    """Combine an answer with a second draw; where the data was changed in between, the second stands alone."""
    return second if first.receipt["data"] != second.receipt["data"] else combine(first, second)


def combine(first: Release, second: Release) -> Release:
    """Combine two independent answers to the same question on the same data, each cell by inverse variance.

    Theorem (Inverse variance). Let A and B be independent and unbiased for t with variances a and b. Then
    (bA + aB)/(a + b) is unbiased with variance 1/(1/a + 1/b), and no other unbiased weighting has less. If each noise
    is Gaussian or Laplace and h, k are half-widths of their 95% intervals, then the mean weighted by 1/h² and 1/k² is
    within 1/√(1/h² + 1/k²) at least 95% of the time.
    Proof    w²a + (1−w)²b is least at w = b/(a + b). Half-widths are proportional to deviations within one distribution, so they
             weigh alike. The combined Gaussian is Gaussian. For Laplace let the weighted scales be 1 and r ≤ 1: the
             tail beyond t = √(1 + r²)·ln 20 is (e^−t − r²e^(−t/r))/(1 − r²), which is .05 at r = 0 and below it
             up to r = 1, where it is e^−t(1 + t/2) = .0451. For one of each the tail is a closed form in one ratio,
             too, and the test walks along both.
    Assumes  two draws of their own. Where an estimate is no weighted sum (an average), its interval holds
             as nearly as each of the two did; where one was cut at a bound and its middle cannot be told, the answer
             that cost more is kept, a choice that no draw influences.
    Charges  nothing: it is computed from two releases. Both together cost the sum of their ε and of their δ.
    Tested   tests/answers/test_combine.py::test_two_laplace_draws_combine_to_at_least_95_percent
             tests/answers/test_combine.py::test_the_weights_are_the_best_unbiased_ones
             tests/answers/test_combine.py::test_coverage_of_combined_counts_by_enumeration
    """
    _same_question(first, second)
    outputs = tuple(
        _column(a, b, first.epsilon >= second.epsilon) for a, b in zip(first.outputs, second.outputs, strict=True)
    )
    ratio = [
        None if a is None or b is None else _together(a, b) for a, b in zip(first.ratio, second.ratio, strict=True)
    ]
    epsilon, delta = first.epsilon + second.epsilon, first.delta + second.delta
    receipt = {
        "receipt": first.receipt["receipt"],
        "query": first.receipt["query"],
        "data": first.receipt["data"],
        "charge": {"epsilon": str(epsilon), "delta": str(delta)},
        "ledger": [*first.receipt["ledger"], *second.receipt["ledger"]],
        "combined": [dict(first.receipt), dict(second.receipt)],
    }
    return Release(outputs, ratio, epsilon, delta, receipt, second.left, first.replayed and second.replayed)


def _same_question(first: Release, second: Release) -> None:
    one, other = first.receipt, second.receipt
    entries = [{each["sequence"] for each in receipt["ledger"]} for receipt in (one, other)]
    if not refinable(one) or not refinable(other):
        why = "one of them chose its keys or values, or was combined before"
    elif one["query"] != other["query"] or one["bounds"] != other["bounds"]:
        why = "they answer two questions"
    elif one["data"] != other["data"]:
        why = "the data was changed in between"
    elif entries[0] & entries[1]:
        why = "they are one draw"
    elif [(o.name, o.kind) for o in first.outputs] != [(o.name, o.kind) for o in second.outputs]:
        why = "their columns differ"
    elif _keys(first) != _keys(second):
        why = "their rows differ"
    else:
        return
    raise ParameterError("HB145", f"these two answers cannot be combined: {why}.", "Use the one that cost more.")


def _keys(release: Release) -> list[list[Cell]]:
    return [list(output.values) for output in release.outputs if output.low is None]


def _together(one: float, other: float) -> float:
    """Give 1/√(1/a² + 1/b²)."""
    return 0.0 if not one or not other else 1 / sqrt(1 / one**2 + 1 / other**2)


@dataclass(frozen=True, slots=True)
class _Cell:
    """An estimate before it was cut at a bound: its middle, its half-width (None: not to be told), the bounds met."""

    middle: float = 0.0
    half: float | None = None
    least: float = -inf
    most: float = inf


def _uncut(output: Output) -> list[_Cell]:
    """Undo what was cut at a bound, where that can be done: a sum has one half-width in all of its cells."""
    ends = list(zip(output.values, output.low or (), output.high or (), strict=True))
    # half a step of rounding, where whole numbers are shown
    slack = 0.5 if output.kind == "integer" else 0.0
    cells = [_whole(value, low, high, slack) for value, low, high in ends]
    widths = [cell.half for cell in cells if cell is not None and cell.half is not None]
    if not widths or max(widths) - min(widths) > _SAME * max(widths):
        return [_Cell() if cell is None else cell for cell in cells]
    half = widths[0]
    return [
        _cut(value, low, high, half, slack) if cell is None else cell
        for cell, (value, low, high) in zip(cells, ends, strict=True)
    ]


def _whole(value: Cell, low: float | None, high: float | None, slack: float) -> _Cell | None:
    """Take an interval as it stands if its value is its middle."""
    if not isinstance(value, int | float) or low is None or high is None or not high > low:
        return None
    middle, half = (low + high) / 2, (high - low) / 2
    return _Cell(middle, half) if abs(value - middle) <= slack + _SAME * half else None


def _cut(value: Cell, low: float | None, high: float | None, half: float, slack: float) -> _Cell:
    """Find the middle of an interval of known width of which one end was cut off."""
    if not isinstance(value, int | float) or low is None or high is None or not high - low < 2 * half:
        return _Cell()
    near = slack + _SAME * half
    if abs(max(high - half, low) - value) <= near:
        return _Cell(high - half, half, least=low)
    if abs(min(low + half, high) - value) <= near:
        return _Cell(low + half, half, most=high)
    return _Cell()


def _column(first: Output, second: Output, first_is_better: bool) -> Output:  # noqa: FBT001
    if first.low is None or second.low is None:
        return first if first_is_better else second
    ones, others = _uncut(first), _uncut(second)
    both = (*ones, *others)
    least, most = max((each.least for each in both), default=-inf), min((each.most for each in both), default=inf)
    better = first if first_is_better else second
    values: list[Cell] = []
    lows: list[float | None] = []
    highs: list[float | None] = []
    for place, (one, other) in enumerate(zip(ones, others, strict=True)):
        if one.half is None or other.half is None:
            values.append(better.values[place])
            lows.append(better.low[place] if better.low else None)
            highs.append(better.high[place] if better.high else None)
            continue
        half = _together(one.half, other.half)
        weight = 0.5 if not half else other.half**2 / (one.half**2 + other.half**2)
        middle = weight * one.middle + (1 - weight) * other.middle
        value = min(max(middle, least), most)
        values.append(round(value) if first.kind == "integer" else value)
        lows.append(min(max(middle - half, least), most))
        highs.append(min(max(middle + half, least), most))
    return Output(first.name, first.kind, values, lows, highs)
