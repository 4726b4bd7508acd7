"""The SQLAlchemy dialect: what pandas and SQLAlchemy ask is answered, and nothing can be written."""

import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas
import pytest
import sqlalchemy
from sqlalchemy import Column, Integer, MetaData, Table, func, insert, select
from sqlalchemy.dialects import registry
from sqlalchemy.engine import make_url
from tests.server.conftest import Starter, World, start_served  # noqa: F401 - a fixture

from hubbub.client.sqlalchemy_dialect import HubbubDialect
from hubbub.client.sqlalchemy_postgres import HubbubPostgresDialect
from hubbub.errors import HubbubError, ParameterError

PLACE = ("hubbub.client.sqlalchemy_dialect", "HubbubDialect")


@pytest.fixture
def world(start_served: Starter) -> World:  # noqa: F811
    return start_served()


@pytest.fixture
def engine(world: World) -> Iterator[sqlalchemy.Engine]:
    registry.register("hubbub.http", *PLACE)
    made = sqlalchemy.create_engine(f"hubbub+http://:{world.tokens['ana']}@{world.url[7:]}?epsilon=0.5")
    yield made
    made.dispose()


def test_the_entry_points_name_the_dialect() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["sqlalchemy.dialects"]
    expected = dict.fromkeys(("hubbub", "hubbub.http", "hubbub.https"), HubbubDialect)
    assert set(points) == {*expected, "hubbub.pg"}
    for scheme, place in points.items():
        module, _, name = place.partition(":")
        assert getattr(import_module(module), name) is expected.get(scheme, HubbubPostgresDialect)


def test_pandas_reads_sql(engine: sqlalchemy.Engine, world: World) -> None:
    sql = "SELECT year, COUNT(*) AS n FROM health GROUP BY year ORDER BY year"
    frame = pandas.read_sql(sql, engine)
    assert list(frame.columns) == ["year", "n"]
    assert list(frame["year"]) == [1, 2, 3, 4, 5]
    assert world.spent()["health"] == "1/2"
    assert pandas.read_sql(sql, engine).equals(frame)  # free
    given = "SELECT COUNT(*) AS n FROM health WHERE age > :age"
    assert len(pandas.read_sql(sqlalchemy.text(given), engine, params={"age": 30})) == 1
    assert world.spent()["health"] == "1"


def test_tables_are_reflected_and_queried_as_expressions(engine: sqlalchemy.Engine, world: World) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["health", "plans"]
    assert not inspector.has_table("wards")  # ben's alone
    health = Table("health", MetaData(), autoload_with=engine)
    assert isinstance(health.c.age.type, sqlalchemy.BigInteger)
    query = select(health.c.year, func.count().label("n")).where(health.c.age > 30).group_by(health.c.year)
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(health.c.year).limit(3)).all()
    assert [row.year for row in rows] == [1, 2, 3]
    assert world.spent()["health"] == "1/2"


def test_nothing_can_be_written(engine: sqlalchemy.Engine, world: World) -> None:
    table = Table("health", MetaData(), Column("age", Integer))
    with engine.connect() as connection:
        for statement in (insert(table).values(age=3), sqlalchemy.text("DROP TABLE health"), table.delete()):
            with pytest.raises((sqlalchemy.exc.DBAPIError, HubbubError)):
                connection.execute(statement)
            connection.rollback()
    with pytest.raises((sqlalchemy.exc.DBAPIError, HubbubError)):
        pandas.DataFrame({"a": [1]}).to_sql("other", engine)
    assert "health" not in world.spent() or world.spent()["health"] in ("0", None)


@pytest.mark.parametrize("url", ["hubbub+https://data.example.org", "hubbub+https:///x", "hubbub+http://:t@"])
def test_a_url_needs_a_host_and_a_token(url: str) -> None:
    with pytest.raises(ParameterError, match="HB838"):
        HubbubDialect().create_connect_args(make_url(url))


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("hubbub+https://:hub_t@data.example.org", "https://data.example.org"),
        ("hubbub://:hub_t@data.example.org:8443", "https://data.example.org:8443"),
        ("hubbub+http://:hub_t@[::1]:8321?epsilon=0.1", "http://[::1]:8321"),
    ],
)
def test_the_address_of_a_url(url: str, address: str) -> None:
    arguments: Any = HubbubDialect().create_connect_args(make_url(url))
    assert arguments[0] == [address, "hub_t"]
    assert arguments[1] == ({"epsilon": "0.1"} if "epsilon" in url else {})
