"""A town with people, edges and baskets, and for each analysis a call that it can answer there."""

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.fixtures.repeated_sql import fetch

from hubbub.analyses.base import Arrays
from hubbub.core.secret import Secret
from hubbub.noise.source import RandomSource, system

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    columns:
      x: {type: real, bounds: [-1, 1]}
      y: {type: real, bounds: [-1, 1]}
      z: {type: real, bounds: [0, 10]}
      age: {type: integer, bounds: [0, 99]}
      sick: {values: ["no", "yes"]}
      region: {values: [North, South, East, West]}
      town: {values: [N1, N2, S1, S2]}
    budget: {epsilon: 100, delta: 1e-5}
  visits:
    source: visits.csv
    unit: {column: patient, groups: 4, rows: 5, entity: patient}
    columns:
      patient: {type: integer}
      x: {type: real, bounds: [-1, 1]}
      region: {values: [North, South, East, West]}
      item: {values: [a, b, c, d]}
    budget: {epsilon: 100, delta: 1e-5}
  patients:
    source: patients.csv
    unit: {column: patient, entity: patient}
    columns:
      patient: {type: integer}
      ill: {type: boolean}
    budget: {epsilon: 100, delta: 1e-5}
  edges:
    source: edges.csv
    unit: row
    columns:
      a: {type: integer, bounds: [0, 19]}
      b: {type: integer, bounds: [0, 19]}
      weight: {type: real, bounds: [0, 1]}
    budget: {epsilon: 100, delta: 1e-5}
analysts:
  ana: {people: {epsilon: 100, delta: 1e-5}, visits: {epsilon: 100, delta: 1e-5}, edges: {epsilon: 100, delta: 1e-5},
    patients: {epsilon: 100, delta: 1e-5}}
"""

#: One call for each analysis, small enough for a second. An analysis without one fails the tests.
EXAMPLES: dict[str, str] = {
    "anova": "CALL anova(table => 'people', outcome => 'z', group => 'region')",
    "chi_square": "CALL chi_square(table => 'visits', columns => ['region', 'item'])",
    "difference_of_means": "CALL difference_of_means(table => 'people', outcome => 'x', group => 'sick')",
    "decision_tree": "CALL decision_tree(table => 'people', columns => ['x', 'y'], target => 'sick', depth => 2)",
    "degree_histogram": "CALL degree_histogram(table => 'edges', ends => ['a', 'b'], most => 6)",
    "survival": "CALL survival(table=>'people', time=>{'column': 'age', 'bins': 4}, event=>'sick', positive=>'yes')",
    "explainable_boosting": "CALL explainable_boosting(table=>'people', columns=>['x'], target=>'sick', rounds=>1)",
    "frequent_itemsets": "CALL frequent_itemsets(table => 'people', columns => ['sick', 'region'], size => 2)",
    "graph_distance": "CALL graph_distance(table => 'edges', ends => ['a', 'b'], property => 'connected')",
    "hyperplane": "CALL hyperplane(table => 'people', columns => ['x', 'y'], target => 'sick')",
    "kmeans": "CALL kmeans(table => 'people', columns => ['x', 'y'], k => 3)",
    "linear_regression": "CALL linear_regression(table => 'people', columns => ['x'], target => 'y')",
    "logistic_regression": "CALL logistic_regression(table => 'people', columns => ['x'], target => 'sick', rounds=>2)",
    "median": "CALL median(table => 'visits', column => 'x')",
    "min_cut": "CALL min_cut(table => 'edges', ends => ['a', 'b'], weight => 'weight')",
    "naive_bayes": "CALL naive_bayes(table => 'people', columns => ['x', 'region'], target => 'sick', bins => 4)",
    "mean_vector": "CALL mean_vector(table => 'visits', columns => ['x'])",
    "covariance": "CALL covariance(table => 'people', columns => ['x', 'y'])",
    "poisson_regression": "CALL poisson_regression(table => 'people', columns => ['x'], target => 'z', rounds => 2)",
    "moments": "CALL moments(table => 'visits', columns => ['x'])",
    "pca": "CALL pca(table => 'people', columns => ['x', 'y'])",
    "perceptron": "CALL perceptron(table => 'people', columns => ['x', 'y'], target => 'sick', rounds => 3)",
    "random_forest": "CALL random_forest(table => 'people', columns => ['x', 'region'], target => 'sick', trees => 2)",
    "single_linkage": "CALL single_linkage(table => 'edges', ends => ['a', 'b'], weight => 'weight', clusters => 9)",
    "spanning_tree": "CALL spanning_tree(table => 'edges', ends => ['a', 'b'], weight => 'weight')",
    "star_count": "CALL star_count(table => 'edges', ends => ['a', 'b'], k => 2, protects => 'node')",
    "triangle_count": "CALL triangle_count(table => 'edges', ends => ['a', 'b'], most => 5)",
    "geography": "CALL geography(table => 'people', column => 'town', places => [1], columns => ['sick'])",
    "ranges": "CALL ranges(table => 'people', column => 'age')",
    "mwem": "CALL mwem(table => 'people', columns => ['sick', 'region', 'town'], rounds => 2)",
    "small_database": "CALL small_database(table => 'visits', columns => ['region'], size => 4)",
    "synthetic": "CALL synthetic(table => 'people', columns => ['sick', 'z'], pairs => 1, rounds => 1)",
    "synthetic_tables": "CALL synthetic_tables(table => 'patients', columns => ['ill'], child => 'visits',"
    " child_columns => ['item'], pairs => 1, child_pairs => 1, rounds => 1)",
    "cube": "CALL cube(table => 'visits', columns => ['region', 'item'], order => 2)",
    "tabulate": "CALL tabulate(table => 'visits', columns => ['region', 'item'])",
    "profile": "CALL profile(table => 'visits', max_rows => 50)",
    "binomial_count": "CALL binomial_count(table => 'visits', query => 'SELECT COUNT(*) FROM visits')",
    "choose": "CALL choose(candidates => 'people.region', score => 'SELECT COUNT(*) FROM people WHERE region = $1')",
    "above_threshold": "CALL above_threshold(table => 'visits', name => 'seen', threshold => 100)",
    "stream": "CALL stream(kind => 'density', name => 'seen', table => 'visits', universe => [0, 149])",
}

#: Paid for before there is any data: these draw later (a stream, at each arrival; a session, at each question).
IN_ADVANCE = frozenset({"stream", "above_threshold"})


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """Give a folder with the data."""
    return settle(tmp_path)


def settle(tmp_path: Path) -> Path:
    """Write the data, the same each time."""
    some = np.random.default_rng(7)
    n = 600
    x, y = (np.clip(some.normal(some.choice([-0.5, 0.5], n), 0.2), -1, 1) for _ in range(2))
    regions = np.array(["North", "South", "East", "West"])
    towns = np.array(["N1", "N2", "S1", "S2"])
    rows = zip(
        x,
        y,
        some.uniform(0, 10, n),
        some.integers(0, 100, n),
        np.where(x + y > 0, "yes", "no"),
        some.choice(regions, n),
        some.choice(towns, n),
        strict=True,
    )
    lines = [f"{a:.6f},{b:.6f},{c:.4f},{d},{e},{f},{g}" for a, b, c, d, e, f, g in rows]
    (tmp_path / "people.csv").write_text("\n".join(["x,y,z,age,sick,region,town", *lines]) + "\n")
    visits = [
        f"{some.integers(0, 150)},{some.uniform(-1, 1):.4f},{r},{i}"
        for r, i in zip(some.choice(regions, n), some.choice(list("abcd"), n), strict=True)
    ]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,x,region,item", *visits]) + "\n")
    patients = [f"{i},{i % 3 == 0}" for i in range(150)]
    (tmp_path / "patients.csv").write_text("\n".join(["patient,ill", *patients]) + "\n")
    pairs = sorted({(min(a, b), max(a, b)) for a, b in some.integers(0, 20, (80, 2)).tolist() if a != b})
    edges = [f"{a},{b},{some.uniform(0, 1):.3f}" for a, b in pairs]
    (tmp_path / "edges.csv").write_text("\n".join(["a,b,weight", *edges]) + "\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return tmp_path


@pytest.fixture
def examples() -> dict[str, str]:
    """Give the calls by name."""
    return EXAMPLES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "example" in metafunc.fixturenames:
        metafunc.parametrize("example", sorted(EXAMPLES.items()), ids=sorted(EXAMPLES))


class Bench:
    """What a charged analysis runs with, on a connection; remembers the texts that it was asked."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: RandomSource) -> None:
        self.connection = connection
        self.source = source
        self.asked: list[str] = []
        self.steps: list[tuple[float, str]] = []

    def ask(self, sql: str) -> Secret[Arrays]:
        self.asked.append(sql)
        return Secret(fetch(self.connection, sql))

    def progress(self, done: float, what: str) -> None:
        self.steps.append((done, what))


@pytest.fixture
def bench() -> Callable[[Mapping[str, str]], Bench]:
    """Make a run on tables that are given as SQL: name → the SELECT that makes it."""

    def made(tables: Mapping[str, str]) -> Bench:
        connection = duckdb.connect()
        for name, select in tables.items():
            connection.execute(f'CREATE TABLE "{name}" AS {select}')
        return Bench(connection, system())

    return made
