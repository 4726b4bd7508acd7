"""Bar charts of a release with 95% intervals, as text for terminals.

Tested in tests/answers/test_formats.py.
"""

from hubbub.answers.bars import labels_of, scale_of
from hubbub.answers.budget import printable
from hubbub.answers.cell_text import text
from hubbub.answers.release import Release

#: Rows in a chart.
MAX_ROWS = 40
_LABEL = 24


def text_bars(release: Release, column: str | None = None, *, width: int = 80) -> list[str]:
    """Draw one column (by default the first noisy one), one line per row: `█` to the value, `─` over the interval.

    The result is empty if no column has intervals.
    """
    noisy = [output for output in release.outputs if output.low is not None and column in (None, output.name)]
    if not noisy or not release.ratio:
        return []
    rows = min(len(release.ratio), MAX_ROWS)
    shown = release.head(rows)
    output = next(each for each in shown.outputs if each.name == noisy[0].name)
    left, right = scale_of(output, rows)
    labels = [_short(printable(label or output.name)) for label in labels_of(shown)]
    numbers = [text(value, ends) for value, ends in zip(output.values, _ends(shown, output.name), strict=True)]
    margin = max(map(len, labels))
    room = max(20, width - margin - max(map(len, numbers)) - 4)
    lines = []
    for label, number, value, (low, high) in zip(
        labels, numbers, output.values, _ends(shown, output.name), strict=True
    ):
        bar = _bar(value, low, high, left=left, right=right, room=room) if isinstance(value, int | float) else ""
        lines.append(f"{label:<{margin}}  {bar:<{room}}  {number}".rstrip())
    more = len(release.ratio) - rows
    return lines + ([f"… {more:,} more rows"] if more else [])


def _ends(release: Release, name: str) -> list[tuple[float | None, float | None]]:
    place = release.columns.index(name)
    return [row[place] for row in release.intervals]


def _bar(value: float, low: float | None, high: float | None, *, left: float, right: float, room: int) -> str:
    def place(at: float) -> int:
        return min(room - 1, max(0, round((at - left) / (right - left) * (room - 1))))

    zero, here = place(0.0), place(value)
    cells = [" "] * room
    for at in range(min(zero, here), max(zero, here) + 1):
        cells[at] = "█"
    start, end = place(left if low is None else low), place(right if high is None else high)
    for at in range(start, end + 1):
        cells[at] = "▓" if cells[at] == "█" else "─"
    cells[here] = "●"
    return "".join(cells).rstrip()


def _short(label: str) -> str:
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"
