"""`hubbub init --database`: from a catalog to a hubbub.yaml that `hubbub check` accepts once its blanks are filled."""

from pathlib import Path

import duckdb
import pytest
import yaml
from tests.fixtures.postgres_server import Server

from hubbub.cli import main
from hubbub.config import load
from hubbub.curator.session import open_session

TABLES = (
    "CREATE TABLE regions (id int PRIMARY KEY, name text)",
    "CREATE TABLE customers (id int PRIMARY KEY, email text UNIQUE, birth date NOT NULL CHECK (birth >= '1900-01-01'"
    " AND birth <= '2030-01-01'), segment text CHECK (segment IN ('home', 'trade')), region int REFERENCES regions)",
    "CREATE TABLE orders (shop int, number int, customer int NOT NULL REFERENCES customers, state {state} NOT NULL,"
    " total numeric(9, 2) NOT NULL CHECK (total BETWEEN 0 AND 5000), PRIMARY KEY (shop, number))",
    "CREATE TABLE lines (id bigint PRIMARY KEY, number int, shop int, pieces int CHECK (pieces > 0), tags {tags},"
    " FOREIGN KEY (shop, number) REFERENCES orders (shop, number))",
    "CREATE TABLE calls (id int PRIMARY KEY, caller int REFERENCES customers, callee int REFERENCES customers)",
    "INSERT INTO regions VALUES (1, 'North')",
    "INSERT INTO customers VALUES (1, 'a@b', '1980-01-01', 'home', 1), (2, 'c@d', '1990-01-01', 'trade', 1)",
    "INSERT INTO orders VALUES (1, 1, 1, 'open', 20), (1, 2, 2, 'done', 30)",
    "INSERT INTO lines VALUES (1, 1, 1, 2, NULL), (2, 2, 1, 3, NULL), (3, 2, 1, 4, NULL), (4, NULL, 1, 5, NULL)",
)


def fill(path: Path) -> None:
    """Do what the owner does: give budgets, and choose the owner of a call."""
    text = (
        path.read_text()
        .replace("{epsilon: }", "{epsilon: 1000000}")
        .replace("unit:  #", "unit: {via: caller, of: customers} #")
    )
    path.write_text(text)


def check_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Compare what was written with the catalog, and answer a query along its keys."""
    text = path.read_text()
    for name in ("regions",):
        assert f"  # {name}:\n" in text
    assert "public: true" in text
    fill(path)
    document = yaml.safe_load(path.read_text())["datasets"]
    assert "regions" not in document
    assert document["customers"]["unit"] == {"column": "id", "entity": "customers"}
    assert document["customers"]["key"] == "id"
    assert document["customers"]["columns"]["segment"] == {"values": ["home", "trade"]}
    assert list(map(str, document["customers"]["columns"]["birth"]["bounds"])) == ["1900-01-01", "2030-01-01"]
    assert document["orders"]["unit"] == {"via": "customer", "of": "customers", "rows": "auto"}
    assert document["orders"]["key"] == ["shop", "number"]
    assert document["orders"]["columns"]["state"] == {"values": ["open", "done"]}
    assert document["orders"]["columns"]["total"] == {"bounds": [0, 5000], "required": True}
    assert document["lines"]["unit"] == {"via": ["shop", "number"], "of": "orders", "rows": "auto"}
    assert document["lines"]["columns"]["pieces"] == {"bounds": "auto"}
    assert "tags" not in document["lines"]["columns"]
    assert "only the owner that you choose is protected" in text
    capsys.readouterr()
    assert main(["check", "--config", str(path)]) == 0, capsys.readouterr().out
    assert load(path).datasets["lines"].table.unit is not None
    name = next(iter(yaml.safe_load(path.read_text())["analysts"]))
    with open_session(path, analyst=name) as session:
        query = "SELECT count(*) FROM lines l JOIN orders o ON l.shop = o.shop AND l.number = o.number"
        release = session.query(query, epsilon=50_000, rows=3)
    assert round(float(str(release.rows[0][0]))) == 3


def test_a_postgres_schema_becomes_a_hubbub_yaml(
    postgres_server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The role sees the tables granted to it, and enums, arrays and numerics as PostgreSQL has them."""
    postgres_server.run("CREATE DATABASE shop")
    try:
        postgres_server.run("CREATE TYPE state AS ENUM ('open', 'done')", "shop")
        for text in TABLES:
            postgres_server.run(text.format(state="state", tags="text[]"), "shop")
        postgres_server.run("CREATE ROLE shopper LOGIN", "shop")
        postgres_server.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO shopper", "shop")
        postgres_server.run("CREATE TABLE secret (id int PRIMARY KEY)", "shop")
        path, url = tmp_path / "hubbub.yaml", f"postgresql://shopper@/shop?host={postgres_server.home}"
        arguments = ["init", "--database", url, "--output", str(path)]
        assert main([*arguments, "--person", "customers"]) == 0
        assert "secret" not in path.read_text()
        assert "Proposed" not in path.read_text()
        check_file(path, capsys)
        assert main([*arguments, "--force"]) == 0
        assert "Proposed as the table of people: customers" in capsys.readouterr().out
        assert "# Proposed: is one row here one person?" in path.read_text()
        assert main([*arguments, "--force", "--schema", "empty"]) == 1
        assert main([*arguments, "--force", "--person", "lines_of_code"]) == 1
        assert "HB737" in capsys.readouterr().err
    finally:
        postgres_server.run("DROP DATABASE shop WITH (FORCE)")
        postgres_server.run("DROP ROLE IF EXISTS shopper")


def test_a_duckdb_file_becomes_a_hubbub_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as connection:
        for text in TABLES:
            connection.execute(text.format(state="ENUM ('open', 'done')", tags="varchar[]"))
    assert main(["init", "--database", "shop.duckdb", "--person", "customers"]) == 0
    check_file(tmp_path / "hubbub.yaml", capsys)


def test_a_folder_of_files_has_no_keys_and_gets_blank_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("id\n1\n")
    (tmp_path / "data" / "visits.csv").write_text("id,person\n1,1\n")
    (tmp_path / "data" / "notes.txt").write_text("no table")
    assert main(["init", "--database", "data"]) == 0
    document = yaml.safe_load((tmp_path / "hubbub.yaml").read_text())["datasets"]
    assert {name: entry["unit"] for name, entry in document.items()} == {"people": None, "visits": None}
    assert main(["init", "--database", "data", "--person", "people", "--force"]) == 1
    assert "HB737" in capsys.readouterr().err
    assert main(["init", "--output", "other.yaml"]) == 1
