"""What a client sees: answers, prices, notices, portals, COPY, transactions, and errors up to the next Sync."""

from typing import Any

import psycopg
import pytest
from tests.gateway.conftest import Connection, Port, Starter
from tests.gateway.raw import RawClient

from hubbub.gateway import wire

BY_SITE = "SELECT site, COUNT(*) AS n, AVG(age) AS a FROM health GROUP BY site"


def remarks(connection: Connection) -> list[str]:
    """The notices that come from now on."""
    heard: list[str] = []
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    return heard


def refusal(connection: Connection, sql: str, parameters: Any = None) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql, parameters)
    return caught.value


def test_an_answer_comes_with_a_notice_of_its_cost_and_a_repetition_is_free(shared_port: Port) -> None:
    connection = shared_port.connect()
    connection.execute("SET hubbub.epsilon = 0.1")
    connection.execute("SET hubbub.fresh = 'a notice'")  # whatever earlier releases of other tests determine
    heard = remarks(connection)
    before = shared_port.spent()
    sql = "SELECT COUNT(*) AS n FROM health WHERE age > 11"
    first = connection.execute(sql).fetchall()
    assert connection.execute(sql).fetchall() == first
    assert [text.split(":")[0] for text in heard] == ["Cost", "Cost"]
    assert "free, from the ledger" in heard[1]
    assert before < shared_port.spent() <= before + 0.1 + 1e-9  # together, charges may cost less than their sum


def test_text_binary_cursors_and_copy_give_the_same_rows(shared_port: Port) -> None:
    connection = psycopg.connect(shared_port.dsn())
    connection.execute("SET hubbub.epsilon = 0.1")
    rows = connection.execute(BY_SITE).fetchall()
    before = shared_port.spent()
    assert connection.cursor(binary=True).execute(BY_SITE).fetchall() == rows
    with connection.cursor(name="paged") as cursor:
        cursor.execute(BY_SITE)
        assert cursor.fetchmany(2) + cursor.fetchmany(1) + cursor.fetchall() == rows
    with connection.cursor().copy(f"COPY ({BY_SITE}) TO STDOUT") as copied:
        assert [(int(a), int(b), float(c)) for a, b, c in copied.rows()] == rows
    with connection.cursor().copy(f"COPY ({BY_SITE}) TO STDOUT (FORMAT binary)") as copied:
        copied.set_types(["int8", "int8", "float8"])
        assert list(copied.rows()) == rows
    assert shared_port.spent() == before
    connection.close()


def test_parameters_have_the_types_of_the_columns_that_they_are_compared_with(shared_port: Port) -> None:
    connection = shared_port.connect()
    connection.execute("SET hubbub.epsilon = 0.1")
    sql = "SELECT COUNT(*) AS n FROM health WHERE age > %s AND health = %s"
    written = connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 40 AND health = 'good'").fetchone()
    with_parameters = connection.execute(sql, (40, "good")).fetchone()
    assert written is not None
    assert with_parameters is not None
    assert abs(written[0] - with_parameters[0]) < 2000  # two draws of noise of scale 50


def test_without_a_price_an_earlier_answer_is_given_or_the_estimate_is_told(shared_port: Port) -> None:
    priced, unpriced = shared_port.connect(), shared_port.connect()
    sql = "SELECT COUNT(*) AS n FROM health WHERE age > 17"
    error = refusal(unpriced, sql)
    assert (error.sqlstate, error.diag.constraint_name) == ("22023", None)
    assert "HB808" in str(error)
    assert "n ±150" in str(error)
    before = shared_port.spent()
    answer = priced.execute(f"/* epsilon=0.1 */ {sql}").fetchall()
    heard = remarks(unpriced)
    assert unpriced.execute(sql).fetchall() == answer
    assert "free" in heard[0]
    assert before < shared_port.spent() <= before + 0.1 + 1e-9  # together, charges may cost less than their sum
    assert unpriced.execute("SELECT COUNT(*) AS n FROM plans").fetchall() == [(5,)]


@pytest.mark.parametrize("how", ["SET", "hint"])
def test_with_free_nothing_is_ever_charged(shared_port: Port, how: str) -> None:
    """A query is answered if it was asked before, and refused otherwise, whatever its price."""
    ana, before = shared_port.connect("ana"), shared_port.spent("ana")
    asked = f"SELECT COUNT(*) AS n FROM health WHERE age < {40 + len(how)}"
    hint = "/* free=on, epsilon=0.01 */ " if how == "hint" else ""
    ana.execute("SET hubbub.epsilon = 0.01")
    if how == "SET":
        ana.execute("SET hubbub.free = on")
    with pytest.raises(psycopg.Error, match="HB167"):
        ana.execute(hint + asked)
    assert shared_port.spent("ana") == before
    ana.execute("SET hubbub.free = off")
    bought = ana.execute(asked).fetchall()
    spent = shared_port.spent("ana")
    assert spent > before
    ana.execute("SET hubbub.free = on")
    assert ana.execute(hint + asked).fetchall() == bought
    assert shared_port.spent("ana") == spent
    ana.execute("RESET hubbub.free")


def test_a_rollback_says_that_the_charge_stays(shared_port: Port) -> None:
    connection = psycopg.connect(shared_port.dsn())
    heard = remarks(connection)
    connection.execute("SET hubbub.epsilon = 0.1")
    connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 23")
    before = shared_port.spent()
    connection.rollback()
    assert heard[-1] == "ROLLBACK does not undo charges: ε = 0.1 stays spent."
    assert shared_port.spent() == before
    connection.close()


def test_errors_have_a_state_a_hint_and_a_position(shared_port: Port) -> None:
    connection = shared_port.connect()
    error = refusal(connection, "SELECT * FROM health LIMIT 200")
    assert error.sqlstate == "0A000"
    assert error.diag.statement_position == "8"
    assert "aggregates" in (error.diag.message_hint or "")
    assert refusal(connection, "INSERT INTO health VALUES (1)").sqlstate == "0A000"
    assert (
        refusal(connection, "SELECT COUNT(*) FROM wards").sqlstate
        == refusal(connection, "SELECT COUNT(*) FROM nothing").sqlstate
    )
    connection.execute("SET hubbub.epsilon = 5.5")
    assert refusal(connection, "SELECT COUNT(*) FROM health").sqlstate == "53400"
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_pipeline_skips_to_its_sync_after_an_error(shared_port: Port) -> None:
    connection = shared_port.connect()
    connection.execute("SET hubbub.epsilon = 0.1")
    before = shared_port.spent()

    def send_both() -> None:
        with connection.pipeline():
            connection.execute("SELECT age FROM health")
            connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 61")

    with pytest.raises(psycopg.Error):
        send_both()
    assert shared_port.spent() == before
    with connection.pipeline():
        first = connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 60")
        second = connection.execute("SELECT 7")
        assert second.fetchone() == (7,)
        assert first.fetchone() is not None


def test_intervals_are_columns_on_request(shared_port: Port) -> None:
    connection = shared_port.connect()
    connection.execute("SET hubbub.epsilon = 0.1")
    connection.execute("SET hubbub.intervals = on")
    cursor = connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 11")
    assert [column.name for column in cursor.description or ()] == ["n", "n_low", "n_high"]
    row = cursor.fetchone()
    assert row is not None
    assert row[1] <= row[0] <= row[2]


def test_explain_is_free_and_shows_the_estimate(shared_port: Port) -> None:
    connection = shared_port.connect()
    before = shared_port.spent()
    rows: dict[str, str] = dict(
        connection.execute("EXPLAIN SELECT COUNT(*) AS n FROM health WHERE age > 62").fetchall()
    )
    assert rows["cost"] == "ε = 0.1 on health"
    assert rows["error of n"] == "±150"
    assert shared_port.spent() == before


def test_an_idempotency_key_answers_one_request_once(shared_port: Port) -> None:
    connection = shared_port.connect()
    connection.execute("SET hubbub.epsilon = 0.1")
    connection.execute("SET hubbub.key = 'only once'")
    before = shared_port.spent()
    first = connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 31").fetchall()
    assert connection.execute("SELECT COUNT(*) AS n FROM health WHERE age > 31").fetchall() == first
    assert "HB124" in str(refusal(connection, "SELECT COUNT(*) AS n FROM health WHERE age > 32"))
    assert before < shared_port.spent() <= before + 0.1 + 1e-9  # together, charges may cost less than their sum


def test_others_see_neither_tables_nor_releases_of_an_analyst(shared_port: Port) -> None:
    ana, ben = shared_port.connect(), shared_port.connect("ben")
    ana.execute("SET hubbub.epsilon = 0.1")
    ana.execute("SELECT COUNT(*) AS n FROM health WHERE age > 11")
    names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
    assert ana.execute(names).fetchall() == [("health",), ("plans",)]
    assert ben.execute(names).fetchall() == [("health",), ("plans",), ("wards",)]
    assert ben.execute("SELECT * FROM hubbub.releases").fetchall() == []


def test_an_owner_can_look_and_not_ask(shared_port: Port) -> None:
    owner = shared_port.connect("owner")
    assert owner.execute("SELECT COUNT(*) FROM hubbub.budget").fetchone() != (0,)
    owner.execute("SET hubbub.epsilon = 0.1")
    assert refusal(owner, "SELECT COUNT(*) AS n FROM health").sqlstate == "42501"


def test_a_revoked_token_ends_open_connections_at_the_next_query(start_port: Starter) -> None:
    port = start_port()
    connection = port.connect()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    token = port.service.state.tokens.list("ana")[0]
    port.service.accounts.revoke(token.id)
    assert "HB703" in str(refusal(connection, "SELECT 1"))
    with pytest.raises(psycopg.OperationalError):
        port.connect()


def test_with_a_revoked_token_nothing_is_described(start_port: Starter) -> None:
    port = start_port()
    with RawClient(port.number) as client:
        client.sign_in(port.tokens["ana"])
        port.service.accounts.revoke(port.service.state.tokens.list("ana")[0].id)
        query = wire.message(b"P", b"\0SELECT relname FROM pg_class\0\0\0")
        client.send(query, wire.message(b"D", b"S\0"), wire.message(b"S"))
        answers = client.until()
        assert [kind for kind, _ in answers] == [b"1", b"E", b"Z"]
        assert b"HB703" in answers[1][1]
        # the type of a parameter is that of a declared column, also where a statement has columns of its own
        explained = wire.message(b"P", b"\0EXPLAIN SELECT COUNT(*) FROM health WHERE age = $1\0\0\0")
        client.send(explained, wire.message(b"D", b"S\0"), wire.message(b"S"))
        answers = client.until()
        assert [kind for kind, _ in answers] == [b"E", b"Z"]
        assert b"HB703" in answers[0][1]


def test_the_default_of_a_tool_comes_before_that_of_the_analyst(start_port: Starter) -> None:
    configured = {"analysts": {"ana": {"epsilon": 0.2}}, "applications": {"Board": {"epsilon": 0.05}}}
    port = start_port(configured=configured)
    port.connect().execute("SELECT COUNT(*) AS n FROM health WHERE age > 1")
    assert port.spent() == pytest.approx(0.2)
    port.connect(application_name="Board").execute("SELECT COUNT(*) AS n FROM health WHERE age > 2")
    assert 0.2 < port.spent() <= 0.25 + 1e-9
