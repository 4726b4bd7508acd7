"""`rows: auto` in hubbub.yaml: what is read, refused, described and declared."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.config import Config, load
from hubbub.config.declaration import declare
from hubbub.config.json_schema import SCHEMA
from hubbub.config.summary import protected_unit
from hubbub.core.schema import PrivacyUnit
from hubbub.errors import HubbubError

Examine = Callable[[str], tuple[Config | None, list[HubbubError]]]
DECLARED = "groups: 5, rows: 10"


@pytest.mark.parametrize(
    ("terms", "unit"),
    [
        ("rows: auto", PrivacyUnit("patient", 10_000, 10_000, auto=True)),
        ("rows: auto, groups: auto", PrivacyUnit("patient", 10_000, 10_000, auto=True)),
        ("rows: auto, max_rows: 7", PrivacyUnit("patient", 7, 7, auto=True)),
        (DECLARED, PrivacyUnit("patient", 5, 10)),
    ],
)
def test_bounds_are_declared_or_found(examined: Examine, good: str, terms: str, unit: PrivacyUnit) -> None:
    assert DECLARED in good
    config, problems = examined(good.replace(DECLARED, terms))
    assert problems == []
    assert config is not None
    assert config.datasets["visits"].table.unit == unit


@pytest.mark.parametrize(
    ("terms", "where"),
    [
        ("rows: auto, groups: 3", "unit.groups"),
        ("groups: auto", "unit.groups"),
        ("groups: auto, rows: 3", "unit.groups"),
        ("rows: 3, max_rows: 7", "unit.max_rows"),
        ("rows: auto, max_rows: 0", "unit.max_rows"),
        ("rows: auto, max_rows: auto", "unit.max_rows"),
        ("rows: auto, max_rows: 1e30", "unit.max_rows"),
        ("rows: automatic", "unit.rows"),
    ],
)
def test_terms_that_contradict_each_other_are_refused(examined: Examine, good: str, terms: str, where: str) -> None:
    _, problems = examined(good.replace(DECLARED, terms))
    assert [problem.code for problem in problems] == ["HB413"]
    assert where in str(problems[0])
    assert problems[0].remedy


def test_the_schema_of_the_file_knows_the_terms() -> None:
    unit = SCHEMA["properties"]["datasets"]["additionalProperties"]["properties"]["unit"]  # type: ignore[index]
    (form,) = [each for each in unit["oneOf"] if each.get("type") == "object"]
    assert {"const": "auto"} in form["properties"]["rows"]["oneOf"]
    assert {"const": "auto"} in form["properties"]["groups"]["oneOf"]
    assert form["properties"]["max_rows"]["minimum"] == 1


def test_descriptions_and_declarations_say_that_bounds_are_found(folder: Path, good: str) -> None:
    path = folder / "hubbub.yaml"
    plain = load(path).datasets["visits"].table
    assert "auto" not in declare(plain)["unit"]
    path.write_text(good.replace(DECLARED, "rows: auto, max_rows: 2500"))
    dataset = load(path).datasets["visits"]
    assert protected_unit(dataset).endswith("each query finds how many of them to use, up to 2,500")
    assert declare(dataset.table)["unit"]["auto"] is True
    assert declare(dataset.table)["unit"]["rows"] == 2500
