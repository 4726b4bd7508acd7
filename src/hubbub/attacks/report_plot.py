"""Plot of a study as SVG: success rate by ε with its interval, blind guessing, and the maximum under ε.

Horizontal positions are percentages and vertical positions are pixels, so that a plot fills the available width while
its text keeps its size. Colors are attributes, which a page's style sheet can override by class.
Series differ in shape and color, and a legend below names them.

Tested in tests/attacks/test_report.py.
"""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, log

from hubbub.attacks.base import AttackFinding, AttackStudy, percent
from hubbub.attacks.base import ceiling as allowed
from hubbub.core.numbers import brief
from hubbub.semantics.screens.svg import TONES

#: Each series also has its own shape.
_SHAPES = (
    "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "M-6 0L0 -6L6 0L0 6Z",
    "M-5 4L0 -6L5 4Z",
)
_BAD, _SOFT = "#a3262a", "#5f6d72"
_TOP, _DEEP = 26, 210  # pixels: position of 100%, and height of the plot
_LEFT, _RIGHT, _LINE = 11.0, 97.0, 20
_NEAR = 5.0  # two labels nearer than this percentage of the width would overlap
_SAMPLES = 40


@dataclass(frozen=True, slots=True)
class Series:
    """The findings on one target, with or without a guarantee."""

    number: int
    target: str
    findings: tuple[AttackFinding, ...]

    @property
    def guaranteed(self) -> bool:
        """Whether the findings have an ε."""
        return self.findings[0].epsilon is not None

    @property
    def ceiling(self) -> list[tuple[float, float]]:
        """The maximum at each ε; interpolated if it is the known maximum for one bit."""
        points = [
            (float(each.epsilon), each.ceiling)
            for each in self.findings
            if each.epsilon is not None and each.ceiling is not None
        ]
        if len(points) < 2 or any(abs(most - allowed(Fraction(epsilon))) > 1e-6 for epsilon, most in points):
            return points
        first, last = log(points[0][0]), log(points[-1][0])
        steps = [exp(first + (last - first) * index / _SAMPLES) for index in range(_SAMPLES + 1)]
        return [(epsilon, allowed(Fraction(epsilon))) for epsilon in steps]


def series(study: AttackStudy) -> tuple[Series, ...]:
    """Group the findings by target; targets without a guarantee come first."""
    kinds = sorted({(each.epsilon is not None, each.target): None for each in study.findings}, key=lambda kind: kind[0])
    return tuple(
        Series(
            number,
            target,
            tuple(
                sorted(
                    (
                        each
                        for each in study.findings
                        if (each.epsilon is not None, each.target) == (guaranteed, target)
                    ),
                    key=lambda each: each.epsilon or Fraction(0),
                )
            ),
        )
        for number, (guaranteed, target) in enumerate(kinds)
    )


def plot(study: AttackStudy, *, alone: bool = False) -> str:
    """Draw a study; with `alone`, as a separate file with a size and a white background."""
    drawn = series(study)
    across = _Across(drawn)
    bounded = ("ceiling",) if any(each.ceiling for each in drawn) else ()
    legend: list[Series | str] = [*drawn, *bounded, "chance"]
    height = _TOP + _DEEP + 52 + _LINE * len(legend)
    words = f"{study.title}: success against ε. " + "; ".join(map(describe_finding, study.findings))
    size = f'width="720" height="{height}" font-family="sans-serif"' if alone else f'width="100%" height="{height}"'
    ground = '<rect width="100%" height="100%" fill="#fff"/>' if alone else ""
    return (
        f'<svg class="attack" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(words)}" {size}'
        f' font-size="13" fill="currentColor">{ground}'
        f"{''.join(_frame(across))}{''.join(_chance(study))}"
        f"{''.join(part for each in drawn for part in _ceiling(each, across))}"
        f"{''.join(_mark(each, finding, across) for each in drawn for finding in each.findings)}"
        f"{''.join(_legend(legend))}</svg>"
    )


def describe_finding(finding: AttackFinding) -> str:
    """Describe a finding in one line."""
    score = finding.score
    most = "" if finding.ceiling is None else f"; maximum {percent(finding.ceiling)}"
    interval = f"{percent(score.low)} to {percent(score.high)}"
    return f"{finding.label}: {percent(score.share)} correct ({interval}; chance {percent(score.chance)}{most})"


class _Across:
    """Horizontal positions: ε on a logarithmic scale, then one column per target without a guarantee."""

    def __init__(self, drawn: Sequence[Series]) -> None:
        self.bare = [each.number for each in drawn if not each.guaranteed]
        self.epsilons = sorted({each.epsilon for one in drawn for each in one.findings if each.epsilon is not None})
        self._dodge = [each.number for each in drawn if each.guaranteed]
        # the columns without a guarantee take at most half of the width
        share = 0.0 if not self.bare else 1.0 if not self.epsilons else min(0.5, 0.14 + 0.07 * len(self.bare))
        self.border = _RIGHT - share * (_RIGHT - _LEFT)

    def epsilon(self, value: float) -> float:
        """Return the position of an ε."""
        first, last = (log(self.epsilons[index]) for index in (0, -1))
        left, right = _LEFT + 3, self.border - 5
        return left + (right - left) * ((log(value) - first) / (last - first) if last > first else 0.5)

    def of(self, each: Series, finding: AttackFinding) -> float:
        """Return the position of a finding; several at the same ε are drawn side by side."""
        if finding.epsilon is None:
            column = (_RIGHT - self.border) / len(self.bare)
            beside = each.findings.index(finding) - (len(each.findings) - 1) / 2
            return round(self.border + column * (self.bare.index(each.number) + 0.5) + 1.5 * beside, 2)
        beside = self._dodge.index(each.number) - (len(self._dodge) - 1) / 2
        return round(self.epsilon(float(finding.epsilon)) + 1.8 * beside, 2)


def _down(share: float) -> float:
    return round(_TOP + _DEEP * (1 - min(1.0, max(0.0, share))), 1)


def _frame(across: _Across) -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _down(share)
        yield f'<line class="grid" x1="{_LEFT}%" x2="{_RIGHT}%" y1="{y}" y2="{y}" stroke="#d9dfdf"/>'
        yield _text("0", y + 4, f"{share:.0%}", "start")
    yield _text("0", 13, "correct guesses, with 95% intervals", "start")
    under, last = _TOP + _DEEP + 18, -_NEAR
    for epsilon in across.epsilons:
        x = round(across.epsilon(float(epsilon)), 2)
        yield f'<line class="grid" x1="{x}%" x2="{x}%" y1="{_down(0)}" y2="{_down(0) + 5}" stroke="#d9dfdf"/>'
        if x - last >= _NEAR:
            yield _text(f"{x}%", under, brief(epsilon), "middle")
            last = x
    if across.epsilons:
        yield _text(f"{round((_LEFT + across.border) / 2, 2)}%", under + 18, "ε guaranteed", "middle")
    if across.bare:
        yield _text(f"{round((across.border + _RIGHT) / 2, 2)}%", under + 18, "no guarantee", "middle")
        if across.epsilons:
            yield (
                f'<line class="grid" x1="{across.border}%" x2="{across.border}%" y1="{_TOP}" y2="{_down(0)}"'
                ' stroke="#d9dfdf"/>'
            )


def _text(x: str, y: float, words: str, anchor: str) -> str:
    return f'<text class="note" x="{x}" y="{y}" text-anchor="{anchor}" fill="{_SOFT}">{html.escape(words)}</text>'


def _chance(study: AttackStudy) -> Iterator[str]:
    """Draw the success rate of blind guessing, at most three values."""
    for share in sorted({each.score.chance for each in study.findings})[:3]:
        y = _down(share)
        yield (
            f'<line class="chance" x1="{_LEFT}%" x2="{_RIGHT}%" y1="{y}" y2="{y}" stroke="{_SOFT}" stroke-width="1.5"'
            ' stroke-dasharray="2 4"/>'
        )


def _ceiling(each: Series, across: _Across) -> Iterator[str]:
    """Draw the maximum under ε."""
    points = [(round(across.epsilon(epsilon), 2), _down(most)) for epsilon, most in each.ceiling]
    if len(points) == 1:  # a single ε: a short line through its point
        points = [(points[0][0] - 4, points[0][1]), (points[0][0] + 4, points[0][1])]
    for (x1, y1), (x2, y2) in pairwise(points):
        yield (
            f'<line class="ceiling" x1="{x1:g}%" x2="{x2:g}%" y1="{y1}" y2="{y2}" stroke="{_BAD}" stroke-width="2"'
            ' stroke-linecap="round"/>'
        )


def _mark(each: Series, finding: AttackFinding, across: _Across) -> str:
    x, score, tone = across.of(each, finding), finding.score, TONES[each.number % len(TONES)]
    name = f"tone-{each.number % len(TONES)}"
    low, high = _down(score.low), _down(score.high)
    ends = "".join(f'<line x1="-4" x2="4" y1="{y}" y2="{y}"/>' for y in (low, high))
    return (
        f'<g class="{name}" stroke="{tone}" fill="{tone}"><title>{html.escape(describe_finding(finding))}</title>'
        f'<svg x="{x}%" overflow="visible" stroke-width="2"><line x1="0" x2="0" y1="{low}" y2="{high}"/>{ends}</svg>'
        f'<svg x="{x}%" y="{_down(score.share)}" overflow="visible"><path d="{_SHAPES[each.number % len(_SHAPES)]}"/>'
        "</svg></g>"
    )


def _legend(entries: Sequence[Series | str]) -> Iterator[str]:
    for index, entry in enumerate(entries):
        y = _TOP + _DEEP + 62 + _LINE * index
        if isinstance(entry, Series):
            tone, name = TONES[entry.number % len(TONES)], f"tone-{entry.number % len(TONES)}"
            mark = (
                f'<svg x="14" y="{y - 4}" overflow="visible" class="{name}" fill="{tone}" stroke="none">'
                f'<path d="{_SHAPES[entry.number % len(_SHAPES)]}"/></svg>'
            )
            words = _short(entry.target)
        elif entry == "ceiling":
            mark = f'<line class="ceiling" x1="2" x2="26" y1="{y - 4}" y2="{y - 4}" stroke="{_BAD}" stroke-width="2"/>'
            words = "maximum under ε"
        else:
            dashes = f'stroke="{_SOFT}" stroke-width="1.5" stroke-dasharray="2 4"'
            mark = f'<line class="chance" x1="2" x2="26" y1="{y - 4}" y2="{y - 4}" {dashes}/>'
            words = "chance: blind guessing"
        yield f'{mark}<text x="34" y="{y}">{html.escape(words)}</text>'


def _short(words: str, most: int = 42) -> str:
    """Shorten a label in the middle, because labels differ at their ends.

    >>> _short("a" * 30 + "b" * 30, 10)
    'aaaa…bbbbb'
    """
    kept = most - 1
    return words if len(words) <= most else f"{words[: kept // 2]}…{words[-(kept - kept // 2) :]}"
