"""The part that all programs have in common once they are prepared."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.analyses.programs.inputs import ProgramInput
from hubbub.answers.estimate import Expected
from hubbub.core.events import Event
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.sql.bounding import Limits


@dataclass(frozen=True, kw_only=True)
class Program:
    """A priced program: see `hubbub.analyses.base.Prepared`. What it draws was made before it was charged."""

    ground: ProgramInput
    epsilon: Fraction
    delta: Fraction
    event: Event
    noise: str
    derivation: tuple[str, ...]
    expected: tuple[Expected, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The table that it reads."""
        return (self.ground.table,)

    @property
    def relation(self) -> Relation:
        """What neighbors are."""
        return self.ground.relation

    @property
    def limits(self) -> Limits | None:
        """What one unit may contribute; None where the unit is the row."""
        return self.ground.limits
