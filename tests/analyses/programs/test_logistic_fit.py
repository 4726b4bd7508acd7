"""Noisy Newton steps on made-up rows, with gradients and curvatures from numpy: what the intervals hold."""

from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.analyses.programs.logistic_fit import Curvature, Fit, ascend, basis_of, last_step, softmax
from hubbub.analyses.programs.moments import NoisyMoments

Floats = NDArray[np.float64]
ROWS = 3000
RUNS = 120
#: At 95% each, fewer intervals than this of all runs are a false alarm.
FEWEST = 93


class World:
    """Clipped rows with a constant, their labels, and measurements of them with Gaussian noise."""

    def __init__(self, kind: str, *, slope: float = 3.0, constant: float = -0.5, noise: float = 3.0) -> None:
        draw = np.random.default_rng(5)
        made = {
            "normal": draw.normal(size=(ROWS, 2)) / 3.5,
            "skewed": draw.exponential(size=(ROWS, 2)) / 3.5 - 0.3,
            "flags": (draw.uniform(size=(ROWS, 2)) < [0.1, 0.5]) / 1.7 - 0.2,
        }[kind]
        made = made / np.maximum(1, np.linalg.norm(made, axis=1, keepdims=True))
        self.rows = np.column_stack([np.ones(ROWS), made])
        margin = self.rows @ [constant, slope, -slope / 2]
        self.labels = (draw.uniform(size=ROWS) < 1 / (1 + np.exp(-margin))).astype(float)
        self.noise = noise
        squares = made.T @ made
        self.moments = NoisyMoments(ROWS, np.zeros(2), np.ones(2), made.sum(axis=0), squares, (0, 0, 0))
        self.draw = np.random.default_rng(6)
        self.exact = self._exact()

    def gradient(self, weights: Floats, *, noise: float) -> Floats:
        found = self.rows.T @ (self.labels - 1 / (1 + np.exp(-self.rows @ weights[1])))
        return np.stack([np.zeros(3), found + self.draw.normal(0, noise, 3)])

    def curvature(self, weights: Floats, *, noise: float) -> Floats:
        chance = 1 / (1 + np.exp(-self.rows @ weights[1]))
        errors = np.triu(self.draw.normal(0, noise, (3, 3)))
        weighted = self.rows * (chance * (1 - chance))[:, None]
        return np.asarray(weighted.T @ self.rows + errors + np.triu(errors, 1).T)

    def _exact(self) -> Floats:
        weights = np.zeros((2, 3))
        for _ in range(40):
            weights[1] += np.linalg.solve(self.curvature(weights, noise=0), self.gradient(weights, noise=0)[1])
        return np.array(weights[1])

    def fit(self) -> Fit:
        curvature, rounds = Curvature.of(self.moments, basis_of(2)), 2.5 * self.noise
        weights = ascend(
            curvature,
            lambda at, _: self.gradient(at, noise=rounds),
            rounds=4,
            noise=rounds,
            progress=lambda _: None,
        )
        measured, found = self.curvature(weights, noise=self.noise / 2), self.gradient(weights, noise=self.noise)
        return last_step(curvature, weights, measured, found, noise=self.noise, rough=self.noise / 2)


def held(world: World, *, times: float = 1.0) -> int:
    """Count the runs whose interval for one slope holds the exact one, or that have none, which are few."""
    count = none = 0
    for _ in range(RUNS):
        fit = world.fit()
        half = fit.half_widths(np.eye(3))
        none += half is None
        count += half is None or abs(fit.weights[1, 1] - world.exact[1]) <= times * half[1]
    assert none < RUNS / 10
    return count


def test_the_false_alarm_rate_is_as_stated() -> None:
    below = sum(comb(RUNS, k) * 0.95**k * 0.05 ** (RUNS - k) for k in range(FEWEST))
    assert below < 1e-10


@pytest.mark.parametrize("kind", ["normal", "skewed", "flags"])
def test_intervals_hold_the_exact_fit(kind: str) -> None:
    """Of each run one interval, so that runs are independent."""
    assert held(World(kind)) >= FEWEST


def test_narrower_intervals_would_not_hold_it() -> None:
    """The planted error: a quarter of the width, of which much is for the curvature along the last step."""
    assert held(World("normal"), times=0.25) < FEWEST


@pytest.mark.parametrize("size", [2, 3])
def test_intervals_hold_whatever_the_rows_are(size: int) -> None:
    """A few places at random, some of them far and rare: without noise, the bound on what a Newton step misses."""
    draw, found = np.random.default_rng(size), 0
    directions = np.concatenate([np.eye(size), draw.normal(size=(20, size))])
    for _ in range(40):
        places = draw.normal(size=(6, size - 1)) * draw.choice([0.05, 0.3, 1.0], (6, 1))
        places /= np.maximum(1, np.linalg.norm(places, axis=1, keepdims=True))
        many = draw.choice([3.0, 30.0, 2000.0], 6)
        rows, share = np.column_stack([np.ones(6), places]), draw.uniform(0.02, 0.98, 6)
        exact, weights, gradient, curvature = np.zeros(size), np.zeros((2, size)), np.zeros((2, size)), np.eye(size)
        for _ in range(60):
            curvature, rest = _measured(rows, many, share, exact)
            exact = exact + np.linalg.solve(curvature, rest) / 2
        weights[1] = exact + draw.normal(size=size) * draw.choice([0.02, 0.1, 0.3])
        curvature, gradient[1] = _measured(rows, many, share, weights[1])
        total, moved = many.sum(), many @ places
        moments = NoisyMoments(
            total, np.zeros(size - 1), np.ones(size - 1), moved, places.T @ (places * many[:, None]), (0, 0, 0)
        )
        fit = last_step(Curvature.of(moments, basis_of(2)), weights, curvature, gradient, noise=1e-9, rough=1e-12)
        half = fit.half_widths(directions)
        if half is not None:
            found += 1
            assert np.all(np.abs(directions @ (fit.weights[1] - exact)) <= half + 1e-7)
    assert found > 5


def _measured(rows: Floats, many: Floats, share: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Give the exact curvature and gradient of rows of which some share is of the second class."""
    chance = 1 / (1 + np.exp(-rows @ weights))
    return (rows * (many * chance * (1 - chance))[:, None]).T @ rows, rows.T @ (many * (share - chance))


def test_there_are_no_intervals_where_noise_hides_the_curvature() -> None:
    for _ in range(20):
        assert World("normal", noise=200).fit().half_widths(np.eye(3)) is None


def test_a_newton_step_ends_where_the_identity_says() -> None:
    """Both sides of the theorem, with noise that is drawn once: the error is noise, and bend of the exact curvature."""
    world = World("skewed")
    weights = np.stack([np.zeros(3), world.exact + np.array([0.1, -0.3, 0.2])])
    exact, gradient = world.curvature(weights, noise=0), world.gradient(weights, noise=0)[1]
    measured, found = world.curvature(weights, noise=4), world.gradient(weights, noise=4)[1]
    step = np.linalg.solve(exact, gradient)
    places = np.linspace(0, 1, 401)[:-1] + 1 / 800
    towards = world.exact - weights[1]
    mean = np.mean([world.curvature(weights + t * np.stack([np.zeros(3), towards]), noise=0) for t in places], axis=0)
    noise = np.linalg.solve(measured, (found - gradient) - (measured - exact) @ step)
    bend = np.linalg.solve(mean, (mean - exact) @ step)
    assert weights[1] + np.linalg.solve(measured, found) - world.exact == pytest.approx(noise + bend, abs=1e-5)
    assert np.abs(bend).max() > 1e-3


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_curvature_is_that_of_the_likelihood(classes: int) -> None:
    """Second differences of the negative log-likelihood of the made-up rows."""
    world = World("normal")
    curvature, basis = Curvature.of(world.moments, basis_of(classes)), basis_of(classes)
    assert np.abs(basis.sum(axis=0)).max() < 1e-12 or classes == 2
    draw = np.random.default_rng(2)
    free = draw.normal(size=(classes - 1, 3))

    def loss(at: Floats) -> float:
        """Give the part that does not depend on labels."""
        margins = curvature.rows @ (basis @ at).T
        return float(np.log(np.exp(margins).sum(axis=1)).mean()) * ROWS

    matrix = curvature.at(basis @ free)
    for _ in range(5):
        way = draw.normal(size=free.shape)
        second = (loss(free + 1e-3 * way) - 2 * loss(free) + loss(free - 1e-3 * way)) / 1e-6
        assert way.ravel() @ matrix @ way.ravel() == pytest.approx(second, rel=1e-3)


def test_probabilities_add_up() -> None:
    found = softmax(np.array([[0.0, 1000.0], [-5.0, -5.0]]))
    assert found == pytest.approx(np.array([[0, 1], [0.5, 0.5]]))


def test_columns_that_say_the_same_have_a_step_without_noise() -> None:
    """Without rows, or with equal columns, the curvature has no inverse."""
    for moved in (np.zeros(2), np.full(2, 5.0)):
        moments = NoisyMoments(9, np.zeros(2), np.ones(2), moved, np.outer(moved, moved) / 9, (0, 0, 0))
        curvature = Curvature.of(moments, basis_of(2))
        weights = ascend(curvature, lambda at, _: np.ones_like(at), rounds=3, noise=1e-12, progress=lambda _: None)
        assert np.isfinite(weights).all()
