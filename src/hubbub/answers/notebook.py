"""HTML of a release for notebooks: a table with intervals, a bar chart and the privacy cost.

It uses the colors of the notebook (`currentColor`), light or dark; it loads nothing and runs no script.
"""

import html

from hubbub.answers.bars import bars
from hubbub.answers.release import Release

#: Maximum number of rows in the table.
MAX_ROWS = 1000

_NUMBERS = ("integer", "real")


def to_html(release: Release) -> str:
    """Return a release as HTML."""
    right = [output.kind in _NUMBERS for output in release.outputs]
    head = "".join(_cell("th", name, end, ' scope="col"') for name, end in zip(release.columns, right, strict=True))
    rows = [
        "<tr>" + "".join(_cell("td", text, end) for text, end in zip(row, right, strict=True)) + "</tr>"
        for row in release.texts(MAX_ROWS)
    ]
    more = len(release.ratio) - len(rows)
    noisy = any(output.low is not None for output in release.outputs)
    notes = [release.sandbox] if release.sandbox else []
    notes += [f"Cost: {release.cost()}."]
    notes += [f"± values: {release.intervals_note}."] if noisy else []
    notes += [release.left_out.sentence()] if release.left_out is not None else []
    notes += (note for note in release.notes if note != release.sandbox)
    notes += [f"{more:,} more rows are not shown; to_csv() returns all."] if more else []
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    paragraphs = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (
        f'<div class="hubbub-release"><table style="color:inherit">{table}</table>{_chart(release)}{paragraphs}</div>'
    )


def _cell(tag: str, text: str, right: bool, more: str = "") -> str:  # noqa: FBT001 - one of a pair from zip
    side = "right" if right else "left"
    return f'<{tag}{more} style="text-align:{side}">{html.escape(text)}</{tag}>'


def _chart(release: Release) -> str:
    chart = bars(release)
    return f'<div style="max-width:40em;margin:1em 0">{chart}</div>' if chart else ""
