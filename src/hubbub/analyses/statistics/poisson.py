"""Poisson regression: a count depends on some columns by a factor for each, with noisy gradients.

CALL poisson_regression(table => 'visits', columns => ['age'], target => 'falls', exposure => 'years')
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt
from typing import Self

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.inputs import ProgramInput, added, call, one_cell, program_input, real
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.moments import (
    Z95,
    NoisyMoments,
    RowLocation,
    clipping_units,
    find,
    location_requests,
    measure,
    moment_requests,
)
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, box, boxed, clipped, of_sums, on_grid, totals
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, FunctionCall
from hubbub.sql.noise import standard_deviation
from hubbub.sql.relations import Project

ROUNDS, MAX_ROUNDS = 8, 50
_GRADIENTS = 0.6  #: share of the budget
_SHORT = Fraction(707_106, 10**6)  #: slightly less than 1/√2: (1, y) has norm at most √2
_STEP = 2.0  #: how far the logarithm of a rate may go in one round
_FURTHEST = 30.0


@dataclass(frozen=True, kw_only=True)
class PoissonRegressionAnalysis(PreparedAnalysis):
    """A prepared Poisson regression; `most` is the upper bound of the target."""

    inputs: ProgramInput
    box: Box
    whole: Box
    target: str
    exposure: str | None
    most: Fraction
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Ascend by Fisher scoring, the curvature that of normally distributed columns with the noisy moments."""
        size, noises = len(self.box.names), self.allocation.noises
        found = find(run, self.inputs, self.whole, noises[:3])
        near = RowLocation(found.count, found.mean[:size], found.spread[:size])
        moments = measure(run, self.inputs, self.box, noises[3:6], origin=near.mean, units=clipping_units(near))
        means = self.whole.outside(found.mean)
        time = max(float(means[size + 1]), 1e-6) if self.exposure is not None else 1.0
        noise = standard_deviation(noises[6]) / STEPS / float(_SHORT) * float(self.most)
        weights = np.zeros(size + 1)
        weights[0] = log(max(float(means[size]), float(self.most) / 1000) / time)
        trail, step, ridge = [], np.zeros((size + 1, size + 1)), 0.0
        for place in range(self.rounds):
            step, ridge = self._step(moments, weights, time, noise)
            # a penalty on the slopes alone, where the noise is larger than what the rows tell about them
            pull = ridge * np.concatenate([[0.0], weights[1:]])
            change = step @ (self._gradient(run, moments, weights) - pull)
            change *= min(1.0, _STEP / max(float(np.abs(change[0]) + np.linalg.norm(change[1:])), 1e-12))
            weights = np.clip(weights + change, -_FURTHEST, _FURTHEST)
            trail.append(weights)
            run.progress((place + 2) / (self.rounds + 1), f"round {place + 1} of {self.rounds}")
        # the last steps are mostly noise; the mean of the last half has less
        # a ridge pulls slopes to zero by more than the noise tells, so that no interval can be stated
        error = np.full(size + 1, np.inf) if ridge else noise * np.sqrt(np.sum(step**2, axis=1))
        return self._published(np.mean(trail[len(trail) // 2 :], axis=0), error, moments)

    def _step(self, moments: NoisyMoments, weights: Floats, time: float, noise: float) -> tuple[Floats, float]:
        """Give the inverse of the expected curvature, and the ridge that lifts it above the noise."""
        spread = moments.covariance
        tilted = moments.mean + spread @ weights[1:]
        power = weights[0] + moments.mean @ weights[1:] + weights[1:] @ spread @ weights[1:] / 2
        rate = min(float(self.most), time * exp(min(50.0, float(power))))
        one = np.concatenate([[1.0], np.clip(tilted, -1, 1)])
        curvature = np.outer(one, one)
        curvature[1:, 1:] += spread
        curvature *= moments.count * rate
        ridge = max(0.0, noise * sqrt(len(one)) - float(np.linalg.eigvalsh(curvature)[0]))
        return np.asarray(np.linalg.inv(curvature + ridge * np.eye(len(one)))), ridge

    def _gradient(self, run: Run, moments: NoisyMoments, weights: Floats) -> Floats:
        """Get the noisy sum of (count − rate)·(1, y) over all rows with one query."""
        at, units = ([on_grid(each) for each in these] for these in (moments.origin, moments.units))
        kept = [self.inputs.column(self.target)]
        if self.exposure is not None:
            kept.append(self.inputs.column(self.exposure))
        inside, coordinates = boxed(self.inputs, self.box, kept)
        rows, ys = clipped(inside, coordinates, origin=at, units=units, kept=[each.name for each in kept])
        terms = [call("mul", y, real(on_grid(w))) for y, w in zip(ys, weights[1:], strict=True)]
        rate = call("exp", call("add", added(terms), real(on_grid(weights[0]))))
        if self.exposure is not None:
            rate = call("mul", rate, kept[1])
        low = call("least", call("greatest", rate, real(0)), real(self.most))
        count = call("least", call("greatest", kept[0], real(0)), real(self.most))
        residual = call("mul", call("mul", call("sub", count, low), real(1 / self.most)), real(_SHORT))
        first = Project(rows, (*((y.name, y) for y in ys), ("residual", residual)))
        left = Col("residual", residual.kind, residual.facts)
        outputs: list[tuple[str, FunctionCall | Col]] = [("g0", left)]
        outputs += [(f"g{j + 1}", call("mul", left, y)) for j, y in enumerate(ys)]
        columns = [Col(f"g{j}", residual.kind, ys[0].facts) for j in range(len(outputs))]
        exact = self.inputs.integers(run, Project(first, tuple(outputs)), one_cell(), totals(columns))
        noisy = exact.through(lambda sums: self.allocation.noises[6].sample(sums[:, 0], run.source))
        return np.asarray(noisy / STEPS / float(_SHORT) * float(self.most))

    def _published(self, weights: Floats, error: Floats, moments: NoisyMoments) -> Published:
        scale = self.box.widths * moments.units
        own = weights[1:] / scale
        intercept = float(weights[0] - own @ self.box.outside(moments.origin))
        half = (Z95 * error[1:] / scale).tolist()
        # the intercept is far from the rows, so it has no interval
        low = [None, *(float(each - by) if by < np.inf else None for each, by in zip(own, half, strict=True))]
        high = [None, *(float(each + by) if by < np.inf else None for each, by in zip(own, half, strict=True))]
        outputs = (
            Output("term", "text", ["intercept", *self.box.names]),
            Output("coefficient", "real", [intercept, *own.tolist()], low, high),
        )
        model = {
            "columns": list(self.box.names),
            "target": self.target,
            "exposure": self.exposure,
            "intercept": intercept,
            "coefficients": own.tolist(),
        }
        return Published(outputs, model)


def poisson_regression(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    exposure: str | None = None,
    rounds: int = ROUNDS,
) -> PoissonRegressionAnalysis:
    """Prepare a Poisson regression: the expected count is exposure · exp(intercept + coefficients · columns).

    target    a numeric column whose bounds begin at 0 or above: a count
    exposure  a numeric column with positive bounds, such as the years that a person was observed

    Theorem (Poisson regression from noisy gradients). The weights of all rounds are functions of six noisy moments and
    of one noisy sum of (count − rate)/M·(1, y)/√2 a round, count and rate clamped to [0, M], M the upper bound of the
    target, y clipped to norm 1: they cost what these noises cost.
    Proof    |count − rate| ≤ M and ‖(1, y)‖ ≤ √2 (1 + 2⁻⁴⁰), so a row adds a vector of norm at most 1 (1/√2 is taken a
             millionth smaller than it is, for the roundings), whatever weights earlier rounds gave. An infinite rate
             is clamped to M.
    Charges  Together of six events of moments, and the gradient's as many times as there are rounds.
    Error    intervals are for the noise, about the fit of the same rows without it; tested where slopes are moderate.
    Tested   tests/analyses/statistics/test_poisson.py::test_gradients_of_neighbors_are_within_the_sensitivity
             tests/analyses/statistics/test_poisson.py::test_intervals_hold_the_exact_fit
    """
    others = [target] if exposure is None else [target, exposure]
    if set(columns) & set(others) or len(set(others)) < len(others):
        raise QueryError("HB547", "A column has two roles.", "List target and exposure once, and not in columns.")
    if not columns:
        raise QueryError("HB540", "columns is empty.", "List at least one column.")
    rounds = numbers.integer(rounds, "rounds", 1, MAX_ROUNDS)
    inputs = program_input(setting, table, [*columns, *others])
    shape, whole = box(inputs, inputs.names[: len(columns)]), box(inputs, inputs.names)
    most = _most(whole, len(columns), target, exposure)
    size, total = len(shape.names), len(whole.names)
    needs = [
        *location_requests(inputs, total, 0.1),
        *moment_requests(inputs, size, 0.9 - _GRADIENTS),
        NoiseRequest(of_sums(size + 1, inputs.contribution_bounds(1), inputs.relation), _GRADIENTS, rounds),
    ]
    allocation = allocate_budget(setting, needs)
    half = Z95 * standard_deviation(allocation.noises[6]) / STEPS
    return PoissonRegressionAnalysis(
        protection=inputs.protection,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=(
            *inputs.lines(),
            "where the rows lie (10 %), and the moments that tell the curvature (30 %)",
            f"{rounds} gradients, each one query: {describe_noise(allocation.noises[6])}",
        ),
        expected=(Expected(f"gradient of a round, in {numbers.brief(most)} counts", half, None, half / 1000),),
        inputs=inputs,
        box=shape,
        whole=whole,
        target=target,
        exposure=exposure,
        most=most,
        rounds=rounds,
        allocation=allocation,
    )


def _most(whole: Box, place: int, target: str, exposure: str | None) -> Fraction:
    """Give the upper bound of the target, or reject bounds that no count or exposure has."""
    low, high = (whole.centre[place] + sign * whole.half[place] for sign in (-1, 1))
    if low < 0:
        raise QueryError("HB542", f"The bounds of {target} begin below 0, and counts do not.", "Declare bounds from 0.")
    if exposure is not None and not whole.centre[place + 1] > whole.half[place + 1]:
        raise QueryError("HB542", f"The bounds of {exposure} are not positive.", "Declare bounds above 0.")
    return high


@dataclass(frozen=True, slots=True)
class PoissonRegression:
    """The model of a Poisson regression, with methods as in scikit-learn."""

    columns: tuple[str, ...]
    target: str
    coef: Floats
    intercept: float

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "poisson_regression")
        return cls(tuple(model["columns"]), model["target"], np.array(model["coefficients"]), model["intercept"])

    def predict(self, rows: Floats, exposure: Floats | float = 1.0) -> Floats:
        """Give the expected count of each row."""
        margin = np.asarray(rows, dtype=float) @ self.coef + self.intercept
        return np.asarray(np.exp(np.clip(margin, -500, 500)) * exposure)

    def score(self, rows: Floats, target: Floats, exposure: Floats | float = 1.0) -> float:
        """Give the share of the deviance that is explained, as scikit-learn's PoissonRegressor does."""
        truth = np.asarray(target, dtype=float)

        def deviance(rate: Floats) -> float:
            some = np.where(truth > 0, truth, 1.0)
            return float(np.sum(truth * np.log(some / rate) - truth + rate))

        level = truth.sum() / np.sum(np.ones(len(truth)) * exposure)
        return 1 - deviance(self.predict(rows, exposure)) / deviance(level * np.ones(len(truth)) * exposure)
