"""The exact answer to a question, and the error of the best fixed contribution bounds, chosen in hindsight."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from statistics import mean, median
from typing import Any

import duckdb
from benchmarks.real_data.questions import Question
from benchmarks.real_data.tables import Dataset

from hubbub.config import load
from hubbub.noise.source import system
from hubbub.sql.auto_bounds import levels_up_to
from hubbub.sql.bind import bind
from hubbub.sql.finish import Tables, finish
from hubbub.sql.plan import plan
from hubbub.sql.query import Query

#: Samples with which all bounds are compared, and those with which the best few are measured again.
_FIRST, _SECOND, _FEW = 5, 41, 3


class Exact:
    """One question about one dataset, answered exactly by DuckDB."""

    def __init__(
        self, dataset: Dataset, folder: Path, connection: duckdb.DuckDBPyConnection, question: Question
    ) -> None:
        self.dataset = dataset
        self._folder = folder
        self._question = question
        self._connection = connection
        for name in dataset.tables:
            connection.execute(f"CREATE OR REPLACE VIEW {name} AS FROM read_parquet('{folder / name}.parquet')")
        rows = connection.execute(question.sql).fetchall()
        self._values = {row[: question.keys]: row[-1] for row in rows}
        self._results: dict[str, dict[str, Any]] = {}

    def of(self, keys: Sequence[Any]) -> float | None:
        """Return the exact answer of a group; None if there is none, as for the average of nothing."""
        value = self._values.get(tuple(keys), self._question.empty)
        return None if value is None else float(value)

    @cached_property
    def _query(self) -> Query:
        tables = {name: each.table for name, each in load(self._folder / "hubbub.yaml").datasets.items()}
        return bind(self._question.sql, tables=tables)

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        """The fixed bounds to try: (groups, rows) up to what some unit has."""
        unit, keys = self.dataset.unit[0], self._question.keys
        listed = ", ".join(["1", *self._question.sql.removeprefix("SELECT ").split(", ")[:keys]])
        counts = f"SELECT {unit} AS u, count(*) AS n FROM {self.dataset.tables[0]} GROUP BY {unit}, {listed}"
        most = self._connection.execute(
            f"SELECT max(c), max(n) FROM (SELECT count(*) AS c, max(n) AS n FROM ({counts}) GROUP BY u)"
        ).fetchone()
        groups, rows = most or (1, 1)
        steps = [1, 2, 4, 8, 16, 32, 64]
        if self._question.shape == "units by key":
            rows = 1
        return [
            (group, row) for group in dict.fromkeys(min(step, groups) for step in steps) for row in levels_up_to(rows)
        ]

    def _errors(self, bounds: tuple[int, int], epsilon: Fraction, times: int) -> list[float]:
        """Return the mean error over the groups, for each of several samples of noise."""
        groups, rows = bounds
        planned = plan(self._query, epsilon=epsilon, delta=Fraction(0), salt="salt", groups=groups, rows=rows)
        tables: Tables = {each.name: self._run(each.sql) for each in planned.statements}
        errors = []
        for _ in range(times):
            answer = finish(planned, tables, system())
            pairs = ((float(row[-1]), self.of(row[: self._question.keys])) for row in answer.rows)
            errors.append(mean(abs(value - truth) for value, truth in pairs if truth is not None))
        return errors

    def _run(self, sql: str) -> dict[str, Any]:
        if sql not in self._results:
            self._results[sql] = dict(self._connection.execute(sql).fetchnumpy())
        return self._results[sql]

    def best_error(self, epsilon: Fraction) -> float:
        """Return the median error with the best fixed bounds at the same ε."""
        ranked = sorted(self._bounds, key=lambda each: median(self._errors(each, epsilon, _FIRST)))
        return min(median(self._errors(each, epsilon, _SECOND)) for each in ranked[:_FEW])
