"""Two well-informed adversaries of the sphere sanitizer (2005, § 5.1).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import sweep_informed
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, real, share
from hubbub.errors import CrowdError

_LABELS = {"d": "dimension d", "c": "distance ratio c"}
_VALUES = {"d": ("2", "3", "4", "5", "7", "9"), "c": ("2", "3", "4", "6")}


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    over: str = "d",
    values: tuple[str, ...] = (),
    d: int = 3,
    c: float = 4.0,
    n: int = 50,
    trials: int = 400,
) -> CrowdStudy:
    """Let well-informed adversaries isolate a point of the unit sphere after the sphere sanitizer with t = 2.

    In the first case there are two points, both images and the distance of the points are known. In the second, all of
    `n` points but one are known, with the image of the last. The paper proves that 4-isolation is exponentially rare in
    d; here both adversaries guess by sampling the posterior, while d or c varies (`over`).
    """
    if over not in _LABELS:
        raise CrowdError("HB685", "The setting over must be d or c.", "Use --set over=d")
    numbers.integer(d, "d", 2, 50)
    numbers.integer(n, "n", 3, 500)
    numbers.integer(trials, "trials", 10, 5000)
    at = integers(values or _VALUES[over], "values", 1 if over == "c" else 2, 50)
    curves: dict[str, list[tuple[float, float, float, float]]] = {}
    for step, value in enumerate(at):
        progress(step / len(at), f"{over} = {value}")
        here = sweep_informed(over, [value], rng=rng, d=d, c=real(c, "c", 1, 1000), n=n, trials=trials)
        for name, points in here.items():
            curves.setdefault(name, []).extend(points)
    rows = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in curves.items())
    words = (
        f"{trials:,} databases for each value of {over}; t = 2"
        + (f", c = {c:g}." if over == "d" else f", d = {d}.")
        + " The hidden point can lie in any direction from its image, and a guess isolates only a small part of them.",
        "Contrary to intuition, seeing the images of the other points can tell more than the points themselves: the "
        "radius of each image depends on its neighbors (remark 5).",
    )
    plot = Plot("Well-informed adversaries (t = 2)", _LABELS[over], "share of databases", curves)
    columns = ("adversary", *(f"{over} = {value}" for value in at))
    return CrowdStudy("informed", "Two points, or all but one point known", words, columns, rows, (plot,))
