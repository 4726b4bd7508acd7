"""DB-API 2.0: what PEP 249 asks for, and pandas and polars over it."""

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.client.dbapi.conftest import Connecting

from hubbub.answers.statements import below, changed_settings, explained_query
from hubbub.client import dbapi
from hubbub.errors import BudgetError, HubbubError, LedgerError, QueryError, RunError, ServerError

PLANS = "SELECT coinsurance, COUNT(*) AS n, AVG(visits) AS visits FROM health GROUP BY coinsurance"


def test_the_module_says_what_it_is() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    kinds = [dbapi.InterfaceError, dbapi.DatabaseError]
    below_database = [
        dbapi.DataError,
        dbapi.OperationalError,
        dbapi.IntegrityError,
        dbapi.InternalError,
        dbapi.ProgrammingError,
        dbapi.NotSupportedError,
    ]
    assert all(issubclass(each, dbapi.Error) for each in kinds)
    assert all(issubclass(each, dbapi.DatabaseError) for each in below_database)
    assert issubclass(dbapi.Warning, Exception)
    for name in ("Error", "Warning", *(each.__name__ for each in kinds + below_database)):
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)


def test_constructors_and_type_objects_are_those_of_the_pep() -> None:
    assert dbapi.Date(2020, 1, 31) == datetime.date(2020, 1, 31)
    assert dbapi.Timestamp(2020, 1, 31, 1, 2, 3) == datetime.datetime(2020, 1, 31, 1, 2, 3)
    assert dbapi.TimestampFromTicks(0) == datetime.datetime.fromtimestamp(0)
    assert dbapi.DateFromTicks(0) == dbapi.TimestampFromTicks(0).date()
    assert dbapi.TimeFromTicks(0) == dbapi.TimestampFromTicks(0).time()
    assert dbapi.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert dbapi.Binary(b"x") == b"x"
    codes = {"NUMBER": int, "STRING": str, "DATETIME": datetime.date, "BINARY": bytes}
    for name, code in codes.items():
        assert [each for each in codes if getattr(dbapi, each) == code] == [name]
        assert [each for each in codes if code == getattr(dbapi, each)] == [name]
    assert len({dbapi.NUMBER, dbapi.STRING, dbapi.BINARY, dbapi.ROWID}) == 4


def test_a_select_is_answered_with_names_types_and_rows(connecting: Connecting) -> None:
    cursor = connecting(epsilon=0.5, groups=1).cursor()
    assert (cursor.description, cursor.rowcount) == (None, -1)
    assert cursor.execute(PLANS) is cursor
    assert cursor.description is not None
    assert [each[:2] for each in cursor.description] == [("coinsurance", int), ("n", int), ("visits", float)]
    assert all(len(each) == 7 for each in cursor.description)
    assert cursor.rowcount == 5
    first = cursor.fetchone()
    assert first is not None
    assert first[0] == 0
    assert [row[0] for row in cursor.fetchmany(2)] == [25, 50]
    assert len(cursor.fetchmany()) == 1
    assert cursor.rownumber == 4
    assert [row[0] for row in cursor] == [100]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    assert cursor.release is not None
    assert cursor.release.epsilon == Fraction(1, 2)


def test_public_tables_need_no_setting(connecting: Connecting) -> None:
    cursor = connecting().cursor()
    cursor.execute("SELECT coinsurance FROM plans ORDER BY coinsurance LIMIT 2")
    assert cursor.fetchall() == [("0",), ("100",)]
    cursor.execute("EXPLAIN SELECT coinsurance FROM plans")
    ((item, value),) = cursor.fetchall()
    assert (item, value[:4]) == ("cost", "free")


def test_settings_are_statements_too(connecting: Connecting) -> None:
    connection = connecting()
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError, match="HB132") as caught:
        cursor.execute(PLANS)
    assert "SET hubbub.epsilon = 0.1" in caught.value.remedy
    cursor.execute("SET hubbub.epsilon = 0.1")
    assert (cursor.description, cursor.rowcount) == (None, -1)
    with pytest.raises(dbapi.ProgrammingError, match="no result"):
        cursor.fetchall()
    cursor.execute("-- tighter\nset hubbub.groups TO 1;")
    cursor.execute("SET hubbub.intervals = on")
    cursor.execute(PLANS)
    assert cursor.description is not None
    assert [each[0] for each in cursor.description][1:4] == ["n", "n_low", "n_high"]
    assert cursor.release is not None
    assert (cursor.release.epsilon, cursor.release.replayed) == (Fraction(1, 10), False)
    assert cursor.release.receipt["bounds"]["groups"] == 1
    cursor.execute("SET hubbub.within = '5%'")
    assert "epsilon" not in connection.settings
    cursor.execute("RESET hubbub.within")
    cursor.execute("SET hubbub.epsilon = '1/10'")
    cursor.execute(PLANS)
    assert cursor.release.replayed
    for wrong in ("SET hubbub.eps = 1", "SET hubbub.epsilon = much", "SET hubbub.rows = 0.5", "SET hubbub.raw = maybe"):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(wrong)


def test_with_free_nothing_is_ever_charged(connecting: Connecting) -> None:
    cursor = connecting(epsilon="0.25", free=True).cursor()
    asked = "SELECT COUNT(*) AS n FROM health WHERE age < 33"
    with pytest.raises(dbapi.Error, match="HB167"):
        cursor.execute(asked)
    assert cursor.execute(f"EXPLAIN {asked}").fetchall()[0][0] == "cost"
    bought = cursor.execute("SET hubbub.free = off").execute(asked).fetchall()
    assert cursor.execute("SET hubbub.free = on").execute(asked).fetchall() == bought


def test_an_explain_costs_nothing_and_says_what_would(connecting: Connecting) -> None:
    cursor = connecting(epsilon=0.25, delta=0).cursor()
    rows = dict(cursor.execute(f"EXPLAIN {PLANS}").fetchall())
    assert rows["cost"].startswith("ε = 0.25 on health")
    assert rows["admitted"] == "yes"
    assert rows["error of n"].startswith("±")
    assert cursor.execute("SELECT * FROM hubbub.releases").fetchall() == []


def test_the_curator_itself_can_be_asked_about(connecting: Connecting) -> None:
    cursor = connecting(epsilon=0.25, delta=0).cursor()
    cursor.execute(PLANS)
    cursor.execute("select * from hubbub.budget;")
    assert cursor.description is not None
    names = [each[0] for each in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    (own,) = [row for row in rows if row["scope"] == "analyst"]
    assert (own["name"], own["epsilon"], own["spent"], own["left"]) == ("ana", 10.0, 0.25, 9.75)
    assert cursor.execute("SELECT * FROM hubbub.datasets").fetchall() == [("health", "person", 9), ("plans", None, 2)]
    columns = cursor.execute("SELECT * FROM hubbub.columns").fetchall()
    assert ("health", "age", "integer", 0.0, 65.0, None) in columns
    ((_, when, dataset, query, epsilon, delta, released),) = cursor.execute("SELECT * FROM hubbub.releases").fetchall()
    assert (dataset, epsilon, delta, released) == ("health", 0.25, 0.0, True)
    assert isinstance(when, datetime.datetime)
    assert query.startswith("SELECT coinsurance")
    with pytest.raises(dbapi.ProgrammingError, match=r"hubbub\.secrets"):
        cursor.execute("SELECT * FROM hubbub.secrets")


def test_parameters_stand_for_question_marks(connecting: Connecting) -> None:
    cursor = connecting(epsilon=1).cursor()
    sql = "SELECT COUNT(*) AS n FROM health WHERE age > ? AND spending > ? AND health = ?"
    cursor.execute(sql, [np.int64(30), 0.5, "good"])
    assert cursor.release is not None
    assert cursor.release.receipt["query"].endswith("-- $1 = 30, $2 = Fraction(1, 2), $3 = 'good'")
    for wrong in ("abc", {"a": 1}, 7):
        with pytest.raises(dbapi.ProgrammingError, match="HB188"):
            cursor.execute(sql, wrong)  # type: ignore[arg-type]
    with pytest.raises(dbapi.ProgrammingError, match="HB509"):
        cursor.execute(sql, [1, 2])


def test_a_time_stamp_of_pandas_is_one_of_python(connecting: Connecting) -> None:
    cursor = connecting(epsilon=1).cursor()
    sql = "SELECT COUNT(*) AS n FROM health WHERE CAST(? AS TIMESTAMP) > CAST('2020-01-01' AS TIMESTAMP)"
    cursor.execute(sql, [pd.Timestamp("2020-01-31 12:00")])
    assert cursor.release is not None
    assert "datetime.datetime(2020, 1, 31, 12, 0)" in cursor.release.receipt["query"]


def test_errors_are_those_of_the_pep_and_keep_code_remedy_and_place(connecting: Connecting) -> None:
    cursor = connecting(epsilon=1).cursor()
    with pytest.raises(dbapi.ProgrammingError) as caught:
        cursor.execute("SELECT COUNT(*)\nFROM nowhere")
    assert isinstance(caught.value.__cause__, QueryError)
    assert caught.value.position == caught.value.__cause__.position
    assert caught.value.position is not None
    assert caught.value.remedy == caught.value.__cause__.remedy
    cursor.execute("SET hubbub.epsilon = 5.5")
    with pytest.raises(dbapi.OperationalError, match="HB201") as spent:
        cursor.execute("SELECT COUNT(*) FROM health")
    assert isinstance(spent.value.__cause__, BudgetError)
    with pytest.raises(dbapi.NotSupportedError):
        cursor.executemany("SELECT 1", [[1]])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RunError(), dbapi.OperationalError),
        (LedgerError("HB301", "x"), dbapi.OperationalError),
        (ServerError("HB801", "x"), dbapi.InterfaceError),
        (HubbubError("HB999", "x"), dbapi.InternalError),
    ],
)
def test_other_errors_have_their_kinds(error: HubbubError, kind: type[dbapi.Error]) -> None:
    from hubbub.client.dbapi.errors import translate_errors

    with pytest.raises(kind, match=error.code), translate_errors():
        raise error


def test_what_was_closed_is_not_used(connecting: Connecting) -> None:
    connection = connecting(epsilon=1)
    connection.commit()
    connection.rollback()
    with connection.cursor() as cursor:
        cursor.setinputsizes([1])
        cursor.setoutputsize(1)
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.execute(PLANS)
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback):
        with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
            use()


@pytest.mark.parametrize("options", [{}, {"url": "https://x"}, {"token": "x"}, {"url": "x", "token": "y", "path": "z"}])
def test_where_to_connect_must_be_said_once(options: dict[str, Any]) -> None:
    with pytest.raises(dbapi.InterfaceError, match="HB180"):
        dbapi.connect(**options)


def test_a_missing_file_is_an_error_of_the_pep(tmp_path: Path) -> None:
    with pytest.raises(dbapi.DatabaseError):
        dbapi.connect(path=tmp_path / "hubbub.yaml")
    with pytest.raises(dbapi.ProgrammingError, match="HB185"):
        dbapi.connect(path=tmp_path / "hubbub.yaml", eps=1)


def test_statements_are_told_apart() -> None:
    assert changed_settings("/* x */ -- y\n SET hubbub.epsilon=0.1", {"within": 5}) == {"epsilon": Fraction(1, 10)}
    assert changed_settings("SET hubbub.epsilon = DEFAULT", {"epsilon": Fraction(1), "rows": 2}) == {"rows": 2}
    assert changed_settings("SELECT 1", {}) is None
    assert changed_settings("SET search_path = x", {}) is None
    assert explained_query("EXPLAIN\nSELECT 1") == "SELECT 1"
    assert explained_query("SELECT explain FROM t") is None


def test_what_is_left_is_never_shown_as_more() -> None:
    for value in (Fraction(1, 10), Fraction(2, 3), Fraction(10**17 + 1), Fraction(1, 10**30)):
        assert Fraction(below(value)) <= value
        assert below(value) == pytest.approx(float(value), rel=1e-15)


# --- pandas and polars


def test_pandas_reads_sql(connecting: Connecting) -> None:
    connection = connecting(epsilon=0.5, groups=1)
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql(PLANS, connection)
    assert list(frame.columns) == ["coinsurance", "n", "visits"]
    assert [str(each) for each in frame.dtypes] == ["int64", "int64", "float64"]
    assert list(frame["coinsurance"]) == [0, 25, 50, 95, 100]
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        by_plan = pd.read_sql(f"{PLANS} HAVING COUNT(*) > ?", connection, params=[100], index_col="coinsurance")
    assert by_plan.index.name == "coinsurance"
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        parts = list(pd.read_sql(PLANS, connection, chunksize=2))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert pd.concat(parts, ignore_index=True).equals(frame)
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        budget = pd.read_sql("SELECT * FROM hubbub.budget", connection)
    assert set(budget["scope"]) >= {"analyst", "dataset"}
    with pytest.warns(UserWarning, match="SQLAlchemy"), pytest.raises(dbapi.ProgrammingError, match="HB5"):
        pd.read_sql("SELECT * FROM health", connection)


def test_polars_reads_a_database(connecting: Connecting) -> None:
    connection = connecting(epsilon=0.5, groups=1, intervals=True)
    frame = pl.read_database(PLANS, connection)
    assert frame.schema["n"] == pl.Int64
    assert frame.schema["visits"] == frame.schema["n_low"] == pl.Float64
    assert frame["coinsurance"].to_list() == [0, 25, 50, 95, 100]
    again = pl.read_database(
        "SELECT COUNT(*) AS n FROM health WHERE age > ?", connection, execute_options={"parameters": [30]}
    )
    assert again.shape == (1, 3)
    parts = list(pl.read_database(PLANS, connection, iter_batches=True, batch_size=2))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert pl.read_database("SELECT * FROM hubbub.budget", connection).schema["left"] == pl.Float64
