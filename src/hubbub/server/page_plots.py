"""SVG plots of the pages: budgets, spending over time, likely answers, icon arrays, trade-off curves.

The plots use no style attributes, because the pages forbid inline styles. Horizontal positions are percentages (see
`core.drawing`). Every plot has a text alternative.
"""

import html
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from math import log
from statistics import NormalDist

from hubbub.core.numbers import brief, round_up

#: Number of dots in a quantile dot plot, which readers can count.
DOTS = 20

_XMLNS = 'xmlns="http://www.w3.org/2000/svg"'


def budget(spent: Fraction | None, total: Fraction, *, coming: Fraction = Fraction(0)) -> str:
    """Draw the spent part of a cap, and the part that a charge of `coming` would add."""
    used = _share(total if spent is None else spent, total)
    more = min(_share(coming, total), round(100 - used, 2))
    amount = "an unknown part" if spent is None else round_up(spent)
    words = f"{amount} of ε = {brief(total)} spent" + (f"; this query would add {brief(coming)}" if coming else "")
    return (
        f'<svg class="budget" {_XMLNS} role="img" aria-label="{words}" width="100%" height="12">'
        '<rect class="track" width="100%" height="12" rx="6"/>'
        f'<rect class="spent" width="{used}%" height="12" rx="6"/>'
        f'<rect class="coming" x="{used}%" width="{more}%" height="12"/></svg>'
    )


def _share(part: Fraction, whole: Fraction) -> float:
    return round(min(100.0, 100 * float(part / whole)), 2)


def quantiles(noise: str) -> tuple[float, ...]:
    """Return the midpoints of twenty equally likely parts of the noise, in units of its 95% half-width.

    Laplace noise of half-width w has the scale w/ln 20 and the quantile sign(p − ½)·ln(1/(1 − |2p − 1|)) of that;
    Gaussian noise has the deviation w/1.96.
    """
    places = [(2 * k + 1) / (2 * DOTS) for k in range(DOTS)]
    if noise == "gaussian":
        normal = NormalDist()
        return tuple(normal.inv_cdf(p) / normal.inv_cdf(0.975) for p in places)
    # log(20) is the 95% half-width of the standard Laplace distribution
    return tuple((1 if p > 0.5 else -1) * log(1 - abs(2 * p - 1)) / -log(20) for p in places)


def likely(noise: str, half: float, reach: float) -> str:
    """Draw twenty equally likely answers around the true value on a scale of ±reach, from the noise alone.

    Each dot carries its position in half-widths, so that a script can move it for another ε.
    """
    dots = "".join(
        f'<circle class="dot" cx="{_around(q * half, reach)}%" cy="24" r="5" data-place="{q:.4f}"/>'
        for q in quantiles(noise)
    )
    words = f"Twenty equally likely answers around the true value; the margin of error (95%) is ±{half:.3g}"
    return (
        f'<svg class="likely" {_XMLNS} role="img" aria-label="{words}" width="100%" height="48"'
        f' data-reach="{reach:.6g}">'
        '<line class="axis" x1="0" x2="100%" y1="24" y2="24"/><line class="truth" x1="50%" x2="50%" y1="6" y2="42"/>'
        f"{dots}</svg>"
    )


def _around(value: float, reach: float) -> float:
    return round(min(98.5, max(1.5, 50 + 50 * value / reach)), 2)


def icons(marked: int) -> str:
    """Draw a hundred guesses, of which `marked` are right, fifty of them by chance alone."""
    cells = []
    for place in range(100):
        kind = "chance" if place < 50 else "right" if place < marked else "wrong"
        x, y = place % 20 * 5, place // 20 * 5
        cells.append(f'<circle class="{kind}" cx="{x + 2.5}" cy="{y + 2.5}" r="1.7"/>')
    words = f"Of 100 guesses, 50 are right by chance and at most {marked} with the answers"
    return f'<svg class="icons" {_XMLNS} role="img" aria-label="{words}" viewBox="0 0 100 25">{"".join(cells)}</svg>'


def tradeoff(curves: Mapping[str, Sequence[tuple[Fraction, Fraction]]]) -> str:
    """Draw upper bounds on the true-positive rate against the false-positive rate; chance is dashed."""
    lines = []
    for number, points in enumerate(curves.values()):
        path = "L".join(f"{round(float(100 * level), 4)} {_down(float(power), 1.0)}" for level, power in points)
        lines.append(f'<path class="line tone-{number % 6}" vector-effect="non-scaling-stroke" d="M{path}"/>')
    words = f"Trade-off curve for {html.escape(', '.join(curves))}: maximum true-positive rate by false-positive rate"
    return (
        f'<svg class="over-time" {_XMLNS} role="img" aria-label="{words}" width="100%" height="220">'
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="190">'
        '<line class="cap" vector-effect="non-scaling-stroke" x1="0" x2="100" y1="100" y2="0"/>'
        '<line class="axis" vector-effect="non-scaling-stroke" x1="0" x2="100" y1="100" y2="100"/>'
        f'{"".join(lines)}</svg><text class="note" x="0" y="12">true positives: 100%</text>'
        '<text class="note" x="0" y="210">false positives: 0%</text>'
        '<text class="note" x="100%" y="210" text-anchor="end">100%</text></svg>'
    )


def over_time(
    series: Mapping[str, Sequence[tuple[datetime, float]]], *, cap: float, start: datetime, end: datetime
) -> str:
    """Draw the cumulative spending of each analyst against the cap of the dataset."""
    most = max([cap, *(points[-1][1] for points in series.values() if points)]) * 1.05 or 1.0
    span = max((end - start).total_seconds(), 1.0)
    lines = []
    for number, (name, points) in enumerate(series.items()):
        path, level = [f"M0 {_down(0, most)}"], 0.0
        for moment, total in points:
            x = round(100 * max(0.0, min(1.0, (moment - start).total_seconds() / span)), 3)
            path.append(f"L{x} {_down(level, most)}L{x} {_down(total, most)}")
            level = total
        path.append(f"L100 {_down(level, most)}")
        lines.append(
            f'<path class="line tone-{number % 6}" vector-effect="non-scaling-stroke" d="{"".join(path)}">'
            f"<title>{html.escape(name)}</title></path>"
        )
    top = _down(cap, most)
    words = "; ".join(f"{name} {points[-1][1] if points else 0:.4g}" for name, points in series.items())
    return (
        f'<svg class="over-time" {_XMLNS} role="img" aria-label="ε spent: {html.escape(words)}; dataset cap: {cap:g}"'
        ' width="100%" height="220"><svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="190">'
        f'<line class="cap" vector-effect="non-scaling-stroke" x1="0" x2="100" y1="{top}" y2="{top}"/>'
        f'<line class="axis" vector-effect="non-scaling-stroke" x1="0" x2="100" y1="100" y2="100"/>'
        f"{''.join(lines)}</svg>"
        f'<text class="note" x="0" y="{round(1.9 * top + 15, 1)}">dataset cap: ε = {cap:g}</text>'
        f'<text class="note" x="0" y="210">{start:%Y-%m-%d}</text>'
        f'<text class="note" x="100%" y="210" text-anchor="end">{end:%Y-%m-%d %H:%M} UTC</text></svg>'
    )


def _down(value: float, most: float) -> float:
    return round(100 - 100 * value / most, 3)
