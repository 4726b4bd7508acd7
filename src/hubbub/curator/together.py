"""Results of several queries as one result: the rows of grouping sets that were released one by one.

Everything here is post-processing. Tested in tests/curator/test_grouping_sets.py.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Kind
from hubbub.sql import postprocess
from hubbub.sql.aggregates.formula import Floats
from hubbub.sql.presentation import Answer
from hubbub.sql.query import Together
from hubbub.sql.sampling import SamplingError


def put_together(answers: Sequence[Answer], together: Together, kinds: Sequence[Kind]) -> Answer:
    """Return one result with the rows of all, in their order; `kinds` are those of the columns."""
    columns = [_column([answer.values[place] for answer in answers], kind) for place, kind in enumerate(kinds)]
    rows = np.arange(len(columns[0]))
    if together.order:
        names = answers[0].columns
        typed = {name: (column, kind) for name, column, kind in zip(names, columns, kinds, strict=True)}
        rows = postprocess.arrange(typed, None, together.order)
    rows = rows[: together.limit]
    shown = range(together.columns)
    noises = [[answer.noise[place] for answer in answers] for place in shown if answers[0].noise]
    return Answer(
        answers[0].columns[: together.columns],
        tuple(columns[place][rows] for place in shown),
        tuple(np.concatenate([answer.low[place] for answer in answers])[rows] for place in shown),
        tuple(np.concatenate([answer.high[place] for answer in answers])[rows] for place in shown),
        np.concatenate([answer.ratio for answer in answers])[rows],
        tuple(_sampling([answer.sampling[place] for answer in answers], answers, rows) for place in shown),
        noise=tuple(_noise(parts, rows) for parts in noises),
        kept=frozenset(place for place in shown if any(place in answer.kept for answer in answers)),
    )


def _column(parts: Sequence[NDArray[Any]], kind: Kind) -> NDArray[Any]:
    """Join the parts of a column; a key that a set lacks is NULL there."""
    masks = [np.ma.getmaskarray(part) for part in parts]
    plain = [np.ma.getdata(part) for part in parts]
    if kind.numeric and all(part.dtype.kind in "iuf" for part in plain):
        whole = all(part.dtype.kind in "iu" for part in plain)
        nulls = np.concatenate([mask | np.isnan(part) for mask, part in zip(masks, plain, strict=True)])
        if whole and not nulls.any():
            return np.concatenate(plain)
    objects = [_objects(part, mask, kind) for part, mask in zip(plain, masks, strict=True)]
    return np.concatenate(objects)


def _objects(part: NDArray[Any], mask: NDArray[np.bool_], kind: Kind) -> NDArray[Any]:
    values = np.empty(len(part), dtype=object)
    values[:] = part.tolist()
    for place, value in enumerate(values):
        if mask[place] or (isinstance(value, float) and np.isnan(value)):
            values[place] = None
        elif kind is Kind.INTEGER and isinstance(value, float):
            values[place] = int(value)
    return values


def _sampling(
    parts: Sequence[SamplingError | None], answers: Sequence[Answer], rows: NDArray[np.int64]
) -> SamplingError | None:
    """Join sampling errors; unknown ones are NaN."""
    if all(part is None for part in parts):
        return None
    halves: list[Floats] = [
        np.full(len(answer.ratio), np.nan) if part is None else part.half
        for part, answer in zip(parts, answers, strict=True)
    ]
    return SamplingError(np.concatenate(halves)[rows], any(part is not None and part.at_most for part in parts))


def _noise(parts: Sequence[tuple[Floats, Floats] | None], rows: NDArray[np.int64]) -> tuple[Floats, Floats] | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    values, halves = (np.concatenate([part[place] for part in known])[rows] for place in (0, 1))
    return values, halves
