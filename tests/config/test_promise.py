"""What a hubbub.yaml promises, in words: the figures in them are right and never overstated."""

import json
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest

from hubbub.accounting.contract import KEYS
from hubbub.config import load
from hubbub.config.json_schema import SCHEMA
from hubbub.config.promise import caps, concerns, neighbours, protected, sureness, uses


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "6"])
def test_sureness_is_the_odds_of_epsilon_rounded_up(epsilon: str) -> None:
    exact = 100 * exp(float(epsilon)) / (1 + exp(float(epsilon)))
    shown = float(sureness(Fraction(epsilon)).removesuffix(" %"))
    assert exact <= shown < exact + 0.1 + 1e-9


def test_nobody_is_told_100_percent_or_less_than_it_is() -> None:
    assert sureness(Fraction(20)) == "almost 100 %"
    assert sureness(Fraction(12)) == "almost 100 %"


def test_the_promise_names_the_unit_its_bounds_and_everybodys_caps(folder: Path) -> None:
    config = load(folder / "hubbub.yaml")
    visits = config.datasets["visits"]
    assert (
        protected(visits) == "each patient, with all of its rows; at most 10 rows in each of 5 groups of a query count"
    )
    assert neighbours(visits) == "whether any one patient is in the data at all"
    found = {who: budget.epsilon for who, budget in caps(config.policy, "visits")}
    assert found == {"by one query": Fraction(1, 2), "everybody, ever": 6, "interns (ana, ben)": 3, "ana": 2}
    assert protected(config.datasets["regions"]) == "nobody: this table is public"


def test_uses_say_what_a_column_is_good_for(folder: Path) -> None:
    columns = {c.name: uses(c) for c in load(folder / "hubbub.yaml").datasets["visits"].table.columns}
    assert columns["region"] == ("yes", "yes", "–")
    assert columns["age"] == ("yes", "yes", "yes, 0 to 110")
    assert columns["cost"] == ("yes", "with δ", "yes, 0 to 20000")
    assert columns["notes"] == ("no", "no", "no")
    assert columns["patient"][2] == "no: no bounds"


def test_concerns_point_at_what_is_seldom_meant(folder: Path) -> None:
    assert concerns(load(folder / "hubbub.yaml")) == []
    text = (folder / "hubbub.yaml").read_text()
    (folder / "hubbub.yaml").write_text(text.replace("epsilon: 6, delta: 1e-9", "epsilon: 60, delta: 0.001"))
    found = " ".join(concerns(load(folder / "hubbub.yaml")))
    assert "ε = 60" in found
    assert "δ = 0.001" in found


def _keys(schema: object, path: str, found: dict[str, frozenset[str]]) -> None:
    if not isinstance(schema, dict):
        return
    if schema.get("additionalProperties") is False:
        found[path] = frozenset(schema["properties"])
    for name, inner in schema.get("properties", {}).items():
        _keys(inner, f"{path}.{name}".lstrip("."), found)
    for inner in schema.get("oneOf", []):
        _keys(inner, path, found)
    _keys(schema.get("additionalProperties"), f"{path}.*".lstrip("."), found)


def test_the_json_schema_knows_exactly_the_keys_that_the_reader_knows() -> None:
    found: dict[str, frozenset[str]] = {}
    _keys(SCHEMA, "", found)
    assert found.pop("analysts.*.*") == found.pop("groups.*.*") == KEYS["cap"]
    assert found == {place: keys for place, keys in KEYS.items() if place != "cap"}


def test_the_published_json_schema_is_the_current_one() -> None:
    """Write it anew with: hubbub check --schema > docs/hubbub.schema.json"""
    published = Path(__file__).parents[2] / "docs" / "hubbub.schema.json"
    assert json.loads(published.read_text()) == SCHEMA
