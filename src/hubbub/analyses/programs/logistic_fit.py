"""The steps of a logistic regression: noisy gradients in, weights and their errors out. No data is seen here.

Weights are one row for each class, of a constant and one entry for each column; rows add up to zero, or the first is
zero where there are two classes. A basis turns them into free parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, sqrt

import numpy as np

from hubbub.analyses.programs.moments import Z95, NoisyMoments
from hubbub.analyses.programs.vectors import Floats

#: Made-up rows that stand for the real ones in the curvature of the first rounds.
_ROWS = 2048
#: How far the margin of a row may go in one round, and in all.
_STEP, _FURTHEST = 3.0, 30.0
#: Standard deviations that weights are assumed to have: of the constant, and of slopes by a column's spread.
_CONSTANT, _SLOPE = 10.0, 1.0
# Where the last step is not trusted, there are no intervals. Chosen on the made-up families of decision 0136.
_ROUGH = 1 / 2  #: noise of the measured curvature, against its least eigenvalue
_UNSURE = 0.9  #: the length of the last step, against the distance at which a row may stand alone
_ROUNDS = 100  #: of an iteration that contracts by as much

#: Gives the noisy gradient at some weights, for the rounds or (True) for the last step.
Gradient = Callable[[Floats, bool], Floats]


def basis_of(classes: int) -> Floats:
    """Give the directions in which weights differ: the second class for two; for more, orthonormal ones."""
    if classes == 2:
        return np.array([[0.0], [1.0]])
    centred = np.eye(classes) - 1 / classes
    return np.asarray(np.linalg.svd(centred)[0][:, : classes - 1])


@dataclass(frozen=True)
class Curvature:
    """The curvature of rows that are drawn from a normal distribution with the noisy moments."""

    rows: Floats  #: a constant and the columns
    count: float
    basis: Floats

    @classmethod
    def of(cls, moments: NoisyMoments, basis: Floats) -> "Curvature":
        """Draw rows with a fixed seed: they follow from released numbers alone."""
        values, vectors = np.linalg.eigh(moments.covariance)
        root = vectors * np.sqrt(np.clip(values, 0, 1))
        drawn = np.random.default_rng(7).standard_normal((_ROWS // 2, len(values)))
        made = moments.mean + np.concatenate([drawn, -drawn]) @ root.T
        made /= np.maximum(1.0, np.linalg.norm(made, axis=1, keepdims=True))
        return cls(np.column_stack([np.ones(len(made)), made]), moments.count, basis)

    def at(self, weights: Floats) -> Floats:
        """Give the matrix of second derivatives of the negative log-likelihood in the free parameters."""
        chances = softmax(self.rows @ weights.T)
        along = chances @ self.basis
        size = self.rows.shape[1]
        out = np.empty((self.basis.shape[1], size, self.basis.shape[1], size))
        for a in range(self.basis.shape[1]):
            for b in range(a + 1):
                both = chances @ (self.basis[:, a] * self.basis[:, b]) - along[:, a] * along[:, b]
                out[a, :, b] = out[b, :, a] = (self.rows * both[:, None]).T @ self.rows
        whole = out.reshape(2 * (self.basis.shape[1] * size,))
        return np.asarray(whole * self.count / len(self.rows))


def softmax(margins: Floats) -> Floats:
    """Give the probability of each class by row."""
    powers = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Fit:
    """Weights by class, and where it is known for two classes, the error of those of the second.

    noise     their covariance by the noise
    bend      how far the last step can miss because the curvature changes along it, in units of what follows
    sampling  their covariance between samples of rows
    """

    weights: Floats
    noise: Floats | None = None
    bend: float = 0.0
    sampling: Floats | None = None

    def half_widths(self, along: Floats) -> Floats | None:
        """Give half of the 95% intervals of linear functions of the weights, one for each row of a matrix."""
        if self.noise is None or self.sampling is None:
            return None
        noise, own = (np.sqrt(np.einsum("ij,jk,ik->i", along, each, along)) for each in (self.noise, self.sampling))
        return np.asarray(Z95 * noise + self.bend * own)


def ascend(
    curvature: Curvature, gradient: Gradient, *, rounds: int, noise: float, progress: Callable[[int], None]
) -> Floats:
    """Take noisy Newton steps, each as far as its noise lets it be trusted, and give the mean of the last half."""
    basis, size = curvature.basis, curvature.rows.shape[1]
    weights = np.zeros((len(basis), size))
    trail = []
    for place in range(rounds):
        weights = step(curvature, curvature.at(weights), weights, gradient(weights, False), noise)  # noqa: FBT003
        trail.append(weights)
        progress(place)
    return np.asarray(np.mean(trail[len(trail) // 2 :], axis=0))


def step(curvature: Curvature, matrix: Floats, weights: Floats, found: Floats, noise: float) -> Floats:
    """Give the likeliest weights for a gradient with noise, if weights are normal around zero with known spreads."""
    basis, size = curvature.basis, len(weights[0])
    spread = np.full((basis.shape[1], size), _SLOPE * (sqrt(size - 1) + 2))
    spread[:, 0] = _CONSTANT
    free = np.linalg.pinv(basis) @ weights
    right = matrix @ (matrix @ free.ravel() + (basis.T @ found).ravel())
    # least squares: at an enormous budget the noise alone does not keep columns apart that say the same
    wanted = np.linalg.lstsq(matrix @ matrix + noise**2 * np.diag(spread.ravel() ** -2.0), right)[0]
    change = basis @ (wanted.reshape(free.shape) - free)
    moved = float(np.abs(change[:, 0]).max() + np.linalg.norm(change[:, 1:], axis=1).max())
    after = weights + change * min(1.0, _STEP / max(moved, 1e-12))
    length = float(np.linalg.norm(after, axis=1).max())
    return np.asarray(after * min(1.0, _FURTHEST * sqrt(size) / max(length, 1e-12)))


def last_step(
    curvature: Curvature, weights: Floats, measured: Floats, found: Floats, *, noise: float, rough: float
) -> Fit:
    """Take the last step of two classes, by a curvature that was measured with noise, and state its error.

    Theorem (One Newton step). Let H be the curvature and G the gradient of the exact rows at the weights w, w* the
    weights at which the exact gradient is zero, and M the mean curvature between w and w*. With measured H + E and
    G + ν, and s = H⁻¹G,

        w + (H + E)⁻¹(G + ν) − w* = (H + E)⁻¹(ν − E s) + M⁻¹(M − H) s.

    The first part is noise, of known covariance given s. The second changes a linear function a of the weights by at
    most k(r)·‖a‖·‖s‖, whatever the rows are, where ‖a‖² = aᵀH⁻¹a, ‖s‖² = sᵀH s, k(r) = r/(1 − e⁻ʳ) − 1, and r solves
    r = max|x·s| + max‖x‖·‖s‖·k(r) with the largest of any rows x = (1, y), ‖y‖ ≤ 1; it does if max‖x‖·‖s‖ < 1.
    Proof    G = M (w* − w), so w* = w + M⁻¹G, and s − M⁻¹G = M⁻¹(M − H) s. (H + E)⁻¹(G + ν) − s =
             (H + E)⁻¹(G + ν − (H + E) s) = (H + E)⁻¹(ν − E s). p(1 − p) at a margin that moves by t is at least e⁻ᵗ and
             at most eᵗ times what it was, so M lies between (1 − e⁻ʳ)/r·H and (eʳ − 1)/r·H. The matrix
             H^½ M⁻¹ H^½ then has eigenvalues from r/(eʳ − 1) to r/(1 − e⁻ʳ), of which the second is further from 1.
             This bounds the second part for the largest move r of a margin between w and w*. That is at most max|x·s|
             and what the second part moves it; k grows by less than its argument, so r is at most the solution.
    Assumes  s and H are taken as measured. There are no intervals unless max‖x‖·‖s‖ is at most 0.9, and the noise of
             the weakest direction of H at most a half of it, by a half of which the first part is enlarged.
    Tested   tests/analyses/programs/test_logistic.py::test_intervals_hold_the_exact_fit
             tests/analyses/programs/test_logistic_fit.py::test_a_newton_step_ends_where_the_identity_says
             tests/analyses/programs/test_logistic_fit.py::test_intervals_hold_whatever_the_rows_are
    """
    size = len(measured)
    least = float(np.linalg.eigvalsh(measured)[0])
    relative = 2 * rough * sqrt(size) / max(least, 1e-300)
    plain = step(curvature, curvature.at(weights), weights, found, noise)
    if not (least > 0 and relative <= _ROUGH):
        return Fit(plain)
    inverse: Floats = np.asarray(np.linalg.inv(measured), dtype=np.float64)
    move = inverse @ found[1]
    after = weights.copy()
    after[1] += move
    around = noise**2 * np.eye(size) + rough**2 * (float(move @ move) * np.eye(size) + np.outer(move, move))
    length = sqrt(max(float(move @ measured @ move), 0.0))
    own = sqrt(inverse[0, 0]) + sqrt(float(np.linalg.eigvalsh(inverse[1:, 1:])[-1]))
    if not own * length <= _UNSURE:
        return Fit(plain)
    straight, reach = abs(float(move[0])) + float(np.linalg.norm(move[1:])), 0.0
    for _ in range(_ROUNDS):
        reach = straight + own * length * _bend(reach)
    return Fit(after, inverse @ around @ inverse / (1 - relative / 2) ** 2, _bend(reach) * length, inverse)


def _bend(reach: float) -> float:
    """Give r/(1 − e⁻ʳ) − 1: how far a step can miss, against its length, if it moves no margin by more than r."""
    return reach / -expm1(-reach) - 1 if reach > 0 else 0.0
