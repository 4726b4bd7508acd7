"""How often each adversary isolates a row, beside the chance in an even crowd (2005, § 4 and 5).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import EXPERIMENTS, sweep
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, exactly, integers, no_progress, real, share
from hubbub.crowd.theory import ball_floor, center_chance, uniform_chance
from hubbub.errors import CrowdError

_EVEN = "even crowd (exact)"
_VALUES = {
    "d": ("1", "2", "3", "5", "8", "12", "16"),
    "t": ("2", "5", "10", "20", "50"),
    "c": ("2", "3", "4", "6", "10"),
}
_LABELS = {"d": "dimension d", "t": "crowd size t", "c": "distance ratio c"}


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    over: str = "d",
    values: tuple[str, ...] = (),
    n: int = 1000,
    d: int = 5,
    t: int = 10,
    c: float = 3.0,
    databases: int = 5,
) -> CrowdStudy:
    """Measure how often five adversaries isolate a row of uniform data, while d, t or c varies (`over`).

    Two adversaries see a recursive histogram: one guesses the center of every occupied cell, the other also knows half
    of the rows and must isolate one of the others. Two see rows of the ball sanitizer, and guess each published row or
    its posterior mean. One sees cross-training. A guess isolates a row if fewer than `t` rows lie within `c` times its
    distance. The exact chance in an even crowd, 1 − (1 − c^(−d))^(t−1), needs no release at all: dimension protects a
    row, the sanitizer hardly matters.
    """
    if over not in _LABELS:
        raise CrowdError("HB685", "The setting over must be d, t or c.", "Use --set over=d")
    numbers.integer(n, "n", 50, 5000)
    numbers.integer(databases, "databases", 1, 100)
    at = integers(values or _VALUES[over], "values", 1, 500)
    fixed = {"d": numbers.integer(d, "d", 1, 200), "t": numbers.integer(t, "t", 2, 500), "c": real(c, "c", 1, 1000)}
    label = ", ".join([f"n = {n:,}", *(f"{key} = {value:g}" for key, value in fixed.items() if key != over)])
    curves = sweep(over, at, rng=rng, n=n, d=d, t=t, c=c, databases=databases, progress=progress)
    places = [fixed | {over: value} for value in at]
    even = [uniform_chance(c=place["c"], t=int(place["t"]), d=int(place["d"])) for place in places]
    curves[_EVEN] = [exactly(value, chance) for value, chance in zip(at, even, strict=True)]
    rows = [(name, *(share(y) for _, y, *_ in points)) for name, points in curves.items()]
    first = [center_chance(n=n, d=int(place["d"]), c=place["c"], t=int(place["t"])) for place in places]
    rows.append(("center of a first cell (exact)", *(share(chance) for chance in first)))
    floor = [ball_floor(n=n, t=int(place["t"]), d=int(place["d"])) for place in places]
    rows.append(("e^(−d)/ln(n/t), floor of the ball sanitizer", *(share(value) for value in floor)))
    words = (
        f"{len(EXPERIMENTS)} adversaries, {databases} databases of {n:,} uniform rows for each value of {over}.",
        f"A guess in an even crowd isolates with probability 1 − (1 − c^(−d))^(t−1): from {share(even[0])} at {over} = "
        f"{at[0]} to {share(even[-1])} at {over} = {at[-1]}, whatever was published.",
        "Proposition 2 is about the center of a first cell: its row is an exact integral, not a simulation. The "
        "recursive histogram adapts its cells to the data and isolates more often.",
        "The ball sanitizer can never be made safe: some adversary isolates with probability Ω(e^(−d)/log(n/t)), and "
        "the published row itself does far better.",
    )
    plot = Plot(f"Isolation by adversary ({label})", _LABELS[over], "share of guesses", curves)
    columns = ("adversary", *(f"{over} = {value}" for value in at))
    return CrowdStudy("isolation", "Isolation of a row, by adversary", words, columns, tuple(rows), (plot,))
