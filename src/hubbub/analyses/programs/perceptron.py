"""A perceptron from noisy sums: statistical-query learning of a separating hyperplane."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt
from typing import ClassVar

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
from hubbub.analyses.programs.regression import json_value, positive_last
from hubbub.analyses.programs.vectors import STEPS, Box, Floats, box, boxed, clipped, of_sums, on_grid, totals
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.schema import Value
from hubbub.errors import QueryError
from hubbub.sql.expressions import Col, FunctionCall
from hubbub.sql.noise import standard_deviation
from hubbub.sql.relations import Project

ROUNDS = 30
MAX_ROUNDS = 200
_SHORT = Fraction(577_350, 10**6)  #: slightly less than 1/√3: (1, ±1, ±y) has norm at most √3
_LEVEL = Fraction(95, 100)


@dataclass(frozen=True, kw_only=True)
class PerceptronAnalysis(PreparedAnalysis):
    """A prepared perceptron."""

    inputs: ProgramInput
    box: Box
    target: Col
    classes: tuple[Value, Value]
    rounds: int
    allocation: BudgetAllocation

    def run(self, run: Run) -> Published:
        """Add the noisy mean of the misclassified rows in each round; keep the weights with the fewest of them."""
        noise = self.allocation.noises[0]
        unit = STEPS * float(_SHORT)
        weights = np.zeros(len(self.box.names) + 1)
        best, fewest, rows = weights, inf, 0.0
        for place in range(self.rounds):
            wrong, total = self._misclassified(run, weights)
            if place == 0:
                rows = wrong  # weights of 0 classify no row
            elif wrong < fewest:
                best, fewest = weights, wrong
            # fewer rows than the noise say nothing about a direction
            if wrong > 2 * standard_deviation(noise) / unit:
                weights = weights + total / wrong
            run.progress((place + 1) / self.rounds, f"round {place + 1} of {self.rounds}")
        own = best[1:] / (self.box.widths * _side(len(self.box.names)))
        intercept = float(best[0] - own @ self.box.middle)
        # one of all rounds is chosen, so the error is that of the worst
        half = float(noise.error(_LEVEL, self.rounds)) / unit
        outputs = (
            Output("term", "text", ["intercept", *self.box.names]),
            Output("weight", "real", [intercept, *own.tolist()]),
        )
        model = {
            "columns": list(self.box.names),
            "target": self.inputs.names[-1],
            "intercept": intercept,
            "weights": own.tolist(),
            "classes": [json_value(each) for each in self.classes],
            "rows": max(0.0, rows),
            "wrong": max(0.0, fewest),
            "plus_minus": half,
        }
        return Published(outputs, model)

    def _misclassified(self, run: Run, weights: Floats) -> tuple[float, Floats]:
        """Get the noisy number of misclassified rows, and the noisy sum of ±(1, y) over them, with one query."""
        size = len(self.box.names)
        origin, units = [Fraction(0)] * size, [on_grid(_side(size))] * size
        inside, coordinates = boxed(self.inputs, self.box, [self.target])
        rows, ys = clipped(inside, coordinates, origin=origin, units=units, kept=[self.target.name])
        terms = [call("mul", y, real(on_grid(w))) for y, w in zip(ys, weights[1:], strict=True)]
        margin = call("add", added(terms), real(on_grid(weights[0])))
        label = call("case", equals(self.target, self.classes[1]), real(1), real(-1))
        first = Project(rows, (*((y.name, y) for y in ys), ("label", label), ("margin", margin)))
        sign, place = Col("label", label.kind, label.facts), Col("margin", margin.kind, margin.facts)
        missed = call("le", call("mul", sign, place), real(0))
        residual = call("case", missed, call("mul", sign, real(_SHORT)), real(0))
        second = Project(first, (*((y.name, y) for y in ys), ("residual", residual)))
        left = Col("residual", residual.kind, residual.facts)
        outputs: list[tuple[str, FunctionCall | Col]] = [("g0", call("abs", left)), ("g1", left)]
        outputs += [(f"g{j + 2}", call("mul", left, y)) for j, y in enumerate(ys)]
        third = Project(second, tuple(outputs))
        columns = [Col(f"g{j}", residual.kind, ys[0].facts) for j in range(size + 2)]
        exact = self.inputs.integers(run, third, one_cell(), totals(columns))
        noisy = exact.through(lambda sums: self.allocation.noises[0].sample(sums[:, 0], run.source))
        sums = np.asarray(noisy / STEPS / float(_SHORT))
        return float(sums[0]), sums[1:]


def _side(dimensions: int) -> float:
    """Give a little more than √d, so that every point of the box has norm at most 1 in these units."""
    return (isqrt(dimensions << 32) + 1) / (1 << 16)


def perceptron(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    positive: Value | None = None,
    rounds: int = ROUNDS,
) -> PerceptronAnalysis:
    """Prepare a perceptron of a two-valued target.

    Theorem (Perceptron from noisy sums). The weights of all rounds are functions of one noisy sum a round, of
    (1, ±1, ±y)/√3 over the rows that the weights so far misclassify, y clipped to norm 1: they cost what these noises
    cost (Blum, Dwork, McSherry and Nissim 2005).
    Proof    A row adds 0, or a vector of norm at most 1 (1/√3 is taken a millionth smaller than it is, for the
             roundings), whatever weights earlier rounds gave. Which round is kept follows from the noisy counts.
    Charges  the sum's event as many times as there are rounds.
    Error    without noise, rows that a line separates with margin γ are all classified after 1/γ² rounds.
    Tested   tests/analyses/programs/test_perceptron.py::test_sums_of_neighbors_are_within_the_sensitivity
             tests/analyses/programs/test_perceptron.py::test_without_noise_it_is_the_exact_perceptron

    positive   the value that counts as 1; by default the second of two declared values
    """
    if target in columns:
        raise QueryError("HB547", f"The target {target!r} is also listed in columns.", "Remove it from columns.")
    rounds = numbers.integer(rounds, "rounds", 2, MAX_ROUNDS)
    inputs = program_input(setting, table, [*columns, target])
    shape = box(inputs, inputs.names[:-1])
    moved = of_sums(len(shape.names) + 2, inputs.contribution_bounds(1), inputs.relation)
    allocation = allocate_budget(setting, [NoiseRequest(moved, 1.0, rounds)])
    half = float(allocation.noises[0].error(_LEVEL, rounds)) / STEPS / float(_SHORT)
    return PerceptronAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=allocation.delta,
        event=allocation.event,
        noise=allocation.kind,
        derivation=(
            *inputs.lines(),
            f"{rounds} rounds, each one query: the misclassified rows, counted and added up;"
            f" {describe_noise(allocation.noises[0])}",
            "a round with fewer misclassified rows than noise changes nothing; the best round is kept",
        ),
        expected=(Expected("misclassified rows", half, None, half / 1000),),
        box=shape,
        target=inputs.column(inputs.names[-1]),
        rounds=rounds,
        allocation=allocation,
        classes=positive_last(column_values(inputs, inputs.names[-1]), positive),
    )


@dataclass(frozen=True, slots=True)
class Perceptron(LinearClassifier):
    """The model of a perceptron, with methods as in scikit-learn."""

    ANALYSIS: ClassVar[str] = "perceptron"
    WEIGHTS: ClassVar[str] = "weights"
