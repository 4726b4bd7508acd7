"""SVG line charts with intervals, without scripts or style attributes, for pages and documents."""

import html
import math
from collections.abc import Mapping, Sequence

from hubbub.core.numbers import readable

#: x, y and the ends of the interval around y.
Point = tuple[float, float, float, float]

#: Colors that are safe for color blindness (Okabe and Ito), and a dash pattern for each.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8a6d00")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "1 5", "12 4")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 360, 64, 40, 52
_LEGEND = 240


def lines(
    series: Mapping[str, Sequence[Point]],
    *,
    title: str,
    across: str,
    up: str,
    logarithmic: bool = False,
    most: float | None = None,
    ceiling: Sequence[tuple[float, float]] = (),
    ceiling_name: str = "ceiling",
    labels: Mapping[float, str] | None = None,
) -> str:
    """Draw one curve per series with its intervals; `logarithmic` scales x, `ceiling` is a curve without intervals.

    `labels` name values of x, which are numbers otherwise.
    """
    xs = [x for points in series.values() for x, *_ in points] + [x for x, _ in ceiling]
    ys = [value for points in series.values() for _, *values in points for value in values] + [y for _, y in ceiling]
    finite = [y for y in ys if math.isfinite(y)]
    top = most if most is not None else max([*finite, 0.0]) * 1.05 or 1.0
    low = min([*finite, 0.0])
    frame = _Frame(min(xs), max(xs), low, top, logarithmic, labels or {})
    parts = [frame.axes(sorted(set(xs)), across, up)]
    for number, (name, points) in enumerate(series.items()):
        parts.append(frame.curve(number, name, points))
    if ceiling:
        path = "L".join(f"{frame.x(x)} {frame.y(y)}" for x, y in ceiling)
        parts.append(f'<path d="M{path}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray="4 4"/>')
        parts.append(_legend(len(series), ceiling_name, "currentColor", "4 4"))
    label = html.escape(f"{title}: {up} against {across}" if across else f"{title} over time")
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}"'
        f' viewBox="0 0 {_WIDTH + _LEGEND} {_HEIGHT}" width="{_WIDTH + _LEGEND}" color="#222"'
        f' font-family="sans-serif" font-size="13"><title>{label}</title>'
        '<rect class="paper" width="100%" height="100%" fill="#fff"/>'
        f'<text x="{_LEFT}" y="22" font-size="15" font-weight="bold" fill="currentColor">{html.escape(title)}</text>'
        f"{''.join(parts)}</svg>\n"
    )


class _Frame:
    def __init__(
        self,
        left: float,
        right: float,
        low: float,
        top: float,
        logarithmic: bool,  # noqa: FBT001
        labels: Mapping[float, str],
    ) -> None:
        self._labels = labels
        self._log = logarithmic and left > 0
        self._left, self._right = (self._scaled(left), self._scaled(right))
        self._low, self._top = low, top if top > low else low + 1

    def _scaled(self, x: float) -> float:
        return math.log10(x) if self._log else x

    def x(self, value: float) -> float:
        span = self._right - self._left or 1.0
        return round(_LEFT + 12 + (_WIDTH - _LEFT - 32) * (self._scaled(value) - self._left) / span, 2)

    def y(self, value: float) -> float:
        share = (min(max(value, self._low), self._top) - self._low) / (self._top - self._low)
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share, 2)

    def axes(self, xs: Sequence[float], across: str, up: str) -> str:
        bottom = self.y(self._low)
        parts = [
            f'<line x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{bottom}" y2="{bottom}" stroke="currentColor"/>',
            f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 12}" text-anchor="middle" fill="currentColor">'
            f"{html.escape(across)}</text>",
            f'<text transform="translate(16 {(_HEIGHT - _BOTTOM + _TOP) / 2}) rotate(-90)" text-anchor="middle"'
            f' fill="currentColor">{html.escape(up)}</text>',
        ]
        for step in range(6):
            value = self._low + (self._top - self._low) * step / 5
            y = self.y(value)
            parts.append(
                f'<line x1="{_LEFT}" x2="{_WIDTH - 8}" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity=".12"/>'
                f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end" fill="currentColor">{readable(value, 3)}</text>'
            )
        last = -math.inf
        for value in xs:
            at, label = self.x(value), self._label(value)
            if at - last >= max(34, 8 * len(label)):  # labels must not overlap
                parts.append(
                    f'<text x="{at}" y="{bottom + 18}" text-anchor="middle" fill="currentColor">{label}</text>'
                )
                last = at
        return "".join(parts)

    def _label(self, value: float) -> str:
        return html.escape(self._labels.get(value, readable(value, 4)))

    def curve(self, number: int, name: str, points: Sequence[Point]) -> str:
        color, dash = _COLORS[number % len(_COLORS)], _DASHES[number % len(_DASHES)]
        path = "L".join(f"{self.x(x)} {self.y(y)}" for x, y, *_ in points)
        parts = [f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash}"/>']
        for x, y, low, high in points:
            at = self.x(x)
            parts.append(
                f'<line x1="{at}" x2="{at}" y1="{self.y(low)}" y2="{self.y(high)}" stroke="{color}"/>'
                f'<circle cx="{at}" cy="{self.y(y)}" r="3.5" fill="{color}"><title>{html.escape(name)}: '
                f"{readable(y, 4)} ({readable(low, 4)} to {readable(high, 4)}) at {self._label(x)}</title></circle>"
            )
        return "".join(parts) + _legend(number, name, color, dash)


def _legend(number: int, name: str, color: str, dash: str) -> str:
    y = _TOP + 8 + 20 * number
    return (
        f'<line x1="{_WIDTH + 4}" x2="{_WIDTH + 32}" y1="{y}" y2="{y}" stroke="{color}" stroke-width="2"'
        f' stroke-dasharray="{dash}"/><text x="{_WIDTH + 38}" y="{y + 4}" fill="currentColor">'
        f"{html.escape(name)}</text>"
    )
