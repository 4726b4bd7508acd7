"""What a hubbub.yaml promises, in words: the figures in them are right and never overstated."""

import json
from dataclasses import fields, replace
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.accounting.declarations import summary
from hubbub.accounting.filters import Budget
from hubbub.config import load
from hubbub.config.declaration import declare
from hubbub.config.document import KEYS
from hubbub.config.json_schema import SCHEMA
from hubbub.config.policy import parse_policy
from hubbub.config.summary import (
    caps,
    column_uses,
    guarantee,
    hidden_fact,
    joinable_tables,
    protected_unit,
    shares_in_words,
    warnings,
)
from hubbub.core.blocks import Blocks
from hubbub.core.schema import Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.errors import ConfigError


def test_a_column_whose_collation_merges_texts_is_named(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute("CREATE TABLE t (region VARCHAR COLLATE NOCASE, note VARCHAR COLLATE NOCASE, name VARCHAR)")
    (tmp_path / "hubbub.yaml").write_text(
        "version: 1\ndatasets:\n  t:\n    source: duckdb:t.duckdb#t\n    unit: row\n    budget: {epsilon: 1}\n"
        "    columns: {region: {values: [North]}, note: {hidden: true}, name: {}}\n"
        "analysts: {ana: {t: {epsilon: 1}}}\n"
    )
    texts = [text for text in warnings(load(tmp_path / "hubbub.yaml")) if "collation" in text]
    assert len(texts) == 1
    assert "collation of region" in texts[0]
    assert "lower(region)" in texts[0]


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "6"])
def test_sureness_is_the_odds_of_epsilon_rounded_up(epsilon: str) -> None:
    exact = 100 * exp(float(epsilon)) / (1 + exp(float(epsilon)))
    shown = float(guarantee(Budget(Fraction(epsilon), Fraction(0))).removesuffix("%"))
    assert exact <= shown < exact + 0.1 + 1e-9


def test_nobody_is_told_100_percent_or_less_than_it_is() -> None:
    assert guarantee(Budget(Fraction(20), Fraction(0))) == "almost 100%"
    assert guarantee(Budget(Fraction(12), Fraction(0))) == "almost 100%"


def test_the_promise_names_the_unit_its_bounds_and_everybodys_caps(folder: Path) -> None:
    config = load(folder / "hubbub.yaml")
    visits = config.datasets["visits"]
    assert (
        protected_unit(visits) == "each patient with all of its rows; a query uses at most 10 rows in each of 5 groups"
    )
    assert hidden_fact(visits) == "whether any one patient is in the data"
    found = {who: budget.epsilon for who, budget in caps(config.policy, "visits")}
    assert found == {"one query": Fraction(1, 2), "all analysts, in total": 6, "interns (ana, ben)": 3, "ana": 2}
    assert protected_unit(config.datasets["regions"]) == "nobody: this table is public"


def test_uses_say_what_a_column_is_good_for(folder: Path) -> None:
    columns = {c.name: column_uses(c) for c in load(folder / "hubbub.yaml").datasets["visits"].table.columns}
    assert columns["region"] == ("yes", "yes", "–")
    assert columns["age"] == ("yes", "yes", "yes, 0 to 110")
    assert columns["cost"] == ("yes", "needs δ", "yes, 0 to 20,000")
    assert columns["notes"] == ("no", "no", "no")
    assert columns["patient"][2] == "no: no bounds"


def test_concerns_point_at_what_is_seldom_meant(folder: Path) -> None:
    assert warnings(load(folder / "hubbub.yaml")) == []
    text = (folder / "hubbub.yaml").read_text()
    (folder / "hubbub.yaml").write_text(text.replace("epsilon: 6, delta: 1e-9", "epsilon: 60, delta: 0.001"))
    found = " ".join(warnings(load(folder / "hubbub.yaml")))
    assert "ε = 60" in found
    assert "δ = 0.001" in found


def test_tables_of_one_entity_are_named_and_those_that_lack_one_pointed_at(folder: Path) -> None:
    path = folder / "hubbub.yaml"
    text = path.read_text()
    (folder / "labs.csv").write_text("patient,x\n1,2\n")
    labs = "datasets:\n  labs: {source: labs.csv, unit: {column: patient}, budget: {epsilon: 1},\n"
    labs += "    columns: {x: {type: integer, bounds: [0, 9]}}}\n"
    path.write_text(text.replace("datasets:\n", labs, 1))
    config = load(path)
    assert joinable_tables(config) == []
    (concern,) = [each for each in warnings(config) if "entity" in each]
    assert "labs and visits all use the privacy ID column patient" in concern
    path.write_text(path.read_text().replace("{column: patient", "{column: patient, entity: patient"))
    config = load(path)
    (sentence,) = joinable_tables(config)
    assert sentence.startswith("labs and visits protect the same patient: ")
    assert not [each for each in warnings(config) if "entity" in each]
    assert protected_unit(config.datasets["visits"]).startswith("each patient with all of its rows")


@pytest.mark.parametrize("entity", ["''", "two words", "3", "[a]", "null"])
def test_an_entity_is_one_word(folder: Path, entity: str) -> None:
    path = folder / "hubbub.yaml"
    path.write_text(path.read_text().replace("{column: patient", f"{{column: patient, entity: {entity}"))
    with pytest.raises(ConfigError, match="HB413"):
        load(path)


def test_a_declaration_holds_no_value_of_the_data_and_no_address(folder: Path) -> None:
    config = load(folder / "hubbub.yaml")
    text = json.dumps(config.policy.declarations)
    unit = config.policy.declarations["visits"]["unit"]
    assert (unit["column"], unit["entity"], unit["groups"], unit["rows"]) == ("patient", "", 5, 10)
    assert str(folder) not in text
    assert "source" not in text
    many = tuple(range(500))
    long = declare(Table("t", (Column("k", Kind.INTEGER, values=many),), None))
    assert long["columns"]["k"]["values"]["count"] == 500
    assert len(json.dumps(long)) < 300


def test_whatever_is_said_of_a_table_is_in_its_declaration() -> None:
    """`arrivals: public` could come and go without an entry in the chain: a new fact must not be forgotten here."""
    column = Column("k", Kind.INTEGER)
    table = Table("t", (column,), PrivacyUnit("k"), Relation.ADD_REMOVE)
    changes: dict[str, Any] = {
        "columns": (replace(column, hidden=True),),
        "unit": PrivacyUnit("k", rows=2),
        "relation": Relation.REPLACE,
        "unique": ("k",),
        "arrivals": True,
        "others": (PrivacyUnit("k2"),),
        "blocks": Blocks("k", "month", 600),
    }
    assert {each.name for each in fields(Table) if each.compare} == {"name", *changes}
    for name, value in changes.items():
        assert declare(replace(table, **{name: value})) != declare(table), name


def test_the_history_says_where_arrivals_are_public() -> None:
    table = Table("t", (), PrivacyUnit("k"), Relation.ADD_REMOVE)
    said = [
        summary(json.dumps({"declarations": {"t": declare(each)}})) for each in (table, replace(table, arrivals=True))
    ]
    assert said == ["t (k, add_remove)", "t (k, add_remove, arrivals public)"]


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
    assert found.pop("analysts.*.*") == found.pop("projects.*.*") == KEYS["cap"]
    for place in ("groups.*.*", "datasets.*.budget", "datasets.*.blocks.budget"):
        assert found.pop(f"{place}.fair") == KEYS["fair"]
    assert found == {place: keys for place, keys in KEYS.items() if place not in ("cap", "fair")}


def test_the_published_json_schema_is_the_current_one() -> None:
    """Write it anew with: hubbub check --schema > docs/hubbub.schema.json"""
    published = Path(__file__).parents[2] / "docs" / "hubbub.schema.json"
    assert json.loads(published.read_text()) == SCHEMA


def test_how_shared_budgets_are_divided_is_said_in_words() -> None:
    policy = parse_policy("""
version: 1
datasets: {visits: {budget: {epsilon: 5}}}
groups: {interns: {members: [ana, ben, cy], visits: {epsilon: 3, fair: {until: 2027-01-01, needs: {cy: 0.1}}}}}
projects: {hip: {members: [ana], group: interns, until: 2026-12-01, visits: {epsilon: 1}}}
""")
    assert shares_in_words(policy, "visits") == [
        "visits: the budget of interns is divided until 2027-01-01: ana 45%, ben 45%, cy 10%. Nobody can use the part "
        "of another.",
        "visits: until 2026-12-01, interns leaves ε = 1 of its budget to the project hip. Every charge of its members "
        "counts against it. What they do not use returns to the group.",
    ]
    assert ("hip of interns (ana), until 2026-12-01", Budget(Fraction(1), Fraction(0))) in caps(policy, "visits")
