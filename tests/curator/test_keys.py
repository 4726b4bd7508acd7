"""Keys are checked before answers: by the version of the data, for the owner, and by constraints of PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixtures.postgres import address
from tests.fixtures.postgres_server import Server

from hubbub.answers.release import Release
from hubbub.cli import main
from hubbub.config import load
from hubbub.core.schema import Table
from hubbub.curator import keys
from hubbub.curator.opening import key_problems
from hubbub.curator.session import Session, open_session
from hubbub.engines.base import Engine, Guaranteed
from hubbub.engines.multi_engine import engine_for, open_engine
from hubbub.errors import LedgerError
from hubbub.server.problems import problem

YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: {column: house, rows: 9}
    key: id
    columns: {id: {type: integer}, house: {type: integer}}
    budget: {epsilon: 1000000}
  orders:
    source: orders.csv
    unit: {via: person, of: people, rows: 9}
    columns: {person: {type: integer}, price: {type: integer, bounds: [0, 9]}}
    budget: {epsilon: 1000000}
  notes:
    source: notes.csv
    unit: {column: person}
    columns: {person: {type: integer}}
    budget: {epsilon: 1000000}
analysts:
  ana: {people: {epsilon: 1000000}, orders: {epsilon: 1000000}, notes: {epsilon: 1000000}}
  ben: {orders: {epsilon: 1000000}}
"""
GOOD, BAD = "id,house\n1,1\n2,1\n3,2\n,2\n,2\n", "id,house\n1,1\n2,1\n2,2\n"
ORDERS = "SELECT count(*) FROM orders"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(GOOD)
    (tmp_path / "orders.csv").write_text("person,price\n1,2\n2,3\n2,4\n9,5\n,6\n")
    (tmp_path / "notes.csv").write_text("person\n1\n")
    (tmp_path / "hubbub.yaml").write_text(YAML)
    return tmp_path


@pytest.fixture
def session(shop: Path) -> Iterator[Session]:
    with open_session(shop / "hubbub.yaml", analyst="ana") as opened:
        yield opened


def rounded(release: Release) -> int:
    return round(float(str(release.rows[0][0])))


def count(session: Session, text: str = ORDERS) -> int:
    return rounded(session.query(text, epsilon=20_000))


def test_rows_without_an_owner_are_in_no_answer(session: Session) -> None:
    """Of five orders, one refers to nobody and one to a person who does not exist. False alarms: below e⁻¹⁰⁰."""
    assert count(session) == 3
    assert count(session, "SELECT sum(price) FROM orders JOIN people ON person = id") == 9
    left_out = session.query(ORDERS, epsilon=20_000).left_out
    assert left_out is not None
    assert left_out.sentence().endswith("Rows without people.house are in no answer.")


def test_a_key_that_is_not_unique_stops_the_dataset_for_everybody(shop: Path) -> None:
    """Every query on the table and on those behind it is refused with the same words, before any charge."""
    (shop / "people.csv").write_text(BAD)
    words = set[str]()
    for analyst in ("ana", "ben"):
        with open_session(shop / "hubbub.yaml", analyst=analyst) as session:
            for text in (ORDERS, "SELECT sum(price) FROM orders WHERE price > 5"):
                with pytest.raises(LedgerError) as refused:
                    session.query(text, epsilon=1)
                words.add(str(refused.value))
            assert session.releases() == ()
            assert session.estimate(ORDERS, epsilon=1).epsilon == 1
            if analyst == "ana":
                assert count(session, "SELECT count(*) FROM notes") == 1
                with pytest.raises(LedgerError):
                    session.query("SELECT count(*) FROM people", epsilon=1)
    assert len(words) == 1
    assert words.pop().startswith("HB735 The data of orders contradicts its declaration. Nothing was run or charged.")


def test_a_key_is_checked_again_when_the_data_changes(shop: Path, session: Session) -> None:
    """In both directions; a state that was checked once is not checked again."""
    assert count(session) == 3
    (shop / "people.csv").write_text(BAD)
    with pytest.raises(LedgerError) as refused:
        count(session)
    assert refused.value.code == "HB735"
    (shop / "people.csv").write_text(GOOD)
    assert count(session) == 3


def test_a_checked_state_is_not_read_again(shop: Path, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert count(session) == 3
    checks: list[str] = []
    honest = keys.has_duplicates

    def counted(table: Table, engine: Engine) -> bool:
        checks.append(table.name)
        return honest(table, engine)

    monkeypatch.setattr(keys, "has_duplicates", counted)
    assert count(session, "SELECT count(*), sum(price) FROM orders") == 3
    with open_session(shop / "hubbub.yaml", analyst="ana") as again:
        assert count(again, "SELECT count(*) FROM people") == 5
    assert checks == []
    # another key of the same data has not been checked
    text = YAML.replace("key: id", "key: [id, house]").replace("via: person,", "via: [person, price],")
    (shop / "hubbub.yaml").write_text(text.replace("  orders:", "  buys:").replace("orders: {", "buys: {"))
    with open_session(shop / "hubbub.yaml", analyst="ana") as again:
        count(again, "SELECT count(*) FROM people WHERE id > 0")
    assert checks == ["people"]


def test_a_change_of_the_owners_table_is_a_new_version_of_all_that_refer_to_it(shop: Path, session: Session) -> None:
    """Without it, an answer about other owners would be repeated."""
    before = session.query(ORDERS, epsilon=20_000)
    assert session.query(ORDERS, epsilon=20_000).replayed
    (shop / "people.csv").write_text("id,house\n1,1\n")
    after = session.query(ORDERS, epsilon=20_000)
    assert not after.replayed
    assert (rounded(before), rounded(after)) == (3, 1)
    versions = [{data["dataset"]: data["version"] for data in r.receipt["data"]}["orders"] for r in (before, after)]
    assert versions[0] != versions[1]


def test_the_owner_learns_of_it_from_check_and_refresh(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(shop / "hubbub.yaml")
    open_session(config, analyst="ana").close()
    assert main(["check", "--config", config]) == 0
    assert main(["admin", "refresh", "people", "--config", config]) == 0
    (shop / "people.csv").write_text(BAD)
    capsys.readouterr()
    assert main(["check", "--config", config]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "HB734 datasets.people.key is not true: several rows have the same id." in shown
    assert main(["admin", "refresh", "people", "--config", config]) == 1
    assert "HB734" in "".join(capsys.readouterr())


def test_a_key_is_unique_as_queries_read_it(shop: Path) -> None:
    """Integers are read as doubles, so two keys beyond 2⁵³ may become one."""
    (shop / "people.csv").write_text(f"id,house\n{2**53},1\n{2**53 + 1},2\n")
    config = load(shop / "hubbub.yaml")
    assert [error.code for error in key_problems(config, config.datasets)] == ["HB734"]
    (shop / "people.csv").write_text(f"id,house\n{2**53},1\n{2**53 + 2},2\n")
    assert key_problems(config, config.datasets) == []
    # a hidden privacy ID among them is given in every join, so the other columns must identify the row
    text = YAML.replace("key: id", "key: [house, id]").replace("via: person,", "via: [price, person],")
    (shop / "hubbub.yaml").write_text(text.replace("house: {", "house: {hidden: true, "))
    config = load(shop / "hubbub.yaml")
    for second, codes in ((2**53 + 2, []), (2**53 + 1, ["HB734"])):
        (shop / "people.csv").write_text(f"id,house\n{2**53},1\n{second},1\n")
        assert [error.code for error in key_problems(config, config.datasets)] == codes


def test_the_server_shows_the_refusal_and_no_more() -> None:
    error = LedgerError("HB735", "The data of orders contradicts its declaration. Nothing was run or charged.", "…")
    assert problem(error, "r")["status"] == 503
    assert problem(error, "r")["detail"] == error.message


def test_a_constraint_of_postgres_suffices(postgres_server: Server, tmp_path: Path) -> None:
    """With it nothing is counted; a partial, deferred or wider index guarantees nothing."""
    postgres_server.run("CREATE DATABASE keyed")
    try:
        for text in (
            "CREATE TABLE people (id int PRIMARY KEY, house int, a int UNIQUE, b int, c int UNIQUE DEFERRABLE, d int)",
            "CREATE UNIQUE INDEX ON people (b) WHERE b > 0",
            "CREATE UNIQUE INDEX ON people ((d + 1))",
            "CREATE UNIQUE INDEX ON people (house) INCLUDE (d)",
            "CREATE UNIQUE INDEX ON people (b, d)",
            "CREATE VIEW seen AS SELECT * FROM people",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO hubbub",
        ):
            postgres_server.run(text, "keyed")
        source = address(postgres_server, "keyed", "people")
        columns: dict[str, dict[str, str]] = {name: {} for name in ("id", "house", "a", "b", "c", "d")}
        (tmp_path / "hubbub.yaml").write_text(
            f"version: 1\ndatasets:\n  people: {{source: '{source}', unit: {{column: house}}, key: id, "
            f"columns: {columns}, budget: {{epsilon: 1}}}}\n"
            f"  seen: {{source: '{address(postgres_server, 'keyed', 'seen')}', unit: {{column: house}}, key: id, "
            f"columns: {columns}, budget: {{epsilon: 1}}}}\n"
        )
        config = load(tmp_path / "hubbub.yaml")
        engine = open_engine([each.view for each in config.datasets.values()], frozenset(), limits=config.limits)
        try:
            assert isinstance(engine, Guaranteed)
            assert engine.guarantees_unique("people", ("id",))
            assert engine.guarantees_unique("people", ("b", "id"))
            assert engine.guarantees_unique("people", ("a",))
            assert engine.guarantees_unique("people", ("d", "b"))
            assert engine.guarantees_unique("people", ("house",))
            for unsafe in (("b",), ("c",), ("d",)):
                assert not engine.guarantees_unique("people", unsafe)
            assert not engine.guarantees_unique("seen", ("id",))
            postgres_server.run("INSERT INTO people VALUES (1, 1, 1, 1, 1, 1), (2, 2, 2, 2, 2, 2)", "keyed")
            assert keys.key_problems([each.table for each in config.datasets.values()], engine) == []
        finally:
            engine.close()
    finally:
        postgres_server.run("DROP DATABASE keyed WITH (FORCE)")


def test_a_constraint_of_postgres_does_not_cover_tables_that_inherit_or_large_keys(
    postgres_server: Server, tmp_path: Path
) -> None:
    """A query of a table reads those that inherit from it, too; partitions share the index of their table."""
    postgres_server.run("CREATE DATABASE inherited")
    try:
        for text in (
            "CREATE TABLE people (id int PRIMARY KEY, house int)",
            "CREATE TABLE guests () INHERITS (people)",
            "CREATE TABLE parts (id bigint PRIMARY KEY, house int) PARTITION BY RANGE (id)",
            "CREATE TABLE part1 PARTITION OF parts DEFAULT",
            "INSERT INTO people VALUES (1, 1)",
            "INSERT INTO guests VALUES (1, 2)",
            "INSERT INTO parts VALUES (1, 2)",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO hubbub",
        ):
            postgres_server.run(text, "inherited")
        datasets = "".join(
            f"  {name}: {{source: '{address(postgres_server, 'inherited', name)}', unit: {{column: house}}, key: id, "
            "columns: {id: {}}, budget: {epsilon: 1}}\n"
            for name in ("people", "parts")
        )
        (tmp_path / "hubbub.yaml").write_text(f"version: 1\ndatasets:\n{datasets}")
        config = load(tmp_path / "hubbub.yaml")
        engine = open_engine([each.view for each in config.datasets.values()], frozenset(), limits=config.limits)
        try:
            assert isinstance(engine, Guaranteed)
            assert engine.guarantees_unique("parts", ("id",))
            assert [
                keys.has_duplicates(config.datasets[name].table, engine_for(engine, [name]))
                for name in ("people", "parts")
            ] == [True, False]
            # the index tells these apart; queries read doubles
            for number, same in ((2**53, False), (2**53 + 1, True)):
                postgres_server.run(f"INSERT INTO parts VALUES ({number}, 2)", "inherited")
                assert keys.has_duplicates(config.datasets["parts"].table, engine_for(engine, ["parts"])) is same
        finally:
            engine.close()
    finally:
        postgres_server.run("DROP DATABASE inherited WITH (FORCE)")
