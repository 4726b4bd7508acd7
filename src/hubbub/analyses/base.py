"""What an analysis is: planned from declarations alone, charged whole, then run on private sums.

    CALL kmeans(…) → prepare (pure) → charge (durable) → run → record → release

`prepare` is a function from a setting and the call's arguments to something `Prepared`: it makes every mechanism that
the run will draw from, so the event that is charged is made of the very objects that draw. The run may choose its later
SQL by earlier *noisy* answers (the events are fixed, the questions are not): see `Prepared`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output
from hubbub.core.events import Event
from hubbub.core.schema import Table, unknown
from hubbub.core.secret import Secret, together
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.noise.source import Source
from hubbub.sql import size
from hubbub.sql.bounding import Limits, Words
from hubbub.sql.estimates import Integers
from hubbub.sql.finish import Answer, exact, finish
from hubbub.sql.plan import Plan
from hubbub.sql.size import MOST_CELLS

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Setting:
    """What an analysis is planned with: declarations, a price, and the words for the engine. No data.

    delta         the most that may be used; 0 where none may
    groups, rows  tighten what the owner lets one unit contribute, where the analyst says so
    """

    tables: Mapping[str, Table]
    epsilon: Fraction
    delta: Fraction
    words: Words
    groups: int | None = None
    rows: int | None = None
    max_cells: int = MOST_CELLS  #: values that a release may have

    def table(self, name: object) -> Table:
        """Find a private table by its name."""
        if not isinstance(name, str) or name not in self.tables:
            raise unknown(str(name), tuple(self.tables))
        found = self.tables[name]
        if found.unit is None:
            raise QueryError("HB580", f"{name} is a public table.", "Read it as it is: nothing in it is protected.")
        return found

    def fits(self, rows: int, widths: Sequence[int]) -> None:
        """Refuse a release of so many rows, of columns of so many bytes, where that is more than the owner allows."""
        size.refuse(rows, widths, most=self.max_cells)


class Run(Protocol):
    """What a charged analysis runs with."""

    @property
    def source(self) -> Source:
        """The randomness of every draw."""
        ...

    def ask(self, sql: str) -> Secret[Arrays]:
        """Run one text that this package rendered; data comes back as a secret."""
        ...

    def progress(self, done: float, what: str) -> None:
        """Say how far it is, from 0 to 1. All steps of a run, their shares and words, follow from the call alone."""
        ...


@dataclass(frozen=True, slots=True)
class Published:
    """What is released: columns like those of a query, and a model: plain JSON values, public from here on."""

    outputs: tuple[Output, ...]
    model: Mapping[str, Any] = field(default_factory=dict)


class Prepared(Protocol):
    """A priced analysis, ready to be charged and run.

    Theorem (Programs with fixed events). Let a program draw from mechanisms M₁, …, M_k that are fixed before it starts,
    each applied to a function whose sensitivity is within what Mᵢ is calibrated to, the function chosen by what
    M₁, …, Mᵢ₋₁ gave. Then the program is as private as all Mᵢ together: its loss is that of the charged event.
    Proof    Given the outputs so far the next function is fixed, and the loss of Mᵢ on it is bounded by Mᵢ's facts
             alone; losses of a fixed list of mechanisms add up under adaptive choice of the functions (basic
             composition, and Rényi composition at each order, need only that each bound holds for every history).
    Assumes  `run` lets nothing out of a secret but through these mechanisms, each used as often as the event says.
    Charges  `event`, before `run`.
    Tested   tests/analyses/test_base.py::test_an_analysis_draws_what_its_event_says
    """

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that it reads; the private ones are charged."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """What it costs."""
        ...

    @property
    def delta(self) -> Fraction:
        """The δ of it that is used; 0 for a pure loss."""
        ...

    @property
    def event(self) -> Event:
        """The facts that are charged: everything that `run` draws."""
        ...

    @property
    def relation(self) -> Relation:
        """What neighbors are."""
        ...

    @property
    def limits(self) -> Limits | None:
        """What one unit may contribute; None where the unit is the row."""
        ...

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows from the declarations, line by line, for people."""
        ...

    @property
    def expected(self) -> tuple[Expected, ...]:
        """What error to expect, as far as it can be said without data."""
        ...

    @property
    def noise(self) -> str:
        """The kinds of noise, in a word or two."""
        ...

    def run(self, run: Run) -> Published:
        """Do it. Whatever is raised in here reaches nobody: the analyst hears one constant."""
        ...


@runtime_checkable
class Enumerable(Protocol):
    """A priced analysis whose run draws nothing, and whose later loss can be enumerated in small."""

    def enumerated(self, model: Mapping[str, Any]) -> tuple[str, bool]:
        """Enumerate all neighbors of the declared relation under a released model; say whether the charge covers it."""
        ...


def noisy(run: Run, plan: Plan) -> Answer:
    """Answer a planned query with its own noise (its event must be part of the event that was charged)."""
    return _tables(run, plan).through(lambda tables: finish(plan, tables, run.source, raw=True))


def vectors(run: Run, plan: Plan) -> Secret[tuple[Integers, ...]]:
    """Give the exact integers of a planned query's measures over all cells, to be put through a mechanism of your own.

    The plan's own noise is not used; `plan.measures[i].sensitivity` says how far a unit moves the i-th vector.
    """
    return Secret(_tables(run, plan).through(lambda tables: exact(plan, tables)[0]))


def _tables(run: Run, plan: Plan) -> Secret[dict[str, Arrays]]:
    return together({each.name: run.ask(each.sql) for each in plan.statements})
