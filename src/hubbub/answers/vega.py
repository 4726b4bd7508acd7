"""Charts of a release as Vega-Lite specifications, which Altair, notebooks, and many web pages draw.

Tested in tests/answers/test_formats.py.
"""

from typing import Any

from hubbub.answers.cell_text import text
from hubbub.answers.release import Release
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError

#: Rows in a chart.
MAX_ROWS = 200


def vega_lite(release: Release, column: str | None = None) -> dict[str, Any]:
    """Return a Vega-Lite chart of one column (by default the first noisy one): bars, with intervals over them."""
    noisy = [output for output in release.outputs if output.low is not None and column in (None, output.name)]
    if not noisy:
        raise ParameterError(
            "HB131", "There is no such column with intervals.", f"Choose one of: {', '.join(release.columns)}."
        )
    shown = release.head(MAX_ROWS)
    name = noisy[0].name
    output = next(each for each in shown.outputs if each.name == name)
    keys = [each.values for each in shown.outputs if each.low is None]
    labels = [" · ".join(map(text, key)) for key in zip(*keys, strict=True)] or [name] * len(shown.ratio)
    cells = zip(labels, output.values, output.low or (), output.high or (), strict=True)
    title = f"{name}, with 95% intervals (ε = {brief(release.epsilon)})"
    title = f"{release.sandbox} {title}" if release.sandbox else title
    y = {"field": "group", "type": "nominal", "sort": None, "title": None}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": title,
        "data": {"values": [{"group": g, "value": v, "low": low, "high": high} for g, v, low, high in cells]},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "bar", "opacity": 0.35},
                "encoding": {"x": {"field": "value", "type": "quantitative", "title": title}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {"field": "low", "type": "quantitative", "title": title},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True},
                "encoding": {
                    "x": {"field": "value", "type": "quantitative", "title": title},
                    "tooltip": [{"field": each} for each in ("group", "value", "low", "high")],
                },
            },
        ],
    }
