"""Repeated releases of changed data: fresh noise averages out, reused noise does not (2005, § 7).

Tested in tests/crowd/test_sanitizers.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.crowd.neighbors import Floats, Indices, NeighborIndex
from hubbub.crowd.perturbation import Shape, sample_around


@dataclass(frozen=True, eq=False)
class PerturbedRelease:
    """One release of perturbed points: the owner and the t-radius of each, and its published position."""

    who: Indices
    radius: Floats
    moved: Floats


def perturb_afresh(points: Floats, who: Indices, shape: Shape, *, t: int, rng: np.random.Generator) -> PerturbedRelease:
    """Perturb every point, independently of earlier releases."""
    radius = NeighborIndex(points).query(points, t=t).radius
    return PerturbedRelease(who, radius, sample_around(points, radius, shape, rng))


def perturb_again(
    before: PerturbedRelease, points: Floats, who: Indices, shape: Shape, *, t: int, rng: np.random.Generator
) -> PerturbedRelease:
    """Publish the same position again for each point whose t-radius is unchanged; perturb the others afresh.

    This stops averaging while nothing changes, and guarantees nothing else: a point that is perturbed afresh reveals
    that one of its neighbors came or left.
    """
    fresh = perturb_afresh(points, who, shape, t=t, rng=rng)
    order = np.argsort(before.who)
    match = order[np.minimum(np.searchsorted(before.who, who, sorter=order), len(order) - 1)]
    same = (before.who[match] == who) & (before.radius[match] == fresh.radius)
    return PerturbedRelease(who, fresh.radius, np.where(same[:, None], before.moved[match], fresh.moved))


def average_releases(releases: Sequence[PerturbedRelease]) -> tuple[Indices, Floats]:
    """Average the published positions of everyone who is in all releases: the adversary's guess."""
    who = releases[0].who
    for release in releases[1:]:
        who = np.intersect1d(who, release.who)
    rows = [np.argsort(release.who)[np.searchsorted(np.sort(release.who), who)] for release in releases]
    total = np.mean([release.moved[row] for release, row in zip(releases, rows, strict=True)], axis=0)
    return who, np.asarray(total, dtype=np.float64)
