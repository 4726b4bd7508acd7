"""Perturbation sanitizers: move each point in a random direction by about its t-radius (2005, § 5).

Not differentially private: the distance that a point moves depends exactly on the other points.

Tested in tests/crowd/test_learning.py.
"""

from typing import Literal, get_args

import numpy as np

from hubbub.crowd.isolation import check_parameters
from hubbub.crowd.neighbors import Floats, NeighborIndex
from hubbub.errors import CrowdError

Shape = Literal["ball", "sphere", "gaussian"]


def directions(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Sample uniform points of the unit sphere."""
    normal = rng.standard_normal((n, d))
    unit: Floats = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return unit


def sample_around(centers: Floats, radii: Floats, shape: Shape, rng: np.random.Generator) -> Floats:
    """Sample one point around each center.

    ball      uniform in the ball of radius τ;          E‖noise‖² = τ²·d/(d+2)
    sphere    uniform on its surface;                   ‖noise‖ = τ
    gaussian  normal, variance τ²/d in each coordinate; E‖noise‖² = τ²
    """
    n, d = centers.shape
    match shape:
        case "ball":
            noise = directions(n, d, rng) * (radii * rng.random(n) ** (1 / d))[:, None]
        case "sphere":
            noise = directions(n, d, rng) * radii[:, None]
        case "gaussian":
            noise = rng.standard_normal((n, d)) * (radii / np.sqrt(d))[:, None]
        case _:
            raise CrowdError(
                "HB624", f"Unknown shape {str(shape)[:40]!r}.", f"Use one of: {', '.join(get_args(Shape))}."
            )
    moved: Floats = centers + noise
    return moved


def perturb(points: Floats, shape: Shape, *, t: int, rng: np.random.Generator) -> Floats:
    """Perturb every point by about its t-radius: BSan, SSan and GSan of the paper."""
    check_parameters(c=1, t=t)
    if len(points) < t:
        raise CrowdError("HB622", f"There are fewer points than t = {t}.", "Use a smaller t.")
    return sample_around(points, NeighborIndex(points).query(points, t=t).radius, shape, rng)
