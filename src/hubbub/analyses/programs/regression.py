"""Linear regression from noisy sums: the normal equations of noisy moments, with a ridge that matches the noise."""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Self

import numpy as np

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.moments import (
    Z95,
    MomentsAnalysis,
    NoisyMoments,
    expected_means,
    interval_column,
    prepare_moments,
)
from hubbub.analyses.programs.vectors import Floats
from hubbub.answers.release import Output, Release
from hubbub.core.schema import Value
from hubbub.errors import QueryError


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
