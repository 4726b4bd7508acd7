"""A small world for private programs: tables in DuckDB, a setting, and a run that counts what is drawn."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.cost import ZERO, privacy_cost
from hubbub.accounting.filters import Budget, admits
from hubbub.analyses.base import Arrays, PreparedAnalysis, Published, Setting
from hubbub.answers.release import Release
from hubbub.core.events import Composed, Event
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.secret import Secret
from hubbub.core.unit import Relation
from hubbub.noise.source import Keystream, RandomSource
from hubbub.sql.bounding import RenderOptions

Values = Mapping[str, NDArray[Any] | Sequence[object]]

DATA = Path(__file__).parents[4] / "shared" / "data"  #: real data, on our own machines only
ADULT = DATA / "adult.csv"


@dataclass
class World:
    """One connection with tables, and what is declared of them."""

    connection: duckdb.DuckDBPyConnection
    tables: dict[str, Table] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    drawn: Counter[Event] = field(default_factory=Counter)
    source: RandomSource = field(default_factory=Keystream)
    steps: list[float] = field(default_factory=list)

    def put(
        self,
        name: str,
        values: Values,
        *,
        unit: PrivacyUnit | None = None,
        relation: Relation = Relation.ADD_REMOVE,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        lists: Mapping[str, tuple[object, ...]] | None = None,
    ) -> None:
        """Make a table; columns with bounds are numbers, with lists texts or whole numbers, others units or flags."""
        made = {column: np.asarray(each) for column, each in values.items()}
        self.connection.register("made", made)
        self.connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM made')
        self.connection.unregister("made")
        columns = []
        for column, each in made.items():
            if bounds and column in bounds:
                low, high = bounds[column]
                columns.append(Column(column, Kind.REAL, Bounds(Fraction(low), Fraction(high))))
            elif lists and column in lists:
                kind = Kind.TEXT if isinstance(lists[column][0], str) else Kind.INTEGER
                columns.append(Column(column, kind, values=lists[column]))  # type: ignore[arg-type]
            else:
                columns.append(Column(column, Kind.BOOLEAN if each.dtype == bool else Kind.INTEGER))
        self.tables[name] = Table(name, tuple(columns), unit or PrivacyUnit(None), relation)

    def setting(self, epsilon: object = 1, delta: object = 0, **limits: int) -> Setting:
        """Give what an analysis is planned with."""
        return Setting(self.tables, Fraction(str(epsilon)), Fraction(str(delta)), RenderOptions("salt"), **limits)

    def ask(self, sql: str) -> Secret[Arrays]:
        """Run a text."""
        self.asked.append(sql)
        return Secret({name: np.asarray(each) for name, each in self.connection.execute(sql).fetchnumpy().items()})

    def progress(self, done: float, what: str) -> None:
        """Remember how far it was."""
        assert what
        self.steps.append(done)

    def run(self, prepared: PreparedAnalysis, name: str) -> tuple[Published, Release]:
        """Run a prepared analysis and make a release of it."""
        self.asked.clear()
        self.drawn.clear()
        self.steps.clear()
        found = prepared.run(self)
        rows = len(found.outputs[0].values)
        assert all(len(each.values) == rows for each in found.outputs)
        assert self.steps == sorted(self.steps)
        receipt = {"analysis": name}
        release = Release(found.outputs, [None] * rows, prepared.epsilon, prepared.delta, receipt, model=found.model)
        return found, release


def charged(event: Event) -> Counter[Event]:
    """Give the draws that an event says."""
    assert isinstance(event, Composed)
    found: Counter[Event] = Counter()
    for part, count in event.parts:
        found[part] += count
    return found


def affords(prepared: PreparedAnalysis) -> bool:
    """Say whether a budget of just the price named admits what is charged."""
    return admits(Budget(prepared.epsilon, prepared.delta), ZERO, privacy_cost(prepared.event))


def adult() -> dict[str, NDArray[np.int64]]:
    """Read UCI Adult, integer-coded, column by column."""
    names, *rows = ADULT.read_text().splitlines()
    table = np.array([row.split(",") for row in rows if row], dtype=np.int64)
    return {name: table[:, j] for j, name in enumerate(names.split(","))}
