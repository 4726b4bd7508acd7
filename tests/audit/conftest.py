"""A small clinic with a few releases, for the tests of audits."""

from pathlib import Path

import pytest

from hubbub.curator.session import open_session

YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {column: patient, entity: patient, groups: 2, rows: 2}
    columns:
      patient: {type: integer}
      region: {values: [North, South, East]}
      age: {type: integer, bounds: [0, 110]}
      cost: {type: real, bounds: [-10, 1000]}
      word: {type: text}
    budget: {epsilon: 100, delta: 1e-5}
  labs:
    source: labs.csv
    unit: {column: patient, entity: patient, groups: 1, rows: 2}
    columns: {patient: {type: integer}, result: {type: real, bounds: [-5, 5]}}
    budget: {epsilon: 100, delta: 1e-5}
  regions: {source: regions.csv, public: true}
analysts:
  ana: {visits: {epsilon: 100, delta: 1e-5}, labs: {epsilon: 100, delta: 1e-5}}
"""
#: The queries of the releases, with their options.
QUERIES: dict[str, tuple[str, dict[str, object]]] = {
    "count": ("SELECT COUNT(*) AS n FROM visits", {}),
    "sums": ("SELECT region, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY region", {"rows": 1, "raw": True}),
    "parameters": ("SELECT COUNT(*) AS n FROM visits WHERE age > $1 AND region = $2", {"parameters": [30, "North"]}),
    "weights": ("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits", {"weights": {"n": 3}}),
    "order": ("SELECT MEDIAN(age) AS m, MODE(region) AS r FROM visits", {}),
    "found": ("SELECT word, COUNT(*) AS n FROM visits GROUP BY word", {}),
    "top": ("SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2", {}),
    "public": ("SELECT zone, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY zone", {}),
    "joined": ("SELECT SUM(result) AS s FROM visits JOIN labs ON visits.patient = labs.patient", {}),
    "analysis": ("CALL tabulate(table => 'visits', columns => ['region'])", {"groups": 1}),
}


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Run every query once; return the folder (read-only) and the number of each charge."""
    folder = tmp_path_factory.mktemp("audited")
    lines = [f"{i % 90},{['North', 'South', 'East'][i % 3]},{i % 100},{i % 900},w{i % 4}" for i in range(300)]
    (folder / "visits.csv").write_text("\n".join(["patient,region,age,cost,word", *lines]) + "\n")
    (folder / "labs.csv").write_text("patient,result\n" + "".join(f"{i % 90},{i % 9 - 4}\n" for i in range(200)))
    (folder / "regions.csv").write_text("region,zone\nNorth,a\nSouth,b\nEast,a\n")
    (folder / "hubbub.yaml").write_text(YAML)
    found = {}
    with open_session(folder / "hubbub.yaml") as session:
        for name, (text, options) in QUERIES.items():
            release = session.query(text, epsilon="0.5", **options)  # type: ignore[arg-type]
            found[name] = release.receipt["ledger"][0]["sequence"]
    return folder, found
