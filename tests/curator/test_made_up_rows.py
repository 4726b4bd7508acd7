"""Made-up rows: they fit the declarations and each other, and depend on nothing else."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hubbub.config import Config, load
from hubbub.curator.made_up_rows import Columns, MadeUpRows

YAML = """
version: 1
datasets:
  customers:
    source: customers.csv
    key: id
    unit: {column: id, entity: customer}
    columns: {id: {type: integer}, city: {values: [Bern, Oslo], nullable: true}, joined: {type: date}}
    budget: {epsilon: 1}
  orders:
    source: orders.csv
    key: number
    unit: {via: customer, of: customers, groups: 2, rows: 3}
    columns:
      number: {type: integer}
      customer: {type: integer}
      paid: {bounds: [0, 10], step: 0.5}
      code: {}
      open: {type: boolean, required: true}
      at: {bounds: [2024-01-01, 2024-01-31]}
      size: {bounds: auto}
    budget: {epsilon: 1}
  lines:
    source: lines.csv
    unit: {via: number, of: orders, groups: 2, rows: 9}
    columns: {number: {type: integer}, pieces: {type: integer, bounds: [1, 9]}}
    budget: {epsilon: 1}
analysts: {ana: {orders: {epsilon: 1}}}
"""
HEADS = {"customers": "id,city,joined", "orders": "number,customer,paid,code,open,at,size", "lines": "number,pieces"}


def configured(folder: Path, rows: str = "") -> Config:
    folder.mkdir(exist_ok=True)
    for name, head in HEADS.items():
        (folder / f"{name}.csv").write_text(f"{head}\n{rows}")
    (folder / "hubbub.yaml").write_text(YAML)
    return load(folder / "hubbub.yaml")


def made(config: Config, sizes: dict[str, int] | None = None) -> dict[str, Columns]:
    tables = {name: each.table for name, each in config.datasets.items()}
    rows = MadeUpRows(tables, sizes or dict.fromkeys(tables, 400), date(2026, 1, 1))
    return {name: rows.of(name) for name in tables}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Columns]:
    return made(configured(tmp_path_factory.mktemp("shop")))


def test_values_are_within_the_declarations(shop: dict[str, Columns]) -> None:
    paid = np.asarray(shop["orders"]["paid"].array)
    assert 0 <= paid.min() < paid.max() <= 10
    assert set((paid * 2) % 1) == {0.0}
    pieces = np.asarray(shop["lines"]["pieces"].array)
    assert set(pieces.tolist()) <= set(range(1, 10))
    assert set(shop["customers"]["city"]) == {"Bern", "Oslo", None}
    days = np.asarray(shop["orders"]["at"].array)
    assert np.datetime64("2024-01-01") <= days.min() < days.max() <= np.datetime64("2024-01-31T23:59:59")
    assert not shop["orders"]["open"].null.any()
    assert not shop["orders"]["code"].null.any()  # not declared nullable


def test_keys_are_unique_and_references_find_their_rows(shop: dict[str, Columns]) -> None:
    customers, orders, lines = (shop[name] for name in ("customers", "orders", "lines"))
    assert len(set(customers["id"])) == len(customers["id"]) == 400
    assert len(set(orders["number"])) == 400
    assert set(orders["customer"]) <= set(customers["id"])
    assert set(lines["number"]) <= set(orders["number"])
    _, rows = np.unique(orders["customer"].array, return_counts=True)
    assert rows.max() > 1  # several rows a person


def test_the_rows_do_not_depend_on_the_data(tmp_path: Path, shop: dict[str, Columns]) -> None:
    other = made(configured(tmp_path / "b", rows="7,Bern,2021-01-01,a,true,2024-01-05,99\n" * 50))
    for name, columns in shop.items():
        assert {key: list(each) for key, each in columns.items()} == {
            key: list(each) for key, each in other[name].items()
        }


def test_the_owner_chooses_the_number_of_rows(tmp_path: Path) -> None:
    sizes = {"customers": 3, "orders": 1, "lines": 10}
    found = made(configured(tmp_path / "c"), sizes)
    assert {name: len(next(iter(each.values()))) for name, each in found.items()} == sizes


def test_a_key_of_listed_values_has_no_repeats(tmp_path: Path) -> None:
    config = configured(tmp_path / "d")
    table = config.datasets["customers"].table
    keyed = {"customers": type(table)(table.name, table.columns, table.unit, table.relation, ("city",))}
    rows = MadeUpRows(keyed, {"customers": 50}, date(2026, 1, 1)).of("customers")
    assert len(set(map(str, rows["city"]))) == len(rows["city"]) <= 3
