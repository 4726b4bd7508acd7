"""Report of a study as a PDF on A4 pages, with text that can be searched and copied.

It is drawn with matplotlib objects (the extra `plot`), without pyplot. Text may come from an untrusted table: none is
parsed as mathematics, and characters that the font lacks become "?".

Tested in tests/attacks/test_report.py.
"""

import threading
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from math import exp, log
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hubbub.attacks.base import AttackStudy
from hubbub.attacks.report import ALARM, COLUMNS, READING, ReportContext, exceeding_findings, facts, row, summarize
from hubbub.attacks.report_plot import series
from hubbub.errors import AttackError
from hubbub.semantics.screens.svg import TONES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _HIGH = 8.27, 11.69  # inches: A4
_LEFT, _TOP, _BOTTOM = 0.09, 0.93, 0.07  # shares of the page
_LETTERS = 96  # characters per line of the smallest text
_MARKS = ("o", "s", "D", "^")
#: Left edge of each table column, as a share of the page, and its width in characters.
_COLUMNS = ((0.09, 22), (0.29, 6), (0.35, 16), (0.50, 17), (0.65, 8), (0.73, 8), (0.80, 20))
#: matplotlib has global fonts and settings.
_one_at_a_time = threading.Lock()


def pdf(study: AttackStudy, context: ReportContext) -> bytes:
    """Write a report as PDF."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_pdf import PdfPages
    except ModuleNotFoundError:
        raise AttackError(
            "HB647",
            "A PDF report needs matplotlib, which is not installed.",
            'Run `pip install "hubbub[plot]"`, or write the report as HTML.',
        ) from None
    written = BytesIO()
    about = {"Title": _plain(study.title), "Creator": "hubbub", "CreationDate": context.at}
    with (
        _one_at_a_time,
        # embed fonts, so that text stays text; do not parse formulas between two $
        mpl.rc_context({"pdf.fonttype": 42, "font.family": ["DejaVu Sans"], "font.size": 9, "text.parse_math": False}),
        PdfPages(written, metadata=about) as pages,
    ):
        _Paper(pages.savefig).write(study, context)
    return written.getvalue()


@cache
def _font() -> Any:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return get_font(findfont(FontProperties(family=["DejaVu Sans"])))


def _plain(text: str) -> str:
    """Replace characters that the font lacks."""
    return "".join(each if each == " " or _font().get_char_index(ord(each)) else "?" for each in text)


class _Paper:
    """Pages filled from the top; content that does not fit starts a new page."""

    def __init__(self, keep: Callable[..., None]) -> None:
        self._keep = keep
        self._number = 0
        self._begin()

    def write(self, study: AttackStudy, context: ReportContext) -> None:
        """Write a whole report."""
        self._text(study.title, size=16, bold=True)
        if exceeding_findings(study):
            self._text(ALARM, bold=True, color="#a3262a")
        self._text(summarize(study), bold=True)
        for each in study.words:
            self._text(each)
        self._plot(study)
        self._heading("Figures")
        self._cells(COLUMNS, bold=True)
        for finding in study.findings:
            self._cells(row(finding))
        if any(finding.facts for finding in study.findings):
            self._heading("Further figures")
            for finding in study.findings:
                if finding.facts:
                    self._text(f"{finding.label} – {facts(finding)}")
        self._heading("How to read this")
        for each in READING:
            self._text(f"• {each}")
        self._heading("What was run")
        for name, value in context.facts(study).items():
            self._text(f"{name}: {value}")
        self._end()

    def _begin(self) -> None:
        from matplotlib.figure import Figure

        self._figure = Figure(figsize=(_WIDE, _HIGH))
        self._y = _TOP
        self._number += 1

    def _end(self) -> None:
        self._figure.text(0.5, 0.03, f"hubbub · page {self._number}", ha="center", fontsize=8, color="#5f6d72")
        self._keep(self._figure)

    def _room(self, height: float) -> None:
        if self._y - height < _BOTTOM:
            self._end()
            self._begin()

    def _heading(self, words: str) -> None:
        self._room(0.08)  # never at the bottom of a page without content
        self._y -= 0.012
        self._text(words, size=12, bold=True)

    def _text(self, words: str, *, size: float = 9.5, bold: bool = False, color: str = "#1b2529") -> None:
        step = size * 1.45 / 72 / _HIGH
        for line in wrap(_plain(words), int(_LETTERS * 9 / size * (0.92 if bold else 1))) or [""]:
            self._room(step)
            self._put(_LEFT, line, size=size, bold=bold, color=color)
            self._y -= step
        self._y -= 0.45 * step

    def _put(self, x: float, line: str, *, size: float, bold: bool, color: str) -> None:
        weight = "bold" if bold else "normal"
        self._figure.text(x, self._y, line, fontsize=size, weight=weight, color=color, va="top")

    def _cells(self, cells: Sequence[str], *, bold: bool = False) -> None:
        parts = [wrap(_plain(cell), wide) for cell, (_, wide) in zip(cells, _COLUMNS, strict=True)]
        step = 8 * 1.4 / 72 / _HIGH
        self._room(step * max(map(len, parts)))
        top = self._y
        for lines, (x, _) in zip(parts, _COLUMNS, strict=True):
            for index, line in enumerate(lines):
                self._y = top - index * step
                self._put(x, line, size=8, bold=bold, color="#1b2529")
        self._y = top - step * max(map(len, parts)) - 0.3 * step

    def _plot(self, study: AttackStudy) -> None:
        height = 0.36
        self._room(height)
        axes = self._figure.add_axes((_LEFT + 0.05, self._y - height + 0.07, 0.76, height - 0.09))
        _draw(axes, study)
        self._y -= height + 0.01 * len(series(study))


def _draw(axes: "Axes", study: AttackStudy) -> None:
    """Draw the plot of `report_plot` with matplotlib."""
    drawn = series(study)
    epsilons = sorted({float(each.epsilon) for each in study.findings if each.epsilon is not None}) or [1.0]
    bare = [each for each in drawn if not each.guaranteed]
    wide = max(log(epsilons[-1] / epsilons[0]), 1.0)
    column = max(wide * 0.1, 0.25)
    positions = {each.number: exp(log(epsilons[-1]) + (n + 1.5) * column) for n, each in enumerate(bare)}
    for each in drawn:
        tone = TONES[each.number % len(TONES)]
        xs = [positions[each.number] if f.epsilon is None else float(f.epsilon) for f in each.findings]
        shares = [f.score.share for f in each.findings]
        ends = (
            [max(0.0, f.score.share - f.score.low) for f in each.findings],
            [max(0.0, f.score.high - f.score.share) for f in each.findings],
        )
        axes.errorbar(
            xs,
            shares,
            yerr=ends,
            fmt=_MARKS[each.number % len(_MARKS)],
            color=tone,
            capsize=3,
            markersize=5,
            label=_plain(each.target[:60]),
        )
    _curves(axes, study)
    axes.set_xscale("log")
    axes.set_ylim(-0.02, 1.05)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    named = [*dict.fromkeys([*epsilons])] if any(each.guaranteed for each in drawn) else []
    axes.set_xticks([*named, *positions.values()], [*(f"{each:g}" for each in named), *("none" for _ in positions)])
    axes.minorticks_off()
    axes.set_xlabel("ε guaranteed")
    axes.set_ylabel("correct guesses, with 95% intervals")
    axes.grid(visible=True, color="#d9dfdf", linewidth=0.6)
    axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)


def _curves(axes: "Axes", study: AttackStudy) -> None:
    bounds = [points for each in series(study) if (points := each.ceiling)]
    for index, points in enumerate(bounds):
        label = "maximum under ε" if index == 0 else None
        mark = "_" if len(points) == 1 else None
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, color="#a3262a", linewidth=1.5, marker=mark, markersize=20, label=label)
    for index, share in enumerate(sorted({each.score.chance for each in study.findings})[:3]):
        label = "chance: blind guessing" if index == 0 else None
        axes.axhline(share, color="#5f6d72", linewidth=1, linestyle=":", label=label)
