"""The table of an answer on a page: each noisy number with its interval, as text and as a bar.

Tested in tests/server/test_answer_table.py.
"""

from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from hubbub.answers.bars import scale_of, strip
from hubbub.answers.cell_text import Cell, Ends
from hubbub.answers.release import Output, Release

#: Rows on a page; downloads have all of them.
MAX_ROWS = 1000
#: Rows with bars.
_MAX_BARS = 200
_NUMBERS = ("integer", "real")

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
    """The columns, whether they are numbers with an interval, and the cells row by row."""

    columns: tuple[tuple[str, bool], ...]
    rows: list[list[TableCell]]

    @property
    def is_noisy(self) -> bool:
        """Whether some number is not larger than its noise."""
        return any(cell.is_mostly_noise for row in self.rows for cell in row)


def answer_table(release: Release) -> AnswerTable:
    """Lay out the first rows of an answer."""
    shown = release.head(MAX_ROWS)
    scales = [scale_of(output, len(shown.ratio)) if _is_noisy(output) else None for output in shown.outputs]
    rows = []
    for place, (texts, values, ends) in enumerate(zip(shown.texts(), shown.rows, shown.intervals, strict=True)):
        row = []
        for text, value, interval, scale in zip(texts, values, ends, scales, strict=True):
            if scale is None or not isinstance(value, int | float):
                row.append(TableCell(text, scale is not None))
                continue
            draw = partial(strip, left=scale[0], right=scale[1])
            bar = Markup(draw(value, interval)) if place < _MAX_BARS else _NO_BAR  # noqa: S704 - our own SVG
            row.append(TableCell(text, is_number=True, bar=bar, is_mostly_noise=_is_mostly_noise(value, interval)))
        rows.append(row)
    names = tuple((output.name, scale is not None) for output, scale in zip(shown.outputs, scales, strict=True))
    return AnswerTable(names, rows)


def _is_noisy(output: Output) -> bool:
    return output.low is not None and output.kind in _NUMBERS


def _is_mostly_noise(value: Cell, interval: Ends) -> bool:
    """Tell whether the longer side of an interval reaches as far as the number is from zero, or has no end."""
    low, high = interval
    if not isinstance(value, int | float) or low is None or high is None:
        return True
    return high > low and max(high - value, value - low) >= abs(value)
