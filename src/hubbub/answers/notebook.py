"""How a release looks in a notebook: a table with intervals, the same drawing as in the pages, what it cost.

Colors are those of the notebook (`currentColor`), light or dark; nothing is loaded and no script is run.
"""

import html

from hubbub.answers.bars import bars
from hubbub.answers.release import Release

#: A browser should not be asked to show more.
MAX_ROWS = 1000

_NUMBERS = ("integer", "real")


def to_html(release: Release) -> str:
    """Give a release as HTML."""
    right = [output.kind in _NUMBERS for output in release.outputs]
    head = "".join(_cell("th", name, end, ' scope="col"') for name, end in zip(release.columns, right, strict=True))
    rows = [
        "<tr>" + "".join(_cell("td", text, end) for text, end in zip(row, right, strict=True)) + "</tr>"
        for row in release.texts()[:MAX_ROWS]
    ]
    more = len(release.ratio) - len(rows)
    noisy = any(output.low is not None for output in release.outputs)
    notes = [release.price() + "."]
    notes += ["± are 95% intervals of the noise; what sampling leaves open comes on top."] if noisy else []
    notes += [f"{more:,} more rows are not shown: to_csv() has all."] if more else []
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    words = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f'<div class="hubbub-release"><table style="color:inherit">{table}</table>{_drawing(release)}{words}</div>'


def _cell(tag: str, text: str, right: bool, more: str = "") -> str:  # noqa: FBT001 - one of a pair from zip
    side = "right" if right else "left"
    return f'<{tag}{more} style="text-align:{side}">{html.escape(text)}</{tag}>'


def _drawing(release: Release) -> str:
    drawn = bars(release)
    return f'<div style="max-width:40em;margin:1em 0">{drawn}</div>' if drawn else ""
