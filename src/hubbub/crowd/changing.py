"""Sanitizing again when the data changed: drawn anew the noise averages out, kept it does not (2005, § 7)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.crowd.neighbors import Crowd, Floats, Indices
from hubbub.crowd.perturb import Shape, around


@dataclass(frozen=True, eq=False)
class Published:
    """One release of moved points: whose each is, how far its crowd reached, where it was published."""

    who: Indices
    radius: Floats
    moved: Floats


def anew(points: Floats, who: Indices, shape: Shape, *, t: int, rng: np.random.Generator) -> Published:
    """Move every point, without regard to what was published before."""
    radius = Crowd(points).reach(points, t=t).radius
    return Published(who, radius, around(points, radius, shape, rng))


def again(
    before: Published, points: Floats, who: Indices, shape: Shape, *, t: int, rng: np.random.Generator
) -> Published:
    """Publish the same place again for whoever's crowd has the same radius as before; move the others anew.

    It stops averaging where nothing changes. It promises no more than that: who is moved anew had a neighbor who came
    or left, and everybody sees it.
    """
    fresh = anew(points, who, shape, t=t, rng=rng)
    order = np.argsort(before.who)
    place = order[np.minimum(np.searchsorted(before.who, who, sorter=order), len(order) - 1)]
    same = (before.who[place] == who) & (before.radius[place] == fresh.radius)
    return Published(who, fresh.radius, np.where(same[:, None], before.moved[place], fresh.moved))


def averaged(releases: Sequence[Published]) -> tuple[Indices, Floats]:
    """Average, for everybody who is in all releases, where they were published: the adversary's guess."""
    who = releases[0].who
    for release in releases[1:]:
        who = np.intersect1d(who, release.who)
    rows = [np.argsort(release.who)[np.searchsorted(np.sort(release.who), who)] for release in releases]
    total = np.mean([release.moved[row] for release, row in zip(releases, rows, strict=True)], axis=0)
    return who, np.asarray(total, dtype=np.float64)
