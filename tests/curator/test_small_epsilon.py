"""An ε that is far below 1/n tells nothing, and estimates say so where n is known."""

import math
from pathlib import Path

import pytest

import hubbub
from hubbub.answers.estimate import Estimate

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: {unit}
    relation: {relation}
    columns: {{id: {{hidden: true}}, age: {{bounds: [0, 100]}}}}
    budget: {{epsilon: 9, delta: 1e-6}}
analysts:
  ana: {{people: {{epsilon: 9}}}}
"""
SQL = "SELECT AVG(age) AS age FROM people"


def write(folder: Path, *, unit: str, relation: str) -> Path:
    (folder / "people.csv").write_text("id,age\n" + "".join(f"{k},{k % 90}\n" for k in range(1000)))
    path = folder / "hubbub.yaml"
    path.write_text(YAML.format(unit=unit, relation=relation))
    return path


def told(estimate: Estimate) -> list[str]:
    return [warning for warning in estimate.warnings if "almost nothing" in warning]


@pytest.mark.row(6)
def test_a_tiny_epsilon_says_that_nothing_can_be_learned(tmp_path: Path) -> None:
    """n = 1,000 is public under replace: tanh(nε/2) is .04996 at ε = 1e-4, so 52.5 of 100 guesses are right."""
    assert round(math.tanh(1000 * 1e-4 / 2), 5) == 0.04996
    with hubbub.open(write(tmp_path, unit="row", relation="replace"), analyst="ana") as session:
        small = session.estimate(SQL, epsilon="0.0001", delta=0)
        assert told(small) == [
            "At this ε the answers tell almost nothing: without the data of all 1,000 privacy units they would be"
            " nearly the same, and at most 52.5 of 100 guesses can tell (coin flips get 50)."
        ]
        assert Estimate.from_json(small.to_json()).warnings == small.warnings
        # tanh(nε/2) passes 0.1 at ε = 2.0067e-4
        assert told(session.estimate(SQL, epsilon="0.0002", delta=0))
        assert not told(session.estimate(SQL, epsilon="0.00021", delta=0))
        assert not told(session.estimate(SQL, epsilon=1, delta=0))


@pytest.mark.row(6)
def test_without_a_known_size_the_range_of_the_result_says_it(tmp_path: Path) -> None:
    """Under add/remove nobody knows n, unless a profile tells; an error as wide as the bounds is warned of anyway."""
    unit = "{column: id, groups: 1, rows: 1}"
    with hubbub.open(write(tmp_path, unit=unit, relation="add_remove"), analyst="ana") as session:
        small = session.estimate(SQL, epsilon="0.0001", delta=0)
        assert not told(small)
        assert small.units is None
        assert any("±100 on values of 0 to 100 is mostly noise" in warning for warning in small.warnings)
        session.profile("people", epsilon=1)
        known = session.estimate(SQL, epsilon="0.0001", delta=0)
        assert known.units is not None
        assert abs(known.units - 1000) < 200  # noise of ε = 1; false alarms below 1e-6
        assert told(known)
