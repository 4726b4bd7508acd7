"""Random questions about a dataset, one for each shape of question that people ask."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.real_data.tables import Dataset, Number


@dataclass(frozen=True)
class Question:
    """A query, how many of its first columns are keys, and whether a fixed bound can be compared with its bound."""

    shape: str
    sql: str
    keys: int = 0
    comparable: bool = False
    empty: float | None = None  #: the exact answer of a group without rows


class Maker:
    """Makes random questions about one dataset."""

    def __init__(self, dataset: Dataset, generator: random.Random) -> None:
        self.dataset = dataset
        self.random = generator
        self.table, self.second, self.public = dataset.tables

    def number(self) -> Number:
        """Choose a numeric column."""
        return self.random.choice(self.dataset.numbers)

    def pair(self) -> str:
        """Choose two numeric columns."""
        return ", ".join(each.name for each in self.random.sample(self.dataset.numbers, 2))

    def key(self) -> str:
        """Choose a column to group by."""
        return self.random.choice(list(self.dataset.keys))

    def condition(self) -> str:
        """Choose some of the values of a key."""
        name = self.key()
        values = self.dataset.keys[name]
        some = self.random.sample(values, self.random.randint(1, max(1, len(values) - 1)))
        return f"{name} IN ({', '.join(map(_literal, some))})"

    def question(self, shape: str) -> Question:
        """Make a random question of a shape."""
        return SHAPES[shape](self)

    def simple(self, shape: str, value: str, where: str = "", *, comparable: bool = False) -> Question:
        """Ask for one value."""
        return Question(shape, f"SELECT {value} AS v FROM {self.table}{where}", comparable=comparable)

    def by(self, shape: str, value: str, *keys: str, comparable: bool = False, empty: float | None = None) -> Question:
        """Ask for one value in each group."""
        listed = ", ".join(keys)
        sql = f"SELECT {listed}, {value} AS v FROM {self.table} GROUP BY {listed}"
        return Question(shape, sql, len(keys), comparable, empty)

    def two_keys(self) -> tuple[str, ...]:
        """Choose two columns to group by."""
        return tuple(self.random.sample(list(self.dataset.keys), 2))

    def rollup(self, shape: str) -> Question:
        """Count by two keys, by the first alone, and over all."""
        keys = ", ".join(self.two_keys())
        sql = f"SELECT {keys}, COUNT(*) AS v FROM {self.table} GROUP BY ROLLUP ({keys})"
        return Question(shape, sql, 2, empty=0)

    def joined(self, shape: str) -> Question:
        """Join the other private table of the same units."""
        rest, other = self.dataset.other
        first, second = self.dataset.unit
        on = f"{self.table}.{first} = {self.second}.{second}{rest}"
        value = self.random.choice(["COUNT(*)", f"SUM({other.name})"])
        return Question(shape, f"SELECT {value} AS v FROM {self.table} JOIN {self.second} ON {on}")

    def with_public(self, shape: str) -> Question:
        """Join the public table, and group by a column of it."""
        ours, theirs, group = self.dataset.public
        sql = (
            f"SELECT {group}, COUNT(*) AS v FROM {self.table} JOIN {self.public} ON {ours} = {theirs} GROUP BY {group}"
        )
        return Question(shape, sql, 1, empty=0)

    def per_unit(self, shape: str) -> Question:
        """Ask about totals of units: how many exceed a number of rows."""
        unit = self.dataset.unit[0]
        inner = f"SELECT {unit}, COUNT(*) AS n FROM {self.table} GROUP BY {unit}"
        return Question(shape, f"SELECT COUNT(*) AS v FROM ({inner}) AS t WHERE n > {self.random.randint(1, 20)}")

    def signed(self, shape: str) -> Question:
        """Sum a number that has both signs."""
        each = self.number()
        middle = int(each.low + (each.high - each.low) * self.random.uniform(0.02, 0.2))
        return self.simple(shape, f"SUM({each.name} - {middle})", comparable=True)

    def ratio(self, shape: str) -> Question:
        """Divide one aggregate by another."""
        each, (name, values) = self.number(), self.random.choice(list(self.dataset.keys.items()))
        one = _literal(self.random.choice(values))
        return self.simple(
            shape,
            self.random.choice(
                [
                    f"SUM({each.name}) / COUNT(*)",
                    f"SUM(CASE WHEN {name} = {one} THEN 1 ELSE 0 END) * 1.0 / COUNT(*)",
                ]
            ),
        )

    def where(self) -> str:
        """Write a random condition."""
        return f" WHERE {self.condition()}"


SHAPES: dict[str, Callable[[Maker], Question]] = {
    "count": lambda m: m.simple("count", "COUNT(*)", comparable=True),
    "filtered count": lambda m: m.simple("filtered count", "COUNT(*)", m.where(), comparable=True),
    "count by key": lambda m: m.by("count by key", "COUNT(*)", m.key(), comparable=True, empty=0),
    "count by two keys": lambda m: m.by("count by two keys", "COUNT(*)", *m.two_keys(), comparable=True, empty=0),
    "sum": lambda m: m.simple("sum", f"SUM({m.number().name})", comparable=True),
    "filtered sum": lambda m: m.simple("filtered sum", f"SUM({m.number().name})", m.where(), comparable=True),
    "sum by key": lambda m: m.by("sum by key", f"SUM({m.number().name})", m.key(), comparable=True, empty=0),
    "signed sum": lambda m: m.signed("signed sum"),
    "avg": lambda m: m.simple("avg", f"AVG({m.number().name})"),
    "avg by key": lambda m: m.by("avg by key", f"AVG({m.number().name})", m.key()),
    "variance": lambda m: m.simple("variance", f"VAR_SAMP({m.number().name})"),
    "stddev": lambda m: m.simple("stddev", f"STDDEV({m.number().name})", m.where()),
    "corr": lambda m: m.simple("corr", f"CORR({m.pair()})"),
    "regr_slope": lambda m: m.simple("regr_slope", f"REGR_SLOPE({m.pair()})"),
    "units": lambda m: m.simple("units", f"COUNT(DISTINCT {m.dataset.unit[0]})", m.where()),
    "units by key": lambda m: m.by(
        "units by key", f"COUNT(DISTINCT {m.dataset.unit[0]})", m.key(), comparable=True, empty=0
    ),
    "distinct values": lambda m: m.simple("distinct values", f"COUNT(DISTINCT {m.number().name})"),
    "median": lambda m: m.simple("median", f"MEDIAN({m.number().name})"),
    "p95": lambda m: m.simple("p95", f"QUANTILE_CONT({m.number().name}, 0.95)"),
    "extreme": lambda m: m.simple("extreme", f"{m.random.choice(['MIN', 'MAX'])}({m.number().name})"),
    "ratio": lambda m: m.ratio("ratio"),
    "join with a public table": lambda m: m.with_public("join with a public table"),
    "join of private tables": lambda m: m.joined("join of private tables"),
    "per unit": lambda m: m.per_unit("per unit"),
    "rollup": lambda m: m.rollup("rollup"),
}


def _literal(value: str | int) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
