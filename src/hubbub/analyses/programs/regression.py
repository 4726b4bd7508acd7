"""Linear and logistic regression from noisy sums.

linear     the normal equations of noisy moments (sufficient statistics), with a ridge that matches the noise
logistic   noisy moments for a fixed bound on the curvature, then a few noisy gradients with one query each
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Self

import numpy as np

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import BudgetAllocation, NoiseRequest, allocate_budget, describe_noise
from hubbub.analyses.programs.inputs import (
    ProgramInput,
    added,
    call,
    column_values,
    equals,
    one_cell,
    program_input,
    real,
)
from hubbub.analyses.programs.linear_classifier import LinearClassifier
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.moments import (
    Z95,
    MomentsAnalysis,
    NoisyMoments,
    clipping_units,
    expected_means,
    find,
    interval_column,
    location_requests,
    measure,
    moment_requests,
    prepare_moments,
)
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, box, boxed, clipped, of_sums, on_grid, totals
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, FunctionCall
from hubbub.sql.noise import standard_deviation
from hubbub.sql.relations import Project

ROUNDS = 8
MAX_ROUNDS = 50
_GRADIENTS = 0.6  #: share of the budget of a logistic regression
_SHORT = Fraction(707_106, 10**6)  #: slightly less than 1/√2: (1, y) has norm at most √2


@dataclass(frozen=True, kw_only=True)
class LinearRegressionAnalysis(MomentsAnalysis):
    """Prepared linear regression; the last column is the target."""

    def run(self, run: Run) -> Published:
        """Solve the normal equations of the noisy moments."""
        moments = self.moments(run)
        weights, error, ridge = solve_normal_equations(moments)
        scale = self.box.widths * moments.units
        # from units around the origin to the units of the columns
        own, half = weights[1:] * scale[-1] / scale[:-1], error[1:] * scale[-1] / scale[:-1]
        middle = self.box.outside(moments.origin)
        intercept = middle[-1] + weights[0] * scale[-1] - own @ middle[:-1]
        around = Z95 * error[0] * scale[-1]
        outputs = [
            Output("term", "text", ["intercept", *self.box.names[:-1]]),
            interval_column("coefficient", np.array([intercept, *own]), np.array([np.nan, *(Z95 * half)])),
        ]
        # the intercept is far from the rows, so its error is reported at their center instead
        outputs[1] = _open_first(outputs[1])
        model = {
            "columns": list(self.box.names[:-1]),
            "target": self.box.names[-1],
            "intercept": float(intercept),
            "coefficients": own.tolist(),
            "ridge": ridge,
            "at_the_middle": float(around),
        }
        return Published(tuple(outputs), model)


def _open_first(output: Output) -> Output:
    low, high = list(output.low or ()), list(output.high or ())
    return Output(output.name, output.kind, output.values, [None, *low[1:]], [None, *high[1:]])


def solve_normal_equations(moments: NoisyMoments) -> tuple[Floats, Floats, float]:
    """Give weights (the constant first), their errors from the noise, and the ridge, in the units of the moments.

    The noise on the Gram matrix has a norm of about 2σ√d; the ridge lifts its least eigenvalue to half of that, which
    costs nothing: it is a function of noisy numbers. (A larger ridge makes intervals cover the truth less often.)
    """
    size = len(moments.sums)
    gram = np.empty((size, size))
    gram[0, 0] = moments.count
    gram[0, 1:] = gram[1:, 0] = moments.sums[:-1]
    gram[1:, 1:] = moments.squares[:-1, :-1]
    right = np.array([moments.sums[-1], *moments.squares[:-1, -1]])
    noise = max(moments.noises)
    floor = noise * sqrt(size)
    ridge = max(0.0, floor - float(np.linalg.eigvalsh(gram)[0]))
    inverse = np.linalg.inv(gram + ridge * np.eye(size))
    weights = inverse @ right
    # right and gram have independent noise, gram's entry (i, j) times weights[j]
    spread = moments.noises[2] * sqrt(1 + float(weights[1:] @ weights[1:]))
    per = np.full(size, spread)
    per[0] = moments.noises[1] * sqrt(1 + float(weights[1:] @ weights[1:])) + moments.noises[0] * abs(weights[0])
    return weights, np.sqrt((inverse**2) @ per**2), ridge


def linear_regression(setting: Setting, *, table: str, columns: list[str], target: str) -> LinearRegressionAnalysis:
    """Prepare a linear regression of a target on some columns.

    Theorem (Regression from sufficient statistics). The coefficients are a function of the noisy moments of the columns
    and the target together, and of the known size of their noise; they cost what the moments cost.
    Proof    Post-processing: the ridge is chosen by the noisy Gram matrix and the public noise alone.
    Charges  Together of six events (see `moments`).
    Error    first order: the inverse Gram matrix times the noise of both sides of the normal equations.
    Tested   tests/analyses/programs/test_regression.py::test_the_line_is_found
             tests/analyses/programs/test_regression.py::test_what_is_drawn_is_what_is_charged
    """
    if target in columns:
        raise QueryError("HB547", f"The target {target!r} is also listed in columns.", "Remove it from columns.")
    inputs, shape, allocation, lines = prepare_moments(setting, table, [*columns, target])
    if len(shape.names) < 2:
        raise QueryError("HB540", "columns is empty.", "List at least one column.")
    lines.append("normal equations of the noisy moments, with a ridge that lifts them above the noise; post-processing")
    return LinearRegressionAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=expected_means(shape, allocation)[-1:],
        box=shape,
        allocation=allocation,
    )


@dataclass(frozen=True, kw_only=True)
class LogisticRegressionAnalysis(PreparedAnalysis):
    """Prepared logistic regression."""

    inputs: ProgramInput
    box: Box
    target: Col
    classes: tuple[Value, Value]
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Ascend with a fixed bound on the curvature: a quarter of the noisy Gram matrix (Böhning 1992)."""
        size, noises = len(self.box.names), self.allocation.noises
        found = find(run, self.inputs, self.box, noises[:3])
        units = clipping_units(found)
        moments = measure(run, self.inputs, self.box, noises[3:6], origin=found.mean, units=units)
        gram = np.empty((size + 1, size + 1))
        gram[0, 0], gram[0, 1:], gram[1:, 0], gram[1:, 1:] = (
            moments.count,
            moments.sums,
            moments.sums,
            moments.squares,
        )
        noise = standard_deviation(noises[6]) / STEPS
        floor = 2 * max(moments.noises) * sqrt(size + 1) + noise * sqrt(self.rounds)
        ridge = max(0.0, floor - float(np.linalg.eigvalsh(gram)[0]))
        step = np.linalg.inv((gram + ridge * np.eye(size + 1)) / 4)
        weights = np.zeros(size + 1)
        trail = []
        for place in range(self.rounds):
            weights = weights + step @ (self._gradient(run, moments, weights) - ridge / 4 * weights)
            # weights of that size already separate the classes completely
            weights *= min(1.0, 50.0 * sqrt(size + 1) / max(float(np.linalg.norm(weights)), 1e-12))
            trail.append(weights)
            run.progress((place + 2) / (self.rounds + 1), f"round {place + 1} of {self.rounds}")
        # the last steps are mostly noise; the mean of the last half has less
        weights = np.mean(trail[len(trail) // 2 :], axis=0)
        scale = self.box.widths * moments.units
        own = weights[1:] / scale
        intercept = float(weights[0] - own @ self.box.outside(moments.origin))
        # no intervals: the ridge and the fixed steps shrink weights by more than the noise moves them
        outputs = (
            Output("term", "text", ["intercept", *self.box.names]),
            Output("coefficient", "real", [intercept, *own.tolist()]),
        )
        model = {
            "columns": list(self.box.names),
            "target": self.inputs.names[-1],
            "intercept": intercept,
            "coefficients": own.tolist(),
            "ridge": ridge,
            "classes": [json_value(each) for each in self.classes],
        }
        return Published(outputs, model)

    def _gradient(self, run: Run, moments: NoisyMoments, weights: Floats) -> Floats:
        """Get the noisy sum of (label − probability)·(1, y) over all rows with one query."""
        size = len(self.box.names)
        at, units = ([on_grid(each) for each in these] for these in (moments.origin, moments.units))
        inside, coordinates = boxed(self.inputs, self.box, [self.target])
        rows, ys = clipped(inside, coordinates, origin=at, units=units, kept=[self.target.name])
        terms = [call("mul", y, real(on_grid(w))) for y, w in zip(ys, weights[1:], strict=True)]
        margin = call("add", added(terms), real(on_grid(weights[0])))
        chance = call("div", real(1), call("add", real(1), call("exp", call("neg", margin))))
        label = call("case", equals(self.target, self.classes[1]), real(1), real(0))
        residual = call("mul", call("sub", label, chance), real(_SHORT))
        first = Project(rows, (*((y.name, y) for y in ys), ("residual", residual)))
        left = Col("residual", residual.kind, residual.facts)
        outputs: list[tuple[str, FunctionCall | Col]] = [("g0", left)]
        outputs += [(f"g{j + 1}", call("mul", left, y)) for j, y in enumerate(ys)]
        second = Project(first, tuple(outputs))
        columns = [Col(f"g{j}", residual.kind, ys[0].facts) for j in range(size + 1)]
        exact = self.inputs.integers(run, second, one_cell(), totals(columns))
        noisy = exact.through(lambda sums: self.allocation.noises[6].sample(sums[:, 0], run.source))
        return np.asarray(noisy / STEPS / float(_SHORT))


def logistic_regression(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    positive: Value | None = None,
    rounds: int = ROUNDS,
) -> LogisticRegressionAnalysis:
    """Prepare a logistic regression of a two-valued target.

    Theorem (Logistic regression from noisy gradients). The weights of all rounds are functions of noisy moments and of
    one noisy sum of (label − p)·(1, y)/√2 a round, y clipped to norm 1: they cost what these noises cost.
    Proof    |label − p| ≤ 1 and ‖(1, y)‖ ≤ √2 (1 + 2⁻⁴⁰), so a row adds a vector of norm at most 1 (1/√2 is taken a
             millionth smaller than it is, for the roundings), whatever weights earlier rounds gave.
    Charges  Together of six events of moments, and the gradient's as many times as there are rounds.
    Tested   tests/analyses/programs/test_regression.py::test_gradients_of_neighbors_are_within_the_sensitivity
             tests/analyses/programs/test_regression.py::test_classes_are_told_apart

    positive   the value that counts as 1; by default the second of two declared values
    """
    if target in columns:
        raise QueryError("HB547", f"The target {target!r} is also listed in columns.", "Remove it from columns.")
    rounds = numbers.integer(rounds, "rounds", 1, MAX_ROUNDS)
    inputs = program_input(setting, table, [*columns, target])
    shape = box(inputs, inputs.names[:-1])
    size = len(shape.names)
    contribution, relation = inputs.contribution_bounds(1), inputs.relation
    needs = [
        *location_requests(inputs, size, 0.1),
        *moment_requests(inputs, size, 0.9 - _GRADIENTS),
        NoiseRequest(of_sums(size + 1, contribution, relation), _GRADIENTS, rounds),
    ]
    allocation = allocate_budget(setting, needs)
    lines = [
        *inputs.lines(),
        "where the rows lie (10 %), and the Gram matrix that bounds the curvature (30 %)",
        f"{rounds} gradients, each one query: {describe_noise(allocation.noises[6])}",
    ]
    half = Z95 * standard_deviation(allocation.noises[6]) / STEPS
    return LogisticRegressionAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=(Expected("gradient of a round, in rows", half, None, half / 1000),),
        box=shape,
        target=inputs.column(inputs.names[-1]),
        rounds=rounds,
        allocation=allocation,
        classes=positive_last(column_values(inputs, inputs.names[-1]), positive),
    )


def positive_last(values: tuple[Value, ...], positive: Value | None) -> tuple[Value, Value]:
    """Order two classes, the positive one last; with more values, all others form one class."""
    if positive is None and len(values) == 2:
        return values[0], values[1]
    if positive not in values or positive is None:
        raise QueryError(
            "HB548",
            "The positive value of the target was not given.",
            f"Pass positive, one of: {', '.join(map(str, values))}.",
        )
    others = [each for each in values if each != positive]
    return (others[0] if len(others) == 1 else "other"), positive


def json_value(value: Value) -> bool | int | float | str:
    """Give a value in JSON form."""
    return value if isinstance(value, bool | int | str) else float(value) if isinstance(value, Fraction) else str(value)


@dataclass(frozen=True, slots=True)
class LinearRegression:
    """The model of a linear regression, with methods as in scikit-learn."""

    columns: tuple[str, ...]
    target: str
    coef: Floats
    intercept: float

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "linear_regression")
        return cls(tuple(model["columns"]), model["target"], np.array(model["coefficients"]), model["intercept"])

    def predict(self, rows: Floats) -> Floats:
        """Predict the target of each row."""
        return np.asarray(np.asarray(rows, dtype=float) @ self.coef + self.intercept)

    def score(self, rows: Floats, target: Floats) -> float:
        """Give R², the share of the target's variance that is explained."""
        truth = np.asarray(target, dtype=float)
        rest = float(np.sum((truth - self.predict(rows)) ** 2))
        return 1 - rest / float(np.sum((truth - truth.mean()) ** 2))


@dataclass(frozen=True, slots=True)
class LogisticRegression(LinearClassifier):
    """The model of a logistic regression, with methods as in scikit-learn."""

    ANALYSIS: ClassVar[str] = "logistic_regression"
    WEIGHTS: ClassVar[str] = "coefficients"

    def predict_proba(self, rows: Floats) -> Floats:
        """Give the probability of each class for each row."""
        margin = np.clip(self.decision_function(rows), -500, 500)
        chance = 1 / (1 + np.exp(-margin))
        return np.stack([1 - chance, chance], axis=1)
