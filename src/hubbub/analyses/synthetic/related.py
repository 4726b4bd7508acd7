"""Two related synthetic tables: people with their number of rows, then these rows given what their person is like.

CALL synthetic_tables(table => 'patients', columns => ['sex', 'age'], child => 'visits', child_columns => ['kind'])

The release is their left join: a row for each row of the child table, and one for each person without any. The model
splits it again: `hubbub.model(release).write("folder")` writes both tables, with keys that always match.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from hubbub.analyses.base import EngineRun, PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.synthetic.columns import Levels, SyntheticColumn, asked
from hubbub.analyses.synthetic.conditional import rows_given
from hubbub.analyses.synthetic.estimation import NoisyMarginal
from hubbub.analyses.synthetic.junction_tree import Floats, Pair
from hubbub.analyses.synthetic.learning import Learned, Learner
from hubbub.analyses.synthetic.model import Whole
from hubbub.analyses.synthetic.noise import SynthesisNoise
from hubbub.analyses.synthetic.select import small_enough
from hubbub.analyses.synthetic.synthetic import MAX_PAIRS, MAX_ROWS, ROUNDS, SHARES, usual_pairs
from hubbub.analyses.tables.axes import Axis
from hubbub.analyses.tables.marginals import marginal
from hubbub.analyses.tables.table_release import expected, free, table_budgets
from hubbub.answers.cell_text import Cell
from hubbub.answers.release import Output
from hubbub.core import numbers
from hubbub.core.events import Composed
from hubbub.core.schema import Bounds, Column, Kind, Table
from hubbub.errors import QueryError
from hubbub.sql.dialects.duckdb import DUCKDB
from hubbub.sql.noise import standard_deviation
from hubbub.sql.noise_budget import NoiseBudget

#: The share of the budget for people, with their number of rows; the rest is for the rows.
PEOPLE = 0.4
#: Most rows of a synthetic person, and unless the analyst chooses; levels of their number.
MAX_OF_ONE, USUAL_OF_ONE, LEVELS = 128, 32, 24
#: Most cells of the model of rows, and of its part about people.
MAX_CELLS, MAX_ABOVE = 100_000, 10_000
#: The rows of each person that are learnt from.
CHILD_ROWS = 1
#: The number of the row of a person in the release.
NUMBER = "row"


def synthetic_tables(
    setting: Setting,
    *,
    table: str,
    columns: list[object],
    child: str,
    child_columns: list[object],
    size: int | None = None,
    pairs: int | None = None,
    child_pairs: int | None = None,
    child_rows: int | None = None,
    most: int | None = None,
    rounds: int | None = None,
    noise: str | None = None,
) -> "RelatedSynthesis":
    """Prepare synthetic people and synthetic rows of each.

    table          the table with one row for each person; `columns` are columns or axes as in `synthetic`
    child          the table with several rows of each person, of the same privacy units, with `child_columns`
    size           the number of people; by default about that of the data
    pairs          the number of pairs of columns to measure for people, and `child_pairs` for their rows
    child_rows     how many rows of each person to learn from, chosen by a hash: fewer rows need less noise
    most           the most rows of a synthetic person; people with more of them count as having so many
    rounds         how often each model is fitted
    """
    people, rows = setting.table(table), setting.table(child)
    bound = _checked(people, rows, setting)
    setting = replace(setting, groups=None, rows=None)  # these are for rows alone, and part of the bound
    most = min(bound, USUAL_OF_ONE) if most is None else numbers.integer(most, "most", 1, min(bound, MAX_OF_ONE))
    used = min(most, CHILD_ROWS) if child_rows is None else numbers.integer(child_rows, "child_rows", 1, most)
    few = _few(setting, rows, used)
    on = asked(people, columns)
    below = asked(rows, child_columns)
    names = [each.name for each in (*on, *below)]
    if len(set(names)) < len(names):
        raise QueryError("HB592", "A column is in both tables.", "Rename it in one of them, in a view.")
    degree = _degree(free(f"{child}_rows", {*names}), most)
    size = None if size is None else numbers.integer(size, "size", 1, MAX_ROWS)
    turns = numbers.integer(rounds, "rounds", 1, 10) if rounds is not None else ROUNDS
    budget = table_budgets(setting, noise)[-1]
    first, second = (NoiseBudget(budget.noise, part) for part in budget.portions([PEOPLE, 1 - PEOPLE]))

    of_people, source = (*on, degree), _people(people, rows, on, degree.name, most)
    wide = tuple(combinations(range(len(of_people)), 2))
    above = Learner(
        of_people,
        SynthesisNoise(
            first,
            usual_pairs(len(of_people)) if pairs is None else numbers.integer(pairs, "pairs", 1, MAX_PAIRS),
            SHARES,
            tuple(marginal(setting, table, [each.axis], source=source) for each in of_people),
            tuple(marginal(setting, table, [of_people[i].axis, of_people[j].axis], source=source) for i, j in wide),
        ),
        turns,
        wide,
        first=len(of_people) - 1,
    )
    every, source = (*of_people, *below), _rows(people, rows, on, below, degree.name, most)
    crossed = tuple((i, j) for i, j in combinations(range(len(every)), 2) if j >= len(of_people))
    beneath = Learner(
        below,
        SynthesisNoise(
            second,
            min(MAX_PAIRS, 4 * len(below))
            if child_pairs is None
            else numbers.integer(child_pairs, "child_pairs", 1, MAX_PAIRS),
            SHARES,
            tuple(marginal(few, child, [each.axis], source=source) for each in below),
            tuple(marginal(few, child, [every[i].axis, every[j].axis], source=source) for i, j in crossed),
            others=len(every) - 1,
        ),
        turns,
        crossed,
        first=len(below),
        cells=MAX_CELLS,
    )
    return RelatedSynthesis(
        protection=replace(beneath.noises.twos[0].protection, tables=(people, rows)),
        epsilon=setting.epsilon,
        delta=setting.delta if budget.noise == "gaussian" else Fraction(0),
        event=Composed((*above.noises.event.parts, *beneath.noises.event.parts)),
        noise=budget.noise,
        derivation=(
            f"{PEOPLE:.0%} for {table} with the number of rows in {child}, at most {most}:",
            *above.noises.derivation,
            f"{1 - PEOPLE:.0%} for {child}, given what their person is like, from at most {used} of each person:",
            *beneath.noises.derivation,
        ),
        expected=tuple(
            expected(each.name, budget.half_width(standard_deviation(own)))
            for learner in (above, beneath)
            for each, own in zip(learner.columns, learner.noises.counted, strict=True)
        ),
        names=(table, child, people.privacy_id or "", rows.privacy_id or ""),
        size=size,
        max_rows=max(1, setting.max_cells // (len(names) + 2)),
        people=above,
        rows=beneath,
        used=used,
    )


def _few(setting: Setting, rows: Table, used: int) -> Setting:
    """Give a setting in which a person has at most so many rows, of which those with the least hashes count."""
    if rows.unit is None:
        raise AssertionError("the table was checked")
    unit = replace(rows.unit, groups=used, rows=used, rows_total=used)
    return replace(setting, tables={**setting.tables, rows.name: replace(rows, unit=unit)})


def _checked(people: Table, rows: Table, setting: Setting) -> int:
    """Check that both tables are of the same units, and one has a row for each; return the most rows of one unit."""
    for table in (people, rows):
        if table.unit is None or table.privacy_id is None:
            raise QueryError(
                "HB592", f"No visible column of {table.name} names its person.", "Declare one as its unit."
            )
    if people.unit is None or rows.unit is None or people.unit.groups * people.unit.rows > 1:
        raise QueryError("HB592", f"{people.name} may have several rows of one person.", "Declare groups: 1, rows: 1.")
    if people.name == rows.name or people.unit.entity != rows.unit.entity or not people.unit.entity:
        raise QueryError(
            "HB592",
            f"{people.name} and {rows.name} are not tables of the same people.",
            "Declare the same entity in the units of both, or `via` in that of the second.",
        )
    bound = min(rows.unit.groups, setting.groups or rows.unit.groups) * min(
        rows.unit.rows, setting.rows or rows.unit.rows
    )
    return bound if rows.unit.rows_total is None else min(bound, rows.unit.rows_total)


def _degree(name: str, most: int) -> SyntheticColumn:
    """Give the column of the number of rows of a person."""
    values = tuple(range(most + 1))
    column = Column(name, Kind.INTEGER, Bounds(Fraction(0), Fraction(most)))
    return SyntheticColumn(Axis(name, Kind.INTEGER, values, DUCKDB.identifier(name), values), column, LEVELS)


def _numbers(rows: Table, degree: str) -> str:
    """Write the query for the number of rows of each person."""
    link = DUCKDB.identifier(rows.privacy_id or "")
    return f"SELECT {link}, COUNT(*) AS {DUCKDB.identifier(degree)} FROM {DUCKDB.identifier(rows.name)} GROUP BY {link}"  # noqa: S608 - declared names


def _selected(alias: str, columns: Sequence[SyntheticColumn]) -> list[str]:
    return [f"{alias}.{DUCKDB.identifier(each.name)} AS {DUCKDB.identifier(each.name)}" for each in columns]


def _people(people: Table, rows: Table, on: Sequence[SyntheticColumn], degree: str, most: int) -> str:
    """Write the query for people with their number of rows."""
    name = DUCKDB.identifier(degree)
    chosen = [*_selected("p", on), f"LEAST(COALESCE(w.{name}, 0), {most}) AS {name}"]
    return (
        f"SELECT {', '.join(chosen)} FROM {DUCKDB.identifier(people.name)} AS p "  # noqa: S608 - declared names
        f"LEFT JOIN ({_numbers(rows, degree)}) AS w "
        f"ON w.{DUCKDB.identifier(rows.privacy_id or '')} = p.{DUCKDB.identifier(people.privacy_id or '')}"
    )


def _rows(
    people: Table,
    rows: Table,
    on: Sequence[SyntheticColumn],
    below: Sequence[SyntheticColumn],
    degree: str,
    most: int,
) -> str:
    """Write the query for rows with what their person is like, and has rows."""
    name, key = DUCKDB.identifier(degree), DUCKDB.identifier(people.privacy_id or "")
    link = DUCKDB.identifier(rows.privacy_id or "")
    chosen = [*_selected("p", on), *_selected("v", below), f"LEAST(w.{name}, {most}) AS {name}"]
    return (
        f"SELECT {', '.join(chosen)} FROM {DUCKDB.identifier(rows.name)} AS v "  # noqa: S608 - declared names
        f"JOIN {DUCKDB.identifier(people.name)} AS p ON v.{link} = p.{key} "
        f"JOIN ({_numbers(rows, degree)}) AS w ON w.{link} = p.{key}"
    )


@dataclass(frozen=True, kw_only=True)
class RelatedSynthesis(PreparedAnalysis):
    """Prepared synthetic people with their rows.

    Theorem (Related tables). The two syntheses cost no more than the budget together, and a privacy unit is one person
    with all rows: each count moves between neighbors by at most what the planner states for a query that joins the
    tables on the privacy ID.
    Proof    Both parts are "Select, measure, generate" over marginals of two subqueries: people, each with the number
             of their rows, cut at a maximum; and rows, each with the columns and the number of their person. A person's
             row in the first changes with that person's rows alone, and so do all rows of that person in the second;
             the bounds on both are those of "Counts of a marginal", whose plan bounds the units of the subquery. The
             second part reads, besides its own counts, synthetic people alone, which are noisy already; its events are
             fixed before the run, so both parts compose ("Programs with fixed events").
    Assumes  as in "Select, measure, generate". Rows of one person are drawn independently, given the person's columns.
    Charges  the events of both parts, whatever is selected.
    Tested   tests/analyses/synthetic/test_related.py::test_one_person_with_all_rows_moves_counts_by_no_more_than_stated
             tests/analyses/test_base.py::test_an_analysis_draws_what_its_event_says
    """

    names: tuple[str, str, str, str]
    size: int | None
    max_rows: int
    people: Learner
    rows: Learner
    used: int

    def run(self, run: Run) -> Published:
        """Learn and draw people, then learn their rows and draw them given their people."""
        above = self.people.learn(_part(run, 0.0, 0.4))
        some = np.random.default_rng(run.source.words(4).tolist())  # privacy does not depend on the randomness of rows
        drawn = above.model.rows(self.size or min(max(1, round(above.total)), self.max_rows, MAX_ROWS), some)
        degrees = np.array(above.known[-1].values(drawn[:, -1], some), dtype=np.int64)
        # a person without rows has one in the release; people beyond its size are left out
        kept = int(np.searchsorted(np.cumsum(np.maximum(degrees, 1)), self.max_rows, side="right"))
        drawn, degrees = drawn[: max(1, kept)], degrees[: max(1, kept)]
        of_people = self.people.report(_part(run, 0.4, 0.45), above, drawn)
        owner = np.repeat(np.arange(len(drawn)), degrees)
        below = self.rows.learn(
            _part(run, 0.45, 0.9),
            above.known,
            lambda total: _told(above, drawn, np.minimum(degrees, self.used), max(total, 1.0), self._deviation),
        )
        run.progress(0.9, "drawing rows")
        given = {place: drawn[owner, place] for place in range(drawn.shape[1])}
        made = rows_given(below.model, given, len(owner), some)
        run.progress(0.95, "comparing")
        # as many of each person as the data was counted with
        compared = made[np.arange(len(owner)) - (np.cumsum(degrees) - degrees)[owner] < self.used]
        of_rows = self.rows.report(run, below, compared)
        outputs = self._outputs(above.known, below.known[len(above.known) :], drawn, degrees, made, some)
        return Published(
            outputs,
            {
                "names": dict(zip(("table", "child", "id", "link"), self.names, strict=True)),
                "columns": [each.name for each in self.people.columns[:-1]],
                "child_columns": [each.name for each in self.rows.columns],
                "table": self.people.describe(above, of_people, drawn),
                "child": self.rows.describe(below, of_rows, compared),
            },
        )

    @property
    def _deviation(self) -> float:
        return standard_deviation(self.rows.noises.measured)

    def _outputs(
        self,
        above: Sequence[Levels],
        below: Sequence[Levels],
        drawn: Whole,
        degrees: Whole,
        made: Whole,
        some: np.random.Generator,
    ) -> tuple[Output, ...]:
        """Write the left join: people in order, the rows of each one after the other."""
        times = np.maximum(degrees, 1)
        place = np.repeat(np.arange(len(drawn)), times)
        number = np.arange(len(place)) - np.repeat(np.cumsum(times) - times, times) + 1
        empty = np.repeat(degrees == 0, times)
        taken = {each.name for each in (*self.people.columns, *self.rows.columns)}
        key = free(self.names[2], taken)
        outputs = [Output(key, "integer", (place + 1).tolist())]
        for i, (each, own) in enumerate(zip(self.people.columns[:-1], above, strict=False)):
            values = np.array([*own.values(drawn[:, i], some), None], dtype=object)[:-1]
            outputs.append(Output(each.name, each.column.kind.value, values[place].tolist()))
        numbered: list[Cell] = [None if none else int(each) for none, each in zip(empty, number, strict=True)]
        outputs.append(Output(free(NUMBER, {*taken, key}), "integer", numbered))
        for i, (each, own) in enumerate(zip(self.rows.columns, below, strict=True)):
            cells = np.full(len(place), None, dtype=object)
            cells[~empty] = np.array([*own.values(made[:, len(above) + i], some), None], dtype=object)[:-1]
            outputs.append(Output(each.name, each.column.kind.value, cells.tolist()))
        return tuple(outputs)


def _told(above: Learned, drawn: Whole, degrees: Whole, total: float, deviation: float) -> list[NoisyMarginal]:
    """Give what synthetic people tell about rows: their columns and pairs, each person as often as he or she has rows.

    These stand for measurements, so that the model of the rows knows how the columns of people go together.
    """
    scale = total / max(1, int(degrees.sum()))
    found = []
    sizes = [each.size for each in above.known]
    for columns in _structure(above):
        at = np.zeros(len(drawn), dtype=np.int64)
        for column in columns:
            at = at * sizes[column] + drawn[:, column]
        groups = tuple(tuple(range(sizes[column])) for column in columns)
        sums: Floats = np.bincount(at, degrees, prod(map(len, groups))).astype(np.float64) * scale
        found.append(NoisyMarginal(columns, groups, sums, deviation))
    return found


def _structure(above: Learned) -> list[tuple[int, ...]]:
    """List the columns of people, and those of their selected pairs that leave the model small."""
    sizes = [each.size for each in above.known]
    joined: list[Pair] = []
    for each in above.measured[above.selected :]:
        pair = (each.columns[0], each.columns[1])
        if pair not in joined and small_enough(sizes, joined, [pair], MAX_ABOVE):
            joined.append(pair)
    return [*((place,) for place in range(len(sizes))), *joined]


def _part(run: Run, low: float, high: float) -> Run:
    """Report the progress of a part as a share of the whole."""
    return EngineRun(run.ask, run.source, lambda done, what: run.progress(low + (high - low) * done, what))
