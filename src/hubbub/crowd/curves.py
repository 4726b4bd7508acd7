"""Plots of how often adversaries isolate a row, over dimension, crowd size and distance ratio.

Tested in tests/cli/test_sanitize.py and tests/crowd/test_document.py.
"""

from numpy.random import Generator

from hubbub.crowd.experiments import draw_sweep, sweep, sweep_informed, sweep_rereleases, uniform

#: Each plot: the variable on its axis, and its values.
CURVES: dict[str, tuple[str, tuple[float, ...]]] = {
    "isolation-d": ("d", (1, 2, 3, 5, 8, 12, 16)),
    "isolation-t": ("t", (2, 5, 10, 20, 50)),
    "isolation-c": ("c", (1.5, 2, 3, 4, 6, 10)),
    "known-d": ("d", (2, 3, 4, 5, 7, 9)),
    "known-c": ("c", (1.5, 2, 3, 4, 6)),
    "again": ("T", (1, 2, 4, 8, 16, 32, 64)),
}


def draw(name: str, rng: Generator) -> str:
    """Draw one plot as SVG: an adversary without knowledge, an informed one, or one who sees repeated releases."""
    over, values = CURVES[name]
    if name == "again":
        points = uniform(300, 8, rng)
        curves = {
            label: sweep_rereleases(points, "sphere", map(int, values), t=10, c=4, rng=rng, keep=keep)
            for label, keep in (("fresh noise", False), ("positions kept", True))
        }
        return draw_sweep(over, curves, note="n = 300, d = 8, t = 10, c = 4")
    if name.startswith("known"):
        fixed = {"d": "d = 3", "c": "c = 4"}
        curves = sweep_informed(over, values, rng=rng)
        return draw_sweep(over, curves, note=f"t = 2, {', '.join(text for key, text in fixed.items() if key != over)}")
    fixed = {"d": "d = 5", "t": "t = 10", "c": "c = 3"}
    note = ", ".join(["n = 1000", *(text for key, text in fixed.items() if key != over)])
    return draw_sweep(over, sweep(over, values, rng=rng), note=note)
