"""What a query would cost and how exact it would be, told before anything is paid."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from hubbub.core.numbers import brief
from hubbub.core.wire import Json


@dataclass(frozen=True, slots=True)
class Expected:
    """What error to expect in one aggregate: ± at the level, for a group of `rows` rows (None: whatever the group).

    `unit` is "value", or "rank" where a quantile or extreme is off by so many rows in their order.
    """

    name: str
    plus_minus: float
    rows: int | None
    relative: float
    unit: Literal["value", "rank"] = "value"


@dataclass(frozen=True)
class Estimate:
    """A plan for people: free, and without a look at the data.

    admitted   whether the caps would admit it now; `largest` is the most that they would
    scaling    (ε, ± of each aggregate) around the ε asked for
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
        """Give it for JSON; exact numbers as text."""
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
        """Read what `form` gives."""
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
        price = f"ε = {brief(self.epsilon)}" + (f", δ = {brief(self.delta)}" if self.delta else "")
        lines = [f"costs {price} on {', '.join(self.datasets)}; nothing was run or charged"]
        lines += [f"  {each.name} {margin(each)}" for each in self.expected]
        if not self.admitted:
            lines.append(f"  not admitted now: up to ε = {brief(self.largest)} is left")
        return "\n".join(lines)


def _expected(form: Mapping[str, Any]) -> tuple[Expected, ...]:
    return tuple(Expected(**each) for each in form["expected"])


def margin(each: Expected) -> str:
    """Show an expected error.

    >>> margin(Expected("n", 30.0, None, 0.1)), margin(Expected("a", 1.25, 1000, 0.1))
    ('±30', '±1.2 (in a group of 1,000 rows)')
    """
    where = "" if each.rows is None else f" (in a group of {each.rows:,} rows)"
    rank = " rows off in rank" if each.unit == "rank" else ""
    return f"±{significant(each.plus_minus)}{rank}{where}"


def significant(value: float) -> str:
    """Show two digits of an error, or all of a whole one."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
