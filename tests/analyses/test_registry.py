"""One entry of the registry makes an analysis: its function, its model and its method follow each other."""

import inspect
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from hubbub.analyses.registry import ANALYSES, _load, function
from hubbub.answers.methods import Analyses
from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  visits:
    source: visits.parquet
    unit: row
    columns: {{age: {{bounds: [0, 9]}}}}
    budget: {{epsilon: 10, delta: 1e-6}}
  {other}:
    source: visits.parquet
    unit: row
    columns: {{age: {{bounds: [0, 9]}}}}
    budget: {{epsilon: 10}}
analysts: {{ana: {{visits: {{epsilon: 10, delta: 1e-6}}, {other}: {{epsilon: 10}}}}}}
"""


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_has_a_method_with_its_arguments(name: str) -> None:
    method = inspect.signature(getattr(Analyses, name)).parameters.values()
    arguments = inspect.signature(function(name)).parameters.values()
    given = {each.name for each in method if each.kind is not each.VAR_KEYWORD} - {"self"}
    assert given == {each.name for each in arguments if each.kind is each.KEYWORD_ONLY}


@pytest.mark.parametrize("name", [name for name, analysis in ANALYSES.items() if analysis.model is not None])
def test_every_model_can_be_read_from_a_release(name: str) -> None:
    analysis = ANALYSES[name]
    module, _, model = (analysis.model or "").rpartition(":")
    assert callable(_load(module or analysis.module, model).of)


@pytest.mark.parametrize("other", ["age", "elsewhere"])
def test_a_dataset_that_is_named_like_a_column_does_not_change_the_plan(tmp_path: Path, other: str) -> None:
    """The other dataset has no δ: an estimate that took it into account could not use Gaussian noise."""
    with duckdb.connect() as made:
        made.execute(f"COPY (SELECT i % 10 AS age FROM range(100) AS t(i)) TO '{tmp_path}/visits.parquet'")
    (tmp_path / "hubbub.yaml").write_text(YAML.format(other=other))
    with open_session(tmp_path / "hubbub.yaml") as session:
        estimate = session.estimate("CALL ranges(table => 'visits', column => 'age', noise => 'gaussian')", epsilon=1)
        release = session.query("CALL ranges(table => 'visits', column => 'age', noise => 'gaussian')", epsilon=1)
    assert estimate.datasets == ("visits",)
    assert estimate.delta == release.delta == Fraction(1, 10**6)
    assert [each["dataset"] for each in release.receipt["ledger"]] == ["visits"]
