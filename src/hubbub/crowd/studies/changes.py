"""Publishing again after the data changed (2005, § 7, "Changes over time").

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import sweep_rereleases, uniform
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, real, share


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    releases: tuple[str, ...] = ("1", "2", "4", "8", "16", "32", "64"),
    n: int = 300,
    d: int = 8,
    t: int = 10,
    c: float = 4.0,
    leaving: float = 0.05,
) -> CrowdStudy:
    """Publish rows of the sphere sanitizer repeatedly, average what is published, and isolate.

    With fresh noise the average isolates everyone. If each row keeps its published position until its crowd changes, as
    the authors propose, averaging gains nothing while nobody comes or leaves. The third curve lets a share of the
    people (`leaving`) be replaced between two releases: those whose crowd changed move again, the average sharpens,
    and the move itself shows that a neighbor came or left.
    """
    numbers.integer(n, "n", 50, 2000)
    numbers.integer(d, "d", 1, 60)
    leaving, c = real(leaving, "leaving", 0.0, 0.9), real(c, "c", 1, 1000)
    at = integers(releases, "releases", 1, 256)
    curves = {}
    variants = (
        ("fresh noise", False, 0.0),
        ("positions kept", True, 0.0),
        (f"kept, {leaving:.0%} replaced", True, leaving),
    )
    for step, (label, keep, gone) in enumerate(variants):
        progress(step / len(variants), label)
        points = uniform(n, d, rng)
        curves[label] = sweep_rereleases(points, "sphere", at, t=t, c=c, rng=rng, keep=keep, leaving=gone)
    rows = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in curves.items())
    words = (
        f"{n} rows in {d} dimensions, t = {t}, c = {c:g}; of those who stay in all releases, the share that the "
        "average of their published positions isolates.",
        "Conditioning a new release on the old one stops averaging only while nothing changes. A continual release "
        "with differential privacy is charged once for all of its answers: `hubbub attack rereleases` has both.",
    )
    plot = Plot(
        f"Releases averaged (n = {n}, d = {d}, t = {t}, c = {c:g})",
        "releases",
        "share of people",
        curves,
        logarithmic=True,
    )
    return CrowdStudy(
        "changes", "Publishing changed data again", words, ("noise", *(f"{T}" for T in at)), rows, (plot,)
    )
