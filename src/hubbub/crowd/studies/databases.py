"""Several sanitized databases of the same people (2005, § 7, multiple databases).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.experiments import uniform
from hubbub.crowd.isolation import Rate, isolates_point
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.perturbation import Shape, perturb
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, point, real, share

_SHAPES: tuple[Shape, ...] = ("ball", "sphere", "gaussian")


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    databases: tuple[str, ...] = ("1", "2", "4", "8", "16"),
    common: int = 200,
    others: int = 300,
    d: int = 8,
    t: int = 10,
    c: float = 4.0,
) -> CrowdStudy:
    """Combine the releases of several owners who have some people in common.

    Each of several owners has the same `common` people and `others` of its own, and sanitizes its rows once, with care.
    An adversary who can link a person's rows (by a name or a key) averages them. Each owner's noise is wide for the
    owner and independent of the next one's, so the average isolates: sanitizers make no statement about two releases.
    """
    numbers.integer(common, "common", 20, 2000)
    numbers.integer(others, "others", 0, 2000)
    numbers.integer(d, "d", 1, 60)
    c = real(c, "c", 1, 1000)
    at = integers(databases, "databases", 1, 64)
    curves: dict[str, list[tuple[float, float, float, float]]] = {shape: [] for shape in _SHAPES}
    for number, shape in enumerate(_SHAPES):
        shared = uniform(common, d, rng)
        total, crowd = np.zeros_like(shared), NeighborIndex(shared)
        for owner in range(1, at[-1] + 1):
            progress((number + owner / at[-1]) / len(_SHAPES), f"{shape}, {owner} databases")
            rows = np.vstack([shared, uniform(others, d, rng)])
            total += perturb(rows, shape, t=t, rng=rng)[:common]
            if owner in at:
                curves[shape].append(point(owner, Rate.of(isolates_point(crowd, total / owner, c=c, t=t))))
    table = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in curves.items())
    words = (
        f"{common} people in every database, {others} others in each; {d} dimensions, t = {t}, c = {c:g}. One release "
        f"isolates {share(curves['sphere'][0][1])} of them (sphere), {at[-1]} releases "
        f"{share(curves['sphere'][-1][1])}.",
        "The same holds for groups: two k-anonymous tables of the same people reveal what each of them hides "
        "(`hubbub attack intersection`).",
        "Two differentially private releases of ε₁ and ε₂ have ε₁ + ε₂ together, whoever made them: the bound weakens "
        "in a known way instead of vanishing.",
    )
    plot = Plot(
        f"Databases of the same people (d = {d}, t = {t}, c = {c:g})",
        "databases",
        "share of people",
        curves,
        logarithmic=True,
    )
    columns = ("sanitizer", *(f"{owners} databases" if owners > 1 else "1 database" for owners in at))
    return CrowdStudy("databases", "Several databases of the same people", words, columns, table, (plot,))
