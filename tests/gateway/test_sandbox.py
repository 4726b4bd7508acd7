"""The sandbox over the PostgreSQL port: `SET hubbub.sandbox = on`, or a hint in the query."""

import psycopg
import pytest
from tests.gateway.conftest import Port
from tests.gateway.test_session import refusal, remarks

from hubbub.answers.sandbox import MADE_UP

BY_SITE = "SELECT site, COUNT(*) AS n FROM health GROUP BY site"


def test_answers_are_marked_in_rows_and_notices_and_charge_nothing(shared_port: Port) -> None:
    connection, before = shared_port.connect(), shared_port.spent()
    connection.execute("SET hubbub.epsilon = 5")
    connection.execute("SET hubbub.sandbox = on")
    heard = remarks(connection)
    for _ in range(4):  # together more than the budget
        cursor = connection.execute(BY_SITE)
        assert [column.name for column in cursor.description or ()] == ["site", "n", "made_up"]
        assert {row[2] for row in cursor.fetchall()} == {True}
    assert heard == [MADE_UP] * 4
    with connection.cursor().copy(f"COPY ({BY_SITE}) TO STDOUT") as copied:
        assert all(bytes(line).endswith(b"\tt\n") for line in copied)
    assert (MADE_UP,) in [row[1:] for row in connection.execute(f"EXPLAIN {BY_SITE}").fetchall()]
    assert shared_port.spent() == before


def test_a_hint_is_enough_and_ends_with_its_query(shared_port: Port) -> None:
    connection, before = shared_port.connect(), shared_port.spent()
    heard = remarks(connection)
    connection.execute(f"/* sandbox=on epsilon=2 */ {BY_SITE}")
    assert heard == [MADE_UP]
    assert shared_port.spent() == before
    assert refusal(connection, BY_SITE).sqlstate  # without a price, and not in the sandbox
    connection.execute("SET hubbub.sandbox = on")
    connection.execute("RESET hubbub.sandbox")
    connection.execute(f"/* epsilon=0.01 */ {BY_SITE}")
    assert heard[-1].startswith("Cost: ")
    assert shared_port.spent() > before


@pytest.mark.parametrize("value", ["yes please", "onn", "2", "''"])
def test_a_value_that_is_not_on_or_off_is_refused(shared_port: Port, value: str) -> None:
    with pytest.raises(psycopg.Error, match="HB185"):
        shared_port.connect().execute(f"SET hubbub.sandbox = '{value}'" if value != "''" else "SET hubbub.sandbox = ''")


@pytest.mark.parametrize(
    "comment",
    [
        *("/* sandbox=on, foo=1 */", "/* please: sandbox = on */", "-- hubbub.SANDBOX: on\n", "/* Sandbox=on! */"),
        *("/* sandbox */", "/* hubbub sandbox on */", "-- SANDBOX\n", "/* 'sandbox'=on */", "/* x */; -- sandbox\n;"),
    ],
)
def test_a_comment_that_means_the_sandbox_is_never_overlooked(shared_port: Port, comment: str) -> None:
    connection, before = shared_port.connect(), shared_port.spent()
    connection.execute("SET hubbub.epsilon = 0.01")
    assert "HB865" in str(refusal(connection, f"{comment} {BY_SITE}"))
    assert shared_port.spent() == before


def test_releases_are_out_of_reach(shared_port: Port) -> None:
    connection = shared_port.connect()
    connection.execute("SET hubbub.sandbox = on")
    connection.execute("SET hubbub.epsilon = 1")
    assert "HB861" in str(refusal(connection, "SELECT * FROM release(1)"))


@pytest.mark.parametrize("sql", ["/* sandbox=on */; {}", "{}; -- sandbox=on", "{}; ; /* sandbox=on */ ;"])
def test_a_comment_between_semicolons_is_not_overlooked(shared_port: Port, sql: str) -> None:
    connection, before = shared_port.connect(), shared_port.spent()
    connection.execute("SET hubbub.epsilon = 0.01")
    answered = connection.execute(sql.format(BY_SITE))
    assert answered.description is not None
    assert answered.description[-1].name == "made_up"
    assert shared_port.spent() == before
