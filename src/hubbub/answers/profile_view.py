"""The tables of a profile: bounds with what they leave out and the noise they cost, groups, and columns.

Tested in tests/answers/test_profile.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import log

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.answers.bars import bars as svg_bars
from hubbub.answers.estimate import significant
from hubbub.answers.left_out import Share
from hubbub.answers.profile import Profile
from hubbub.answers.release import Output, Release
from hubbub.answers.shares import Histogram
from hubbub.core.numbers import readable

#: The ε at which the noise of a count is shown.
EPSILON = Fraction(1, 10)
_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: its cells, and a mark such as "declared" or "recommended"."""

    cells: tuple[str, ...]
    mark: str = ""


def summary(profile: Profile) -> str:
    """State how many units and rows there are."""
    units, rows = (_plus_minus(*each.interval()) for each in (profile.units(), profile.rows()))
    if profile.model["unit"] is None:
        return f"{profile.dataset} has {units} rows; each is a privacy unit."
    histogram, level = profile.rows_per_unit, profile.rows_per_unit.levels[profile.rows_per_unit.top()]
    more = f" Beyond that, at most {_units(histogram.above())} more rows." if histogram.above() else ""
    few = "1 row" if level == 1 else f"up to {level:,} rows"
    return f"{profile.dataset} has {units} units; those with {few} have {rows} rows.{more}"


def row_bounds_title(profile: Profile) -> str:
    """Return the heading of the bounds on rows, which says which units the shares are about."""
    histogram = profile.rows_per_unit
    if not histogram.above():
        return "Bounds on rows"
    level = histogram.levels[histogram.top()]
    return f"Bounds on rows, for units with {'1 row' if level == 1 else f'up to {level:,} rows'}"


def bars(histogram: Histogram) -> Iterator[tuple[str, str, str]]:
    """Draw a histogram for a terminal: label, count and bar."""
    most = max(1, *histogram.counts)
    for label, count in zip(histogram.labels(), histogram.counts, strict=True):
        margin = f" ±{significant(histogram.margin)}" if histogram.deviation else ""
        yield label, f"{max(0, count):,}{margin}", "█" * round(_WIDTH * max(0, count) / most)


def chart(profile: Profile) -> str:
    """Draw the rows per unit as an SVG."""
    histogram = profile.rows_per_unit
    low, high = ([max(0.0, count + sign * histogram.margin) for count in histogram.counts] for sign in (-1, 1))
    outputs = (
        Output("rows", "text", histogram.labels()),
        Output("units", "integer", [max(0, count) for count in histogram.counts], low, high),
    )
    return svg_bars(Release(outputs, [None] * len(histogram.counts), Fraction(0), Fraction(0), {}))


def row_bounds(profile: Profile) -> list[Row]:
    """List bounds on rows: what each leaves out, and the ± of a count of all rows that it costs."""
    declared, best = profile.model["declared"]["rows"], recommended_rows(profile)
    return [
        Row(
            (f"{level:,}", share.text(), f"±{significant(_noise(profile, level))}"),
            " and ".join(word for word, bound in (("declared", declared), ("recommended", best)) if bound == level),
        )
        for level, share in profile.row_bounds()
    ]


def recommended_rows(profile: Profile) -> int:
    """Recommend the bound with the smallest error of a count of all rows: what it leaves out, plus its noise."""
    rows = max(1.0, profile.rows().value)
    return min(profile.row_bounds(), key=lambda each: (each[1].value * rows + _noise(profile, each[0]), each[0]))[0]


def _noise(profile: Profile, rows: int) -> float:
    """Give the ± of COUNT(*) at the shown ε."""
    return float(profile.model["changed"] * rows * log(20) / EPSILON)


def group_bounds(profile: Profile) -> list[Row]:
    """List for each declared column a recommended bound on groups, with what it and the declared one leave out."""
    rows, declared = [], profile.model["declared"]["groups"]
    for column in profile.model["groups"]:
        best = profile.recommended_groups(column)
        shares = [profile.share_of_groups(column, groups) for groups in (best, declared)]
        rows.append(Row((column, str(best), *map(_text, shares))))
    return rows


def column_facts(profile: Profile) -> list[Row]:
    """List for each column its share of NULL, its values outside the declaration, quantiles, and recommended bounds."""
    rows = []
    for column, entry in profile.model["values"].items():
        outside = profile.outside(column) if entry["bounds"] is not None else None
        quantiles, bounds = "not known: hardly any values", "–"
        if profile.knows_values(column):
            quantiles = "; ".join(readable(profile.quantile(column, level), 4) for level in (0.05, 0.5, 0.95))
            bounds = " to ".join(map(readable, profile.recommended_bounds(column)))
        declared = "–" if entry["bounds"] is None else " to ".join(entry["bounds"])
        missing = _text(profile.missing(column))
        rows.append(Row((column, missing, declared, _text(outside), quantiles, bounds)))
    for column in profile.model["nulls"]:
        rows.append(Row((column, _text(profile.missing(column)), "", _text(profile.unlisted(column)), "", "")))
    return rows


def _units(count: int) -> str:
    return "1 unit has" if count == 1 else f"{count:,} units have"


def _text(share: Share | None) -> str:
    return "–" if share is None else share.text()


def _plus_minus(value: float, low: float, high: float) -> str:
    return f"about {value:,.0f} (±{significant((high - low) / 2)})" if high > low else f"{value:,.0f}"


ROW_HEADINGS = ("rows", "leaves out", f"± of COUNT(*) at ε = {float(EPSILON):g}", "note")
GROUP_HEADINGS = ("column", "recommended groups", "leaves out", "declared groups leave out")
COLUMN_HEADINGS = ("column", "NULL", "declared", "outside", "5%; 50%; 95%", "recommended bounds")


def show(profile: Profile, console: Console) -> None:
    """Print a profile."""
    unit = profile.model["unit"]
    console.print(escape(summary(profile)))
    if unit is not None:
        console.print(f"\n[bold]Rows of each {escape(unit)}[/]")
        console.print(terminal.table(("rows", "units", ""), bars(profile.rows_per_unit), right=(0, 1)))
        console.print(f"\n[bold]{row_bounds_title(profile)}[/]")
        rows = [(*row.cells, row.mark) for row in row_bounds(profile)]
        console.print(terminal.table(ROW_HEADINGS, rows, right=(0, 2)))
        if groups := group_bounds(profile):
            console.print("\n[bold]Bounds on groups[/]: shares are of the groups that units are in")
            console.print(terminal.table(GROUP_HEADINGS, [row.cells for row in groups], right=(1,)))
    if columns := column_facts(profile):
        whose = "one row of each unit" if unit is not None else "all rows"
        console.print(f"\n[bold]Columns[/]: values of {whose}")
        console.print(terminal.table(COLUMN_HEADINGS, [row.cells for row in columns]))
