"""The table of an answer on a page: each noisy number with its interval, as text and as a bar.

Tested in tests/server/test_answer_table.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from hubbub.answers.bars import scale_of, strip
from hubbub.answers.cell_text import Cell, Ends
from hubbub.answers.release import Output, Release
from hubbub.server.key_charts import KeyChart, key_charts, key_kind

#: Rows on a page; downloads have all of them.
MAX_ROWS = 1000
#: Rows with bars.
_MAX_BARS = 200
_NUMBERS = ("integer", "real")
#: Queries whose rows have an order of their own.
_ORDERED = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)

_NO_BAR = Markup("")


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell: its text, its bar if it has an interval, and whether its noise is as large as the number."""

    text: str
    is_number: bool = False
    bar: Markup = _NO_BAR
    is_mostly_noise: bool = False


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """The columns, whether they are numbers with an interval, and the cells row by row.

    charts     charts of columns whose key has an order; their rows have no bars
    sorted_by  the column by which categories were sorted, because the query asks for no order
    """

    columns: tuple[tuple[str, bool], ...]
    rows: list[list[TableCell]]
    charts: Sequence[KeyChart] = ()
    sorted_by: str = ""

    @property
    def is_noisy(self) -> bool:
        """Whether some number is not larger than its noise."""
        return any(cell.is_mostly_noise for row in self.rows for cell in row)


def answer_table(release: Release) -> AnswerTable:
    """Lay out the first rows of an answer."""
    order = _by_size(release)
    shown = release.head(MAX_ROWS) if order is None else _reordered(release, order)
    charts = key_charts(shown)
    charted = {chart.name for chart in charts}
    scales = [scale_of(output, len(shown.ratio)) if _is_noisy(output) else None for output in shown.outputs]
    rows, heads = [], [output.name for output in shown.outputs]
    for place, (texts, values, ends) in enumerate(zip(shown.texts(), shown.rows, shown.intervals, strict=True)):
        row = []
        for name, text, value, interval, scale in zip(heads, texts, values, ends, scales, strict=True):
            if scale is None or not isinstance(value, int | float):
                row.append(TableCell(text, scale is not None))
                continue
            draw = partial(strip, left=scale[0], right=scale[1])
            has_bar = place < _MAX_BARS and name not in charted
            bar = Markup(draw(value, interval)) if has_bar else _NO_BAR  # noqa: S704 - our own SVG
            row.append(TableCell(text, is_number=True, bar=bar, is_mostly_noise=_is_mostly_noise(value, interval)))
        rows.append(row)
    names = tuple((output.name, scale is not None) for output, scale in zip(shown.outputs, scales, strict=True))
    by = "" if order is None else next(output.name for output in shown.outputs if output.low is not None)
    return AnswerTable(names, rows, charts, by)


def _by_size(release: Release) -> list[int] | None:
    """Return the order of categories by the first noisy number, largest first; None if the answer has an order."""
    query = str(release.receipt.get("query", ""))
    if key_kind(release) != "categories" or _ORDERED.search(query) or len(release.ratio) > MAX_ROWS:
        return None
    values = next(output.values for output in release.outputs if output.low is not None)

    def size(row: int) -> tuple[bool, float]:
        value = values[row]
        return (False, -float(value)) if isinstance(value, int | float) else (True, 0.0)

    return sorted(range(len(values)), key=size)


def _reordered(release: Release, order: Sequence[int]) -> Release:
    outputs = [
        replace(
            output,
            values=[output.values[row] for row in order],
            low=None if output.low is None else [output.low[row] for row in order],
            high=None if output.high is None else [output.high[row] for row in order],
            sampling=None,
            joint=None,
        )
        for output in release.outputs
    ]
    return replace(release, outputs=tuple(outputs), ratio=[release.ratio[row] for row in order])


def _is_noisy(output: Output) -> bool:
    return output.low is not None and output.kind in _NUMBERS


def _is_mostly_noise(value: Cell, interval: Ends) -> bool:
    """Tell whether the longer side of an interval reaches as far as the number is from zero, or has no end."""
    low, high = interval
    if not isinstance(value, int | float) or low is None or high is None:
        return True
    return high > low and max(high - value, value - low) >= abs(value)
