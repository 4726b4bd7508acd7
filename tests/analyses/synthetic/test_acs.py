"""Published tables of real people: the ACS excerpt that lies beside the project on our own machines."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

import hubbub

ACS = Path(__file__).parents[4] / "shared" / "data" / "national2019.csv"

pytestmark = pytest.mark.skipif(not ACS.exists(), reason="needs the ACS excerpt, which is no part of the project")

COLUMNS = ("PUMA", "SEX", "EDU")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with duckdb.connect() as made:
        made.execute(f"CREATE TABLE raw AS FROM read_csv('{ACS}', all_varchar = true)")
        made.execute(f"COPY (SELECT {', '.join(COLUMNS)} FROM raw) TO '{tmp_path}/acs.parquet'")
        values = {
            name: [v for (v,) in made.execute(f"SELECT DISTINCT {name} FROM raw ORDER BY 1").fetchall()]
            for name in COLUMNS
        }
    columns = "".join(f"      {name}: {{values: {found!r}}}\n" for name, found in values.items())
    (tmp_path / "hubbub.yaml").write_text(
        "version: 1\ndatasets:\n  acs:\n    source: acs.parquet\n    unit: row\n    columns:\n"
        + columns
        + "    budget: {epsilon: 10}\nanalysts:\n  ana: {acs: {epsilon: 10}}\n"
    )
    return tmp_path


def test_states_and_areas_add_up_and_are_near(home: Path) -> None:
    """Each count is within 12 stated half-widths: a sum of noises beyond has a chance far below 1e-9."""
    with duckdb.connect() as reader:
        exact = dict(reader.execute(f"SELECT PUMA, count(*) FROM '{home}/acs.parquet' GROUP BY 1").fetchall())
    with hubbub.open(home / "hubbub.yaml") as h:
        release = h.geography("acs", "PUMA", [2], columns=["SEX"], levels=["state", "area"], epsilon=1)
        found = hubbub.model(release)
    areas, states = found.level("area"), found.level("state")
    error = release.model["levels"][2]["error"]
    assert all(abs(int(areas[name].sum()) - count) <= 24 * error for name, count in exact.items())
    for state, count in states.items():
        assert count.tolist() == sum(own for area, own in areas.items() if area[:2] == state).tolist()
    assert found.level("total")[""].sum() == sum(int(own.sum()) for own in areas.values())


def test_a_table_of_areas_and_schooling_holds_its_intervals(home: Path) -> None:
    """520 cells and their marginals: at most 12 % of the intervals of 95% miss (below 1e-6 by chance)."""
    with duckdb.connect() as reader:
        rows = reader.execute(f"SELECT PUMA, EDU, count(*) FROM '{home}/acs.parquet' GROUP BY CUBE (1, 2)").fetchall()
    exact = {(area, school): count for area, school, count in rows}
    with hubbub.open(home / "hubbub.yaml") as h:
        release = h.tabulate("acs", ["PUMA", "EDU"], epsilon=1)
    inside = [
        low <= exact.get((area, school), 0) <= high
        for (_, area, school, _), ends in zip(release.rows, release.intervals, strict=True)
        for low, high in ends[-1:]
    ]
    assert np.mean(inside) >= 0.88
