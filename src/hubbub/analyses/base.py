"""The contract of an analysis: prepared from declarations alone, charged, then run on private sums.

    CALL kmeans(…) → prepare (pure) → charge (durable) → run → record → release

A function of a setting and the call's arguments makes a `PreparedAnalysis`. It creates every mechanism that the run
will sample, so the charged event consists of the same objects. The run may choose its later SQL by earlier *noisy*
answers: the events are fixed, the queries are not.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from hubbub.answers.estimate import Expected
from hubbub.answers.groups import GroupThreshold
from hubbub.answers.left_out import LeftOut
from hubbub.answers.release import Output
from hubbub.core.events import Event, to_facts
from hubbub.core.schema import Table, unknown_dataset
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.noise.source import RandomSource
from hubbub.sql import release_size as size
from hubbub.sql.bounding import ContributionBounds, RenderOptions
from hubbub.sql.plan import Plan
from hubbub.sql.release_size import SHORT_CELLS
from hubbub.sql.several_owners import refuse_two_owners

Arrays = Mapping[str, NDArray[Any]]


def needs_bounds(name: str) -> QueryError:
    """Return the error for an analysis of a table whose contribution bounds are found by each SQL query."""
    return QueryError(
        "HB576",
        f"{name} declares `rows: auto`, and this analysis cannot find contribution bounds by itself.",
        "Pass rows= (and groups=): the most rows of one person to use in each group. A profile recommends them.",
    )


def _with_bounds(table: Table, groups: int | None, rows: int | None) -> Table:
    """Replace bounds that are left to be found: those of units by those of an analysis, those of columns by none."""
    if any(column.auto for column in table.columns):
        columns = tuple(replace(each, bounds=None, auto=False) if each.auto else each for each in table.columns)
        table = replace(table, columns=columns)
    unit = table.unit
    if unit is None or not unit.auto or rows is None:
        return table
    fixed = replace(unit, groups=min(groups or 1, unit.groups), rows=min(rows, unit.rows), auto=False)
    return replace(table, unit=fixed)


@dataclass(frozen=True, slots=True)
class Setting:
    """What an analysis is planned with: declarations, a privacy cost, and the SQL dialect. No data.

    delta         the largest δ that may be used; 0 for none
    groups, rows  tighter contribution bounds than the owner's, if the analyst requests them
    """

    tables: Mapping[str, Table]
    epsilon: Fraction
    delta: Fraction
    render_options: RenderOptions
    groups: int | None = None
    rows: int | None = None
    max_cells: int = SHORT_CELLS  #: maximum number of values of a release

    def __post_init__(self) -> None:
        fixed = {name: _with_bounds(table, self.groups, self.rows) for name, table in self.tables.items()}
        object.__setattr__(self, "tables", fixed)

    def table(self, name: object, *, bounded: bool = True) -> Table:
        """Find a private table by its name; if it is to be `bounded`, its bounds must not be left to be found."""
        if not isinstance(name, str) or name not in self.tables:
            raise unknown_dataset(str(name), tuple(self.tables))
        table = self.tables[name]
        if table.unit is None:
            raise QueryError("HB580", f"{name} is a public table.", "Query it with SQL; it is not protected.")
        refuse_two_owners(table)
        if bounded and table.unit.auto:
            raise needs_bounds(name)
        return table

    def fits(self, rows: int, widths: Sequence[int]) -> None:
        """Reject a release that is larger than the owner allows; `widths` are the bytes of each column."""
        size.refuse(rows, widths, most=self.max_cells)


class Run(Protocol):
    """What a charged analysis runs with."""

    @property
    def source(self) -> RandomSource:
        """The randomness of every draw."""
        ...

    def ask(self, sql: str) -> Secret[Arrays]:
        """Run SQL that this package rendered. The result is a secret."""
        ...

    def progress(self, done: float, what: str) -> None:
        """Report progress from 0 to 1. All steps of a run, with their shares and words, follow from the call alone."""
        ...


#: Receives the progress of a run, from 0 to 1, and what it does now.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class EngineRun:
    """A `Run` made of functions."""

    ask: Callable[[str], Secret[Arrays]]
    source: RandomSource
    progress: Progress


@dataclass(frozen=True, slots=True)
class Published:
    """What is released: columns, a model of plain JSON values, and for each row of a query its noise ratio.

    left_out  what bounds that were chosen during the run leave out; by default it is what the plan states
    rows      the public number of rows that the answer was computed with, if it was
    measured  what the noisy sums behind the answer mean, and the sums, so that other answers can be derived from them
    """

    outputs: tuple[Output, ...]
    model: Mapping[str, Any] = field(default_factory=dict)
    ratio: Sequence[float | None] | None = None
    left_out: LeftOut | None = None
    rows: int | None = None
    measured: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Protection:
    """What is read and what is protected in it.

    tables    the tables that are read; the private ones are charged
    relation  which datasets are neighbors
    limits    what one privacy unit may contribute; None if the unit is the row or no rows are left out
    """

    tables: tuple[Table, ...]
    relation: Relation
    limits: ContributionBounds | None


@dataclass(frozen=True, kw_only=True)
class PreparedAnalysis(ABC):
    """An analysis with its privacy cost, ready to be charged and run. A SQL query is one, too.

    Theorem (Programs with fixed events). Let a program draw from mechanisms M₁, …, M_k that are fixed before it starts,
    each applied to a function whose sensitivity is within what Mᵢ is calibrated to, the function chosen by what
    M₁, …, Mᵢ₋₁ gave. Then the program is as private as all Mᵢ together: its loss is that of the charged event.
    Proof    Given the outputs so far the next function is fixed, and the loss of Mᵢ on it is bounded by Mᵢ's facts
             alone; losses of a fixed list of mechanisms add up under adaptive choice of the functions (basic
             composition, and Rényi composition at each order, need only that each bound holds for every history).
    Assumes  `run` lets nothing out of a secret but through these mechanisms, each used as often as the event says.
    Charges  `event`, before `run`.
    Tested   tests/analyses/test_base.py::test_an_analysis_draws_what_its_event_says

    epsilon     the privacy cost
    delta       the δ that is used; 0 for pure DP
    event       the facts that are charged: everything that `run` draws
    noise       the kinds of noise, for people
    derivation  how the noise follows from the declarations, line by line, for people
    expected    the expected error, as far as it is known without data
    name        the name in CALL; empty for a query
    cells       the number of cells that a query answers, where it is known in advance
    statements  the SQL that will run, where it does not depend on noisy answers
    plan        the plan of a query
    """

    protection: Protection
    epsilon: Fraction
    delta: Fraction
    event: Event
    noise: str
    derivation: tuple[str, ...]
    expected: tuple[Expected, ...]
    name: str = ""
    cells: int = 0
    statements: tuple[str, ...] = ()
    plan: Plan | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of all queries that are run."""
        return () if self.plan is None else (self.plan,)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that are read; the private ones are charged."""
        return self.protection.tables

    @property
    def private(self) -> list[Table]:
        """The tables that are charged."""
        return [table for table in self.tables if table.unit is not None]

    @property
    def relation(self) -> Relation:
        """Which datasets are neighbors."""
        return self.protection.relation

    @property
    def limits(self) -> ContributionBounds | None:
        """What one privacy unit may contribute."""
        return self.protection.limits

    def left_out(self) -> LeftOut:
        """State what the bounds leave out, as far as the plan tells."""
        names = " and ".join(table.name for table in self.private)
        units = [table.unit.column for table in self.private if table.unit is not None]
        if self.limits is None or not units or units[0] is None:
            return LeftOut(names)
        if self.limits.auto:
            return LeftOut(names, units[0], maximum=self.limits.rows)
        return LeftOut(names, units[0], self.limits.groups, self.limits.rows)

    def receipt(self) -> dict[str, Any]:
        """Give what the receipt says about this kind of analysis only."""
        return {"analysis": self.name}

    def group_threshold(self, units: int | None) -> GroupThreshold | None:  # noqa: ARG002 - for queries
        """State how many privacy units a group needs to be shown, if groups are selected privately."""
        return None

    def never_equal(self) -> tuple[str, ...]:
        """Name constants that a column never equals, because they are not among its declared values, for a query."""
        return ()

    def joint_intervals(self) -> str:
        """State that the intervals hold for the whole answer at once, if that was requested of a query."""
        return ""

    def scaling(self) -> Iterator["PreparedAnalysis"]:
        """Give the analysis at several privacy costs, the smallest first, for an estimate."""
        yield self

    # What follows from the plan alone is worked out once for a plan that is kept. Nobody changes what these give.

    @cached_property
    def errors_by_price(self) -> tuple[tuple[Fraction, tuple[Expected, ...]], ...]:
        """The expected errors at several privacy costs, for an estimate."""
        return tuple((each.epsilon, each.expected) for each in self.scaling())

    @cached_property
    def stated_left_out(self) -> LeftOut:
        """What the bounds leave out."""
        return self.left_out()

    @cached_property
    def receipt_facts(self) -> Mapping[str, Any]:
        """What the receipt says about this kind of analysis only."""
        return self.receipt()

    @cached_property
    def event_facts(self) -> Mapping[str, Any]:
        """The facts of the event."""
        return to_facts(self.event)

    @cached_property
    def table_facts(self) -> Sequence[Mapping[str, Any]]:
        """The declarations of the tables."""
        return [table.to_json() for table in self.tables]

    @abstractmethod
    def run(self, run: Run) -> Published:
        """Run it after the charge. Whatever is raised in here is replaced by one constant message."""


@runtime_checkable
class Enumerable(Protocol):
    """A prepared analysis whose run samples nothing, and whose later loss can be enumerated on a small scale."""

    def enumerated(self, model: Mapping[str, Any]) -> tuple[str, bool]:
        """Enumerate the loss of a released model over all neighbors; return a line and whether the charge covers it."""
        ...
