"""A metric for categories, and what it blends (2005, § 7, "Real-life data").

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.isolation import Rate
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.perturbation import Shape, sample_around
from hubbub.crowd.points import make_points
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, measured, no_progress, point

_SHAPES: tuple[Shape, ...] = ("ball", "sphere", "gaussian")


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    crowds: tuple[str, ...] = ("2", "5", "10", "20", "50", "100"),
    n: int = 1000,
    columns: int = 3,
    categories: int = 4,
) -> CrowdStudy:
    """Sanitize tables with text columns, and count how many categories survive, by size of the crowd.

    A text column becomes the corners of a regular simplex: any two categories are as far apart as the two bounds of a
    number (the discrete metric). A sanitized row gets its nearest category. Rows have `columns` text columns with
    skewed frequencies and two numbers. Where t rows agree in all categories, the crowd is near and nobody's category
    changes: common combinations are published as they are, and only rare ones are blended.
    """
    numbers.integer(n, "n", 50, 5000)
    numbers.integer(columns, "columns", 1, 10)
    numbers.integer(categories, "categories", 2, 20)
    at = integers(crowds, "crowds", 2, n)
    weights = 1 / np.arange(1, categories + 1)
    names = np.array([f"v{index}" for index in range(categories)], dtype=object)
    table = {f"text{i + 1}": names[rng.choice(categories, n, p=weights / weights.sum())] for i in range(columns)}
    table |= {"x": rng.uniform(0, 1, n), "y": rng.uniform(0, 1, n)}
    points = make_points(table, list(table), rng=rng, bounds={"x": (0.0, 1.0), "y": (0.0, 1.0)})
    combinations = np.unique(np.column_stack([table[f"text{i + 1}"] for i in range(columns)]).astype(str), axis=0)
    index = NeighborIndex(points.values)
    curves: dict[str, list[tuple[float, float, float, float]]] = {shape: [] for shape in _SHAPES}
    rows = []
    for step, t in enumerate(at):
        progress(step / len(at), f"t = {t}")
        radius = index.query(points.values, t=t).radius
        kept = []
        for shape in _SHAPES:
            released = points.columns(sample_around(points.values, radius, shape, rng))
            same = np.ones(n, dtype=np.bool_)
            for i in range(columns):
                same &= released[f"text{i + 1}"] == table[f"text{i + 1}"][points.kept]
            kept.append(Rate.of(same))
            curves[shape].append(point(t, kept[-1]))
        rows.append((str(t), *(measured(rate) for rate in kept), f"{np.mean(radius < 2):.1%}"))
    words = (
        f"{n:,} rows, {columns} text columns of {categories} categories, two numbers; {len(combinations)} "
        "combinations occur. A share of the rows keeps all of its categories.",
        "A crowd whose radius is below 2 agrees in all categories, or nearly: there the noise is too small to change "
        "one. Categories of common combinations are published unchanged, which is what k-anonymity does, with its "
        "weaknesses (`hubbub attack homogeneity`).",
    )
    plot = Plot(f"Rows that keep all categories (n = {n:,})", "crowd size t", "share of rows", curves, logarithmic=True)
    heads = ("t", *(f"{shape}: categories kept" for shape in _SHAPES), "crowds of one combination")
    return CrowdStudy("categories", "Text columns", words, heads, tuple(rows), (plot,))
