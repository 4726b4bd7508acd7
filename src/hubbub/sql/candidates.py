"""Finite lists of candidates for private selection, and the nearest candidate of each row.

Tested in tests/sql/test_aggregates.py.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Value
from hubbub.sql import render
from hubbub.sql.dialects.base import Dialect
from hubbub.sql.expressions import Expr
from hubbub.sql.measures import clamped


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a selection: evenly spaced numbers (low + i·step) or the declared values of a column."""

    expr: Expr
    where: Expr | None
    count: int
    low: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    values: tuple[Value, ...] | None = None

    def shown(self) -> NDArray[Any]:
        """Return the candidates as shown to analysts."""
        if self.values is None:
            # use a common scale, so that 0.3 is shown as 0.3
            scale = lcm(self.low.denominator, self.step.denominator)
            return (float(self.low * scale) + np.arange(self.count) * float(self.step * scale)) / scale
        out = np.empty(self.count, dtype=object)
        out[:] = [float(value) if isinstance(value, Fraction) else value for value in self.values]
        return out

    def raw(self, dialect: Dialect) -> str:
        """Write the position of a number among the candidates, as a DOUBLE before clamping."""
        if self.values is not None:
            return ""
        shifted = f"(({render.expression(self.expr, dialect)}) - {dialect.number(self.low)})"
        return dialect.quotient(shifted, self.step)

    def value(self, raw: str, dialect: Dialect) -> str:
        """Write the index of the nearest candidate, or NULL if the row is not counted."""
        guard = "TRUE" if self.where is None else render.expression(self.where, dialect)
        if self.values is not None:
            x = render.expression(self.expr, dialect)
            place = dialect.position([dialect.literal(value, self.expr.kind) for value in self.values], x)
            return f"CASE WHEN ({x}) IS NOT NULL AND {guard} THEN {place} END"
        place = clamped(raw, 0, self.count - 1, dialect.integers[32], dialect)
        return place if self.where is None else f"CASE WHEN {guard} THEN {place} END"
