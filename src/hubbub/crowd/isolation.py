"""(c,t)-isolation and its variants (Chawla, Dwork, McSherry, Smith and Wee 2005).

A guess q isolates a point y if q is much nearer to y than to a crowd of t points: fewer than t points lie within c
times the distance to y. Isolation does not measure what can be learned about a person: a guess that isolates nobody can
still reveal a person's income, and no bound on isolation holds against auxiliary information.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core import binomial
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.errors import CrowdError

Hits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rate:
    """Number of successes among a number of guesses."""

    right: int
    trials: int

    @classmethod
    def of(cls, hits: Hits) -> "Rate":
        """Count the successes."""
        return cls(int(hits.sum()), len(hits))

    @property
    def share(self) -> float:
        """The share of successes."""
        return self.right / self.trials if self.trials else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the success rate (Clopper and Pearson), assuming independent guesses."""
        return binomial.interval(self.right, self.trials, confidence) if self.trials else (0.0, 1.0)

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(self.right + other.right, self.trials + other.trials)


def check_parameters(*, c: float, t: int) -> None:
    """Reject parameters for which isolation is not defined."""
    if not (np.isfinite(c) and c >= 1):
        raise CrowdError("HB623", "c, the distance ratio, must be at least 1.", "Use a value such as 4.")
    if t < 2:
        raise CrowdError("HB623", "t, the size of the crowd, must be at least 2.", "Use a value such as 10.")


def isolates_point(crowd: NeighborIndex, guesses: Floats, *, c: float, t: int) -> Hits:
    """Tell which guesses isolate some point (definition 1 and § 4.1, the point adversary).

    Theorem (Nearest or nobody). If q does not (c,t)-isolate the point nearest to it, it isolates none.
    Proof    q isolates y just if c·|q − y| < τ_q, the t-radius of q: a closed ball holds fewer than t points just if
             its radius is below τ_q. The left side is least for the nearest point.
    Assumes  c ≥ 1. Points that are equal count as often as they occur.
    Tested   tests/crowd/test_isolation.py::test_where_the_nearest_is_not_isolated_nobody_is
    """
    check_parameters(c=c, t=t)
    neighbors = crowd.query(guesses, t=t)
    hits: Hits = c * neighbors.nearest < neighbors.radius
    return hits


def isolates_among(crowd: NeighborIndex, guesses: Floats, among: Floats, *, c: float, t: int) -> Hits:
    """Tell which guesses isolate some point of `among`, the targets, which are part of the crowd."""
    check_parameters(c=c, t=t)
    radius = crowd.query(guesses, t=t).radius
    hits: Hits = c * NeighborIndex(among).query(guesses, t=1).nearest < radius
    return hits


def isolates_target(crowd: NeighborIndex, guesses: Floats, targets: Floats, *, c: float, t: int) -> Hits:
    """Tell which guesses isolate their own target: guess i is about the point `targets[i]` of the crowd."""
    check_parameters(c=c, t=t)
    radius = crowd.query(guesses, t=t).radius
    hits: Hits = c * np.linalg.norm(guesses - targets, axis=1) < radius
    return hits


def ball_wins(crowd: NeighborIndex, guesses: Floats, radii: Floats, *, c: float, t: int) -> Hits:
    """Tell which balls (q, r) win: a point within r of q, and fewer than t within c·r (§ 4.1, the ball adversary).

    Theorem (Ball and point adversaries). Some radius lets the ball adversary win at q just if q isolates a point.
    Proof    The ball wins just if δ_q ≤ r and c·r < τ_q, δ_q the distance to the nearest point. Such an r exists just
             if c·δ_q < τ_q, and then r = δ_q is one.
    Tested   tests/crowd/test_isolation.py::test_a_ball_wins_somewhere_just_if_the_point_isolates
    """
    check_parameters(c=c, t=t)
    neighbors = crowd.query(guesses, t=t)
    hits: Hits = (neighbors.nearest <= radii) & (c * radii < neighbors.radius)
    return hits


def doubling(dimension: int) -> Callable[[int], float]:
    """Return φ(k) = 2^{d/k}: the fewer coordinates a guess covers, the nearer it has to be.

    >>> [doubling(16)(k) for k in (16, 8, 1)]
    [2.0, 4.0, 65536.0]
    """
    return lambda k: 2.0 ** (dimension / k)


def isolates_projected(
    points: Floats,
    guesses: Floats,
    columns: Sequence[int],
    *,
    c: float,
    t: int,
    phi: Callable[[int], float] | None = None,
) -> Hits:
    """Tell which k-dimensional guesses (φ,c,t)-isolate a point in these k coordinates (§ 7).

    A guess about k of d coordinates must isolate with φ(k)·c instead of c; φ defaults to `doubling`.
    """
    if not columns or len(set(columns)) < len(columns) or guesses.shape[1] != len(columns):
        raise CrowdError(
            "HB623",
            "The columns are not distinct, or do not match the dimension of the guesses.",
            "Name each column once.",
        )
    factor = (phi or doubling(points.shape[1]))(len(columns))
    return isolates_point(NeighborIndex(points[:, list(columns)]), guesses, c=factor * c, t=t)
