"""A hyperplane that separates two classes, selected by the exponential mechanism from a finite grid."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import gcd
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.programs.allocation import describe_noise
from hubbub.analyses.programs.inputs import (
    ProgramInput,
    call,
    column_bounds,
    column_values,
    equals,
    program_input,
    real,
    value_cells,
    whole,
)
from hubbub.analyses.programs.model import model_of
from hubbub.analyses.programs.regression import json_value, positive_last
from hubbub.analyses.programs.vectors import Box, Floats, box
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.core.reals import floor_to
from hubbub.core.schema import Value
from hubbub.errors import QueryError
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.permute_and_flip import RULES, PermuteAndFlip, selection_rule
from hubbub.sql.expressions import Col, FunctionCall
from hubbub.sql.measures import RowCount

Integers = NDArray[np.int64]

MAX_CELLS = 1 << 16
MAX_CANDIDATES = 1 << 20
_ACCURACY = Fraction(1, 10)  #: share of ε for the number of correctly classified rows


@dataclass(frozen=True)
class Grid:
    """The hyperplanes {g : w·g = t}: w integer vectors without common factor, g centers of cells, t integer."""

    dimensions: int
    bins: int
    slopes: int  #: largest entry of w

    @property
    def middles(self) -> Integers:
        """The centers of all cells as integers, 1 − bins to bins − 1 in steps of 2, the last varying fastest."""
        side = range(1 - self.bins, self.bins, 2)
        return np.array(list(product(side, repeat=self.dimensions)), dtype=np.int64)

    @property
    def directions(self) -> Integers:
        """Every w that is not a multiple of another, and its opposite."""
        every = product(range(-self.slopes, self.slopes + 1), repeat=self.dimensions)
        return np.array([each for each in every if gcd(*each) == 1], dtype=np.int64)

    @property
    def offsets(self) -> Integers:
        """Every t that can matter: w·g has one parity for each w, so every second integer suffices."""
        most = self.slopes * self.dimensions * (self.bins - 1)
        return np.arange(-most - 1, most + 1, 2, dtype=np.int64)

    def scores(self, negative: Integers, positive: Integers) -> Integers:
        """Count the correctly classified rows for every (w, t): positive if w·g > t, negative if w·g ≤ t."""
        places, offsets = self.directions @ self.middles.T, self.offsets
        size = len(offsets)
        out = np.empty((len(places), size), dtype=np.int64)
        for row, place in enumerate(places):  # one step per direction, not per row of the data
            at = np.searchsorted(offsets, place)
            below = [np.bincount(at, weights=each, minlength=size) for each in (negative, positive)]
            low, high = (np.cumsum(each)[:size].astype(np.int64) for each in below)
            out[row] = low + positive.sum() - high
        return out.ravel()


@dataclass(frozen=True, kw_only=True)
class HyperplaneAnalysis(PreparedAnalysis):
    """A prepared selection of a hyperplane."""

    inputs: ProgramInput
    box: Box
    grid: Grid
    target: Col
    classes: tuple[Value, Value]
    choice: Exponential | PermuteAndFlip
    told: Laplace

    def run(self, run: Run) -> Published:
        """Count rows in the cells of the grid, score every hyperplane, select one, and measure its accuracy."""
        bins = range(self.grid.bins)
        keys = [(_bucket(self, name), tuple(bins)) for name in self.box.names]
        sides = call("case", equals(self.target, self.classes[1]), whole(1), whole(0))
        cells = value_cells((sides, (0, 1)), *keys)

        def chosen(found: Integers) -> tuple[int, Integers]:
            negative, positive = found[0].reshape(2, -1)
            scores = self.grid.scores(negative, positive)
            best = self.choice.sample(scores, run.source)
            return best, self.told.sample(np.array([scores[best], found[0].sum()]), run.source)

        best, (right, rows) = self.inputs.integers(run, self.inputs.rows, cells, [RowCount()]).through(chosen)
        direction = self.grid.directions[best // len(self.grid.offsets)]
        offset = int(self.grid.offsets[best % len(self.grid.offsets)])
        share = min(1.0, max(0.0, float(right) / max(float(rows), 1.0)))
        half = float(self.told.error(Fraction(95, 100), 2)) * 2 / max(float(rows), 1.0)
        outputs = (
            *(Output(name, "integer", [int(direction[j])]) for j, name in enumerate(self.box.names)),
            Output("offset", "integer", [offset]),
            Output("rows", "integer", [int(rows)]),
            Output("right", "real", [share], [max(0.0, share - half)], [min(1.0, share + half)]),
        )
        model = {
            "columns": list(self.box.names),
            "target": self.inputs.names[-1],
            "classes": [json_value(each) for each in self.classes],
            "direction": [int(each) for each in direction],
            "offset": offset,
            "bins": self.grid.bins,
            "centre": self.box.middle.tolist(),
            "half": self.box.widths.tolist(),
        }
        return Published(outputs, model)


def _bucket(plane: HyperplaneAnalysis, name: str) -> FunctionCall:
    bounds, bins = column_bounds(plane.inputs, name), plane.grid.bins
    scaled = call(
        "mul", call("sub", plane.inputs.column(name), real(bounds.low)), real(bins / (bounds.high - bounds.low))
    )
    return call("greatest", real(0), call("least", real(bins - 1), call("floor", scaled)))


def hyperplane(
    setting: Setting,
    *,
    table: str,
    columns: list[str],
    target: str,
    positive: Value | None = None,
    bins: int = 16,
    slopes: int = 3,
) -> HyperplaneAnalysis:
    """Prepare the selection of a hyperplane.

    Theorem (Private hyperplane). Let u(w, t) be the number of rows that the hyperplane w·g = t has on the right side,
    g the middle of a row's cell. A unit of at most G·r rows moves every u by at most G·r, all in one direction where it
    is added or removed; so a choice with probability ∝ exp(ε·u/(G·r)) costs ε (Dwork 2011, with the rate of monotone
    scores; where a unit is replaced, half of that rate). So does permute-and-flip at this rate, which caps without δ
    are charged for: it never regrets more.
    Charges  a selection (nine tenths of ε) and Laplace noise on two counts (one tenth): either unit has between 0 and
             G·r rows in each of the two, so each moves by at most G·r, also where a unit is replaced.
    Error    with probability 1 − β the rows on the wrong side are at most G·r·ln(m/β)/ε more than at best, of m
             hyperplanes.
    Tested   tests/analyses/programs/test_hyperplane.py::test_one_row_moves_every_score_by_one_in_one_direction
             tests/analyses/programs/test_hyperplane.py::test_distribution_of_the_choice_keeps_its_loss_on_neighbors
    """
    numbers.integer(bins, "bins", 2, 256)
    numbers.integer(slopes, "slopes", 1, 16)
    inputs = program_input(setting, table, [*columns, target])
    shape = box(inputs, inputs.names[:-1])
    grid = Grid(len(shape.names), bins, slopes)
    size = (2 * slopes + 1) ** grid.dimensions * len(grid.offsets)
    if not 1 <= bins**grid.dimensions <= MAX_CELLS or size > MAX_CANDIDATES:
        raise QueryError("HB545", "The grid has too many hyperplanes.", "Use fewer columns, bins or slopes.")
    contribution = inputs.contribution_bounds(2 * bins**grid.dimensions)
    moved = contribution.touched * contribution.rows
    told = floor_to(setting.epsilon * _ACCURACY, 24)
    choice = selection_rule(setting.delta).from_epsilon(
        candidates=len(grid.directions) * len(grid.offsets),
        sensitivity=moved,
        monotone=True,
        relation=inputs.relation,
        epsilon=setting.epsilon - told,
    )
    counts = Laplace(sensitivity=2 * moved, scale=2 * moved / told)
    error = float(choice.error(Fraction(95, 100)))
    lines = [
        *inputs.lines(),
        f"rows in {bins} bins of each column: {2 * bins**grid.dimensions:,} cells, of which none is published",
        f"{choice.candidates:,} hyperplanes; scores move by at most {moved}: one selection by {RULES[choice.rule]} "
        f"of rate {numbers.brief(choice.rate)}",
        f"rows on the right side, and all: {describe_noise(counts)}",
    ]
    return HyperplaneAnalysis(
        protection=inputs.protection,
        inputs=inputs,
        epsilon=setting.epsilon,
        delta=Fraction(0),
        event=Composed(((choice.event, 1), (counts.event, 1))),
        noise=f"{RULES[choice.rule]}, laplace",
        derivation=tuple(lines),
        expected=(Expected("rows on the wrong side more than at best", error, None, error / 1000),),
        box=shape,
        grid=grid,
        target=inputs.column(inputs.names[-1]),
        classes=positive_last(column_values(inputs, inputs.names[-1]), positive),
        choice=choice,
        told=counts,
    )


@dataclass(frozen=True, slots=True)
class Hyperplane:
    """The model of a published hyperplane."""

    columns: tuple[str, ...]
    classes: tuple[bool | int | float | str, ...]
    direction: Integers
    offset: int
    bins: int
    centre: Floats
    half: Floats

    @classmethod
    def of(cls, release: Release) -> Self:
        """Read it from a release."""
        model = model_of(release, "hyperplane")
        return cls(
            tuple(model["columns"]),
            tuple(model["classes"]),
            np.array(model["direction"]),
            model["offset"],
            model["bins"],
            np.array(model["centre"]),
            np.array(model["half"]),
        )

    def decision_function(self, rows: Floats) -> Floats:
        """Give w·g − t of each row, where g is the center of its cell."""
        scaled = (np.asarray(rows, dtype=float) - self.centre) / self.half
        cell = np.clip(np.floor((scaled + 1) / 2 * self.bins), 0, self.bins - 1)
        return np.asarray((2 * cell - self.bins + 1) @ self.direction - self.offset)

    def predict(self, rows: Floats) -> NDArray[np.object_]:
        """Give the predicted class of each row."""
        return np.asarray(np.array(self.classes, dtype=object)[(self.decision_function(rows) > 0).astype(int)])
