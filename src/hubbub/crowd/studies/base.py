"""Results of a study of the crowd sanitizers: sentences, a table and plots, always marked as not private.

Tested in tests/crowd/test_studies.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hubbub.answers.chart import Point, lines
from hubbub.core import numbers
from hubbub.crowd.disclaimers import NOT_PRIVATE
from hubbub.crowd.isolation import Rate
from hubbub.errors import CrowdError

Progress = Callable[[float, str], None]

_MAX_VALUES = 20


def no_progress(_: float, __: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves of a study; `most` is the top of the vertical axis, None if the data decides."""

    title: str
    across: str
    up: str
    series: Mapping[str, Sequence[Point]]
    most: float | None = 1.0
    logarithmic: bool = False

    def svg(self) -> str:
        """Draw the curves."""
        return lines(
            self.series,
            title=self.title,
            across=self.across,
            up=self.up,
            most=self.most,
            logarithmic=self.logarithmic,
        )

    def to_json(self) -> dict[str, object]:
        """Return the plot as JSON values."""
        return {
            "title": self.title,
            "across": self.across,
            "up": self.up,
            "series": {name: [list(point) for point in points] for name, points in self.series.items()},
            "most": self.most,
            "logarithmic": self.logarithmic,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read the result of `to_json`."""
        series = {name: [_point(point) for point in points] for name, points in form["series"].items()}
        return cls(form["title"], form["across"], form["up"], series, form["most"], form["logarithmic"])


@dataclass(frozen=True, slots=True)
class CrowdStudy:
    """The result of `hubbub sanitize study NAME`. Its table has texts; the first column names what was measured."""

    study: str
    title: str
    words: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    plots: tuple[Plot, ...]

    def to_json(self) -> dict[str, object]:
        """Return the study as JSON values, which state that nothing here is private."""
        return {
            "study": self.study,
            "title": self.title,
            "differentially_private": False,
            "warning": NOT_PRIVATE,
            "words": list(self.words),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "plots": [plot.to_json() for plot in self.plots],
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read the result of `to_json`."""
        rows = tuple(tuple(map(str, row)) for row in form["rows"])
        words, columns = (tuple(map(str, form[name])) for name in ("words", "columns"))
        return cls(form["study"], form["title"], words, columns, rows, tuple(map(Plot.read, form["plots"])))


def _point(values: Sequence[float]) -> Point:
    x, y, low, high = map(float, values)
    return x, y, low, high


def point(x: float, rate: Rate) -> Point:
    """Return a point of a curve: a success rate with its 95% confidence interval."""
    return (float(x), rate.share, *rate.interval())


def exactly(x: float, y: float) -> Point:
    """Return a point of a curve that was computed and not sampled."""
    return float(x), float(y), float(y), float(y)


def averaged(x: float, values: Sequence[float]) -> Point:
    """Return a point of a curve: a mean over runs, with two standard errors on either side."""
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)) ** 0.5
    half = 2 * spread / len(values) ** 0.5
    return float(x), mean, mean - half, mean + half


def share(value: float) -> str:
    """Format a share as a percentage of three significant digits.

    >>> share(0.0364), share(0.0), share(1.0), share(0.000012)
    ('3.64%', '0%', '100%', '0.0012%')
    """
    return f"{100 * value:.3g}%" if value >= 1e-4 or not value else f"{100 * value:.2g}%"


def measured(rate: Rate) -> str:
    """Format a success rate with its interval."""
    low, high = rate.interval()
    return f"{share(rate.share)} ({share(low)}–{share(high)})"


def integers(values: Sequence[str], name: str, low: int, high: int) -> list[int]:
    """Read a list of distinct integers in increasing order, such as dimensions."""
    if not 0 < len(values) <= _MAX_VALUES:
        raise CrowdError(
            "HB685", f"{name} must list 1 to {_MAX_VALUES} values.", f"Separate them by commas: {low},{high}"
        )
    try:
        read = [int(value) for value in values]
    except ValueError:
        raise CrowdError("HB685", f"{name} must list integers.", f"Separate them by commas: {low},{high}") from None
    return sorted({numbers.integer(value, name, low, high) for value in read})


def real(value: float, name: str, low: float, high: float) -> float:
    """Accept a number in a range."""
    if not low <= value <= high:
        raise CrowdError("HB685", f"{name} must be between {low:g} and {high:g}.", "Choose a value in that range.")
    return value
