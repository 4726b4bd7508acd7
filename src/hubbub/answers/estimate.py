"""Estimates: the privacy cost and the expected accuracy of a query, before it is charged."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from hubbub.core.numbers import brief, round_down
from hubbub.core.wire import Json


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected margin of error of one aggregate, for a group of `rows` rows (None: any group).

    `unit` is "value", or "rank" where the error of a quantile or extreme is a number of rows in sorted order.
    """

    name: str
    plus_minus: float
    rows: int | None
    relative: float
    unit: Literal["value", "rank"] = "value"


@dataclass(frozen=True)
class Estimate:
    """An estimate, which is free and does not depend on the data.

    admitted   whether the query is within budget now; `largest` is the largest ε within budget
    scaling    (ε, expected errors) at other values of ε around the requested one
    """

    datasets: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction
    noise: str
    cells: int
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]
    admitted: bool
    largest: Fraction
    scaling: tuple[tuple[Fraction, tuple[Expected, ...]], ...]
    sql: tuple[str, ...]

    def to_json(self) -> Json:
        """Return it as JSON values; exact numbers are strings."""
        return {
            "datasets": list(self.datasets),
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "noise": self.noise,
            "cells": self.cells,
            "admitted": self.admitted,
            "largest_epsilon": str(self.largest),
            "expected": [asdict(each) for each in self.expected],
            "scaling": [
                {"epsilon": str(epsilon), "expected": [asdict(each) for each in expected]}
                for epsilon, expected in self.scaling
            ],
            "derivation": list(self.derivation),
            "sql": list(self.sql),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(
            datasets=tuple(form["datasets"]),
            epsilon=Fraction(form["epsilon"]),
            delta=Fraction(form["delta"]),
            noise=form["noise"],
            cells=form["cells"],
            expected=_expected(form),
            derivation=tuple(form["derivation"]),
            admitted=form["admitted"],
            largest=Fraction(form["largest_epsilon"]),
            scaling=tuple((Fraction(each["epsilon"]), _expected(each)) for each in form["scaling"]),
            sql=tuple(form["sql"]),
        )

    def __repr__(self) -> str:
        cost = f"ε = {brief(self.epsilon)}" + (f", δ = {brief(self.delta)}" if self.delta else "")
        lines = [f"Cost: {cost} on {', '.join(self.datasets)}; nothing was run or charged"]
        lines += [f"  {expected.name} {margin(expected)}" for expected in self.expected]
        if not self.admitted:
            lines.append(f"  over budget: the largest query possible now costs ε = {round_down(self.largest)}")
        return "\n".join(lines)


def _expected(form: Mapping[str, Any]) -> tuple[Expected, ...]:
    return tuple(Expected(**each) for each in form["expected"])


def margin(expected: Expected) -> str:
    """Format an expected error.

    >>> margin(Expected("n", 30.0, None, 0.1)), margin(Expected("a", 1.25, 1000, 0.1))
    ('±30', '±1.2 (in a group of 1,000 rows)')
    """
    group = "" if expected.rows is None else f" (in a group of {expected.rows:,} rows)"
    rank = " rows off in rank" if expected.unit == "rank" else ""
    return f"±{significant(expected.plus_minus)}{rank}{group}"


def significant(value: float) -> str:
    """Format an error with two significant digits, or as a whole number from 10 on."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
