"""Figures of the screens as SVG, for pages and files.

Horizontal positions are percentages and vertical positions are pixels, so that a figure fills the available width while
its text keeps its size. Colors are attributes, which a page's style sheet can override by class.

Tested in tests/semantics/screens/test_screens.py.
"""

import html

from hubbub.core.numbers import readable
from hubbub.semantics.screens.figures import Bars, Curves, Figure

#: Colors of the series, distinguishable with color blindness; curves also differ in their dashes.
TONES = ("#14665f", "#d88a1c", "#6a6fc1", "#b3569a", "#4f8a2c", "#5f6d72")
_DASHES = ("none", "7 4", "2 3", "9 3 2 3", "1 5", "12 4")
_SOFT, _GRID = "#5f6d72", "#d9dfdf"
_TOP, _DEEP, _LINE = 24, 190, 20  # pixels: the top of the plot, its height, and a line of text
_LEFT = 9.0  # percent of the width, for the labels of the vertical axis


def draw(figure: Figure, *, alone: bool = False) -> str:
    """Draw a figure; with `alone`, as a file with a size and a white background."""
    title = figure.caption if isinstance(figure, Bars) else f"{figure.caption}: {figure.y}"
    unit = title if alone else "" if isinstance(figure, Bars) else figure.y
    parts, words = _bars(figure, unit) if isinstance(figure, Bars) else _curves(figure, unit)
    names = [name for name, _ in figure.series]
    height = _TOP + _DEEP + 2 * _LINE + _LINE * len(names) + 6
    size = f'width="720" height="{height}" font-family="sans-serif"' if alone else f'width="100%" height="{height}"'
    ground = '<rect width="100%" height="100%" fill="#fff"/>' if alone else ""
    return (
        f'<svg class="screen-figure" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(words)}"'
        f' {size} font-size="13" fill="currentColor">{ground}{parts}{_legend(names, isinstance(figure, Curves))}</svg>'
    )


def _legend(names: list[str], lines: bool) -> str:  # noqa: FBT001
    parts = []
    for number, name in enumerate(names):
        sample = (
            f'<line class="line tone-{number % 6}" x2="22" y1="5" y2="5" stroke-width="2.5" stroke="{_tone(number)}"'
            f' stroke-dasharray="{_dash(number)}"/>'
            if lines
            else f'<rect class="tone-{number % 6}" width="18" height="10" rx="2" fill="{_tone(number)}"/>'
        )
        y = _TOP + _DEEP + 2 * _LINE + _LINE * number
        parts.append(
            f'<svg x="{_LEFT}%" y="{y}" overflow="visible">{sample}<text x="28" y="10">{html.escape(name)}</text></svg>'
        )
    return "".join(parts)


def _tone(number: int) -> str:
    return TONES[number % len(TONES)]


def _dash(number: int) -> str:
    return _DASHES[number % len(_DASHES)]


def _frame(low: str, high: str, unit: str) -> str:
    """Draw the horizontal lines of an axis from 0 to the top, and their labels."""
    lines = [f'<text class="note" x="0" y="12" fill="{_SOFT}">{html.escape(unit)}</text>']
    for y, label in ((_TOP, high), (_TOP + _DEEP / 2, ""), (_TOP + _DEEP, low)):
        lines.append(f'<line class="grid" x1="{_LEFT}%" x2="100%" y1="{y}" y2="{y}" stroke="{_GRID}"/>')
        if label:
            lines.append(
                f'<text class="note" x="{_LEFT - 1}%" y="{y + 4}" text-anchor="end" fill="{_SOFT}">{label}</text>'
            )
    return "".join(lines)


def _bars(figure: Bars, unit: str) -> tuple[str, str]:
    parts = [_frame("0%", f"{100 * figure.top:g}%", unit)]
    slot = (100 - _LEFT) / len(figure.groups)
    width = slot * 0.8 / len(figure.series)
    for number, group in enumerate(figure.groups):
        start = _LEFT + slot * number + slot * 0.1
        for index, (_, heights) in enumerate(figure.series):
            tall = round(_DEEP * min(1.0, max(0.0, heights[number] / figure.top)), 2)
            parts.append(
                f'<rect class="tone-{index % 6}" x="{start + width * index:.3f}%" y="{_TOP + _DEEP - tall}"'
                f' width="{width * 0.92:.3f}%" height="{tall}" fill="{_tone(index)}"/>'
            )
        parts.append(
            f'<text class="note" x="{_LEFT + slot * (number + 0.5):.3f}%" y="{_TOP + _DEEP + 18}"'
            f' text-anchor="middle" fill="{_SOFT}">{html.escape(group)}</text>'
        )
    words = "; ".join(
        f"{group}: " + ", ".join(f"{name} {100 * heights[number]:.1f}%" for name, heights in figure.series)
        for number, group in enumerate(figure.groups)
    )
    return "".join(parts), f"{figure.caption}. {words}"


def _curves(figure: Curves, unit: str) -> tuple[str, str]:
    low, high = figure.ends
    span = (high - low) or 1.0
    lines = []
    for number, (_, points) in enumerate(figure.series):
        path = "L".join(
            f"{100 * (x - low) / span:.3f} {100 - 100 * min(y, 2 * figure.top) / figure.top:.3f}" for x, y in points
        )
        lines.append(
            f'<path class="line tone-{number % 6}" vector-effect="non-scaling-stroke" fill="none" stroke-width="2.5"'
            f' stroke="{_tone(number)}" stroke-dasharray="{_dash(number)}" d="M{path}"/>'
        )
    if figure.at is not None and low <= figure.at <= high:
        across = f"{100 * (figure.at - low) / span:.3f}"
        lines.append(
            f'<line class="at" vector-effect="non-scaling-stroke" stroke-dasharray="4 3" stroke="{_SOFT}"'
            f' x1="{across}" x2="{across}" y1="0" y2="100"/>'
        )
    foot = _TOP + _DEEP + 18
    drawing = (
        f"{_frame('0', readable(figure.top, 4), unit)}"
        f'<svg x="{_LEFT}%" y="{_TOP}" width="{100 - _LEFT}%" height="{_DEEP}" viewBox="0 0 100 100"'
        f' preserveAspectRatio="none">{"".join(lines)}</svg>'
        f'<text class="note" x="{_LEFT}%" y="{foot}" fill="{_SOFT}">{readable(low, 4)}</text>'
        f'<text class="note" x="{50 + _LEFT / 2}%" y="{foot}" text-anchor="middle" fill="{_SOFT}">'
        f"{html.escape(figure.x)}</text>"
        f'<text class="note" x="100%" y="{foot}" text-anchor="end" fill="{_SOFT}">{readable(high, 4)}</text>'
    )
    return drawing, f"{figure.caption}: {figure.y} against {figure.x}. {_described(figure)}"


def _described(figure: Curves) -> str:
    """Describe each curve by its value at the chosen position, or at its end."""
    words = []
    for name, points in figure.series:
        if figure.at is None:
            words.append(f"{name}: {readable(points[-1][1], 4)} at {readable(points[-1][0], 4)}")
            continue
        x, y = min(points, key=lambda point: abs(point[0] - (figure.at or 0.0)))
        words.append(f"{name}: {readable(y, 4)} at {readable(x, 4)}")
    return "; ".join(words)
