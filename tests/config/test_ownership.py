"""Privacy units through keys in hubbub.yaml: what is read, inherited and refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.config import examine, load
from hubbub.config.declaration import declare
from hubbub.config.summary import joinable_tables, protected_unit
from hubbub.core.schema import Kind, OwnerPath, Reference, Table

FILES = {
    "customers.csv": "id,house,country\n1,7,at\n",
    "orders.csv": "order_no,line,customer,status\n1,1,1,open\n",
    "items.csv": "item,order_no,line,price\n1,1,1,5\n",
}


def document(**changes: Any) -> dict[str, Any]:
    """Return a valid hubbub.yaml of three tables, with changed entries of its datasets (`orders__unit={…}`)."""
    budget = {"epsilon": 1}
    datasets: dict[str, Any] = {
        "items": {
            "source": "items.csv",
            "unit": {"via": ["order_no", "line"], "of": "orders", "rows": 50},
            "columns": {
                "order_no": {"type": "integer"},
                "line": {"type": "integer", "hidden": True},
                "price": {"bounds": [0, 9]},
            },
            "budget": budget,
        },
        "orders": {
            "source": "orders.csv",
            "unit": {"via": "customer", "of": "customers", "groups": 2, "rows": 5},
            "key": ["order_no", "line"],
            "columns": {
                "order_no": {"type": "integer"},
                "line": {"type": "integer"},
                "customer": {"type": "integer"},
                "status": {"values": ["open", "closed"]},
            },
            "budget": budget,
        },
        "customers": {
            "source": "customers.csv",
            "unit": {"column": "id", "entity": "customer"},
            "key": "id",
            "columns": {"id": {"type": "integer"}, "house": {"type": "integer"}, "country": {"values": ["at"]}},
            "budget": budget,
        },
    }
    for place, value in changes.items():
        name, _, key = place.partition("__")
        datasets[name] = {k: v for k, v in datasets[name].items() if k != key} | ({} if value is None else {key: value})
    return {"version": 1, "datasets": datasets}


def write(folder: Path, **changes: Any) -> Path:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    path = folder / "hubbub.yaml"
    path.write_text(yaml.safe_dump(document(**changes), sort_keys=False))
    return path


TO_CUSTOMERS = Reference(("customer",), "customers", ("id",), (Kind.INTEGER,))
TO_ORDERS = Reference(("order_no", "line"), "orders", ("order_no", "line"), (Kind.INTEGER, Kind.INTEGER))


def test_the_way_to_the_owner_is_read_over_several_steps(tmp_path: Path) -> None:
    """In the order of the file, though each table is read after the one that it refers to."""
    config = load(write(tmp_path))
    assert list(config.datasets) == ["items", "orders", "customers"]
    orders, items = (config.datasets[name].table.unit for name in ("orders", "items"))
    assert orders is not None
    assert items is not None
    assert orders.path == OwnerPath((TO_CUSTOMERS,), "id", Kind.INTEGER)
    assert items.path == OwnerPath((TO_ORDERS, TO_CUSTOMERS), "id", Kind.INTEGER)
    assert (orders.column, items.column) == ("customer", "customers.id")
    assert (orders.entity, items.entity) == ("customer", "customer")
    assert (orders.groups, orders.rows, items.groups, items.rows) == (2, 5, 1, 50)


def test_engines_serve_keys_and_references_that_queries_cannot_name(tmp_path: Path) -> None:
    columns = {
        "order_no": {"type": "integer"},
        "line": {"type": "integer", "hidden": True},
        "price": {"bounds": [0, 9]},
    }
    config = load(write(tmp_path, items__columns=columns))
    table, view = config.datasets["items"].table, config.datasets["items"].view
    assert {name for name, _ in view.columns} == {"order_no", "line", "price"}
    assert table.column("line") is None
    assert [column.name for column in table.shown().columns] == ["order_no", "price"]


def test_a_reference_that_is_not_listed_is_read_and_hidden(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    columns = {"line": {"type": "integer"}, "order_no": {"type": "integer"}}
    config = load(write(tmp_path, orders__columns=columns | {"customer": {"type": "integer", "hidden": True}}))
    table = config.datasets["orders"].table
    assert table.privacy_id is None
    assert "customer" in {name for name, _ in config.datasets["orders"].view.columns}


def test_a_household_owns_what_its_members_order(tmp_path: Path) -> None:
    """The privacy ID of the people's table may differ from its key; it is then no column of the orders."""
    config = load(write(tmp_path, customers__unit={"column": "house"}))
    unit = config.datasets["orders"].table.unit
    assert unit is not None
    assert unit.path == OwnerPath((TO_CUSTOMERS,), "house", Kind.INTEGER)
    assert unit.column == "customers.house"
    assert config.datasets["orders"].table.column("customer") is not None


def test_the_summary_and_the_declaration_say_how_the_owner_is_found(tmp_path: Path) -> None:
    config = load(write(tmp_path))
    text = protected_unit(config.datasets["items"])
    assert text.startswith(
        "each customers.id (entity: customer), found through order_no, line (a key of orders) and customer (a key of "
        "customers), with all of its rows"
    )
    assert "along their keys (items with orders, orders with customers)" in joinable_tables(config)[0]
    unit = declare(config.datasets["items"].table)["unit"]
    assert unit["kind"] == "integer"
    assert unit["path"]["steps"][0] == {
        "columns": ["order_no", "line"],
        "of": "orders",
        "key": ["order_no", "line"],
        "kinds": ["integer", "integer"],
    }
    assert "path" not in declare(config.datasets["customers"].table)["unit"]


def test_a_table_with_a_path_survives_json(tmp_path: Path) -> None:
    for dataset in load(write(tmp_path)).datasets.values():
        assert Table.from_json(dataset.table.to_json()) == dataset.table


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"customers__key": None}, "HB730", "declares no key"),
        ({"customers__key": "number"}, "HB730", "is not a known column"),
        ({"customers__key": []}, "HB730", "does not name columns"),
        ({"customers__key": ["id", "id"]}, "HB730", "twice"),
        ({"customers__unit": "row"}, "HB730", "each row is its own privacy unit"),
        ({"orders__unit": {"via": "customer"}}, "HB730", "names the table"),
        ({"orders__unit": {"of": "customers"}}, "HB730", "via is missing"),
        ({"orders__unit": {"via": "buyer", "of": "customers"}}, "HB730", "is not a known column"),
        ({"orders__unit": {"via": "customer", "of": "client"}}, "HB730", "is not a known dataset"),
        ({"orders__unit": {"via": "customer", "of": "customers", "entity": "x"}}, "HB730", "entity"),
        ({"orders__unit": {"via": "customer", "of": "customers", "column": "line"}}, "HB730", "column"),
        ({"items__unit": {"via": "order_no", "of": "orders"}}, "HB730", "names 1 columns"),
        ({"orders__relation": "replace"}, "HB730", "differs from that of customers"),
        ({"customers__columns": {"id": {"type": "text"}}}, "HB731", "of type integer, with customers.id, of type text"),
        ({"customers__unit": {"via": "id", "of": "items"}}, "HB733", "in a circle"),
        ({"customers__unit": {"via": "id", "of": "customers"}}, "HB733", "in a circle"),
    ],
)
def test_a_reference_that_cannot_hold_is_refused(tmp_path: Path, changes: dict[str, Any], code: str, says: str) -> None:
    config, problems = examine(write(tmp_path, **changes))
    assert config is None
    assert problems[0].code == code
    assert says in problems[0].message
    assert problems[0].remedy


def test_a_public_table_has_no_key_and_owns_nothing(tmp_path: Path) -> None:
    public = {"customers__unit": None, "customers__public": True, "customers__budget": None}
    _, problems = examine(write(tmp_path, **public))
    assert (problems[0].code, "only for private tables" in problems[0].message) == ("HB730", True)
    _, problems = examine(write(tmp_path, **public, customers__key=None))
    assert (problems[0].code, "which is public" in problems[0].message) == ("HB730", True)


def test_the_owner_must_be_in_the_same_source(tmp_path: Path) -> None:
    """A file and a server cannot be joined; the schema of the server is not even read."""
    from hubbub.config import ownership
    from hubbub.engines.base import Field, locate
    from hubbub.errors import ConfigError

    here = locate("orders.csv", "source", base=tmp_path, name="orders")
    there = locate("postgresql://h/db/customers", "source", base=tmp_path, name="customers")
    customers = load(write(tmp_path)).datasets["customers"].table
    fields = (Field("customer", "text in a CSV file", None),)
    terms = {"via": "customer", "of": "customers"}
    with pytest.raises(ConfigError) as refused:
        ownership.read_via(terms, "datasets.orders.unit", fields, here, {"customers": (customers, there)})
    assert refused.value.code == "HB732"


def test_problems_of_the_owners_table_are_reported_once(tmp_path: Path) -> None:
    _, problems = examine(write(tmp_path, customers__source="missing.csv"))
    assert [problem.code for problem in problems] == ["HB411"]


@pytest.mark.parametrize("name", ["$owner", "$OWNER", "$key0", "$here"])
@pytest.mark.parametrize("by", ["key", "reference"])
def test_no_column_on_the_way_is_named_like_those_that_find_the_owner(tmp_path: Path, by: str, name: str) -> None:
    """DuckDB renames one of two equal columns, so that the key itself would be the owner."""
    whole = {"type": "integer"}
    if by == "key":
        path = write(tmp_path, customers__columns={name: whole, "house": whole}, customers__key=name)
        path.write_text(path.read_text().replace("column: id", "column: house"))
        (tmp_path / "customers.csv").write_text(f"{name},house\n1,7\n")
    else:
        unit = {"via": name, "of": "customers"}
        columns = {"order_no": whole, "line": whole, name: whole}
        path = write(tmp_path, orders__unit=unit, orders__columns=columns)
        (tmp_path / "orders.csv").write_text(f"order_no,line,{name}\n1,1,1\n")
    _, problems = examine(path)
    assert problems[0].code == "HB730"
    assert "starts with $" in problems[0].message
