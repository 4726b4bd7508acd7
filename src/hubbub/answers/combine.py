"""Combining two answers to the same query into a more accurate one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

from hubbub.answers.cell_text import Cell
from hubbub.answers.options import Options
from hubbub.answers.release import Output, Release
from hubbub.core.numbers import Number
from hubbub.errors import ParameterError

#: A query as the ledger records it: SQL and options. No literal matches the options, because it would need a quote.
_RECORDED = re.compile(
    r"(?P<sql>.*?)(?: -- (?:groups = (?P<groups>\d+))?(?:, |(?<=-- ))?"
    r"(?:rows = (?P<rows>\d+))?(?:, |(?<=-- ))?(?P<raw>raw)?)?",
    re.DOTALL,
)
#: Options that a receipt does not record exactly enough to repeat the query.
_UNREPEATABLE = re.compile(r" -- (?:\$1 = |(?:groups = \d+, )?(?:rows = \d+, )?weight of )")

#: Relative tolerance within which two half-widths are equal: they are floats computed from the same noise.
_SAME = 1e-9


def refinable(receipt: Mapping[str, Any]) -> bool:
    """Return whether a second sample can refine an answer: only sums over declared groups can be averaged.

    Discovered keys, selected candidates and the top k may differ in a second sample, and their errors do not average
    out.
    """
    draws, cells = receipt.get("draws", ()), receipt.get("cells", (None,))
    if "sandbox" in receipt:  # made-up rows tell nothing about the data
        return False
    if "after" in receipt:  # whatever is computed from noisy results need not average out
        return False
    return bool(draws) and all(draw["kind"] == "sum" for draw in draws) and all(size is not None for size in cells)


def repeat_query(receipt: Mapping[str, Any], *, epsilon: Number) -> tuple[str, Options]:
    """Return the SQL and the options that repeat the query of a receipt at another privacy cost, or raise HB145.

    >>> receipt = {"query": "SELECT COUNT(*) FROM t -- rows = 2", "draws": [{"kind": "sum"}], "cells": [1]}
    >>> repeat_query(receipt, epsilon=1)
    ('SELECT COUNT(*) FROM t', {'epsilon': 1, 'rows': 2})
    """
    recorded = _RECORDED.fullmatch(receipt["query"])
    if not refinable(receipt) or recorded is None or _UNREPEATABLE.search(receipt["query"]):
        raise ParameterError(
            "HB145",
            "This answer cannot be refined. Nothing was charged.",
            "Refine only counts, sums and averages over declared groups, without parameters or weights.",
        )
    options: Options = {"epsilon": epsilon}
    if recorded["groups"]:
        options["groups"] = int(recorded["groups"])
    if recorded["rows"]:
        options["rows"] = int(recorded["rows"])
    if recorded["raw"]:
        options["raw"] = True
    return recorded["sql"], options


def refine(first: Release, second: Release) -> Release:
    """Combine an answer with a second one; if the data changed in between, return the second."""
    return second if first.receipt["data"] != second.receipt["data"] else combine(first, second)


def combine(first: Release, second: Release) -> Release:
    """Combine two independent answers to the same query on the same data, each cell by inverse variance.

    Theorem (Inverse variance). Let A and B be independent and unbiased for t with variances a and b. Then
    (bA + aB)/(a + b) is unbiased with variance 1/(1/a + 1/b), and no other unbiased weighting has less. If each noise
    is Gaussian or Laplace and h, k are half-widths of their 95% intervals, then the mean weighted by 1/h² and 1/k² is
    within 1/√(1/h² + 1/k²) at least 95% of the time.
    Proof    w²a + (1−w)²b is least at w = b/(a + b). Half-widths are proportional to deviations within one
             distribution, so they weigh alike. The combined Gaussian is Gaussian. For Laplace let the weighted scales
             be 1 and r ≤ 1: the tail beyond t = √(1 + r²)·ln 20 is (e^−t − r²e^(−t/r))/(1 − r²), which is .05 at r = 0
             and below it up to r = 1, where it is e^−t(1 + t/2) = .0451. For one of each the tail is a closed form in
             one ratio, too, and the test walks along both.
    Assumes  two independent samples. Where an estimate is not a weighted sum (an average), its interval holds as
             nearly as each of the two did; where one was clamped and its middle is unknown, the answer with the
             larger ε is kept, a choice that does not depend on the samples.
    Charges  nothing: it is computed from two releases. Both together cost the sum of their ε and of their δ.
    Tested   tests/answers/test_combine.py::test_two_laplace_draws_combine_to_at_least_95_percent
             tests/answers/test_combine.py::test_the_weights_are_the_best_unbiased_ones
             tests/answers/test_combine.py::test_coverage_of_combined_counts_by_enumeration
    """
    _check_same_query(first, second)
    outputs = tuple(
        _column(a, b, first.epsilon >= second.epsilon) for a, b in zip(first.outputs, second.outputs, strict=True)
    )
    ratio = [
        None if a is None or b is None else _combined_width(a, b)
        for a, b in zip(first.ratio, second.ratio, strict=True)
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
    replayed, left_out = first.replayed and second.replayed, second.left_out or first.left_out
    return Release(outputs, ratio, epsilon, delta, receipt, second.left, replayed, left_out=left_out)


def _check_same_query(first: Release, second: Release) -> None:
    one, other = first.receipt, second.receipt
    entries = [{charge["sequence"] for charge in receipt["ledger"]} for receipt in (one, other)]
    if not refinable(one) or not refinable(other):
        why = "one of them selected its keys or values, or is itself a combination"
    elif one["query"] != other["query"] or one["bounds"] != other["bounds"]:
        why = "they answer different queries"
    elif one["data"] != other["data"]:
        why = "the data changed in between"
    elif entries[0] & entries[1]:
        why = "they are the same answer"
    elif [(o.name, o.kind) for o in first.outputs] != [(o.name, o.kind) for o in second.outputs]:
        why = "their columns differ"
    elif _keys(first) != _keys(second):
        why = "their rows differ"
    else:
        return
    raise ParameterError("HB145", f"The two answers cannot be combined: {why}.", "Use the one with the larger ε.")


def _keys(release: Release) -> list[list[Cell]]:
    return [list(output.values) for output in release.outputs if output.low is None]


def _combined_width(one: float, other: float) -> float:
    """Return 1/√(1/a² + 1/b²)."""
    return 0.0 if not one or not other else 1 / sqrt(1 / one**2 + 1 / other**2)


@dataclass(frozen=True, slots=True)
class _UnclampedCell:
    """An estimate before clamping: its middle, its half-width (None: unknown) and its clamping bounds."""

    middle: float = 0.0
    half: float | None = None
    least: float = -inf
    most: float = inf


def _unclamp(output: Output) -> list[_UnclampedCell]:
    """Undo the clamping at bounds where possible: all cells of a sum have the same half-width."""
    ends = list(zip(output.values, output.low or (), output.high or (), strict=True))
    # rounding error of whole numbers
    slack = 0.5 if output.kind == "integer" else 0.0
    cells = [_symmetric(value, low, high, slack) for value, low, high in ends]
    widths = [cell.half for cell in cells if cell is not None and cell.half is not None]
    if not widths or max(widths) - min(widths) > _SAME * max(widths):
        return [_UnclampedCell() if cell is None else cell for cell in cells]
    half = widths[0]
    return [
        _clamped(value, low, high, half, slack) if cell is None else cell
        for cell, (value, low, high) in zip(cells, ends, strict=True)
    ]


def _symmetric(value: Cell, low: float | None, high: float | None, slack: float) -> _UnclampedCell | None:
    """Return an interval that was not clamped, with its value in the middle."""
    if not isinstance(value, int | float) or low is None or high is None or not high > low:
        return None
    middle, half = (low + high) / 2, (high - low) / 2
    return _UnclampedCell(middle, half) if abs(value - middle) <= slack + _SAME * half else None


def _clamped(value: Cell, low: float | None, high: float | None, half: float, slack: float) -> _UnclampedCell:
    """Recover the middle of an interval of known width of which one end was clamped."""
    if not isinstance(value, int | float) or low is None or high is None or not high - low < 2 * half:
        return _UnclampedCell()
    near = slack + _SAME * half
    if abs(max(high - half, low) - value) <= near:
        return _UnclampedCell(high - half, half, least=low)
    if abs(min(low + half, high) - value) <= near:
        return _UnclampedCell(low + half, half, most=high)
    return _UnclampedCell()


def _column(first: Output, second: Output, first_is_better: bool) -> Output:  # noqa: FBT001
    if first.low is None or second.low is None:
        return first if first_is_better else second
    ones, others = _unclamp(first), _unclamp(second)
    both = (*ones, *others)
    least, most = max((cell.least for cell in both), default=-inf), min((cell.most for cell in both), default=inf)
    better = first if first_is_better else second
    values: list[Cell] = []
    lows: list[float | None] = []
    highs: list[float | None] = []
    for index, (one, other) in enumerate(zip(ones, others, strict=True)):
        if one.half is None or other.half is None:
            values.append(better.values[index])
            lows.append(better.low[index] if better.low else None)
            highs.append(better.high[index] if better.high else None)
            continue
        half = _combined_width(one.half, other.half)
        weight = 0.5 if not half else other.half**2 / (one.half**2 + other.half**2)
        middle = weight * one.middle + (1 - weight) * other.middle
        value = min(max(middle, least), most)
        values.append(round(value) if first.kind == "integer" else value)
        lows.append(min(max(middle - half, least), most))
        highs.append(min(max(middle + half, least), most))
    return Output(first.name, first.kind, values, lows, highs)
