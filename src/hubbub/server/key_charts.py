"""Charts of an answer by the kind of its key: time as a line with a band, numbers in order as columns.

Categories have their bars in the rows of the table (`pages.answer_table`). Horizontal positions are percentages and
vertical positions are pixels, so that a chart fills the width and its text keeps its size. The table has all numbers.

Tested in tests/server/test_key_charts.py.
"""

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Literal, NamedTuple

from markupsafe import Markup

from hubbub.answers.bars import scale_of
from hubbub.answers.cell_text import text, without_midnight
from hubbub.answers.release import Output, Release
from hubbub.core.numbers import readable

KeyKind = Literal["time", "numbers", "categories", "none"]

#: Charts of one answer, and the numbers of rows that they can show.
MAX_CHARTS, MIN_ROWS, MAX_COLUMNS, MAX_POINTS = 3, 3, 60, 1000
_NUMBERS = ("integer", "real")
_PERIOD = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?|-Q([1-4]))?", re.ASCII)
_YEARS = range(1800, 2200)
_TOP, _BOTTOM, _HEIGHT = 16, 146, 168
#: Labels of columns that fit a phone; of more, some are left out.
_LABELS = 8


@dataclass(frozen=True, slots=True)
class KeyChart:
    """The chart of one noisy column."""

    name: str
    drawing: Markup


class _Point(NamedTuple):
    """A row of the chart: its place, the text of its key, the value, and the known ends of its interval."""

    at: float
    key: str
    value: float | None
    low: float | None
    high: float | None


def key_kind(release: Release) -> KeyKind:
    """Tell what the only key of an answer is; "none" if there is not one key with noisy numbers beside it."""
    keys = [output for output in release.outputs if output.low is None]
    noisy = [output for output in release.outputs if output.low is not None and output.kind in _NUMBERS]
    if len(keys) != 1 or not noisy or len(keys) + len(noisy) != len(release.outputs):
        return "none"
    known = [cell for cell in keys[0].values if cell is not None]
    if known and all(_moment(cell) is not None for cell in known) and len({len(str(cell)) for cell in known}) == 1:
        return "time"
    if keys[0].kind in _NUMBERS:
        return "numbers"
    return "categories" if keys[0].kind == "text" else "none"


def key_charts(release: Release) -> list[KeyChart]:
    """Draw the first noisy columns of an answer whose key has an order; nothing for others."""
    kind, rows = key_kind(release), len(release.ratio)
    if kind not in ("time", "numbers") or not MIN_ROWS <= rows <= (MAX_POINTS if kind == "time" else MAX_COLUMNS):
        return []
    key = next(output for output in release.outputs if output.low is None)
    noisy = [output for output in release.outputs if output.low is not None][:MAX_CHARTS]
    charts = []
    for output in noisy:
        points = sorted(_points(key, output), key=lambda point: point.at)
        if len(points) >= MIN_ROWS and any(point.value is not None for point in points):
            draw = _line if kind == "time" else _columns
            charts.append(KeyChart(output.name, Markup(draw(key.name, output, points))))  # noqa: S704 - our own SVG
    return charts


def _moment(cell: object) -> float | None:
    """Place a date, a time, or a text such as 2026-05 or 2026-Q2 on a scale of days."""
    if isinstance(cell, datetime):
        return cell.toordinal() + (cell.hour * 60 + cell.minute) / 1440 + cell.second / 86400
    if isinstance(cell, date):
        return float(cell.toordinal())
    match = _PERIOD.fullmatch(cell) if isinstance(cell, str) else None
    if match is None:
        return None
    year, month, day, quarter = (int(part) if part else 0 for part in match.groups())
    if not (month or quarter or year in _YEARS):
        return None  # four digits are more often a code than an ancient year
    try:
        return float(date(year, month or max(1, 3 * quarter - 2), day or 1).toordinal())
    except ValueError:
        return None


def _points(key: Output, output: Output) -> Iterator[_Point]:
    """Yield the rows that have a place; a key that is NULL has none."""
    low, high = output.low or (), output.high or ()
    shown = without_midnight(key.values)
    for row, cell in enumerate(key.values):
        at = float(cell) if isinstance(cell, int | float) else _moment(cell)
        if at is not None and math.isfinite(at):
            value, ends = output.values[row], (low[row], high[row] if row < len(high) else None)
            number = float(value) if isinstance(value, int | float) and math.isfinite(value) else None
            label = str(cell) if isinstance(cell, int) else text(shown[row])
            yield _Point(at, label, number, *ends)


class _Scale:
    """From values to pixels, with zero, every value and every interval on the scale."""

    def __init__(self, output: Output) -> None:
        self.low, self.high = scale_of(output, len(output.values))

    def down(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_BOTTOM - (_BOTTOM - _TOP) * share, 2)


def _line(key: str, output: Output, points: Sequence[_Point]) -> str:
    """Draw a line through the values, broken where one is NULL, within the band of the intervals."""
    scale, (first, last) = _Scale(output), (points[0].at, points[-1].at)

    def across(point: _Point) -> float:
        return round(2 + 96 * (point.at - first) / (last - first or 1), 3)

    parts = []
    for known, run in groupby(points, lambda point: point.value is not None):
        if not known:
            continue
        part = [*run]
        tops = [f"{across(p)} {scale.down(scale.high if p.high is None else p.high)}" for p in part]
        ends = [f"{across(p)} {scale.down(scale.low if p.low is None else p.low)}" for p in reversed(part)]
        line = "L".join(f"{across(p)} {scale.down(p.value or 0.0)}" for p in part)
        parts.append(f'<path class="band" d="M{"L".join([*tops, *ends])}Z"/>')
        parts.append(f'<path class="line" vector-effect="non-scaling-stroke" d="M{line}"/>')
    dots = "".join(
        f'<circle class="dot" cx="{across(p)}%" cy="{scale.down(p.value)}" r="3"><title>{_words(p)}</title></circle>'
        for p in points
        if p.value is not None and len(points) <= MAX_COLUMNS
    )
    labels = _label(2, points[0].key, "start") + _label(98, points[-1].key, "end")
    if len(points) > 4:
        middle = points[len(points) // 2]
        labels += _label(across(middle), middle.key) if 25 < across(middle) < 75 else ""
    curve = (
        f'<svg viewBox="0 0 100 {_HEIGHT}" preserveAspectRatio="none" width="100%" height="{_HEIGHT}">'
        f"{''.join(parts)}</svg>"
    )
    return _frame("line", key, output, points, scale, curve + dots + labels)


def _columns(key: str, output: Output, points: Sequence[_Point]) -> str:
    """Draw a column from zero for each value, with a line for its interval."""
    scale, wide = _Scale(output), 96 / len(points)
    zero, every = scale.down(0.0), math.ceil(len(points) / _LABELS)
    parts = []
    for place, point in enumerate(points):
        middle = round(2 + wide * (place + 0.5), 3)
        if place % every == 0:
            parts.append(_label(middle, point.key))
        if point.value is None:
            continue
        at = scale.down(point.value)
        low = scale.down(scale.low if point.low is None else point.low)
        high = scale.down(scale.high if point.high is None else point.high)
        parts.append(
            f'<rect class="column" x="{round(middle - 0.36 * wide, 3)}%" width="{round(0.72 * wide, 3)}%"'
            f' y="{min(zero, at)}" height="{round(abs(at - zero), 2)}"><title>{_words(point)}</title></rect>'
            f'<line class="whisker" x1="{middle}%" x2="{middle}%" y1="{low}" y2="{high}"/>'
            f'<circle class="dot" cx="{middle}%" cy="{at}" r="3"/>'
        )
    return _frame("columns", key, output, points, scale, "".join(parts))


def _frame(how: str, key: str, output: Output, points: Sequence[_Point], scale: _Scale, drawn: str) -> str:
    words = (
        f"{output.name} by {key}, {how} with 95% intervals for {len(points)} values from {points[0].key} to"
        f" {points[-1].key}; the table below has the numbers"
    )
    zero = scale.down(0.0)
    return (
        f'<svg class="key-chart" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(words)}"'
        f' width="100%" height="{_HEIGHT}">'
        f'<line class="axis" x1="0" x2="100%" y1="{zero}" y2="{zero}"/>'
        f'<text class="note" x="0" y="{_TOP - 5}">{readable(scale.high, 3)}</text>{drawn}</svg>'
    )


def _label(at: float, label: str, anchor: str = "middle") -> str:
    return f'<text class="note" x="{at}%" y="{_HEIGHT - 4}" text-anchor="{anchor}">{html.escape(label)}</text>'


def _words(point: _Point) -> str:
    ends = " to ".join("…" if end is None else readable(end, 3) for end in (point.low, point.high))
    return html.escape(f"{point.key}: {readable(point.value or 0.0, 3)} ({ends})")
