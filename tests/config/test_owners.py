"""Two owners of each row in hubbub.yaml: columns of the table, or one of them through keys."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from hubbub.config import load
from hubbub.config.summary import hidden_fact, joinable_tables, protected_unit
from hubbub.core.schema import Table
from hubbub.curator.session import open_session
from hubbub.errors import ConfigError, HubbubError

CONFIG = """version: 1
datasets:
  lines:
    source: lines.csv
    unit: UNIT
    columns: {amount: {bounds: [0, 9]}, order_id: {type: integer}}
    budget: {epsilon: 100000}
  orders:
    source: orders.csv
    unit: {column: customer, entity: customer, rows: 5}
    key: id
    columns: {id: {type: integer}, channel: {values: [web, shop]}}
    budget: {epsilon: 100000}
analysts: {ana: {lines: {epsilon: 100000}, orders: {epsilon: 100000}}}
"""
THROUGH_KEYS = "[{column: supplier, entity: supplier}, {via: order_id, of: orders, max_rows: 50}]"
COLUMNS = "[{column: supplier, entity: supplier}, {column: order_id, entity: order}]"


def write(folder: Path, unit: str) -> Path:
    (folder / "lines.csv").write_text(
        "order_id,supplier,amount\n1,7,2\n1,8,3\n2,7,4\n3,7,5\n9,7,9\n,8,9\n2,,9\n"  # 9 dangles; two lack an owner
    )
    (folder / "orders.csv").write_text("id,customer,channel\n1,50,web\n2,50,shop\n3,51,web\n4,,web\n")
    (folder / "hubbub.yaml").write_text(CONFIG.replace("UNIT", unit))
    return folder / "hubbub.yaml"


@pytest.mark.parametrize(
    "unit",
    [
        "[{column: supplier, entity: supplier}]",
        "[{column: supplier, entity: a}, {column: order_id, entity: b}, {column: amount, entity: c}]",
        "[{column: supplier, entity: supplier}, {column: supplier, entity: other}]",
        "[{column: supplier, entity: supplier}, {column: order_id}]",
        "[{column: supplier, entity: supplier, rows: 3}, {column: order_id, entity: order}]",
        "[{via: order_id, of: orders}, {via: order_id, of: orders}]",
        "[{column: supplier, entity: supplier, per: {day: amount}}, {column: order_id, entity: order}]",
        "[{column: supplier, entity: order}, {column: order_id, entity: order}]",  # a text and an integer
        "[{column: order_id, entity: customer}, {via: order_id, of: orders}]",
    ],
)
def test_what_two_owners_cannot_be_is_refused(tmp_path: Path, unit: str) -> None:
    with pytest.raises(HubbubError) as refused:
        load(write(tmp_path, unit))
    assert refused.value.code == "HB760"


def test_nothing_refers_through_rows_with_two_owners(tmp_path: Path) -> None:
    path = write(tmp_path, COLUMNS)
    more = "  parts:\n    source: parts.csv\n    unit: {via: line, of: lines}\n    budget: {epsilon: 1}\nanalysts:"
    (tmp_path / "parts.csv").write_text("line,x\n1,1\n")
    path.write_text(
        path.read_text().replace("analysts:", more).replace("    unit: [", "    key: order_id\n    unit: [")
    )
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert refused.value.code == "HB760"


@pytest.mark.parametrize("unit", [COLUMNS, THROUGH_KEYS])
def test_a_declaration_keeps_both_owners(tmp_path: Path, unit: str) -> None:
    config = load(write(tmp_path, unit))
    table = config.datasets["lines"].table
    assert len(table.owners) == 2
    assert all(owner.auto for owner in table.owners)
    assert Table.from_json(table.to_json()).others == table.others
    assert "and each" in protected_unit(config.datasets["lines"])
    assert " or " in hidden_fact(config.datasets["lines"])
    assert ("customer" in str(joinable_tables(config))) == (unit is THROUGH_KEYS)
    names = {name for name, _ in config.datasets["lines"].view.columns}
    assert {"supplier", "order_id"} <= names


@pytest.fixture
def lines(tmp_path: Path) -> Any:
    with open_session(write(tmp_path, THROUGH_KEYS), analyst="ana") as session:
        yield session


def test_rows_have_the_owner_through_keys_and_the_owner_of_a_column(lines: Any, tmp_path: Path) -> None:
    """Lines without an order, a customer or a supplier are in no answer; a join along the key adds none."""
    release = lines.query("SELECT COUNT(*) AS n, SUM(amount) AS a FROM lines", epsilon=20_000)
    assert [round(value) for value in release.rows[0]] == [4, 14]
    joined = "SELECT channel, COUNT(*) AS n FROM lines l JOIN orders o ON l.order_id = o.id GROUP BY channel"
    assert lines.query(joined, epsilon=20_000).rows == [("web", 3), ("shop", 1)]
    with duckdb.connect() as engine:
        rows = f"'{tmp_path}/lines.csv' AS l JOIN '{tmp_path}/orders.csv' AS o ON l.order_id = o.id"
        counted = engine.execute(
            f"SELECT channel, count(*) FROM {rows} WHERE supplier IS NOT NULL GROUP BY 1 ORDER BY 1 DESC"
        ).fetchall()
    assert counted == [("web", 3), ("shop", 1)]
