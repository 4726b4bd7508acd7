"""The SQLAlchemy dialect over the PostgreSQL port: tables, queries and prices as elsewhere, and nothing is written."""

from collections.abc import Iterator
from typing import Any

import pandas
import pytest
import sqlalchemy
from sqlalchemy import Column, Integer, MetaData, Table, func, insert, select
from sqlalchemy.dialects import registry
from sqlalchemy.engine import make_url
from tests.gateway.conftest import Port, port

from hubbub.client.sqlalchemy_postgres import HubbubPostgresDialect
from hubbub.errors import HubbubError, ParameterError

COUNTS = "SELECT year, COUNT(*) AS n FROM health GROUP BY year ORDER BY year"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    registry.register("hubbub.pg", "hubbub.client.sqlalchemy_postgres", "HubbubPostgresDialect")
    with port(tmp_path_factory.mktemp("sqlalchemy")) as started:
        yield started


@pytest.fixture
def engine(running: Port) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(f"hubbub+pg://ana:{running.tokens['ana']}@127.0.0.1:{running.number}?epsilon=0.5")
    yield made
    made.dispose()


def test_pandas_reads_sql(engine: sqlalchemy.Engine, running: Port) -> None:
    before = running.spent()
    frame = pandas.read_sql(COUNTS, engine)
    assert list(frame["year"]) == [1, 2, 3, 4, 5]
    assert running.spent() == pytest.approx(before + 0.5)
    assert pandas.read_sql(COUNTS, engine).equals(frame)  # free
    given = sqlalchemy.text("SELECT COUNT(*) AS n FROM health WHERE age > :age")
    assert len(pandas.read_sql(given, engine, params={"age": 30})) == 1
    assert running.spent() == pytest.approx(before + 1)


def test_tables_are_reflected_and_queried_as_expressions(engine: sqlalchemy.Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert set(inspector.get_table_names()) == {"health", "plans"}  # wards is ben's alone
    health = Table("health", MetaData(), autoload_with=engine)
    assert isinstance(health.c.age.type, sqlalchemy.BigInteger)
    query = select(health.c.year, func.count().label("n")).where(health.c.age > 31).group_by(health.c.year)
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(health.c.year).limit(3)).all()
    assert [row.year for row in rows] == [1, 2, 3]


def test_without_a_price_nothing_is_charged(running: Port) -> None:
    address = f"hubbub+pg://ben:{running.tokens['ben']}@127.0.0.1:{running.number}"
    made = sqlalchemy.create_engine(address)
    with pytest.raises(pandas.errors.DatabaseError, match="HB808"):
        pandas.read_sql(COUNTS, made)
    made.dispose()
    assert running.spent("ben") == 0


def test_nothing_can_be_written(engine: sqlalchemy.Engine, running: Port) -> None:
    before = running.spent()
    table = Table("health", MetaData(), Column("age", Integer))
    with engine.connect() as connection:
        for statement in (insert(table).values(age=3), table.update().values(age=3), table.delete()):
            with pytest.raises(ParameterError, match="HB822"):
                connection.execute(statement)
        for text in ("DROP TABLE health", "INSERT INTO health (age) VALUES (3)"):
            with pytest.raises(sqlalchemy.exc.DBAPIError, match="HB"):
                connection.execute(sqlalchemy.text(text))
            connection.rollback()
    with pytest.raises(ParameterError, match="HB822"):
        pandas.DataFrame({"a": [1]}).to_sql("other", engine)
    assert running.spent() == before


@pytest.mark.parametrize("url", ["hubbub+pg://data.example.org", "hubbub+pg://:t@host", "hubbub+pg://ana:t@/x"])
def test_a_url_needs_a_host_an_analyst_and_a_token(url: str) -> None:
    with pytest.raises(ParameterError, match="HB820"):
        HubbubPostgresDialect().create_connect_args(make_url(url))


@pytest.mark.parametrize("value", ["1%20-c%20hubbub.fresh%3Da", "1%5C", "'1'", "1%00", "1%09-chubbub.key=a"])
def test_a_setting_cannot_carry_other_options(value: str) -> None:
    with pytest.raises(HubbubError, match="HB821"):
        HubbubPostgresDialect().create_connect_args(make_url(f"hubbub+pg://ana:t@host?epsilon={value}"))


def test_the_address_and_the_settings_of_a_url() -> None:
    url = "hubbub+pg://ana:hub_t@data.example.org?within=5%25&sslmode=verify-full&intervals=on"
    arguments: Any = HubbubPostgresDialect().create_connect_args(make_url(url))
    assert arguments == (
        [],
        {
            "host": "data.example.org",
            "port": 5433,
            "user": "ana",
            "password": "hub_t",
            "dbname": "hubbub",
            "sslmode": "verify-full",
            "options": "-c hubbub.within=5% -c hubbub.intervals=on",
        },
    )
