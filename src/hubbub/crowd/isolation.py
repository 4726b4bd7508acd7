"""When a guess singles somebody out: (c,t)-isolation and its forms (Chawla, Dwork, McSherry, Smith and Wee 2005).

A guess q isolates a point y where q is much nearer to y than to a crowd of t: fewer than t points lie within c times
the distance to y. It is a statement about crowds, not about what can be learned of a person: a guess that isolates
nobody can still tell a person's income, and no bound on isolation holds against whoever knows something else besides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core import binomial
from hubbub.crowd.neighbors import Crowd, Floats
from hubbub.errors import CrowdError

Hits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rate:
    """So many successes of so many guesses."""

    right: int
    trials: int

    @classmethod
    def of(cls, hits: Hits) -> "Rate":
        """Count."""
        return cls(int(hits.sum()), len(hits))

    @property
    def share(self) -> float:
        """The share of successes."""
        return self.right / self.trials if self.trials else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Enclose the chance of success (Clopper and Pearson), as if the guesses were independent."""
        return binomial.interval(self.right, self.trials, confidence) if self.trials else (0.0, 1.0)

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.right + other.right, self.trials + other.trials)


def demanded(*, c: float, t: int) -> None:
    """Refuse parameters that isolation is not defined for."""
    if not (np.isfinite(c) and c >= 1):
        raise CrowdError("HB623", "c is not a number from 1 on.", "It says how much nearer than the crowd; try 4.")
    if t < 2:
        raise CrowdError("HB623", "t is less than 2.", "It is the size of the crowd to blend in with; try 10.")


def point(crowd: Crowd, guesses: Floats, *, c: float, t: int) -> Hits:
    """Say which guesses isolate a point: the nearest one, and so any (definition 1 and § 4.1, the point adversary).

    Theorem (Nearest or nobody). If q does not (c,t)-isolate the point nearest to it, it isolates none.
    Proof    q isolates y just if c·|q − y| < τ_q, the t-radius of q: a closed ball holds fewer than t points just if
             its radius is below τ_q. The left side is least for the nearest point.
    Assumes  c ≥ 1. Points that are equal count as often as they occur.
    Tested   tests/crowd/test_isolation.py::test_where_the_nearest_is_not_isolated_nobody_is
    """
    demanded(c=c, t=t)
    found = crowd.reach(guesses, t=t)
    hits: Hits = c * found.nearest < found.radius
    return hits


def victims(crowd: Crowd, guesses: Floats, among: Floats, *, c: float, t: int) -> Hits:
    """Say which guesses isolate some point of `among`, which is part of the crowd: those one wants to learn of."""
    demanded(c=c, t=t)
    radius = crowd.reach(guesses, t=t).radius
    hits: Hits = c * Crowd(among).reach(guesses, t=1).nearest < radius
    return hits


def ball(crowd: Crowd, guesses: Floats, radii: Floats, *, c: float, t: int) -> Hits:
    """Say which balls (q, r) win: somebody within r of q, and fewer than t within c·r (§ 4.1, the ball adversary).

    Theorem (Ball and point adversaries). Some radius lets the ball adversary win at q just if q isolates a point.
    Proof    The ball wins just if δ_q ≤ r and c·r < τ_q, δ_q the distance to the nearest point. Such an r exists just
             if c·δ_q < τ_q, and then r = δ_q is one.
    Tested   tests/crowd/test_isolation.py::test_a_ball_wins_somewhere_just_if_the_point_isolates
    """
    demanded(c=c, t=t)
    found = crowd.reach(guesses, t=t)
    hits: Hits = (found.nearest <= radii) & (c * radii < found.radius)
    return hits


def doubling(dimension: int) -> Callable[[int], float]:
    """Give φ(k) = 2^{d/k}: the fewer coordinates a guess is about, the nearer it has to be.

    >>> [doubling(16)(k) for k in (16, 8, 1)]
    [2.0, 4.0, 65536.0]
    """
    return lambda k: 2.0 ** (dimension / k)


def projected(
    points: Floats,
    guesses: Floats,
    columns: Sequence[int],
    *,
    c: float,
    t: int,
    phi: Callable[[int], float] | None = None,
) -> Hits:
    """Say which guesses (φ,c,t)-isolate a point in these coordinates alone (§ 7); `guesses` are k-dimensional.

    A guess about k of d coordinates must isolate with φ(k)·c instead of c; φ is `doubling` where none is given.
    """
    if not columns or len(set(columns)) < len(columns) or guesses.shape[1] != len(columns):
        raise CrowdError("HB623", "the coordinates of the guesses are not distinct, or not as many.", "Name each once.")
    factor = (phi or doubling(points.shape[1]))(len(columns))
    return point(Crowd(points[:, list(columns)]), guesses, c=factor * c, t=t)
