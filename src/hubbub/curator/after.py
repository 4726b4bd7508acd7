"""Answers that are computed from noisy results: the query over them, and what is published with it.

The noisy results are published too, as the model `released`: they are what the charge paid for, whoever computes with
them. If the query over them fails or gives too much, they are the answer, so that no charge is lost.

Tested in tests/curator/test_after.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.answers.release import answer_json
from hubbub.curator import receipt as receipts
from hubbub.sql.after import run_after, run_replicas
from hubbub.sql.after_intervals import ROW_ID
from hubbub.sql.aggregates.formula import Floats
from hubbub.sql.presentation import Answer
from hubbub.sql.query import After

#: Maximum number of rows in all copies of a result.
MAX_COPIED_ROWS = 2_000_000
#: Said in the derivation of such an answer.
SENTENCE = "the answer is computed from these noisy results by SQL, which costs nothing more"


def answer_after(query: After, answers: Sequence[Answer], *, most: int) -> tuple[Answer, dict[str, Any]]:
    """Compute the answer from the results of its releases, and the model that holds them; at most `most` values."""
    tables = {
        table.name: dict(zip((name for name, _ in table.columns), answer.values, strict=True))
        for table, answer in zip(query.released, answers, strict=True)
    }
    model: dict[str, Any] = {"released": [released_table(answer) for answer in answers]}
    rows = most // max(1, len(query.outputs))
    try:
        columns = run_after(query, tables, most=rows + 1)
        failed = len(columns[0]) > rows
    except duckdb.Error:
        failed = True
    if failed:
        model["failed"] = True
        columns = [np.zeros(0, dtype=object) for _ in query.outputs]
    names = [name for name, _ in query.outputs]
    nothing = np.full(len(columns[0]), np.nan)
    low, high = [nothing for _ in columns], [nothing for _ in columns]
    if query.replicas is not None:
        *columns, numbers = columns
        low, high = (ends[:-1] for ends in (low, high))
        if not failed:
            low, high = intervals(query, answers[0], columns, np.asarray(numbers, dtype=np.int64))
    exact = () if query.replicas is None else query.replicas.exact
    places = [place for place, ends in enumerate(low) if np.isnan(ends).all() and place not in exact]
    model["without"] = [names[place] for place in places]
    return Answer(tuple(names[: len(columns)]), tuple(columns), tuple(low), tuple(high), nothing), model


def intervals(
    query: After, answer: Answer, columns: Sequence[NDArray[Any]], rows: NDArray[np.int64]
) -> tuple[list[Floats], list[Floats]]:
    """Compute the ends of the 95% intervals of a query over one result; NaN where there is none.

    Theorem (Moved values). Let an output be f(y₁, …, y_k) with independent noises of margins hᵢ at 95%, and let f be
    linear. Then f(y) ± √(Σ (f moved by hᵢ)²) covers the output of the exact values with 95% or more.
    Proof    The moves are aᵢhᵢ. Gaussian noises add up to a Gaussian with these squares. Margins of Laplace noises are
             a multiple of their deviations, ln 20/√2 = 2.118…, and a sum of them is closer to a Gaussian, for which
             1.96 deviations are enough: the test computes the worst sums. Where few values are likely, the exact margin
             of discrete noise is smaller (0 if one noise is 0 with 95%): hᵢ is `half_width_in_sums` instead. Quotients
             are nearly linear where divisors exceed twice their margin; elsewhere the interval is open.
    Assumes  values are not clamped: the shown value may be, and the interval holds it too. No noise chooses the rows:
             not a condition, a LIMIT or a selection of groups in the release, nor a frame.   Charges  nothing.
    Tested   tests/sql/test_after_intervals.py::test_sums_of_laplace_noises_are_within_the_root_of_their_squared_margins
             tests/sql/test_after_intervals.py::test_sums_of_small_discrete_noises_are_within_the_root_of_their_squared_margins
    """
    replicas = query.replicas
    if replicas is None:
        raise AssertionError("the query has no intervals")
    nothing = np.full(len(rows), np.nan)
    low, high = [nothing for _ in columns], [nothing for _ in columns]
    names = [name for name, _ in query.released[0].columns]
    for place, name in replicas.copied:
        low[place], high[place] = (ends[names.index(name)][rows] for ends in (answer.low, answer.high))
    noises = {name: noise for name, noise in zip(names, answer.noise, strict=False) if noise is not None}
    smooth = [(i, place) for i, (place, used) in enumerate(replicas.smooth) if used <= noises.keys()]
    read = sorted({name for _, used in replicas.smooth for name in used if name in noises})
    size = len(answer.values[0])
    if not smooth or (1 + 2 * len(read) * size) * size > MAX_COPIED_ROWS:
        return low, high
    table = {
        name: noises[name][0] if name in noises else values for name, values in zip(names, answer.values, strict=True)
    }
    try:
        moves = run_replicas(query, {query.released[0].name: table}, {name: noises[name][1] for name in read})
    except duckdb.Error:
        return low, high
    found = np.asarray(moves[ROW_ID], dtype=np.int64)
    at = np.clip(np.searchsorted(found, rows), 0, max(0, len(found) - 1))

    def moved(place: int) -> tuple[Floats, Floats]:
        return tuple(
            np.ma.filled(np.ma.asarray(moves[f"{kind}{place}"], dtype=np.float64), np.nan)[at] for kind in "oh"
        )  # type: ignore[return-value]

    first = len(replicas.smooth)
    for i, place in smooth:
        raw, half = moved(i)
        shown = np.ma.filled(np.ma.asarray(columns[place]).astype(np.float64), np.nan)
        ends = np.fmin(shown, raw) - half, np.fmax(shown, raw) + half
        sure = np.full(len(rows), fill_value=True)
        for divisor in replicas.divisors[i]:
            value, margin = moved(first + divisor)
            sure &= np.abs(value) >= 2 * margin
        open_ended = ~sure & ~np.isnan(shown)
        low[place], high[place] = np.where(open_ended, -np.inf, ends[0]), np.where(open_ended, np.inf, ends[1])
    return low, high


def released_table(answer: Answer) -> Mapping[str, Any]:
    """Write a noisy result as part of the model of an answer."""
    outputs, _ = receipts.outputs(answer)
    return {"columns": answer_json(outputs, (), {})["columns"]}
