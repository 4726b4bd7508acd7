"""SVG bar charts of a release with 95% intervals, for pages and notebooks.

Horizontal positions are percentages and vertical positions are pixels, so that a chart fills the available width while
the text keeps its size. Colors are attributes, which a style sheet can override by class.
"""

import html
from collections.abc import Sequence

from hubbub.answers.cell_text import Ends, text, without_midnight
from hubbub.answers.release import Output, Release

#: Maximum number of rows in a chart.
MAX_ROWS = 60

_ROW = 46
_INK = "currentColor"
_BAR = "#2f7f79"


def bars(release: Release, column: str | None = None) -> str:
    """Draw one column (by default the first noisy one) with its intervals; empty if no column has intervals."""
    noisy = [output for output in release.outputs if output.low is not None and column in (None, output.name)]
    if not noisy or not release.ratio:
        return ""
    output = noisy[0]
    rows = min(len(release.ratio), MAX_ROWS)
    left, right = scale_of(output, rows)
    labels = labels_of(release.head(rows))
    parts = [_row(index, labels[index], output, left=left, right=right) for index in range(rows)]
    height = rows * _ROW + 8
    more = len(release.ratio) - rows
    label = f"{output.name} for {rows} rows with 95% intervals"
    if more:
        note = f"{more:,} more rows are not shown in this chart"
        label += f"; {note}"
        parts.append(f'<text x="0" y="{height + 8}" fill="{_INK}">… {note}</text>')
        height += 20
    return (
        f'<svg class="hub-bars" role="img" aria-label="{html.escape(label)}" xmlns="http://www.w3.org/2000/svg"'
        f' width="100%" height="{height}" font-family="inherit" font-size="13">{"".join(parts)}</svg>'
    )


def scale_of(output: Output, rows: int) -> tuple[float, float]:
    """Return the ends of the scale, which covers zero, every value and every interval."""
    numbers = [0.0]
    for sequence in (output.values, output.low or (), output.high or ()):
        numbers += [float(value) for value in sequence[:rows] if isinstance(value, int | float)]
    low, high = min(numbers), max(numbers)
    return (low, high) if high > low else (low, low + 1)


def labels_of(release: Release) -> Sequence[str]:
    """Return the label of each row: its columns without intervals."""
    keys = [without_midnight(output.values) for output in release.outputs if output.low is None]
    if not keys:
        return [""] * len(release.ratio)
    return [" · ".join(text(cell) for cell in key) for key in zip(*keys, strict=True)]


def _across(value: float, left: float, right: float) -> float:
    """Return the horizontal position of a value in percent, with a small margin on both sides."""
    return round(1 + 98 * (value - left) / (right - left), 3)


def strip(value: float, ends: Ends, *, left: float, right: float) -> str:
    """Draw one value with its interval on a scale, for a cell that also has the number as text."""
    return (
        '<svg class="hub-bars strip" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" width="100%" height="14">'
        f"{_marks(value, ends, left=left, right=right, middle=7)}</svg>"
    )


def _row(index: int, label: str, output: Output, *, left: float, right: float) -> str:
    top = index * _ROW
    value = output.values[index]
    low, high = (ends[index] if ends is not None else None for ends in (output.low, output.high))
    texts = (
        f'<text x="0" y="{top + 15}" fill="{_INK}">{html.escape(_short(label) or output.name)}</text>'
        f'<text x="100%" y="{top + 15}" text-anchor="end" fill="{_INK}">{html.escape(text(value, (low, high)))}</text>'
    )
    if not isinstance(value, int | float):
        return texts
    return texts + _marks(value, (low, high), left=left, right=right, middle=top + 30)


def _marks(value: float, ends: Ends, *, left: float, right: float, middle: int) -> str:
    """Draw the bar from zero to the value, the line of the interval, its known ends, and the point of the value."""
    low, high = ends
    zero, at = _across(0.0, left, right), _across(float(value), left, right)
    start = _across(left if low is None else low, left, right)
    end = _across(right if high is None else high, left, right)
    return (
        f'<line x1="{zero}%" x2="{zero}%" y1="{middle - 9}" y2="{middle + 9}" stroke="{_INK}"'
        ' stroke-opacity=".4"/>'
        f'<rect class="hub-bar" x="{min(zero, at)}%" y="{middle - 6}" width="{round(abs(at - zero), 3)}%"'
        f' height="12" rx="2" fill="{_BAR}" fill-opacity=".35"/>'
        f'<line class="hub-interval" x1="{start}%" x2="{end}%" y1="{middle}" y2="{middle}" stroke="{_BAR}"'
        ' stroke-width="2"/>'
        + "".join(
            f'<line class="hub-interval" x1="{tip}%" x2="{tip}%" y1="{middle - 5}" y2="{middle + 5}" stroke="{_BAR}"'
            ' stroke-width="2"/>'
            for tip, known in ((start, low), (end, high))
            if known is not None
        )
        + f'<circle class="hub-value" cx="{at}%" cy="{middle}" r="4" fill="{_BAR}"/>'
    )


def _short(label: str, most: int = 40) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
