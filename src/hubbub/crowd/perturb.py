"""Round sanitizers: each point moves by about the radius of its crowd, in a random direction (2005, § 5).

Not differentially private: how far a point moves depends on the others exactly, and nothing bounds what that tells.
"""

from typing import Literal, get_args

import numpy as np

from hubbub.crowd.isolation import demanded
from hubbub.crowd.neighbors import Crowd, Floats
from hubbub.errors import CrowdError

Shape = Literal["ball", "sphere", "gaussian"]


def directions(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Draw points of the unit sphere, uniformly."""
    drawn = rng.standard_normal((n, d))
    found: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return found


def around(centres: Floats, radii: Floats, shape: Shape, rng: np.random.Generator) -> Floats:
    """Draw one point around each centre.

    ball      uniform in the ball of the radius τ;   E‖noise‖² = τ²·d/(d+2)
    sphere    uniform on its surface;                ‖noise‖ = τ
    gaussian  normal with variance τ²/d a coordinate; E‖noise‖² = τ²
    """
    n, d = centres.shape
    match shape:
        case "ball":
            noise = directions(n, d, rng) * (radii * rng.random(n) ** (1 / d))[:, None]
        case "sphere":
            noise = directions(n, d, rng) * radii[:, None]
        case "gaussian":
            noise = rng.standard_normal((n, d)) * (radii / np.sqrt(d))[:, None]
        case _:
            raise CrowdError("HB624", "no sanitizer has this shape.", f"There are: {', '.join(get_args(Shape))}.")
    moved: Floats = centres + noise
    return moved


def perturbed(points: Floats, shape: Shape, *, t: int, rng: np.random.Generator) -> Floats:
    """Move every point within its t-radius: BSan, SSan and GSan of the paper."""
    demanded(c=1, t=t)
    if len(points) < t:
        raise CrowdError("HB622", f"there are fewer points than t = {t}.", "Take a smaller t.")
    return around(points, Crowd(points).reach(points, t=t).radius, shape, rng)
