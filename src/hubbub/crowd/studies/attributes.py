"""An adversary who knows a fraction of a row's attributes (2005, remark 4).

Tested in tests/crowd/test_studies.py.
"""

import numpy as np

from hubbub.core import numbers
from hubbub.crowd.adversaries import knowing_attributes
from hubbub.crowd.experiments import uniform
from hubbub.crowd.histogram import build_histogram
from hubbub.crowd.isolation import Rate, isolates_target
from hubbub.crowd.neighbors import NeighborIndex
from hubbub.crowd.studies.base import CrowdStudy, Plot, Progress, integers, no_progress, point, real, share


def study(
    *,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    known: tuple[str, ...] = ("0", "20", "40", "60", "80", "90"),
    ratios: tuple[str, ...] = ("2", "4"),
    n: int = 500,
    d: int = 20,
    t: int = 10,
    targets: int = 400,
) -> CrowdStudy:
    """Isolate a chosen person whose attributes are known in part, with and without the recursive histogram.

    The adversary knows a percentage of the person's attributes (`known`), keeps them, and completes them with the
    center of the likeliest cell that fits: its count divided by its volume in the known attributes. Without the
    histogram, the middle of the cube completes them. The paper holds its theorem to extend to a constant fraction of
    known attributes, with a worse isolation constant: read the curve for the larger c at the smaller fraction.
    """
    numbers.integer(n, "n", 50, 5000)
    numbers.integer(d, "d", 2, 100)
    numbers.integer(t, "t", 2, n // 4)
    numbers.integer(targets, "targets", 10, 5000)
    percentages = integers(known, "known", 0, 99)
    cs = [real(value, "ratios", 1, 1000) for value in integers(ratios, "ratios", 1, 1000)]
    curves: dict[str, list[tuple[float, float, float, float]]] = {}
    for step, percentage in enumerate(percentages):
        progress(step / len(percentages), f"{percentage}% known")
        rates: dict[str, Rate] = {}
        for _ in range(-(-targets // n)):
            points = uniform(n, d, rng)
            crowd, histogram = NeighborIndex(points), build_histogram(points, t=t)
            chosen = points[:targets]
            count = round(d * percentage / 100)
            guesses = {
                "with the histogram": knowing_attributes(histogram, chosen, count),
                "without it": np.hstack([chosen[:, :count], np.zeros((len(chosen), d - count))]),
            }
            for c in cs:
                for name, guess in guesses.items():
                    key = f"{name}, c = {c:g}"
                    hits = isolates_target(crowd, guess, chosen, c=c, t=t)
                    rates[key] = rates.get(key, Rate(0, 0)) + Rate.of(hits)
        for key, rate in rates.items():
            curves.setdefault(key, []).append(point(percentage, rate))
    rows = tuple((name, *(share(y) for _, y, *_ in points)) for name, points in curves.items())
    words = (
        f"{n:,} uniform rows in {d} dimensions, t = {t}. Success means that the guess isolates the very person whose "
        "attributes are known, not just anybody.",
        "With few attributes known the histogram hides the rest; with most of them known the person is isolated, with "
        "or without the histogram. What the histogram adds is the gap between the curves of one c.",
        "Differential privacy makes no exception for known attributes: `hubbub attack attributes` shows the same "
        "adversary below the maximum under ε.",
    )
    plot = Plot(f"Isolating a person (n = {n:,}, d = {d}, t = {t})", "known attributes, %", "share of people", curves)
    columns = ("adversary", *(f"{percentage}% known" for percentage in percentages))
    return CrowdStudy("attributes", "A fraction of the attributes is known", words, columns, rows, (plot,))
