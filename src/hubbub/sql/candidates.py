"""Finite lists to choose from, and the number of the candidate that a row lies nearest to."""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.schema import Value
from hubbub.sql import render
from hubbub.sql.expressions import Expr, Literal
from hubbub.sql.measures import clamped, double


@dataclass(frozen=True, slots=True)
class Candidates:
    """A finite list to choose from: evenly spaced numbers (low + i·step), or the declared values of a key."""

    expr: Expr
    where: Expr | None
    count: int
    low: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    values: tuple[Value, ...] | None = None

    def shown(self) -> NDArray[Any]:
        """Give the candidates as they are shown."""
        if self.values is None:
            # over one denominator, so that 0.3 is shown as 0.3
            whole = lcm(self.low.denominator, self.step.denominator)
            return (float(self.low * whole) + np.arange(self.count) * float(self.step * whole)) / whole
        out = np.empty(self.count, dtype=object)
        out[:] = [float(value) if isinstance(value, Fraction) else value for value in self.values]
        return out

    def number(self) -> str:
        """Write the number of the nearest candidate, NULL where the row is not counted."""
        x = render.expression(self.expr)
        if self.values is not None:
            listed = ", ".join(render.expression(Literal(value, self.expr.kind)) for value in self.values)
            # list_position gives 0 (or NULL) for a value that is not listed
            guard = "" if self.where is None else f" AND {render.expression(self.where)}"
            return f"CASE WHEN ({x}) IS NOT NULL{guard} THEN nullif(list_position([{listed}], {x}), 0) - 1 END"
        place = clamped(f"((({x}) - {double(self.low)}) / {double(self.step)})", 0, self.count - 1, "INTEGER")
        return place if self.where is None else f"CASE WHEN {render.expression(self.where)} THEN {place} END"
