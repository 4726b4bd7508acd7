"""Blocks in hubbub.yaml: what is read and promised, and what is refused because nothing can be promised."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from hubbub.config import examine, load
from hubbub.config.blocks import in_one_block, promises
from hubbub.core.blocks import WITHIN, BlockLength, block_name, number
from hubbub.core.schema import Table

PERIOD = {"column": "person", "per": {"month": "day"}}
BLOCKS = {"column": "day", "by": "month", "from": "2025-01", "budget": {"epsilon": 2}}


def document(unit: Any = PERIOD, *, budget: Any = None, blocks: Any = BLOCKS, **rest: Any) -> dict[str, Any]:
    columns = {"day": {"type": "timestamp"}, "n": {"type": "integer"}, "other": {"type": "timestamp"}}
    entry = {"source": "visits.csv", "unit": unit, "columns": columns, "blocks": blocks} | rest
    entry |= {} if budget is None else {"budget": budget}
    return {"version": 1, "datasets": {"visits": entry}, "analysts": {"ana": {"visits": {"epsilon": 1}}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("person,day,other,n,doctor\n1,2025-01-01 00:00:00,2025-01-01 00:00:00,1,2\n")
    return tmp_path


def problems(folder: Path, content: dict[str, Any]) -> list[str]:
    (folder / "hubbub.yaml").write_text(yaml.safe_dump(content))
    return [problem.code for problem in examine(folder / "hubbub.yaml")[1]]


def read(folder: Path, content: dict[str, Any]) -> Table:
    (folder / "hubbub.yaml").write_text(yaml.safe_dump(content))
    return load(folder / "hubbub.yaml").datasets["visits"].table


# ── promises ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_month_of_a_person_is_in_one_month(folder: Path) -> None:
    text = " ".join(promises(read(folder, document())))
    assert "2025-01 to today" in text
    assert "the budget of one block is the whole promise" in text
    assert "new blocks bring new budget" in text
    assert "a person with rows in k months loses up to k times as much" in text


def test_a_person_in_many_blocks_needs_a_lasting_budget(folder: Path) -> None:
    person = {"column": "person"}
    assert problems(folder, document(person)) == ["HB480"]
    text = " ".join(promises(read(folder, document(person, budget={"epsilon": 6}))))
    assert "k blocks cost up to k times the budget of one" in text
    assert "never more than the lasting budget" in text


@pytest.mark.parametrize("by", get_args(BlockLength))
@pytest.mark.parametrize("per", ["hour", "day", "week", "month"])
def test_a_unit_in_one_block_by_its_declaration_is_in_one_block(folder: Path, per: str, by: BlockLength) -> None:
    """Every half hour of four years: where the declarations say so, no period lies in two blocks; else one does."""
    unit = {"column": "person", "per": {per: "day"}}
    blocks = {"column": "day", "by": by, "from": "2023-01-01", "budget": {"epsilon": 2}}
    table = read(folder, document(unit, blocks=blocks, budget={"epsilon": 9}))
    of_period: dict[object, set[int]] = {}
    for half in range(2 * 24 * 365 * 4):
        time = datetime(2023, 1, 1) + timedelta(minutes=30 * half)
        week = (time.date() - datetime(2023, 1, 2).date()).days // 7
        period = {"hour": time.replace(minute=0), "day": time.date(), "week": week, "month": (time.year, time.month)}
        of_period.setdefault(period[per], set()).add(number(by, time.date()))
    assert in_one_block(table) == (max(map(len, of_period.values())) == 1)
    assert in_one_block(table) == (per in WITHIN[by])


@pytest.mark.parametrize(
    ("unit", "rest", "expected"),
    [
        ("row", {}, []),
        ("row", {"relation": "replace"}, ["HB479"]),
        (PERIOD, {"relation": "replace", "budget": {"epsilon": 5}}, ["HB479"]),
        ({"column": "person", "per": {"month": "other"}}, {}, ["HB480"]),
        (
            {"column": "person", "per": {"month": "day"}},
            {"blocks": {**BLOCKS, "by": "day", "from": "2025-01-01"}},
            ["HB480"],
        ),
        ([{"column": "person", "entity": "a"}, {"column": "doctor", "entity": "b"}], {}, ["HB480"]),
        ([{"column": "person", "entity": "a"}, {"column": "doctor", "entity": "b"}], {"budget": {"epsilon": 5}}, []),
    ],
)
def test_what_cannot_be_promised_is_refused(folder: Path, unit: Any, rest: Any, expected: list[str]) -> None:
    assert problems(folder, document(unit, **rest)) == expected


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("by", "first", "name"),
    [
        ("month", "2025-03", "2025-03"),
        ("month", "2025-03-31", "2025-03"),
        ("week", "2025-W01", "2025-W01"),
        ("week", "2025-01-01", "2025-W01"),
        ("day", "2025-03-31", "2025-03-31"),
        ("year", 2025, "2025"),
    ],
)
def test_the_first_block_is_named_or_given_by_a_day(folder: Path, by: BlockLength, first: Any, name: str) -> None:
    blocks = read(folder, document("row", blocks={**BLOCKS, "by": by, "from": first})).blocks
    assert blocks is not None
    assert block_name(by, blocks.first) == name


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"column": "nothing"}, "HB477"),
        ({"column": "n"}, "HB477"),
        ({"by": "decade"}, "HB476"),
        ({"from": None}, "HB478"),
        ({"from": "2025-13"}, "HB478"),
        ({"from": "1812-01"}, "HB478"),
        ({"until": "2024-12"}, "HB478"),
        ({"from": "1900-01-01", "until": "2100-01-01", "by": "day"}, "HB478"),
        ({"since": "2025-01"}, "HB401"),
    ],
)
def test_blocks_that_are_not_declared_well_are_refused(folder: Path, change: dict[str, Any], code: str) -> None:
    assert problems(folder, document("row", blocks={**BLOCKS, **change})) == [code]


def test_the_start_of_blocks_must_be_declared(folder: Path) -> None:
    blocks = {name: value for name, value in BLOCKS.items() if name != "from"}
    assert problems(folder, document("row", blocks=blocks)) == ["HB478"]
    blocks = {name: value for name, value in BLOCKS.items() if name != "budget"}
    assert problems(folder, document("row", blocks=blocks)) == ["HB402"]


def test_public_tables_and_owners_of_other_rows_have_no_blocks(folder: Path) -> None:
    public = document()
    public["datasets"]["visits"] = {"source": "visits.csv", "public": True, "blocks": BLOCKS}
    public["analysts"] = {}
    assert problems(folder, public) == ["HB476"]
    content = document({"column": "person"}, budget={"epsilon": 3}, key="person")
    (folder / "bills.csv").write_text("person,cost\n1,5\n")
    bills = {"source": "bills.csv", "unit": {"via": "person", "of": "visits"}, "columns": {}, "budget": {"epsilon": 1}}
    content["datasets"]["bills"] = bills
    assert problems(folder, content) == ["HB481"]


def test_caps_of_analysts_hold_in_each_block(folder: Path) -> None:
    content = document(budget={"epsilon": 9, "renewal": {"per": "day", "epsilon": 3}})
    content["datasets"]["visits"]["blocks"] = BLOCKS | {"budget": {"epsilon": 2, "per_query": 0.5, "show": "exact"}}
    assert problems(folder, content) == []
    policy = load(folder / "hubbub.yaml").policy
    assert [cap.label for cap in policy.caps("ana", "visits")] == [
        "query/one/visits",
        "analyst/ana/visits/block/",
        "dataset/visits",
        "dataset/visits/day",
        "dataset/visits/block/",
    ]
    assert policy.show == {"visits": "exact"}
    content["analysts"]["ana"]["visits"]["epsilon"] = 3
    assert problems(folder, content) == ["HB406"]
    content["analysts"]["ana"]["visits"]["epsilon"] = 1
    content["datasets"]["visits"]["budget"] = {"epsilon": 1.5}
    assert problems(folder, content) == ["HB406"]
