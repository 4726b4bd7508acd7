"""One answer for each period, put together: a growing table, and charts over time with intervals.

Tested in tests/answers/test_over_time.py.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence

from hubbub.answers.chart import Point, lines
from hubbub.answers.release import Output, Release

Cell = str | int | float | bool | None
#: Cells that every format of a list can hold; others, such as dates, become text.
_PLAIN = (str, int, float, bool, type(None))
#: Curves in one chart: more cannot be told apart.
MAX_CURVES = 6
_NAME = 26


def growing_rows(releases: Mapping[str, Release]) -> tuple[list[str], list[list[Cell]]]:
    """Give the columns and rows of all answers, with the period first and an interval for each noisy number."""
    names, rows = ["block"], list[list[Cell]]()
    for block, release in releases.items():
        columns = release.flat()
        names = ["block", *(column.name for column in columns)]
        for row in zip(*(column.values for column in columns), strict=True):
            rows.append([block, *(cell if isinstance(cell, _PLAIN) else str(cell) for cell in row)])
    return names, rows


def growing_table(releases: Mapping[str, Release]) -> str:
    """Write the answers as one CSV table; empty without answers."""
    names, rows = growing_rows(releases)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows] if releases else [])
    return text.getvalue()


def charts(releases: Mapping[str, Release]) -> dict[str, str]:
    """Draw an SVG for each noisy number: a curve for each of its first keys, with intervals."""
    labels = {float(place): block for place, block in enumerate(releases)}
    curves: dict[str, dict[str, list[Point]]] = {}
    for place, release in enumerate(releases.values()):
        keys = _keys(release.outputs)
        for output in release.outputs:
            if output.kind in ("integer", "real") and output.low is not None and output.high is not None:
                chart = curves.setdefault(output.name, {})
                for key, *point in zip(keys or [output.name], output.values, output.low, output.high, strict=False):
                    finite = [float(x) for x in point if isinstance(x, int | float) and math.isfinite(x)]
                    if len(finite) == len(point):
                        value, low, high = finite
                        chart.setdefault(key, []).append((float(place), value, low, high))
    return {
        name: lines(
            _named([*chart.items()][:MAX_CURVES]),
            title=name,
            across="",
            up=name,
            labels=labels,
        )
        for name, chart in curves.items()
        if chart
    }


def _keys(outputs: Sequence[Output]) -> list[str]:
    """Name the rows of an answer by the columns without noise."""
    columns = [output.values for output in outputs if output.low is None]
    return [" · ".join("NULL" if cell is None else str(cell) for cell in row) for row in zip(*columns, strict=True)]


def _named(curves: Sequence[tuple[str, list[Point]]]) -> dict[str, list[Point]]:
    """Shorten long names, and number them so that they stay different."""
    short = [key if len(key) <= _NAME else f"{key[: _NAME - 4]}… {number}" for number, (key, _) in enumerate(curves, 1)]
    return {name: points for name, (_, points) in zip(short, curves, strict=True)}
