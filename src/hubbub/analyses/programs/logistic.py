"""Logistic regression of two or more classes from noisy gradients, with intervals for two classes.

CALL logistic_regression(table => 'visits', columns => ['age', 'bmi'], target => 'smoker')
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

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
from hubbub.analyses.programs.logistic_fit import Curvature, Fit, ascend, basis_of, last_step, step
from hubbub.analyses.programs.moments import (
    Z95,
    NoisyMoments,
    clipping_units,
    find,
    location_requests,
    measure,
    moment_requests,
)
from hubbub.analyses.programs.regression import json_value, positive_last
from hubbub.analyses.programs.vectors import (
    STEPS,
    Box,
    Floats,
    box,
    boxed,
    clipped,
    of_products,
    of_sums,
    on_grid,
    over_cells,
    products,
    totals,
)
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.answers.sampling import SamplingErrors
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, Expr, FunctionCall
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import AdditiveNoise
from hubbub.sql.relations import Project, Rel

ROUNDS, MAX_ROUNDS = 4, 50
MAX_CLASSES = 20
#: Most parameters: classes but one, times columns and the constant.
MAX_PARAMETERS = 400
# Shares of the budget, chosen on the made-up families of decision 0136.
_LOCATION, _MOMENTS, _ROUNDS, _CURVATURE = 0.1, 0.15, 0.2, 0.2
_SHORT = Fraction(707_106, 10**6)  #: slightly less than 1/√2: (1, y) has norm at most √2


@dataclass(frozen=True, kw_only=True)
class LogisticRegressionAnalysis(PreparedAnalysis):
    """Prepared logistic regression.

    classes  of two, the first stands for everything that is not the second
    """

    inputs: ProgramInput
    box: Box
    target: Col
    classes: tuple[Value, ...]
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Locate the rows, take some rounds with a curvature from moments, and one last step with more budget."""
        noises, steps = self.allocation.noises, self.rounds + 3
        found = find(run, self.inputs, self.box, noises[:3])
        run.progress(1 / steps, "found where the rows lie")
        moments = measure(run, self.inputs, self.box, noises[3:6], origin=found.mean, units=clipping_units(found))
        curvature = Curvature.of(moments, basis_of(len(self.classes)))
        unit = 1 / STEPS / float(self.scale)
        rounds, final = (standard_deviation(each) * unit for each in noises[6:8])

        def gradient(weights: Floats, last: bool) -> Floats:  # noqa: FBT001 - positional in its type
            return self._gradient(run, moments, weights, noises[7] if last else noises[6])

        def progress(place: int) -> None:
            run.progress((place + 2) / steps, f"round {place + 1} of {self.rounds}")

        weights = ascend(curvature, gradient, rounds=self.rounds, noise=rounds, progress=progress)
        if len(self.classes) == 2:
            measured, rough = self._curvature(run, moments, weights, noises[8])
            fit = last_step(curvature, weights, measured, gradient(weights, True), noise=final, rough=rough)  # noqa: FBT003
        else:
            last = gradient(weights, True)  # noqa: FBT003
            fit = Fit(step(curvature, curvature.at(weights), weights, last, final))
        run.progress(1.0, "took the last step")
        return self._published(fit, moments)

    @property
    def scale(self) -> Fraction:
        """What a row's residuals are multiplied by, so that its vector has norm at most 1."""
        return _SHORT if len(self.classes) == 2 else _SHORT * _SHORT

    def _rows(self, moments: NoisyMoments, weights: Floats) -> tuple[Rel, tuple[Col, ...], list[Expr]]:
        """Write the clipped rows with the probability of each class that has weights of its own."""
        at, units = ([on_grid(each) for each in these] for these in (moments.origin, moments.units))
        inside, coordinates = boxed(self.inputs, self.box, [self.target])
        rows, ys = clipped(inside, coordinates, origin=at, units=units, kept=[self.target.name])
        margins = []
        for own in weights:
            terms = [call("mul", y, real(on_grid(w))) for y, w in zip(ys, own[1:], strict=True)]
            margins.append(call("add", added(terms), real(on_grid(own[0]))))
        names = [f"margin{k}" for k in range(len(margins))]
        written = Project(
            rows,
            (*((y.name, y) for y in ys), (self.target.name, self.target), *zip(names, margins, strict=True)),
        )
        cols = [Col(name, each.kind, each.facts) for name, each in zip(names, margins, strict=True)]
        chances: list[Expr] = []
        for k in range(1 if len(cols) == 2 else 0, len(cols)):
            others = [call("exp", call("sub", other, cols[k])) for other in cols if other is not cols[k]]
            chances.append(call("div", real(1), call("add", real(1), added(others))))
        return written, ys, chances

    def _gradient(self, run: Run, moments: NoisyMoments, weights: Floats, noise: AdditiveNoise) -> Floats:
        """Get the noisy sum of (label − probability)·(1, y) over all rows, for each class, with one query."""
        rows, ys, chances = self._rows(moments, weights)
        own = self.classes[-len(chances) :]
        labels = [call("case", equals(self.target, each), real(1), real(0)) for each in own]
        residuals = [
            call("mul", call("sub", label, chance), real(self.scale))
            for label, chance in zip(labels, chances, strict=True)
        ]
        names = [f"residual{k}" for k in range(len(residuals))]
        first = Project(rows, (*((y.name, y) for y in ys), *zip(names, residuals, strict=True)))
        left = [Col(name, each.kind, each.facts) for name, each in zip(names, residuals, strict=True)]
        outputs: list[tuple[str, FunctionCall | Col]] = []
        for k, each in enumerate(left):
            outputs.append((f"g{k}_0", each))
            outputs += [(f"g{k}_{j + 1}", call("mul", each, y)) for j, y in enumerate(ys)]
        columns = [Col(name, left[0].kind, ys[0].facts) for name, _ in outputs]
        exact = self.inputs.integers(run, Project(first, tuple(outputs)), one_cell(), totals(columns))
        noisy = exact.through(lambda sums: noise.sample(sums[:, 0], run.source))
        found = np.zeros((len(self.classes), len(ys) + 1))
        found[-len(own) :] = np.asarray(noisy / STEPS / float(self.scale)).reshape(len(own), -1)
        return found

    def _curvature(
        self, run: Run, moments: NoisyMoments, weights: Floats, noise: AdditiveNoise
    ) -> tuple[Floats, float]:
        """Get the noisy sum of p(1 − p)·(1, y)(1, y)ᵀ over all rows with one query, and the deviation of its noise."""
        rows, ys, (chance,) = self._rows(moments, weights)
        odd = call("mul", call("mul", chance, call("sub", real(1), chance)), real(4))
        root = call("mul", call("sqrt", call("greatest", odd, real(0))), real(_SHORT))
        first = Project(rows, (*((y.name, y) for y in ys), ("root", root)))
        left = Col("root", root.kind, root.facts)
        outputs: list[tuple[str, FunctionCall | Col]] = [("h0", left)]
        outputs += [(f"h{j + 1}", call("mul", left, y)) for j, y in enumerate(ys)]
        columns = [Col(name, left.kind, ys[0].facts) for name, _ in outputs]
        exact = self.inputs.integers(run, Project(first, tuple(outputs)), one_cell(), products(columns))
        noisy = exact.through(lambda sums: noise.sample(sums[:, 0], run.source))
        size, unit = len(columns), 1 / STEPS / (4 * float(_SHORT) ** 2)
        matrix = np.zeros((size, size))
        matrix[np.triu_indices(size)] = noisy * unit
        return matrix + np.triu(matrix, 1).T, standard_deviation(noise) * unit

    def _published(self, fit: Fit, moments: NoisyMoments) -> Published:
        scale, size = self.box.widths * moments.units, len(self.box.names)
        middle = self.box.outside(moments.origin)
        # from weights at the clipped rows to those of the columns
        along = np.zeros((size + 1, size + 1))
        along[0, 0], along[0, 1:] = 1.0, -middle / scale
        along[1:, 1:] = np.diag(1 / scale)
        own = fit.weights @ along.T
        names = [json_value(each) for each in self.classes]
        model: dict[str, object] = {
            "columns": list(self.box.names),
            "target": self.inputs.names[-1],
            "classes": names,
            "centre": middle.tolist(),
            "reach": scale.tolist(),
        }
        terms = ["intercept", *self.box.names]
        if len(self.classes) > 2:
            outputs = (Output("term", "text", terms), *(_plain(str(n), w) for n, w in zip(names, own, strict=True)))
            model |= {"intercept": own[:, 0].tolist(), "coefficients": own[:, 1:].tolist()}
            return Published(outputs, model)
        model |= {"intercept": float(own[1, 0]), "coefficients": own[1, 1:].tolist()}
        half = fit.half_widths(along)
        if half is None or fit.sampling is None:
            return Published((Output("term", "text", terms), _plain("coefficient", own[1])), model)
        between = Z95 * np.sqrt(np.einsum("ij,jk,ik->i", along, fit.sampling, along))
        model |= {"half": half.tolist(), "sampling": between.tolist(), "intervals": _INTERVALS}
        coefficient = Output(
            "coefficient",
            "real",
            own[1].tolist(),
            (own[1] - half).tolist(),
            (own[1] + half).tolist(),
            SamplingErrors(between.tolist()),
        )
        return Published((Output("term", "text", terms), coefficient), model)


_INTERVALS = (
    "95% confidence intervals for the coefficients that these rows have without noise, once rows beyond `reach` from"
    " `centre` are pulled in; they do not include sampling error"
)


def _plain(name: str, values: Floats) -> Output:
    return Output(name, "real", values.tolist())


def logistic_regression(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    positive: Value | None = None,
    rounds: int = ROUNDS,
) -> LogisticRegressionAnalysis:
    """Prepare a logistic regression of a target with declared values.

    Theorem (Logistic regression from noisy gradients). The weights are functions of noisy moments, of noisy sums of
    (label − p)·(1, y) for each class at weights that earlier answers gave, and, with two classes, of one noisy sum of
    p(1 − p)·(1, y)(1, y)ᵀ, y clipped to norm 1: they cost what these noises cost.
    Proof    ‖(1, y)‖ ≤ √2 (1 + 2⁻⁴⁰). With two classes |label − p| ≤ 1, so that a row adds a vector of norm at most 1
             after multiplication by 1/√2. With more, the residuals of a row have an L2 norm of at most √2 and an L1
             norm of at most 2, so that after multiplication by ½ its vector has an L2 norm of at most 1, and an L1
             norm of at most √2·√(d + 1). The products are those of √(4p(1 − p))·(1, y)/√2, of norm at most 1
             ("Clipped rows on a grid"). Both constants are taken a millionth smaller than they are, for the roundings.
    Charges  Together of six events of moments, of the gradient's as many times as there are rounds, of one more
             gradient, and with two classes of the curvature.
    Error    two classes: "One Newton step", about the exact fit of the clipped rows; none if noise hides the curvature.
    Tested   tests/analyses/programs/test_logistic.py::test_sums_of_neighbors_are_within_the_sensitivity
             tests/analyses/programs/test_logistic.py::test_what_is_drawn_is_what_is_charged
             tests/analyses/programs/test_logistic.py::test_intervals_hold_the_exact_fit

    positive   the value that counts as 1, against all others; by default the second of two declared values, or none if
               there are more: then each value is a class
    """
    if target in columns:
        raise QueryError("HB547", f"The target {target!r} is also listed in columns.", "Remove it from columns.")
    rounds = numbers.integer(rounds, "rounds", 1, MAX_ROUNDS)
    inputs = program_input(setting, table, [*columns, target])
    shape = box(inputs, inputs.names[:-1])
    classes = _classes(column_values(inputs, target), positive)
    size, several = len(shape.names), len(classes) > 2
    if (len(classes) - 1) * (size + 1) > MAX_PARAMETERS or len(classes) > MAX_CLASSES:
        raise QueryError(
            "HB850",
            f"{len(classes)} classes and {size} columns are too many for a logistic regression.",
            f"Use at most {MAX_CLASSES} classes and {MAX_PARAMETERS} coefficients, or pass positive.",
        )
    contribution, relation = inputs.contribution_bounds(1), inputs.relation
    moved = _of_residuals(len(classes), size, inputs) if several else of_sums(size + 1, contribution, relation)
    final = 1 - _LOCATION - _MOMENTS - _ROUNDS - (0.0 if several else _CURVATURE)
    needs = [
        *location_requests(inputs, size, _LOCATION),
        *moment_requests(inputs, size, _MOMENTS),
        NoiseRequest(moved, _ROUNDS, rounds),
        NoiseRequest(moved, final),
    ]
    if not several:
        needs.append(NoiseRequest(of_products(size + 1, contribution, relation), _CURVATURE))
    allocation = allocate_budget(setting, needs)
    last = allocation.noises[7]
    half = Z95 * standard_deviation(last) / STEPS
    lines = [
        *inputs.lines(),
        f"where the rows lie ({_LOCATION:.0%}), and their moments ({_MOMENTS:.0%})",
        f"{rounds} gradients, each one query ({_ROUNDS:.0%}): {describe_noise(allocation.noises[6])}",
        f"the last gradient ({final:.0%}): {describe_noise(last)}",
    ]
    if not several:
        lines.append(f"the curvature there ({_CURVATURE:.0%}): {describe_noise(allocation.noises[8])}")
    return LogisticRegressionAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=tuple(lines),
        expected=(Expected("the last gradient, in rows", half, None, half / 1000),),
        box=shape,
        target=inputs.column(inputs.names[-1]),
        rounds=rounds,
        allocation=allocation,
        classes=classes,
    )


def _classes(values: tuple[Value, ...], positive: Value | None) -> tuple[Value, ...]:
    return values if positive is None and len(values) > 2 else positive_last(values, positive)


def _of_residuals(classes: int, dimensions: int, inputs: ProgramInput) -> Sensitivity:
    """Bound the sensitivity of the sums of ½ (label − p)·(1, y) for all classes, in steps of 1/S.

    A row's numbers have an L2 norm of at most 1 and an L1 norm of at most √2·√(d + 1); rounding moves each by ½ step.
    """
    count = classes * (dimensions + 1)
    rounding = Fraction(isqrt(count) + 2, 2) + 1
    l1 = isqrt(2 * (dimensions + 1) * STEPS**2) + count // 2 + 2
    l2 = STEPS + -(-rounding.numerator // rounding.denominator)
    return over_cells(l1, l2**2, inputs.contribution_bounds(1), inputs.relation)
