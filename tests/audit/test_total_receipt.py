"""The checker derives the sensitivity from a bound on all rows of a unit, and refuses one that the noise is not for."""

import copy
from pathlib import Path

import pytest

import hubbub
from hubbub.audit.receipt import check_receipt

YAML = """
version: 1
datasets:
  t:
    source: t.csv
    unit: {{column: u, groups: 3, rows: 3, rows_total: 4}}
    relation: {relation}
    columns: {{u: {{}}, k: {{values: [a, b, c, d]}}, x: {{type: integer, bounds: [-5, 20]}}}}
    budget: {{epsilon: 100, delta: 1e-6}}
analysts: {{ana: {{t: {{epsilon: 100}}}}}}
"""
QUERIES = (
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT k, SUM(x) AS s FROM t GROUP BY k",
    "SELECT k, MEDIAN(x) AS m FROM t GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)",
)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_receipt_with_a_total_is_sound_and_a_larger_total_is_not(tmp_path: Path, relation: str) -> None:
    lines = [f"u{i % 9},{'abcd'[i % 4]},{i % 20}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["u,k,x", *lines]) + "\n")
    (tmp_path / "hubbub.yaml").write_text(YAML.format(relation=relation))
    with hubbub.open(tmp_path / "hubbub.yaml") as session:
        for sql in QUERIES:
            for delta in (0, None):
                paper = session.query(sql, epsilon=1, delta=delta, key=f"{sql} {delta}").document()["receipt"]
                assert paper["bounds"] == {"groups": 3, "rows": 3, "total": 4}
                assert check_receipt(paper).sound, check_receipt(paper).problems
                for bounds in ({"groups": 3, "rows": 3}, {"groups": 3, "rows": 3, "total": 9}):
                    assert not check_receipt({**copy.deepcopy(paper), "bounds": bounds}).sound
