"""Figures of the screens as data, and drawn with characters for a terminal (`svg` draws them for pages and files).

Tested in tests/semantics/screens/test_screens.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from hubbub.core.numbers import readable

_WIDE, _DEEP = 60, 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"
#: One mark for each curve.
MARKS = "●○×+◆◇"


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars: in each group one bar of every series, between 0 and 1; `top` is the end of the axis."""

    caption: str
    groups: tuple[str, ...]
    series: tuple[tuple[str, tuple[float, ...]], ...]
    top: float = 1.0
    kind: str = "bars"


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over one axis.

    at       the position that the controls choose, marked by a vertical line; None if there is none
    top      the end of the vertical axis, at which curves are cut
    """

    caption: str
    x: str
    y: str
    series: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    at: float | None = None
    top: float = 1.0
    kind: str = "curves"

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the horizontal axis."""
        places = [x for _, points in self.series for x, _ in points]
        return min(places), max(places)


Figure = Bars | Curves


def axis_for(*series: Sequence[float]) -> float:
    """Return the end of an axis for probabilities: the next tenth above the largest.

    >>> axis_for((0.24, 0.15), (0.05,)), axis_for((0.96,))
    (0.3, 1.0)
    """
    return min(1.0, ceil(10 * max(map(max, series))) / 10)


def draw(figure: Figure) -> tuple[str, ...]:
    """Draw a figure as lines of characters."""
    return _bars(figure) if isinstance(figure, Bars) else _curves(figure)


def _bars(figure: Bars) -> tuple[str, ...]:
    left = max(map(len, figure.groups))
    middle = max(len(name) for name, _ in figure.series)
    lines = [figure.caption]
    for number, group in enumerate(figure.groups):
        for index, (name, heights) in enumerate(figure.series):
            label = group if index == 0 else ""
            height = min(1.0, max(0.0, heights[number]))
            lines.append(
                f"{label:>{left}}  {name:<{middle}}  {_bar(min(1.0, height / figure.top))} {100 * height:.1f}%"
            )
    return tuple(lines)


def _bar(height: float) -> str:
    eighths = round(height * 8 * 40)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()) or "▏"


def _curves(figure: Curves) -> tuple[str, ...]:
    low, high = figure.ends
    cells = [[" "] * (_WIDE + 1) for _ in range(_DEEP + 1)]
    span = (high - low) or 1.0
    if figure.at is not None and low <= figure.at <= high:
        for row in cells:
            row[round(_WIDE * (figure.at - low) / span)] = "┊"
    for mark, (_, points) in zip(MARKS * len(figure.series), figure.series, strict=False):
        for x, y in _filled(points):
            if y <= figure.top * 1.0001:
                cells[_DEEP - round(_DEEP * max(0.0, y) / figure.top)][round(_WIDE * (x - low) / span)] = mark
    name = readable(figure.top, 4)
    lines = [figure.caption, f"{figure.y}"]
    for number, row in enumerate(cells):
        label = name if number == 0 else "0" if number == _DEEP else ""
        lines.append(f"{label:>{len(name)}} │{''.join(row).rstrip()}")
    lines.append(f"{'':>{len(name)}} └{'─' * (_WIDE + 1)}")
    end = readable(high, 4)
    lines.append(f"{'':>{len(name)}}  {f'{readable(low, 4)}  {figure.x}':<{_WIDE + 1 - len(end)}}{end}")
    lines += [f"  {mark} {label}" for mark, (label, _) in zip(MARKS * len(figure.series), figure.series, strict=False)]
    return tuple(lines)


def _filled(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points on the straight lines between these, dense enough for the columns of a terminal."""
    if not points:
        return []
    span = (points[-1][0] - points[0][0]) or 1.0
    filled = [points[0]]
    for (x, y), (to_x, to_y) in pairwise(points):
        steps = max(1, round(_WIDE * abs(to_x - x) / span))
        filled += [(x + (to_x - x) * k / steps, y + (to_y - y) * k / steps) for k in range(1, steps + 1)]
    return filled
